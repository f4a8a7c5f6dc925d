//! The log while the server runs: upstreams that fail and recover, refused clients, details on request.

use crate::client::{Udp, name_of, query};
use crate::daemon::{Folder, Setup, wait_until};
use crate::scrape::request;
use crate::upstream::{Behavior, Upstream};
use serde_json::Value;
use std::net::IpAddr;
use wire::{Rcode, Type};

#[test]
fn the_log_has_refused_clients_and_upstreams_that_fail_and_recover() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let address = upstream.address;
    let server = Setup::new(address)
        .line("server.workers = 2")
        .line("server.allow = [\"::1/128\"]")
        .line("upstream.timeout = \"100ms\"")
        .start();
    let refused = Udp::from(IpAddr::from([127, 0, 0, 3]), server.v4());
    for number in 0..3 {
        assert_eq!(refused.ask(&name_of(number), Type::AAAA).rcode, Rcode::REFUSED);
    }
    let line = server.process.wait_for("refused ").unwrap();
    let words = "of 127.0.0.3: not in server.allow (add the network there if it should be served)";
    assert!(line.contains(" INFO refused ") && line.contains(words), "{line}");

    let client = Udp::to(server.v6());
    assert_eq!(client.ask(&name_of(1), Type::AAAA).rcode, Rcode::NOERROR);
    drop(upstream);
    let mut number = 100;
    wait_until("the log says that the upstream is down", || {
        client.ask(&name_of(number), Type::AAAA);
        number += 1;
        server.process.log().contains(&format!("upstream {address} is down since "))
    });
    let line = server.process.wait_for("is down since ").unwrap();
    assert!(
        line.contains(" WARN ") && line.contains("2 of 2 workers have stopped asking it; no server listens"),
        "{line}"
    );
    assert!(line.contains("is down since 20") && line.contains("Z: port refused ("), "{line}");
    let line = server.process.wait_for("no upstream answers for ").unwrap();
    let words = format!(
        "the names without a zone of their own any more: clients get expired data, or SERVFAIL; {address} since 20"
    );
    assert!(line.contains(" ERROR ") && line.contains(&words), "{line}");
    // This query fails after the outage was noticed, so the outage counts at least one.
    assert_eq!(client.ask(&name_of(1000), Type::AAAA).rcode, Rcode::SERVFAIL);
    let _upstream = Upstream::start_at(address, |_| Behavior::Answer);
    let line = server.process.wait_for(&format!("upstream {address} answers again, after ")).unwrap();
    assert!(line.contains(" INFO "), "{line}");
    let line = server
        .process
        .wait_for("upstreams answer for the names without a zone of their own again, after ")
        .unwrap();
    let failed = line.split("meanwhile ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    assert!(line.contains(" INFO ") && failed.parse::<u64>().unwrap() > 0, "{line}");
    let log = server.process.log();
    assert!(!log.contains("DEBUG") && log.matches(&format!("upstream {address}")).count() <= 4, "{log}");
}

#[test]
fn sigusr1_of_a_script_that_rotates_logs_is_ignored_and_said() {
    let server = Setup::answering().start();
    server.process.signal("USR1");
    let line = server.process.wait_for("SIGUSR1 is ignored").unwrap();
    assert!(line.contains(" INFO "), "{line}");
    assert_eq!(Udp::to(server.v6()).ask(&name_of(1), Type::AAAA).rcode, Rcode::NOERROR);
}

