//! The stop: pending queries are answered, new ones are not accepted, and the stop takes no longer than the grace period.

use crate::client::{Tcp, Udp, embedded, name_of, query};
use crate::daemon::{Setup, TIMEOUT, wait_until};
use crate::scrape::{Scrape, request};
use crate::upstream::{Behavior, Upstream};
use std::net::{TcpStream, UdpSocket};
use std::time::{Duration, Instant};
use wire::{Rcode, Type};

/// Time for a question to reach the upstream. A slow machine makes the test weaker, not wrong.
const DELIVERY_TIME: Duration = Duration::from_millis(300);

/// A server with one try and the longest timeout.
fn patient_server(upstream: &Upstream) -> Setup {
    Setup::new(upstream.address).line("upstream.timeout = \"30s\"").line("upstream.tries = 1")
}

#[test]
fn questions_under_way_are_answered_after_sigterm_and_new_ones_are_not_taken() {
    let upstream = Upstream::start(|_| Behavior::Hold);
    let server = patient_server(&upstream).start();
    let udp = Udp::to(server.v6());
    udp.send(&query(1, &name_of(1), Type::AAAA));
    let mut tcp = Tcp::to(server.v4());
    tcp.send(&query(2, &name_of(2), Type::AAAA));
    wait_until("both are asked", || {
        upstream.asked(&name_of(1), Type::AAAA) + upstream.asked(&name_of(2), Type::AAAA) == 2
    });
    server.process.signal("TERM");
    assert!(server.process.wait_for("draining").is_some());

    // The line is logged shortly before the threads stop.
    let late = Udp::to(server.v6());
    let is_refused = (100..120).any(|number| {
        late.send(&query(3, &name_of(number), Type::AAAA));
        std::thread::sleep(DELIVERY_TIME);
        upstream.asked(&name_of(number), Type::AAAA) == 0
    });
    assert!(is_refused, "queries over UDP are accepted although the server stops");
    let is_closed = |stream: TcpStream| {
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        std::io::Read::read(&mut &stream, &mut [0]).map_or(true, |count| count == 0)
    };
    assert!(TcpStream::connect(server.v4()).map_or(true, is_closed), "connections are accepted");
    assert!(server.process.is_running(), "{}", server.process.log());

    upstream.release();
    for (number, answer) in [(1, udp.receive()), (2, tcp.receive())] {
        assert_eq!(answer.id, number as u16);
        assert_eq!(
            (answer.rcode, answer.addresses),
            (Rcode::NOERROR, vec![embedded("2001:db8:64::", number)])
        );
    }
    tcp.wait_for_close();
    let (status, _) = server.process.wait();
    assert_eq!(status.code(), Some(0), "{}", server.process.log());
    assert!(server.process.log().contains("0 connections cut, 0 queries left"), "{}", server.process.log());
    // The ports are free for the next server.
    UdpSocket::bind(server.v6()).unwrap();
}

#[test]
fn an_upstream_that_never_answers_does_not_hold_the_stop_up() {
    // It answers for the root, so it is alive: the server would not wait for a dead upstream.
    let is_root = |name: &str| name.trim_end_matches('.').is_empty();
    let upstream =
        Upstream::start(move |name| if is_root(name) { Behavior::Answer } else { Behavior::Ignore });
    // Eight tries would take more than a minute.
    let server = patient_server(&upstream).line("upstream.tries = 8").start();
    let udp = Udp::to(server.v6());
    udp.send(&query(1, &name_of(1), Type::AAAA));
    let mut tcp = Tcp::to(server.v4());
    tcp.send(&query(2, &name_of(2), Type::AAAA));
    server.wait_for_stat("pending", 2.0);
    let begun = Instant::now();
    server.process.signal("TERM");
    let (status, _) = server.process.wait();
    // The grace period is 10 s; the rest is for a busy machine.
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert_eq!(status.code(), Some(0), "{}", server.process.log());
    assert!(server.process.log().contains("1 connections cut"), "{}", server.process.log());
    assert!(!server.control.exists());
}

