//! The memory of the cache, compared with a table without a size limit: an entry that is found is the last one that was put
//! under its key, and the cache keeps its size.

use crate::input::InputReader;
use engine::cache::Cache;
use engine::cache::entry::{self, EntryKind, EntryMessage, EntryMeta};
use engine::reasons::AnswerReason;
use engine::{Instant, Span};
use std::collections::HashMap;
use wire::{Class, Type};

/// Sizes of the caches in octets. The first one is off.
const SIZES: [usize; 6] = [0, 600, 4 << 10, 12 << 10, 40 << 10, 128 << 10];

/// Number of different names.
const NAMES: u64 = 96;

/// A cache key as numbers: the name, and the bits of the other parts.
type KeyNumber = (u64, u8);

/// The hash of a key, as the engine makes it for addresses: the lower half depends only on the name.
fn hash((name, rest): KeyNumber, collides: bool) -> u64 {
    if collides {
        // The worst case: several names share a hash.
        return u64::from(rest & 1) << 32 | name & 3;
    }
    let mix = |number: u64| number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mix(name) >> 32 | mix(name << 8 | u64::from(rest)) & !0xffff_ffff
}

/// The wire form of a name.
fn name(number: u64) -> Vec<u8> {
    let label = format!("host{number}");
    [&[label.len() as u8], label.as_bytes(), b"\x07example\0"].concat()
}

fn key<'n>(number: KeyNumber, name: &'n [u8], collides: bool) -> entry::CacheKey<'n> {
    let (_, rest) = number;
    entry::CacheKey {
        hash: hash(number, collides),
        name,
        qtype: [Type::A, Type::AAAA][usize::from(rest & 1)],
        class: Class::IN,
        query_flags: rest >> 1 & 3,
        kind: if rest & 8 == 0 { EntryKind::Reply } else { EntryKind::Synthesis },
        group: u32::from(rest >> 4 & 3),
    }
}

/// A message of at least this length, in which every octet depends on the time at which it was made.
fn message(name: &[u8], length: usize, stamp: u64) -> Vec<u8> {
    let mut message = vec![0; wire::HEADER];
    message.extend_from_slice(name);
    message.extend([0, 1, 0, 1]);
    message.resize(message.len().max(length), (stamp % 251) as u8);
    message
}

/// Runs one sequence of changes and lookups.
pub fn run(input: &[u8]) {
    let mut reader = InputReader::new(input);
    let (size, collides) = (*reader.choose(&SIZES), reader.octet() & 1 != 0);
    let mut cache = Cache::new(size);
    let mut last: HashMap<KeyNumber, Vec<u8>> = HashMap::new();
    let mut now = Instant(1);
    while !reader.is_empty() {
        now += Span(1);
        let action = reader.octet();
        let number = (u64::from(reader.octet()) % NAMES, reader.octet() & 0x3f);
        let name = name(number.0);
        let key = key(number, &name, collides);
        let before = cache.find(&key).is_some();
        match action % 16 {
            0..8 => {
                let (length, ttls) = (usize::from(reader.next_u16()) % 3000, reader.below(5));
                let message = message(&name, length, now.0);
                let meta = meta(now, reader.octet());
                let body = EntryMessage::of(&message).expect("a header");
                assert_eq!(cache.put(now, &key, &meta, &[30, 40, 50, 60][..ttls], body), before);
                last.insert(number, message);
            }
            8 => {
                assert_eq!(cache.remove(&key), before);
                last.remove(&number);
            }
            9 => {
                let buckets = cache.buckets_of_name(key.hash).into_iter();
                let removed: usize =
                    buckets.map(|bucket| cache.remove_in(bucket, |entry| entry.name() == name)).sum();
                let mine: Vec<KeyNumber> = last.keys().filter(|(of, _)| *of == number.0).copied().collect();
                assert!(removed <= mine.len() && (!before || removed > 0));
                mine.iter().for_each(|number| drop(last.remove(number)));
            }
            10 => {
                cache.clear();
                last.clear();
                assert_eq!((cache.len(), cache.octets()), (0, 0));
            }
            11 => cache.keep_stale(Span::from_secs(u64::from(reader.octet()))),
            12 => now += Span::from_secs(u64::from(reader.octet())),
            _ => {
                if let Some(place) = cache.find(&key) {
                    entry::visit(cache.entry_mut(place));
                    if action & 0x80 != 0 {
                        entry::set_failure_recheck(cache.entry_mut(place), now);
                        entry::mark_valid(cache.entry_mut(place), 3, Some(AnswerReason::NxDomain));
                    }
                }
            }
        }
        if let Some(place) = cache.find(&key) {
            let found = cache.entry(place);
            assert_eq!(Some(found.message()), last.get(&number).map(Vec::as_slice));
            assert!(wire::eq_ignore_case(found.name(), &name));
            assert!(found.ttls().all(|at| (30..=60).contains(&at)));
        }
        assert!(cache.octets() <= size && cache.len() <= last.len());
    }
    check_all(&cache, &last, collides);
}

/// Compares the whole cache with the table at the end.
fn check_all(cache: &Cache, last: &HashMap<KeyNumber, Vec<u8>>, collides: bool) {
    let entries: Vec<_> = (0..cache.buckets()).flat_map(|bucket| cache.entries(bucket)).collect();
    assert_eq!((entries.len(), entries.is_empty()), (cache.len(), cache.is_empty()));
    let octets: usize = entries.iter().map(|entry| entry.length()).sum();
    assert!(octets <= cache.octets());
    let mut found = 0;
    for (&number, message) in last {
        let name = name(number.0);
        if let Some(place) = cache.find(&key(number, &name, collides)) {
            assert_eq!(cache.entry(place).message(), &message[..]);
            found += 1;
        }
    }
    assert_eq!(found, cache.len(), "an entry that nobody put");
}

fn meta(now: Instant, bits: u8) -> EntryMeta {
    EntryMeta {
        stored: now,
        expires: now + Span::from_secs(u64::from(bits >> 2)),
        born: now,
        marks: if bits & 1 == 0 { 0 } else { entry::NEGATIVE },
        valid_for: u32::from(bits & 2),
        valid_for_dns64: 0,
        ede: (bits & 4 != 0).then_some(29),
        reason: AnswerReason::from_octet(bits),
        failures: 0,
    }
}
