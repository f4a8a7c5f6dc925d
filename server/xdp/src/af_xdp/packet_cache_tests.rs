use super::*;
use std::net::Ipv6Addr;

const SEED: u64 = 0x0123_4567_89ab_cdef;
const SECOND: u64 = 1_000_000_000;

/// A cache in memory of this process, and one processor.
fn cache() -> PacketCache {
    let words = |count: usize| Words { mapping: Mapping::anonymous(8 * count).unwrap(), count };
    let counts =
        [CONTROL_WORDS, SETS * WAYS, PACKET_CACHE_ENTRIES * ANSWER_WORDS, PACKET_CACHE_ENTRIES * HIT_WORDS]
            .map(words);
    PacketCache::of_words(counts, 1, SEED)
}

/// A cache in which answers may be published.
fn ready() -> PacketCache {
    let cache = cache();
    cache.resume(&[Network::new(Ipv6Addr::UNSPECIFIED, 0)]);
    cache
}

fn query(number: usize) -> PacketCacheQuery {
    PacketCacheQuery::of(&kit::query(0, &format!("{number:06}"), 28)).unwrap()
}

/// The slot that the program finds.
fn find(cache: &PacketCache, query: &PacketCacheQuery) -> Option<usize> {
    let hash = cache.hash(query);
    let set = hash as usize % SETS * WAYS;
    let ways = (set..set + WAYS).map(|place| cache.index.at(place).load(Ordering::Relaxed));
    let slot = ways.into_iter().find(|way| (way ^ hash) >> 16 == 0)? & 0xffff;
    Some(slot as usize - 1)
}

fn publish(cache: &PacketCache, seconds: u64, number: usize) -> Option<Published> {
    cache.publish(Instant(seconds * SECOND), cache.generation(), &entry(number))
}

/// An answer without records, until 100 s.
fn entry(number: usize) -> PacketCacheEntry {
    PacketCacheEntry::echo(query(number), Instant(100 * SECOND))
}

#[test]
fn an_answer_is_found_until_it_is_withdrawn_and_its_slot_rests() {
    let cache = ready();
    let published = publish(&cache, 1, 7).unwrap();
    let slot = find(&cache, &query(7)).unwrap();
    assert_eq!(find(&cache, &query(8)), None);
    let word = |word| cache.answers.at(slot * ANSWER_WORDS + word).load(Ordering::Relaxed);
    assert_eq!(word(0), 100 * SECOND);
    assert_eq!(word(QUESTION), query(7).key()[0]);
    cache.withdraw(&published, cache.generation(), Instant(5 * SECOND));
    assert_eq!(find(&cache, &query(7)), None);
    // All other slots are taken first, and then it has rested.
    let state = cache.state();
    assert_eq!(state.free.back(), Some(&(Instant(5 * SECOND) + XDP_GRACE, slot)));
}

#[test]
fn a_flood_of_popular_questions_fills_the_cache_and_changes_nothing_else() {
    let cache = ready();
    let published = (0..2 * PACKET_CACHE_ENTRIES).filter_map(|number| publish(&cache, 1, number)).count();
    assert_eq!(published, PACKET_CACHE_ENTRIES);
    let found =
        (0..2 * PACKET_CACHE_ENTRIES).filter(|&number| find(&cache, &query(number)).is_some()).count();
    assert_eq!(found, PACKET_CACHE_ENTRIES, "each answer has a place");
    assert!(publish(&cache, 50, 2 * PACKET_CACHE_ENTRIES).is_none());
}

#[test]
fn after_the_end_of_all_answers_one_worker_begins_anew() {
    let cache = ready();
    let published = publish(&cache, 1, 7).unwrap();
    let (before, generation) = (cache.generation(), || cache.control.at(0).load(Ordering::Relaxed));
    assert_ne!(generation(), 0);
    cache.end_all(Instant(10 * SECOND), Some(3));
    assert_eq!((generation(), find(&cache, &query(7))), (0, None));
    assert!(publish(&cache, 10, 8).is_none(), "a pause");
    // Its worker gives the slot back, whose place may be another one's by then.
    cache.withdraw(&published, before, Instant(10 * SECOND));
    assert!(!cache.may_resume(Instant(11 * SECOND - 1), 3) && !cache.may_resume(Instant(20 * SECOND), 2));
    assert!(cache.may_resume(Instant(11 * SECOND), 3));
    cache.resume(&[]);
    assert!(publish(&cache, 12, 8).is_some());
    let late = cache.publish(Instant(12 * SECOND), before, &entry(9));
    assert!(late.is_none(), "the worker does not know yet that its answers have ended");
    cache.end_all(Instant(20 * SECOND), None);
    cache.end_all(Instant(21 * SECOND), Some(1));
    assert!((0..4).all(|worker| !cache.may_resume(Instant(1_000 * SECOND), worker)), "the process stops");
}

