//! `sixfold ctl --json`: the objects, with the fields of docs/reference/control-socket.md and of sixfold(8).

use crate::client::{Udp, name_of};
use crate::daemon::{Daemon, Folder, PREFIX, Setup};
use crate::upstream::{Behavior, Upstream};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use wire::Type;

/// Runs a command with `--json`. Returns its exit status and its object.
fn object(server: &Daemon, arguments: &[&str]) -> (i32, Value) {
    let output = server.ctl(&[arguments, &["--json"]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!((output.stderr.len(), text.lines().count()), (0, 1), "{arguments:?}: {text}");
    (output.status.code().unwrap(), serde_json::from_str(&text).unwrap())
}

/// The object of a command that succeeds.
fn yes(server: &Daemon, arguments: &[&str]) -> Value {
    let (status, object) = object(server, arguments);
    assert_eq!(status, 0, "{arguments:?}: {object}");
    object
}

fn fields(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

/// The fields of an object in the section JSON of sixfold(8): the words in bold of its entry.
fn in_manual(object: &str) -> BTreeSet<String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/man/sixfold.8");
    let page = std::fs::read_to_string(path).unwrap();
    let section = page.split("\n.SH JSON\n").nth(1).and_then(|rest| rest.split("\n.SH ").next()).unwrap();
    let entry = section.split("\n.TP\n.I ").find(|entry| entry.lines().next() == Some(object));
    let entry = entry.unwrap_or_else(|| panic!("no entry {object}"));
    entry.split("\\fB").skip(1).map(|rest| rest.split("\\fR").next().unwrap().to_owned()).collect()
}

/// Compares the fields of an object with those of the manual.
fn expect_manual(name: &str, object: &Value) {
    let fields: BTreeSet<String> = fields(object).into_iter().map(str::to_owned).collect();
    assert_eq!(fields, in_manual(name), "{name}");
}

#[test]
fn the_objects_have_the_fields_of_the_manual() {
    let directory = Folder::for_everybody();
    let zone = directory.file("policy.rpz");
    std::fs::write(&zone, "@ SOA localhost. root.localhost. 1 3600 600 86400 60\nads.example CNAME .\n")
        .unwrap();
    let server = Setup::answering()
        .line(&format!("filter.rpz = [{zone:?}]"))
        .line("statistics = { needs = true, min-clients = 1 }")
        .start();
    Udp::to(server.v6()).ask(&name_of(1), Type::AAAA);
    for command in ["status", "upstreams", "prefixes", "rpz", "health", "reload", "drain", "trace off"] {
        expect_manual(command, &yes(&server, &command.split(' ').collect::<Vec<_>>()));
    }
    expect_manual("needs", &yes(&server, &["needs"]));
    expect_manual("needs by client", &yes(&server, &["needs", "--by", "client"]));
    expect_manual("prefix", &yes(&server, &["prefix", "drain", PREFIX]));
    expect_manual("explain", &yes(&server, &["explain", &name_of(1)]));
    let found = yes(&server, &["lookup", &name_of(1)]);
    expect_manual("lookup", &found);
    expect_manual("entry of lookup", &found["entries"][0]);
    expect_manual("flush", &yes(&server, &["flush", &name_of(1)]));
    expect_manual("error", &object(&server, &["lookup", "a..b"]).1);
}

#[test]
fn every_command_has_an_object_with_the_documented_fields() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let server = Setup::new(upstream.address).start();
    for _ in 0..2 {
        Udp::to(server.v6()).ask(&name_of(1), Type::AAAA);
    }
    let status = yes(&server, &["status"]);
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(status["process_id"], server.process.pid());
    assert_eq!((&status["serving"], &status["state"]), (&true.into(), &"serving".into()));
    assert_eq!(status["configuration_file"], server.config.display().to_string());
    assert_eq!(status["listen"], json!([server.v6().to_string(), server.v4().to_string()]));
    assert_eq!(status["prefixes"], json!([PREFIX]));
    let counts = ["workers", "workers_responding", "pending", "streams"].map(|name| status[name].as_u64());
    assert_eq!(counts, [Some(1), Some(1), Some(0), Some(0)]);
    assert!(status["uptime_seconds"].is_u64() && status["commit"].is_string(), "{status}");
    assert_eq!(status["upstreams"][0]["address"], upstream.address.to_string());
    let listed = yes(&server, &["upstreams"]);
    assert_eq!(fields(&status["upstreams"][0]), fields(&listed));
    assert_eq!(yes(&server, &["health"]), json!({ "serving": true, "reason": null }));
    assert!(yes(&server, &["stats"])["sixfold_queries_total{transport=\"udp\",family=\"ipv6\"}"].is_number());
    let explained = yes(&server, &["explain", &name_of(1)]);
    assert_eq!(explained["answer"]["rcode"], "NOERROR", "{explained}");

    let found = yes(&server, &["lookup", &name_of(1)]);
    let entries = found["entries"].as_array().unwrap();
    let kinds: Vec<_> =
        entries.iter().map(|entry| (entry["type"].as_str(), entry["kind"].as_str())).collect();
    let [a, aaaa] = [Some("A"), Some("AAAA")];
    assert_eq!(
        kinds,
        [(a, Some("answer")), (aaaa, Some("negative")), (aaaa, Some("synthesized"))],
        "{found}"
    );
    let first = &entries[0];
    assert_eq!([&first["cd"], &first["ad"], &first["do"]], [false, false, false]);
    assert_eq!((&first["forwarders"], &first["zone"]), (&"default".into(), &Value::Null));
    assert_eq!((&first["rcode"], first["records"].as_array().unwrap().len()), (&"NOERROR".into(), 1));
    assert!(first["expires_seconds"].as_i64() > Some(0) && first["octets"].as_u64() > Some(0), "{first}");
    assert!(entries[1]["authority"][0].as_str().unwrap().contains(" SOA "), "{found}");

    assert_eq!(yes(&server, &["flush", &name_of(1)]), json!({ "flushed": 3 }));
    assert_eq!(yes(&server, &["reload"]), json!({ "reloaded": true, "changed": [], "notes": [] }));
    assert_eq!(yes(&server, &["drain"]), json!({ "drained": true, "changed": true }));
    assert_eq!(yes(&server, &["drain"]), json!({ "drained": true, "changed": false }));
    assert_eq!(yes(&server, &["undrain"]), json!({ "drained": false, "changed": true }));
}

#[test]
fn an_answer_that_is_no_is_an_object_and_so_is_an_error() {
    let server = Setup::answering().start();
    let nothing = json!({ "name": "a.test", "entries": [] });
    assert_eq!(object(&server, &["lookup", "a.test"]), (1, nothing));
    yes(&server, &["drain"]);
    let (status, health) = object(&server, &["health"]);
    assert_eq!((status, &health["serving"]), (1, &false.into()));
    assert!(health["reason"].as_str().unwrap().starts_with("drained by the operator"), "{health}");
    for (arguments, words) in [
        (&["lookup", "a..b"][..], "a label is empty"),
        (&["lookup", "a.test", "ADRESS"], "`ADRESS` is not a record type"),
        (&["flush", "a..b"], "a label is empty"),
    ] {
        let (status, error) = object(&server, arguments);
        assert_eq!((status, &error["code"]), (1, &"failed".into()), "{error}");
        assert!(error["error"].as_str().unwrap().contains(words), "{error}");
    }
    server.rewrite(&["upstream.tries = 99", "dns64.max-records = 0"]);
    let (status, error) = object(&server, &["reload"]);
    let told = error["error"].as_str().unwrap();
    assert!(status == 1 && told.contains("upstream.tries") && told.contains("dns64.max-records"), "{error}");
}
