//! Limits on connections, and the state that connections leave behind: none.

use crate::fixture::*;
use crate::https_client::{HttpsService, connect_tcp};
use engine::IdleTimeout;
use sixfold_transport::{Counter, Limits, limits};
use std::net::{Ipv4Addr, TcpStream};
use std::thread;
use std::time::Duration;

#[test]
fn the_limit_per_client_holds_for_each_client_alone() {
    let service = Service::new(Limits { per_client: 2, ..ROOMY }).echo();
    let (first, mut second) = (service.connect(), service.connect());
    let mut third = service.connect();
    assert_eq!(read_to_end(&mut third), 0);
    assert_eq!(service.streams.counter(Counter::RefusedClientLimit), 1);
    let mut other = service.connect_from(Ipv4Addr::new(127, 0, 0, 2));
    for client in [&mut second, &mut other] {
        send(client, &[question(7, 20)]);
        assert_eq!(id(&receive(client)), 7);
    }
    drop(first);
    eventually("a place is free", || service.streams.connections() == 2);
    let mut fourth = service.connect();
    send(&mut fourth, &[question(8, 20)]);
    assert_eq!(id(&receive(&mut fourth)), 8);
    assert_eq!(service.streams.counter(Counter::Accepted), 4);
}

/// Asks, and waits until the query has reached the workers, so that the connection is busy.
fn ask(service: &Service, client: &mut TcpStream) {
    let before = service.workers.waiting();
    send(client, &[question(7, 20)]);
    eventually("the query arrives", || service.workers.waiting() == before + 1);
}

#[test]
fn the_connection_that_is_idle_for_the_longest_time_gives_way_to_a_new_client() {
    let service = Service::new(Limits { connections: 3, ..ROOMY });
    let mut clients: Vec<_> =
        (1..4).map(|last| service.connect_from(Ipv4Addr::new(127, 0, 0, last))).collect();
    eventually("all places are taken", || service.streams.connections() == 3);
    // The first one is busy, so the second one has been idle for the longest time.
    ask(&service, &mut clients[0]);
    thread::sleep(2 * limits::DISPLACED_IDLE);
    let mut new = service.connect_from(Ipv4Addr::new(127, 0, 0, 4));
    ask(&service, &mut new);
    assert_eq!(read_to_end(&mut clients[1]), 0);
    service.await_count(Counter::ClosedDisplaced, 1);
    assert_eq!(service.streams.connections(), 3);
    let service = service.echo();
    for client in [&mut clients[0], &mut new] {
        assert_eq!(id(&receive(client)), 7);
    }
    assert_eq!(service.streams.counter(Counter::RefusedTotalLimit), 0);
}

//= RFC 7828 section 3.3.2: requirement 67
#[test]
fn clients_are_asked_to_close_their_connections_while_all_places_are_taken() {
    let service = Service::new(Limits { connections: 2, ..ROOMY });
    let mut client = service.connect();
    assert_eq!(told(&service, &mut client), IdleTimeout::of(ROOMY.idle));
    let other = service.connect();
    eventually("the client is told", || told(&service, &mut client) == IdleTimeout::CLOSE);
    drop(other);
    eventually("there is a place", || told(&service, &mut client) == IdleTimeout::of(ROOMY.idle));
}

#[test]
fn idle_connections_give_way_when_places_become_scarce() {
    // A connection may be idle for longer than this test waits. When no places are left, that shrinks to a tenth.
    let limits = Limits { connections: 10, idle: 2 * TEST_TIMEOUT, ..ROOMY };
    let service = Service::new(limits);
    let mut clients: Vec<_> = (0..10).map(|_| service.connect()).collect();
    eventually("all places are taken", || service.streams.connections() == 10);
    // The first connections that close make room for the others.
    assert_eq!(read_to_end(&mut clients[0]), 0);
    assert!(service.streams.counter(Counter::ClosedIdle) > 0);
}

#[test]
fn a_thousand_connections_opened_and_closed_leave_no_state() {
    let service = Service::listening("127.0.0.1:0", ROOMY, 2).echo();
    for round in 0..20u16 {
        let mut clients: Vec<_> = (0..50).map(|_| service.connect()).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            match number % 5 {
                0 => {}
                1 => send(client, &[question(round, 20)]),
                2 => std::io::Write::write_all(client, &framed(&question(round, 20))[..9]).unwrap(),
                3 => socket2::SockRef::from(&*client).set_linger(Some(Duration::ZERO)).unwrap(),
                _ => {
                    send(client, &[question(round, 20), question(round, 900)]);
                    receive(client);
                }
            }
        }
    }
    // A reset may overtake the accept, which then never sees the connection: 200 of them are not certain.
    let closed =
        || [Counter::ClosedEnded, Counter::ClosedReset].map(|counter| service.streams.counter(counter));
    eventually("each is counted", || {
        let accepted = service.streams.counter(Counter::Accepted);
        accepted >= 800 && closed().iter().sum::<u64>() == accepted
    });
    eventually("no connection is left", || service.streams.connections() == 0);
    eventually("nothing is buffered", || service.streams.buffered_octets() == 0);
}

/// Prints the memory of idle connections in this process, which holds both ends. The client's end is a bare descriptor and
/// takes no memory here.
#[test]
#[ignore = "prints figures for the documentation"]
fn idle_connection_memory() {
    let service = HttpsService::echo(ROOMY);
    print_memory("TCP", || {
        let mut client = connect_tcp(service.address);
        send(&mut client, &[question(1, 40)]);
        receive(&mut client);
        client
    });
    let dot = || {
        let mut client = service.connect_dot();
        send(&mut client, &[question(1, 40)]);
        receive(&mut client);
        client.sock
    };
    print_memory("TLS", dot);
    print_memory("TLS with a record that does not end", || {
        let mut socket = dot();
        // Application data of 16,000 octets, all but the last.
        let record = [&[23, 3, 3, 0x3e, 0x80][..], &[0; 15_999]].concat();
        std::io::Write::write_all(&mut socket, &record).unwrap();
        socket
    });
    print_memory("HTTP/2", || {
        let mut client = service.connect_http2();
        client.get(1, &question(1, 40));
        client.next_body();
        client.into_socket()
    });
}

/// Prints the memory of each connection that `connect` makes.
fn print_memory(kind: &str, mut connect: impl FnMut() -> TcpStream) {
    const CONNECTIONS: usize = 400;
    let resident_kib = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<i64>().unwrap()
    };
    let mut clients = Vec::with_capacity(2 * CONNECTIONS);
    clients.extend((0..CONNECTIONS).map(|_| connect()));
    let before = resident_kib();
    clients.extend((0..CONNECTIONS).map(|_| connect()));
    // Negative if another test has freed more meanwhile: the figures count only if this test runs alone.
    let grown = (resident_kib() - before) * 1024;
    println!("{kind}: {} octets per idle connection", grown / CONNECTIONS as i64);
}
