//! Flags of the command line that override keys of the file.

use super::Allowed;
use pref64::Pref64;
use std::net::SocketAddr;

/// The overrides. An empty or absent one leaves the decision to the file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `--listen`, for `server.listen`.
    pub listen: Vec<SocketAddr>,
    /// `--forwarder`, for `upstream.forwarders`.
    pub forwarders: Vec<SocketAddr>,
    /// `--prefix`, for `dns64.prefixes`.
    pub prefixes: Vec<Pref64>,
    /// `--allow`, for `server.allow`.
    pub allow: Vec<Allowed>,
    /// `--workers`, for `server.workers`.
    pub workers: Option<u16>,
}
