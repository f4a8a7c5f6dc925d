//! Every device template whose program is installed, with real queries: names without AAAA records are synthesized, and
//! names with AAAA records pass through.

use crate::fixtures;

use fixtures::{TIME_LIMIT, ask, has, has_foreign, has_sixfold, host, question};
use measure::order::{Expectation, Load, Pace, Transport};
use sixfold_bench::agent::protocol::{Start, Started};
use sixfold_bench::agent_client::AgentClient;
use sixfold_bench::device::{Recipe, Settings};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

const NAMES: u16 = 200;
const SHARE: f64 = 0.5;
const REAL: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0);
const PREFIX: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x64, 0, 0, 0, 0, 0);

/// Returns the address of a reply whose only record is an AAAA record for the question.
fn address(reply: &[u8], question: &[u8]) -> Result<Ipv6Addr, String> {
    let tell = |what: &str| Err(format!("{what}: {reply:02x?}"));
    if reply[3] & 0xf != 0 || reply[6..8] != [0, 1] || reply[12..question.len()].len() != question.len() - 12
    {
        return tell("not one record");
    }
    let mut at = question.len();
    // A compression pointer, or the name again.
    at += if reply[at] >= 0xc0 { 2 } else { question.len() - 12 - 4 };
    if reply[at..at + 4] != [0, 28, 0, 1] || reply[at + 8..at + 10] != [0, 16] {
        return tell("no AAAA record");
    }
    let octets: [u8; 16] = reply[at + 10..at + 26].try_into().unwrap();
    Ok(Ipv6Addr::from(octets))
}

fn name(number: u16) -> [u8; 4] {
    let [high, low] = number.to_be_bytes();
    [20, 3, high, low]
}

fn expected(address: [u8; 4]) -> Ipv6Addr {
    let zone = authority::Zone::new("dns64perf.test").unwrap().aaaa_share(SHARE).seed(7);
    let base = if zone.has_aaaa(address) { REAL } else { PREFIX };
    Ipv6Addr::from(u128::from(base) | u128::from(u32::from(Ipv4Addr::from(address))))
}

/// Starts a template that forwards to an authority.
fn start(host: &mut AgentClient, name: &str, loopback: &str, workers: u16, options: Vec<String>) -> Started {
    let upstream = host.authority(&fixtures::authority(&format!("{loopback}:0"), SHARE)).unwrap()[0];
    host.start(&Start {
        recipe: Recipe::Template { name: name.to_owned(), program: None },
        settings: Settings {
            listen: format!("{loopback}:0").parse().unwrap(),
            upstream,
            prefix: (PREFIX, 96),
            workers,
            options,
            ..Settings::example()
        },
        cores: String::new(),
        environment: BTreeMap::new(),
    })
    .unwrap()
}

/// Waits for the first right answer.
fn wait(host: &mut AgentClient, device: &Started) {
    let end = Instant::now() + TIME_LIMIT;
    let first = question(1, name(u16::MAX));
    while ask(device.listen, &first).is_none_or(|reply| address(&reply, &first).is_err()) {
        let log = host.log(device.device).unwrap();
        assert!(log.ended.is_none() && Instant::now() < end, "{log:?}\n{:#?}", device.files);
    }
}

/// Asks for all names, and ends the device; once with a further option, which the server must accept. An unknown option
/// must end the server with a message.
fn check(name: &str, option: &str) {
    for (loopback, workers, options) in [("[::1]", 1, vec![]), ("127.0.0.1", 2, vec![option.to_owned()])] {
        let mut host = host("device");
        let device = start(&mut host, name, loopback, workers, options);
        wait(&mut host, &device);
        assert!(device.version.contains(|c: char| c.is_ascii_digit()), "{name}: {:?}", device.version);
        let before = host.usage(device.device).unwrap();
        let mut real = 0;
        for number in 0..NAMES {
            let question = question(number, self::name(number));
            let reply = ask(device.listen, &question).unwrap_or_else(|| {
                panic!("{name} is silent at {number}: {:?}", host.log(device.device));
            });
            let said = address(&reply, &question).unwrap_or_else(|what| panic!("{name}: {what}"));
            assert_eq!(said, expected(self::name(number)), "{name} over {loopback}, number {number}");
            real += u16::from(said.octets()[5] == 0);
        }
        // Both kinds must occur: 200 names with even odds.
        assert!((40..160).contains(&real), "{real}");
        let used = host.usage(device.device).unwrap().since(&before, u64::from(NAMES));
        assert!(used.user_s + used.system_s > 0.0 && used.resident > 0, "{name}: {used:?}");
        println!(
            "{name}, {workers} workers, {}: {} threads worked, {} octets",
            device.version,
            used.threads.len(),
            used.resident
        );
        let log = host.stop(device.device, Duration::from_secs(30)).unwrap();
        assert!(log.ended.is_some_and(|how| !how.contains("signal: 9")), "{name} was killed: {}", log.text);
    }
    let mut host = host("device");
    let device = start(&mut host, name, "[::1]", 1, vec!["no-such-option = nonsense".to_owned()]).device;
    fixtures::until("it has ended", || host.log(device).unwrap().ended.is_some());
    let log = host.log(device).unwrap();
    assert!(
        log.text.contains("no-such-option") || log.text.contains("nonsense") || log.text.contains("'='"),
        "{log:?}"
    );
}

