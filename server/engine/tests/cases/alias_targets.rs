//! Aliases that lead where the configuration decides: the answer is that of the target, asked for itself, behind the alias, whatever
//! the reply with the alias says of the target. So Unbound, BIND and PowerDNS Recursor look up such targets (RFC 1034 section 5.3.3,
//! step 4c: a resolver follows an alias as if it had been asked for its target).

use super::packet_cache::entry_for;
use super::scenario_parser::local_record;
use crate::world::{
    Answer, ClientQuery, Delivery, Reply, SentQuery, World, clients, deliver, forwarders, name, query,
    records, settings,
};
use engine::local::LocalData;
use engine::settings::{ForwardZone, Lookup};
use engine::{Settings, Span};
use wire::{Flags, Rcode, Section, Type};

/// Targets: in a forward zone, without and with AAAA records and missing there; with local records; blocked; special-use names.
const TARGETS: [&str; 8] = [
    "four.corp.test.",
    "six.corp.test.",
    "gone.corp.test.",
    "nas.home.",
    "x.ads.test.",
    "x.localhost.",
    "x.invalid.",
    "ipv4only.arpa.",
];

/// Content about the target in the reply with the alias: nothing, data, that it does not exist, that it has no data, a failure.
const FORMS: [&str; 5] = ["alone", "data", "nxdomain", "nodata", "servfail"];

/// The server of the forward zone.
const ZONE_SERVER: &str = "192.0.2.77";

/// A client network without DNS64.
const WITHOUT_DNS64: &str = "2001:db8:c:9::1";

fn zone(zone: &str) -> ForwardZone {
    ForwardZone { name: name(zone).into(), forwarders: forwarders(ZONE_SERVER) }
}

fn configuration(lookup: Lookup) -> Settings {
    let mut settings = settings();
    settings.dns64.clients = clients("::/0 !2001:db8:c:9::/64");
    settings.dns64.lookup = lookup;
    settings.upstream.zones.push(zone("corp.test."));
    let records = ["nas.home. 60 IN A 198.51.100.8", "nas.home. 60 IN MX 10 nas.home."];
    let blocked = [name("ads.test.").into()];
    settings.local_data = LocalData::new(records.map(local_record).into(), blocked).into();
    settings
}

/// A record of this type: what the zone's server says, or what the others say of the target.
fn data(owner: &str, qtype: Type, is_right: bool) -> String {
    let data = match (qtype, is_right) {
        (Type::A, true) => "A 198.51.100.7",
        (Type::A, false) => "A 203.0.113.66",
        (Type::AAAA, true) => "AAAA 2001:db8:1::7",
        (Type::AAAA, false) => "AAAA 2001:db8:bad::66",
        (Type::MX, true) => "MX 10 mx.corp.test.",
        (Type::MX, false) => "MX 10 wrong.test.",
        (Type::TXT, true) => "TXT right",
        (Type::TXT, false) => "TXT wrong",
        (_, true) => "HTTPS \\# 3 000100",
        (_, false) => "HTTPS \\# 3 000200",
    };
    format!("{owner} 90 IN {data}")
}

fn denial(rcode: Rcode, answer: &[&str]) -> Reply {
    let sections = [records(answer), Reply::empty("test.", 300, 50).sections[1].clone(), vec![]];
    Reply { rcode, sections, ..Reply::default() }
}

/// The servers: `FORM.TARGET.public.test` is an alias of TARGET.
fn upstream(asked: &SentQuery) -> Vec<Delivery> {
    let (owner, qtype) = (asked.name(), asked.qtype());
    let reply = if asked.upstream.ip().to_string() == ZONE_SERVER {
        match (owner.split('.').next(), qtype) {
            (Some("gone"), _) => denial(Rcode::NXDOMAIN, &[]),
            (Some("six"), _) | (_, Type::A | Type::MX) => Reply::answer(&[&data(&owner, qtype, true)]),
            _ => denial(Rcode::NOERROR, &[]),
        }
    } else if let Some(alias) = owner.strip_suffix("public.test.") {
        let (form, target) = alias.split_once('.').expect("FORM.TARGET");
        let alias = format!("{owner} 300 IN CNAME {target}");
        match form {
            "alone" => Reply::answer(&[&alias]),
            "data" => Reply::answer(&[&alias, &data(target, qtype, false)]),
            "nxdomain" => denial(Rcode::NXDOMAIN, &[&alias]),
            "nodata" => denial(Rcode::NOERROR, &[&alias]),
            _ => Reply { rcode: Rcode::SERVFAIL, ..Reply::answer(&[&alias]) },
        }
    } else {
        Reply::answer(&[&data(&owner, qtype, false)])
    };
    vec![deliver(asked, Span::from_millis(5), &reply)]
}

fn world(settings: Settings) -> World {
    let mut world = World::with_cache(settings, 1 << 18);
    world.set_upstreams(|asked, _| upstream(asked));
    world
}

fn answer_to(world: &mut World, query: &ClientQuery) -> Answer {
    let token = world.ask(query);
    world.run(Span::from_secs(4));
    world.answer_to(token).clone()
}

