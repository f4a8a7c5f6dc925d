//! An answer as far as it is compared: response code, the flags AD and TC, the RRsets of the answer section in order,
//! and whose SOA is in the authority section. Left out is what may differ without meaning anything: the order of the
//! records of an RRset, letter case (RFC 4343), a second of a TTL, what an OPT record says.

use crate::message::{Answer, Flag};
use crate::record::{OwnedName, Record};
use domain::base::iana::{OptRcode, Rtype};
use domain::rdata::ZoneRecordData;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;

/// What is compared of an answer, or what it is expected to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NormalizedAnswer {
    /// The response code.
    pub rcode: OptRcode,
    /// AD is set.
    pub ad: bool,
    /// TC is set.
    pub tc: bool,
    /// The RRsets of the answer section, in order.
    pub sets: Vec<Rrset>,
    /// The owner of the SOA in the authority section.
    pub soa: Option<OwnedName>,
    /// How much of the order is expected.
    pub order: Order,
}

/// What of the order of RRsets counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// All.
    #[default]
    All,
    /// That of aliases and of what they lead to; signatures and DNAMEs stand anywhere.
    Chain,
    /// Nothing: after a question for ANY.
    Nothing,
}

impl Order {
    /// Those of the RRsets whose order counts.
    fn of(self, sets: &[Rrset]) -> Vec<(&OwnedName, Rtype, Option<Rtype>)> {
        let counts = |set: &&Rrset| match self {
            Order::All => true,
            Order::Chain => !matches!(set.rtype, Rtype::RRSIG | Rtype::DNAME),
            Order::Nothing => false,
        };
        sets.iter().filter(counts).map(|set| (&set.owner, set.rtype, set.covered)).collect()
    }
}

/// An RRset; the signatures over one count as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rrset {
    /// Whose it is.
    pub owner: OwnedName,
    /// The type.
    pub rtype: Rtype,
    /// The type that signatures are over.
    pub covered: Option<Rtype>,
    /// The records, in small letters.
    pub data: BTreeSet<String>,
    /// The smallest and the largest TTL.
    pub ttl: RangeInclusive<u32>,
}

impl NormalizedAnswer {
    /// Takes an answer apart.
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

    /// An answer with nothing in it.
    pub fn empty(rcode: OptRcode) -> NormalizedAnswer {
        NormalizedAnswer { rcode, ad: false, tc: false, sets: Vec::new(), soa: None, order: Order::All }
    }

    /// Whether `found` is what is expected here, when so many seconds may have passed.
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
    /// Whether both are of the same owner and type.
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

/// The RRsets of records, each where its first record stands.
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
