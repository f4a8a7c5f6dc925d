//! The metrics in the text format of Prometheus, and as JSON. Label values come from closed sets: reasons, types, and
//! the upstreams of the configuration; never from a packet.

use crate::handle::{Running, View};
use crate::version;
use engine::Counter;
use engine::breaker::State;
use engine::counters::DURATION_BOUNDS_US;
use engine::servers::{Kind, Server};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One sample: labels and value.
type Sample = (Vec<(String, String)>, f64);

/// A metric with its samples.
struct Family {
    kind: &'static str,
    help: &'static str,
    samples: Vec<Sample>,
}

/// All metrics, by name.
pub struct Metrics(BTreeMap<String, Family>);

impl Metrics {
    /// Asks the workers and the streams.
    pub async fn gather(running: &Running) -> Metrics {
        let responding = running.views().await.iter().flatten().count();
        // Who does not respond counts with what it said last: a counter must not go backwards.
        let views = running.last_views();
        let mut metrics = Metrics(BTreeMap::new());
        metrics.engine(&views);
        metrics.upstreams(&views);
        metrics.moved(running);
        for &counter in transport::Counter::ALL {
            let (family, (label, value)) = counter.describe();
            metrics.counter(family, &[(label, value)], running.streams.counter(counter) as f64);
        }
        metrics.gauge("stream_connections", &[], running.streams.connections() as f64);
        metrics.gauge("pending", &[], views.iter().map(|view| view.pending).sum::<usize>() as f64);
        metrics.gauge("upstream_flights", &[], views.iter().map(|view| view.flights).sum::<usize>() as f64);
        metrics.gauge("upstream_links", &[], views.iter().map(|view| view.links).sum::<usize>() as f64);
        metrics.gauge("cache_bytes", &[], views.iter().map(|view| view.cached.0).sum::<usize>() as f64);
        metrics.gauge("cache_entries", &[], views.iter().map(|view| view.cached.1).sum::<usize>() as f64);
        metrics.gauge("workers", &[], running.workers.workers() as f64);
        metrics.gauge("workers_responding", &[], responding as f64);
        metrics.gauge("draining", &[], f64::from(u8::from(running.draining.load(Ordering::Relaxed))));
        metrics.gauge("uptime_seconds", &[], running.started.elapsed().as_secs_f64());
        metrics.gauge("build_info", &[("version", version::VERSION), ("commit", version::COMMIT)], 1.0);
        metrics
    }

    fn engine(&mut self, views: &[Arc<View>]) {
        for &counter in Counter::ALL {
            let (family, labels) = counter.describe();
            let sum: u64 = views.iter().map(|view| view.counters.get(counter)).sum();
            self.counter(family, labels, sum as f64);
        }
        let mut durations = [0u64; DURATION_BOUNDS_US.len() + 1];
        for view in views {
            add(&mut durations, &view.counters.durations);
        }
        let sum_ns: u64 = views.iter().map(|view| view.counters.duration_sum_ns).sum();
        self.histogram("request_duration_seconds", &[], &durations, sum_ns);
    }

    fn upstreams(&mut self, views: &[Arc<View>]) {
        let mut servers: BTreeMap<String, Vec<&Server>> = BTreeMap::new();
        for server in views.iter().flat_map(|view| &view.servers) {
            servers.entry(server.address.to_string()).or_default().push(server);
        }
        for (address, seen) in &servers {
            for (kind, label) in Kind::LABELS.iter().enumerate() {
                let asked: u64 = seen.iter().map(|server| server.asked[kind]).sum();
                self.counter(
                    "upstream_queries_total",
                    &[("upstream", address), ("type", label)],
                    asked as f64,
                );
            }
            let mut durations = [0u64; DURATION_BOUNDS_US.len() + 1];
            seen.iter().for_each(|server| add(&mut durations, &server.durations));
            let sum_ns = seen.iter().map(|server| server.duration_sum_ns).sum();
            self.histogram("upstream_duration_seconds", &[("upstream", address)], &durations, sum_ns);
            // Up as long as one worker hears from it: others may not have asked.
            let up = seen.iter().any(|server| !matches!(server.state(), State::Open | State::Failing));
            self.gauge("upstream_up", &[("upstream", address)], f64::from(u8::from(up)));
        }
    }

    /// What the datapath has moved and dropped.
    fn moved(&mut self, running: &Running) {
        for (counter, value) in running.workers.total().iter() {
            if counter.is_drop() {
                self.counter("dropped_total", &[("reason", counter.name())], value as f64);
            } else {
                self.counter(&format!("{}_total", counter.name()), &[], value as f64);
            }
        }
    }

    fn counter(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.add("counter", name, labels, value);
    }

    fn gauge(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.add("gauge", name, labels, value);
    }

    fn add(&mut self, kind: &'static str, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels = labels.iter().map(|&(label, value)| (label.to_owned(), value.to_owned())).collect();
        let family = self.0.entry(format!("sixfold_{name}")).or_insert_with(|| Family {
            kind,
            help: help(name),
            samples: Vec::new(),
        });
        family.samples.push((labels, value));
    }

    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], buckets: &[u64], sum_ns: u64) {
        let mut so_far = 0;
        let bounds: Vec<String> =
            DURATION_BOUNDS_US.iter().map(|&us| (us as f64 / 1e6).to_string()).collect();
        for (place, count) in buckets.iter().enumerate() {
            so_far += count;
            let mut all = labels.to_vec();
            all.push(("le", bounds.get(place).map_or("+Inf", String::as_str)));
            self.add("histogram", name, &all, so_far as f64);
        }
        let family = self.0.get_mut(&format!("sixfold_{name}")).expect("it has buckets");
        let owned: Vec<_> = labels.iter().map(|&(l, v)| (l.to_owned(), v.to_owned())).collect();
        // The name of these two samples differs from the family's; marked by an empty label.
        let marked = |suffix: &str| [owned.clone(), vec![(String::new(), suffix.to_owned())]].concat();
        family.samples.push((marked("_sum"), sum_ns as f64 / 1e9));
        family.samples.push((marked("_count"), so_far as f64));
    }

    /// The text format of Prometheus.
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

    /// One object: series to value.
    pub fn to_json(&self) -> String {
        let mut all = serde_json::Map::new();
        for (name, family) in &self.0 {
            for (labels, value) in &family.samples {
                all.insert(series(name, family.kind, labels), serde_json::json!(value));
            }
        }
        serde_json::Value::Object(all).to_string()
    }
}

