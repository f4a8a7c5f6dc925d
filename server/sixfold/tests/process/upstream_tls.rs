//! Upstreams over TLS: certificates that fit and those that do not, and connections that are cut.

use crate::client::{Udp, query};
use crate::daemon::{Daemon, Folder, Setup, TIMEOUT, wait_until};
use crate::encrypted_programs::{is_there, pin_of};
use crate::stream_upstream::{
    Authority, Kind, StreamUpstream, self_signed, self_signed_authority, self_signed_with_pem,
};
use rcgen::DnType;
use std::cell::RefCell;
use std::collections::HashSet;
use std::time::Duration;
use wire::{Rcode, Type};

const NAME: &str = "dns.example";

/// A server with a zone for each upstream.
fn daemon(upstreams: &[(&str, &StreamUpstream, &str)], ca: &str, directory: &Folder) -> Daemon {
    let file = directory.file("ca.pem");
    std::fs::write(&file, ca).unwrap();
    let mut setup = Setup::new(([127, 0, 0, 1], 9).into())
        .line(&format!("upstream.tls-ca = \"{}\"", file.display()))
        .line("limits.queries-per-client = 0")
        .line("limits.responses-per-client = 0");
    let zone = |(zone, upstream, name): &(&str, &StreamUpstream, &str)| {
        format!("{{ zone = \"{zone}\", forwarders = [\"{}#{name}\"] }}", upstream.address)
    };
    let zones: Vec<String> = upstreams.iter().map(zone).collect();
    setup = setup.line(&format!("upstream.zone = [{}]", zones.join(", ")));
    setup.start()
}

//= RFC 8310 section 5.1: requirement 78
//= RFC 8310 section 6.6: requirement 79
//= RFC 8310 section 8.1: requirement 80
#[test]
fn an_upstream_is_asked_only_if_its_certificate_fits() {
    let (ours, other) = (Authority::new("ours"), Authority::new("another"));
    let (anchor, anchor_pem) = self_signed_authority(NAME);
    let common_name = |params: &mut rcgen::CertificateParams| {
        params.distinguished_name.push(DnType::CommonName, NAME);
    };
    let kinds = [
        ("good", Kind::Tls(ours.certify(&[NAME, "127.0.0.1"], |_| {})), NAME, ""),
        ("address", Kind::Tls(ours.certify(&[NAME, "127.0.0.1"], |_| {})), "127.0.0.1", ""),
        ("name", Kind::Tls(ours.certify(&["other.example"], |_| {})), NAME, "name"),
        ("cn", Kind::Tls(ours.certify(&[], common_name)), NAME, "name"),
        ("ca", Kind::Tls(other.certify(&[NAME], |_| {})), NAME, "issuer"),
        ("self", Kind::Tls(self_signed(NAME)), NAME, "issuer"),
        // A trust anchor, but no certificate of a server.
        ("anchor", Kind::Tls(anchor), NAME, "certificate"),
        (
            "old",
            Kind::Tls(ours.certify(&[NAME], |params| params.not_after = rcgen::date_time_ymd(2020, 1, 1))),
            NAME,
            "expired",
        ),
        // A chain of more than the 64 KiB that a handshake message may have: each certificate has some 300 octets.
        ("large", Kind::Tls(ours.certify_with_chain(NAME, 1000)), NAME, "protocol"),
        // It takes the first octets of TLS for the length of a long message.
        ("plain", Kind::Tcp, NAME, "timeout"),
        ("other", Kind::Greeting, NAME, "protocol"),
        ("silent", Kind::Silent, NAME, "timeout"),
    ];
    let upstreams: Vec<_> = kinds.iter().map(|(_, kind, ..)| StreamUpstream::start(kind)).collect();
    let zones: Vec<_> =
        kinds.iter().zip(&upstreams).map(|((zone, _, name, _), upstream)| (*zone, upstream, *name)).collect();
    let directory = Folder::for_everybody();
    let server = daemon(&zones, &(ours.pem.clone() + &anchor_pem), &directory);
    let client = Udp::to(server.v4());
    for (number, (zone, ..)) in (0..).zip(&kinds) {
        client.send(&query(number, &format!("www.{zone}"), Type::TXT));
    }
    for _ in &kinds {
        let answer = client.receive();
        let (zone, .., reason) = &kinds[usize::from(answer.id)];
        let expected = if reason.is_empty() { Rcode::NOERROR } else { Rcode::SERVFAIL };
        assert_eq!(answer.rcode, expected, "{zone}");
    }
    for (number, (.., reason)) in kinds.iter().enumerate() {
        if !reason.is_empty() {
            let series = format!("upstream_tls_failures_total{{reason=\"{reason}\"}}");
            wait_until(&series, || server.stat(&series) > 0.0);
            let line = format!("upstream {}: no TLS connection to {NAME}", upstreams[number].address);
            server.process.wait_for(&line).expect("a line in the log");
        }
    }
    let upstreams = String::from_utf8(server.ctl(&["upstreams"]).stdout).unwrap();
    assert!(upstreams.lines().filter(|line| line.contains("tls up,")).count() >= 2, "{upstreams}");
    let failures = upstreams.lines().filter(|line| line.contains("; no TLS connection to dns.example: "));
    assert_eq!(
        failures.count(),
        kinds.iter().filter(|(.., reason)| !reason.is_empty()).count(),
        "{upstreams}"
    );
    let upstreams = String::from_utf8(server.ctl(&["upstreams", "--json"]).stdout).unwrap();
    assert!(upstreams.contains("\"tls_failure\":{\"reason\":\"expired\",\"text\":\""), "{upstreams}");
    assert!(upstreams.contains("\"tls_failure\":null"), "{upstreams}");
    assert!(upstreams.contains("name the pin of its key behind the address (#sha256/...)"), "{upstreams}");
    for (name, words) in [
        ("www.good", "over TLS"),
        ("www.name", "over TLS: unreachable (the certificate of an upstream is for another name)"),
        ("www.old", "extended error 23 (the certificate of an upstream is expired or not yet valid)"),
    ] {
        let explained = String::from_utf8(server.ctl(&["explain", name]).stdout).unwrap();
        assert!(explained.contains(words), "{explained}");
    }
}

