//! Ring of records of different lengths, in memory that is reserved at start. A table adds records at the head and takes them away from the
//! tail; a record that is still in use goes to the head again, which is the clock algorithm.
//!
//! The table knows the places of its records. One that it has replaced or forgotten stays until the tail reaches it: the table sees then that
//! none of its entries leads there.

/// Octets before a record: its length.
const HEAD: usize = 4;

/// Records begin at multiples of this, so the rest at the end of the ring has room for a length.
const STEP: usize = 8;

/// Bit of the length of what is no record, but the rest at the end.
const REST: u32 = 1 << 31;

/// Ring of records.
pub(crate) struct Ring {
    octets: Box<[u8]>,
    head: usize,
    tail: usize,
    used: usize,
}

impl Ring {
    /// An empty ring of so many octets, at most 2 GiB. They become memory as far as they are used.
    pub fn new(octets: usize) -> Ring {
        debug_assert!(octets < REST as usize);
        Ring { octets: vec![0; octets / STEP * STEP].into(), head: 0, tail: 0, used: 0 }
    }

    /// Forgets all records.
    pub fn clear(&mut self) {
        (self.head, self.tail, self.used) = (0, 0, 0);
    }

    /// Record at a place.
    pub fn get(&self, place: u32) -> &[u8] {
        let start = place as usize + HEAD;
        &self.octets[start..start + self.length_at(place as usize)]
    }

    /// True if there is room for a record of this length.
    pub fn has_room(&self, length: usize) -> bool {
        self.start(size(length)).is_some()
    }

    /// Adds a record that consists of some parts. Returns its place; none if there is no room.
    pub fn push(&mut self, parts: &[&[u8]]) -> Option<u32> {
        let length = parts.iter().map(|part| part.len()).sum();
        let start = self.start(size(length))?;
        self.occupy(start, length);
        let mut at = start + HEAD;
        for part in parts {
            self.octets[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        Some(start as u32)
    }

    /// Place of the oldest record.
    pub fn oldest(&mut self) -> Option<u32> {
        if self.used > 0 && self.head_at(self.tail) & REST != 0 {
            self.drop_oldest();
        }
        (self.used > 0).then_some(self.tail as u32)
    }

    /// Takes the oldest record away.
    pub fn drop_oldest(&mut self) {
        if self.used == 0 {
            return;
        }
        let size = size(self.length_at(self.tail));
        self.used -= size;
        self.tail += size;
        if self.tail == self.octets.len() {
            self.tail = 0;
        }
        if self.used == 0 {
            self.clear();
        }
    }

    /// Makes the oldest record the newest one. Returns its new place; none if it was taken away, as the rest at the end takes its room.
    pub fn renew_oldest(&mut self) -> Option<u32> {
        let place = self.oldest()? as usize;
        let length = self.length_at(place);
        self.drop_oldest();
        // Its octets are free, and nothing is written before they are copied but the length of a rest, which begins behind all records.
        let start = self.start(size(length))?;
        self.occupy_rest(start);
        self.octets.copy_within(place..place + HEAD + length, start);
        self.occupy(start, length);
        Some(start as u32)
    }

    fn head_at(&self, place: usize) -> u32 {
        self.octets[place..].first_chunk().map_or(0, |head| u32::from_le_bytes(*head))
    }

    fn length_at(&self, place: usize) -> usize {
        (self.head_at(place) & !REST) as usize
    }

    /// Start of a record of this size with its length.
    fn start(&self, size: usize) -> Option<usize> {
        let behind = self.octets.len() - self.head;
        match () {
            () if self.used == 0 || self.head > self.tail => {
                if size <= behind {
                    Some(self.head)
                } else {
                    (size <= self.tail).then_some(0)
                }
            }
            () => (size <= self.tail - self.head).then_some(self.head),
        }
    }

    /// Puts the head to the start of a record, over a rest at the end.
    fn occupy_rest(&mut self, start: usize) {
        let rest = self.octets.len() - self.head;
        if start != self.head && rest > 0 {
            let head = (rest - HEAD) as u32 | REST;
            self.octets[self.head..self.head + HEAD].copy_from_slice(&head.to_le_bytes());
            self.used += rest;
        }
        self.head = start;
    }

    fn occupy(&mut self, start: usize, length: usize) {
        self.occupy_rest(start);
        self.octets[start..start + HEAD].copy_from_slice(&(length as u32).to_le_bytes());
        self.head = start + size(length);
        self.used += size(length);
    }
}

/// Octets that a record of this length takes.
fn size(length: usize) -> usize {
    (HEAD + length).next_multiple_of(STEP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;
    use std::collections::VecDeque;

    /// Takes records away until there is room for one more. Every `renewed`-th is renewed.
    fn make_room(ring: &mut Ring, model: &mut VecDeque<(u32, Vec<u8>)>, length: usize, renewed: u64) {
        for count in 1u64.. {
            if ring.has_room(length) {
                return;
            }
            let place = ring.oldest().expect("a record");
            let (known, record) = model.pop_front().expect("a record");
            assert_eq!((known, ring.get(place)), (place, &record[..]));
            match count.is_multiple_of(renewed) {
                true => model.extend(ring.renew_oldest().map(|place| (place, record))),
                false => ring.drop_oldest(),
            }
        }
    }

    #[test]
    fn the_records_of_a_ring_are_those_of_a_queue() {
        let mut random = Random::new([5; 32]);
        for octets in [64, 100, 1024] {
            let (mut ring, mut model) = (Ring::new(octets), VecDeque::new());
            for number in 0..20_000u32 {
                let length = random.bits() as usize % (octets / 3);
                let renewed = 2 + random.bits() % 5;
                make_room(&mut ring, &mut model, length, renewed);
                let record = vec![number as u8; length];
                let (first, second) = record.split_at(length / 2);
                let place = ring.push(&[first, second]).expect("room");
                model.push_back((place, record));
                for (place, record) in &model {
                    assert_eq!(ring.get(*place), &record[..]);
                }
            }
            assert_eq!(ring.push(&[&vec![0; octets]]), None, "longer than the ring");
            ring.clear();
            assert_eq!((ring.oldest(), ring.has_room(octets / STEP * STEP - HEAD)), (None, true));
        }
    }
}
