//! Random numbers of tests: every run draws the same.

/// Pseudo-random numbers that follow from a seed (SplitMix64; Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `end`; 0 if `end` is 0. The remainder favours small numbers by less than `end` in 2^64.
    pub fn below(&mut self, end: u64) -> u64 {
        self.bits().checked_rem(end).unwrap_or(0)
    }

    /// The place of an element in a list of this length; 0 if it is empty.
    pub fn place(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// True once in `times`.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// True with a probability of `share` percent.
    pub fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }

    /// A number from 0 to less than 1.
    pub fn unit(&mut self) -> f64 {
        // A double holds 53 bits.
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// So many octets.
    pub fn octets(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.bits() as u8).collect()
    }

    /// One of several values, all equally likely.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.place(from.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        assert_eq!(Random::new(0).bits(), 0xe220_a839_7b1d_cdaf);
        assert_eq!((Random::new(1).below(0), Random::new(1).place(0)), (0, 0));
        let mut random = Random::new(5);
        let drawn: Vec<u64> = (0..10_000).map(|_| random.below(10)).collect();
        for value in 0..10 {
            let count = drawn.iter().filter(|&&it| it == value).count();
            assert!((850..1150).contains(&count), "{value}: {count}");
        }
    }
}
