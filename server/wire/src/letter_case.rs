//! Lower case for the question's name of a message, and for the copies of it in the records.
//!
//! A forwarder that draws the letter case of its queries (DNS 0x20) gets replies in that case. Most of them point at the
//! question's name, so its octets are the only ones to change. A server without name compression repeats them in owner
//! names, and in names under the same zone. Letter case means nothing in these names, also to DNSSEC: a validator converts
//! owners, and the names in RDATA that are changed here, to lower case itself (RFC 4034 section 6.2).

use crate::header::{self, HEADER};
use crate::limits::MAX_NAME;
use crate::message::{Message, SectionOffsets};
use crate::name::{POINTER, after_name, fold};
use crate::rdata::layout;
use crate::record::Records;

/// Converts the question's name to lower case, and the end of each name in the records that repeats the labels at the end of
/// the question's name octet for octet and without a pointer. `bytes` are those that `offsets` came from.
///
/// # Panics
///
/// If `bytes` is shorter than the question.
#[inline]
pub fn lower_question(bytes: &mut [u8], offsets: SectionOffsets) -> Message<'_> {
    if offsets.has_whole_names {
        lower_copies(bytes, &offsets);
    }
    // Letters are neither lengths nor pointers, so every name stays well formed, also one that a pointer leads to.
    fold(&mut bytes[HEADER..offsets.question_end() - 4]);
    Message { bytes, offsets }
}

#[cold]
#[inline(never)]
fn lower_copies(bytes: &mut [u8], offsets: &SectionOffsets) {
    let mut room = [0; MAX_NAME];
    let length = offsets.question_end() - 4 - HEADER;
    let question = &mut room[..length];
    question.copy_from_slice(&bytes[HEADER..HEADER + length]);
    let question = &*question;
    let records = [header::ancount(bytes), header::nscount(bytes), header::arcount(bytes)];
    let mut at = offsets.question_end();
    for _ in 0..records.into_iter().map(usize::from).sum() {
        let Some(record) = Records::new(bytes, at, 1).next() else { return };
        let (rdata_start, end) = (record.rdata_start(), record.end());
        let in_rdata = layout(record.rtype)
            .and_then(|layout| Some((rdata_start + layout.first_name(record.rdata())?, layout.names)));
        lower_copy(bytes, at, question);
        if let Some((mut name, names)) = in_rdata {
            for _ in 0..names {
                let Some(next) = after_name(bytes, name) else { return };
                lower_copy(bytes, name, question);
                name = next;
            }
        }
        at = end;
    }
}

/// Converts the labels at the end of a name that are also the last labels of the question's name, if no pointer ends it.
fn lower_copy(bytes: &mut [u8], start: usize, question: &[u8]) {
    let mut end = start;
    loop {
        match bytes.get(end) {
            Some(0) => break,
            None | Some(POINTER..) => return,
            Some(&length) => end += 1 + usize::from(length),
        }
    }
    let name = &mut bytes[start..=end];
    let pairs = name.iter().rev().zip(question.iter().rev());
    let equal = pairs.take_while(|(ours, theirs)| ours == theirs).count();
    let mut label = 0;
    while name.len() - label > equal {
        label += 1 + usize::from(name[label]);
    }
    fold(&mut name[label..]);
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::{Section, Type};
    use std::string::{String, ToString};
    use std::vec::Vec;

    /// Records in a message with the question `wWw.ExAmple.`.
    fn lowered(answers: u8, records: &[&[u8]]) -> (Vec<u8>, Vec<String>) {
        let mut bytes = b"\0\x01\x81\x80\0\x01\0\0\0\0\0\0\x03wWw\x07ExAmple\0\0\x01\0\x01".to_vec();
        bytes[7] = answers;
        records.iter().for_each(|part| bytes.extend_from_slice(part));
        let before = bytes.clone();
        let offsets = Message::parse(&bytes).unwrap().offsets();
        let message = lower_question(&mut bytes, offsets);
        assert_eq!(Message::parse(message.bytes()).unwrap().offsets(), offsets);
        assert!(message.bytes().eq_ignore_ascii_case(&before));
        assert_eq!(message.question(), b"\x03www\x07example\0\0\x01\0\x01");
        let shown = message.records(Section::Answer).map(|record| match record.target() {
            Some(target) => [record.owner.to_string(), target.to_string()].join(" "),
            None => record.owner.to_string(),
        });
        let shown = shown.collect();
        (bytes, shown)
    }

    const A: &[u8] = b"\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02A";

    #[test]
    fn names_that_point_at_the_question_follow_it() {
        let (bytes, shown) = lowered(2, &[b"\xc0\x0c", A, b"\x02Ns\xc0\x10", A]);
        assert_eq!(shown, ["www.example.", "Ns.example."]);
        assert!(bytes.ends_with(A), "an address is no name");
    }

    #[test]
    fn copies_of_the_question_follow_it_up_to_the_first_label_of_their_own() {
        let cname = b"\0\x05\0\x01\0\0\0\x3c\0\x0d\x03CdN\x07ExAmple\0";
        let (_, shown) = lowered(
            6,
            &[
                b"\x03wWw\x07ExAmple\0",
                A,
                b"\x03wWw\x07ExAmple\0",
                cname,
                b"\x02NS\x03wWw\x07ExAmple\0",
                A,
                // Other letters, and another label that ends alike: these are the zone's own.
                b"\x03WWW\x07ExAmple\0",
                A,
                b"\x09MyExAmple\0",
                A,
                b"\x03COM\0",
                A,
            ],
        );
        assert_eq!(
            shown,
            [
                "www.example.",
                "www.example. CdN.example.",
                "NS.www.example.",
                "WWW.example.",
                "MyExAmple.",
                "COM."
            ]
        );
    }

    #[test]
    fn names_in_rdata_that_have_a_case_in_dnssec_are_left_alone() {
        // RFC 6840 section 5.1: the next name of NSEC is not converted by validators.
        let nsec = b"\0\x2f\0\x01\0\0\0\x3c\0\x10\x03wWw\x07ExAmple\0\0\x01\x40";
        let (bytes, shown) = lowered(1, &[b"\x03wWw\x07ExAmple\0", nsec]);
        assert_eq!(shown, ["www.example."]);
        assert!(bytes.ends_with(nsec));
        assert_eq!(Type(0x2f), Type::NSEC);
    }

    #[test]
    fn folding_converts_exactly_the_letters_of_every_length() {
        for length in 0..70usize {
            let bytes: Vec<u8> = (0..length).map(|place| (place * 37 + length) as u8).collect();
            let mut folded = bytes.clone();
            fold(&mut folded);
            assert_eq!(folded, bytes.to_ascii_lowercase());
        }
        let mut all: Vec<u8> = (0..=255).collect();
        fold(&mut all);
        assert_eq!(all, (0..=255u8).map(|octet| octet.to_ascii_lowercase()).collect::<Vec<_>>());
    }
}
