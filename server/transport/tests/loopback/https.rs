//! DNS over HTTPS: requests and statuses over HTTP/1.1 and HTTP/2, timeouts, the end, and attacks. While an attack is under way, another
//! client gets its answers.

use crate::fixture::*;
use crate::https_client::*;
use datapath::StreamSink;
use engine::ClientTransport;
use sixfold_transport::{Counter, Limits, limits};
use std::io::{Read, Write};
use std::time::Duration;

/// The head and the body of a response over HTTP/1.1, in lower case as far as HTTP cares.
fn exchange(client: &mut Tls, request: &str, body: &[u8]) -> (String, Vec<u8>) {
    client.write_all(request.as_bytes()).unwrap();
    client.write_all(body).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut octet = [0];
        client.read_exact(&mut octet).unwrap();
        head.extend(octet);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
    let is_head = request.starts_with("HEAD");
    let mut body = vec![0; if is_head { 0 } else { length.parse().unwrap() }];
    client.read_exact(&mut body).unwrap();
    (head, body)
}

fn get(query: &str) -> String {
    format!("GET {PATH}?{query} HTTP/1.1\r\nHost: dns.example\r\n\r\n")
}

fn post(media_type: &str, octets: usize) -> String {
    format!(
        "POST {PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: {media_type}\r\nContent-Length: {octets}\r\n\r\n"
    )
}

//= RFC 8484 section 4.1: requirement 82
//= RFC 8484 section 4.2: requirement 83
#[test]
fn get_post_and_head_over_one_http_1_connection_are_answered() {
    let service = HttpsService::echo(ROOMY);
    let mut client = service.connect(&[b"http/1.1"]);
    let query = question(0, 5);
    let parameter = format!("dns={}", base64url(&query));
    for (request, body, expected) in [
        (get(&parameter), &[][..], answer(&query)),
        (post("application/dns-message", query.len()), &query, answer(&query)),
        (get(&parameter).replace("GET", "HEAD"), &[], Vec::new()),
    ] {
        let (head, body) = exchange(&mut client, &request, body);
        assert!(head.starts_with("http/1.1 200"), "{head}");
        assert!(head.contains("content-type: application/dns-message\r\n"), "{head}");
        assert!(
            head.contains("content-length: 17\r\n") && head.contains("cache-control: max-age=0\r\n"),
            "{head}"
        );
        assert_eq!(body, expected);
    }
    assert_eq!(service.streams.counter(Counter::Https2xx), 3);
}

#[test]
fn a_client_without_alpn_speaks_http_1() {
    let service = HttpsService::echo(ROOMY);
    let mut client = service.connect(&[]);
    let (head, _) = exchange(&mut client, &get(&format!("dns={}", base64url(&question(1, 5)))), &[]);
    assert!(head.starts_with("http/1.1 200"), "{head}");
}

#[test]
fn each_refused_request_gets_the_status_that_http_has_for_it() {
    let service = HttpsService::echo(ROOMY);
    let response = base64url(&answer(&question(1, 5)));
    let parameter = format!("dns={}", base64url(&question(1, 5)));
    let long = format!("dns={}", "A".repeat(9000));
    for (request, status) in [
        (get("dns=AAAA"), "400"),
        (get("name=example"), "400"),
        (get("dns=A%"), "400"),
        (get(&format!("dns={response}")), "400"),
        // RFC 9112 section 3.2.
        (get(&parameter).replace("Host: dns.example\r\n", ""), "400"),
        (get(&parameter).replace("Host", "Host: a\r\nHost"), "400"),
        (get("dns=AAAA").replace(PATH, "/"), "404"),
        (get("dns=AAAA").replace(PATH, "/dns-query/"), "404"),
        (get("dns=AAAA").replace("GET", "PUT"), "405"),
        (post("application/dns-message", 65_536), "413"),
        (get(&long), "414"),
        (post("text/plain", 0), "415"),
    ] {
        let mut client = service.connect(&[b"http/1.1"]);
        let (head, _) = exchange(&mut client, &request, &[]);
        assert!(head.starts_with(&format!("http/1.1 {status}")), "{request}: {head}");
        assert_eq!(head.contains("allow: get, head, post"), status == "405", "{head}");
    }
    assert_eq!(service.streams.counter(Counter::Https4xx), 12);
    assert_eq!(service.streams.counter(Counter::QuestionsPosted), 0);
}

#[test]
fn requests_with_the_same_id_get_their_own_answers_in_any_order() {
    let service = HttpsService::new(ROOMY);
    let mut client = service.connect_http2();
    for stream in 0..20 {
        client.get(1 + 2 * stream, &question(0, 10 + stream as usize));
    }
    let asked: Vec<_> = (0..20).map(|_| service.workers.next()).collect();
    for (to, message) in asked.iter().rev() {
        assert_eq!(to.transport, ClientTransport::Https);
        assert!(deliver(&service.streams, to, &answer(message)));
    }
    for _ in 0..20 {
        let (stream, body) = client.next_body();
        assert_eq!(body, answer(&question(0, 10 + (stream as usize - 1) / 2)));
    }
    service.await_count(Counter::AnswersQueued, 20);
    eventually("nothing is buffered", || service.streams.buffered_octets() == 0);
}

