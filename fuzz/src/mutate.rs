//! Changes of inputs that follow from a number: every test run tries the neighbours of the inputs that are kept, always the
//! same ones. libFuzzer has its own.

/// A small generator of numbers (xorshift64*).
pub struct Chance(u64);

impl Chance {
    /// The same seed, the same numbers.
    pub fn new(seed: u64) -> Chance {
        Chance((seed ^ 0x7367_6978_666f_6c64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`; 0 when that is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (((self.bits() >> 32) * bound as u64) >> 32) as usize
    }
}

/// Octets that mean something in one format or another: lengths, pointers, ends, signs.
const ODD: [u8; 16] = [0, 1, 2, 12, 16, 41, 63, 64, 127, 128, 191, 192, 193, 255, b'\n', b'"'];

/// Changes an input in one to four places. `other` is another input, of which a part may be taken.
pub fn mutate(input: &mut Vec<u8>, other: &[u8], chance: &mut Chance) {
    for _ in 0..1 + chance.below(4) {
        let at = chance.below(input.len() + 1);
        let end = (at + chance.below(16)).min(input.len());
        match chance.below(8) {
            0 | 1 => {
                if let Some(octet) = input.get_mut(at) {
                    *octet ^= 1 << chance.below(8);
                }
            }
            2 | 3 => {
                if let Some(octet) = input.get_mut(at) {
                    *octet =
                        if chance.below(2) == 0 { ODD[chance.below(ODD.len())] } else { chance.bits() as u8 };
                }
            }
            4 => drop(input.drain(at..end)),
            5 => {
                let piece = input[at..end].to_vec();
                let to = chance.below(input.len() + 1);
                input.splice(to..to, piece);
            }
            6 => {
                let from = chance.below(other.len() + 1);
                let until = (from + chance.below(32)).min(other.len());
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
            mutate(&mut input, b"other", &mut Chance::new(seed));
            input
        };
        assert_eq!(changed(1), changed(1));
        let different: std::collections::HashSet<_> = (0..100).map(changed).collect();
        assert!(different.len() > 80);
    }

    #[test]
    fn an_empty_input_can_be_changed() {
        for seed in 0..1000 {
            mutate(&mut Vec::new(), b"", &mut Chance::new(seed));
        }
    }
}
