//! What the engine is told to do: the configuration, checked and compiled. Immutable while in use; a reload hands
//! in a new one.

use crate::base::time::Span;
use crate::dns64::rules::Rules;
use crate::local::local_data::LocalData;
use crate::message::cookie::Cookies;
use crate::rpz::table::ResponsePolicy;
use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use pref64::Pref64;
use std::sync::Arc;

/// How questions travel to an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Transport {
    /// UDP; TCP on truncation or after a forgery attempt.
    #[default]
    Udp,
    /// Always TCP, pipelined.
    Tcp,
}

/// Which upstream of a group is asked first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Select {
    /// The first in the list that is alive.
    #[default]
    Ordered,
    /// One at random per question.
    Random,
    /// The one with the shortest measured round trip.
    Fastest,
}

/// When the A leg is asked (RFC 6147 section 5.1.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Lookup {
    /// After the AAAA leg has turned out to need it.
    #[default]
    Sequential,
    /// Together with the AAAA leg.
    Parallel,
    /// When the AAAA leg has not been answered after this time, or has turned out to need it.
    Stagger(Span),
}

/// What a failed AAAA leg means (RFC 6147 sections 5.1.2 and 5.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// The same as an empty answer: the A leg decides.
    #[default]
    Synthesize,
    /// The failure is the answer.
    Pass,
}

/// `[dns64.on-failure]`. RCODEs without a key of their own count as `Synthesize`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FailurePolicy {
    /// RCODE 2.
    pub servfail: OnFailure,
    /// RCODE 5.
    pub refused: OnFailure,
    /// RCODE 1.
    pub formerr: OnFailure,
    /// RCODE 4.
    pub notimp: OnFailure,
    /// No answer in time.
    pub timeout: OnFailure,
}

/// What the AD bit of an upstream is worth (RFC 6147 section 5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Dnssec {
    /// The upstream validates and is trusted: its AD bit is followed.
    #[default]
    Trust,
    /// AD is never set in an answer.
    Off,
}

/// A network: an address and a prefix length. IPv4 networks are kept as IPv4-mapped IPv6 (length + 96).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The network's address as a number, bits beyond the length zero.
    pub address: u128,
    /// The mask that belongs to the length.
    pub mask: u128,
}

impl Network {
    /// A network of `length` leading bits of an IPv6 (or IPv4-mapped) address.
    pub fn new(address: Ipv6Addr, length: u8) -> Network {
        let mask = if length == 0 { 0 } else { u128::MAX << (128 - u32::from(length.min(128))) };
        Network { address: u128::from(address) & mask, mask }
    }

    /// A network of `length` leading bits of an IPv4 address.
    pub fn v4(address: Ipv4Addr, length: u8) -> Network {
        Network::new(address.to_ipv6_mapped(), 96 + length.min(32))
    }

    /// Whether `address` (IPv4 as IPv4-mapped) lies in the network.
    #[inline]
    pub fn contains(&self, address: Ipv6Addr) -> bool {
        u128::from(address) & self.mask == self.address
    }
}

/// A few networks, searched one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks(pub Vec<Network>);

impl Networks {
    /// Whether one of the networks contains `address` (IPv4 as IPv4-mapped).
    ///
    /// `::/0` means IPv6 clients and contains no IPv4-mapped address; `0.0.0.0/0` means IPv4 clients.
    #[inline]
    pub fn contains(&self, address: Ipv6Addr) -> bool {
        contains(&self.0, address)
    }
}

/// Whether one of `networks` contains `address`, as [`Networks::contains`] has it.
#[inline]
pub(crate) fn contains(networks: &[Network], address: Ipv6Addr) -> bool {
    let mapped = address.to_ipv4_mapped().is_some();
    networks.iter().any(|network| network.contains(address) && (!mapped || network.mask.count_ones() >= 96))
}

/// What is done with the reverse names of addresses under the prefixes (RFC 6147 section 5.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Reverse {
    /// They are aliases of the reverse names of the IPv4 addresses.
    #[default]
    Cname,
    /// They are served from empty zones of our own.
    Local,
    /// They are asked upstream like all others.
    Off,
}

/// Names under `arpa` that are answered here.
#[derive(Clone, Debug)]
pub struct Arpa {
    /// Reverse names of the prefixes.
    pub reverse: Reverse,
    /// Whether `ipv4only.arpa` is answered here for clients with DNS64 (RFC 8880).
    pub ipv4only: bool,
    /// Name of the server in SOA and NS records of these zones, in wire form.
    pub server: Box<[u8]>,
    /// Mailbox of who is responsible for them, in wire form.
    pub contact: Box<[u8]>,
}

impl Default for Arpa {
    fn default() -> Arpa {
        Arpa {
            reverse: Reverse::Cname,
            ipv4only: true,
            server: Box::from(&b"\x09localhost\x00"[..]),
            contact: Box::from(&b"\x06nobody\x07invalid\x00"[..]),
        }
    }
}

