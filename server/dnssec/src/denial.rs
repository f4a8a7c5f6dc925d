//! Denials of existence: the proofs of a message for one zone, by NSEC or NSEC3 records, and what they prove.
//!
//! Records of two zones never make one proof, and neither do records of both kinds: a zone has one kind at a time.

use crate::digest::Digests;
use crate::fields::{Nsec, Nsec3};
use crate::groups::{Groups, Rrset};
use crate::name::LowerName;
use crate::nsec::{Absence, NXNAME, NsecSpans, is_delegation};
use crate::nsec3::{Hashing, MAX_ITERATIONS, Nsec3Spans, Place, Wildcard};
use crate::reason::Bogus;
use crate::signature::Proven;
use crate::type_bitmap::TypeBitmap;
use wire::{Section, Type};

/// Weight of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strength {
    /// The zone denies what is asked for.
    Full,
    /// The name may belong to an unsigned delegation in a span with Opt-Out, so the denial is insecure (RFC 5155 section 9.2).
    OptOut,
    /// The zone's hashes have more iterations than are computed, so the denial is insecure (RFC 9276 section 3.2).
    Iterations,
}

/// Proof that a name has no records of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoData<'a> {
    /// Weight.
    pub strength: Strength,
    /// Types that the name has, if the proof lists them.
    pub types: Option<TypeBitmap<'a>>,
}

impl NoData<'_> {
    /// True if the name does not exist at all, and only the response code hides it (RFC 9824).
    pub fn denies_name(&self) -> bool {
        self.types.is_some_and(|types| types.contains(NXNAME))
    }

    /// Consequence for a name below the apex, if DS records were denied with the response code NOERROR (RFC 4035 section 5.2, RFC 6840
    /// section 4.4, RFC 5155 section 8.9).
    pub fn cut(&self) -> Cut {
        match self.types {
            _ if self.strength != Strength::Full => Cut::Unknown(self.strength),
            Some(types) if types.contains(NXNAME) => Cut::NoName,
            Some(types) if types.contains(Type::NS) => Cut::Unsigned,
            _ => Cut::None,
        }
    }
}

/// Consequence of a denial of DS records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// A delegation without DS records.
    Unsigned,
    /// A span with unsigned delegations, or hashes that are not computed: whatever is there is insecure.
    Unknown(Strength),
    /// No delegation at this name.
    None,
    /// The name does not exist, so nothing is below it either (RFC 8020).
    NoName,
}

/// Proofs of one zone in a message.
#[derive(Clone, Debug)]
pub struct Denials<'a> {
    zone: LowerName,
    nsec: NsecSpans<'a>,
    nsec3: Nsec3Spans<'a>,
}

impl<'a> Denials<'a> {
    /// Collects the NSEC and NSEC3 records in the authority section that `secure` says were verified as those of the zone. RRsets that were
    /// expanded from a wildcard are left out: no zone has such proofs, but a reply to a question for NSEC records would look so. Malformed
    /// ones, and RRsets of more than one record, are left out too.
    ///
    /// # Errors
    ///
    /// `TooMuchWork`: more records than [`PROOFS`](crate::limits::PROOFS). `Denial`: records of both kinds, or NSEC3 records of different
    /// parameters.
    pub fn of(
        groups: &Groups<'a>,
        zone: LowerName,
        secure: impl Fn(&Rrset<'a>) -> Option<Proven>,
    ) -> Result<Denials<'a>, Bogus> {
        let mut found = Denials { zone, nsec: NsecSpans::new(zone), nsec3: Nsec3Spans::new(zone) };
        for set in groups.iter().filter(|set| set.section() == Section::Authority) {
            if !matches!(set.rtype(), Type::NSEC | Type::NSEC3)
                || secure(&set).is_none_or(|proven| proven.is_expanded)
            {
                continue;
            }
            let Some(record) = set.only_record() else { continue };
            let owner = LowerName::of(&set.owner());
            if set.rtype() == Type::NSEC {
                let Ok(nsec) = Nsec::parse(record.rdata()) else { continue };
                if !found.nsec.add(owner, nsec) {
                    return Err(Bogus::TooMuchWork);
                }
            } else if let Ok(nsec3) = Nsec3::parse(record.rdata()) {
                found.nsec3.add(&owner, nsec3)?;
            }
        }
        if !found.nsec.is_empty() && !found.nsec3.is_empty() {
            return Err(Bogus::Denial);
        }
        Ok(found)
    }

    /// Zone of the proofs.
    pub fn zone(&self) -> &LowerName {
        &self.zone
    }

    /// Weight of every proof if hashes are not computed, before any is; `None` if they are.
    fn unhashed<D>(&self, hashing: &Hashing<'_, D>) -> Result<Option<Strength>, Bogus> {
        match self.nsec3.iterations() {
            iterations if iterations > MAX_ITERATIONS => Err(Bogus::Iterations),
            iterations if iterations > hashing.iterations => Ok(Some(Strength::Iterations)),
            _ => Ok(None),
        }
    }

