//! Names in the order and form of DNSSEC (RFC 4034 sections 6.1 and 6.2), as uncompressed wire names.

use core::cmp::Ordering;
use wire::{MAX_NAME, Name};

/// Labels of the longest name.
const MAX_LABELS: usize = 127;

/// Uncompressed name in lower case.
#[derive(Clone, Copy)]
pub struct LowerName {
    octets: [u8; MAX_NAME],
    length: u8,
}

impl LowerName {
    /// The root.
    pub const ROOT: LowerName = LowerName { octets: [0; MAX_NAME], length: 1 };

    /// Name of a message in lower case.
    #[inline]
    pub fn of(name: &Name<'_>) -> LowerName {
        let mut octets = [0; MAX_NAME];
        let length = name.write(&mut octets).min(MAX_NAME);
        wire::fold(&mut octets[..length]);
        LowerName { octets, length: length as u8 }
    }

    /// Wire name in lower case; `None` unless all octets are one name.
    pub fn from_wire(octets: &[u8]) -> Option<LowerName> {
        Name::from_wire(octets).map(|name| LowerName::of(&name))
    }

    /// Wildcard directly below a name (RFC 4592 section 2.1.1); `None` if that name would be too long.
    pub fn wildcard_of(parent: &[u8]) -> Option<LowerName> {
        let mut octets = [0; MAX_NAME];
        octets[..2].copy_from_slice(b"\x01*");
        octets.get_mut(2..2 + parent.len())?.copy_from_slice(parent);
        LowerName::from_wire(octets.get(..2 + parent.len())?)
    }

    /// Last labels of the name: a name of exactly this number of labels. `None` if it has fewer.
    pub fn suffix(&self, labels: usize) -> Option<LowerName> {
        suffix(self.as_wire(), labels).and_then(LowerName::from_wire)
    }

    /// Name without its first label; `None` for the root.
    pub fn parent(&self) -> Option<LowerName> {
        parent(self.as_wire()).and_then(LowerName::from_wire)
    }

    /// Octets of the name.
    #[inline]
    pub fn as_wire(&self) -> &[u8] {
        &self.octets[..usize::from(self.length)]
    }
}

impl core::fmt::Debug for LowerName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}", self.as_wire().escape_ascii())
    }
}

impl PartialEq for LowerName {
    fn eq(&self, other: &LowerName) -> bool {
        self.as_wire() == other.as_wire()
    }
}

impl Eq for LowerName {}

/// Positions of the labels of a wire name, from left to right, without the root.
struct Starts {
    at: [u8; MAX_LABELS],
    count: usize,
}

impl Starts {
    #[inline]
    fn of(name: &[u8]) -> Starts {
        let mut starts = Starts { at: [0; MAX_LABELS], count: 0 };
        let mut at = 0;
        while let Some(&length @ 1..) = name.get(at)
            && let Some(start) = starts.at.get_mut(starts.count)
        {
            *start = at as u8;
            starts.count += 1;
            at += 1 + usize::from(length);
        }
        starts
    }

    /// Label by its number from the right, without its length octet.
    #[inline]
    fn nth_from_end<'a>(&self, name: &'a [u8], number: usize) -> Option<&'a [u8]> {
        let at = usize::from(self.at[self.count.checked_sub(number + 1)?]);
        name.get(at + 1..at + 1 + usize::from(*name.get(at)?))
    }
}

/// Number of labels of a wire name, without the root.
#[inline]
pub fn labels(name: &[u8]) -> usize {
    Starts::of(name).count
}

/// Last labels of a wire name: a name of exactly this number of labels. `None` if it has fewer.
#[inline]
pub fn suffix(name: &[u8], labels: usize) -> Option<&[u8]> {
    let starts = Starts::of(name);
    match starts.count.checked_sub(labels)? {
        skipped if skipped == starts.count => name.get(name.len().checked_sub(1)?..),
        skipped => name.get(usize::from(starts.at[skipped])..),
    }
}

