//! Comparison of an engine with a cache and an engine without one. Both get the same queries, and their upstreams always
//! give the same data for a name. Under all settings, the answers must be equal except for TTLs and extended errors, and so
//! must be the counters of them.

use super::scenario_parser::{configured, read};
use crate::world::{Answer, ClientQuery, Reply, Rng, SentQuery, World, deliver, name, query, record};
use engine::{Counter, Settings, Span};
use wire::{Class, Flags, Rcode, Section, Type};

/// Settings, one string for each run, in the language of the scenarios.
const SETTINGS: [&str; 24] = [
    "",
    "set dns64.lookup parallel",
    "set dns64.lookup stagger 3ms",
    "set dns64.prefixes 2001:db8:64::/96 2001:db8:65::/56",
    "set dns64.rule names v4.example. prefixes 2001:db8:66::/96\nset dns64.rule names aliased.example. prefixes 2001:db8:67::/64",
    "set dns64.rule clients 2001:db8:c:1::/64 prefixes 2001:db8:66::/96 ignore\nset dns64.rule clients 2001:db8:c:2::/64",
    "set dns64.rule ipv4 198.51.100.0/24 prefixes 2001:db8:66::/96",
    "set dns64.clients 2001:db8:c::/62",
    "set dns64.recursive-only true",
    "set dns64.dnssec off",
    "set dns64.break-dnssec true",
    "set local.record v4.example. 60 IN A 192.0.2.77\nset local.record here.example. 60 IN CNAME v4.example.\nset local.record aliased.example. 60 IN TXT x",
    "set filter.block v4.example. real.example.",
    "set filter.rpz rpz. 32.7.100.51.198.rpz-ip 60 IN CNAME .\nset filter.rpz rpz. real.example 60 IN CNAME *.",
    "set filter.rpz rpz. 64.zz.1.c.db8.2001.rpz-client-ip 60 IN CNAME .\nset filter.rpz rpz. 64.zz.2.c.db8.2001.rpz-client-ip 60 IN CNAME rpz-tcp-only.\nset filter.rpz rpz. 64.zz.3.c.db8.2001.rpz-client-ip 60 IN CNAME rpz-passthru.",
    "set filter.rpz rpz. v4.example 60 IN A 192.0.2.99\nset filter.rpz rpz. aliased.example 60 IN CNAME real.example.\nset filter.rpz rpz. many.example 60 IN CNAME rpz-drop.",
    "set edns.client-subnet forward",
    "set cache.min-ttl 15\nset cache.max-ttl 40",
    "set cache.max-ttl 3\nset dns64.lookup parallel",
    "set dns64.on-failure.servfail pass\nset dns64.on-failure.timeout pass\nset dns64.on-failure.refused pass",
    "set dns64.non-global embed\nset dns64.max-records 3",
    "set dns64.exclude-aaaa 2001:db8:1::/48",
    "set edns.udp-size 512\nset cache.prefetch false",
    "set upstream.transport tcp\nset dns64.ptr local\nset upstream.tries 1",
];

const NAMES: [&str; 40] = [
    "v4.example.",
    "v4-without-soa.example.",
    "v4-low.example.",
    "real.example.",
    "both.example.",
    "excluded.example.",
    "mixed.example.",
    "own.example.",
    "nothing.example.",
    "absent.example.",
    "absent-without-soa.example.",
    "aliased.example.",
    "to-real.example.",
    "to-absent.example.",
    "unfinished.example.",
    "unfinished-twice.example.",
    "unfinished-local.example.",
    "loop.example.",
    "under.dname.example.",
    "many.example.",
    "many-real.example.",
    "bogus.example.",
    "doubtful.example.",
    "failing.example.",
    "failing-a.example.",
    "refused.example.",
    "mute.example.",
    "signed.example.",
    "signed-real.example.",
    "private.example.",
    "private-too.example.",
    "strays.example.",
    "zero.example.",
    "told.example.",
    "rest.example.",
    "here.example.",
    "ipv4only.arpa.",
    "170.0.0.192.in-addr.arpa.",
    "7.100.51.198.in-addr.arpa.",
    "7.0.4.6.3.3.6.c.0.0.0.0.0.0.0.0.0.0.0.0.4.6.0.0.8.b.d.0.1.0.0.2.ip6.arpa.",
];

