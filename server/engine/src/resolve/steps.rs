//! The next step of a resolution: stage and outcome in, next step out. Nothing here counts, sends or changes anything; `driver.rs`
//! carries the steps out.
//!
//! A failure of the AAAA lookup may mean a bogus answer, which must never be papered over with A records (RFC 6147 section 5.5 (2)), or a
//! broken server, where the A lookup decides (section 5.1.2). An extended DNS error (RFC 8914) in the SERVFAIL decides at once. Otherwise
//! the AAAA lookup is asked again without validation, with CD set (RFC 4035 section 3.2.2), and the A lookup at the same time:
//!
//! ```text
//! AAAA -> SERVFAIL -> AAAA with CD -> fails too: the server is broken -> the A lookup decides
//!                                  -> is answered -> AAAA once more -> SERVFAIL: bogus -> SERVFAIL
//!                                                                   -> any other reply -> used as the first reply
//! ```
//!
//! The last query distinguishes a bogus answer from a short failure of the server. A failure costs one more query, and no time if
//! the A lookup takes as long. A bogus answer costs two more queries. There is no check with `dnssec = "off"`, where the upstream's
//! validation is not trusted, nor where `on-failure` forwards failures.

use crate::client::pending_query::PendingQuery;
use crate::dns64::config::{Dns64, Dnssec, OnFailure};
use crate::dns64::decision::{AaaaDecision, Cause, is_secure};
use crate::dns64::embed::{self, EmbeddingCounts};
use crate::dns64::rules::{Applicable, Rule};
use crate::dns64::verify::{DEAD_TTL_SECS, Usable, are_all_dead};
use crate::message::cname_chain::Chain;
use crate::message::question::QueryFlags;
use crate::message::reply::{Outcome, has_nxname, is_stale, negative_ttl};
use crate::reasons::PassReason;
use crate::resolve::divert::depends_on_client;
use wire::{Message, Rcode, Record, Section, Type};

/// Origin of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// An upstream, now or earlier: the cache has it.
    Upstream,
    /// An upstream, but private addresses were taken away: nothing more is to be checked.
    Filtered,
    /// Local data, or those of a rule of a response policy zone.
    Local,
    /// Aliases that lead where the configuration decides: the name at their end is looked up, and nothing else counts.
    Alias,
    /// A rule of a response policy zone that denies the name, or the data of the type: the answer, whatever the stage.
    Denial,
}

/// The next step of a resolution.
pub(crate) enum Next<'r, 'm, 'a> {
    /// Look up the name at which the chain of the reply ends.
    Chase(&'m Message<'a>, &'m Chain<'a>),
    /// Ask the A lookup.
    AskA(AskA),
    /// Ask the AAAA lookup with CD set, and the A lookup.
    CheckBogus,
    /// Ask the AAAA lookup once more, with validation.
    RecheckBogus,
    /// Ask the negative AAAA reply again, as none of the addresses may be embedded. It is not kept for this: the case is rare, and
    /// keeping would cost every query.
    AskNegativeAaaa(Addresses<'r, 'm, 'a>, EmbeddingCounts),
    /// The answer is synthesized from the addresses.
    Synthesize(Addresses<'r, 'm, 'a>),
    /// No gateway of the prefixes lives, and then there are no addresses; or no prefix was discovered.
    NoGateway(Addresses<'r, 'm, 'a>, EmbeddingCounts),
    /// The answer is the reply.
    Forward(Forward<'m, 'a>),
    /// The answer is a part of the AAAA reply, or has other TTLs, since a rule verifies AAAA records.
    ForwardReal(ForwardReal<'m, 'a>),
    /// Ask the AAAA lookup again: its addresses are dead, but there are no others.
    AskDeadAaaa,
    /// The answer is the reply without its addresses, since a rule suppresses A records.
    SuppressA(&'m Message<'a>, &'m Chain<'a>),
    /// The answer is SERVFAIL, since the AAAA reply is bogus.
    Bogus,
    /// The answer is the aliases that led to the name.
    AliasesOnly,
    /// No upstream has answered. For a query with DNS64 with the reason why that is the end.
    Failed(Option<PassReason>),
}

/// Results of the AAAA lookup that the A lookup needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AskA {
    /// Reason for asking.
    pub(crate) cause: Cause,
    /// Negative TTL of the AAAA reply, in seconds; none if it had no SOA record.
    pub(crate) negative_ttl: Option<u32>,
    /// True if the AAAA reply was secure.
    pub(crate) is_secure: bool,
}

/// A reply of the A lookup that has addresses.
#[derive(Clone, Copy)]
pub(crate) struct Addresses<'r, 'm, 'a> {
    pub(crate) reply: &'m Message<'a>,
    pub(crate) chain: &'m Chain<'a>,
    /// Prefix rules that apply.
    pub(crate) rules: &'r Applicable<'r>,
}

