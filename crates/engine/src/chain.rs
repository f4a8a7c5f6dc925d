//! CNAME and DNAME chains (RFC 6147 section 5.1.5): which names an answer leads through, and which of its records
//! belong to that way. Records off the way have no place in an answer.

use crate::limits::CHAIN;
use wire::{Class, Message, Name, Rcode, Record, Section, Type};

/// The names from the question to the end of the chain.
pub struct Chain<'a> {
    message: Message<'a>,
    /// Where the names stand in the message; as offsets, the usual chain of one name costs next to nothing.
    offsets: [u16; CHAIN],
    len: usize,
    /// The chain comes back to one of its names, or is longer than we follow.
    pub broken: bool,
    class: Class,
}

impl<'a> Chain<'a> {
    //= RFC 6147 section 5.1.5: requirement 10
    /// Follows the CNAMEs of the answer section from the name asked. Records may stand in any order; the work is
    /// at most [`CHAIN`] walks over the section.
    #[inline]
    pub fn follow(message: &Message<'a>) -> Chain<'a> {
        let offsets = [wire::HEADER as u16; CHAIN];
        let mut chain = Chain { message: *message, offsets, len: 1, broken: false, class: message.qclass() };
        if matches!(message.qtype(), Type::CNAME | Type::ANY) {
            return chain;
        }
        while chain.step() {}
        chain
    }

    /// One walk over the answer section; whether it found more.
    fn step(&mut self) -> bool {
        let before = self.len;
        for record in self.message.records(Section::Answer) {
            if record.rtype != Type::CNAME || record.class != self.class {
                continue;
            }
            let Some(target) = record.target() else { continue };
            if !record.owner.eq_ignore_case(&self.end()) {
                continue;
            }
            if self.len == CHAIN || self.contains(&target) {
                self.broken = true;
                return false;
            }
            self.offsets[self.len] = target.offset() as u16;
            self.len += 1;
        }
        self.len > before && self.len > 1
    }

    /// The name at the end.
    #[inline]
    pub fn end(&self) -> Name<'a> {
        self.name(self.len - 1)
    }

    /// How many names it leads through.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// One of these names.
    #[inline]
    pub fn name(&self, place: usize) -> Name<'a> {
        self.message.name_at(usize::from(self.offsets[place]))
    }

    /// Whether a record leads to one of these names, from those before it: a CNAME, or a DNAME above one. Signatures do
    /// not count.
    pub fn leads_to(&self, record: &Record<'_>, place: usize) -> bool {
        record.class == self.class
            && match record.rtype {
                Type::CNAME => (0..place).any(|at| self.name(at).eq_ignore_case(&record.owner)),
                Type::DNAME => (0..place).any(|at| self.name(at).is_at_or_below(&record.owner)),
                _ => false,
            }
    }

    /// Whether the name asked is an alias.
    #[inline]
    pub fn is_alias(&self) -> bool {
        self.len > 1
    }

    /// Whether the chain leads through a name.
    #[inline]
    pub fn contains(&self, name: &Name<'_>) -> bool {
        self.names().any(|on| on.eq_ignore_case(name))
    }

    #[inline]
    fn names(&self) -> impl Iterator<Item = Name<'a>> {
        self.offsets[..self.len].iter().map(|&offset| self.message.name_at(usize::from(offset)))
    }

    /// Whether a record of the answer section lies on the way: it belongs to one of the names, or it is the
    /// DNAME (or its signature) of a name above one of them.
    #[inline]
    pub fn keeps(&self, record: &Record<'_>) -> bool {
        if record.class != self.class && self.class != Class::ANY {
            return false;
        }
        self.contains(&record.owner) || (is_dname(record) && self.is_below(&record.owner))
    }

    /// Whether one of the names is `ancestor` or below it.
    pub fn is_below(&self, ancestor: &Name<'_>) -> bool {
        self.names().any(|on| on.is_at_or_below(ancestor))
    }

    /// Whether a record is one of `rtype` at the end of the chain.
    #[inline]
    pub fn ends_in(&self, record: &Record<'_>, rtype: Type) -> bool {
        record.rtype == rtype
            && record.class == self.class
            && (record.owner.offset() == usize::from(self.offsets[self.len - 1])
                || record.owner.eq_ignore_case(&self.end()))
    }

    /// Whether the upstream stopped on the way: an alias, nothing at its end, and no SOA that would say that
    /// there is nothing.
    pub fn is_unfinished(&self, message: &Message<'a>) -> bool {
        self.is_alias()
            && !self.broken
            && message.rcode() == Rcode::NOERROR
            && !message.records(Section::Answer).any(|record| self.ends_in(&record, message.qtype()))
            && !message.records(Section::Authority).any(|record| record.rtype == Type::SOA)
    }
}

/// A DNAME record or a signature over one.
fn is_dname(record: &Record<'_>) -> bool {
    record.rtype == Type::DNAME || record.covered() == Some(Type::DNAME)
}

/// A record that leads on: CNAME, DNAME, or a signature over one. These stay in a synthesized answer; signatures
/// over the A RRset do not (RFC 6147 section 5.5).
#[inline]
pub fn leads_on(record: &Record<'_>) -> bool {
    let leads = |rtype: Type| matches!(rtype, Type::CNAME | Type::DNAME);
    leads(record.rtype) || (record.rtype == Type::RRSIG && record.covered().is_some_and(leads))
}
