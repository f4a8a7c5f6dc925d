//! Local data, blocked names, RPZ zones, DNS64 rules and reverse names under random faults and unusual queries. Every query gets
//! one answer, and no state is left.

use super::scenario_parser::{add_rpz_record, local_record};
use crate::world::{Reply, Rng, World, client, deliver, name, networks, query, settings};
use engine::dns64::rules::{RealAaaa, Rule, Rules};
use engine::local::LocalData;
use engine::rpz::{PolicyZone, ResponsePolicy};
use engine::settings::{Lookup, Reverse};
use engine::{Counter, Settings, Span};
use wire::{Rcode, Type};

const NAMES: u64 = 60;

/// Random settings: some names have records, some are aliases of others (also in loops), some are blocked.
fn random_settings(rng: &mut Rng) -> Settings {
    let mut settings = settings();
    let dns64 = &mut settings.dns64;
    dns64.lookup =
        [Lookup::Sequential, Lookup::Parallel, Lookup::Stagger(Span::from_millis(20))][rng.below(3) as usize];
    dns64.arpa.reverse =
        [Reverse::Cname, Reverse::Cname, Reverse::Local, Reverse::Off][rng.below(4) as usize];
    dns64.arpa.ipv4only = rng.percent(80);
    let mut rule = Rule { clients: networks("2001:db8:c:10::/60"), ..Rule::default() };
    rule.prefixes.push("2001:db8:b::/96".parse().expect("a prefix"));
    rule.real_aaaa = if rng.percent(50) { RealAaaa::Ignore } else { RealAaaa::Prefer };
    let omitted = Rule { names: vec![name("n3.example.").into()], ..Rule::default() };
    dns64.rules = Rules::build(vec![omitted, rule]).expect("two rules").into();
    let mut records = vec![];
    for number in 0..NAMES {
        let data = match rng.below(8) {
            0 => "A 198.51.100.7".to_owned(),
            1 => "AAAA 2001:db8:1::80".to_owned(),
            2 | 3 => format!("CNAME n{}.example.", rng.below(NAMES)),
            _ => continue,
        };
        records.push(local_record(&format!("n{number}.example. 60 IN {data}")));
        if rng.percent(20) {
            let data = format!("PTR n{}.example.", rng.below(NAMES));
            records.push(local_record(&format!("{number}.2.0.192.in-addr.arpa. 60 IN {data}")));
        }
    }
    let blocked = [name(&format!("n{}.example.", rng.below(NAMES))).into()];
    settings.local_data = LocalData::new(records, blocked).into();
    settings.rpz = ResponsePolicy::build(random_zones(rng)).expect("a few rules").into();
    settings
}

/// Up to three RPZ zones, with triggers for names, addresses and clients.
fn random_zones(rng: &mut Rng) -> Vec<PolicyZone> {
    let mut zones = Vec::new();
    for zone in 0..rng.below(4) {
        for _ in 0..rng.below(12) {
            let number = rng.below(NAMES);
            let owner = match rng.below(8) {
                0 => "32.7.100.51.198.rpz-ip".to_owned(),
                1 => "48.zz.1.db8.2001.rpz-ip".to_owned(),
                2 => format!("{}.zz.b.db8.2001.rpz-ip", rng.below(49) + 48),
                3 => format!("64.zz.{number:x}.c.db8.2001.rpz-client-ip"),
                4 => "*.example".to_owned(),
                _ => format!("n{number}.example"),
            };
            let data = match rng.below(8) {
                0 => "CNAME .".to_owned(),
                1 => "CNAME *.".to_owned(),
                2 => "CNAME rpz-passthru.".to_owned(),
                3 => "CNAME rpz-tcp-only.".to_owned(),
                4 => format!("CNAME n{}.example.", rng.below(NAMES)),
                5 => "CNAME *.example.".to_owned(),
                6 => "A 198.51.100.8".to_owned(),
                _ => "AAAA 2001:db8:1::81".to_owned(),
            };
            // A trigger that already has another action keeps it.
            let _ = add_rpz_record(&mut zones, &format!("zone{zone}.test. {owner} 60 IN {data}"));
        }
    }
    zones.into_iter().map(|(_, zone)| zone.finish()).collect()
}

/// Plays the queries of one seed. Returns the number of aliases that were followed.
fn play_seed(seed: u64) -> u64 {
    let mut rng = Rng::new(seed);
    let settings = random_settings(&mut rng);
    let mut world = World::sized(settings, 1024, seed);
    world.set_upstreams(|asked, rng| {
        if rng.percent(10) {
            return vec![];
        }
        let name = asked.name();
        let reply = match (asked.qtype(), rng.below(10)) {
            (_, 0) => Reply::rcode(Rcode::SERVFAIL),
            // The upstream stops at an alias.
            (_, 1..4) => Reply::answer(&[&format!("{name} 60 IN CNAME n{}.example.", rng.below(NAMES))]),
            (Type::A, _) => Reply::answer(&[&format!("{name} 60 IN A 198.51.100.7")]),
            (Type::AAAA, 4) => Reply::answer(&[&format!("{name} 60 IN AAAA 2001:db8:1::80")]),
            _ => Reply::empty("example.", 60, 60),
        };
        vec![deliver(asked, Span::from_millis(rng.below(300)), &reply)]
    });
    let mut asked = vec![];
    for number in 0..300u32 {
        let qtype = [Type::AAAA, Type::AAAA, Type::AAAA, Type::A, Type::PTR, Type::ANY, Type::CNAME]
            [rng.below(7) as usize];
        let nibbles = format!("{:x}.{:x}", rng.below(16), rng.below(4));
        let name = match rng.below(6) {
            0 => format!("{nibbles}.2.0.0.0.0.c.0.0.0.0.0.0.0.0.0.0.0.0.4.6.0.0.8.b.d.0.1.0.0.2.ip6.arpa."),
            1 => format!("{nibbles}.2.0.0.0.0.c.0.0.0.0.0.0.0.0.0.0.0.0.0.b.0.0.8.b.d.0.1.0.0.2.ip6.arpa."),
            _ => format!("n{}.example.", rng.below(NAMES)),
        };
        let question = query(&name, qtype).network(number % 50).id(number as u16).port(number as u16);
        asked.push(world.ask(&question));
        world.run(Span(rng.below(12_000_000)));
        if rng.percent(4) {
            let settings = random_settings(&mut rng);
            world.engine.configure(settings);
        }
    }
    world.run(Span::from_secs(120));
    for (number, token) in asked.iter().enumerate() {
        let answers = world.answers_to(*token);
        assert_eq!(answers.len(), 1, "seed {seed}, question {number}");
        assert_eq!(answers[0].id(), number as u16);
    }
    world.assert_conservation();
    let left = (world.engine.pending(), world.engine.outbound_queries(), world.engine.chases());
    assert_eq!(left, (0, 0, 0), "seed {seed}");
    world.count(Counter::CnameHops)
}

