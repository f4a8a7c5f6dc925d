//! The PREF64 option of router advertisements (RFC 8781 section 4).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! |   Type = 38   |  Length = 2   |    Scaled Lifetime      | PLC |
//! |                Highest 96 bits of the prefix                  |
//! ```

use crate::limits::OPTIONS;
use crate::told::is_usable;
use engine::Span;
use pref64::Pref64;
use std::net::Ipv6Addr;

/// Type of the option.
const PREF64: u8 = 38;

/// Its length in units of 8 octets.
const LENGTH: u8 = 2;

/// Unit of the lifetime.
const LIFETIME_SECS: u64 = 8;

/// Lengths of prefixes by their codes. A receiver ignores an option with another code.
const LENGTHS: [u8; 6] = [96, 64, 56, 48, 40, 32];

/// A prefix that a router announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announced {
    /// The prefix.
    pub prefix: Pref64,
    /// Time for which it may be used. Zero: no longer.
    pub lifetime: Span,
}

/// The prefixes in the options of a router advertisement. Options that are no valid PREF64 options count for nothing, and one that is cut
/// off ends the reading.
pub fn announced(mut options: &[u8]) -> Vec<Announced> {
    let mut found = Vec::new();
    // An option of length 0 is malformed (RFC 4861 section 4.6).
    while let [kind, length, ..] = *options
        && length > 0
        && found.len() < OPTIONS
    {
        let Some((option, rest)) = options.split_at_checked(8 * usize::from(length)) else { break };
        if (kind, length) == (PREF64, LENGTH) {
            found.extend(read(option));
        }
        options = rest;
    }
    found
}

/// Reads an option of 16 octets.
fn read(option: &[u8]) -> Option<Announced> {
    let [_, _, high, low, prefix @ ..] = option else { return None };
    let lifetime_and_code = u16::from_be_bytes([*high, *low]);
    let length = *LENGTHS.get(usize::from(lifetime_and_code & 0b111))?;
    let mut octets = [0; 16];
    octets[..12].copy_from_slice(prefix.get(..12)?);
    // The bits beyond the length belong to nobody.
    let bits = u128::from_be_bytes(octets) & (u128::MAX << (128 - u32::from(length)));
    let prefix = Pref64::new(Ipv6Addr::from(bits), length).ok().filter(is_usable)?;
    let lifetime = Span::from_secs(u64::from(lifetime_and_code >> 3) * LIFETIME_SECS);
    Some(Announced { prefix, lifetime })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An option by the figure in RFC 8781 section 4.
    fn option(scaled_lifetime: u16, code: u16, prefix: &str) -> Vec<u8> {
        let prefix: Ipv6Addr = prefix.parse().unwrap();
        let head = (scaled_lifetime << 3 | code).to_be_bytes();
        [&[38, 2][..], &head, &prefix.octets()[..12]].concat()
    }

    fn read_one(option: &[u8]) -> Option<(String, u64)> {
        let found = announced(option);
        assert!(found.len() <= 1);
        found.first().map(|one| (one.prefix.to_string(), one.lifetime.0 / 1_000_000_000))
    }

    #[test]
    fn each_code_stands_for_a_length_and_the_lifetime_counts_eight_seconds() {
        for (code, prefix, shown) in [
            (0, "64:ff9b::", "64:ff9b::/96"),
            (1, "2001:db8:122:344::", "2001:db8:122:344::/64"),
            (2, "2001:db8:122:300::", "2001:db8:122:300::/56"),
            (3, "2001:db8:122::", "2001:db8:122::/48"),
            (4, "2001:db8:100::", "2001:db8:100::/40"),
            (5, "2001:db8::", "2001:db8::/32"),
        ] {
            assert_eq!(read_one(&option(225, code, prefix)), Some((shown.into(), 1800)));
        }
        // RFC 8781 section 4.1: at most 65,528 seconds.
        assert_eq!(read_one(&option(0x1fff, 0, "64:ff9b::")), Some(("64:ff9b::/96".into(), 65_528)));
        assert_eq!(read_one(&option(0, 0, "64:ff9b::")), Some(("64:ff9b::/96".into(), 0)));
    }

    #[test]
    fn invalid_options_are_ignored() {
        for code in [6, 7] {
            assert_eq!(read_one(&option(225, code, "64:ff9b::")), None, "code {code}");
        }
        let mut longer = [option(225, 0, "64:ff9b::"), vec![0; 8]].concat();
        longer[1] = 3;
        assert_eq!(read_one(&longer), None, "another length");
        assert_eq!(read_one(&option(225, 0, "2001:db8:0:0:100::")), None, "bits 64 to 71 of a /96");
        for unusable in ["::", "fe80::", "ff02::"] {
            assert_eq!(read_one(&option(225, 0, unusable)), None, "{unusable}");
        }
        let good = option(225, 0, "64:ff9b::");
        for length in 0..good.len() {
            assert_eq!(read_one(&good[..length]), None, "{length} octets");
        }
        assert_eq!(read_one(&[0; 64]), None, "length 0");
    }

    #[test]
    fn bits_beyond_the_length_are_ignored() {
        assert_eq!(
            read_one(&option(1, 3, "2001:db8:122:ffff:ffff::")),
            Some(("2001:db8:122::/48".into(), 8))
        );
    }

    #[test]
    fn options_stand_among_others_and_are_bounded() {
        // An RDNSS option (RFC 8106 section 5.1) of 24 octets.
        let rdnss = [&[25, 3][..], &[0; 22]].concat();
        let options = [option(1, 0, "64:ff9b::"), rdnss, option(2, 3, "2001:db8:122::")].concat();
        let prefixes: Vec<String> = announced(&options).iter().map(|one| one.prefix.to_string()).collect();
        assert_eq!(prefixes, ["64:ff9b::/96", "2001:db8:122::/48"]);
        assert_eq!(announced(&option(1, 0, "64:ff9b::").repeat(OPTIONS + 1)).len(), OPTIONS);
    }
}
