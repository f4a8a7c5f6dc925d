//! The decision about a reply of the AAAA leg: RFC 6147 sections 5.1.1 to 5.1.4.

use crate::counters::Counter;
use crate::dns64::config::{Dns64, Dnssec, OnFailure, is_excluded};
use crate::message::question::QueryFlags;
use crate::message::reply::{Outcome, is_bogus, may_be_bogus};
use core::net::Ipv6Addr;
use wire::Class;
use wire::{Message, Rcode, Section, Type};

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Stage {
    /// The answer to the very question; it is passed on.
    #[default]
    Direct,
    /// The AAAA leg of a synthesis.
    Aaaa,
    /// The A leg.
    A,
    /// The AAAA answer once more: no address of the A leg may be embedded, so it is the basis of the answer.
    NegativeAaaa,
    /// The AAAA answer that nobody has validated, after a failure that may mean a bogus one (`doubt.rs`).
    AaaaWithCd,
}

impl Stage {
    /// The type that is asked for in this stage; none: that of the client's own question.
    #[inline]
    pub fn qtype(self) -> Option<Type> {
        match self {
            Stage::Direct => None,
            Stage::Aaaa | Stage::NegativeAaaa | Stage::AaaaWithCd => Some(Type::AAAA),
            Stage::A => Some(Type::A),
        }
    }
}

/// Why the A leg is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Cause {
    /// The AAAA answer was empty.
    #[default]
    NoData,
    /// All AAAA records were excluded.
    Excluded,
    /// A rule ignores the AAAA records.
    Ignored,
    /// The AAAA leg failed with an RCODE.
    Error,
    /// The AAAA leg was not answered.
    Timeout,
}

/// The TTL bound when the AAAA answer has no SOA.
//= RFC 6147 section 5.1.7: requirement 13
pub(crate) const TTL_WITHOUT_SOA: u32 = 600;

/// What the AAAA leg says.
#[derive(Clone, Copy)]
pub(crate) enum AaaaDecision {
    /// It is the answer, for this reason.
    Pass(Counter),
    /// The upstream stopped at an alias: ask for the rest.
    ChaseCname,
    /// The A leg decides.
    Synthesize(Cause),
    /// The A leg decides, unless this failure means that the answer is bogus.
    CheckBogus,
}

fn failure(policy: OnFailure, cause: Cause) -> AaaaDecision {
    match policy {
        OnFailure::Synthesize => AaaaDecision::Synthesize(cause),
        OnFailure::Pass => AaaaDecision::Pass(Counter::NotSynthesizedFailure),
    }
}

/// RFC 6147 sections 5.1.1 to 5.1.4: what an outcome of the AAAA leg means.
pub(crate) fn decide(outcome: &Outcome<'_, '_>, dns64: &Dns64) -> AaaaDecision {
    let policy = &dns64.on_failure;
    let Outcome::Reply(message, chain) = outcome else {
        //= RFC 6147 section 5.1.3: requirement 5; no answer in time is RCODE 2.
        return failure(policy.timeout, Cause::Timeout);
    };
    match message.rcode() {
        Rcode::NOERROR => {}
        //= RFC 6147 section 5.1.2: requirement 4; RCODE 3 is handled as usual.
        Rcode::NXDOMAIN => return AaaaDecision::Pass(Counter::NotSynthesizedNxDomain),
        //= RFC 6147 section 5.5: requirement 29
        Rcode::SERVFAIL if is_bogus(message) => return AaaaDecision::Pass(Counter::NotSynthesizedBogus),
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
                return AaaaDecision::Pass(Counter::NotSynthesizedReal);
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

/// Whether a failure may hide a bogus answer.
fn may_hide_bogus(message: &Message<'_>, dns64: &Dns64) -> bool {
    dns64.dnssec == Dnssec::Trust
        && dns64.on_failure.servfail == OnFailure::Synthesize
        && may_be_bogus(message)
}

/// Whether a question is passed on as it is, or is the AAAA leg of a synthesis; and why a question for AAAA records is not.
pub(crate) fn first_stage(
    dns64: &Dns64,
    client: Ipv6Addr,
    message: &Message<'_>,
    query_flags: QueryFlags,
) -> (Stage, Option<Counter>) {
    //= RFC 6147 section 5.1: requirement 2
    //= RFC 6147 section 5.3.3: requirement 25; another type: as if DNS64 were not there.
    //= RFC 9460 section 4.2.1: requirement 50
    //= RFC 8482 section 4.1: requirement 53; ANY is not AAAA.
    if message.qtype() != Type::AAAA || message.qclass() != Class::IN {
        return (Stage::Direct, None);
    }
    //= RFC 6147 section 6.3: requirement 31
    let reason = if !dns64.clients.contains(client) {
        Counter::NotSynthesizedClient
    } else if query_flags.has(QueryFlags::DO.with(QueryFlags::CD, true)) && !dns64.break_dnssec {
        //= RFC 6147 section 5.5: requirement 30; the client validates by itself.
        Counter::NotSynthesizedDnssec
    } else if dns64.recursive_only && !query_flags.has(QueryFlags::RD) {
        Counter::NotSynthesizedNotRecursive
    } else {
        return (Stage::Aaaa, None);
    };
    (Stage::Direct, Some(reason))
}
