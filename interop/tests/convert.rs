//! Answers of a server with a configuration of the corpus, and of Sixfold with the converted one.
//!
//! Both run in a network namespace that has all addresses of the configuration, so that the files of the corpus run as they are:
//! listening addresses, forwarders (all served by one upstream) and clients. The RCODE and the set of records of the answer
//! section are compared, without owners and TTLs. Differences that remain are in [`KNOWN`], each with its reason.

use conform::client::ask_from;
use conform::differential::zone_data::{Fault, SharedZoneData, ZoneData};
use conform::message::Answer;
use conform::query::Query;
use conform::record::{OwnedName, record};
use conform::upstream::Upstream;
use sixfold_interop::{Process, Scratch, missing_program, program};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Zone of the upstream: records of all names.
const RECORDS: &str = "
    v4only.site.example. 3600 IN A 203.0.113.10
    many.site.example. 3600 IN A 203.0.113.11
    many.site.example. 3600 IN A 203.0.113.12
    many.site.example. 3600 IN A 10.9.8.7
    private.site.example. 3600 IN A 10.1.2.3
    loopback.site.example. 3600 IN A 127.0.0.1
    both.site.example. 3600 IN A 203.0.113.13
    both.site.example. 3600 IN AAAA 2001:db8:aaaa::13
    v6only.site.example. 3600 IN AAAA 2001:db8:aaaa::14
    neither.site.example. 3600 IN TXT \"no addresses\"
    neither.site.example. 3600 IN MX 10 v4only.site.example.
    alias.site.example. 3600 IN CNAME second.site.example.
    second.site.example. 3600 IN CNAME v4only.site.example.
    dangling.site.example. 3600 IN CNAME nothing.site.example.
    mapped.site.example. 3600 IN A 203.0.113.15
    mapped.site.example. 3600 IN AAAA ::ffff:203.0.113.99
    synthesized.site.example. 3600 IN A 203.0.113.16
    synthesized.site.example. 3600 IN AAAA 64:ff9b::1.2.3.4
    aaaa-servfail.site.example. 3600 IN A 203.0.113.17
    aaaa-refused.site.example. 3600 IN A 203.0.113.18
    a-servfail.site.example. 3600 IN TXT \"the A records cannot be read\"
    www.old.example. 3600 IN A 203.0.113.19
    www.old.example. 3600 IN AAAA 2001:db8:aaaa::19
    pc.ad.campus.example. 3600 IN A 10.20.0.77
    host.test. 3600 IN A 203.0.113.20
    host.home.arpa. 3600 IN A 203.0.113.21
    ipv4only.arpa. 3600 IN A 192.0.0.170
    ipv4only.arpa. 3600 IN A 192.0.0.171
    10.113.0.203.in-addr.arpa. 3600 IN PTR v4only.site.example.
    3.2.1.10.in-addr.arpa. 3600 IN PTR private.site.example.
    4.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.a.a.a.a.8.b.d.0.1.0.0.2.ip6.arpa. 3600 IN PTR v6only.site.example.
    ready.site.example. 3600 IN TXT \"ready\"";

/// Questions to every server, beside AAAA for each name of [`RECORDS`].
const QUESTIONS: &str = "v4only.site.example. A; both.site.example. A; v6only.site.example. A; neither.site.example. TXT; \
     neither.site.example. MX; nothing.site.example. AAAA; nothing.site.example. A; alias.site.example. A; \
     a-servfail.site.example. TXT; aaaa-servfail.site.example. A; ipv4only.arpa. A; 10.113.0.203.in-addr.arpa. PTR; \
     3.2.1.10.in-addr.arpa. PTR; 4.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.a.a.a.a.8.b.d.0.1.0.0.2.ip6.arpa. PTR; \
     localhost. AAAA; localhost. A; host.test. A; host.home.arpa. A; nas.lan. A; nas.lan. AAAA; other.lan. A; \
     5.1.168.192.in-addr.arpa. PTR; something.invalid. AAAA; dangling.site.example. A; \
     a.7.1.7.0.b.c.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.b.9.f.f.4.6.0.0.ip6.arpa. PTR; \
     a.0.1.7.0.0.b.c.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.b.9.f.f.4.6.0.0.ip6.arpa. PTR";

/// Configuration, the address to ask, and the clients.
struct Run {
    server: &'static str,
    file: &'static str,
    ask: &'static str,
    clients: &'static [&'static str],
}

