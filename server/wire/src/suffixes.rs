//! Table for a builder's name compression: the position of each label that was written, and of the suffix that
//! follows it.
//!
//! A name is looked up from its right end. An entry stands for one label whose rest is another entry (or the root),
//! so the comparison of one label proves the whole suffix, and a name costs time linear in its octets. The table is
//! small and never grows: if the few slots for a label are taken, that name is compressed less.

use crate::limits::{MAX_PROBES, POINTER_REACH, SUFFIX_SLOTS};
use crate::name::{Expanded, Name, eq_ignore_case};

/// One label in the message.
#[derive(Clone, Copy)]
struct Slot {
    /// Position of the label; 0 for an empty slot.
    at: u16,
    /// Position of the next label to the right; 0 for the root.
    rest: u16,
}

/// Longest suffix of a name that the message already has.
#[derive(Clone, Copy)]
pub(crate) struct KnownSuffix {
    /// Octets of the name before the suffix.
    pub distance: usize,
    /// Number of labels before the suffix.
    pub labels: usize,
    /// Position of the suffix; 0 if only the root was found.
    pub at: usize,
}

/// Labels of a message under construction.
pub(crate) struct SuffixTable {
    /// `None` until the question's name is added: most answers need no table.
    slots: Option<[Slot; SUFFIX_SLOTS]>,
}

impl SuffixTable {
    #[inline]
    pub fn new() -> SuffixTable {
        SuffixTable { slots: None }
    }

    /// Adds the question's name before the first search. Many answers never search.
    #[inline]
    pub fn add_question(&mut self, qname: Name<'_>, at: usize) {
        if self.slots.is_none() {
            self.slots = Some([Slot { at: 0, rest: 0 }; SUFFIX_SLOTS]);
            let qname = qname.expand();
            let whole = KnownSuffix { distance: qname.wire().len() - 1, labels: qname.starts().len(), at: 0 };
            self.add(&qname, whole, at);
        }
    }

    /// Finds the longest known suffix of `name` in `message`.
    pub fn find(&self, message: &[u8], name: &Expanded) -> KnownSuffix {
        let (wire, starts) = (name.wire(), name.starts());
        let mut found = KnownSuffix { distance: wire.len() - 1, labels: starts.len(), at: 0 };
        for (labels, &start) in starts.iter().enumerate().rev() {
            let start = usize::from(start);
            let label = &wire[start..found.distance];
            let Some(at) = self.label(message, label, found.at) else { break };
            found = KnownSuffix { distance: start, labels, at };
        }
        found
    }

    /// Adds a name that was written at `start`: its labels before the suffix that was `found`.
    pub fn add(&mut self, name: &Expanded, found: KnownSuffix, start: usize) {
        let Some(slots) = &mut self.slots else { return };
        let (mut end, mut rest) = (found.distance, found.at);
        for &distance in name.starts()[..found.labels].iter().rev() {
            let distance = usize::from(distance);
            let at = start + distance;
            if at >= POINTER_REACH {
                // Labels to the left may be in reach of a pointer, but the labels that follow them are not.
                return;
            }
            let label = &name.wire()[distance..end];
            if let Some(free) = slots_of(label, rest).find(|&place| slots[place].at == 0) {
                slots[free] = Slot { at: at as u16, rest: rest as u16 };
            }
            (end, rest) = (distance, at);
        }
    }

    /// Removes all labels from position `end` on.
    pub fn remove_from(&mut self, end: usize) {
        for slot in self.slots.iter_mut().flatten() {
            if usize::from(slot.at) >= end {
                slot.at = 0;
            }
        }
    }

    /// Position of a label, with its length octet, before this rest.
    fn label(&self, message: &[u8], label: &[u8], rest: usize) -> Option<usize> {
        let slots = self.slots.as_ref()?;
        slots_of(label, rest).map(|place| slots[place]).find_map(|slot| {
            let at = usize::from(slot.at);
            let same = at != 0
                && usize::from(slot.rest) == rest
                && message.get(at..at + label.len()).is_some_and(|there| eq_ignore_case(there, label));
            same.then_some(at)
        })
    }
}

/// Slots for a label: its hash, without letter case, and the next few slots.
#[inline]
fn slots_of(label: &[u8], rest: usize) -> impl Iterator<Item = usize> + use<> {
    // 2^64 divided by the golden ratio; multiplication carries every octet into the highest bits.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    const SMALL: u64 = 0x2020_2020_2020_2020;
    let (words, octets) = label.as_chunks::<8>();
    let mut hash = rest as u64;
    for word in words {
        hash = (hash ^ (u64::from_le_bytes(*word) | SMALL)).wrapping_mul(SPREAD).rotate_left(29);
    }
    let tail = octets.iter().fold(0, |tail, octet| tail << 8 | u64::from(octet | 0x20));
    let start = ((hash ^ tail).wrapping_mul(SPREAD) >> (u64::BITS - SUFFIX_SLOTS.ilog2())) as usize;
    (0..MAX_PROBES).map(move |step| (start + step) % SUFFIX_SLOTS)
}
