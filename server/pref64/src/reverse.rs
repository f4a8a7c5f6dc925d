//! Reverse names in uncompressed wire form, in both directions: `ip6.arpa` (RFC 3596 section 2.5) and `in-addr.arpa`
//! (RFC 1035 section 3.5).

/// Octets of the `ip6.arpa` name of an address: 32 labels of one nibble, `ip6`, `arpa`, the root.
pub const IP6_NAME: usize = 32 * 2 + IP6_ARPA.len();

/// Octets of the longest `in-addr.arpa` name of an address: four labels of three digits and the rest.
pub const IN_ADDR_NAME_MAX: usize = 4 * 4 + IN_ADDR_ARPA.len();

const IP6_ARPA: &[u8; 10] = b"\x03ip6\x04arpa\x00";
const IN_ADDR_ARPA: &[u8; 14] = b"\x07in-addr\x04arpa\x00";

/// Address of an `ip6.arpa` name; `None` unless the name has exactly 32 nibbles.
pub fn parse_ip6(name: &[u8]) -> Option<[u8; 16]> {
    if name.len() != IP6_NAME {
        return None;
    }
    parse_ip6_partial(name).map(|(bits, _)| bits.to_be_bytes())
}

/// Network of an `ip6.arpa` name with up to 32 nibbles: its address, and its length in bits.
///
/// A name with fewer nibbles than 32 has no PTR record. But if addresses exist below it, it is an empty non-terminal:
/// NOERROR, not NXDOMAIN (RFC 8020).
pub fn parse_ip6_partial(name: &[u8]) -> Option<(u128, u8)> {
    let nibbles = strip_zone(name, IP6_ARPA)?;
    if nibbles.len() > 64 || nibbles.len() % 2 != 0 {
        return None;
    }
    let mut bits = 0u128;
    // The first label is the least significant nibble.
    for label in nibbles.chunks_exact(2).rev() {
        if label[0] != 1 {
            return None;
        }
        bits = bits << 4 | u128::from((label[1] as char).to_digit(16)?);
    }
    let length = nibbles.len() as u8 * 2;
    // A shift by 128 would overflow; without nibbles there is nothing to shift.
    Some((if length == 0 { 0 } else { bits << (128 - length) }, length))
}

/// Writes the `ip6.arpa` name of an address, nibbles in lower case.
pub fn write_ip6(address: [u8; 16], out: &mut [u8; IP6_NAME]) {
    let (labels, zone) = out.split_at_mut(64);
    for (pair, octet) in labels.chunks_exact_mut(4).zip(address.iter().rev()) {
        pair.copy_from_slice(&[1, digit(octet & 15), 1, digit(octet >> 4)]);
    }
    zone.copy_from_slice(IP6_ARPA);
}

/// Address of an `in-addr.arpa` name; `None` unless it has exactly four decimal labels, each 0 to 255 without leading
/// zeros (another spelling is another name in the DNS, and stands for no address).
pub fn parse_in_addr(name: &[u8]) -> Option<[u8; 4]> {
    let mut rest = strip_zone(name, IN_ADDR_ARPA)?;
    let mut address = [0; 4];
    for octet in address.iter_mut().rev() {
        let (length, tail) = rest.split_first()?;
        let (label, tail) = tail.split_at_checked(usize::from(*length))?;
        *octet = decimal(label)?;
        rest = tail;
    }
    rest.is_empty().then_some(address)
}

/// Writes the `in-addr.arpa` name of an address and returns its length.
pub fn write_in_addr(address: [u8; 4], out: &mut [u8; IN_ADDR_NAME_MAX]) -> usize {
    let mut at = 0;
    for octet in address.iter().rev() {
        let digits = [b'0' + octet / 100, b'0' + octet / 10 % 10, b'0' + octet % 10];
        let skip = if *octet >= 100 { 0 } else { 1 + usize::from(*octet < 10) };
        let label = &digits[skip..];
        out[at] = label.len() as u8;
        out[at + 1..at + 1 + label.len()].copy_from_slice(label);
        at += 1 + label.len();
    }
    out[at..at + IN_ADDR_ARPA.len()].copy_from_slice(IN_ADDR_ARPA);
    at + IN_ADDR_ARPA.len()
}

/// Labels before `zone` in `name`, ignoring letter case. Length octets are below 64 and have no case.
fn strip_zone<'a>(name: &'a [u8], zone: &[u8]) -> Option<&'a [u8]> {
    let (rest, end) = name.split_at_checked(name.len().checked_sub(zone.len())?)?;
    end.eq_ignore_ascii_case(zone).then_some(rest)
}

/// One to three digits without leading zeros, at most 255.
fn decimal(label: &[u8]) -> Option<u8> {
    if label.is_empty() || label.len() > 3 || (label.len() > 1 && label[0] == b'0') {
        return None;
    }
    let mut value = 0u16;
    for octet in label {
        if !octet.is_ascii_digit() {
            return None;
        }
        value = value * 10 + u16::from(octet - b'0');
    }
    u8::try_from(value).ok()
}

/// Hexadecimal digit of a value below 16.
fn digit(nibble: u8) -> u8 {
    if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 }
}
