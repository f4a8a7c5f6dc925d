//! CNAME chain of a reply (RFC 6147 section 5.1.5): the names from the question to the last CNAME target, and the records of the
//! answer section that belong to them. Other records of that section are not part of an answer.

use crate::limits::{ALIASES, CHAIN, OWNER_LABELS, REPLY_RECORDS};
use core::cell::{Cell, RefCell};
use wire::{Class, Message, Name, Rcode, Record, Section, Type};

/// CNAME chain: the names from the question to the last CNAME target.
#[derive(Clone)]
pub struct Chain<'a> {
    message: Message<'a>,
    /// Offsets of the names in the message. Offsets are cheap for the usual chain of one name.
    offsets: [u16; CHAIN],
    /// Hash of each name, if the chain has several. No two are equal, so that another name is compared with one of them at most.
    digests: [u64; CHAIN],
    len: usize,
    /// True if the chain is a loop, or longer than [`CHAIN`].
    pub broken: bool,
    /// True if the answer section has more aliases than any chain, or more distinct owner names than an honest answer. Then no
    /// alias is followed, and only records belong to the chain whose owner is a pointer to the question or repeats its name.
    crowded: bool,
    class: Class,
    /// Offset of the owner that was looked up last, and its position: all records of an RRset point to one owner.
    last_owner: Cell<(usize, Option<usize>)>,
    /// All other owners that were looked up: every pass over the section asks for them again.
    owners: RefCell<Option<Owners>>,
}

/// Owners that do not stand where a name of the chain stands, with what was found out about them. A name is found by its offset.
#[derive(Clone)]
struct Owners {
    /// Offsets in rising order.
    offsets: [u16; REPLY_RECORDS],
    /// Position in the chain of each; [`NOT_ON_CHAIN`] for none.
    places: [u8; REPLY_RECORDS],
    len: usize,
    /// Offsets of names that were compared as ancestors, and true if a name of the chain is equal to or below them. A chain has as many
    /// DNAME records as names at most; what comes after them is not compared.
    ancestors: [(u16, bool); CHAIN],
    ancestors_len: usize,
}

/// Place of an owner that is not in the chain.
const NOT_ON_CHAIN: u8 = u8::MAX;

impl Owners {
    const NONE: Owners = Owners {
        offsets: [0; REPLY_RECORDS],
        places: [0; REPLY_RECORDS],
        len: 0,
        ancestors: [(0, false); CHAIN],
        ancestors_len: 0,
    };

    /// The place of the owner at an offset, which is looked up with `find` the first time.
    fn place_of(&mut self, offset: usize, find: impl FnOnce() -> Option<usize>) -> Option<usize> {
        let offset = offset as u16;
        let at = match self.offsets[..self.len].binary_search(&offset) {
            Ok(at) => return Some(self.places[at]).filter(|&place| place != NOT_ON_CHAIN).map(usize::from),
            Err(at) => at,
        };
        let place = find();
        // A message with more records is not used.
        if self.len < REPLY_RECORDS {
            self.offsets.copy_within(at..self.len, at + 1);
            self.places.copy_within(at..self.len, at + 1);
            self.offsets[at] = offset;
            self.places[at] = place.map_or(NOT_ON_CHAIN, |place| place as u8);
            self.len += 1;
        }
        place
    }

    /// True if a name of the chain is equal to or below the name at an offset, which `find` finds out the first time.
    fn is_ancestor(&mut self, offset: usize, find: impl FnOnce() -> bool) -> bool {
        let offset = offset as u16;
        let known = &self.ancestors[..self.ancestors_len];
        if let Some((_, is_ancestor)) = known.iter().find(|&&(at, _)| at == offset) {
            return *is_ancestor;
        }
        self.ancestors_len < CHAIN && {
            let is_ancestor = find();
            self.ancestors[self.ancestors_len] = (offset, is_ancestor);
            self.ancestors_len += 1;
            is_ancestor
        }
    }
}

/// CNAME record: offset and hash of its owner and of its target.
#[derive(Clone, Copy, Default)]
struct Alias {
    owner: (u16, u64),
    target: (u16, u64),
}

#[cfg(test)]
thread_local! {
    /// Number of names that were hashed or compared, by this thread.
    pub(crate) static WALKED: Cell<usize> = const { Cell::new(0) };
}

/// True if two names are equal.
#[inline]
fn is_same(name: &Name<'_>, other: &Name<'_>) -> bool {
    #[cfg(test)]
    WALKED.set(WALKED.get() + 1);
    name.eq_ignore_case(other)
}

/// Names of a chain while it is followed.
struct Names {
    offsets: [u16; CHAIN],
    digests: [u64; CHAIN],
    len: usize,
    broken: bool,
    crowded: bool,
}

