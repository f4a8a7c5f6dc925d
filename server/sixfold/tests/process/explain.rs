//! `sixfold ctl explain`.

use crate::client::Udp;
use crate::daemon::{Daemon, Setup, ctl, free_port};
use kit::Upstream;
use serde_json::Value;
use std::net::{SocketAddr, UdpSocket};
use std::process::Output;
use wire::{Builder, Class, Flags, Message, Name, Rcode, Section, Type};

/// Records of the upstream: owner, type, TTL, data.
const RECORDS: &[(&[u8], Type, u32, &[u8])] = &[
    (b"\x03www\x07example\0", Type::A, 300, &[192, 0, 2, 1]),
    (b"\x03www\x07example\0", Type::A, 200, &[127, 0, 0, 1]),
    (b"\x03www\x07example\0", Type::A, 250, &[203, 0, 113, 1]),
    (b"\x05alias\x07example\0", Type::CNAME, 60, b"\x03www\x07example\0"),
    (b"\x04dual\x07example\0", Type::AAAA, 60, &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
    (b"\x03odd\x07example\0", HTTPS, 60, ODD_HTTPS),
    (b"\x011\x012\x010\x03192\x07in-addr\x04arpa\0", Type::PTR, 60, b"\x03www\x07example\0"),
];

const HTTPS: Type = Type(65);

/// An HTTPS record (RFC 9460): the alpn has IDs with ESC and BEL, a line feed, and octet 0x9b; the dohpath has U+009B and U+202E.
const ODD_HTTPS: &[u8] = b"\0\x01\0\
    \0\x01\0\x12\x08\x1b]0;own\x07\x04h3\nx\x03\x9b1m\
    \0\x07\0\x0d/\xc2\x9b1m\xe2\x80\xae{?dns";

const SOA: &[u8] =
    b"\x02ns\x07example\0\x04host\x07example\0\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\x78";

/// An upstream with [`RECORDS`] below `example.`; other names do not exist.
fn upstream() -> Upstream {
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    Upstream::start_at(address, |asked, replies| replies.now(answer(asked.message)))
}

/// The records of a name.
fn at(name: &[u8]) -> impl Iterator<Item = &'static (&'static [u8], Type, u32, &'static [u8])> {
    RECORDS.iter().filter(move |record| wire::eq_ignore_case(record.0, name))
}

fn answer(query: &[u8]) -> Vec<u8> {
    let asked = Message::parse(query).expect("the server asks well-formed questions");
    let mut frame = vec![0; 1232];
    let exists = at(asked.qname()).next().is_some();
    let rcode = if exists { Rcode::NOERROR } else { Rcode::NXDOMAIN };
    let flags = Flags::QR.with(Flags::RA).with(Flags::RD).with_rcode(rcode);
    let mut builder = Builder::new(&mut frame, 1232, asked.id(), flags, asked.question()).unwrap();
    let mut name = asked.qname();
    let mut found = false;
    while let Some(&(owner, rtype, ttl, data)) = at(name).find(|record| record.1 == Type::CNAME) {
        builder
            .record(Section::Answer, Name::from_wire(owner).unwrap(), rtype, Class::IN, ttl, data)
            .unwrap();
        name = data;
    }
    for &(owner, rtype, ttl, data) in at(name).filter(|record| record.1 == asked.qtype()) {
        builder
            .record(Section::Answer, Name::from_wire(owner).unwrap(), rtype, Class::IN, ttl, data)
            .unwrap();
        found = true;
    }
    if !found {
        let zone = Name::from_wire(b"\x07example\0").unwrap();
        builder.record(Section::Authority, zone, Type::SOA, Class::IN, 900, SOA).unwrap();
    }
    let length = builder.finish();
    frame.truncate(length);
    frame
}

fn start(lines: &[&str]) -> (Upstream, Daemon) {
    let upstream = upstream();
    let setup = lines.iter().fold(Setup::new(upstream.address), |setup, line| setup.line(line));
    (upstream, setup.start())
}

