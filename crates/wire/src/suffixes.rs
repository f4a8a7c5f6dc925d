//! The memory of a builder's compression: which label was written where, and what follows it.
//!
//! A name is looked up from its right end. An entry stands for one label whose rest is another entry (or the root), so
//! one comparison of one label proves the whole suffix, and a name costs time linear in its octets. The table is small and
//! never grows: when the few places for a label are taken, that name is compressed less.

use crate::limits::{PROBES, REACH, SLOTS};
use crate::name::{Expanded, Name, eq_ignore_case};

/// One label in the message.
#[derive(Clone, Copy)]
struct Slot {
    /// Where the label stands; 0 for an empty slot.
    at: u16,
    /// Where the next label to the right stands; 0 for the root.
    rest: u16,
}

/// The longest suffix of a name that the message holds already.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    /// How many octets of the name stand before the suffix.
    pub distance: usize,
    /// How many labels these are.
    pub labels: usize,
    /// Where the suffix stands; 0 when only the root was found.
    pub at: usize,
}

/// The labels of a message under construction.
pub(crate) struct Suffixes {
    /// Nothing until the question's name is learned: most answers need none.
    slots: Option<[Slot; SLOTS]>,
}

impl Suffixes {
    #[inline]
    pub fn new() -> Suffixes {
        Suffixes { slots: None }
    }

    /// Learns the question's name before the first search. Many answers never search.
    #[inline]
    pub fn seed(&mut self, qname: Name<'_>, at: usize) {
        if self.slots.is_none() {
            self.slots = Some([Slot { at: 0, rest: 0 }; SLOTS]);
            let qname = qname.expand();
            let whole = Found { distance: qname.wire().len() - 1, labels: qname.starts().len(), at: 0 };
            self.learn(&qname, whole, at);
        }
    }

    /// Finds the longest known suffix of `name` in `message`.
    pub fn find(&self, message: &[u8], name: &Expanded) -> Found {
        let (wire, starts) = (name.wire(), name.starts());
        let mut found = Found { distance: wire.len() - 1, labels: starts.len(), at: 0 };
        for (labels, &start) in starts.iter().enumerate().rev() {
            let start = usize::from(start);
            let label = &wire[start..found.distance];
            let Some(at) = self.label(message, label, found.at) else { break };
            found = Found { distance: start, labels, at };
        }
        found
    }

    /// Learns a name that was written at `start`: its labels before the suffix that was `found`.
    pub fn learn(&mut self, name: &Expanded, found: Found, start: usize) {
        let Some(slots) = &mut self.slots else { return };
        let (mut end, mut rest) = (found.distance, found.at);
        for &distance in name.starts()[..found.labels].iter().rev() {
            let distance = usize::from(distance);
            let at = start + distance;
            if at >= REACH {
                // Labels to the left may be in reach, but what follows them is not.
                return;
            }
            let label = &name.wire()[distance..end];
            if let Some(free) = places(label, rest).find(|&place| slots[place].at == 0) {
                slots[free] = Slot { at: at as u16, rest: rest as u16 };
            }
            (end, rest) = (distance, at);
        }
    }

    /// Forgets all labels from `end` on.
    pub fn forget_from(&mut self, end: usize) {
        for slot in self.slots.iter_mut().flatten() {
            if usize::from(slot.at) >= end {
                slot.at = 0;
            }
        }
    }

    /// Where a label with its length octet stands before this rest.
    fn label(&self, message: &[u8], label: &[u8], rest: usize) -> Option<usize> {
        let slots = self.slots.as_ref()?;
        places(label, rest).map(|place| slots[place]).find_map(|slot| {
            let at = usize::from(slot.at);
            let same = at != 0
                && usize::from(slot.rest) == rest
                && message.get(at..at + label.len()).is_some_and(|there| eq_ignore_case(there, label));
            same.then_some(at)
        })
    }
}

/// The places of a label in the table: by a hash of its octets, capitals folded, and the few places behind.
#[inline]
fn places(label: &[u8], rest: usize) -> impl Iterator<Item = usize> + use<> {
    // 2^64 divided by the golden ratio; multiplication carries every octet into the highest bits.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    const SMALL: u64 = 0x2020_2020_2020_2020;
    let (words, octets) = label.as_chunks::<8>();
    let mut hash = rest as u64;
    for word in words {
        hash = (hash ^ (u64::from_le_bytes(*word) | SMALL)).wrapping_mul(SPREAD).rotate_left(29);
    }
    let tail = octets.iter().fold(0, |tail, octet| tail << 8 | u64::from(octet | 0x20));
    let start = ((hash ^ tail).wrapping_mul(SPREAD) >> (u64::BITS - SLOTS.ilog2())) as usize;
    (0..PROBES).map(move |step| (start + step) % SLOTS)
}
