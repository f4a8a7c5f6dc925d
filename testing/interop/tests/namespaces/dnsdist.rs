//! Behind dnsdist, which sends PROXY headers: Sixfold treats the real client as the client, over UDP and TCP.

use crate::encrypted_clients::encrypted_listeners;
use servers::Task;
use sixfold_interop::fleet::{FRONT, Fleet};
use sixfold_interop::{
    Certificate, Configuration, Kdig, Lab, Process, SERVER_NAME, Sixfold, address, configure, copy_recipe,
    dig, recipe, wait_until, words,
};
use std::net::SocketAddr;

/// Address of dnsdist, in the gateway.
const PORT: u16 = 5300;

/// Sixfold as the server behind dnsdist, which it takes for a proxy.
pub const PROXYING: &str =
    "newServer({address='[::1]:53', useProxyProtocol=true, checkName='nas.home.', mustResolve=false})";

/// Starts dnsdist in the gateway, with these lines of its configuration, and waits until it has found a server.
pub fn start_dnsdist(lab: &Lab, addresses: &[&str], port: u16, options: Vec<String>) -> Process {
    let at = |address: &&str| SocketAddr::new(address.parse().expect("an address"), port);
    let task = Task { listen: addresses.iter().map(at).collect(), options, ..Task::default() };
    let argv = configure(&servers::DNSDIST, &task, lab.scratch.path());
    let mut dnsdist = lab.gateway.start(&words(&argv), &lab.scratch.path().join("dnsdist.log"));
    dnsdist.expect("dnsdist finds Sixfold", |log| log.contains("as 'up'"));
    dnsdist
}

#[test]
fn the_client_in_front_of_dnsdist_is_the_one_that_counts() {
    let Some(lab) = Lab::new(&["dnsdist", "curl"]) else { return };
    // The lab allows the client's network, and not dnsdist's own address.
    let configuration = Configuration::forwarding_to(&[address::FIRST])
        .server("proxy-from = [\"::1\"]\n")
        .dns64("[local]\nrecords = [\"nas.home. 60 IN A 198.51.100.7\"]\n");
    let sixfold = Sixfold::start(&lab, &configuration);
    let _dnsdist = start_dnsdist(&lab, &[address::GATEWAY], PORT, vec![PROXYING.to_owned()]);
    for (round, transport) in ["", "+tcp"].into_iter().enumerate() {
        let kdig = lab.kdig().with(&format!("-p {PORT}"));
        let kdig = if transport.is_empty() { kdig } else { kdig.with(transport) };
        let answer = kdig.ask("nas.home", "AAAA");
        assert_eq!(answer.status, "NOERROR", "{}", answer.text);
        assert_eq!(answer.data("AAAA"), [Lab::embedded("198.51.100.7")], "{}", answer.text);
        assert_eq!(answer.transport, ["UDP", "TCP"][round], "{}", answer.text);
    }
    // Queries of dnsdist itself come with the command LOCAL, from an address that is not allowed.
    let refused = || sixfold.metric("sixfold_refused_total{reason=\"not_allowed\"}");
    assert!(wait_until(|| refused() > 0.0));
    assert!(sixfold.metric("sixfold_queries_total{transport=\"tcp\",family=\"ipv6\"}") >= 1.0);
    for reason in ["missing", "malformed"] {
        let series = format!("sixfold_dropped_total{{reason=\"proxy_header_{reason}\"}}");
        assert_eq!(sixfold.metric(&series).to_bits(), 0.0f64.to_bits(), "{reason}");
    }
}

/// Backends of dnsdist: pool, address with port, further options. Sixfold takes the address `::1` for a proxy, the other one for a client.
const BACKENDS: [(&str, &str, &str); 4] = [
    ("tls", "192.0.2.1:853", ""),
    ("https", "192.0.2.1:443", "dohPath=\"/dns-query\", "),
    ("tls-proxy", "[::1]:853", "useProxyProtocol=true, "),
    ("https-proxy", "[::1]:443", "dohPath=\"/dns-query\", useProxyProtocol=true, "),
];

/// Lines of dnsdist that send the questions below `POOL.test` to the backend of that pool.
fn encrypted_backends(certificate: &Certificate) -> Vec<String> {
    let backend = |(pool, address, options)| {
        format!(
            "newServer({{address=\"{address}\", pool=\"{pool}\", tls=\"openssl\", caStore={:?}, subjectName=\"{SERVER_NAME}\", \
             {options}checkName=\"nas.{pool}.test.\", mustResolve=false}})\n\
             addAction(QNameRule(\"nas.{pool}.test\"), PoolAction(\"{pool}\"))",
            certificate.authority()
        )
    };
    BACKENDS.map(backend).into()
}

