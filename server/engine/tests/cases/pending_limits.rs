//! Limits of pending client queries, per network and in total, and the eviction when the table is full.

use crate::world::{
    Answer, COOKIE, ClientQuery, Delivery, Reply, Rng, SentQuery, World, cookie_of, deliver, octets, query,
    settings,
};
use engine::{Counter, Span};
use wire::{Flags, Rcode, Type};

fn numbered(number: u16) -> ClientQuery {
    query(&format!("n{number}.example."), Type::A).id(number).port(number)
}

fn is_truncated(answer: &Answer) -> bool {
    answer.flags().contains(Flags::TC)
}

/// Names below `slow.` get no reply, all others get one after 20 ms.
fn upstream(asked: &SentQuery, _: &mut Rng) -> Vec<Delivery> {
    let line = format!("{} 60 IN A 198.51.100.7", asked.name());
    match asked.name().ends_with("slow.") {
        true => vec![],
        false => vec![deliver(asked, Span::from_millis(20), &Reply::answer(&[&line]))],
    }
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
    // Every second query beyond the limit gets an empty answer with TC, the others are dropped.
    for (number, token) in tokens.iter().enumerate() {
        let answers = world.answers_to(*token);
        assert_eq!(answers.len(), usize::from(number >= 10 && number % 2 == 0), "{number}");
        assert!(answers.iter().all(|answer| answer.rcode() == Rcode::NOERROR && is_truncated(answer)));
    }
    assert_eq!(world.count(Counter::SlippedPendingPerClient), 3);
    assert_eq!(world.count(Counter::DroppedPendingPerClient), 2);
    // Over TCP the network has as many places again.
    for number in 0..12 {
        let token = world.ask(&numbered(number).address("2001:db8:c:1::1").tcp(number.into()));
        let answers = world.answers_to(token);
        assert_eq!(answers.len(), usize::from(number >= 10), "{number}");
        assert!(answers.iter().all(|answer| answer.rcode() == Rcode::REFUSED));
    }
    assert_eq!(world.count(Counter::RefusedPendingPerClient), 2);
    // A neighbouring network, and each IPv4 host, have room of their own.
    for from in ["2001:db8:c:2::1", "198.51.100.1", "198.51.100.2"] {
        let token = world.ask(&numbered(100).address(from));
        assert!(world.answers_to(token).is_empty());
    }
    // An answer releases its place.
    world.reply_to(0, &Reply::default());
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
    assert_eq!((world.engine.pending(), world.engine.outbound_queries()), (0, 0));
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
        // Some wait for the AAAA lookup, some for the A lookup, some have a parked A reply, some follow a chain.
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
        assert_eq!((world.engine.pending(), world.engine.outbound_queries()), (0, 0));
    }
}

/// Datagrams with forged source addresses of one network ask for slow names, faster than they time out. Clients of this network
/// that have proved their address are answered as without them, and the others are sent to TCP.
#[test]
fn a_forged_flood_for_slow_names_silences_nobody_who_is_at_the_address() {
    let mut world = World::sized(settings(), 8192, 1);
    world.set_upstreams(upstream);
    let honest = |number: u16| query(&format!("n{number}.example."), Type::A).id(number).port(number);
    let token = world.ask(&honest(1).option((COOKIE, vec![7; 8])));
    world.run(Span::from_millis(50));
    let cookie = octets(&cookie_of(&world.answer_to(token).message()).unwrap()).unwrap();
    let mut forged = 0u32;
    let mut flood = |world: &mut World| {
        for _ in 0..1000 {
            forged += 1;
            let question = query(&format!("f{forged}.slow."), Type::A).id(forged as u16);
            world.send_message(&question.client, &question.bytes());
            if forged.is_multiple_of(10) {
                world.run(Span::from_millis(1));
            }
        }
    };
    (0..10).for_each(|_| flood(&mut world));
    assert!(world.count(Counter::DroppedPendingPerClient) > 1000);
    for number in 0..8 {
        flood(&mut world);
        let over_tcp = world.ask(&honest(100 + number).tcp(number.into()));
        let with_cookie = world.ask(&honest(200 + number).option((COOKIE, cookie.clone())));
        // A client without either repeats its query until it is sent to TCP, here at the second try at the latest.
        let plain = [300, 400].map(|first| world.ask(&honest(first + number)));
        world.run(Span::from_millis(50));
        for token in [over_tcp, with_cookie] {
            assert_eq!(world.answer_to(token).records(wire::Section::Answer).len(), 1, "{number}");
        }
        let answers: Vec<_> = plain.iter().flat_map(|&token| world.answers_to(token)).collect();
        assert!(!answers.is_empty() && answers.iter().all(|answer| answer.rcode() == Rcode::NOERROR));
    }
    assert_eq!(world.sum(|family| family == "refused_total"), 0);
    world.assert_conservation();
}

