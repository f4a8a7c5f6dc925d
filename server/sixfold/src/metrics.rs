//! The metrics in the text format of Prometheus and as JSON. Label values come from closed sets: reasons, types, and
//! the upstreams of the configuration; never from a packet.

use crate::config::Config;
use crate::handle::{ServerHandle, WorkerStatus, health};
use crate::version;
use engine::counters::DURATION_BOUNDS_US;
use engine::upstream::BreakerState;
use engine::upstream::{QueryKind, Server};
use engine::{Counter, Counters};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, UNIX_EPOCH};

/// Sample: labels and value.
type Sample = (Vec<(String, String)>, f64);

/// Metric family: one metric with its samples.
struct Family {
    kind: &'static str,
    help: &'static str,
    samples: Vec<Sample>,
}

/// All metrics, by name.
pub struct Metrics(BTreeMap<String, Family>);

impl Metrics {
    /// Collects the metrics from the workers, the streams and the datapath.
    pub async fn gather(server: &ServerHandle) -> Metrics {
        let answered = server.worker_statuses().await;
        let responding = answered.iter().flatten().count();
        // A worker that does not respond counts with its last status: a counter must not go backwards.
        let statuses = server.last_statuses();
        let mut metrics = Metrics(BTreeMap::new());
        metrics.engine(&statuses);
        metrics.upstreams(&statuses);
        metrics.datapath(server);
        for &counter in transport::Counter::ALL {
            let (family, (label, value)) = counter.describe();
            metrics.counter(family, &[(label, value)], server.streams.counter(counter) as f64);
        }
        metrics.dnstap(server);
        metrics.gauge("stream_connections", &[], server.streams.connections() as f64);
        let total = |value: fn(&WorkerStatus) -> usize| {
            statuses.iter().map(|status| value(status)).sum::<usize>() as f64
        };
        metrics.gauge("pending", &[], total(|status| status.pending));
        metrics.gauge("upstream_flights", &[], total(|status| status.flights));
        metrics.gauge("upstream_links", &[], total(|status| status.links));
        metrics.gauge("cache_bytes", &[], total(|status| status.cached.0));
        metrics.gauge("cache_entries", &[], total(|status| status.cached.1));
        metrics.gauge("workers", &[], server.workers.workers() as f64);
        metrics.gauge("workers_responding", &[], responding as f64);
        let is_ready = server.out_of_service().is_none() && health(&answered).is_ok();
        metrics.gauge("ready", &[], f64::from(u8::from(is_ready)));
        metrics.gauge("draining", &[], f64::from(u8::from(server.draining.load(Ordering::Relaxed))));
        metrics.gauge("drained", &[], f64::from(u8::from(server.drained.load(Ordering::Relaxed))));
        for (result, lines) in server.log.counts().by_result() {
            metrics.counter("log_lines_total", &[("result", result)], lines as f64);
        }
        let reloads = &server.reloads;
        let successful = f64::from(u8::from(reloads.successful()));
        metrics.gauge("config_last_reload_successful", &[], successful);
        let timestamp = reloads.success_unix_secs();
        metrics.gauge("config_last_reload_success_timestamp_seconds", &[], timestamp);
        let (succeeded, failed) = reloads.history.totals();
        metrics.counter("config_reloads_total", &[("result", "succeeded")], succeeded as f64);
        metrics.counter("config_reloads_total", &[("result", "failed")], failed as f64);
        metrics.limits(server);
        metrics.policy_zones(&server.config());
        metrics.process(server);
        let upgrades = server.upgrade.history();
        metrics.counter("upgrades_total", &[("result", "success")], upgrades.succeeded as f64);
        metrics.counter("upgrades_total", &[("result", "failure")], upgrades.failed as f64);
        metrics.gauge("upgrade_last_success_timestamp_seconds", &[], upgrades.last_success_secs());
        metrics.gauge("uptime_seconds", &[], server.started.elapsed().as_secs_f64());
        metrics.gauge("build_info", &[("version", version::VERSION), ("commit", version::COMMIT)], 1.0);
        metrics
    }

    fn engine(&mut self, statuses: &[Arc<WorkerStatus>]) {
        let mut total = Counters::default();
        statuses.iter().for_each(|status| total.include(&status.counters));
        for &counter in Counter::ALL {
            let (family, labels) = counter.describe();
            self.counter(family, labels, total.get(counter) as f64);
        }
        self.histogram("request_duration_seconds", &[], &total.durations, total.duration_sum_ns);
    }

