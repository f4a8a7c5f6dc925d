//! Clients that fill the buffers of all connections, and clients that do not read their answers.

use crate::fixture::*;
use crate::https_client::*;
use crate::quic_client::QuicService;
use sixfold_transport::{Counter, Limits, limits};
use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Octets of a message that never ends. A connection may keep double of them.
const PARTIAL: usize = 60_000;

/// A client network that holds parts of messages until all buffers together are used up.
fn fill(service: &Service) -> Vec<TcpStream> {
    let message = framed(&question(1, PARTIAL));
    let mut greedy = Vec::new();
    for _ in 0..limits::BUFFER_OCTETS / PARTIAL {
        let mut stream = service.connect_from(Ipv4Addr::new(127, 0, 0, 2));
        stream.write_all(&message[..PARTIAL]).unwrap();
        greedy.push(stream);
        let closed = service.streams.counter(Counter::ClosedBuffers);
        if service.streams.buffered_octets() > limits::BUFFER_OCTETS - PARTIAL || closed > 0 {
            break;
        }
    }
    greedy
}

#[test]
fn a_network_that_fills_the_buffers_pays_for_it_and_another_loses_nothing() {
    let service = HttpsService::echo(ROOMY);
    let greedy = fill(&service);
    // More than a connection may always have.
    let mut pipelined = connect_tcp(service.address);
    let mut https = service.connect_http2();
    let queries: Vec<_> = (0..100).map(|id| question(id, 1000)).collect();
    for round in 0..20 {
        send(&mut pipelined, &queries);
        let answers: Vec<_> = queries.iter().map(|_| id(&receive(&mut pipelined))).collect();
        assert_eq!(answers, (0..100).collect::<Vec<_>>());
        let large = question(0, 20_000);
        https.post(1 + 2 * round, &large);
        assert_eq!(https.next_response().len(), answer(&large).len());
    }
    // Whoever asks for more while the buffers are used up decides nothing: the one who holds most pays.
    let closed = || service.streams.counter(Counter::ClosedBuffers);
    let mut modest = Vec::new();
    // 3 MB in all: more than the room that is left, and much less than the other one holds.
    while closed() == 0 && modest.len() < 100 {
        let mut stream = service.connect_from(Ipv4Addr::new(127, 0, 0, 3));
        stream.write_all(&framed(&question(1, PARTIAL))[..PARTIAL / 2]).unwrap();
        modest.push(stream);
    }
    eventually("connections are closed for their buffers", || closed() > 0);
    eventually("only the greedy network has lost connections", || {
        greedy.iter().filter(|stream| has_ended(stream)).count() as u64 == closed()
    });
    assert!(!modest.iter().any(has_ended), "the one who holds little loses nothing");
    send(&mut pipelined, &queries);
    queries.iter().for_each(|_| drop(receive(&mut pipelined)));
    drop((greedy, modest));
    eventually("nothing is buffered", || service.streams.buffered_octets() == 0);
}

/// True if the server has closed a connection on which it has nothing to say.
fn has_ended(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    !matches!(stream.peek(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
}

/// Longer than a pause of this machine.
const IDLE: Duration = Duration::from_secs(1);

#[test]
fn an_https_client_that_does_not_read_its_answers_is_closed_however_often_it_asks() {
    let service = HttpsService::echo(Limits { idle: IDLE, ..ROOMY });
    let mut client = service.connect_http2();
    // SETTINGS_INITIAL_WINDOW_SIZE of 0: no octet of a body may leave.
    client.send(&frame(4, 0, 0, &[0, 4, 0, 0, 0, 0])).unwrap();
    client.ping();
    client.get(1, &question(0, 20));
    let start = Instant::now();
    let mut stream = 3;
    // A request without a query gets status 400, which has no body.
    while client.send(&request_frame(stream, &[])).is_ok() && start.elapsed() < 10 * IDLE {
        stream += 2;
        thread::sleep(IDLE / 10);
    }
    assert!(start.elapsed() < 5 * IDLE, "requests keep the connection open");
    service.await_count(Counter::ClosedSlowReader, 1);
    eventually("nothing is buffered", || service.streams.buffered_octets() == 0);
}

#[test]
fn a_quic_client_that_does_not_read_its_answers_is_closed_however_often_it_asks() {
    let service = QuicService::echo(Limits { idle: IDLE, ..ROOMY });
    let client = service.client_with_window(16);
    let connection = client.connect();
    let _unread = client.ask(&connection, &question(0, 1000));
    let start = Instant::now();
    let mut closed = false;
    while !closed && start.elapsed() < 10 * IDLE {
        // Its answer fits into the window of its stream.
        if let Some(mut receive) = client.try_ask(&connection, &question(0, 0)) {
            let _ = client.run(receive.read_to_end(100));
        }
        closed = client.run(async { tokio::time::timeout(IDLE / 10, connection.closed()).await.is_ok() });
    }
    assert!(start.elapsed() < 5 * IDLE, "queries keep the connection open");
    service.await_count(Counter::ClosedSlowReader, 1);
    eventually("nothing is buffered", || service.streams.buffered_octets() == 0);
}

#[test]
fn the_bodies_of_one_https_connection_have_an_end() {
    let service = HttpsService::echo(ROOMY);
    let mut client = service.connect_http2();
    for stream in 0..8 {
        client.begin_post(1 + 2 * stream, &[0; 60_000]);
    }
    service.await_count(Counter::Https5xx, 4);
    assert!(service.streams.buffered_octets() <= limits::WRITE_QUEUE_OCTETS);
}
