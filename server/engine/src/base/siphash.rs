//! SipHash-2-4 (Aumasson and Bernstein, 2012): the pseudorandom function that RFC 9018 section 4.4 requires for server cookies.
//! The engine makes its client cookies with it too.

/// Hash of `data` with a key of 128 bits.
pub fn siphash(key: &[u8; 16], data: &[u8]) -> u64 {
    let (halves, _) = key.as_chunks::<8>();
    let [low, high] = [halves[0], halves[1]].map(u64::from_le_bytes);
    // Constants of the paper: "somepseudorandomlygeneratedbytes".
    let mut state = State([
        low ^ 0x736f_6d65_7073_6575,
        high ^ 0x646f_7261_6e64_6f6d,
        low ^ 0x6c79_6765_6e65_7261,
        high ^ 0x7465_6462_7974_6573,
    ]);
    let (words, rest) = data.as_chunks::<8>();
    for word in words {
        state.absorb(u64::from_le_bytes(*word));
    }
    // Last word: the remaining octets, and the length modulo 256 in the highest octet.
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    last[7] = data.len() as u8;
    state.absorb(u64::from_le_bytes(last));
    state.0[2] ^= 0xff;
    for _ in 0..4 {
        state.round();
    }
    state.0.iter().fold(0, |hash, word| hash ^ word)
}

/// Internal state: v0 to v3 of the paper.
struct State([u64; 4]);

impl State {
    /// Adds a word with two rounds: the 2 of SipHash-2-4.
    #[inline]
    fn absorb(&mut self, word: u64) {
        self.0[3] ^= word;
        self.round();
        self.round();
        self.0[0] ^= word;
    }

    /// One SipRound of the paper.
    #[inline]
    fn round(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.0;
        a = a.wrapping_add(b);
        b = b.rotate_left(13) ^ a;
        a = a.rotate_left(32);
        c = c.wrapping_add(d);
        d = d.rotate_left(16) ^ c;
        a = a.wrapping_add(d);
        d = d.rotate_left(21) ^ a;
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
        self.0 = [a, b, c, d];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test vectors of the reference implementation of the paper: key 00..0f, data 00, 01, 02 and so on.
    #[test]
    fn the_hash_equals_that_of_the_reference_implementation() {
        let key = core::array::from_fn(|at| at as u8);
        let data: [u8; 64] = core::array::from_fn(|at| at as u8);
        for (length, hash) in [
            (0, 0x726f_db47_dd0e_0e31),
            (1, 0x74f8_39c5_93dc_67fd),
            (7, 0xab02_00f5_8b01_d137),
            (8, 0x93f5_f579_9a93_2462),
            (15, 0xa129_ca61_49be_45e5),
            (63, 0x958a_324c_eb06_4572),
        ] {
            assert_eq!(siphash(&key, &data[..length]), hash, "{length} octets");
        }
    }
}