fn stdout(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn explain(server: &Daemon, arguments: &[&str]) -> Value {
    let arguments = [&["explain", "--json"], arguments].concat();
    serde_json::from_str(&stdout(&server.ctl(&arguments))).unwrap()
}

fn decisions(told: &Value) -> Vec<&str> {
    told["decisions"].as_array().unwrap().iter().map(|one| one["decision"].as_str().unwrap()).collect()
}

/// The value of a field in each object of a list.
fn each<'v>(list: &'v Value, field: &str) -> Vec<&'v Value> {
    list.as_array().unwrap().iter().map(|one| &one[field]).collect()
}

#[test]
fn an_explanation_has_every_documented_field_and_shows_what_a_client_gets() {
    let (upstream, server) = start(&[]);
    let told = explain(&server, &["WWW.example"]);
    assert_eq!(decisions(&told), ["dns64", "nodata", "synthesized"]);
    assert_eq!(told["question"]["name"], "www.example.");
    assert_eq!((&told["question"]["type"], &told["question"]["client"]), (&"AAAA".into(), &"::1".into()));
    assert_eq!(told["answer"]["rcode"], "NOERROR");
    let records =
        ["www.example. 120 IN AAAA 2001:db8:64::c000:201", "www.example. 120 IN AAAA 2001:db8:64::cb00:7101"];
    assert_eq!(told["answer"]["records"], Value::from(records.to_vec()));
    assert_eq!(told["answer"]["extended_errors"][0]["code"], 29);
    assert_eq!(each(&told["lookups"], "type"), ["AAAA", "A"]);
    assert_eq!(each(&told["lookups"], "source"), ["upstream", "upstream"]);
    let attempts = &told["lookups"][0]["attempts"];
    assert_eq!(attempts[0]["upstream"], upstream.address.to_string());
    assert_eq!((&attempts[0]["transport"], &attempts[0]["outcome"]), (&"udp".into(), &"NOERROR".into()));
    assert_eq!(told["lookups"][1]["records"].as_array().unwrap().len(), 3);
    assert_eq!(each(&told["addresses"], "ipv4"), ["192.0.2.1", "127.0.0.1", "203.0.113.1"]);
    assert_eq!(each(&told["addresses"], "fate"), ["embedded", "never_embed", "embedded"]);
    assert_eq!(told["addresses"][0]["prefix"], "2001:db8:64::/96");
    let ttl = &told["ttl"];
    assert_eq!(
        [&ttl["a"], &ttl["soa"], &ttl["minimum"], &ttl["bound"], &ttl["result"]],
        [200, 900, 120, 120, 120]
    );
    assert_eq!((&told["dnssec"]["ad"], &told["dnssec"]["reason"]), (&false.into(), &"insecure".into()));
    assert_eq!(told["unfinished"], false);
    // A client gets these addresses.
    let response = Udp::to(server.v6()).ask("www.example", Type::AAAA);
    let addresses: Vec<String> = response.addresses.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["2001:db8:64::c000:201", "2001:db8:64::cb00:7101"]);
    // Every field is documented, and every documented field exists.
    let document = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/explanations-and-traces.md"
    ));
    let document = document.unwrap();
    let section = document.split("\n## Explanations\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let mut fields = Vec::new();
    collect_fields(&told, &mut fields);
    collect_fields(&explain(&server, &["dual.example"]), &mut fields);
    for field in &fields {
        assert!(section.contains(&format!("`{field}`")), "{field} is not documented");
    }
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    for (field, _) in rows {
        let known = |part: &str| fields.iter().any(|field| field == part);
        assert!(field.split("`, `").all(known), "{field} does not exist");
    }
}

fn collect_fields(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                into.push(key.clone());
                collect_fields(value, into);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| collect_fields(value, into)),
        _ => {}
    }
}