    /// The limits of what other gauges show.
    fn limits(&mut self, server: &ServerHandle) {
        let config = server.config();
        let pending = config.limits.pending * server.workers.workers();
        self.gauge("pending_limit", &[], pending as f64);
        self.gauge("cache_limit_bytes", &[], config.cache.size as f64);
        let connections = server.file_limit.grant(config.limits.tcp_connections);
        self.gauge("stream_connections_limit", &[], connections as f64);
        if let Some(end) = config.tls.server.as_ref().and_then(|tls| tls.expires()) {
            let since_1970 = end.duration_since(UNIX_EPOCH).unwrap_or_default();
            self.gauge("tls_certificate_expiry_timestamp_seconds", &[], since_1970.as_secs_f64());
        }
    }

    fn upstreams(&mut self, statuses: &[Arc<WorkerStatus>]) {
        let mut servers: BTreeMap<String, Vec<&Server>> = BTreeMap::new();
        for server in statuses.iter().flat_map(|status| &status.servers) {
            servers.entry(server.address.to_string()).or_default().push(server);
        }
        for (address, of_workers) in &servers {
            for (kind, label) in QueryKind::LABELS.iter().enumerate() {
                let asked: u64 = of_workers.iter().map(|server| server.asked[kind]).sum();
                self.counter(
                    "upstream_queries_total",
                    &[("upstream", address), ("type", label)],
                    asked as f64,
                );
            }
            let mut durations = [0u64; DURATION_BOUNDS_US.len() + 1];
            of_workers.iter().for_each(|server| add(&mut durations, &server.durations));
            let sum_ns = of_workers.iter().map(|server| server.duration_sum_ns).sum();
            self.histogram("upstream_duration_seconds", &[("upstream", address)], &durations, sum_ns);
            // Up if one worker gets replies from it: the other workers may not have asked it.
            let up = of_workers
                .iter()
                .any(|server| !matches!(server.state(), BreakerState::Open | BreakerState::Failing));
            self.gauge("upstream_up", &[("upstream", address)], f64::from(u8::from(up)));
        }
    }

    /// Messages that the datapath received, sent and dropped.
    fn datapath(&mut self, server: &ServerHandle) {
        for (counter, value) in server.workers.total().iter() {
            let value = value as f64;
            match counter {
                datapath::Counter::UpstreamTlsFull => {
                    self.counter("upstream_tls_handshakes_total", &[("kind", "full")], value);
                }
                datapath::Counter::UpstreamTlsResumed => {
                    self.counter("upstream_tls_handshakes_total", &[("kind", "resumed")], value);
                }
                _ if counter.is_tls_failure() => {
                    self.counter("upstream_tls_failures_total", &[("reason", counter.name())], value);
                }
                _ if counter.is_drop() => {
                    self.counter("dropped_total", &[("reason", counter.name())], value);
                }
                _ => self.counter(&format!("{}_total", counter.name()), &[], value),
            }
        }
    }

    /// The response policy zones. Their files are the operator's choice, so they are a closed set.
    fn policy_zones(&mut self, config: &Config) {
        for zone in &config.filter.zones {
            let file = zone.file.display().to_string();
            let labels = [("file", file.as_str())];
            self.gauge("rpz_serial", &labels, f64::from(zone.serial));
            self.gauge("rpz_records", &labels, zone.records as f64);
            self.gauge("rpz_skipped_records", &labels, zone.skipped as f64);
            if let Some(modified) = zone.modified {
                let since_1970 = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
                self.gauge("rpz_modified_timestamp_seconds", &labels, since_1970.as_secs_f64());
            }
        }
    }

    /// The figures of the process. Those with `process_` have the names and meanings that the client libraries of Prometheus give them.
    fn process(&mut self, server: &ServerHandle) {
        let (process, seconds) = (&server.process, processor_time().as_secs_f64());
        self.counter("cpu_seconds_total", &[], seconds);
        self.counter("process_cpu_seconds_total", &[], seconds);
        self.gauge("process_start_time_seconds", &[], process.start_unix_secs());
        self.gauge("process_max_fds", &[], server.file_limit.limit() as f64);
        for (name, value) in [
            ("process_resident_memory_bytes", process.resident()),
            ("process_virtual_memory_bytes", process.virtual_memory()),
            ("process_open_fds", process.open_files()),
        ] {
            if let Some(value) = value {
                self.gauge(name, &[], value as f64);
            }
        }
    }

