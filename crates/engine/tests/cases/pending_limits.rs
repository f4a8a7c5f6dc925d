//! Limits of pending client queries, per network and in total, and the eviction when the table is full.

use crate::world::{ClientQuery, Reply, World, query, settings};
use engine::Counter;
use wire::{Rcode, Type};

fn numbered(number: u16) -> ClientQuery {
    query(&format!("n{number}.example."), Type::A).id(number).port(number)
}

#[test]
fn one_network_has_no_more_pending_queries_than_allowed() {
    let mut settings = settings();
    settings.pending_per_client = 10;
    let mut world = World::new(settings);
    // The addresses of one /64 count as one client.
    let tokens: Vec<_> = (0..15)
        .map(|number| world.ask(&numbered(number).address(&format!("2001:db8:c:1::{number:x}"))))
        .collect();
    for (number, token) in tokens.iter().enumerate() {
        let answers = world.answers_to(*token);
        assert_eq!(answers.len(), usize::from(number >= 10), "{number}");
        assert!(answers.iter().all(|answer| answer.rcode() == Rcode::REFUSED));
    }
    assert_eq!(world.count(Counter::RefusedPendingPerClient), 5);
    // A neighbouring network, and each IPv4 host, have room of their own.
    for from in ["2001:db8:c:2::1", "198.51.100.1", "198.51.100.2"] {
        let token = world.ask(&numbered(100).address(from));
        assert!(world.answers_to(token).is_empty());
    }
    // An answer releases its place.
    let asked = world.asked[0].clone();
    world.reply(asked.link, &Reply::default().to(&asked.bytes));
    let token = world.ask(&numbered(20).address("2001:db8:c:1::1"));
    assert!(world.answers_to(token).is_empty());
    world.assert_conservation();
}

#[test]
fn when_the_table_is_full_the_newest_query_of_the_largest_network_is_evicted() {
    let mut world = World::sized(settings(), 100, 1);
    let large: Vec<_> = (0..90).map(|number| world.ask(&numbered(number).network(1))).collect();
    let small: Vec<_> = (90..100).map(|number| world.ask(&numbered(number).network(2))).collect();
    assert_eq!(world.engine.pending(), 100);
    // A further query of the large network is refused at once.
    let refused = world.ask(&numbered(200).network(1));
    assert_eq!(world.answer_to(refused).rcode(), Rcode::REFUSED);
    // Queries of other networks are admitted, and the newest ones of the large network are refused.
    let newcomers: Vec<_> =
        (0..30).map(|number| world.ask(&numbered(number).network(10 + number as u32))).collect();
    assert_eq!(world.engine.pending(), 100);
    for token in newcomers.iter().chain(&small) {
        assert!(world.answers_to(*token).is_empty(), "a client of a small network was refused");
    }
    for (number, token) in large.iter().enumerate() {
        let answers = world.answers_to(*token);
        assert_eq!(answers.len(), usize::from(number >= 60), "{number}");
        assert!(answers.iter().all(|answer| answer.rcode() == Rcode::REFUSED));
    }
    assert_eq!(world.count(Counter::RefusedPending), 31);
    world.assert_conservation();
    // The upstream queries of evicted client queries continue, and replies to them are not suspected forgeries.
    for asked in world.asked.clone() {
        world.reply(asked.link, &Reply::default().to(&asked.bytes));
    }
    assert_eq!((world.engine.pending(), world.engine.flights()), (0, 0));
    assert_eq!(world.sum(|family| family == "forgery_suspects_total"), 0);
}

#[test]
fn networks_with_equal_shares_do_not_evict_each_other() {
    let mut world = World::sized(settings(), 50, 1);
    for number in 0..50 {
        world.ask(&numbered(number).network(u32::from(number)));
    }
    let token = world.ask(&numbered(60).network(60));
    assert_eq!(world.answer_to(token).rcode(), Rcode::REFUSED);
    assert_eq!(world.engine.pending(), 50);
}

#[test]
fn queries_evicted_at_any_stage_leave_no_state() {
    for lookup in [engine::settings::Lookup::Sequential, engine::settings::Lookup::Parallel] {
        let mut settings = settings();
        settings.dns64.lookup = lookup;
        let mut world = World::sized(settings, 40, 1);
        for number in 0..40 {
            world.ask(&ClientQuery { qtype: Type::AAAA, ..numbered(number) }.network(1));
        }
        // Some wait for the AAAA leg, some for the A leg, some have a parked A reply, some follow a chain.
        for (place, asked) in world.asked.clone().into_iter().enumerate() {
            let reply = match (asked.qtype(), place % 3) {
                (_, 0) => continue,
                (Type::AAAA, 1) => {
                    Reply::answer(&[&format!("{} 60 IN CNAME far{place}.test.", asked.name())])
                }
                (Type::AAAA, _) => Reply::default(),
                _ => Reply::answer(&[&format!("{} 60 IN A 198.51.100.7", asked.name())]),
            };
            world.reply(asked.link, &reply.to(&asked.bytes));
        }
        let waiting = world.engine.pending();
        for number in 0..40 {
            world.ask(&numbered(number).network(100 + u32::from(number)));
        }
        assert!(waiting > 10 && world.engine.pending() == 40);
        world.run(engine::Span::from_secs(20));
        assert_eq!(world.engine.pending(), 0);
        world.assert_conservation();
        // The tables are in order for later queries.
        world.set_upstreams(|asked, _| {
            let lines = [format!("{} 60 IN A 198.51.100.7", asked.name())];
            let reply = match asked.qtype() {
                Type::A => Reply::answer(&[&lines[0]]),
                _ => Reply::default(),
            };
            vec![crate::world::deliver(asked, engine::Span::from_millis(1), &reply)]
        });
        world.run(engine::Span::from_secs(20));
        let tokens: Vec<_> = (0..40)
            .map(|number| {
                world.ask(
                    &ClientQuery { qtype: Type::AAAA, ..numbered(number) }.network(7).port(9000 + number),
                )
            })
            .collect();
        world.run(engine::Span::from_secs(1));
        for token in tokens {
            assert_eq!(world.answer_to(token).addresses(), ["2001:db8:64::c633:6407"]);
        }
        assert_eq!((world.engine.pending(), world.engine.flights()), (0, 0));
    }
}
