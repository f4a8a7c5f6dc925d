//! The upstream over real sockets, queried by the runner's own client.

use super::*;
use crate::client;
use crate::message::Answer;
use crate::query::Query;

const PATIENCE: Duration = Duration::from_secs(10);

fn query(text: &str) -> Query {
    let mut query: Query = serde_json::from_str(text).unwrap();
    query.client = Ipv4Addr::LOCALHOST.into();
    query
}

fn upstream(rules: &str) -> Upstream {
    let upstream = Upstream::start().unwrap();
    upstream.set_rules(serde_json::from_str(rules).unwrap());
    upstream
}

fn addresses(answer: &Answer) -> Vec<String> {
    answer.answer.iter().map(|record| record.data().to_string()).collect()
}

#[test]
fn udp_and_tcp_on_one_port_answer_and_remember() {
    let upstream = upstream(r#"[{"name": "a.", "type": "A", "answers": ["a. 1 IN A 192.0.2.1"]}]"#);
    let port = upstream.address().port();
    for transport in ["udp", "tcp"] {
        let query = query(&format!(
            r#"{{"name": "A.", "type": "A", "transport": "{transport}", "edns": {{"ecs": "203.0.113.0/24"}}}}"#
        ));
        let exchange = client::ask(port, &query, PATIENCE).unwrap();
        assert_eq!(addresses(&Answer::read(&exchange.answer.unwrap()).unwrap()), ["192.0.2.1"]);
    }
    let seen = upstream.received();
    assert_eq!(seen.iter().map(|seen| seen.transport).collect::<Vec<_>>(), [Transport::Udp, Transport::Tcp]);
    let subnet = Subnet { address: Ipv4Addr::new(203, 0, 113, 0).into(), length: 24 };
    assert!(seen.iter().all(|seen| seen.lower_case_name() == "a." && seen.subnet == Some(subnet)));
    upstream.clear_received();
    assert!(upstream.received().is_empty());
}

#[test]
fn a_reply_that_is_delayed_delays_no_other() {
    let upstream = upstream(
        r#"[{"name": "slow.", "type": "A", "delay_ms": 400, "answers": ["slow. 1 IN A 192.0.2.1"]},
            {"name": "fast.", "type": "A", "answers": ["fast. 1 IN A 192.0.2.2"]}]"#,
    );
    let port = upstream.address().port();
    let slow =
        thread::spawn(move || client::ask(port, &query(r#"{"name": "slow.", "type": "A"}"#), PATIENCE));
    while upstream.received().is_empty() {
        thread::yield_now();
    }
    let fast = client::ask(port, &query(r#"{"name": "fast.", "type": "A"}"#), PATIENCE).unwrap();
    assert!(fast.answer.is_some());
    let slow = slow.join().unwrap().unwrap();
    assert!(slow.elapsed >= Duration::from_millis(400) && slow.answer.is_some());
}

#[test]
fn forged_replies_come_before_the_right_one() {
    let forgery = r#"{"kind": "id", "answers": ["a. 1 IN A 203.0.113.66"]}"#;
    let upstream = upstream(&format!(
        r#"[{{"name": "a.", "type": "A", "answers": ["a. 1 IN A 192.0.2.1"], "spoof": [{forgery}]}}]"#
    ));
    let port = upstream.address().port();
    let first = client::ask(port, &query(r#"{"name": "a.", "type": "A"}"#), PATIENCE).unwrap();
    assert_eq!(addresses(&Answer::read(&first.answer.unwrap()).unwrap()), ["203.0.113.66"]);
    let over_tcp = query(r#"{"name": "a.", "type": "A", "transport": "tcp"}"#);
    let right = client::ask(port, &over_tcp, PATIENCE).unwrap();
    assert_eq!(addresses(&Answer::read(&right.answer.unwrap()).unwrap()), ["192.0.2.1"]);
}

#[test]
fn a_connected_socket_does_not_see_forgeries_from_elsewhere() {
    for kind in ["source-port", "source-address"] {
        let upstream = upstream(&format!(
            r#"[{{"name": "a.", "type": "A", "answers": ["a. 1 IN A 192.0.2.1"],
                  "spoof": [{{"kind": "{kind}", "answers": ["a. 1 IN A 203.0.113.66"]}}]}}]"#
        ));
        let query = query(r#"{"name": "a.", "type": "A"}"#);
        let exchange = client::ask(upstream.address().port(), &query, PATIENCE).unwrap();
        assert_eq!(addresses(&Answer::read(&exchange.answer.unwrap()).unwrap()), ["192.0.2.1"], "{kind}");
        assert_eq!(upstream.faults(), [""; 0]);
    }
}

#[test]
fn timeout_means_no_reply_over_udp_and_tcp() {
    let upstream = upstream(r#"[{"name": "*", "type": "*", "rcode": "TIMEOUT"}]"#);
    for transport in ["udp", "tcp"] {
        let query = query(&format!(r#"{{"name": "a.", "type": "A", "transport": "{transport}"}}"#));
        let exchange = client::ask(upstream.address().port(), &query, Duration::from_millis(200)).unwrap();
        assert_eq!(exchange.answer, None, "{transport}");
    }
    assert_eq!(upstream.received().len(), 2);
}

#[test]
fn pipelined_questions_in_pieces_are_all_answered() {
    let upstream = upstream(r#"[{"name": "a.", "type": "A", "answers": ["a. 1 IN A 192.0.2.1"]}]"#);
    let question = b"\x00\x13\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x00\x00\x01\x00\x01";
    let mut stream = TcpStream::connect(upstream.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let both = [question.as_slice(), question.as_slice()].concat();
    for piece in both.chunks(5) {
        stream.write_all(piece).unwrap();
    }
    // Each reply has 19 octets of header and question, 16 of the record and 2 of length.
    let mut replies = [0; 2 * 37];
    stream.read_exact(&mut replies).unwrap();
    assert_eq!(replies[..37], replies[37..]);
    assert_eq!(replies[..4], [0, 35, 0, 7]);
}