#[test]
fn neither_forged_queries_nor_proven_ones_push_the_other_kind_below_half_of_the_table() {
    // Each query comes from a customer of its own. The later kind finds the table full.
    for first_is_proven in [false, true] {
        let mut world = World::sized(settings(), 100, 1);
        let mut tokens = [vec![], vec![]];
        for number in 0..300u16 {
            let is_proven = first_is_proven == (number < 150);
            let question = numbered(number).network(u32::from(number) << 8);
            let question = if is_proven { question.tcp(number.into()) } else { question };
            tokens[usize::from(is_proven)].push(world.ask(&question));
        }
        let waiting =
            tokens.map(|tokens| tokens.iter().filter(|&&token| world.answers_to(token).is_empty()).count());
        assert_eq!(waiting, [50, 50]);
        world.assert_conservation();
    }
}

#[test]
fn a_customer_with_a_network_for_each_query_gives_way_to_others() {
    for (client_prefix, networks) in [(56, 256), (48, 300)] {
        let mut world = World::sized(engine::Settings { client_prefix, ..settings() }, 200, 1);
        for number in 0..300u16 {
            world.ask(&numbered(number).network(u32::from(number) % networks));
        }
        assert_eq!((world.engine.pending(), world.count(Counter::RefusedPending)), (200, 100));
        // Others, with a few queries each, are admitted.
        let others = (0..60).map(|number| {
            numbered(number).address(&format!("2001:db8:d:{:x}::1", 0x100 + number / 4 * 0x100))
        });
        let tokens: Vec<_> = others.map(|other| world.ask(&other)).collect();
        assert!(tokens.iter().all(|&token| world.answers_to(token).is_empty()), "{client_prefix}");
        // Without the second level a network with one query has as much as any other.
        world.engine.configure(engine::Settings { client_prefix: 64, ..settings() });
        assert_eq!(world.engine.pending(), 200);
    }
    let mut world = World::sized(engine::Settings { client_prefix: 64, ..settings() }, 200, 1);
    (0..200u16).for_each(|number| _ = world.ask(&numbered(number).network(number.into())));
    let token = world.ask(&numbered(300).address("2001:db8:d::1"));
    assert_eq!(world.answer_to(token).rcode(), Rcode::REFUSED);
}

#[test]
fn in_the_largest_customer_a_network_with_few_queries_does_not_give_way_to_one_with_many() {
    let mut world = World::sized(settings(), 100, 1);
    for number in 0..90u16 {
        world.ask(&numbered(number).network(u32::from(number) % 3));
    }
    let neighbours: Vec<_> =
        (90..110u16).map(|number| world.ask(&numbered(number).network(number.into()))).collect();
    assert!(neighbours.iter().all(|&token| world.answers_to(token).is_empty()));
    // Nor to clients of other customers.
    for number in 0..10u32 {
        let token = world.ask(&numbered(200).network(256 << 8 | number << 8));
        assert!(world.answers_to(token).is_empty());
    }
    assert!(neighbours.iter().all(|&token| world.answers_to(token).is_empty()));
    assert_eq!(world.engine.pending(), 100);
}

#[test]
fn a_link_local_client_is_one_address_at_one_interface() {
    let mut world = World::new(engine::Settings { pending_per_client: 10, ..settings() });
    let from = |number: u16, address: &str, scope: u32| {
        let mut question = numbered(number).address(address);
        question.client.scope = scope;
        question
    };
    for number in 0..12 {
        world.ask(&from(number, "fe80::1", 2));
    }
    assert_eq!(world.engine.pending(), 10);
    for (number, address, scope) in [(20, "fe80::2", 2), (21, "fe80::1", 3)] {
        let token = world.ask(&from(number, address, scope));
        assert!(world.answers_to(token).is_empty(), "{address}%{scope}");
    }
    assert_eq!(world.engine.pending(), 12);
}
