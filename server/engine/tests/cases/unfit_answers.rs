//! Cached replies that do not fit into a datagram: what a query for one costs and gets, whatever the shape of the reply, with and
//! without response policy zones, over UDP and TCP.

use crate::world::{Answer, Arrival, ClientQuery, Delivery, SentQuery, World, query, settings};
use engine::local::LocalRecord;
use engine::rpz::{Action, PolicyRule, PolicyZone, ResponsePolicy, Trigger};
use engine::settings::Network;
use engine::{Counter, Settings, Span};
use std::net::Ipv4Addr;
use wire::{Flags, Section, Type};

const OCTETS: usize = 16 << 20;

/// Shape of a reply with A records.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// This number of A records, and no alias.
    Plain(usize),
    /// Aliases in order, all names of 120 labels in different domains, and A records: as an honest recursive server writes it.
    Aliases(usize, usize),
    /// A chain of 16 names of 126 labels that differ in the last label, with a pointer after each label and the aliases in the worst
    /// order; then A records. Their owner is written at this number of places.
    Pointers(usize, usize),
}

const SHAPES: [Shape; 5] = [
    Shape::Plain(500),
    Shape::Aliases(11, 100),
    Shape::Aliases(14, 400),
    Shape::Pointers(480, 1),
    Shape::Pointers(480, 12),
];

/// A message under construction, whose question is that of a query.
struct Octets {
    bytes: Vec<u8>,
    records: u16,
}

impl Octets {
    fn new(asked: &SentQuery) -> Octets {
        let question = wire::Message::parse(&asked.bytes).unwrap().question().len();
        let mut bytes = asked.bytes[..wire::HEADER + question].to_vec();
        wire::header::set_flags(&mut bytes, Flags::QR.with(Flags::RD).with(Flags::RA));
        bytes[4..12].copy_from_slice(b"\0\x01\0\0\0\0\0\0");
        Octets { bytes, records: 0 }
    }

    /// Appends a record whose owner begins at an offset. Returns the offset of its RDATA.
    fn record(&mut self, owner: usize, rtype: Type, rdata: &[u8]) -> usize {
        self.bytes.extend(pointer(owner));
        self.bytes.extend(rtype.0.to_be_bytes());
        self.bytes.extend(b"\0\x01\0\0\x02\x58");
        self.bytes.extend((rdata.len() as u16).to_be_bytes());
        let at = self.bytes.len();
        self.bytes.extend(rdata);
        self.records += 1;
        at
    }

    /// Appends A records with these owners in turn.
    fn addresses(&mut self, owners: &[usize], count: usize) {
        for number in 0..count {
            let owner = owners[number * owners.len() / count];
            self.record(owner, Type::A, &[198, 51, (number >> 8) as u8, number as u8]);
        }
    }

    fn finish(mut self, section: Section) -> Vec<u8> {
        let at = if section == Section::Answer { 6 } else { 8 };
        self.bytes[at..at + 2].copy_from_slice(&self.records.to_be_bytes());
        self.bytes
    }
}

fn pointer(to: usize) -> [u8; 2] {
    [0xc0 | (to >> 8) as u8, to as u8]
}

/// Appends a name of 126 labels, the last of them `letter`; a pointer to the next label follows each other label. Returns its offset.
fn append_pointer_name(bytes: &mut Vec<u8>, start: usize, letter: u8) -> usize {
    let mut at = start + bytes.len();
    bytes.extend([1, letter, 0]);
    for _ in 0..125 {
        let next = pointer(at);
        at = start + bytes.len();
        bytes.extend([1, b'a']);
        bytes.extend(next);
    }
    at
}

/// The name that is asked for.
fn name_of(shape: Shape) -> String {
    match shape {
        Shape::Plain(_) => "big.example.".into(),
        Shape::Aliases(..) => format!("{}a.", "x.".repeat(119)),
        Shape::Pointers(..) => format!("{}a.", "a.".repeat(125)),
    }
}

/// The reply to a query: no AAAA record, or A records in a shape.
fn reply_of(shape: Shape, asked: &SentQuery) -> Vec<u8> {
    let mut octets = Octets::new(asked);
    if asked.qtype() != Type::A {
        let soa = [&[0, 0][..], &[0, 0, 2, 88].repeat(5)].concat();
        octets.bytes.extend([0]);
        octets.bytes.extend(b"\0\x06\0\x01\0\0\x02\x58\0\x16");
        octets.bytes.extend(soa);
        octets.records = 1;
        return octets.finish(Section::Authority);
    }
    match shape {
        Shape::Plain(count) => octets.addresses(&[wire::HEADER], count),
        Shape::Aliases(aliases, count) => {
            let mut owner = wire::HEADER;
            for number in 0..aliases as u8 {
                let target = [&[1, b'x'].repeat(119)[..], &[1, b'b' + number, 0]].concat();
                owner = octets.record(owner, Type::CNAME, &target);
            }
            octets.addresses(&[owner], count);
        }
        Shape::Pointers(count, owners) => {
            // The names stand in a record of an unknown type.
            let start = octets.bytes.len() + 12;
            let mut rdata = vec![];
            let mut names = vec![wire::HEADER];
            names.extend((1..16).map(|place| append_pointer_name(&mut rdata, start, b'a' + place)));
            let owners: Vec<usize> =
                (0..owners).map(|_| append_pointer_name(&mut rdata, start, b'a' + 15)).collect();
            assert_eq!(octets.record(wire::HEADER, Type(65_280), &rdata), start);
            octets.addresses(&owners, count);
            for pair in names.windows(2).rev() {
                octets.record(pair[0], Type::CNAME, &pointer(pair[1]));
            }
        }
    }
    octets.finish(Section::Answer)
}

