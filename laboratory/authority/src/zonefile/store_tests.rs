//! The store compared with a map as model.

use super::*;
use std::collections::BTreeMap;

type Model = BTreeMap<Vec<u8>, BTreeMap<u16, (u32, Vec<Vec<u8>>)>>;

fn name(number: u32) -> Vec<u8> {
    let text = format!("name-{number}");
    [&[text.len() as u8], text.as_bytes()].concat()
}

fn check(store: &Store, model: &Model) {
    assert_eq!(store.names(), model.len() as u64);
    let mut records = 0;
    for (name, sets) in model {
        let node = store.find(name).unwrap();
        let mut seen: BTreeMap<u16, (u32, Vec<Vec<u8>>)> = BTreeMap::new();
        for set in store.sets(node) {
            let rdata = set.rdata().map(<[u8]>::to_vec).collect();
            assert!(seen.insert(set.rtype.0, (set.ttl_secs, rdata)).is_none(), "a type twice");
        }
        assert_eq!(&seen, sets);
        records += sets.values().map(|(_, rdata)| rdata.len() as u64).sum::<u64>();
    }
    assert_eq!(store.records(), records);
    assert!(store.find(b"\x04none").is_none());
}

#[test]
fn records_in_any_order_are_found_by_name_and_type() {
    let (mut store, mut model) = (Store::new(), Model::new());
    let mut random = 1u64;
    for _ in 0..60_000 {
        random = crate::faults::mix(random);
        let name = name(random as u32 % 9_000);
        let rtype = [1, 28, 16, 5][(random >> 32) as usize % 4];
        let ttl_secs = 60 + (random >> 40) as u32 % 3;
        let rdata = vec![(random >> 48) as u8 % 4; 1 + (random >> 56) as usize % 40];
        let node = store.insert(&name).unwrap();
        store.add(node, Type(rtype), ttl_secs, &rdata).unwrap();
        let set = model.entry(name).or_default().entry(rtype).or_insert((ttl_secs, Vec::new()));
        if !set.1.contains(&rdata) {
            set.0 = set.0.min(ttl_secs);
            set.1.push(rdata);
        }
    }
    check(&store, &model);
}

#[test]
fn a_segment_is_left_when_it_is_full() {
    let (mut store, mut model) = (Store::new(), Model::new());
    // 600 sets of up to 60,000 octets are 36 MB: three segments. Every third name has no records.
    for number in 0..600 {
        let node = store.insert(&name(number)).unwrap();
        let sets = model.entry(name(number)).or_default();
        if number % 3 == 0 {
            continue;
        }
        for part in 0..6u8 {
            let rdata = vec![part; 9_900];
            store.add(node, Type::TXT, 60, &rdata).unwrap();
            sets.entry(Type::TXT.0).or_insert((60, Vec::new())).1.push(rdata);
        }
    }
    assert!(store.segments.len() > 1);
    // Growing the table walks over the whole arena.
    for number in 600..9_000 {
        store.insert(&name(number)).unwrap();
        model.entry(name(number)).or_default();
    }
    check(&store, &model);
}

#[test]
fn an_rrset_has_no_more_octets_than_a_message() {
    let mut store = Store::new();
    let node = store.insert(b"").unwrap();
    for part in 0..6u8 {
        store.add(node, Type::TXT, 60, &[part; 10_000]).unwrap();
    }
    assert_eq!(store.add(node, Type::TXT, 60, &[9; 10_000]), Err(StoreError::SetTooLarge));
    assert_eq!(store.get(node, Type::TXT).unwrap().rdata().count(), 6);
    assert_eq!(store.insert(&[1; MAX_NAME + 1]), Err(StoreError::NameTooLong));
    assert!(store.insert(&[1; MAX_NAME]).is_ok());
}

#[test]
fn a_name_of_16_octets_with_an_address_takes_36() {
    let mut store = Store::new();
    let count = 10_000;
    for number in 0..count {
        let text = format!("\x0f{:03}-000-{:03}-{:03}", number / 65_536, number / 256 % 256, number % 256);
        let node = store.insert(text.as_bytes()).unwrap();
        store.add(node, Type::A, 3600, &(number as u32).to_be_bytes()).unwrap();
    }
    assert_eq!(store.used.next_multiple_of(UNIT), UNIT + 36 * count);
}
