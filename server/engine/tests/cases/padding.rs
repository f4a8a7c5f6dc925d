//! Padding of responses (RFC 7830, RFC 8467) by transport, from the cache and from an upstream, with other options, and of errors.

use crate::world::{COOKIE, ClientQuery, Reply, World, client, cookie_of, octets, query, settings};
use engine::{ClientTransport, Settings, Span};
use wire::{Rcode, Section, Type};

/// Option code of padding.
const PADDING: u16 = 12;

const ENCRYPTED: [ClientTransport; 3] = [ClientTransport::Tls, ClientTransport::Https, ClientTransport::Quic];

/// An upstream that replies with one A record.
fn world(settings: Settings) -> World {
    let mut world = World::with_cache(settings, 1 << 20);
    world.set_replies(Span::from_millis(20), |_| Reply::answer(&["www.example. 600 IN A 192.0.2.1"]));
    world
}

fn over(transport: ClientTransport, stream: u64) -> ClientQuery {
    let mut query = query("www.example.", Type::A).tcp(stream).edns(1232, false);
    query.client.transport = transport;
    query
}

/// Asks, and returns the octets of the response and its padding options.
fn sizes(world: &mut World, query: &ClientQuery) -> (usize, usize) {
    let token = world.ask(query);
    world.run(Span::from_millis(100));
    let answer = world.answer_to(token);
    let options = answer.message().opt().expect("an OPT record").options().collect::<Vec<_>>();
    let padding = options.iter().filter(|(code, _)| *code == PADDING).count();
    assert_eq!(answer.records(Section::Answer).len(), 1);
    (answer.bytes.len(), padding)
}

//= RFC 7830 section 4: requirement 63
#[test]
fn a_padded_query_over_an_encrypted_transport_gets_a_padded_response_and_the_cache_stays_without() {
    for transport in ENCRYPTED {
        let mut world = world(settings());
        let padded = over(transport, 1).option((PADDING, vec![0; 80]));
        assert_eq!(sizes(&mut world, &padded), (468, 1), "{transport:?}, from the upstream");
        assert_eq!(sizes(&mut world, &padded), (468, 1), "{transport:?}, from the cache");
        let (octets, padding) = sizes(&mut world, &over(transport, 2));
        // 12 of the header, 17 of the question, 16 of the record, 11 of the OPT record.
        let expected = if transport == ClientTransport::Quic { (468, 1) } else { (56, 0) };
        assert_eq!((octets, padding), expected, "{transport:?}, without the option");
        assert_eq!(world.asked.len(), 1, "the others came from the cache");
    }
}

//= RFC 9250 section 5.4: requirement 90
#[test]
fn every_response_with_an_opt_record_over_quic_is_padded() {
    let mut world = world(settings());
    assert_eq!(sizes(&mut world, &over(ClientTransport::Quic, 1)), (468, 1));
    let mut without_edns = query("www.example.", Type::A).tcp(2);
    without_edns.client.transport = ClientTransport::Quic;
    let token = world.ask(&without_edns);
    assert_eq!(world.answer_to(token).bytes.len(), 45, "without EDNS");
}

//= RFC 7830 section 4: requirement 63
//= RFC 7830 section 6: requirement 68
#[test]
fn responses_over_udp_and_tcp_are_never_padded() {
    let mut world = world(settings());
    let udp = query("www.example.", Type::A).option((PADDING, vec![0; 80]));
    assert_eq!(sizes(&mut world, &udp), (56, 0));
    assert_eq!(sizes(&mut world, &udp), (56, 0), "from the cache");
    let tcp = over(ClientTransport::Tcp, 1).option((PADDING, vec![]));
    assert_eq!(sizes(&mut world, &tcp), (56, 0));
}

#[test]
fn a_cookie_stands_before_the_padding_of_a_response() {
    let mut world = world(settings());
    let mut query = over(ClientTransport::Tls, 1).option((PADDING, vec![]));
    query.client.address = client("2001:db8:c::7", 0).address;
    let query = query.option((COOKIE, octets("2464c4abcf10c957").unwrap()));
    let token = world.ask(&query);
    world.run(Span::from_millis(100));
    let answer = world.answer_to(token);
    assert_eq!(answer.bytes.len(), 468);
    assert_eq!(cookie_of(&answer.message()).map(|digits| digits.len()), Some(48), "24 octets");
}

#[test]
fn errors_are_padded_too() {
    let mut world = World::new(settings());
    world.set_replies(Span::from_millis(20), |_| Reply::rcode(Rcode::SERVFAIL));
    let token = world.ask(&over(ClientTransport::Https, 1).option((PADDING, vec![])));
    world.run(Span::from_secs(20));
    let answer = world.answer_to(token);
    assert_eq!((answer.rcode(), answer.bytes.len()), (Rcode::SERVFAIL, 468));
    let mut transfer = over(ClientTransport::Quic, 1).option((PADDING, vec![]));
    transfer.qtype = Type::AXFR;
    let token = world.ask(&transfer);
    let answer = world.answer_to(token);
    assert_eq!((answer.rcode(), answer.bytes.len()), (Rcode::REFUSED, 468));
    assert!(answer.ede().is_some());
}