impl Names {
    #[inline]
    fn of(message: &Message<'_>) -> Names {
        let mut names = Names {
            offsets: [wire::HEADER as u16; CHAIN],
            digests: [0; CHAIN],
            len: 1,
            broken: false,
            crowded: message.count(Section::Answer) > ALIASES && is_crowded(message),
        };
        if matches!(message.qtype(), Type::CNAME | Type::ANY) {
            return names;
        }
        names.broken = names.crowded;
        // Most replies have no alias.
        if message.has_cname() && !names.broken {
            names.follow_aliases(message);
        }
        names
    }

    /// Follows the CNAME records of an answer section that has some.
    #[inline(never)]
    fn follow_aliases(&mut self, message: &Message<'_>) {
        let mut room = [Alias::default(); ALIASES];
        let Some(aliases) = collect_aliases(message, &mut room) else {
            (self.crowded, self.broken) = (true, true);
            return;
        };
        let name_at = |offset: u16| message.name_at(usize::from(offset));
        self.digests[0] = digest(&name_at(self.offsets[0])).0;
        let mut before = 0;
        while self.len > before {
            before = self.len;
            for alias in aliases {
                let end = self.len - 1;
                if alias.owner.1 != self.digests[end] {
                    continue;
                }
                // Names that have the hash of another one are made on purpose.
                let is_same = is_same(&name_at(self.offsets[end]), &name_at(alias.owner.0));
                if !is_same || self.len == CHAIN || self.digests[..self.len].contains(&alias.target.1) {
                    self.broken = true;
                    return;
                }
                (self.offsets[self.len], self.digests[self.len]) = alias.target;
                self.len += 1;
            }
        }
    }
}

/// The CNAME records of the answer section; `None` if there are too many, or if their names have more labels than those of an
/// honest chain ([`OWNER_LABELS`]).
fn collect_aliases<'r>(message: &Message<'_>, room: &'r mut [Alias; ALIASES]) -> Option<&'r [Alias]> {
    let (mut count, mut labels) = (0, 0);
    for record in message.records(Section::Answer) {
        if record.rtype != Type::CNAME || record.class != message.qclass() {
            continue;
        }
        let Some(target) = record.target() else { continue };
        let (known, free) = room.split_at_mut(count);
        let mut hash = |name: &Name<'_>| {
            let offset = name.offset() as u16;
            // The owner is nearly always the target of the record before.
            let known = known.iter().rev().flat_map(|alias| [alias.target, alias.owner]);
            known.into_iter().find(|&(at, _)| at == offset).unwrap_or_else(|| {
                let (hash, count) = digest(name);
                labels += count;
                (offset, hash)
            })
        };
        *free.first_mut()? = Alias { owner: hash(&record.owner), target: hash(&target) };
        count += 1;
        if labels > OWNER_LABELS {
            return None;
        }
    }
    Some(&room[..count])
}

