//! CNAME and DNAME chains (RFC 6147 section 5.1.5): which names an answer leads through, and which of its records
//! belong to that way. Records off the way have no place in an answer.

use crate::limits::{ALIASES, CHAIN, OWNER_LABELS};
use core::cell::Cell;
use wire::{Class, Message, Name, Rcode, Record, Section, Type};

/// The names from the question to the end of the chain.
pub struct Chain<'a> {
    message: Message<'a>,
    /// Where the names stand in the message; as offsets, the usual chain of one name costs next to nothing.
    offsets: [u16; CHAIN],
    /// How many labels each has, of several: names with another number of them need not be compared.
    labels: [u8; CHAIN],
    len: usize,
    /// The chain comes back to one of its names, or is longer than we follow.
    pub broken: bool,
    /// There are more aliases than any chain has, or more names than anyone means: nothing leads anywhere, and only what
    /// points at the question, or repeats its name in full, belongs to it.
    crowded: bool,
    class: Class,
    /// The owner looked up last, and which name it is: the records of an RRset all point at the same owner.
    last: Cell<(usize, Option<usize>)>,
    /// How many names were compared to place owners.
    #[cfg(test)]
    compared: Cell<usize>,
}

impl<'a> Chain<'a> {
    //= RFC 6147 section 5.1.5: requirement 10
    /// Follows the CNAMEs of the answer section from the name asked. Records may stand in any order; the work is
    /// at most [`CHAIN`] walks over the section, in each of which [`ALIASES`] names are compared.
    #[inline]
    pub fn follow(message: &Message<'a>) -> Chain<'a> {
        let mut chain = Chain {
            message: *message,
            offsets: [wire::HEADER as u16; CHAIN],
            labels: [0; CHAIN],
            len: 1,
            broken: false,
            crowded: message.count(Section::Answer) > ALIASES && is_crowded(message),
            class: message.qclass(),
            last: Cell::new((0, None)),
            #[cfg(test)]
            compared: Cell::new(0),
        };
        if matches!(message.qtype(), Type::CNAME | Type::ANY) {
            return chain;
        }
        chain.broken = chain.crowded;
        while !chain.broken && chain.step() {}
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
            if self.len == CHAIN || self.names().any(|on| on.eq_ignore_case(&target)) {
                self.broken = true;
                return false;
            }
            self.offsets[self.len] = target.offset() as u16;
            self.labels[self.len - 1] = record.owner.labels().count() as u8;
            self.labels[self.len] = target.labels().count() as u8;
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

    /// Which of the names is the owner of a record of the answer section.
    ///
    /// Names of a hundred labels that differ in the last one are what a malicious zone has in many records: each owner is
    /// walked once, and compared only with names of as many labels.
    #[inline]
    fn place_of(&self, owner: &Name<'_>) -> Option<usize> {
        let offset = owner.offset();
        if let Some(place) = self.offsets[..self.len].iter().position(|&at| usize::from(at) == offset) {
            return Some(place);
        }
        if self.crowded {
            return owner.stands_as(self.message.qname()).then_some(0);
        }
        let (last, place) = self.last.get();
        if last == offset {
            return place;
        }
        let labels = if self.len > 1 { owner.labels().count() } else { 0 };
        let place = (0..self.len)
            .filter(|&place| usize::from(self.labels[place]) == labels)
            .find(|&place| self.is_same(place, owner));
        self.last.set((offset, place));
        place
    }

    #[inline]
    fn is_same(&self, place: usize, owner: &Name<'_>) -> bool {
        #[cfg(test)]
        self.compared.set(self.compared.get() + 1);
        self.name(place).eq_ignore_case(owner)
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
        self.place_of(&record.owner).is_some()
            || (is_dname(record) && !self.crowded && self.is_below(&record.owner))
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
            && self.place_of(&record.owner) == Some(self.len - 1)
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

/// Whether the answer section has more aliases than a chain that we follow, or owners that cost more to compare than those of
/// any honest answer. Records that share an owner point at the same octets, or nearly so.
#[cold]
fn is_crowded(message: &Message<'_>) -> bool {
    let (mut aliases, mut labels, mut last) = (0, 0, wire::HEADER);
    message.records(Section::Answer).any(|record| {
        aliases += usize::from(record.rtype == Type::CNAME || is_dname(&record));
        let offset = record.owner.offset();
        if offset != wire::HEADER && offset != last {
            labels += 1 + record.owner.labels().count();
            last = offset;
        }
        aliases > ALIASES || labels > OWNER_LABELS
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A name of 126 labels, the last of them this letter, every label but that followed by a pointer to the next.
    fn stairs(bytes: &mut Vec<u8>, letter: u8) -> usize {
        let mut at = bytes.len();
        bytes.extend([1, letter, 0]);
        for _ in 0..125 {
            let next = at;
            at = bytes.len();
            bytes.extend([1, b'a', 0xc0 | (next >> 8) as u8, next as u8]);
        }
        at
    }

    fn pointer(to: usize) -> [u8; 2] {
        [0xc0 | (to >> 8) as u8, to as u8]
    }

    /// A reply with a chain of [`CHAIN`] names that differ in their last labels, in the worst order, and between them as
    /// many records of this kind as are wanted, or fit. Their owners are the end of the chain, in so many other places than
    /// that which the chain has.
    fn bomb(rtype: Type, rdata: &[u8], most: usize, owners: usize) -> Vec<u8> {
        let mut bytes = b"\0\0\x80\0\0\x01\0\0\0\0\0\0".to_vec();
        bytes.extend([[1, b'a']; 125].concat());
        bytes.extend(b"\x01A\0\0\x01\0\x01\xc0\x0c\0\x0a\0\x01\0\0\0\0");
        let length = bytes.len();
        bytes.extend([0; 2]);
        let mut names = vec![wire::HEADER];
        names.extend((1..CHAIN as u8).map(|place| stairs(&mut bytes, b'a' + place)));
        let owners: Vec<usize> = (0..owners).map(|_| stairs(&mut bytes, b'a' + CHAIN as u8 - 1)).collect();
        let octets = (bytes.len() - length - 2) as u16;
        bytes[length..length + 2].copy_from_slice(&octets.to_be_bytes());
        let mut records = 1u16;
        let mut record = |bytes: &mut Vec<u8>, owner: usize, rtype: Type, rdata: &[u8]| {
            bytes.extend(pointer(owner));
            bytes.extend(rtype.0.to_be_bytes());
            bytes.extend(b"\0\x01\0\0\0\0");
            bytes.extend((rdata.len() as u16).to_be_bytes());
            bytes.extend(rdata);
            records += 1;
        };
        for turn in 0..most {
            if bytes.len() + 12 + rdata.len() + 14 * CHAIN > crate::limits::MESSAGE {
                break;
            }
            record(&mut bytes, owners[turn % owners.len()], rtype, rdata);
        }
        for pair in names.windows(2).rev() {
            record(&mut bytes, pair[0], Type::CNAME, &pointer(pair[1]));
        }
        bytes[6..8].copy_from_slice(&records.to_be_bytes());
        bytes
    }

    #[test]
    fn long_names_that_differ_at_their_end_are_not_compared_over_and_over() {
        for most in [20, usize::MAX] {
            let bytes = bomb(Type::A, &[203, 0, 113, 66], most, 8);
            let message = Message::parse(&bytes).unwrap();
            let chain = Chain::follow(&message);
            let kept = message.records(Section::Answer).filter(|record| chain.keeps(record)).count();
            let ends =
                message.records(Section::Answer).filter(|record| chain.ends_in(record, Type::A)).count();
            if most == 20 {
                assert_eq!((chain.len(), chain.broken, kept, ends), (CHAIN, false, 36, 20));
                assert!(chain.compared.get() <= 2 * 20 * CHAIN, "{}", chain.compared.get());
            } else {
                assert!(message.count(Section::Answer) > 3_000);
                // The question's own: the record with the names, and the alias that it is.
                assert_eq!((chain.len(), chain.broken, kept, ends), (1, true, 2, 0));
                assert_eq!(chain.compared.get(), 0);
            }
        }
    }

    #[test]
    fn the_records_of_an_rrset_cost_one_comparison_wherever_their_owner_stands() {
        let mut bytes = b"\0\0\x80\0\0\x01\x0f\xa0\0\0\0\0\x01a\x04test\0\0\x01\0\x01".to_vec();
        bytes.extend(b"\xc0\x0c\0\x05\0\x01\0\0\0\0\0\x08\x01b\x04test\0");
        // The target once more, in full.
        bytes.extend(b"\xc0\x0c\0\x0a\0\x01\0\0\0\0\0\x08");
        let owner = bytes.len();
        bytes.extend(b"\x01b\x04test\0");
        for _ in 2..4_000 {
            bytes.extend(pointer(owner));
            bytes.extend(b"\0\x01\0\x01\0\0\0\0\0\x04\xcb\0\x71\x42");
        }
        let message = Message::parse(&bytes).unwrap();
        let chain = Chain::follow(&message);
        assert_eq!(
            message.records(Section::Answer).filter(|record| chain.ends_in(record, Type::A)).count(),
            3_998
        );
        assert!(message.records(Section::Answer).all(|record| chain.keeps(&record)));
        assert!(chain.compared.get() <= 2, "{}", chain.compared.get());
    }

    #[test]
    fn an_rrset_of_thousands_whose_owners_are_written_in_full_is_kept() {
        let mut bytes = b"\0\0\x80\0\0\x01\x07\xd0\0\0\0\0\x01a\x04test\0\0\x01\0\x01".to_vec();
        for _ in 0..2_000 {
            bytes.extend(b"\x01A\x04test\0\0\x01\0\x01\0\0\0\0\0\x04\xcb\0\x71\x42");
        }
        let message = Message::parse(&bytes).unwrap();
        let chain = Chain::follow(&message);
        assert!(message.records(Section::Answer).all(|record| chain.ends_in(&record, Type::A)));
    }

    #[test]
    fn aliases_beyond_what_any_chain_has_lead_nowhere() {
        for (rtype, rdata) in [(Type::CNAME, pointer(wire::HEADER)), (Type::DNAME, pointer(wire::HEADER))] {
            let bytes = bomb(rtype, &rdata, 2 * ALIASES, 1);
            let message = Message::parse(&bytes).unwrap();
            let chain = Chain::follow(&message);
            assert_eq!((chain.len(), chain.broken), (1, true));
            // The question's own: the record with the names, and the alias that it is.
            assert_eq!(message.records(Section::Answer).filter(|record| chain.keeps(record)).count(), 2);
        }
    }
}
