//! `sixfold ctl explain`.

use crate::client::Udp;
use crate::daemon::{Daemon, Setup, ctl, success};
use kit::Upstream;
use serde_json::Value;
use std::net::SocketAddr;
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

fn explain(server: &Daemon, arguments: &[&str]) -> Value {
    let arguments = [&["explain", "--json"], arguments].concat();
    serde_json::from_str(&success(&server.ctl(&arguments))).unwrap()
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
    let text = success(&server.ctl(&["explain", "alias.example", "--client", "fd00::7"]));
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
        let text = success(&server.ctl(&["explain", "alias.example", option]));
        assert!(text.contains("\nDNSSEC\n  AD is clear"), "{text}");
    }
}

#[test]
fn a_dead_upstream_is_explained_as_one() {
    let silent = Upstream::start(|_, _| ());
    let server = Setup::new(silent.address).line("upstream.timeout = \"50ms\"").start();
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
    let server = Setup::new(silent.address).line("upstream.timeout = \"30s\"").start();
    let told = explain(&server, &["www.example"]);
    assert_eq!((&told["unfinished"], &told["answer"]), (&true.into(), &Value::Null));
    assert_eq!(server.ctl(&["health"]).status.code(), Some(0));
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
        let text = success(&server.ctl(arguments));
        assert!(text.contains("1m") && text.contains("]0;own"), "the record is shown: {text}");
        let odd = text.chars().find(|&character| character.is_control() && character != '\n');
        assert_eq!(odd, None, "{arguments:?}: {text:?}");
        assert!(!text.contains('\u{202e}'), "{arguments:?}: {text:?}");
        assert!(!text.lines().any(|line| line.starts_with('x')), "a line is forged: {text}");
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
    success(&server.ctl(&["reload"]));
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
