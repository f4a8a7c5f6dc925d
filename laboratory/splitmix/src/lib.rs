//! SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014, section 4): the one generator of
//! tests and laboratory. A seed gives the same numbers on every machine and in every version, since documents and mutants name seeds.
//!
//! A crate that draws in its own way, such as one of several values by weight, wraps [`SplitMix64`]. Numbers that nobody may predict, and
//! those of the server, come from elsewhere.
#![forbid(unsafe_code)]

/// Increment of the state with each number: 2^64 divided by the golden ratio, made odd, so that the state takes every value before one
/// comes again.
pub const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The numbers of a seed.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The stream of a seed.
    pub fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mix(self.0)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        // The high half of the product: the bias is at most end / 2^64.
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// The place of an element in a list of this length; 0 if it is empty.
    pub fn place(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// A number from 0 to less than 1.
    pub fn unit(&mut self) -> f64 {
        // A double holds 53 bits.
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Mixes the bits of a number (the finalizer of SplitMix64): every bit of the input flips every bit of the result with probability 1/2.
/// The numbers of seed 0 are those of [`GAMMA`] times 1, 2, 3, and so on. 0 stays 0.
#[inline]
pub fn mix(number: u64) -> u64 {
    let mixed = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Outputs of the public C version (Vigna, `splitmix64.c`, 2015) for this seed, as other libraries list them in their tests.
    const SEED: u64 = 1_234_567;
    const OUTPUTS: [u64; 5] = [
        6_457_827_717_110_365_317,
        3_203_168_211_198_807_973,
        9_817_491_932_198_370_423,
        4_593_380_528_125_082_431,
        16_408_922_859_458_223_821,
    ];

    #[test]
    fn the_numbers_are_those_that_are_published() {
        let mut random = SplitMix64::new(SEED);
        assert_eq!(OUTPUTS.map(|_| random.bits()), OUTPUTS);
        assert_eq!(SplitMix64::new(0).bits(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(GAMMA), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn a_range_takes_the_high_half_of_the_product_and_a_share_the_upper_53_bits() {
        let (mut below, mut place, mut unit) =
            (SplitMix64::new(SEED), SplitMix64::new(SEED), SplitMix64::new(SEED));
        // 1,000 times an output, divided by 2^64.
        let expected = [350, 173, 532, 249, 889];
        assert_eq!(expected.map(|_| below.below(1_000)), expected);
        assert_eq!(expected.map(|_| place.place(1_000) as u64), expected);
        assert_eq!(OUTPUTS.map(|_| unit.unit()), OUTPUTS.map(|bits| (bits >> 11) as f64 / 2f64.powi(53)));
        assert_eq!((below.below(0), below.below(1), place.place(0)), (0, 0, 0));
    }

    #[test]
    fn draws_fill_their_range_evenly() {
        let mut random = SplitMix64::new(7);
        let mut seen = [0u32; 6];
        for _ in 0..6_000 {
            seen[random.place(6)] += 1;
        }
        // 1,000 each; the standard deviation is 29.
        assert!(seen.iter().all(|count| (800..1_200).contains(count)), "{seen:?}");
    }
}
