//! `random()` of the GNU C library, by its public description: an additive feedback generator of 31 words (its TYPE_3),
//! x(n) = x(n-3) + x(n-31) mod 2^32, of which the upper 31 bits are returned. `rand()` is the same function there.
//!
//! All its state follows from a seed of 32 bits, and TOTD seeds it with the time in seconds.

/// Words of the state.
const WORDS: usize = 31;

/// Distance of the second term.
const LAG: usize = 3;

/// Numbers that are discarded after seeding: ten times the state.
const DISCARDED: usize = 310;

/// Highest number: `RAND_MAX`, 2^31 - 1.
pub const MAX: u32 = 0x7fff_ffff;

/// A generator.
#[derive(Clone, Debug)]
pub struct LibcRandom {
    state: [u32; WORDS],
    /// Position of x(n-31), which the next word replaces.
    at: usize,
}

impl LibcRandom {
    /// The generator after `srandom(seed)`. A seed of 0 is taken as 1.
    pub fn new(seed: u32) -> LibcRandom {
        let mut state = [0; WORDS];
        // The words of the seed: a multiplicative congruential generator modulo 2^31 - 1 (Park and Miller, 1988). The seed
        // is a signed number.
        let mut word = i64::from(seed.max(1).cast_signed());
        state[0] = word as u32;
        for slot in &mut state[1..] {
            word = (16_807 * word).rem_euclid(i64::from(MAX));
            *slot = word as u32;
        }
        // The library's words 31 to 33 repeat 0 to 2, so the feedback begins with word 34 = word 31 + word 3.
        let mut random = LibcRandom { state, at: LAG };
        for _ in 0..DISCARDED {
            random.number();
        }
        random
    }

    /// The next number, 0 to [`MAX`].
    #[inline]
    pub fn number(&mut self) -> u32 {
        let other = if self.at >= LAG { self.at - LAG } else { self.at + WORDS - LAG };
        let word = self.state[self.at].wrapping_add(self.state[other]);
        self.state[self.at] = word;
        self.at = if self.at + 1 == WORDS { 0 } else { self.at + 1 };
        word >> 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_c_library() {
        // The first numbers of seed 1 are printed in many textbooks, because a program that sets no seed has them.
        let mut random = LibcRandom::new(1);
        let first = [random.number(), random.number(), random.number(), random.number(), random.number()];
        assert_eq!(first, [1_804_289_383, 846_930_886, 1_681_692_777, 1_714_636_915, 1_957_747_793]);
        assert_eq!(LibcRandom::new(0).number(), first[0]);
        // Printed by a C program with the GNU C library 2.36: the first number and the 1,001st.
        for (seed, first, later) in [
            (1, 1_804_289_383, 981_914_693),
            (42, 71_876_166, 1_963_050_744),
            (1_400_000_000, 1_429_965_710, 1_130_971_457),
            (3_000_000_000, 2_058_147_116, 1_047_066_348),
        ] {
            let mut random = LibcRandom::new(seed);
            assert_eq!(random.number(), first, "{seed}");
            (0..999).for_each(|_| _ = random.number());
            assert_eq!(random.number(), later, "{seed}");
        }
    }
}
