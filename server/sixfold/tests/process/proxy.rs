//! Behind a proxy that sends PROXY headers of version 2: the client in the header counts, and headers from other senders are
//! not trusted.

use crate::client::{Tcp, Udp, embedded, name_of, query};
use crate::daemon::{Daemon, PREFIX, Setup, wait_until};
use crate::upstream::{Behavior, Upstream};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use wire::{Rcode, Type};

/// The proxy of these tests, and a sender that is not a proxy.
const PROXY: [u8; 4] = [127, 0, 0, 2];
const STRANGER: [u8; 4] = [127, 0, 0, 3];

const ALLOWED: &str = "server.allow = [\"198.51.100.0/24\", \"2001:db8:c::/48\"]";

fn start(upstream: &Upstream, lines: &[&str]) -> Daemon {
    let setup = Setup::new(upstream.address).line("server.proxy-from = [\"127.0.0.2\"]").line(ALLOWED);
    lines.iter().fold(setup, |setup, line| setup.line(line)).start()
}

/// The part before the addresses: signature, version and command, family and protocol, number of octets that follow.
fn header_start(command: u8, family: u8, length: u16) -> Vec<u8> {
    [b"\r\n\r\n\0\r\nQUIT\n", &[command, family][..], &length.to_be_bytes()].concat()
}

/// A header for a client, with more octets after the addresses.
fn header(client: &str, more: &[u8]) -> Vec<u8> {
    let client: SocketAddr = client.parse().unwrap();
    let (family, mut block) = match client.ip() {
        IpAddr::V4(address) => (0x12, [address.octets(), [192, 0, 2, 53]].concat()),
        IpAddr::V6(address) => (0x22, [address.octets(), [0x20; 16]].concat()),
    };
    block.extend(client.port().to_be_bytes());
    block.extend([0, 53]);
    block.extend(more);
    [header_start(0x21, family, block.len() as u16), block].concat()
}

fn ask(number: u32) -> Vec<u8> {
    query(number as u16, &name_of(number), Type::AAAA)
}

fn dropped(server: &Daemon, reason: &str) -> f64 {
    server.stat(&format!("dropped_total{{reason=\"{reason}\"}}"))
}

#[test]
fn the_client_that_the_proxy_tells_counts_and_the_proxy_gets_the_answer() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let server = start(&upstream, &[]);
    let proxy = Udp::from(PROXY.into(), server.v4());
    for (number, client, more) in [
        (1, "198.51.100.9:4000", &b""[..]),
        (2, "[2001:db8:c::9]:4000", b""),
        (3, "198.51.100.9:4000", &[1, 0, 2, b'h', b'2'].repeat(50)),
    ] {
        proxy.send(&[header(client, more), ask(number)].concat());
        let answer = proxy.receive();
        assert_eq!((answer.id, answer.rcode), (number as u16, Rcode::NOERROR));
        assert_eq!(answer.addresses, [embedded(PREFIX, number)]);
    }
    // A client that `server.allow` does not contain is refused, although the proxy sends the query.
    for client in ["203.0.113.9:4000", "[2001:db8:d::9]:4000", "127.0.0.2:53"] {
        proxy.send(&[header(client, b""), ask(4)].concat());
        assert_eq!(proxy.receive().rcode, Rcode::REFUSED, "{client}");
    }
    // The proxy for itself, and for a client that the protocol cannot name.
    for own in [
        header_start(0x20, 0, 0),
        header_start(0x21, 0, 0),
        [header_start(0x20, 0x12, 3), vec![7; 3]].concat(),
    ] {
        proxy.send(&[own, ask(5)].concat());
        assert_eq!(proxy.receive().rcode, Rcode::REFUSED);
    }
    let family =
        |family: &str| server.stat(&format!("queries_total{{transport=\"udp\",family=\"{family}\"}}"));
    assert_eq!((family("ipv4"), family("ipv6")), (7.0, 2.0));
    assert_eq!(server.stat("refused_total{reason=\"not_allowed\"}"), 6.0);
}

