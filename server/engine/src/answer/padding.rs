//! Padding of responses (RFC 7830, RFC 8467): over TLS and QUIC an observer sees the sizes of messages, and could tell names by them.
//! A response has a multiple of 468 octets if the query had the padding option. Over UDP and TCP in the clear nothing is padded.

use wire::{OPTION_HEADER, PADDING};

/// Block of responses, in octets (RFC 8467 section 4.1).
const BLOCK: usize = 468;

/// Data of the longest option: zeros (RFC 7830 section 3).
const ZEROS: [u8; BLOCK] = [0; BLOCK];

/// Pads a response of `before` octets and an OPT record of `opt` octets at the start of `record`, to the next multiple of 468 octets.
/// Near the end of `record`, which is the limit of the requestor, it is padded up to it, and a response that leaves no room for the option
/// stays as it is. Returns the new length of the OPT record.
//= RFC 7830 section 4: requirement 63
//= RFC 8467 section 4.1: requirement 64
//= RFC 8467 section 3: requirement 70
pub(crate) fn pad(record: &mut [u8], opt: usize, before: usize) -> usize {
    let limit = before + record.len();
    let unpadded = before + opt + OPTION_HEADER;
    if unpadded > limit {
        return opt;
    }
    let octets = unpadded.next_multiple_of(BLOCK).min(limit) - unpadded;
    wire::add_option(record, opt, PADDING, &ZEROS[..octets]).unwrap_or(opt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::builder::append_opt;
    use crate::answer::params::unlimited_params;
    use crate::limits::MESSAGE;
    use crate::message::question::QueryFlags;
    use wire::{EdeCode, Rcode, ede};

    /// Octets of a response after padding; `before`: those before the OPT record.
    fn padded(before: usize, ede: Option<EdeCode>) -> usize {
        let params = unlimited_params(QueryFlags::DO, &[]);
        let mut frame = vec![0xff; MESSAGE];
        let opt = append_opt(&mut frame[before..], &params, Rcode::NOERROR, ede);
        let padded = pad(&mut frame[before..], opt, before);
        let rdata = usize::from(u16::from_be_bytes([frame[before + 9], frame[before + 10]]));
        assert_eq!(wire::OPT_LEN + rdata, padded, "RDLENGTH covers the padding");
        if padded > opt {
            assert!(frame[before + opt + OPTION_HEADER..before + padded].iter().all(|&octet| octet == 0));
        }
        before + padded
    }

    //= RFC 8467 section 4.1: requirement 64
    //= RFC 8467 section 3: requirement 70
    #[test]
    fn a_response_has_the_next_multiple_of_468_octets() {
        // 11 octets of the OPT record, 4 of the option without data.
        assert_eq!(padded(468 - 15, None), 468);
        assert_eq!(padded(468 - 14, None), 936);
        assert_eq!(padded(30, None), 468);
        assert_eq!(padded(468 - 15 - 6, Some(ede::BLOCKED)), 468);
        assert_eq!(padded(468 - 15 - 5, Some(ede::BLOCKED)), 936);
    }

    #[test]
    fn a_response_near_the_largest_size_is_padded_up_to_it_or_not_at_all() {
        // 140 blocks are 65,520 octets.
        assert_eq!(padded(65_520 - 15, None), 65_520);
        assert_eq!(padded(65_520 - 14, None), MESSAGE);
        assert_eq!(padded(MESSAGE - 15, None), MESSAGE);
        assert_eq!(padded(MESSAGE - 14, None), MESSAGE - 3, "no room for the option");
        assert_eq!(padded(MESSAGE - 11, None), MESSAGE);
    }
}
