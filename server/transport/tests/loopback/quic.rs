//! DNS over QUIC: queries and answers, the rules of RFC 9250, 0-RTT, limits, the end, and forged addresses.

use crate::fixture::*;
use crate::quic_client::*;
use engine::ClientTransport;
use quinn::{ConnectionError, VarInt};
use sixfold_transport::quic::error_code;
use sixfold_transport::{Counter, Limits};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

//= RFC 9250 section 4.2: requirement 89
#[test]
fn hundred_streams_of_a_connection_get_their_own_answers_in_any_order() {
    let service = QuicService::new(ROOMY);
    let client = service.client();
    let connection = client.connect();
    let mut streams: Vec<_> = (0..100).map(|body| client.ask(&connection, &question(0, 20 + body))).collect();
    client.eventually(|| service.workers.waiting() == 100);
    let asked: Vec<_> = (0..100).map(|_| service.workers.next()).collect();
    for (to, message) in asked.iter().rev() {
        assert_eq!(
            (to.transport, to.port),
            (ClientTransport::Quic, client.endpoint.local_addr().unwrap().port())
        );
        assert!(deliver(&service.streams, to, &answer(message)));
    }
    for (body, (_, receive)) in streams.iter_mut().enumerate() {
        assert_eq!(client.answer(receive), answer(&question(0, 20 + body)));
    }
    assert_eq!(service.streams.counter(Counter::QuicAnswered), 100);
    client.eventually(|| service.streams.buffered_octets() == 0);
}

//= RFC 9250 section 4.2.1: requirement 96
//= RFC 9250 section 4.3.3: requirement 92
#[test]
fn a_client_that_breaks_the_rules_loses_its_connection_with_doq_protocol_error() {
    let service = QuicService::echo(ROOMY);
    let client = service.client();
    let two = [framed(&question(0, 20)), framed(&question(0, 20))].concat();
    for (octets, ends) in [
        (framed(&question(1, 20)), true),
        (framed(&answer(&question(0, 20))), true),
        (framed(b"short"), true),
        (two, false),
        (framed(&question(0, 20))[..20].to_vec(), true),
    ] {
        let connection = client.connect();
        let (mut send, _receive) = client.open(&connection, &octets);
        if ends {
            send.finish().unwrap();
        }
        assert_eq!(client.close_code(&connection), error_code::PROTOCOL_ERROR, "{octets:?}");
    }
    let connection = client.connect();
    client.run(async { connection.open_uni().await.unwrap().write_all(b"x").await.unwrap() });
    assert_eq!(client.close_code(&connection), VarInt::from_u32(2));
    service.await_count(Counter::ClosedProtocolError, 6);
    assert_eq!(service.streams.counter(Counter::QuestionsPosted), 0);
}

#[test]
fn a_stream_without_an_end_is_a_protocol_error_and_an_idle_connection_is_not() {
    let service = QuicService::echo(Limits { idle: Duration::from_secs(2), ..ROOMY });
    let client = service.client();
    let (dangling, idle) = (client.connect(), client.connect());
    let _stream = client.open(&dangling, &framed(&question(0, 20)));
    assert_eq!(client.close_code(&dangling), error_code::PROTOCOL_ERROR);
    match client.run(idle.closed()) {
        // The idle timeouts of both sides are the same, so either may be the first.
        ConnectionError::ApplicationClosed(close) => assert_eq!(close.error_code, error_code::NO_ERROR),
        other => assert_eq!(other, ConnectionError::TimedOut),
    }
    eventually("both are closed", || service.streams.connections() == 0);
}

//= RFC 9250 section 4.4: requirement 98
#[test]
fn a_client_without_an_idle_timeout_has_that_of_the_server() {
    let service = QuicService::echo(Limits { idle: Duration::from_secs(2), ..ROOMY });
    let client = service.client();
    let (address, release) = relay(service.quic);
    release.send(()).unwrap();
    let connection = client.run(client.connecting(address)).unwrap();
    // The relay ends, so the client hears nothing more.
    drop(release);
    assert_eq!(client.run(connection.closed()), ConnectionError::TimedOut);
}

