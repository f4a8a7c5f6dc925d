//! Changes of a message in place, for a forwarder or a cache that need not build it anew. [`header`](crate::header)
//! has ID and flags.

use crate::header::HEADER;
use crate::name::name_len;
use crate::types::Type;

/// Changes the type in the question. Returns false and changes nothing if the message has no readable question.
#[inline]
pub fn set_qtype(message: &mut [u8], qtype: Type) -> bool {
    let place = message.get(HEADER..).and_then(name_len).map(|length| HEADER + length);
    match place.and_then(|at| message.get_mut(at..at + 2)) {
        Some(octets) => {
            octets.copy_from_slice(&qtype.0.to_be_bytes());
            true
        }
        None => false,
    }
}

/// Changes a TTL. `at` is the result of [`Record::ttl_start`](crate::Record::ttl_start) for a record of this message.
///
/// # Panics
///
/// If the message ends before the TTL does.
#[inline]
pub fn set_ttl(message: &mut [u8], at: usize, ttl: u32) {
    message[at..at + 4].copy_from_slice(&ttl.to_be_bytes());
}

#[cfg(test)]
mod tests {
    extern crate std;

    use self::std::vec::Vec;
    use super::*;
    use crate::{Message, Section};

    /// `a. AAAA` with two A records for it; the owner of the second is uncompressed.
    const ANSWER: &[u8] = b"\x12\x34\x81\x80\0\x01\0\x02\0\0\0\0\x01a\0\0\x1c\0\x01\
        \xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc6\x33\x64\x01\
        \x01a\0\0\x01\0\x01\0\0\0\x3d\0\x04\xc6\x33\x64\x02";

    #[test]
    fn the_type_asked_for_changes_and_nothing_else() {
        let mut message = ANSWER.to_vec();
        assert!(set_qtype(&mut message, Type::A));
        let changed: Vec<usize> = (0..message.len()).filter(|&at| message[at] != ANSWER[at]).collect();
        assert_eq!(changed, [16]);
        assert_eq!(Message::parse(&message).unwrap().qtype(), Type::A);
    }

    #[test]
    fn every_ttl_can_be_changed_where_it_stands() {
        let mut message = ANSWER.to_vec();
        let places: Vec<usize> = Message::parse(ANSWER)
            .unwrap()
            .records(Section::Answer)
            .map(|record| record.ttl_start())
            .collect();
        for (at, ttl) in places.into_iter().zip([7, 0x0102_0304]) {
            set_ttl(&mut message, at, ttl);
        }
        let parsed = Message::parse(&message).unwrap();
        let read: Vec<_> =
            parsed.records(Section::Answer).map(|record| (record.ttl, record.address4())).collect();
        assert_eq!(read, [(7, Some([198, 51, 100, 1])), (0x0102_0304, Some([198, 51, 100, 2]))]);
    }

    #[test]
    fn a_message_without_a_readable_question_is_left_alone() {
        for cut in 0..17 {
            let mut message = ANSWER[..cut].to_vec();
            assert!(!set_qtype(&mut message, Type::A));
            assert_eq!(message, &ANSWER[..cut]);
        }
    }
}
