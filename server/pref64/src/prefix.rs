//! Pref64 and the address arithmetic of RFC 6052 sections 2.2 and 2.3.
//!
//! ```text
//!     octet   3   4   5   6   7   8   9   10  11  12  13  14  15
//!     /32     p   v4  v4  v4  v4  u   s   s   s   s   s   s   s
//!     /40     p   p   v4  v4  v4  u   v4  s   s   s   s   s   s
//!     /48     p   p   p   v4  v4  u   v4  v4  s   s   s   s   s
//!     /56     p   p   p   p   v4  u   v4  v4  v4  s   s   s   s
//!     /64     p   p   p   p   p   u   v4  v4  v4  v4  s   s   s
//!     /96     p   p   p   p   p   0   p   p   p   v4  v4  v4  v4
//! ```
//! p: prefix (octets 0 to 2 too), v4: IPv4 address, u: the octet that must be zero, s: suffix.
//!
//! Up to /64 the IPv4 address is shifted to the end of the prefix in 120 bits, and then the octet `u` (bits 64 to 71)
//! is inserted: everything from bit 64 on moves right by eight. With /96 nothing moves. So both directions are two
//! shifts, whose distances follow from the length, without a branch.

use core::fmt;
use core::net::Ipv6Addr;
use core::str::FromStr;

/// Well-known prefix `64:ff9b::/96` (RFC 6052 section 2.1). It must not carry IPv4 addresses that are not global: see
/// [`is_global`](crate::is_global).
pub const WELL_KNOWN: Pref64 = Pref64 { bits: 0x0064_ff9b << 96, length: 96 };

/// Bits 64 to 71, the octet `u` of RFC 6052 section 2.2.
const OCTET_U: u128 = 0xff << 56;

/// Prefix for IPv4-embedded IPv6 addresses, with the suffix of the addresses made from it (zero by default).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pref64 {
    /// Prefix in the leading bits, suffix in the trailing ones, zero between them.
    bits: u128,
    /// 32, 40, 48, 56, 64 or 96.
    length: u8,
}

impl Pref64 {
    /// A prefix of `length` leading bits of `address`.
    ///
    /// # Errors
    ///
    /// `PrefixError::Length`: the length is not one of the six of RFC 6052 section 2.2. `PrefixError::HostBits`: a bit is set beyond
    /// the length. `PrefixError::Bits64To71`: a bit of 64 to 71 is set in a /96.
    pub const fn new(address: Ipv6Addr, length: u8) -> Result<Pref64, PrefixError> {
        //= RFC 6052 section 2.2: requirement 33
        if !matches!(length, 32 | 40 | 48 | 56 | 64 | 96) {
            return Err(PrefixError::Length(length));
        }
        let bits = address.to_bits();
        if bits & !mask(length) != 0 {
            return Err(PrefixError::HostBits);
        }
        //= RFC 6052 section 2.2: requirement 34; in the shorter ones they are bits beyond the length.
        if bits & OCTET_U != 0 {
            return Err(PrefixError::Bits64To71);
        }
        Ok(Pref64 { bits, length })
    }

    /// Sets the suffix: bits after the embedded IPv4 address in every address made from this prefix. RFC 6052 section
    /// 2.2 says that they SHOULD be zero; operators with a reason may set them.
    ///
    /// # Errors
    ///
    /// `PrefixError::SuffixWithoutRoom`: the prefix is a /96, and the suffix is not zero. `PrefixError::SuffixBits64To71`: a bit of 64
    /// to 71 is set. `PrefixError::SuffixOverlap`: the suffix reaches into the prefix or into the embedded IPv4 address.
    pub const fn with_suffix(self, suffix: Ipv6Addr) -> Result<Pref64, PrefixError> {
        let suffix = suffix.to_bits();
        if suffix == 0 {
            return Ok(Pref64 { bits: self.bits & mask(self.length), length: self.length });
        }
        if self.length == 96 {
            return Err(PrefixError::SuffixWithoutRoom);
        }
        if suffix & OCTET_U != 0 {
            return Err(PrefixError::SuffixBits64To71);
        }
        // The prefix, 8 bits of `u`, 32 bits of IPv4.
        let start = self.length as u32 + 8 + 32;
        if suffix & !(u128::MAX >> start) != 0 {
            return Err(PrefixError::SuffixOverlap { first_bit: start as u8 });
        }
        Ok(Pref64 { bits: (self.bits & mask(self.length)) | suffix, length: self.length })
    }

    /// The IPv6 address that carries `v4` (RFC 6052 section 2.3).
    //= RFC 6147 section 5.2: requirements 16, 17, 19
    //= RFC 6052 section 2.2: requirements 34, 35; what is not prefix, address or a configured suffix is zero.
    #[inline]
    pub const fn embed(&self, v4: [u8; 4]) -> [u8; 16] {
        let shifted = (u32::from_be_bytes(v4) as u128) << (96 - self.length);
        let high = shifted >> 64 << 64;
        let low = shifted as u64 >> self.gap();
        (self.bits | high | low as u128).to_be_bytes()
    }

    //= RFC 6147 section 5.2: requirement 16
    //= RFC 6052 section 2.2: requirement 35
    /// The IPv4 address that `v6` carries, or `None` if `v6` is not under this prefix.
    ///
    /// The suffix and the octet `u` are ignored, as in RFC 6052 section 2.3: it removes `u` and takes the 32 bits after
    /// the prefix, whatever the rest says. Section 2.2 reserves the suffix for extensions, so readers ignore it. An
    /// address with another `u` than zero is no address of that format: [`has_zero_octet_u`] tells.
    #[inline]
    pub const fn extract(&self, v6: [u8; 16]) -> Option<[u8; 4]> {
        if !self.contains(v6) {
            return None;
        }
        let bits = u128::from_be_bytes(v6);
        let low = (bits as u64) << self.gap();
        let joined = (bits >> 64 << 64) | low as u128;
        Some(((joined >> (96 - self.length)) as u32).to_be_bytes())
    }

