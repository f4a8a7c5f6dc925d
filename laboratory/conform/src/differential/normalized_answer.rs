//! Parts of an answer that are compared: response code, the flags AD and TC, the RRsets of the answer section in
//! order, and the owner of the SOA in the authority section. Differences without meaning are left out: the order of
//! records in an RRset, letter case (RFC 4343), a second of a TTL, the contents of the OPT record.

use crate::message::{Answer, Flag};
use crate::record::{OwnedName, Record};
use domain::base::iana::{OptRcode, Rtype};
use domain::rdata::ZoneRecordData;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;

/// Compared parts of an answer, received or expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NormalizedAnswer {
    /// Response code.
    pub rcode: OptRcode,
    /// AD is set.
    pub ad: bool,
    /// TC is set.
    pub tc: bool,
    /// RRsets of the answer section, in order.
    pub sets: Vec<Rrset>,
    /// Owner of the SOA in the authority section.
    pub soa: Option<OwnedName>,
    /// Part of the order that an expected answer fixes.
    pub order: Order,
}

/// Part of the order of RRsets that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The whole order.
    #[default]
    All,
    /// The order of CNAMEs and of the RRsets that they lead to. Signatures and DNAMEs may stand anywhere.
    Chain,
    /// No part: the answer to a question for ANY.
    Nothing,
}

impl Order {
    /// Keys of the RRsets whose order counts.
    fn of(self, sets: &[Rrset]) -> Vec<(&OwnedName, Rtype, Option<Rtype>)> {
        let counts = |set: &&Rrset| match self {
            Order::All => true,
            Order::Chain => !matches!(set.rtype, Rtype::RRSIG | Rtype::DNAME),
            Order::Nothing => false,
        };
        sets.iter().filter(counts).map(|set| (&set.owner, set.rtype, set.covered)).collect()
    }
}

/// RRset; the signatures over one RRset count as one RRset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rrset {
    /// Owner.
    pub owner: OwnedName,
    /// Type.
    pub rtype: Rtype,
    /// Type that the signatures cover.
    pub covered: Option<Rtype>,
    /// Record data, in lower case.
    pub data: BTreeSet<String>,
    /// Smallest and largest TTL.
    pub ttl: RangeInclusive<u32>,
}

impl NormalizedAnswer {
    /// Takes the compared parts from an answer.
    pub fn of(answer: &Answer) -> NormalizedAnswer {
        let soa = answer.authority.iter().find(|record| record.rtype() == Rtype::SOA);
        NormalizedAnswer {
            rcode: answer.rcode,
            ad: answer.flags.contains(&Flag::Ad),
            tc: answer.flags.contains(&Flag::Tc),
            sets: sets(&answer.answer),
            soa: soa.map(|record| record.owner().clone()),
            order: Order::All,
        }
    }

    /// An answer without records.
    pub fn empty(rcode: OptRcode) -> NormalizedAnswer {
        NormalizedAnswer { rcode, ad: false, tc: false, sets: Vec::new(), soa: None, order: Order::All }
    }

    /// True if `found` agrees with this expectation, when up to `seconds` may have passed.
    pub fn admits(&self, found: &NormalizedAnswer, seconds: u32) -> bool {
        self.rcode == found.rcode
            && (self.ad, self.tc) == (found.ad, found.tc)
            && self.soa == found.soa
            && self.sets.len() == found.sets.len()
            && self.sets.iter().all(|expected| found.sets.iter().any(|found| expected.admits(found, seconds)))
            && self.order.of(&self.sets) == self.order.of(&found.sets)
    }
}

impl Rrset {
    /// True if the RRset has this owner and type.
    pub fn is_of(&self, owner: &OwnedName, rtype: Rtype) -> bool {
        (&self.owner, self.rtype) == (owner, rtype)
    }

    fn admits(&self, found: &Rrset, seconds: u32) -> bool {
        let (low, high) = (self.ttl.start().saturating_sub(seconds), self.ttl.end().saturating_add(seconds));
        (&self.owner, self.rtype, self.covered, &self.data)
            == (&found.owner, found.rtype, found.covered, &found.data)
            && low <= *found.ttl.start()
            && *found.ttl.end() <= high
    }
}

/// Groups records into RRsets, in the order of their first records.
pub fn sets(records: &[Record]) -> Vec<Rrset> {
    let mut sets: Vec<Rrset> = Vec::new();
    for record in records {
        let (rtype, ttl) = (record.rtype(), record.ttl().as_secs());
        let covered = match record.data() {
            ZoneRecordData::Rrsig(data) => Some(data.type_covered()),
            _ => None,
        };
        let data = record.data().to_string().to_ascii_lowercase();
        match sets.iter_mut().find(|set| set.is_of(record.owner(), rtype) && set.covered == covered) {
            Some(set) => {
                set.data.insert(data);
                set.ttl = ttl.min(*set.ttl.start())..=ttl.max(*set.ttl.end());
            }
            None => sets.push(Rrset {
                owner: record.owner().clone(),
                rtype,
                covered,
                data: BTreeSet::from([data]),
                ttl: ttl..=ttl,
            }),
        }
    }
    sets
}

impl fmt::Display for NormalizedAnswer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.rcode)?;
        for (is_set, flag) in [(self.ad, " AD"), (self.tc, " TC")] {
            formatter.write_str(if is_set { flag } else { "" })?;
        }
        for set in &self.sets {
            write!(formatter, "\n      {set}")?;
        }
        match &self.soa {
            Some(owner) => write!(formatter, "\n      SOA of {owner}."),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Rrset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = (self.ttl.start(), self.ttl.end());
        let (dash, high) = if low == high { ("", String::new()) } else { ("-", high.to_string()) };
        write!(formatter, "{} {low}{dash}{high} ", self.owner.fmt_with_dot())?;
        match self.covered {
            Some(covered) => write!(formatter, "RRSIG over {covered}"),
            None => {
                let data: Vec<&str> = self.data.iter().map(String::as_str).collect();
                write!(formatter, "{} {}", self.rtype, data.join(" | "))
            }
        }
    }
}