//= RFC 9250 section 4.4: requirement 99
#[test]
fn the_queries_of_a_connection_that_has_ended_are_abandoned() {
    let service = QuicService::new(ROOMY);
    let client = service.client();
    let connection = client.connect();
    let _stream = client.ask(&connection, &question(0, 20));
    client.eventually(|| service.workers.waiting() > 0);
    let (to, message) = service.workers.next();
    connection.close(error_code::NO_ERROR, b"");
    client.eventually(|| service.streams.connections() == 0);
    deliver(&service.streams, &to, &answer(&message));
    service.await_count(Counter::AnswersUndeliverable, 1);
    assert_eq!(service.streams.counter(Counter::QuicAnswered), 0);
    assert_eq!(service.streams.buffered_octets(), 0);
}

//= RFC 9250 section 4.3.1: requirement 91
#[test]
fn a_query_that_is_reset_before_its_end_is_not_processed_and_its_stream_is_reset() {
    let service = QuicService::new(ROOMY);
    let client = service.client();
    let connection = client.connect();
    let (mut send, mut receive) = client.open(&connection, &framed(&question(0, 20)));
    send.reset(error_code::REQUEST_CANCELLED).unwrap();
    let end = client.run(receive.read_to_end(1000));
    let reset = quinn::ReadError::Reset(error_code::REQUEST_CANCELLED);
    assert_eq!(end, Err(quinn::ReadToEndError::Read(reset)));
    service.await_count(Counter::QuicCancelled, 1);
    assert_eq!(service.streams.counter(Counter::QuestionsPosted), 0);
}

#[test]
fn a_cancelled_query_frees_its_slot_and_too_many_end_the_connection() {
    let service = QuicService::new(ROOMY);
    let client = service.client();
    let connection = client.connect();
    let (_send, mut receive) = client.ask(&connection, &question(0, 20));
    client.eventually(|| service.workers.waiting() > 0);
    let asked = service.workers.next();
    receive.stop(error_code::REQUEST_CANCELLED).unwrap();
    client.eventually(|| service.streams.counter(Counter::QuicCancelled) > 0);
    deliver(&service.streams, &asked.0, &answer(&asked.1));
    service.await_count(Counter::AnswersUndeliverable, 1);
    let cancels = async {
        while let Ok((mut send, mut receive)) = connection.open_bi().await {
            let _ = send.write_all(&framed(&question(0, 20))).await;
            let _ = (send.finish(), receive.stop(error_code::REQUEST_CANCELLED));
        }
    };
    client.run(cancels);
    assert_eq!(client.close_code(&connection), error_code::EXCESSIVE_LOAD);
    service.await_count(Counter::ClosedCancellations, 1);
}

/// Passes datagrams between a client and a server. Once the server has answered, it holds those of the client until it is told to go
/// on. Then it ends with the sender.
fn relay(server: SocketAddr) -> (SocketAddr, mpsc::Sender<()>) {
    let (front, back) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let address = front.local_addr().unwrap();
    back.connect(server).unwrap();
    for socket in [&front, &back] {
        socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    }
    let (release, released) = mpsc::channel();
    thread::spawn(move || {
        let (mut room, mut client, mut held, mut answered, mut holds) =
            ([0; 2000], None, Vec::new(), false, true);
        loop {
            if let Ok((octets, from)) = front.recv_from(&mut room) {
                client = Some(from);
                held.push(room[..octets].to_vec());
            }
            match released.try_recv() {
                Ok(()) => holds = false,
                Err(mpsc::TryRecvError::Disconnected) if !holds => return,
                _ => {}
            }
            if !answered || !holds {
                held.drain(..).for_each(|datagram| drop(back.send(&datagram)));
            }
            if let (Ok(octets), Some(client)) = (back.recv(&mut room), client) {
                answered = true;
                let _ = front.send_to(&room[..octets], client);
            }
        }
    });
    (address, release)
}