fn world(settings: Settings, shape: Shape) -> World {
    let mut world = World::with_cache(settings, OCTETS);
    world.set_upstreams(move |asked, _| {
        if asked.name().starts_with("silent") {
            return vec![];
        }
        let small = asked.name().starts_with("small");
        let bytes = reply_of(if small { Shape::Plain(1) } else { shape }, asked);
        vec![Delivery { after: Span::from_millis(20), via: asked.link, arrival: Arrival::Message(bytes) }]
    });
    world
}

/// Settings with a policy zone that has a rule of each kind, for another name, another address and another client.
fn with_policy() -> Settings {
    let mut settings = settings();
    let soa = LocalRecord {
        owner: Box::from(&b"\x03rpz\x07example\0"[..]),
        rtype: Type::SOA,
        ttl: 60,
        rdata: Box::from(&b"\0\0\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0\x3c"[..]),
    };
    let other = Network::v4(Ipv4Addr::new(192, 0, 2, 1), 32);
    let triggers = [
        Trigger::Name(Box::from(&b"\x03ads\x04test\0"[..])),
        Trigger::Address(other),
        Trigger::Client(other),
    ];
    let entries = triggers.map(|trigger| PolicyRule { trigger, action: Action::NxDomain, ttl: 60 }).to_vec();
    let zone = PolicyZone { soa, entries };
    settings.rpz = ResponsePolicy::build(vec![zone]).unwrap().into();
    settings
}

/// Has a query answered from the cache.
fn warm(world: &mut World, asks: &ClientQuery) -> Answer {
    for _ in 0..4 {
        world.ask(asks);
        world.run(Span::from_millis(100));
    }
    world.answers.last().unwrap().clone()
}

/// True for an answer with TC and without any record but OPT.
fn is_empty_with_tc(answer: &Answer) -> bool {
    let message = answer.message();
    let counts =
        [Section::Answer, Section::Authority, Section::Additional].map(|section| message.count(section));
    message.flags().contains(Flags::TC) && counts == [0, 0, 1]
}

// RFC 2181 section 9.
#[test]
fn a_cached_reply_that_does_not_fit_gets_tc_without_a_pending_query() {
    gets_tc_without_a_pending_query(&settings());
}

// RFC 2181 section 9; the triggers of draft-vixie-dnsop-dns-rpz-00 section 4.
#[test]
fn a_cached_reply_that_no_policy_rule_is_for_gets_tc_without_a_pending_query() {
    gets_tc_without_a_pending_query(&with_policy());
}

/// A client network may have one pending query, which waits for a silent upstream: all that is answered needs no pending query.
fn gets_tc_without_a_pending_query(settings: &Settings) {
    // The last shape is not cached: written anew, so that no name stands in RDATA of an unknown type, it is longer than a message.
    for shape in &SHAPES[..4] {
        let shape = *shape;
        for qtype in [Type::A, Type::AAAA] {
            let mut world = world(Settings { pending_per_client: 1, ..settings.clone() }, shape);
            let asks = query(&name_of(shape), qtype).edns(1232, false);
            let first = warm(&mut world, &asks);
            assert!(is_empty_with_tc(&first), "{shape:?} {qtype:?}");
            let omitted = world.count(Counter::OmittedMaxRecords);
            world.ask(&query("silent.example", qtype).id(9).port(9));
            let tokens: Vec<_> = (0..1_000).map(|id| world.ask(&asks.clone().id(1_000 + id))).collect();
            for token in tokens {
                assert_eq!(
                    world.answers_to(token).len(),
                    1,
                    "{shape:?} {qtype:?}, {} octets",
                    first.bytes.len()
                );
                let mut expected = first.bytes.clone();
                wire::header::set_id(&mut expected, world.answer_to(token).id());
                assert_eq!(world.answer_to(token).bytes, expected);
            }
            let rejected = [Counter::SlippedPendingPerClient, Counter::DroppedPendingPerClient];
            assert_eq!(rejected.map(|counter| world.count(counter)), [0, 0], "{shape:?} {qtype:?}");
            // An address that is left out counts for each answer, from the cache or not: 64 may be in an answer.
            let addresses = match shape {
                Shape::Plain(count) | Shape::Aliases(_, count) | Shape::Pointers(count, _) => count as u64,
            };
            let each = if qtype == Type::AAAA { addresses - 64 } else { 0 };
            assert_eq!(world.count(Counter::OmittedMaxRecords) - omitted, 1_000 * each);
        }
    }
}

