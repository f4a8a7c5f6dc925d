//! Several workers: any worker may receive a query, the home worker of the name answers it, and equal questions share one outbound query.

use crate::client::{Tcp, Udp, embedded, name_of, query};
use crate::daemon::{Daemon, PREFIX, Setup, wait_until};
use crate::upstream::{Behavior, Upstream};
use std::collections::BTreeSet;
use wire::{Rcode, Type};

/// Queries sent before their answers are read: few enough for every queue on the way.
const CONCURRENT: u32 = 25;

const NAMES: u32 = 500;

fn start(upstream: &Upstream, steer: &str, workers: u32) -> Daemon {
    let server = Setup::new(upstream.address)
        .line(&format!("server.steer = \"{steer}\""))
        .line(&format!("server.workers = {workers}"))
        .line("upstream.timeout = \"30s\"")
        .line("upstream.tries = 1")
        .line("limits.tcp-per-client = 200")
        .start();
    assert!(!server.process.log().contains("does not steer"), "{}", server.process.log());
    server
}

fn every_name_is_answered(steer: &str, workers: u32) {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let server = start(&upstream, steer, workers);
    let mut connections = [Tcp::to(server.v4()), Tcp::to(server.v6())];
    for first in (0..NAMES).step_by(CONCURRENT as usize) {
        let numbers: Vec<u32> = (first..first + CONCURRENT).collect();
        // One socket for each query, so that flows differ; every fifth query goes over TCP.
        let sockets: Vec<(u32, Udp)> = numbers
            .iter()
            .filter(|&&number| number % 5 != 0)
            .map(|&number| (number, Udp::to(if number % 2 == 0 { server.v4() } else { server.v6() })))
            .collect();
        for (number, socket) in &sockets {
            socket.send(&query(*number as u16, &name_of(*number), Type::AAAA));
        }
        let connection = &mut connections[(first / CONCURRENT % 2) as usize];
        let streamed: BTreeSet<u32> = numbers.iter().copied().filter(|number| number % 5 == 0).collect();
        for &number in &streamed {
            connection.send(&query(number as u16, &name_of(number), Type::AAAA));
        }
        for (number, socket) in &sockets {
            let answer = socket.receive();
            assert_eq!((u32::from(answer.id), answer.rcode), (*number, Rcode::NOERROR));
            assert_eq!(answer.addresses, [embedded(PREFIX, *number)]);
        }
        // Answers over a stream come in any order.
        let answered: BTreeSet<u32> = streamed
            .iter()
            .map(|_| {
                let answer = connection.receive();
                let number = u32::from(answer.id);
                assert_eq!(answer.addresses, [embedded(PREFIX, number)]);
                number
            })
            .collect();
        assert_eq!(answered, streamed);
    }
    for number in 0..NAMES {
        let lookups =
            [upstream.asked(&name_of(number), Type::AAAA), upstream.asked(&name_of(number), Type::A)];
        assert_eq!(lookups, [1, 1], "{number}");
    }
    // With `name` the kernel finds the owner of a datagram; only queries from streams go through a mailbox.
    let letters = server.stat("worker_handoffs_total");
    let streamed = f64::from(NAMES / 5);
    assert!(if steer == "name" { letters == streamed } else { letters > streamed }, "{steer}: {letters}");
    assert_eq!(server.stat("workers_responding"), f64::from(workers));
}

#[test]
fn every_name_is_answered_with_two_workers_by_name() {
    every_name_is_answered("name", 2);
}

#[test]
fn every_name_is_answered_with_four_workers_by_name() {
    every_name_is_answered("name", 4);
}

#[test]
fn every_name_is_answered_with_two_workers_by_flow() {
    every_name_is_answered("flow", 2);
}

#[test]
fn every_name_is_answered_with_four_workers_by_flow() {
    every_name_is_answered("flow", 4);
}

/// 200 sockets ask for one name in many letter cases while the upstream waits; the server asks once per lookup.
fn equal_questions_meet(steer: &str, workers: u32) {
    let upstream = Upstream::start(|_| Behavior::Hold);
    let server = start(&upstream, steer, workers);
    let mixed = |number: u32| -> String {
        let upper = |(place, c): (usize, char)| {
            if number >> (place % 8) & 1 == 1 { c.to_ascii_uppercase() } else { c }
        };
        name_of(1).chars().enumerate().map(upper).collect()
    };
    let addresses = [server.v4(), server.v6()];
    let sockets: Vec<Udp> = (0..120).map(|number| Udp::to(addresses[number % 2])).collect();
    let mut connections: Vec<Tcp> = (0..80).map(|number| Tcp::to(addresses[number % 2])).collect();
    for (number, socket) in sockets.iter().enumerate() {
        socket.send(&query(number as u16, &mixed(number as u32), Type::AAAA));
    }
    for (number, connection) in connections.iter_mut().enumerate() {
        connection.send(&query(number as u16, &mixed(number as u32 + 120), Type::AAAA));
    }
    server.wait_for_stat("pending", 200.0);
    wait_until("it is asked", || upstream.asked(&name_of(1), Type::AAAA) == 1);
    upstream.release();
    let answers = sockets.iter().map(Udp::receive).chain(connections.iter_mut().map(Tcp::receive));
    let mut answered = 0;
    for answer in answers {
        assert_eq!((answer.rcode, answer.addresses), (Rcode::NOERROR, vec![embedded(PREFIX, 1)]));
        answered += 1;
    }
    assert_eq!(answered, 200);
    let asked = upstream.all_asked("v4.test.");
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(asked.values().all(|&count| count == 1), "{asked:?}");
    assert_eq!(server.stat("workers"), f64::from(workers));
}

#[test]
fn equal_questions_reach_the_upstream_once_per_lookup_with_two_workers() {
    equal_questions_meet("name", 2);
    equal_questions_meet("flow", 2);
}

#[test]
fn equal_questions_reach_the_upstream_once_per_lookup_with_four_workers() {
    equal_questions_meet("name", 4);
    equal_questions_meet("flow", 4);
}
