//! Domain names (RFC 1035 sections 2.3, 3.1 and 4.1.4): names inside a well-formed message, possibly compressed
//! ([`Name`]), and uncompressed names as plain octets ("wire names": labels with their lengths, and the root octet).
//!
//! Letters are compared without case as in RFC 4343: ASCII only. Length octets are below 64 and pointer octets above
//! 191, so folding a whole name octet by octet never changes its structure.

use crate::header::HEADER;
use crate::limits::MAX_LABELS;
pub use crate::limits::{MAX_LABEL, MAX_NAME};

/// Bits that mark a compression pointer of two octets; both are set.
pub(crate) const POINTER: u8 = 0xc0;

/// Name inside a well-formed message, possibly compressed.
#[derive(Clone, Copy)]
pub struct Name<'a> {
    message: &'a [u8],
    at: usize,
}

impl<'a> Name<'a> {
    /// The name at `at` in a message whose names were checked.
    #[inline]
    pub(crate) fn new(message: &'a [u8], at: usize) -> Name<'a> {
        Name { message, at }
    }

    /// An uncompressed name outside any message. `None` unless all of `wire` is one name.
    #[inline]
    pub fn from_wire(wire: &'a [u8]) -> Option<Name<'a>> {
        (name_len(wire)? == wire.len()).then_some(Name { message: wire, at: 0 })
    }

    /// Position of the first label or the root octet in the message, after pointers. Two names of one message with
    /// the same offset are the same name.
    #[inline]
    pub fn offset(&self) -> usize {
        resolve(self.message, self.at)
    }

    /// True for the root.
    #[inline]
    pub fn is_root(&self) -> bool {
        self.message.get(self.offset()) == Some(&0)
    }

    /// Labels from left to right, without the root.
    #[inline]
    pub fn labels(&self) -> Labels<'a> {
        Labels { message: self.message, at: self.at }
    }

    /// True if the names are equal, ignoring letter case.
    pub fn eq_ignore_case(&self, other: &Name<'_>) -> bool {
        let same_message = core::ptr::eq(self.message, other.message);
        let (mut ours, mut theirs) = (self.labels(), other.labels());
        loop {
            // From a shared octet on, the names are identical.
            if same_message && ours.offset() == theirs.offset() {
                return true;
            }
            match (ours.next(), theirs.next()) {
                (None, None) => return true,
                (Some(a), Some(b)) if eq_ignore_case(a, b) => {}
                _ => return false,
            }
        }
    }

    /// True if the name equals the uncompressed name `wire`, ignoring letter case.
    #[inline]
    pub fn eq_wire(&self, wire: &[u8]) -> bool {
        self.stands_as(wire) || self.eq_wire_by_label(wire)
    }

    /// True if the name is stored in one piece and equals `wire`: octets that are equal up to a root octet are equal
    /// names. For names that are compressed further on, false says nothing.
    #[inline]
    pub fn stands_as(&self, wire: &[u8]) -> bool {
        let at = self.offset();
        self.message.get(at..at + wire.len()).is_some_and(|ours| eq_ignore_case(ours, wire))
    }

    /// Octets of the name in place, up to the root or its first pointer.
    #[inline]
    pub(crate) fn len_in_place(&self) -> usize {
        after_name(self.message, self.at).map_or(0, |end| end - self.at)
    }

    fn eq_wire_by_label(&self, mut wire: &[u8]) -> bool {
        for label in self.labels() {
            match split_label(wire) {
                Some((theirs, rest)) if eq_ignore_case(label, theirs) => wire = rest,
                _ => return false,
            }
        }
        wire == [0]
    }

    /// True if this is `ancestor` or a name below it.
    pub fn is_at_or_below(&self, ancestor: &Name<'_>) -> bool {
        // The owner of a zone's SOA record is nearly always a pointer into the question's name.
        if core::ptr::eq(self.message, ancestor.message) && self.passes_offset(ancestor.offset()) {
            return true;
        }
        let (depth, theirs) = (self.labels().count(), ancestor.labels().count());
        let Some(surplus) = depth.checked_sub(theirs) else { return false };
        let mut rest = self.labels();
        for _ in 0..surplus {
            rest.next();
        }
        Name { message: self.message, at: rest.at }.eq_ignore_case(ancestor)
    }

    /// True if one of the labels, or the root octet, is at this position of the message.
    fn passes_offset(&self, place: usize) -> bool {
        let mut at = self.offset();
        while at != place {
            match self.message.get(at) {
                None | Some(0) => return false,
                Some(&length) => at = resolve(self.message, at + 1 + usize::from(length)),
            }
        }
        true
    }

    /// Hash of the name without letter case, and its number of labels, in one walk. The hash has no key: equal names have equal
    /// hashes, and names with equal hashes have to be compared.
    pub fn digest(&self) -> (u64, usize) {
        let (mut hash, mut count) = (0, 0);
        for label in self.labels() {
            count += 1;
            let (chunks, rest) = label.as_chunks::<8>();
            for chunk in chunks {
                hash = mix(hash, fold_word(u64::from_le_bytes(*chunk)));
            }
            // The length of the label takes the octet that its rest never fills.
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            last[7] = label.len() as u8;
            hash = mix(hash, fold_word(u64::from_le_bytes(last)));
        }
        (hash, count)
    }

    /// Writes the name uncompressed, with its letter case, and returns its length with the root octet.
    #[inline]
    pub fn write(&self, wire: &mut [u8; MAX_NAME]) -> usize {
        let mut end = 0;
        for label in self.labels() {
            // The walk has limited the name to 255 octets, so this always fits.
            let Some(room) = wire.get_mut(end..end + 1 + label.len()) else { break };
            room[0] = label.len() as u8;
            room[1..].copy_from_slice(label);
            end += 1 + label.len();
        }
        if let Some(root) = wire.get_mut(end) {
            *root = 0;
        }
        end + 1
    }

    /// Expands the name and finds the positions of its labels.
    #[inline]
    pub(crate) fn expand(&self) -> Expanded {
        let mut expanded = Expanded { wire: [0; MAX_NAME], starts: [0; MAX_LABELS], labels: 0, length: 1 };
        for label in self.labels() {
            let at = expanded.length - 1;
            let Some(room) = expanded.wire.get_mut(at..at + 1 + label.len()) else { break };
            let Some(start) = expanded.starts.get_mut(expanded.labels) else { break };
            room[0] = label.len() as u8;
            room[1..].copy_from_slice(label);
            *start = at as u8;
            expanded.labels += 1;
            expanded.length += room.len();
        }
        expanded
    }
}

/// Uncompressed name, with the positions of its labels.
pub(crate) struct Expanded {
    wire: [u8; MAX_NAME],
    starts: [u8; MAX_LABELS],
    labels: usize,
    /// Length with the root octet.
    length: usize,
}

impl Expanded {
    /// Name in wire form.
    #[inline]
    pub fn wire(&self) -> &[u8] {
        self.wire.get(..self.length).unwrap_or_default()
    }

