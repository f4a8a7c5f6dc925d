//! Upstreams over TLS (RFC 7858): Unbound, BIND, Knot Resolver and dnsdist. Each serves a zone of its own, which all have from one
//! authority.

use servers::{Encrypted, Task};
use sixfold_interop::zones::Zone;
use sixfold_interop::{
    Authority, Certificate, Configuration, Kdig, Lab, Process, Program, SERVER_NAME, Signal, Sixfold,
    address, configure, wait_until, words,
};
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

/// Servers with the port of each. A server's zone is its name below `test`.
const SERVERS: [(&str, u16); 4] = [("unbound", 8531), ("named", 8532), ("kresd", 8533), ("dnsdist", 8534)];

/// Hosts in each zone.
const HOSTS: usize = 200;

/// Restarts that are tried until all servers are back in [`BACK`].
const RESTARTS: usize = 5;

/// Time without servers for which questions wait: less than 3 s, after which Sixfold gives them up.
const BACK: Duration = Duration::from_secs(2);

/// Writes the zones of the authority.
fn zones(place: &Path) -> Vec<Zone> {
    let zone = |name: &'static str| {
        let mut text = format!(
            "$ORIGIN {name}.\n$TTL 300\n@ SOA ns h 1 3600 600 604800 60\n@ NS ns\nns A 198.51.100.54\n"
        );
        for host in 0..HOSTS {
            // Writing to a string does not fail.
            let _ = writeln!(text, "h{host} A 198.18.0.{host}");
        }
        let file = place.join(name);
        std::fs::write(&file, text).expect("a directory of this test");
        Zone { name, file, anchor: None }
    };
    ["unbound.test", "named.test", "kresd.test", "dnsdist.test", "wrong.test"].map(zone).into()
}

/// Starts a server that forwards its zone to the authority, and waits for nothing. Unbound listens at a second address too.
fn start(lab: &Lab, name: &str, port: u16, place: &Path) -> Process {
    let at = |address: &str, port| SocketAddr::new(address.parse().expect("an address"), port);
    let recipe = match name {
        "unbound" => &servers::UNBOUND,
        "named" => &servers::BIND,
        "kresd" => &servers::KNOT_RESOLVER,
        _ => &servers::DNSDIST,
    };
    let own = if name == "unbound" { &[address::FIRST, address::WEB][..] } else { &[address::FIRST] };
    let task = Task {
        listen: own.iter().map(|address| at(address, port)).collect(),
        encrypted: Some(Encrypted::Tls),
        names: vec!["test".to_owned()],
        ..Task::new(at(address::FIRST, port), at(address::SECOND, 53))
    };
    let argv = configure(recipe, &task, place);
    lab.world.start(&words(&argv), &lab.scratch.path().join(format!("{name}.log")))
}

fn start_all(lab: &Lab, place: &Path) -> Vec<Process> {
    let mut servers: Vec<_> = SERVERS.iter().map(|&(name, port)| start(lab, name, port, place)).collect();
    for (&(name, port), server) in SERVERS.iter().zip(&mut servers) {
        let host = format!("h0.{name}.test");
        let kdig = Kdig::new(&lab.world, address::FIRST).with(&format!("+tls +timeout=1 -p {port}"));
        server.expect(&format!("{name} answers"), |_| {
            kdig.ask_all(&[(&host, "A")]).first().is_some_and(|answer| !answer.data("A").is_empty())
        });
    }
    servers
}

/// Configuration with a forward zone for each server, and one whose server is expected to have another name. The last server is
/// known by its key.
fn configuration(place: &Path, pin: &str) -> Configuration {
    let mut text = format!("transport = \"tls\"\ntls-ca = \"{}/ca.pem\"\n", place.display());
    let mut zones = SERVERS.map(|(name, port)| (format!("{name}.test"), address::FIRST, port, SERVER_NAME));
    zones[3].3 = pin;
    let wrong = ("wrong.test".to_owned(), address::WEB, SERVERS[0].1, "other.example");
    for (zone, address, port, name) in zones.iter().chain([&wrong]) {
        let forwarder = format!("{address}:{port}#{name}");
        // Writing to a string does not fail.
        let _ = writeln!(text, "[[upstream.zone]]\nzone = \"{zone}\"\nforwarders = [\"{forwarder}\"]");
    }
    let forwarder = format!("{}:{}#{SERVER_NAME}", address::FIRST, SERVERS[0].1);
    Configuration::forwarding_to(&[&forwarder]).upstream(&text).without_cache()
}

