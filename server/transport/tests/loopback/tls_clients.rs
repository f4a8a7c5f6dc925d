//! DNS over TLS: the state machine of connections over TLS streams, and handshakes that fail.

use crate::fixture::*;
use crate::https_client::{HttpsService, Tls, connect_tcp};
use datapath::proxy_protocol::TrustedProxies;
use engine::ClientTransport;
use engine::settings::{Network, Networks};
use sixfold_transport::{Counter, Limits, Options};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::thread;
use std::time::{Duration, Instant};

/// Reads to the closure alert: the end of the stream without one is an error.
fn closure(client: &mut Tls) -> std::io::Result<usize> {
    client.read_to_end(&mut Vec::new())
}

//= RFC 7858 section 3.3: requirement 74
#[test]
fn pipelined_queries_over_tls_are_answered_in_the_order_of_the_answers() {
    let service = HttpsService::new(ROOMY);
    let mut client = service.connect_dot();
    // One record with two queries and a part of the third, then the rest.
    let frames = [1, 2, 3].map(|id| framed(&question(id, 20))).concat();
    client.write_all(&frames[..80]).unwrap();
    client.flush().unwrap();
    let mut asked = vec![service.workers.next(), service.workers.next()];
    client.write_all(&frames[80..]).unwrap();
    client.flush().unwrap();
    asked.push(service.workers.next());
    assert!(asked.iter().all(|(from, _)| from.transport == ClientTransport::Tls && from.listener == 1));
    for (from, query) in asked.iter().rev() {
        assert!(deliver(&service.streams, from, &answer(query)));
    }
    assert_eq!([receive(&mut client), receive(&mut client), receive(&mut client)].map(|m| id(&m)), [3, 2, 1]);
    service.await_count(Counter::HandshakesFull, 1);
    assert_eq!(service.streams.counter(Counter::AcceptedTls), 1);
}

#[test]
fn the_largest_messages_pass_over_tls_in_both_directions() {
    let service = HttpsService::echo(ROOMY);
    let mut client = service.connect_dot();
    for id in 0..8 {
        let query = question(id, 65_535 - 12);
        send(&mut client, std::slice::from_ref(&query));
        assert_eq!(receive(&mut client), answer(&query));
    }
}

#[test]
fn many_queries_in_records_of_their_own_are_all_answered() {
    let service = HttpsService::echo(ROOMY);
    let mut client = service.connect_dot();
    for id in 0..1_000 {
        send(&mut client, &[question(id, 30)]);
        if id % 100 == 99 {
            let mut got: Vec<u16> = (0..100).map(|_| self::id(&receive(&mut client))).collect();
            got.sort_unstable();
            assert!(got.into_iter().eq(id - 99..=id));
        }
    }
}

//= RFC 7858 section 3.4: requirement 75
#[test]
fn a_client_that_ends_its_side_gets_its_answers_with_and_without_a_closure_alert() {
    let service = HttpsService::new(ROOMY);
    for with_alert in [true, false] {
        let mut client = service.connect_dot();
        send(&mut client, &[question(7, 20)]);
        if with_alert {
            client.conn.send_close_notify();
            client.flush().unwrap();
        }
        client.sock.shutdown(std::net::Shutdown::Write).unwrap();
        let (from, query) = service.workers.next();
        thread::sleep(Duration::from_millis(20));
        assert!(deliver(&service.streams, &from, &answer(&query)));
        assert_eq!(id(&receive(&mut client)), 7);
        assert_eq!(closure(&mut client).unwrap(), 0);
    }
    service.await_count(Counter::ClosedEnded, 2);
}

//= RFC 7858 section 3.4: requirement 77
#[test]
fn an_idle_connection_is_closed_with_a_closure_alert() {
    let service = HttpsService::new(Limits { idle: Duration::from_millis(500), ..ROOMY });
    let mut client = service.connect_dot();
    assert_eq!(closure(&mut client).unwrap(), 0);
    service.await_count(Counter::ClosedIdle, 1);
}

#[test]
fn a_drain_lets_the_answers_go_over_tls_and_ends_handshakes() {
    let service = HttpsService::new(ROOMY);
    let mut client = service.connect_dot();
    send(&mut client, &[question(7, 20)]);
    let (from, query) = service.workers.next();
    let half_open = connect_tcp(service.dot);
    service.await_count(Counter::AcceptedTls, 2);
    let streams = service.streams.clone();
    let drain = thread::spawn(move || streams.drain(Duration::from_secs(2)));
    thread::sleep(Duration::from_millis(50));
    assert!(deliver(&service.streams, &from, &answer(&query)));
    assert_eq!(id(&receive(&mut client)), 7);
    assert_eq!(closure(&mut client).unwrap(), 0);
    drop(half_open);
    assert_eq!(drain.join().unwrap(), 0);
}

