//! `[dns64]`: what the configuration says about synthesis.

use crate::base::network::{Network, Networks};
use crate::base::time::Span;
use crate::dns64::rules::Rules;
use core::net::Ipv6Addr;
use pref64::Pref64;
use std::sync::Arc;
use wire::Record;

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

/// Whether an AAAA record counts as absent.
//= RFC 6147 section 5.1.4: requirement 6
#[inline]
pub fn is_excluded(record: &Record<'_>, exclude: Option<&Dns64>) -> bool {
    exclude.is_some_and(|dns64| record.address6().is_some_and(|address| dns64.excludes(address)))
}
