//! Configuration of synthesis: the section `[dns64]`.

use crate::base::network::{ClientNetworks, Network};
use crate::base::time::Span;
use crate::dns64::gateways::Gateways;
use crate::dns64::rules::Rules;
use crate::dns64::verdicts::Verdicts;
use core::net::{Ipv4Addr, Ipv6Addr};
use pref64::Pref64;
use pref64::mapping::Mappings;
use std::sync::Arc;
use wire::Record;

/// Time at which the A lookup is asked (RFC 6147 section 5.1.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Lookup {
    /// After the AAAA reply has shown that synthesis is needed.
    #[default]
    Sequential,
    /// Together with the AAAA lookup.
    Parallel,
    /// When the AAAA lookup has no reply after this time, or when its reply shows that synthesis is needed.
    Stagger(Span),
}

/// Handling of a failed AAAA lookup (RFC 6147 sections 5.1.2 and 5.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// Handle it like an empty answer: the A lookup decides.
    #[default]
    Synthesize,
    /// Return the failure to the client.
    Pass,
}

/// Handling of each kind of failure: `[dns64.on-failure]`. Other RCODEs are handled as `Synthesize`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailurePolicy {
    /// SERVFAIL (RCODE 2).
    pub servfail: OnFailure,
    /// REFUSED (RCODE 5).
    pub refused: OnFailure,
    /// FORMERR (RCODE 1).
    pub formerr: OnFailure,
    /// NOTIMP (RCODE 4).
    pub notimp: OnFailure,
    /// No reply in time.
    pub timeout: OnFailure,
    /// NXDOMAIN (RCODE 3). [`OnFailure::Synthesize`] is for servers that deny a name because it has no AAAA records.
    pub nxdomain: OnFailure,
}

impl Default for FailurePolicy {
    //= RFC 6147 section 5.1.2: requirement 4
    fn default() -> FailurePolicy {
        let synthesize = OnFailure::Synthesize;
        FailurePolicy {
            servfail: synthesize,
            refused: synthesize,
            formerr: synthesize,
            notimp: synthesize,
            timeout: synthesize,
            nxdomain: OnFailure::Pass,
        }
    }
}

/// Trust in the AD bit of an upstream (RFC 6147 section 5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Dnssec {
    /// The upstream validates and is trusted: its AD bit counts.
    #[default]
    Trust,
    /// The AD bit is never set in an answer.
    Off,
    /// Replies are validated here, so AD in them is this server's own.
    Validate,
}

impl Dnssec {
    /// True if AD in a reply counts.
    #[inline]
    pub fn trusts_ad(self) -> bool {
        self != Dnssec::Off
    }
}

/// Handling of the reverse names (`ip6.arpa`) of addresses under the prefixes (RFC 6147 section 5.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Reverse {
    /// Answer with a CNAME to the reverse name of the IPv4 address.
    #[default]
    Cname,
    /// Answer from an empty local zone.
    Local,
    /// Forward the query like any other.
    Off,
}

/// Treatment of IPv4 addresses that are not global under the well-known prefix, which must not carry them (RFC 6052 section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum NonGlobal {
    /// They are left out.
    #[default]
    Omit,
    /// Those of RFC 1918 are embedded, the others left out (draft-ietf-v6ops-nat64-wkp-1918).
    Private,
    /// All are embedded.
    Embed,
}

impl NonGlobal {
    /// True if the well-known prefix may carry this address.
    #[inline]
    pub fn allows(self, address: [u8; 4]) -> bool {
        match self {
            NonGlobal::Omit => pref64::is_global(address),
            NonGlobal::Private => Ipv4Addr::from(address).is_private() || pref64::is_global(address),
            NonGlobal::Embed => true,
        }
    }
}

/// Configuration of names under `arpa` with local answers.
#[derive(Clone, Debug)]
pub struct Arpa {
    /// Reverse names of the prefixes.
    pub reverse: Reverse,
    /// True if clients with DNS64 get local answers for `ipv4only.arpa` (RFC 8880).
    pub ipv4only: bool,
    /// Server name in the SOA and NS records of these zones, in wire form.
    pub server: Box<[u8]>,
    /// Mailbox of the person responsible, in the SOA records of these zones, in wire form.
    pub contact: Box<[u8]>,
    /// Name of the designated resolver (RFC 9462) in wire form, about which clients may ask as about `resolver.arpa` (RFC 9606); empty: none.
    pub designated: Box<[u8]>,
}

impl Default for Arpa {
    fn default() -> Arpa {
        Arpa {
            reverse: Reverse::Cname,
            ipv4only: true,
            server: Box::from(&b"\x09localhost\x00"[..]),
            contact: Box::from(&b"\x06nobody\x07invalid\x00"[..]),
            designated: Box::default(),
        }
    }
}

