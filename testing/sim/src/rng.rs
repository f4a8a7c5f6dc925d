//! The pseudorandom generator of the world (SplitMix64): cheap, and the same numbers for the same seed.

/// A seeded stream of numbers.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Rng {
        let mut rng = Rng(seed ^ 0x6a09_e667_f3bc_c908);
        // Streams of neighbouring seeds differ from the first number on.
        Rng(rng.next_u64())
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
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
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// True with a probability of `share` in a thousand.
    pub fn permille(&mut self, share: u64) -> bool {
        self.below(1000) < share
    }

    /// One of several values, all equally likely.
    pub fn choose<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }

    /// A number from 0 to 1.
    pub fn unit_interval(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
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

/// Mixes the bits of a number (the finalizer of SplitMix64).
pub fn mix(number: u64) -> u64 {
    let mut z = number;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
