//! NAT64 prefixes as the oracle sees them (RFC 6052): an octet-by-octet implementation that shares no code with the engine.

use crate::rng::Rng;
use pref64::Pref64;
use std::net::Ipv6Addr;

/// A NAT64 prefix: address, length in bits, and the suffix that fills the rest of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Address.
    pub address: [u8; 16],
    /// Length in bits: 32, 40, 48, 56, 64 or 96.
    pub length: usize,
    /// Suffix.
    pub suffix: [u8; 16],
}

/// Text of the Well-Known Prefix, under which only global IPv4 addresses are embedded (RFC 6052 section 2.1).
const WELL_KNOWN: &str = "64:ff9b::";

impl Prefix {
    /// Draws a prefix. `place` makes prefixes of 96 and 32 bits differ from each other.
    pub fn draw(rng: &mut Rng, place: u8) -> Prefix {
        let (text, length) = *rng.choose(&[
            (WELL_KNOWN, 96),
            ("2001:db8:64::", 96),
            ("2001:db8:64:ff00::", 56),
            ("2001:db8:64::", 48),
            ("2001:db8:64:7::", 64),
            ("2001:db8:6400::", 40),
            ("2001:db8::", 32),
        ]);
        let mut address = text.parse::<Ipv6Addr>().map_or([0; 16], |address| address.octets());
        if length == 96 && text != WELL_KNOWN {
            address[7] = place;
        }
        if length == 32 {
            address[1] = 2 + place;
        }
        let mut suffix = [0; 16];
        if length < 96 && rng.permille(300) {
            suffix[15] = 0x5a;
        }
        Prefix { address, length, suffix }
    }

    /// 64:ff9b::/96.
    pub fn well_known() -> Prefix {
        let mut address = [0; 16];
        address[..4].copy_from_slice(&[0, 0x64, 0xff, 0x9b]);
        Prefix { address, length: 96, suffix: [0; 16] }
    }

    /// True if this is the Well-Known Prefix.
    pub fn is_well_known(&self) -> bool {
        self.length == 96 && self.address[..4] == [0, 0x64, 0xff, 0x9b] && self.address[4..12] == [0; 8]
    }

    /// True if the prefix contains an IPv6 address.
    pub fn contains(&self, address: &[u8; 16]) -> bool {
        address[..self.length / 8] == self.address[..self.length / 8]
    }

    /// The IPv4-embedded IPv6 address of an IPv4 address: the table of RFC 6052 section 2.2, octet by octet.
    pub fn embed(&self, v4: [u8; 4]) -> [u8; 16] {
        let mut address = self.suffix;
        let mut at = self.length / 8;
        address[..at].copy_from_slice(&self.address[..at]);
        for octet in v4 {
            // Octet u.
            if at == 8 {
                at = 9;
            }
            address[at] = octet;
            at += 1;
        }
        address
    }

    /// The IPv4 address that is embedded in an address under the prefix.
    pub fn extract(&self, address: &[u8; 16]) -> Option<[u8; 4]> {
        let mut octets = address.to_vec();
        // Octet u holds no part of the IPv4 address.
        if self.length < 96 {
            octets.remove(8);
        }
        octets.get(self.length / 8..self.length / 8 + 4)?.try_into().ok()
    }

    /// The prefix as the engine's type.
    pub fn to_engine(&self) -> Pref64 {
        Pref64::new(self.address.into(), self.length as u8)
            .and_then(|prefix| prefix.with_suffix(self.suffix.into()))
            .unwrap_or(pref64::WELL_KNOWN)
    }
}
