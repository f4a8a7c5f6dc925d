//! Answers for a packet cache in front of the engine: the same as the engine's own, only where no client gets another one, and only as
//! long as the engine has nothing to do with the next query.

use crate::world::{
    ClientQuery, Delivery, Reply, SentQuery, World, clients, deliver, name, networks, query, settings,
};
use engine::dns64::rules::{RealAaaa, Rule, Rules};
use engine::packet_cache::{
    PACKET_CACHE_RESPONSE, PacketCacheEntry, PacketCacheHits, PacketCacheQuery, PacketCacheTask,
};
use engine::settings::Networks;
use engine::{ClientTransport, Counter, IdleTimeout, Instant, Machine, Settings, Span};
use wire::header::Flags;
use wire::{Rcode, Type};

fn upstream(asked: &SentQuery) -> Vec<Delivery> {
    let reply = match (asked.name().as_str(), asked.qtype()) {
        ("real.example.", Type::AAAA) => Reply::answer(&["real.example. 300 IN AAAA 2001:db8::1"]),
        ("gone.example.", _) => Reply { rcode: Rcode::NXDOMAIN, ..Reply::empty("example.", 300, 60) },
        ("broken.example.", _) => Reply::rcode(Rcode::SERVFAIL),
        (name, Type::A) => Reply::answer(&[&format!("{name} 300 IN A 198.51.100.7")]),
        _ => Reply::empty("example.", 300, 60),
    };
    vec![deliver(asked, Span::ZERO, &reply)]
}

fn world(settings: Settings) -> World {
    let mut world = World::with_cache(settings, 1 << 20);
    world.set_upstreams(|asked, _| upstream(asked));
    world
}

/// Asks a question twice, so that its answer is cached and valid.
fn warm(world: &mut World, query: &ClientQuery) {
    for id in 1..=2 {
        world.ask(&query.clone().id(id));
        world.run(Span::from_millis(10));
    }
}

/// The entry that the engine has for a query.
pub fn entry_for(world: &mut World, query: &ClientQuery) -> Option<PacketCacheEntry> {
    let wanted = vec![PacketCacheQuery::of(&query.bytes())?];
    let reply = world.engine.serve_packet_cache(world.now, PacketCacheTask { wanted, ..Default::default() });
    reply.entries.into_iter().next()
}

/// The message as a packet cache gives it: with an ID, and TTLs lowered by the seconds since it was stored.
fn given(answer: &PacketCacheEntry, id: u16, now: Instant) -> Vec<u8> {
    let mut message = answer.message().to_vec();
    message[..2].copy_from_slice(&id.to_be_bytes());
    let elapsed = ((now - answer.stored).0 / 1_000_000_000) as u32;
    for at in answer.ttls() {
        let ttl = u32::from_be_bytes(message[at..at + 4].try_into().unwrap());
        message[at..at + 4].copy_from_slice(&ttl.saturating_sub(elapsed).to_be_bytes());
    }
    message
}

#[test]
fn a_packet_cache_gives_the_answer_of_the_engine() {
    let names = ["v4only.example.", "real.example.", "gone.example."];
    for (name, qtype) in
        names.into_iter().flat_map(|name| [Type::AAAA, Type::A, Type::TXT].map(|qtype| (name, qtype)))
    {
        for flags in [Flags::RD, Flags(Flags::RD.0 | Flags::AD.0)] {
            let mut world = world(settings());
            let query = query(name, qtype).flags(flags);
            warm(&mut world, &query);
            for seconds in [0, 1, 17] {
                world.run(Span::from_secs(seconds));
                let answer = entry_for(&mut world, &query).unwrap_or_else(|| panic!("{name} {qtype:?}"));
                let token = world.ask(&query.clone().id(777));
                assert_eq!(
                    given(&answer, 777, world.now),
                    world.answer_to(token).message().bytes(),
                    "{name} {qtype:?}"
                );
                assert!(answer.until > world.now);
            }
        }
    }
}

