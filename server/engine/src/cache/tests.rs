//! Tests of the cache: comparison with a naive one, its bounds, and its hit rate in a flood.

use super::entry::{EntryKind, FAILURE};
use super::*;
use crate::base::name_hash::HashKey;
use crate::base::random::Random;
use std::collections::HashMap;
use wire::{Class, Type};

const HASH: HashKey = HashKey([0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7345]);

/// Name in wire form for a number.
fn name(number: u64) -> Vec<u8> {
    let label = format!("host{number}");
    let mut name = vec![label.len() as u8];
    name.extend_from_slice(label.as_bytes());
    name.extend_from_slice(b"\x07example\x00");
    name
}

fn key(name: &[u8]) -> CacheKey<'_> {
    CacheKey {
        hash: HASH.hash(name),
        name,
        qtype: Type::A,
        class: Class::IN,
        query_flags: 0,
        kind: EntryKind::Reply,
        group: 0,
    }
}

fn meta(stored: u64, expires: u64) -> EntryMeta {
    let (stored, expires) = (Instant(stored), Instant(expires));
    EntryMeta {
        stored,
        expires,
        born: stored,
        marks: 0,
        valid_for: 0,
        valid_for_dns64: 0,
        ede: None,
        reason: None,
        failures: 0,
    }
}

/// Message of a length, with its question.
fn message(name: &[u8], length: usize) -> Vec<u8> {
    let mut message = vec![0; wire::HEADER];
    message.extend_from_slice(name);
    message.extend_from_slice(&[0, 1, 0, 1]);
    let filler = name[name.len() / 3];
    message.resize(message.len().max(length), filler);
    message
}

fn put(cache: &mut Cache, number: u64, length: usize) -> bool {
    let name = name(number);
    cache.put(
        Instant(1),
        &key(&name),
        &meta(1, u64::MAX),
        &[30],
        EntryMessage::of(&message(&name, length)).unwrap(),
    )
}

fn entries(cache: &Cache) -> Vec<Entry<'_>> {
    (0..cache.buckets()).flat_map(|bucket| cache.entries(bucket)).collect()
}

/// Looks an entry up as the engine does: finds it, and counts the use.
fn ask(cache: &mut Cache, number: u64) -> bool {
    let name = name(number);
    let found = cache.find(&key(&name));
    if let Some(place) = found {
        entry::visit(cache.entry_mut(place));
    }
    found.is_some()
}

#[test]
fn a_lookup_finds_the_last_entry_stored_under_a_key() {
    // Everything fits, so nothing may be missing; lengths and keys change all the time.
    let mut cache = Cache::new(4 << 20);
    let mut expected: HashMap<u64, usize> = HashMap::new();
    let mut random = Random::new([7; 32]);
    for _ in 0..20_000 {
        let number = random.below(500);
        match random.below(10) {
            0 => {
                let name = name(number);
                cache.remove(&key(&name));
                expected.remove(&number);
            }
            1..5 => {
                let length = 40 + random.below(200) as usize;
                assert_eq!(put(&mut cache, number, length), expected.insert(number, length).is_some());
            }
            _ => {
                let name = name(number);
                let found = cache.find(&key(&name)).map(|place| cache.entry(place).message().to_vec());
                assert_eq!(found, expected.get(&number).map(|&length| message(&name, length)));
                ask(&mut cache, number);
            }
        }
    }
    assert_eq!((cache.len(), entries(&cache).len()), (expected.len(), expected.len()));
}

#[test]
fn a_small_cache_finds_only_the_message_stored_last() {
    let mut cache = Cache::new(64 << 10);
    let mut last: HashMap<u64, usize> = HashMap::new();
    let mut random = Random::new([8; 32]);
    let mut found = 0;
    for _ in 0..200_000 {
        // Some names are asked for far more often than others.
        let bound = 1 + random.below(3_000);
        let number = random.below(bound);
        let name = name(number);
        if let Some(place) = cache.find(&key(&name)) {
            found += 1;
            let length = last.get(&number).copied().expect("it was stored");
            assert_eq!(cache.entry(place).message(), message(&name, length), "no octet of another message");
            assert_eq!((cache.entry(place).name(), cache.entry(place).ttls().next()), (&name[..], Some(30)));
            ask(&mut cache, number);
        } else {
            let length = 40 + random.below(600) as usize;
            put(&mut cache, number, length);
            last.insert(number, length);
        }
        assert!(cache.octets() <= 64 << 10);
    }
    assert!(found > 20_000, "{found}");
    assert_eq!(cache.len(), entries(&cache).len());
}

#[test]
fn the_whole_memory_is_the_configured_size() {
    for size in [1 << 16, 1 << 20, 3_333_333, 64 << 20] {
        let cache = Cache::new(size);
        let taken = cache.memory.len() + size / INDEX_SHARE + size / GHOST_SHARE;
        assert!(taken <= size && taken + 2 * UNIT > size, "{taken} of {size}");
    }
}

