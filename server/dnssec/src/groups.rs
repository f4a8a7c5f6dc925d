//! RRsets of a message with their signatures (RFC 2181 section 5).
//!
//! Only the answer and authority sections are grouped: the AD bit is about these (RFC 4035 section 3.2.3), and nothing in the additional
//! section is validated. An RRset is a range of positions in the message, so nothing is copied.

use crate::fields::Rrsig;
use crate::limits::{RECORDS, RRSETS};
use wire::{Class, Message, Name, Record, Section, Type};

/// Reason why a message is not grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupError {
    /// The question or a record is not of class IN. Other classes have no chain of trust, and their records must not count as data of this
    /// one.
    Class,
    /// More than [`RECORDS`] records.
    Records,
    /// More than [`RRSETS`] RRsets.
    Rrsets,
}

impl core::fmt::Display for GroupError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            GroupError::Class => "a class other than IN",
            GroupError::Records => "too many records",
            GroupError::Rrsets => "too many RRsets",
        })
    }
}

impl core::error::Error for GroupError {}

/// RRset as positions in its message.
#[derive(Clone, Copy)]
struct Group {
    section: Section,
    rtype: Type,
    /// Starts of its first and its last record.
    first: u32,
    last: u32,
    records: u16,
    /// Least TTL of the records (RFC 2181 section 5.2).
    ttl: u32,
}

const NO_GROUP: Group =
    Group { section: Section::Answer, rtype: Type(0), first: 0, last: 0, records: 0, ttl: 0 };

/// RRsets of the answer and authority sections, in the order of their first records. RRSIG records belong to the RRsets that they cover,
/// and are no RRsets.
#[derive(Clone)]
pub struct Groups<'a> {
    message: Message<'a>,
    groups: [Group; RRSETS],
    count: usize,
}

impl<'a> Groups<'a> {
    /// Finds the RRsets of a message.
    ///
    /// # Errors
    ///
    /// `Class`: question or records of another class. `Records`, `Rrsets`: more than the limits allow. In each case nothing of the message
    /// can be trusted.
    pub fn of(message: &Message<'a>) -> Result<Groups<'a>, GroupError> {
        let mut found = Groups { message: *message, groups: [NO_GROUP; RRSETS], count: 0 };
        if message.qclass() != Class::IN {
            return Err(GroupError::Class);
        }
        if message.count(Section::Answer) + message.count(Section::Authority) > RECORDS {
            return Err(GroupError::Records);
        }
        for section in [Section::Answer, Section::Authority] {
            for record in message.records(section) {
                found.add(section, &record)?;
            }
        }
        Ok(found)
    }

    fn add(&mut self, section: Section, record: &Record<'a>) -> Result<(), GroupError> {
        if record.class != Class::IN {
            return Err(GroupError::Class);
        }
        if record.rtype == Type::RRSIG {
            return Ok(());
        }
        let position = record.start() as u32;
        if let Some(place) = self.place(section, &record.owner, record.rtype) {
            let group = &mut self.groups[place];
            group.records += 1;
            group.last = position;
            group.ttl = group.ttl.min(record.ttl);
            return Ok(());
        }
        let group = self.groups.get_mut(self.count).ok_or(GroupError::Rrsets)?;
        *group = Group {
            section,
            rtype: record.rtype,
            first: position,
            last: position,
            records: 1,
            ttl: record.ttl,
        };
        self.count += 1;
        Ok(())
    }

    /// Number of RRsets.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// True if there is no RRset.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Message of the RRsets.
    #[inline]
    pub fn message(&self) -> &Message<'a> {
        &self.message
    }

