//! What the engine is told to do: the configuration, checked and compiled. Immutable while in use; a reload hands
//! in a new one.

pub use crate::base::network::{Network, Networks};
pub use crate::cache::ttl::Caching;
pub use crate::dns64::config::{Arpa, Dns64, Dnssec, Excluder, FailurePolicy, Lookup, OnFailure, Reverse};
pub use crate::interface::Transport;
pub use crate::upstream::config::{ForwardZone, Select, UpstreamConfig};

use crate::local::local_data::LocalData;
use crate::message::cookie::Cookies;
use crate::rpz::table::ResponsePolicy;
use crate::upstream::config::Parameters;
use std::sync::Arc;

/// What is done with the client subnets of queries (RFC 7871).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ClientSubnet {
    /// They are not looked at, sent or returned.
    #[default]
    Off,
    /// What a client sends goes upstream, and the scope of the reply back.
    Forward,
}

/// Everything that may change while the engine runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who may ask at all; IPv4 as IPv4-mapped. Others are refused.
    pub allow: Networks,
    /// Where questions go.
    pub upstream: UpstreamConfig,
    /// What we know ourselves.
    pub local_data: Arc<LocalData>,
    /// Response policy zones.
    pub rpz: Arc<ResponsePolicy>,
    /// How addresses are made.
    pub dns64: Dns64,
    /// How long answers are kept.
    pub cache: Caching,
    /// Largest UDP message in both directions, 512 to 4096 octets.
    pub udp_size: u16,
    /// What is done with client subnets.
    pub client_subnet: ClientSubnet,
    /// What is done with cookies.
    pub cookies: Cookies,
    /// Pending client questions of one network (IPv6 /64, IPv4 /32).
    pub pending_per_client: u32,
    /// Questions of one network in a second; 0: no limit.
    pub queries_per_client: u32,
    /// Answers of one kind to one network over UDP in a second; 0: no limit.
    pub responses_per_client: u32,
}

impl Settings {
    /// The values that the upstream side needs for every query.
    pub(crate) fn upstream_parameters(&self) -> Parameters {
        let UpstreamConfig { tries, timeout, transport, select, .. } = self.upstream;
        let sends_cookies = self.cookies.enabled;
        Parameters { tries, timeout, transport, select, sends_cookies, udp_size: self.udp_size }
    }
}

/// What is reserved at start and cannot change afterwards.
#[derive(Clone, Copy, Debug)]
pub struct Capacity {
    /// Client questions waiting for an upstream, per worker.
    pub pending: usize,
    /// Octets of the cache, per worker; 0: none.
    pub cache: usize,
}
