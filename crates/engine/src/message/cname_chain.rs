//! CNAME chain of a reply (RFC 6147 section 5.1.5): the names from the question to the last CNAME target, and the records of the
//! answer section that belong to them. Other records of that section are not part of an answer.

use crate::limits::{ALIASES, CHAIN, OWNER_LABELS};
use core::cell::Cell;
use wire::{Class, Message, Name, Rcode, Record, Section, Type};

/// CNAME chain: the names from the question to the last CNAME target.
#[derive(Clone)]
pub struct Chain<'a> {
    message: Message<'a>,
    /// Offsets of the names in the message. Offsets are cheap for the usual chain of one name.
    offsets: [u16; CHAIN],
    /// Number of labels of each name, if the chain has several names: names with different numbers of labels need no comparison.
    labels: [u8; CHAIN],
    len: usize,
    /// True if the chain is a loop, or longer than [`CHAIN`].
    pub broken: bool,
    /// True if the answer section has more aliases than any chain, or more distinct owner names than an honest answer. Then no
    /// alias is followed, and only records belong to the chain whose owner is a pointer to the question or repeats its name.
    crowded: bool,
    class: Class,
    /// Offset of the owner that was looked up last, and its position: all records of an RRset point to one owner.
    last_owner: Cell<(usize, Option<usize>)>,
    /// Number of comparisons of owners with names of the chain.
    #[cfg(test)]
    comparisons: Cell<usize>,
}

impl<'a> Chain<'a> {
    //= RFC 6147 section 5.1.5: requirement 10
    /// Follows the CNAME records of the answer section, beginning with the name of the question. The records may be in any order.
    /// The cost is at most [`CHAIN`] walks over the section, with comparisons of [`ALIASES`] names in each.
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
            last_owner: Cell::new((0, None)),
            #[cfg(test)]
            comparisons: Cell::new(0),
        };
        if matches!(message.qtype(), Type::CNAME | Type::ANY) {
            return chain;
        }
        chain.broken = chain.crowded;
        // Most replies have no alias.
        if message.has_cname() {
            chain.follow_aliases();
        }
        chain
    }

    /// Follows the CNAME records of an answer section that has some.
    #[inline(never)]
    fn follow_aliases(&mut self) {
        while !self.broken && self.step() {}
    }

    /// Walks over the answer section once. Returns true if the chain has become longer.
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

    /// Last name of the chain.
    #[inline]
    pub fn end(&self) -> Name<'a> {
        self.name(self.len - 1)
    }

    /// Number of names, that of the question included.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Name at a position of the chain; 0 is the name of the question.
    #[inline]
    pub fn name(&self, place: usize) -> Name<'a> {
        self.message.name_at(usize::from(self.offsets[place]))
    }

    /// True if a record leads to the name at position `place` from the names before it: their CNAME, or a DNAME above one of them.
    /// Signatures do not count.
    pub fn leads_to(&self, record: &Record<'_>, place: usize) -> bool {
        record.class == self.class
            && match record.rtype {
                Type::CNAME => (0..place).any(|at| self.name(at).eq_ignore_case(&record.owner)),
                Type::DNAME => (0..place).any(|at| self.name(at).is_at_or_below(&record.owner)),
                _ => false,
            }
    }

    /// True if a record is a signature over one that leads to the name at position `place` ([`Chain::leads_to`]).
    pub fn signs_way_to(&self, record: &Record<'_>, place: usize) -> bool {
        record.class == self.class
            && match record.covered() {
                Some(Type::CNAME) => (0..place).any(|at| self.name(at).eq_ignore_case(&record.owner)),
                Some(Type::DNAME) => (0..place).any(|at| self.name(at).is_at_or_below(&record.owner)),
                _ => false,
            }
    }

    /// The chain without the name at position `place` (at least 1) and those behind it.
    pub(crate) fn up_to(&self, place: usize) -> Chain<'a> {
        Chain { len: place, last_owner: Cell::new((0, None)), ..self.clone() }
    }

    /// True if the aliases are a loop (RFC 1034 section 3.6.2: an error), or more than are followed ([`CHAIN`], [`ALIASES`]), and the last
    /// one that is followed has no data of the type: the client must not take that for the absence of data.
    #[inline]
    pub(crate) fn has_no_end(&self, message: &Message<'a>) -> bool {
        self.broken
            && message.has_cname()
            && !message.records(Section::Answer).any(|record| self.ends_in(&record, message.qtype()))
    }

    /// True if the name of the question is an alias.
    #[inline]
    pub fn is_alias(&self) -> bool {
        self.len > 1
    }

    /// Position of the name that owns a record of the answer section; `None` if the owner is not in the chain.
    ///
    /// A malicious zone may have many records whose owners are names of a hundred labels that differ only in the last label. So
    /// each owner is walked once, and compared only with names of as many labels.
    #[inline]
    fn place_of(&self, owner: &Name<'_>) -> Option<usize> {
        let offset = owner.offset();
        // The name of the question.
        if offset == wire::HEADER { Some(0) } else { self.find_place_of(owner, offset) }
    }

    #[inline(never)]
    fn find_place_of(&self, owner: &Name<'_>, offset: usize) -> Option<usize> {
        if let Some(place) = self.offsets[..self.len].iter().position(|&at| usize::from(at) == offset) {
            return Some(place);
        }
        if self.crowded {
            return owner.stands_as(self.message.qname()).then_some(0);
        }
        let (last_offset, place) = self.last_owner.get();
        if last_offset == offset {
            return place;
        }
        let labels = if self.len > 1 { owner.labels().count() } else { 0 };
        let place = (0..self.len)
            .filter(|&place| usize::from(self.labels[place]) == labels)
            .find(|&place| self.is_same(place, owner));
        self.last_owner.set((offset, place));
        place
    }

    /// True if `owner` equals the name at a position.
    #[inline]
    fn is_same(&self, place: usize, owner: &Name<'_>) -> bool {
        #[cfg(test)]
        self.comparisons.set(self.comparisons.get() + 1);
        self.name(place).eq_ignore_case(owner)
    }

    /// Names of the chain in order.
    #[inline]
    fn names(&self) -> impl Iterator<Item = Name<'a>> {
        self.offsets[..self.len].iter().map(|&offset| self.message.name_at(usize::from(offset)))
    }

    /// True if a record of the answer section belongs to the chain: its owner is one of the names, or it is a DNAME (or the
    /// signature over one) whose owner is above one of them.
    #[inline]
    pub fn keeps(&self, record: &Record<'_>) -> bool {
        if record.class != self.class && self.class != Class::ANY {
            return false;
        }
        self.place_of(&record.owner).is_some()
            || (is_dname(record) && !self.crowded && self.is_below(&record.owner))
    }

    /// True if one of the names is equal to or below `ancestor`.
    pub fn is_below(&self, ancestor: &Name<'_>) -> bool {
        self.names().any(|on| on.is_at_or_below(ancestor))
    }

    /// True if a record has type `rtype` and belongs to the last name of the chain.
    #[inline]
    pub fn ends_in(&self, record: &Record<'_>, rtype: Type) -> bool {
        record.rtype == rtype
            && record.class == self.class
            && self.place_of(&record.owner) == Some(self.len - 1)
    }

    /// True if the upstream did not resolve the chain to its end: the name is an alias, the last name has no records of the type,
    /// and there is no SOA record to deny them.
    pub fn is_unfinished(&self, message: &Message<'a>) -> bool {
        self.is_alias()
            && !self.broken
            && message.rcode() == Rcode::NOERROR
            && !message.records(Section::Answer).any(|record| self.ends_in(&record, message.qtype()))
            && !message.records(Section::Authority).any(|record| record.rtype == Type::SOA)
    }
}

