//! Replies that are well formed and no answers: of servers that do not resolve for us, and truncated ones over TCP. They are
//! failures of the server, as SERVFAIL is, and not "there is nothing".

use crate::limits::CHAIN;
use crate::message::cname_chain::Chain;
use wire::header::Flags;
use wire::{EdeCode, Message, Rcode, Record, Section, Type, ede};

/// Whether a server refers us to others, or has nothing to say, instead of resolving (RFC 1034 section 4.3.1, RFC 2308
/// section 2.2): we asked for recursion, and it neither is the authority nor has an answer. A referral has NS records and no
/// SOA; one that says nothing at all does not offer recursion.
pub(crate) fn is_lame(message: &Message<'_>) -> bool {
    let flags = message.flags();
    if message.rcode() != Rcode::NOERROR
        || !flags.contains(Flags::RD)
        || flags.contains(Flags::AA)
        || flags.contains(Flags::TC)
        || message.count(Section::Answer) > 0
    {
        return false;
    }
    let has = |rtype| message.records(Section::Authority).any(|record| record.rtype == rtype);
    !has(Type::SOA) && (has(Type::NS) || !flags.contains(Flags::RA))
}

/// How a flight ended.
pub(crate) enum Outcome<'m, 'a> {
    /// With a reply and the way through it.
    Reply(&'m Message<'a>, &'m Chain<'a>),
    /// Without an answer in time.
    Failed,
}

/// Whether a reply is a failure of the server. One for a bogus answer is not: it is an answer.
pub(crate) fn warrants_failover(message: &Message<'_>) -> bool {
    matches!(
        message.rcode(),
        Rcode::SERVFAIL | Rcode::REFUSED | Rcode::NOTIMP | Rcode::FORMERR | Rcode::BADCOOKIE
    ) && !is_bogus(message)
}

/// Whether the upstream says that it validated and the answer is bogus: a failure that is an answer, never to be
/// papered over (RFC 6147 section 5.5 (2)). A plain SERVFAIL does not say so.
pub(crate) fn is_bogus(message: &Message<'_>) -> bool {
    message.rcode() == Rcode::SERVFAIL
        && message.opt().is_some_and(|opt| opt.ede().any(|(code, _)| ede::is_bogus(code)))
}

/// Whether a failure may mean a bogus answer: the upstream does not say that it could not find one out (RFC 8914 sections
/// 4.15 and 4.21 to 4.25). Many servers validate and say nothing.
pub(crate) fn may_be_bogus(message: &Message<'_>) -> bool {
    let says_why = |code| {
        matches!(code, ede::NOT_READY | ede::NOT_AUTHORITATIVE | ede::NOT_SUPPORTED..=ede::INVALID_DATA)
    };
    message.rcode() == Rcode::SERVFAIL
        && !message.opt().is_some_and(|opt| opt.ede().any(|(code, _)| says_why(code)))
}

/// Whether a reply says that something failed. Every RCODE but 0 and 3 does.
pub(crate) fn is_no_answer(message: &&Message<'_>) -> bool {
    !matches!(message.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN)
}

/// The TTL that a negative answer gives to what is made in its place: the smaller of the SOA's TTL and its MINIMUM (RFC 2308
/// section 5). None: there is no SOA.
//= RFC 6147 section 5.1.7: requirement 13
pub(crate) fn negative_ttl(message: &Message<'_>, chain: &Chain<'_>) -> Option<u32> {
    soa_of(message, chain).map(|(ttl, minimum)| minimum.min(ttl))
}

/// TTL and MINIMUM of the SOA that a negative answer has: that of a zone which can hold a name of the chain. Of another zone
/// it says nothing about them (RFC 6147 section 5.1.7: "the SOA RR for the queried domain").
#[inline]
pub(crate) fn soa_of(message: &Message<'_>, chain: &Chain<'_>) -> Option<(u32, u32)> {
    message
        .records(Section::Authority)
        .filter(|record| record.rtype == Type::SOA)
        // There is one, and perhaps one for each alias on the way: no more are worth the work.
        .take(CHAIN)
        .filter(|record| chain.is_below(&record.owner))
        .find_map(|record| record.soa_minimum().map(|minimum| (record.ttl, minimum)))
}

/// The extended error to keep: that the answer is bogus before anything else, as this decides what is made of it.
pub(crate) fn ede_to_store(message: &Message<'_>) -> Option<EdeCode> {
    let opt = message.opt()?;
    let bogus = opt.ede().map(|(code, _)| code).find(|&code| ede::is_bogus(code));
    bogus.or_else(|| opt.ede().next().map(|(code, _)| code))
}

/// Whether a reply is made of expired data, ours or the upstream's (RFC 8914 sections 4.4 and 4.20).
pub(crate) fn is_stale(message: &Message<'_>) -> bool {
    message.opt().is_some_and(|opt| {
        let mut codes = opt.ede().map(|(code, _)| code);
        codes.any(|code| matches!(code, ede::STALE | ede::STALE_NXDOMAIN))
    })
}

/// Whether a record signs the message that it ends: TSIG (RFC 8945 section 5.1) or SIG(0) (RFC 2931 section 3). It says
/// something of the exchange between the upstream and us, and nothing of what we make of that.
pub(crate) fn is_of_transaction(record: &Record<'_>) -> bool {
    record.rtype == Type::TSIG || record.rtype == Type::SIG && record.rdata().starts_with(&[0; 2])
}

/// Whether an extended error speaks of the server that sent it, not of the data: ours are not its.
fn is_of_server(code: EdeCode) -> bool {
    matches!(
        code,
        ede::NOT_READY | ede::PROHIBITED | ede::NOT_AUTHORITATIVE | ede::NOT_SUPPORTED | ede::TOO_EARLY
    )
}

/// The extended error of a reply that is passed on (RFC 8914 section 3 leaves it to the forwarder): the upstream's first one,
/// unless it speaks of how the upstream stands to us, which is nothing to the client. A failure that no upstream explains
/// means that none could or would answer.
pub(crate) fn ede_to_forward(message: &Message<'_>) -> Option<EdeCode> {
    let failed = matches!(message.rcode(), Rcode::SERVFAIL | Rcode::REFUSED | Rcode::NOTAUTH);
    first_ede(message).or(failed.then_some(ede::NO_REACHABLE_AUTHORITY))
}

/// The first extended error of a reply that is passed on.
pub(crate) fn first_ede(message: &Message<'_>) -> Option<EdeCode> {
    message.opt()?.ede().map(|(code, _)| code).find(|&code| !is_of_server(code))
}
