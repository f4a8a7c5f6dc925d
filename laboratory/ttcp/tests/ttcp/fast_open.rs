//! TCP Fast Open (RFC 7413): golden sequences, the limits of the server, and an independent decoder.

use crate::decoded::decode_fields;
use crate::network::{CLIENT, Network, PORT, answer, captured, server};
use core::time::Duration;
use netem::{Delay, Impairments};
use sixfold_ttcp::{
    Cookie, Event, FastOpen, FastOpenOption, Listen, Options, Segment, Serial, Settings, State,
};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

const MS: Duration = Duration::from_millis(1);

fn fast_open() -> FastOpen {
    FastOpen { key: [7; 16], previous_key: None, pending: 4 }
}

fn settings() -> Settings {
    Settings { transactions: false, fast_open: Some(fast_open()), ..Settings::default() }
}

fn network(client: Settings, server: Settings) -> Network {
    let link = Impairments { delay: Delay { mean: 10 * MS, ..Delay::default() }, ..Impairments::default() };
    let mut network = captured(client, server, link, 1);
    network.server.listen(PORT, Listen::default()).expect("a free port");
    network
}

/// One query. Returns the time until the FIN of the reply, and leaves the packets in the capture.
fn transact(network: &mut Network) -> Option<Duration> {
    network.capture.clear();
    let start = network.now;
    network.client.transact(start, server(), b"query").expect("a connection");
    let (mut finished, mut requests) = (None, HashMap::new());
    network.run(start + Duration::from_secs(200), |network, at_server, event| {
        answer(network, at_server, &event, &mut requests);
        match event {
            Event::Received(_, octets) if !at_server => assert_eq!(octets, b"QUERY"),
            Event::Finished(_) if !at_server => finished = Some(network.now - start),
            Event::Failed(..) => panic!("{event:?}"),
            _ => {}
        }
    });
    assert_eq!((network.server.pending_fast_open(), network.server.blocks_in_use()), (0, 0));
    finished
}

/// A SYN with data; the source may be forged.
fn syn(source: SocketAddr, option: Option<FastOpenOption>) -> Vec<u8> {
    Segment {
        seq: Serial(12_345),
        syn: true,
        psh: true,
        window: 65_535,
        options: Options { mss: Some(1460), fast_open: option, ..Options::default() },
        payload: b"forged",
        ..Segment::between(source, server())
    }
    .write()
}

/// Gives the server a packet. Returns the number of requests that it executed.
fn executed(network: &mut Network, packet: &[u8]) -> usize {
    network.server.on_packet(network.now, packet);
    std::iter::from_fn(|| network.server.next_event())
        .filter(|event| matches!(event, Event::Received(..)))
        .count()
}

#[test]
fn the_first_connection_brings_a_cookie_and_the_second_one_its_data_with_the_syn() {
    let mut network = network(settings(), settings());
    assert_eq!(transact(&mut network), Some(40 * MS));
    // RFC 7413 section 2, requesting a cookie.
    assert_eq!(
        network.lines(),
        [
            "> SYN 0 TFO request",
            "< SYN 0 ack 1 TFO cookie",
            "> FIN 1 ack 1 len 5",
            "< 1 ack 7",
            "< FIN 1 ack 7 len 5",
            "> 7 ack 7"
        ]
    );
    transact(&mut network);
    // RFC 7413 section 2, performing TCP Fast Open: the SYN,ACK acknowledges the data. A FIN does not go with the SYN. The test's
    // server answers after the FIN, so this takes two round trips; a server that answers the request alone takes one.
    assert_eq!(
        network.lines(),
        [
            "> SYN 0 len 5 TFO cookie",
            "< SYN 0 ack 6",
            "> FIN 6 ack 1",
            "< 1 ack 7",
            "< FIN 1 ack 7 len 5",
            "> 7 ack 7"
        ]
    );
    assert_eq!((network.server.counts().fast_opens, network.server.counts().handshakes), (1, 1));
}

#[test]
fn a_server_that_answers_at_once_takes_one_round_trip() {
    let mut network = network(settings(), settings());
    transact(&mut network);
    let start = network.now;
    network.client.transact(start, server(), b"query").expect("a connection");
    let mut answered = None;
    network.run(start + Duration::from_secs(1), |network, at_server, event| match event {
        Event::Received(connection, _) if at_server => {
            network.server.send(network.now, connection, b"reply").expect("open");
        }
        Event::Finished(connection) if at_server => {
            network.server.finish(network.now, connection).expect("open");
        }
        Event::Received(..) => answered = Some(network.now - start),
        _ => {}
    });
    assert_eq!(answered, Some(20 * MS));
}

#[test]
fn a_cookie_that_is_not_valid_makes_a_handshake_and_brings_a_new_one() {
    let mut network = network(settings(), settings());
    transact(&mut network);
    let given = network.client.hosts().get(crate::network::SERVER.into()).cookie;
    assert_eq!(given, Some(fast_open().cookie(CLIENT.into())));
    // The server starts with another key.
    let key = FastOpen { key: [8; 16], ..fast_open() };
    network.server = sixfold_ttcp::Stack::new(
        &[IpAddr::from(crate::network::SERVER)],
        Settings { fast_open: Some(key), ..settings() },
        5,
    )
    .expect("an address for benchmarks");
    network.server.listen(PORT, Listen::default()).expect("a free port");
    assert_eq!(transact(&mut network), Some(40 * MS));
    assert_eq!(
        network.lines()[..3],
        ["> SYN 0 len 5 TFO cookie", "< SYN 0 ack 1 TFO cookie", "> FIN 1 ack 1 len 5"]
    );
    transact(&mut network);
    assert_eq!(network.lines()[1], "< SYN 0 ack 6");
}

