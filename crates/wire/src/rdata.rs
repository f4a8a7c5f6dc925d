//! Where names stand in RDATA. Only the types that RFC 3597 section 4 lets a sender compress (those of RFC 1035, and
//! the older ones it names), and DNAME and KX, which were compressed in the wild: in all other types names are plain
//! octets that may be copied.

use crate::types::Type;

/// The RDATA of a type that holds names: something before them, one or two names, something after them.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    before: Before,
    /// How many names stand in a row.
    pub names: usize,
    /// What follows the names.
    pub after: After,
    /// Whether a sender may compress these names today: only those of RFC 1035 (RFC 3597 section 4).
    pub compress: bool,
}

#[derive(Clone, Copy)]
enum Before {
    Octets(usize),
    /// Order and preference, then three character strings (RFC 3403 section 4.1).
    Naptr,
}

/// What follows the names in RDATA.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// Exactly this many octets.
    Octets(usize),
    /// Whatever is left.
    Rest,
}

impl Shape {
    const fn old(before: usize, names: usize, after: usize) -> Option<Shape> {
        Some(Shape { before: Before::Octets(before), names, after: After::Octets(after), compress: true })
    }

    const fn new(before: usize, names: usize, after: After) -> Option<Shape> {
        Some(Shape { before: Before::Octets(before), names, after, compress: false })
    }

    /// Where the first name begins in `rdata`; None when what stands before it is cut.
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

/// The shape of a type's RDATA, if names in it may be compressed.
#[inline]
pub(crate) fn shape(rtype: Type) -> Option<Shape> {
    match rtype {
        Type::CNAME | Type::NS | Type::PTR | Type::MD | Type::MF | Type::MB | Type::MG | Type::MR => {
            Shape::old(0, 1, 0)
        }
        Type::SOA => Shape::old(0, 2, 20),
        Type::MX => Shape::old(2, 1, 0),
        Type::MINFO => Shape::old(0, 2, 0),
        Type::DNAME => Shape::new(0, 1, After::Octets(0)),
        Type::SRV => Shape::new(6, 1, After::Octets(0)),
        Type::RP => Shape::new(0, 2, After::Octets(0)),
        Type::AFSDB | Type::RT | Type::KX => Shape::new(2, 1, After::Octets(0)),
        Type::PX => Shape::new(2, 2, After::Octets(0)),
        Type::SIG => Shape::new(18, 1, After::Rest),
        Type::NXT => Shape::new(0, 1, After::Rest),
        Type::NAPTR => {
            Some(Shape { before: Before::Naptr, names: 1, after: After::Octets(0), compress: false })
        }
        _ => None,
    }
}
