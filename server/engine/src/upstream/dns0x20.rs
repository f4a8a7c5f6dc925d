//! The letter case of outgoing queries (draft-vixie-dnsext-dns0x20): each letter carries one random bit.
//!
//! Only queries over UDP have mixed letters, and with `upstream.mix-case = false` not even these. Over TCP and TLS nobody guesses, and
//! the letters would protect nothing.

use crate::base::name_hash::letters;

/// Bits that bring every letter into lower case.
pub const LOWER_CASE: u64 = u64::MAX;

/// Copies a name in wire form and sets the case of every letter from `bits` (draft-vixie-dnsext-dns0x20): one bit per octet,
/// and the bits repeat after 64 octets. Length octets are at most 63, so they are never letters.
#[inline]
pub fn mix_case(name: &[u8], bits: u64, out: &mut [u8]) {
    let mut bits = bits;
    let out = &mut out[..name.len()];
    let (words, rest) = name.as_chunks::<8>();
    for (from, to) in words.iter().zip(out.as_chunks_mut::<8>().0) {
        *to = mix_word(u64::from_le_bytes(*from), bits).to_le_bytes();
        // Every octet of a word takes its bit at the position of 0x20. Eight rotations bring each of the 64 bits there once.
        bits = bits.rotate_right(1);
    }
    if rest.is_empty() {
        return;
    }
    // The last eight octets; some of them are written again with other bits.
    if let (Some(from), Some(to)) = (name.last_chunk(), out.last_chunk_mut()) {
        *to = mix_word(u64::from_le_bytes(*from), bits).to_le_bytes();
        return;
    }
    for (place, (from, to)) in name.iter().zip(out).enumerate() {
        let capital = from.is_ascii_alphabetic() && bits >> place & 1 == 0;
        *to = if capital { from.to_ascii_uppercase() } else { from.to_ascii_lowercase() };
    }
}

/// Sets the case of the letters in eight octets.
#[inline]
fn mix_word(word: u64, bits: u64) -> u64 {
    word ^ (letters(word) & (word ^ bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixed_case_changes_letters_only_and_uses_every_bit() {
        // Lengths of every remainder modulo 8, from the root to several words.
        let long = b"\x0fabcdefghijklmno\x03XyZ\x041-2{\x00";
        for name in (1..=long.len()).map(|len| &long[..len]).chain([b"\x00".as_slice()]) {
            let mut lower = [0u8; 26];
            let mut upper = [0u8; 26];
            for bit in 0..64 {
                let mut out = [0u8; 26];
                mix_case(name, 1 << bit, &mut out);
                assert!(out[..name.len()].eq_ignore_ascii_case(name));
                for (i, octet) in out[..name.len()].iter().enumerate() {
                    lower[i] |= u8::from(octet.is_ascii_lowercase());
                    upper[i] |= u8::from(octet.is_ascii_uppercase());
                }
            }
            for (i, octet) in name.iter().enumerate() {
                let letter = u8::from(octet.is_ascii_alphabetic());
                assert_eq!((lower[i], upper[i]), (letter, letter), "octet {i} of {}", name.len());
            }
        }
    }
}
