//! Type bit maps of NSEC and NSEC3 records (RFC 4034 section 4.1.2, RFC 5155 section 3.2.1).

use wire::Type;

/// Well-formed list of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeBitmap<'a> {
    octets: &'a [u8],
}

impl<'a> TypeBitmap<'a> {
    /// Reads a list. `None` unless the windows ascend, each has 1 to 32 octets, and the last of them is not zero: RFC 4034 section 4.1.2
    /// forbids blocks without types, and zero octets at the end.
    pub fn parse(octets: &'a [u8]) -> Option<TypeBitmap<'a>> {
        let (mut rest, mut least) = (octets, 0);
        while !rest.is_empty() {
            let (&[window, length], after) = rest.split_first_chunk::<2>()?;
            let (bits, after) = after.split_at_checked(usize::from(length))?;
            if u16::from(window) < least || bits.len() > 32 || matches!(bits.last(), None | Some(0)) {
                return None;
            }
            (rest, least) = (after, u16::from(window) + 1);
        }
        Some(TypeBitmap { octets })
    }

    /// True if no type is listed.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.octets.is_empty()
    }

    /// All types in the list, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Type> + use<'a> {
        let mut rest = self.octets;
        let blocks = core::iter::from_fn(move || {
            let (&[window, length], after) = rest.split_first_chunk::<2>()?;
            let (bits, after) = after.split_at_checked(usize::from(length))?;
            rest = after;
            Some((window, bits))
        });
        blocks.flat_map(|(window, bits)| {
            let is_set =
                |low: &u8| bits.get(usize::from(low / 8)).is_some_and(|octet| octet << (low % 8) & 0x80 != 0);
            (0..=u8::MAX).filter(is_set).map(move |low| Type(u16::from_be_bytes([window, low])))
        })
    }

    /// True if the type is listed.
    #[inline]
    pub fn contains(&self, rtype: Type) -> bool {
        let [high, low] = rtype.0.to_be_bytes();
        let mut rest = self.octets;
        while let Some((&[window, length], after)) = rest.split_first_chunk::<2>() {
            let Some((bits, after)) = after.split_at_checked(usize::from(length)) else { return false };
            if window == high {
                return bits.get(usize::from(low / 8)).is_some_and(|octet| octet << (low % 8) & 0x80 != 0);
            }
            rest = after;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    // The example of RFC 4034 section 4.3: A MX RRSIG NSEC TYPE1234.
    const EXAMPLE: &[u8] = &{
        let mut octets = [0; 37];
        (octets[1], octets[2], octets[3], octets[7]) = (6, 0x40, 0x01, 0x03);
        (octets[8], octets[9], octets[36]) = (4, 27, 0x20);
        octets
    };

    #[test]
    fn the_example_of_rfc_4034_lists_its_types_and_no_other() {
        let bitmap = TypeBitmap::parse(EXAMPLE).unwrap();
        let listed: Vec<u16> = (0..=u16::MAX).filter(|&rtype| bitmap.contains(Type(rtype))).collect();
        assert_eq!(listed, [1, 15, 46, 47, 1234]);
        assert_eq!(bitmap.iter().map(|rtype| rtype.0).collect::<Vec<_>>(), listed);
        assert!(!bitmap.is_empty());
    }

    #[test]
    fn malformed_lists_are_refused() {
        let cases: [(&[u8], bool); 10] = [
            (b"", true),
            (b"\0\x01\x40\x01\x01\x40", true),
            (b"\xff\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01", true),
            // Windows that descend, and one twice.
            (b"\x01\x01\x40\0\x01\x40", false),
            (b"\0\x01\x40\0\x01\x40", false),
            // Lengths 0 and 33, and more octets announced than there are.
            (b"\0\0", false),
            (b"\0\x21\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01", false),
            (b"\0\x02\x40", false),
            (b"\0", false),
            // A zero octet at the end.
            (b"\0\x02\x40\0", false),
        ];
        for (octets, is_good) in cases {
            assert_eq!(TypeBitmap::parse(octets).is_some(), is_good, "{octets:02x?}");
        }
    }
}
