//! Table of domain names for closest-encloser lookups: it finds all stored names that a name is equal to or below. A lookup
//! hashes the name once, label by label from the root, and looks up each suffix on the way.

use crate::base::name_hash::{fold_case, fold_multiply};

/// Names in wire form, numbered from 0 in the order given to [`NameTable::new`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NameTable {
    names: Vec<Box<[u8]>>,
    /// Hash table with open addressing. A slot holds the number of a name plus one (0: empty) and the upper half of its hash.
    slots: Vec<(u32, u32)>,
    /// Number of the root plus one, if it is one of the names (0: it is not). It has no slot.
    root: u32,
    /// Most labels that a name has.
    max_labels: usize,
}

/// State of the hash before the first label: the offset basis of FNV-1a. Any number with many bits serves.
const SEED: u64 = 0xcbf2_9ce4_8422_2325;

/// Odd multiplier of the hash: the fractional part of the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Extends a hash by the label at `start` of a name, which ends at `end`, letters in lower case, eight octets at a time.
///
/// The hash needs no key: the operator configures the names, so an attacker cannot make them collide. A query for another name
/// looks at most at each slot of one run of used slots.
#[inline(always)]
fn extend(mut hash: u64, name: &[u8], start: usize, end: usize) -> u64 {
    let mut at = start;
    while at < end {
        hash = fold_multiply(hash ^ fold_case(word(name, at, end)), MULTIPLIER);
        at += 8;
    }
    hash
}

/// Octets `at..end` of a name, at most eight, as a number; the octets that are missing are 0. A load of eight octets and a shift take
/// less time than a loop over the octets.
#[inline]
fn word(name: &[u8], at: usize, end: usize) -> u64 {
    let word = match (name[at..].first_chunk(), name.last_chunk()) {
        (Some(next), _) => u64::from_le_bytes(*next),
        // Fewer than eight octets are left in the name, so its last eight octets begin before `at`.
        (None, Some(last)) => u64::from_le_bytes(*last) >> (8 * (8 - (name.len() - at))),
        (None, None) => name[at..].iter().rev().fold(0, |word, &octet| word << 8 | u64::from(octet)),
    };
    let octets = end - at;
    if octets < 8 { word & !(u64::MAX << (8 * octets)) } else { word }
}

/// Iterates over a name and its ancestors, up to the root.
pub(crate) fn suffixes(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    core::iter::successors(Some(name), |rest| {
        rest.first().filter(|&&length| length > 0).and_then(|&length| rest.get(1 + usize::from(length)..))
    })
}

impl NameTable {
    /// Builds the table. All names must be different.
    pub fn new(names: Vec<Box<[u8]>>) -> NameTable {
        if names.is_empty() {
            return NameTable::default();
        }
        let slots = vec![(0, 0); (2 * names.len()).next_power_of_two()];
        let mut table = NameTable { names, slots, root: 0, max_labels: 0 };
        for (number, name) in (1..).zip(&table.names) {
            if **name == [0] {
                table.root = number;
                continue;
            }
            // Starts of the labels, and of the root at the end.
            let starts: Vec<usize> = suffixes(name).map(|rest| name.len() - rest.len()).collect();
            table.max_labels = table.max_labels.max(starts.len() - 1);
            let hash =
                starts.windows(2).rev().fold(SEED, |hash, label| extend(hash, name, label[0], label[1]));
            let mut slot = slot(hash, table.slots.len());
            while table.slots[slot].0 != 0 {
                slot = (slot + 1) & (table.slots.len() - 1);
            }
            table.slots[slot] = (number, (hash >> 32) as u32);
        }
        table
    }

    /// The stored name with this number, in wire form.
    pub fn name(&self, number: usize) -> Option<&[u8]> {
        self.names.get(number).map(|name| &name[..])
    }

    /// Calls `each` for every stored name that `name` is equal to or below, beginning with the one nearest the root. The
    /// arguments are the number of the stored name, and the octets of `name` before it: 0 if the names are equal.
    #[inline]
    pub fn find(&self, name: &[u8], mut each: impl FnMut(usize, usize)) {
        if self.slots.is_empty() {
            return;
        }
        let (mut starts, mut labels, mut at) = ([0u8; 128], 0, 0);
        while name[at] != 0 {
            starts[labels] = at as u8;
            labels += 1;
            at += 1 + usize::from(name[at]);
        }
        if let Some(root) = self.root.checked_sub(1) {
            each(root as usize, at);
        }
        let mut hash = SEED;
        let mut end = at;
        for depth in 1..=labels.min(self.max_labels) {
            let start = usize::from(starts[labels - depth]);
            hash = extend(hash, name, start, end);
            end = start;
            let mut slot = slot(hash, self.slots.len());
            while let (number @ 1.., check) = self.slots[slot] {
                let number = number as usize - 1;
                if check == (hash >> 32) as u32 && wire::eq_ignore_case(&self.names[number], &name[end..]) {
                    each(number, end);
                    break;
                }
                slot = (slot + 1) & (self.slots.len() - 1);
            }
        }
    }
}

/// First slot for a hash. It mixes in the upper half, the rest of which is compared in the slot.
#[inline]
fn slot(hash: u64, slots: usize) -> usize {
    ((hash ^ hash >> 32) as usize) & (slots - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lookup_finds_the_stored_names_that_a_name_is_equal_to_or_below() {
        let names: [&[u8]; 4] = [b"\x07example\0", b"\x03www\x07example\0", b"\0", b"\x01b\x01a\0"];
        let table = NameTable::new(names.iter().map(|&name| name.into()).collect());
        let found = |name: &[u8]| {
            let mut found = Vec::new();
            table.find(name, |number, before| found.push((number, before)));
            found
        };
        assert_eq!(found(b"\x01x\x03WWW\x07eXample\0"), [(2, 14), (0, 6), (1, 2)]);
        assert_eq!(found(b"\x01b\x01a\0"), [(2, 4), (3, 0)]);
        assert_eq!(found(b"\x01a\0"), [(2, 2)]);
        assert_eq!(found(b"\x08xexample\0"), [(2, 9)]);
        NameTable::default().find(b"\x01a\0", |_, _| panic!("an empty table finds no name"));
    }

    #[test]
    fn labels_of_every_length_are_found_in_any_letter_case() {
        // The words of the hash end before, in and behind the last eight octets of a name.
        for length in 1..=63u8 {
            for parent in [&b"\0"[..], b"\x01a\0", b"\x04test\0", b"\x0aabcdefghij\0"] {
                let name = |letter: u8| [&[length], &vec![letter; length.into()][..], parent].concat();
                let table = NameTable::new(vec![name(b'x').into()]);
                let found = |name: &[u8]| {
                    let mut found = None;
                    table.find(name, |_, before| found = Some(before));
                    found
                };
                assert_eq!(found(&name(b'X')), Some(0), "{length}");
                assert_eq!(found(&[b"\x03www", &name(b'X')[..]].concat()), Some(4), "{length}");
                assert_eq!(found(&name(b'y')), None, "{length}");
            }
        }
    }
}
