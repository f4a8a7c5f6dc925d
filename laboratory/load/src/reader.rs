//! Reader of names and records in a message, in order and within bounds. It is independent of the server's parser,
//! because it checks servers. It is ours, and not that of `domain` as in other judges, for its speed:
//! each reply under load is judged in full on the core that sends the queries, so what it takes is missing in the highest rate that can be
//! offered. Names are read into a buffer on the stack, and records stay where they are in the message.

/// Octets of the longest name (RFC 1035 section 2.3.4).
pub const NAME: usize = 255;

/// Octets of a record between its owner and its RDATA: type 2, class 2, TTL 4, length 2.
const FIXED: usize = 10;

/// An uncompressed name, in lower case.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    octets: [u8; NAME],
    length: usize,
}

impl Name {
    /// The wire form.
    pub fn octets(&self) -> &[u8] {
        &self.octets[..self.length]
    }

    /// Reads the name at an offset, and returns the offset after it. Returns `None` if the name is cut off or too
    /// long, or has a pointer that does not lead backwards (RFC 1035 section 4.1.4: to a prior occurrence), so that
    /// every read ends.
    pub fn read(message: &[u8], at: usize) -> Option<(Name, usize)> {
        let mut name = Name { octets: [0; NAME], length: 0 };
        let (mut at, mut lowest, mut after) = (at, at, None);
        loop {
            let length = usize::from(*message.get(at)?);
            match length {
                0 => {
                    name.push(&[0])?;
                    return Some((name, after.unwrap_or(at + 1)));
                }
                1..=63 => {
                    name.push(message.get(at..at + 1 + length)?)?;
                    at += 1 + length;
                }
                192.. => {
                    let target = (length & 0x3f) << 8 | usize::from(*message.get(at + 1)?);
                    after = after.or(Some(at + 2));
                    if target >= lowest {
                        return None;
                    }
                    (at, lowest) = (target, target);
                }
                _ => return None,
            }
        }
    }

    fn push(&mut self, octets: &[u8]) -> Option<()> {
        let end = self.length + octets.len();
        let room = self.octets.get_mut(self.length..end)?;
        room.copy_from_slice(octets);
        // A length octet is below 64, so it is not a letter.
        room.make_ascii_lowercase();
        self.length = end;
        Some(())
    }
}

/// The offset after the name at an offset.
fn skip(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *message.get(at)? {
            0 => return Some(at + 1),
            length @ 1..=63 => at += 1 + usize::from(length),
            192.. => return Some(at + 2),
            _ => return None,
        }
    }
}

/// A record, without its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// TYPE.
    pub kind: u16,
    /// CLASS.
    pub class: u16,
    /// TTL in seconds.
    pub ttl: u32,
    /// Offset of the RDATA.
    pub data: usize,
    /// Offset of the record's end.
    pub end: usize,
}

impl Record {
    /// Reads the record whose owner begins at an offset. `None` if it is cut off.
    pub fn read(message: &[u8], at: usize) -> Option<Record> {
        Record::behind(message, skip(message, at)?)
    }

    /// Reads the record whose owner ends at an offset.
    #[inline]
    pub fn behind(message: &[u8], at: usize) -> Option<Record> {
        let fixed: &[u8; FIXED] = message.get(at..at + FIXED)?.try_into().ok()?;
        let [k0, k1, c0, c1, t0, t1, t2, t3, l0, l1] = *fixed;
        let data = at + FIXED;
        let end = data + usize::from(u16::from_be_bytes([l0, l1]));
        (end <= message.len()).then_some(Record {
            kind: u16::from_be_bytes([k0, k1]),
            class: u16::from_be_bytes([c0, c1]),
            ttl: u32::from_be_bytes([t0, t1, t2, t3]),
            data,
            end,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_through_pointers_and_lowered() {
        let message = b"\x03Foo\x00\x01A\xc0\x00\xff";
        let (name, after) = Name::read(message, 5).unwrap();
        assert_eq!(name.octets(), b"\x01a\x03foo\x00");
        assert_eq!((after, skip(message, 5)), (9, Some(9)));
        assert_eq!(Name::read(message, 0).unwrap().1, 5);
    }

    #[test]
    fn a_name_that_is_cut_off_too_long_or_turns_back_on_itself_is_none() {
        for message in [&b""[..], b"\x03fo", b"\x03foo", b"\xc0", b"\xc0\x00", b"\x01a\xc0\x00", b"\x40a\x00"]
        {
            assert!(Name::read(message, 0).is_none(), "{message:?}");
        }
        // Two pointers at each other.
        assert!(Name::read(b"\xc0\x02\xc0\x00", 2).is_none());
        let mut long = b"\x3f".iter().copied().chain([b'a'; 63]).collect::<Vec<u8>>().repeat(4);
        long.push(0);
        assert!(Name::read(&long, 0).is_none());
        assert!(Name::read(&long[2..], 62).is_some());
    }

    #[test]
    fn a_record_says_where_its_data_is() {
        let message = b"\x00\x00\x1c\x00\x01\x00\x00\x00\x3c\x00\x02xy";
        let record = Record { kind: 28, class: 1, ttl: 60, data: 11, end: 13 };
        assert_eq!(Record::read(message, 0), Some(record));
        assert_eq!(Record::read(&message[..12], 0), None);
    }
}