//= RFC 8467 section 3: requirement 69
//= RFC 7828 section 3.3.2: requirement 66
#[test]
fn the_client_of_a_stream_gets_the_response_of_the_engine() {
    let transports =
        [ClientTransport::Tcp, ClientTransport::Tls, ClientTransport::Https, ClientTransport::Quic];
    let options = [vec![], vec![(12, vec![0; 20])], vec![(11, vec![])], vec![(11, vec![]), (12, vec![])]];
    let mut compared = 0;
    for name in ["v4only.example.", "real.example.", "gone.example."] {
        let plain = query(name, Type::AAAA);
        let mut world = world(settings());
        warm(&mut world, &plain);
        world.run(Span::from_secs(3));
        let answer = entry_for(&mut world, &plain).unwrap_or_else(|| panic!("{name}"));
        for transport in transports {
            let mut queries = vec![plain.clone()];
            queries.extend(options.iter().map(|options| {
                let with_opt = plain.clone().edns(1232, false);
                options.iter().fold(with_opt, |query, option| query.option(option.clone()))
            }));
            for query in queries {
                let mut query = query.id(4711).tcp(compared);
                query.client.transport = transport;
                query.client.idle_timeout = IdleTimeout(77);
                // The letter case is the client's.
                query.name[1..4].make_ascii_uppercase();
                let message = query.bytes();
                let plain = PacketCacheQuery::of(&message).expect("it is for a packet cache");
                let mut frame = [0xff; PACKET_CACHE_RESPONSE];
                let length = answer.write_response(world.now, &query.client, &message, &plain, &mut frame);
                let token = world.ask(&query);
                let expected = &world.answer_to(token).bytes;
                assert_eq!(&frame[..length], expected, "{name} {transport:?} {:?}", plain.options());
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 3 * 4 * 5);
}

#[test]
fn an_answer_ends_when_the_engine_has_something_to_do() {
    let query = query("v4only.example.", Type::A);
    let mut world = world(settings());
    assert!(entry_for(&mut world, &query).is_none(), "nothing is cached");
    world.ask(&query);
    world.run(Span::from_millis(1));
    warm(&mut world, &query);
    let answer = entry_for(&mut world, &query).unwrap();
    // A tenth of 300 s before its end it is due for prefetch.
    assert_eq!((answer.until - answer.stored).0, Span::from_secs(270).0);
    world.run_until(Instant(answer.until.0 - 1));
    assert!(entry_for(&mut world, &query).is_some());
    world.run_until(answer.until);
    assert!(entry_for(&mut world, &query).is_none(), "the next query causes a prefetch");
    world.set_upstreams(|_, _| vec![]);
    world.ask(&query);
    assert_eq!(world.count(Counter::Refreshed), 1);
    assert!(entry_for(&mut world, &query).is_none(), "another answer comes soon");

    let mut without = settings();
    without.cache.prefetch = false;
    let mut world = self::world(without);
    warm(&mut world, &query);
    let answer = entry_for(&mut world, &query).unwrap();
    assert_eq!((answer.until - answer.stored).0, Span::from_secs(300).0);
}

#[test]
fn settings_flushes_and_observers_end_all_answers() {
    let query = query("v4only.example.", Type::AAAA);
    let changes: [fn(&mut World); 6] = [
        |world| drop(world.engine.configure(settings())),
        |world| world.engine.set_allow(Networks(networks("2001:db8::/32"))),
        |world| {
            world.engine.flush(&name("other.example."));
        },
        |world| {
            world.engine.flush_all(0);
        },
        |world| {
            world.engine.flush_below(&name("example."), 0);
        },
        |world| world.engine.observe(None),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut world = world(settings());
        warm(&mut world, &query);
        let entry = entry_for(&mut world, &query).expect("the answer is cached");
        assert!(entry.holds(world.now), "{number}");
        change(&mut world);
        assert!(!entry.holds(world.now), "{number}");
    }
    let mut world = world(settings());
    warm(&mut world, &query);
    assert!(entry_for(&mut world, &query).is_some());
    world.engine.observe(Some(Default::default()));
    assert!(entry_for(&mut world, &query).is_none(), "an observer hears of each query");
    world.engine.observe(None);
    world.engine.configure(settings());
    assert!(entry_for(&mut world, &query).is_none(), "the answer is checked under the new settings first");
}

#[test]
fn answers_that_depend_on_the_client_are_in_no_packet_cache() {
    let changes: [fn(&mut Settings); 6] = [
        |settings| settings.queries_per_client = 100,
        |settings| settings.responses_per_client = 100,
        |settings| settings.dns64.clients = clients("2001:db8::/32"),
        |settings| settings.dns64.clients = clients("::/0"),
        |settings| settings.dns64.clients = clients("::/0 0.0.0.0/0 !2001:db8::/32"),
        |settings| settings.cache.max_ttl_secs = 0,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut other = settings();
        change(&mut other);
        let mut world = world(other);
        let query = query("v4only.example.", Type::AAAA);
        warm(&mut world, &query);
        assert!(entry_for(&mut world, &query).is_none(), "{number}");
    }
}

#[test]
fn rules_and_local_data_keep_their_names_out() {
    let rule = |clients: &str| Rule {
        clients: networks(clients),
        names: vec![name("v4only.example.").into()],
        ipv4: vec![],
        prefixes: vec!["2001:db8:1::/96".parse().unwrap()],
        awaits_discovery: false,
        real_aaaa: RealAaaa::Prefer,
        suppresses_a: false,
    };
    for (rule, expected) in [(rule(""), [false, true]), (rule("2001:db8::/32"), [false, false])] {
        let mut other = settings();
        other.dns64.rules = Rules::build(vec![rule]).unwrap().into();
        let mut world = world(other);
        for (name, is_common) in ["v4only.example.", "other.example."].into_iter().zip(expected) {
            let query = query(name, Type::AAAA);
            warm(&mut world, &query);
            assert_eq!(entry_for(&mut world, &query).is_some(), is_common, "{name}");
        }
    }
    let mut world = world(settings());
    for odd in ["ipv4only.arpa.", "localhost.", "broken.example."] {
        let query = query(odd, Type::AAAA);
        warm(&mut world, &query);
        assert!(entry_for(&mut world, &query).is_none(), "{odd}");
    }
}

#[test]
fn other_queries_have_no_entries() {
    let mut world = world(settings());
    let plain = query("v4only.example.", Type::AAAA);
    let odd = [
        plain.clone().edns(1232, true),
        plain.clone().flags(Flags(0)),
        plain.clone().flags(Flags(Flags::RD.0 | Flags::CD.0)),
        query("v4only.example.", Type::ANY),
    ];
    for query in odd {
        warm(&mut world, &query);
        assert!(entry_for(&mut world, &query).is_none());
    }
}

#[test]
fn hits_are_counted_as_if_the_engine_had_answered() {
    let mut world = world(settings());
    let query = query("v4only.example.", Type::AAAA);
    warm(&mut world, &query);
    let answer = entry_for(&mut world, &query).unwrap();
    let count = |world: &World| {
        [
            Counter::QueriesUdp4,
            Counter::QueriesUdp6,
            Counter::ResponsesNoError,
            Counter::CacheHitsKernel,
            Counter::SynthesizedNoData,
        ]
        .map(|counter| world.count(counter))
    };
    let before = count(&world);
    let kind = answer.kind;
    let hit = |world: &mut World, transport| {
        let query = answer.query.clone();
        let hits = vec![PacketCacheHits { query, kind, transport, ipv4: 3, ipv6: 4, with_opt: 2 }];
        world.engine.serve_packet_cache(world.now, PacketCacheTask { hits, ..Default::default() });
    };
    hit(&mut world, ClientTransport::Udp);
    let after = count(&world);
    let new: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
    assert_eq!(new, [3, 4, 7, 7, 7]);
    // RFC 8914: "Synthesized", in the OPT records.
    let extended = Counter::of_extended_error(kind.extended_error().expect("the answer is synthesized"));
    assert_eq!(world.count(extended), 2);
    // A stream thread tells over which transport.
    let of_streams = |world: &World| {
        [Counter::QueriesTls4, Counter::QueriesTls6, Counter::CacheHitsStreams, Counter::CacheHitsKernel]
            .map(|counter| world.count(counter))
    };
    hit(&mut world, ClientTransport::Tls);
    assert_eq!(of_streams(&world), [3, 4, 7, 7]);
}