/// Name without its first label; `None` for the root.
#[inline]
pub fn parent(name: &[u8]) -> Option<&[u8]> {
    match name.first()? {
        0 => None,
        length => name.get(1 + usize::from(*length)..),
    }
}

/// True if the first label is an asterisk (RFC 4592 section 2.1.1).
#[inline]
pub fn is_wildcard(name: &[u8]) -> bool {
    name.starts_with(b"\x01*")
}

/// Order of two wire names, ignoring case (RFC 4034 section 6.1): by labels from the right, each as an octet string in lower case, in which
/// a string comes before its extensions.
pub fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let (ours, theirs) = (Starts::of(a), Starts::of(b));
    for number in 0.. {
        match (ours.nth_from_end(a, number), theirs.nth_from_end(b, number)) {
            (Some(x), Some(y)) => match compare_labels(x, y) {
                Ordering::Equal => {}
                order => return order,
            },
            (x, y) => return x.is_some().cmp(&y.is_some()),
        }
    }
    Ordering::Equal
}

fn compare_labels(a: &[u8], b: &[u8]) -> Ordering {
    let lower = |label: &[u8], at: usize| label.get(at).map(u8::to_ascii_lowercase);
    let differs = (0..a.len().min(b.len())).find(|&at| lower(a, at) != lower(b, at));
    differs.map_or(a.len().cmp(&b.len()), |at| lower(a, at).cmp(&lower(b, at)))
}

/// Octets that [`order_key`] writes at most: two for each octet of a label, and one for each label.
pub const ORDER_KEY: usize = 2 * MAX_NAME;

/// Writes octets that are ordered as the names are ([`compare`]): those of a name begin with those of each name above it. A label comes from
/// the right, in lower case, and ends with 0; in it, 0 and 1 become 1 and 1, and 1 and 2. Returns their number.
pub fn order_key(name: &[u8], key: &mut [u8; ORDER_KEY]) -> usize {
    let starts = Starts::of(name);
    let mut length = 0;
    let mut push = |octet| {
        if let Some(place) = key.get_mut(length) {
            *place = octet;
            length += 1;
        }
    };
    for label in (0..starts.count).filter_map(|number| starts.nth_from_end(name, number)) {
        for octet in label.iter().map(u8::to_ascii_lowercase) {
            if octet <= 1 {
                push(1);
            }
            push(octet + u8::from(octet <= 1));
        }
        push(0);
    }
    length
}

/// Number of labels that two wire names have in common from the right, ignoring case.
pub fn common_labels(a: &[u8], b: &[u8]) -> usize {
    let (ours, theirs) = (Starts::of(a), Starts::of(b));
    let is_common = |&number: &usize| match (ours.nth_from_end(a, number), theirs.nth_from_end(b, number)) {
        (Some(x), Some(y)) => wire::eq_ignore_case(x, y),
        _ => false,
    };
    (0..MAX_LABELS).take_while(is_common).count()
}

