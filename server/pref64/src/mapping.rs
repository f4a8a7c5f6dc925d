//! Explicit address mappings (RFC 7757): pairs of an IPv4 and an IPv6 prefix, which stand for each other address by address.
//!
//! ```text
//!     192.0.2.16/28   2001:db8:aaaa::/124     192.0.2.18 = 2001:db8:aaaa::2
//!     ------- IPv4 prefix, 4 bits of suffix   ------ IPv6 prefix, the same bits, zeros
//! ```
//!
//! The bits of the IPv4 address behind its prefix follow the IPv6 prefix, and zeros fill the rest (RFC 7757 section 3.3.1). In the
//! other direction the bits behind those are ignored (section 3.3.2). The longest prefix that contains an address decides.
//!
//! Prefixes are nested or disjoint, so a table is the sorted starts of the ranges in which one mapping decides
//! (`ranges.rs`): a lookup does not depend on how the prefixes are nested.

use crate::ranges::Ranges;
use alloc::vec::Vec;
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

/// Pair of prefixes that stand for each other.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mapping {
    v4: u32,
    v6: u128,
    length4: u8,
    length6: u8,
}

impl Mapping {
    /// The mapping of the `length4` leading bits of `v4` to the `length6` leading bits of `v6`.
    ///
    /// # Errors
    ///
    /// `MappingError::Length4` and `MappingError::Length6`: more bits than an address has. `MappingError::HostBits4` and
    /// `MappingError::HostBits6`: a bit is set beyond the length. `MappingError::NoRoom`: fewer bits follow the IPv6 prefix than the
    /// IPv4 prefix.
    pub const fn new(
        (v4, length4): (Ipv4Addr, u8),
        (v6, length6): (Ipv6Addr, u8),
    ) -> Result<Mapping, MappingError> {
        if length4 > 32 {
            return Err(MappingError::Length4);
        }
        if length6 > 128 {
            return Err(MappingError::Length6);
        }
        let (v4, v6) = (v4.to_bits(), v6.to_bits());
        if v4 & host4(length4) != 0 {
            return Err(MappingError::HostBits4(Ipv4Addr::from_bits(v4 & !host4(length4))));
        }
        if v6 & host6(length6) != 0 {
            return Err(MappingError::HostBits6(Ipv6Addr::from_bits(v6 & !host6(length6))));
        }
        if 32 - length4 > 128 - length6 {
            return Err(MappingError::NoRoom { longest: 96 + length4 });
        }
        Ok(Mapping { v4, v6, length4, length6 })
    }

    /// The IPv6 address that stands for an address of the IPv4 prefix (RFC 7757 section 3.3.1).
    #[inline]
    const fn embed(&self, address: u32) -> u128 {
        let suffix = (address & host4(self.length4)) as u128;
        // 96 - length6 + length4 bits of zeros follow; without suffix a distance of 128 has no meaning.
        if suffix == 0 { self.v6 } else { self.v6 | suffix << (96 + self.length4 - self.length6) }
    }

    /// The IPv4 address for which an address of the IPv6 prefix stands (RFC 7757 section 3.3.2).
    #[inline]
    const fn extract(&self, address: u128) -> u32 {
        // Of a single address all 32 bits are known, and the shift may be by 128.
        if self.length4 == 32 {
            return self.v4;
        }
        self.v4 | (address >> (96 + self.length4 - self.length6)) as u32 & host4(self.length4)
    }
}

/// Bits of an IPv4 address beyond a length of at most 32.
const fn host4(length: u8) -> u32 {
    if length == 32 { 0 } else { u32::MAX >> length }
}

/// Bits of an IPv6 address beyond a length of at most 128.
const fn host6(length: u8) -> u128 {
    if length == 128 { 0 } else { u128::MAX >> length }
}

impl fmt::Display for Mapping {
    /// The two prefixes as [`FromStr`] reads them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (v4, v6) = (Ipv4Addr::from_bits(self.v4), Ipv6Addr::from_bits(self.v6));
        write!(f, "{v4}/{} {v6}/{}", self.length4, self.length6)
    }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapping({self})")
    }
}

impl FromStr for Mapping {
    type Err = MappingError;

    /// Reads `IPV4-PREFIX IPV6-PREFIX`, with blanks between. An address without a length stands for itself alone.
    fn from_str(text: &str) -> Result<Mapping, MappingError> {
        let mut words = text.split_ascii_whitespace();
        let (Some(first), Some(second), None) = (words.next(), words.next(), words.next()) else {
            return Err(MappingError::Words);
        };
        if first.contains(':') && !second.contains(':') {
            return Err(MappingError::Order);
        }
        let (v4, length4) = split(first, 32).ok_or(MappingError::Length4)?;
        let (v6, length6) = split(second, 128).ok_or(MappingError::Length6)?;
        let v4 = v4.parse().map_err(|_| MappingError::Address4)?;
        let v6 = v6.parse().map_err(|_| MappingError::Address6)?;
        Mapping::new((v4, length4), (v6, length6))
    }
}

/// Address and length of a prefix. None: the length is no decimal number up to `bits`, or has leading zeros.
fn split(text: &str, bits: u8) -> Option<(&str, u8)> {
    let Some((address, length)) = text.split_once('/') else { return Some((text, bits)) };
    let is_canonical =
        length.bytes().all(|octet| octet.is_ascii_digit()) && (length == "0" || !length.starts_with('0'));
    let length = length.parse().ok().filter(|&length| is_canonical && length <= bits)?;
    Some((address, length))
}

