//! Check that the names of a message hang together: every compression pointer leads to a label of a name before it, and not into other
//! octets that look like a name. Such octets may change while the message is kept: TTLs count down.

use crate::header::HEADER;
use crate::limits::POINTER_REACH;
use crate::message::{Message, Section};
use crate::name::{POINTER, pointer};
use crate::rdata::layout;

/// Positions that a pointer may lead to, as bits: 2 KiB.
struct LabelStarts {
    words: [u64; POINTER_REACH / 64],
}

impl LabelStarts {
    fn add(&mut self, at: usize) {
        if let Some(word) = self.words.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    fn has(&self, at: usize) -> bool {
        self.words.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// Adds the labels of the name at `at`, and returns its end in place. `None` if its pointer leads elsewhere than to a label.
    fn name(&mut self, bytes: &[u8], mut at: usize) -> Option<usize> {
        loop {
            let octet = *bytes.get(at)?;
            if octet >= POINTER && !self.has(pointer(bytes, at)?) {
                return None;
            }
            self.add(at);
            match octet {
                0 => return Some(at + 1),
                POINTER.. => return Some(at + 2),
                length => at += 1 + usize::from(length),
            }
        }
    }
}

impl Message<'_> {
    /// True if each compression pointer leads to a label, the root or a pointer of a name that stands before it: in the question, in an
    /// owner, or in RDATA where names may be compressed. One step for each label in place.
    pub fn has_plain_names(&self) -> bool {
        let mut starts = LabelStarts { words: [0; POINTER_REACH / 64] };
        let bytes = self.bytes();
        let mut names = || {
            starts.name(bytes, HEADER)?;
            for section in [Section::Answer, Section::Authority, Section::Additional] {
                for record in self.records(section) {
                    starts.name(bytes, record.start())?;
                    let rdata = record.rdata();
                    let Some(layout) = layout(record.rtype).filter(|_| !rdata.is_empty()) else { continue };
                    let mut at = record.rdata_start() + layout.first_name(rdata)?;
                    for _ in 0..layout.names {
                        at = starts.name(bytes, at)?;
                    }
                }
            }
            Some(())
        };
        names().is_some()
    }
}

#[cfg(test)]
mod tests {
    use crate::Message;

    /// `a.b.` A, and a record of type 65280 with RDATA `\x01c\0`; then an A record whose owner is a pointer to this offset.
    fn is_plain(target: u8) -> Option<bool> {
        let mut bytes = [0u8; 12 + 9 + 15 + 16];
        bytes[..12].copy_from_slice(b"\0\0\x80\0\0\x01\0\x02\0\0\0\0");
        bytes[12..21].copy_from_slice(b"\x01a\x01b\0\0\x01\0\x01");
        // The TTL begins at 27, and the RDATA at 33.
        bytes[21..36].copy_from_slice(b"\xc0\x0e\xff\0\0\x01\x01d\0\0\0\x03\x01c\0");
        bytes[36..].copy_from_slice(b"\xc0\x0c\0\x01\0\x01\0\0\0\0\0\x04\xc0\0\x02\x01");
        bytes[37] = target;
        Message::parse(&bytes).ok().map(|message| message.has_plain_names())
    }

    #[test]
    fn pointers_lead_to_labels_of_names_and_to_nothing_else() {
        for (target, expected) in [(12, true), (14, true), (16, true), (21, true), (27, false), (33, false)] {
            assert_eq!(is_plain(target), Some(expected), "{target}");
        }
    }

    // RFC 1035 section 4.1.4.
    #[test]
    fn a_name_that_begins_in_the_question_ends_with_it() {
        // Its type is no name, although its octets are a root octet, and a label.
        assert_eq!(is_plain(17), None);
        let cases: [(&[u8], u8, bool); 5] = [
            // A label with the octets of a pointer to the root octet, whose second octet is a letter.
            (b"\x03\xc0\x41x\0\0\x01\0\x01", 13, false),
            // A label that holds another label and the root.
            (b"\x04\x01ab\0\0\0\x01\0\x01", 13, false),
            (b"\x02\x01b\x01c\0\0\x01\0\x01", 13, true),
            (b"\x02ab\x01c\0\0\x01\0\x01", 15, true),
            // It runs into the type.
            (b"\x02a\x02\0\0\x01\0\x01", 14, false),
        ];
        for (question, target, is_read) in cases {
            let mut bytes = [0u8; 512];
            bytes[..12].copy_from_slice(b"\0\0\x80\0\0\x01\0\x01\0\0\0\0");
            let end = 12 + question.len();
            bytes[12..end].copy_from_slice(question);
            bytes[end..end + 16].copy_from_slice(b"\xc0\x0c\0\x01\0\x01\0\0\0\0\0\x04\xc0\0\x02\x01");
            bytes[end + 1] = target;
            assert_eq!(Message::parse(&bytes).is_ok(), is_read, "{question:02x?}");
        }
    }
}
