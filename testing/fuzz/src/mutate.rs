//! Seeded mutations of inputs: every test run tests the same mutations of the kept inputs. libFuzzer has its own mutations.

use kit::Random;

/// Octets with a meaning in one of the formats: lengths, pointers, ends, signs.
const SPECIAL_OCTETS: [u8; 16] = [0, 1, 2, 12, 16, 41, 63, 64, 127, 128, 191, 192, 193, 255, b'\n', b'"'];

/// Changes an input in one to four places. Parts of `other`, another input, may be inserted.
pub fn mutate(input: &mut Vec<u8>, other: &[u8], rng: &mut Random) {
    for _ in 0..1 + rng.place(4) {
        let at = rng.place(input.len() + 1);
        let end = (at + rng.place(16)).min(input.len());
        match rng.place(8) {
            0 | 1 => {
                if let Some(octet) = input.get_mut(at) {
                    *octet ^= 1 << rng.place(8);
                }
            }
            2 | 3 => {
                if let Some(octet) = input.get_mut(at) {
                    *octet = if rng.place(2) == 0 {
                        SPECIAL_OCTETS[rng.place(SPECIAL_OCTETS.len())]
                    } else {
                        rng.bits() as u8
                    };
                }
            }
            4 => drop(input.drain(at..end)),
            5 => {
                let piece = input[at..end].to_vec();
                let to = rng.place(input.len() + 1);
                input.splice(to..to, piece);
            }
            6 => {
                let from = rng.place(other.len() + 1);
                let until = (from + rng.place(32)).min(other.len());
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
            mutate(&mut input, b"other", &mut Random::new(seed));
            input
        };
        assert_eq!(changed(1), changed(1));
        let different: std::collections::HashSet<_> = (0..100).map(changed).collect();
        assert!(different.len() > 80);
    }

    #[test]
    fn an_empty_input_can_be_changed() {
        for seed in 0..1000 {
            mutate(&mut Vec::new(), b"", &mut Random::new(seed));
        }
    }
}