// RFC 2181 section 9.
#[test]
fn pending_queries_with_as_many_sizes_share_one_composed_answer() {
    for shape in SHAPES {
        for qtype in [Type::A, Type::AAAA] {
            let mut world = world(settings(), shape);
            let name = name_of(shape);
            let asks = |number: u16| {
                query(&name, qtype).id(number).port(2_000 + number).network(u32::from(number) / 100)
            };
            let tokens: Vec<_> =
                (0..700).map(|number| world.ask(&asks(number).edns(512 + number, false))).collect();
            let over_tcp = world.ask(&asks(700).edns(512, false).tcp(1));
            world.run(Span::from_secs(1));
            assert_eq!(world.count(Counter::CopiedAnswers), 700, "{shape:?} {qtype:?}");
            assert!(tokens.iter().all(|&token| is_empty_with_tc(world.answer_to(token))));
            let whole = world.answer_to(over_tcp);
            assert!(!whole.flags().contains(Flags::TC) && whole.message().count(Section::Answer) > 1);
            world.assert_conservation();
        }
    }
}

/// The owner of a record of the additional section begins in the class of the record before, and runs through its TTL of 65,536 s.
// RFC 1035 section 4.1.4.
#[test]
fn a_reply_with_a_name_that_runs_through_a_ttl_is_stored_with_that_name_written_out() {
    let mut world = World::with_cache(settings(), OCTETS);
    world.set_upstreams(|asked, _| {
        let mut octets = Octets::new(asked);
        let start = octets.bytes.len();
        octets.record(wire::HEADER, Type::A, &[198, 51, 100, 1]);
        octets.bytes[start + 6..start + 10].copy_from_slice(&65_536u32.to_be_bytes());
        octets.record(start + 5, Type::A, &[198, 51, 100, 2]);
        octets.records = 1;
        let mut bytes = octets.finish(Section::Answer);
        bytes[11] = 1;
        vec![Delivery { after: Span::from_millis(20), via: asked.link, arrival: Arrival::Message(bytes) }]
    });
    let owner = |answer: &Answer| {
        let mut name = [0; wire::MAX_NAME];
        let record = answer.message().records(Section::Additional).next().unwrap();
        let length = record.owner.write(&mut name);
        name[..length].to_vec()
    };
    for seconds in [0, 1, 1_000] {
        world.run(Span::from_secs(seconds));
        world.ask(&query("www.example.", Type::A));
        world.run(Span::from_millis(100));
        // Two labels of one zero octet each.
        assert_eq!(owner(world.answers.last().unwrap()), b"\x01\0\x01\0\0", "after {seconds} s");
    }
    assert_eq!((world.answers.len(), world.asked.len()), (3, 1), "from the cache");
}

/// Prints the median time of a cached answer in microseconds. Run it with `--ignored --nocapture`.
#[test]
#[ignore = "prints times, and checks nothing"]
fn cost_of_a_cached_answer_by_the_shape_of_the_reply() {
    let median = |world: &mut World, asks: &ClientQuery| {
        warm(world, asks);
        let mut times: Vec<u128> = (0..401)
            .map(|_| {
                let begin = std::time::Instant::now();
                world.ask(asks);
                let time = begin.elapsed().as_nanos();
                world.answers.truncate(8);
                time
            })
            .collect();
        times.sort_unstable();
        times[200] as f64 / 1000.0
    };
    println!("{:24} {:>8} {:>8} {:>8} {:>8} {:>8}", "", "A", "AAAA", "A rpz", "AAAA rpz", "TCP rpz");
    let print = |title: &str, shape: Shape, name: &str| {
        let a = query(name, Type::A).edns(1232, false);
        let aaaa = query(name, Type::AAAA).edns(1232, false);
        let tcp = query(name, Type::A).tcp(1);
        let costs =
            [(false, &a), (false, &aaaa), (true, &a), (true, &aaaa), (true, &tcp)].map(|(policy, asks)| {
                median(&mut world(if policy { with_policy() } else { settings() }, shape), asks)
            });
        let costs: Vec<String> = costs.iter().map(|cost| format!("{cost:8.1}")).collect();
        println!("{title:24} {}", costs.join(" "));
    };
    print("small", Shape::Plain(1), "small.example.");
    for shape in SHAPES {
        print(&format!("{shape:?}"), shape, &name_of(shape));
    }
}
