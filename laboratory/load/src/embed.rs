//! IPv4 addresses embedded in IPv6 addresses: RFC 6052 section 2.2, implemented from the RFC's table and independent
//! of the server's implementation, because this code checks servers.
//!
//! ```text
//!     octet   0...3   4   5   6   7   8   9  10  11  12  13  14  15
//!     /32     prefix  v4----------->  u   suffix
//!     /40     prefix----> v4------->  u   v4  suffix
//!     /48     prefix--------> v4--->  u   v4---->  suffix
//!     /56     prefix------------> v4  u   v4-------->  suffix
//!     /64     prefix---------------->  u   v4----------->  suffix
//!     /96     prefix------------------------------------>  v4----->
//! ```
//!
//! `u` (octet 8) and the suffix are zero.

use std::net::Ipv6Addr;

/// A prefix, and the positions of the four IPv4 octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Embedding {
    prefix: [u8; 16],
    positions: [usize; 4],
}

impl Embedding {
    /// The embedding for a prefix. Returns `None` for a length other than 32, 40, 48, 56, 64 and 96, and for bits set
    /// beyond the length or in octet 8.
    pub fn new(prefix: Ipv6Addr, bits: u8) -> Option<Embedding> {
        let positions = match bits {
            32 => [4, 5, 6, 7],
            40 => [5, 6, 7, 9],
            48 => [6, 7, 9, 10],
            56 => [7, 9, 10, 11],
            64 => [9, 10, 11, 12],
            96 => [12, 13, 14, 15],
            _ => return None,
        };
        let octets = prefix.octets();
        let clear = octets[usize::from(bits) / 8..].iter().all(|octet| *octet == 0) && octets[8] == 0;
        clear.then_some(Embedding { prefix: octets, positions })
    }

    /// The zone's own AAAA records: `2001:db8::` with the address in the last 32 bits.
    pub fn real() -> Embedding {
        let prefix = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0).octets();
        Embedding { prefix, positions: [12, 13, 14, 15] }
    }

    /// The IPv6 address for an IPv4 address.
    #[inline]
    pub fn embed(&self, address: [u8; 4]) -> [u8; 16] {
        let mut octets = self.prefix;
        for (position, octet) in self.positions.into_iter().zip(address) {
            octets[position] = octet;
        }
        octets
    }

    /// The IPv4 address in an IPv6 address; `None` if the prefix or the suffix differs.
    #[inline]
    pub fn extract(&self, octets: [u8; 16]) -> Option<[u8; 4]> {
        let address = self.positions.map(|position| octets[position]);
        (self.embed(address) == octets).then_some(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_rfc_6052_section_2_4() {
        for (prefix, bits, expected) in [
            ("2001:db8::", 32, "2001:db8:c000:221::"),
            ("2001:db8:100::", 40, "2001:db8:1c0:2:21::"),
            ("2001:db8:122::", 48, "2001:db8:122:c000:2:2100::"),
            ("2001:db8:122:300::", 56, "2001:db8:122:3c0:0:221::"),
            ("2001:db8:122:344::", 64, "2001:db8:122:344:c0:2:2100::"),
            ("2001:db8:122:344::", 96, "2001:db8:122:344::192.0.2.33"),
            ("64:ff9b::", 96, "64:ff9b::192.0.2.33"),
        ] {
            let embedding = Embedding::new(prefix.parse().unwrap(), bits).unwrap();
            let expected: Ipv6Addr = expected.parse().unwrap();
            assert_eq!(Ipv6Addr::from(embedding.embed([192, 0, 2, 33])), expected);
            assert_eq!(embedding.extract(expected.octets()), Some([192, 0, 2, 33]));
            // With any other octet of prefix, `u` or suffix, the address does not match the prefix.
            for at in (0..16).filter(|at| !embedding.positions.contains(at)) {
                let mut other = expected.octets();
                other[at] ^= 1;
                assert_eq!(embedding.extract(other), None, "{prefix} octet {at}");
            }
        }
    }

    #[test]
    fn an_invalid_prefix_is_refused() {
        for (prefix, bits) in [
            ("64:ff9b::", 95),
            ("64:ff9b::1", 96),
            ("2001:db8:1::", 32),
            ("2001:db8::100:0:0", 96),
            ("::", 0),
        ] {
            let octet_8 = prefix.parse::<Ipv6Addr>().unwrap().octets()[8];
            let refused = Embedding::new(prefix.parse().unwrap(), bits).is_none();
            assert!(refused || octet_8 == 0, "{prefix}/{bits}");
        }
        assert!(Embedding::new("2001:db8:0:0:100::".parse().unwrap(), 96).is_none());
        assert!(Embedding::new("64:ff9b::1".parse().unwrap(), 96).is_none());
    }
}
