//! Slab: records of fixed size in memory that is reserved at start.
//!
//! A slot is not touched before its first use, so the operating system provides pages only for slots that were needed. Freed
//! slots are reused last in, first out, which keeps the working set in the processor's caches.

/// Index of a record; [`NONE`] means no record.
pub type Index = u32;

/// Index that means no record.
pub const NONE: Index = u32::MAX;

/// Record of a slab.
pub trait Record: Default {
    /// Overwrites what the user of a freed slot has left, in debug builds, with values that the next user would notice: it must set
    /// every field that it reads. An implementation names every field, so the compiler tells of a new one.
    #[cfg(debug_assertions)]
    fn poison(&mut self);
}

/// Store of records with a fixed capacity.
pub struct Slab<T> {
    records: Vec<T>,
    free: Vec<Index>,
    capacity: usize,
}

impl<T: Record> Slab<T> {
    /// Reserves memory for `capacity` records.
    pub fn new(capacity: usize) -> Slab<T> {
        Slab { records: Vec::with_capacity(capacity), free: Vec::with_capacity(capacity), capacity }
    }

    /// Takes a free slot, with the content that its last user left; `None` if all slots are in use.
    #[inline]
    pub fn take(&mut self) -> Option<Index> {
        if let Some(index) = self.free.pop() {
            return Some(index);
        }
        if self.records.len() == self.capacity {
            return None;
        }
        self.records.push(T::default());
        Some(self.records.len() as Index - 1)
    }

    /// Gives a slot back for reuse.
    #[inline]
    pub fn give(&mut self, index: Index) {
        debug_assert!(!self.free.contains(&index) || self.free.len() > 64);
        self.free.push(index);
        #[cfg(debug_assertions)]
        self.records[index as usize].poison();
    }

    /// Number of records in use.
    pub fn len(&self) -> usize {
        self.records.len() - self.free.len()
    }

    /// Number of records for which memory is reserved.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// True if all slots are in use.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.len() == self.capacity
    }

    /// True if more than half of all slots are in use.
    #[inline]
    pub fn is_crowded(&self) -> bool {
        2 * self.len() > self.capacity
    }

    /// Number of slots that were ever in use: the upper bound for walks over all records.
    pub fn touched(&self) -> Index {
        self.records.len() as Index
    }
}

impl<T> core::ops::Index<Index> for Slab<T> {
    type Output = T;
    #[inline]
    fn index(&self, index: Index) -> &T {
        &self.records[index as usize]
    }
}

impl<T> core::ops::IndexMut<Index> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, index: Index) -> &mut T {
        &mut self.records[index as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Record for u8 {
        #[cfg(debug_assertions)]
        fn poison(&mut self) {
            *self = 0xff;
        }
    }

    #[test]
    #[cfg(debug_assertions)]
    fn a_freed_slot_does_not_keep_what_its_user_left() {
        let mut slab = Slab::<u8>::new(1);
        let index = slab.take().unwrap();
        slab[index] = 7;
        slab.give(index);
        assert_eq!(slab.take().map(|index| slab[index]), Some(0xff));
    }

    #[test]
    fn a_slab_gives_out_its_capacity_and_no_more() {
        let mut slab = Slab::<u8>::new(3);
        let taken: Vec<_> = core::iter::from_fn(|| slab.take()).collect();
        assert_eq!(taken, [0, 1, 2]);
        assert!(slab.is_full() && slab.capacity() == 3);
        slab.give(1);
        assert_eq!((slab.len(), slab.take(), slab.take()), (2, Some(1), None));
    }
}
