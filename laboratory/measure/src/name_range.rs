//! Range of the queried names: `AAA-BBB-CCC-DDD.<zone>` for a range of IPv4 addresses.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// A range of IPv4 addresses, each of which gives one name: a CIDR network (`10.0.0.0/8`) or the first and the last
/// address (`1.0.0.0-126.255.255.255`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NameRange {
    first: u32,
    last: u32,
}

impl NameRange {
    /// The addresses from `first` to `last`, both included; `None` if `last` is before `first`.
    pub fn new(first: Ipv4Addr, last: Ipv4Addr) -> Option<NameRange> {
        let (first, last) = (u32::from(first), u32::from(last));
        (first <= last).then_some(NameRange { first, last })
    }

    /// Number of names.
    pub fn names(&self) -> u64 {
        u64::from(self.last - self.first) + 1
    }

    /// The address of a name by its number; numbers beyond the end wrap around.
    #[inline]
    pub fn address(&self, number: u64) -> [u8; 4] {
        // Most numbers are in the range, and a division costs more than everything else here.
        let names = self.names();
        let number = if number < names { number } else { number % names };
        (self.first + number as u32).to_be_bytes()
    }

    /// The number of an address's name, if the address is in the range.
    #[inline]
    pub fn number(&self, address: [u8; 4]) -> Option<u64> {
        let address = u32::from_be_bytes(address);
        (self.first <= address && address <= self.last).then(|| u64::from(address - self.first))
    }
}

impl fmt::Display for NameRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, names) = (Ipv4Addr::from(self.first), self.names());
        if names.is_power_of_two() && u64::from(self.first) % names == 0 {
            write!(f, "{first}/{}", 32 - names.trailing_zeros())
        } else {
            write!(f, "{first}-{}", Ipv4Addr::from(self.last))
        }
    }
}

impl From<NameRange> for String {
    fn from(window: NameRange) -> String {
        window.to_string()
    }
}

impl TryFrom<String> for NameRange {
    type Error = NameRangeError;

    fn try_from(text: String) -> Result<NameRange, NameRangeError> {
        text.parse()
    }
}

impl FromStr for NameRange {
    type Err = NameRangeError;

    fn from_str(text: &str) -> Result<NameRange, NameRangeError> {
        let refused = || NameRangeError(text.to_owned());
        if let Some((address, bits)) = text.split_once('/') {
            let first = u32::from(address.parse::<Ipv4Addr>().map_err(|_| refused())?);
            let bits: u32 = bits.parse().ok().filter(|bits| *bits <= 32).ok_or_else(refused)?;
            let span = ((1u64 << (32 - bits)) - 1) as u32;
            return if first & span == 0 {
                Ok(NameRange { first, last: first | span })
            } else {
                Err(refused())
            };
        }
        let (first, last) = text.split_once('-').ok_or_else(refused)?;
        let address = |text: &str| text.trim().parse::<Ipv4Addr>().map_err(|_| refused());
        NameRange::new(address(first)?, address(last)?).ok_or_else(refused)
    }
}

/// A text that is not a name range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameRangeError(String);

impl fmt::Display for NameRangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "\"{}\" is not a range of names; write an IPv4 network like 10.0.0.0/8 (no bit set beyond its length) or a first and \
             a last address like 1.0.0.0-126.255.255.255",
            self.0
        )
    }
}

impl std::error::Error for NameRangeError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(text: &str) -> NameRange {
        text.parse().unwrap()
    }

    #[test]
    fn networks_and_ranges_number_their_names_from_the_first_address() {
        for (text, names, second) in
            [("10.0.0.0/8", 1 << 24, [10, 0, 0, 1]), ("1.0.0.0-126.255.255.255", 126 << 24, [1, 0, 0, 1])]
        {
            let window = window(text);
            assert_eq!(window.names(), names);
            assert_eq!(window.address(1), second);
            assert_eq!(window.address(names + 1), second);
            assert_eq!(window.number(second), Some(1));
            assert_eq!(window.number([200, 0, 0, 0]), None);
            assert_eq!(window.to_string(), text);
        }
        assert_eq!(window("0.0.0.0/0").names(), 1 << 32);
        assert_eq!(window("192.0.2.1/32").names(), 1);
    }

    #[test]
    fn an_invalid_range_is_refused_with_the_way_to_write_one() {
        for text in ["", "10.0.0.0", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/x", "2.0.0.0-1.0.0.0", "a-b"] {
            let error = text.parse::<NameRange>().unwrap_err().to_string();
            assert!(error.contains("10.0.0.0/8"), "{error}");
        }
    }
}