    fn dnstap(&mut self, server: &ServerHandle) {
        let counts = &server.dnstap.counts;
        for (result, count) in [("sent", &counts.sent), ("dropped", &counts.dropped)] {
            let count = count.load(Ordering::Relaxed) as f64;
            self.counter("dnstap_frames_total", &[("result", result)], count);
        }
    }

    fn counter(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.add("counter", name, labels, value);
    }

    fn gauge(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.add("gauge", name, labels, value);
    }

    fn add(&mut self, kind: &'static str, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels = labels.iter().map(|&(label, value)| (label.to_owned(), escaped(value))).collect();
        // The names of Prometheus for every program have no prefix.
        let full = if name.starts_with("process_") { name.to_owned() } else { format!("sixfold_{name}") };
        let family =
            self.0.entry(full).or_insert_with(|| Family { kind, help: help(name), samples: Vec::new() });
        family.samples.push((labels, value));
    }

    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], buckets: &[u64], sum_ns: u64) {
        let mut cumulative = 0;
        let bounds: Vec<String> =
            DURATION_BOUNDS_US.iter().map(|&us| (us as f64 / 1e6).to_string()).collect();
        for (bucket, count) in buckets.iter().enumerate() {
            cumulative += count;
            let mut all = labels.to_vec();
            all.push(("le", bounds.get(bucket).map_or("+Inf", String::as_str)));
            self.add("histogram", name, &all, cumulative as f64);
        }
        let family = self.0.get_mut(&format!("sixfold_{name}")).expect("a histogram has buckets");
        let owned: Vec<_> = labels.iter().map(|&(l, v)| (l.to_owned(), v.to_owned())).collect();
        // These two samples have a suffix after the name of the family; an empty label holds it.
        let with_suffix = |suffix: &str| [owned.clone(), vec![(String::new(), suffix.to_owned())]].concat();
        family.samples.push((with_suffix("_sum"), sum_ns as f64 / 1e9));
        family.samples.push((with_suffix("_count"), cumulative as f64));
    }

    /// The metrics in the text format of Prometheus.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (name, family) in &self.0 {
            let _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} {}", family.help, family.kind);
            for (labels, value) in &family.samples {
                let _ = writeln!(text, "{} {value}", series(name, family.kind, labels));
            }
        }
        text
    }

    /// The metrics as one JSON object that maps series to values.
    pub fn to_json(&self) -> serde_json::Value {
        let mut all = serde_json::Map::new();
        for (name, family) in &self.0 {
            for (labels, value) in &family.samples {
                all.insert(series(name, family.kind, labels), serde_json::json!(value));
            }
        }
        serde_json::Value::Object(all)
    }
}

/// Name and labels of a series in the text format.
fn series(name: &str, kind: &str, labels: &[(String, String)]) -> String {
    let suffix = match labels.iter().find(|(label, _)| label.is_empty()) {
        Some((_, suffix)) => suffix.as_str(),
        None if kind == "histogram" => "_bucket",
        None => "",
    };
    let labels: Vec<String> = labels
        .iter()
        .filter(|(label, _)| !label.is_empty())
        .map(|(label, value)| format!("{label}=\"{value}\""))
        .collect();
    if labels.is_empty() {
        format!("{name}{suffix}")
    } else {
        format!("{name}{suffix}{{{}}}", labels.join(","))
    }
}

/// A label value as the text format has it. Values that may need this are the operator's: paths of files.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Processor time of all threads.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

fn add(sum: &mut [u64], more: &[u64]) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

/// HELP text of a metric.
fn help(name: &str) -> &'static str {
    HELP.iter().find(|(known, _)| *known == name).map_or("See sixfold(8).", |(_, text)| text)
}

