//! The pseudorandom numbers of the world ([`SplitMix64`]): cheap, and the same for the same seed.

use splitmix::SplitMix64;

/// A seeded stream of numbers.
#[derive(Clone, Debug)]
pub struct Rng(SplitMix64);

impl Rng {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Rng {
        // Streams of neighbouring seeds differ from the first number on.
        Rng(SplitMix64::new(SplitMix64::new(seed ^ 0x6a09_e667_f3bc_c908).bits()))
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.bits()
    }

    /// Entropy for an engine.
    pub fn entropy(&mut self) -> [u8; 32] {
        let mut entropy = [0; 32];
        for octets in entropy.chunks_mut(8) {
            octets.copy_from_slice(&self.next_u64().to_le_bytes());
        }
        entropy
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// True with a probability of `share` in a thousand.
    pub fn permille(&mut self, share: u64) -> bool {
        self.below(1000) < share
    }

    /// One of several values, all equally likely.
    pub fn choose<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.0.place(of.len())]
    }

    /// A number from 0 to 1.
    pub fn unit_interval(&mut self) -> f64 {
        self.0.unit()
    }

    /// An exponentially distributed time with this mean: a wait between independent events.
    pub fn exponential(&mut self, mean: u64) -> u64 {
        (-(1.0 - self.unit_interval()).ln() * mean as f64) as u64
    }

    /// A rank below `count` by Zipf's law with exponent 1, as for the popularity of names: low ranks are frequent.
    pub fn zipf(&mut self, count: u64) -> u64 {
        let rank = (count as f64 + 1.0).powf(self.unit_interval()) as u64;
        rank.clamp(1, count) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_a_seed_stay_those_that_traces_and_mutants_were_found_with() {
        // The output of SplitMix64 for 1 XOR 0x6a09e667f3bcc908 is the seed of these. Their products with 1,000, divided by 2^64.
        let (mut bits, mut below) = (Rng::new(1), Rng::new(1));
        let expected = [0x96dc_b1d7_126a_6eba, 0x2f8e_32a8_9316_a664, 0xcdae_b481_a133_5c34];
        assert_eq!(expected.map(|_| bits.next_u64()), expected);
        assert_eq!(expected.map(|_| below.below(1_000)), [589, 185, 803]);
    }
}
