//! The most frequent keys of a stream, counted in a table of fixed size: Space-Saving (Metwally, Agrawal and El Abbadi, ICDT 2005).
//!
//! A key that is not in the full table takes the place of the key with the smallest count, and begins with that count, as it may have been
//! seen as often before. With `m` places and `n` counts, the smallest count is at most `n / m`. So a key that was counted more than `n / m`
//! times is in the table, whatever the other keys are, and what it was counted for while it was there is short of the truth by at most
//! `n / m`.
//!
//! Keys are 64-bit hashes. The caller makes them with a secret key, so that nobody can choose keys that collide; by chance, two of 8,192
//! keys do once in 5 * 10^11 tables.

/// Counts of keys, each with a value.
pub(crate) struct SpaceSaving<V> {
    /// As many as have been needed, up to `room`.
    entries: Vec<Entry<V>>,
    room: usize,
    /// Places of the entries as a binary heap with the smallest count first.
    heap: Vec<u16>,
    /// Hash table with linear probing: places of the entries, or [`FREE`]. At most half of it is in use.
    index: Box<[u16]>,
}

struct Entry<V> {
    hash: u64,
    count: u64,
    /// The part of the count that belongs to former keys of this place.
    inherited: u64,
    place_in_heap: u16,
    value: V,
}

/// No entry.
const FREE: u16 = u16::MAX;

impl<V> SpaceSaving<V> {
    /// An empty table of `room` places, from 1 to 32,768. Memory is reserved, and touched as far as it is needed.
    pub(crate) fn new(room: usize) -> SpaceSaving<V> {
        let room = room.clamp(1, 1 << 15);
        SpaceSaving {
            entries: Vec::with_capacity(room),
            room,
            heap: Vec::with_capacity(room),
            index: vec![FREE; (2 * room).next_power_of_two()].into(),
        }
    }

    /// Octets of a table of `room` places.
    pub(crate) const fn octets(room: usize) -> usize {
        room * (size_of::<Entry<V>>() + size_of::<u16>()) + (2 * room).next_power_of_two() * size_of::<u16>()
    }

    /// Counts a key `times` times. Returns its value, which `new` makes if the key was not in the table.
    #[inline]
    pub(crate) fn count(&mut self, hash: u64, times: u64, new: impl FnOnce() -> V) -> &mut V {
        let place = match self.find(hash) {
            Some(place) => place,
            None => self.insert(hash, new()),
        };
        let entry = &mut self.entries[place];
        entry.count += times;
        let at = usize::from(entry.place_in_heap);
        self.sift_down(at);
        &mut self.entries[place].value
    }

    /// The value of a key that is in the table.
    #[inline]
    pub(crate) fn get_mut(&mut self, hash: u64) -> Option<&mut V> {
        self.find(hash).map(|place| &mut self.entries[place].value)
    }

    /// All keys of the table: what each was counted for while it was there, and its value.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &V)> {
        self.entries.iter().map(|entry| (entry.count - entry.inherited, &entry.value))
    }

    /// The most that any key may have been counted for while it was not in the table.
    pub(crate) fn missed(&self) -> u64 {
        if self.entries.len() < self.room {
            0
        } else {
            self.least().map_or(0, |place| self.entries[place].count)
        }
    }

    /// Forgets all keys.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.heap.clear();
        self.index.fill(FREE);
    }

    /// Place of the entry with the smallest count.
    fn least(&self) -> Option<usize> {
        self.heap.first().map(|&place| usize::from(place))
    }

    /// Puts a key that is not in the table into a free place, or into that of the smallest count. Returns the place.
    fn insert(&mut self, hash: u64, value: V) -> usize {
        let place = match self.least().filter(|_| self.entries.len() == self.room) {
            Some(place) => {
                self.remove_from_index(place);
                let entry = &mut self.entries[place];
                *entry = Entry { hash, inherited: entry.count, value, ..*entry };
                place
            }
            None => {
                // A count of 0 is the smallest one, and belongs to the top of the heap.
                let place = self.entries.len();
                let place_in_heap = self.heap.len() as u16;
                self.entries.push(Entry { hash, count: 0, inherited: 0, place_in_heap, value });
                self.heap.push(place as u16);
                self.sift_up(usize::from(place_in_heap));
                place
            }
        };
        let mut at = self.home(hash);
        while self.index[at] != FREE {
            at = self.after(at);
        }
        self.index[at] = place as u16;
        place
    }

    #[inline]
    fn find(&self, hash: u64) -> Option<usize> {
        let mut at = self.home(hash);
        loop {
            match self.index[at] {
                FREE => return None,
                place if self.entries[usize::from(place)].hash == hash => return Some(usize::from(place)),
                _ => at = self.after(at),
            }
        }
    }

    /// Takes an entry out of the index, and closes the gap, so that those behind it are found.
    fn remove_from_index(&mut self, place: usize) {
        let mut gap = self.home(self.entries[place].hash);
        while usize::from(self.index[gap]) != place {
            gap = self.after(gap);
        }
        let mask = self.index.len() - 1;
        let mut at = gap;
        loop {
            at = self.after(at);
            let moved = self.index[at];
            if moved == FREE {
                break;
            }
            // An entry may move to the gap if that is not before its home.
            let home = self.home(self.entries[usize::from(moved)].hash);
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(gap) & mask {
                self.index[gap] = moved;
                gap = at;
            }
        }
        self.index[gap] = FREE;
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        hash as usize & (self.index.len() - 1)
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.index.len() - 1)
    }

    /// The count of the entry at a place of the heap.
    #[inline]
    fn count_at(&self, at: usize) -> u64 {
        self.entries[usize::from(self.heap[at])].count
    }

    #[inline]
    fn sift_down(&mut self, mut at: usize) {
        loop {
            let left = 2 * at + 1;
            if left >= self.heap.len() {
                return;
            }
            let right = left + 1;
            let is_right_smaller = right < self.heap.len() && self.count_at(right) < self.count_at(left);
            let child = if is_right_smaller { right } else { left };
            if self.count_at(at) <= self.count_at(child) {
                return;
            }
            self.swap(at, child);
            at = child;
        }
    }

    fn sift_up(&mut self, mut at: usize) {
        while at > 0 && self.count_at(at) < self.count_at((at - 1) / 2) {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        for at in [one, other] {
            self.entries[usize::from(self.heap[at])].place_in_heap = at as u16;
        }
    }
}

#[cfg(test)]
#[path = "space_saving_tests.rs"]
mod tests;
