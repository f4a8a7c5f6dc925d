//! Entries that the cache must not store or use although they have not expired: replies to queries from before a flush, and
//! syntheses from older replies.

use super::scenario_parser::{configured, read};
use crate::world::{ClientQuery, Reply, Token, World, deliver, name, query, set_prefixes, settings};
use engine::{Instant, Settings, Span};
use wire::{Rcode, Type};

const OLD: &str = "www.example. 300 IN A 198.51.100.7";
const NEW: &str = "www.example. 300 IN A 198.51.100.8";

fn www(qtype: Type, id: u16) -> ClientQuery {
    query("www.example.", qtype).id(id)
}

fn addresses(world: &World, token: Token) -> Vec<String> {
    world.answer_to(token).records(wire::Section::Answer)
}

/// The three forms of `sixfold ctl flush`.
const FLUSHES: [fn(&mut World); 3] = [
    |world| {
        let mut next = Some(0);
        while let Some(step) = next {
            next = world.engine.flush_all(step).1;
        }
    },
    |world| {
        world.engine.flush(&name("WWW.example."));
    },
    |world| {
        let mut next = Some(0);
        while let Some(step) = next {
            next = world.engine.flush_below(&name("example."), step).1;
        }
    },
];

#[test]
fn a_reply_to_a_query_from_before_a_flush_is_sent_to_the_client_but_not_cached() {
    for flush in FLUSHES {
        for reply in
            [Reply::answer(&[OLD]), Reply::rcode(Rcode::SERVFAIL), Reply::empty("example.", 300, 300)]
        {
            let mut world = World::with_cache(settings(), 1 << 20);
            let token = world.ask(&www(Type::A, 1));
            flush(&mut world);
            world.reply_to_last(&reply);
            assert_eq!(world.answer_to(token).rcode(), reply.rcode);
            let token = world.ask(&www(Type::A, 2));
            assert_eq!(world.asked.len(), 2, "a reply to a query from before the flush was cached");
            world.reply_to_last(&Reply::answer(&[NEW]));
            let cached = world.ask(&www(Type::A, 3));
            assert_eq!(world.asked.len(), 2, "a reply to a query from after the flush was not cached");
            assert_eq!([addresses(&world, token), addresses(&world, cached)], [[NEW], [NEW]]);
        }
    }
}

/// One turn of a worker writes a bounded part of the memory, and clients are answered between two turns.
#[test]
fn a_flush_of_a_large_cache_takes_many_steps_between_which_clients_are_answered() {
    // 12.8 MiB of index, 104,857 buckets.
    let mut world = World::with_cache(settings(), 128 << 20);
    world.set_upstreams(|asked, _| {
        let line = format!("{} 300 IN A 198.51.100.7", asked.name());
        vec![deliver(asked, Span::ZERO, &Reply::answer(&[&line]))]
    });
    let host = |number: u16| query(&format!("host{number}.example."), Type::A).id(number);
    for number in 0..2_000 {
        world.ask(&host(number));
        world.run(Span::from_millis(1));
    }
    assert_eq!((world.asked.len(), world.engine.cached().1), (2_000, 2_000));
    let (mut next, mut steps, mut removed) = (Some(0), 0, 0);
    while let Some(step) = next {
        let (count, more) = world.engine.flush_all(step);
        assert!(count < 400, "{count} entries in one step");
        (next, steps, removed) = (more, steps + 1, removed + count);
        let token = world.ask(&query("other.example.", Type::A).id(steps));
        world.run(Span::from_millis(1));
        assert_eq!(world.answer_to(token).rcode(), Rcode::NOERROR);
    }
    assert!(steps >= 10, "{steps}");
    assert!((2_000..=2_001).contains(&removed), "the other name may be among them: {removed}");
    let before = world.asked.len();
    for number in 0..2_000 {
        world.ask(&host(number).id(number + 5_000));
        world.run(Span::from_millis(1));
    }
    assert_eq!(world.asked.len(), before + 2_000, "none is left");
}

#[test]
fn the_memory_of_a_cache_that_is_empty_after_a_flush_is_free() {
    let mut world = World::with_cache(settings(), 1 << 20);
    world.ask(&www(Type::A, 1));
    world.reply_to_last(&Reply::answer(&[OLD]));
    assert!(world.engine.cached().0 > 0);
    assert_eq!(world.engine.flush_all(0), (1, None));
    assert_eq!(world.engine.cached(), (0, 0));
}

#[test]
fn a_refresh_from_before_a_flush_is_not_cached() {
    for flush in FLUSHES {
        let mut world = World::with_cache(settings(), 1 << 20);
        world.ask(&www(Type::A, 1));
        world.reply_to_last(&Reply::answer(&[OLD]));
        world.run(Span::from_secs(295));
        world.ask(&www(Type::A, 2));
        assert_eq!(world.asked.len(), 2, "a refresh");
        flush(&mut world);
        world.reply_to_last(&Reply::answer(&[OLD]));
        let token = world.ask(&www(Type::A, 3));
        assert_eq!(world.asked.len(), 3);
        world.reply_to_last(&Reply::answer(&[NEW]));
        assert_eq!(addresses(&world, token), [NEW]);
    }
}

