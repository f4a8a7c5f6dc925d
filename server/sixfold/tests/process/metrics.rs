//! `/metrics`: its format, the names that outside tools rely on, and the values.

use crate::client::{Tcp, Udp, embedded, name_of, query};
use crate::daemon::{Daemon, PREFIX, Setup, wait_until};
use crate::scrape::{Labels, Scrape, request};
use crate::upstream::{Behavior, Upstream};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};
use wire::{Rcode, Type};

/// Metrics that the documentation of the interface names and this version has: family, type, labels.
const DOCUMENTED: &[(&str, &str, &[&str])] = &[
    ("queries_total", "counter", &["transport", "family"]),
    ("responses_total", "counter", &["rcode"]),
    ("request_duration_seconds", "histogram", &["le"]),
    ("synthesized_total", "counter", &["reason"]),
    ("not_synthesized_total", "counter", &["reason"]),
    ("cache_hits_total", "counter", &["kind"]),
    ("cache_misses_total", "counter", &[]),
    ("cache_bytes", "gauge", &[]),
    ("upstream_queries_total", "counter", &["upstream", "type"]),
    ("upstream_duration_seconds", "histogram", &["upstream", "le"]),
    ("upstream_up", "gauge", &["upstream"]),
    ("prefix_up", "gauge", &["prefix"]),
    ("dropped_total", "counter", &["reason"]),
    ("forgery_suspects_total", "counter", &["reason"]),
    ("pending", "gauge", &[]),
    ("build_info", "gauge", &["version", "commit"]),
];

/// A server that asks each upstream once, so that the test knows every count.
fn start(upstream: &Upstream) -> Daemon {
    Setup::new(upstream.address)
        .line("upstream.timeout = \"30s\"")
        .line("upstream.tries = 1")
        .line("server.workers = 2")
        .metrics()
        .start()
}

fn names(labels: &Labels) -> Vec<&str> {
    labels.iter().map(|(label, _)| label.as_str()).collect()
}

#[test]
fn the_format_is_correct_and_every_promised_name_is_there() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let server = start(&upstream);
    for number in 0..50 {
        assert_eq!(Udp::to(server.v6()).ask(&name_of(number), Type::AAAA).rcode, Rcode::NOERROR);
    }
    let scrape = Scrape::of(server.metrics);
    for (name, kind, labels) in DOCUMENTED {
        let family = &scrape.0[&format!("sixfold_{name}")];
        assert_eq!(family.kind, *kind, "{name}");
        let (_, found, _) = &family.samples[0];
        assert_eq!(names(found), *labels, "{name}");
    }
    for (name, family) in &scrape.0 {
        assert!(name.starts_with("sixfold_") || name.starts_with("process_"), "{name}");
        assert_eq!(name.ends_with("_total"), family.kind == "counter", "{name} is a {}", family.kind);
        assert!(!family.samples.is_empty() && family.help.ends_with('.'), "{name}: {}", family.help);
    }
    let all = scrape.series();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "a series is there twice");
    // The names that Prometheus has for every program.
    for name in ["resident_memory_bytes", "virtual_memory_bytes", "open_fds", "max_fds", "start_time_seconds"]
    {
        let family = &scrape.0[&format!("process_{name}")];
        assert!(family.kind == "gauge" && family.samples[0].2 > 0.0, "{name}");
    }
    let resident =
        server.process.proc_status("VmRSS").trim_end_matches(" kB").parse::<f64>().unwrap() * 1024.0;
    let found = scrape.0["process_resident_memory_bytes"].samples[0].2;
    assert!((found / resident - 1.0).abs() < 0.5, "{found} {resident}");
    // `ctl stats` shows the same series.
    let told = String::from_utf8(server.ctl(&["stats"]).stdout).unwrap();
    assert_eq!(Scrape::parse(&told).series(), all);
}

#[test]
fn histograms_rise_and_end_with_their_count() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let server = start(&upstream);
    for number in 0..50 {
        Udp::to(server.v4()).ask(&name_of(number), Type::AAAA);
    }
    let scrape = Scrape::of(server.metrics);
    let mut histograms = 0;
    for (name, family) in scrape.0.iter().filter(|(_, family)| family.kind == "histogram") {
        // Grouped by the labels other than `le`.
        let mut series: BTreeMap<String, Vec<&(String, Labels, f64)>> = BTreeMap::new();
        for sample in &family.samples {
            let others: Vec<_> = sample.1.iter().filter(|(label, _)| label != "le").collect();
            series.entry(format!("{others:?}")).or_default().push(sample);
        }
        for samples in series.values() {
            let value =
                |suffix: &str| samples.iter().find(|(n, _, _)| *n == format!("{name}{suffix}")).unwrap().2;
            let buckets: Vec<(f64, f64)> = samples
                .iter()
                .filter(|(n, _, _)| n.ends_with("_bucket"))
                .map(|(_, labels, value)| (labels.last().unwrap().1.parse().unwrap(), *value))
                .collect();
            assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{name}: {buckets:?}");
            let (bound, all) = *buckets.last().unwrap();
            assert!(bound.is_infinite() && all == value("_count"), "{name}: {buckets:?}");
            assert!((value("_sum") > 0.0) == (all > 0.0), "{name}");
            histograms += 1;
        }
    }
    assert_eq!(histograms, 2);
    assert_eq!(scrape.value("request_duration_seconds _count", &[]), 50.0);
    // Two lookups for each query.
    let upstream = upstream.address.to_string();
    assert_eq!(scrape.value("upstream_duration_seconds _count", &[("upstream", &upstream)]), 100.0);
}

