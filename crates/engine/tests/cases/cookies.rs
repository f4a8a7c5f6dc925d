//! Cookies of clients (RFC 7873, RFC 9018) where octets count: a message that asks for a cookie alone, and answers that fit with
//! one. How they are learned and renewed is told in `scenarios/cookie-*.txt`.

use crate::world::{COOKIE, Reply, World, ask, client, cookie_of, deliver, octets, settings};
use engine::{Counter, Span};
use wire::{Flags, Rcode, Type, header};

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
        world.query(&client(ADDRESS, 5000), &alone(&option(brought)));
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
        world.query(&client(ADDRESS, 5000), &message);
        assert_eq!(header::flags(&world.answers[0].bytes).rcode(), Rcode::FORMERR);
        world.assert_conservation();
    }
    let mut off = settings();
    off.cookies.enabled = false;
    let mut world = World::new(off);
    world.query(&client(ADDRESS, 5000), &alone(&option(BROUGHT)));
    assert_eq!(header::flags(&world.answers[0].bytes).rcode(), Rcode::FORMERR);
    // Who may not ask gets no cookie either.
    let mut closed = settings();
    closed.allow.0.clear();
    let mut world = World::new(closed);
    world.query(&client(ADDRESS, 5000), &alone(&option(BROUGHT)));
    assert_eq!(header::flags(&world.answers[0].bytes).rcode(), Rcode::REFUSED);
}

/// Answers of every length around the client's limit: out of the cache and past it, each fits with its cookie, or says that
/// it was cut, and has its cookie still.
#[test]
fn an_answer_with_a_cookie_fits_what_the_client_takes() {
    for records in 20..40 {
        let lines: Vec<_> =
            (0..records).map(|number| format!("a.example. 60 IN A 198.51.100.{number}")).collect();
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        let reply = Reply::answer(&lines);
        let mut world = World::with_cache(settings(), 1_000_000);
        world.upstreams(move |asked, _| vec![deliver(asked, Span::from_millis(1), &reply)]);
        for (id, edns) in (1..).zip([512, 512, 512, 513, 540]) {
            let token = world.ask(
                &ask("a.example", Type::A)
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
