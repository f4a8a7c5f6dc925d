//! Decision of DNS64 about the AAAA lookup (RFC 6147 sections 5.1.1 to 5.1.4): return its reply, follow a CNAME, or ask the A lookup.
//!
//! `first_stage` decides before the first upstream query if DNS64 applies; `decide` decides when the AAAA lookup is over.

use crate::dns64::config::{Dns64, Dnssec, OnFailure, is_excluded};
use crate::message::question::QueryFlags;
use crate::message::reply::{Outcome, is_bogus, may_be_bogus};
use crate::reasons::{NoDns64, PassReason};
use core::net::Ipv6Addr;
use wire::{Class, Flags, Message, Rcode, Section, Type, ede};

/// Stage of a client query: the upstream reply that it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Stage {
    /// The reply to the client's question, without DNS64; it is forwarded.
    #[default]
    Direct,
    /// The reply to a client's A question, of which no address is passed on: a rule suppresses A records.
    SuppressedA,
    /// The AAAA lookup.
    Aaaa,
    /// The A lookup.
    A,
    /// The AAAA reply again: no address of the A lookup may be embedded, so the answer to the client is the negative AAAA reply.
    NegativeAaaa,
    /// The AAAA reply again: its addresses are dead, but the A lookup has none, so they are the answer.
    DeadAaaa,
    /// The AAAA reply to a query with CD, without validation: it shows if an earlier SERVFAIL meant bogus data.
    AaaaWithCd,
}

impl Stage {
    /// Query type of the stage; `None` means the type of the client's question.
    #[inline]
    pub fn qtype(self) -> Option<Type> {
        match self {
            Stage::Direct | Stage::SuppressedA => None,
            Stage::Aaaa | Stage::NegativeAaaa | Stage::DeadAaaa | Stage::AaaaWithCd => Some(Type::AAAA),
            Stage::A => Some(Type::A),
        }
    }

    /// True if the query is for AAAA records, and DNS64 applies.
    #[inline]
    pub fn has_dns64(self) -> bool {
        !matches!(self, Stage::Direct | Stage::SuppressedA)
    }
}

/// Reason to ask the A lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Cause {
    /// The AAAA reply was empty.
    #[default]
    NoData,
    /// All AAAA records were excluded.
    Excluded,
    /// A rule ignores the AAAA records.
    Ignored,
    /// A rule verifies the AAAA records, and all addresses are dead.
    Dead,
    /// The AAAA lookup failed with an RCODE.
    Error,
    /// The AAAA lookup had no reply in time.
    Timeout,
}

/// Upper limit in seconds for the TTL of synthesized records if the AAAA reply has no SOA record.
//= RFC 6147 section 5.1.7: requirement 13
pub(crate) const TTL_WITHOUT_SOA: u32 = 600;

/// Decision about the AAAA lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AaaaDecision {
    /// Return the result of the AAAA lookup to the client.
    Pass(PassReason),
    /// The upstream did not resolve the CNAME chain to its end: ask for the last name.
    ChaseCname,
    /// Ask the A lookup, and synthesize from its reply.
    Synthesize(Cause),
    /// Ask the A lookup, unless a check shows that the failure means bogus data.
    CheckBogus,
    /// Validation here could not prove that the failure is no attack.
    Unproven,
}

/// Decision about a failure under the policy for it.
fn failure(policy: OnFailure, cause: Cause) -> AaaaDecision {
    match policy {
        OnFailure::Synthesize => AaaaDecision::Synthesize(cause),
        OnFailure::Pass => AaaaDecision::Pass(PassReason::Failure),
    }
}

/// Decides about the outcome of the AAAA lookup by RFC 6147 sections 5.1.1 to 5.1.4.
#[inline(always)]
pub(crate) fn decide(outcome: &Outcome<'_, '_>, dns64: &Dns64) -> AaaaDecision {
    let policy = &dns64.on_failure;
    let Outcome::Reply(message, chain) = outcome else {
        //= RFC 6147 section 5.1.3: requirement 5; no answer in time is RCODE 2.
        return failure(policy.timeout, Cause::Timeout);
    };
    match message.rcode() {
        Rcode::NOERROR => {}
        //= RFC 6147 section 5.1.2: requirement 4; RCODE 3 is handled as usual.
        Rcode::NXDOMAIN if policy.nxdomain == OnFailure::Pass => {
            return AaaaDecision::Pass(PassReason::NxDomain);
        }
        Rcode::NXDOMAIN => return AaaaDecision::Synthesize(Cause::Error),
        //= RFC 6147 section 5.5: requirement 29
        Rcode::SERVFAIL if is_bogus(message) => return AaaaDecision::Pass(PassReason::Bogus),
        Rcode::SERVFAIL if is_unproven(message, dns64) => return AaaaDecision::Unproven,
        //= RFC 6147 section 5.1.2: requirement 4; any other RCODE is RCODE 0 with an empty answer.
        Rcode::SERVFAIL if may_hide_bogus(message, dns64) => return AaaaDecision::CheckBogus,
        Rcode::SERVFAIL => return failure(policy.servfail, Cause::Error),
        Rcode::REFUSED => return failure(policy.refused, Cause::Error),
        Rcode::FORMERR => return failure(policy.formerr, Cause::Error),
        Rcode::NOTIMP => return failure(policy.notimp, Cause::Error),
        _ => return AaaaDecision::Synthesize(Cause::Error),
    }
    let mut excluded = false;
    for record in message.records(Section::Answer) {
        if chain.ends_in(&record, Type::AAAA) {
            //= RFC 6147 section 5.1.1: requirement 3; one real address is enough.
            //= RFC 6147 section 5.1.4: requirement 7; an excluded one counts as absent.
            if !is_excluded(&record, Some(dns64)) {
                return AaaaDecision::Pass(PassReason::RealAaaa);
            }
            excluded = true;
        }
    }
    if excluded {
        AaaaDecision::Synthesize(Cause::Excluded)
    } else if chain.is_unfinished(message) {
        AaaaDecision::ChaseCname
    } else {
        AaaaDecision::Synthesize(Cause::NoData)
    }
}

