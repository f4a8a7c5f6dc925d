//! Files of explicit address mappings (RFC 7757): a plain reader takes the same lines, and looks addresses up one line after the other.

use sixfold::config::mappings_text;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// A line: IPv4 address and length, IPv6 address and length.
type Line = ((u32, u32), (u128, u32));

/// Tests one text.
pub fn run(input: &[u8]) {
    let lines: Vec<Option<Line>> =
        input.split(|&octet| octet == b'\n').filter_map(written).map(line).collect();
    let plain: Option<Vec<Line>> = lines.iter().copied().collect();
    let plain = plain.filter(|lines| is_unambiguous(lines));
    match (mappings_text(Path::new("eam"), input), plain) {
        (Ok(mappings), Some(lines)) => {
            assert_eq!(mappings.len(), lines.len());
            for &((v4, length4), (v6, length6)) in &lines {
                let last4 = v4 | ones(length4, 32) as u32;
                for address in [v4, last4, v4.wrapping_sub(1), last4.wrapping_add(1)] {
                    let found = mappings.to_v6(address.to_be_bytes()).map(u128::from_be_bytes);
                    assert_eq!(found, to_v6(&lines, address), "{}", Ipv4Addr::from(address));
                }
                let last6 = v6 | ones(length6, 128);
                for address in [v6, last6, v6.wrapping_sub(1), last6.wrapping_add(1)] {
                    let found = mappings.to_v4(address.to_be_bytes()).map(u32::from_be_bytes);
                    assert_eq!(found, to_v4(&lines, address), "{}", Ipv6Addr::from(address));
                }
            }
        }
        (Err(faults), None) => {
            assert!(!faults.is_empty() && faults.len() <= lines.len());
            for fault in faults {
                let number = fault.what.strip_prefix("eam:").and_then(|rest| rest.split_once(':'));
                let number = number.and_then(|(number, _)| number.parse::<usize>().ok());
                let ends = input.iter().filter(|&&octet| octet == b'\n').count();
                assert!(number.is_some_and(|number| (1..=ends + 1).contains(&number)), "{}", fault.what);
                assert!(!fault.help.is_empty() && !fault.what.contains(char::is_control), "{}", fault.what);
            }
        }
        (read, plain) => panic!("{read:?}: {plain:?}"),
    }
}

/// The octets of a line before its comment; none if there are none.
fn written(line: &[u8]) -> Option<&[u8]> {
    let end = line.iter().position(|&octet| octet == b'#').unwrap_or(line.len());
    line[..end].iter().any(|octet| !octet.is_ascii_whitespace()).then_some(&line[..end])
}

/// Reads a line.
fn line(octets: &[u8]) -> Option<Line> {
    let words: Vec<&str> = std::str::from_utf8(octets).ok()?.split_ascii_whitespace().collect();
    let &[first, second] = &words[..] else { return None };
    let (v4, length4) = prefix::<Ipv4Addr>(first, 32)?;
    let (v6, length6) = prefix::<Ipv6Addr>(second, 128)?;
    let (v4, v6) = (v4.to_bits(), v6.to_bits());
    let is_sound = u128::from(v4) & ones(length4, 32) == 0
        && v6 & ones(length6, 128) == 0
        && 32 - length4 <= 128 - length6;
    is_sound.then_some(((v4, length4), (v6, length6)))
}

/// Reads an address with its length, which is that of the address unless it says another one.
fn prefix<A: std::str::FromStr>(word: &str, bits: u32) -> Option<(A, u32)> {
    let (address, length) =
        word.split_once('/').map_or((word, None), |(address, length)| (address, Some(length)));
    let length = match length {
        None => bits,
        Some(length) => (0..=bits).find(|bits| bits.to_string() == length)?,
    };
    Some((address.parse().ok()?, length))
}

/// A number whose bits beyond a length are ones, of so many bits.
fn ones(length: u32, bits: u32) -> u128 {
    if length == bits { 0 } else { u128::MAX >> (128 - bits + length) }
}

/// True if no two lines have a prefix in common.
fn is_unambiguous(lines: &[Line]) -> bool {
    lines
        .iter()
        .enumerate()
        .all(|(place, (v4, v6))| lines[..place].iter().all(|(other4, other6)| v4 != other4 && v6 != other6))
}

/// The IPv6 address of an IPv4 address by the longest prefix (RFC 7757 section 3.3.1).
fn to_v6(lines: &[Line], address: u32) -> Option<u128> {
    let contains = |((v4, length), _): &&Line| address & !(ones(*length, 32) as u32) == *v4;
    let ((v4, length4), (v6, length6)) =
        lines.iter().filter(contains).max_by_key(|((_, length), _)| *length)?;
    let rest = 128 - length6 - (32 - length4);
    Some(v6 | u128::from(address ^ v4).checked_shl(rest).unwrap_or(0))
}

/// The IPv4 address of an IPv6 address by the longest prefix (RFC 7757 section 3.3.2).
fn to_v4(lines: &[Line], address: u128) -> Option<u32> {
    let contains = |(_, (v6, length)): &&Line| address & !ones(*length, 128) == *v6;
    let ((v4, length4), (v6, length6)) =
        lines.iter().filter(contains).max_by_key(|(_, (_, length))| *length)?;
    let rest = 128 - length6 - (32 - length4);
    Some(v4 | (address ^ v6).checked_shr(rest).unwrap_or(0) as u32)
}

/// Files that are right, and wrong in each way.
pub fn seeds() -> Vec<Vec<u8>> {
    [
        "# shared with the translator\n192.0.2.1 2001:db8::1\r\n\n192.0.2.16/28 2001:db8:c::/124 # hosts\n0.0.0.0/0 ::/96\n",
        "10.0.0.0/8 2001:db8:a::/64\n10.1.0.0/16 2001:db8:a:0:100::/72\n10.1.2.3/32 2001:db8::3/128\n",
        "192.0.2.17/28 2001:db8::/124\n192.0.2.16/28 2001:db8::/126\n2001:db8:: 192.0.2.1\n192.0.2.1/33 ::\nx\n1.2.3.4 ::/01\n",
        "192.0.2.1 2001:db8::1\n192.0.2.1/32 2001:db8::2\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}
