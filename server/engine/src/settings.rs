//! Settings of the engine: the configuration, checked and compiled. They are immutable while in use; a reload hands in new ones.
//!
//! The settings of one part stand with this part (`dns64/config.rs`, `upstream/config.rs`, `cache/ttl.rs`); this file puts
//! them together.

pub use crate::base::network::{ClientNetworks, Network, Networks};
pub use crate::cache::ttl::Caching;
pub use crate::dns64::config::{
    Arpa, Discovery, Dns64, Dnssec, Excluder, FailurePolicy, Lookup, NonGlobal, OnFailure, Reverse,
};
pub use crate::dns64::private::PrivateAddresses;
pub use crate::interface::Transport;
pub use crate::upstream::config::{ForwardZone, Select, TlsForwarder, UpstreamConfig};
pub use crate::validator::config::{
    AnchorRecord, DigestFunctions, TrustAnchor, UncheckedZone, ValidationConfig,
};

use crate::local::local_data::LocalData;
use crate::local::server_names::ServerNames;
use crate::local::special_use::SpecialUseSettings;
use crate::message::cookie::Cookies;
use crate::needs::SharedNeeds;
use crate::rpz::table::ResponsePolicy;
use crate::upstream::config::Parameters;
use std::sync::Arc;

/// Treatment of the EDNS client subnets of queries (RFC 7871).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ClientSubnet {
    /// They are neither read, nor sent, nor returned.
    #[default]
    Off,
    /// The client's subnet is sent upstream, and the scope of the reply is returned.
    Forward,
}

/// All settings that may change while the engine runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Networks of clients that are served; IPv4 as IPv4-mapped. Others are refused.
    pub allow: Networks,
    /// Upstreams, and how they are asked.
    pub upstream: UpstreamConfig,
    /// Local data.
    pub local_data: Arc<LocalData>,
    /// Identity and version of the server.
    pub server_names: ServerNames,
    /// Response policy zones.
    pub rpz: Arc<ResponsePolicy>,
    /// Addresses that replies of upstreams must not have. None: there are none.
    pub private_addresses: Option<Arc<PrivateAddresses>>,
    /// Synthesis of addresses.
    pub dns64: Dns64,
    /// TTL rules of the cache.
    pub cache: Caching,
    /// Largest UDP message in both directions, 512 to 4096 octets.
    pub udp_size: u16,
    /// Treatment of client subnets.
    pub client_subnet: ClientSubnet,
    /// Server cookies for clients; if they are enabled, upstreams get client cookies too.
    pub cookies: Cookies,
    /// Limit of pending queries of one client network (IPv6 /64, IPv4 /32); those with a proven source address count apart.
    pub pending_per_client: u32,
    /// Bits of the IPv6 prefix that one customer has, 48 to 64: all networks in it are one customer, and share a second limit. 64: no
    /// second limit.
    pub client_prefix: u8,
    /// Limit of queries per second of one client network; 0: no limit.
    pub queries_per_client: u32,
    /// Limit of equal responses per second over UDP to one client network; 0: no limit.
    pub responses_per_client: u32,
    /// Validation of replies, with [`Dnssec::Validate`]. None: nothing is validated.
    pub validation: Option<Arc<ValidationConfig>>,
    /// What still needs DNS64 is counted, with this part that all workers share. An engine that counts already keeps its own. None: it is
    /// not counted.
    pub needs: Option<Arc<SharedNeeds>>,
}

impl Settings {
    /// The settings that decide about special-use names.
    #[inline]
    pub(crate) fn special_use(&self) -> SpecialUseSettings<'_> {
        let Settings { dns64, local_data, upstream, .. } = self;
        SpecialUseSettings { dns64, local_data, forward_zones: &upstream.zones }
    }

    /// True if cached answers do not depend on the client, unless a rule applies to the name: DNS64 is for all clients, no rule is
    /// for some of them, and there is no response policy zone and no rate limit.
    pub(crate) fn treats_clients_alike(&self) -> bool {
        let Settings { rpz, dns64, queries_per_client, responses_per_client, .. } = self;
        rpz.is_empty()
            && (*queries_per_client, *responses_per_client) == (0, 0)
            && dns64.clients.includes_everybody()
            && dns64.rules.list().iter().all(|rule| rule.clients.is_empty())
    }

    /// Parameters of every upstream query.
    pub(crate) fn upstream_parameters(&self) -> Parameters {
        let UpstreamConfig { tries, timeout, transport, mix_case, select, .. } = self.upstream;
        let (sends_cookies, udp_size) = (self.cookies.enabled, self.udp_size);
        let validates = self.validation.is_some();
        Parameters { tries, timeout, transport, mix_case, select, sends_cookies, udp_size, validates }
    }
}

/// Memory that is reserved at start and cannot change afterwards.
#[derive(Clone, Copy, Debug)]
pub struct Capacity {
    /// Client queries that may wait for an upstream, per worker.
    pub pending: usize,
    /// Octets of the cache, per worker; 0: no cache.
    pub cache: usize,
}