#[test]
fn each_response_has_a_tls_record_of_its_own_when_many_leave_at_once() {
    let service = HttpsService::new(ROOMY);
    let mut client = service.connect_http2();
    client.ping();
    for number in 0..20 {
        client.get(1 + 2 * number, &question(0, 10));
    }
    for number in 0..20 {
        let (to, message) = service.workers.next();
        // HTTP/2 does not copy long answers behind their frame headers.
        assert!(service.streams.deliver(&to, &[answer(&message), vec![0; 40 * number]].concat()));
    }
    service.streams.wake();
    let mut responses = 0;
    while responses < 20 {
        let ends = last_frames(&client.next_record());
        assert!(ends <= 1, "{ends} responses in a record");
        responses += ends;
    }
}

/// Number of frames in these octets that end their streams.
fn last_frames(mut frames: &[u8]) -> usize {
    let mut ends = 0;
    while let [high, middle, low, kind, flags, ..] = *frames {
        ends += usize::from(kind <= 1 && flags & 1 == 1);
        frames = &frames[9 + u32::from_be_bytes([0, high, middle, low]) as usize..];
    }
    ends
}

#[test]
fn a_request_that_its_client_resets_frees_its_slot_and_its_answer_is_undeliverable() {
    let service = HttpsService::new(ROOMY);
    let mut client = service.connect_http2();
    client.get(1, &question(0, 10));
    client.get(3, &question(0, 20));
    let (first, second) = (service.workers.next(), service.workers.next());
    client.reset(1);
    client.ping();
    deliver(&service.streams, &first.0, &answer(&first.1));
    deliver(&service.streams, &second.0, &answer(&second.1));
    assert_eq!(client.next_body(), (3, answer(&second.1)));
    service.await_count(Counter::AnswersUndeliverable, 1);
}

#[test]
fn a_question_that_the_server_does_not_answer_gets_status_504() {
    let service = HttpsService::new(Limits { answer_wait: Duration::from_millis(50), ..ROOMY });
    let mut client = service.connect(&[b"http/1.1"]);
    let (head, _) = exchange(&mut client, &get(&format!("dns={}", base64url(&question(0, 5)))), &[]);
    assert!(head.starts_with("http/1.1 504"), "{head}");
    assert_eq!(service.streams.counter(Counter::Https5xx), 1);
}

#[test]
fn an_idle_connection_is_told_to_go_and_a_slow_handshake_or_header_is_cut_off() {
    let service = HttpsService::echo(Limits { idle: Duration::from_millis(200), ..ROOMY });
    let mut idle = service.connect_http2();
    idle.get(1, &question(0, 5));
    idle.next_body();
    let silent = service.connect_tcp();
    let mut slow = service.connect(&[b"http/1.1"]);
    slow.write_all(b"GET / HTTP/1.1\r\nHost:").unwrap();
    assert!(idle.await_goaway());
    drop(idle);
    service.await_count(Counter::ClosedHandshake, 1);
    eventually("all are closed", || service.streams.connections() == 0);
    drop((silent, slow));
}

#[test]
fn a_client_that_leaves_too_many_answers_unread_is_closed_long_before_it_is_idle() {
    let service = HttpsService::new(ROOMY);
    let mut client = service.connect_http2();
    // The windows of the client and the kernel's buffers take a part of them.
    for stream in 0..200 {
        client.get(2 * stream + 1, &question(0, 10));
        let (to, _) = service.workers.next();
        deliver(&service.streams, &to, &answer(&question(0, 60_000)));
        if service.streams.buffered_octets() > 2 * limits::WRITE_QUEUE_OCTETS {
            break;
        }
    }
    service.await_count(Counter::ClosedSlowReader, 1);
    eventually("nothing is buffered", || service.streams.buffered_octets() == 0);
    assert_eq!(service.streams.connections(), 0);
}

#[test]
fn a_drained_server_answers_what_it_was_asked_and_sends_goaway() {
    let service = HttpsService::new(ROOMY);
    let mut client = service.connect_http2();
    client.get(1, &question(0, 10));
    let (to, message) = service.workers.next();
    let streams = service.streams.clone();
    let end = std::thread::spawn(move || streams.drain(TEST_TIMEOUT));
    assert!(client.await_goaway());
    assert!(deliver(&service.streams, &to, &answer(&message)));
    assert_eq!(client.next_body(), (1, answer(&message)));
    drop(client);
    assert_eq!(end.join().unwrap(), 0);
}

/// Runs an attack on a connection of its own until the server ends it. Another client asks before, during and after it.
fn attack(mut turn: impl FnMut(&mut Http2, u32) -> std::io::Result<()>) {
    let service = HttpsService::echo(ROOMY);
    let mut other = service.connect_http2();
    let mut attacker = service.connect_http2();
    let mut asked = 0;
    let ended = (0..20_000).any(|number| {
        if number % 1000 == 0 {
            other.get(1 + 2 * asked, &question(0, 10));
            assert_eq!(other.next_body(), (1 + 2 * asked, answer(&question(0, 10))));
            asked += 1;
        }
        turn(&mut attacker, number).is_err()
    });
    assert!(ended || attacker.await_goaway(), "the server lets the attacker go on");
    drop(attacker);
    other.get(1 + 2 * asked, &question(0, 10));
    other.next_body();
    drop(other);
    eventually("nothing is left", || {
        service.streams.connections() == 0 && service.streams.buffered_octets() == 0
    });
}