    /// Positions of the labels, from left to right, without the root.
    #[inline]
    pub fn starts(&self) -> &[u8] {
        self.starts.get(..self.labels).unwrap_or_default()
    }
}

/// Labels of a [`Name`], from left to right, without the root.
#[derive(Clone, Debug)]
pub struct Labels<'a> {
    message: &'a [u8],
    at: usize,
}

impl Labels<'_> {
    /// Position of the next label or the root octet in the message.
    #[inline]
    pub(crate) fn offset(&self) -> usize {
        resolve(self.message, self.at)
    }
}

impl<'a> Iterator for Labels<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.at = self.offset();
        let (label, _) = split_label(self.message.get(self.at..)?)?;
        self.at += 1 + label.len();
        Some(label)
    }
}

/// Follows pointers to a label or the root. The walk has checked that each leads backwards, so this ends.
#[inline]
fn resolve(message: &[u8], mut at: usize) -> usize {
    while let Some(POINTER..) = message.get(at)
        && let Some(target) = pointer(message, at)
    {
        at = target;
    }
    at
}

/// Target of the pointer at `at`; `None` if there is no pointer, or if its target lies in the header or not before
/// the pointer.
#[inline]
pub(crate) fn pointer(message: &[u8], at: usize) -> Option<usize> {
    let pair = message.get(at..at + 2)?;
    let target = usize::from(pair[0] & !POINTER) << 8 | usize::from(pair[1]);
    (pair[0] & POINTER == POINTER && (HEADER..at).contains(&target)).then_some(target)
}