/// A reply that is the answer.
pub(crate) struct Forward<'m, 'a> {
    pub(crate) reply: &'m Message<'a>,
    pub(crate) chain: &'m Chain<'a>,
    /// True if excluded AAAA records are left out.
    pub(crate) is_filtered: bool,
    /// For a query with DNS64, the reason why there is no synthesis.
    pub(crate) reason: Option<PassReason>,
    /// True if all clients without DNS64 get this reply as their answer.
    pub(crate) is_for_all: bool,
}

/// An AAAA reply under a rule that verifies AAAA records.
#[derive(Clone, Copy)]
pub(crate) struct ForwardReal<'m, 'a> {
    pub(crate) reply: &'m Message<'a>,
    pub(crate) chain: &'m Chain<'a>,
    /// True if dead addresses are left out.
    pub(crate) is_filtered: bool,
    /// Longest TTL of the addresses, in seconds.
    pub(crate) ttl_secs: u32,
}

/// A query without DNS64: the reply is the answer.
#[inline]
pub(crate) fn direct<'m, 'a>(
    query: &PendingQuery,
    outcome: &Outcome<'m, 'a>,
    origin: Origin,
) -> Next<'static, 'm, 'a> {
    let Outcome::Reply(reply, chain) = *outcome else { return Next::Failed(None) };
    if follows_to_the_end(query, reply, chain, origin) {
        return Next::Chase(reply, chain);
    }
    Next::Forward(Forward {
        reply,
        chain,
        is_filtered: false,
        reason: None,
        is_for_all: !depends_on_client(chain),
    })
}

/// A query for A records that a rule suppresses: an answer without addresses is the answer, whatever it is.
pub(crate) fn suppressed_a<'m, 'a>(
    query: &PendingQuery,
    outcome: &Outcome<'m, 'a>,
    origin: Origin,
) -> Next<'static, 'm, 'a> {
    if let Outcome::Reply(reply, chain) = *outcome
        && first_a(reply, chain).is_some()
    {
        return Next::SuppressA(reply, chain);
    }
    match direct(query, outcome, origin) {
        // Other clients get another answer, and later this client, too.
        Next::Forward(forward) => Next::Forward(Forward { is_for_all: false, ..forward }),
        next => next,
    }
}

/// True if a reply ends in an alias that has to be followed here: clients are stubs, which do not follow aliases (RFC 1034 section
/// 5.3.1), and servers that do not recurse leave those that leave their zones to the asker (section 4.3.2). A client that asks
/// without RD wants to know what there is. No upstream knows a local alias.
pub(crate) fn follows_to_the_end(
    query: &PendingQuery,
    reply: &Message<'_>,
    chain: &Chain<'_>,
    origin: Origin,
) -> bool {
    chain.is_alias()
        && (query.query_flags.has(QueryFlags::RD)
            || origin == Origin::Local && !matches!(query.current_type(), Type::CNAME | Type::ANY))
        && chain.is_unfinished(reply)
}

/// The AAAA lookup (RFC 6147 sections 5.1.1 to 5.1.4) is over. `decision`: that of [`decide`](crate::dns64::decision::decide); `usable`: the
/// real AAAA records that count.
// In each copy of the engine, as all steps of an ordinary resolution are: a call would cost as much as the decision.
#[inline(always)]
pub(crate) fn aaaa<'m, 'a>(
    query: &PendingQuery,
    decision: AaaaDecision,
    outcome: &Outcome<'m, 'a>,
    dns64: &Dns64,
    usable: Usable,
) -> Next<'static, 'm, 'a> {
    match (decision, outcome) {
        (AaaaDecision::Pass(PassReason::RealAaaa), _) if ignores_real(query, dns64).is_some() => {
            ask_a(Cause::Ignored, outcome, dns64)
        }
        (AaaaDecision::Pass(PassReason::RealAaaa), Outcome::Reply(reply, chain)) if usable != Usable::All => {
            match usable {
                Usable::Living(ttl_secs) => {
                    Next::ForwardReal(ForwardReal { reply, chain, is_filtered: true, ttl_secs })
                }
                _ => Next::AskA(AskA {
                    cause: Cause::Dead,
                    negative_ttl: Some(DEAD_TTL_SECS),
                    is_secure: is_secure(reply, dns64),
                }),
            }
        }
        // Section 5.1.1: "the result is returned to the requesting client as per normal DNS semantics". Section 5.1.2: "A result with RCODE=3
        // (Name Error) is handled according to normal DNS operation".
        (AaaaDecision::Pass(reason), Outcome::Reply(reply, chain)) => forward(reply, chain, Some(reason)),
        (AaaaDecision::Pass(reason), Outcome::Failed) => Next::Failed(Some(reason)),
        // Section 5.1.5: "the CNAME or DNAME chain is followed until the first terminating A or AAAA record is reached."
        (AaaaDecision::ChaseCname, Outcome::Reply(reply, chain)) => Next::Chase(reply, chain),
        // Only a reply has aliases.
        (AaaaDecision::ChaseCname, Outcome::Failed) => ask_a(Cause::Timeout, outcome, dns64),
        // Section 5.1.6: "the DNS64 attempts to retrieve A records for the name in question".
        (AaaaDecision::Synthesize(cause), _) => ask_a(cause, outcome, dns64),
        // Nobody validates for a client that sets CD.
        (AaaaDecision::CheckBogus | AaaaDecision::Unproven, _) if query.query_flags.has(QueryFlags::CD) => {
            ask_a(Cause::Error, outcome, dns64)
        }
        //= RFC 6147 section 5.5: requirement 29
        (AaaaDecision::CheckBogus, _) if query.bogus_recheck => Next::Bogus,
        (AaaaDecision::CheckBogus, _) => Next::CheckBogus,
        (AaaaDecision::Unproven, Outcome::Reply(reply, chain)) => {
            forward(reply, chain, Some(PassReason::Unproven))
        }
        // Only a reply has extended errors.
        (AaaaDecision::Unproven, Outcome::Failed) => Next::Failed(Some(PassReason::Unproven)),
    }
}

