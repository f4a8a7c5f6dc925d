//! Header (RFC 1035 section 4.1.1, RFC 4035 section 3 for AD and CD), read and patched in place.
//!
//! All functions take the message as a slice and panic if it is shorter than [`HEADER`]: the caller checks that
//! before it looks at anything else.

use crate::types::{Opcode, Rcode};

/// Octets of the header. The question begins at this position.
pub const HEADER: usize = 12;

/// Second 16-bit word of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Flags(pub u16);

impl Flags {
    /// The message is a response.
    pub const QR: Flags = Flags(0x8000);
    /// The answer is authoritative.
    pub const AA: Flags = Flags(0x0400);
    /// The message is truncated.
    pub const TC: Flags = Flags(0x0200);
    /// Recursion is desired.
    pub const RD: Flags = Flags(0x0100);
    /// Recursion is available.
    pub const RA: Flags = Flags(0x0080);
    /// The data is authentic. In a query, the requestor understands AD (RFC 6840 section 5.8).
    pub const AD: Flags = Flags(0x0020);
    /// Checking is disabled.
    pub const CD: Flags = Flags(0x0010);

    const OPCODE: u16 = 0x7800;
    const RCODE: u16 = 0x000f;

    /// Opcode.
    #[inline]
    pub const fn opcode(self) -> Opcode {
        Opcode(((self.0 & Self::OPCODE) >> 11) as u8)
    }

    /// Low 4 bits of the response code. [`crate::Message::rcode`] has all 12.
    #[inline]
    pub const fn rcode(self) -> Rcode {
        Rcode(self.0 & Self::RCODE)
    }

    /// True if all bits of `other` are set.
    #[inline]
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Sets the bits of `other`.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Clears the bits of `other`.
    #[inline]
    #[must_use]
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    /// Sets the opcode (low 4 bits).
    #[inline]
    #[must_use]
    pub const fn with_opcode(self, opcode: Opcode) -> Flags {
        Flags(self.0 & !Self::OPCODE | (opcode.0 as u16) << 11 & Self::OPCODE)
    }

    /// Sets the low 4 bits of the response code; the other bits belong into the OPT record.
    #[inline]
    #[must_use]
    pub const fn with_rcode(self, rcode: Rcode) -> Flags {
        Flags(self.0 & !Self::RCODE | rcode.0 & Self::RCODE)
    }
}

/// Reads the message ID.
#[inline]
pub fn id(message: &[u8]) -> u16 {
    get(message, 0)
}

/// Writes the message ID.
#[inline]
pub fn set_id(message: &mut [u8], id: u16) {
    set(message, 0, id);
}

/// Reads the flags.
#[inline]
pub fn flags(message: &[u8]) -> Flags {
    Flags(get(message, 2))
}

/// Writes the flags.
#[inline]
pub fn set_flags(message: &mut [u8], flags: Flags) {
    set(message, 2, flags.0);
}

/// Reads the number of questions.
#[inline]
pub fn qdcount(message: &[u8]) -> u16 {
    get(message, 4)
}

/// Reads the number of answer records.
#[inline]
pub fn ancount(message: &[u8]) -> u16 {
    get(message, 6)
}

/// Reads the number of authority records.
#[inline]
pub fn nscount(message: &[u8]) -> u16 {
    get(message, 8)
}

/// Reads the number of additional records.
#[inline]
pub fn arcount(message: &[u8]) -> u16 {
    get(message, 10)
}

/// Writes the number of questions.
#[inline]
pub fn set_qdcount(message: &mut [u8], count: u16) {
    set(message, 4, count);
}

/// Writes the number of answer records.
#[inline]
pub fn set_ancount(message: &mut [u8], count: u16) {
    set(message, 6, count);
}

/// Writes the number of authority records.
#[inline]
pub fn set_nscount(message: &mut [u8], count: u16) {
    set(message, 8, count);
}

/// Writes the number of additional records.
#[inline]
pub fn set_arcount(message: &mut [u8], count: u16) {
    set(message, 10, count);
}

#[inline]
fn get(message: &[u8], at: usize) -> u16 {
    let header: &[u8] = &message[..HEADER];
    u16::from_be_bytes([header[at], header[at + 1]])
}

#[inline]
fn set(message: &mut [u8], at: usize, value: u16) {
    message[..HEADER][at..at + 2].copy_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_written_where_it_is_read() {
        let mut message = [0u8; HEADER];
        set_id(&mut message, 0x1234);
        set_flags(&mut message, Flags(0x8180));
        set_qdcount(&mut message, 1);
        set_ancount(&mut message, 2);
        set_nscount(&mut message, 3);
        set_arcount(&mut message, 4);
        assert_eq!(message, [0x12, 0x34, 0x81, 0x80, 0, 1, 0, 2, 0, 3, 0, 4]);
        assert_eq!((id(&message), flags(&message)), (0x1234, Flags(0x8180)));
        let counts = (qdcount(&message), ancount(&message), nscount(&message), arcount(&message));
        assert_eq!(counts, (1, 2, 3, 4));
    }

    #[test]
    fn opcode_and_rcode_do_not_touch_the_other_bits() {
        let all = Flags(0xffff).with_opcode(Opcode::UPDATE).with_rcode(Rcode::NXDOMAIN);
        assert_eq!((all.opcode(), all.rcode()), (Opcode::UPDATE, Rcode::NXDOMAIN));
        assert_eq!(all.0, 0xaff3);
        assert_eq!(Flags(0).with_rcode(Rcode::BADVERS), Flags(0));
        assert!(all.contains(Flags::QR.with(Flags::CD)) && !all.without(Flags::TC).contains(Flags::TC));
    }

    #[test]
    #[should_panic]
    fn a_slice_without_a_header_panics() {
        id(&[0; 11]);
    }
}
