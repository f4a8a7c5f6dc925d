//! Draining: pending queries are still answered, and new ones are not. Retiring: new connections are left to another process.

use crate::fixture::*;
use engine::IdleTimeout;
use sixfold_transport::{BoundStreams, Counter, Options};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

#[test]
fn a_drain_lets_the_owed_answers_go_and_closes_everything() {
    let service = Service::new(ROOMY);
    let mut idle = service.connect();
    let mut waiting = service.connect();
    send(&mut waiting, &[question(1, 20), question(2, 20)]);
    let asked = [service.workers.next(), service.workers.next()];
    eventually("both are in", || service.streams.connections() == 2);
    let streams = service.streams.clone();
    let drain = thread::spawn(move || streams.drain(TEST_TIMEOUT));
    assert_eq!(read_to_end(&mut idle), 0);
    // Too late: this query is not handed over.
    send(&mut waiting, &[question(3, 20)]);
    for (to, message) in &asked {
        assert!(deliver(&service.streams, to, &answer(message)));
    }
    assert_eq!([id(&receive(&mut waiting)), id(&receive(&mut waiting))], [1, 2]);
    assert_eq!(read_to_end(&mut waiting), 0);
    assert_eq!(drain.join().unwrap(), 0);
    assert_eq!(service.workers.waiting(), 0);
    assert!(TcpStream::connect(service.address).is_err());
    assert_eq!(service.streams.counter(Counter::ClosedDrained), 2);
    assert_eq!(service.streams.connections(), 0);
    assert!(!deliver(&service.streams, &asked[0].0, b"too late for this"));
}

#[test]
fn the_grace_ends_the_wait_for_answers() {
    let service = Service::listening("127.0.0.1:0", ROOMY, 2);
    let mut client = service.connect();
    send(&mut client, &[question(1, 20)]);
    let (from, asked) = service.workers.next();
    assert_eq!(service.streams.drain(Duration::from_millis(50)), 1);
    assert_eq!(read_to_end(&mut client), 0);
    assert!(!deliver(&service.streams, &from, &answer(&asked)));
    assert_eq!((service.streams.connections(), service.streams.buffered_octets()), (0, 0));
}

#[test]
fn a_drain_without_connections_is_immediate_and_may_be_repeated() {
    let service = Service::listening("[::1]:0", ROOMY, 2);
    assert_eq!(service.streams.drain(TEST_TIMEOUT), 0);
    assert_eq!(service.streams.drain(TEST_TIMEOUT), 0);
}

#[test]
fn retired_streams_leave_new_clients_to_another_process_and_serve_the_others() {
    let bound =
        BoundStreams::bind(&["127.0.0.1:0".parse().unwrap()], Vec::new(), Options::default()).unwrap();
    let address = bound.local_addresses().unwrap()[0];
    let successor = TcpListener::from(bound.sockets().next().unwrap().try_clone_to_owned().unwrap());
    let workers = Arc::new(FakeWorkers::default());
    let streams = bound.start(workers.clone(), 2).unwrap();
    let service = Service { workers, streams, address };
    let mut client = service.connect();
    let mut idle = service.connect();
    send(&mut client, &[question(1, 20)]);
    let first = service.workers.next();
    eventually("both are in", || service.streams.connections() == 2);
    let streams = service.streams.clone();
    let retired = thread::spawn(move || streams.retire(TEST_TIMEOUT, TEST_TIMEOUT));
    // The aborted tasks have dropped their listeners: nobody else takes this client.
    eventually("the successor accepts", || {
        let _late = service.connect();
        thread::sleep(Duration::from_millis(20));
        successor.accept().is_ok()
    });
    // The open connection is served, also with queries that come now.
    send(&mut client, &[question(2, 20)]);
    let second = service.workers.next();
    for (to, message) in [&first, &second] {
        assert!(deliver(&service.streams, to, &answer(message)));
    }
    assert_eq!([id(&receive(&mut client)), id(&receive(&mut client))], [1, 2]);
    // Connections that are idle are closed, and then the threads end.
    assert_eq!(read_to_end(&mut idle), 0);
    assert_eq!(read_to_end(&mut client), 0);
    retired.join().unwrap();
    assert_eq!((service.streams.connections(), service.streams.drain(TEST_TIMEOUT)), (0, 0));
}

//= RFC 7828 section 3.3.2: requirement 67
#[test]
fn a_client_of_retired_streams_is_asked_to_close_its_connection() {
    let service = Service::new(ROOMY);
    let mut client = service.connect();
    assert_eq!(told(&service, &mut client), IdleTimeout::of(ROOMY.idle));
    let streams = service.streams.clone();
    let retired = thread::spawn(move || streams.retire(TEST_TIMEOUT, TEST_TIMEOUT));
    eventually("the client is told", || told(&service, &mut client) == IdleTimeout::CLOSE);
    drop(client);
    retired.join().unwrap();
}

#[test]
fn a_busy_connection_is_closed_after_its_last_answer() {
    let service = Service::new(ROOMY);
    let mut client = service.connect();
    send(&mut client, &[question(1, 20), question(2, 20)]);
    let asked = [service.workers.next(), service.workers.next()];
    let streams = service.streams.clone();
    let retired = thread::spawn(move || streams.retire(Duration::ZERO, TEST_TIMEOUT));
    for (to, message) in &asked {
        assert!(deliver(&service.streams, to, &answer(message)));
    }
    assert_eq!([id(&receive(&mut client)), id(&receive(&mut client))], [1, 2]);
    assert_eq!(read_to_end(&mut client), 0);
    retired.join().unwrap();
    assert_eq!(service.streams.counter(Counter::ClosedDrained), 1);
}

#[test]
fn a_drain_ends_the_patience_with_retired_streams() {
    let service = Service::new(ROOMY);
    let mut client = service.connect();
    send(&mut client, &[question(1, 20)]);
    let asked = service.workers.next();
    let streams = service.streams.clone();
    let retired = thread::spawn(move || streams.retire(TEST_TIMEOUT, TEST_TIMEOUT));
    assert_eq!(service.streams.drain(Duration::from_millis(50)), 1);
    retired.join().unwrap();
    assert_eq!(read_to_end(&mut client), 0);
    assert!(!deliver(&service.streams, &asked.0, &answer(&asked.1)));
}