/// The reply of the upstream; `None`: it is silent.
fn reply_of(asked: &SentQuery) -> Option<Reply> {
    let (owner, qtype) = (asked.name(), asked.qtype());
    let message = asked.message();
    let flags = message.flags();
    let unchecked = flags.contains(Flags::CD);
    let dnssec_ok = message.opt().is_some_and(|opt| opt.dnssec_ok());
    let (is_a, is_aaaa) = (qtype == Type::A, qtype == Type::AAAA);
    let soa = || Reply::empty("example.", 25, 20);
    let rows = |rows: &[&str]| {
        let rows: Vec<String> = rows.iter().map(|row| row.replace('@', &owner)).collect();
        Reply::answer(&rows.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let a = || rows(&["@ 12 IN A 198.51.100.7", "@ 12 IN A 198.51.100.8"]);
    let aaaa = || rows(&["@ 30 IN AAAA 2001:db8:1::7"]);
    let data = |has_a: bool, has_aaaa: bool| match qtype {
        Type::A if has_a => a(),
        Type::AAAA if has_aaaa => aaaa(),
        _ => soa(),
    };
    let secure = |reply: Reply| Reply {
        flags: if (dnssec_ok || flags.contains(Flags::AD)) && !unchecked { Flags::AD } else { Flags(0) },
        ..reply
    };
    let alias = |to: &str, more: &[&str]| {
        let first = format!("@ 18 IN CNAME {to}");
        rows(&[&[first.as_str()][..], more].concat())
    };
    let with_soa = |reply: Reply| {
        let [answer, _, additional] = reply.sections.clone();
        let [_, authority, _] = soa().sections;
        Reply { sections: [answer, authority, additional], ..reply }
    };
    Some(match owner.split('.').next()? {
        "v4" => secure(data(true, false)),
        "v4-without-soa" => {
            if is_a {
                a()
            } else {
                Reply::default()
            }
        }
        "v4-low" if is_a => rows(&["@ 4 IN A 198.51.100.9"]),
        "v4-low" => Reply::empty("example.", 2_000, 7),
        "real" => data(false, true),
        "both" => secure(data(true, true)),
        "excluded" if is_aaaa => rows(&["@ 9 IN AAAA ::ffff:192.0.2.1"]),
        "excluded" => data(true, false),
        "mixed" if is_aaaa => rows(&["@ 9 IN AAAA ::ffff:192.0.2.1", "@ 9 IN AAAA 2001:db8:2::1"]),
        "mixed" => data(true, false),
        "own" if is_aaaa => rows(&["@ 9 IN AAAA 2001:db8:64::1"]),
        "own" => data(true, false),
        "nothing" => secure(soa()),
        "absent" => secure(Reply { rcode: Rcode::NXDOMAIN, ..soa() }),
        "absent-without-soa" => Reply::rcode(Rcode::NXDOMAIN),
        "aliased" if is_a => secure(alias("v4.example.", &["v4.example. 12 IN A 198.51.100.7"])),
        "aliased" => secure(with_soa(alias("v4.example.", &[]))),
        "to-real" if is_aaaa => alias("real.example.", &["real.example. 12 IN AAAA 2001:db8:1::7"]),
        "to-real" => with_soa(alias("real.example.", &[])),
        "to-absent" => Reply { rcode: Rcode::NXDOMAIN, ..with_soa(alias("absent.example.", &[])) },
        "unfinished" => secure(alias("v4.example.", &[])),
        "unfinished-twice" => secure(alias("unfinished.example.", &[])),
        "unfinished-local" => alias("here.example.", &[]),
        "loop" => alias("unfinished-loop.example.", &[]),
        "unfinished-loop" => alias("loop.example.", &[]),
        "under" => rows(&[
            "dname.example. 50 IN DNAME v4only.example.",
            "@ 50 IN CNAME under.v4only.example.",
            "under.v4only.example. 9 IN TXT x",
        ]),
        "many" if is_a => {
            let all: Vec<String> = (1..60).map(|n| format!("@ 12 IN A 198.51.100.{n}")).collect();
            rows(&all.iter().map(String::as_str).collect::<Vec<_>>())
        }
        "many-real" if is_aaaa => {
            let all: Vec<String> = (1..60).map(|n| format!("@ 12 IN AAAA 2001:db8:2::{n:x}")).collect();
            rows(&all.iter().map(String::as_str).collect::<Vec<_>>())
        }
        "bogus" if !unchecked => Reply { ede: Some(6), ..Reply::rcode(Rcode::SERVFAIL) },
        "doubtful" if !unchecked && is_aaaa => Reply::rcode(Rcode::SERVFAIL),
        "bogus" | "doubtful" => data(true, false),
        "failing" => Reply::rcode(Rcode::SERVFAIL),
        "failing-a" if is_a => Reply::rcode(Rcode::SERVFAIL),
        "refused" if !is_a => Reply::rcode(Rcode::REFUSED),
        "mute" if is_aaaa => return None,
        "refused" | "mute" => data(true, false),
        "signed" if is_a => secure(rows(&[
            "@ 12 IN A 198.51.100.7",
            "@ 12 IN RRSIG A 8 2 12 20300101000000 20200101000000 7 example. AAAA",
        ])),
        "signed" => {
            let signature = "example. 25 IN RRSIG SOA 8 1 25 20300101000000 20200101000000 7 example. AAAA";
            let mut reply = soa();
            reply.sections[1].push(record(signature));
            secure(reply)
        }
        "signed-real" if is_aaaa => secure(rows(&[
            "@ 12 IN AAAA 2001:db8:1::7",
            "@ 12 IN RRSIG AAAA 8 2 12 20300101000000 20200101000000 7 example. AAAA",
        ])),
        "private" if is_a => rows(&["@ 12 IN A 10.0.0.1"]),
        "private-too" if is_a => rows(&["@ 12 IN A 10.0.0.1", "@ 12 IN A 198.51.100.7"]),
        "strays" if is_a => rows(&["@ 12 IN A 198.51.100.7", "other.example. 12 IN A 198.51.100.66"]),
        "strays" if is_aaaa => rows(&["other.example. 12 IN AAAA 2001:db8:2::66"]),
        "zero" if is_a => rows(&["@ 0 IN A 198.51.100.7"]),
        "told" => Reply { ede: Some(23), ..data(true, false) },
        "rest" => {
            let mut reply = data(true, true);
            reply.sections[1] = vec![record("example. 50 IN NS ns.example.")];
            reply.sections[2] = vec![
                record("ns.example. 40 IN A 198.51.100.53"),
                record("ns.example. 40 IN AAAA 2001:db8::53"),
            ];
            reply
        }
        "7" | "170" if qtype == Type::PTR => rows(&["@ 22 IN PTR v4.example."]),
        _ => soa(),
    })
}

fn world(settings: Settings, cache: usize) -> World {
    let mut world = World::with_cache(settings, cache);
    world.set_upstreams(|asked, _| {
        reply_of(asked).iter().map(|reply| deliver(asked, Span::from_millis(4), reply)).collect()
    });
    world
}

fn question(number: u16, rng: &mut Rng) -> ClientQuery {
    let types = [Type::AAAA, Type::AAAA, Type::AAAA, Type::A, Type::PTR, Type::ANY, Type::TXT, Type::CNAME];
    let pick = |rng: &mut Rng, count: usize| rng.below(count as u64) as usize;
    // A few of the names at a time, so that some are queried again before they expire.
    let place = (usize::from(number) / 100 * 5 + pick(rng, 6)) % NAMES.len();
    let qtype = if NAMES[place].ends_with("arpa.") && rng.percent(60) {
        Type::PTR
    } else {
        types[pick(rng, types.len())]
    };
    let mut asked = query(NAMES[place], qtype).network(rng.below(6) as u32).id(number).port(2_000 + number);
    for octet in &mut asked.name {
        if octet.is_ascii_alphabetic() && rng.percent(20) {
            *octet ^= 0x20;
        }
    }
    for (flag, share) in [(Flags::CD, 15), (Flags::AD, 15)] {
        if rng.percent(share) {
            asked.flags = asked.flags.with(flag);
        }
    }
    if rng.percent(8) {
        asked.flags = asked.flags.without(Flags::RD);
    }
    if rng.percent(60) {
        asked = asked.edns([0, 512, 700, 1232, 4096][pick(rng, 5)], rng.percent(40));
    }
    if rng.percent(10) {
        asked = asked.tcp(u64::from(number) + 1);
    }
    if rng.percent(3) {
        asked.class = Class::HS;
    }
    if rng.percent(5) {
        asked = asked.option(crate::world::subnet("203.0.113.0/24"));
    }
    asked
}

/// The parts of an answer that must be equal.
fn comparable(answer: &Answer) -> (Rcode, Flags, Vec<u8>, bool, [Vec<String>; 3]) {
    let message = answer.message();
    let sections = [Section::Answer, Section::Authority, Section::Additional].map(|section| {
        let without_ttl = |line: &String| {
            let mut words: Vec<&str> = line.split(' ').collect();
            words.remove(1);
            words.join(" ")
        };
        answer.records(section).iter().map(without_ttl).collect()
    });
    (answer.rcode(), answer.flags(), message.question().to_vec(), message.opt().is_some(), sections)
}

/// The counters that must be equal.
fn counted(world: &World) -> Vec<(String, u64)> {
    let families = [
        "synthesized_total",
        "not_synthesized_total",
        "omitted_addresses_total",
        "responses_total",
        "filtered_total",
    ];
    let counters = Counter::ALL.iter().filter(|counter| families.contains(&counter.describe().0));
    counters.map(|&counter| (format!("{counter:?}"), world.count(counter))).collect()
}

#[test]
fn clients_get_the_same_answers_with_a_cache_as_without_one() {
    for (place, text) in SETTINGS.iter().enumerate() {
        let statements = read(text).expect(text);
        let settings = configured(&statements, statements.len()).expect(text);
        // The smaller cache evicts all the time.
        for size in [1 << 20, 40_000] {
            play(text, &settings, size, 100 + place as u64);
        }
    }
}

fn play(text: &str, settings: &Settings, size: usize, seed: u64) {
    let mut worlds = [world(settings.clone(), 0), world(settings.clone(), size)];
    let mut rng = Rng::new(seed);
    let mut number = 0;
    for step in 0..600 {
        let queries: Vec<ClientQuery> = (0..1 + rng.below(3))
            .map(|_| {
                number += 1;
                question(number, &mut rng)
            })
            .collect();
        let tokens =
            worlds.each_mut().map(|world| queries.iter().map(|query| world.ask(query)).collect::<Vec<_>>());
        for _ in 0..20 {
            worlds.iter_mut().for_each(|world| world.run(Span::from_millis(400)));
            if worlds.iter().all(|world| world.engine.pending() == 0) {
                break;
            }
        }
        for (place, query) in queries.iter().enumerate() {
            let [plain, cached] = [0, 1].map(|which| worlds[which].answers_to(tokens[which][place]));
            let what = format!(
                "{text}, size {size}, step {step}: {} {:?}",
                String::from_utf8_lossy(&query.name),
                query
            );
            assert_eq!(plain.len(), cached.len(), "{what}");
            for (plain, cached) in plain.iter().zip(cached) {
                assert_eq!(comparable(plain), comparable(cached), "{what}");
            }
        }
        let [plain, cached] = [0, 1].map(|which| counted(&worlds[which]));
        assert_eq!(plain, cached, "{text}, size {size}, step {step}: {queries:?}");
        let pause = [0, 0, 0, 700, 3_000][rng.below(5) as usize];
        worlds.iter_mut().for_each(|world| world.run(Span::from_millis(pause)));
        if rng.percent(1) {
            worlds.iter_mut().for_each(|world| drop(world.engine.configure(settings.clone())));
        }
    }
    let [_, cached] = &worlds;
    let hits = cached.sum(|family| family == "cache_hits_total");
    assert!(hits > 40, "{text}: only {hits} hits");
    assert_eq!((cached.engine.pending(), cached.engine.chases()), (0, 0));
}

#[test]
fn a_flush_below_a_name_removes_only_these_entries_step_by_step() {
    let mut world = World::with_cache(crate::world::settings(), 4 << 20);
    world.set_replies(Span::from_millis(1), |asked| {
        Reply::answer(&[&format!("{} 300 IN A 198.51.100.7", asked.name())])
    });
    for number in 0..400 {
        let zone = if number % 4 == 0 { "other.test" } else { "Some.test" };
        world.ask(&query(&format!("host{number}.{zone}."), Type::A).id(number));
        world.run(Span::from_millis(2));
    }
    let entries = |world: &World| world.engine.cached().1;
    assert_eq!(entries(&world), 400);
    let (mut removed, mut steps, mut next) = (0, 0, Some(0));
    while let Some(step) = next {
        let (count, more) = world.engine.flush_below(&name("sOME.test."), step);
        (removed, steps, next) = (removed + count, steps + 1, more);
    }
    assert!(steps > 1, "a cache of this size takes more than one step");
    assert_eq!((removed, entries(&world)), (300, 100));
    assert_eq!(world.engine.flush_below(&name("."), usize::MAX), (0, None));
    assert_eq!(world.engine.cached_entries(&name("HOST4.other.test."), Some(Type::A), world.now).len(), 1);
    assert_eq!(world.engine.flush(&name("Host4.Other.test.")), 1);
    assert_eq!(world.engine.flush(&name("other.test.")), 0, "names below it stay");
    assert!(world.engine.cached_entries(&name("host4.other.test."), None, world.now).is_empty());
    assert_eq!((world.engine.flush_all(0), entries(&world)), ((99, None), 0));
}
