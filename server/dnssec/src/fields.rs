//! RDATA of the types of DNSSEC: DNSKEY, RRSIG, NSEC and DS (RFC 4034), NSEC3 and NSEC3PARAM (RFC 5155).
//!
//! Names in these types are never compressed (RFC 3597 section 4), so RDATA is read as it stands in the message.

use crate::algorithm::{Algorithm, DigestType};
use crate::type_bitmap::TypeBitmap;
use wire::Type;

/// Reason why RDATA cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldError {
    /// Fewer octets than the fields need, or an empty key, digest or signature.
    Short,
    /// No uncompressed name where one belongs.
    Name,
    /// A malformed type bit map, or one without types in an NSEC record.
    Bitmap,
    /// A digest or hash that does not have the length of its algorithm.
    HashLength,
    /// Octets after the last field.
    Trailing,
}

impl core::fmt::Display for FieldError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            FieldError::Short => "RDATA is too short",
            FieldError::Name => "RDATA has no uncompressed name",
            FieldError::Bitmap => "the type bit map is malformed",
            FieldError::HashLength => "the hash does not have the length of its algorithm",
            FieldError::Trailing => "octets follow the last field",
        })
    }
}

impl core::error::Error for FieldError {}

/// DNSKEY record (RFC 4034 section 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dnskey<'a> {
    /// Flags; see the methods.
    pub flags: u16,
    /// Protocol, which has to be 3.
    pub protocol: u8,
    /// Algorithm.
    pub algorithm: Algorithm,
    /// Public key, in the form of the algorithm.
    pub key: &'a [u8],
    /// All of the RDATA.
    pub rdata: &'a [u8],
}

impl<'a> Dnskey<'a> {
    /// Reads RDATA.
    ///
    /// # Errors
    ///
    /// `Short`: no key follows the fixed fields.
    pub fn parse(rdata: &'a [u8]) -> Result<Dnskey<'a>, FieldError> {
        match rdata.split_first_chunk::<4>() {
            Some((&[high, low, protocol, algorithm], key)) if !key.is_empty() => Ok(Dnskey {
                flags: u16::from_be_bytes([high, low]),
                protocol,
                algorithm: Algorithm(algorithm),
                key,
                rdata,
            }),
            _ => Err(FieldError::Short),
        }
    }

    /// True if the key is one of a zone (bit 7). Without that bit it verifies no signature of RRsets.
    #[inline]
    pub fn is_zone_key(&self) -> bool {
        self.flags & 0x0100 != 0
    }

    /// True if the key is revoked (RFC 5011 section 3).
    #[inline]
    pub fn is_revoked(&self) -> bool {
        self.flags & 0x0080 != 0
    }

    /// True if the key is meant as an entry point (bit 15), which no check may depend on (RFC 4034 section 2.1.1).
    #[inline]
    pub fn is_entry_point(&self) -> bool {
        self.flags & 0x0001 != 0
    }
}

/// RRSIG record (RFC 4034 section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rrsig<'a> {
    /// Type of the RRset that is signed.
    pub covered: Type,
    /// Algorithm.
    pub algorithm: Algorithm,
    /// Labels of the original owner, without the root and an asterisk at the left.
    pub labels: u8,
    /// TTL of the RRset in its zone, in seconds.
    pub original_ttl: u32,
    /// Last second in which the signature is valid, modulo 2^32.
    pub expiration: u32,
    /// First second in which the signature is valid, modulo 2^32.
    pub inception: u32,
    /// Key tag of the key.
    pub key_tag: u16,
    /// Name of the zone, uncompressed.
    pub signer: &'a [u8],
    /// Signature.
    pub signature: &'a [u8],
    /// RDATA before the signer's name.
    pub fixed: &'a [u8; 18],
}

