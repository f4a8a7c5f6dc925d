//! The option edns-tcp-keepalive (RFC 7828) in responses, by transport, with padding, from the cache and of errors.

use crate::world::{ClientQuery, Reply, World, query, settings};
use engine::{ClientTransport, IdleTimeout, Span};
use wire::{PADDING, Rcode, TCP_KEEPALIVE, Type};

/// An upstream that replies with one A record.
fn world() -> World {
    let mut world = World::with_cache(settings(), 1 << 20);
    world.set_replies(Span::from_millis(20), |_| Reply::answer(&["www.example. 600 IN A 192.0.2.1"]));
    world
}

/// A query over a transport, on a connection with an idle timeout of 7.5 s.
fn over(transport: ClientTransport) -> ClientQuery {
    let mut query = query("www.example.", Type::A).tcp(1).edns(1232, false);
    query.client.transport = transport;
    query.client.idle_timeout = IdleTimeout(75);
    query
}

/// Asks, and returns the data of the keepalive options of the response, and the octets of the response.
fn keepalive(world: &mut World, query: &ClientQuery) -> (Vec<Vec<u8>>, usize) {
    let token = world.ask(query);
    world.run(Span::from_millis(100));
    let answer = world.answer_to(token);
    let opt = answer.message().opt();
    let options = opt.iter().flat_map(|opt| opt.options());
    let timeouts = options.filter(|(code, _)| *code == TCP_KEEPALIVE).map(|(_, data)| data.to_vec());
    (timeouts.collect(), answer.bytes.len())
}

//= RFC 7828 section 3.3.2: requirement 66
#[test]
fn a_query_with_the_keepalive_option_over_tcp_or_tls_is_told_the_idle_timeout() {
    for transport in [ClientTransport::Tcp, ClientTransport::Tls] {
        let mut world = world();
        let asks = over(transport).option((TCP_KEEPALIVE, vec![]));
        assert_eq!(keepalive(&mut world, &asks), (vec![vec![0, 75]], 62), "{transport:?}, from the upstream");
        let mut closing = asks.clone();
        closing.client.idle_timeout = IdleTimeout::CLOSE;
        assert_eq!(keepalive(&mut world, &closing), (vec![vec![0, 0]], 62), "{transport:?}, from the cache");
        assert_eq!(
            keepalive(&mut world, &over(transport)),
            (vec![], 56),
            "{transport:?}, without the option"
        );
        assert_eq!(world.asked.len(), 1, "the others came from the cache");
    }
}

//= RFC 7828 section 3.3.1: requirement 65
//= RFC 9250 section 5.5.2: requirement 95
#[test]
fn the_keepalive_option_over_udp_https_and_quic_is_ignored() {
    let mut world = world();
    let udp = query("www.example.", Type::A).option((TCP_KEEPALIVE, vec![]));
    assert_eq!(keepalive(&mut world, &udp), (vec![], 56));
    let https = over(ClientTransport::Https).option((TCP_KEEPALIVE, vec![]));
    assert_eq!(keepalive(&mut world, &https), (vec![], 56));
    // The transport refuses such a query over QUIC. The engine would not answer the option either.
    let quic = over(ClientTransport::Quic).option((TCP_KEEPALIVE, vec![]));
    assert_eq!(keepalive(&mut world, &quic), (vec![], 468));
}

#[test]
fn a_keepalive_option_with_a_timeout_in_a_query_is_ignored() {
    let mut world = world();
    let asks = over(ClientTransport::Tcp).option((TCP_KEEPALIVE, vec![0, 10]));
    assert_eq!(keepalive(&mut world, &asks), (vec![], 56));
}

//= RFC 8467 section 3: requirement 69
#[test]
fn the_keepalive_option_stands_before_the_padding_and_counts_in_it() {
    let asks = over(ClientTransport::Tls).option((PADDING, vec![])).option((TCP_KEEPALIVE, vec![]));
    let mut world = world();
    assert_eq!(keepalive(&mut world, &asks), (vec![vec![0, 75]], 468));
    let token = world.ask(&asks);
    let opt = world.answer_to(token).message().opt();
    let codes: Vec<_> = opt.iter().flat_map(|opt| opt.options()).map(|(code, _)| code).collect();
    assert_eq!(codes, [TCP_KEEPALIVE, PADDING]);
}

#[test]
fn errors_tell_the_idle_timeout_too() {
    let mut world = world();
    let mut transfer = over(ClientTransport::Tls).option((PADDING, vec![])).option((TCP_KEEPALIVE, vec![]));
    transfer.qtype = Type::AXFR;
    let token = world.ask(&transfer);
    assert_eq!(world.answer_to(token).rcode(), Rcode::REFUSED);
    assert_eq!(keepalive(&mut world, &transfer), (vec![vec![0, 75]], 468));
}

#[test]
fn a_timeout_is_rounded_down_to_tenths_of_a_second_and_is_never_taken_for_a_close() {
    let units = |milliseconds| IdleTimeout::of(std::time::Duration::from_millis(milliseconds)).0;
    assert_eq!([10_000, 199, 100, 99, 0].map(units), [100, 1, 1, 1, 1]);
    assert_eq!([3_600_000, 6_553_500, 6_553_600, u64::MAX].map(units), [36_000, 65_535, 65_535, 65_535]);
}
