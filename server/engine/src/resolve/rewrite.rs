//! Replies of upstreams without some of their records: those that the configuration takes away from clients.

use crate::dns64::config::Arpa;
use crate::local::record::{BLOCKED_TTL, write_denial};
use crate::message::cname_chain::Chain;
use crate::message::reply::{ede_to_store, is_of_transaction};
use wire::header::Flags;
use wire::{Builder, EdeCode, Message, Rcode, Record, Section, Type};

/// Writes a reply without the records that `is_left_out` names, and without the signatures over their RRsets. If nothing is left of what
/// was asked, the reply is a negative one with this extended DNS error, and with an SOA record, so that clients may cache it (RFC 2308
/// section 5). AD is clear: the reply is no longer the one that was validated. None: there is no room.
pub(crate) fn without(
    (message, chain): (&Message<'_>, &Chain<'_>),
    is_left_out: &impl Fn(&Record<'_>) -> bool,
    ede: EdeCode,
    arpa: &Arpa,
    question: &[u8],
    frame: &mut [u8],
) -> Option<usize> {
    let limit = frame.len();
    let flags = Flags(0).with(Flags::QR).with_rcode(message.rcode());
    let mut builder = Builder::new(frame, limit, 0, flags, question)?;
    let is_asked = |record: &Record<'_>| {
        (record.rtype == message.qtype() || message.qtype() == Type::ANY && record.covered().is_none())
            && chain.ends_in(record, record.rtype)
    };
    let (mut is_less, mut has_data) = (false, false);
    for record in message.records(Section::Answer).filter(is_asked) {
        let goes = is_left_out(&record);
        (is_less, has_data) = (is_less | goes, has_data | !goes);
    }
    copy_section(&mut builder, message, Section::Answer, &|record| {
        !chain.keeps(record) || is_left_out(record)
    })?;
    if is_less && !has_data && message.rcode() == Rcode::NOERROR {
        write_denial(&mut builder, chain.end(), BLOCKED_TTL, arpa).ok()?;
        builder.opt(512, 0, 0, false, Some(ede)).ok()?;
        return Some(builder.finish());
    }
    let is_hop_by_hop = |record: &Record<'_>| record.rtype == Type::OPT || is_of_transaction(record);
    for section in [Section::Authority, Section::Additional] {
        copy_section(&mut builder, message, section, &|record| is_hop_by_hop(record) || is_left_out(record))?;
    }
    let extended_rcode = (message.rcode().0 >> 4) as u8;
    builder.opt(512, extended_rcode, 0, false, ede_to_store(message)).ok()?;
    Some(builder.finish())
}

/// Writes an AAAA reply without the records that `is_left_out` names, and with a bound of the TTL of those at the end of the chain and of
/// their signatures. Signatures hold for lower TTLs, too (RFC 4035 section 5.3.3), so AD stays if nothing is left out. None: there is no
/// room.
pub(crate) fn for_a_time(
    (message, chain): (&Message<'_>, &Chain<'_>),
    is_left_out: &impl Fn(&Record<'_>) -> bool,
    ttl_secs: u32,
    question: &[u8],
    frame: &mut [u8],
) -> Option<usize> {
    let limit = frame.len();
    let is_less = message.records(Section::Answer).any(|record| is_left_out(&record));
    let is_secure = message.flags().contains(Flags::AD) && !is_less;
    let flags = Flags(0).with(Flags::QR).with_rcode(message.rcode());
    let flags = if is_secure { flags.with(Flags::AD) } else { flags };
    let mut builder = Builder::new(frame, limit, 0, flags, question)?;
    for record in message.records(Section::Answer).filter(|record| chain.keeps(record)) {
        let is_signature = record.covered() == Some(Type::AAAA);
        if is_left_out(&record) || is_less && is_signature {
            continue;
        }
        let ttl =
            if is_signature || record.rtype == Type::AAAA { record.ttl.min(ttl_secs) } else { record.ttl };
        builder.copy_ttl(Section::Answer, &record, ttl).ok()?;
    }
    let is_hop_by_hop = |record: &Record<'_>| record.rtype == Type::OPT || is_of_transaction(record);
    for section in [Section::Authority, Section::Additional] {
        copy_section(&mut builder, message, section, &is_hop_by_hop)?;
    }
    builder.opt(512, 0, 0, false, ede_to_store(message)).ok()?;
    Some(builder.finish())
}

/// Copies the records of a section that are not left out, without the signatures over RRsets of types that lose a record. None: there is no
/// room.
fn copy_section(
    builder: &mut Builder<'_>,
    message: &Message<'_>,
    section: Section,
    is_left_out: &impl Fn(&Record<'_>) -> bool,
) -> Option<()> {
    let mut lessened = [false; ADDRESS_TYPES.len()];
    let place = |rtype: Type| ADDRESS_TYPES.iter().position(|&other| other == rtype);
    for record in message.records(section).filter(is_left_out) {
        if let Some(place) = place(record.rtype) {
            lessened[place] = true;
        }
    }
    for record in message.records(section) {
        let signs_lessened = record.covered().and_then(place).is_some_and(|place| lessened[place]);
        if !signs_lessened && !is_left_out(&record) {
            builder.copy(section, &record).ok()?;
        }
    }
    Some(())
}

/// Types of the records with addresses, of which some may be left out.
const ADDRESS_TYPES: [Type; 4] = [Type::A, Type::AAAA, Type::SVCB, Type::HTTPS];
