//! Resource records of a well-formed message (RFC 1035 section 4.1.3).

use crate::name::{Name, after_name};
use crate::rdata::RdataParts;
use crate::service_binding::Hints;
use crate::types::{Class, Type};

/// Octets between the owner and RDATA: type, class, TTL, RDLENGTH.
pub(crate) const FIXED: usize = 10;

/// Record of a well-formed message.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Owner name.
    pub owner: Name<'a>,
    /// Type.
    pub rtype: Type,
    /// Class; in an OPT record the UDP payload size.
    pub class: Class,
    /// Time to live in seconds. A value with the highest bit set counts as 0 (RFC 2181 section 8).
    pub ttl: u32,
    message: &'a [u8],
    start: usize,
    /// Start of the octets of fixed length, after the owner.
    fixed: usize,
    end: usize,
}

impl<'a> Record<'a> {
    /// RDATA as sent; names in it may be compressed.
    #[inline]
    pub fn rdata(&self) -> &'a [u8] {
        self.message.get(self.rdata_start()..self.end).unwrap_or_default()
    }

    /// RDATA in pieces, so that its names can be read and compared although they may be compressed.
    #[inline]
    pub fn rdata_parts(&self) -> RdataParts<'a> {
        RdataParts::new(self.message, self.rtype, self.rdata_start(), self.end)
    }

    /// Start of the owner in the message.
    #[inline]
    pub fn start(&self) -> usize {
        self.start
    }

    /// Start of the TTL in the message; it has 4 octets.
    #[inline]
    pub fn ttl_start(&self) -> usize {
        self.fixed + 4
    }

    /// Start of RDATA in the message.
    #[inline]
    pub fn rdata_start(&self) -> usize {
        self.fixed + FIXED
    }

    /// End of the record in the message.
    #[inline]
    pub fn end(&self) -> usize {
        self.end
    }

    /// Target name of a CNAME, DNAME, NS or PTR record.
    #[inline]
    pub fn target(&self) -> Option<Name<'a>> {
        match self.rtype {
            // RDATA may be empty in the classes of updates (RFC 2136 section 2.4).
            Type::CNAME | Type::DNAME | Type::NS | Type::PTR if self.rdata_start() < self.end => {
                Some(self.name_at(0))
            }
            _ => None,
        }
    }

    /// Address of an A record in class IN.
    #[inline]
    pub fn address4(&self) -> Option<[u8; 4]> {
        if self.rtype != Type::A || self.class != Class::IN {
            return None;
        }
        self.rdata().try_into().ok()
    }

    /// Address of an AAAA record in class IN.
    #[inline]
    pub fn address6(&self) -> Option<[u8; 16]> {
        if self.rtype != Type::AAAA || self.class != Class::IN {
            return None;
        }
        self.rdata().try_into().ok()
    }

    /// Address hints of an SVCB or HTTPS record in class IN; none of other records.
    pub fn hints(&self) -> Hints<'a> {
        match self.rtype {
            Type::SVCB | Type::HTTPS if self.class == Class::IN => Hints::of(self.rdata()),
            _ => Hints::NONE,
        }
    }

    /// MINIMUM field of an SOA record. Together with the record's own TTL it limits the negative TTL (RFC 2308).
    #[inline]
    pub fn soa_minimum(&self) -> Option<u32> {
        if self.rtype != Type::SOA {
            return None;
        }
        self.rdata().last_chunk::<4>().map(|minimum| u32::from_be_bytes(*minimum))
    }

    /// Type covered by an RRSIG record (RFC 4034 section 3.1.1).
    #[inline]
    pub fn covered(&self) -> Option<Type> {
        if self.rtype != Type::RRSIG {
            return None;
        }
        self.rdata().first_chunk::<2>().map(|covered| Type(u16::from_be_bytes(*covered)))
    }

    /// Name in RDATA, at this offset from its start. The walk has checked that there is one.
    #[inline]
    pub(crate) fn name_at(&self, distance: usize) -> Name<'a> {
        Name::new(self.message, self.rdata_start() + distance)
    }

    /// Type, class and TTL as sent.
    #[inline]
    pub(crate) fn type_class_ttl(&self) -> &'a [u8] {
        self.message.get(self.fixed..self.fixed + 8).unwrap_or_default()
    }
}

/// Records of one section, in order.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    message: &'a [u8],
    at: usize,
    left: usize,
}

impl<'a> Records<'a> {
    #[inline]
    pub(crate) fn new(message: &'a [u8], at: usize, left: usize) -> Records<'a> {
        Records { message, at, left }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    #[inline]
    fn next(&mut self) -> Option<Record<'a>> {
        self.left = self.left.checked_sub(1)?;
        let (message, start) = (self.message, self.at);
        let at = after_name(message, start)?;
        let fixed: &[u8; FIXED] = message.get(at..)?.first_chunk()?;
        let [t0, t1, c0, c1, ttl0, ttl1, ttl2, ttl3, l0, l1] = *fixed;
        let ttl = u32::from_be_bytes([ttl0, ttl1, ttl2, ttl3]);
        let end = at + FIXED + usize::from(u16::from_be_bytes([l0, l1]));
        self.at = end;
        Some(Record {
            owner: Name::new(message, start),
            rtype: Type(u16::from_be_bytes([t0, t1])),
            class: Class(u16::from_be_bytes([c0, c1])),
            ttl: if ttl > i32::MAX as u32 { 0 } else { ttl },
            message,
            start,
            fixed: at,
            end,
        })
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Records<'_> {}