/// Asks a template over encrypted transports, until it gives right answers alone.
fn check_encrypted(name: &str, transports: &[Transport]) {
    for &transport in transports {
        let mut host = host("device");
        let upstream = host.authority(&fixtures::authority("[::1]:0", 0.0)).unwrap()[0];
        let listen = "[::1]:0".parse().unwrap();
        let settings =
            Settings { transport, ..Settings::new(listen, upstream, (PREFIX, 96), "dns64perf.test") };
        let recipe = Recipe::Template { name: name.to_owned(), program: None };
        let start = Start { recipe, settings, cores: String::new(), environment: BTreeMap::new() };
        let device = host.start(&start).unwrap();
        let pace = Pace::Open { rate_qps: 200.0, burst: 1 };
        let expect = Expectation::synthesized("dns64perf.test", (PREFIX, 96));
        let names = "20.3.0.0/16".parse().unwrap();
        let duration = Duration::from_millis(500);
        let load = Load { transport, ..Load::of_new_names(device.listen, pace, duration, names, expect) };
        let end = Instant::now() + TIME_LIMIT;
        loop {
            let outcome = host.load(&load, |_| true).unwrap();
            assert_eq!(outcome.invalid_total(), 0, "{name} over {}: {outcome:?}", transport.name());
            if outcome.valid > 0 {
                break;
            }
            // It does not listen yet.
            let log = host.log(device.device).unwrap();
            assert!(log.ended.is_none() && Instant::now() < end, "{log:?}\n{:#?}", device.files);
        }
        host.stop(device.device, Duration::from_secs(30)).unwrap();
    }
}

#[test]
fn unbound_bind_and_knot_resolver_are_asked_over_tls_and_https() {
    for (name, program, package) in [
        ("unbound", "unbound", "unbound"),
        ("bind", "named", "bind9"),
        ("knot-resolver", "kresd", "knot-resolver"),
    ] {
        if has(program, package) {
            check_encrypted(name, &[Transport::Tls, Transport::Https]);
        }
    }
}

#[test]
fn coredns_is_asked_over_tls_https_and_quic() {
    if has_foreign("coredns", "go install github.com/coredns/coredns@latest") {
        check_encrypted("coredns", &[Transport::Tls, Transport::Https, Transport::Quic]);
    }
}

#[test]
fn sixfold_does_the_task() {
    if has_sixfold() {
        check("sixfold", "limits.pending = 4096");
    }
}

#[test]
fn unbound_does_the_task() {
    if has("unbound", "unbound") {
        check("unbound", "msg-cache-size: 1m");
    }
}

#[test]
fn bind_does_the_task() {
    if has("named", "bind9") {
        check("bind", "max-cache-size 10m;");
    }
}

#[test]
fn powerdns_does_the_task() {
    if has("pdns_recursor", "pdns-recursor") {
        check("powerdns", "max-cache-entries=1000");
    }
}

#[test]
fn knot_resolver_does_the_task() {
    if has("kresd", "knot-resolver") {
        check("knot-resolver", "cache.size = 20 * MB");
    }
}

#[test]
fn coredns_does_the_task() {
    if has_foreign("coredns", "go install github.com/coredns/coredns@latest") {
        check("coredns", "cache 60");
    }
}

#[test]
fn dnsproxy_does_the_task() {
    if has_foreign("dnsproxy", "go install github.com/AdguardTeam/dnsproxy@latest") {
        check("dnsproxy", "--cache-size=65536");
    }
}