#[test]
fn with_too_many_networks_nothing_is_published() {
    let cache = cache();
    let apart = |number: u32| Network::new((u128::from(number) << 90 | 0x2001_0db8 << 96).into(), 64);
    cache.resume(&(0..=XDP_ALLOWED as u32).map(apart).collect::<Vec<_>>());
    assert!(publish(&cache, 1, 7).is_none());
    cache.end_all(Instant(SECOND), Some(0));
    assert!(cache.may_resume(Instant(3 * SECOND), 0));
    cache.resume(&(0..XDP_ALLOWED as u32).map(apart).collect::<Vec<_>>());
    assert!(publish(&cache, 3, 7).is_some());
}

#[test]
fn hits_are_those_since_the_last_count() {
    let cache = ready();
    let mut published = publish(&cache, 1, 7).unwrap();
    let slot = find(&cache, &query(7)).unwrap();
    let hit = |kind: usize| cache.hits.at(HIT_WORDS * slot + kind).fetch_add(1, Ordering::Relaxed);
    for kind in [0, 0, 1, 3] {
        hit(kind);
    }
    assert_eq!(cache.new_hits(&mut published), [2, 1, 0, 1]);
    hit(2);
    assert_eq!(cache.new_hits(&mut published), [0, 0, 1, 0]);
}

#[test]
fn networks_become_ranges_without_overlap_and_those_of_ipv6_leave_ipv4_out() {
    let v4 = |text: &str, length| Network::v4(text.parse().unwrap(), length);
    let v6 = |text: &str, length| Network::new(text.parse().unwrap(), length);
    let address = |text: &str| u128::from(text.parse::<Ipv6Addr>().unwrap());
    let list = [v4("10.1.0.0", 16), v6("fd00::", 8), v4("10.0.0.0", 8), v6("fd12::", 16), v4("11.0.0.0", 8)];
    let expected =
        [("::ffff:10.0.0.0", "::ffff:11.255.255.255"), ("fd00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")];
    assert_eq!(ranges(&list), expected.map(|(first, last)| (address(first), address(last))));
    let everybody = ranges(&[v6("::", 0)]);
    assert_eq!(everybody.len(), 2);
    assert!(everybody[0].1 < address("::ffff:0.0.0.0") && everybody[1].0 > address("::ffff:255.255.255.255"));
    assert_eq!(ranges(&[v6("::", 0), v4("0.0.0.0", 0)]), [(0, u128::MAX)]);
    assert_eq!(ranges(&[]), []);
}

#[test]
fn sums_are_those_of_rfc_1071() {
    // The example of RFC 1071 section 3.
    assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
    assert_eq!(sum(&[0xff, 0xff, 0x00, 0x01]), 1);
    assert_eq!(sum(&[0x12]), 0x1200);
}

/// A model of the program's order: it reads the number, then any other words of the slot, then the number again, and gives the answer if both
/// are the same and even. Whatever happens to the slot in between, also more than once, it never gives parts of two answers.
#[test]
fn the_program_gives_no_answer_out_of_a_slot_that_changes_meanwhile() {
    // The slot after each store. The words of an answer are all the same.
    let (mut slot, mut states) = ([0; ANSWER_WORDS], Vec::new());
    for answer in 1..=3 {
        write_slot(&[u64::from(answer); ANSWER_WORDS], 2 * answer, 1, |word, value| {
            slot[word] = value;
            states.push(slot);
        });
    }
    let sequence = |state: &[u64; ANSWER_WORDS]| {
        state[NUMBERS].to_ne_bytes().first_chunk::<4>().map(|&octets| u32::from_ne_bytes(octets)).unwrap()
    };
    let mut given = 0;
    for (begin, first) in states.iter().enumerate().filter(|(_, state)| sequence(state) % 2 == 0) {
        for end in begin..states.len() {
            if sequence(&states[end]) == sequence(first) {
                let expected = u64::from(sequence(first) / 2);
                let read = states[begin..=end].iter().flat_map(|state| [state[0], state[ANSWER_WORDS - 1]]);
                assert!(read.into_iter().all(|word| word == expected), "{begin} to {end}");
                given += 1;
            }
        }
    }
    assert!(given >= 3, "each answer is given while nothing changes");
}