/// True if validation here refuses a reply: a failure that it lets pass has no extended error (`resolve/validate.rs`), but for that of the
/// cache.
fn is_unproven(message: &Message<'_>, dns64: &Dns64) -> bool {
    let has_reason = || message.opt().is_some_and(|opt| opt.ede().any(|(code, _)| code != ede::CACHED_ERROR));
    dns64.dnssec == Dnssec::Validate && has_reason()
}

/// True if a SERVFAIL may hide bogus data that must not lead to synthesis.
fn may_hide_bogus(message: &Message<'_>, dns64: &Dns64) -> bool {
    dns64.dnssec == Dnssec::Trust
        && dns64.on_failure.servfail == OnFailure::Synthesize
        && may_be_bogus(message)
}

/// Decides if DNS64 applies to a query: [`Stage::Aaaa`] if so, else [`Stage::Direct`], for an AAAA query with the reason. A query for A
/// records begins with [`Stage::SuppressedA`] if a rule suppresses them.
#[inline(always)]
pub(crate) fn first_stage(
    dns64: &Dns64,
    client: Ipv6Addr,
    message: &Message<'_>,
    query_flags: QueryFlags,
) -> (Stage, Option<NoDns64>) {
    //= RFC 6147 section 5.1: requirement 2
    //= RFC 6147 section 5.3.3: requirement 25; another type: as if DNS64 were not there.
    //= RFC 9460 section 4.2.1: requirement 50
    //= RFC 8482 section 4.1: requirement 53; ANY is not AAAA.
    if message.qtype() != Type::AAAA || message.qclass() != Class::IN {
        let may_be_suppressed = dns64.rules.may_suppress_a() && message.qtype() == Type::A;
        let stage = match may_be_suppressed && message.qclass() == Class::IN {
            true => stage_of_a(dns64, client, message, query_flags),
            false => Stage::Direct,
        };
        return (stage, None);
    }
    match no_dns64(dns64, client, query_flags) {
        Some(reason) => (Stage::Direct, Some(reason)),
        None => (Stage::Aaaa, None),
    }
}

/// Reason why DNS64 does not serve a client's query.
#[inline(always)]
fn no_dns64(dns64: &Dns64, client: Ipv6Addr, query_flags: QueryFlags) -> Option<NoDns64> {
    //= RFC 6147 section 6.3: requirement 31
    if !dns64.clients.contains(client) {
        Some(NoDns64::Client)
    } else if query_flags.has(QueryFlags::DO.with(QueryFlags::CD, true)) && !dns64.break_dnssec {
        //= RFC 6147 section 5.5: requirement 30; the client validates by itself.
        Some(NoDns64::Dnssec)
    } else if dns64.recursive_only && !query_flags.has(QueryFlags::RD) {
        Some(NoDns64::NotRecursive)
    } else {
        None
    }
}

/// First stage of a query for A records, under rules of which some suppress them. Where DNS64 does not serve the query, the client has
/// no other addresses.
#[inline(never)]
fn stage_of_a(dns64: &Dns64, client: Ipv6Addr, message: &Message<'_>, query_flags: QueryFlags) -> Stage {
    let is_suppressed = dns64.rules.of(client, message.qname()).suppresses_a().is_some();
    match is_suppressed && no_dns64(dns64, client, query_flags).is_none() {
        true => Stage::SuppressedA,
        false => Stage::Direct,
    }
}

/// True if the upstream validated a reply and set AD. A failure cannot be validated.
//= RFC 6147 section 5.5: requirement 28
pub(crate) fn is_secure(message: &Message<'_>, dns64: &Dns64) -> bool {
    dns64.dnssec.trusts_ad() && message.flags().contains(Flags::AD) && message.rcode() == Rcode::NOERROR
}

#[cfg(test)]
#[path = "decision_tests.rs"]
pub(crate) mod tests;
