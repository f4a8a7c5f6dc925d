//! A complete answer that is longer than its limit: which of its octets are sent.
//!
//! Without all records of the answer and authority sections an answer has TC and no records, as the client asks over TCP anyway. Records of the
//! additional section are left out without TC (RFC 2181 section 9).

use wire::{Message, Section, header};

/// What fits of a complete answer without its OPT record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// The octets up to `end`, with this number of records in the additional section.
    UpTo {
        /// End of the last record.
        end: usize,
        /// Records of the additional section.
        additional: u16,
    },
    /// The answer or the authority section does not fit.
    Truncated,
}

/// End of the answer and authority sections of a message, by the offsets of the TTLs of its records in order. A look at one record:
/// what it says costs nothing for a message of thousands.
pub(crate) fn necessary_end(message: &[u8], mut ttls: impl Iterator<Item = usize>) -> usize {
    let count = usize::from(header::ancount(message)) + usize::from(header::nscount(message));
    if count == 0 {
        return 0;
    }
    // The length of the RDATA stands behind the TTL, and the RDATA behind its length.
    let end = ttls.nth(count - 1).and_then(|at| {
        let &[high, low] = message.get(at + 4..)?.first_chunk()?;
        Some(at + 6 + usize::from(u16::from_be_bytes([high, low])))
    });
    end.unwrap_or(message.len())
}

/// What fits into `room` octets of a message that is longer, and whose answer and authority sections end at `necessary`. RRsets are
/// left out as a whole, from the first one that does not fit.
#[cold]
pub(crate) fn fit(bytes: &[u8], necessary: usize, room: usize) -> Fit {
    if necessary > room {
        return Fit::Truncated;
    }
    let Ok(message) = Message::parse(bytes) else { return Fit::Truncated };
    let mut rrset = None;
    let (mut end, mut additional) = (message.section_start(Section::Additional), 0);
    for (count, record) in message.records(Section::Additional).enumerate() {
        let is_same = rrset.as_ref().is_some_and(|(owner, rtype, covered): &(wire::Name<'_>, _, _)| {
            (*rtype, *covered) == (record.rtype, record.covered()) && owner.eq_ignore_case(&record.owner)
        });
        if !is_same {
            (end, additional) = (record.start(), count as u16);
            rrset = Some((record.owner, record.rtype, record.covered()));
        }
        if record.end() > room {
            break;
        }
    }
    Fit::UpTo { end, additional }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a.` A with one answer, one record of the authority section, and an additional section of an RRset of two records and one of one.
    fn message() -> (Vec<u8>, Vec<usize>) {
        let mut bytes = b"\0\0\x80\0\0\x01\0\x01\0\x01\0\x03\x01a\0\0\x01\0\x01".to_vec();
        let mut ttls = vec![];
        for owner in [&b"\xc0\x0c"[..], b"\x01b\0", b"\x01c\0", b"\x01c\0", b"\x01d\0"] {
            bytes.extend(owner);
            ttls.push(bytes.len() + 4);
            bytes.extend(b"\0\x01\0\x01\0\0\0\x09\0\x04\xc0\0\x02\x01");
        }
        (bytes, ttls)
    }

    // RFC 2181 section 9: TC is set only if an RRset that the answer needs was left out.
    #[test]
    fn additional_rrsets_are_left_out_as_a_whole_and_the_other_sections_decide_about_tc() {
        let (bytes, ttls) = message();
        let necessary = necessary_end(&bytes, ttls.into_iter());
        // Header, question, and two records.
        assert_eq!(necessary, 12 + 7 + 16 + 17);
        for (room, fits) in [
            (necessary - 1, Fit::Truncated),
            (necessary, Fit::UpTo { end: necessary, additional: 0 }),
            (necessary + 17, Fit::UpTo { end: necessary, additional: 0 }),
            (necessary + 33, Fit::UpTo { end: necessary, additional: 0 }),
            (necessary + 34, Fit::UpTo { end: necessary + 34, additional: 2 }),
            (necessary + 50, Fit::UpTo { end: necessary + 34, additional: 2 }),
        ] {
            assert_eq!(fit(&bytes, necessary, room), fits, "{room}");
        }
    }

    #[test]
    fn a_message_without_records_needs_no_room_for_them() {
        let bytes = b"\0\0\x80\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01";
        assert_eq!(necessary_end(bytes, core::iter::empty()), 0);
    }
}