const RUNS: &[Run] = &[
    Run {
        server: "named",
        file: "bind/isp.conf",
        ask: "[2001:db8:53::1]:53",
        // BIND allows `localhost`, every address of this machine, so no client here is refused.
        clients: &["2001:db8:1000::7"],
    },
    Run {
        server: "named",
        file: "bind/datacentre.conf",
        ask: "[2001:db8:30::53]:53",
        clients: &["2001:db8:30:1::7", "2001:db8:30:5::7", "2001:db8:30:99::7"],
    },
    Run {
        server: "unbound",
        file: "unbound/home.conf",
        ask: "[2001:db8:50::1]:53",
        clients: &["2001:db8:50:1::7", "2001:db8:50:f::7"],
    },
    Run {
        server: "unbound",
        file: "unbound/isp.conf",
        ask: "[2001:db8:53::1]:5300",
        clients: &["2001:db8:1000::7"],
    },
    Run {
        server: "unbound",
        file: "unbound/synthall.conf",
        ask: "[2001:db8:53::99]:53",
        clients: &["2001:db8:7::7"],
    },
    Run {
        server: "pdns_recursor",
        file: "powerdns/isp.conf",
        ask: "[2001:db8:53::1]:53",
        clients: &["2001:db8:2000::7"],
    },
    Run {
        server: "coredns",
        file: "coredns/campus.conf",
        ask: "[2001:db8:53::1]:53",
        // The DNS64 of CoreDNS makes an empty answer of the REFUSED for other clients.
        clients: &["2001:db8:20::7"],
    },
];

/// PTR question for an address under 64:ff9b::/96 (203.0.113.10).
const UNDER_WELL_KNOWN: &str =
    "a.0.1.7.0.0.b.c.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.b.9.f.f.4.6.0.0.ip6.arpa. PTR";

/// Differences that are there on purpose: server, question, reason. The numbers are those of docs/disagreements.md.
const KNOWN: &[(&str, &str, &str)] = &[
    ("named", "aaaa-refused.site.example. AAAA", "15: Sixfold passes the RCODE on"),
    (
        "named",
        "localhost. AAAA",
        "RFC 6761 section 6.3: Sixfold answers localhost itself; BIND forwards it here",
    ),
    ("named", "localhost. A", "RFC 6761 section 6.3, as for AAAA"),
    (
        "named",
        "ipv4only.arpa. AAAA",
        "RFC 8880: Sixfold answers with all prefixes of the client, whatever they embed",
    ),
    ("named", "synthesized.site.example. AAAA", "8: Sixfold's own prefixes are always excluded"),
    (
        "named",
        "a-servfail.site.example. AAAA",
        "BIND caches the failure of the A query, also for clients without DNS64",
    ),
    ("unbound", "a-servfail.site.example. AAAA", "3: Unbound hides the failure"),
    ("unbound", "synthesized.site.example. AAAA", "8: Sixfold's own prefixes are always excluded"),
    ("unbound", "many.site.example. AAAA", "private-address is not carried over"),
    ("unbound", "private.site.example. AAAA", "private-address is not carried over"),
    ("unbound", "pc.ad.campus.example. AAAA", "private-address is not carried over"),
    ("unbound", "nas.lan. AAAA", "Unbound applies no DNS64 to local data"),
    (
        "unbound",
        UNDER_WELL_KNOWN,
        "7: empty zones hold for the target, and 64:ff9b::/96 always has reverse names",
    ),
    ("pdns_recursor", "synthesized.site.example. AAAA", "8: Sixfold's own prefixes are always excluded"),
    ("coredns", "a-servfail.site.example. AAAA", "3: CoreDNS hides the failure"),
    ("coredns", "synthesized.site.example. AAAA", "8: Sixfold's own prefixes are always excluded"),
    (
        "coredns",
        "localhost. AAAA",
        "RFC 6761 section 6.3: Sixfold answers localhost itself; CoreDNS forwards it",
    ),
    ("coredns", "localhost. A", "RFC 6761 section 6.3, as for AAAA"),
];

/// The data of the upstream.
fn zone_data() -> ZoneData {
    use domain::base::iana::{Rcode, Rtype};
    let mut data = ZoneData::default();
    for line in RECORDS.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let parsed = record(line).unwrap_or_else(|_| panic!("not a record: {line}"));
        data.add(&parsed.owner().clone(), vec![parsed]);
    }
    for (name, rtype, rcode) in [
        ("aaaa-servfail.site.example.", Rtype::AAAA, Rcode::SERVFAIL),
        ("aaaa-refused.site.example.", Rtype::AAAA, Rcode::REFUSED),
        ("a-servfail.site.example.", Rtype::A, Rcode::SERVFAIL),
    ] {
        data.fail(&name.parse::<OwnedName>().expect("a name"), rtype, Fault::Rcode(rcode));
    }
    data
}

