//! Cryptographic random number generator for message IDs, source ports and letter case (RFC 5452 section 9.2). Early DNS64
//! servers had predictable generators; they show why this matters. The driver gives the seed: entropy of the operating system in
//! service, a fixed number in a simulation.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};

/// Numbers drawn per refill. One refill serves several questions without touching the generator's state.
const REFILL: usize = 64;

/// Source of unpredictable numbers.
pub struct Random {
    generator: ChaCha8Rng,
    ready: [u64; REFILL],
    left: usize,
    /// Rest of a 64-bit number from which four message IDs are cut.
    ids: u64,
    ids_left: u32,
    /// Bad generator that a test has put in.
    #[cfg(test)]
    pub planted: Option<Planted>,
}

/// Bad generator that a test uses instead of ChaCha8, to show that the statistics detect it.
#[cfg(test)]
pub struct Planted {
    pub state: u64,
    pub draw: fn(&mut u64) -> u16,
    /// True if an ID may be used that is in flight already.
    pub is_forgetful: bool,
}

impl Random {
    /// Creates the source from a seed of 32 octets of entropy.
    pub fn new(seed: [u8; 32]) -> Random {
        Random {
            generator: ChaCha8Rng::from_seed(seed),
            ready: [0; REFILL],
            left: 0,
            ids: 0,
            ids_left: 0,
            #[cfg(test)]
            planted: None,
        }
    }

    /// Returns 64 unpredictable bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        if self.left == 0 {
            self.refill();
        }
        self.left -= 1;
        // Clear the number that is given out: a later disclosure of memory must not reveal it.
        core::mem::take(&mut self.ready[self.left])
    }

    /// Returns 16 unpredictable bits: a message ID.
    #[inline]
    pub fn id(&mut self) -> u16 {
        #[cfg(test)]
        if let Some(planted) = &mut self.planted {
            return (planted.draw)(&mut planted.state);
        }
        if self.ids_left == 0 {
            self.ids = self.bits();
            self.ids_left = 4;
        }
        let id = self.ids as u16;
        self.ids >>= 16;
        self.ids_left -= 1;
        id
    }

    /// Returns a number below `bound` (at least 1, at most 2^32), without noticeable bias.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        // Multiplication by a 64-bit number, then shift: the bias is at most bound / 2^64.
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// True if an ID may be used that is in flight already. Always false outside of the tests that plant a bad generator.
    #[inline]
    pub fn is_forgetful(&self) -> bool {
        #[cfg(test)]
        return self.planted.as_ref().is_some_and(|planted| planted.is_forgetful);
        #[cfg(not(test))]
        false
    }

    #[cold]
    fn refill(&mut self) {
        for slot in &mut self.ready {
            *slot = self.generator.next_u64();
        }
        self.left = REFILL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_numbers_and_different_seeds_do_not() {
        let draw = |seed: u8| {
            let mut random = Random::new([seed; 32]);
            (0..200).map(|_| random.bits()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn bounded_numbers_cover_their_range_evenly() {
        let mut random = Random::new([7; 32]);
        let mut seen = [0u32; 10];
        for _ in 0..100_000 {
            seen[random.below(10) as usize] += 1;
        }
        // Chi-square with 9 degrees of freedom: one seed in 10,000 exceeds 33.7. This seed is fixed.
        let chi_square: f64 = seen.iter().map(|&n| (f64::from(n) - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi_square < 33.7, "{seen:?}");
    }
}