#[test]
fn people_get_it_as_text_with_what_demands_each_decision() {
    let (upstream, server) = start(&[]);
    let text = stdout(&server.ctl(&["explain", "alias.example", "--client", "fd00::7"]));
    for words in [
        "question  alias.example. AAAA from fd00::7, rd\n",
        "answer    NOERROR rd ra, extended error 29",
        "          alias.example. 60 IN CNAME www.example.\n",
        "there are no AAAA records: the A records decide [RFC 6147 section 5.1.6]\n",
        "2 addresses are synthesized [RFC 6147 section 5.1.7]\n",
        "  alias.example. AAAA: NOERROR rd ra from upstream\n",
        &format!(" ms {} over UDP: NOERROR after ", upstream.address),
        "  192.0.2.1: 2001:db8:64::c000:201 under 2001:db8:64::/96 [RFC 6052 section 2.2]\n",
        "  127.0.0.1: left out under 2001:db8:64::/96: it is never embedded [RFC 6147 section 5.1.7]\n",
        "the lowest of A records 200, SOA TTL 900, SOA MINIMUM 120: 120 [RFC 6147 section 5.1.7]\n",
    ] {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
    // DNSSEC is explained to who asks for it.
    assert!(!text.contains("DNSSEC"), "{text}");
    for option in ["--dnssec", "--cd"] {
        let text = stdout(&server.ctl(&["explain", "alias.example", option]));
        assert!(text.contains("\nDNSSEC\n  AD is clear"), "{text}");
    }
}

#[test]
fn names_that_do_not_exist_real_addresses_and_other_types_are_passed_on() {
    let (_upstream, server) = start(&[]);
    assert_eq!(decisions(&explain(&server, &["nobody.example"])), ["dns64", "nxdomain"]);
    let told = explain(&server, &["dual.example"]);
    assert_eq!(decisions(&told), ["dns64", "real_aaaa"]);
    assert_eq!(told["aaaa"][0]["address"], "2001:db8::1");
    assert_eq!(told["aaaa"][0]["fate"], "kept");
    let told = explain(&server, &["www.example", "--type", "a"]);
    assert_eq!(decisions(&told), ["other_type"]);
    assert_eq!(told["answer"]["records"].as_array().unwrap().len(), 3);
    let told = explain(&server, &["www.example", "--dnssec", "--cd"]);
    assert_eq!(decisions(&told), ["dnssec"]);
    assert_eq!((&told["question"]["do"], &told["question"]["cd"]), (&true.into(), &true.into()));
}

#[test]
fn the_rule_of_a_client_is_named_and_clients_who_may_not_ask_are_refused() {
    let rule = "dns64.rule = [{ clients = [\"2001:db8:a::/48\"], ipv4 = [\"192.0.2.0/24\"], prefixes = [] }]";
    let (_upstream, server) = start(&[rule, "server.allow = [\"::1/128\", \"2001:db8:a::/48\"]"]);
    let told = explain(&server, &["www.example", "--client", "2001:db8:a::1"]);
    assert_eq!(each(&told["addresses"], "fate"), ["rule", "never_embed", "embedded"]);
    assert_eq!(told["addresses"][0]["rule"], 1);
    assert!(told["addresses"][2]["rule"].is_null());
    let told = explain(&server, &["www.example"]);
    assert_eq!(each(&told["addresses"], "fate"), ["embedded", "never_embed", "embedded"]);
    let told = explain(&server, &["www.example", "--client", "192.0.2.9"]);
    assert_eq!((decisions(&told), &told["answer"]["rcode"]), (vec!["refused"], &"REFUSED".into()));
    assert_eq!(told["question"]["client"], "192.0.2.9");
    let text = stdout(&server.ctl(&["explain", "www.example", "--client", "192.0.2.9", "--dnssec"]));
    assert!(text.contains("this client is not allowed") && !text.contains("DNSSEC"), "{text}");
}

#[test]
fn data_of_our_own_are_named_by_their_key_and_no_upstream_is_needed() {
    let directory = crate::daemon::Folder::for_everybody();
    let hosts = directory.file("hosts");
    std::fs::write(&hosts, "192.168.1.6 printer.home\n").unwrap();
    let setup = Setup::new(SocketAddr::from(([127, 0, 0, 1], free_port())))
        .line("local.records = [\"nas.home. 60 IN A 192.168.1.5\"]")
        .line(&format!("local.hosts-file = \"{}\"", hosts.display()))
        .line("filter.block = [\"ads.example\"]");
    let server = setup.start();
    let told = explain(&server, &["nas.home"]);
    assert_eq!(decisions(&told), ["dns64", "records", "nodata", "records", "synthesized"]);
    assert_eq!(each(&told["lookups"], "source"), ["local.records", "local.records"]);
    let told = explain(&server, &["printer.home"]);
    assert_eq!(each(&told["lookups"], "source"), ["local.hosts-file", "local.hosts-file"]);
    let told = explain(&server, &["x.ads.example"]);
    assert_eq!(decisions(&told), ["dns64", "block", "nxdomain"]);
    assert_eq!(each(&told["lookups"], "source"), ["filter.block"]);
    let told = explain(&server, &["ipv4only.arpa"]);
    assert_eq!(decisions(&told), ["ipv4only"]);
    assert_eq!(told["answer"]["records"].as_array().unwrap().len(), 2);
    let told = explain(&server, &["localhost"]);
    assert_eq!(decisions(&told), ["localhost"]);
    assert_eq!(told["decisions"][0]["requirement"], "RFC 6761 section 6.3");
    assert_eq!(told["answer"]["records"][0], "localhost. 10800 IN AAAA ::1");
    let told = explain(&server, &["a.onion"]);
    assert_eq!(decisions(&told), ["onion"]);
    assert_eq!(told["decisions"][0]["requirement"], "RFC 7686 section 2");
}

#[test]
fn a_reverse_name_under_a_prefix_is_explained_as_the_alias_that_it_is() {
    let (_upstream, server) = start(&[]);
    let name = "1.0.2.0.0.0.0.c.0.0.0.0.0.0.0.0.0.0.0.0.4.6.0.0.8.b.d.0.1.0.0.2.ip6.arpa";
    let told = explain(&server, &[name, "--type", "PTR"]);
    assert_eq!(decisions(&told), ["reverse_alias", "other_type"]);
    assert_eq!(told["lookups"][0]["name"], "1.2.0.192.in-addr.arpa.");
    let last = told["answer"]["records"].as_array().unwrap().last().unwrap().as_str().unwrap();
    assert_eq!(last, "1.2.0.192.in-addr.arpa. 60 IN PTR www.example.");
}

#[test]
fn a_dead_upstream_is_explained_as_one() {
    // The socket is bound, so that no other program answers, and it is silent.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = Setup::new(silent.local_addr().unwrap()).line("upstream.timeout = \"50ms\"").start();
    let told = explain(&server, &["www.example"]);
    assert_eq!(decisions(&told), ["dns64", "aaaa_timeout", "a_failed"]);
    assert_eq!(told["answer"]["rcode"], "SERVFAIL");
    for lookup in told["lookups"].as_array().unwrap() {
        assert!(lookup["rcode"].is_null());
        assert!(
            each(&lookup["attempts"], "outcome").iter().all(|outcome| *outcome == "no_reply"),
            "{lookup}"
        );
    }
    server.process.stop();
    // An upstream that takes longer than an explanation may take.
    let server = Setup::new(silent.local_addr().unwrap()).line("upstream.timeout = \"30s\"").start();
    let told = explain(&server, &["www.example"]);
    assert_eq!((&told["unfinished"], &told["answer"]), (&true.into(), &Value::Null));
    assert_eq!(server.ctl(&["health"]).status.code(), Some(0));
}

#[test]
fn an_upstream_whose_port_is_refused_is_explained_as_unreachable_and_not_as_slow() {
    for transport in ["udp", "tcp"] {
        let server = Setup::new(SocketAddr::from(([127, 0, 0, 1], free_port())))
            .line(&format!("upstream.transport = \"{transport}\""))
            .start();
        let text = stdout(&server.ctl(&["explain", "www.example"]));
        for words in [
            "the AAAA lookup has no reply: no upstream could be reached (port refused), which counts as",
            "  www.example. AAAA: no reply: no upstream could be reached (port refused)\n",
            "unreachable (port refused) after ",
        ] {
            assert!(text.contains(words), "no {words:?} in\n{text}");
        }
        assert!(!text.contains("in time") && !text.contains("timed out"), "{text}");
        let told = explain(&server, &["www.example"]);
        assert_eq!(told["lookups"][0]["attempts"][0]["outcome"], "unreachable");
        assert_eq!(told["lookups"][0]["attempts"][0]["reason"], "port_refused");
    }
}

#[test]
fn control_characters_of_records_reach_no_terminal() {
    let (_upstream, server) = start(&[]);
    Udp::to(server.v6()).ask("odd.example", HTTPS);
    for arguments in [
        &["lookup", "odd.example"][..],
        &["explain", "odd.example", "--type", "TYPE65"],
        &["explain", "odd.example", "--type", "TYPE65", "--json"],
    ] {
        let text = stdout(&server.ctl(arguments));
        assert!(text.contains("1m") && text.contains("]0;own"), "the record is shown: {text}");
        let odd = text.chars().find(|&character| character.is_control() && character != '\n');
        assert_eq!(odd, None, "{arguments:?}: {text:?}");
        assert!(!text.contains('\u{202e}'), "{arguments:?}: {text:?}");
        assert!(!text.lines().any(|line| line.starts_with('x')), "a line is forged: {text}");
    }
}

#[test]
fn upstreams_over_tcp_are_asked_over_tcp() {
    let zone = crate::upstream::zone();
    let upstream = authority::Server::start(&["127.0.0.1:0".parse().unwrap()], zone, 1).unwrap();
    let server = Setup::new(upstream.addresses()[0]).line("upstream.transport = \"tcp\"").start();
    let told = explain(&server, &["9-0-0-1.v4.test"]);
    assert_eq!(decisions(&told), ["dns64", "nodata", "synthesized"]);
    for lookup in told["lookups"].as_array().unwrap() {
        assert_eq!(each(&lookup["attempts"], "transport"), ["tcp"]);
    }
}

#[test]
fn the_workers_have_nothing_to_do_with_it() {
    let (_upstream, server) = start(&[]);
    explain(&server, &["www.example"]);
    let queries = "queries_total{transport=\"udp\",family=\"ipv6\"}";
    assert_eq!(server.stat(queries), 0.0);
    assert_eq!(server.stat("synthesized_total{reason=\"nodata\"}"), 0.0);
    // The explanation uses the settings in force.
    server.rewrite(&["dns64.prefixes = [\"2001:db8:65::/96\"]"]);
    stdout(&server.ctl(&["reload"]));
    assert_eq!(explain(&server, &["www.example"])["addresses"][0]["prefix"], "2001:db8:65::/96");
}

#[test]
fn malformed_arguments_are_wrong_usage() {
    let nobody = std::path::Path::new("/nonexistent/control.sock");
    for (arguments, words) in [
        (&["explain"][..], "<NAME>"),
        (&["explain", "a..b"], "a label is empty"),
        (&["explain", "a b"], "a blank"),
        (&["explain", &"a".repeat(64)], "63 octets"),
        (&["explain", "www.example", "--type", "NONSENSE"], "write a type like"),
        (&["explain", "www.example", "--client", "nobody"], "invalid IP address"),
    ] {
        let output = ctl(nobody, arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.starts_with("sixfold: ") && text.contains(words), "{arguments:?}: {text}");
    }
}
