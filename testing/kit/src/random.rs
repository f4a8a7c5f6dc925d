//! Random numbers of tests: every run draws the same.

use splitmix::SplitMix64;

/// Pseudo-random numbers that follow from a seed, those of [`SplitMix64`].
#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Random {
        Random(SplitMix64::new(seed))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.bits()
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
        self.0.unit()
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
    fn the_numbers_are_those_of_splitmix64_and_a_range_takes_the_remainder() {
        // The outputs for this seed that are published, and what is left of them after division by 1,000.
        let outputs = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        let (mut bits, mut below) = (Random::new(1_234_567), Random::new(1_234_567));
        assert_eq!(outputs.map(|_| bits.bits()), outputs);
        assert_eq!(outputs.map(|_| below.below(1_000)), [317, 973, 423]);
        assert_eq!((Random::new(1).below(0), Random::new(1).place(0)), (0, 0));
        let mut random = Random::new(5);
        let drawn: Vec<u64> = (0..10_000).map(|_| random.below(10)).collect();
        for value in 0..10 {
            let count = drawn.iter().filter(|&&it| it == value).count();
            assert!((850..1150).contains(&count), "{value}: {count}");
        }
    }
}