#[test]
fn dnsdist_asks_over_tls_and_https_and_names_its_client_within_tls() {
    let Some(lab) = Lab::new(&["dnsdist", "curl", "openssl"]) else { return };
    let certificate = Certificate::new(lab.scratch.path());
    // dnsdist asks this address from itself.
    lab.gateway.configure("addr add 192.0.2.1/32 dev lo");
    let records = BACKENDS.map(|(pool, ..)| format!("nas.{pool}.test. 60 IN A 198.51.100.7"));
    let configuration = Configuration::forwarding_to(&[address::FIRST])
        .server("proxy-from = [\"::1\"]\n")
        .dns64(&format!("[local]\nrecords = {records:?}\n{}", encrypted_listeners(&certificate)));
    let sixfold = Sixfold::start(&lab, &configuration);
    let lines = encrypted_backends(&certificate);
    let mut dnsdist = start_dnsdist(&lab, &[address::GATEWAY], PORT, lines);
    dnsdist.expect("dnsdist finds four servers", |log| log.matches("as 'up'").count() >= BACKENDS.len());
    for (pool, ..) in BACKENDS {
        let kdig = lab.kdig().with(&format!("-p {PORT}"));
        let answer = kdig.ask(&format!("nas.{pool}.test"), "AAAA");
        assert_eq!(answer.data("AAAA"), [Lab::embedded("198.51.100.7")], "{pool}: {}", answer.text);
    }
    // Behind the proxy the client has IPv6, and `::1` itself is not allowed: its checks are refused.
    for transport in ["tls", "https"] {
        for family in ["ipv4", "ipv6"] {
            let series = format!("sixfold_queries_total{{transport=\"{transport}\",family=\"{family}\"}}");
            assert!(sixfold.metric(&series) >= 1.0, "{series}");
        }
    }
    assert!(sixfold.metric("sixfold_refused_total{reason=\"not_allowed\"}") >= 2.0);
    let closed = sixfold.metric("sixfold_stream_closed_total{reason=\"proxy_header\"}");
    assert_eq!(closed.to_bits(), 0.0f64.to_bits());
}

/// Names below `localhost`, which every server answers itself. dnsdist spreads them over the servers.
fn names() -> impl Iterator<Item = String> {
    (0..12).map(|number| format!("n{number}.localhost"))
}

/// Starts three servers and dnsdist in front of them, with the files of the recipe `dnsdist`.
fn start_recipe(fleet: &Fleet) -> (Vec<Process>, Process) {
    let servers = fleet.servers.iter().map(|server| server.start_sixfold(&recipe("dnsdist/sixfold.toml")));
    let servers = servers.collect();
    copy_recipe(&fleet.scratch, "dnsdist/dnsdist.conf", "router/dnsdist/dnsdist.conf");
    let certificate = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=dns.example.net \
                       -keyout /etc/dnsdist/key.pem -out /etc/dnsdist/cert.pem";
    let ran = fleet.router.run(&["sh", "-c", certificate]);
    assert!(ran.success, "openssl: {}", ran.stderr);
    let argv = ["dnsdist", "--supervised", "--disable-syslog", "-C", "/etc/dnsdist/dnsdist.conf"];
    let mut dnsdist = fleet.router.start("dnsdist", &argv);
    dnsdist.expect("dnsdist finds three servers", |log| log.matches("as 'up'").count() >= 3);
    (servers, dnsdist)
}

#[test]
fn the_recipe_with_dnsdist_serves_over_udp_tcp_and_tls_and_survives_a_dead_server() {
    let Some(fleet) = Fleet::new(&["dnsdist", "openssl", "dig"]) else { return };
    let (mut servers, mut dnsdist) = start_recipe(&fleet);
    let client = &fleet.client.namespace;
    for transport in ["+notcp", "+tcp", "+tls"] {
        let answer = Kdig::new(client, FRONT).with(transport).ask("ipv4only.arpa", "AAAA");
        let expected = ["2001:db8:64::c000:aa", "2001:db8:64::c000:ab"];
        assert_eq!(answer.data("AAAA"), expected, "{transport}: {}", answer.text);
    }
    // A cookie is bound to the client's address, which the servers know from dnsdist, and to the secret that they share.
    let cookie = dig(client, FRONT, 53, &["+cookie", "localhost", "AAAA"]).learned().to_owned();
    for name in names() {
        let told = dig(client, FRONT, 53, &[&format!("+cookie={cookie}"), &name, "AAAA"]);
        assert_eq!((told.status(), told.learned()), ("NOERROR", cookie.as_str()), "{}", told.text);
    }
    let valid =
        fleet.servers.each_ref().map(|server| server.metric("sixfold_cookies_total{result=\"valid\"}"));
    assert_eq!(valid.iter().sum::<u64>(), 12, "{valid:?}");
    assert!(valid.iter().all(|&count| count > 0), "a server had no name: {valid:?}");

    servers[0].kill();
    dnsdist.expect("dnsdist notices the death", |log| {
        log.lines().any(|line| line.contains("downstream r1 ") && line.contains("as 'down'"))
    });
    for name in names() {
        let answer = Kdig::new(client, FRONT).ask(&name, "AAAA");
        assert_eq!(answer.data("AAAA"), ["::1"], "{}", answer.text);
    }
}
