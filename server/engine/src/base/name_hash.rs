//! Keyed hash over the case-folded domain name, and the letter mask that DNS 0x20 encoding uses too. The key is random at each
//! start, so an attacker cannot choose many names that fall into one hash bucket.

const LOWER: u64 = 0x2020_2020_2020_2020;
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Key of the hash.
#[derive(Clone, Copy)]
pub struct HashKey(pub [u64; 2]);

impl HashKey {
    /// Hashes a name in wire form, ignoring ASCII case. It multiplies and folds eight octets at a time.
    #[inline]
    pub fn hash(&self, name: &[u8]) -> u64 {
        let mut state = self.0[0] ^ name.len() as u64;
        let (words, rest) = name.as_chunks::<8>();
        for word in words {
            state = fold_multiply(state ^ fold_case(u64::from_le_bytes(*word)), self.0[1]);
        }
        if !rest.is_empty() {
            // Hash the last eight octets, some of them a second time. The state includes the length, so this is as good as
            // padding.
            let tail = match name.last_chunk() {
                Some(last) => u64::from_le_bytes(*last),
                None => rest.iter().fold(0, |word, &octet| word << 8 | u64::from(octet)),
            };
            state = fold_multiply(state ^ fold_case(tail), self.0[1]);
        }
        fold_multiply(state, self.0[0] | 1)
    }

    /// Hashes a number.
    #[inline]
    pub fn hash_number(&self, number: u128) -> u64 {
        let low = fold_multiply(number as u64 ^ self.0[0], self.0[1]);
        fold_multiply(low ^ (number >> 64) as u64, self.0[0] | 1)
    }
}

/// Multiplies to 128 bits and combines both halves by XOR.
#[inline]
pub(crate) fn fold_multiply(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Mask with 0x20 in every octet that is an ASCII letter, and 0 in the others.
#[inline]
pub(crate) fn letters(word: u64) -> u64 {
    // Take an octet with bit 7 clear and bit 5 set. Adding 0x1f sets bit 7 if the octet is 'a' (0x61) or more; adding 0x05
    // sets bit 7 if it is '{' (0x7b, the octet after 'z') or more. The letters are where the first sum has bit 7 and the
    // second has not. Octets that had bit 7 set before are not letters.
    let lower = (word | LOWER) & !HIGH;
    let from_a = lower + ONES * 0x1f;
    let after_z = lower + ONES * 0x05;
    ((from_a ^ after_z) & !word & HIGH) >> 2
}

/// Converts the ASCII letters among eight octets to lower case.
#[inline]
pub(crate) fn fold_case(word: u64) -> u64 {
    word | letters(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_ascii_letters_are_letters() {
        for octet in 0..=255u8 {
            for place in 0..8 {
                let word = u64::from(octet) << (8 * place);
                let expected = if octet.is_ascii_alphabetic() { 0x20u64 << (8 * place) } else { 0 };
                assert_eq!(letters(word), expected, "octet {octet:#x} at {place}");
            }
            assert_eq!(letters(u64::from(octet) * ONES) != 0, octet.is_ascii_alphabetic());
        }
    }

    #[test]
    fn the_hash_ignores_case_and_nothing_else() {
        let key = HashKey([0x1234_5678_9abc_def1, 0x0fed_cba9_8765_4321]);
        assert_eq!(key.hash(b"\x03WwW\x07eXamPle\x00"), key.hash(b"\x03www\x07example\x00"));
        assert_ne!(key.hash(b"\x03www\x07example\x00"), key.hash(b"\x03www\x07exampl1\x00"));
        assert_ne!(key.hash(b"\x01[\x00"), key.hash(b"\x01{\x00"));
        assert_ne!(key.hash(b"\x01a\x00"), HashKey([1, 2]).hash(b"\x01a\x00"));
    }

    #[test]
    fn names_that_share_a_bucket_spread_under_another_key() {
        // An attacker who knew one key chose 200 names for one of 256 buckets. Under the next key these names spread.
        let known = HashKey([0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9]);
        let next = HashKey([0x1234_5678_9abc_def1, 0x0fed_cba9_8765_4321]);
        let names = (0..1_000_000u32).map(|number| format!("\x08{number:08x}\x04test\x00").into_bytes());
        let chosen: Vec<_> = names.filter(|name| known.hash(name) & 255 == 7).take(200).collect();
        assert_eq!(chosen.len(), 200);
        let mut buckets = [0; 256];
        chosen.iter().for_each(|name| buckets[next.hash(name) as usize & 255] += 1);
        // 200 names in 256 buckets: the probability of eight in one bucket is below one in a million.
        assert!(buckets.iter().all(|&count| count < 8), "{buckets:?}");
    }
}
