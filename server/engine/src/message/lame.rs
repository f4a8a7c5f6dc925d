//! Lame replies: a server that was asked to resolve does not.

use wire::header::Flags;
use wire::{Message, Rcode, Section, Type};

/// True if a reply is lame: a referral, or nothing, instead of a resolution. The query asked for recursion, but the server is neither
/// authoritative nor has an answer.
///
/// A server that recurses replies with an answer, a name error or a temporary error, never with a referral (RFC 1034 section 4.3.1). So an
/// empty reply with RA is NODATA, with or without SOA and NS records (RFC 2308 section 2.2, whose referral is that of an authoritative
/// server): recursive servers that leave out the SOA record may leave in the NS records of the zone. Only NS records of the root tell, for a
/// name elsewhere, of a server that has not looked, whatever its RA says.
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
    let has_soa = || message.records(Section::Authority).any(|record| record.rtype == Type::SOA);
    let refers_to_root = || {
        let mut servers = message.records(Section::Authority).filter(|record| record.rtype == Type::NS);
        !message.question_name().is_root() && servers.any(|record| record.owner.is_root())
    };
    !has_soa() && (!flags.contains(Flags::RA) || refers_to_root())
}