impl<'a> Rrsig<'a> {
    /// Reads RDATA.
    ///
    /// # Errors
    ///
    /// `Short`: fixed fields or signature are missing. `Name`: the signer's name is malformed or compressed.
    pub fn parse(rdata: &'a [u8]) -> Result<Rrsig<'a>, FieldError> {
        let (fixed, rest) = rdata.split_first_chunk::<18>().ok_or(FieldError::Short)?;
        let &[c0, c1, algorithm, labels, o0, o1, o2, o3, e0, e1, e2, e3, i0, i1, i2, i3, t0, t1] = fixed;
        let (signer, signature) = split_name(rest)?;
        if signature.is_empty() {
            return Err(FieldError::Short);
        }
        Ok(Rrsig {
            covered: Type(u16::from_be_bytes([c0, c1])),
            algorithm: Algorithm(algorithm),
            labels,
            original_ttl: u32::from_be_bytes([o0, o1, o2, o3]),
            expiration: u32::from_be_bytes([e0, e1, e2, e3]),
            inception: u32::from_be_bytes([i0, i1, i2, i3]),
            key_tag: u16::from_be_bytes([t0, t1]),
            signer,
            signature,
            fixed,
        })
    }
}

/// DS record (RFC 4034 section 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ds<'a> {
    /// Key tag of the key.
    pub key_tag: u16,
    /// Algorithm of the key.
    pub algorithm: Algorithm,
    /// Algorithm of the digest.
    pub digest_type: DigestType,
    /// Digest.
    pub digest: &'a [u8],
}

impl<'a> Ds<'a> {
    /// Reads RDATA.
    ///
    /// # Errors
    ///
    /// `Short`: no digest follows the fixed fields. `HashLength`: the digest does not have the length of its algorithm, if that is known.
    pub fn parse(rdata: &'a [u8]) -> Result<Ds<'a>, FieldError> {
        let Some((&[high, low, algorithm, digest_type], digest)) = rdata.split_first_chunk::<4>() else {
            return Err(FieldError::Short);
        };
        let digest_type = DigestType(digest_type);
        match digest_type.length() {
            _ if digest.is_empty() => Err(FieldError::Short),
            Some(length) if length != digest.len() => Err(FieldError::HashLength),
            _ => Ok(Ds {
                key_tag: u16::from_be_bytes([high, low]),
                algorithm: Algorithm(algorithm),
                digest_type,
                digest,
            }),
        }
    }
}

/// NSEC record (RFC 4034 section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nsec<'a> {
    /// Next name in the order of the zone, uncompressed.
    pub next: &'a [u8],
    /// Types at the owner.
    pub types: TypeBitmap<'a>,
}

impl<'a> Nsec<'a> {
    /// Reads RDATA.
    ///
    /// # Errors
    ///
    /// `Name`: the next name is malformed or compressed. `Bitmap`: the type bit map is malformed, or lists no type; an NSEC record always
    /// lists itself (RFC 4035 section 2.3).
    pub fn parse(rdata: &'a [u8]) -> Result<Nsec<'a>, FieldError> {
        let (next, types) = split_name(rdata)?;
        let types = TypeBitmap::parse(types).filter(|types| !types.is_empty()).ok_or(FieldError::Bitmap)?;
        Ok(Nsec { next, types })
    }
}

/// Parameters of the hash of NSEC3 (RFC 5155 section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nsec3Param<'a> {
    /// Hash algorithm; 1 is SHA-1, and there is no other.
    pub hash: u8,
    /// Flags.
    pub flags: u8,
    /// Number of iterations after the first.
    pub iterations: u16,
    /// Salt of at most 255 octets.
    pub salt: &'a [u8],
}

