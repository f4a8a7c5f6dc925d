//! Classification of upstream replies: lame, failed, bogus, stale, negative, and the extended DNS error (EDE) of each.
//!
//! A well-formed reply need not be an answer: a server may refuse to resolve for us, and a reply over TCP may be truncated. Such
//! replies are failures of the server, as SERVFAIL is. They are not negative answers.

use crate::limits::CHAIN;
use crate::message::cname_chain::Chain;
use dnssec::Nsec;
use dnssec::nsec::NXNAME;
use wire::{EdeCode, Message, Rcode, Record, Section, Type, ede};

/// Result of a question in flight.
pub(crate) enum Outcome<'m, 'a> {
    /// A reply, and the CNAME chain in it.
    Reply(&'m Message<'a>, &'m Chain<'a>),
    /// No usable reply in time.
    Failed,
}

/// True if a reply is a failure of the server, so that another server should be asked. SERVFAIL for bogus data is not such a
/// failure: it is an answer.
pub(crate) fn warrants_failover(message: &Message<'_>) -> bool {
    matches!(
        message.rcode(),
        Rcode::SERVFAIL | Rcode::REFUSED | Rcode::NOTIMP | Rcode::FORMERR | Rcode::BADCOOKIE
    ) && !is_bogus(message)
}

/// True if the upstream reports by an EDE code that validation found the data bogus. This SERVFAIL is an answer, and no AAAA
/// record may be synthesized in its place (RFC 6147 section 5.5 (2)). A SERVFAIL without such a code does not count.
pub(crate) fn is_bogus(message: &Message<'_>) -> bool {
    message.rcode() == Rcode::SERVFAIL
        && message.opt().is_some_and(|opt| opt.ede().any(|(code, _)| ede::is_bogus(code)))
}

/// True if a SERVFAIL may mean bogus data: it has no EDE code that names another cause (RFC 8914 sections 4.15 and 4.21 to 4.25).
/// Many servers validate and send no EDE code.
pub(crate) fn may_be_bogus(message: &Message<'_>) -> bool {
    let is_other_cause = |code| {
        matches!(code, ede::NOT_READY | ede::NOT_AUTHORITATIVE | ede::NOT_SUPPORTED..=ede::INVALID_DATA)
    };
    message.rcode() == Rcode::SERVFAIL
        && !message.opt().is_some_and(|opt| opt.ede().any(|(code, _)| is_other_cause(code)))
}

/// True if the RCODE of a reply reports a failure: any RCODE other than 0 and 3.
pub(crate) fn is_no_answer(message: &&Message<'_>) -> bool {
    !matches!(message.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN)
}

/// Negative TTL of a reply: the smaller of the TTL and the MINIMUM field of its SOA record (RFC 2308 section 5). It limits the TTL
/// of records that are synthesized in place of the negative answer. `None` if there is no SOA record.
//= RFC 6147 section 5.1.7: requirement 13
pub(crate) fn negative_ttl(message: &Message<'_>, chain: &Chain<'_>) -> Option<u32> {
    soa_of(message, chain).map(|(ttl, minimum)| minimum.min(ttl))
}

/// TTL and MINIMUM field of the SOA record of a negative answer. Only the SOA record of a zone that can hold a name of the chain
/// counts (RFC 6147 section 5.1.7: "the SOA RR for the queried domain").
#[inline]
pub(crate) fn soa_of(message: &Message<'_>, chain: &Chain<'_>) -> Option<(u32, u32)> {
    message
        .records(Section::Authority)
        .filter(|record| record.rtype == Type::SOA)
        // An honest reply has one SOA record, and perhaps one for each alias of the chain: look at no more than that.
        .take(CHAIN)
        .filter(|record| chain.is_below(&record.owner))
        .find_map(|record| record.soa_minimum().map(|minimum| (record.ttl, minimum)))
}

/// True if the NSEC record of the name at the end of the chain says that the name does not exist (RFC 9824 section 3.1).
pub(crate) fn has_nxname(message: &Message<'_>, chain: &Chain<'_>) -> bool {
    message
        .records(Section::Authority)
        .filter(|record| record.rtype == Type::NSEC && record.owner.eq_ignore_case(&chain.end()))
        .filter_map(|record| Nsec::parse(record.rdata()).ok())
        .any(|nsec| nsec.types.contains(NXNAME))
}

/// EDE code to store with a reply: a code for bogus data if there is one, because it decides about synthesis; else the first.
pub(crate) fn ede_to_store(message: &Message<'_>) -> Option<EdeCode> {
    let opt = message.opt()?;
    let bogus = opt.ede().map(|(code, _)| code).find(|&code| ede::is_bogus(code));
    bogus.or_else(|| opt.ede().next().map(|(code, _)| code))
}

/// True if a reply contains stale data, of the local cache or of the upstream's (RFC 8914 sections 4.4 and 4.20).
pub(crate) fn is_stale(message: &Message<'_>) -> bool {
    message.opt().is_some_and(|opt| {
        let mut codes = opt.ede().map(|(code, _)| code);
        codes.any(|code| matches!(code, ede::STALE | ede::STALE_NXDOMAIN))
    })
}

/// True for a transaction signature: TSIG (RFC 8945 section 5.1) or SIG(0) (RFC 2931 section 3). It authenticates the message
/// between the upstream and us, so a response to a client must not contain it.
pub(crate) fn is_of_transaction(record: &Record<'_>) -> bool {
    record.rtype == Type::TSIG || record.rtype == Type::SIG && record.rdata().starts_with(&[0; 2])
}

/// True for EDE codes that describe the upstream itself (such as Not Ready) and not the data; they are not forwarded.
fn describes_upstream(code: EdeCode) -> bool {
    matches!(
        code,
        ede::NOT_READY | ede::PROHIBITED | ede::NOT_AUTHORITATIVE | ede::NOT_SUPPORTED | ede::TOO_EARLY
    )
}

/// EDE code of a forwarded reply (RFC 8914 section 3 leaves this to the forwarder): the first code of the upstream that does not
/// describe the upstream itself, which does not concern the client. A failure without such a code gets No Reachable Authority:
/// no upstream could or would answer.
pub(crate) fn ede_to_forward(message: &Message<'_>) -> Option<EdeCode> {
    let failed = matches!(message.rcode(), Rcode::SERVFAIL | Rcode::REFUSED | Rcode::NOTAUTH);
    first_ede(message).or(failed.then_some(ede::NO_REACHABLE_AUTHORITY))
}

/// First EDE code of a reply that may be forwarded to clients.
pub(crate) fn first_ede(message: &Message<'_>) -> Option<EdeCode> {
    message.opt()?.ede().map(|(code, _)| code).find(|&code| !describes_upstream(code))
}
