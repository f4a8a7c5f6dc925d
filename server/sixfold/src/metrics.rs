//! The metrics in the text format of Prometheus and as JSON. Label values come from closed sets: reasons, types, and
//! the upstreams of the configuration; never from a packet.

use crate::config::Config;
use crate::metric_families::Family;
use crate::running_server::{ServerHandle, WorkerStatus, health};
use crate::{trust, version};
use engine::counters::DURATION_BOUNDS_US;
use engine::upstream::BreakerState;
use engine::upstream::{QueryKind, Server};
use engine::{Counter, Counters};
use gateways::Trials;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

/// Connections to the HTTP server of the process that `metrics.allow` refused.
pub static REFUSED: AtomicU64 = AtomicU64::new(0);

/// Sample: labels and value.
type Sample = (Vec<(String, String)>, f64);

/// All metrics: the samples by the name of the metric, whose type and sentence are in `metric_families.rs`.
pub struct Metrics(BTreeMap<String, Vec<Sample>>);

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
        metrics.prefixes(server);
        metrics.trust_anchors(server);
        metrics.datapath(server);
        for &counter in transport::Counter::ALL {
            let (family, (label, value)) = counter.describe();
            metrics.add(family, &[(label, value)], server.streams.counter(counter) as f64);
        }
        metrics.dnstap(server);
        metrics.add("stream_connections", &[], server.streams.connections() as f64);
        let total = |value: fn(&WorkerStatus) -> usize| {
            statuses.iter().map(|status| value(status)).sum::<usize>() as f64
        };
        metrics.add("pending", &[], total(|status| status.pending));
        metrics.add("upstream_queries_in_flight", &[], total(|status| status.outbound_queries));
        metrics.add("upstream_links", &[], total(|status| status.links));
        metrics.add("cache_bytes", &[], total(|status| status.cached.0));
        metrics.add("cache_entries", &[], total(|status| status.cached.1));
        metrics.add("metrics_refused_total", &[], REFUSED.load(Ordering::Relaxed) as f64);
        metrics.add("workers", &[], server.workers.workers() as f64);
        metrics.add("dnssec_verification_seconds_total", &[], server.workers.signature_time().as_secs_f64());
        metrics.add("workers_responding", &[], responding as f64);
        let is_ready = server.out_of_service().is_none() && health(&answered).is_ok();
        metrics.add("ready", &[], f64::from(u8::from(is_ready)));
        metrics.add("draining", &[], f64::from(u8::from(server.draining.load(Ordering::Relaxed))));
        metrics.add("drained", &[], f64::from(u8::from(server.drained.load(Ordering::Relaxed))));
        for (result, lines) in server.log.counts().by_result() {
            metrics.add("log_lines_total", &[("result", result)], lines as f64);
        }
        let reloads = &server.reloads;
        let successful = f64::from(u8::from(reloads.successful()));
        metrics.add("config_last_reload_successful", &[], successful);
        let timestamp = reloads.success_unix_secs();
        metrics.add("config_last_reload_success_timestamp_seconds", &[], timestamp);
        let (succeeded, failed) = reloads.history.totals();
        metrics.add("config_reloads_total", &[("result", "succeeded")], succeeded as f64);
        metrics.add("config_reloads_total", &[("result", "failed")], failed as f64);
        metrics.limits(server);
        metrics.policy_zones(&server.config());
        metrics.process(server);
        let upgrades = server.upgrade.history();
        metrics.add("upgrades_total", &[("result", "success")], upgrades.succeeded as f64);
        metrics.add("upgrades_total", &[("result", "failure")], upgrades.failed as f64);
        metrics.add("upgrade_last_success_timestamp_seconds", &[], upgrades.last_success_secs());
        metrics.add("uptime_seconds", &[], server.started.elapsed().as_secs_f64());
        metrics.add("build_info", &[("version", version::VERSION), ("commit", version::COMMIT)], 1.0);
        metrics
    }

    fn engine(&mut self, statuses: &[Arc<WorkerStatus>]) {
        let mut total = Counters::default();
        statuses.iter().for_each(|status| total.include(&status.counters));
        for &counter in Counter::ALL {
            let (family, labels) = counter.describe();
            self.add(family, labels, total.get(counter) as f64);
        }
        self.histogram("request_duration_seconds", &[], &total.durations, total.duration_sum_ns);
    }

    /// The limits of what other gauges show.
    fn limits(&mut self, server: &ServerHandle) {
        let config = server.config();
        let pending = config.limits.pending * server.workers.workers();
        self.add("pending_limit", &[], pending as f64);
        self.add("cache_limit_bytes", &[], config.cache.size as f64);
        let connections = server.file_limit.grant(config.limits.tcp_connections);
        self.add("stream_connections_limit", &[], connections as f64);
        if let Some(end) = config.tls.server.as_ref().and_then(|tls| tls.expires()) {
            let since_1970 = end.duration_since(UNIX_EPOCH).unwrap_or_default();
            self.add("tls_certificate_expiry_timestamp_seconds", &[], since_1970.as_secs_f64());
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
                self.add("upstream_queries_total", &[("upstream", address), ("type", label)], asked as f64);
            }
            let mut durations = [0u64; DURATION_BOUNDS_US.len() + 1];
            of_workers.iter().for_each(|server| add(&mut durations, &server.durations));
            let sum_ns = of_workers.iter().map(|server| server.duration_sum_ns).sum();
            self.histogram("upstream_duration_seconds", &[("upstream", address)], &durations, sum_ns);
            // Up if one worker gets replies from it: the other workers may not have asked it.
            let is_asked_in_turn = |server: &&Server| {
                !matches!(server.state(), BreakerState::Open | BreakerState::Failing | BreakerState::Strips)
            };
            let up = of_workers.iter().any(is_asked_in_turn);
            self.add("upstream_up", &[("upstream", address)], f64::from(u8::from(up)));
        }
    }

    /// The prefixes in use.
    fn prefixes(&mut self, server: &ServerHandle) {
        for status in server.prefix_statuses() {
            let prefix = status.prefix.to_string();
            let labels = [("prefix", prefix.as_str())];
            self.add("prefix_up", &labels, f64::from(u8::from(status.state.is_up())));
            if let Some(round_trip) = status.round_trip {
                self.add("prefix_probe_duration_seconds", &labels, round_trip.as_secs_f64());
            }
            if let Some(answers) = status.answers {
                self.add("prefix_answers_total", &labels, answers as f64);
            }
        }
        let Trials { alive, dead, impossible, dropped } = server.prefixes.trials();
        for (result, count) in
            [("alive", alive), ("dead", dead), ("impossible", impossible), ("dropped", dropped)]
        {
            self.add("address_trials_total", &[("result", result)], count as f64);
        }
    }

    /// The trust anchors, if something is validated.
    fn trust_anchors(&mut self, server: &ServerHandle) {
        let Some((states, negative)) = trust::report::counts(&server.trust) else { return };
        for (state, count) in states {
            self.add("trust_anchors", &[("state", state)], count as f64);
        }
        self.add("negative_trust_anchors", &[], negative as f64);
    }

    /// Messages that the datapath received, sent and dropped.
    fn datapath(&mut self, server: &ServerHandle) {
        for (counter, value) in server.workers.total().iter() {
            let value = value as f64;
            match counter {
                datapath::Counter::UpstreamTlsFull => {
                    self.add("upstream_tls_handshakes_total", &[("kind", "full")], value);
                }
                datapath::Counter::UpstreamTlsResumed => {
                    self.add("upstream_tls_handshakes_total", &[("kind", "resumed")], value);
                }
                _ if counter.is_tls_failure() => {
                    self.add("upstream_tls_failures_total", &[("reason", counter.name())], value);
                }
                _ if counter.is_drop() => {
                    self.add("dropped_total", &[("reason", counter.name())], value);
                }
                _ => self.add(&format!("{}_total", counter.name()), &[], value),
            }
        }
    }

    /// The response policy zones. Their files are the operator's choice, so they are a closed set.
    fn policy_zones(&mut self, config: &Config) {
        for zone in &config.filter.zones {
            let file = zone.file.display().to_string();
            let labels = [("file", file.as_str())];
            self.add("rpz_serial", &labels, f64::from(zone.serial));
            self.add("rpz_records", &labels, zone.records as f64);
            self.add("rpz_skipped_records", &labels, zone.skipped as f64);
            if let Some(modified) = zone.modified {
                let since_1970 = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
                self.add("rpz_modified_timestamp_seconds", &labels, since_1970.as_secs_f64());
            }
        }
    }

    /// The figures of the process. Those with `process_` have the names and meanings that the client libraries of Prometheus give them.
    fn process(&mut self, server: &ServerHandle) {
        let (process, seconds) = (&server.process, processor_time().as_secs_f64());
        self.add("cpu_seconds_total", &[], seconds);
        self.add("process_cpu_seconds_total", &[], seconds);
        self.add("process_start_time_seconds", &[], process.start_unix_secs());
        self.add("process_max_fds", &[], server.file_limit.limit() as f64);
        for (name, value) in [
            ("process_resident_memory_bytes", process.resident()),
            ("process_virtual_memory_bytes", process.virtual_memory()),
            ("process_open_fds", process.open_files()),
        ] {
            if let Some(value) = value {
                self.add(name, &[], value as f64);
            }
        }
    }

    fn dnstap(&mut self, server: &ServerHandle) {
        let counts = &server.dnstap.counts;
        for (result, count) in [("sent", &counts.sent), ("dropped", &counts.dropped)] {
            let count = count.load(Ordering::Relaxed) as f64;
            self.add("dnstap_frames_total", &[("result", result)], count);
        }
    }

    fn add(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels = labels.iter().map(|&(label, value)| (label.to_owned(), escaped(value))).collect();
        // The names of Prometheus for every program have no prefix.
        let full = if name.starts_with("process_") { name.to_owned() } else { format!("sixfold_{name}") };
        self.0.entry(full).or_default().push((labels, value));
    }

    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], buckets: &[u64], sum_ns: u64) {
        let mut cumulative = 0;
        let bounds: Vec<String> =
            DURATION_BOUNDS_US.iter().map(|&us| (us as f64 / 1e6).to_string()).collect();
        for (bucket, count) in buckets.iter().enumerate() {
            cumulative += count;
            let mut all = labels.to_vec();
            all.push(("le", bounds.get(bucket).map_or("+Inf", String::as_str)));
            self.add(name, &all, cumulative as f64);
        }
        let samples = self.0.get_mut(&format!("sixfold_{name}")).expect("a histogram has buckets");
        let owned: Vec<_> = labels.iter().map(|&(l, v)| (l.to_owned(), v.to_owned())).collect();
        // These two samples have a suffix after the name of the family; an empty label holds it.
        let with_suffix = |suffix: &str| [owned.clone(), vec![(String::new(), suffix.to_owned())]].concat();
        samples.push((with_suffix("_sum"), sum_ns as f64 / 1e9));
        samples.push((with_suffix("_count"), cumulative as f64));
    }

    /// The metrics in the text format of Prometheus.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (name, samples) in &self.0 {
            let (kind, help) = kind_and_help(name);
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (labels, value) in samples {
                let _ = writeln!(text, "{} {value}", series(name, labels));
            }
        }
        text
    }

    /// The metrics as one JSON object that maps series to values.
    pub fn to_json(&self) -> serde_json::Value {
        let mut all = serde_json::Map::new();
        for (name, samples) in &self.0 {
            for (labels, value) in samples {
                all.insert(series(name, labels), serde_json::json!(value));
            }
        }
        serde_json::Value::Object(all)
    }
}

/// Type and HELP text of a metric. A test shows that every one is in the table.
fn kind_and_help(name: &str) -> (&'static str, String) {
    Family::named(name).map_or(("untyped", String::new()), |family| (family.kind, family.help()))
}

/// Name and labels of a series in the text format.
fn series(name: &str, labels: &[(String, String)]) -> String {
    let suffix = match labels.iter().find(|(label, _)| label.is_empty()) {
        Some((_, suffix)) => suffix.as_str(),
        None if labels.iter().any(|(label, _)| label == "le") => "_bucket",
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