#[test]
fn a_cookie_of_the_previous_key_opens_and_a_new_one_comes_back() {
    let rotated = FastOpen { key: [8; 16], previous_key: Some([7; 16]), pending: 4 };
    let mut network = network(settings(), Settings { fast_open: Some(rotated), ..settings() });
    let old = FastOpenOption::Cookie(fast_open().cookie(CLIENT.into()));
    let packet = syn(SocketAddr::from((CLIENT, 999)), Some(old));
    assert_eq!(executed(&mut network, &packet), 1);
    let answer = network.server.next_packet().expect("a SYN,ACK");
    let option = Segment::parse(&answer).expect("whole").options.fast_open;
    assert_eq!(option, Some(FastOpenOption::Cookie(rotated.cookie(CLIENT.into()))));
}

#[test]
fn a_server_and_a_client_without_fast_open_make_handshakes() {
    let plain = Settings { fast_open: None, ..settings() };
    for (client, server) in [(settings(), plain.clone()), (plain, settings())] {
        let mut network = network(client, server);
        for _ in 0..2 {
            assert_eq!(transact(&mut network), Some(40 * MS));
        }
        assert_eq!(network.server.counts().fast_opens, 0);
    }
}

#[test]
fn a_lost_syn_is_repeated_without_data_and_without_cookie() {
    let mut network = network(settings(), settings());
    transact(&mut network);
    network.filter = Box::new(|_, _, segment| !(segment.syn && segment.options.fast_open.is_some()));
    // The first timer, 1 s, and then a handshake of two round trips.
    assert_eq!(transact(&mut network), Some(1040 * MS));
    assert_eq!(network.lines()[..2], ["> SYN 0 len 5 TFO cookie", "> SYN 0"]);
}

#[test]
fn a_lost_syn_ack_is_repeated_and_the_request_is_executed_once() {
    let mut network = network(settings(), settings());
    transact(&mut network);
    let mut lost = 0;
    network.filter = Box::new(move |_, to_server, _| {
        lost += u32::from(!to_server);
        to_server || lost > 1
    });
    assert!(transact(&mut network).is_some());
    assert_eq!(network.server.counts().fast_opens, 1);
}

#[test]
fn beyond_the_limit_of_pending_connections_a_valid_cookie_makes_a_handshake() {
    let mut network = network(settings(), settings());
    let cookie = FastOpenOption::Cookie(fast_open().cookie(CLIENT.into()));
    let requests: usize = (1000..1100)
        .map(|port| executed(&mut network, &syn(SocketAddr::from((CLIENT, port)), Some(cookie))))
        .sum();
    assert_eq!((requests, network.server.pending_fast_open()), (4, 4));
    assert_eq!(network.server.octets_held(), 0);
    assert_eq!(network.server.blocks().get(&State::SynReceived), Some(&96));
    // The room comes back with the end of the connections.
    network.run(Duration::from_secs(1800), |_, _, _| {});
    assert_eq!((network.server.pending_fast_open(), network.server.blocks_in_use()), (0, 0));
}

#[test]
fn data_without_a_valid_cookie_is_dropped() {
    let mut network = network(settings(), settings());
    let of_another = fast_open().cookie([198, 18, 0, 9].into());
    let wrong = [
        Some(FastOpenOption::Request),
        Some(FastOpenOption::Cookie(of_another)),
        Some(FastOpenOption::Cookie(Cookie::new(&[0; 16]).expect("16 octets"))),
    ];
    for (port, option) in (1000..).zip(wrong) {
        assert_eq!(executed(&mut network, &syn(SocketAddr::from((CLIENT, port)), option)), 0);
    }
    assert_eq!((network.server.octets_held(), network.server.pending_fast_open()), (0, 0));
}

#[test]
fn a_syn_that_an_observer_sends_again_is_executed_again() {
    let mut network = network(settings(), settings());
    transact(&mut network);
    transact(&mut network);
    let seen = network.capture[0].2.clone();
    // RFC 7413 section 6.1 leaves duplicates to the application. T/TCP refuses this one by its count.
    assert_eq!(executed(&mut network, &seen), 1);
}

#[test]
fn tshark_reads_the_cookie_and_its_request() {
    let mut network = network(settings(), settings());
    transact(&mut network);
    let mut capture = network.capture.clone();
    transact(&mut network);
    capture.extend(network.capture.clone());
    let cookie = fast_open().cookie(CLIENT.into());
    let hex: String = cookie.octets().iter().map(|octet| format!("{octet:02x}")).collect();
    let fields = ["tcp.len", "tcp.options.tfo.request", "tcp.options.tfo.cookie", "tcp.checksum.status"];
    let Some(lines) = decode_fields(&capture, &fields) else { return };
    let read: Vec<Vec<&str>> = lines.iter().map(|line| line.split('|').collect()).collect();
    assert!(!read[0][1].is_empty() && read[0][2].is_empty(), "{lines:#?}");
    assert_eq!(read[1][2], hex, "{lines:#?}");
    assert_eq!((read[6][0], read[6][2]), ("5", hex.as_str()), "{lines:#?}");
    assert!(read.iter().all(|fields| fields[3] == "1"), "{lines:#?}");
}
