//! Queries that the server drops, as a response policy says: their places are free at once, and nothing else of the connection changes.

use crate::fixture::*;
use crate::https_client::*;
use crate::quic_client::QuicService;
use sixfold_transport::quic::error_code;
use sixfold_transport::{Counter, Limits, limits};
use std::io::{Read, Write};
use std::time::Duration;

/// Asks as many queries as may wait, and one more, which is not read. Drops one of them: the last query is handed over, and all others are
/// answered.
fn drop_one_of_all(service: &Service, client: &mut (impl Read + Write)) {
    let all = limits::OUTSTANDING as u16;
    let queries: Vec<_> = (0..=all).map(|id| question(id, 20)).collect();
    send(client, &queries);
    let mut asked: Vec<_> = (0..all).map(|_| service.workers.next()).collect();
    assert_eq!(service.workers.waiting(), 0, "one more waits for a place");
    drop_query(&service.streams, &asked.remove(7).0);
    asked.push(service.workers.next());
    for (from, query) in &asked {
        assert!(deliver(&service.streams, from, &answer(query)));
    }
    let answered: Vec<u16> = asked.iter().map(|_| id(&receive(client))).collect();
    assert_eq!(answered, (0..=all).filter(|&id| id != 7).collect::<Vec<_>>());
    assert_eq!(service.streams.counter(Counter::AnswersQueued), u64::from(all));
}

#[test]
fn a_dropped_query_leaves_its_place_in_a_connection_over_tcp_and_tls() {
    let service = Service::new(ROOMY);
    drop_one_of_all(&service, &mut service.connect());
    let service = HttpsService::new(ROOMY);
    drop_one_of_all(&service, &mut service.connect_dot());
}

#[test]
fn a_connection_whose_only_query_is_dropped_ends_with_its_client_or_is_idle() {
    let service = Service::new(ROOMY);
    let mut client = service.connect();
    send(&mut client, &[question(1, 20)]);
    let (from, _) = service.workers.next();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    drop_query(&service.streams, &from);
    assert_eq!(read_to_end(&mut client), 0);
    service.await_count(Counter::ClosedEnded, 1);
    // The idle timeout counts, and not the time that an answer may take.
    let mut client = service.connect();
    send(&mut client, &[question(1, 20)]);
    let (from, _) = service.workers.next();
    drop_query(&service.streams, &from);
    service.streams.configure(Limits { idle: Duration::from_millis(300), ..ROOMY });
    assert_eq!(read_to_end(&mut client), 0);
    service.await_count(Counter::ClosedIdle, 1);
    assert_eq!(service.streams.counter(Counter::ClosedUnanswered), 0);
}

#[test]
fn the_stream_of_a_dropped_query_over_http_2_is_reset_and_its_place_is_free() {
    let service = HttpsService::new(ROOMY);
    let mut client = service.connect_http2();
    let mut asked = Vec::new();
    for number in 0..limits::OUTSTANDING {
        client.get(1 + 2 * number, &question(0, 10));
        asked.push(service.workers.next());
    }
    drop_query(&service.streams, &asked[3].0);
    // CANCEL (RFC 9113 section 7).
    assert_eq!(client.next_reset(), (7, 8));
    client.get(1001, &question(0, 10));
    let (from, query) = service.workers.next();
    assert!(deliver(&service.streams, &from, &answer(&query)));
    assert_eq!(client.next_body(), (1001, answer(&query)));
    assert!(deliver(&service.streams, &asked[4].0, &answer(&asked[4].1)));
    assert_eq!(client.next_body(), (9, answer(&asked[4].1)));
    let count = |counter| service.streams.counter(counter);
    assert_eq!([Counter::Https2xx, Counter::Https4xx, Counter::Https5xx].map(count), [2, 0, 0]);
}

#[test]
fn a_connection_over_http_1_ends_at_a_dropped_query_after_the_responses_before_it() {
    let service = HttpsService::new(ROOMY);
    let mut other = service.connect_http2();
    other.get(1, &question(0, 10));
    let kept = service.workers.next();
    let mut client = service.connect(&[b"http/1.1"]);
    let request = format!("GET {PATH}?dns={} HTTP/1.1\r\nHost: a\r\n\r\n", base64url(&question(0, 10)));
    client.write_all(request.repeat(2).as_bytes()).unwrap();
    let (first, query) = service.workers.next();
    assert!(deliver(&service.streams, &first, &answer(&query)));
    drop_query(&service.streams, &service.workers.next().0);
    let mut octets = Vec::new();
    // TLS calls the end an error without its alert.
    let _ = client.read_to_end(&mut octets);
    let heads = octets.windows(9).filter(|octets| octets.starts_with(b"HTTP/1.1 ")).count();
    assert!(heads == 1 && octets.ends_with(&answer(&query)), "{}", octets.escape_ascii());
    service.await_count(Counter::ClosedUnanswered, 1);
    assert!(deliver(&service.streams, &kept.0, &answer(&kept.1)));
    assert_eq!(other.next_body(), (1, answer(&kept.1)));
    let count = |counter| service.streams.counter(counter);
    assert_eq!([Counter::Https2xx, Counter::Https4xx, Counter::Https5xx].map(count), [2, 0, 0]);
}

#[test]
fn the_stream_of_a_dropped_query_over_quic_is_reset_and_its_place_is_free() {
    let service = QuicService::new(ROOMY);
    let client = service.client();
    let connection = client.connect();
    let all = limits::OUTSTANDING as usize;
    let mut streams: Vec<_> = (0..all).map(|body| client.ask(&connection, &question(0, 20 + body))).collect();
    client.eventually(|| service.workers.waiting() == all);
    let asked: Vec<_> = (0..all).map(|_| service.workers.next()).collect();
    let place = |body: usize| asked.iter().position(|(_, query)| query.len() == 12 + 20 + body).unwrap();
    // quinn tells the client of free places (MAX_STREAMS) when more than an eighth of all are free.
    for dropped in 8..8 + all / 8 + 1 {
        drop_query(&service.streams, &asked[place(dropped)].0);
        let end = client.run(streams[dropped].1.read_to_end(1000));
        let reset = quinn::ReadError::Reset(error_code::UNSPECIFIED_ERROR);
        assert_eq!(end, Err(quinn::ReadToEndError::Read(reset)));
    }
    // As many streams may be open as queries may wait, so another one shows that the places are free.
    let (_send, mut receive) = client.ask(&connection, &question(0, 10));
    client.eventually(|| service.workers.waiting() == 1);
    let (from, query) = service.workers.next();
    assert!(deliver(&service.streams, &from, &answer(&query)));
    assert_eq!(client.answer(&mut receive), answer(&query));
    let (from, query) = &asked[place(4)];
    assert!(deliver(&service.streams, from, &answer(query)));
    assert_eq!(client.answer(&mut streams[4].1), answer(query));
    let count = |counter| service.streams.counter(counter);
    let counters = [Counter::QuicAnswered, Counter::QuicFailed, Counter::QuicCancelled];
    assert_eq!(counters.map(count), [2, 0, 0]);
}