//= RFC 9250 section 4.5: requirement 93
#[test]
fn a_query_in_0_rtt_data_is_handled_at_once_and_a_notify_after_the_handshake() {
    let service = QuicService::new(ROOMY);
    let client = service.client();
    let first = client.connect();
    // The tickets come with the first packets after the handshake; an exchange shows that they are there.
    let (_send, mut receive) = client.ask(&first, &question(0, 20));
    client.eventually(|| service.workers.waiting() > 0);
    let (to, message) = service.workers.next();
    deliver(&service.streams, &to, &answer(&message));
    client.answer(&mut receive);
    let (address, release) = relay(service.quic);
    let mut notify = question(0, 30);
    notify[2] = 4 << 3;
    let connecting = client.connecting(address);
    let (second, accepted) = connecting.into_0rtt().expect("a session to resume");
    let _notify = client.ask(&second, &notify);
    let _query = client.ask(&second, &question(0, 40));
    client.eventually(|| {
        let counts =
            [Counter::QuicEarly, Counter::QuicEarlyDeferred].map(|counter| service.streams.counter(counter));
        counts == [1, 1] && service.workers.waiting() > 0
    });
    assert_eq!(service.workers.next().1, question(0, 40));
    assert_eq!((service.workers.waiting(), service.streams.counter(Counter::QuicHandshakes)), (0, 1));
    release.send(()).unwrap();
    drop(release);
    assert!(client.run(accepted), "the server accepts the data");
    client.eventually(|| service.workers.waiting() > 0);
    let asked = service.workers.next().1;
    assert_eq!(asked, notify);
    service.await_count(Counter::QuicHandshakes, 2);
}

/// The datagrams with which a client begins a connection.
fn first_outbound_query(service: &QuicService) -> Vec<Vec<u8>> {
    let capture = UdpSocket::bind("127.0.0.1:0").unwrap();
    capture.set_nonblocking(true).unwrap();
    let client = service.client();
    let _connecting = client.connecting(capture.local_addr().unwrap());
    let (mut outbound, mut room) = (Vec::new(), [0; 2000]);
    // The client writes its first flight in one go, and repeats it if nothing comes back.
    client.eventually(|| {
        while let Ok(octets) = capture.recv(&mut room) {
            outbound.push(room[..octets].to_vec());
        }
        !outbound.is_empty()
    });
    outbound
}

