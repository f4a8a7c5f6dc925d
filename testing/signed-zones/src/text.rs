//! Zones in master file format, so that servers of others can serve them to validators of others.

use crate::name::text;
use crate::record::Record;
use crate::world::World;

/// Record in master file format, its RDATA as RFC 3597 section 5 writes those of unknown types: every server reads that.
fn line(record: &Record) -> String {
    let hex: String = record.rdata.iter().map(|octet| format!("{octet:02x}")).collect();
    let (owner, length) = (text(&record.owner), record.rdata.len());
    format!("{owner} {} IN TYPE{} \\# {length} {hex}\n", record.ttl, record.rtype)
}

/// Zone of a world by its place in [`World::zones`]: records, signatures and proofs, the fault among them. `None` if no file can hold it: a
/// zone with compact denial, or a fault that is in replies only.
pub fn zone_file(world: &World, zone: usize) -> Option<String> {
    world.records(zone).map(|records| records.iter().map(line).collect())
}
