//! Reverse names of addresses in wire form (RFC 1035 section 3.5, RFC 3596 section 2.5).

/// The reverse name of an IPv4 address.
pub fn in_addr(v4: [u8; 4]) -> Vec<u8> {
    let mut wire = vec![];
    for octet in v4.iter().rev() {
        let digits = octet.to_string();
        wire.push(digits.len() as u8);
        wire.extend(digits.bytes());
    }
    wire.extend(b"\x07in-addr\x04arpa\x00");
    wire
}

/// The reverse name of an IPv6 address.
pub fn ip6(address: [u8; 16]) -> Vec<u8> {
    let mut wire = vec![];
    for octet in address.iter().rev() {
        for nibble in [octet & 15, octet >> 4] {
            wire.extend([1, b"0123456789abcdef"[usize::from(nibble)]]);
        }
    }
    wire.extend(b"\x03ip6\x04arpa\x00");
    wire
}