#[test]
fn counters_add_up_after_known_questions() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let real = authority::Zone::new("v6.test").unwrap().aaaa_share(1.0);
    let real = authority::Server::start(&["127.0.0.1:0".parse().unwrap()], real, 1).unwrap();
    let other = real.addresses()[0].to_string();
    let server = Setup::new(upstream.address)
        .line("upstream.timeout = \"30s\"")
        .line("upstream.tries = 1")
        .line("server.workers = 2")
        .line(&format!("upstream.zone = [{{ zone = \"v6.test\", forwarders = [\"{other}\"] }}]"))
        .metrics()
        .start();
    let before = Scrape::of(server.metrics).series();

    let six = Udp::to(server.v6());
    for number in 0..5 {
        assert_eq!(six.ask(&name_of(number), Type::AAAA).addresses, [embedded(PREFIX, number)]);
    }
    let four = Udp::to(server.v4());
    for number in 0..3 {
        assert_eq!(four.ask(&name_of(number), Type::A).rcode, Rcode::NOERROR);
    }
    assert_eq!(Tcp::to(server.v4()).ask(&name_of(9), Type::AAAA).addresses.len(), 1);
    let mut stream = Tcp::to(server.v6());
    assert_eq!(stream.ask("no-such-name.v4.test", Type::AAAA).rcode, Rcode::NXDOMAIN);
    assert_eq!(stream.ask("9-9-9-9.v6.test", Type::AAAA).addresses.len(), 1);
    // A message without a question, and another opcode.
    six.send(&[0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(six.receive_header().1, Rcode::FORMERR);
    let mut update = query(3, &name_of(1), Type::SOA);
    update[2] = 5 << 3;
    six.send(&update);
    assert_eq!(six.receive().rcode, Rcode::NOTIMP);
    // Messages that get no answer: one that is too short, and a response.
    six.send(&[1, 2, 3]);
    let mut response = query(4, &name_of(1), Type::AAAA);
    response[2] |= 0x80;
    six.send(&response);
    wait_until("both are counted", || Scrape::of(server.metrics).sum("queries_total", &[]) == 15.0);

    let scrape = Scrape::of(server.metrics);
    assert_eq!(scrape.series(), before, "traffic made or removed a series");
    let asked =
        |transport, family| scrape.value("queries_total", &[("transport", transport), ("family", family)]);
    assert_eq!([asked("udp", "ipv6"), asked("udp", "ipv4")], [9.0, 3.0]);
    assert_eq!([asked("tcp", "ipv6"), asked("tcp", "ipv4")], [2.0, 1.0]);
    let answered = |rcode| scrape.value("responses_total", &[("rcode", rcode)]);
    assert_eq!(answered("noerror"), 10.0);
    assert_eq!([answered("nxdomain"), answered("formerr"), answered("notimp")], [1.0; 3]);
    assert_eq!(scrape.sum("responses_total", &[]), 13.0);
    let dropped = |reason| scrape.value("dropped_total", &[("reason", reason)]);
    assert_eq!([dropped("short"), dropped("response"), scrape.sum("dropped_total", &[])], [1.0, 1.0, 2.0]);
    assert_eq!(scrape.value("synthesized_total", &[("reason", "nodata")]), 6.0);
    assert_eq!(scrape.sum("synthesized_total", &[]), 6.0);
    let passed = |reason| scrape.value("not_synthesized_total", &[("reason", reason)]);
    assert_eq!([passed("nxdomain"), passed("real_aaaa")], [1.0, 1.0]);
    assert_eq!(scrape.sum("not_synthesized_total", &[]), 2.0);
    assert_eq!(scrape.value("request_duration_seconds _count", &[]), 11.0);
    let first = upstream.address.to_string();
    let lookups = |upstream: &str, kind| {
        scrape.value("upstream_queries_total", &[("upstream", upstream), ("type", kind)])
    };
    assert_eq!([lookups(&first, "AAAA"), lookups(&first, "A")], [7.0, 6.0]);
    // The A records of names that were synthesized before are in the cache.
    assert_eq!(scrape.value("cache_hits_total", &[("kind", "positive")]), 3.0);
    assert_eq!([scrape.sum("cache_hits_total", &[]), scrape.sum("cache_misses_total", &[])], [3.0, 8.0]);
    // Two lookups of six names, the real AAAA answer, and the name that does not exist.
    assert_eq!(scrape.value("cache_entries", &[]), 14.0);
    assert_eq!([lookups(&other, "AAAA"), scrape.sum("upstream_queries_total", &[])], [1.0, 14.0]);
    assert_eq!(scrape.value("stream_connections_total", &[("result", "accepted")]), 2.0);
    assert_eq!([scrape.sum("refused_total", &[]), scrape.sum("forgery_suspects_total", &[])], [0.0, 0.0]);
    assert_eq!(scrape.value("pending", &[]), 0.0);
}

#[test]
fn label_values_are_from_closed_sets() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let server = start(&upstream);
    let address = upstream.address.to_string();
    // Names and types that a client chose must not appear.
    Udp::to(server.v6()).ask("chosen-by-the-client.v4.test", Type::AAAA);
    Udp::to(server.v6()).ask("another.test", Type(65_280));
    let scrape = Scrape::of(server.metrics);
    for (name, labels, _) in scrape.0.values().flat_map(|family| &family.samples) {
        for (label, value) in labels {
            let closed = match label.as_str() {
                "upstream" => *value == address,
                "prefix" => value == PREFIX,
                "type" => ["AAAA", "A", "other", "probe"].contains(&value.as_str()),
                "le" => value == "+Inf" || value.parse::<f64>().is_ok(),
                "version" => value == env!("CARGO_PKG_VERSION"),
                "commit" => value.chars().all(|c| c.is_ascii_alphanumeric() || "-+.".contains(c)),
                "transport" => ["udp", "tcp", "tls", "https", "quic"].contains(&value.as_str()),
                "family" => ["ipv4", "ipv6"].contains(&value.as_str()),
                "zone" => [
                    "ipv4only",
                    "reverse",
                    "localhost",
                    "invalid",
                    "onion",
                    "resolver",
                    "server",
                    "empty",
                    "records",
                ]
                .contains(&value.as_str()),
                "kind" => [
                    "positive",
                    "negative",
                    "synthesized",
                    "failure",
                    "stale",
                    "kernel",
                    "streams",
                    "full",
                    "resumed",
                ]
                .contains(&value.as_str()),
                "limit" => ["questions", "idle", "one_at_a_time"].contains(&value.as_str()),
                "to" => ["tcp", "udp"].contains(&value.as_str()),
                "proof" => ["nsec", "nsec3"].contains(&value.as_str()),
                "status" => ["2xx", "4xx", "5xx"].contains(&value.as_str()),
                "rcode" | "reason" | "result" => {
                    value.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
                }
                _ => false,
            };
            assert!(closed, "{name}: {label}={value}");
        }
    }
    assert!(!format!("{:?}", scrape.series()).contains("chosen"));
}

