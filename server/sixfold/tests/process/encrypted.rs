//! Encrypted listeners in operation: certificates that are replaced, upgrades, clients behind a proxy, and wrong configurations.

use crate::client::{Udp, embedded, name_of};
use crate::daemon::{PREFIX, Setup, wait_until};
use crate::encrypted_service::{Listeners, Pair, TlsClient, trusting};
use crate::service::{Service, text};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use wire::{Rcode, Type};

/// Queries of several clients, which each have their own names, until [`Load::stop`].
#[derive(Default)]
struct Load {
    next: AtomicU32,
    stop: AtomicBool,
}

impl Load {
    /// Asks one query after the other. A lost or wrong answer fails the test. Returns the number of answers.
    fn run(&self, mut ask: impl FnMut(&str) -> crate::client::Answer) -> u32 {
        let mut answered = 0;
        while !self.stop.load(Ordering::SeqCst) {
            let number = self.next.fetch_add(1, Ordering::SeqCst);
            let answer = ask(&name_of(number));
            assert_eq!((answer.rcode, answer.addresses), (Rcode::NOERROR, vec![embedded(PREFIX, number)]));
            answered += 1;
        }
        answered
    }

    /// Waits for `count` more answers of all clients together.
    fn go_on(&self, count: u32) {
        let end = self.next.load(Ordering::SeqCst) + count;
        wait_until("clients go on", || {
            self.next.load(Ordering::SeqCst) >= end || self.stop.load(Ordering::SeqCst)
        });
    }
}

/// Stops the load, also when the test fails or a client does: otherwise the test would wait for it.
struct StopAtEnd<'a>(&'a Load);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::SeqCst);
    }
}

#[test]
fn twenty_new_certificates_cost_no_answer_and_only_new_handshakes_show_them() {
    let pairs = [Pair::new(), Pair::new()];
    let listeners = Listeners::new(&pairs[0]);
    let server = listeners.add_to(Setup::answering()).start();
    let config = trusting(&[&pairs[0], &pairs[1]], b"dot");
    let load = Load::default();
    let mut kept = TlsClient::to(listeners.dot, &config);
    std::thread::scope(|scope| {
        let (load, config, dot) = (&load, &config, listeners.dot);
        let udp = Udp::to(server.v4());
        let stopping = move |ask: &mut dyn FnMut(&str) -> crate::client::Answer| {
            let _stop = StopAtEnd(load);
            load.run(ask)
        };
        let clients = [
            scope.spawn(move || stopping(&mut |name| udp.ask(name, Type::AAAA))),
            scope.spawn(move || stopping(&mut |name| kept.ask(name))),
            scope.spawn(move || stopping(&mut |name| TlsClient::to(dot, config).ask(name))),
        ];
        let at_end = StopAtEnd(load);
        for number in 1..=20 {
            listeners.write(&pairs[number % 2]);
            let output = server.ctl(&["reload"]);
            assert_eq!(output.status.code(), Some(0), "{}", text(&output));
            // Only a client without a session sees the certificate: a resumed handshake shows none.
            let shown = TlsClient::to(dot, &trusting(&[&pairs[number % 2]], b"dot"));
            assert_eq!(shown.certificate(), &pairs[number % 2].certificate);
            load.go_on(10);
        }
        drop(at_end);
        for client in clients {
            assert!(client.join().unwrap() > 0);
        }
    });
    assert_eq!(server.stat("responses_total{rcode=\"servfail\"}"), 0.0);
    assert!(server.stat("tls_handshakes_total{kind=\"full\"}") >= 21.0);
}

#[test]
fn a_key_that_does_not_fit_refuses_the_reload_by_name_and_the_old_certificate_stays() {
    let (pair, other) = (Pair::new(), Pair::new());
    let listeners = Listeners::new(&pair);
    let server = listeners.add_to(Setup::answering()).start();
    let connect_anew = || TlsClient::to(listeners.dot, &trusting(&[&pair, &other], b"dot"));
    let mut kept = connect_anew();
    let key = std::fs::read(listeners.key()).unwrap();
    listeners.write(&other);
    std::fs::write(listeners.key(), key).unwrap();
    let refused = |reason: &str| {
        let output = server.ctl(&["reload"]);
        let told = text(&output);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(reason) && told.contains("the old configuration stays in force"), "{told}");
    };
    let (certificate_path, key_path) = (listeners.certificate(), listeners.key());
    refused(&format!(
        "the key {} does not go with the certificate {}",
        key_path.display(),
        certificate_path.display()
    ));
    std::fs::remove_file(&certificate_path).unwrap();
    refused(&format!("cannot read a certificate from {}", certificate_path.display()));
    let mut new = connect_anew();
    assert_eq!(new.certificate(), &pair.certificate);
    for client in [&mut kept, &mut new] {
        assert_eq!(client.ask(&name_of(1)).addresses, [embedded(PREFIX, 1)]);
    }
    listeners.write(&other);
    assert_eq!(server.ctl(&["reload"]).status.code(), Some(0));
    assert_eq!(connect_anew().certificate(), &other.certificate);
}

#[test]
fn an_upgrade_hands_the_encrypted_listeners_over_and_loses_no_query() {
    let pair = Pair::new();
    let listeners = Listeners::new(&pair);
    let service = Service::start(listeners.add_to(Setup::answering()));
    let (dot, doh) = (listeners.dot, listeners.doh);
    let (config, web) = (trusting(&[&pair], b"dot"), trusting(&[&pair], b"http/1.1"));
    let load = Load::default();
    let mut kept = TlsClient::to(dot, &config);
    kept.ask(&name_of(0));
    let mut kept = std::thread::scope(|scope| {
        let (load, config, web) = (&load, &config, &web);
        let over_dot = scope.spawn(move || {
            let _stop = StopAtEnd(load);
            load.run(|name| TlsClient::to(dot, config).ask(name))
        });
        let over_doh = scope.spawn(move || {
            let _stop = StopAtEnd(load);
            load.run(|name| TlsClient::to(doh, web).post(name))
        });
        let over_kept = scope.spawn(move || {
            let _stop = StopAtEnd(load);
            load.run(|name| kept.ask(name));
            kept
        });
        let at_end = StopAtEnd(load);
        load.go_on(20);
        let before = service.pid();
        assert_ne!(service.upgrade(), before);
        for series in ["tls", "https"].map(|name| format!("stream_accepted_total{{transport=\"{name}\"}}")) {
            wait_until(&series, || load.stop.load(Ordering::SeqCst) || service.server.stat(&series) >= 5.0);
        }
        drop(at_end);
        assert!(over_dot.join().unwrap() > 0 && over_doh.join().unwrap() > 0);
        over_kept.join().unwrap()
    });
    // The old process still serves its connection, and ends after it.
    assert_eq!(kept.ask(&name_of(1)).addresses, [embedded(PREFIX, 1)]);
    kept.wait_for_close();
    wait_until("the old process has ended", || !service.server.process.is_running());
    assert!(service.server.process.log().contains("0 connections cut, 0 queries left"));
    service.stop();
}
