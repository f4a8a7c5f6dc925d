//! Golden sequences of segments: the ways of a transaction that RFC 1644 section 2 and the paper's figures draw.

use crate::network::{Network, PORT, answer, captured, server};
use core::time::Duration;
use netem::{Delay, Impairments};
use sixfold_ttcp::{Event, Listen, Settings};
use std::collections::HashMap;

const MS: Duration = Duration::from_millis(1);

fn link() -> Impairments {
    Impairments { delay: Delay { mean: 10 * MS, ..Delay::default() }, ..Impairments::default() }
}

fn network(client: Settings, server: Settings, listen: Listen) -> Network {
    let mut network = captured(client, server, link(), 1);
    network.server.listen(PORT, listen).expect("a free port");
    network
}

fn settings() -> Settings {
    Settings { last_count: 100, ..Settings::default() }
}

/// One transaction. Returns the reply and the time until its FIN, and leaves the packets in the capture.
fn transact(network: &mut Network) -> (Vec<u8>, Option<Duration>) {
    network.capture.clear();
    let start = network.now;
    network.client.transact(start, server(), b"query").expect("a connection");
    let (mut reply, mut finished, mut requests) = (Vec::new(), None, HashMap::new());
    let end = start + Duration::from_secs(20);
    network.run(end, |network, at_server, event| {
        answer(network, at_server, &event, &mut requests);
        match event {
            Event::Received(_, octets) if !at_server => reply.extend(octets),
            Event::Finished(_) if !at_server => finished = Some(network.now - start),
            _ => {}
        }
    });
    (reply, finished)
}

#[test]
fn the_first_transaction_with_a_host_makes_a_three_way_handshake() {
    let mut network = network(settings(), settings(), Listen::default());
    let (reply, took) = transact(&mut network);
    assert_eq!((reply.as_slice(), took), (&b"QUERY"[..], Some(40 * MS)));
    // RFC 1644 section 2, figure 3: the data waits at the server until the handshake is complete. A FIN in a synchronized state
    // is acknowledged at once, before the user answers (RFC 9293 section 3.10.7.4).
    assert_eq!(
        network.lines(),
        [
            "> SYN FIN 0 len 5 CC.NEW 101",
            "< SYN 0 ack 1 CC 101 ECHO 101",
            "> 7 ack 1 CC 101",
            "< 1 ack 7 CC 101",
            "< FIN 1 ack 7 len 5 CC 101",
            "> 7 ack 7 CC 101",
        ]
    );
    assert_eq!((network.server.blocks_in_use(), network.client.blocks_in_use()), (0, 0));
}

#[test]
fn the_second_transaction_takes_three_segments_and_one_round_trip() {
    let mut network = network(settings(), settings(), Listen::default());
    transact(&mut network);
    let (reply, took) = transact(&mut network);
    assert_eq!((reply.as_slice(), took), (&b"QUERY"[..], Some(20 * MS)));
    // RFC 1644 section 2, figure 1.
    assert_eq!(
        network.lines(),
        ["> SYN FIN 0 len 5 CC 102", "< SYN FIN 0 ack 7 len 5 CC 102 ECHO 102", "> 7 ack 7 CC 102",]
    );
    assert_eq!(network.server.counts().transactions, 1);
    assert_eq!(network.server.counts().handshakes, 1);
}

#[test]
fn a_count_that_is_not_later_makes_a_three_way_handshake_and_leaves_the_cache() {
    let mut network = network(settings(), settings(), Listen::default());
    transact(&mut network);
    transact(&mut network);
    // The client restarts with an earlier count, but knows the count that it sent (as after a wrap-around).
    let known = network.server.hosts().get(crate::network::CLIENT.into()).received;
    network.client.reboot(50);
    transact(&mut network);
    assert_eq!(network.lines()[0], "> SYN FIN 0 len 5 CC.NEW 51");
    assert_ne!(network.server.hosts().get(crate::network::CLIENT.into()).received, known);
    let (_, took) = transact(&mut network);
    assert_eq!(took, Some(20 * MS));
}

#[test]
fn a_listener_without_no_push_makes_a_handshake_each_time() {
    let mut network = network(settings(), settings(), Listen { no_push: false, keep_syn_data: true });
    for _ in 0..3 {
        assert_eq!(transact(&mut network).1, Some(40 * MS));
    }
    assert_eq!(network.server.counts().transactions, 0);
}