#[test]
fn a_cache_of_size_zero_stores_nothing() {
    for size in [0, 1, 100, 1000] {
        let mut cache = Cache::new(size);
        assert!(!put(&mut cache, 1, 40) && !ask(&mut cache, 1) && cache.is_empty(), "{size}");
        assert_eq!(cache.is_off(), size == 0);
    }
}

#[test]
fn an_entry_that_is_too_long_is_not_stored_and_the_one_it_replaces_is_removed() {
    let mut cache = Cache::new(1 << 20);
    put(&mut cache, 1, 100);
    assert!(put(&mut cache, 1, 60_000));
    assert!(!ask(&mut cache, 1));
    put(&mut cache, 1, 20_000);
    assert!(ask(&mut cache, 1), "a fortieth of the memory");
}

#[test]
fn entries_are_removed_by_choice_or_all_at_once() {
    let mut cache = Cache::new(1 << 20);
    for number in 0..1000 {
        put(&mut cache, number, 60);
        ask(&mut cache, number);
    }
    let stored = cache.len();
    assert!(stored > 900);
    let even = |entry: &Entry<'_>| (entry.name()[entry.name()[0] as usize] - b'0').is_multiple_of(2);
    let removed: usize = (0..cache.buckets()).map(|bucket| cache.remove_in(bucket, even)).sum();
    assert!(
        removed > 400 && cache.len() == stored - removed && entries(&cache).iter().all(|entry| !even(entry))
    );
    assert!(!ask(&mut cache, 998) && ask(&mut cache, 999));
    cache.clear();
    assert_eq!((cache.len(), cache.octets(), entries(&cache).len()), (0, 0, 0));
    assert!(!put(&mut cache, 999, 60) && ask(&mut cache, 999));
}

#[test]
fn expired_entries_are_evicted_before_fresh_ones() {
    let mut cache = Cache::new(256 << 10);
    cache.keep_stale(Span(1000));
    let mut put = |number: u64, now: u64, expires: u64, marks: u8| {
        let name = name(number);
        let meta = EntryMeta { marks, ..meta(now, expires) };
        cache.put(Instant(now), &key(&name), &meta, &[], EntryMessage::of(&message(&name, 60)).unwrap());
        for _ in 0..3 {
            if let Some(place) = cache.find(&key(&name)) {
                entry::visit(cache.entry_mut(place));
            }
        }
    };
    // All are asked for. At the end of the short queue the second has expired, and so has the third, a failure. The second is
    // still usable as stale data, the failure is not.
    put(1, 0, u64::MAX, 0);
    put(2, 0, 100, 0);
    put(3, 0, 100, FAILURE);
    for number in 10..1_200 {
        put(number, 500, u64::MAX, 0);
    }
    let is_there = |number: u64| cache.find(&key(&name(number))).is_some();
    assert_eq!([1, 2, 3].map(is_there), [true, true, false]);
}

/// Draws from a Zipf distribution with exponent 1 over `count` names.
struct Zipf {
    cumulative: Vec<f64>,
}

impl Zipf {
    fn new(count: usize) -> Zipf {
        let mut sum = 0.0;
        let cumulative = (1..=count).map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        });
        Zipf { cumulative: cumulative.collect() }
    }

    fn draw(&self, random: &mut Random) -> u64 {
        let last = self.cumulative.last().copied().unwrap_or_default();
        let at = random.below(1 << 53) as f64 / (1u64 << 53) as f64 * last;
        self.cumulative.partition_point(|&sum| sum < at) as u64
    }
}

/// Hit rate, in percent, of queries for names by a Zipf distribution: in quiet times, and then while `flood` times as many
/// queries are for names that are never repeated.
fn hit_rates(size: usize, names: usize, flood: u64) -> [f64; 2] {
    let (mut cache, zipf) = (Cache::new(size), Zipf::new(names));
    let mut random = Random::new([9; 32]);
    let mut fresh = names as u64;
    let turns = 10 * names;
    let mut share = |flood: u64| {
        let mut hits = 0;
        for _ in 0..turns {
            let number = zipf.draw(&mut random);
            if ask(&mut cache, number) {
                hits += 1;
            } else {
                put(&mut cache, number, 80);
            }
            for _ in 0..flood {
                fresh += 1;
                put(&mut cache, fresh, 80);
            }
        }
        f64::from(hits) * 100.0 / turns as f64
    };
    share(0);
    [share(0), share(flood)]
}

#[test]
fn a_flood_of_unrepeated_names_costs_two_points_of_hits_at_most() {
    // A cache that holds a fifth of all names, and one that holds half of them.
    for size in [320 << 10, 800 << 10] {
        let [quiet, flooded] = hit_rates(size, 10_000, 10);
        println!("{size} octets: {quiet:.2} % hits, {flooded:.2} % under a flood of ten times the rate");
        assert!(quiet > 60.0);
        assert!(quiet - flooded <= 2.0, "{quiet:.2} {flooded:.2}");
    }
}