/// RCODE, extended error and records of an answer; without TTLs, which count down in the cache.
fn content(answer: &Answer) -> (Rcode, Option<u16>, [Vec<String>; 2]) {
    let records = |section| {
        let without_ttl = |line: String| {
            let mut words: Vec<&str> = line.split(' ').collect();
            words.remove(1);
            words.join(" ")
        };
        answer.records(section).into_iter().map(without_ttl).collect()
    };
    (answer.rcode(), answer.ede(), [records(Section::Answer), records(Section::Authority)])
}

#[test]
fn a_target_has_the_same_answer_behind_an_alias_as_when_it_is_asked_for() {
    let kinds: [fn(ClientQuery) -> ClientQuery; 6] = [
        |query| query,
        |query| query.address(WITHOUT_DNS64),
        |query| query.edns(1232, false),
        |query| query.edns(1232, true),
        |query| query.edns(1232, true).flags(Flags(Flags::RD.0 | Flags::CD.0)),
        |query| query.flags(Flags(0)),
    ];
    let types = [Type::A, Type::AAAA, Type::MX, Type::TXT, Type(65)];
    for lookup in [Lookup::Sequential, Lookup::Parallel, Lookup::Stagger(Span::from_millis(2))] {
        for (target, qtype) in TARGETS.iter().flat_map(|target| types.map(|qtype| (target, qtype))) {
            // Without DNS64 this name is an ordinary one, and its real data come from the upstream.
            let is_special = |kind: usize| *target != "ipv4only.arpa." || kind != 1;
            for (_, kind) in kinds.iter().enumerate().filter(|&(kind, _)| is_special(kind)) {
                let direct = answer_to(&mut world(configuration(lookup)), &kind(query(target, qtype)));
                let mut world = world(configuration(lookup));
                for form in FORMS {
                    let owner = format!("{form}.{target}public.test.");
                    // The second answer comes from the cache.
                    for id in [1, 2] {
                        let answer = answer_to(&mut world, &kind(query(&owner, qtype)).id(id));
                        let (rcode, ede, [mut expected, authority]) = content(&direct);
                        expected.insert(0, format!("{owner} IN CNAME {target}"));
                        assert_eq!(
                            content(&answer),
                            (rcode, ede, [expected, authority]),
                            "{owner} {qtype} {lookup:?} {id}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn whoever_asks_for_an_alias_itself_gets_what_the_upstream_has() {
    let mut world = world(configuration(Lookup::Sequential));
    for (target, qtype) in TARGETS.iter().flat_map(|target| [Type::CNAME, Type::ANY].map(|t| (target, t))) {
        let owner = format!("alone.{target}public.test.");
        let asked = world.asked.len();
        let answer = answer_to(&mut world, &query(&owner, qtype));
        assert_eq!(answer.records(Section::Answer), [format!("{owner} 300 IN CNAME {target}")]);
        assert_eq!(world.asked.len(), asked + 1);
    }
}

#[test]
fn a_reload_cuts_answers_that_were_copied_whole_and_another_gives_them_back() {
    let plain = settings();
    let mut with_zone = plain.clone();
    with_zone.upstream.zones.push(zone("later.test."));
    let mut with_record = plain.clone();
    with_record.local_data =
        LocalData::new(vec![local_record("four.later.test. 60 IN A 198.51.100.7")], []).into();
    let mut with_block = plain.clone();
    with_block.local_data = LocalData::new(vec![], [name("later.test.").into()]).into();
    let owner = "data.four.later.test.public.test.";
    for (settings, addresses) in [(with_zone, 1), (with_record, 1), (with_block, 0)] {
        for qtype in [Type::A, Type::AAAA] {
            let mut world = world(plain.clone());
            let question = query(owner, qtype);
            let whole = content(&answer_to(&mut world, &question));
            assert_eq!(content(&answer_to(&mut world, &question.clone().id(2))), whole);
            assert!(entry_for(&mut world, &question).is_some(), "a packet cache has it");
            let asked = world.asked.len();
            world.engine.configure(settings.clone());
            assert!(entry_for(&mut world, &question).is_none());
            for id in 3..6 {
                let answer = answer_to(&mut world, &question.clone().id(id));
                let lines = answer.records(Section::Answer);
                assert_eq!(
                    (lines.len(), lines[0].contains(" CNAME four.later.test.")),
                    (1 + addresses, true)
                );
                assert!(
                    lines[1..].iter().all(|line| line.contains("198.51.100.7") || line.contains("c633:6407"))
                );
                assert_eq!(answer.rcode(), if addresses == 0 { Rcode::NXDOMAIN } else { Rcode::NOERROR });
                assert!(entry_for(&mut world, &question).is_none(), "the entry is no complete answer");
            }
            assert!(world.asked[asked..].iter().all(|asked| asked.name() == "four.later.test."));
            world.engine.configure(plain.clone());
            assert_eq!(content(&answer_to(&mut world, &question.clone().id(7))), whole);
        }
    }
}

#[test]
fn a_special_name_behind_an_alias_is_special_for_clients_of_dns64_only() {
    let mut world = world(configuration(Lookup::Sequential));
    let owner = "data.170.0.0.192.in-addr.arpa.public.test.";
    for id in 1..4 {
        let elsewhere = answer_to(&mut world, &query(owner, Type::A).address(WITHOUT_DNS64).id(id));
        assert_eq!(elsewhere.records(Section::Answer).len(), 2, "an ordinary name");
        let here = answer_to(&mut world, &query(owner, Type::A).id(id));
        assert_eq!(here.records(Section::Answer).len(), 1, "RFC 8880 section 7.1: no A record");
    }
}

#[test]
fn expired_data_of_an_alias_and_of_its_target_are_used_each_for_itself() {
    let mut settings = configuration(Lookup::Sequential);
    settings.cache.stale = Span::from_secs(86_400);
    for silent in ["192.0.2.53", ZONE_SERVER, ""] {
        let mut world = world(settings.clone());
        let question = query("data.four.corp.test.public.test.", Type::A).edns(1232, false);
        let before = answer_to(&mut world, &question);
        world.run(Span::from_secs(3600));
        world.set_upstreams(move |asked, _| {
            let is_silent = asked.upstream.ip().to_string() == silent || silent.is_empty();
            if is_silent { vec![] } else { upstream(asked) }
        });
        for id in 2..5 {
            let answer = answer_to(&mut world, &question.clone().id(id));
            assert_eq!(content(&answer).2, content(&before).2, "{silent} is silent");
        }
    }
}

#[test]
fn an_alias_in_use_is_refreshed_before_it_expires() {
    let mut world = world(configuration(Lookup::Sequential));
    let question = query("data.nas.home.public.test.", Type::A);
    answer_to(&mut world, &question);
    world.run(Span::from_secs(285));
    let asked = world.asked.len();
    for id in 2..5 {
        let answer = answer_to(&mut world, &question.clone().id(id));
        assert_eq!(answer.records(Section::Answer)[1], "nas.home. 60 IN A 198.51.100.8");
    }
    assert_eq!(world.asked.len(), asked + 1);
}

#[test]
fn clients_that_wait_for_one_target_over_different_aliases_get_their_own() {
    let mut world = world(configuration(Lookup::Parallel));
    let owners = ["data.four.corp.test.public.test.", "alone.four.corp.test.public.test.", "four.corp.test."];
    let tokens: Vec<_> = (0..30u16)
        .map(|id| {
            world.ask(&query(owners[usize::from(id) % 3], Type::AAAA).id(id).network(256 + u32::from(id)))
        })
        .collect();
    world.run(Span::from_secs(1));
    for (token, owner) in tokens.into_iter().zip(owners.into_iter().cycle()) {
        let mut lines = content(world.answer_to(token)).2[0].clone();
        if owner != "four.corp.test." {
            assert_eq!(lines.remove(0), format!("{owner} IN CNAME four.corp.test."));
        }
        assert_eq!(lines, ["four.corp.test. IN AAAA 2001:db8:64::c633:6407"]);
    }
    assert_eq!(world.engine.pending(), 0);
}

#[test]
fn signatures_of_the_aliases_that_stay_are_kept_and_those_of_the_rest_are_not() {
    let mut world = world(configuration(Lookup::Sequential));
    let signature = |owner: &str, covered: &str| {
        format!("{owner} 300 IN RRSIG {covered} 13 2 300 20300101000000 20200101000000 1 test. AAAA")
    };
    let lines = [
        "www.test. 300 IN CNAME four.corp.test.".to_owned(),
        signature("www.test.", "CNAME"),
        data("four.corp.test.", Type::A, false),
        signature("four.corp.test.", "A"),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let reply = Reply { flags: Flags::AD, ..Reply::answer(&lines) };
    world.set_upstreams(move |asked, _| match asked.name().as_str() {
        "www.test." => vec![deliver(asked, Span::ZERO, &reply)],
        _ => upstream(asked),
    });
    let answer = answer_to(&mut world, &query("www.test.", Type::A).edns(1232, true));
    let types: Vec<String> = content(&answer).2[0]
        .iter()
        .map(|line| line.split(' ').take(4).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        types,
        [
            "www.test. IN CNAME four.corp.test.",
            "www.test. IN RRSIG CNAME",
            "four.corp.test. IN A 198.51.100.7"
        ]
    );
    // The zone's server does not set it (RFC 4035 section 3.2.3).
    assert!(!answer.flags().contains(Flags::AD));
}

#[test]
fn a_bogus_reply_is_an_answer_whatever_its_aliases_say() {
    let mut world = world(configuration(Lookup::Sequential));
    world.set_upstreams(|asked, _| {
        let alias = Reply::answer(&["www.test. 300 IN CNAME nas.home."]);
        // RFC 8914 section 4.7: DNSSEC Bogus.
        vec![deliver(asked, Span::ZERO, &Reply { rcode: Rcode::SERVFAIL, ede: Some(6), ..alias })]
    });
    for qtype in [Type::A, Type::AAAA] {
        assert_eq!(answer_to(&mut world, &query("www.test.", qtype)).rcode(), Rcode::SERVFAIL);
    }
}
