//! Names of the queries, and the check of the answers. `AAA-BBB-CCC-DDD.dns64perf.test` stands for one IPv4 address;
//! sequence numbers count addresses upwards from 1.0.0.0, so a run never uses a name twice. Every query has the same
//! size, which lets the kernel cut one large send into many datagrams.
//!
//! The check does not use the parsers of the server that it judges.

use measure::name_range::NameRange;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The zone of the names.
pub const ZONE: &str = "dns64perf.test";

/// The /96 in the configuration of every device under test.
pub const PREFIX: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x64, 0, 0, 0, 0, 0);

/// Octets of a query: header 12, labels 16 + 10 + 5, root 1, type and class 4.
pub const QUERY: usize = 48;

/// 1.0.0.0 to 126.255.255.255: no loopback, multicast or reserved addresses, which DNS64 servers may leave out.
pub const NAMES: u64 = 126 << 24;

const FIRST: u32 = 0x0100_0000;
/// Positions of the three digits of each octet of the address.
const DIGITS: [usize; 4] = [13, 17, 21, 25];
const TEMPLATE: &[u8; QUERY] =
    b"\0\0\x01\0\0\x01\0\0\0\0\0\0\x0f000-000-000-000\x09dns64perf\x04test\0\0\x1c\0\x01";

/// The address of a sequence number.
pub fn address(sequence: u64) -> Ipv4Addr {
    Ipv4Addr::from(FIRST + (sequence % NAMES) as u32)
}

/// The message ID of a sequence number: a permutation of 16 bits (odd multiplier), so the last 65,536 queries all
/// differ, and neighbours are far apart.
pub fn id(sequence: u64) -> u16 {
    (sequence as u16).wrapping_mul(0x9e37).wrapping_add(0x3c6f)
}

/// The names of the sequence numbers from `first` to `end`, without that, of which there is at least one.
pub fn range(first: u64, end: u64) -> NameRange {
    NameRange::new(address(first), address(end - 1)).expect("the first name is not behind the last")
}

/// Writes the AAAA query of a sequence number.
pub fn write_query(sequence: u64, query: &mut [u8]) {
    query[..QUERY].copy_from_slice(TEMPLATE);
    query[..2].copy_from_slice(&id(sequence).to_be_bytes());
    for (at, octet) in DIGITS.into_iter().zip(address(sequence).octets()) {
        query[at] = b'0' + octet / 100;
        query[at + 1] = b'0' + octet / 10 % 10;
        query[at + 2] = b'0' + octet % 10;
    }
}

/// Writes the synthesized answer after a query of [`write_query`], of which it reads only the digits. Returns the
/// answer's length, or `None` if the message is no such query or there is no room.
pub fn write_answer(message: &mut [u8], length: usize) -> Option<usize> {
    const RECORD: [u8; 12] = [0xc0, 12, 0, 28, 0, 1, 0, 0, 0x0e, 0x10, 0, 16];
    let end = QUERY + RECORD.len() + 16;
    if length != QUERY || message.len() < end {
        return None;
    }
    let octet = |at: usize| {
        let digits = message[at..at + 3].iter();
        digits.fold(0u8, |value, digit| value.wrapping_mul(10).wrapping_add(digit.wrapping_sub(b'0')))
    };
    let address = u128::from(PREFIX) | u128::from(u32::from_be_bytes(DIGITS.map(octet)));
    message[2] |= 0x80;
    message[7] = 1;
    message[QUERY..end - 16].copy_from_slice(&RECORD);
    message[end - 16..end].copy_from_slice(&address.to_be_bytes());
    Some(end)
}

