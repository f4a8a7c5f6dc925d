//! The question of a query, and the header and EDNS flags that make two questions different.

use crate::message::client_subnet::Subnet;
use wire::header::Flags;
use wire::{Class, Type};

/// The bits that make two questions for one name and type different ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct QueryFlags(u8);

impl QueryFlags {
    /// Recursion desired.
    pub const RD: QueryFlags = QueryFlags(1);
    /// Checking disabled.
    pub const CD: QueryFlags = QueryFlags(2);
    /// AD in the question: the asker understands AD (RFC 6840 section 5.7).
    pub const AD: QueryFlags = QueryFlags(4);
    /// DNSSEC OK.
    pub const DO: QueryFlags = QueryFlags(8);
    /// A probe of a dead server; no client's question joins it.
    pub const PROBE: QueryFlags = QueryFlags(16);

    /// The flags of a query with these header flags; `dnssec_ok`: DO of its OPT record.
    #[inline]
    pub fn of_query(flags: Flags, dnssec_ok: bool) -> QueryFlags {
        QueryFlags::default()
            .with(QueryFlags::RD, flags.contains(Flags::RD))
            .with(QueryFlags::CD, flags.contains(Flags::CD))
            .with(QueryFlags::AD, flags.contains(Flags::AD))
            .with(QueryFlags::DO, dnssec_ok)
    }

    /// These and those.
    #[inline]
    pub const fn with(self, more: QueryFlags, on: bool) -> QueryFlags {
        if on { QueryFlags(self.0 | more.0) } else { self }
    }

    /// Those that change what an upstream answers: what is kept for one of them is no answer to another.
    #[inline]
    pub const fn kept(self) -> u8 {
        self.0 & (QueryFlags::CD.0 | QueryFlags::AD.0 | QueryFlags::DO.0)
    }

    /// Whether all of `some` are among them.
    #[inline]
    pub const fn has(self, some: QueryFlags) -> bool {
        self.0 & some.0 == some.0
    }
}

/// What makes two questions equal.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// Name in wire form, any letter case.
    pub name: &'a [u8],
    /// Keyed hash of the name.
    pub hash: u64,
    /// Type.
    pub qtype: Type,
    /// Class.
    pub class: Class,
    /// Bits.
    pub query_flags: QueryFlags,
    /// Client subnet.
    pub subnet: Option<&'a Subnet>,
}

/// Octets of the longest question: a name, a type, a class.
pub const QUESTION: usize = 255 + 4;

/// What is asked: the question of a client, or a part of the way to its answer.
pub(crate) struct CurrentQuestion<'e> {
    /// The name in wire form.
    pub name: &'e [u8],
    pub qtype: Type,
    pub class: Class,
}

impl CurrentQuestion<'_> {
    /// Whether our own data, which are in class IN, are among what is asked for.
    #[inline]
    pub fn is_ours(&self) -> bool {
        matches!(self.class, Class::IN | Class::ANY)
    }

    /// It as a question section.
    pub fn question<'r>(&self, room: &'r mut [u8; QUESTION]) -> &'r [u8] {
        let length = self.name.len();
        room[..length].copy_from_slice(self.name);
        room[length..length + 2].copy_from_slice(&self.qtype.0.to_be_bytes());
        room[length + 2..length + 4].copy_from_slice(&self.class.0.to_be_bytes());
        &room[..length + 4]
    }
}
