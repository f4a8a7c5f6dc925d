//! Zones of the generator as `domain` reads them: zone files, canonical form and order, key tags.

use domain::base::iana::Class;
use domain::base::rdata::ComposeRecordData;
use domain::base::{CanonicalOrd, Name, ParsedName, ToName};
use domain::rdata::{AllRecordData, Dnskey};
use domain::zonefile::inplace::{Entry, Zonefile};
use signed_zones::{KINDS, Kind, Record, Store, World, faults, rtype, text};
use std::collections::BTreeSet;
use wire::Message;

/// Records of a zone file as `domain` reads it.
fn read(file: &str) -> BTreeSet<(Vec<u8>, u16, Vec<u8>)> {
    let mut zone = Zonefile::new();
    zone.extend_from_slice(file.as_bytes());
    zone.set_origin(Name::root());
    zone.set_default_class(Class::IN);
    let records = zone.filter_map(|entry| match entry.unwrap_or_else(|error| panic!("{error}\n{file}")) {
        Entry::Record(record) => Some(record),
        Entry::Include { .. } => None,
    });
    let octets = |record: domain::zonefile::inplace::ScannedRecord| {
        let mut rdata = Vec::new();
        record.data().compose_rdata(&mut rdata).expect("RDATA");
        (record.owner().to_vec().as_slice().to_vec(), record.rtype().to_int(), rdata)
    };
    records.map(octets).collect()
}

fn keyed(records: &[Record]) -> BTreeSet<(Vec<u8>, u16, Vec<u8>)> {
    records.iter().map(|record| (record.owner.clone(), record.rtype, record.rdata.clone())).collect()
}

#[test]
fn zone_files_are_read_as_they_were_written() {
    let (store, mut files) = (Store::new(7), 0);
    for kind in KINDS {
        for fault in faults::all().iter().filter(|fault| fault.kinds.contains(&kind)).step_by(5) {
            let world = World::new(&store, kind, fault);
            for zone in 0..world.zones().len() {
                let Some(file) = text::zone_file(&world, zone) else { continue };
                // `domain` refuses DNSKEY records without a key, and digests of other lengths, so such files are for other servers.
                let is_malformed = file.contains("TYPE48 \\# 4 ");
                if !is_malformed {
                    assert_eq!(
                        read(&file),
                        keyed(&world.records(zone).unwrap()),
                        "{kind:?} {:?}",
                        fault.plant
                    );
                    files += 1;
                }
            }
        }
    }
    assert!(files > 300, "{files}");
}

#[test]
fn a_zone_with_compact_denial_or_a_fault_of_replies_has_no_file() {
    let store = Store::new(7);
    let all = faults::all();
    let world = |kind, fault| World::new(&store, kind, fault);
    assert!(text::zone_file(&world(Kind::Compact, &all[0]), 2).is_none());
    assert!(text::zone_file(&world(Kind::Nsec, &all[0]), 2).is_some());
    let in_replies = all.iter().find(|fault| matches!(fault.plant, faults::Plant::Reply(_))).unwrap();
    assert!(text::zone_file(&world(Kind::Nsec, in_replies), 2).is_none());
}

/// Records of all replies of a world.
fn replies(world: &World) -> Vec<(Vec<u8>, Vec<u8>)> {
    let questions = (0..signed_zones::QUESTIONS.len()).map(|place| world.question(place));
    let of_zones = world
        .zones()
        .iter()
        .flat_map(|zone| [(zone.apex.clone(), rtype::DNSKEY), (zone.apex.clone(), rtype::DS)]);
    let octets = |(name, rtype): (Vec<u8>, u16)| (world.reply(&name, rtype).octets(&name, rtype), name);
    questions.chain(of_zones).map(octets).collect()
}

// Three that agree: the signer of this crate, the validator, and `domain`.
#[test]
fn canonical_form_order_and_key_tags_are_those_of_domain() {
    let (mut sets, mut keys) = (0, 0);
    for (seed, kind) in (20..).zip(KINDS) {
        let all = faults::all();
        let fault = all
            .iter()
            .find(|fault| fault.plant == faults::Plant::Reply(faults::ReplyTwist::Shuffled))
            .unwrap();
        let world = World::new(&Store::new(seed), kind, fault);
        for (octets, _) in replies(&world) {
            let message = Message::parse(&octets).unwrap();
            let groups = dnssec::Groups::of(&message).unwrap();
            let parsed = domain::base::Message::from_octets(&octets[..]).unwrap();
            let records: Vec<_> = parsed
                .answer()
                .unwrap()
                .chain(parsed.authority().unwrap())
                .map(|record| {
                    record.unwrap().into_record::<AllRecordData<&[u8], ParsedName<&[u8]>>>().unwrap().unwrap()
                })
                .collect();
            for set in groups.iter() {
                for signature in set.signatures() {
                    let mut out = vec![0; 0xffff];
                    let length = dnssec::signed_data(&set, &signature.rrsig, &mut out).unwrap();
                    let head = 18 + signature.rrsig.signer.len();
                    assert_eq!(out[head..length], by_domain(&records, &set, &signature.rrsig), "{kind:?}");
                    sets += 1;
                }
            }
            for record in records.iter().filter(|record| record.rtype().to_int() == rtype::DNSKEY) {
                let AllRecordData::Dnskey(key) = record.data() else { panic!("a DNSKEY record") };
                let mut rdata = Vec::new();
                key.compose_rdata(&mut rdata).unwrap();
                assert_eq!(signed_zones::keys::tag(&rdata), Dnskey::key_tag(key));
                assert_eq!(dnssec::Dnskey::parse(&rdata).unwrap().key_tag(), Dnskey::key_tag(key));
                keys += 1;
            }
        }
    }
    assert!(sets > 100 && keys > 20, "{sets} sets, {keys} keys");
}

type Read<'m> = domain::base::Record<ParsedName<&'m [u8]>, AllRecordData<&'m [u8], ParsedName<&'m [u8]>>>;

/// Records of a signed RRset as `domain` orders and writes them.
fn by_domain(records: &[Read<'_>], set: &dnssec::Rrset<'_>, rrsig: &dnssec::Rrsig<'_>) -> Vec<u8> {
    let owner = set.owner();
    let mut of_set: Vec<_> = records
        .iter()
        .filter(|record| {
            let name: Name<Vec<u8>> = record.owner().to_vec();
            record.rtype().to_int() == set.rtype().0 && owner.eq_wire(name.as_slice())
        })
        .collect();
    of_set.sort_by(|a, b| a.data().canonical_cmp(b.data()));
    of_set.dedup_by(|a, b| a.data().canonical_cmp(b.data()).is_eq());
    let mut octets = Vec::new();
    for record in of_set {
        let name: Name<Vec<u8>> = record.owner().to_canonical_name();
        let labels = name.iter().count() - 1;
        let signed = usize::from(rrsig.labels);
        let is_wildcard = name.as_slice().starts_with(b"\x01*");
        if labels - usize::from(is_wildcard) > signed {
            octets.extend(b"\x01*");
            octets.extend(name.iter_suffixes().nth(labels - signed).unwrap().as_slice());
        } else {
            octets.extend(name.as_slice());
        }
        octets.extend(record.rtype().to_int().to_be_bytes());
        octets.extend([0, 1]);
        octets.extend(rrsig.original_ttl.to_be_bytes());
        record.data().compose_canonical_len_rdata(&mut octets).unwrap();
    }
    octets
}
