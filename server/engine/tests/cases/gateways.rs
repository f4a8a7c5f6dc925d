//! Gateways behind the prefixes: a prefix whose gateway is dead or drains is in no new answer, wherever the answer comes from; with
//! `spread = "client"` each client network has its own prefix, and keeps it.

use super::packet_cache::entry_for;
use crate::world::{
    Answer, ClientQuery, Delivery, Reply, SentQuery, World, deliver, name, query, set_prefixes, settings,
};
use engine::dns64::gateways::{AllDown, GatewayTable, Gateways, PrefixState, Spread, TablePrefix};
use engine::dns64::rules::{Rule, Rules};
use engine::local::LocalRecord;
use engine::packet_cache::{PacketCacheHits, PacketCacheTask};
use engine::rpz::{Action, PolicyRule, PolicyZone, ResponsePolicy, Trigger};
use engine::settings::Lookup;
use engine::{Client, ClientTransport, Counter, Machine, Settings, Span};
use pref64::Pref64;
use pref64::mapping::Mappings;
use std::collections::HashMap;
use std::net::Ipv6Addr;
use std::sync::Arc;
use wire::{Rcode, Section, Type, ede};

use PrefixState::{Down, Draining, Up};

const PREFIXES: &str = "2001:db8:64:a::/96 2001:db8:64:b::/96";
/// The address of every name, under both prefixes.
const UNDER: [&str; 2] = ["2001:db8:64:a::c633:6407", "2001:db8:64:b::c633:6407"];
const NAME: &str = "v4only.example.";

fn upstream(asked: &SentQuery) -> Vec<Delivery> {
    let reply = match (asked.name().as_str(), asked.qtype()) {
        ("www.example.", Type::AAAA) => Reply {
            sections: [
                crate::world::records(&["www.example. 300 IN CNAME v4only.example."]),
                Reply::empty("example.", 300, 300).sections[1].clone(),
                vec![],
            ],
            ..Reply::empty("example.", 300, 300)
        },
        ("www.example.", Type::A) => Reply::answer(&[
            "www.example. 300 IN CNAME v4only.example.",
            "v4only.example. 300 IN A 198.51.100.7",
        ]),
        (name, Type::A) => Reply::answer(&[&format!("{name} 300 IN A 198.51.100.7")]),
        _ => Reply::empty("example.", 300, 300),
    };
    vec![deliver(asked, Span::from_millis(5), &reply)]
}

struct Site {
    world: World,
    table: Arc<GatewayTable>,
    number: u16,
}

impl Site {
    fn new(spread: Spread, all_down: AllDown) -> Site {
        Site::with(spread, all_down, |_| {})
    }

    /// A site with the two prefixes, which are probed, and with a cache.
    fn with(spread: Spread, all_down: AllDown, change: impl FnOnce(&mut Settings)) -> Site {
        let mut settings = settings();
        set_prefixes(&mut settings.dns64, PREFIXES);
        let of = |prefix: &Pref64| TablePrefix { prefix: *prefix, weight: 1, is_probed: true };
        let general = settings.dns64.prefixes.iter().map(of).collect();
        let others = vec![of(&"2001:db8:64:c::/96".parse().unwrap())];
        let table = Arc::new(GatewayTable::new((spread, all_down, 60), general, others));
        settings.dns64.gateways = Some(Gateways::new(Arc::clone(&table), Arc::new([])));
        change(&mut settings);
        let mut world = World::with_cache(settings, 1 << 22);
        world.set_upstreams(|asked, _| upstream(asked));
        Site { world, table, number: 0 }
    }

    fn set(&mut self, states: &[PrefixState]) {
        self.world.engine.set_gateways(Some(Gateways::new(Arc::clone(&self.table), states.into())));
    }

    fn answer(&mut self, asked: &ClientQuery) -> Answer {
        self.number += 1;
        let token = self.world.ask(&asked.clone().id(self.number));
        self.world.run(Span::from_millis(20));
        self.world.answer_to(token).clone()
    }

    fn addresses(&mut self, asked: &ClientQuery) -> Vec<String> {
        self.answer(asked).addresses()
    }

    /// Prefix of each of some client networks, as 0 or 1.
    fn places(&mut self, networks: u32) -> Vec<usize> {
        let mut place = |number| match &self.addresses(&query(NAME, Type::AAAA).network(number))[..] {
            [only] => UNDER.iter().position(|address| address == only).expect("under a prefix"),
            more => panic!("{more:?}"),
        };
        (0..networks).map(&mut place).collect()
    }
}