impl<'a> Chain<'a> {
    //= RFC 6147 section 5.1.5: requirement 10
    /// Follows the CNAME records of the answer section, beginning with the name of the question. The records may be in any order.
    /// The cost is one walk over the section, in which each name of an alias is hashed once, and [`CHAIN`] walks over at most
    /// [`ALIASES`] hashes.
    #[inline]
    pub fn follow(message: &Message<'a>) -> Chain<'a> {
        let Names { offsets, digests, len, broken, crowded } = Names::of(message);
        // Made in one step, so that it is made in its place: it is large, and to move it costs more than to follow a name.
        Chain {
            message: *message,
            offsets,
            digests,
            len,
            broken,
            crowded,
            class: message.qclass(),
            last_owner: Cell::new((0, None)),
            owners: RefCell::new(None),
        }
    }

    /// The message in which the chain was followed.
    #[inline]
    pub fn message(&self) -> &Message<'a> {
        &self.message
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
                Type::CNAME => self.place_of(&record.owner).is_some_and(|at| at < place),
                Type::DNAME => (0..place).any(|at| self.name(at).is_at_or_below(&record.owner)),
                _ => false,
            }
    }

    /// True if a record is a signature over one that leads to the name at position `place` ([`Chain::leads_to`]).
    pub fn signs_way_to(&self, record: &Record<'_>, place: usize) -> bool {
        record.class == self.class
            && match record.covered() {
                Some(Type::CNAME) => self.place_of(&record.owner).is_some_and(|at| at < place),
                Some(Type::DNAME) => (0..place).any(|at| self.name(at).is_at_or_below(&record.owner)),
                _ => false,
            }
    }

    /// The chain without the name at position `place` (at least 1) and those behind it.
    pub(crate) fn up_to(&self, place: usize) -> Chain<'a> {
        let (last_owner, owners) = (Cell::new((0, None)), RefCell::new(None));
        Chain { len: place, last_owner, owners, ..self.clone() }
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
        let mut owners = self.owners.borrow_mut();
        let place = owners.get_or_insert(Owners::NONE).place_of(offset, || self.compare(owner));
        self.last_owner.set((offset, place));
        place
    }

    /// Position of the name that equals a name at another offset.
    fn compare(&self, owner: &Name<'_>) -> Option<usize> {
        let place = match self.len {
            1 => 0,
            _ => {
                let (hash, _) = digest(owner);
                self.digests[..self.len].iter().position(|&other| other == hash)?
            }
        };
        is_same(&self.name(place), owner).then_some(place)
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

    /// True if one of the names is equal to or below `ancestor`, a name of this message. Only as many ancestors are compared as a chain has
    /// names.
    pub fn is_below(&self, ancestor: &Name<'_>) -> bool {
        if self.len == 1 {
            return self.name(0).is_at_or_below(ancestor);
        }
        let mut owners = self.owners.borrow_mut();
        owners.get_or_insert(Owners::NONE).is_ancestor(ancestor.offset(), || {
            #[cfg(test)]
            WALKED.set(WALKED.get() + self.len);
            self.names().any(|on| on.is_at_or_below(ancestor))
        })
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

/// Hash of a name and its number of labels.
fn digest(name: &Name<'_>) -> (u64, usize) {
    #[cfg(test)]
    WALKED.set(WALKED.get() + 1);
    name.digest()
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

    /// Number of names that are hashed or compared by passes over the answer section like those of an answer.
    fn walked(chain: &Chain<'_>, message: &Message<'_>) -> usize {
        let before = WALKED.get();
        for _ in 0..8 {
            for record in message.records(Section::Answer) {
                let _ = (chain.keeps(&record), chain.ends_in(&record, Type::A), chain.leads_to(&record, 8));
            }
        }
        WALKED.get() - before
    }

    #[test]
    fn each_name_is_walked_once_wherever_owners_are_and_however_often_they_are_looked_up() {
        for owners in [1, 12] {
            let bytes = expensive_reply(Type::A, &[203, 0, 113, 66], 200, owners);
            let message = Message::parse(&bytes).unwrap();
            let before = WALKED.get();
            let chain = Chain::follow(&message);
            let kept = message.records(Section::Answer).filter(|record| chain.keeps(record)).count();
            let ends =
                message.records(Section::Answer).filter(|record| chain.ends_in(record, Type::A)).count();
            if owners == 1 {
                assert_eq!((chain.len(), chain.broken, kept, ends), (CHAIN, false, 216, 200));
            }
            // Following: the names of the chain are hashed once, and the end is compared with the owner of its CNAME record.
            assert!(WALKED.get() - before <= 2 * CHAIN + 2 * owners, "{}", WALKED.get() - before);
            assert_eq!(walked(&chain, &message), 0, "the passes find what the first one found out");
        }
    }

    #[test]
    fn a_message_of_too_many_owner_labels_is_not_followed() {
        let bytes = expensive_reply(Type::A, &[203, 0, 113, 66], usize::MAX, 8);
        let message = Message::parse(&bytes).unwrap();
        let before = WALKED.get();
        let chain = Chain::follow(&message);
        let kept = message.records(Section::Answer).filter(|record| chain.keeps(record)).count();
        let ends = message.records(Section::Answer).filter(|record| chain.ends_in(record, Type::A)).count();
        assert!(message.count(Section::Answer) > 3_000);
        // The records of the question's name: the one that holds the names in its RDATA, and the CNAME.
        assert_eq!((chain.len(), chain.broken, kept, ends), (1, true, 2, 0));
        assert_eq!(WALKED.get() - before, 0);
    }

    #[test]
    fn aliases_with_more_labels_than_an_honest_chain_has_are_not_followed() {
        // 60 CNAME records whose owners and targets are names of 126 labels at offsets of their own.
        let mut bytes = b"\0\0\x80\0\0\x01\0\x3d\0\0\0\0\x01a\0\0\x01\0\x01".to_vec();
        bytes.extend(b"\xc0\x0c\xff\0\0\x01\0\0\0\0\0\0");
        let start = bytes.len();
        let names: Vec<usize> = (0..60).map(|_| append_pointer_name(&mut bytes, b'b')).collect();
        let octets = (bytes.len() - start) as u16;
        bytes[start - 2..start].copy_from_slice(&octets.to_be_bytes());
        for name in names {
            bytes.extend(pointer(name));
            bytes.extend(b"\0\x05\0\x01\0\0\0\0\0\x02\xc0\x0c");
        }
        let message = Message::parse(&bytes).unwrap();
        let before = WALKED.get();
        let chain = Chain::follow(&message);
        assert_eq!((chain.len(), chain.broken), (1, true));
        assert!(WALKED.get() - before <= OWNER_LABELS / 126 + 3, "{}", WALKED.get() - before);
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
        let before = WALKED.get();
        assert_eq!(
            message.records(Section::Answer).filter(|record| chain.ends_in(record, Type::A)).count(),
            3_998
        );
        assert!(message.records(Section::Answer).all(|record| chain.keeps(&record)));
        // Its hash, and the comparison with the name that has that hash.
        assert_eq!(WALKED.get() - before, 2);
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
