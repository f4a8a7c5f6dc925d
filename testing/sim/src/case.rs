//! One answer and all that is needed to judge it: the query, the timeline of upstream replies, the configurations in force.
//! The rules themselves are in [`crate::oracle`].

use crate::client_view::Seen;
use crate::config::Config;
use crate::ground_truth::NameId;
use crate::pending::Pending;
use crate::policy::Rule;
use crate::timeline::{Key, Timeline};
use core::cell::Cell;
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