#[test]
fn a_client_that_reads_no_answers_over_tls_is_read_no_more_and_closed() {
    let service = HttpsService::echo(Limits { idle: Duration::from_millis(700), ..ROOMY });
    let mut client = service.connect_dot();
    client.sock.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let query = framed(&question(1, 60_000));
    // Until the connection blocks or ends. 64 MiB are more than all buffers hold.
    for _ in 0..1_000 {
        if client.write_all(&query).and_then(|()| client.flush()).is_err() {
            break;
        }
    }
    eventually("the slow reader is closed", || service.streams.counter(Counter::ClosedSlowReader) == 1);
    assert!(service.streams.buffered_octets() == 0);
}

//= RFC 7858 section 3.1: requirement 73
//= RFC 8310 section 9: requirement 81
#[test]
fn a_handshake_that_fails_is_counted_by_reason() {
    let service = HttpsService::new(Limits { idle: Duration::from_millis(500), ..ROOMY });
    // A client that sends nothing, and one that stops within its hello.
    let silent = connect_tcp(service.dot);
    service.await_count(Counter::HandshakeTimeout, 1);
    let mut slow = connect_tcp(service.dot);
    slow.write_all(b"\x16\x03\x01\x02\x00\x01").unwrap();
    service.await_count(Counter::HandshakeTimeout, 2);
    drop((silent, slow));
    // Plain DNS, and HTTP.
    for octets in [framed(&question(1, 20)), b"GET /dns-query HTTP/1.1\r\n\r\n".to_vec()] {
        let before = service.streams.counter(Counter::HandshakeNotTls);
        let mut plain = connect_tcp(service.dot);
        plain.write_all(&octets).unwrap();
        read_to_end(&mut plain);
        service.await_count(Counter::HandshakeNotTls, before + 1);
    }
    // Another protocol by ALPN.
    assert!(service.try_handshake(connect_tcp(service.dot), &[b"h2"]).is_err());
    service.await_count(Counter::HandshakeAlpn, 1);
    // TLS 1.1: a hello with that version, and TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA.
    let hello = [&b"\x03\x02"[..], &[7; 32], b"\0\0\x02\xc0\x13\x01\0"].concat();
    let header = [0x16, 3, 1, 0, hello.len() as u8 + 4, 1, 0, 0, hello.len() as u8];
    let mut old = connect_tcp(service.dot);
    old.write_all(&[&header[..], &hello].concat()).unwrap();
    read_to_end(&mut old);
    service.await_count(Counter::HandshakeNoSharedParameters, 1);
    // A client that goes away.
    drop(connect_tcp(service.dot));
    service.await_count(Counter::HandshakeClosed, 1);
    service.await_count(Counter::ClosedHandshake, 7);
    assert_eq!(service.streams.counter(Counter::QuestionsPosted), 0);
}

#[test]
fn a_network_that_begins_too_many_handshakes_is_reset_before_them_and_others_are_served() {
    // 50 at once, and 10 more each second.
    let service = HttpsService::echo(Limits { per_client: 5, ..ROOMY });
    let handshakes = || {
        let counters = [Counter::HandshakesFull, Counter::HandshakesResumed];
        counters.map(|counter| service.streams.counter(counter)).iter().sum::<u64>()
    };
    let is_over = || service.streams.counter(Counter::HandshakeClientRate) > 0;
    let start = Instant::now();
    while !is_over() {
        assert!(start.elapsed() < TEST_TIMEOUT, "no handshake is refused");
        // It may also be refused because the one before still has its place.
        drop(service.try_handshake(connect_tcp(service.dot), &[b"dot"]));
    }
    assert!(handshakes() >= 50, "{}", handshakes());
    // Plain TCP needs no handshake, and another network has tokens of its own.
    eventually("the places are free", || service.streams.connections() == 0);
    let mut plain = connect_tcp(service.address);
    send(&mut plain, &[question(6, 20)]);
    assert_eq!(id(&receive(&mut plain)), 6);
    let other = connect_from(Ipv4Addr::new(127, 0, 0, 2), service.dot);
    let mut other = service.try_handshake(other, &[b"dot"]).unwrap();
    send(&mut other, &[question(7, 20)]);
    assert_eq!(id(&receive(&mut other)), 7);
    eventually("its tokens come back", || service.try_handshake(connect_tcp(service.dot), &[b"dot"]).is_ok());
}

