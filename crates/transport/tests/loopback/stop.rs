//! Draining: pending queries are still answered, and new ones are not.

use crate::fixture::*;
use datapath::StreamSink;
use sixfold_transport::Counter;
use std::net::TcpStream;
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
        assert!(service.streams.deliver(to, &answer(message)));
    }
    assert_eq!([id(&receive(&mut waiting)), id(&receive(&mut waiting))], [1, 2]);
    assert_eq!(read_to_end(&mut waiting), 0);
    assert_eq!(drain.join().unwrap(), 0);
    assert_eq!(service.workers.waiting(), 0);
    assert!(TcpStream::connect(service.address).is_err());
    assert_eq!(service.streams.counter(Counter::ClosedDrained), 2);
    assert_eq!(service.streams.connections(), 0);
    assert!(!service.streams.deliver(&asked[0].0, b"too late for this"));
}

#[test]
fn the_grace_ends_the_wait_for_answers() {
    let service = Service::listening("127.0.0.1:0", ROOMY, 2);
    let mut client = service.connect();
    send(&mut client, &[question(1, 20)]);
    let (from, asked) = service.workers.next();
    assert_eq!(service.streams.drain(Duration::from_millis(50)), 1);
    assert_eq!(read_to_end(&mut client), 0);
    assert!(!service.streams.deliver(&from, &answer(&asked)));
    assert_eq!((service.streams.connections(), service.streams.buffered_octets()), (0, 0));
}

#[test]
fn a_drain_without_connections_is_immediate_and_may_be_repeated() {
    let service = Service::listening("[::1]:0", ROOMY, 2);
    assert_eq!(service.streams.drain(TEST_TIMEOUT), 0);
    assert_eq!(service.streams.drain(TEST_TIMEOUT), 0);
}