#[test]
fn local_data_change_and_every_query_gets_exactly_one_answer() {
    let followed: u64 = (0..60).map(play_seed).sum();
    assert!(followed > 1000, "{followed} aliases were followed");
}

/// A random name of up to 255 octets, made of the labels of special-use names.
fn random_name(rng: &mut Rng) -> Vec<u8> {
    let zones: [&[u8]; 6] = [
        b"\x03ip6\x04arpa\0",
        b"\x09\x03ip6\x04arpa\0",
        b"\x08ipv4only\x04arpa\0",
        b"\x07in-addr\x04ARPA\0",
        b"\x04arpa\0",
        b"\x014\x016\x010\x010\x018\x01b\x01d\x010\x011\x010\x010\x012\x03ip6\x04arpa\0",
    ];
    let labels: [&[u8]; 10] = [
        b"\x010",
        b"\x01F",
        b"\x01g",
        b"\x02aa",
        b"\x03170",
        b"\x03192",
        b"\x01\0",
        b"\x04arpa",
        b"\x03\x01a\0",
        b"\x01*",
    ];
    let mut name = zones[rng.below(6) as usize].to_vec();
    let length = rng.below(256) as usize;
    let nibbles = rng.percent(70);
    loop {
        let label = labels[rng.below(if nibbles { 2 } else { 10 }) as usize];
        if name.len() + label.len() > length {
            return name;
        }
        name.splice(0..0, label.iter().copied());
    }
}

#[test]
fn every_unusual_name_under_arpa_is_answered() {
    let mut rng = Rng::new(7);
    let (mut answered, mut asked) = (0, 0);
    for round in 0..20 {
        let mut settings = random_settings(&mut rng);
        for prefix in ["2001:db8::/32", "2001:db8:4600::/40"] {
            settings.dns64.prefixes.push(prefix.parse().expect("a prefix"));
        }
        let mut world = World::sized(settings, 4096, round);
        world.set_replies(Span::from_millis(5), |_| Reply::default());
        for number in 0..500u16 {
            let name = random_name(&mut rng);
            assert!(name.len() <= 255);
            let qtype =
                [Type::PTR, Type::AAAA, Type::A, Type::SOA, Type::NS, Type::DS, Type::ANY, Type::CNAME]
                    [rng.below(8) as usize];
            let mut message = vec![0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
            message[..2].copy_from_slice(&number.to_be_bytes());
            message.extend(name);
            message.extend(qtype.0.to_be_bytes());
            message.extend([0, 1]);
            world.send_message(&client(&format!("2001:db8:c:{number:x}::1"), number), &message);
        }
        answered += world.answers.len();
        asked += world.asked.len();
        for answer in &world.answers {
            assert!(wire::Message::parse(&answer.bytes).is_ok());
        }
        world.run(Span::from_secs(60));
        assert_eq!(world.answers.len(), 500, "round {round}");
        let left = (world.engine.pending(), world.engine.outbound_queries(), world.engine.chases());
        assert_eq!(left, (0, 0, 0), "round {round}");
    }
    assert!(answered > 1000 && asked > 1000, "{answered} answered at once, {asked} forwarded");
}

#[test]
fn a_stream_is_told_at_once_that_a_query_is_dropped() {
    let mut zones = Vec::new();
    for record in ["silent.example 60 IN CNAME rpz-drop.", "32.7.100.51.198.rpz-ip 60 IN CNAME rpz-drop."] {
        add_rpz_record(&mut zones, &format!("policy.test. {record}")).unwrap();
    }
    let zones = zones.into_iter().map(|(_, zone)| zone.finish()).collect();
    let mut settings = settings();
    settings.rpz = ResponsePolicy::build(zones).expect("two rules").into();
    let mut world = World::new(settings);
    world.set_replies(Span::from_millis(5), |asked| {
        let record = format!("{} 60 IN A 198.51.100.7", asked.name());
        Reply::answer(&[&record])
    });
    for (name, qtype) in [("silent.example.", Type::AAAA), ("www.example.", Type::A)] {
        let over_tcp = query(name, qtype).tcp(7);
        world.ask(&query(name, qtype));
        world.ask(&over_tcp);
        world.run(Span::from_millis(5));
        assert_eq!(core::mem::take(&mut world.outbox.dropped), [over_tcp.client], "{name}");
    }
    assert!(world.answers.is_empty());
    assert_eq!((world.count(Counter::FilteredDrop), world.engine.pending()), (4, 0));
}
