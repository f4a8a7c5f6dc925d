//! Local data: records that the configuration gives, and names that it blocks. A local reply takes the place of an upstream's
//! reply, so DNS64 applies to it, and no upstream is asked.
//!
//! Response policy zones apply after local data. A name with local records has these records only; names below it are asked
//! upstream. A blocked name and all names below it do not exist, unless they have local records.

use crate::base::name_table::{NameTable, suffixes};
use crate::dns64::config::Arpa;
use crate::local::record::{BLOCKED_TTL, LocalRecord, answer_records, write_denial};
use crate::local::reserved;
use crate::reasons::LocalReply;
use std::collections::{BTreeMap, BTreeSet};
use wire::header::Flags;
use wire::{Builder, Name, Rcode, Type, ede};

/// The local data of one configuration.
#[derive(Clone, Debug, Default)]
pub struct LocalData {
    names: NameTable,
    entries: Vec<LocalEntry>,
    /// Names in reserved zones that have no records, but names with records below them.
    empty_non_terminals: NameTable,
    empty_zones: bool,
}

#[derive(Clone, Debug, Default)]
struct LocalEntry {
    records: Vec<LocalRecord>,
    blocked: bool,
}

/// The local data found for a name.
pub(crate) enum LocalMatch<'o> {
    /// All records of the name, of every type.
    Records(&'o [LocalRecord]),
    /// The name is blocked: octets of the question's name that stand before the blocked name.
    Blocked(usize),
}

impl LocalData {
    /// Builds the table from records, in the order in which they are answered, and from blocked names in wire form.
    pub fn new(records: Vec<LocalRecord>, blocked: impl IntoIterator<Item = Box<[u8]>>) -> LocalData {
        let mut entries: BTreeMap<Box<[u8]>, LocalEntry> = Default::default();
        for record in records {
            entries.entry(record.owner.clone()).or_default().records.push(record);
        }
        for name in blocked {
            entries.entry(name).or_default().blocked = true;
        }
        let mut parents: BTreeSet<Box<[u8]>> = BTreeSet::new();
        for (owner, _) in entries.iter().filter(|(_, entry)| !entry.records.is_empty()) {
            let Some(zone) = reserved::zone_of(owner, true) else { continue };
            let length = owner.len() - zone.apex;
            let above = suffixes(owner).skip(1).take_while(|suffix| suffix.len() >= length);
            parents.extend(above.map(Box::from));
        }
        let (names, entries) = entries.into_iter().unzip();
        let empty_non_terminals = NameTable::new(parents.into_iter().collect());
        LocalData { names: NameTable::new(names), entries, empty_non_terminals, empty_zones: false }
    }

    /// Sets `local.empty-zones`: the reverse zones of RFC 6303 are answered locally.
    pub fn with_empty_zones(self, empty_zones: bool) -> LocalData {
        LocalData { empty_zones, ..self }
    }

    /// True if the reverse zones of RFC 6303 are answered locally.
    pub(crate) fn has_empty_zones(&self) -> bool {
        self.empty_zones
    }

    /// True if a name in a reserved zone has records below it.
    pub(crate) fn is_above_records(&self, name: &[u8]) -> bool {
        let mut found = false;
        self.empty_non_terminals.find(name, |_, before| found |= before == 0);
        found
    }

    /// True if there are neither records nor blocked names.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// True if this exact name has records.
    pub fn has_records(&self, name: &[u8]) -> bool {
        matches!(self.find(name), Some(LocalMatch::Records(_)))
    }

    /// True if the records of a name go before the zone of a special-use name. What the server says of itself (RFC 9606) is no data of the
    /// site, unless a record says so.
    pub fn precedes_zones(&self, name: &[u8], qtype: Type) -> bool {
        match self.find(name) {
            Some(LocalMatch::Records(records)) => {
                qtype != Type::RESINFO || records.iter().any(|record| record.rtype == qtype)
            }
            _ => false,
        }
    }

    /// True if a name has records, or is blocked.
    #[inline]
    pub fn has_name(&self, name: &[u8]) -> bool {
        !self.is_empty() && self.find(name).is_some()
    }

    /// Finds the records of a name; else the closest blocked name at or above it.
    pub(crate) fn find(&self, name: &[u8]) -> Option<LocalMatch<'_>> {
        let (mut records, mut blocked) = (None, None);
        self.names.find(name, |number, before| {
            let entry = &self.entries[number];
            if before == 0 && !entry.records.is_empty() {
                records = Some(LocalMatch::Records(&entry.records));
            }
            if entry.blocked {
                blocked = Some(LocalMatch::Blocked(before));
            }
        });
        records.or(blocked)
    }

    /// Writes the reply that an upstream with the local data would send. None: there are no local data for the name, or the
    /// reply does not fit.
    pub(crate) fn reply(
        &self,
        question: &[u8],
        arpa: &Arpa,
        frame: &mut [u8],
    ) -> Option<(usize, LocalReply)> {
        let name = &question[..question.len().checked_sub(4)?];
        let qtype = Type(u16::from_be_bytes([question[name.len()], question[name.len() + 1]]));
        let found = self.find(name)?;
        let owner = Name::from_wire(name)?;
        let limit = frame.len();
        let flags = Flags(0).with(Flags::QR);
        match found {
            LocalMatch::Blocked(before) => {
                let flags = flags.with_rcode(Rcode::NXDOMAIN);
                let mut builder = Builder::new(frame, limit, 0, flags, question)?;
                let apex = Name::from_wire(&name[before..])?;
                write_denial(&mut builder, apex, BLOCKED_TTL, arpa).ok()?;
                // RFC 8914 section 4.16.
                builder.opt(512, 0, 0, false, Some(ede::BLOCKED)).ok()?;
                Some((builder.finish(), LocalReply::Block))
            }
            LocalMatch::Records(records) => {
                let mut builder = Builder::new(frame, limit, 0, flags, question)?;
                answer_records(&mut builder, owner, qtype, records, arpa).ok()?;
                Some((builder.finish(), LocalReply::Records))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_sound_if_its_data_have_the_format_of_its_type() {
        for (rtype, rdata, is_sound) in [
            (Type::A, &[192, 0, 2, 1][..], true),
            (Type::A, &[192, 0, 2], false),
            (Type::CNAME, b"\x01a\0", true),
            (Type::CNAME, b"\x01a", false),
            (Type::MX, b"\0\x0a\x01a\0", true),
            (Type::MX, b"\0\x0a", false),
            (Type::OPT, b"", false),
            (Type(65_280), b"", true),
            (Type::TXT, &[1; 60_000], true),
            (Type::TXT, &[1; 66_000], false),
        ] {
            let record =
                LocalRecord { owner: Box::from(&b"\x01x\0"[..]), rtype, ttl: 60, rdata: rdata.into() };
            assert_eq!(record.is_sound(), is_sound, "{rtype} of {} octets", rdata.len());
        }
        let rdata = Box::from(&[192, 0, 2, 1][..]);
        let root = LocalRecord { owner: Box::from(&[0][..]), rtype: Type::A, ttl: 0, rdata };
        assert!(root.is_sound());
    }
}
