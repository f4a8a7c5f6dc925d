//! Records of our own, blocked names, policy zones, rules and reverse names under bad weather and odd questions: whatever comes, every
//! question gets one answer, and nothing is left.

use super::script::{add_policy, own_record};
use crate::world::{Chance, Reply, World, ask, client, deliver, name, networks, settings};
use engine::dns64::rules::{Rule, Rules};
use engine::local::LocalData;
use engine::rpz::{PolicyZone, ResponsePolicy};
use engine::settings::{Lookup, Reverse};
use engine::{Counter, Settings, Span};
use wire::{Rcode, Type};

const NAMES: u64 = 60;

/// Some names have records, some are aliases of others, also in circles, some are blocked.
fn odd_settings(chance: &mut Chance) -> Settings {
    let mut settings = settings();
    let dns64 = &mut settings.dns64;
    dns64.lookup = [Lookup::Sequential, Lookup::Parallel, Lookup::Stagger(Span::from_millis(20))]
        [chance.below(3) as usize];
    dns64.arpa.reverse =
        [Reverse::Cname, Reverse::Cname, Reverse::Local, Reverse::Off][chance.below(4) as usize];
    dns64.arpa.ipv4only = chance.percent(80);
    let mut rule = Rule { clients: networks("2001:db8:c:10::/60"), ..Rule::default() };
    rule.prefixes.push("2001:db8:b::/96".parse().expect("a prefix"));
    rule.ignores_real = chance.percent(50);
    let left_out = Rule { names: vec![name("n3.example.").into()], ..Rule::default() };
    dns64.rules = Rules::build(vec![left_out, rule]).expect("two rules").into();
    let mut records = vec![];
    for number in 0..NAMES {
        let data = match chance.below(8) {
            0 => "A 198.51.100.7".to_owned(),
            1 => "AAAA 2001:db8:1::80".to_owned(),
            2 | 3 => format!("CNAME n{}.example.", chance.below(NAMES)),
            _ => continue,
        };
        records.push(own_record(&format!("n{number}.example. 60 IN {data}")));
        if chance.percent(20) {
            let data = format!("PTR n{}.example.", chance.below(NAMES));
            records.push(own_record(&format!("{number}.2.0.192.in-addr.arpa. 60 IN {data}")));
        }
    }
    let blocked = [name(&format!("n{}.example.", chance.below(NAMES))).into()];
    settings.local_data = LocalData::new(records, blocked).into();
    settings.rpz = ResponsePolicy::build(odd_zones(chance)).expect("a few rules").into();
    settings
}

/// Up to three policy zones, for names, addresses and clients.
fn odd_zones(chance: &mut Chance) -> Vec<PolicyZone> {
    let mut zones = Vec::new();
    for zone in 0..chance.below(4) {
        for _ in 0..chance.below(12) {
            let number = chance.below(NAMES);
            let owner = match chance.below(8) {
                0 => "32.7.100.51.198.rpz-ip".to_owned(),
                1 => "48.zz.1.db8.2001.rpz-ip".to_owned(),
                2 => format!("{}.zz.b.db8.2001.rpz-ip", chance.below(49) + 48),
                3 => format!("64.zz.{number:x}.c.db8.2001.rpz-client-ip"),
                4 => "*.example".to_owned(),
                _ => format!("n{number}.example"),
            };
            let data = match chance.below(8) {
                0 => "CNAME .".to_owned(),
                1 => "CNAME *.".to_owned(),
                2 => "CNAME rpz-passthru.".to_owned(),
                3 => "CNAME rpz-tcp-only.".to_owned(),
                4 => format!("CNAME n{}.example.", chance.below(NAMES)),
                5 => "CNAME *.example.".to_owned(),
                6 => "A 198.51.100.8".to_owned(),
                _ => "AAAA 2001:db8:1::81".to_owned(),
            };
            // A trigger that has another action already keeps it.
            let _ = add_policy(&mut zones, &format!("zone{zone}.test. {owner} 60 IN {data}"));
        }
    }
    zones.into_iter().map(|(_, zone)| zone.finish()).collect()
}