/// End of a checked name in place: after the root octet or the first pointer.
#[inline]
pub(crate) fn after_name(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *message.get(at)? {
            0 => return Some(at + 1),
            POINTER.. => return Some(at + 2),
            length => at += 1 + usize::from(length),
        }
    }
}

/// First label of an uncompressed name, and the rest; `None` at the root or at the end of the octets.
#[inline]
fn split_label(wire: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = wire.split_first()?;
    if length == 0 { None } else { rest.split_at_checked(usize::from(length)) }
}

/// Length of the uncompressed name at the start of `bytes`, with its root octet; `None` if there is none.
#[inline]
pub fn name_len(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let length = *bytes.get(at)?;
        at += 1 + usize::from(length);
        if length == 0 {
            return (at <= MAX_NAME).then_some(at);
        }
        if length > MAX_LABEL || at >= MAX_NAME {
            return None;
        }
    }
}

/// Converts ASCII letters to lower case, in place. Safe for whole wire names: a length octet is no letter.
#[inline]
pub fn fold(bytes: &mut [u8]) {
    // Two chunks may overlap: a letter that is converted twice is converted once.
    if bytes.len() > 32 {
        bytes.as_chunks_mut::<16>().0.iter_mut().for_each(fold_chunk);
    } else if let Some(first) = bytes.first_chunk_mut() {
        fold_chunk(first);
    }
    if let Some(last) = bytes.last_chunk_mut() {
        return fold_chunk(last);
    }
    if let Some(first) = bytes.first_chunk_mut() {
        *first = fold_word(u64::from_ne_bytes(*first)).to_ne_bytes();
    }
    match bytes.last_chunk_mut() {
        Some(last) => *last = fold_word(u64::from_ne_bytes(*last)).to_ne_bytes(),
        None => bytes.make_ascii_lowercase(),
    }
}

/// Converts ASCII letters to lower case: one vector instruction a step where there are such.
#[inline]
fn fold_chunk(chunk: &mut [u8; 16]) {
    for octet in chunk {
        *octet |= u8::from(octet.wrapping_sub(b'A') < 26) << 5;
    }
}

/// True if both have the same octets, ignoring the case of ASCII letters. Wire names are then the same name.
#[inline]
pub fn eq_ignore_case(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let (a_chunks, _) = a.as_chunks::<16>();
    let (b_chunks, _) = b.as_chunks::<16>();
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        if !eq_chunk(a, b) {
            return false;
        }
    }
    // The remaining octets are covered by the last 16, 8 or 4 octets, which may overlap the compared ones.
    if let (Some(a), Some(b)) = (a.last_chunk(), b.last_chunk()) {
        return eq_chunk(a, b);
    }
    if let (Some(a8), Some(b8), Some(a), Some(b)) =
        (a.first_chunk(), b.first_chunk(), a.last_chunk(), b.last_chunk())
    {
        return eq_word(u64::from_ne_bytes(*a8), u64::from_ne_bytes(*b8))
            && eq_word(u64::from_ne_bytes(*a), u64::from_ne_bytes(*b));
    }
    if let (Some(a4), Some(b4), Some(a), Some(b)) =
        (a.first_chunk(), b.first_chunk(), a.last_chunk(), b.last_chunk())
    {
        return eq_word(pair(*a4, *a), pair(*b4, *b));
    }
    a.iter().zip(b).all(|(a, b)| a.eq_ignore_ascii_case(b))
}

