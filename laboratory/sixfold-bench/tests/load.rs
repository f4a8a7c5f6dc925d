//! `sixfold-bench load` as a process.

use crate::fixtures::{RunningAuthority, bench, lossy};
use kit::Folder;
use std::process::Output;

fn authority() -> RunningAuthority {
    RunningAuthority::start(&["--listen", "127.0.0.1:0", "--aaaa-share", "1"])
}

/// Runs a load of 100 queries.
fn load(server: impl ToString, arguments: &[&str]) -> (Output, String) {
    let load =
        ["load", "--server", &server.to_string(), "--rate", "500", "--duration", "200ms", "--timeout", "5s"];
    let output = bench(&[&load, arguments].concat());
    let said = lossy(&output.stdout);
    (output, said)
}

#[test]
fn every_query_is_a_line_of_the_file_of_round_trip_times() {
    let (authority, folder) = (authority(), Folder::new());
    let file = folder.text("times.csv");
    let (output, said) = load(authority.at, &["--self-test", "--aaaa-share", "1", "--rtt", &file]);
    assert!(said.contains("      mean  deviation        min     median"), "{said}{output:?}");
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(
        (lines.len(), &lines[0][..]),
        (101, &["due_us", "sent_us", "received_us", "rtt_us", "outcome"][..])
    );
    for (number, line) in lines[1..].iter().enumerate() {
        let number_of = |field: usize| line[field].parse::<f64>().unwrap();
        assert_eq!((number_of(0), line[4]), (number as f64 * 2_000.0, "valid"));
        assert!(
            number_of(1) >= number_of(0) && (number_of(2) - number_of(1) - number_of(3)).abs() < 0.01,
            "{line:?}"
        );
    }
}

#[test]
fn a_server_that_does_not_know_the_zone_gets_a_remedy_and_its_own_names_work() {
    let (authority, folder) = (authority(), Folder::new());
    let (output, said) = load(authority.at, &["--zone-name", "other.test"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("expected 64:ff9b::a00:0, got REFUSED for 010-000-000-000.other.test"), "{said}");
    assert!(said.contains("must forward other.test to \"sixfold-bench authority\""), "{said}");

    let (file, json) = (folder.text("names.txt"), folder.text("out.json"));
    std::fs::write(&file, "1-2-3-4.dns64perf.test A\n1-2-3-4.dns64perf.test aaaa\nx.dns64perf.test MX\n")
        .unwrap();
    let (_, said) = load(authority.at, &["--queries", &file, "--json", &json]);
    assert!(said.contains("67   NOERROR (67.0 %)") && said.contains("33   NXDOMAIN (33.0 %)"), "{said}");
    let outcome: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!((outcome["valid"].as_u64(), outcome["rcodes"]["NXDOMAIN"].as_u64()), (Some(100), Some(33)));
}

#[test]
fn a_refused_connection_is_told_with_its_address() {
    // Outside the range from which the kernel chooses ports, so nobody listens there.
    let (output, said) = load("127.0.0.9:1", &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("connection refused by 127.0.0.9:1: no process listens there"), "{said}");
    assert!(said.contains("lost                     0"), "{said}");
}

#[test]
fn faults_of_a_query_file_are_wrong_usage_and_each_has_a_line() {
    let folder = Folder::new();
    let file = folder.text("names.txt");
    std::fs::write(&file, "a A\nb\n\x1b[2J A\n").unwrap();
    let (output, _) = load("127.0.0.9:1", &["--queries", &file]);
    let said = lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(
        lines[0].starts_with(&format!("sixfold-bench: load: {file}:2: no type stands after \"b\"")),
        "{said}"
    );
    assert!(lines[1].starts_with(&format!("sixfold-bench: load: {file}:3: \"\\027[2J\" is not")), "{said}");
}

#[test]
fn every_transport_asks_the_authority_and_tells_its_packets_and_connections() {
    let (authority, folder) = (authority(), Folder::new());
    let json = folder.text("out.json");
    for (transport, opened) in [("udp", None), ("tcp", Some(100)), ("tcp-reuse", Some(4)), ("tfo", Some(100))]
    {
        if transport == "tfo" && !client_may_use_fast_open() {
            kit::skip("net.ipv4.tcp_fastopen does not let clients use Fast Open");
            continue;
        }
        let options = ["--self-test", "--aaaa-share", "1", "--transport", transport, "--json", &json];
        let (_, said) = load(authority.at, &options);
        let outcome: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
        assert_eq!((&outcome["transport"], &outcome["valid"]), (&transport.into(), &100.into()), "{said}");
        assert_eq!(outcome["connections"]["opened"].as_u64(), opened);
        assert_eq!(outcome["traffic"]["queries"], 100);
        assert!(said.contains("  per query ") && said.contains("octets sent"), "{said}");
        let title = format!("{} over {transport}: ", authority.at);
        assert_eq!(said.contains(&title), opened.is_some(), "{said}");
        assert_eq!(said.contains("  fast open "), transport == "tfo", "{said}");
    }
}

fn client_may_use_fast_open() -> bool {
    let setting = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_fastopen").unwrap();
    setting.trim().parse::<u32>().unwrap() & 1 == 1
}

#[test]
fn an_option_that_the_transport_does_not_have_is_wrong_usage() {
    for (options, said) in [
        (&["--transport", "tcp", "--resume"][..], "--resume needs --transport tls, https or quic"),
        (&["--transport", "quic", "--http-method", "get"], "--http-method needs --transport https"),
        (&["--http-path", "/x"], "--http-path needs --transport https"),
        (&["--transport", "https", "--tls-insecure", "--early-data"], "use --transport tls or quic"),
        (&["--transport", "https", "--tls-insecure", "--http-path", "x"], "\"x\" is no path"),
        (&["--transport", "quic", "--tls-insecure", "--receivers", "1"], "leave out --receivers"),
        (&["--transport", "tcp", "--receivers", "1"], "leave out --receivers"),
    ] {
        let (output, _) = load("127.0.0.9:1", options);
        let printed = lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert!(printed.contains(said), "{printed}");
    }
}

#[test]
fn a_server_without_a_port_is_asked_at_the_port_of_the_transport() {
    for (transport, port) in [("udp", 53), ("tcp", 53), ("tls", 853), ("https", 443), ("quic", 853)] {
        // Nobody listens at this address, so every query is refused or lost.
        let pace =
            ["load", "--server", "127.0.0.9", "--rate", "100", "--duration", "50ms", "--timeout", "10ms"];
        let options = ["--transport", transport, "--tls-insecure"];
        let options = if port == 53 { &options[..2] } else { &options[..] };
        let output = bench(&[&pace[..], options].concat());
        let said = lossy(&output.stdout);
        assert!(said.contains(&format!("127.0.0.9:{port}")), "{said}");
    }
}

#[test]
fn a_connection_that_is_refused_over_tcp_is_told_with_its_address() {
    let (output, said) = load("127.0.0.9:1", &["--transport", "tcp"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("connection refused by 127.0.0.9:1: no process listens there"), "{said}");
    assert!(said.contains("100   refused by the server's host"), "{said}");
}