//= RFC 9250 section 5.3: requirement 100
#[test]
fn clients_must_show_that_they_have_their_address_while_many_handshakes_are_under_way() {
    let service = QuicService::echo(ROOMY);
    let attacker = UdpSocket::bind("127.0.0.1:0").unwrap();
    let client = service.client();
    // Each beginning has a connection ID of its own, so the server sees 64 attempts.
    let capture = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = capture.local_addr().unwrap();
    let _attempts: Vec<_> = (0..64).map(|_| client.connecting(address)).collect();
    capture.set_nonblocking(true).unwrap();
    let mut begun = std::collections::HashSet::new();
    client.run(async {
        let mut room = [0; 2000];
        while begun.len() < 64 {
            match capture.recv(&mut room) {
                // The first datagram of each attempt: the destination connection ID stands after the version.
                Ok(octets) if begun.insert(room[5..26].to_vec()) => {
                    attacker.send_to(&room[..octets], service.quic).unwrap();
                }
                _ => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    });
    let honest = service.client();
    let connection = honest.connect();
    assert!(service.streams.counter(Counter::QuicRetry) >= 1);
    let (_send, mut receive) = honest.ask(&connection, &question(0, 20));
    assert_eq!(honest.answer(&mut receive), answer(&question(0, 20)));
    assert_eq!(service.streams.connections(), 1, "attempts take no place");
}

#[test]
fn a_client_network_has_no_more_connections_than_its_limit() {
    let service = QuicService::echo(Limits { per_client: 1, ..ROOMY });
    let client = service.client();
    let first = client.connect();
    client.eventually(|| service.streams.connections() == 1);
    assert!(matches!(client.try_connect(), Err(ConnectionError::ConnectionClosed(_))));
    assert_eq!(service.streams.counter(Counter::QuicRetry), 1, "the address is validated first");
    assert_eq!(service.streams.counter(Counter::RefusedClientLimit), 1);
    first.close(error_code::NO_ERROR, b"");
    client.eventually(|| service.streams.connections() == 0);
    client.connect();
    service.await_count(Counter::ClosedEnded, 1);
}

#[test]
fn a_network_that_begins_too_many_quic_handshakes_must_return_a_token_and_is_then_refused() {
    // 50 at once and 10 more each second, and as many after a Retry.
    let service = QuicService::echo(Limits { per_client: 5, ..ROOMY });
    let client = service.client();
    let (start, mut handshakes) = (Instant::now(), 0);
    while service.streams.counter(Counter::QuicClientRate) == 0 {
        assert!(start.elapsed() < TEST_TIMEOUT, "no handshake is refused");
        if let Ok(connection) = client.try_connect() {
            handshakes += 1;
            connection.close(error_code::NO_ERROR, b"");
        }
    }
    assert!(handshakes >= 100, "{handshakes}");
    assert!(service.streams.counter(Counter::QuicRetry) >= 50);
    client.eventually(|| service.streams.connections() == 0);
    eventually("its tokens come back", || client.try_connect().is_ok());
}

#[test]
fn datagrams_of_other_protocols_are_ignored_and_counted() {
    let service = QuicService::echo(ROOMY);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for id in [0x1234, 0x8234, 0x4321] {
        socket.send_to(&question(id, 20), service.quic).unwrap();
    }
    service.await_count(Counter::QuicNoQuic, 2);
    service.await_count(Counter::QuicNoConnection, 1);
    let client = service.client();
    let (_send, mut receive) = client.ask(&client.connect(), &question(0, 20));
    assert_eq!(client.answer(&mut receive), answer(&question(0, 20)));
    let other = service.client_of(b"h3");
    assert!(other.try_connect().is_err());
    service.await_count(Counter::QuicFailedAlpn, 1);
}

//= RFC 9250 section 5.3: requirement 94
#[test]
fn an_address_that_is_not_validated_gets_at_most_three_times_its_octets() {
    let service = QuicService::echo(ROOMY);
    let outbound = first_outbound_query(&service);
    let forged = UdpSocket::bind("127.0.0.1:0").unwrap();
    for datagram in &outbound {
        forged.send_to(datagram, service.quic).unwrap();
    }
    let sent: usize = outbound.iter().map(Vec::len).sum();
    forged.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let (mut received, mut room) = (0, [0; 2000]);
    loop {
        match forged.recv(&mut room) {
            Ok(octets) => received += octets,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
            Err(error) => panic!("{error}"),
        }
        // Longer than the first retransmissions.
        forged.set_read_timeout(Some(Duration::from_millis(2500))).unwrap();
    }
    // The library lets the last datagram go although it goes beyond three times.
    assert!(received > 0 && 10 * received <= 32 * sent, "{received} octets for {sent}");
}

#[test]
fn a_drained_server_answers_what_it_was_asked_and_closes_without_an_error() {
    let service = QuicService::new(ROOMY);
    let client = service.client();
    let connection = client.connect();
    let (_send, mut receive) = client.ask(&connection, &question(0, 20));
    let streams = service.streams.clone();
    client.eventually(|| service.workers.waiting() > 0);
    let (to, message) = service.workers.next();
    let end = thread::spawn(move || streams.drain(TEST_TIMEOUT));
    assert!(deliver(&service.streams, &to, &answer(&message)));
    assert_eq!(client.answer(&mut receive), answer(&message));
    assert_eq!(client.close_code(&connection), error_code::NO_ERROR);
    assert_eq!(end.join().unwrap(), 0);
}
