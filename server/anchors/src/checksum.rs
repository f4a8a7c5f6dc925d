//! CRC-32 (IEEE 802.3): finds damage, and keeps nobody from writing what he likes.

/// Checksum of octets.
pub(crate) fn crc32(octets: &[u8]) -> u32 {
    let mut rest = u32::MAX;
    for &octet in octets {
        rest ^= u32::from(octet);
        for _ in 0..8 {
            rest = if rest & 1 == 1 { rest >> 1 ^ 0xedb8_8320 } else { rest >> 1 };
        }
    }
    !rest
}

#[cfg(test)]
mod tests {
    // The check value of the catalogue of parametrised CRC algorithms, CRC-32/ISO-HDLC.
    #[test]
    fn the_checksum_is_that_of_the_catalogue() {
        assert_eq!(super::crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(super::crc32(b""), 0);
    }
}
