//! The end: what is under way is answered, nothing new is taken, and nobody holds it up for longer than the grace.

use crate::client::{Tcp, Udp, embedded, name_of, question};
use crate::daemon::{PATIENCE, Setup, until};
use crate::scrape::{Scrape, request};
use crate::upstream::{Conduct, Upstream};
use std::io::ErrorKind;
use std::net::{TcpStream, UdpSocket};
use std::time::{Duration, Instant};
use wire::{Rcode, Type};

/// Long enough for a question to arrive at the upstream; a slow machine makes the test weaker, not wrong.
const MOMENT: Duration = Duration::from_millis(300);

/// One try that waits as long as is allowed.
fn patient(upstream: &Upstream) -> Setup {
    Setup::new(upstream.address).line("upstream.timeout = \"30s\"").line("upstream.tries = 1")
}

#[test]
fn questions_under_way_are_answered_after_sigterm_and_new_ones_are_not_taken() {
    let upstream = Upstream::start(|_| Conduct::Hold);
    let server = patient(&upstream).start();
    let udp = Udp::to(server.v6());
    udp.send(&question(1, &name_of(1), Type::AAAA));
    let mut tcp = Tcp::to(server.v4());
    tcp.send(&question(2, &name_of(2), Type::AAAA));
    until("both are asked", || {
        upstream.asked(&name_of(1), Type::AAAA) + upstream.asked(&name_of(2), Type::AAAA) == 2
    });
    server.process.signal("TERM");
    assert!(server.process.wait_for("draining").is_some());

    // The line comes a moment before the threads know.
    let late = Udp::to(server.v6());
    let is_refused = (100..120).any(|number| {
        late.send(&question(3, &name_of(number), Type::AAAA));
        std::thread::sleep(MOMENT);
        upstream.asked(&name_of(number), Type::AAAA) == 0
    });
    assert!(is_refused, "questions over UDP are taken although the server stops");
    let is_closed = |stream: TcpStream| {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        std::io::Read::read(&mut &stream, &mut [0]).map_or(true, |count| count == 0)
    };
    assert!(TcpStream::connect(server.v4()).map_or(true, is_closed), "connections are taken");
    assert!(server.process.runs(), "{}", server.process.log());

    upstream.release();
    for (number, reply) in [(1, udp.receive()), (2, tcp.receive())] {
        assert_eq!(reply.id, number as u16);
        assert_eq!((reply.rcode, reply.addresses), (Rcode::NOERROR, vec![embedded("2001:db8:64::", number)]));
    }
    tcp.wait_for_close();
    let (status, _) = server.process.wait();
    assert_eq!(status.code(), Some(0), "{}", server.process.log());
    assert!(server.process.log().contains("0 connections cut, 0 queries left"), "{}", server.process.log());
    // Whoever comes next finds the ports free.
    UdpSocket::bind(server.v6()).unwrap();
}

#[test]
fn an_answer_that_comes_after_half_a_second_is_waited_for() {
    let upstream = Upstream::start(|_| Conduct::After(Duration::from_millis(500)));
    let server =
        Setup::new(upstream.address).line("upstream.timeout = \"5s\"").line("server.workers = 2").start();
    let client = Udp::to(server.v4());
    client.send(&question(1, &name_of(1), Type::AAAA));
    until("it is asked", || upstream.asked(&name_of(1), Type::AAAA) > 0);
    server.process.signal("INT");
    assert_eq!(client.receive().addresses, [embedded("2001:db8:64::", 1)]);
    let (status, _) = server.process.wait();
    assert_eq!(status.code(), Some(0), "{}", server.process.log());
}

#[test]
fn an_upstream_that_never_answers_does_not_hold_the_stop_up() {
    // It lives, as it says of the root: a dead one would not be waited for.
    let is_root = |name: &str| name.trim_end_matches('.').is_empty();
    let upstream = Upstream::start(move |name| if is_root(name) { Conduct::Answer } else { Conduct::Ignore });
    // Eight tries would take more than a minute.
    let server = patient(&upstream).line("upstream.tries = 8").start();
    let udp = Udp::to(server.v6());
    udp.send(&question(1, &name_of(1), Type::AAAA));
    let mut tcp = Tcp::to(server.v4());
    tcp.send(&question(2, &name_of(2), Type::AAAA));
    server.wait_for_stat("pending", 2.0);
    let begun = Instant::now();
    server.process.signal("TERM");
    let (status, _) = server.process.wait();
    // The grace is 10 s; the rest is for a busy machine.
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert_eq!(status.code(), Some(0), "{}", server.process.log());
    assert!(server.process.log().contains("1 connections cut"), "{}", server.process.log());
    assert!(!server.control.exists());
}

