//! Connections to upstreams: TLS in place of all other transports, and connections that end with questions on them.

use crate::world::{Reply, World, over, query, with_forwarders};
use engine::{Machine, Span, Transport, Unreachable, Untrusted};
use wire::{Rcode, Type};

#[test]
fn a_forwarder_with_tls_is_asked_over_tls_alone() {
    let mut world = World::new(over(Transport::Tls, with_forwarders("192.0.2.53")));
    let token = world.ask(&query("www.example.", Type::A));
    let first = world.asked[0].clone();
    assert_eq!(first.transport, Transport::Tls);
    // Neither a reply that looks forged nor a truncated one leads to a query over UDP or TCP.
    let mut forged = Reply::default().to(&first.bytes);
    forged[1] ^= 1;
    world.reply(first.link, &forged);
    world.run(Span::from_millis(1_500));
    world.reply_to_last(&Reply::default());
    assert_eq!(world.answer_to(token).rcode(), Rcode::NOERROR);
    assert!(world.asked.iter().all(|asked| asked.transport == Transport::Tls));
}

/// Ends the newest connection, because its upstream could not be authenticated.
fn distrust(world: &mut World, reason: Untrusted) {
    let link = world.asked.last().unwrap().link;
    world.outbox.links.remove(&link);
    world.engine.on_link_failure(world.now, link, Unreachable::Untrusted(reason), &mut world.outbox);
    world.poll();
}

/// RCODE, and code and text of the extended errors, of the answer to a query.
fn failure(world: &World, token: crate::world::Token) -> (Rcode, Vec<(u16, String)>) {
    let answer = world.answer_to(token);
    let text = |(code, text): (u16, &[u8])| (code, String::from_utf8(text.to_vec()).unwrap());
    let errors = answer.message().opt().map(|opt| opt.ede().map(text).collect());
    (answer.rcode(), errors.unwrap_or_default())
}

#[test]
fn a_certificate_that_does_not_fit_ends_the_question_at_once_with_the_reason() {
    for (reason, text) in [
        (Untrusted::Name, "the certificate of an upstream is for another name"),
        (Untrusted::Expired, "the certificate of an upstream is expired or not yet valid"),
        (Untrusted::Issuer, "the certificate of an upstream is from an unknown issuer"),
        (Untrusted::Pin, "the key of an upstream has another pin"),
        (Untrusted::Certificate, "the certificate of an upstream is not valid"),
        (Untrusted::Protocol, "no TLS handshake with an upstream"),
    ] {
        let mut world = World::new(over(Transport::Tls, with_forwarders("192.0.2.53")));
        // Of the largest query and the smallest limit, the text still has room.
        let name = format!("{0}.{0}.{0}.{1}.", "n".repeat(63), "n".repeat(60));
        let token = world.ask(&query(&name, Type::TXT).edns(512, true).option((10, vec![7; 8])));
        distrust(&mut world, reason);
        assert_eq!(failure(&world, token), (Rcode::SERVFAIL, vec![(23, text.to_owned())]));
        assert_eq!(world.asked.len(), 1);
        // Both lookups of an AAAA query fail. A client without EDNS gets the RCODE alone.
        let token = world.ask(&query("www.example.", Type::AAAA).edns(1232, false));
        distrust(&mut world, reason);
        distrust(&mut world, reason);
        assert_eq!(failure(&world, token), (Rcode::SERVFAIL, vec![(23, text.to_owned())]));
        let token = world.ask(&query("other.example.", Type::TXT));
        distrust(&mut world, reason);
        assert_eq!(failure(&world, token), (Rcode::SERVFAIL, vec![]));
    }
}

