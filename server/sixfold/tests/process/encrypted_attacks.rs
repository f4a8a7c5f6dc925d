//! Attacks on the encrypted listeners. Meanwhile clients over UDP get each answer, and a new client over TLS or HTTPS is served.

use crate::client::{Udp, embedded, name_of, query};
use crate::daemon::{Daemon, PREFIX, Setup};
use crate::encrypted_service::{Listeners, Pair, TlsClient, connect, trusting};
use crate::upstream::{Behavior, Upstream};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use wire::{Rcode, Type};

/// A server with encrypted listeners that is under attack.
struct Target {
    listeners: Listeners,
    server: Daemon,
    dot: Arc<ClientConfig>,
    https: Arc<ClientConfig>,
    _upstream: Upstream,
}

impl Target {
    fn new(limits: &[&str]) -> Target {
        let upstream = Upstream::start(|_| Behavior::Answer);
        let pair = Pair::new();
        let listeners = Listeners::new(&pair);
        let setup = listeners.add_to(Setup::new(upstream.address));
        let server = limits.iter().fold(setup, |setup, line| setup.line(line)).start();
        let (dot, https) = (trusting(&[&pair], b"dot"), trusting(&[&pair], b"http/1.1"));
        Target { listeners, server, dot, https, _upstream: upstream }
    }

    /// Asks so many new names over UDP, then one each over new connections with TLS and HTTPS. `first` is the number of the first name.
    fn serves_others(&self, first: u32, count: u32) {
        let udp = Udp::to(self.server.v4());
        let expect = |number: u32, answer: crate::client::Answer| {
            assert_eq!((answer.rcode, answer.addresses), (Rcode::NOERROR, vec![embedded(PREFIX, number)]));
        };
        (first..first + count).for_each(|number| expect(number, udp.ask(&name_of(number), Type::AAAA)));
        let next = first + count;
        expect(next, TlsClient::to(self.listeners.dot, &self.dot).ask(&name_of(next)));
        expect(next + 1, TlsClient::to(self.listeners.doh, &self.https).post(&name_of(next + 1)));
    }

    /// The first octets of a handshake.
    fn client_hello(&self) -> (ClientConnection, Vec<u8>) {
        let name = ServerName::try_from(crate::encrypted_service::NAME).unwrap();
        let mut client = ClientConnection::new(self.dot.clone(), name).unwrap();
        let mut hello = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut hello).unwrap();
        }
        (client, hello)
    }
}

/// Reads until the server closes the connection, or resets it.
fn read_to_end(mut stream: &TcpStream) {
    let mut octets = [0; 512];
    while stream.read(&mut octets).is_ok_and(|count| count > 0) {}
}

#[test]
fn two_thousand_handshakes_without_an_end_keep_nobody_out() {
    let target = Target::new(&["limits.tcp-per-client = 4000", "limits.tcp-connections = 4000"]);
    let (_, hello) = target.client_hello();
    // Nothing, half a record header, half a ClientHello, and a whole one without the rest of the handshake.
    let parts = [0, 3, hello.len() / 2, hello.len()];
    let mut half_open = Vec::new();
    for number in 0..2000 {
        let listener = if number % 2 == 0 { target.listeners.dot } else { target.listeners.doh };
        let mut stream = connect(listener);
        // A place that the newer ones have taken is closed.
        let _ = stream.write_all(&hello[..parts[number / 2 % parts.len()]]);
        half_open.push(stream);
        if number % 500 == 499 {
            target.serves_others(100 * number as u32, 50);
        }
    }
    target.serves_others(1_000_000, 50);
    // At most 1,024 handshakes are under way. The others were displaced, timed out, or failed for their ALPN: a whole ClientHello of DNS
    // over TLS came to the listener for HTTPS.
    assert!(target.server.stat("stream_closed_total{reason=\"handshake\"}") >= 2000.0 - 1024.0);
    assert!(target.server.stat("tls_handshake_failures_total{reason=\"displaced\"}") > 0.0);
    drop(half_open);
    target.serves_others(2_000_000, 10);
}

#[test]
fn half_open_handshakes_of_one_client_take_no_more_places_than_its_own() {
    let target = Target::new(&["limits.tcp-per-client = 20"]);
    // All clients of this test have one address, so the attacker's places are those of the others too. They are free once it ends.
    // The server may have reset a connection before this client knows that it is open.
    let half_open: Vec<_> = (0..100).filter_map(|_| TcpStream::connect(target.listeners.dot).ok()).collect();
    half_open.iter().skip(20).for_each(read_to_end);
    let udp = Udp::to(target.server.v4());
    for number in 0..50 {
        assert_eq!(udp.ask(&name_of(number), Type::AAAA).rcode, Rcode::NOERROR);
    }
    drop(half_open);
    crate::daemon::wait_until("the places are free", || target.server.stat("stream_connections") == 0.0);
    target.serves_others(100, 10);
}

