//! Queries and answers: pipelining, order, framing, half-close, back-pressure.

use crate::fixture::*;
use engine::ClientTransport;
use sixfold_transport::Counter;
use std::collections::HashSet;
use std::io::Write;
use std::net::{Ipv6Addr, Shutdown};
use std::sync::atomic::Ordering;
use std::time::Duration;

#[test]
fn pipelined_questions_are_answered_in_the_order_of_the_answers() {
    let service = Service::new(ROOMY);
    let mut client = service.connect();
    let questions: Vec<_> = (0..100).map(|id| question(id, usize::from(id))).collect();
    send(&mut client, &questions);
    let asked: Vec<_> = (0..100).map(|_| service.workers.next()).collect();
    for (to, message) in asked.iter().rev() {
        assert!(deliver(&service.streams, to, &answer(message)));
    }
    for expected in questions.iter().rev() {
        assert_eq!(receive(&mut client), answer(expected));
    }
    assert_eq!(service.streams.counter(Counter::QuestionsPosted), 100);
    service.await_count(Counter::AnswersQueued, 100);
}

#[test]
fn a_stream_that_comes_octet_by_octet_is_understood() {
    let service = Service::new(ROOMY).echo();
    let mut client = service.connect();
    for id in 0..3 {
        for octet in framed(&question(id, 40)) {
            client.write_all(&[octet]).unwrap();
        }
        assert_eq!(receive(&mut client), answer(&question(id, 40)));
    }
    eventually("nothing is buffered", || service.streams.buffered_octets() == 0);
}

#[test]
fn the_largest_messages_pass_in_both_directions() {
    let service = Service::new(ROOMY).echo();
    let mut client = service.connect();
    for id in 0..5 {
        send(&mut client, &[question(id, 65_535 - 12)]);
        assert_eq!(receive(&mut client), answer(&question(id, 65_535 - 12)));
    }
}

#[test]
fn a_client_that_has_shut_down_its_side_still_gets_its_answers() {
    let service = Service::new(ROOMY);
    let mut client = service.connect();
    send(&mut client, &[question(1, 20), question(2, 20)]);
    client.shutdown(Shutdown::Write).unwrap();
    for _ in 0..2 {
        let (to, message) = service.workers.next();
        assert!(deliver(&service.streams, &to, &answer(&message)));
    }
    assert_eq!([id(&receive(&mut client)), id(&receive(&mut client))], [1, 2]);
    assert_eq!(read_to_end(&mut client), 0);
    service.await_count(Counter::ClosedEnded, 1);
}

#[test]
fn answers_owed_to_a_connection_that_was_reset_are_counted_as_undeliverable() {
    let service = Service::new(ROOMY);
    let mut client = service.connect();
    send(&mut client, &[question(1, 20)]);
    let (to, message) = service.workers.next();
    socket2::SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
    drop(client);
    service.await_count(Counter::ClosedReset, 1);
    deliver(&service.streams, &to, &answer(&message));
    service.await_count(Counter::AnswersUndeliverable, 1);
    assert_eq!(service.streams.connections(), 0);
}

#[test]
fn a_close_with_answers_owed_is_noticed_when_they_are_written() {
    let service = Service::new(ROOMY);
    let mut client = service.connect();
    send(&mut client, &[question(1, 20), question(2, 20), question(3, 20)]);
    let asked: Vec<_> = (0..3).map(|_| service.workers.next()).collect();
    drop(client);
    // The first answer causes the reset, and a later one meets it.
    for (count, (to, message)) in asked.iter().enumerate() {
        deliver(&service.streams, to, &answer(message));
        let settled = || service.streams.counter(Counter::AnswersQueued) == count as u64 + 1;
        eventually("the answer was taken, or the stream is gone", || {
            settled() || service.streams.connections() == 0
        });
    }
    eventually("the connection is gone", || service.streams.connections() == 0);
}

#[test]
fn reading_stops_while_128_questions_wait() {
    let service = Service::new(ROOMY);
    let mut client = service.connect();
    let questions: Vec<_> = (0..1000).map(|id| question(id, 30)).collect();
    send(&mut client, &questions);
    let mut ids = HashSet::new();
    let mut asked = Vec::new();
    for _ in 0..128 {
        asked.push(service.workers.next());
    }
    assert_eq!(service.workers.waiting(), 0);
    let mut answered = 0;
    while answered < 1000 {
        let (to, message) = asked.pop().unwrap_or_else(|| service.workers.next());
        assert!(deliver(&service.streams, &to, &answer(&message)));
        ids.insert(id(&receive(&mut client)));
        answered += 1;
        assert!(service.streams.counter(Counter::QuestionsPosted) <= answered + 128);
    }
    assert_eq!(ids.len(), 1000);
    eventually("nothing is buffered", || service.streams.buffered_octets() == 0);
}

