//! Table of domain names for closest-encloser lookups: it finds all stored names that a name is equal to or below. A lookup
//! hashes the name once, label by label from the root, and looks up each suffix on the way.

/// Names in wire form, numbered from 0 in the order given to [`NameTable::new`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NameTable {
    names: Vec<Box<[u8]>>,
    /// Hash table with open addressing. A slot holds the number of a name plus one (0: empty) and the upper half of its hash.
    slots: Vec<(u32, u32)>,
    /// Most labels that a name has.
    max_labels: usize,
}

/// Offset basis of FNV-1a with 64 bits.
const SEED: u64 = 0xcbf2_9ce4_8422_2325;

/// Extends an FNV-1a hash by the octets of a label, letters in lower case.
///
/// The hash needs no key: the operator configures the names, so an attacker cannot make them collide. A query for another name
/// looks at most at each slot of one run of used slots.
#[inline]
fn extend(hash: u64, label: &[u8]) -> u64 {
    label.iter().fold(hash, |hash, octet| {
        (hash ^ u64::from(octet.to_ascii_lowercase())).wrapping_mul(0x100_0000_01b3)
    })
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
        let mut table = NameTable { names, slots, max_labels: 0 };
        for (number, name) in (1..).zip(&table.names) {
            let labels: Vec<&[u8]> = suffixes(name).collect();
            table.max_labels = table.max_labels.max(labels.len() - 1);
            let hash = labels[..labels.len() - 1]
                .iter()
                .rev()
                .fold(SEED, |hash, rest| extend(hash, &rest[..1 + usize::from(rest[0])]));
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
        let mut hash = SEED;
        let mut end = at;
        for depth in 0..=labels.min(self.max_labels) {
            if depth > 0 {
                let start = usize::from(starts[labels - depth]);
                hash = extend(hash, &name[start..end]);
                end = start;
            }
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

/// First slot for a hash. It mixes in the upper half, because the low bits of FNV-1a are its weakest.
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
}