fn asked() -> ClientQuery {
    query(NAME, Type::AAAA)
}

#[test]
fn a_dead_prefix_is_in_no_answer_after_its_death_fresh_or_cached() {
    let mut site = Site::new(Spread::All, AllDown::Keep);
    for _ in 0..3 {
        assert_eq!(site.addresses(&asked()), UNDER);
    }
    assert_eq!(site.world.count(Counter::CacheHitsSynthesized), 2, "they came from the cache");
    site.set(&[Up, Down]);
    for _ in 0..3 {
        assert_eq!(site.addresses(&asked()), UNDER[..1]);
        assert_eq!(site.addresses(&query("other.example.", Type::AAAA)), UNDER[..1]);
    }
    site.set(&[Draining, Up]);
    assert_eq!(site.addresses(&asked()), UNDER[1..]);
    site.set(&[]);
    assert_eq!(site.addresses(&asked()), UNDER, "both are back");
    assert_eq!(site.world.asked.len(), 4, "no upstream was asked again");
}

#[test]
fn a_query_that_waits_gets_no_prefix_that_died_meanwhile() {
    let mut site = Site::new(Spread::All, AllDown::Keep);
    let token = site.world.ask(&asked());
    site.world.run(Span::from_millis(7));
    site.set(&[Down, Up]);
    site.world.run(Span::from_millis(20));
    assert_eq!(site.world.answer_to(token).addresses(), UNDER[1..]);
}

#[test]
fn ordered_gives_one_prefix_the_first_that_lives() {
    let mut site = Site::new(Spread::Ordered, AllDown::Keep);
    for (states, place) in [(&[][..], 0), (&[Down, Up], 1), (&[Down, Down], 0), (&[Draining, Up], 1)] {
        site.set(states);
        for _ in 0..2 {
            assert_eq!(site.addresses(&asked()), [UNDER[place]], "{states:?}");
        }
    }
}

#[test]
fn entries_of_packet_caches_end_with_the_states_that_they_were_made_under() {
    for spread in [Spread::All, Spread::Ordered] {
        let mut site = Site::new(spread, AllDown::Keep);
        site.addresses(&asked());
        site.addresses(&asked());
        let entry = entry_for(&mut site.world, &asked()).expect("the answer is cached");
        assert!(entry.holds(site.world.now));
        site.set(&[Down, Up]);
        assert!(!entry.holds(site.world.now));
        site.addresses(&asked());
        let entry = entry_for(&mut site.world, &asked()).expect("the new answer is cached");
        let message = wire::Message::parse(entry.message()).unwrap();
        let addresses: Vec<_> = message.records(Section::Answer).filter_map(|one| one.address6()).collect();
        assert_eq!(addresses, [UNDER[1].parse::<Ipv6Addr>().unwrap().octets()]);
    }
}

#[test]
fn no_packet_cache_has_an_answer_that_is_for_one_client_network() {
    let mut site = Site::new(Spread::Client, AllDown::Keep);
    for qtype in [Type::AAAA, Type::A] {
        let question = query(NAME, qtype);
        site.answer(&question);
        site.answer(&question);
        assert_eq!(entry_for(&mut site.world, &question).is_some(), qtype == Type::A, "{qtype}");
    }
}

#[test]
fn each_network_keeps_its_prefix_and_only_those_of_a_dead_one_move() {
    const NETWORKS: u32 = 2_000;
    let mut site = Site::new(Spread::Client, AllDown::Keep);
    let before = site.places(NETWORKS);
    let of_first = before.iter().filter(|&&place| place == 0).count();
    assert!(
        (900..1_100).contains(&of_first),
        "{of_first} of {NETWORKS} have the first of two equal prefixes"
    );
    site.set(&[Up, Down]);
    assert!(site.places(NETWORKS).iter().all(|&place| place == 0));
    site.set(&[]);
    assert_eq!(site.places(NETWORKS), before, "they come back, and no other moves");
    assert_eq!(site.world.asked.len(), 2, "all but the first answer came from the cache");
}