/// An upstream with a pin is asked only if its key has it. With a name too, the certificate must have the name and be issued by a trust
/// anchor. openssl computes the pins.
//= RFC 7858 section 4.2: requirements 101, 102
#[test]
fn an_upstream_with_pins_is_asked_only_if_its_key_has_one() {
    if !is_there("openssl", "openssl") {
        return;
    }
    let directory = Folder::for_everybody();
    let pin = |pem: &str| {
        let file = directory.file("pinned.pem");
        std::fs::write(&file, pem).unwrap();
        format!("sha256/{}", pin_of(&file))
    };
    let (ours, other) = (Authority::new("ours"), Authority::new("another"));
    let (own, own_pem) = self_signed_with_pem("unused.example");
    let (issued, issued_pem) = ours.certify_with_pem(&[NAME], |_| {});
    let (strange, strange_pem) = other.certify_with_pem(&[NAME], |_| {});
    let [own_pin, issued_pin, strange_pin] = [&own_pem, &issued_pem, &strange_pem].map(|pem| pin(pem));
    let kinds = [
        ("own", Kind::Tls(own.clone()), own_pin.clone(), ""),
        ("second", Kind::Tls(own), format!("{issued_pin}#{own_pin}"), ""),
        ("both", Kind::Tls(issued.clone()), format!("{NAME}#{issued_pin}"), ""),
        ("wrong", Kind::Tls(issued.clone()), own_pin.clone(), "pin"),
        ("named", Kind::Tls(issued), format!("{NAME}#{own_pin}"), "pin"),
        ("issuer", Kind::Tls(strange), format!("{NAME}#{strange_pin}"), "issuer"),
    ];
    let upstreams: Vec<_> = kinds.iter().map(|(_, kind, ..)| StreamUpstream::start(kind)).collect();
    let zones: Vec<_> = kinds
        .iter()
        .zip(&upstreams)
        .map(|((zone, _, identity, _), upstream)| (*zone, upstream, identity.as_str()))
        .collect();
    let server = daemon(&zones, &ours.pem, &directory);
    let client = Udp::to(server.v4());
    for (zone, .., reason) in &kinds {
        client.send(&query(1, &format!("www.{zone}"), Type::TXT));
        let expected = if reason.is_empty() { Rcode::NOERROR } else { Rcode::SERVFAIL };
        assert_eq!(client.receive().rcode, expected, "{zone}");
    }
    for reason in ["pin", "issuer"] {
        let series = format!("upstream_tls_failures_total{{reason=\"{reason}\"}}");
        wait_until(&series, || server.stat(&series) > 0.0);
    }
    let explained = String::from_utf8(server.ctl(&["explain", "www.wrong"]).stdout).unwrap();
    assert!(explained.contains("the key of an upstream has another pin"), "{explained}");
    // The operator can compare the pin that was shown with the configured one.
    let shown = format!("no pin fits: its key has the pin {issued_pin}");
    let of_wrong = format!("upstream {}: no TLS connection", upstreams[3].address);
    wait_until("the pin in the log", || {
        server.process.log().lines().any(|line| line.contains(&of_wrong) && line.contains(&shown))
    });
    let listed = String::from_utf8(server.ctl(&["upstreams"]).stdout).unwrap();
    assert!(listed.contains(&shown), "{listed}");
    // The session and the connection of another pin do not count after a reload.
    let forwarder = format!("{}#{issued_pin}", upstreams[0].address);
    server.rewrite(&[&format!("upstream.zone = [{{ zone = \"own\", forwarders = [\"{forwarder}\"] }}]")]);
    assert!(server.ctl(&["reload"]).status.success());
    client.send(&query(2, "later.own", Type::TXT));
    assert_eq!(client.receive().rcode, Rcode::SERVFAIL);
}