#[test]
fn the_reason_is_that_of_the_latest_connection() {
    let mut world = World::new(over(Transport::Tls, with_forwarders("192.0.2.53")));
    world.ask(&query("n1.example.", Type::TXT).edns(1232, false));
    distrust(&mut world, Untrusted::Expired);
    // The next connection takes the query, and has no reply to it.
    world.set_upstreams(|_, _| vec![]);
    let token = world.ask(&query("n2.example.", Type::TXT).edns(1232, false).id(2));
    world.run(Span::from_secs(5));
    assert_eq!(failure(&world, token), (Rcode::SERVFAIL, vec![(23, String::new())]));
}

#[test]
fn another_identity_of_a_forwarder_takes_over_no_connection() {
    let mut world = World::new(over(Transport::Tls, with_forwarders("192.0.2.53")));
    world.set_replies(Span::from_millis(5), |_| Reply::default());
    world.ask_and_wait(1, Span::from_millis(100));
    let mut settings = over(Transport::Tls, with_forwarders("192.0.2.53"));
    settings.upstream.tls[0].identity = 2;
    world.engine.configure(settings);
    world.ask_and_wait(2, Span::from_millis(100));
    assert_ne!(world.asked[0].link, world.asked[1].link);
    assert_eq!(world.engine.open_links(), 1);
}

#[test]
fn the_questions_of_a_restarting_server_wait_until_it_accepts_connections() {
    for transport in [Transport::Tls, Transport::Tcp] {
        let settings = over(transport, with_forwarders("192.0.2.53"));
        let mut world = World::new(settings);
        world.set_replies(Span::from_millis(5), |_| Reply::default());
        let token = world.ask_and_wait(1, Span::from_millis(100));
        assert_eq!(world.answer_to(token).rcode(), Rcode::NOERROR);
        // The server stops with ten questions on the connection, and refuses connections for two seconds.
        world.set_upstreams(|_, _| vec![]);
        let tokens: Vec<_> = (10..20)
            .map(|number| world.ask(&query(&format!("n{number}.example."), Type::A).id(number)))
            .collect();
        world.outbox.no_links = true;
        let link = world.asked.last().unwrap().link;
        world.fail(link);
        world.run(Span::from_secs(2));
        let asked_meanwhile = world.ask(&query("meanwhile.example.", Type::A).id(30));
        world.run(Span::from_millis(300));
        world.outbox.no_links = false;
        world.set_replies(Span::from_millis(5), |_| Reply::default());
        world.run(Span::from_millis(500));
        for token in tokens.into_iter().chain([asked_meanwhile]) {
            assert_eq!(world.answer_to(token).rcode(), Rcode::NOERROR);
        }
        // It stops for good: the questions fail while their clients still wait, and later ones at once.
        world.outbox.no_links = true;
        let link = *world.outbox.links.keys().next().unwrap();
        world.fail(link);
        let token = world.ask(&query("late.example.", Type::A).id(40));
        world.run(Span::from_millis(4_500));
        assert_eq!(world.answer_to(token).rcode(), Rcode::SERVFAIL);
        let token = world.ask(&query("later.example.", Type::A).id(41));
        world.run(Span::from_millis(1_200));
        assert_eq!(world.answer_to(token).rcode(), Rcode::SERVFAIL);
    }
}

#[test]
fn an_idle_connection_is_closed_before_the_upstream_closes_it() {
    for transport in [Transport::Tls, Transport::Tcp] {
        let settings = over(transport, with_forwarders("192.0.2.53"));
        let mut world = World::new(settings);
        world.set_replies(Span::from_millis(5), |_| Reply::default());
        world.ask_and_wait(1, Span::from_secs(7));
        world.ask_and_wait(2, Span::from_secs(7));
        assert_eq!((world.engine.open_links(), world.outbox.links.len()), (1, 1));
        // 8 s after the last reply.
        world.run(Span::from_secs(2));
        assert_eq!((world.engine.open_links(), world.outbox.links.len()), (0, 0));
        world.ask_and_wait(3, Span::from_millis(100));
        assert_eq!(world.asked[0].link, world.asked[1].link);
        assert_ne!(world.asked[1].link, world.asked[2].link);
        assert_eq!(world.engine.open_links(), 1);
    }
}
