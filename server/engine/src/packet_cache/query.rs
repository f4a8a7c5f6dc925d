//! Query that a packet cache may answer, and the key under which the cache looks the entry up.
//!
//! It asks one question of class IN with RD, perhaps with AD, for a name of up to [`LONGEST_NAME`] octets. It has no OPT record, or one
//! without DO whose options belong to streams (keepalive, padding). The program in the kernel has the same conditions, but takes no
//! options, and the same key and hash (`read_question` in `bpf/query.h` of the crate `xdp`).

use crate::message::stream_options::StreamOptions;
use wire::HEADER;

/// Octets of the longest name, with the root: `LONGEST_NAME` of `bpf/query.h`.
const LONGEST_NAME: usize = 64;
/// Words of a key, `struct question` of that file: type and flags; the name in lower case, filled up with zeros.
pub const PACKET_CACHE_KEY: usize = 1 + LONGEST_NAME / 8;

/// Octets of the longest query without OPT record.
const LONGEST_QUERY: usize = HEADER + LONGEST_NAME + 4;
/// The flags RD and AD in the third and fourth octet of a header.
const RD: u8 = 0x01;
const AD: u8 = 0x20;

/// The key of an entry.
pub type PacketCacheKey = [u64; PACKET_CACHE_KEY];

/// A query that a packet cache may answer, without its ID and letter case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketCacheQuery {
    message: [u8; LONGEST_QUERY],
    length: usize,
    /// Options of the OPT record; none without one.
    options: Option<StreamOptions>,
}

impl PacketCacheQuery {
    /// Reads a client's message. None: it is for the engine.
    pub fn of(message: &[u8]) -> Option<PacketCacheQuery> {
        let (header, rest) = message.split_at_checked(HEADER)?;
        let &[_, _, high, low, 0, 1, 0, 0, 0, 0, 0, additional @ (0 | 1)] = header else { return None };
        let length = name_length(rest)?;
        let (question, opt) = rest.split_at_checked(length + 4)?;
        if high != RD || low & !AD != 0 || question[length + 2..] != [0, 1] {
            return None;
        }
        let options = match additional {
            0 if opt.is_empty() => None,
            0 => return None,
            _ => Some(options_of(opt)?),
        };
        let mut query =
            PacketCacheQuery { message: [0; LONGEST_QUERY], length: HEADER + question.len(), options };
        query.message[2..HEADER].copy_from_slice(&[high, low, 0, 1, 0, 0, 0, 0, 0, 0]);
        let copy = &mut query.message[HEADER..query.length];
        copy.copy_from_slice(question);
        copy[..length].make_ascii_lowercase();
        Some(query)
    }

    /// The query, with ID 0, its name in lower case, and without OPT record.
    pub fn message(&self) -> &[u8] {
        &self.message[..self.length]
    }

    /// Octets of the query, with an OPT record without options or with none.
    pub fn octets(&self, has_opt: bool) -> usize {
        self.length + if has_opt { wire::OPT_LEN } else { 0 }
    }

    /// Octets of the name.
    fn name_length(&self) -> usize {
        self.length - HEADER - 4
    }

    /// Options of the OPT record; none without one.
    pub fn options(&self) -> Option<StreamOptions> {
        self.options
    }

    /// True if there is no OPT record with options.
    pub fn has_no_options(&self) -> bool {
        self.options.is_none_or(|options| options == StreamOptions::NONE)
    }

    /// The key of its entry.
    pub fn key(&self) -> PacketCacheKey {
        let mut octets = [0; 8 * PACKET_CACHE_KEY];
        let end = HEADER + self.name_length();
        octets[..2].copy_from_slice(&self.message[end..end + 2]);
        octets[2..4].copy_from_slice(&self.message[2..4]);
        octets[8..8 + self.name_length()].copy_from_slice(&self.message[HEADER..end]);
        let words = octets.as_chunks::<8>().0;
        std::array::from_fn(|word| u64::from_ne_bytes(words[word]))
    }

    /// The hash of its key. Of the name only the words up to the root count, as in the program, which knows no others.
    pub fn hash(&self, seed: u64) -> u64 {
        let hashed = |hash: u64, word: &u64| {
            let hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^ hash >> 29
        };
        let [kind, name @ ..] = self.key();
        hashed(name[..self.name_length().div_ceil(8)].iter().fold(seed, hashed), &kind)
    }
}

/// The options of an OPT record that is the rest of a message. None: it is no such record, or has other options.
fn options_of(record: &[u8]) -> Option<StreamOptions> {
    let &[0, 0, 41, _, _, 0, 0, 0, 0, high, low, ref data @ ..] = record else { return None };
    if data.len() != usize::from(u16::from_be_bytes([high, low])) {
        return None;
    }
    StreamOptions::alone(data)
}