#[test]
fn a_client_without_alpn_is_served() {
    let service = HttpsService::echo(ROOMY);
    let mut client = service.try_handshake(connect_tcp(service.dot), &[]).unwrap();
    send(&mut client, &[question(7, 20)]);
    assert_eq!(id(&receive(&mut client)), 7);
}

#[test]
fn tls_on_the_port_of_plain_dns_is_closed_without_an_answer() {
    let service = HttpsService::echo(Limits { idle: Duration::from_millis(500), ..ROOMY });
    assert!(service.try_handshake(connect_tcp(service.address), &[b"dot"]).is_err());
    assert_eq!(service.streams.counter(Counter::HandshakesFull), 0);
}

/// A service whose clients are proxies.
fn proxied_service() -> HttpsService {
    let proxies = TrustedProxies::new(Networks(vec![Network::v4(Ipv4Addr::LOCALHOST, 32)]));
    HttpsService::with(Options { limits: ROOMY, proxies, ..Options::default() })
}

/// A PROXY header of version 2 that names this client with port 12345.
fn proxy_header(client: [u8; 4]) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".to_vec();
    header.extend(client);
    header.extend([192, 0, 2, 53, 0x30, 0x39, 3, 85]);
    header
}

#[test]
fn a_proxy_names_its_client_before_the_handshake() {
    let service = proxied_service();
    let header = proxy_header([198, 51, 100, 7]);
    let mut socket = connect_tcp(service.dot);
    // In two parts, so that the end of the header is found among octets that have come.
    socket.write_all(&header[..20]).unwrap();
    thread::sleep(Duration::from_millis(20));
    socket.write_all(&header[20..]).unwrap();
    let mut client = service.try_handshake(socket, &[b"dot"]).unwrap();
    send(&mut client, &[question(7, 20)]);
    let (from, _) = service.workers.next();
    assert_eq!(from.address, Ipv4Addr::new(198, 51, 100, 7).to_ipv6_mapped());
    assert_eq!((from.port, from.transport), (12_345, ClientTransport::Tls));
    // Neither a header nor TLS.
    let mut stranger = connect_tcp(service.dot);
    stranger.write_all(&[0; 20]).unwrap();
    service.await_count(Counter::ClosedProxyHeader, 1);
    assert!(IpAddr::from(from.address).is_ipv6());
}

#[test]
fn a_proxy_names_its_client_within_tls() {
    let service = proxied_service();
    let header = proxy_header([198, 51, 100, 9]);
    // A record with the header and a query, which must not be lost.
    let mut client = service.try_handshake(connect_tcp(service.dot), &[b"dot"]).unwrap();
    client.write_all(&[&header[..], &framed(&question(7, 20))].concat()).unwrap();
    client.flush().unwrap();
    let (from, _) = service.workers.next();
    assert_eq!(from.address, Ipv4Addr::new(198, 51, 100, 9).to_ipv6_mapped());
    assert_eq!((from.port, from.transport), (12_345, ClientTransport::Tls));
    // Two records with parts of the header, then the query.
    let mut client = service.try_handshake(connect_tcp(service.dot), &[b"dot"]).unwrap();
    for part in [&header[..20], &header[20..]] {
        client.write_all(part).unwrap();
        client.flush().unwrap();
    }
    send(&mut client, &[question(8, 20)]);
    let (from, query) = service.workers.next();
    assert_eq!((from.address, id(&query)), (Ipv4Addr::new(198, 51, 100, 9).to_ipv6_mapped(), 8));
    assert_eq!(service.streams.counter(Counter::ClosedProxyHeader), 0);
}

#[test]
fn a_query_of_a_proxy_without_a_header_is_not_answered_over_tls() {
    let service = proxied_service();
    let mut client = service.try_handshake(connect_tcp(service.dot), &[b"dot"]).unwrap();
    send(&mut client, &[question(7, 20)]);
    service.await_count(Counter::ClosedProxyHeader, 1);
    assert_eq!(service.streams.counter(Counter::QuestionsPosted), 0);
}
