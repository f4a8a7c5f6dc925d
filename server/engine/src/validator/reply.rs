//! Replies after their verdict, as a validating upstream would have sent them.

use crate::message::reply::{ede_to_forward, is_of_transaction, is_stale};
use dnssec::validation::State;
use dnssec::{Groups, Outcome, Verdict};
use wire::header::{self, Flags};
use wire::{Builder, EdeCode, Message, Rcode, Record, Section, Type};

/// Writes a secure reply: with AD, without RRsets of the authority section that are not verified (RFC 4035 section 3.2.3), and with no TTL
/// beyond what the signatures allow (section 5.3.3). A denial of the name that hides behind NOERROR is NXDOMAIN for clients that do not set
/// DO (RFC 9824 section 5); for others the proof would contradict that. Returns its octets. None: there is no room.
pub(crate) fn write_secure(
    groups: &Groups<'_>,
    states: &[State],
    verdict: &Verdict,
    dnssec_ok: bool,
    frame: &mut [u8],
) -> Option<usize> {
    let rcode = match groups.message().rcode() {
        Rcode::NOERROR if verdict.outcome == Outcome::NoName && !dnssec_ok => Rcode::NXDOMAIN,
        rcode => rcode,
    };
    let is_verified = |record: &Record<'_>| {
        let rtype = record.covered().unwrap_or(record.rtype);
        groups.iter().any(|set| {
            (set.section(), set.rtype()) == (Section::Authority, rtype)
                && matches!(states.get(set.place()), Some(State::Secure(..)))
                && set.owner().eq_ignore_case(&record.owner)
        })
    };
    write(groups.message(), (Flags::AD.with_rcode(rcode), verdict.ttl, None), is_verified, frame)
}

/// Writes a reply whose data need no signatures: as it came, without AD. `ede`: the extended error that says why a signed zone counts as
/// unsigned. None: there is no room.
pub(crate) fn write_insecure(
    message: &Message<'_>,
    verdict: &Verdict,
    ede: Option<EdeCode>,
    frame: &mut [u8],
) -> Option<usize> {
    write(message, (Flags(0).with_rcode(message.rcode()), verdict.ttl, ede), |_| true, frame)
}

fn write(
    message: &Message<'_>,
    (flags, ttl, ede): (Flags, u32, Option<EdeCode>),
    keeps_authority: impl Fn(&Record<'_>) -> bool,
    frame: &mut [u8],
) -> Option<usize> {
    let limit = frame.len();
    let mut builder = Builder::new(frame, limit, 0, flags.with(Flags::QR), message.question())?;
    for record in message.records(Section::Answer) {
        builder.copy_ttl(Section::Answer, &record, record.ttl.min(ttl)).ok()?;
    }
    for record in message.records(Section::Authority).filter(keeps_authority) {
        builder.copy_ttl(Section::Authority, &record, record.ttl.min(ttl)).ok()?;
    }
    let is_hop_by_hop = |record: &Record<'_>| record.rtype == Type::OPT || is_of_transaction(record);
    for record in message.records(Section::Additional).filter(|record| !is_hop_by_hop(record)) {
        builder.copy(Section::Additional, &record).ok()?;
    }
    // The upstream was asked not to validate, so of its extended errors only that of expired data is one about this reply.
    let ede = ede.or_else(|| is_stale(message).then(|| ede_to_forward(message)).flatten());
    builder.opt(512, (message.rcode().0 >> 4) as u8, 0, false, ede).ok()?;
    Some(builder.finish())
}

/// Writes SERVFAIL with an extended error, to the question of a message. Returns its octets.
pub(crate) fn write_refusal(question: &[u8], reason: EdeCode, frame: &mut [u8]) -> usize {
    let flags = Flags(Flags::QR.0).with_rcode(Rcode::SERVFAIL);
    write_failure(question, flags, Some(reason), frame)
}

/// Writes a failure of the upstream without the extended errors of an upstream that was asked not to validate. Returns its octets.
pub(crate) fn write_upstream_failure(message: &Message<'_>, frame: &mut [u8]) -> usize {
    let flags = Flags(Flags::QR.0).with_rcode(message.rcode());
    write_failure(message.question(), flags, None, frame)
}

fn write_failure(question: &[u8], flags: Flags, ede: Option<EdeCode>, frame: &mut [u8]) -> usize {
    let end = wire::HEADER + question.len();
    frame[..wire::HEADER].fill(0);
    header::set_flags(frame, flags);
    header::set_qdcount(frame, 1);
    header::set_arcount(frame, 1);
    frame[wire::HEADER..end].copy_from_slice(question);
    let octets = wire::write_opt(&mut frame[end..], 512, 0, 0, false, ede);
    end + octets.unwrap_or(0)
}
