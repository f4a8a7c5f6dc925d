//! Names that the device has cached, to query again. A name is eligible two timeouts after its answer, so that the
//! device surely has cached it, and until its TTL may expire, so that the device still has it. The names are in a
//! ring with one word per answer; the receiver adds, the sender draws.

use crate::limits;
use std::sync::atomic::{AtomicU64, Ordering};

/// The ring of answered names.
pub struct CachedNames {
    /// Address in 32 bits, time of its answer in milliseconds in 32 bits.
    ring: Box<[AtomicU64]>,
    mask: u64,
    /// Number of answers added so far.
    added: AtomicU64,
    /// Earliest age of an answer at which its name may be queried again, in milliseconds.
    min_age_ms: u64,
    /// Latest such age, in milliseconds.
    max_age_ms: u64,
}

impl CachedNames {
    /// A ring of at least the `least` newest answers, whose names may be queried again two timeouts to `max_age_ms`
    /// later.
    pub fn new(least: u64, timeout_ms: u64, max_age_ms: u64) -> CachedNames {
        let count = least.max(1).next_power_of_two();
        let ring = (0..count).map(|_| AtomicU64::new(0)).collect();
        CachedNames {
            ring,
            mask: count - 1,
            added: AtomicU64::new(0),
            min_age_ms: 2 * timeout_ms,
            max_age_ms,
        }
    }

    /// Adds a name with a valid answer. Only one thread may call this.
    #[inline]
    pub fn add(&self, address: [u8; 4], now_ns: u64) {
        let at = self.added.load(Ordering::Relaxed);
        // Rounded up, so that a name is never queried again too early.
        let time = now_ns.div_ceil(1_000_000) & 0xffff_ffff;
        let word = u64::from(u32::from_be_bytes(address)) << 32 | time;
        self.ring[(at & self.mask) as usize].store(word, Ordering::Relaxed);
        self.added.store(at + 1, Ordering::Release);
    }

    fn entry(&self, index: u64) -> ([u8; 4], u64) {
        let word = self.ring[(index & self.mask) as usize].load(Ordering::Relaxed);
        (((word >> 32) as u32).to_be_bytes(), word & 0xffff_ffff)
    }
}

/// The sender's position in the ring.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    /// Answers before this are old enough.
    eligible: u64,
}

impl Cursor {
    /// A name from the ring, chosen by 64 random bits; `None` while no name is eligible.
    #[inline]
    pub fn draw(&mut self, pool: &CachedNames, now_ns: u64, random: u64) -> Option<[u8; 4]> {
        let (added, now_ms) = (pool.added.load(Ordering::Acquire), now_ns / 1_000_000);
        // Entries that are about to be overwritten are not used: an eighth of the ring.
        let oldest = added.saturating_sub(pool.mask - pool.mask / 8);
        self.eligible = self.eligible.max(oldest);
        while self.eligible < added && pool.entry(self.eligible).1 + pool.min_age_ms <= now_ms {
            self.eligible += 1;
        }
        let first = self.eligible.saturating_sub(limits::CACHED_NAMES).max(oldest);
        let index = first + ((u128::from(random) * u128::from(self.eligible - first)) >> 64) as u64;
        if index >= self.eligible {
            return None;
        }
        // If the entry was overwritten in the meantime, its time is new and this test fails.
        let (address, time) = pool.entry(index);
        (time + pool.min_age_ms..=time + pool.max_age_ms).contains(&now_ms).then_some(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_name_is_drawn_two_timeouts_after_its_answer_at_the_earliest() {
        let pool = CachedNames::new(1000, 100, 60_000);
        let mut draw = Cursor::default();
        assert_eq!(draw.draw(&pool, 10_000 * MS, 5), None);
        pool.add([1; 4], 1_000 * MS);
        pool.add([2; 4], 1_100 * MS);
        assert_eq!(draw.draw(&pool, 1_199 * MS, 0), None);
        assert_eq!(draw.draw(&pool, 1_200 * MS, u64::MAX), Some([1; 4]));
        assert_eq!(draw.draw(&pool, 1_300 * MS, u64::MAX), Some([2; 4]));
        assert_eq!(draw.draw(&pool, 1_300 * MS, 0), Some([1; 4]));
        assert_eq!(draw.draw(&pool, 61_000 * MS, 0), Some([1; 4]));
        assert_eq!(draw.draw(&pool, 61_001 * MS, 0), None);
    }

    #[test]
    fn draws_are_even_among_the_newest_that_are_ripe() {
        let pool = CachedNames::new(4 * limits::CACHED_NAMES, 1, 60_000);
        for number in 0..3 * limits::CACHED_NAMES as u32 {
            pool.add(number.to_be_bytes(), MS);
        }
        let mut draw = Cursor::default();
        let mut counts = [0u32; 4];
        for step in 0..40_000u64 {
            let address = draw.draw(&pool, 10 * MS, crate::random::mix(step)).unwrap();
            let age = 3 * limits::CACHED_NAMES as u32 - 1 - u32::from_be_bytes(address);
            counts[age as usize / (limits::CACHED_NAMES as usize / 4)] += 1;
        }
        // Five standard deviations of a binomial distribution (87) to each side.
        assert!(counts.iter().all(|count| (9_560..=10_440).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_full_pool_draws_only_what_it_still_has() {
        let pool = CachedNames::new(64, 1, 60_000);
        let mut draw = Cursor::default();
        for number in 0..1000u32 {
            pool.add(number.to_be_bytes(), MS);
        }
        for step in 0..1000 {
            let address = draw.draw(&pool, 10 * MS, crate::random::mix(step)).unwrap();
            assert!(u32::from_be_bytes(address) >= 1000 - 64);
        }
    }
}
