//! Memory allocations of the engine: a bounded amount at start, and none per packet afterwards. The datapath and the
//! upstream of these tests use fixed memory, so every allocation that is counted is the engine's.

// The name by which the other crates use it.
extern crate sixfold_engine as engine;

#[path = "world/settings.rs"]
#[allow(dead_code, reason = "the other tests use the rest of it")]
mod defaults;

use engine::local::LocalRecord;
use engine::rpz::{self, Action, PolicyRule, ResponsePolicy, Trigger};
use engine::settings::{ClientSubnet, DigestFunctions, Lookup, Network, ValidationConfig};
use engine::{Capacity, Client, Engine, Instant, Link, Machine, Outbox, Settings, Span, Transport};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::SocketAddr;
use wire::{Builder, Class, Flags, Message, Name, Rcode, Section, Type};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static RESERVED: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator with counters of the allocations of each thread.
struct Counting;

// SAFETY: every call is passed to the system's allocator unchanged; the counters are plain cells without destructors.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller upholds the contract of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.saturating_sub(layout.size()));
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn count(octets: usize) {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
    RESERVED.set(RESERVED.get() + octets as u64);
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Maximum number of upstream queries between two steps of a test.
const FRAMES: usize = 4;

/// A datapath with fixed memory.
struct Frames {
    asked: [(Link, [u8; 512], usize); FRAMES],
    asked_len: usize,
    answer: [u8; 1232],
    answer_len: usize,
    answers: usize,
}

impl Frames {
    fn new() -> Frames {
        Frames {
            asked: [(Link { slot: 0, generation: 0 }, [0; 512], 0); FRAMES],
            asked_len: 0,
            answer: [0; 1232],
            answer_len: 0,
            answers: 0,
        }
    }
}

impl Outbox for Frames {
    fn answer_frame(&mut self, _: &Client, size: usize) -> Option<&mut [u8]> {
        Some(&mut self.answer[..size])
    }

    fn send_answer(&mut self, _: &Client, length: usize) -> bool {
        self.answer_len = length;
        self.answers += usize::from(length > 0);
        true
    }

    fn query_frame(&mut self, via: Link) -> Option<&mut [u8]> {
        let (link, frame, _) = &mut self.asked[self.asked_len];
        *link = via;
        Some(frame)
    }

    fn send_query(&mut self, _: Link, length: usize) -> bool {
        self.asked[self.asked_len].2 = length;
        self.asked_len += 1;
        true
    }

    fn open(&mut self, _: Link, _: SocketAddr, _: Transport, _: u16) -> bool {
        true
    }

    fn close(&mut self, _: Link) {}
}

/// The data of the upstream.
#[derive(Clone, Copy, PartialEq)]
enum Zone {
    /// An A record, no AAAA record.
    Ipv4Only,
    /// A real AAAA record.
    Ipv6,
    /// Two aliases before an A record.
    Aliases,
    /// An A record, no AAAA record; the queries have a client subnet.
    Subnets,
}

fn settings(lookup: Lookup) -> Settings {
    let mut settings = defaults::settings();
    settings.dns64.lookup = lookup;
    settings.dns64.exclude_aaaa.clear();
    settings.dns64.never_embed.clear();
    settings.client_subnet = ClientSubnet::Forward;
    settings.cookies = Default::default();
    settings
}

/// Writes the reply to a query.
fn reply(question: &[u8], zone: Zone, frame: &mut [u8; 1232]) -> usize {
    let asked = Message::parse(question).expect("a question");
    let flags = asked.flags().with(Flags::QR).with(Flags::RA);
    let mut builder = Builder::new(frame, 1232, asked.id(), flags, asked.question()).expect("room");
    let owner = asked.question_name();
    let (hop, host) = (b"\x03hop\x04test\x00", b"\x04host\x04test\x00");
    let end = Name::from_wire(host).expect("a name");
    if zone == Zone::Aliases {
        let middle = Name::from_wire(hop).expect("a name");
        builder.record(Section::Answer, owner, Type::CNAME, Class::IN, 60, hop).expect("room");
        builder.record(Section::Answer, middle, Type::CNAME, Class::IN, 60, host).expect("room");
    }
    match (asked.qtype(), zone) {
        (Type::AAAA, Zone::Ipv6) => builder.aaaa(Section::Answer, owner, 60, [0x20; 16]).expect("room"),
        (Type::A, _) => {
            let owner = if zone == Zone::Aliases { end } else { owner };
            builder.record(Section::Answer, owner, Type::A, Class::IN, 60, &[198, 51, 100, 7]).expect("room");
        }
        _ => {
            let mut soa = [0; 22];
            soa[18..].copy_from_slice(&30u32.to_be_bytes());
            builder.record(Section::Authority, owner, Type::SOA, Class::IN, 60, &soa).expect("room");
        }
    }
    builder.reserve(0);
    builder.opt(1232, 0, 0, false, None).expect("room");
    for (code, data) in asked.opt().expect("an OPT record").options() {
        builder.option(code, data).expect("room");
    }
    builder.finish()
}

/// Resolves one of `names` names, with all messages.
fn resolve(engine: &mut Engine, frames: &mut Frames, number: u32, zone: Zone, names: u32) {
    let now = Instant(u64::from(number) * 100_000);
    // With the client subnet 203.0.113.0/24.
    let mut question = *b"\x00\x00\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x08n0000000\x07example\x04test\x00\x00\x1c\x00\x01\
        \x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x0b\x00\x08\x00\x07\x00\x01\x18\x00\xcb\x00\x71";
    let question = match zone {
        Zone::Subnets => {
            wire::header::set_arcount(&mut question, 1);
            &mut question[..]
        }
        _ => &mut question[..39],
    };
    question[..2].copy_from_slice(&(number as u16).to_be_bytes());
    for (place, octet) in question[14..21].iter_mut().enumerate() {
        *octet = b'0' + (number % names / 10u32.pow(place as u32) % 10) as u8;
    }
    let mut client = Client::udp("[2001:db8:c::1]:5000".parse().expect("an address"));
    client.port = 1024 + (number % 50_000) as u16;
    frames.answers = 0;
    engine.query(now, &client, question, frames);
    let mut packet = [0; 1232];
    for _ in 0..8 {
        if frames.asked_len == 0 {
            break;
        }
        // The newest first: with lookup "parallel" the A reply comes before the AAAA reply and has to be parked.
        frames.asked_len -= 1;
        let (link, ref asked, len) = frames.asked[frames.asked_len];
        let octets = reply(&asked[..len], zone, &mut packet);
        engine.reply(now + Span(50_000), link, &mut packet[..octets], frames);
    }
    engine.expire(now + Span(60_000), frames);
    assert_eq!((frames.answers, frames.asked_len), (1, 0), "question {number}");
    let answer = Message::parse(&frames.answer[..frames.answer_len]).expect("an answer");
    assert_eq!((answer.id(), answer.rcode()), (number as u16, Rcode::NOERROR));
    let subnets = answer.opt().map_or(0, |opt| opt.options().filter(|(code, _)| *code == 8).count());
    assert_eq!(subnets, usize::from(zone == Zone::Subnets));
    assert_eq!(answer.records(Section::Answer).filter(|record| record.rtype == Type::AAAA).count(), 1);
}

fn allocations_of(lookup: Lookup, zone: Zone) -> u64 {
    allocations_with(settings(lookup), zone)
}

fn allocations_with(settings: Settings, zone: Zone) -> u64 {
    allocations_among(settings, zone, 0, u32::MAX)
}

/// Counts the allocations with a cache of `cache` octets and `names` different names.
fn allocations_among(settings: Settings, zone: Zone, cache: usize, names: u32) -> u64 {
    let mut engine = Engine::new(settings, Capacity { pending: 1000, cache }, [7; 32]);
    let mut frames = Frames::new();
    // Long enough for links to be replaced.
    for number in 0..2000 {
        resolve(&mut engine, &mut frames, number, zone, names);
    }
    let before = ALLOCATIONS.get();
    for number in 2000..12_000 {
        resolve(&mut engine, &mut frames, number, zone, names);
    }
    let allocations = ALLOCATIONS.get() - before;
    assert_eq!((engine.pending(), engine.outbound_queries()), (0, 0));
    allocations
}

#[test]
fn ten_thousand_resolutions_allocate_nothing() {
    assert_eq!(allocations_of(Lookup::Sequential, Zone::Ipv4Only), 0);
}

#[test]
fn parallel_and_staggered_lookups_allocate_nothing() {
    assert_eq!(allocations_of(Lookup::Parallel, Zone::Ipv4Only), 0);
    assert_eq!(allocations_of(Lookup::Parallel, Zone::Ipv6), 0);
    assert_eq!(allocations_of(Lookup::Stagger(Span::from_millis(20)), Zone::Ipv4Only), 0);
}

#[test]
fn a_real_aaaa_passed_on_allocates_nothing() {
    assert_eq!(allocations_of(Lookup::Sequential, Zone::Ipv6), 0);
}

#[test]
fn a_cache_allocates_nothing() {
    // First, always new names in a cache that is too small for them. Then 100 names, each queried every 10 ms, so that
    // entries are hit, expire, are refreshed and are synthesized again.
    for zone in [Zone::Ipv4Only, Zone::Ipv6, Zone::Aliases] {
        for lookup in [Lookup::Sequential, Lookup::Parallel] {
            assert_eq!(allocations_among(settings(lookup), zone, 1 << 20, u32::MAX), 0);
            assert_eq!(allocations_among(settings(lookup), zone, 1 << 20, 100), 0);
        }
    }
}

#[test]
fn replies_that_stand_for_others_allocate_nothing() {
    // The TTLs of the upstream are 60 and 30.
    let mut settings = settings(Lookup::Sequential);
    settings.cache.min_ttl_secs = 100;
    assert_eq!(allocations_among(settings, Zone::Ipv4Only, 1 << 20, u32::MAX), 0);
}

#[test]
fn client_subnets_allocate_nothing() {
    assert_eq!(allocations_of(Lookup::Sequential, Zone::Subnets), 0);
    assert_eq!(allocations_of(Lookup::Parallel, Zone::Subnets), 0);
}

#[test]
fn rate_limits_allocate_nothing() {
    // First a limit of twice the query rate, then one far below it.
    let generous =
        |settings| Settings { queries_per_client: 20_000, responses_per_client: 20_000, ..settings };
    assert_eq!(allocations_with(generous(settings(Lookup::Sequential)), Zone::Ipv4Only), 0);
    let strict = Settings { queries_per_client: 10, ..settings(Lookup::Sequential) };
    let mut engine = Engine::new(strict, Capacity { pending: 1000, cache: 0 }, [7; 32]);
    let mut frames = Frames::new();
    let client = Client::udp("[2001:db8:c::1]:5000".parse().expect("an address"));
    let before = ALLOCATIONS.get();
    for number in 0..100_000u64 {
        let root = b"\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\xfc\x00\x01";
        engine.query(Instant(number * 10_000), &client, root, &mut frames);
    }
    // Ten at once and one in every tenth of a second are refused as transfers; half of the others get an empty answer with TC.
    assert_eq!((ALLOCATIONS.get() - before, frames.answers), (0, 10 + 9 + 99_981 / 2));
}

#[test]
fn counting_what_needs_dns64_allocates_nothing() {
    // Always new names, more than the tables hold, and 100 names that are cached.
    let counting = || Settings {
        needs: Some(std::sync::Arc::new(engine::needs::SharedNeeds::new([7, 11], 1))),
        ..settings(Lookup::Sequential)
    };
    assert_eq!(allocations_among(counting(), Zone::Ipv4Only, 1 << 20, u32::MAX), 0);
    assert_eq!(allocations_among(counting(), Zone::Ipv4Only, 1 << 20, 100), 0);
}

#[test]
fn refused_clients_allocate_nothing_and_are_counted() {
    let nobody = Settings { allow: Default::default(), ..settings(Lookup::Sequential) };
    let mut engine = Engine::new(nobody, Capacity { pending: 1000, cache: 0 }, [7; 32]);
    let mut frames = Frames::new();
    let root = b"\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x1c\x00\x01";
    let before = ALLOCATIONS.get();
    for number in 0..10_000u64 {
        let mut client = Client::udp("[2001:db8::1]:5000".parse().expect("an address"));
        client.address = std::net::Ipv6Addr::from(u128::from(number) << 64);
        engine.query(Instant(1), &client, root, &mut frames);
    }
    let refused = engine.take_refused_clients();
    let counted: u64 = refused.networks().map(|(_, queries)| queries).sum();
    assert_eq!((ALLOCATIONS.get() - before, frames.answers), (0, 10_000));
    assert_eq!(counted + refused.others(), 10_000);
    assert!(engine.take_refused_clients().is_empty());
}

#[test]
fn chains_of_aliases_allocate_nothing() {
    assert_eq!(allocations_of(Lookup::Sequential, Zone::Aliases), 0);
    assert_eq!(allocations_of(Lookup::Parallel, Zone::Aliases), 0);
}

#[test]
fn rpz_rules_for_names_and_addresses_allocate_nothing() {
    let record = |owner: &[u8], rtype, rdata: &[u8]| LocalRecord {
        owner: owner.into(),
        rtype,
        ttl: 60,
        rdata: rdata.into(),
    };
    let zone = |watched: &[u8], action| {
        let entry = |trigger, action| PolicyRule { trigger, action, ttl: 60 };
        let elsewhere = Network::new("2001:db8:bad::".parse().expect("an address"), 48);
        let entries = vec![
            entry(Trigger::Below(watched.into()), action),
            entry(Trigger::Address(elsewhere), Action::NoData),
            entry(Trigger::Address(Network::v4([203, 0, 113, 0].into(), 24)), Action::NoData),
        ];
        ResponsePolicy::build(vec![rpz::PolicyZone { soa: record(b"\0", Type::SOA, &[0; 22]), entries }])
            .expect("three rules")
            .into()
    };
    let sequential = || settings(Lookup::Sequential);
    let unmatched = zone(b"\x03bad\x04test\0", Action::NxDomain);
    assert_eq!(allocations_with(Settings { rpz: unmatched, ..sequential() }, Zone::Ipv4Only), 0);
    let data = Action::Data([record(b"\0", Type::A, &[198, 51, 100, 7])].into());
    let replaced = zone(b"\x07example\x04test\0", data);
    assert_eq!(allocations_with(Settings { rpz: replaced, ..sequential() }, Zone::Ipv6), 0);
}

#[test]
fn the_counting_allocator_counts() {
    let (allocations, reserved) = (ALLOCATIONS.get(), RESERVED.get());
    let octets = std::hint::black_box(vec![1u8; 1000]);
    assert_eq!((ALLOCATIONS.get() - allocations, RESERVED.get() - reserved), (1, octets.len() as u64));
}

#[test]
fn the_default_capacity_reserves_its_memory_at_start() {
    let before = RESERVED.get();
    let engine = Engine::new(settings(Lookup::Sequential), Capacity { pending: 65_536, cache: 0 }, [7; 32]);
    let reserved = RESERVED.get() - before;
    println!("an engine for 65,536 pending queries reserves {} KiB at start", reserved / 1024);
    // 65,536 client queries of 512 octets, 131,584 outbound queries of 800, the client quotas and the tables: address space that
    // becomes memory only as far as it is used.
    assert!((64 << 20..176 << 20).contains(&reserved), "{reserved} octets");
    assert_eq!(engine.pending(), 0);
}

#[test]
fn validation_reserves_less_than_eight_mebibytes_more_at_start() {
    let reserved = |settings: Settings| {
        let before = RESERVED.get();
        let engine = Engine::new(settings, Capacity { pending: 65_536, cache: 0 }, [7; 32]);
        assert_eq!(engine.pending(), 0);
        RESERVED.get() - before
    };
    let validation = ValidationConfig {
        digests: DigestFunctions { sha1: |_| [0; 20], sha256: |_| [0; 32], sha384: |_| [0; 48] },
        anchors: vec![],
        unchecked: vec![],
        algorithms: dnssec::Algorithms::CURRENT,
        nsec3_iterations: 50,
        permissive: false,
        aggressive_nsec: true,
    };
    let without = reserved(settings(Lookup::Sequential));
    let validating = Settings { validation: Some(validation.into()), ..settings(Lookup::Sequential) };
    let more = reserved(validating) - without;
    println!("validation reserves {} KiB more at start", more / 1024);
    // docs/how-to/size-and-tune.md; what searches of zones keep (`SEARCH_OCTETS`) is not reserved.
    let of_searches = 256 << 10;
    assert!((7 << 20..(8 << 20) - of_searches).contains(&more), "{more} octets");
}