/// True if the answer section has more than [`ALIASES`] aliases, or if its owners have more labels than those of an honest answer
/// ([`OWNER_LABELS`]), so that comparing them costs too much. The owners of one RRset are pointers to one offset, or almost always.
#[cold]
fn is_crowded(message: &Message<'_>) -> bool {
    let (mut aliases, mut labels, mut last_offset) = (0, 0, wire::HEADER);
    message.records(Section::Answer).any(|record| {
        aliases += usize::from(record.rtype == Type::CNAME || is_dname(&record));
        let offset = record.owner.offset();
        if offset != wire::HEADER && offset != last_offset {
            labels += 1 + record.owner.labels().count();
            last_offset = offset;
        }
        aliases > ALIASES || labels > OWNER_LABELS
    })
}

/// True for a DNAME record or a signature over one.
fn is_dname(record: &Record<'_>) -> bool {
    record.rtype == Type::DNAME || record.covered() == Some(Type::DNAME)
}

/// True for the records of an alias: CNAME, DNAME, or a signature over one. They stay in a synthesized answer; signatures over the
/// A RRset do not (RFC 6147 section 5.5).
#[inline]
pub fn leads_on(record: &Record<'_>) -> bool {
    let is_alias = |rtype: Type| matches!(rtype, Type::CNAME | Type::DNAME);
    is_alias(record.rtype) || (record.rtype == Type::RRSIG && record.covered().is_some_and(is_alias))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Appends a name of 126 labels, the last of them `letter`; a pointer to the next label follows each other label. Returns the
    /// offset of the name.
    fn append_pointer_name(bytes: &mut Vec<u8>, letter: u8) -> usize {
        let mut at = bytes.len();
        bytes.extend([1, letter, 0]);
        for _ in 0..125 {
            let next = at;
            at = bytes.len();
            bytes.extend([1, b'a', 0xc0 | (next >> 8) as u8, next as u8]);
        }
        at
    }

    /// Compression pointer to an offset.
    fn pointer(to: usize) -> [u8; 2] {
        [0xc0 | (to >> 8) as u8, to as u8]
    }

    /// Expensive reply: a chain of [`CHAIN`] names that differ in their last labels, in the worst order, and before it `most`
    /// records with this type and RDATA, or as many as fit. Their owner is the last name of the chain, written at `owners` other
    /// offsets than in the chain.
    fn expensive_reply(rtype: Type, rdata: &[u8], most: usize, owners: usize) -> Vec<u8> {
        let mut bytes = b"\0\0\x80\0\0\x01\0\0\0\0\0\0".to_vec();
        bytes.extend([[1, b'a']; 125].concat());
        bytes.extend(b"\x01A\0\0\x01\0\x01\xc0\x0c\0\x0a\0\x01\0\0\0\0");
        let length = bytes.len();
        bytes.extend([0; 2]);
        let mut names = vec![wire::HEADER];
        names.extend((1..CHAIN as u8).map(|place| append_pointer_name(&mut bytes, b'a' + place)));
        let owners: Vec<usize> =
            (0..owners).map(|_| append_pointer_name(&mut bytes, b'a' + CHAIN as u8 - 1)).collect();
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
    fn long_names_that_differ_in_the_last_label_are_compared_a_bounded_number_of_times() {
        for most in [20, usize::MAX] {
            let bytes = expensive_reply(Type::A, &[203, 0, 113, 66], most, 8);
            let message = Message::parse(&bytes).unwrap();
            let chain = Chain::follow(&message);
            let kept = message.records(Section::Answer).filter(|record| chain.keeps(record)).count();
            let ends =
                message.records(Section::Answer).filter(|record| chain.ends_in(record, Type::A)).count();
            if most == 20 {
                assert_eq!((chain.len(), chain.broken, kept, ends), (CHAIN, false, 36, 20));
                assert!(chain.comparisons.get() <= 2 * 20 * CHAIN, "{}", chain.comparisons.get());
            } else {
                assert!(message.count(Section::Answer) > 3_000);
                // The records of the question's name: the one that holds the names in its RDATA, and the CNAME.
                assert_eq!((chain.len(), chain.broken, kept, ends), (1, true, 2, 0));
                assert_eq!(chain.comparisons.get(), 0);
            }
        }
    }

    #[test]
    fn the_records_of_an_rrset_cost_one_comparison_wherever_their_owner_is() {
        let mut bytes = b"\0\0\x80\0\0\x01\x0f\xa0\0\0\0\0\x01a\x04test\0\0\x01\0\x01".to_vec();
        bytes.extend(b"\xc0\x0c\0\x05\0\x01\0\0\0\0\0\x08\x01b\x04test\0");
        // The target name again, without compression.
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
        assert!(chain.comparisons.get() <= 2, "{}", chain.comparisons.get());
    }

    #[test]
    fn an_rrset_of_thousands_with_uncompressed_owners_is_kept() {
        let mut bytes = b"\0\0\x80\0\0\x01\x07\xd0\0\0\0\0\x01a\x04test\0\0\x01\0\x01".to_vec();
        for _ in 0..2_000 {
            bytes.extend(b"\x01A\x04test\0\0\x01\0\x01\0\0\0\0\0\x04\xcb\0\x71\x42");
        }
        let message = Message::parse(&bytes).unwrap();
        let chain = Chain::follow(&message);
        assert!(message.records(Section::Answer).all(|record| chain.ends_in(&record, Type::A)));
    }

    #[test]
    fn more_aliases_than_any_chain_has_are_not_followed() {
        for (rtype, rdata) in [(Type::CNAME, pointer(wire::HEADER)), (Type::DNAME, pointer(wire::HEADER))] {
            let bytes = expensive_reply(rtype, &rdata, 2 * ALIASES, 1);
            let message = Message::parse(&bytes).unwrap();
            let chain = Chain::follow(&message);
            assert_eq!((chain.len(), chain.broken), (1, true));
            // The records of the question's name: the one that holds the names in its RDATA, and the CNAME.
            assert_eq!(message.records(Section::Answer).filter(|record| chain.keeps(record)).count(), 2);
        }
    }
}
