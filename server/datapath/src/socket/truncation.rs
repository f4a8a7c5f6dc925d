//! The truncated form of a reply that was larger than the buffer: its header and question, with TC set (RFC 2181 section 9).
//! So the machine asks again over TCP at once, and does not wait for a reply that has come already. All records are
//! removed, because the last one was cut in the middle.

use std::ops::Range;

/// Octets of a header (RFC 1035 section 4.1.1).
const HEADER: usize = 12;

/// Offset of the octet with the TC bit, and the bit.
const FLAGS: usize = 2;
const TC: u8 = 0x02;

/// QDCOUNT, and the counts after it: ANCOUNT, NSCOUNT and ARCOUNT.
const QUESTIONS: Range<usize> = 4..6;
const RECORDS: Range<usize> = 6..HEADER;

/// The longest label and the longest name, in octets (RFC 1035 section 2.3.4). A compressed name has a larger first octet. It
/// is malformed here, because no name stands before the question.
const LABEL: u8 = 63;
const NAME: usize = 255;

/// Makes a truncated reply of the first octets of a reply, and returns its length. Returns `None` unless they hold exactly
/// one question, and all of it.
pub(crate) fn truncate(message: &mut [u8]) -> Option<usize> {
    if *message.get(QUESTIONS)? != [0, 1] {
        return None;
    }
    let mut end = HEADER;
    loop {
        let label = *message.get(end)?;
        end += 1 + usize::from(label);
        if label > LABEL || end - HEADER > NAME {
            return None;
        }
        if label == 0 {
            break;
        }
    }
    // Type and class.
    end += 4;
    message.get(..end)?;
    message[FLAGS] |= TC;
    message[RECORDS].fill(0);
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reply with counts for one question, seven answers, one authority record and one OPT record.
    fn reply(name: &[u8]) -> Vec<u8> {
        let header = [0x12, 0x34, 0x81, 0x80, 0, 1, 0, 7, 0, 1, 0, 1];
        [&header[..], name, &[0, 28, 0, 1], &[0xc0, 12, 0, 28, 0, 1, 0, 0]].concat()
    }

    #[test]
    fn header_and_question_stay_and_the_records_go() {
        let mut message = reply(b"\x03www\x07eXample\0");
        let question = message[HEADER..29].to_vec();
        assert_eq!(truncate(&mut message), Some(29));
        assert_eq!(message[..HEADER], [0x12, 0x34, 0x83, 0x80, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(message[HEADER..29], question);
        assert_eq!(truncate(&mut reply(b"\0")), Some(HEADER + 5), "the root has a name too");
    }

    #[test]
    fn a_reply_that_ends_within_its_question_is_lost() {
        let message = reply(b"\x03www\x07example\0");
        for length in 0..29 {
            assert_eq!(truncate(&mut message[..length].to_vec()), None, "{length}");
        }
        assert_eq!(truncate(&mut message[..29].to_vec()), Some(29));
    }

    #[test]
    fn a_reply_without_a_single_readable_question_is_lost() {
        for count in [[0, 0], [0, 2], [1, 1]] {
            let mut message = reply(b"\x03www\0");
            message[QUESTIONS].copy_from_slice(&count);
            assert_eq!(truncate(&mut message), None);
        }
        assert_eq!(truncate(&mut reply(b"\xc0\x0c")), None);
        assert_eq!(truncate(&mut reply(&[&[64][..], &[b'x'; 64], &[0]].concat())), None);
    }

    #[test]
    fn a_name_has_255_octets_at_most() {
        let labels = [&[63][..], &[b'x'; 63]].concat().repeat(3);
        let name = |last: usize| [&labels[..], &[last as u8], &vec![b'x'; last], &[0]].concat();
        assert_eq!(name(61).len(), NAME);
        assert_eq!(truncate(&mut reply(&name(61))), Some(HEADER + NAME + 4));
        assert_eq!(truncate(&mut reply(&name(62))), None);
    }
}