/// True if the name is below another, and not the same, ignoring case.
#[inline]
pub fn is_below(name: &[u8], ancestor: &[u8]) -> bool {
    name.len() > ancestor.len() && wire::is_at_or_below(name, ancestor)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    /// The list of RFC 4034 section 6.1, in its order.
    const SORTED: [&[u8]; 9] = [
        b"\x07example\0",
        b"\x01a\x07example\0",
        b"\x08yljkjljk\x01a\x07example\0",
        b"\x01Z\x01a\x07example\0",
        b"\x04zABC\x01a\x07EXAMPLE\0",
        b"\x01z\x07example\0",
        b"\x01\x01\x01z\x07example\0",
        b"\x01*\x01z\x07example\0",
        b"\x01\xc8\x01z\x07example\0",
    ];

    #[test]
    fn names_are_ordered_as_in_the_list_of_rfc_4034() {
        for (x, a) in SORTED.iter().enumerate() {
            for (y, b) in SORTED.iter().enumerate() {
                assert_eq!(compare(a, b), x.cmp(&y), "{} {}", a.escape_ascii(), b.escape_ascii());
            }
        }
        assert_eq!(compare(b"\x01A\0", b"\x01a\0"), Ordering::Equal);
        assert_eq!(compare(b"\0", b"\x01a\0"), Ordering::Less);
    }

    #[test]
    fn keys_are_ordered_as_the_names_and_begin_with_those_of_the_names_above() {
        let key = |name: &[u8]| {
            let mut key = [0; ORDER_KEY];
            let length = order_key(name, &mut key);
            key[..length].to_vec()
        };
        let odd: [&[u8]; 6] =
            [b"\0", b"\x01\0\0", b"\x02\0a\0", b"\x01\x01\0", b"\x02\x01\0\0", b"\x01\0\x01\x01\0"];
        let names: Vec<_> = SORTED.iter().chain(&odd).collect();
        for a in &names {
            for b in &names {
                assert_eq!(key(a).cmp(&key(b)), compare(a, b), "{} {}", a.escape_ascii(), b.escape_ascii());
                assert_eq!(key(a).starts_with(&key(b)), wire::is_at_or_below(a, b));
            }
        }
        let mut longest = [0; MAX_NAME];
        for label in longest[..254].chunks_mut(64) {
            label[0] = label.len() as u8 - 1;
        }
        assert_eq!(key(&longest).len(), 2 * 250 + 4);
    }

    #[test]
    fn a_suffix_has_the_number_of_labels_that_it_should_have() {
        let name = b"\x01a\x02bc\x01d\0";
        let suffixes: Vec<_> = (0..=4).map(|labels| suffix(name, labels)).collect();
        let expected: [Option<&[u8]>; 5] =
            [Some(b"\0"), Some(b"\x01d\0"), Some(b"\x02bc\x01d\0"), Some(name), None];
        assert_eq!(suffixes, expected);
        assert_eq!(
            (suffix(b"\0", 0), suffix(b"\0", 1), labels(b"\0"), labels(name)),
            (Some(&b"\0"[..]), None, 0, 3)
        );
        assert_eq!((parent(name), parent(b"\0")), (Some(&b"\x02bc\x01d\0"[..]), None));
    }

    #[test]
    fn common_labels_are_counted_from_the_right() {
        for (a, b, expected) in [
            (&b"\x01a\x01b\0"[..], &b"\x01c\x01B\0"[..], 1),
            (b"\x01a\x01b\0", b"\x01a\x01c\0", 0),
            (b"\x01a\0", b"\x01a\0", 1),
            (b"\0", b"\x01a\0", 0),
            (b"\x01x\x01a\x01b\0", b"\x01a\x01b\0", 2),
        ] {
            assert_eq!((common_labels(a, b), common_labels(b, a)), (expected, expected));
        }
        let mut longest = [1u8; 255];
        longest[254] = 0;
        assert_eq!((common_labels(&longest, &longest), labels(&longest)), (127, 127));
        assert_eq!(compare(&longest, &longest), Ordering::Equal);
    }

    #[test]
    fn a_wildcard_that_would_be_too_long_is_none() {
        let mut longest = [1u8; 255];
        longest[254] = 0;
        assert_eq!(LowerName::wildcard_of(b"\x01A\0").unwrap().as_wire(), b"\x01*\x01a\0");
        assert!(LowerName::wildcard_of(&longest).is_none());
        assert!(LowerName::wildcard_of(&longest[2..]).is_some());
        assert!(is_wildcard(b"\x01*\0") && !is_wildcard(b"\x02*a\0") && !is_wildcard(b"\0"));
        assert!(is_below(b"\x01a\x01b\0", b"\x01B\0") && !is_below(b"\x01b\0", b"\x01b\0"));
    }
}