#[test]
fn a_datagram_of_a_proxy_without_a_header_is_dropped_and_a_header_from_elsewhere_is_not_believed() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let server = start(&upstream, &[]);
    let proxy = Udp::from(PROXY.into(), server.v4());
    proxy.send(&ask(1));
    proxy.send(b"PROXY UDP4 198.51.100.9 192.0.2.53 4000 53\r\n");
    let whole = header("198.51.100.9:4000", b"");
    let malformed = [
        whole[..15].to_vec(),
        whole[..27].to_vec(),
        [header_start(0x11, 0x12, 12), vec![0; 12], ask(2)].concat(),
        [header_start(0x22, 0x12, 12), vec![0; 12], ask(2)].concat(),
        [header_start(0x21, 0x42, 12), vec![0; 12], ask(2)].concat(),
        [header_start(0x21, 0x12, 11), vec![0; 11], ask(2)].concat(),
        [header_start(0x21, 0x22, 12), vec![0; 12], ask(2)].concat(),
        [header_start(0x21, 0x12, u16::MAX), ask(2)].concat(),
    ];
    malformed.iter().for_each(|datagram| proxy.send(datagram));
    // A PROXY header with nothing after it is a message that is too short for a DNS header.
    proxy.send(&whole);
    wait_until("all are counted", || {
        dropped(&server, "proxy_header_missing") == 2.0
            && dropped(&server, "proxy_header_malformed") == malformed.len() as f64
            && dropped(&server, "short") == 1.0
    });
    assert!(proxy.receive_within(Duration::from_millis(100)).is_none());
    // For other senders the octets are a DNS message of an unknown kind; the header does not name a client.
    let stranger = Udp::from(STRANGER.into(), server.v4());
    stranger.send(&[whole, ask(3)].concat());
    assert_eq!(stranger.receive_header(), (0x0d0a, Rcode::REFUSED));
    let asked: Vec<u32> = (1..4).map(|number| upstream.asked(&name_of(number), Type::AAAA)).collect();
    assert_eq!(asked, [0, 0, 0]);
}

#[test]
fn every_limit_counts_the_client_and_not_the_proxy() {
    const SLOW: u32 = 1000;
    let upstream = Upstream::start(|name| match name == format!("{}.", name_of(SLOW)) {
        true => Behavior::After(Duration::from_secs(4)),
        false => Behavior::Hold,
    });
    let lines =
        ["limits.pending-per-client = 3", "limits.queries-per-client = 5", "upstream.timeout = \"30s\""];
    let server = start(&upstream, &[&lines[..], &["upstream.tries = 1"]].concat());
    let proxy = Udp::from(PROXY.into(), server.v4());
    let client = |last: u32| format!("198.51.100.{last}:4000");
    // The server learns that the upstream may take seconds. Else a query counts as late after 200 ms, and gives way to newer ones.
    proxy.send(&[header(&client(100), b""), ask(SLOW)].concat());
    assert_eq!(proxy.receive().rcode, Rcode::NOERROR);
    for number in 0..40 {
        proxy.send(&[header(&client(number / 2), b""), ask(number)].concat());
    }
    server.wait_for_stat("pending", 40.0);
    // This client has two pending queries already; its limit is three.
    proxy.send(&[header(&client(1), b""), ask(50)].concat());
    server.wait_for_stat("pending", 41.0);
    proxy.send(&[header(&client(1), b""), ask(51)].concat());
    let sent_to_tcp = proxy.receive();
    assert_eq!((sent_to_tcp.id, sent_to_tcp.truncated), (51, true));
    assert_eq!(server.stat("slipped_total{reason=\"pending_per_client\"}"), 1.0);
    assert_eq!(dropped(&server, "queries_per_client"), 0.0);
    upstream.release();
    for _ in 0..41 {
        assert_eq!(proxy.receive().rcode, Rcode::NOERROR);
    }
    // A single client is limited. Truncated answers of the rate limit go to the proxy, too.
    wait_until("one is sent to TCP", || {
        (0..20).for_each(|number| proxy.send(&[header("198.51.100.99:1", b""), ask(number)].concat()));
        std::iter::from_fn(|| proxy.receive_within(Duration::from_millis(100))).any(|answer| answer.truncated)
    });
    assert!(dropped(&server, "queries_per_client") >= 1.0);
}