/// Rule that makes DNS64 ignore real AAAA records for a query; none if they count.
pub(crate) fn ignores_real<'r>(query: &PendingQuery, dns64: &'r Dns64) -> Option<&'r Rule> {
    dns64.rules.of(query.client.address, query.name()).ignores_real()
}

/// True if the A lookup of a query follows although there are real AAAA records: a rule ignores them, or verifies them and all are dead.
pub(crate) fn passes_over_real(query: &PendingQuery, dns64: &Dns64, outcome: &Outcome<'_, '_>) -> bool {
    let are_dead = || match outcome {
        Outcome::Reply(message, chain) => {
            verifies_real(query, dns64).is_some() && are_all_dead(message, chain, dns64)
        }
        Outcome::Failed => false,
    };
    ignores_real(query, dns64).is_some() || are_dead()
}

/// Rule by which the real AAAA records of a query are verified; none if they count as they are.
pub(crate) fn verifies_real<'r>(query: &PendingQuery, dns64: &'r Dns64) -> Option<&'r Rule> {
    // The client checks signatures: it gets what was signed.
    let validates = query.query_flags.has(QueryFlags::DO.with(QueryFlags::CD, true));
    match dns64.rules.may_verify() && !validates {
        true => dns64.rules.of(query.client.address, query.name()).verifies_real(),
        false => None,
    }
}

/// Rule that suppresses the A records of a query.
pub(crate) fn suppresses_a<'r>(query: &PendingQuery, dns64: &'r Dns64) -> Option<&'r Rule> {
    dns64.rules.of(query.client.address, query.name()).suppresses_a()
}

/// The AAAA lookup with CD set, without validation, is over: it shows if there is a reply at all. The client never gets that reply.
pub(crate) fn aaaa_with_cd<'m, 'a>(outcome: &Outcome<'m, 'a>, dns64: &Dns64) -> Next<'static, 'm, 'a> {
    match outcome {
        // Expired data do not show that a server answers now.
        Outcome::Reply(message, _) if is_stale(message) => ask_a(Cause::Error, &Outcome::Failed, dns64),
        Outcome::Reply(message, _) if matches!(message.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN) => {
            Next::RecheckBogus
        }
        _ => ask_a(Cause::Error, outcome, dns64),
    }
}

/// The A lookup is over (RFC 6147 section 5.1.6). `rules`: none yet; those that apply are added if they are needed.
//= RFC 6147 section 5.1.6: requirement 11
#[inline(always)]
pub(crate) fn a<'r, 'm, 'a>(
    query: &PendingQuery,
    outcome: &Outcome<'m, 'a>,
    dns64: &Dns64,
    rules: &'r mut Applicable<'r>,
) -> Next<'r, 'm, 'a> {
    let Outcome::Reply(reply, chain) = *outcome else {
        return without_a(query, Next::Failed(Some(PassReason::AFailed)));
    };
    let Some(first) = first_a(reply, chain) else {
        if chain.is_unfinished(reply) {
            return Next::Chase(reply, chain);
        }
        // "If this new A RR query results in an empty answer or in an error, then the empty result or error is used as the basis for the answer
        // returned to the querying client."
        let is_failure = reply.rcode() != Rcode::NOERROR;
        let reason = if is_failure { PassReason::AFailed } else { PassReason::NoA };
        return without_a(query, forward(reply, chain, Some(reason)));
    };
    rules.find(query.client.address, query.name());
    let rules = &*rules;
    let addresses = Addresses { reply, chain, rules };
    match embed::all_omitted(&first, reply, chain, dns64, rules) {
        Some(_) if query.cause == Cause::Dead => Next::AskDeadAaaa,
        Some(counts) if counts.lack().is_some() => Next::NoGateway(addresses, counts),
        Some(counts) if needs_negative_aaaa(query, reply) => Next::AskNegativeAaaa(addresses, counts),
        // "the DNS64 synthesizes AAAA RRs based on the A RRs".
        _ => Next::Synthesize(addresses),
    }
}

