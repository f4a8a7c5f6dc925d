//! Options of a load, and wrong ones.

use super::*;
use crate::cli::{Cli, Command};
use clap::Parser;
use std::fs;

fn parse(line: &str) -> Result<LoadArguments, String> {
    let words = ["sixfold-bench", "load"].into_iter().chain(line.split_ascii_whitespace());
    match Cli::try_parse_from(words).map_err(|error| error.to_string())?.command {
        Command::Load(arguments) => Ok(*arguments),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_result_that_cannot_be_written_is_found_before_the_load() {
    let begun = std::time::Instant::now();
    let line = "--server [::1]:9 --rate 1 --duration 1h --quiet --json /nowhere/at/all.json";
    let error = run(&parse(line).unwrap()).unwrap_err();
    assert!(error.contains("/nowhere/at/all.json") && error.contains("choose a writable place"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(600));
}

#[test]
fn flags_make_an_order() {
    let arguments = parse(
        "--server ::1 --rate 5000 --duration 2s --warm-up 500ms --names 1.0.0.0-1.0.255.255 --first 7 \
         --prefix 2001:db8:64::/96 --prefix 2001:db8:1::/48 --threads 2 --sources ::1,::2 --pin 0,1 --ttl 1-60",
    );
    let order = order(&arguments.unwrap(), Transport::Udp);
    assert_eq!(order.server, "[::1]:53".parse().unwrap());
    assert_eq!(order.pace, Pace::Open { rate_qps: 5000.0, burst: 1 });
    assert_eq!((order.duration_ms, order.warm_up_ms, order.timeout_ms), (2000, 500, 1000));
    assert_eq!((order.names.names(), order.first_name), (65_536, 7));
    assert_eq!(order.expect.prefixes.len(), 2);
    assert_eq!((order.lanes.senders, order.lanes.sources.len(), order.lanes.pins.len()), (2, 2, 2));
    assert_eq!(order.expect.ttl, (1, 60));
}

#[test]
fn the_well_known_prefix_is_expected_unless_none_is() {
    let prefixes = |line: &str| order(&parse(line).unwrap(), Transport::Udp).expect.prefixes;
    assert_eq!(prefixes("--server 192.0.2.1 --rate 1"), [("64:ff9b::".parse().unwrap(), 96)]);
    assert_eq!(prefixes("--server 192.0.2.1 --rate 1 --self-test"), []);
}

#[test]
fn a_load_has_a_rate_or_a_number_outstanding() {
    let neither = parse("--server ::1").unwrap_err();
    assert!(neither.contains("--rate <QPS>") && neither.contains("--outstanding <N>"), "{neither}");
    assert!(parse("--server ::1 --rate 1 --outstanding 5").is_err());
    let closed = order(&parse("--server ::1 --outstanding 5").unwrap(), Transport::Udp);
    assert_eq!(closed.pace, Pace::Closed { outstanding: 5 });
}

#[test]
fn wrong_values_are_refused_with_the_right_ones() {
    for (line, part) in [
        ("--server nowhere --rate 1", "[2001:db8::53]:5353"),
        ("--server ::1 --rate 1 --prefix 64:ff9b::/95", "RFC 6052"),
        ("--server ::1 --rate 1 --ttl 9-1", "0-3600"),
        ("--server ::1 --rate 1 --duration 5", "250ms"),
        ("--server ::1 --rate 1 --transport smoke", "tcp-reuse"),
    ] {
        let error = parse(line).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_query_file_with_faults_is_told_line_by_line_and_leaves_no_expectations() {
    let folder = kit::Folder::new();
    let file = folder.write("queries", "a.example AAAA\nb.example\n\nc.example QQ\n");
    let line = format!("--server ::1 --rate 1 --queries {}", file.display());
    let error = options(&parse(&line).unwrap()).unwrap_err();
    let lines: Vec<_> = error.lines().collect();
    assert_eq!(lines.len(), 2, "{error}");
    assert!(lines[0].contains(":2: ") && lines[1].contains(":4: "), "{error}");
    assert_eq!(run(&parse(&line).unwrap()), Ok(ExitCode::from(2)));
    fs::write(&file, "a.example AAAA\n").unwrap();
    assert_eq!(options(&parse(&line).unwrap()).unwrap().queries.unwrap().queries(), 1);
    fs::remove_file(&file).unwrap();
    assert!(parse(&format!("{line} --prefix 64:ff9b::/96")).unwrap_err().contains("--queries"));
    assert!(parse(&format!("{line} --cached-share 0.5")).unwrap_err().contains("--queries"));
}