/// Name and labels of a series as the text format writes them.
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

fn add(sum: &mut [u64], more: &[u64]) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

fn help(name: &str) -> &'static str {
    match name {
        "queries_total" => "Messages from clients.",
        "responses_total" => "Answers to clients.",
        "truncated_responses_total" => "Answers over UDP that were cut to fit, with TC set.",
        "request_duration_seconds" => {
            "Time from a question to its answer, of questions that were not answered at once here."
        }
        "synthesized_total" => "Answers with synthesized AAAA records, by what the AAAA leg said.",
        "not_synthesized_total" => "AAAA questions answered without synthesis, by reason.",
        "local_answers_total" => "Questions for names that are answered here, by zone.",
        "filtered_total" => "Questions that a filter decided, by reason.",
        "left_out_addresses_total" => "IPv4 addresses that were not embedded, by reason.",
        "refused_total" => "Questions refused, by reason.",
        "slipped_total" => "Questions over UDP that were sent to TCP because of a rate limit, by reason.",
        "dropped_total" => "Messages dropped, by reason.",
        "forgery_suspects_total" => "Messages from upstream addresses that were not believed, by reason.",
        "client_subnets_left_out_total" => "Questions asked without their client subnet, by reason.",
        "cookies_total" => "Messages from clients with a DNS cookie, by what it was worth.",
        "upstream_cookies_total" => "Questions that cookies towards upstreams have changed, by how.",
        "joined_total" => "Questions that joined one in flight.",
        "upstream_queries_total" => "Questions to upstreams.",
        "upstream_duration_seconds" => "Time from a question to an upstream to its reply.",
        "upstream_up" => "Whether an upstream answers.",
        "upstream_repetitions_total" => {
            "Questions that were late and were asked once more while they may still be answered, or had to wait."
        }
        "upstream_useless_total" => "Replies that are well formed and no answers, by reason.",
        "upstream_edns_refused_total" => "Questions asked again without EDNS.",
        "upstream_tcp_total" => "Questions moved to TCP, by reason.",
        "upstream_timeouts_total" => "Tries that were not answered in time.",
        "upstream_failovers_total" => "Replies with an error after which another upstream was asked.",
        "upstream_unreachable_total" => {
            "Links to upstreams that failed: ICMP errors, refused or reset connections."
        }
        "upstream_links_opened_total" => "Links to upstreams that the engine had opened.",
        "upstream_flights" => "Questions to upstreams that wait for their reply.",
        "upstream_links" => "Open links to upstreams: UDP sockets and TCP connections.",
        "upstream_packets_in_total" => "Messages received from upstreams.",
        "upstream_packets_out_total" => "Messages sent to upstreams.",
        "upstream_octets_in_total" => "Octets of messages received from upstreams.",
        "upstream_octets_out_total" => "Octets of messages sent to upstreams.",
        "doubted_failures_total" => {
            "AAAA questions that failed without a reason and were asked once more without validation."
        }
        "extended_errors_total" => "Answers with an extended error, by its code.",
        "chain_hops_total" => "Questions asked to follow an alias that an upstream left unfinished.",
        "client_packets_in_total" => "Datagrams received from clients.",
        "client_packets_out_total" => "Datagrams sent to clients.",
        "client_octets_in_total" => "Octets of datagrams received from clients.",
        "client_octets_out_total" => "Octets of datagrams sent to clients.",
        "stream_connections" => "Open connections of clients.",
        "stream_connections_total" => "Connections of clients, by what became of them at the start.",
        "stream_closed_total" => "Connections of clients that ended, by reason.",
        "stream_questions_total" => "Questions that came over connections.",
        "stream_answers_total" => "Answers brought to connections.",
        "stream_answers_out_total" => "Answers that workers handed to connections.",
        "letters_in_total" => {
            "Questions handed to the worker that owns their name, by streams and other workers."
        }
        "links_opened_total" => "Sockets and connections to upstreams opened.",
        "receive_batches_total" => "Receive calls that returned something.",
        "send_batches_total" => "Send calls.",
        "turns_total" => "Turns of the workers' loops.",
        "cache_hits_total" => "Questions answered out of the cache, by kind.",
        "cache_misses_total" => "Questions for which an upstream had to be asked.",
        "cache_refreshes_total" => "Questions asked upstream because what was kept would soon expire.",
        "cache_bytes" => "Octets that entries of the cache take.",
        "cache_entries" => "Entries that are found in the cache.",
        "pending" => "Client questions that wait for an upstream.",
        "workers" => "Workers.",
        "workers_responding" => "Workers that answered this scrape.",
        "draining" => "Whether the server is about to stop.",
        "uptime_seconds" => "Time since the start.",
        "build_info" => "Version and commit.",
        _ => "See sixfold(8).",
    }
}
