//! Number of different client networks, in 64 octets: exact up to 16, an estimate beyond (HyperLogLog; Flajolet, Fusy, Gandouet and
//! Meunier, 2007).

/// Networks that are kept one by one.
pub const EXACT_NETWORKS: usize = 16;

/// Registers of the estimate. The standard error is 1.04 / sqrt(64), 13 %.
const REGISTERS: usize = 64;

/// Bits of a hash that choose the register.
const REGISTER_BITS: u32 = REGISTERS.trailing_zeros();

/// A set of client networks, of which only the size is known. All of one process use the same key for hashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NetworkSet {
    /// Hashes of the networks, and their number.
    Exact([u32; EXACT_NETWORKS], u8),
    /// For each register the highest rank of a hash: the place of its first one bit.
    Estimate([u8; REGISTERS]),
}

impl Default for NetworkSet {
    fn default() -> NetworkSet {
        NetworkSet::Exact([0; EXACT_NETWORKS], 0)
    }
}

impl NetworkSet {
    /// Adds a network by the keyed hash of it.
    pub(crate) fn insert(&mut self, hash: u64) {
        self.insert_short((mixed(hash) >> 32) as u32);
    }

    fn insert_short(&mut self, hash: u32) {
        match self {
            NetworkSet::Exact(hashes, length) => {
                let known = &hashes[..usize::from(*length)];
                if known.contains(&hash) {
                    return;
                }
                if let Some(free) = hashes.get_mut(usize::from(*length)) {
                    *free = hash;
                    *length += 1;
                    return;
                }
                let mut registers = [0; REGISTERS];
                hashes.iter().chain([&hash]).for_each(|&hash| note(&mut registers, hash));
                *self = NetworkSet::Estimate(registers);
            }
            NetworkSet::Estimate(registers) => note(registers, hash),
        }
    }

    /// Adds the networks of another set.
    pub(crate) fn include(&mut self, other: &NetworkSet) {
        match (&mut *self, other) {
            (_, NetworkSet::Exact(hashes, length)) => {
                hashes[..usize::from(*length)].iter().for_each(|&hash| self.insert_short(hash));
            }
            (NetworkSet::Exact(hashes, length), NetworkSet::Estimate(registers)) => {
                let mut registers = *registers;
                hashes[..usize::from(*length)].iter().for_each(|&hash| note(&mut registers, hash));
                *self = NetworkSet::Estimate(registers);
            }
            (NetworkSet::Estimate(own), NetworkSet::Estimate(others)) => {
                own.iter_mut().zip(others).for_each(|(own, other)| *own = (*own).max(*other));
            }
        }
    }

    /// Number of networks.
    pub(crate) fn len(&self) -> u64 {
        match self {
            NetworkSet::Exact(_, length) => u64::from(*length),
            NetworkSet::Estimate(registers) => estimate(registers).max(EXACT_NETWORKS as u64 + 1),
        }
    }
}

/// Hashes of neighbouring networks differ by a product, and lie more evenly than at random. The end of SplitMix64 (Steele, Lea and Flood,
/// 2014) makes them independent, as the estimate needs them.
fn mixed(hash: u64) -> u64 {
    let hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}

fn note(registers: &mut [u8; REGISTERS], hash: u32) {
    let register = &mut registers[hash as usize % REGISTERS];
    // At most 27, as the bits of the register do not count.
    let rank = ((hash >> REGISTER_BITS).leading_zeros() - REGISTER_BITS + 1) as u8;
    *register = (*register).max(rank);
}

/// The estimate of the paper, with linear counting for small sets.
fn estimate(registers: &[u8; REGISTERS]) -> u64 {
    let all = REGISTERS as f64;
    let inverse: f64 = registers.iter().map(|&rank| 0.5f64.powi(i32::from(rank))).sum();
    let raw = 0.709 * all * all / inverse;
    let zeros = registers.iter().filter(|&&rank| rank == 0).count();
    let is_small = raw <= 2.5 * all && zeros > 0;
    (if is_small { all * (all / zeros as f64).ln() } else { raw }).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::name_hash::HashKey;

    const KEY: HashKey = HashKey([0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9]);

    /// The networks of these numbers, each of them twice.
    fn set(numbers: std::ops::Range<u128>) -> NetworkSet {
        set_with(KEY, numbers)
    }

    fn set_with(key: HashKey, numbers: std::ops::Range<u128>) -> NetworkSet {
        let mut set = NetworkSet::default();
        for number in numbers.clone().chain(numbers) {
            set.insert(key.hash_number((0x2001_0db8 << 96) | number << 64));
        }
        set
    }

    #[test]
    fn sixteen_networks_are_counted_exactly() {
        for number in 0..=16 {
            assert_eq!(set(0..number).len(), number as u64);
        }
        assert!(set(0..17).len() >= 17);
    }

    #[test]
    fn more_networks_are_estimated() {
        // The mean of 25 estimates, each with a key of its own: the standard error is 13 % / 5, and three of them are 7.8 %.
        let mut random = kit::Random::new(1);
        let keys: Vec<HashKey> = (0..25).map(|_| HashKey([random.bits(), random.bits() | 1])).collect();
        for number in [20, 50, 200, 1_000, 10_000] {
            let sum: u64 = keys.iter().map(|&key| set_with(key, 0..number).len()).sum();
            let ratio = sum as f64 / (25 * number) as f64;
            assert!((0.92..1.08).contains(&ratio), "{number}: {ratio}");
        }
    }

    #[test]
    fn sets_are_joined_without_counting_a_network_twice() {
        for (one, other, both) in [(0..5, 3..9, 0..9), (0..10, 8..20, 0..20), (0..300, 200..205, 0..300)] {
            for (first, second) in [(one.clone(), other.clone()), (other, one)] {
                let mut joined = set(first);
                joined.include(&set(second));
                assert_eq!(joined.len(), set(both.clone()).len());
            }
        }
        let mut large = set(0..300);
        large.include(&set(100..600));
        assert_eq!(large, set(0..600));
    }
}