#[test]
fn requests_on_their_way_while_another_process_takes_over_are_answered() {
    let service = HttpsService::echo(ROOMY);
    let mut http1 = service.connect(&[b"http/1.1"]);
    let mut http2 = service.connect_http2();
    service.await_count(Counter::HandshakesFull, 2);
    let streams = service.streams.clone();
    let retired = std::thread::spawn(move || streams.retire(TEST_TIMEOUT, TEST_TIMEOUT));
    // The connections have been told, and only now come their first requests.
    assert!(http2.await_goaway());
    let query = question(0, 20);
    http2.get(1, &query);
    let head = "POST /dns-query HTTP/1.1\r\nhost: a\r\ncontent-type: application/dns-message\r\n";
    let length = format!("content-length: {}\r\n\r\n", query.len());
    let (head, body) = exchange(&mut http1, &format!("{head}{length}"), &query);
    assert_eq!(body, answer(&query));
    // The response says that it is the last one, and the connection ends after it.
    assert!(head.contains("\r\nconnection: close\r\n"), "{head}");
    assert_eq!(http1.read(&mut [0]).unwrap(), 0);
    assert_eq!(http2.next_body(), (1, answer(&query)));
    drop(http2);
    retired.join().unwrap();
    assert_eq!(service.streams.counter(Counter::Https2xx), 2);
}

#[test]
fn a_rapid_reset_ends_its_own_connection_only() {
    attack(|attacker, number| {
        // 50 requests and their resets in one TLS record, so that the server reads them together.
        let streams = (0..50).map(|place| 1 + 2 * (50 * number + place));
        let both =
            |stream| [request_frame(stream, &question(0, 10)), frame(3, 0, stream, &8u32.to_be_bytes())];
        attacker.send(&streams.flat_map(both).collect::<Vec<_>>().concat())
    });
}

#[test]
fn a_continuation_flood_ends_its_own_connection_only() {
    attack(|attacker, number| {
        // A HEADERS frame without END_HEADERS, then fields that have no end: literals that are not indexed.
        let field = [&[0x00, 1, b'a', 0x7f, 0xe1, 0x06][..], &[b'x'; 992]].concat();
        if number == 0 {
            attacker.send(&frame(1, 0, 1, &field))
        } else {
            attacker.send(&frame(9, 0, 1, &field))
        }
    });
}

#[test]
fn a_compression_bomb_does_not_reach_the_server_and_others_are_answered() {
    let service = HttpsService::echo(ROOMY);
    let mut attacker = service.connect_http2();
    // One field of 4,000 octets enters the table; each further octet 0xbe repeats it: 60 MB decompressed.
    let entry = [&[0x40, 1, b'a', 0x7f, 0xa1, 0x1e][..], &[b'x'; 4000]].concat();
    let bomb = [&request_fields(&question(0, 10))[..], &entry, &[0xbe; 12_000]].concat();
    attacker.send(&frame(1, 5, 1, &bomb[..bomb.len().min(16_384)])).unwrap();
    attacker.ping();
    assert_eq!(service.streams.counter(Counter::QuestionsPosted), 0);
    let mut other = service.connect_http2();
    other.get(1, &question(0, 10));
    assert_eq!(other.next_body(), (1, answer(&question(0, 10))));
}

#[test]
fn other_protocols_are_refused_before_they_reach_http() {
    let service = HttpsService::echo(ROOMY);
    // DNS over TLS by its ALPN, and plain DNS on TCP.
    assert!(service.try_connect(&[b"dot"]).is_err());
    service.await_count(Counter::ClosedHandshake, 1);
    let mut plain = service.connect_tcp();
    send(&mut plain, &[question(1, 20)]);
    read_to_end(&mut plain);
    service.await_count(Counter::ClosedHandshake, 2);
    // DNS over TLS without ALPN: HTTP/1.1 does not understand it.
    let mut dot = service.connect(&[]);
    dot.write_all(&framed(&question(1, 20))).unwrap();
    let mut rest = Vec::new();
    let _ = dot.read_to_end(&mut rest);
    assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 400"), "{rest:?}");
    assert_eq!(service.streams.counter(Counter::QuestionsPosted), 0);
}

#[test]
fn header_fields_without_end_are_refused() {
    let service = HttpsService::echo(ROOMY);
    let mut client = service.connect(&[b"http/1.1"]);
    let _ =
        client.write_all(format!("GET {PATH} HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(100_000)).as_bytes());
    let mut rest = Vec::new();
    let _ = client.read_to_end(&mut rest);
    assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 431"), "{}", String::from_utf8_lossy(&rest));
    eventually("it is closed", || service.streams.connections() == 0);
}
