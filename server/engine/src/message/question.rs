//! Question of a query, with the header and EDNS flags that distinguish two questions for one name and type.

use crate::message::client_subnet::Subnet;
use wire::header::Flags;
use wire::{Class, Type};

/// Set of header and EDNS flags that distinguish two questions for one name and type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct QueryFlags(u8);

impl QueryFlags {
    /// RD: recursion desired.
    pub const RD: QueryFlags = QueryFlags(1);
    /// CD: checking disabled.
    pub const CD: QueryFlags = QueryFlags(2);
    /// AD in the query: the requestor understands AD (RFC 6840 section 5.7).
    pub const AD: QueryFlags = QueryFlags(4);
    /// DO: DNSSEC OK.
    pub const DO: QueryFlags = QueryFlags(8);
    /// Marks a probe of a dead server; no client query joins it.
    pub const PROBE: QueryFlags = QueryFlags(16);
    /// Marks a question of the server itself (`upstream/own_question.rs`); no client query joins it, and its reply is not cached.
    pub const OWN: QueryFlags = QueryFlags(32);

    /// Marks a question about the keys of a zone, for validation (`resolve/validate.rs`); no client query joins it, and its reply is not
    /// cached.
    pub const CHAIN: QueryFlags = QueryFlags(64);

    /// The flags of a query with these header flags; `dnssec_ok`: DO of its OPT record.
    #[inline]
    pub fn of_query(flags: Flags, dnssec_ok: bool) -> QueryFlags {
        QueryFlags::default()
            .with(QueryFlags::RD, flags.contains(Flags::RD))
            .with(QueryFlags::CD, flags.contains(Flags::CD))
            .with(QueryFlags::AD, flags.contains(Flags::AD))
            .with(QueryFlags::DO, dnssec_ok)
    }

    /// True if the default forwarders are asked, whatever zone the name is in: the discovery of prefixes asks what they do with all
    /// names. Keys of a trust point come from the forwarders of its zone.
    #[inline]
    pub fn is_for_all_names(self, qtype: Type) -> bool {
        self.has(QueryFlags::OWN) && qtype == Type::AAAA
    }

    /// These and those.
    #[inline]
    pub const fn with(self, more: QueryFlags, on: bool) -> QueryFlags {
        if on { QueryFlags(self.0 | more.0) } else { self }
    }

    /// The flags that change an upstream's reply, as they belong to the cache key: a reply cached under one combination does not
    /// answer another one.
    #[inline]
    pub const fn kept(self) -> u8 {
        self.0 & (QueryFlags::CD.0 | QueryFlags::AD.0 | QueryFlags::DO.0)
    }

    /// True if one of the flags of `some` is set.
    #[inline]
    pub const fn has_any(self, some: QueryFlags) -> bool {
        self.0 & some.0 != 0
    }

    /// True if all flags of `some` are set.
    #[inline]
    pub const fn has(self, some: QueryFlags) -> bool {
        self.0 & some.0 == some.0
    }
}

/// Question in flight, by all that two questions must have in common to share one outbound query.
///
/// Type and class do not lie side by side. A compiler reads two such fields with one load, and that would have to wait until the two
/// stores that wrote them just before have left the processor's store buffer.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Question<'a> {
    /// Name in wire form, in any letter case.
    pub name: &'a [u8],
    /// Keyed hash of the name.
    pub hash: u64,
    /// EDNS client subnet (RFC 7871).
    pub subnet: Option<&'a Subnet>,
    /// Type.
    pub qtype: Type,
    /// Header and EDNS flags.
    pub query_flags: QueryFlags,
    /// Class.
    pub class: Class,
}

/// The parts of a question by which the forwarders are chosen that are asked.
#[derive(Clone, Copy)]
pub struct ForwardKey<'a> {
    /// Name in wire form, in any letter case.
    pub name: &'a [u8],
    /// Type.
    pub qtype: Type,
    /// True if the default forwarders are asked, whatever zone the name is in ([`QueryFlags::is_for_all_names`]).
    pub is_own: bool,
}

impl<'a> ForwardKey<'a> {
    /// The name whose forwarders are asked: the name of the question, or for DS the one above it, because the parent zone has the DS
    /// records of its delegations (RFC 4034 section 5, RFC 4035 section 3.1.4.1). The servers of the zone itself would say that there
    /// are none. The root has no parent.
    #[inline]
    pub fn forwarded_name(self) -> &'a [u8] {
        let ForwardKey { name, qtype, .. } = self;
        match name {
            [length, rest @ ..] if qtype == Type::DS && *length > 0 => {
                rest.get(usize::from(*length)..).unwrap_or(name)
            }
            _ => name,
        }
    }
}

impl<'a> Question<'a> {
    /// Name and type, by which the forwarders are chosen that are asked.
    #[inline]
    pub fn forward_key(&self) -> ForwardKey<'a> {
        let is_own = self.query_flags.is_for_all_names(self.qtype);
        ForwardKey { name: self.name, qtype: self.qtype, is_own }
    }
}

/// Octets of the longest question section: name, type, class.
pub const QUESTION: usize = 255 + 4;

/// Question that a client query waits for now: the client's own, or a later one on the way to its answer (another type, or the
/// target of a CNAME).
pub(crate) struct CurrentQuestion<'e> {
    /// Name in wire form.
    pub name: &'e [u8],
    /// Type.
    pub qtype: Type,
    /// Class.
    pub class: Class,
}

impl CurrentQuestion<'_> {
    /// True if the class includes IN, the class of all local data.
    #[inline]
    pub fn is_ours(&self) -> bool {
        matches!(self.class, Class::IN | Class::ANY)
    }

    /// Name and type, by which the forwarders are chosen that are asked.
    #[inline]
    pub fn forward_key(&self) -> ForwardKey<'_> {
        ForwardKey { name: self.name, qtype: self.qtype, is_own: false }
    }

    /// Writes the question section.
    pub fn question<'r>(&self, room: &'r mut [u8; QUESTION]) -> &'r [u8] {
        let length = self.name.len();
        room[..length].copy_from_slice(self.name);
        room[length..length + 2].copy_from_slice(&self.qtype.0.to_be_bytes());
        room[length + 2..length + 4].copy_from_slice(&self.class.0.to_be_bytes());
        &room[..length + 4]
    }
}