    /// True if `v6` is under this prefix.
    #[inline]
    pub const fn contains(&self, v6: [u8; 16]) -> bool {
        (u128::from_be_bytes(v6) ^ self.bits) & mask(self.length) == 0
    }

    /// Address of the prefix; bits beyond the length are zero.
    pub const fn address(&self) -> Ipv6Addr {
        Ipv6Addr::from_bits(self.bits & mask(self.length))
    }

    /// Length of the prefix in bits.
    pub const fn length(&self) -> u8 {
        self.length
    }

    /// Suffix, as an address whose other bits are zero.
    pub const fn suffix(&self) -> Ipv6Addr {
        Ipv6Addr::from_bits(self.bits & !mask(self.length))
    }

    /// True for `64:ff9b::/96`.
    //= RFC 8215 section 5: requirement 54; its neighbour for local use is another one.
    pub const fn is_well_known(&self) -> bool {
        self.bits == WELL_KNOWN.bits && self.length == WELL_KNOWN.length
    }

    /// Distance by which the octet `u` moves the bits after bit 64: eight bits, or none with /96.
    #[inline]
    const fn gap(&self) -> u32 {
        if self.length == 96 { 0 } else { 8 }
    }
}

/// True if bits 64 to 71 of an address are zero, as in every IPv4-embedded IPv6 address (RFC 6052 section 2.2).
#[inline]
pub const fn has_zero_octet_u(v6: [u8; 16]) -> bool {
    u128::from_be_bytes(v6) & OCTET_U == 0
}

/// The `length` leading bits; `length` is at least 32.
#[inline]
const fn mask(length: u8) -> u128 {
    u128::MAX << (128 - length)
}

impl fmt::Display for Pref64 {
    /// The prefix without its suffix, as [`FromStr`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address(), self.length)
    }
}

impl fmt::Debug for Pref64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pref64({self}")?;
        if self.suffix() != Ipv6Addr::UNSPECIFIED {
            write!(f, " suffix {}", self.suffix())?;
        }
        write!(f, ")")
    }
}

impl FromStr for Pref64 {
    type Err = PrefixError;

    /// Reads `ADDRESS/LENGTH`. A bare address is refused: other programs read it as /96, and a forgotten length would
    /// stay unnoticed.
    fn from_str(text: &str) -> Result<Pref64, PrefixError> {
        let (address, length) = text.split_once('/').ok_or(PrefixError::LengthMissing)?;
        let address = address.parse().map_err(|_| PrefixError::Address)?;
        let digits = length.bytes().all(|octet| octet.is_ascii_digit());
        let canonical = digits && (length == "0" || !length.starts_with('0'));
        match length.parse() {
            Ok(length) if canonical => Pref64::new(address, length),
            _ => Err(PrefixError::LengthText),
        }
    }
}

/// Reason why a prefix or a suffix is refused. Each text says what to write instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixError {
    /// Not `ADDRESS/LENGTH`: there is no slash.
    LengthMissing,
    /// The part after the slash is not a decimal number from 0 to 255.
    LengthText,
    /// The part before the slash is not an IPv6 address.
    Address,
    /// The length is not one of the six of RFC 6052 section 2.2.
    Length(u8),
    /// A bit beyond the length is set.
    HostBits,
    /// A bit of 64 to 71 is set in a /96 (RFC 6052 section 2.2).
    Bits64To71,
    /// A suffix for a /96, where the IPv4 address is at the end.
    SuffixWithoutRoom,
    /// A bit of 64 to 71 is set in the suffix (RFC 6052 section 2.2).
    SuffixBits64To71,
    /// The suffix reaches into the prefix or into the embedded IPv4 address.
    SuffixOverlap {
        /// The first bit that a suffix of this prefix may use.
        first_bit: u8,
    },
}

impl fmt::Display for PrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrefixError::LengthMissing => {
                write!(f, "the prefix length is missing; append /32, /40, /48, /56, /64 or /96")
            }
            PrefixError::LengthText => {
                write!(f, "the part after the slash is not a length; write /32, /40, /48, /56, /64 or /96")
            }
            PrefixError::Address => {
                write!(f, "not an IPv6 address before the slash; write a prefix like 64:ff9b::/96")
            }
            PrefixError::Length(length) => {
                write!(f, "/{length} is not a length of RFC 6052; use /32, /40, /48, /56, /64 or /96")
            }
            PrefixError::HostBits => {
                write!(f, "bits are set beyond the prefix length; clear them or correct the length")
            }
            PrefixError::Bits64To71 => write!(
                f,
                "bits 64 to 71 must be zero (RFC 6052 section 2.2); take a /64 and append 32 zero bits to make a /96"
            ),
            PrefixError::SuffixWithoutRoom => {
                write!(f, "a /96 prefix leaves no room for a suffix; use \"::\" or a shorter prefix")
            }
            PrefixError::SuffixBits64To71 => {
                write!(f, "the suffix sets some of the bits 64 to 71, which must be zero; clear them")
            }
            PrefixError::SuffixOverlap { first_bit } => write!(
                f,
                "the suffix overlaps the prefix or the IPv4 address; use only bits {first_bit} to 127 with this length"
            ),
        }
    }
}

impl core::error::Error for PrefixError {}
