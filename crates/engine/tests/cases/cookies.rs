//! Cookies of clients (RFC 7873, RFC 9018) where octets count: a message that asks for a cookie alone, and answers that fit with
//! one. How they are learned and renewed is told in `scenarios/cookie-*.txt`.

use crate::world::{COOKIE, Reply, World, client, cookie_of, deliver, forwarders, octets, query, settings};
use engine::{Counter, Span, Transport};
use wire::{Flags, Rcode, Section, Type, header};

/// Of RFC 9018 appendix A.1.
const BROUGHT: &str = "2464c4abcf10c957";
const LEARNED: &str = "2464c4abcf10c957010000005cf79f111f8130c3eee29480";
const ADDRESS: &str = "198.51.100.100";

/// A message without a question, with an OPT record that has these octets of options.
fn alone(options: &[u8]) -> Vec<u8> {
    let mut message = vec![0x12, 0x34, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    message.extend([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, options.len() as u8]);
    message.extend(options);
    message
}

fn option(digits: &str) -> Vec<u8> {
    let data = octets(digits).expect("hexadecimal digits");
    [&[0, COOKIE as u8, 0, data.len() as u8][..], &data].concat()
}

/// RFC 7873 section 5.4.
#[test]
fn a_message_without_a_question_gets_a_cookie_and_nothing_else() {
    let wrong = format!("{}00", &LEARNED[..46]);
    for (brought, rcode) in [(BROUGHT, Rcode::NOERROR), (LEARNED, Rcode::NOERROR), (&wrong, Rcode::BADCOOKIE)]
    {
        let mut world = World::new(settings());
        world.send_message(&client(ADDRESS, 5000), &alone(&option(brought)));
        let answer = &world.answers[0].bytes;
        let opt = wire::sole_opt(answer).expect("an OPT record and nothing else");
        let code = u16::from(opt.extended_rcode()) << 4 | header::flags(answer).rcode().0;
        assert_eq!((header::id(answer), code), (0x1234, rcode.0));
        assert!(header::flags(answer).contains(Flags::QR));
        let cookies: Vec<_> = opt.options().filter(|(code, _)| *code == COOKIE).collect();
        assert_eq!(cookies, [(COOKIE, &octets(LEARNED).unwrap()[..])]);
        assert!(world.asked.is_empty());
        world.assert_conservation();
    }
}

#[test]
fn a_message_without_a_question_and_without_a_cookie_is_a_format_error() {
    let no_version = {
        let mut message = alone(&option(BROUGHT));
        message[18] = 1;
        message
    };
    let malformed = option("2464");
    for message in [alone(&[]), alone(&[0, 8, 0, 0]), alone(&malformed), no_version] {
        let mut world = World::new(settings());
        world.send_message(&client(ADDRESS, 5000), &message);
        assert_eq!(header::flags(&world.answers[0].bytes).rcode(), Rcode::FORMERR);
        world.assert_conservation();
    }
    let mut off = settings();
    off.cookies.enabled = false;
    let mut world = World::new(off);
    world.send_message(&client(ADDRESS, 5000), &alone(&option(BROUGHT)));
    assert_eq!(header::flags(&world.answers[0].bytes).rcode(), Rcode::FORMERR);
    // Who may not ask gets no cookie either.
    let mut closed = settings();
    closed.allow.0.clear();
    let mut world = World::new(closed);
    world.send_message(&client(ADDRESS, 5000), &alone(&option(BROUGHT)));
    assert_eq!(header::flags(&world.answers[0].bytes).rcode(), Rcode::REFUSED);
}

/// Answers of every length around the client's limit: out of the cache and past it, each fits with its cookie, or says that
/// it was cut, and has its cookie still.
#[test]
fn an_answer_with_a_cookie_fits_the_size_of_the_client() {
    for records in 20..40 {
        let lines: Vec<_> =
            (0..records).map(|number| format!("a.example. 60 IN A 198.51.100.{number}")).collect();
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        let reply = Reply::answer(&lines);
        let mut world = World::with_cache(settings(), 1_000_000);
        world.set_upstreams(move |asked, _| vec![deliver(asked, Span::from_millis(1), &reply)]);
        for (id, edns) in (1..).zip([512, 512, 512, 513, 540]) {
            let token = world.ask(
                &query("a.example", Type::A)
                    .address(ADDRESS)
                    .id(id)
                    .edns(edns, false)
                    .option((COOKIE, octets(BROUGHT).unwrap())),
            );
            world.run(Span::from_millis(2));
            let answer = world.answer_to(token);
            assert!(answer.bytes.len() <= usize::from(edns), "{records}, {edns}: {}", answer.bytes.len());
            assert_eq!(cookie_of(&answer.message()).as_deref(), Some(LEARNED));
            let whole = 12 + 15 + 16 * records + 11 + 28 <= usize::from(edns);
            assert_eq!(answer.flags().contains(Flags::TC), !whole, "{records}, {edns}");
        }
        assert!(world.count(Counter::CacheHitsPositive) >= 4);
    }
}

/// Somebody who sees port, ID and letter case of every question, but not the cookie, and is always faster than the upstream:
/// once the upstream has returned a cookie, none of his replies is believed, whatever cookie he puts into them. The real ones
/// come over TCP, and nothing that he sends makes the engine forget what it knows.
#[test]
fn a_forger_who_knows_all_but_the_cookie_wins_nothing() {
    let mut world = World::with_cache(settings(), 1_000_000);
    world.set_upstreams(|asked, rng| {
        let real = Reply::answer(&[&format!("{} 60 IN A 198.51.100.7", asked.name())]);
        let real = deliver(asked, Span::from_millis(5), &real.cookie("0102030405060708"));
        if asked.transport == Transport::Tcp || asked.name().starts_with("first") {
            return vec![real];
        }
        let false_answer = Reply::answer(&[&format!("{} 60 IN A 192.0.2.66", asked.name())]);
        let forged = match rng.below(8) {
            0 => false_answer,
            1 => Reply { edns: false, ..false_answer },
            2 => Reply { wrong_cookie: true, ..false_answer.cookie("0102030405060708") },
            // A guess, a cookie cut short, one that is empty, two of them.
            3 => false_answer.option((COOKIE, (0..24).map(|_| rng.below(256) as u8).collect())),
            4 => false_answer.option((COOKIE, vec![0; 7])),
            5 => false_answer.option((COOKIE, vec![])).option((COOKIE, vec![0; 16])),
            6 => Reply { flags: Flags::TC, ..false_answer },
            _ => Reply::rcode([Rcode::FORMERR, Rcode::SERVFAIL, Rcode::BADCOOKIE][rng.below(3) as usize]),
        };
        vec![deliver(asked, Span::from_millis(1), &forged), real]
    });
    let first = world.ask(&query("first.example", Type::A));
    world.run(Span::from_secs(1));
    assert_eq!(world.answer_to(first).records(Section::Answer), ["first.example. 60 IN A 198.51.100.7"]);
    for number in 0..10_000u16 {
        let question = query(&format!("n{number}.example"), Type::A).id(number);
        let token = world.ask(&question);
        world.run(Span::from_millis(20));
        let expected = format!("n{number}.example. 60 IN A 198.51.100.7");
        assert_eq!(world.answer_to(token).records(Section::Answer), [expected]);
    }
    assert_eq!(world.count(Counter::SuspectCookie), 10_000);
    assert_eq!(world.count(Counter::UpstreamCookieLost) + world.count(Counter::UpstreamCookieRefused), 0);
    world.assert_conservation();
}

/// Whoever answers without having seen the question cannot have the engine expect cookies of an upstream that has none.
#[test]
fn a_forged_cookie_does_not_change_the_state_of_a_server() {
    let mut world = World::new(settings());
    for number in 0..100u16 {
        let question = query(&format!("n{number}.example"), Type::A).id(number);
        let token = world.ask(&question);
        let asked = world.asked.last().unwrap().clone();
        let reply = Reply::answer(&[&format!("{} 60 IN A 192.0.2.66", asked.name())]);
        if number % 2 == 0 {
            let forged = Reply { wrong_cookie: true, ..reply.cookie("0102030405060708") };
            world.reply(asked.link, &forged.to(&asked.bytes));
            assert!(world.answers_to(token).is_empty());
            let again = world.asked.last().unwrap().clone();
            assert_eq!(again.transport, Transport::Tcp);
            world.reply(again.link, &Reply::rcode(Rcode::NXDOMAIN).to(&again.bytes));
        } else {
            // The upstream, which has no cookies.
            assert_eq!(asked.transport, Transport::Udp);
            world.reply(asked.link, &reply.to(&asked.bytes));
        }
        assert_eq!(world.answers_to(token).len(), 1);
    }
    assert_eq!(world.count(Counter::SuspectCookie), 50);
}

/// An upstream that is wrong about cookies over TCP, where nobody forges, is asked without one.
#[test]
fn an_upstream_that_returns_the_wrong_cookie_over_tcp_too_is_asked_without_one() {
    let mut world = World::new(settings());
    world.set_upstreams(|asked, _| {
        let reply = Reply::answer(&[&format!("{} 60 IN A 198.51.100.7", asked.name())]);
        let wrong = cookie_of(&asked.message()).is_some();
        let reply =
            if wrong { Reply { wrong_cookie: true, ..reply.cookie("01020304050607") } } else { reply };
        vec![deliver(asked, Span::from_millis(1), &reply)]
    });
    for number in 0..10u16 {
        let token = world.ask(&query(&format!("n{number}.example"), Type::A).id(number));
        world.run(Span::from_secs(1));
        assert_eq!(world.answer_to(token).rcode(), Rcode::NOERROR);
    }
    assert_eq!(world.asked.len(), 3 + 9, "once with, twice in vain; then without");
    assert_eq!((world.engine.pending(), world.engine.flights()), (0, 0));
}

/// Client cookies differ between upstreams, and stay the same from port to port.
#[test]
fn every_upstream_sees_a_client_cookie_of_its_own() {
    let mut two = settings();
    two.upstream.forwarders = forwarders("192.0.2.53 192.0.2.54");
    two.upstream.select = engine::settings::Select::Random;
    let mut world = World::new(two);
    world
        .set_upstreams(|asked, _| vec![deliver(asked, Span::from_millis(1), &Reply::rcode(Rcode::NXDOMAIN))]);
    for number in 0..100u16 {
        world.ask(&query(&format!("n{number}.example"), Type::A).id(number));
        world.run(Span::from_secs(1));
    }
    let mut seen = std::collections::HashMap::new();
    let mut ports = std::collections::HashSet::new();
    for asked in &world.asked {
        let cookie = cookie_of(&asked.message()).unwrap();
        assert_eq!(seen.entry(asked.upstream).or_insert_with(|| cookie.clone()), &cookie);
        ports.insert(asked.port);
    }
    let cookies: std::collections::HashSet<_> = seen.values().collect();
    assert_eq!((seen.len(), cookies.len()), (2, 2));
    assert!(ports.len() > 10);
}
