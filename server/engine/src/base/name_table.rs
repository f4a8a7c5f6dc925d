//! Table of domain names for closest-encloser lookups: it finds all stored names that a name is equal to or below. A lookup
//! hashes the name once, label by label from the root, and looks up each suffix on the way.

use crate::base::name_hash::{HashKey, fold_case, fold_multiply};
use std::hash::{BuildHasher, RandomState};

/// Names in wire form, numbered from 0 in the order given to [`NameTable::new`].
///
/// The hash has a random key. Names of a policy zone come from a feed, and a feed lists names that attackers register: without a key they
/// could choose names that fill one run of slots, which every lookup and every insertion walks.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameTable {
    /// State of the hash before the first label, and its odd multiplier.
    key: [u64; 2],
    names: Vec<Box<[u8]>>,
    /// Hash table with open addressing. A slot holds the number of a name plus one (0: empty) and the upper half of its hash.
    slots: Vec<(u32, u32)>,
    /// Number of the root plus one, if it is one of the names (0: it is not). It has no slot.
    root: u32,
    /// Most labels that a name has.
    max_labels: usize,
}

/// A key of its own for each table, from the random numbers that the standard library has for its tables.
fn random_key() -> HashKey {
    let random = RandomState::new();
    HashKey([random.hash_one(0), random.hash_one(1)])
}

/// Extends a hash by the label at `start` of a name, which ends at `end`, letters in lower case, eight octets at a time.
///
/// A query for another name looks at most at each slot of one run of used slots.
#[inline(always)]
fn extend(mut hash: u64, multiplier: u64, name: &[u8], start: usize, end: usize) -> u64 {
    let mut at = start;
    while at < end {
        hash = fold_multiply(hash ^ fold_case(word(name, at, end)), multiplier);
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
        NameTable::with_key(names, random_key())
    }

    /// Builds the table with a key for its hash.
    fn with_key(names: Vec<Box<[u8]>>, HashKey([seed, multiplier]): HashKey) -> NameTable {
        if names.is_empty() {
            return NameTable::default();
        }
        let slots = vec![(0, 0); (2 * names.len()).next_power_of_two()];
        let mut table = NameTable { key: [seed, multiplier | 1], names, slots, root: 0, max_labels: 0 };
        let [seed, multiplier] = table.key;
        for (number, name) in (1..).zip(&table.names) {
            if **name == [0] {
                table.root = number;
                continue;
            }
            // Starts of the labels, and of the root at the end.
            let starts: Vec<usize> = suffixes(name).map(|rest| name.len() - rest.len()).collect();
            table.max_labels = table.max_labels.max(starts.len() - 1);
            let labels = starts.windows(2).rev();
            let hash = labels.fold(seed, |hash, label| extend(hash, multiplier, name, label[0], label[1]));
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
        let [mut hash, multiplier] = self.key;
        let mut end = at;
        for depth in 1..=labels.min(self.max_labels) {
            let start = usize::from(starts[labels - depth]);
            hash = extend(hash, multiplier, name, start, end);
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

/// Tables with the same names are equal, whatever their keys are.
impl PartialEq for NameTable {
    fn eq(&self, other: &NameTable) -> bool {
        self.names == other.names
    }
}

impl Eq for NameTable {}

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

    /// Longest run of used slots.
    fn longest_run(table: &NameTable) -> usize {
        table.slots.split(|slot| slot.0 == 0).map(<[_]>::len).max().unwrap_or(0)
    }

    #[test]
    fn names_that_share_a_run_of_slots_spread_under_another_key() {
        // An attacker who knew one key chose 5,000 names below one domain for one 256th of the slots.
        let known = HashKey([0xcbf2_9ce4_8422_2325, 0x9e37_79b9_7f4a_7c15]);
        let hash = |name: &[u8]| {
            let parent = extend(known.0[0], known.0[1], name, 9, 14);
            extend(parent, known.0[1], name, 0, 9)
        };
        let names = (0..2_000_000u32).map(|number| format!("\x08{number:08x}\x04test\0").into_bytes());
        let chosen: Vec<Box<[u8]>> = names
            .filter(|name| slot(hash(name), 16_384) < 16_384 / 256)
            .take(5_000)
            .map(Vec::into_boxed_slice)
            .collect();
        assert_eq!(chosen.len(), 5_000);
        assert!(longest_run(&NameTable::with_key(chosen.clone(), known)) >= 5_000);
        let run = longest_run(&NameTable::new(chosen.clone()));
        // With three of ten slots in use, the probability of a run of 64 is below one in a billion.
        assert!(run < 64, "{run}");
        let (one, other) = (NameTable::new(chosen.clone()), NameTable::new(chosen));
        assert_ne!(one.key, other.key);
        assert_eq!(one, other);
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
