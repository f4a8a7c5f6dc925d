//! Proofs by NSEC records (RFC 4035 section 5.4, RFC 6840 section 4, RFC 9824).
//!
//! An NSEC record says two things: which types its owner has, and that no name of the zone lies between its owner and its next name. The
//! functions here take records whose signatures were verified as those of the zone, and look at nothing else.

use crate::fields::Nsec;
use crate::limits::PROOFS;
use crate::name::{LowerName, common_labels, compare, is_below, suffix};
use crate::type_bitmap::TypeBitmap;
use wire::Type;

/// Pseudo-type in a bit map: the name does not exist (RFC 9824 section 2).
pub const NXNAME: Type = Type(128);

/// NSEC record of a zone, with its owner.
#[derive(Clone, Copy, Debug)]
struct Span<'a> {
    owner: LowerName,
    nsec: Nsec<'a>,
}

/// NSEC records of one zone in a message.
#[derive(Clone, Copy, Debug)]
pub struct NsecSpans<'a> {
    zone: LowerName,
    spans: [Option<Span<'a>>; PROOFS],
}

/// Ground on which the absence of a type at a name rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence<'a> {
    /// The types at the name itself.
    AtName(TypeBitmap<'a>),
    /// The name, or the wildcard that stands for it, is an empty non-terminal: it exists, as there are names below it, and has no types.
    EmptyNonTerminal,
    /// The name does not exist, and the wildcard that stands for it has these types.
    AtWildcard(TypeBitmap<'a>),
}

impl<'a> NsecSpans<'a> {
    /// No records of this zone.
    pub fn new(zone: LowerName) -> NsecSpans<'a> {
        NsecSpans { zone, spans: [None; PROOFS] }
    }

    /// Adds a verified record. It is left out if owner or next name are outside of the zone (CVE-2026-13321), or if the next name comes
    /// before the owner and is not the apex, with which the zone ends (RFC 4034 section 4.1.1). False: there is no room.
    pub fn add(&mut self, owner: LowerName, nsec: Nsec<'a>) -> bool {
        let zone = self.zone.as_wire();
        let is_inside = [owner.as_wire(), nsec.next].iter().all(|name| wire::is_at_or_below(name, zone));
        let is_in_order =
            compare(owner.as_wire(), nsec.next).is_lt() || wire::eq_ignore_case(nsec.next, zone);
        if !is_inside || !is_in_order {
            return true;
        }
        match self.spans.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(Span { owner, nsec }),
            None => return false,
        }
        true
    }

    /// True if there is no record.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    fn iter(&self) -> impl Iterator<Item = &Span<'a>> {
        self.spans.iter().flatten()
    }

    /// Types at a name, by the record that it owns.
    pub fn types_at(&self, name: &[u8]) -> Option<TypeBitmap<'a>> {
        self.iter().find(|span| wire::eq_ignore_case(span.owner.as_wire(), name)).map(|span| span.nsec.types)
    }

    /// True if a name does not exist, nor any below it, nor the wildcard that would stand for it (RFC 4035 section 5.4); or if its types
    /// say so (RFC 9824).
    pub fn proves_no_name(&self, name: &[u8]) -> bool {
        if self.types_at(name).is_some_and(|types| types.contains(NXNAME)) {
            return true;
        }
        let has_no_wildcard = |encloser: &[u8]| {
            LowerName::wildcard_of(encloser)
                // No name is as long as this wildcard would be.
                .is_none_or(|wildcard| self.enclosers(wildcard.as_wire()).next().is_some())
        };
        self.enclosers(name).any(has_no_wildcard)
    }

    /// Reason why a name has no records of a type, as far as its owner is concerned: the caller looks at the types. `None`: no proof.
    pub fn absence(&self, name: &[u8]) -> Option<Absence<'a>> {
        if let Some(types) = self.types_at(name) {
            return Some(Absence::AtName(types));
        }
        if self.is_empty_non_terminal(name) {
            return Some(Absence::EmptyNonTerminal);
        }
        let at_wildcard = |encloser: &[u8]| {
            let wildcard = LowerName::wildcard_of(encloser)?;
            let is_empty = self.is_empty_non_terminal(wildcard.as_wire());
            let types = self.types_at(wildcard.as_wire()).map(Absence::AtWildcard);
            types.or(is_empty.then_some(Absence::EmptyNonTerminal))
        };
        self.enclosers(name).find_map(at_wildcard)
    }

    fn is_empty_non_terminal(&self, name: &[u8]) -> bool {
        self.iter().any(|span| self.covers(span, name) && is_below(span.nsec.next, name))
    }

    /// True if no name exists that is closer to this one than its last `labels` labels: it was answered by the wildcard there (RFC 4035
    /// section 5.3.4).
    pub fn proves_no_closer(&self, name: &[u8], labels: usize) -> bool {
        self.enclosers(name).any(|encloser| crate::name::labels(encloser) == labels)
    }

    /// Wildcard that would stand for a name which the records say does not exist: its absence is to be proven, too. `None`: they do not say
    /// so, or no name is as long as this wildcard would be.
    pub fn wildcard_for(&self, name: &[u8]) -> Option<LowerName> {
        self.enclosers(name).next().and_then(LowerName::wildcard_of)
    }

    /// Closest enclosers of a name that does not exist and has no names below it, one for each record that proves this. Owner and next name
    /// exist, and no name between them does, so the closest encloser is the longest that this name has in common with either.
    fn enclosers<'n>(&self, name: &'n [u8]) -> impl Iterator<Item = &'n [u8]> {
        let covering =
            self.iter().filter(move |span| self.covers(span, name) && !is_below(span.nsec.next, name));
        covering.filter_map(move |span| {
            let common = common_labels(name, span.owner.as_wire()).max(common_labels(name, span.nsec.next));
            suffix(name, common)
        })
    }

    /// True if the record says that a name is no owner of records.
    fn covers(&self, span: &Span<'_>, name: &[u8]) -> bool {
        let (owner, next, zone) = (span.owner.as_wire(), span.nsec.next, self.zone.as_wire());
        let is_between = compare(owner, name).is_lt()
            && (compare(name, next).is_lt() || wire::eq_ignore_case(next, zone))
            && wire::is_at_or_below(name, zone);
        is_between && (!is_below(name, owner) || says_all_below(span.nsec.types))
    }
}

/// True if a zone's record of these types speaks for the names below its owner. At a delegation these belong to another zone, and below a
/// DNAME record the names are those of its target (RFC 6840 section 4.1).
pub(crate) fn says_all_below(types: TypeBitmap<'_>) -> bool {
    !is_delegation(types) && !types.contains(Type::DNAME)
}

/// True if these types are those that the parent has at a delegation.
pub(crate) fn is_delegation(types: TypeBitmap<'_>) -> bool {
    types.contains(Type::NS) && !types.contains(Type::SOA)
}