/// The discovery of prefixes (RFC 7050, RFC 8781). What it finds is among the prefixes of [`Dns64`] and its rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discovery {
    /// Number of the configuration that names the sources: what was found for one configuration says nothing to another one.
    pub configuration: u64,
    /// Longest TTL with which clients learn of the prefixes, in seconds.
    pub ttl_secs: u32,
}

/// Settings of the section `[dns64]`.
#[derive(Clone, Debug)]
pub struct Dns64 {
    /// Prefixes, in the order of the synthesized records. Empty only while the discovery has found none: then nothing is synthesized.
    pub prefixes: Vec<Pref64>,
    /// Clients that get synthesis; IPv4 as IPv4-mapped.
    pub clients: ClientNetworks,
    /// Networks whose real AAAA records count as absent (RFC 6147 section 5.1.4). They must contain the prefixes.
    pub exclude_aaaa: Vec<Network>,
    /// Treatment of IPv4 addresses that are not global under the well-known prefix.
    pub non_global: NonGlobal,
    /// IPv4 addresses that are never embedded (as IPv4-mapped networks).
    pub never_embed: Vec<Network>,
    /// Explicit address mappings (RFC 7757), which go before prefixes and all that bars addresses from them. None: there are none.
    pub mappings: Option<Arc<Mappings>>,
    /// Time at which the A lookup is asked.
    pub lookup: Lookup,
    /// Handling of a failed AAAA lookup.
    pub on_failure: FailurePolicy,
    /// Trust in the AD bit of upstreams.
    pub dnssec: Dnssec,
    /// Synthesize even if a query has both DO and CD set.
    pub break_dnssec: bool,
    /// Do not synthesize for queries without RD.
    pub recursive_only: bool,
    /// Largest number of synthesized records in one answer.
    pub max_records: usize,
    /// Names under `arpa` with local answers.
    pub arpa: Arpa,
    /// Rules that give other prefixes, or no prefix, to some clients, names and IPv4 addresses.
    pub rules: Arc<Rules>,
    /// The discovery of prefixes. None: all are configured.
    pub discovery: Option<Discovery>,
    /// Gateways behind the prefixes. None: nobody knows of them, and an answer has all prefixes of its list.
    pub gateways: Option<Gateways>,
    /// Verdicts about real addresses, for rules that verify them. None: nobody tries any.
    pub verdicts: Option<Arc<Verdicts>>,
}

impl Dns64 {
    /// The IPv6 address to which an IPv4 address is mapped.
    #[inline]
    pub fn mapped(&self, address: [u8; 4]) -> Option<[u8; 16]> {
        self.mappings.as_ref().and_then(|mappings| find_mapped(mappings, address))
    }

    /// The IPv4 address in an IPv6 address under a configured prefix or the well-known one, whoever synthesized it. If prefixes overlap,
    /// the longest one decides, as for reverse names.
    pub fn embedded(&self, address: [u8; 16]) -> Option<[u8; 4]> {
        let general = self.prefixes.iter().chain([&pref64::WELL_KNOWN]);
        let all = general.filter(|prefix| prefix.contains(address));
        let all = all.chain(self.rules.longest_prefix_of(address, 128));
        all.max_by_key(|prefix| prefix.length())?.extract(address)
    }

    /// True if an AAAA record with this address counts as absent: the address is in an excluded network, or under a prefix of a
    /// rule.
    #[inline]
    pub fn excludes(&self, address: [u8; 16]) -> bool {
        self.excluder(address).is_some()
    }

    /// Setting that excludes AAAA records with this address; `None` if they count as real.
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

/// Finds the address to which one is mapped. A call, as most configurations have no mappings.
#[inline(never)]
fn find_mapped(mappings: &Mappings, address: [u8; 4]) -> Option<[u8; 16]> {
    mappings.to_v6(address)
}

/// Setting that excludes a real AAAA record.
#[derive(Clone, Copy, Debug)]
pub enum Excluder<'s> {
    /// Network of `exclude-aaaa`.
    Network(&'s Network),
    /// Prefix of a rule.
    Prefix(&'s Pref64),
}

/// True if a record is an AAAA record that counts as absent. Always false without `exclude`.
//= RFC 6147 section 5.1.4: requirement 6
#[inline]
pub fn is_excluded(record: &Record<'_>, exclude: Option<&Dns64>) -> bool {
    exclude.is_some_and(|dns64| record.address6().is_some_and(|address| dns64.excludes(address)))
}