#[test]
fn entries_synthesized_under_other_settings_are_not_listed() {
    let mut world = World::with_cache(settings(), 1 << 20);
    world.set_replies(Span::from_millis(1), |asked| match asked.qtype() {
        Type::AAAA => Reply::empty("example.", 300, 300),
        _ => Reply::answer(&[OLD]),
    });
    let shown = |world: &World| {
        let entries = world.engine.cached_entries(&name("www.example."), None, world.now);
        let mut shown: Vec<_> = entries.iter().map(|entry| (entry.qtype, entry.is_synthesized)).collect();
        shown.sort_by_key(|&(qtype, is_synthesized)| (qtype.0, is_synthesized));
        shown
    };
    let lookups = [(Type::A, false), (Type::AAAA, false)];
    let all = [lookups[0], lookups[1], (Type::AAAA, true)];
    for prefix in ["2001:db8:64::/96", "2001:db8:65::/96"] {
        let mut settings = settings();
        set_prefixes(&mut settings.dns64, prefix);
        world.engine.configure(settings);
        for id in 0..2 {
            world.ask(&www(Type::AAAA, id));
            world.run(Span::from_millis(5));
        }
        assert_eq!(shown(&world), all, "{prefix}");
        let settings = world.engine.settings().clone();
        world.engine.configure(settings);
        assert_eq!(shown(&world), lookups, "{prefix}");
    }
}

/// A popular name whose AAAA lookup has a long TTL and whose A lookup has a short one; one of them fails from some time on. Only the
/// other lookup is refreshed, and not at every query for the answer synthesized from both.
#[test]
fn a_lookup_whose_refresh_fails_causes_no_query_storm_for_the_other_lookup() {
    for failing in [Type::A, Type::AAAA] {
        let mut world = World::with_cache(settings(), 1 << 20);
        world.set_replies(Span::from_millis(5), move |asked| {
            let reply = match asked.qtype() {
                Type::AAAA => Reply::empty("example.", 300, 300),
                _ => Reply::answer(&[&format!("{} 20 IN A 198.51.100.7", asked.name())]),
            };
            let fails = asked.qtype() == failing && asked.at > Instant(1_000_000_000);
            if fails { Reply::rcode(Rcode::SERVFAIL) } else { reply }
        });
        for id in 0..12_000 {
            let token = world.ask(&www(Type::AAAA, id));
            world.run(Span::from_millis(50));
            assert_eq!(world.answer_to(token).addresses(), ["2001:db8:64::c633:6407"]);
        }
        // 10 minutes. The lookup that fails is queried every half a minute at most; the A lookup every 18 s if it does not fail, the
        // AAAA lookup every 270 s.
        let asked = |qtype| world.asked.iter().filter(|asked| asked.qtype() == qtype).count();
        let most = if failing == Type::A { [22, 4] } else { [35, 13] };
        let found = [Type::A, Type::AAAA].map(asked);
        assert!(found[0] <= most[0] && found[1] <= most[1], "{failing:?} fails: {found:?}, not {most:?}");
    }
}

/// A cache so small that a flood evicts both lookups, but not the synthesized answer, which is queried often.
#[test]
fn a_new_reply_removes_the_synthesis_made_from_an_evicted_reply() {
    let rule = "set dns64.rule clients 2001:db8:c:1::/64 prefixes 2001:db8:66::/96";
    let statements = read(rule).expect(rule);
    let settings: Settings = configured(&statements, statements.len()).expect(rule);
    let mut world = World::with_cache(settings, 40_000);
    let has_address = std::rc::Rc::new(std::cell::Cell::new(false));
    let state = has_address.clone();
    world.set_replies(Span::from_millis(1), move |asked| match (asked.name().as_str(), asked.qtype()) {
        ("www.example.", Type::AAAA) if state.get() => {
            Reply::answer(&["www.example. 300 IN AAAA 2001:db8:1::7"])
        }
        ("www.example.", Type::AAAA) => Reply::empty("example.", 300, 300),
        (owner, _) => Reply::answer(&[&format!("{owner} 300 IN A 198.51.100.7")]),
    });
    let mut id = 0;
    let mut get = |world: &mut World, question: ClientQuery| {
        id += 1;
        let token = world.ask(&question.id(id));
        world.run(Span::from_millis(3));
        world.answer_to(token).addresses()
    };
    let are_synthesized = |world: &World| -> Vec<bool> {
        let entries = world.engine.cached_entries(&name("www.example."), Some(Type::AAAA), world.now);
        entries.iter().map(|entry| entry.is_synthesized).collect()
    };
    let synthesized = ["2001:db8:64::c633:6407"];
    for round in 0..3_000u32 {
        assert_eq!(get(&mut world, www(Type::AAAA, 0)), synthesized);
        if are_synthesized(&world) == [true] {
            break;
        }
        // Twice, so that they are promoted to the main queue.
        for _ in 0..2 {
            get(&mut world, query(&format!("r{round}.example."), Type::A));
        }
    }
    assert_eq!(are_synthesized(&world), [true], "the lookups are evicted, the synthesis is not");
    has_address.set(true);
    // A client with a DNS64 rule of its own does not get the cached synthesis: both lookups are queried.
    let real = ["2001:db8:1::7"];
    assert_eq!(get(&mut world, www(Type::AAAA, 0).network(1)), real);
    assert_eq!(get(&mut world, www(Type::AAAA, 0)), real, "nor do other clients get it any more");
}