/// Queries that arrived before the signal and that no worker has read yet are answered too.
fn queries_in_the_kernel_are_answered(steer: &str) {
    const QUESTIONS: u32 = 100;
    let upstream = Upstream::start(|_| Behavior::Answer);
    let server = patient_server(&upstream)
        .line("server.workers = 4")
        .line(&format!("server.steer = \"{steer}\""))
        .start();
    server.process.signal("STOP");
    let sockets: Vec<Udp> = (0..QUESTIONS)
        .map(|number| {
            let socket = Udp::to(if number % 2 == 0 { server.v4() } else { server.v6() });
            socket.send(&query(number as u16, &name_of(number), Type::AAAA));
            socket
        })
        .collect();
    server.process.signal("TERM");
    server.process.signal("CONT");
    let (status, _) = server.process.wait();
    assert_eq!(status.code(), Some(0), "{}", server.process.log());
    // The process has ended: all its answers have arrived.
    let answered =
        sockets.iter().filter(|socket| socket.receive_within(Duration::from_millis(1)).is_some()).count();
    assert_eq!(answered, QUESTIONS as usize, "{}", server.process.log());
}

#[test]
fn questions_in_the_kernels_queues_are_answered_at_the_end_with_steering_by_name() {
    queries_in_the_kernel_are_answered("name");
}

#[test]
fn questions_in_the_kernels_queues_are_answered_at_the_end_with_steering_by_flow() {
    queries_in_the_kernel_are_answered("flow");
}

#[test]
fn metrics_health_and_control_are_served_until_the_end() {
    let upstream = Upstream::start(|_| Behavior::Hold);
    let server = patient_server(&upstream).line("server.workers = 2").metrics().start();
    let client = Udp::to(server.v6());
    client.send(&query(1, &name_of(1), Type::AAAA));
    server.wait_for_stat("pending", 1.0);
    let queries = |scrape: &Scrape| scrape.sum("queries_total", &[]);
    let before = Scrape::of(server.metrics);
    server.process.signal("TERM");
    assert!(server.process.wait_for("draining").is_some());
    // The other worker has nothing to do and ends.
    wait_until("one worker is left", || server.stat("workers_responding") == 1.0);
    let scrape = Scrape::of(server.metrics);
    assert_eq!((scrape.value("draining", &[]), scrape.value("pending", &[])), (1.0, 1.0));
    assert_eq!(queries(&scrape), queries(&before));
    // A server that stops must not be restarted, and must get no more clients.
    let live = request(server.metrics, "GET", "/livez");
    assert_eq!((live.status, live.body.as_str()), (200, "ok\n"));
    let ready = request(server.metrics, "GET", "/readyz");
    assert_eq!((ready.status, ready.body.as_str()), (503, "draining\n"));
    assert_eq!(server.ctl(&["health"]).status.code(), Some(1));
    let status = String::from_utf8(server.ctl(&["status"]).stdout).unwrap();
    assert!(status.contains("draining"), "{status}");
    upstream.release();
    assert_eq!(client.receive().rcode, Rcode::NOERROR);
    let (status, _) = server.process.wait();
    assert_eq!(status.code(), Some(0), "{}", server.process.log());
}

#[test]
fn a_second_signal_ends_the_wait() {
    let upstream = Upstream::start(|_| Behavior::Ignore);
    let server = patient_server(&upstream).start();
    Udp::to(server.v6()).send(&query(1, &name_of(1), Type::AAAA));
    server.wait_for_stat("pending", 1.0);
    server.process.signal("TERM");
    assert!(server.process.wait_for("draining").is_some());
    // A signal that follows at once counts as the first: a terminal and a service manager may both send one.
    wait_until("the process ends", || {
        std::thread::sleep(DELIVERY_TIME);
        let runs = server.process.is_running();
        if runs {
            server.process.signal("INT");
        }
        !runs
    });
    let (status, _) = server.process.wait();
    assert_eq!(status.code(), Some(0), "{}", server.process.log());
    assert!(server.process.log().contains("second signal"), "{}", server.process.log());
    assert!(!server.control.exists());
}
