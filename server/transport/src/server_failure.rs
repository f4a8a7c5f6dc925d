//! The answer to a query that the server had no room for: SERVFAIL. Without one the client would wait for its timeout.

use wire::types::Rcode;
use wire::{Flags, HEADER, Message, header};

/// An OPT record without options, and with a UDP size of 1,232 octets (RFC 6891 section 6.1.2).
const OPT: [u8; 11] = [0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0];

/// The answer SERVFAIL to a query of at least 12 octets, with its question if it can be read.
pub(crate) fn to(query: &[u8]) -> Vec<u8> {
    let message = Message::parse(query).ok();
    let question = message.as_ref().map_or(&[][..], Message::question);
    let opt = message.as_ref().and_then(Message::opt).map_or(&[][..], |_| &OPT);
    let mut answer = [&query[..HEADER], question, opt].concat();
    let asked = header::flags(query);
    let kept = Flags(asked.0 & (Flags::RD.0 | Flags::CD.0)).with_opcode(asked.opcode());
    header::set_flags(&mut answer, kept.with(Flags::QR).with(Flags::RA).with_rcode(Rcode::SERVFAIL));
    header::set_qdcount(&mut answer, u16::from(!question.is_empty()));
    header::set_ancount(&mut answer, 0);
    header::set_nscount(&mut answer, 0);
    header::set_arcount(&mut answer, u16::from(!opt.is_empty()));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_has_the_question_and_an_opt_record_if_the_query_has_one() {
        let header = |flags: [u8; 2], counts: [u8; 2]| {
            [0, 7, flags[0], flags[1], 0, counts[0], 0, 0, 0, 0, 0, counts[1]]
        };
        let question = b"\x01a\x00\0\x01\0\x01";
        let opt = [0, 0, 41, 16, 0, 0, 0, 0x80, 0, 0, 4, 0, 10, 0, 0];
        let query = [&header([1, 0x10], [1, 1])[..], question, &opt].concat();
        assert_eq!(to(&query), [&header([0x81, 0x92], [1, 1])[..], question, &OPT].concat());
        let query = [&header([0, 0], [1, 0])[..], question].concat();
        assert_eq!(to(&query), [&header([0x80, 0x82], [1, 0])[..], question].concat());
        // The name does not end. Opcode 5 stays.
        let query = [&header([0x28, 0], [1, 0])[..], b"\x09a"].concat();
        assert_eq!(to(&query), header([0xa8, 0x82], [0, 0]));
    }
}
