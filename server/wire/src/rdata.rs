//! Positions of names in RDATA, for the types whose names may be compressed: the types that RFC 3597 section 4 lets a
//! sender compress (those of RFC 1035, and the older ones it names), and DNAME and KX, which were compressed in
//! practice. In all other types names are plain octets that may be copied.

use crate::name::{Name, after_name};
use crate::types::Type;

/// Piece of RDATA.
#[derive(Clone, Copy, Debug)]
pub enum RdataPart<'a> {
    /// Octets that are no name, or a name in a type whose names are never compressed.
    Octets(&'a [u8]),
    /// Name that may be compressed.
    Name(Name<'a>),
}

/// Pieces of the RDATA of a well-formed message, in order. Names are pieces of their own in the types whose names may be compressed, and
/// no type has more than four pieces.
#[derive(Clone, Debug)]
pub struct RdataParts<'a> {
    message: &'a [u8],
    at: usize,
    end: usize,
    /// Start of the first name; the end without names.
    first_name: usize,
    /// Number of names that follow.
    names: usize,
}

impl<'a> RdataParts<'a> {
    /// Pieces of the RDATA from `start` to `end` of a message whose RDATA was checked.
    #[inline]
    pub(crate) fn new(message: &'a [u8], rtype: Type, start: usize, end: usize) -> RdataParts<'a> {
        let rdata = message.get(start..end).unwrap_or_default();
        // RDATA may be empty in the classes of updates (RFC 2136 section 2.4).
        let found = layout(rtype).and_then(|layout| Some((layout.first_name(rdata)?, layout.names)));
        let (first_name, names) = found.map_or((end, 0), |(offset, names)| (start + offset, names));
        RdataParts { message, at: start, end, first_name, names }
    }
}

impl<'a> Iterator for RdataParts<'a> {
    type Item = RdataPart<'a>;

    #[inline]
    fn next(&mut self) -> Option<RdataPart<'a>> {
        let start = self.at;
        if start >= self.end {
            return None;
        }
        if start < self.first_name || self.names == 0 {
            self.at = if self.names == 0 { self.end } else { self.first_name };
            return self.message.get(start..self.at).map(RdataPart::Octets);
        }
        self.names -= 1;
        self.at = after_name(self.message, start)?;
        Some(RdataPart::Name(Name::new(self.message, start)))
    }
}

/// Layout of RDATA with names: octets before them, one or two names, octets after them.
#[derive(Clone, Copy)]
pub(crate) struct RdataLayout {
    before: Before,
    /// Number of names in a row.
    pub names: usize,
    /// Octets after the names.
    pub after: After,
    /// True if a sender may compress these names today: only those of RFC 1035 (RFC 3597 section 4).
    pub compress: bool,
}

#[derive(Clone, Copy)]
enum Before {
    Octets(usize),
    /// Order and preference, then three character strings (RFC 3403 section 4.1).
    Naptr,
}

/// Octets after the names in RDATA.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// Exactly this number of octets.
    Octets(usize),
    /// Any number of octets.
    Rest,
}

impl RdataLayout {
    const fn old(before: usize, names: usize, after: usize) -> Option<RdataLayout> {
        Some(RdataLayout {
            before: Before::Octets(before),
            names,
            after: After::Octets(after),
            compress: true,
        })
    }

    const fn new(before: usize, names: usize, after: After) -> Option<RdataLayout> {
        Some(RdataLayout { before: Before::Octets(before), names, after, compress: false })
    }

    /// Start of the first name in `rdata`; `None` if the octets before it are truncated.
    #[inline]
    pub fn first_name(&self, rdata: &[u8]) -> Option<usize> {
        let at = match self.before {
            Before::Octets(octets) => octets,
            Before::Naptr => {
                let mut at = 4;
                for _ in 0..3 {
                    at += 1 + usize::from(*rdata.get(at)?);
                }
                at
            }
        };
        (at < rdata.len()).then_some(at)
    }
}

/// Layout of a type's RDATA, if names in it may be compressed.
#[inline]
pub(crate) fn layout(rtype: Type) -> Option<RdataLayout> {
    match rtype {
        Type::CNAME | Type::NS | Type::PTR | Type::MD | Type::MF | Type::MB | Type::MG | Type::MR => {
            RdataLayout::old(0, 1, 0)
        }
        Type::SOA => RdataLayout::old(0, 2, 20),
        Type::MX => RdataLayout::old(2, 1, 0),
        Type::MINFO => RdataLayout::old(0, 2, 0),
        Type::DNAME => RdataLayout::new(0, 1, After::Octets(0)),
        Type::SRV => RdataLayout::new(6, 1, After::Octets(0)),
        Type::RP => RdataLayout::new(0, 2, After::Octets(0)),
        Type::AFSDB | Type::RT | Type::KX => RdataLayout::new(2, 1, After::Octets(0)),
        Type::PX => RdataLayout::new(2, 2, After::Octets(0)),
        Type::SIG => RdataLayout::new(18, 1, After::Rest),
        Type::NXT => RdataLayout::new(0, 1, After::Rest),
        Type::NAPTR => {
            Some(RdataLayout { before: Before::Naptr, names: 1, after: After::Octets(0), compress: false })
        }
        _ => None,
    }
}