#[test]
fn clients_of_one_reply_get_a_prefix_each() {
    // Equal questions in flight share the reply, and composed answers are copied.
    let mut site = Site::new(Spread::Client, AllDown::Keep);
    let tokens: Vec<_> = (0..200)
        .map(|number| site.world.ask(&asked().network(number).id(number as u16).port(number as u16 + 1)))
        .collect();
    site.world.run(Span::from_millis(50));
    let waiting: Vec<_> = tokens.iter().map(|&token| site.world.answer_to(token).addresses()).collect();
    let places = site.places(200);
    for (addresses, place) in waiting.iter().zip(places) {
        assert_eq!(addresses[..], [UNDER[place]]);
    }
    assert!(site.world.count(Counter::CopiedAnswers) > 0, "answers were copied");
}

#[test]
fn every_length_of_prefix_is_replaced_in_a_cached_answer() {
    let prefixes = "2001:db8:a::/96 2001:db8::/32 2001:db8:100::/40 2001:db8:122::/48 2001:db8:122:300::/56 \
                    2001:db8:122:344::/64";
    let mut settings = settings();
    set_prefixes(&mut settings.dns64, prefixes);
    let of = |prefix: &Pref64| TablePrefix { prefix: *prefix, weight: 1, is_probed: false };
    let general: Vec<_> = settings.dns64.prefixes.iter().map(of).collect();
    let table = Arc::new(GatewayTable::new((Spread::Client, AllDown::Keep, 60), general, vec![]));
    settings.dns64.gateways = Some(Gateways::new(table, Arc::new([])));
    let own = settings.dns64.prefixes.clone();
    let mut world = World::with_cache(settings, 1 << 20);
    world.set_upstreams(|asked, _| upstream(asked));
    let mut seen = HashMap::new();
    for number in 0..200 {
        let token = world.ask(&query("www.example.", Type::AAAA).network(number).edns(1232, false));
        world.run(Span::from_millis(30));
        let answer = world.answer_to(token);
        let records = answer.records(Section::Answer);
        assert!(records[0].starts_with("www.example. ") && records[0].contains(" CNAME "), "{records:?}");
        let address: Ipv6Addr = answer.addresses()[0].parse().unwrap();
        let place = own.iter().position(|prefix| prefix.embed([198, 51, 100, 7]) == address.octets());
        *seen.entry(place.expect("under one of the prefixes")).or_insert(0) += 1;
        assert_eq!((records.len(), answer.ede()), (2, Some(ede::SYNTHESIZED)));
    }
    assert_eq!(seen.len(), own.len(), "each prefix has clients: {seen:?}");
    assert!(world.count(Counter::CacheHitsSynthesized) > 150);
}

