//! Flags of the command line that replace keys of the file.

use pref64::Pref64;
use std::net::SocketAddr;

/// Flags of the command line that take the place of keys of the file. Empty and none: the file decides.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `--listen`, for `server.listen`.
    pub listen: Vec<SocketAddr>,
    /// `--forwarder`, for `upstream.forwarders`.
    pub forwarders: Vec<SocketAddr>,
    /// `--prefix`, for `dns64.prefixes`.
    pub prefixes: Vec<Pref64>,
    /// `--workers`, for `server.workers`.
    pub workers: Option<u16>,
}
