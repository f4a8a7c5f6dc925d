//! Encrypted listeners with the programs of others as clients: kdig (GnuTLS), `openssl s_client`, dnsperf.

use crate::client::{embedded, name_of, query};
use crate::daemon::{Daemon, PREFIX, Setup, wait_until};
use crate::encrypted_service::{Listeners, NAME, Pair, TlsClient, trusting};
use crate::service::text;
use crate::upstream::{Behavior, Upstream};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use wire::Type;

/// Seconds after which `timeout` ends a program.
const SECONDS: &str = "60";

/// Runs a program, or says that it is missing.
fn run(package: &str, words: &[&str]) -> Option<Output> {
    if !is_there(words[0], package) {
        return None;
    }
    Some(Command::new("timeout").arg(SECONDS).args(words).stdin(Stdio::null()).output().unwrap())
}

/// True if a program is there. Otherwise says that it is missing.
pub fn is_there(program: &str, package: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).any(|path| path.join(program).is_file());
    if !found {
        kit::missing(program, &format!("apt-get install {package}"));
    }
    found
}

fn handshakes(server: &Daemon, kind: &str) -> f64 {
    server.stat(&format!("tls_handshakes_total{{kind=\"{kind}\"}}"))
}

/// The pin of the key in a certificate, as kdig wants it (RFC 7858 section 4.2), computed by openssl.
pub fn pin_of(certificate: &Path) -> String {
    let file = certificate.display();
    let steps = format!(
        "openssl x509 -in {file} -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | openssl base64"
    );
    let output = Command::new("sh").args(["-c", &steps]).output().unwrap();
    let pin = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    assert_eq!(pin.len(), 44, "{pin}");
    pin
}

#[test]
fn kdig_trusts_the_certificate_by_its_authority_and_by_its_pin() {
    let listeners = Listeners::new(&Pair::new());
    let other = Listeners::new(&Pair::new());
    let server = listeners.add_to(Setup::answering()).start();
    let ca = |listeners: &Listeners| format!("+tls-ca={}", listeners.certificate().display());
    let hostname = format!("+tls-hostname={NAME}");
    if !is_there("openssl", "openssl") {
        return;
    }
    let (pinned, wrong_pin) = (
        format!("+tls-pin={}", pin_of(&listeners.certificate())),
        format!("+tls-pin={}", pin_of(&other.certificate())),
    );
    let (dot, doh) = (listeners.dot.port().to_string(), listeners.doh.port().to_string());
    let address = embedded(PREFIX, 1).to_string();
    let cases: [(&str, &[&str], bool); 7] = [
        (&dot, &["+tls", &ca(&listeners), &hostname], true),
        (&dot, &["+tls", &pinned], true),
        (&doh, &["+https", &ca(&listeners), &hostname], true),
        (&doh, &["+https", "+https-get", &ca(&listeners), &hostname], true),
        (&dot, &["+tls", &ca(&other), &hostname], false),
        (&dot, &["+tls", &ca(&listeners), "+tls-hostname=other.example"], false),
        (&dot, &["+tls", &wrong_pin], false),
    ];
    for (port, options, is_trusted) in cases {
        let name = name_of(1);
        let words = ["kdig", "@127.0.0.1", "-p", port, "+noidn", "+retry=0", "+timeout=60", &name, "AAAA"];
        let Some(output) = run("knot-dnsutils", &[&words[..], options].concat()) else { return };
        let told = text(&output);
        assert_eq!(told.contains(&address), is_trusted, "{options:?}: {told}");
    }
    assert_eq!(server.stat("queries_total{transport=\"tls\",family=\"ipv4\"}"), 2.0);
    assert_eq!(server.stat("queries_total{transport=\"https\",family=\"ipv4\"}"), 2.0);
}

//= RFC 7828 section 3.3.2: requirement 66
#[test]
fn dig_and_kdig_are_told_the_idle_timeout_over_tcp_and_tls() {
    let listeners = Listeners::new(&Pair::new());
    let server = listeners.add_to(Setup::answering()).line("limits.tcp-idle = \"25s\"").start();
    let (port, dot) = (server.port.to_string(), listeners.dot.port().to_string());
    let common = ["@127.0.0.1", "+retry=0", "+timeout=60", "-p"];
    let ca = format!("+tls-ca={}", listeners.certificate().display());
    let hostname = format!("+tls-hostname={NAME}");
    let over_tls = ["+noidn", "+tls", &ca, &hostname];
    let asking_over_tls = [&over_tls[..], &["+ednsopt=11"]].concat();
    // dig writes seconds, kdig the data: 250 units of 100 ms are 00FA.
    let cases = [
        ("dig", "bind9-dnsutils", &port, &["+tcp", "+keepalive"][..], Some("KEEPALIVE: 25.0 secs")),
        ("dig", "bind9-dnsutils", &port, &["+notcp", "+keepalive"], None),
        ("kdig", "knot-dnsutils", &port, &["+noidn", "+tcp", "+ednsopt=11"], Some("(11): 00FA")),
        ("kdig", "knot-dnsutils", &dot, &asking_over_tls, Some("(11): 00FA")),
        ("kdig", "knot-dnsutils", &dot, &over_tls, None),
    ];
    for (program, package, port, options, expected) in cases {
        let name = name_of(1);
        let words = [&[program], &common[..], &[port, &name, "AAAA"], options].concat();
        let Some(output) = run(package, &words) else { return };
        let told = text(&output);
        assert!(told.contains(&embedded(PREFIX, 1).to_string()), "{words:?}: {told}");
        let has_option = told.contains("KEEPALIVE") || told.contains("(11)");
        assert_eq!(has_option, expected.is_some(), "{words:?}: {told}");
        assert!(expected.is_none_or(|expected| told.contains(expected)), "{words:?}: {told}");
    }
}