    /// Proof that a name does not exist (RFC 4035 section 5.4, RFC 5155 section 8.4).
    ///
    /// # Errors
    ///
    /// `Denial`: there is no such proof. `TooMuchWork`: it costs too many hashes. `Iterations`: more than [`MAX_ITERATIONS`].
    pub fn no_name<D: Digests>(
        &self,
        name: &LowerName,
        hashing: &mut Hashing<'_, D>,
    ) -> Result<Strength, Bogus> {
        if self.nsec3.is_empty() {
            let is_proven = self.nsec.proves_no_name(name.as_wire());
            return if is_proven { Ok(Strength::Full) } else { Err(Bogus::Denial) };
        }
        if let Some(strength) = self.unhashed(hashing)? {
            return Ok(strength);
        }
        match self.nsec3.place(name, hashing)? {
            Some(Place::Exists(types)) if types.contains(NXNAME) => Ok(Strength::Full),
            Some(Place::Missing(encloser, Wildcard::Missing)) => Ok(strength(encloser.is_opt_out)),
            _ => Err(Bogus::Denial),
        }
    }

    /// Proof that a name has no records of a type (RFC 4035 section 5.4, RFC 5155 sections 8.5 to 8.7), itself or by wildcard.
    ///
    /// # Errors
    ///
    /// As those of [`Denials::no_name`].
    pub fn no_data<D: Digests>(
        &self,
        name: &LowerName,
        rtype: Type,
        hashing: &mut Hashing<'_, D>,
    ) -> Result<NoData<'a>, Bogus> {
        let is_root = name.as_wire() == b"\0";
        if self.nsec3.is_empty() {
            let types = match self.nsec.absence(name.as_wire()).ok_or(Bogus::Denial)? {
                Absence::AtName(types) => Some(types),
                Absence::EmptyNonTerminal => None,
                Absence::AtWildcard(types) if lacks(types, rtype, is_root) => None,
                Absence::AtWildcard(_) => return Err(Bogus::Denial),
            };
            return match types {
                Some(types) if !lacks(types, rtype, is_root) => Err(Bogus::Denial),
                types => Ok(NoData { strength: Strength::Full, types }),
            };
        }
        if let Some(strength) = self.unhashed(hashing)? {
            return Ok(NoData { strength, types: None });
        }
        match self.nsec3.place(name, hashing)? {
            Some(Place::Exists(types)) if lacks(types, rtype, is_root) => {
                Ok(NoData { strength: Strength::Full, types: Some(types) })
            }
            Some(Place::Missing(encloser, wildcard)) => {
                let is_proven = match wildcard {
                    Wildcard::Exists(types) => lacks(types, rtype, is_root),
                    // RFC 5155 section 8.6 for DS records. For others: an empty non-terminal above unsigned delegations (erratum 3441).
                    Wildcard::Missing | Wildcard::Unknown => encloser.is_opt_out,
                };
                if !is_proven {
                    return Err(Bogus::Denial);
                }
                Ok(NoData { strength: strength(encloser.is_opt_out), types: None })
            }
            _ => Err(Bogus::Denial),
        }
    }

    /// Proof that a name which was answered by the wildcard at its last `labels` labels has no closer match (RFC 4035 section 5.3.4, RFC
    /// 5155 section 8.8).
    ///
    /// # Errors
    ///
    /// As those of [`Denials::no_name`].
    pub fn no_closer<D: Digests>(
        &self,
        name: &LowerName,
        labels: u8,
        hashing: &mut Hashing<'_, D>,
    ) -> Result<Strength, Bogus> {
        let labels = usize::from(labels);
        if self.nsec3.is_empty() {
            let is_proven = self.nsec.proves_no_closer(name.as_wire(), labels);
            return if is_proven { Ok(Strength::Full) } else { Err(Bogus::Denial) };
        }
        if let Some(strength) = self.unhashed(hashing)? {
            return Ok(strength);
        }
        self.nsec3.no_closer(name, labels, hashing)?.map(strength).ok_or(Bogus::Denial)
    }
}

fn strength(is_opt_out: bool) -> Strength {
    if is_opt_out { Strength::OptOut } else { Strength::Full }
}

/// True if a name with these types has no records of a type, and no alias that would be followed instead (RFC 6840 section 4.3),
/// according to the zone that is responsible for them: DS records are those of the parent, all others those of the child (section 4.1).
/// Only the root has no parent.
fn lacks(types: TypeBitmap<'_>, rtype: Type, is_root: bool) -> bool {
    let is_responsible = match rtype {
        Type::DS => is_root || !types.contains(Type::SOA),
        _ => !is_delegation(types),
    };
    let has_any = || types.iter().any(|other| !matches!(other, Type::RRSIG | Type::NSEC | NXNAME));
    let is_absent = match rtype {
        Type::ANY => !has_any(),
        _ => !types.contains(rtype) && !types.contains(Type::CNAME),
    };
    is_responsible && is_absent
}
