//! Health for orchestrators (`/livez`, `/readyz`, `ctl health`), and clients of the HTTP server that misbehave.

use crate::client::{Udp, name_of};
use crate::daemon::{Setup, TIMEOUT, wait_until};
use crate::scrape::{Scrape, exchange, request};
use crate::upstream::{Behavior, Upstream};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wire::{Rcode, Type};

#[test]
fn a_server_whose_upstream_is_silent_is_alive_but_not_ready_until_the_upstream_is_back() {
    let answers = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&answers);
    let upstream = Upstream::start(move |_| match switch.load(Ordering::SeqCst) {
        true => Behavior::Answer,
        false => Behavior::Ignore,
    });
    let server = Setup::new(upstream.address)
        .line("upstream.timeout = \"20ms\"")
        .line("upstream.tries = 8")
        .metrics()
        .start();
    let status = |path| request(server.metrics, "GET", path).status;
    assert_eq!([status("/livez"), status("/readyz")], [200, 200]);
    assert_eq!(server.ctl(&["health"]).status.code(), Some(0));

    assert_eq!(Udp::to(server.v6()).ask(&name_of(1), Type::AAAA).rcode, Rcode::SERVFAIL);
    wait_until("it is not ready", || status("/readyz") == 503);
    let response = request(server.metrics, "GET", "/readyz");
    assert_eq!(response.body, "no upstream answers\n");
    assert_eq!(status("/livez"), 200);
    let output = server.ctl(&["health"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "sixfold: not serving: no upstream answers\n");
    assert_eq!(Scrape::of(server.metrics).value("upstream_up", &[]), 0.0);
    let status_text = String::from_utf8(server.ctl(&["status"]).stdout).unwrap();
    let down = format!("{} down since 20", upstream.address);
    let words = "Z: no reply (";
    let line =
        status_text.lines().find(|line| line.contains(&down)).unwrap_or_else(|| panic!("{status_text}"));
    assert!(line.contains(words) && line.contains("1 of 1 workers has stopped asking it"), "{line}");
    let table = String::from_utf8(server.ctl(&["upstreams"]).stdout).unwrap();
    assert!(table.contains("; since 20") && table.contains(words), "{table}");
    assert!(status_text.contains("\nstate       not serving: no upstream answers\n"), "{status_text}");

    answers.store(true, Ordering::SeqCst);
    wait_until("it is ready again", || status("/readyz") == 200);
    assert_eq!(server.ctl(&["health"]).status.code(), Some(0));
    assert_eq!(Scrape::of(server.metrics).value("upstream_up", &[]), 1.0);
    assert!(Scrape::of(server.metrics).value("upstream_queries_total", &[("type", "probe")]) > 0.0);
}

#[test]
fn one_living_upstream_of_two_is_enough() {
    let (dead, alive) = (Upstream::start(|_| Behavior::Ignore), Upstream::start(|_| Behavior::Answer));
    let server = Setup::new(dead.address)
        .line(&format!("upstream.forwarders = [\"{}\", \"{}\"]", dead.address, alive.address))
        .line("upstream.timeout = \"50ms\"")
        .metrics()
        .start();
    let dead_address = dead.address.to_string();
    let mut number = 0;
    wait_until("the first is found dead", || {
        Udp::to(server.v6()).ask(&name_of(number), Type::AAAA);
        number += 1;
        Scrape::of(server.metrics).value("upstream_up", &[("upstream", &dead_address)]) == 0.0
    });
    assert_eq!(request(server.metrics, "GET", "/readyz").status, 200);
    assert_eq!(server.ctl(&["health"]).status.code(), Some(0));
}

