//! Finds which of many names a name is at or below, at the cost of a hash that grows label by label from the root.

/// Names in wire form, numbered from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NameTable {
    names: Vec<Box<[u8]>>,
    /// Open addressing: the number of a name plus one, and a part of its hash; 0 is empty.
    slots: Vec<(u32, u32)>,
    /// Labels of the longest name.
    deepest: usize,
}

const SEED: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a over the octets of a label, letters in lower case. The names are the operator's own, so nobody can choose them
/// to collide, and a question for another name costs a look at each slot of a run at most.
#[inline]
fn extend(hash: u64, label: &[u8]) -> u64 {
    label.iter().fold(hash, |hash, octet| {
        (hash ^ u64::from(octet.to_ascii_lowercase())).wrapping_mul(0x100_0000_01b3)
    })
}

/// A name and the names above it, down to the root.
pub(crate) fn suffixes(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    core::iter::successors(Some(name), |rest| {
        rest.first().filter(|&&length| length > 0).and_then(|&length| rest.get(1 + usize::from(length)..))
    })
}

impl NameTable {
    /// A table of names, no two of them the same.
    pub fn new(names: Vec<Box<[u8]>>) -> NameTable {
        let slots = vec![(0, 0); (2 * names.len()).next_power_of_two()];
        let mut made = NameTable { names, slots, deepest: 0 };
        for (number, name) in (1..).zip(&made.names) {
            let labels: Vec<&[u8]> = suffixes(name).collect();
            made.deepest = made.deepest.max(labels.len() - 1);
            let hash = labels[..labels.len() - 1]
                .iter()
                .rev()
                .fold(SEED, |hash, rest| extend(hash, &rest[..1 + usize::from(rest[0])]));
            let mut slot = slot(hash, made.slots.len());
            while made.slots[slot].0 != 0 {
                slot = (slot + 1) & (made.slots.len() - 1);
            }
            made.slots[slot] = (number, (hash >> 32) as u32);
        }
        made
    }

    /// Tells `each` the number of every name that `name` is at or below, from the root on, and how many octets of `name`
    /// stand before it: none for the name itself.
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
        for depth in 0..=labels.min(self.deepest) {
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

/// The low bits of FNV-1a are its weakest.
#[inline]
fn slot(hash: u64, slots: usize) -> usize {
    ((hash ^ hash >> 32) as usize) & (slots - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_finds_those_that_it_is_at_or_below() {
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
        NameTable::default().find(b"\x01a\0", |_, _| panic!("there is no name"));
    }
}