#[test]
fn a_client_falls_back_where_the_server_knows_no_counts() {
    let plain = Settings { transactions: false, ..settings() };
    let mut network = network(settings(), plain, Listen { no_push: false, keep_syn_data: false });
    let (reply, took) = transact(&mut network);
    assert_eq!((reply.as_slice(), took), (&b"QUERY"[..], Some(40 * MS)));
    assert_eq!(
        network.lines(),
        [
            "> SYN FIN 0 len 5 CC.NEW 101",
            "< SYN 0 ack 1",
            "> FIN 1 ack 1 len 5",
            "< 1 ack 7",
            "< FIN 1 ack 7 len 5",
            "> 7 ack 7",
        ]
    );
}

#[test]
fn freebsd_waits_for_its_timer_where_the_server_drops_data_on_a_syn() {
    let plain = Settings { transactions: false, ..settings() };
    let client = Settings { resend_at_once: false, ..settings() };
    let mut network = network(client, plain, Listen { no_push: false, keep_syn_data: false });
    let (reply, took) = transact(&mut network);
    // The paper's Figure 4: one more retransmission timeout. The handshake has measured the round trip, 20 ms, so the timer
    // is the shortest, 1 s, from the acknowledgment of the SYN on: 20 ms + 1 s + 20 ms.
    assert_eq!((reply.as_slice(), took), (&b"QUERY"[..], Some(1040 * MS)));
}

#[test]
fn a_plain_client_talks_with_a_server_that_knows_counts() {
    let plain = Settings { transactions: false, ..settings() };
    let mut network = network(plain, settings(), Listen::default());
    assert_eq!(transact(&mut network).1, Some(40 * MS));
    assert_eq!(
        network.lines(),
        ["> SYN 0", "< SYN 0 ack 1", "> FIN 1 ack 1 len 5", "< 1 ack 7", "< FIN 1 ack 7 len 5", "> 7 ack 7"]
    );
}

#[test]
fn time_wait_is_eight_timers_with_counts_and_two_segment_lifetimes_without() {
    for (transactions, wait) in [(true, Duration::from_secs(8)), (false, Duration::from_secs(60))] {
        let both = Settings { transactions, ..settings() };
        let mut network = network(both.clone(), both, Listen::default());
        let start = network.now;
        network.client.transact(start, server(), b"query").expect("a connection");
        let (mut requests, mut closed) = (HashMap::new(), None);
        let mut end = None;
        network.run(Duration::from_secs(200), |network, at_server, event| {
            answer(network, at_server, &event, &mut requests);
            if !at_server && matches!(event, Event::Closed(_)) {
                closed = Some(network.now);
                end = network.client.next_deadline();
            }
        });
        assert_eq!(end.zip(closed).map(|(end, closed)| end - closed), Some(wait), "{transactions}");
        assert_eq!(network.client.blocks_in_use(), 0);
    }
}

#[test]
fn a_slow_answer_does_not_keep_the_syn_waiting() {
    let mut network = network(settings(), settings(), Listen::default());
    transact(&mut network);
    network.capture.clear();
    let start = network.now;
    network.client.transact(start, server(), b"query").expect("a connection");
    let mut waiting = None;
    network.run(start + Duration::from_secs(1), |_, at_server, event| {
        if let (true, Event::Finished(connection)) = (at_server, event) {
            waiting = Some(connection);
        }
    });
    // The delayed acknowledgment, 200 ms after the query, takes the SYN with it.
    assert_eq!(
        network.lines(),
        ["> SYN FIN 0 len 5 CC 102", "< SYN 0 ack 7 CC 102 ECHO 102", "> 7 ack 1 CC 102"]
    );
    assert_eq!(network.capture[1].0 - start, 210 * MS);
    let (now, connection) = (network.now, waiting.expect("a request"));
    network.server.send_and_finish(now, connection, b"late").expect("open");
    network.run(now + Duration::from_secs(1), |_, _, _| {});
    assert_eq!(network.lines()[3..], ["< FIN 1 ack 7 len 4 CC 102", "> 7 ack 6 CC 102"]);
}

#[test]
fn a_firewall_that_drops_syn_with_fin_stops_t_tcp_unless_the_syn_is_repeated_plain() {
    for (plain_syn_again, expected) in [(false, None), (true, Some(Duration::from_millis(1040)))] {
        let client = Settings { plain_syn_again, ..settings() };
        let mut network = network(client, settings(), Listen::default());
        network.filter = Box::new(|_, _, segment| !(segment.syn && segment.fin));
        assert_eq!(transact(&mut network).1, expected);
    }
}