#[test]
fn idle_connections_do_not_hold_the_stop_up() {
    let upstream = Upstream::start(|_| Conduct::Answer);
    let server = Setup::new(upstream.address).line("limits.tcp-idle = \"1h\"").start();
    let mut idle: Vec<Tcp> = (0..10).map(|_| Tcp::to(server.v4())).collect();
    for connection in &mut idle {
        assert_eq!(connection.ask(&name_of(1), Type::AAAA).rcode, Rcode::NOERROR);
    }
    server.process.stop();
    idle.iter_mut().for_each(Tcp::wait_for_close);
    assert!(server.process.log().contains("0 connections cut"), "{}", server.process.log());
    assert_eq!(TcpStream::connect(server.v4()).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

/// Questions that have arrived before the signal, and that no worker has read yet, are answered too.
fn what_waits_in_the_kernel_is_answered(steer: &str) {
    const QUESTIONS: u32 = 100;
    let upstream = Upstream::start(|_| Conduct::Answer);
    let server =
        patient(&upstream).line("server.workers = 4").line(&format!("server.steer = \"{steer}\"")).start();
    server.process.signal("STOP");
    let sockets: Vec<Udp> = (0..QUESTIONS)
        .map(|number| {
            let socket = Udp::to(if number % 2 == 0 { server.v4() } else { server.v6() });
            socket.send(&question(number as u16, &name_of(number), Type::AAAA));
            socket
        })
        .collect();
    server.process.signal("TERM");
    server.process.signal("CONT");
    let (status, _) = server.process.wait();
    assert_eq!(status.code(), Some(0), "{}", server.process.log());
    // The process is gone: what it sent has arrived.
    let answered =
        sockets.iter().filter(|socket| socket.receive_within(Duration::from_millis(1)).is_some()).count();
    assert_eq!(answered, QUESTIONS as usize, "{}", server.process.log());
}

#[test]
fn questions_in_the_kernels_queues_are_answered_at_the_end_with_steering_by_name() {
    what_waits_in_the_kernel_is_answered("name");
}

#[test]
fn questions_in_the_kernels_queues_are_answered_at_the_end_with_steering_by_flow() {
    what_waits_in_the_kernel_is_answered("flow");
}

#[test]
fn metrics_health_and_control_are_served_until_the_end() {
    let upstream = Upstream::start(|_| Conduct::Hold);
    let server = patient(&upstream).line("server.workers = 2").metrics().start();
    let client = Udp::to(server.v6());
    client.send(&question(1, &name_of(1), Type::AAAA));
    server.wait_for_stat("pending", 1.0);
    let queries = |scrape: &Scrape| scrape.sum("queries_total", &[]);
    let before = Scrape::of(server.metrics);
    server.process.signal("TERM");
    assert!(server.process.wait_for("draining").is_some());
    // The other worker has nothing to do and ends.
    until("one worker is left", || server.stat("workers_responding") == 1.0);
    let scrape = Scrape::of(server.metrics);
    assert_eq!((scrape.value("draining", &[]), scrape.value("pending", &[])), (1.0, 1.0));
    assert_eq!(queries(&scrape), queries(&before));
    // Whoever stops is no candidate for a restart, but shall get no more clients.
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
    let upstream = Upstream::start(|_| Conduct::Ignore);
    let server = patient(&upstream).start();
    Udp::to(server.v6()).send(&question(1, &name_of(1), Type::AAAA));
    server.wait_for_stat("pending", 1.0);
    server.process.signal("TERM");
    assert!(server.process.wait_for("draining").is_some());
    // One that follows at once is taken for the same: a terminal and a service manager may both send one.
    until("the process ends", || {
        std::thread::sleep(MOMENT);
        let runs = server.process.runs();
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