/// The sequence number of a message, if header and question are those of [`write_query`]: all that a reply of the reflector has, which
/// parses no DNS.
pub fn sequence(message: &[u8]) -> Option<u64> {
    if message.len() < QUERY || message[2] & 0xf8 != 0x80 || message[4..6] != [0, 1] {
        return None;
    }
    let mut octets = [0; 4];
    for (octet, at) in octets.iter_mut().zip(DIGITS) {
        *octet = std::str::from_utf8(&message[at..at + 3]).ok()?.parse().ok()?;
    }
    let number = u32::from(Ipv4Addr::from(octets)).checked_sub(FIRST)?;
    let sequence = u64::from(number);
    let mut asked = [0; QUERY];
    write_query(sequence, &mut asked);
    (sequence < NAMES && asked[12..] == message[12..QUERY] && asked[..2] == message[..2]).then_some(sequence)
}

/// The sequence number (below [`NAMES`]) of the query that a reply answers rightly with a synthesized address; none if there is none.
pub fn check_synthesized(message: &[u8]) -> Option<u64> {
    sequence(message).filter(|sequence| is_right_answer(message, *sequence))
}

/// True if the part after header and question is one synthesized record for the address of a number.
pub fn is_right_answer(message: &[u8], number: u64) -> bool {
    let owner = &message[12..QUERY - 4];
    let rest = &message[QUERY..];
    let Some(record) = rest.strip_prefix(&[0xc0, 12]).or_else(|| rest.strip_prefix(owner)) else {
        return false;
    };
    let expected = u128::from(PREFIX) | u128::from(u32::from(address(number)));
    // Whole, NOERROR, one record: type AAAA, class IN, four octets of TTL, sixteen octets of data.
    message[2] & 0x02 == 0
        && message[3] & 0x0f == 0
        && message[6..8] == [0, 1]
        && record.len() >= 26
        && record[..4] == [0, 28, 0, 1]
        && record[8..10] == [0, 16]
        && record[10..26] == expected.to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(sequence: u64, embedded: Ipv4Addr) -> Vec<u8> {
        let mut message = vec![0; QUERY];
        write_query(sequence, &mut message);
        message[2] = 0x81;
        message[3] = 0x80;
        message[7] = 1;
        message.extend([0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 60, 0, 16]);
        message.extend((u128::from(PREFIX) | u128::from(u32::from(embedded))).to_be_bytes());
        message
    }

    #[test]
    fn a_question_spells_the_address_with_three_digits_per_octet() {
        let mut query = [0; QUERY];
        write_query(0x00_02_03_04, &mut query);
        assert_eq!(&query[13..28], b"001-002-003-004");
        assert_eq!(&query[44..], [0, 28, 0, 1]);
    }

    #[test]
    fn a_right_answer_gives_back_its_sequence_number() {
        for sequence in [0, 1, 255, 256, 65_536, NAMES - 1] {
            assert_eq!(check_synthesized(&answer(sequence, address(sequence))), Some(sequence));
        }
    }

    #[test]
    fn answers_made_from_the_digits_alone_are_right() {
        for sequence in [0, 255, 65_536, NAMES - 1] {
            let mut message = [0; 100];
            write_query(sequence, &mut message);
            let length = write_answer(&mut message, QUERY).unwrap();
            assert_eq!(check_synthesized(&message[..length]), Some(sequence));
            assert_eq!(write_answer(&mut message, QUERY - 1), None);
            assert_eq!(write_answer(&mut message[..length - 1], QUERY), None);
        }
    }

    #[test]
    fn an_answer_with_any_flaw_is_none() {
        let good = answer(77, address(77));
        // QR, ID, two places of the question, TC, RCODE, the count of answers, the type of the record.
        for (at, value) in
            [(2, 0x01), (0, good[0] ^ 1), (13, b'9'), (30, b'D'), (2, 0x83), (3, 0x82), (7, 2), (51, 1)]
        {
            let mut message = good.clone();
            message[at] = value;
            assert_eq!(check_synthesized(&message), None, "{at}");
        }
        for flawed in [&good[..60], &answer(77, address(78)), &[]] {
            assert_eq!(check_synthesized(flawed), None);
        }
    }

    #[test]
    fn the_last_65536_questions_have_different_ids() {
        let mut seen = vec![false; 65_536];
        for sequence in 500..500 + 65_536 {
            assert!(!std::mem::replace(&mut seen[usize::from(id(sequence))], true));
        }
    }
}