/// Asks with `openssl s_client`, and returns its words about the session once the answer has come.
fn ask_with_openssl(server: SocketAddr, number: u32, options: &[&str]) -> String {
    let mut child = Command::new("timeout")
        .args([SECONDS, "openssl", "s_client", "-alpn", "dot", "-connect", &server.to_string()])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let message = query(5, &name_of(number), Type::AAAA);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&[&(message.len() as u16).to_be_bytes(), &message[..]].concat()).unwrap();
    let address = embedded(PREFIX, number).octets();
    let mut told = Vec::new();
    let mut stdout = child.stdout.take().unwrap();
    while !told.windows(address.len()).any(|part| part == address) {
        let mut octets = [0; 4096];
        let count = stdout.read(&mut octets).unwrap();
        assert!(count > 0, "no answer in {}", String::from_utf8_lossy(&told));
        told.extend(&octets[..count]);
    }
    // The end of the input ends the connection.
    drop(stdin);
    stdout.read_to_end(&mut told).unwrap();
    child.wait().unwrap();
    String::from_utf8_lossy(&told).into_owned()
}

#[test]
fn openssl_resumes_a_session_at_another_server_with_the_same_ticket_secret() {
    if !is_there("openssl", "openssl") {
        return;
    }
    let pair = Pair::new();
    let fleet = [Listeners::new(&pair), Listeners::new(&pair), Listeners::new(&pair)];
    let secret = fleet[0].write_secret("ticket.secret", &[7; 64]);
    let line = format!("tls.ticket-secret-file = \"{}\"", secret.display());
    let start = |listeners: &Listeners| listeners.add_to(Setup::answering());
    let [first, second] = [&fleet[0], &fleet[1]].map(|listeners| start(listeners).line(&line).start());
    let stranger = start(&fleet[2]).start();
    for (number, version, name) in [(1, "-tls1_2", "TLSv1.2"), (2, "-tls1_3", "TLSv1.3")] {
        let session = fleet[0].file(version).display().to_string();
        let ask = |listeners: &Listeners, options: &[&str]| {
            ask_with_openssl(listeners.dot, number, &[&[version], options].concat())
        };
        let told = ask(&fleet[0], &["-sess_out", &session]);
        assert!(told.contains(&format!("New, {name}")), "{told}");
        for listeners in &fleet[..2] {
            let told = ask(listeners, &["-sess_in", &session]);
            assert!(told.contains(&format!("Reused, {name}")), "{told}");
        }
        // A server with another secret does a full handshake.
        let told = ask(&fleet[2], &["-sess_in", &session]);
        assert!(told.contains(&format!("New, {name}")), "{told}");
    }
    let kinds = [&first, &second, &stranger].map(|one| ["full", "resumed"].map(|kind| handshakes(one, kind)));
    assert_eq!(kinds, [[2.0, 2.0], [0.0, 2.0], [2.0, 0.0]]);
    [first, second, stranger].iter().for_each(|server| server.process.stop());
}

#[test]
fn a_renegotiation_over_tls_1_2_is_refused_and_ends_nothing_else() {
    if !is_there("openssl", "openssl") {
        return;
    }
    let pair = Pair::new();
    let listeners = Listeners::new(&pair);
    let server = listeners.add_to(Setup::answering()).line("limits.tcp-idle = \"1s\"").start();
    let mut kept = TlsClient::to(listeners.dot, &trusting(&[&pair], b"dot"));
    let mut child = Command::new("timeout")
        .args([SECONDS, "openssl", "s_client", "-tls1_2", "-connect", &listeners.dot.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the handshake is done", || handshakes(&server, "full") == 2.0);
    // The line that makes s_client renegotiate.
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"R\n").unwrap();
    // openssl says why when the connection ends, which the server does after `tcp-idle`.
    wait_until("openssl has ended", || {
        assert_eq!(kept.ask(&name_of(1)).addresses, [embedded(PREFIX, 1)]);
        child.try_wait().unwrap().is_some()
    });
    drop(stdin);
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(told.contains("RENEGOTIATING") && told.contains("no renegotiation"), "{told}");
    assert_eq!(handshakes(&server, "full"), 2.0);
}

/// dnsperf takes one response out of a TLS record, so that it loses the others if several share one.
#[test]
fn dnsperf_over_tls_and_https_loses_no_query() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let listeners = Listeners::new(&Pair::new());
    let server = listeners.add_to(Setup::new(upstream.address)).start();
    let names = listeners.file("names");
    // Few names, because the upstream of the test takes milliseconds for each.
    let lines: String = (0..1_000).map(|number| format!("{} AAAA\n", name_of(number % 10))).collect();
    std::fs::write(&names, lines).unwrap();
    let names = names.display().to_string();
    let target = format!("doh-uri=https://{NAME}/dns-query");
    for (mode, transport, listener) in [("dot", "tls", listeners.dot), ("doh", "https", listeners.doh)] {
        let port = listener.port().to_string();
        let words = ["dnsperf", "-s", "127.0.0.1", "-p", &port, "-m", mode, "-d", &names, "-n", "1"];
        let further = ["-O", &target, "-T", "1", "-c", "4", "-q", "80", "-t", "30"];
        let Some(output) = run("dnsperf", &[&words[..], &further].concat()) else { return };
        let told = text(&output);
        assert!(told.contains("Queries completed:    1000 (100.00%)"), "{told}");
        assert!(told.contains("NOERROR 1000 (100.00%)"), "{told}");
        let asked = server.stat(&format!("queries_total{{transport=\"{transport}\",family=\"ipv4\"}}"));
        assert_eq!(asked.to_bits(), 1_000.0f64.to_bits(), "{transport}");
    }
}
