//! Checks of local records (`local.records`) among each other.

use super::limits;
use super::record::ConfiguredRecord;
use super::report::{Fault, Item, Problems, quoted};
use engine::local::LocalRecord;
use std::collections::{BTreeMap, HashSet};
use wire::Type;

/// Reports records that contradict each other, and names with too many records for an answer.
pub fn check(records: &[Item<&ConfiguredRecord>], problems: &Problems) {
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
