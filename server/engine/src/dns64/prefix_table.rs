//! Longest-prefix table of the prefixes of all rules, for reverse names (RFC 6147 section 5.3.1).
//!
//! A prefix of one rule may contain a prefix of another. The longest match decides, as in routing. A reverse name with few nibbles
//! is under a prefix only if it has at least as many bits as the prefix.

use pref64::Pref64;

/// Prefixes sorted by length, shortest first, then by address.
#[derive(Clone, Debug, Default)]
pub(crate) struct PrefixTable(Vec<Pref64>);

/// Allowed prefix lengths (RFC 6052 section 2.2), longest first.
const LENGTHS: [u8; 6] = [96, 64, 56, 48, 40, 32];

impl PrefixTable {
    /// Builds the table. Equal prefixes count once.
    pub fn new(mut all: Vec<Pref64>) -> PrefixTable {
        let key = |prefix: &Pref64| (prefix.length(), prefix.address());
        all.sort_by_key(key);
        all.dedup_by_key(|prefix| key(prefix));
        all.shrink_to_fit();
        PrefixTable(all)
    }

    /// Longest prefix that contains an address of which only the first `bits` are known.
    pub fn longest(&self, address: [u8; 16], bits: usize) -> Option<&Pref64> {
        let candidates = LENGTHS.into_iter().filter(|&length| usize::from(length) <= bits);
        candidates
            .filter_map(|length| self.last_up_to(length, address))
            .find(|prefix| prefix.contains(address))
    }

    /// True if a prefix begins with the first `bits` of an address, whose other bits are zero, and is longer.
    pub fn has_below(&self, address: [u8; 16], bits: usize) -> bool {
        let candidates = LENGTHS.into_iter().filter(|&length| usize::from(length) > bits);
        let mut first_of_each = candidates.filter_map(|length| {
            let key = (length, address.into());
            let at = self.0.partition_point(|prefix| (prefix.length(), prefix.address()) < key);
            self.0.get(at).filter(|prefix| prefix.length() == length)
        });
        first_of_each.any(|prefix| {
            let difference = u128::from(prefix.address()) ^ u128::from_be_bytes(address);
            difference.leading_zeros() as usize >= bits
        })
    }

    /// Last prefix of one length that does not begin after an address: the only one of this length that may contain it.
    fn last_up_to(&self, length: u8, address: [u8; 16]) -> Option<&Pref64> {
        let after =
            self.0.partition_point(|prefix| (prefix.length(), prefix.address()) <= (length, address.into()));
        self.0[..after].last().filter(|prefix| prefix.length() == length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    #[test]
    fn the_longest_prefix_with_no_more_bits_than_the_name_is_found() {
        let texts =
            ["2001:db8:64::/96", "2001:db8::/32", "2001:db8:64::/64", "64:ff9b::/96", "2001:db8:64::/96"];
        let prefixes = PrefixTable::new(texts.map(|text| text.parse().unwrap()).into());
        let longest = |address: &str, bits| {
            let address: Ipv6Addr = address.parse().unwrap();
            prefixes.longest(address.octets(), bits).map(ToString::to_string)
        };
        for (address, bits, found) in [
            ("2001:db8:64::c000:207", 128, Some("2001:db8:64::/96")),
            ("2001:db8:64::1:c000:207", 128, Some("2001:db8:64::/64")),
            ("2001:db8:65::", 128, Some("2001:db8::/32")),
            ("2001:db8:64::", 92, Some("2001:db8:64::/64")),
            ("2001:db8:64::", 60, Some("2001:db8::/32")),
            ("2001:db8::", 28, None),
            ("2001:db9::", 128, None),
            ("::", 128, None),
            ("ffff::", 128, None),
        ] {
            assert_eq!(longest(address, bits).as_deref(), found, "{address} of {bits} bits");
        }
        assert_eq!(PrefixTable::default().longest([0; 16], 128), None);
        let has_below = |address: &str, bits| {
            let address: Ipv6Addr = address.parse().unwrap();
            prefixes.has_below(address.octets(), bits)
        };
        for (address, bits, expected) in [
            ("2001:db8::", 28, true),
            ("2001:db8::", 32, true),
            ("2001:db8:64::", 92, true),
            ("2001:db8:64::", 96, false),
            ("2001:db8:65::", 48, false),
            ("2001:db8:63::", 48, false),
            ("::", 4, true),
            ("ffff::", 4, false),
        ] {
            assert_eq!(has_below(address, bits), expected, "{address} of {bits} bits");
        }
    }
}