    /// RRset by its place in the order of their first records.
    #[inline]
    pub fn get(&self, place: usize) -> Option<Rrset<'a>> {
        let group = self.groups[..self.count].get(place)?;
        let owner = self.message.record_at(group.first as usize)?.owner;
        Some(Rrset { message: self.message, group: *group, owner, place })
    }

    /// All RRsets.
    pub fn iter(&self) -> impl Iterator<Item = Rrset<'a>> + '_ {
        (0..self.count).filter_map(|place| self.get(place))
    }

    /// RRset of a section by owner and type.
    pub fn find(&self, section: Section, owner: &[u8], rtype: Type) -> Option<Rrset<'a>> {
        self.iter().find(|set| set.section() == section && set.rtype() == rtype && set.owner().eq_wire(owner))
    }

    fn place(&self, section: Section, owner: &Name<'a>, rtype: Type) -> Option<usize> {
        self.groups[..self.count].iter().position(|group| {
            (group.section, group.rtype) == (section, rtype)
                && self
                    .message
                    .record_at(group.first as usize)
                    .is_some_and(|first| first.owner.eq_ignore_case(owner))
        })
    }
}

/// RRset of a message.
#[derive(Clone, Copy)]
pub struct Rrset<'a> {
    message: Message<'a>,
    group: Group,
    owner: Name<'a>,
    place: usize,
}

impl<'a> Rrset<'a> {
    /// Owner of the first record; the others may differ in letter case.
    #[inline]
    pub fn owner(&self) -> Name<'a> {
        self.owner
    }

    /// Type.
    #[inline]
    pub fn rtype(&self) -> Type {
        self.group.rtype
    }

    /// Section.
    #[inline]
    pub fn section(&self) -> Section {
        self.group.section
    }

    /// Place in the [`Groups`].
    #[inline]
    pub fn place(&self) -> usize {
        self.place
    }

    /// Number of records, at least 1; a record that is there twice counts twice.
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.group.records)
    }

    /// False: an RRset has a record.
    #[inline]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Least TTL of the records, in seconds.
    #[inline]
    pub fn ttl(&self) -> u32 {
        self.group.ttl
    }

    /// Records of the RRset, in the order of the message.
    pub fn records(&self) -> impl Iterator<Item = Record<'a>> + use<'a> {
        let (message, group, owner) = (self.message, self.group, self.owner);
        let mut at = group.first;
        core::iter::from_fn(move || {
            if at > group.last {
                return None;
            }
            let record = message.record_at(at as usize)?;
            at = record.end() as u32;
            Some(record)
        })
        .filter(move |record| record.rtype == group.rtype && record.owner.eq_ignore_case(&owner))
    }

    /// Record at a position of a record of this RRset.
    #[inline]
    pub(crate) fn record_at(&self, start: u32) -> Option<Record<'a>> {
        self.message.record_at(start as usize)
    }

    /// The record of an RRset that has only one.
    pub fn only_record(&self) -> Option<Record<'a>> {
        if self.len() == 1 { self.record_at(self.group.first) } else { None }
    }

    /// RRSIG records that cover the RRset (RFC 4035 section 5.3.1): those of its section with its owner and its type. Malformed ones are
    /// left out.
    pub fn signatures(&self) -> impl Iterator<Item = Signature<'a>> + use<'a> {
        let (rtype, owner) = (self.group.rtype, self.owner);
        let records = self.message.records(self.group.section);
        records
            .filter(move |record| record.covered() == Some(rtype) && record.owner.eq_ignore_case(&owner))
            .filter_map(|record| {
                let rrsig = Rrsig::parse(record.rdata()).ok()?;
                Some(Signature {
                    rrsig,
                    ttl: record.ttl,
                    rdata: record.rdata(),
                    start: record.start() as u32,
                })
            })
    }
}

/// RRSIG record that covers an RRset.
#[derive(Clone, Copy)]
pub struct Signature<'a> {
    /// Fields.
    pub rrsig: Rrsig<'a>,
    /// TTL of the RRSIG record, in seconds.
    pub ttl: u32,
    /// RDATA.
    pub rdata: &'a [u8],
    /// Start of the record in the message.
    pub start: u32,
}