/// Reason why a mapping is refused. Each text says what to write instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingError {
    /// Not two words.
    Words,
    /// The IPv6 prefix stands first.
    Order,
    /// The first word has no IPv4 address.
    Address4,
    /// The second word has no IPv6 address.
    Address6,
    /// The length of the IPv4 prefix is not a decimal number from 0 to 32.
    Length4,
    /// The length of the IPv6 prefix is not a decimal number from 0 to 128.
    Length6,
    /// A bit beyond the length of the IPv4 prefix is set; without it the address is this one.
    HostBits4(Ipv4Addr),
    /// A bit beyond the length of the IPv6 prefix is set; without it the address is this one.
    HostBits6(Ipv6Addr),
    /// The bits behind the IPv4 prefix do not fit behind the IPv6 prefix.
    NoRoom {
        /// Largest length that the IPv6 prefix may have.
        longest: u8,
    },
}

impl fmt::Display for MappingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MappingError::Words => {
                write!(
                    f,
                    "this is not a pair of prefixes; write IPV4-PREFIX IPV6-PREFIX, like 192.0.2.0/28 2001:db8::/124"
                )
            }
            MappingError::Order => write!(f, "the IPv6 prefix stands first; write the IPv4 prefix before it"),
            MappingError::Address4 => {
                write!(f, "the first word has no IPv4 address; write a prefix like 192.0.2.0/28")
            }
            MappingError::Address6 => {
                write!(f, "the second word has no IPv6 address; write a prefix like 2001:db8::/124")
            }
            MappingError::Length4 => {
                write!(f, "the length of the IPv4 prefix is not a number from 0 to 32; write one of these")
            }
            MappingError::Length6 => {
                write!(f, "the length of the IPv6 prefix is not a number from 0 to 128; write one of these")
            }
            MappingError::HostBits4(address) => {
                write!(
                    f,
                    "bits beyond the length of the IPv4 prefix are set; write {address}, or a larger length"
                )
            }
            MappingError::HostBits6(address) => {
                write!(
                    f,
                    "bits beyond the length of the IPv6 prefix are set; write {address}, or a larger length"
                )
            }
            MappingError::NoRoom { longest } => {
                write!(
                    f,
                    "the bits behind the IPv4 prefix do not fit behind the IPv6 prefix (RFC 7757 section 3.2); \
                     write an IPv6 length of at most {longest}"
                )
            }
        }
    }
}

impl core::error::Error for MappingError {}

/// Two mappings that have a prefix in common, by their numbers: the prefix would stand for two others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// The first of the two.
    pub first: usize,
    /// The second.
    pub second: usize,
    /// True if they have the IPv4 prefix in common, or both prefixes; false if only the IPv6 prefix.
    pub is_ipv4: bool,
}

/// Mappings, for lookups in both directions: about 90 octets for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mappings {
    list: Vec<Mapping>,
    /// Number of the mapping that decides, for ranges of addresses. 16 keys are a cache line.
    by_v4: Ranges<u32, 16>,
    /// Eight keys are two cache lines, which are read together.
    by_v6: Ranges<u128, 8>,
}

impl Mappings {
    /// Builds the tables.
    ///
    /// # Errors
    ///
    /// `Duplicate`: two mappings have a prefix in common; the pair with the lowest second number.
    pub fn new(list: Vec<Mapping>) -> Result<Mappings, Duplicate> {
        let of_v4 = |mapping: &Mapping| (mapping.v4, mapping.v4 | host4(mapping.length4));
        let of_v6 = |mapping: &Mapping| (mapping.v6, mapping.v6 | host6(mapping.length6));
        let by_v4 = Ranges::nested(list.iter().map(of_v4));
        let by_v6 = Ranges::nested(list.iter().map(of_v6));
        match (by_v4, by_v6) {
            (Ok(by_v4), Ok(by_v6)) => Ok(Mappings { list, by_v4, by_v6 }),
            (Err((first, second)), Ok(_)) => Err(Duplicate { first, second, is_ipv4: true }),
            (Ok(_), Err((first, second))) => Err(Duplicate { first, second, is_ipv4: false }),
            (Err(four), Err(six)) => {
                let is_ipv4 = four.1 <= six.1;
                let (first, second) = if is_ipv4 { four } else { six };
                Err(Duplicate { first, second, is_ipv4 })
            }
        }
    }

    /// Number of mappings.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// True if there are no mappings.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The IPv6 address that stands for an IPv4 address.
    #[inline]
    pub fn to_v6(&self, address: [u8; 4]) -> Option<[u8; 16]> {
        let address = u32::from_be_bytes(address);
        let mapping = self.list.get(self.by_v4.find(address)?)?;
        Some(mapping.embed(address).to_be_bytes())
    }

    /// The IPv4 address for which an IPv6 address stands.
    #[inline]
    pub fn to_v4(&self, address: [u8; 16]) -> Option<[u8; 4]> {
        let address = u128::from_be_bytes(address);
        let mapping = self.list.get(self.by_v6.find(address)?)?;
        Some(mapping.extract(address).to_be_bytes())
    }

    /// True if an IPv6 address with these first `bits` may stand for an IPv4 address; the other bits of `address` are zero.
    pub fn reaches_below(&self, address: [u8; 16], bits: u8) -> bool {
        let first = u128::from_be_bytes(address);
        self.by_v6.overlaps(first, first | host6(bits.min(128)))
    }
}

#[cfg(test)]
#[path = "mapping_tests.rs"]
mod tests;