impl<'a> Nsec3Param<'a> {
    /// Reads the RDATA of an NSEC3PARAM record.
    ///
    /// # Errors
    ///
    /// `Short`: fixed fields or salt are missing. `Trailing`: octets follow the salt.
    pub fn parse(rdata: &'a [u8]) -> Result<Nsec3Param<'a>, FieldError> {
        match Nsec3Param::split(rdata)? {
            (parameters, []) => Ok(parameters),
            _ => Err(FieldError::Trailing),
        }
    }

    fn split(rdata: &'a [u8]) -> Result<(Nsec3Param<'a>, &'a [u8]), FieldError> {
        let (&[hash, flags, high, low, length], rest) =
            rdata.split_first_chunk::<5>().ok_or(FieldError::Short)?;
        let (salt, rest) = rest.split_at_checked(usize::from(length)).ok_or(FieldError::Short)?;
        Ok((Nsec3Param { hash, flags, iterations: u16::from_be_bytes([high, low]), salt }, rest))
    }

    /// True if hashes with these parameters and those can be compared (RFC 5155 section 7.2 has one set for a response).
    #[inline]
    pub fn same_hash(&self, other: &Nsec3Param<'_>) -> bool {
        (self.hash, self.iterations, self.salt) == (other.hash, other.iterations, other.salt)
    }
}

/// Octets of the hash of NSEC3: SHA-1, the only algorithm (RFC 5155 section 11).
pub const NSEC3_HASH: usize = 20;

/// NSEC3 record (RFC 5155 section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nsec3<'a> {
    /// Parameters of the hash.
    pub parameters: Nsec3Param<'a>,
    /// Next hash in the order of the zone. Its length is that of the algorithm, if that is SHA-1.
    pub next: &'a [u8],
    /// Types at the original owner.
    pub types: TypeBitmap<'a>,
}

impl<'a> Nsec3<'a> {
    /// Hash algorithm SHA-1.
    pub const SHA1: u8 = 1;