/// Octets of the name at the begin of a message part; none if it is compressed, cut or too long.
fn name_length(octets: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match octets.get(at)? {
            0 => break,
            label @ 1..=63 => at += 1 + usize::from(*label),
            _ => return None,
        }
    }
    (at < LONGEST_NAME).then_some(at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(name: &[u8], flags: [u8; 2], opt: &[u8]) -> Vec<u8> {
        let header = [7, 9, flags[0], flags[1], 0, 1, 0, 0, 0, 0, 0, u8::from(!opt.is_empty())];
        [&header[..], name, &[0, 28, 0, 1], opt].concat()
    }

    const WWW: &[u8] = b"\x03wWw\x07eXample\x00";
    const EMPTY_OPT: [u8; wire::OPT_LEN] = [0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0];

    #[test]
    fn letter_case_id_and_opt_record_make_no_difference() {
        let plain = PacketCacheQuery::of(&query(WWW, [1, 0], &[])).unwrap();
        assert_eq!(
            plain.message(),
            [&[0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], b"\x03www\x07example\x00\0\x1c\0\x01"].concat()
        );
        let with_opt = PacketCacheQuery::of(&query(WWW, [1, 0], &EMPTY_OPT)).unwrap();
        assert_eq!((with_opt.message(), with_opt.key()), (plain.message(), plain.key()));
        assert_eq!((plain.options(), with_opt.options()), (None, Some(StreamOptions::NONE)));
        let with_ad = PacketCacheQuery::of(&query(WWW, [1, AD], &[])).unwrap();
        assert_ne!(with_ad.key(), plain.key());
        assert_ne!(plain.hash(1), plain.hash(2));
    }

    #[test]
    fn every_other_query_is_for_the_engine() {
        let odd = |at: usize, octet: u8, opt: &[u8]| {
            let mut message = query(WWW, [1, 0], opt);
            message[at] = octet;
            PacketCacheQuery::of(&message).is_none()
        };
        // RD clear, QR, opcode, CD, Z; numbers of records; class; a compressed name.
        for (at, octet) in [
            (2, 0),
            (2, 0x81),
            (2, 0x09),
            (3, 0x10),
            (3, 0x40),
            (4, 1),
            (5, 2),
            (6, 1),
            (7, 1),
            (9, 1),
            (10, 1),
            (11, 1),
        ] {
            assert!(odd(at, octet, &[]), "{at}");
        }
        let whole = query(WWW, [1, 0], &[]);
        assert!(odd(whole.len() - 1, 3, &[]) && odd(HEADER, 0xc0, &[]));
        // DO, version 1, an extended RCODE, more octets than there are, another type, an owner.
        for (at, octet) in [(7, 0x80), (6, 1), (5, 1), (10, 4), (2, 42), (0, 1)] {
            assert!(odd(whole.len() + at, octet, &EMPTY_OPT), "{at}");
        }
        for length in 0..whole.len() {
            assert_eq!(PacketCacheQuery::of(&whole[..length]), None);
        }
        assert_eq!(PacketCacheQuery::of(&[&whole[..], &[0]].concat()), None, "trailing octets");
    }

    #[test]
    fn a_query_may_have_the_options_of_streams_and_no_others() {
        let options = |options: &[u8]| {
            let mut opt = EMPTY_OPT.to_vec();
            opt[10] = options.len() as u8;
            opt.extend(options);
            PacketCacheQuery::of(&query(WWW, [1, 0], &opt)).map(|query| query.options().unwrap())
        };
        assert_eq!(options(&[0, 12, 0, 2, 0, 0]), Some(StreamOptions::PADDING));
        assert_eq!(options(&[0, 11, 0, 0]), Some(StreamOptions::KEEPALIVE));
        let both = options(&[0, 11, 0, 0, 0, 12, 0, 0]).unwrap();
        assert!(both.contains(StreamOptions::PADDING) && both.contains(StreamOptions::KEEPALIVE));
        // A cookie, a client subnet, the identity, a keepalive option with a timeout, options that are cut.
        for odd in [
            &[0, 10, 0, 0][..],
            &[0, 8, 0, 0],
            &[0, 3, 0, 0],
            &[0, 11, 0, 2, 0, 9],
            &[0, 12, 0],
            &[0, 12, 0, 1],
            &[0, 12],
        ] {
            assert_eq!(options(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn a_name_may_have_64_octets() {
        // A label of one octet, one of the rest, the root.
        let of_length = |length: usize| {
            let rest = length - 4;
            let name = [&[1, b'a', rest as u8][..], &vec![b'b'; rest], &[0]].concat();
            PacketCacheQuery::of(&query(&name, [1, 0], &[])).is_some()
        };
        assert!(of_length(5) && of_length(39) && of_length(64) && !of_length(65));
        assert!(PacketCacheQuery::of(&query(&[0], [1, 0], &[])).is_some(), "the root");
    }
}
