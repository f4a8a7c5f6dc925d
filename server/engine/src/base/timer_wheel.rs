//! Hashed timing wheel for the deadlines of questions: slots of one millisecond with intrusive lists, so setting and cancelling a
//! deadline cost constant time, however many are pending. A deadline more than one turn of the wheel (4 s) ahead stays in its slot
//! for several turns.

use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;

/// Slots of the wheel: one turn takes 4.096 s.
const SLOTS: usize = 4096;

/// Nanoseconds of one tick.
const TICK_NS: u64 = 1_000_000;

/// List links of one record in the wheel, stored beside the record.
#[derive(Clone, Copy, Debug)]
pub struct Hook {
    next: Index,
    previous: Index,
    /// Tick at which the record is due; `u64::MAX` if it is not in the wheel.
    tick: u64,
}

impl Default for Hook {
    fn default() -> Hook {
        Hook { next: NONE, previous: NONE, tick: u64::MAX }
    }
}

/// Timing wheel. It names records by index and reaches their links through [`Hooks`].
pub struct TimerWheel {
    /// First record of each slot.
    heads: Box<[Index]>,
    /// One bit for each slot that has records.
    occupied: [u64; SLOTS / 64],
    /// Tick up to which all due records have been returned.
    now: u64,
    /// Number of records in the wheel.
    pending: usize,
}

/// Access to the list links of the records.
pub trait Hooks {
    /// Links of one record.
    fn hook(&mut self, index: Index) -> &mut Hook;
}

impl TimerWheel {
    /// Creates an empty wheel.
    pub fn new() -> TimerWheel {
        TimerWheel { heads: vec![NONE; SLOTS].into(), occupied: [0; SLOTS / 64], now: 0, pending: 0 }
    }

    /// Sets or moves the deadline of a record. The record becomes due at the first tick at or after `deadline`.
    #[inline]
    pub fn set(&mut self, hooks: &mut impl Hooks, index: Index, deadline: Instant) {
        self.cancel(hooks, index);
        let tick = deadline.0.div_ceil(TICK_NS).max(self.now + 1);
        let slot = tick as usize % SLOTS;
        let next = self.heads[slot];
        *hooks.hook(index) = Hook { next, previous: NONE, tick };
        if next != NONE {
            hooks.hook(next).previous = index;
        }
        self.heads[slot] = index;
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.pending += 1;
    }

    /// Cancels the deadline of a record, if it has one.
    #[inline]
    pub fn cancel(&mut self, hooks: &mut impl Hooks, index: Index) {
        let Hook { next, previous, tick } = *hooks.hook(index);
        if tick == u64::MAX {
            return;
        }
        let slot = tick as usize % SLOTS;
        if previous == NONE {
            self.heads[slot] = next;
            if next == NONE {
                self.occupied[slot / 64] &= !(1 << (slot % 64));
            }
        } else {
            hooks.hook(previous).next = next;
        }
        if next != NONE {
            hooks.hook(next).previous = previous;
        }
        *hooks.hook(index) = Hook::default();
        self.pending -= 1;
    }

    /// Returns a record that is due at `now` and cancels its deadline; `None` if no more records are due.
    pub fn pop(&mut self, hooks: &mut impl Hooks, now: Instant) -> Option<Index> {
        let target = now.0 / TICK_NS;
        // One turn visits every slot, however long ago the last call was. It also finds records that were due before that turn.
        self.now = self.now.max(target.saturating_sub(SLOTS as u64));
        while self.now < target {
            if self.pending == 0 {
                self.now = target;
                return None;
            }
            let slot = (self.now + 1) as usize % SLOTS;
            if self.occupied[slot / 64] & (1 << (slot % 64)) != 0 {
                let mut index = self.heads[slot];
                while index != NONE {
                    let hook = *hooks.hook(index);
                    if hook.tick <= self.now + 1 {
                        self.cancel(hooks, index);
                        return Some(index);
                    }
                    index = hook.next;
                }
            }
            self.now += 1;
        }
        None
    }

    /// Time of the next call to [`TimerWheel::pop`] that may return a record: never later than the earliest deadline.
    pub fn next(&self) -> Option<Instant> {
        if self.pending == 0 {
            return None;
        }
        let first = (self.now + 1) as usize % SLOTS;
        for step in 0..=SLOTS / 64 {
            let word = (first / 64 + step) % (SLOTS / 64);
            let mut bits = self.occupied[word];
            if step == 0 {
                bits &= u64::MAX << (first % 64);
            }
            if bits != 0 {
                let slot = word * 64 + bits.trailing_zeros() as usize;
                let distance = (slot + SLOTS - first) % SLOTS;
                return Some(Instant((self.now + 1 + distance as u64) * TICK_NS));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Store(Vec<Hook>);
    impl Hooks for Store {
        fn hook(&mut self, index: Index) -> &mut Hook {
            &mut self.0[index as usize]
        }
    }

    fn ms(n: u64) -> Instant {
        Instant(n * TICK_NS)
    }

    #[test]
    fn records_come_due_in_time_and_never_early_even_after_several_turns() {
        let mut store = Store(vec![Hook::default(); 100]);
        let mut wheel = TimerWheel::new();
        let deadline = |i: u64| i * 317 % 20_000 + 1;
        for i in 0..100 {
            wheel.set(&mut store, i as Index, ms(deadline(i)));
        }
        let mut returned = 0;
        for now in 0..=20_001 {
            while let Some(index) = wheel.pop(&mut store, ms(now)) {
                assert_eq!(deadline(u64::from(index)), now);
                returned += 1;
            }
        }
        assert_eq!((returned, wheel.next()), (100, None));
    }

    #[test]
    fn a_cancelled_or_moved_deadline_does_not_come_due() {
        let mut store = Store(vec![Hook::default(); 3]);
        let mut wheel = TimerWheel::new();
        for i in 0..3 {
            wheel.set(&mut store, i, ms(5));
        }
        wheel.cancel(&mut store, 1);
        wheel.set(&mut store, 2, ms(9));
        assert_eq!(wheel.next(), Some(ms(5)));
        assert_eq!(wheel.pop(&mut store, ms(6)), Some(0));
        assert_eq!(wheel.pop(&mut store, ms(6)), None);
        assert_eq!(wheel.next(), Some(ms(9)));
        assert_eq!(wheel.pop(&mut store, ms(5_000)), Some(2));
        assert_eq!(wheel.pop(&mut store, ms(50_000)), None);
    }

    #[test]
    fn the_next_call_is_never_later_than_the_earliest_deadline() {
        let mut store = Store(vec![Hook::default(); 64]);
        let mut wheel = TimerWheel::new();
        let mut now = 0;
        for round in 0..500u64 {
            let index = (round * 7 % 64) as Index;
            wheel.set(&mut store, index, ms(now + 1 + round * 131 % 9_000));
            let earliest = store.0.iter().map(|h| h.tick).min().unwrap();
            assert!(wheel.next().unwrap() <= ms(earliest));
            now += round % 5;
            while wheel.pop(&mut store, ms(now)).is_some() {}
        }
    }
}
