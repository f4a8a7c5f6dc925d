//! CNAME chains over several replies.

use crate::world::{Reply, World, query, record, settings};
use engine::{Counter, Span, Transport};
use wire::{Rcode, Type};

#[test]
fn a_chain_too_large_to_store_is_not_followed_and_shows_no_data_of_other_chains() {
    let mut settings = settings();
    settings.upstream.transport = Transport::Tcp;
    let mut world = World::new(settings);
    // The chain of another client was followed before.
    world.ask(&query("before.example.", Type::AAAA).network(1));
    for lines in
        [&["before.example. 60 IN CNAME secret.test."][..], &["secret.test. 60 IN AAAA 2001:db8:1::1"]]
    {
        world.reply_to_last(&Reply::answer(lines));
    }
    let token = world.ask(&query("www.example.", Type::AAAA).network(2));
    let mut large = Reply::answer(&["www.example. 60 IN CNAME far.test."]);
    for number in 0..400 {
        large.sections[0].push(record(&format!("www.example. 60 IN TXT filler-number-{number}")));
    }
    world.reply_to_last(&large);
    let answer = world.answer_to(token);
    assert_eq!((answer.rcode(), answer.records(wire::Section::Answer).len()), (Rcode::SERVFAIL, 0));
}

#[test]
fn a_chain_over_many_replies_is_followed_up_to_the_limit() {
    let mut world = World::new(settings());
    let token = world.ask(&query("n0.example.", Type::AAAA));
    for hop in 0..engine::limits::HOPS {
        let asked = world.asked.last().unwrap();
        assert_eq!((asked.name(), asked.qtype()), (format!("n{hop}.example."), Type::AAAA));
        world.reply_to_last(&Reply::answer(&[&format!("n{hop}.example. 60 IN CNAME n{}.example.", hop + 1)]));
    }
    let last = engine::limits::HOPS;
    world.reply_to_last(&Reply::answer(&[&format!("n{last}.example. 60 IN CNAME beyond.example.")]));
    // Aliases without an end are no answer, and say nothing of the absence of AAAA records.
    let answer = world.answer_to(token);
    assert_eq!((answer.rcode(), answer.records(wire::Section::Answer).len()), (Rcode::SERVFAIL, 0));
    assert_eq!(world.count(Counter::CnameHops), engine::limits::HOPS as u64);
}

#[test]
fn the_number_of_chains_followed_at_a_time_is_limited() {
    let mut world = World::sized(settings(), 4096, 1);
    let count = engine::limits::CHASES as u32 + 50;
    let tokens: Vec<_> = (0..count)
        .map(|number| {
            let token = world.ask(
                &query(&format!("n{number}.example."), Type::AAAA)
                    .address(&format!("2001:db8:{number:x}::1")),
            );
            world.reply_to_last(&Reply::answer(&[&format!(
                "n{number}.example. 60 IN CNAME far{number}.test."
            )]));
            token
        })
        .collect();
    assert_eq!(world.count(Counter::CnameHops), engine::limits::CHASES as u64);
    world.run(Span::from_secs(20));
    for token in tokens {
        assert_eq!(world.answer_to(token).rcode(), Rcode::SERVFAIL);
    }
    assert_eq!(world.engine.pending(), 0);
    // The places are free again.
    let token = world.ask(&query("again.example.", Type::AAAA));
    world.reply_to_last(&Reply::answer(&["again.example. 60 IN CNAME far.test."]));
    world.reply_to_last(&Reply::answer(&["far.test. 60 IN AAAA 2001:db8:1::1"]));
    assert_eq!(world.answer_to(token).addresses(), ["2001:db8:1::1"]);
}

#[test]
fn one_network_leaves_room_for_the_chains_of_others() {
    let mut world = World::sized(settings(), 4096, 1);
    let name = |network: u32, number: u32| {
        let nibbles =
            format!("{number:08x}").chars().rev().map(|nibble| format!("{nibble}.")).collect::<String>();
        (query(&format!("{nibbles}0.0.0.0.0.0.0.0.0.0.0.0.4.6.0.0.8.b.d.0.1.0.0.2.ip6.arpa."), Type::PTR))
            .network(network)
            .id(number as u16)
    };
    // As many as one network may have pending.
    for number in 0..1000 {
        world.ask(&name(1, number));
    }
    assert_eq!(world.engine.chases(), engine::limits::CHASES / 3 + 1);
    // Further networks of the customer get a part of the rest, so the customer has half of all at most.
    for network in 2..100 {
        for number in 0..10 {
            world.ask(&name(network, 1000 + 10 * network + number));
        }
    }
    let of_customer = world.engine.chases();
    assert!((400..=engine::limits::CHASES / 2).contains(&of_customer), "{of_customer}");
    // A network of another customer gets a third of the rest.
    for number in 2000..3000 {
        world.ask(&name(256, number));
    }
    let rest = engine::limits::CHASES - of_customer;
    assert!((world.engine.chases() - of_customer).abs_diff(rest / 3) <= 1, "{}", world.engine.chases());
    let asked = world.asked.len();
    let token = world.ask(&name(512, 4000));
    assert_eq!(world.asked.len(), asked + 1);
    world.reply_to_last(&Reply::answer(&["160.15.0.0.in-addr.arpa. 60 IN PTR www.example."]));
    assert_eq!(world.answer_to(token).records(wire::Section::Answer).len(), 2);
    world.run(Span::from_secs(20));
    assert_eq!((world.engine.pending(), world.engine.chases()), (0, 0));
    // Places that were released no longer count.
    let token = world.ask(&name(1, 5000));
    world.reply_to_last(&Reply::answer(&["136.19.0.0.in-addr.arpa. 60 IN PTR www.example."]));
    assert_eq!(world.answer_to(token).records(wire::Section::Answer).len(), 2);
}

#[test]
fn a_chain_of_twenty_aliases_in_one_reply_exceeds_the_limit() {
    let mut world = World::new(settings());
    let token = world.ask(&query("n0.example.", Type::AAAA));
    let lines: Vec<String> =
        (0..20).map(|n| format!("n{n}.example. 60 IN CNAME n{}.example.", n + 1)).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    world.reply_to_last(&Reply::answer(&lines));
    let answer = world.answer_to(token);
    assert_eq!((answer.rcode(), answer.records(wire::Section::Answer).len()), (Rcode::SERVFAIL, 0));
}
