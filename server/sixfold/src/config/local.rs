//! The tables `[local]` and `[filter]`: local data, blocked names and response policy zones, which are used before an
//! upstream is asked.

use super::fields::{path, set};
use super::model::BadRecords;
use super::record::{self, ConfiguredRecord};
use super::report::{Fault, Item, Problems, quoted};
use super::table::Table;
use super::{Name, limits};
use engine::local::LocalRecord;
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use wire::Type;

/// The values of `[local]`, with their places.
#[derive(Debug, Default)]
pub struct LocalDraft {
    pub records: Vec<Item<ConfiguredRecord>>,
    pub hosts_file: Option<Item<PathBuf>>,
    pub empty_zones: Option<Item<bool>>,
}

/// Reads `[local]`.
pub fn local(mut table: Table<'_>) -> LocalDraft {
    let records = table.list("records", "a record", record::parse).unwrap_or_default();
    let hosts_file = path(&mut table, "hosts-file");
    let empty_zones = table.boolean("empty-zones");
    table.finish();
    LocalDraft { records, hosts_file, empty_zones }
}

/// Reads `[filter]`: the blocked names, the paths of response policy zones, and what their bad records mean.
pub fn filter(mut table: Table<'_>, bad_records: &mut BadRecords) -> (Vec<Item<Name>>, Vec<Item<PathBuf>>) {
    let block = table.list("block", "a domain name", Name::covering).unwrap_or_default();
    let rpz = table.list("rpz", "a path", |text| match text {
        "" => Err(Fault::new("this path is empty", "write the path of a response policy zone")),
        _ => Ok(PathBuf::from(text)),
    });
    let meanings = [("skip", BadRecords::Skip), ("refuse", BadRecords::Refuse)];
    set(bad_records, table.choice("rpz-bad-records", &meanings));
    table.finish();
    (block, rpz.unwrap_or_default())
}

/// Reports records that contradict each other, and names with too many records for an answer.
pub fn check(records: &[Item<ConfiguredRecord>], problems: &Problems) {
    let mut names: BTreeMap<&[u8], (bool, bool, usize)> = BTreeMap::new();
    let mut known = HashSet::new();
    for item in records {
        let LocalRecord { owner, rtype, rdata, .. } = &item.value.record;
        let (aliases, others, octets) = names.entry(owner).or_default();
        *octets += 12 + rdata.len();
        // A record beside a CNAME record, or a CNAME record beside another one.
        let is_beside_cname = *aliases || *others && *rtype == Type::CNAME;
        let fault = if !known.insert((owner, rtype, rdata)) {
            Some(("the record is listed twice", "delete one of the two"))
        } else if is_beside_cname {
            Some((
                "a name with a CNAME record can have no other record (RFC 1034 section 3.6.2)",
                "delete one of the two",
            ))
        } else if *octets > limits::LOCAL_OCTETS {
            Some(("the records of this name are too long for an answer", "give the name fewer records"))
        } else {
            None
        };
        if let Some((what, help)) = fault {
            problems.add(&item.place, Fault::new(format!("{}: {what}", quoted(&item.value.text)), help));
        }
        *aliases |= *rtype == Type::CNAME;
        *others |= *rtype != Type::CNAME;
    }
}