#[test]
fn only_allowed_networks_reach_the_http_server_and_a_reload_takes_the_list() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let server = Setup::new(upstream.address)
        .line("metrics.allow = [\"192.0.2.0/24\"]")
        .line("log.level = \"trace\"")
        .metrics()
        .start();
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(server.metrics).unwrap();
        clients.push(stream.local_addr().unwrap().to_string());
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        // It may be closed before the request is written, or reset before the end is read.
        let _ = stream.write_all(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n");
        let mut answer = Vec::new();
        let ended = stream.read_to_end(&mut answer);
        assert!(answer.is_empty() && !ended.is_err_and(|error| error.kind() == ErrorKind::WouldBlock));
    }
    let told = String::from_utf8(server.ctl(&["stats"]).stdout).unwrap();
    assert_eq!(Scrape::parse(&told).value("metrics_refused_total", &[]), 3.0);
    assert!(clients.iter().all(|client| !server.process.log().contains(client)), "{}", server.process.log());
    for allowed in ["\"::1\", \"127.0.0.0/8\"", ""] {
        server.rewrite(&[&format!("metrics.allow = [{allowed}]")]);
        assert_eq!(server.ctl(&["reload"]).status.code(), Some(0));
        assert_eq!(request(server.metrics, "GET", "/livez").status, 200);
    }
    assert_eq!(Scrape::of(server.metrics).value("metrics_refused_total", &[]), 3.0);
    server.process.stop();
}

#[test]
fn other_methods_and_other_paths_are_refused() {
    let server = Setup::answering().metrics().start();
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "BREW"] {
        let response = request(server.metrics, method, "/metrics");
        assert_eq!(response.status, 405, "{method}");
        assert!(response.head.contains("\r\nallow: get, head"), "{}", response.head);
    }
    for path in ["/status/", "/status.html", "/metrics/", "/Metrics", "/../metrics", "/livez2", "//metrics"] {
        assert_eq!(request(server.metrics, "GET", path).status, 404, "{path}");
    }
    assert_eq!(request(server.metrics, "GET", "/metrics?name=x").status, 200);
    let root = request(server.metrics, "GET", "/");
    assert!(root.status == 307 && root.head.contains("\r\nlocation: status\r\n"), "{}", root.head);
    let head = request(server.metrics, "HEAD", "/metrics");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert!(request(server.metrics, "GET", "/metrics").head.contains("text/plain; version=0.0.4"));
}

#[test]
fn garbage_and_slow_clients_do_no_harm() {
    let server = Setup::answering().metrics().start();
    let huge = format!("GET /metrics HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    for garbage in [
        "\r\n\r\n\r\n",
        "nonsense\r\n\r\n",
        "GET\r\n\r\n",
        "\0\x01\x02\x03\r\n\r\n",
        "GET /metrics HTTP/9.9\r\n\r\n",
    ] {
        let response = exchange(server.metrics, garbage);
        assert!(response.is_empty() || response.starts_with("HTTP/1.1 400"), "{garbage:?}: {response}");
    }
    let mut stream = TcpStream::connect(server.metrics).unwrap();
    // The server may close the connection before everything is sent.
    let _ = stream.write_all(huge.as_bytes());
    assert_eq!(request(server.metrics, "GET", "/livez").status, 200);
    assert_eq!(Udp::to(server.v6()).ask(&name_of(1), Type::AAAA).rcode, Rcode::NOERROR);
    assert_eq!(server.ctl(&["health"]).status.code(), Some(0));
}

#[test]
fn more_idle_connections_than_there_are_places_take_no_probe_away() {
    // The server has 32 places, and cuts a connection off after 30 s at the latest.
    const CONNECTIONS: usize = 50;
    let server = Setup::answering().metrics().start();
    let probe = |kind: &str| {
        let begun = Instant::now();
        for path in ["/livez", "/readyz", "/metrics"] {
            assert_eq!(request(server.metrics, "GET", path).status, 200, "{kind}: {path}");
        }
        assert!(
            begun.elapsed() < Duration::from_secs(25),
            "{kind}: it waited for a place: {:?}",
            begun.elapsed()
        );
    };
    let mut open = Vec::new();
    for (kind, begin) in [
        ("silent", &b""[..]),
        ("half a request", b"GET /metr"),
        ("idle after a request", b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"),
    ] {
        for _ in 0..CONNECTIONS {
            let mut stream = TcpStream::connect(server.metrics).unwrap();
            // The server may have closed it by now.
            let _ = stream.write_all(begin);
            if kind.starts_with("idle") {
                stream.set_read_timeout(Some(TIMEOUT)).unwrap();
                let _ = stream.read(&mut [0; 12]);
            }
            open.push(stream);
        }
        probe(kind);
    }
    drop(open);
}