/// All questions: name and type.
fn questions() -> Vec<String> {
    let names: BTreeSet<&str> = RECORDS.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let forward =
        names.into_iter().filter(|name| !name.ends_with("-addr.arpa.") && !name.ends_with("ip6.arpa."));
    let mut all: Vec<String> = forward.map(|name| format!("{name} AAAA")).collect();
    all.extend(QUESTIONS.split(';').map(|question| question.trim().to_owned()));
    all
}

/// The parts of an answer that are compared: RCODE, and data without owners and TTLs.
fn answer(server: SocketAddr, client: IpAddr, question: &str) -> String {
    let (name, rtype) = question.split_once(' ').expect("a name and a type");
    let query = format!(r#"{{"name": "{name}", "type": "{rtype}"}}"#);
    let query: Query = serde_json::from_str(&query).expect("a query");
    let exchange =
        ask_from(client, server, &query, Duration::from_secs(20)).expect("the client has a socket");
    let Some(octets) = exchange.answer else { return "no answer".to_owned() };
    let answer = Answer::read(&octets).expect("a well-formed answer");
    let data: BTreeSet<String> = answer
        .answer
        .iter()
        .filter(|record| record.rtype() != domain::base::iana::Rtype::CNAME)
        .map(|record| format!("{} {}", record.rtype(), record.data()))
        .collect();
    format!("{} {}", answer.rcode, data.into_iter().collect::<Vec<_>>().join(", ")).trim_end().to_owned()
}

/// The file of the corpus for the original server, with the places of its files in our folder.
fn adapted(run: &Run, text: &str, folder: &Path) -> (String, Vec<String>) {
    let place = folder.display();
    match run.server {
        "named" => (
            text.replace("/var/cache/bind", &place.to_string())
                .replace("/var/log", &place.to_string())
                .replacen("options {", "controls { };\noptions { pid-file none; session-keyfile none;", 1),
            vec![
                "-f".into(),
                "-L".into(),
                "/dev/stderr".into(),
                "-n".into(),
                "1".into(),
                "-c".into(),
                format!("{place}/config"),
            ],
        ),
        "unbound" => (
            format!(
                "{text}\nserver:\n do-daemonize: no\n username: \"\"\n chroot: \"\"\n directory: \"{place}\"\n pidfile: \"\"\n \
                 use-syslog: no\n logfile: \"\"\n do-not-query-localhost: no\nremote-control:\n control-enable: no\n"
            ),
            vec!["-d".into(), "-c".into(), format!("{place}/config")],
        ),
        "pdns_recursor" => (
            format!(
                "{text}\nsocket-dir={place}\ndaemon=no\nwrite-pid=no\nsetuid=\nsetgid=\nwebserver=no\ndont-query=\n\
                 security-poll-suffix=\ndisable-syslog=yes\n"
            ),
            vec![format!("--config-dir={place}")],
        ),
        _ => (text.to_owned(), vec!["-conf".into(), format!("{place}/config")]),
    }
}

/// Adds an address to the loopback device.
fn add_address(address: IpAddr) {
    let status = Command::new("ip").args(["address", "replace", &address.to_string(), "dev", "lo"]).status();
    assert!(status.expect("ip is there").success(), "{address}");
}

/// Addresses with ports in a list of the converted configuration.
fn endpoints(text: &str, key: &str) -> BTreeSet<SocketAddr> {
    let lines = text.lines().filter(|line| line.starts_with(&format!("{key} = [")));
    lines.flat_map(|line| line.split('"').skip(1).step_by(2)).map(|one| one.parse().expect(one)).collect()
}

/// Answers to all questions of all clients.
fn answers(run: &Run, mut process: Process) -> Vec<(String, String)> {
    let server: SocketAddr = run.ask.parse().expect("an address");
    let clients: Vec<IpAddr> = run.clients.iter().map(|client| client.parse().expect("an address")).collect();
    let is_ready = |_: &str| !answer_within(server, clients[0]).is_empty();
    process.expect(&format!("{} answers", run.file), is_ready);
    let mut all = Vec::new();
    for (client, text) in clients.iter().zip(run.clients) {
        for question in questions() {
            all.push((format!("{text}: {question}"), answer(server, *client, &question)));
        }
    }
    all
}

/// The answer to a question that shows that a server is there; empty if there is none soon.
fn answer_within(server: SocketAddr, client: IpAddr) -> String {
    let query: Query =
        serde_json::from_str(r#"{"name": "ready.site.example.", "type": "TXT"}"#).expect("a query");
    let exchange = ask_from(client, server, &query, Duration::from_millis(300));
    exchange.ok().and_then(|exchange| exchange.answer).map_or(String::new(), |_| "ready".to_owned())
}

/// Differences of one configuration: question, answer of the original, answer of Sixfold.
fn compare(run: &Run, data: &Arc<ZoneData>) -> Vec<(String, String, String)> {
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../crates/convert/tests/corpus");
    let path = corpus.join(run.file);
    let output = Command::new(program("sixfold")).arg("convert").arg(&path).output().expect("sixfold");
    let converted = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(converted.contains("[upstream]"), "{}", String::from_utf8_lossy(&output.stderr));
    let asked: SocketAddr = run.ask.parse().expect("an address");
    let forwarders = endpoints(&converted, "forwarders");
    let own = endpoints(&converted, "listen").into_iter().chain([asked]).chain(forwarders.iter().copied());
    let clients = run.clients.iter().map(|client| client.parse().expect("an address"));
    own.map(|endpoint| endpoint.ip())
        .chain(clients)
        .filter(|ip| !ip.is_unspecified() && !ip.is_loopback())
        .for_each(add_address);
    let start = |address: &SocketAddr| {
        Upstream::serving_at(*address, Box::new(SharedZoneData(Arc::clone(data))))
            .expect("the address is free")
    };
    let upstreams: Vec<Upstream> = forwarders.iter().map(start).collect();

    let place = Scratch::new();
    let (text, arguments) = adapted(run, &std::fs::read_to_string(&path).expect("the corpus"), place.path());
    place.write(if run.server == "pdns_recursor" { "recursor.conf" } else { "config" }, &text);
    let argv: Vec<&str> = [run.server].into_iter().chain(arguments.iter().map(String::as_str)).collect();
    let original = answers(run, Process::start(&argv, &place.path().join("original.log")));
    let rest = format!(
        "\n[metrics]\nlisten = \"\"\n[control]\nsocket = \"{}/control.sock\"\n[log]\nlevel = \"error\"\n",
        place.path().display()
    );
    let file = place.write("sixfold.toml", &(converted + &rest));
    let argv = [program("sixfold"), "serve".to_owned(), "--config".to_owned(), file.display().to_string()];
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    let ours = answers(run, Process::start(&argv, &place.path().join("sixfold.log")));
    drop(upstreams);
    let pairs = original.into_iter().zip(ours).filter(|((_, theirs), (_, ours))| theirs != ours);
    pairs.map(|((question, theirs), (_, ours))| (question, theirs, ours)).collect()
}

#[test]
fn a_converted_configuration_gives_the_answers_of_the_original() {
    const NAME: &str = "a_converted_configuration_gives_the_answers_of_the_original";
    if !test_skip::namespace::is_inside() {
        let script = "ip link set lo up && exec \"$@\"";
        test_skip::namespace::run_inside(NAME, &test_skip::namespace::network(script));
        return;
    }
    let data = Arc::new(zone_data());
    let (mut used, mut ran, mut faults) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for run in RUNS {
        if run.server == "coredns" && Command::new("coredns").arg("-version").output().is_err() {
            test_skip::skip("coredns is no package of Debian");
            continue;
        }
        if run.server != "coredns"
            && let Some(why) = missing_program(run.server)
        {
            why.skip_part(run.server);
            continue;
        }
        ran.insert(run.server);
        for (question, theirs, ours) in compare(run, &data) {
            let asked = question.split_once(": ").expect("a client").1;
            match KNOWN.iter().position(|(server, known, _)| *server == run.server && *known == asked) {
                Some(index) => drop(used.insert(index)),
                None => faults
                    .push(format!("{}: {question}\n   original: {theirs}\n   Sixfold:  {ours}", run.file)),
            }
        }
    }
    for (index, (server, question, _)) in KNOWN.iter().enumerate() {
        let is_used = used.contains(&index) || !ran.contains(server);
        assert!(is_used, "{server} and Sixfold agree on {question}: delete the entry of KNOWN");
    }
    assert!(faults.is_empty(), "{} differences\n{}", faults.len(), faults.join("\n"));
}