#[test]
fn the_kernel_finds_the_owner_of_a_name_behind_a_header() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    for (steer, workers) in [("name", 4), ("flow", 4)] {
        let server = start(
            &upstream,
            &[&format!("server.steer = \"{steer}\""), &format!("server.workers = {workers}")],
        );
        let proxy = Udp::from(PROXY.into(), server.v4());
        for number in 0..100 {
            let client = ["198.51.100.9:4000", "[2001:db8:c::9]:4000"][number as usize % 2];
            proxy.send(&[header(client, &[4, 0, 1, 0].repeat(number as usize % 8)), ask(number)].concat());
            let answer = proxy.receive();
            assert_eq!((answer.id, answer.addresses), (number as u16, vec![embedded(PREFIX, number)]));
        }
        // One flow arrives at one worker, which passes on queries for names of other workers; by name there are none.
        let letters = server.stat("worker_handoffs_total");
        assert!(if steer == "name" { letters == 0.0 } else { letters > 0.0 }, "{steer}: {letters}");
    }
}

#[test]
fn a_connection_begins_with_the_header_in_whatever_pieces() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let server = start(&upstream, &[]);
    let framed = |number: u32| {
        let message = ask(number);
        [&(message.len() as u16).to_be_bytes(), &message[..]].concat()
    };
    for (number, client) in [(1, "198.51.100.9:4000"), (2, "[2001:db8:c::9]:4000")] {
        let whole = [header(client, &[4, 0, 1, 0]), framed(number), framed(number + 100)].concat();
        for piece in [whole.len(), 1, 7, 16, 30] {
            let mut connection = Tcp::from(PROXY, server.v4());
            whole.chunks(piece).for_each(|octets| connection.send_part(octets));
            let mut answered = [connection.receive(), connection.receive()].map(|answer| {
                assert_eq!(answer.addresses, [embedded(PREFIX, u32::from(answer.id))]);
                u32::from(answer.id)
            });
            answered.sort_unstable();
            assert_eq!(answered, [number, number + 100]);
        }
    }
    let mut connection = Tcp::from(PROXY, server.v4());
    connection.send_part(&header("203.0.113.9:4000", b""));
    assert_eq!(connection.ask(&name_of(3), Type::AAAA).rcode, Rcode::REFUSED);
    let mut connection = Tcp::from(PROXY, server.v4());
    connection.send_part(&header_start(0x20, 0, 0));
    assert_eq!(connection.ask(&name_of(3), Type::AAAA).rcode, Rcode::REFUSED);
    assert_eq!(server.stat("queries_total{transport=\"tcp\",family=\"ipv6\"}"), 10.0);
}

#[test]
fn a_connection_of_a_proxy_without_a_header_is_closed_and_so_is_one_of_a_client_with_too_many() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let server = start(&upstream, &["limits.tcp-per-client = 2"]);
    let long = [header_start(0x21, 0x12, 600), vec![0; 600]].concat();
    for octets in [&[0, 40][..], b"GET / HTTP/1.1\r\n\r\n", &header_start(0x31, 0x12, 12), &long] {
        let mut connection = Tcp::from(PROXY, server.v4());
        connection.send_part(octets);
        connection.wait_for_close();
    }
    let closed = |reason: &str| server.stat(&format!("stream_closed_total{{reason=\"{reason}\"}}"));
    wait_until("all are counted", || closed("proxy_header") == 4.0);
    // The proxy may have more connections than a client: each connection counts for its client.
    let connect = |client: &str| {
        let mut connection = Tcp::from(PROXY, server.v4());
        connection.send_part(&header(client, b""));
        connection
    };
    let mut open: Vec<Tcp> = ["198.51.100.1:1", "198.51.100.1:2", "198.51.100.2:1", "[2001:db8:c::1]:1"]
        .map(|client| {
            let mut connection = connect(client);
            assert_eq!(connection.ask(&name_of(1), Type::AAAA).rcode, Rcode::NOERROR);
            connection
        })
        .into();
    connect("198.51.100.1:3").wait_for_close();
    wait_until("it is counted", || closed("client_limit") == 1.0);
    drop(open.remove(0));
    server.wait_for_stat("stream_connections", 3.0);
    assert_eq!(connect("198.51.100.1:4").ask(&name_of(1), Type::AAAA).rcode, Rcode::NOERROR);
    // Other senders need no header.
    let mut stranger = Tcp::from(STRANGER, server.v4());
    assert_eq!(stranger.ask(&name_of(1), Type::AAAA).rcode, Rcode::REFUSED);
}
