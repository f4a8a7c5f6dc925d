//! DNS cookies (RFC 7873, RFC 9018) of clients and upstreams: queries for a cookie alone, the size of answers with a cookie,
//! forged cookies. `scenarios/cookie-*.txt` shows how cookies are learned and renewed.

use crate::world::{COOKIE, Reply, World, client, cookie_of, deliver, forwarders, octets, query, settings};
use engine::{Counter, Span, Transport};
use wire::{Flags, Rcode, Section, Type, header};

/// The client cookie and the full cookie of RFC 9018 appendix A.1.
const CLIENT_COOKIE: &str = "2464c4abcf10c957";
const FULL_COOKIE: &str = "2464c4abcf10c957010000005cf79f111f8130c3eee29480";
const ADDRESS: &str = "198.51.100.100";

/// A message without a question, with an OPT record that has these octets of options.
fn without_question(options: &[u8]) -> Vec<u8> {
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
    let wrong = format!("{}00", &FULL_COOKIE[..46]);
    for (brought, rcode) in
        [(CLIENT_COOKIE, Rcode::NOERROR), (FULL_COOKIE, Rcode::NOERROR), (&wrong, Rcode::BADCOOKIE)]
    {
        let mut world = World::new(settings());
        world.send_message(&client(ADDRESS, 5000), &without_question(&option(brought)));
        let answer = &world.answers[0].bytes;
        let opt = wire::sole_opt(answer).expect("an OPT record and nothing else");
        let code = u16::from(opt.extended_rcode()) << 4 | header::flags(answer).rcode().0;
        assert_eq!((header::id(answer), code), (0x1234, rcode.0));
        assert!(header::flags(answer).contains(Flags::QR));
        let cookies: Vec<_> = opt.options().filter(|(code, _)| *code == COOKIE).collect();
        assert_eq!(cookies, [(COOKIE, &octets(FULL_COOKIE).unwrap()[..])]);
        assert!(world.asked.is_empty());
        world.assert_conservation();
    }
}

#[test]
fn a_message_without_a_question_and_without_a_cookie_is_a_format_error() {
    let no_version = {
        let mut message = without_question(&option(CLIENT_COOKIE));
        message[18] = 1;
        message
    };
    let malformed = option("2464");
    for message in
        [without_question(&[]), without_question(&[0, 8, 0, 0]), without_question(&malformed), no_version]
    {
        let mut world = World::new(settings());
        world.send_message(&client(ADDRESS, 5000), &message);
        assert_eq!(header::flags(&world.answers[0].bytes).rcode(), Rcode::FORMERR);
        world.assert_conservation();
    }
    let mut off = settings();
    off.cookies.enabled = false;
    let mut world = World::new(off);
    world.send_message(&client(ADDRESS, 5000), &without_question(&option(CLIENT_COOKIE)));
    assert_eq!(header::flags(&world.answers[0].bytes).rcode(), Rcode::FORMERR);
    // A client that is not allowed gets no cookie either.
    let mut closed = settings();
    closed.allow.0.clear();
    let mut world = World::new(closed);
    world.send_message(&client(ADDRESS, 5000), &without_question(&option(CLIENT_COOKIE)));
    assert_eq!(header::flags(&world.answers[0].bytes).rcode(), Rcode::REFUSED);
}

/// Answers of every length around the size limit of the client, from the cache and from the upstream: each has its cookie, and
/// fits or is truncated.
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
                    .option((COOKIE, octets(CLIENT_COOKIE).unwrap())),
            );
            world.run(Span::from_millis(2));
            let answer = world.answer_to(token);
            assert!(answer.bytes.len() <= usize::from(edns), "{records}, {edns}: {}", answer.bytes.len());
            assert_eq!(cookie_of(&answer.message()).as_deref(), Some(FULL_COOKIE));
            let whole = 12 + 15 + 16 * records + 11 + 28 <= usize::from(edns);
            assert_eq!(answer.flags().contains(Flags::TC), !whole, "{records}, {edns}");
        }
        assert!(world.count(Counter::CacheHitsPositive) >= 4);
    }
}

/// A forger who sees port, ID and letter case of every query, but not the cookie, and is always faster than the upstream. Once
/// the upstream has returned a cookie, none of the forged replies is accepted, whatever cookie it has. The real replies come
/// over TCP, and no forged reply changes what the engine knows about the server.
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
            // A guessed cookie, a cookie that is too short, an empty one, two of them.
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

/// A forger who has not seen the query cannot make the engine expect cookies from an upstream without cookies.
#[test]
fn a_forged_cookie_does_not_change_the_state_of_a_server() {
    let mut world = World::new(settings());
    for number in 0..100u16 {
        let question = query(&format!("n{number}.example"), Type::A).id(number);
        let token = world.ask(&question);
        let asked = world.last();
        let reply = Reply::answer(&[&format!("{} 60 IN A 192.0.2.66", asked.name())]);
        if number % 2 == 0 {
            let forged = Reply { wrong_cookie: true, ..reply.cookie("0102030405060708") };
            world.reply(asked.link, &forged.to(&asked.bytes));
            assert!(world.answers_to(token).is_empty());
            let again = world.last();
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

/// An upstream that returns a wrong cookie over TCP, where forgery is excluded, is queried without a cookie.
#[test]
fn an_upstream_that_returns_the_wrong_cookie_over_tcp_too_is_asked_without_one() {
    let mut world = World::new(settings());
    world.set_replies(Span::from_millis(1), |asked| {
        let reply = Reply::answer(&[&format!("{} 60 IN A 198.51.100.7", asked.name())]);
        let wrong = cookie_of(&asked.message()).is_some();
        if wrong { Reply { wrong_cookie: true, ..reply.cookie("01020304050607") } } else { reply }
    });
    for number in 0..10u16 {
        let token = world.ask(&query(&format!("n{number}.example"), Type::A).id(number));
        world.run(Span::from_secs(1));
        assert_eq!(world.answer_to(token).rcode(), Rcode::NOERROR);
    }
    assert_eq!(world.asked.len(), 3 + 9, "twice with a wrong cookie, once without; then without");
    assert_eq!((world.engine.pending(), world.engine.outbound_queries()), (0, 0));
}

/// Client cookies differ between upstreams, and are equal on all ports.
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