#[test]
fn a_refused_question_is_offered_again() {
    let service = Service::new(ROOMY);
    service.workers.refuse.store(20, Ordering::SeqCst);
    let service = service.echo();
    let mut client = service.connect();
    send(&mut client, &[question(1, 20), question(2, 20), question(3, 20)]);
    assert_eq!([0; 3].map(|_| id(&receive(&mut client))), [1, 2, 3]);
    assert_eq!(service.streams.counter(Counter::QuestionsRefused), 0);
}

#[test]
fn a_question_that_is_refused_all_the_time_gets_servfail_and_is_counted() {
    let service = Service::new(ROOMY);
    service.workers.refuse.store(sixfold_transport::limits::RETRIES as usize + 1, Ordering::SeqCst);
    let service = service.echo();
    let mut client = service.connect();
    send(&mut client, &[question(1, 20), question(2, 20)]);
    let failure = receive(&mut client);
    // QR, and RCODE 2.
    assert_eq!((id(&failure), failure[2] & 0x80, failure[3] & 0x0f), (1, 0x80, 2));
    assert_eq!(id(&receive(&mut client)), 2);
    assert_eq!(service.streams.counter(Counter::QuestionsRefused), 1);
}

#[test]
fn a_response_from_a_client_is_passed_on_and_nothing_is_owed_for_it() {
    let service = Service::new(ROOMY);
    let mut client = service.connect();
    send(&mut client, &[answer(&question(1, 20))]);
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(service.workers.next().1, answer(&question(1, 20)));
    assert_eq!(read_to_end(&mut client), 0);
    service.await_count(Counter::ClosedEnded, 1);
}

#[test]
fn lengths_below_a_header_end_the_connection() {
    let service = Service::new(ROOMY).echo();
    for (count, length) in [0, 1, 5, 11].into_iter().enumerate() {
        let mut client = service.connect();
        send(&mut client, &[question(1, 20)]);
        assert_eq!(id(&receive(&mut client)), 1);
        client.write_all(&framed(&vec![0; length])).unwrap();
        assert_eq!(read_to_end(&mut client), 0);
        service.await_count(Counter::ClosedMalformedLength, count as u64 + 1);
    }
}

#[test]
fn a_client_is_described_completely() {
    for (listen, mapped) in [("127.0.0.1:0", "::ffff:127.0.0.1"), ("[::]:0", "::1")] {
        let mut service = Service::listening(listen, ROOMY, 1);
        if listen.starts_with('[') {
            service.address.set_ip(Ipv6Addr::LOCALHOST.into());
        }
        let mut streams = HashSet::new();
        for _ in 0..3 {
            let mut client = service.connect();
            send(&mut client, &[question(1, 20)]);
            let (from, _) = service.workers.next();
            assert_eq!(from.address, mapped.parse::<Ipv6Addr>().unwrap());
            assert_eq!(from.local, from.address);
            assert_eq!(from.port, client.local_addr().unwrap().port());
            assert_eq!((from.transport, from.listener, from.scope), (ClientTransport::Tcp, 0, 0));
            assert!(from.stream != 0 && streams.insert(from.stream));
        }
    }
}

#[test]
fn several_threads_serve_the_same_sockets() {
    let service = Service::listening("127.0.0.1:0", ROOMY, 3).echo();
    let mut clients: Vec<_> = (0..60).map(|_| service.connect()).collect();
    for round in 0..3 {
        for client in &mut clients {
            send(client, &[question(round, 30), question(round + 1, 30)]);
        }
        for client in &mut clients {
            assert_eq!([0; 2].map(|_| id(&receive(client))), [round, round + 1]);
        }
    }
    assert_eq!(service.streams.connections(), 60);
}

#[test]
fn an_answer_for_no_stream_is_refused_or_counted() {
    let service = Service::new(ROOMY);
    let mut nobody = engine::Client::udp("127.0.0.1:5353".parse().unwrap());
    nobody.stream = 77;
    deliver(&service.streams, &nobody, &answer(&question(1, 0)));
    service.await_count(Counter::AnswersUndeliverable, 1);
    nobody.stream = 5 << 56;
    assert!(!deliver(&service.streams, &nobody, &answer(&question(1, 0))));
    assert_eq!(service.streams.counter(Counter::AnswersOverrun), 1);
}