/// The A lookup has no addresses: dead ones are better than none, as this server may be wrong about them.
fn without_a<'r, 'm, 'a>(query: &PendingQuery, next: Next<'r, 'm, 'a>) -> Next<'r, 'm, 'a> {
    if query.cause == Cause::Dead { Next::AskDeadAaaa } else { next }
}

/// The AAAA lookup whose addresses were dead has been repeated. `usable`: the addresses that count, which may be others by now.
pub(crate) fn dead_aaaa<'m, 'a>(outcome: &Outcome<'m, 'a>, usable: Usable) -> Next<'static, 'm, 'a> {
    match *outcome {
        Outcome::Reply(reply, chain) if reply.rcode() == Rcode::NOERROR => {
            let (is_filtered, ttl_secs) = match usable {
                Usable::Living(ttl_secs) => (true, ttl_secs),
                Usable::All | Usable::None => (false, DEAD_TTL_SECS),
            };
            Next::ForwardReal(ForwardReal { reply, chain, is_filtered, ttl_secs })
        }
        Outcome::Reply(reply, chain) => forward(reply, chain, Some(PassReason::AFailed)),
        Outcome::Failed => Next::Failed(Some(PassReason::AFailed)),
    }
}

/// The negative AAAA reply has come again.
pub(crate) fn negative_aaaa<'m, 'a>(outcome: &Outcome<'m, 'a>) -> Next<'static, 'm, 'a> {
    match *outcome {
        Outcome::Reply(reply, chain) if reply.rcode() == Rcode::NOERROR => forward(reply, chain, None),
        // The A lookup has shown that the name exists.
        _ => Next::AliasesOnly,
    }
}

/// The reply of a lookup is the answer of a query with DNS64.
#[inline]
fn forward<'m, 'a>(
    reply: &'m Message<'a>,
    chain: &'m Chain<'a>,
    reason: Option<PassReason>,
) -> Next<'static, 'm, 'a> {
    Next::Forward(Forward { reply, chain, is_filtered: true, reason, is_for_all: false })
}

/// The A lookup decides, unless the AAAA reply denies the name.
#[inline]
fn ask_a<'m, 'a>(cause: Cause, outcome: &Outcome<'m, 'a>, dns64: &Dns64) -> Next<'static, 'm, 'a> {
    let (negative_ttl, is_secure) = match *outcome {
        Outcome::Reply(message, chain) => {
            let is_secure = is_secure(message, dns64);
            if is_secure && denies_name(cause, message, chain, dns64) {
                return forward(message, chain, Some(PassReason::NxDomain));
            }
            (negative_ttl(message, chain), is_secure)
        }
        Outcome::Failed => (None, false),
    };
    Next::AskA(AskA { cause, negative_ttl, is_secure })
}

/// True if an empty AAAA reply that was validated here says that the name does not exist, and only its RCODE hides that (RFC 9824): it is
/// handled as NXDOMAIN.
#[cold]
fn denies_name(cause: Cause, reply: &Message<'_>, chain: &Chain<'_>, dns64: &Dns64) -> bool {
    cause == Cause::NoData
        && dns64.dnssec == Dnssec::Validate
        && dns64.on_failure.nxdomain == OnFailure::Pass
        && has_nxname(reply, chain)
}

/// First A record at the end of the chain of a reply without an error.
#[inline(always)]
fn first_a<'m>(message: &Message<'m>, chain: &Chain<'_>) -> Option<Record<'m>> {
    if message.rcode() != Rcode::NOERROR {
        return None;
    }
    let mut answers = message.records(Section::Answer);
    // Not `find`: the copies of the engine would share one function of it, and call it.
    loop {
        let record = answers.next()?;
        if chain.ends_in(&record, Type::A) {
            return Some(record);
        }
    }
}

/// True if an answer without addresses lacks the SOA that lets the client cache it (RFC 2308 section 5), and the AAAA reply
/// had one.
fn needs_negative_aaaa(query: &PendingQuery, reply: &Message<'_>) -> bool {
    query.cause == Cause::NoData
        && query.negative_ttl.is_some()
        && !reply.records(Section::Authority).any(|record| record.rtype == Type::SOA)
}

#[cfg(test)]
#[path = "steps_tests.rs"]
mod tests;