/// `[dns64]`.
#[derive(Clone, Debug)]
pub struct Dns64 {
    /// The prefixes, in the order in which their addresses are listed. Never empty.
    pub prefixes: Vec<Pref64>,
    /// Clients that get synthesis; IPv4 as IPv4-mapped.
    pub clients: Networks,
    /// Real AAAA records in these count as absent (RFC 6147 section 5.1.4). Must contain the prefixes.
    pub exclude_aaaa: Vec<Network>,
    /// Whether IPv4 addresses that are not global may be embedded in the well-known prefix.
    pub embed_non_global: bool,
    /// IPv4 addresses that are never embedded (as IPv4-mapped networks).
    pub never_embed: Vec<Network>,
    /// Order of the two legs.
    pub lookup: Lookup,
    /// Meaning of a failed AAAA leg.
    pub on_failure: FailurePolicy,
    /// Trust in AD.
    pub dnssec: Dnssec,
    /// Synthesize even when DO and CD are both set.
    pub break_dnssec: bool,
    /// No synthesis for queries without RD.
    pub recursive_only: bool,
    /// Synthesized records in one answer.
    pub max_records: usize,
    /// Names that are answered here.
    pub arpa: Arpa,
    /// Other prefixes, or none, for some clients, names and addresses.
    pub rules: Arc<Rules>,
}

impl Dns64 {
    /// Whether an AAAA record with this address counts as absent: it is excluded, or under a prefix of ours.
    #[inline]
    pub fn excludes(&self, address: [u8; 16]) -> bool {
        self.excluder(address).is_some()
    }

    /// What makes an AAAA record with this address count as absent.
    #[inline]
    pub fn excluder(&self, address: [u8; 16]) -> Option<Excluder<'_>> {
        let octets = Ipv6Addr::from(address);
        match self.exclude_aaaa.iter().find(|network| network.contains(octets)) {
            Some(network) => Some(Excluder::Network(network)),
            None if self.rules.is_empty() => None,
            None => self.rules.prefix_of(address).map(Excluder::Prefix),
        }
    }
}

/// What makes a real AAAA record count as absent.
#[derive(Clone, Copy, Debug)]
pub enum Excluder<'s> {
    /// A network of `exclude-aaaa`.
    Network(&'s Network),
    /// A prefix of a rule.
    Prefix(&'s Pref64),
}

/// Forwarders of a zone.
#[derive(Clone, Debug)]
pub struct ForwardZone {
    /// The zone's name in wire form, lower case; the root (`[0]`) matches everything.
    pub name: Box<[u8]>,
    /// Its forwarders, in order.
    pub forwarders: Vec<SocketAddr>,
}

/// `[upstream]`.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// Forwarders for everything that no zone claims, in order.
    pub forwarders: Vec<SocketAddr>,
    /// Zones that go elsewhere; the longest match wins.
    pub zones: Vec<ForwardZone>,
    /// Which of a group is asked first.
    pub select: Select,
    /// Ceiling for the wait of one try.
    pub timeout: Span,
    /// Tries in all, over all forwarders: 1 to [`crate::limits::TRIES`].
    pub tries: u8,
    /// How questions travel.
    pub transport: Transport,
}

impl Upstream {
    /// How long all tries of one question take at most.
    pub fn longest(&self) -> Span {
        Span(self.timeout.0.saturating_mul(u64::from(self.tries)))
    }
}

/// What is done with the client subnets of queries (RFC 7871).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ClientSubnet {
    /// They are not looked at, sent or returned.
    #[default]
    Off,
    /// What a client sends goes upstream, and the scope of the reply back.
    Forward,
}

/// `[cache]`, but for its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caching {
    /// No TTL is smaller, in seconds.
    pub min_ttl_secs: u32,
    /// No TTL is larger, in seconds.
    pub max_ttl_secs: u32,
    /// Answers that there is nothing are not kept longer, in seconds.
    pub max_negative_ttl_secs: u32,
    /// How long after expiry data may still answer when the upstreams fail (RFC 8767); zero: not at all.
    pub stale: Span,
    /// Whether what is asked for is asked again before it expires.
    pub prefetch: bool,
}

impl Default for Caching {
    fn default() -> Caching {
        Caching {
            min_ttl_secs: 0,
            max_ttl_secs: 86_400,
            max_negative_ttl_secs: 3_600,
            stale: Span::from_secs(86_400),
            prefetch: true,
        }
    }
}

/// Everything that may change while the engine runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who may ask at all; IPv4 as IPv4-mapped. Others are refused.
    pub allow: Networks,
    /// Where questions go.
    pub upstream: Upstream,
    /// What we know ourselves.
    pub own: Arc<LocalData>,
    /// Response policy zones.
    pub policy: Arc<ResponsePolicy>,
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

/// What is reserved at start and cannot change afterwards.
#[derive(Clone, Copy, Debug)]
pub struct Capacity {
    /// Client questions waiting for an upstream, per worker.
    pub pending: usize,
    /// Octets of the cache, per worker; 0: none.
    pub cache: usize,
}
pub use ForwardZone as Zone;
