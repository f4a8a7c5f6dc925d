//! Answers of a server with a configuration of the corpus, and of Sixfold with the converted one.
//!
//! Both run in a network namespace that has all addresses of the configuration, so that the files of the corpus run as they are:
//! listening addresses, forwarders (all served by one upstream) and clients. The RCODE and the set of records of the answer
//! section are compared, without owners and TTLs. Differences that remain are in [`KNOWN`], each with its reason.

mod names;
mod original;

use conform::client::ask_from;
use conform::differential::zone_data::{SharedZoneData, ZoneData};
use conform::message::Answer;
use conform::query::Query;
use conform::upstream::Upstream;
use names::{questions, zone_data};
use original::RECURSOR_5;
use sixfold_interop::{Debian13, Process, Scratch, missing_program, program};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

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
        server: "pdns_recursor",
        file: "powerdns/script.conf",
        ask: "[2001:db8:53::2]:53",
        clients: &["2001:db8:70::7"],
    },
    Run {
        server: RECURSOR_5,
        file: "powerdns/isp.yml",
        ask: "[2001:db8:53::1]:53",
        clients: &["2001:db8:2000::7"],
    },
    Run { server: RECURSOR_5, file: "powerdns/home.yml", ask: "[::1]:5300", clients: &["::1"] },
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

/// Difference of `serve-rfc1918`, which is on in the older recursor and has the zones of RFC 1918 only.
const EMPTY_ZONES: &str = "Sixfold's empty zones are all of RFC 6303, as the conversion says";

const HOME: &str =
    "RFC 8375 section 4: Sixfold does not forward home.arpa; these servers do unless they have a zone for it";

/// Differences that are there on purpose: server, question, reason. The numbers are those of docs/disagreements.md.
const KNOWN: &[(&str, &str, &str)] = &[
    ("named", "host.home.arpa. AAAA", HOME),
    ("named", "host.home.arpa. A", HOME),
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
    ("unbound", "nas.lan. AAAA", "Unbound applies no DNS64 to local data"),
    (
        "unbound",
        UNDER_WELL_KNOWN,
        "7: empty zones hold for the target, and 64:ff9b::/96 always has reverse names",
    ),
    ("pdns_recursor", "synthesized.site.example. AAAA", "8: Sixfold's own prefixes are always excluded"),
    ("pdns_recursor", "aaaa-refused.site.example. AAAA", "15: Sixfold passes the RCODE on"),
    ("pdns_recursor", "10.113.0.203.in-addr.arpa. PTR", EMPTY_ZONES),
    (
        "pdns_recursor",
        "4.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.a.a.a.a.8.b.d.0.1.0.0.2.ip6.arpa. PTR",
        EMPTY_ZONES,
    ),
    ("pdns_recursor", "host.home.arpa. AAAA", HOME),
    ("pdns_recursor", "host.home.arpa. A", HOME),
    (RECURSOR_5, "synthesized.site.example. AAAA", "8: Sixfold's own prefixes are always excluded"),
    (RECURSOR_5, "host.home.arpa. AAAA", HOME),
    (RECURSOR_5, "host.home.arpa. A", HOME),
    (RECURSOR_5, UNDER_WELL_KNOWN, "7: 64:ff9b::/96 always has reverse names"),
    ("coredns", "a-servfail.site.example. AAAA", "3: CoreDNS hides the failure"),
    ("coredns", "synthesized.site.example. AAAA", "8: Sixfold's own prefixes are always excluded"),
    (
        "coredns",
        "localhost. AAAA",
        "RFC 6761 section 6.3: Sixfold answers localhost itself; CoreDNS forwards it",
    ),
    ("coredns", "localhost. A", "RFC 6761 section 6.3, as for AAAA"),
];

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

/// Adds an address to the loopback device.
fn add_address(address: IpAddr) {
    let mut command = Command::new("ip");
    command.args(["address", "replace", &address.to_string(), "dev", "lo"]);
    if address.is_ipv6() {
        // Otherwise the address is tentative until a thread of the kernel has run, and no socket can have it.
        command.arg("nodad");
    }
    let status = command.status();
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
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../server/convert/tests/corpus");
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
    let argv = original::command(run.server, &path, asked, &place);
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    let original = answers(run, Process::start(&argv, &place.path().join("original.log")));
    let rest = format!(
        "\n[metrics]\nlisten = \"\"\n[control]\nsocket = \"{}/control.sock\"\n[log]\nlevel = \"error\"\n",
        place.path().display()
    );
    // Unspecified addresses would take the port from the upstream.
    let unspecified = endpoints(&converted, "listen").iter().any(|endpoint| endpoint.ip().is_unspecified());
    let listen = converted.lines().find(|line| line.starts_with("listen = [")).unwrap_or_default();
    let converted = match unspecified {
        true => converted.replace(listen, &format!("listen = [\"{asked}\"]")),
        false => converted,
    };
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
    const NAME: &str = "convert::a_converted_configuration_gives_the_answers_of_the_original";
    if !kit::namespace::is_inside() {
        // Without it, the reason has been given.
        let unpacked =
            Debian13::get().map_or(String::new(), |_| format!("export {}=1; ", original::UNPACKED));
        let script = unpacked + "ip link set lo up && exec \"$@\"";
        kit::namespace::run_inside(NAME, &kit::namespace::network(&script));
        return;
    }
    let data = Arc::new(zone_data());
    let (mut used, mut ran, mut faults) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for run in RUNS {
        if run.server == "coredns" && Command::new("coredns").arg("-version").output().is_err() {
            kit::skip("coredns is no package of Debian");
            continue;
        }
        if run.server == RECURSOR_5 && std::env::var_os(original::UNPACKED).is_none() {
            continue; // The reason was given before the namespace was made.
        }
        if ![RECURSOR_5, "coredns"].contains(&run.server)
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
