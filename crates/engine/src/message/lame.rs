//! Lame replies: a server that was asked to resolve does not.

use wire::header::Flags;
use wire::{Message, Rcode, Section, Type};

/// True if a reply is lame: a referral, or empty without RA, instead of a resolution (RFC 1034 section 4.3.1, RFC 2308 section
/// 2.2). The query asked for recursion, but the server is neither authoritative nor has an answer. A referral has NS records and
/// no SOA record; a lame reply without these records comes from a server that does not offer recursion.
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
