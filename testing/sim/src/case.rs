//! One answer and all that is needed to judge it: the query, the timeline of upstream replies, the configurations in force.
//! The rules themselves are in [`crate::oracle`].

use crate::client_view::Seen;
use crate::config::Config;
use crate::gateways::Given;
use crate::ground_truth::NameId;
use crate::pending::Pending;
use crate::policy::Rule;
use crate::prefix::Prefix;
use crate::timeline::{Key, Timeline};
use crate::trials::Fates;
use core::cell::Cell;
use engine::dns64::gateways::Spread;
use std::net::IpAddr;

/// One client query and its answer.
pub struct Case<'a> {
    /// Upstream replies and troubles.
    pub timeline: &'a Timeline,
    /// The configurations since the query arrived; the last one is in force.
    pub configs: &'a [Config],
    /// The query.
    pub query: &'a Pending,
    /// The answer.
    pub answer: &'a Seen,
    /// Time of the answer.
    pub now: u64,
    /// Octets that the answer may have in any case.
    pub limit: usize,
    /// The client uses IPv4, and has no DNS64 if the configuration serves IPv6 clients only.
    pub is_v4: bool,
    /// The name of the query is `ipv4only.arpa`.
    pub is_ipv4only: bool,
    /// The client's address.
    pub client: IpAddr,
    /// The prefixes that the client gets by the states of the gateways; none: all.
    pub given: Option<Given>,
    /// The verdicts about real addresses of which the engine was told.
    pub fates: &'a Fates,
    /// Decision of the response policy so far.
    pub rpz: Cell<RpzState<'a>>,
}

/// Decision of the response policy about a query so far.
#[derive(Clone, Copy, Debug)]
pub enum RpzState<'a> {
    /// No rule has matched yet.
    Undecided,
    /// A rule exempts the query from all rules.
    Passthru,
    /// This rule has matched, and its data are the answer.
    Data(&'a Rule),
}

impl<'a> Case<'a> {
    /// The upstream question for a name and type, with the flags of the client's query.
    pub(crate) fn key(&self, name: NameId, rtype: u16) -> Key {
        Key { name, rtype, bits: self.query.bits }
    }

    /// The prefixes for an IPv4 address of the name that the client gets.
    pub(crate) fn prefixes_for(&self, address: [u8; 4], config: &Config) -> Vec<Prefix> {
        let list = config.prefixes_for(self.query.name, address);
        let is_general = core::ptr::eq(list, &config.prefixes[..]);
        let is_given = |prefix: &&Prefix| match &self.given {
            None => true,
            Some(given) if is_general => given.general.contains(prefix),
            Some(given) => given.has_legacy,
        };
        list.iter().filter(is_given).copied().collect()
    }

    /// True if no gateway lives for one of these IPv4 addresses of the name, or no prefix was discovered.
    pub(crate) fn has_no_gateway(&self, addresses: &[[u8; 4]], config: &Config) -> bool {
        let is_missing = |&address: &[u8; 4]| {
            let may_have_some = match config.prefixes_for(self.query.name, address).is_empty() {
                true => config.awaits_discovery(address),
                false => true,
            };
            config.mappings.to_v6(address).is_none()
                && may_have_some
                && self.prefixes_for(address, config).is_empty()
        };
        addresses.iter().any(is_missing)
    }

    /// Longest TTL of a synthesis by the states of the gateways, seconds; none: no prefix that it may have is probed.
    pub(crate) fn longest_ttl(&self, addresses: &[[u8; 4]], config: &Config) -> Option<u32> {
        let settings = config.gateways.as_ref()?;
        let is_probed = |prefix: &Prefix| {
            let same = |other: &&Prefix| (other.address, other.length) == (prefix.address, prefix.length);
            let place = config.all_prefixes().collect::<Vec<_>>().iter().position(same);
            place.is_some_and(|place| settings.probed[place])
        };
        let may_have_probed = |&address: &[u8; 4]| {
            if config.mappings.to_v6(address).is_some() {
                return false;
            }
            let list = config.prefixes_for(self.query.name, address);
            // What is written for one client network is copied for others, under their prefixes; but not what a rule decides.
            let is_copied = core::ptr::eq(list, &config.prefixes[..])
                && !config.ignores_real(self.query.name)
                && !config.verifies_real(self.query.name);
            match settings.spread == Spread::Client && is_copied {
                true => list.iter().any(is_probed),
                false => self.prefixes_for(address, config).iter().any(is_probed),
            }
        };
        addresses.iter().any(may_have_probed).then_some(settings.answer_ttl)
    }

    /// True if a configuration verifies the addresses in real AAAA records of the name. A client that validates gets what was signed.
    pub(crate) fn verifies(&self, config: &Config) -> bool {
        let validates = self.query.bits.dnssec_ok && self.query.bits.cd;
        config.verifies_real(self.query.name) && !validates
    }

    /// True if a real address proved dead.
    pub(crate) fn is_dead(&self, address: &[u8; 16]) -> bool {
        self.fates.get(address) == Some(&false)
    }

    /// True if a configuration answers a question without an upstream.
    pub(crate) fn is_answered_locally(&self, name: NameId, rtype: u16, config: &Config) -> bool {
        let has_dns64 = !(self.is_ipv4only && self.is_v4 && config.v6_only);
        has_dns64 && config.own.lookup(name, rtype).is_some()
    }

    /// Runs a check in another state of the response policy.
    pub(crate) fn with_rpz(&self, state: RpzState<'a>, is_allowed: impl FnOnce() -> bool) -> bool {
        let before = self.rpz.replace(state);
        let is_allowed = is_allowed();
        self.rpz.set(before);
        is_allowed
    }
}