/// Returns how many aliases were followed.
fn one_storm(seed: u64) -> u64 {
    let mut chance = Chance::new(seed);
    let settings = odd_settings(&mut chance);
    let mut world = World::sized(settings, 1024, seed);
    world.upstreams(|asked, chance| {
        if chance.percent(10) {
            return vec![];
        }
        let name = asked.name();
        let reply = match (asked.qtype(), chance.below(10)) {
            (_, 0) => Reply::rcode(Rcode::SERVFAIL),
            // The upstream stops at an alias.
            (_, 1..4) => Reply::answer(&[&format!("{name} 60 IN CNAME n{}.example.", chance.below(NAMES))]),
            (Type::A, _) => Reply::answer(&[&format!("{name} 60 IN A 198.51.100.7")]),
            (Type::AAAA, 4) => Reply::answer(&[&format!("{name} 60 IN AAAA 2001:db8:1::80")]),
            _ => Reply::empty("example.", 60, 60),
        };
        vec![deliver(asked, Span::from_millis(chance.below(300)), &reply)]
    });
    let mut asked = vec![];
    for number in 0..300u32 {
        let qtype = [Type::AAAA, Type::AAAA, Type::AAAA, Type::A, Type::PTR, Type::ANY, Type::CNAME]
            [chance.below(7) as usize];
        let nibbles = format!("{:x}.{:x}", chance.below(16), chance.below(4));
        let name = match chance.below(6) {
            0 => format!("{nibbles}.2.0.0.0.0.c.0.0.0.0.0.0.0.0.0.0.0.0.4.6.0.0.8.b.d.0.1.0.0.2.ip6.arpa."),
            1 => format!("{nibbles}.2.0.0.0.0.c.0.0.0.0.0.0.0.0.0.0.0.0.0.b.0.0.8.b.d.0.1.0.0.2.ip6.arpa."),
            _ => format!("n{}.example.", chance.below(NAMES)),
        };
        let question = ask(&name, qtype).network(number % 50).id(number as u16).port(number as u16);
        asked.push(world.ask(&question));
        world.run(Span(chance.below(12_000_000)));
        if chance.percent(4) {
            let settings = odd_settings(&mut chance);
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
    let left = (world.engine.pending(), world.engine.flights(), world.engine.followed());
    assert_eq!(left, (0, 0, 0), "seed {seed}");
    world.count(Counter::CnameHops)
}

#[test]
fn data_of_our_own_come_and_go_and_every_question_gets_exactly_one_answer() {
    let followed: u64 = (0..60).map(one_storm).sum();
    assert!(followed > 1000, "{followed} aliases were followed");
}

/// A name of labels that special names are made of, of up to 255 octets.
fn odd_name(chance: &mut Chance) -> Vec<u8> {
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
    let mut name = zones[chance.below(6) as usize].to_vec();
    let length = chance.below(256) as usize;
    let nibbles = chance.percent(70);
    loop {
        let label = labels[chance.below(if nibbles { 2 } else { 10 }) as usize];
        if name.len() + label.len() > length {
            return name;
        }
        name.splice(0..0, label.iter().copied());
    }
}

#[test]
fn no_name_under_arpa_is_too_odd_to_be_answered_or_asked() {
    let mut chance = Chance::new(7);
    let (mut answered, mut asked) = (0, 0);
    for round in 0..20 {
        let mut settings = odd_settings(&mut chance);
        for prefix in ["2001:db8::/32", "2001:db8:4600::/40"] {
            settings.dns64.prefixes.push(prefix.parse().expect("a prefix"));
        }
        let mut world = World::sized(settings, 4096, round);
        world.upstreams(|asked, _| vec![deliver(asked, Span::from_millis(5), &Reply::default())]);
        for number in 0..500u16 {
            let name = odd_name(&mut chance);
            assert!(name.len() <= 255);
            let qtype =
                [Type::PTR, Type::AAAA, Type::A, Type::SOA, Type::NS, Type::DS, Type::ANY, Type::CNAME]
                    [chance.below(8) as usize];
            let mut message = vec![0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
            message[..2].copy_from_slice(&number.to_be_bytes());
            message.extend(name);
            message.extend(qtype.0.to_be_bytes());
            message.extend([0, 1]);
            world.query(&client(&format!("2001:db8:c:{number:x}::1"), number), &message);
        }
        answered += world.answers.len();
        asked += world.asked.len();
        for answer in &world.answers {
            assert!(wire::Message::parse(&answer.bytes).is_ok());
        }
        world.run(Span::from_secs(60));
        assert_eq!(world.answers.len(), 500, "round {round}");
        let left = (world.engine.pending(), world.engine.flights(), world.engine.followed());
        assert_eq!(left, (0, 0, 0), "round {round}");
    }
    assert!(answered > 1000 && asked > 1000, "{answered} answered at once, {asked} asked");
}