/// Arguments of dnsperf for a client that asks for the AAAA records of all hosts.
fn dnsperf(lab: &Lab, options: &str) -> Vec<String> {
    let hosts = (0..HOSTS).flat_map(|host| SERVERS.map(|(name, _)| format!("h{host}.{name}.test AAAA\n")));
    let file = lab.scratch.write("questions", &hosts.collect::<String>());
    let words = format!("stdbuf -oL dnsperf -s {} -d {} -t 20 {options}", address::GATEWAY, file.display());
    words.split(' ').map(str::to_owned).collect()
}

/// Panics unless dnsperf got an answer without an error to each of its queries.
fn assert_all_answered(output: &str) {
    let is_whole = output.contains("Queries lost:         0 ") && output.contains("NOERROR");
    let codes = output.lines().find(|line| line.contains("Response codes:")).unwrap_or_default();
    assert!(is_whole && codes.contains("(100.00%)"), "{output}");
}

/// Restarts all servers under load. Returns the time for which one was away.
fn restart(lab: &Lab, place: &Path, servers: &mut Vec<Process>) -> (Duration, String) {
    let argv = dnsperf(lab, "-c 4 -q 2000 -Q 300 -l 3");
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    let mut load = lab.client.start(&argv, &lab.scratch.path().join("dnsperf.log"));
    load.expect("dnsperf sends", |log| log.contains("Sending queries"));
    let begin = Instant::now();
    servers.iter_mut().for_each(|server| server.signal(Signal::TERM));
    for server in servers.iter_mut() {
        server.finish();
    }
    *servers = start_all(lab, place);
    let away = begin.elapsed();
    load.finish();
    (away, load.log())
}

#[test]
fn four_servers_are_asked_over_tls_and_their_restarts_cost_no_answer() {
    let programs = ["nsd", "unbound", "named", "kresd", "dnsdist", "openssl", "dnsperf", "curl"];
    let Some(lab) = Lab::new(&programs) else { return };
    let place = lab.scratch.directory("servers");
    let certificate = Certificate::new(&place);
    let _authority = Authority::start(Program::Nsd, &lab.world, &place, address::SECOND, &zones(&place));
    let mut servers = start_all(&lab, &place);
    let sixfold = Sixfold::start(&lab, &configuration(&place, &format!("sha256/{}", certificate.pin())));
    for (name, _) in SERVERS {
        let answer = lab.kdig().ask(&format!("h7.{name}.test"), "AAAA");
        assert_eq!(answer.data("AAAA"), [Lab::embedded("198.18.0.7")], "{name}: {}", answer.text);
    }
    let wrong = lab.kdig().with("+edns").ask("h7.wrong.test", "AAAA");
    assert_eq!(wrong.status, "SERVFAIL", "{}", wrong.text);
    assert!(wrong.text.contains("certificate of an upstream is for another name"), "{}", wrong.text);

    // All hosts at once, over connections that stay: a few for each worker and server, not one for each question.
    let argv = dnsperf(&lab, "-c 4 -q 800 -n 1");
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    assert_all_answered(&lab.client.run_checked(&argv));
    let handshakes: u64 = sixfold.labelled("sixfold_upstream_tls_handshakes_total").values().sum();
    // How many there are depends on the servers' speed: one that stalls gets another connection.
    assert!(handshakes <= 80, "{handshakes} handshakes for 808 questions with two lookups");

    let mut within = None;
    for _ in 0..RESTARTS {
        let (away, output) = restart(&lab, &place, &mut servers);
        if away < BACK {
            within = Some(output);
            break;
        }
    }
    match within {
        Some(output) => assert_all_answered(&output),
        None => kit::skip(&format!("no restart of the servers took less than {} s", BACK.as_secs())),
    }
    let failures = sixfold.labelled("sixfold_upstream_tls_failures_total");
    assert!(wait_until(|| sixfold.metric("sixfold_pending") < 1.0), "{failures:?}");
}