#[test]
fn an_address_that_only_some_prefixes_take_is_judged_for_each_client() {
    // RFC 6052 section 3.1: 64:ff9b::/96 must not carry 10.0.0.1.
    let mut settings = settings();
    set_prefixes(&mut settings.dns64, "64:ff9b::/96 2001:db8:64:b::/96");
    let of = |prefix: &Pref64| TablePrefix { prefix: *prefix, weight: 1, is_probed: false };
    let general: Vec<_> = settings.dns64.prefixes.iter().map(of).collect();
    let table = Arc::new(GatewayTable::new((Spread::Client, AllDown::Keep, 60), general, vec![]));
    settings.dns64.gateways = Some(Gateways::new(table, Arc::new([])));
    let mut world = World::with_cache(settings, 1 << 20);
    world.set_replies(Span::from_millis(1), |asked| match asked.qtype() {
        Type::A => Reply::answer(&["mixed.example. 300 IN A 10.0.0.1"]),
        _ => Reply::empty("example.", 300, 300),
    });
    let mut with_address = 0;
    for number in 0..100 {
        let token = world.ask(&query("mixed.example.", Type::AAAA).network(number));
        world.run(Span::from_millis(10));
        match &world.answer_to(token).addresses()[..] {
            [] => {}
            [only] if only == "2001:db8:64:b::a00:1" => with_address += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!((30..70).contains(&with_address), "{with_address}");
}

#[test]
fn a_policy_for_addresses_under_one_prefix_is_not_passed_by() {
    let network = engine::settings::Network::new(UNDER[1].parse().unwrap(), 128);
    let rule = PolicyRule { trigger: Trigger::Address(network), action: Action::NxDomain, ttl: 60 };
    let soa = LocalRecord {
        owner: name("policy.example.").into(),
        rtype: Type::SOA,
        ttl: 60,
        rdata: [&[0, 0][..], &[0; 20]].concat().into(),
    };
    let change = |settings: &mut Settings| {
        let zone = PolicyZone { soa, entries: vec![rule] };
        settings.rpz = ResponsePolicy::build(vec![zone]).expect("one rule").into();
    };
    let mut site = Site::with(Spread::Client, AllDown::Keep, change);
    let mut blocked = 0;
    for _ in 0..2 {
        for number in 0..50 {
            let answer = site.answer(&asked().network(number));
            match (answer.rcode(), &answer.addresses()[..]) {
                (Rcode::NXDOMAIN, []) => blocked += 1,
                (Rcode::NOERROR, [only]) if only == UNDER[0] => {}
                other => panic!("{other:?}"),
            }
        }
    }
    assert!((20..80).contains(&blocked), "{blocked}");
}

#[test]
fn with_all_down_empty_the_answer_is_empty_and_says_why() {
    for spread in [Spread::All, Spread::Ordered, Spread::Client] {
        let mut site = Site::new(spread, AllDown::Empty);
        assert!(!site.addresses(&asked()).is_empty());
        site.set(&[Down, Draining]);
        for _ in 0..2 {
            let answer = site.answer(&query("www.example.", Type::AAAA).edns(1232, false));
            assert_eq!((answer.rcode(), answer.ede()), (Rcode::NOERROR, Some(ede::OTHER)), "{spread:?}");
            let message = answer.message();
            let text = message.opt().unwrap().ede().next().unwrap().1.to_vec();
            assert_eq!(String::from_utf8(text).unwrap(), "no NAT64 gateway is reachable");
            let records = answer.records(Section::Answer);
            assert!(records.len() == 1 && records[0].contains(" CNAME v4only.example."), "{records:?}");
            let authority = answer.records(Section::Authority);
            assert!(authority[0].starts_with("v4only.example. 5 IN SOA "), "{authority:?}");
            assert!(authority[0].ends_with(" 5"), "MINIMUM: {authority:?}");
        }
        let plain = site.answer(&asked());
        assert!(plain.addresses().is_empty() && plain.rcode() == Rcode::NOERROR);
        assert_eq!(site.world.count(Counter::NotSynthesizedNoGateway), 3);
        site.set(&[]);
        assert!(!site.addresses(&asked()).is_empty(), "at once, as nothing of it was cached");
        let real = site.answer(&query(NAME, Type::A));
        assert_eq!(real.records(Section::Answer).len(), 1, "A queries are answered as ever");
    }
}

#[test]
fn with_all_down_keep_clients_get_what_they_would_get_with_all_up() {
    for spread in [Spread::All, Spread::Ordered, Spread::Client] {
        let mut site = Site::new(spread, AllDown::Keep);
        let addresses = |site: &mut Site| -> Vec<Vec<String>> {
            (0..50).map(|number| site.addresses(&asked().network(number))).collect()
        };
        let before = addresses(&mut site);
        for states in [[Down, Down], [Draining, Draining]] {
            site.set(&states);
            assert_eq!(addresses(&mut site), before, "{spread:?} {states:?}");
        }
    }
}

#[test]
fn rules_give_the_prefixes_of_their_lists_that_live() {
    let rule = |list: &[&str]| Rule {
        names: vec![name("ruled.example.").into()],
        prefixes: list.iter().map(|prefix| prefix.parse().unwrap()).collect(),
        ..Rule::default()
    };
    let list = ["2001:db8:64:b::/96", "2001:db8:64:c::/96"];
    let question = query("ruled.example.", Type::AAAA);
    let change = |settings: &mut Settings| {
        settings.dns64.rules = Rules::build(vec![rule(&list)]).unwrap().into();
    };
    let mut site = Site::with(Spread::All, AllDown::Empty, change);
    let [b, c] = ["2001:db8:64:b::c633:6407", "2001:db8:64:c::c633:6407"];
    assert_eq!(site.addresses(&question), [b, c]);
    site.set(&[Up, Down, Up]);
    assert_eq!(site.addresses(&question), [c]);
    site.set(&[Up, Down, Down]);
    let answer = site.answer(&question.clone().edns(1232, false));
    assert_eq!((answer.addresses().len(), answer.ede()), (0, Some(ede::OTHER)), "judged by the rule's list");
    assert_eq!(site.addresses(&asked()), UNDER[..1], "the general list has one that lives");

    let mut site = Site::with(Spread::Client, AllDown::Keep, change);
    let of_rule = |site: &mut Site| -> Vec<String> {
        (0..100).flat_map(|number| site.addresses(&question.clone().network(number))).collect()
    };
    let before = of_rule(&mut site);
    let with_c = before.iter().filter(|&address| address == c).count();
    assert!(before.len() == 100 && (30..70).contains(&with_c), "{with_c}");
    site.set(&[Up, Up, Down]);
    assert!(of_rule(&mut site).iter().all(|address| address == b));
}

#[test]
fn ipv4only_arpa_has_the_prefixes_that_live_and_with_spread_client_the_clients_own() {
    let question = query("ipv4only.arpa.", Type::AAAA).edns(1232, false);
    let mut site = Site::new(Spread::All, AllDown::Empty);
    assert_eq!(site.addresses(&question).len(), 4);
    site.set(&[Down, Up]);
    let answer = site.answer(&question);
    assert_eq!(answer.addresses(), ["2001:db8:64:b::c000:aa", "2001:db8:64:b::c000:ab"]);
    assert!(answer.records(Section::Answer)[0].starts_with("ipv4only.arpa. 60 "), "answer-ttl");
    site.set(&[Down, Down]);
    let answer = site.answer(&question);
    assert_eq!((answer.rcode(), answer.ede()), (Rcode::NOERROR, Some(ede::OTHER)));
    let authority = answer.records(Section::Authority);
    assert!(answer.addresses().is_empty() && authority[0].starts_with("ipv4only.arpa. 5 IN SOA "));

    let mut site = Site::new(Spread::Client, AllDown::Keep);
    for number in 0..20 {
        let addresses = site.addresses(&question.clone().network(number));
        let own = site.addresses(&asked().network(number));
        let network = |address: &str| u128::from(address.parse::<Ipv6Addr>().unwrap()) >> 32;
        assert_eq!(addresses.len(), 2);
        assert!(addresses.iter().all(|address| network(address) == network(&own[0])));
    }
}

#[test]
fn reverse_names_and_exclusion_know_a_dead_prefix_as_ever() {
    let mut site = Site::new(Spread::All, AllDown::Empty);
    site.set(&[Down, Draining]);
    for under in UNDER {
        let address: Ipv6Addr = under.parse().unwrap();
        let nibbles: String = address
            .octets()
            .iter()
            .rev()
            .map(|octet| format!("{:x}.{:x}.", octet & 15, octet >> 4))
            .collect();
        let answer = site.answer(&query(&format!("{nibbles}ip6.arpa."), Type::CNAME));
        assert!(answer.records(Section::Answer)[0].contains(" CNAME 7.100.51.198.in-addr.arpa."));
        assert!(site.world.engine.settings().dns64.excludes(address.octets()));
    }
}

#[test]
fn an_answer_with_a_probed_prefix_has_at_most_the_answer_ttl() {
    let ttl = |answer: &Answer| {
        let record = &answer.records(Section::Answer)[0];
        record.split(' ').nth(1).unwrap().parse::<u32>().unwrap()
    };
    let mut site = Site::new(Spread::All, AllDown::Keep);
    assert_eq!(ttl(&site.answer(&asked())), 60, "fresh");
    site.answer(&asked());
    site.world.run(Span::from_secs(10));
    assert!((49..=50).contains(&ttl(&site.answer(&asked()))), "cached");
    site.world.run(Span::from_secs(60));
    assert_eq!(ttl(&site.answer(&asked())), 60, "made again of the cached replies");
    assert_eq!(site.world.asked.len(), 2);
    // Nobody probes the only prefix of this table.
    let mut site = Site::with(Spread::All, AllDown::Keep, |settings| {
        let of = |prefix: &Pref64| TablePrefix { prefix: *prefix, weight: 1, is_probed: false };
        let general = settings.dns64.prefixes.iter().map(of).collect();
        let table = Arc::new(GatewayTable::new((Spread::All, AllDown::Keep, 60), general, vec![]));
        settings.dns64.gateways = Some(Gateways::new(table, Arc::new([])));
    });
    assert_eq!(ttl(&site.answer(&asked())), 300);
    // A mapped address is under none.
    let mut site = Site::with(Spread::All, AllDown::Keep, |settings| {
        let mapping = "198.51.100.7 2001:db8:a::7".parse().unwrap();
        settings.dns64.mappings = Some(Mappings::new(vec![mapping]).unwrap().into());
    });
    let answer = site.answer(&asked());
    assert_eq!((answer.addresses(), ttl(&answer)), (vec!["2001:db8:a::7".to_owned()], 300));
}

#[test]
fn a_popular_answer_stays_in_packet_caches_although_its_ttl_is_short() {
    let mut site = Site::new(Spread::All, AllDown::Keep);
    for _ in 0..3 {
        site.answer(&asked());
    }
    // The replies are 200 s old and fresh; the synthesis of them is young.
    site.world.run(Span::from_secs(200));
    site.answer(&asked());
    site.answer(&asked());
    let entry = entry_for(&mut site.world, &asked()).expect("no refresh is due");
    assert!((entry.until - site.world.now) > Span::from_secs(50));
}

#[test]
fn answers_are_counted_by_their_prefixes_also_those_from_caches() {
    let counts = |site: &Site| -> Vec<u64> {
        site.world.engine.prefix_answers().into_iter().map(|(_, count)| count).collect()
    };
    let mut site = Site::new(Spread::All, AllDown::Keep);
    for _ in 0..3 {
        site.answer(&asked());
    }
    assert_eq!(counts(&site), [3, 3, 0]);
    let entry = entry_for(&mut site.world, &asked()).unwrap();
    let (query, kind) = (entry.query.clone(), entry.kind);
    let transport = ClientTransport::Tls;
    let hits = vec![PacketCacheHits { query, kind, transport, ipv4: 3, ipv6: 4, with_opt: 0 }];
    site.world.engine.serve_packet_cache(site.world.now, PacketCacheTask { hits, ..Default::default() });
    assert_eq!(counts(&site), [10, 10, 0]);
    site.set(&[Down, Up]);
    site.answer(&asked());
    assert_eq!(counts(&site), [10, 11, 0]);

    let mut site = Site::new(Spread::Client, AllDown::Keep);
    let places = site.places(100);
    let of_first = places.iter().filter(|&&place| place == 0).count() as u64;
    assert_eq!(counts(&site), [of_first, 100 - of_first, 0]);
}

#[test]
fn a_reload_keeps_the_counts_and_gateways_of_other_settings_change_nothing() {
    let mut site = Site::new(Spread::All, AllDown::Keep);
    site.answer(&asked());
    // The prefixes change places.
    let mut other = site.world.engine.settings().clone();
    other.dns64.prefixes.reverse();
    let of = |prefix: &Pref64| TablePrefix { prefix: *prefix, weight: 1, is_probed: true };
    let general = other.dns64.prefixes.iter().skip(1).map(of).collect();
    let table = Arc::new(GatewayTable::new((Spread::All, AllDown::Keep, 60), general, vec![]));
    site.world.engine.set_gateways(Some(Gateways::new(table, [Down].into())));
    assert_eq!(site.addresses(&asked()), UNDER, "the table is not about the general prefixes");
    let general = other.dns64.prefixes.iter().map(of).collect();
    let table = Arc::new(GatewayTable::new((Spread::Ordered, AllDown::Keep, 60), general, vec![]));
    other.dns64.gateways = Some(Gateways::new(table, Arc::new([])));
    site.world.engine.configure(other);
    assert_eq!(site.addresses(&asked()), UNDER[1..], "the second is now the first");
    let counts: Vec<u64> = site.world.engine.prefix_answers().into_iter().map(|(_, count)| count).collect();
    assert_eq!(counts, [3, 2]);
}

#[test]
fn thousand_changes_of_state_lose_no_query() {
    for spread in [Spread::All, Spread::Client] {
        let mut site = Site::with(spread, AllDown::Keep, |settings| settings.dns64.lookup = Lookup::Parallel);
        let mut tokens = Vec::new();
        for round in 0..1_000u32 {
            let states = [[Up, Up], [Down, Up], [Up, Down], [Down, Down]][round as usize % 4];
            site.set(&states);
            for number in 0..3 {
                let id = (round * 3 + number) as u16;
                let text = format!("n{}.example.", round / 7 + number);
                let client = Client { port: id, ..query(NAME, Type::AAAA).network(number).client };
                let asked = ClientQuery { client, ..query(&text, Type::AAAA).id(id) };
                tokens.push(site.world.ask(&asked));
            }
            site.world.run(Span::from_millis(4));
        }
        site.world.run(Span::from_secs(1));
        for token in tokens {
            assert!(!site.world.answer_to(token).addresses().is_empty());
        }
        site.world.assert_conservation();
    }
}