/// True if sixteen octets are equal. In most comparisons they are equal to the letter, which takes one vector instruction.
#[inline]
fn eq_chunk(a: &[u8; 16], b: &[u8; 16]) -> bool {
    let (a, b) = (u128::from_ne_bytes(*a), u128::from_ne_bytes(*b));
    a == b || eq_word(a as u64, b as u64) && eq_word((a >> 64) as u64, (b >> 64) as u64)
}

#[inline]
fn pair(a: [u8; 4], b: [u8; 4]) -> u64 {
    u64::from(u32::from_ne_bytes(a)) << 32 | u64::from(u32::from_ne_bytes(b))
}

/// Adds a word to a hash.
#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    // Multiplication by an odd number moves differences upwards, the shift moves them down again.
    let product = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ product >> 29
}

#[inline]
fn eq_word(a: u64, b: u64) -> bool {
    a == b || fold_word(a) == fold_word(b)
}

/// Folds eight octets at once: bit 7 of each octet tells, by carries that cannot leave the octet, if it is in
/// `A..=Z`.
#[inline]
fn fold_word(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let low = word & (0x7f * ONES);
    let from_a = low + (0x80 - b'A' as u64) * ONES;
    let past_z = low + (0x7f - b'Z' as u64) * ONES;
    let capital = (from_a ^ past_z) & !word & (0x80 * ONES);
    word | capital >> 2
}

