//! The requests of an HTTP/2 connection that do not go smoothly: bodies in parts, streams that the client resets, connections that end,
//! and queries for which the server has no room.

use crate::fixture::*;
use crate::https_client::*;
use sixfold_transport::{Counter, Limits, limits};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A DATA frame.
fn data_frame(stream: u32, octets: &[u8], is_last: bool) -> Vec<u8> {
    frame(0, u8::from(is_last), stream, octets)
}

#[test]
fn a_body_is_read_in_one_part_and_in_many() {
    let service = HttpsService::new(ROOMY);
    let mut client = service.connect_http2();
    let asked = question(0, 40);
    client.send(&[post_frame(1), data_frame(1, &asked, true)].concat()).unwrap();
    assert_eq!(service.workers.next().1, asked);
    client.send(&post_frame(3)).unwrap();
    for octet in &asked {
        client.ping();
        client.send(&data_frame(3, &[*octet], false)).unwrap();
    }
    assert_eq!(service.workers.waiting(), 0);
    client.send(&data_frame(3, &[], true)).unwrap();
    let (to, message) = service.workers.next();
    assert_eq!(message, asked);
    assert!(deliver(&service.streams, &to, &answer(&message)));
    assert_eq!(client.next_body(), (3, answer(&asked)));
}

#[test]
fn a_body_without_an_end_and_one_that_is_too_long_are_refused() {
    let service = HttpsService::echo(Limits { idle: Duration::from_secs(1), ..ROOMY });
    let mut client = service.connect_http2();
    client.send(&[post_frame(1), data_frame(1, &question(0, 5), false)].concat()).unwrap();
    service.await_count(Counter::Https4xx, 1);
    let service = HttpsService::echo(ROOMY);
    let mut client = service.connect_http2();
    client.send(&post_frame(1)).unwrap();
    // The window of a stream holds the longest query; the server opens it again as it reads.
    for _ in 0..4 {
        client.send(&data_frame(1, &[0; 16_000], false)).unwrap();
        client.ping();
    }
    client.send(&data_frame(1, &[0; 1536], true)).unwrap();
    service.await_count(Counter::Https4xx, 1);
    eventually("nothing is buffered", || service.streams.buffered_octets() == 0);
}

#[test]
fn a_connection_that_ends_frees_the_slots_of_its_requests() {
    let service = HttpsService::new(ROOMY);
    let mut client = service.connect_http2();
    let mut other = service.connect_http2();
    other.get(1, &question(0, 10));
    let kept = service.workers.next();
    for stream in 0..5 {
        client.get(1 + 2 * stream, &question(0, 20));
    }
    // Half of a body waits too.
    client.send(&[post_frame(11), data_frame(11, &question(0, 5), false)].concat()).unwrap();
    client.ping();
    let asked: Vec<_> = (0..5).map(|_| service.workers.next()).collect();
    drop(client);
    eventually("one is left", || service.streams.connections() == 1);
    for (to, message) in &asked {
        deliver(&service.streams, to, &answer(message));
    }
    service.await_count(Counter::AnswersUndeliverable, 5);
    assert!(deliver(&service.streams, &kept.0, &answer(&kept.1)));
    assert_eq!(other.next_body(), (1, answer(&kept.1)));
    eventually("nothing is buffered", || service.streams.buffered_octets() == 0);
}

#[test]
fn streams_that_the_client_resets_take_places_until_their_answers_come() {
    let service = HttpsService::new(ROOMY);
    let mut client = service.connect_http2();
    let mut asked = Vec::new();
    for number in 0..limits::OUTSTANDING {
        client.get(1 + 2 * number, &question(0, 10));
        asked.push(service.workers.next());
        client.reset(1 + 2 * number);
        client.ping();
    }
    client.get(1001, &question(0, 10));
    service.await_count(Counter::Https5xx, 1);
    for (to, message) in &asked {
        deliver(&service.streams, to, &answer(message));
    }
    service.await_count(Counter::AnswersUndeliverable, u64::from(limits::OUTSTANDING));
    client.get(1003, &question(0, 10));
    let (to, message) = service.workers.next();
    assert!(deliver(&service.streams, &to, &answer(&message)));
    assert_eq!(client.next_body(), (1003, answer(&message)));
}

#[test]
fn a_query_without_room_at_the_server_is_offered_again_and_then_refused() {
    let service = HttpsService::new(ROOMY);
    let mut client = service.connect_http2();
    service.workers.refuse.store(1, Ordering::SeqCst);
    client.get(1, &question(0, 10));
    let (to, message) = service.workers.next();
    assert!(deliver(&service.streams, &to, &answer(&message)));
    assert_eq!(client.next_body(), (1, answer(&message)));
    service.workers.refuse.store(usize::MAX, Ordering::SeqCst);
    client.get(3, &question(0, 10));
    service.await_count(Counter::Https5xx, 1);
    assert_eq!(service.streams.counter(Counter::QuestionsRefused), 1);
}

#[test]
fn a_stream_whose_query_is_not_answered_gets_status_504() {
    let service = HttpsService::new(Limits { answer_wait: Duration::from_millis(50), ..ROOMY });
    let mut client = service.connect_http2();
    client.get(1, &question(0, 10));
    let (to, message) = service.workers.next();
    service.await_count(Counter::Https5xx, 1);
    deliver(&service.streams, &to, &answer(&message));
    service.await_count(Counter::AnswersUndeliverable, 1);
}