/// Takes an answer, which must be NOERROR, into the set of those that came. Returns false if none comes in time.
fn take_answer(client: &Udp, answered: &mut HashSet<u16>, time: Duration) -> bool {
    let Some(answer) = client.receive_within(time) else { return false };
    assert_eq!(answer.rcode, Rcode::NOERROR, "question {}", answer.id);
    answered.insert(answer.id)
}

/// Asks questions in groups of ten, and takes all answers.
fn ask_all(server: &Daemon, zone: &str, groups: u16) {
    ask_all_with(server, zone, groups, 200, |_| ());
}

/// Asks questions in groups of ten, with `between` after each group, and takes all answers. At most `open` questions wait for theirs: the
/// kernel holds some 270 datagrams, which may all come at once.
fn ask_all_with(server: &Daemon, zone: &str, groups: u16, open: usize, between: impl Fn(u16)) {
    let client = Udp::to(server.v4());
    let mut answered = HashSet::new();
    let questions = 10 * groups;
    for number in 0..questions {
        client.send(&query(number, &format!("n{number}.{zone}"), Type::TXT));
        if number % 10 == 9 {
            between(number / 10);
            while take_answer(&client, &mut answered, Duration::from_millis(1)) {}
            while usize::from(number) + 1 - answered.len() > open {
                assert!(take_answer(&client, &mut answered, TIMEOUT), "{} of {number}", answered.len());
            }
        }
    }
    while answered.len() < usize::from(questions) {
        assert!(take_answer(&client, &mut answered, TIMEOUT), "{} answers of {questions}", answered.len());
    }
}

//= RFC 7858 section 3.4: requirement 75
#[test]
fn cut_connections_and_restarts_cost_no_answer_over_tls() {
    let authority = Authority::new("ours");
    let kind = Kind::Tls(authority.certify(&[NAME], |_| {}));
    let upstream = StreamUpstream::start(&kind);
    let directory = Folder::for_everybody();
    let server = daemon(&[("zone", &upstream, NAME)], &authority.pem, &directory);
    // A reload keeps the sessions, though the connections end.
    upstream.cut_after(5);
    let handshakes = |kind| server.stat(&format!("upstream_tls_handshakes_total{{kind=\"{kind}\"}}"));
    ask_all(&server, "sessions.zone", 20);
    let (full, resumed) = (handshakes("full"), handshakes("resumed"));
    assert!(full > 0.0 && resumed > 0.0);
    assert!(server.ctl(&["reload"]).status.success());
    ask_all(&server, "reloaded.zone", 20);
    assert_eq!(handshakes("full"), full);
    assert!(handshakes("resumed") > resumed);
    no_answer_is_lost(&server, upstream, &kind);
}

#[test]
fn cut_connections_and_restarts_cost_no_answer_over_tcp() {
    let upstream = StreamUpstream::start(&Kind::Tcp);
    let server = Setup::new(upstream.address)
        .line("upstream.transport = \"tcp\"")
        .line("limits.queries-per-client = 0")
        .line("limits.responses-per-client = 0")
        .start();
    no_answer_is_lost(&server, upstream, &Kind::Tcp);
}

fn no_answer_is_lost(server: &Daemon, upstream: StreamUpstream, kind: &Kind) {
    upstream.cut_after(1);
    ask_all(server, "one.zone", 10);
    let before = upstream.accepted();
    assert!(before >= 100, "{before} connections");
    upstream.cut_after(25);
    ask_all(server, "cut.zone", 100);
    assert!(upstream.accepted() - before >= 1_000 / 25, "{} connections", upstream.accepted());
    // A restart, with questions before, within and after it.
    upstream.cut_after(0);
    let address = upstream.address;
    let upstream = RefCell::new(Some(upstream));
    ask_all_with(server, "restart.zone", 100, 1_000, |group| match group {
        20 => drop(upstream.borrow_mut().take()),
        70 => *upstream.borrow_mut() = Some(StreamUpstream::start_at(address, kind)),
        _ => std::thread::sleep(Duration::from_millis(5)),
    });
}