/// True if the uncompressed name `name` is `ancestor` or below it, ignoring letter case.
#[inline]
pub fn is_at_or_below(name: &[u8], ancestor: &[u8]) -> bool {
    let mut rest = name;
    while rest.len() > ancestor.len() {
        match split_label(rest) {
            Some((_, next)) => rest = next,
            None => return false,
        }
    }
    eq_ignore_case(rest, ancestor)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    /// Twelve octets of header, then at 12 `www.Example`, at 25 a pointer to `Example`, at 27 `mail` and a pointer to
    /// that pointer.
    const MESSAGE: &[u8] = b"\0\0\0\0\0\0\0\0\0\0\0\0\x03www\x07Example\0\xc0\x10\x04mail\xc0\x19";

    fn at(position: usize) -> Name<'static> {
        Name::new(MESSAGE, position)
    }

    #[test]
    fn pointers_are_followed_to_the_label_they_mean() {
        assert_eq!((at(12).offset(), at(25).offset(), at(27).offset(), at(32).offset()), (12, 16, 27, 16));
        assert_eq!(at(27).labels().collect::<Vec<_>>(), [&b"mail"[..], &b"Example"[..]]);
        let mut wire = [0; MAX_NAME];
        assert_eq!(at(27).write(&mut wire), 14);
        assert_eq!(&wire[..14], b"\x04mail\x07Example\0");
        assert!(at(24).is_root() && !at(25).is_root());
    }

    #[test]
    fn expanding_tells_where_the_labels_begin() {
        let expanded = at(27).expand();
        assert_eq!((expanded.wire(), expanded.starts()), (&b"\x04mail\x07Example\0"[..], &[0, 5][..]));
        assert_eq!((at(24).expand().wire(), at(24).expand().starts()), (&b"\0"[..], &b""[..]));
    }

    #[test]
    fn names_are_equal_whatever_their_case_and_compression() {
        assert!(at(16).eq_ignore_case(&at(25)) && at(25).eq_wire(b"\x07eXAMPLE\0"));
        let other = Name::from_wire(b"\x04MAIL\x07example\0").unwrap();
        assert!(at(27).eq_ignore_case(&other) && other.eq_ignore_case(&at(27)));
        assert!(at(27).eq_wire(b"\x04MAIL\x07example\0"));
        assert!(!at(12).eq_ignore_case(&other) && !at(25).eq_ignore_case(&at(24)));
        assert!(!at(27).eq_wire(b"\x04mail\0") && !at(27).eq_wire(b"\x04mail\x07Example\x01a\0"));
    }

    #[test]
    fn equal_names_have_equal_digests_and_the_labels_are_counted() {
        let digest = |wire: &[u8]| Name::from_wire(wire).unwrap().digest();
        assert_eq!((at(27).digest(), at(24).digest().1), (digest(b"\x04MAIL\x07exAmple\0"), 0));
        assert_eq!((at(12).digest().1, at(27).digest().1), (2, 2));
        // Labels that are cut at other places, and those that differ behind the eighth octet.
        let names: [&[u8]; 6] = [
            b"\x02ab\x01c\0",
            b"\x01a\x02bc\0",
            b"\x03abc\0",
            b"\x09abcdefghi\0",
            b"\x09abcdefghj\0",
            b"\x08abcdefgh\x01i\0",
        ];
        for (place, name) in names.iter().enumerate() {
            assert!(names[..place].iter().all(|other| digest(other).0 != digest(name).0), "{place}");
        }
    }

    #[test]
    fn a_name_is_below_its_own_suffixes_and_nothing_else() {
        for ancestor in [at(27), at(16), at(24)] {
            assert!(at(27).is_at_or_below(&ancestor));
        }
        assert!(!at(16).is_at_or_below(&at(27)) && !at(12).is_at_or_below(&at(27)));
        // An equal name at another position of the message, or in another message, counts as well.
        let twice = b"\0\0\0\0\0\0\0\0\0\0\0\0\x01a\x01b\0\x01B\0";
        let (longer, other) = (Name::new(twice, 12), Name::new(twice, 17));
        assert!(longer.is_at_or_below(&other) && !other.is_at_or_below(&longer));
        let elsewhere = Name::from_wire(b"\x01B\0").unwrap();
        assert!(longer.is_at_or_below(&elsewhere) && !elsewhere.is_at_or_below(&longer));
        let wire = b"\x03www\x07example\0";
        assert!(
            is_at_or_below(wire, b"\x07EXAMPLE\0")
                && is_at_or_below(wire, wire)
                && is_at_or_below(wire, b"\0")
        );
        // A label that ends like the ancestor is not the ancestor.
        assert!(!is_at_or_below(b"\x0aotherxampl\0", b"\x05xampl\0"));
        assert!(!is_at_or_below(b"\x07example\0", wire) && !is_at_or_below(b"\0", b"\x07example\0"));
        assert!(!is_at_or_below(b"", b"\0"));
    }

    #[test]
    fn a_wire_name_ends_at_its_root_and_within_255_octets() {
        assert_eq!((name_len(b"\0"), name_len(b"\x01a\0more"), name_len(b"\x01a")), (Some(1), Some(3), None));
        assert_eq!(
            (name_len(b""), name_len(b"\xc0\x0c"), name_len(b"\x40\0"), name_len(b"\x01")),
            (None, None, None, None)
        );
        let mut longest = std::vec![1u8; 255];
        longest[254] = 0;
        assert_eq!(name_len(&longest), Some(255));
        // 256 octets: one label of two octets more would be needed, so lengthen the first.
        let mut longer = std::vec![2u8, 1];
        longer.extend(&longest[..]);
        longer[0] = 2;
        assert_eq!(name_len(&longer), None);
        assert!(Name::from_wire(&longest).is_some() && Name::from_wire(b"\0\0").is_none());
    }

    #[test]
    fn folding_changes_capitals_and_only_those() {
        let mut all: Vec<u8> = (0..=255).collect();
        fold(&mut all);
        for (octet, folded) in (0..=255u8).zip(&all) {
            assert_eq!(octet.to_ascii_lowercase(), *folded);
        }
    }

    #[test]
    fn comparing_by_words_agrees_with_comparing_by_octets() {
        for length in 0..40 {
            for position in 0..length {
                for changed in 0..=255 {
                    let a = std::vec![b'k'; length];
                    let mut b = a.clone();
                    b[position] = changed;
                    assert_eq!(
                        eq_ignore_case(&a, &b),
                        a.eq_ignore_ascii_case(&b),
                        "{length} {position} {changed}"
                    );
                }
            }
        }
        assert!(!eq_ignore_case(b"ab", b"abc"));
    }
}