#[test]
fn debug_tells_commands_and_changes_of_each_worker_and_trace_tells_requests() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let address = upstream.address;
    let setup = || Setup::new(address).line("upstream.timeout = \"100ms\"");
    let server = setup().line("log.level = \"trace\"").metrics().start();
    drop(upstream);
    let client = Udp::to(server.v6());
    let mut number = 0;
    wait_until("the log has the change", || {
        client.ask(&name_of(number), Type::AAAA);
        number += 1;
        server.process.log().contains(&format!("DEBUG upstream {address}: worker 0: closed -> "))
    });
    server.ctl(&["lookup", "a\u{1b}[31m.test"]);
    assert!(server.process.wait_for("DEBUG control command \"lookup a\\u{1b}[31m.test\"").is_some());
    request(server.metrics, "GET", "/nothing");
    assert!(server.process.wait_for("TRACE HTTP request GET \"/nothing\": 404").is_some());
    assert!(!server.process.log().contains('\u{1b}'));
    assert!(!server.process.log().contains(&name_of(0)), "queries are never logged");
}

#[test]
fn debug_names_the_rule_of_a_policy_zone_that_decided_a_query_and_info_does_not() {
    let directory = Folder::for_everybody();
    let zone = directory.file("policy.rpz");
    let rules = [
        "$ORIGIN rpz.example.",
        "@ 60 SOA localhost. root.localhost. 1 3600 600 86400 60",
        "ads.test 60 CNAME .",
        "*.odd.test 60 CNAME *.",
        "32.3.0.0.127.rpz-client-ip 60 CNAME rpz-passthru.",
    ];
    std::fs::write(&zone, rules.join("\n") + "\n").unwrap();
    let server =
        Setup::answering().line(&format!("filter.rpz = [{zone:?}]")).line("log.format = \"json\"").start();
    let client = Udp::to(server.v6());
    assert_eq!(client.ask("ads.test", Type::AAAA).rcode, Rcode::NXDOMAIN);
    server.rewrite(&["log.level = \"debug\""]);
    assert_eq!(server.ctl(&["reload"]).status.code(), Some(0));
    assert_eq!(client.ask("Ads.test", Type::AAAA).rcode, Rcode::NXDOMAIN);
    client.ask(&name_of(1), Type::AAAA);
    // A name of a stranger neither ends the line nor controls the terminal.
    let mut message = query(7, "", Type::A);
    message.truncate(wire::HEADER);
    message.extend(b"\x03\n\x1b\"\x03odd\x04test\0\0\x01\0\x01");
    client.send(&message);
    client.receive_header();
    Udp::from(IpAddr::from([127, 0, 0, 3]), server.v4()).ask(&name_of(2), Type::AAAA);

    let hits = || {
        let log = server.process.log();
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap_or_default());
        lines.filter(|line| line["fields"]["event"] == "policy_hit").collect::<Vec<_>>()
    };
    wait_until("the log has the hits", || hits().len() == 3);
    let text = |line: &Value, field: &str| line["fields"][field].as_str().unwrap_or_default().to_owned();
    let fields = ["line", "trigger", "trigger_kind", "client", "name", "type", "action"];
    let rows: Vec<_> = hits().iter().map(|line| fields.map(|field| text(line, field)).join(" ")).collect();
    assert_eq!(
        rows,
        [
            "3 ads.test. name ::1 Ads.test. AAAA rpz_nxdomain",
            "4 *.odd.test. name ::1 \\010\\027\".odd.test. A rpz_nodata",
            &format!("5 127.0.0.3/32 client 127.0.0.3 {}. AAAA rpz_passthru", name_of(2)),
        ]
    );
    for line in hits() {
        assert_eq!((line["level"].as_str(), text(&line, "zone")), (Some("DEBUG"), "rpz.example.".to_owned()));
        assert_eq!(text(&line, "file"), zone.display().to_string());
    }
    let words = format!(
        "Ads.test. AAAA from ::1: a response policy zone decides (rpz_nxdomain): zone rpz.example., {}:3, name ads.test.",
        zone.display()
    );
    assert_eq!(text(&hits()[0], "message"), words);
    // The level of before has none of it again.
    server.rewrite(&["log.level = \"info\""]);
    assert_eq!(server.ctl(&["reload"]).status.code(), Some(0));
    client.ask("ads.test", Type::AAAA);
    server.process.stop();
    assert_eq!(hits().len(), 3);
}