#[test]
fn slow_and_shredded_tls_is_understood_and_delays_nobody() {
    let target = Target::new(&[]);
    // The handshake octet by octet.
    let (mut client, hello) = target.client_hello();
    let mut stream = connect(target.listeners.dot);
    stream.set_nodelay(true).unwrap();
    for (number, octet) in hello.iter().enumerate() {
        stream.write_all(&[*octet]).unwrap();
        if number % 64 == 0 {
            target.serves_others(10 * number as u32, 2);
        }
    }
    while client.is_handshaking() {
        client.complete_io(&mut stream).unwrap();
    }
    // A query in records of one octet, each in a write of its own.
    let message = query(7, &name_of(77), Type::AAAA);
    for octet in [&(message.len() as u16).to_be_bytes(), &message[..]].concat() {
        client.writer().write_all(&[octet]).unwrap();
        client.write_tls(&mut stream).unwrap();
    }
    let mut answer = Vec::new();
    while answer.len() < 2 || answer.len() < 2 + usize::from(u16::from_be_bytes([answer[0], answer[1]])) {
        client.complete_io(&mut stream).unwrap();
        let _ = client.reader().read_to_end(&mut answer);
    }
    assert_eq!(crate::client::Answer::read(&answer[2..]).addresses, [embedded(PREFIX, 77)]);
}

#[test]
fn damaged_and_oversized_handshakes_end_at_once_and_are_counted() {
    let target = Target::new(&[]);
    let (_, hello) = target.client_hello();
    let record = |kind: u8, payload: &[u8]| {
        [&[kind, 3, 3][..], &(payload.len() as u16).to_be_bytes(), payload].concat()
    };
    let mut flipped = hello.clone();
    flipped[5] = 99; // The type of the handshake message.
    // A ClientHello that claims 16 MiB less one octet, and comes in records without end.
    let endless = [&[1, 0xff, 0xff, 0xff][..], &[0; 16_000]].concat();
    let attacks = [
        record(22, &[0xff; 16_384]),
        record(22, &endless),
        [&[22, 3, 3, 0xff, 0xff][..], &[0; 65_535]].concat(), // Larger than a record may be.
        record(22, &[&[11, 0, 0x3e, 0x80][..], &[0; 16_000]].concat()), // A certificate that nobody asked for.
        flipped,
        record(23, b"application data before the handshake"),
        record(21, &[2, 0]),          // An alert.
        record(20, &[1]).repeat(100), // ChangeCipherSpec, again and again.
        b"GET / HTTP/1.1\r\nhost: dns.example\r\n\r\n".to_vec(),
        record(22, &[]).repeat(1000), // Empty records of a handshake.
    ];
    for (number, attack) in (0..).zip(&attacks) {
        for listener in [target.listeners.dot, target.listeners.doh] {
            let mut stream = connect(listener);
            for _ in 0..10 {
                // The server may have closed the connection already.
                if stream.write_all(attack).is_err() {
                    break;
                }
            }
            let _ = stream.shutdown(std::net::Shutdown::Write);
            read_to_end(&stream);
        }
        target.serves_others(100 * number, 5);
    }
    crate::daemon::wait_until("each is counted", || {
        let total: f64 = ["no_shared_parameters", "not_tls", "malformed", "alert", "closed", "other"]
            .iter()
            .map(|reason| target.server.stat(&format!("tls_handshake_failures_total{{reason=\"{reason}\"}}")))
            .sum();
        total >= 2.0 * attacks.len() as f64
    });
}

#[test]
fn http_1_requests_that_two_readers_would_cut_differently_are_refused() {
    let target = Target::new(&[]);
    let head = "POST /dns-query HTTP/1.1\r\nhost: dns.example\r\ncontent-type: application/dns-message\r\n";
    let smuggled = "GET /dns-query?dns=AAABAAABAAAAAAAAAAABAAE HTTP/1.1\r\nhost: dns.example\r\n\r\n";
    let requests = [
        format!("{head}content-length: 5\r\ncontent-length: 50\r\n\r\n12345{smuggled}"),
        format!("{head}content-length: -1\r\n\r\n{smuggled}"),
        format!("{head}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n{smuggled}"),
        format!("{head}transfer-encoding: chunked\r\n\r\nffffffffffffffff1\r\n{smuggled}"),
        format!("GET /dns-query HTTP/1.1\r\nhost: a\r\n x: folded\r\n\r\n{smuggled}"),
    ];
    for (number, request) in (0..).zip(&requests) {
        let mut client = TlsClient::to(target.listeners.doh, &target.https);
        let answer = client.exchange(request.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 4"), "{request}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{request}: {answer}");
        target.serves_others(100 * number, 2);
    }
}
