//! Timeouts of a connection: idle, slow senders, slow readers, answers that never come.

use crate::fixture::*;
use sixfold_transport::{Counter, Limits, limits};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(300);

#[test]
fn an_idle_connection_is_closed() {
    let service = Service::new(ROOMY).echo();
    let start = Instant::now();
    let mut silent = service.connect();
    let mut spoke = service.connect();
    send(&mut spoke, &[question(1, 20)]);
    assert_eq!(id(&receive(&mut spoke)), 1);
    service.streams.configure(Limits { idle: SHORT, ..ROOMY });
    assert_eq!(read_to_end(&mut silent), 0);
    assert_eq!(read_to_end(&mut spoke), 0);
    assert!(start.elapsed() >= SHORT);
    service.await_count(Counter::ClosedIdle, 2);
}

#[test]
fn a_connection_that_was_active_for_longer_than_the_idle_timeout_is_closed_when_it_is_idle() {
    // So long that no pause of this thread is as long.
    let idle = Duration::from_secs(1);
    let service = Service::new(Limits { idle, ..ROOMY }).echo();
    let mut client = service.connect();
    let mut silent = service.connect();
    let start = Instant::now();
    let mut latest = start;
    while start.elapsed() < idle + idle / 2 {
        latest = Instant::now();
        send(&mut client, &[question(1, 20)]);
        assert_eq!(id(&receive(&mut client)), 1);
        thread::sleep(idle / 100);
    }
    assert_eq!(read_to_end(&mut silent), 0);
    assert_eq!(read_to_end(&mut client), 0);
    assert!(latest.elapsed() >= idle);
    service.await_count(Counter::ClosedIdle, 2);
}

#[test]
fn a_message_that_trickles_in_is_cut_off_however_steadily_it_comes() {
    let service = Service::new(ROOMY).echo();
    let mut client = service.connect();
    client.write_all(&framed(&question(1, 60_000))[..1]).unwrap();
    eventually("the message has begun", || service.streams.buffered_octets() > 0);
    let start = Instant::now();
    service.streams.configure(Limits { idle: SHORT, ..ROOMY });
    let message = framed(&question(1, 60_000));
    let mut octets = message[1..].iter().take_while(|_| start.elapsed() < TEST_TIMEOUT);
    let is_cut_off = octets.any(|&octet| {
        // The pause between two octets is far shorter than the idle timeout.
        thread::sleep(Duration::from_millis(2));
        client.write_all(&[octet]).is_err()
    });
    assert!(is_cut_off, "while octets were still coming");
    service.await_count(Counter::ClosedSlowSender, 1);
    eventually("nothing is buffered", || service.streams.buffered_octets() == 0);
}

#[test]
fn a_client_that_waits_for_an_answer_is_not_idle_but_does_not_wait_forever() {
    let service = Service::new(ROOMY);
    let mut client = service.connect();
    let start = Instant::now();
    send(&mut client, &[question(1, 20)]);
    let (from, asked) = service.workers.next();
    service.streams.configure(Limits { idle: Duration::from_millis(20), answer_wait: SHORT, ..ROOMY });
    assert_eq!(read_to_end(&mut client), 0);
    assert!(start.elapsed() >= SHORT);
    service.await_count(Counter::ClosedUnanswered, 1);
    deliver(&service.streams, &from, &answer(&asked));
    service.await_count(Counter::AnswersUndeliverable, 1);
}

/// A client with a small receive buffer in the kernel.
fn stingy(service: &Service) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(8192).unwrap();
    socket.connect(&service.address.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream
}

/// Sends queries for answers of 10,000 octets, one at a time, until more than `octets` octets are buffered or the connection is
/// closed.
fn fill(service: &Service, client: &mut TcpStream, octets: usize) {
    for round in 1..200 {
        if client.write_all(&framed(&question(round as u16, 0))).is_err() {
            return;
        }
        let (to, _) = service.workers.next();
        deliver(&service.streams, &to, &answer(&question(round as u16, 10_000)));
        eventually("the answer is queued, or the stream gone", || {
            service.streams.counter(Counter::AnswersQueued) == round || service.streams.connections() == 0
        });
        if service.streams.connections() == 0 || service.streams.buffered_octets() > octets {
            return;
        }
    }
    panic!("the kernel takes everything");
}

#[test]
fn answers_that_are_not_read_in_time_end_the_connection() {
    let service = Service::new(ROOMY);
    let mut client = stingy(&service);
    fill(&service, &mut client, 20_000);
    assert_eq!(service.streams.connections(), 1);
    service.streams.configure(Limits { idle: SHORT, ..ROOMY });
    service.await_count(Counter::ClosedSlowReader, 1);
    eventually("no connection is left", || service.streams.connections() == 0);
    eventually("nothing is buffered", || service.streams.buffered_octets() == 0);
}

#[test]
fn a_slow_but_steady_reader_gets_everything() {
    let service = Service::new(ROOMY);
    let mut client = stingy(&service);
    fill(&service, &mut client, 50_000);
    let answers = service.streams.counter(Counter::AnswersQueued) as usize;
    let mut left = answers * (2 + 12 + 10_000);
    let mut room = [0; 3000];
    while left > 0 {
        let read = client.read(&mut room).unwrap();
        assert_ne!(read, 0);
        left -= read;
    }
    eventually("nothing is buffered", || service.streams.buffered_octets() == 0);
    assert_eq!(service.streams.connections(), 1);
}

#[test]
fn a_queue_of_answers_that_overflows_ends_the_connection_at_once() {
    let service = Service::new(ROOMY);
    let mut client = stingy(&service);
    let questions: Vec<_> = (0..20).map(|id| question(id, 0)).collect();
    send(&mut client, &questions);
    let asked: Vec<_> = questions.iter().map(|_| service.workers.next()).collect();
    for (to, message) in &asked {
        let mut large = answer(message);
        large.resize(60_000, 0);
        deliver(&service.streams, to, &large);
    }
    service.await_count(Counter::ClosedSlowReader, 1);
    eventually("the stream is gone", || service.streams.connections() == 0);
    eventually("every answer is accounted for", || {
        service.streams.counter(Counter::AnswersQueued)
            + service.streams.counter(Counter::AnswersUndeliverable)
            == 20
    });
    eventually("nothing is buffered", || service.streams.buffered_octets() == 0);
}

#[test]
fn a_client_that_asks_and_never_reads_is_read_no_more() {
    let service = Service::new(ROOMY).echo();
    let mut client = stingy(&service);
    let batch: Vec<u8> = (0..50).flat_map(|id| framed(&question(id, 500))).collect();
    let asking = thread::spawn(move || while client.write_all(&batch).is_ok() {});
    let posted = || service.streams.counter(Counter::QuestionsPosted);
    // The kernel takes some more answers while its buffer grows, and then some more queries are read. Wait until nothing has
    // moved for a hundred checks.
    let mut unmoved = (0, 0);
    eventually("answers pile up, and nothing moves", || {
        unmoved = if posted() == unmoved.0 { (unmoved.0, unmoved.1 + 1) } else { (posted(), 0) };
        unmoved.1 >= 100
            && service.streams.counter(Counter::AnswersQueued) == unmoved.0
            && service.streams.buffered_octets() >= limits::UNREAD_OCTETS
    });
    let asked = posted();
    service.streams.configure(Limits { idle: SHORT, ..ROOMY });
    service.await_count(Counter::ClosedSlowReader, 1);
    assert_eq!(posted(), asked);
    asking.join().unwrap();
}