/// HELP texts, by name without `sixfold_`.
const HELP: &[(&str, &str)] = &[
    ("queries_total", "Messages from clients."),
    ("responses_total", "Responses to clients."),
    ("truncated_responses_total", "Responses over UDP that did not fit and have TC set."),
    ("copied_responses_total", "Responses copied from that to another query for the same reply."),
    (
        "request_duration_seconds",
        "Time from a query to its answer; an answer copied from the cache counts with 0, the time within one batch.",
    ),
    ("synthesized_total", "Answers with synthesized AAAA records, by the result of the AAAA leg."),
    ("not_synthesized_total", "AAAA queries answered without synthesis, by reason."),
    ("local_answers_total", "Queries answered from special-use names and local data, by zone."),
    ("filtered_total", "Queries decided by a filter, by reason."),
    ("left_out_addresses_total", "IPv4 addresses that were not embedded, by reason."),
    ("refused_total", "Queries refused, by reason."),
    ("slipped_total", "Queries over UDP that a rate limit sent to TCP, by reason."),
    ("dropped_total", "Messages dropped, by reason."),
    (
        "forgery_suspects_total",
        "Messages from upstream addresses that were rejected as possible forgeries, by reason.",
    ),
    ("client_subnets_left_out_total", "Questions to upstreams sent without the client subnet, by reason."),
    ("cookies_total", "Messages from clients with a DNS cookie, by result of the check."),
    ("upstream_cookies_total", "Upstream queries repeated or changed because of DNS cookies, by result."),
    ("joined_total", "Queries that joined a question already in flight."),
    ("upstream_queries_total", "Questions sent to upstreams."),
    ("upstream_duration_seconds", "Time from a question to an upstream to its reply."),
    ("upstream_up", "1 if the upstream answers, 0 if not."),
    (
        "upstream_repetitions_total",
        "Hedges: late upstream queries repeated while the first try may still be answered (sent, helped), or not repeated for lack of budget (held_back).",
    ),
    (
        "upstream_useless_total",
        "Upstream queries whose best reply was unusable: a referral or nothing (lame), or truncated over TCP.",
    ),
    ("upstream_edns_refused_total", "Questions asked again without EDNS."),
    ("upstream_tcp_total", "Questions moved to TCP, by reason."),
    ("upstream_timeouts_total", "Tries that timed out."),
    ("upstream_failovers_total", "Replies with an error after which another upstream was asked."),
    (
        "upstream_unreachable_total",
        "Links to upstreams that failed: ICMP errors, refused or reset connections.",
    ),
    (
        "upstream_streams_lost_total",
        "Connections to upstreams that ended or stalled with queries on them, by reason.",
    ),
    ("upstream_stream_retries_total", "Questions asked again because their connection was lost."),
    (
        "upstream_stream_limits_total",
        "Limits of the connections to an upstream that a worker learned, by limit.",
    ),
    (
        "upstream_transport_changes_total",
        "Changes of the transport of an upstream in a worker with transport = \"auto\", by the new one.",
    ),
    (
        "upstream_links_opened_total",
        "Sockets and connections to upstreams opened, as the engine counts them: the one to watch.",
    ),
    ("upstream_tls_handshakes_total", "Handshakes of TLS with upstreams, full or with a resumed session."),
    ("upstream_tls_failures_total", "Handshakes of TLS with upstreams that failed, by reason."),
    ("upstream_flights", "Questions in flight to upstreams."),
    ("upstream_links", "Open links to upstreams: UDP sockets and TCP connections."),
    ("upstream_packets_in_total", "Messages received from upstreams."),
    ("upstream_packets_out_total", "Messages sent to upstreams."),
    ("upstream_octets_in_total", "Octets of messages received from upstreams."),
    ("upstream_octets_out_total", "Octets of messages sent to upstreams."),
    (
        "doubted_failures_total",
        "AAAA queries that failed without a reason and were asked again without validation.",
    ),
    ("extended_errors_total", "Responses with an extended DNS error, by code."),
    ("chain_hops_total", "Questions asked to follow a CNAME chain that an upstream left unfinished."),
    ("client_packets_in_total", "Datagrams received from clients."),
    ("client_packets_out_total", "Datagrams sent to clients."),
    ("client_octets_in_total", "Octets of datagrams received from clients."),
    ("client_octets_out_total", "Octets of datagrams sent to clients."),
    ("stream_connections", "Open client connections."),
    ("stream_connections_limit", "Client connections that may be open."),
    (
        "tls_certificate_expiry_timestamp_seconds",
        "Time after which clients refuse the certificate of the encrypted listeners.",
    ),
    ("stream_connections_total", "Client connections, by result of accepting them."),
    ("stream_accepted_total", "Client connections that were accepted, by transport."),
    ("tls_handshakes_total", "Handshakes of TLS with clients, full or with a resumed session."),
    ("tls_handshake_failures_total", "Handshakes of TLS with clients that failed, by reason."),
    ("stream_closed_total", "Client connections that ended, by reason."),
    ("stream_questions_total", "Queries received over connections."),
    ("stream_answers_total", "Answers to connections, by result."),
    ("stream_answers_out_total", "Answers that workers passed to connections."),
    ("https_responses_total", "Responses to HTTPS requests, by class of their status."),
    ("quic_handshakes_total", "QUIC connection attempts, by result."),
    ("quic_handshake_failures_total", "QUIC handshakes that failed, by reason."),
    ("quic_streams_total", "Queries over QUIC, by result."),
    ("quic_early_queries_total", "Messages in 0-RTT data, by treatment."),
    ("quic_datagrams_ignored_total", "Datagrams to the QUIC port that are of no use, by reason."),
    (
        "hot_names_total",
        "Names that took so many queries of a busy worker that all workers answered them for a time.",
    ),
    ("letters_in_total", "Queries passed to the worker that owns the name, by streams and by other workers."),
    (
        "links_opened_total",
        "Sockets and connections to upstreams opened, as the datapath counts them: equal to sixfold_upstream_links_opened_total, which it checks.",
    ),
    ("receive_batches_total", "Receive calls that returned at least one message."),
    ("send_batches_total", "Send calls."),
    ("turns_total", "Iterations of the worker loops."),
    ("dnstap_frames_total", "Messages for the reader of dnstap, by result."),
    ("cache_hits_total", "Queries answered from the cache, by kind."),
    ("cache_misses_total", "Queries for which an upstream had to be asked."),
    ("cache_refreshes_total", "Questions asked upstream to refresh a cache entry before it expires."),
    ("cache_bytes", "Octets that the cache entries use."),
    ("cache_entries", "Entries in the cache."),
    ("cache_limit_bytes", "Octets that the cache entries may use."),
    ("pending", "Client queries that wait for an upstream."),
    ("pending_limit", "Client queries that may wait for an upstream."),
    ("workers", "Workers."),
    ("workers_responding", "Workers that responded to this scrape."),
    ("ready", "1 if the server is to get queries, as /readyz says, 0 if not."),
    ("draining", "1 while the server stops, 0 otherwise."),
    ("drained", "1 while the operator keeps the server out of service, 0 otherwise."),
    (
        "log_lines_total",
        "Lines of the log, by result: written, held back as repetitions, dropped for lack of room.",
    ),
    ("config_last_reload_successful", "1 if the last reload of the configuration succeeded, 0 if it failed."),
    ("config_reloads_total", "Reloads of the configuration since the start, by result."),
    (
        "config_last_reload_success_timestamp_seconds",
        "Time of the last reload that succeeded, or of the start, in seconds since 1970.",
    ),
    ("cpu_seconds_total", "Processor time of the process, user and system."),
    ("process_cpu_seconds_total", "Processor time of the process, user and system."),
    ("process_start_time_seconds", "Time of the start of the process, in seconds since 1970."),
    ("process_resident_memory_bytes", "Resident memory of the process."),
    ("process_virtual_memory_bytes", "Address space of the process."),
    ("process_open_fds", "Open file descriptors."),
    ("process_max_fds", "Limit of open file descriptors."),
    ("rpz_serial", "Serial number of the SOA record of a response policy zone, by its file."),
    ("rpz_records", "Records of a response policy zone that were taken, by its file."),
    ("rpz_skipped_records", "Records of a response policy zone that were left out, by its file."),
    (
        "rpz_modified_timestamp_seconds",
        "Time of the last change of the file of a response policy zone when it was read, in seconds since 1970.",
    ),
    (
        "upgrades_total",
        "Upgrades of the service since the start of its first process, by result: after a failure the old process goes on.",
    ),
    (
        "upgrade_last_success_timestamp_seconds",
        "Time of the last upgrade that succeeded, in seconds since 1970; 0 if there was none.",
    ),
    ("uptime_seconds", "Time since the start."),
    ("build_info", "Version and commit."),
];