#[test]
fn promtool_finds_nothing_wrong() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let server = start(&upstream);
    let text = request(server.metrics, "GET", "/metrics").body;
    let tool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut tool) = tool else { return kit::missing("promtool", "apt-get install prometheus") };
    tool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = tool.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn an_answer_from_the_cache_counts_in_the_first_bucket_of_the_histogram() {
    let upstream = Upstream::start(|_| Behavior::After(std::time::Duration::from_millis(20)));
    let server = start(&upstream);
    let client = Udp::to(server.v6());
    let first = || Scrape::of(server.metrics).value("request_duration_seconds _bucket", &[("le", "0.00005")]);
    assert_eq!(client.ask(&name_of(1), Type::AAAA).rcode, Rcode::NOERROR);
    assert_eq!(first(), 0.0, "the upstream took 20 ms for each lookup");
    for answered in 1..=5 {
        assert_eq!(client.ask(&name_of(1), Type::AAAA).rcode, Rcode::NOERROR);
        assert_eq!(first(), f64::from(answered));
    }
    let scrape = Scrape::of(server.metrics);
    assert_eq!(scrape.value("request_duration_seconds _count", &[]), 6.0);
    assert!(scrape.value("request_duration_seconds _sum", &[]) >= 0.04);
}

#[test]
fn readiness_limits_and_reloads_are_gauged() {
    let server = Setup::answering()
        .line("server.workers = 2")
        .line("limits.pending = 1000")
        .line("limits.tcp-connections = 77")
        .line("cache.size = \"3MiB\"")
        .metrics()
        .start();
    let gauge = |name: &str| Scrape::of(server.metrics).value(name, &[]);
    let limits = ["pending_limit", "stream_connections_limit", "cache_limit_bytes"].map(gauge);
    assert_eq!(limits, [2000.0, 77.0, 3.0 * 1024.0 * 1024.0]);
    assert_eq!(gauge("ready"), 1.0);
    assert_eq!(server.ctl(&["drain"]).status.code(), Some(0));
    assert_eq!(gauge("ready"), 0.0);
    let reloads = |result| Scrape::of(server.metrics).value("config_reloads_total", &[("result", result)]);
    assert_eq!([reloads("succeeded"), reloads("failed")], [0.0, 0.0], "the start is not a reload");
    assert_eq!(server.ctl(&["reload"]).status.code(), Some(0));
    server.rewrite(&["upstream.tries = 99"]);
    assert_eq!(server.ctl(&["reload"]).status.code(), Some(1));
    assert_eq!([reloads("succeeded"), reloads("failed")], [1.0, 1.0]);
    let before = gauge("cpu_seconds_total");
    wait_until("the server uses processor time", || gauge("cpu_seconds_total") > before);
}
