//! Seeded random number generator: the same seed draws the same names on every machine.

/// SplitMix64 (Steele, Lea, Flood 2014): small, and good enough to draw test names with.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// Draws 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Draws a number below `end`, which is not zero. The bias is below 2^-32 for the small numbers drawn here.
    pub fn below(&mut self, end: u32) -> u32 {
        (((self.bits() >> 32) * u64::from(end)) >> 32) as u32
    }

    /// True with a probability of `percent` percent.
    pub fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    /// Draws one of several items with equal probabilities.
    pub fn pick<T: Copy>(&mut self, several: &[T]) -> T {
        several[self.below(u32::try_from(several.len()).expect("a short list")) as usize]
    }

    /// Draws one of several items with probabilities in proportion to their weights.
    pub fn weighted<T: Copy>(&mut self, several: &[(u32, T)]) -> T {
        let mut left = self.below(several.iter().map(|(weight, _)| weight).sum());
        for &(weight, item) in several {
            if left < weight {
                return item;
            }
            left -= weight;
        }
        unreachable!("it is below the sum of the weights")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same() {
        let drawn = |seed| {
            let mut rng = Rng::new(seed);
            (0..9).map(|_| rng.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
    }

    #[test]
    fn weights_count() {
        let mut rng = Rng::new(1);
        let heavy = (0..10_000).filter(|_| rng.weighted(&[(9, true), (1, false)])).count();
        assert!((8_800..9_200).contains(&heavy), "{heavy}");
        assert!(!(0..1000).any(|_| rng.weighted(&[(0, true), (1, false)])));
    }
}
