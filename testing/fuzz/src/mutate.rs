//! Seeded mutations of inputs: every test run tests the same mutations of the kept inputs. libFuzzer has its own mutations.

/// A small pseudorandom generator (xorshift64*).
pub struct Rng(u64);

impl Rng {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Rng {
        Rng((seed ^ 0x7367_6978_666f_6c64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (((self.next_u64() >> 32) * bound as u64) >> 32) as usize
    }
}

/// Octets with a meaning in one of the formats: lengths, pointers, ends, signs.
const SPECIAL_OCTETS: [u8; 16] = [0, 1, 2, 12, 16, 41, 63, 64, 127, 128, 191, 192, 193, 255, b'\n', b'"'];

/// Changes an input in one to four places. Parts of `other`, another input, may be inserted.
pub fn mutate(input: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    for _ in 0..1 + rng.below(4) {
        let at = rng.below(input.len() + 1);
        let end = (at + rng.below(16)).min(input.len());
        match rng.below(8) {
            0 | 1 => {
                if let Some(octet) = input.get_mut(at) {
                    *octet ^= 1 << rng.below(8);
                }
            }
            2 | 3 => {
                if let Some(octet) = input.get_mut(at) {
                    *octet = if rng.below(2) == 0 {
                        SPECIAL_OCTETS[rng.below(SPECIAL_OCTETS.len())]
                    } else {
                        rng.next_u64() as u8
                    };
                }
            }
            4 => drop(input.drain(at..end)),
            5 => {
                let piece = input[at..end].to_vec();
                let to = rng.below(input.len() + 1);
                input.splice(to..to, piece);
            }
            6 => {
                let from = rng.below(other.len() + 1);
                let until = (from + rng.below(32)).min(other.len());
                input.splice(at..end, other[from..until].iter().copied());
            }
            _ => input.truncate(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_changes_an_input_in_the_same_way_and_another_in_another() {
        let changed = |seed| {
            let mut input = b"0123456789abcdef".to_vec();
            mutate(&mut input, b"other", &mut Rng::new(seed));
            input
        };
        assert_eq!(changed(1), changed(1));
        let different: std::collections::HashSet<_> = (0..100).map(changed).collect();
        assert!(different.len() > 80);
    }

    #[test]
    fn an_empty_input_can_be_changed() {
        for seed in 0..1000 {
            mutate(&mut Vec::new(), b"", &mut Rng::new(seed));
        }
    }
}
