//! Address hints of service bindings: the parameters `ipv4hint` and `ipv6hint` of SVCB and HTTPS records (RFC 9460 section 7.3).

/// Keys of the parameters (RFC 9460 section 14.3.2).
const IPV4_HINT: u16 = 4;
const IPV6_HINT: u16 = 6;

/// Address hint of a service binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Address of `ipv4hint`.
    V4([u8; 4]),
    /// Address of `ipv6hint`.
    V6([u8; 16]),
    /// RDATA is malformed from here on: the octets that follow may be anything.
    Malformed,
}

/// The address hints in the RDATA of an SVCB or HTTPS record, in their order. [`Hint::Malformed`] is the last one.
#[derive(Clone, Debug)]
pub struct Hints<'a> {
    /// Addresses of the current parameter that are left.
    addresses: &'a [u8],
    /// Octets of each of them.
    size: usize,
    /// Parameters that are left; none after a malformed one.
    parameters: Option<&'a [u8]>,
}

impl<'a> Hints<'a> {
    /// No hints.
    pub(crate) const NONE: Hints<'static> = Hints { addresses: &[], size: 0, parameters: None };

    /// The hints in RDATA.
    pub(crate) fn of(rdata: &'a [u8]) -> Hints<'a> {
        // Malformed RDATA has a parameter without an end.
        Hints { parameters: Some(parameters(rdata).unwrap_or(&[0])), ..Hints::NONE }
    }

    /// Begins the next parameter. None: it is malformed.
    fn next_parameter(&mut self, parameters: &'a [u8]) -> Option<()> {
        let (key, rest) = parameters.split_first_chunk::<2>()?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let (value, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        self.parameters = Some(rest);
        self.size = match u16::from_be_bytes(*key) {
            IPV4_HINT => 4,
            IPV6_HINT => 16,
            _ => return Some(()),
        };
        self.addresses = value;
        // Section 7.3: an empty list is not allowed.
        (!value.is_empty() && value.len().is_multiple_of(self.size)).then_some(())
    }
}

/// The octets behind the priority and the target, whose name is not compressed (RFC 9460 section 2.2). None: there is no target.
fn parameters(rdata: &[u8]) -> Option<&[u8]> {
    let mut rest = rdata.get(2..)?;
    loop {
        match *rest.first()? {
            0 => return rest.get(1..),
            length @ 1..=63 => rest = rest.get(1 + usize::from(length)..)?,
            _ => return None,
        }
    }
}

impl Iterator for Hints<'_> {
    type Item = Hint;

    fn next(&mut self) -> Option<Hint> {
        loop {
            if let Some((address, rest)) = self.addresses.split_at_checked(self.size)
                && !address.is_empty()
            {
                self.addresses = rest;
                return match address.try_into() {
                    Ok(v4) => Some(Hint::V4(v4)),
                    Err(_) => address.try_into().ok().map(Hint::V6),
                };
            }
            let parameters = self.parameters.filter(|parameters| !parameters.is_empty())?;
            if self.next_parameter(parameters).is_none() {
                *self = Hints::NONE;
                return Some(Hint::Malformed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    fn hints(rdata: &[u8]) -> Vec<Hint> {
        Hints::of(rdata).collect()
    }

    #[test]
    fn all_addresses_of_both_hints_are_found() {
        // RFC 9460 appendix D.2, figure 7: 1 example.com. ipv6hint="2001:db8::1,2001:db8::53:1"; here with an ipv4hint and a port before.
        let rdata = b"\0\x01\x07example\x03com\0\0\x03\0\x02\x01\xbb\0\x04\0\x08\xc0\0\x02\x01\xc0\0\x02\x02\0\x06\0\x20\
            \x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\x53\0\x01";
        let six = |last: [u8; 4]| {
            let mut address = [0; 16];
            address[..4].copy_from_slice(&[0x20, 1, 0x0d, 0xb8]);
            address[12..].copy_from_slice(&last);
            Hint::V6(address)
        };
        assert_eq!(
            hints(rdata),
            [Hint::V4([192, 0, 2, 1]), Hint::V4([192, 0, 2, 2]), six([0, 0, 0, 1]), six([0, 0x53, 0, 1])]
        );
    }

    #[test]
    fn a_binding_without_hints_has_none() {
        assert_eq!(hints(b"\0\0\x04pool\x07example\0"), []);
        assert_eq!(hints(b"\0\x01\0"), []);
        assert_eq!(hints(b"\0\x01\0\0\x01\0\x03\x02h2"), []);
    }

    #[test]
    fn malformed_rdata_is_told_behind_what_could_be_read() {
        for rdata in [
            &b""[..],
            b"\0",
            b"\0\x01",
            b"\0\x01\x07exam",
            b"\0\x01\xc0\x0c",
            b"\0\x01\0\0",
            b"\0\x01\0\0\x01\0\x03\x02h",
            b"\0\x01\0\0\x04\0\0",
        ] {
            assert_eq!(hints(rdata), [Hint::Malformed], "{rdata:?}");
        }
        assert_eq!(
            hints(b"\0\x01\0\0\x04\0\x04\x0a\0\0\x01\0\x06"),
            [Hint::V4([10, 0, 0, 1]), Hint::Malformed]
        );
        // Five octets are no list of addresses.
        assert_eq!(hints(b"\0\x01\0\0\x04\0\x05\x0a\0\0\x01\x0a"), [Hint::Malformed]);
    }
}