    /// Reads RDATA.
    ///
    /// # Errors
    ///
    /// `Short`: fixed fields, salt or next hash are missing. `HashLength`: the next hash does not have the length of SHA-1, if that is the
    /// algorithm. `Bitmap`: the type bit map is malformed; it may be empty, at an empty non-terminal.
    pub fn parse(rdata: &'a [u8]) -> Result<Nsec3<'a>, FieldError> {
        let (parameters, rest) = Nsec3Param::split(rdata)?;
        let (&length, rest) = rest.split_first().ok_or(FieldError::Short)?;
        let (next, types) = rest.split_at_checked(usize::from(length)).ok_or(FieldError::Short)?;
        if next.is_empty() || parameters.hash == Nsec3::SHA1 && next.len() != NSEC3_HASH {
            return Err(FieldError::HashLength);
        }
        Ok(Nsec3 { parameters, next, types: TypeBitmap::parse(types).ok_or(FieldError::Bitmap)? })
    }

    /// True if the span from the owner to the next hash may have unsigned delegations (RFC 5155 section 6).
    #[inline]
    pub fn is_opt_out(&self) -> bool {
        self.parameters.flags & 1 != 0
    }
}

/// Uncompressed name at the start of octets, and the octets after it.
fn split_name(octets: &[u8]) -> Result<(&[u8], &[u8]), FieldError> {
    wire::name_len(octets).and_then(|length| octets.split_at_checked(length)).ok_or(FieldError::Name)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn every_field_of_a_signature_is_read() {
        let rdata = b"\0\x01\x0d\x03\0\0\x0e\x10\x4c\x88\x94\x37\x4c\x63\xc4\x37\xd9\x60\x07Example\0sig";
        let rrsig = Rrsig::parse(rdata).unwrap();
        assert_eq!((rrsig.covered, rrsig.algorithm, rrsig.labels), (Type::A, Algorithm::ECDSAP256, 3));
        assert_eq!((rrsig.original_ttl, rrsig.expiration, rrsig.inception), (3600, 0x4c88_9437, 0x4c63_c437));
        assert_eq!((rrsig.key_tag, rrsig.signer), (55648, &b"\x07Example\0"[..]));
        assert_eq!((rrsig.signature, &rrsig.fixed[..]), (&b"sig"[..], &rdata[..18]));
    }

    /// The error of a piece of RDATA cut off at each length.
    fn cut<T>(
        rdata: &'static [u8],
        parse: impl Fn(&'static [u8]) -> Result<T, FieldError>,
    ) -> Vec<Option<FieldError>> {
        (0..=rdata.len()).map(|length| parse(&rdata[..length]).err()).collect()
    }

    #[test]
    fn fields_that_are_cut_off_are_refused() {
        use FieldError::{Bitmap, HashLength, Name, Short};
        let repeated = |error, times: usize| std::iter::repeat_n(Some(error), times);
        let expected = |parts: &[(FieldError, usize)]| -> Vec<Option<FieldError>> {
            parts.iter().flat_map(|&(error, times)| repeated(error, times)).chain([None]).collect()
        };
        assert_eq!(cut(b"\x01\0\x03\x0dk", Dnskey::parse), expected(&[(Short, 5)]));
        let rrsig = b"\0\x01\x0d\x03\0\0\x0e\x10\x4c\x88\x94\x37\x4c\x63\xc4\x37\xd9\x60\x01a\0s";
        assert_eq!(cut(rrsig, Rrsig::parse), expected(&[(Short, 18), (Name, 3), (Short, 1)]));
        let ds = b"\0\x01\x05\x0112345678901234567890";
        assert_eq!(cut(ds, Ds::parse), expected(&[(Short, 5), (HashLength, 19)]));
        assert_eq!(cut(b"\x01a\0\0\x01\x40", Nsec::parse), expected(&[(Name, 3), (Bitmap, 3)]));
        assert_eq!(cut(b"\x01\0\0\x0c\x02ss", Nsec3Param::parse), expected(&[(Short, 7)]));
        let nsec3 = b"\x01\0\0\x0c\x02ss\x1412345678901234567890";
        assert_eq!(cut(nsec3, Nsec3::parse), expected(&[(Short, 28)]));
    }

    // RFC 4034 sections 3.1.7 and 4.1.1 forbid compression. Behind these octets a reader of any memory would go on (CVE-2026-56416).
    #[test]
    fn names_that_are_compressed_or_malformed_are_refused() {
        for name in [&b"\xc0\x0c"[..], b"\x01a\xc0\x0c", b"\x40a\0"] {
            let nsec = [name, b"\0\x01\x40"].concat();
            let rrsig = [&[0; 18], name, b"signature"].concat();
            assert_eq!(Nsec::parse(&nsec), Err(FieldError::Name), "{name:02x?}");
            assert_eq!(Rrsig::parse(&rrsig), Err(FieldError::Name), "{name:02x?}");
        }
    }

    #[test]
    fn digests_of_unknown_types_may_have_any_length_but_zero() {
        assert_eq!(Ds::parse(b"\0\x01\x08\x091").map(|ds| ds.digest), Ok(&b"1"[..]));
        assert_eq!(Ds::parse(b"\0\x01\x08\x09"), Err(FieldError::Short));
        for (digest_type, length) in [(1, 20), (2, 32), (4, 48)] {
            for (octets, expected) in [(length, None), (length + 1, Some(FieldError::HashLength))] {
                let rdata = [&[0, 1, 8, digest_type][..], &std::vec![7; octets]].concat();
                assert_eq!(Ds::parse(&rdata).err(), expected);
            }
        }
    }

    #[test]
    fn hashes_of_other_lengths_and_octets_after_the_salt_are_refused() {
        assert_eq!(Nsec3::parse(b"\x01\0\0\0\0\x03abc"), Err(FieldError::HashLength));
        assert_eq!(Nsec3::parse(b"\x02\0\0\0\0\0"), Err(FieldError::HashLength));
        assert_eq!(
            Nsec3::parse(b"\x02\x01\0\0\0\x03abc").map(|nsec3| (nsec3.next, nsec3.is_opt_out())),
            Ok((&b"abc"[..], true))
        );
        assert_eq!(Nsec3Param::parse(b"\x01\0\0\x0c\x01ss"), Err(FieldError::Trailing));
        assert_eq!(Nsec3::parse(b"\x01\0\0\0\0\x1412345678901234567890\0\0"), Err(FieldError::Bitmap));
    }

    #[test]
    fn flags_of_keys_are_told_apart() {
        for (flags, expected) in [
            (0u16, (false, false, false)),
            (256, (true, false, false)),
            (257, (true, false, true)),
            (385, (true, true, true)),
            (128, (false, true, false)),
        ] {
            let rdata = [&flags.to_be_bytes()[..], &[3, 13, 1]].concat();
            let key = Dnskey::parse(&rdata).unwrap();
            assert_eq!((key.is_zone_key(), key.is_revoked(), key.is_entry_point()), expected, "{flags}");
        }
    }
}
