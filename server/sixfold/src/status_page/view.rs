//! The contents of the status page, as texts that are ready to be shown.

use super::answers::{self, SERVFAIL_SHARE};
use super::format::{count, latency, listed, mebibytes, points, rate, share, uptime};
use super::reasons::{self, Reason};
use crate::config::{Config, PolicyFile};
use crate::escape;
use crate::history::Event;
use crate::needs::{self, Shown};
use crate::running_server::{ServerHandle, WorkerStatus};
use crate::status::{self, Certificate, SERVING, UpstreamStatus};
use crate::traffic::{PERIOD, Sample, Window, sample_before};
use crate::trust::report::Summary;
use crate::{policy_zones, upgrade, version};
use engine::Counter;
use engine::needs::NeedingNetwork;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Age of the sample with which the figures of "the last 10 seconds" begin: samples are [`PERIOD`] apart, so it has 8 to 13 s.
const SHORT: Duration = Duration::from_secs(8);

/// Age of the sample with which the figures of "the last 10 minutes" begin.
const LONG: Duration = Duration::from_secs(595);

/// Names and client networks that need DNS64 most.
const NEEDING: usize = 10;

/// A row of a table.
#[derive(serde::Serialize)]
pub struct Row {
    /// `good`, `bad` or nothing. The words of the row say the same.
    pub tone: &'static str,
    /// The cells. A single one spans the table.
    pub cells: Vec<String>,
}

impl Row {
    fn new(cells: Vec<String>) -> Row {
        Row { tone: "", cells }
    }
}

/// The contents of the page, by place.
#[derive(serde::Serialize)]
pub struct View {
    /// Texts.
    pub fields: BTreeMap<&'static str, String>,
    /// `good`, `bad` or nothing.
    pub tones: BTreeMap<&'static str, &'static str>,
    /// Rows of tables.
    pub rows: BTreeMap<&'static str, Vec<Row>>,
    /// Points of lines, as SVG has them.
    pub lines: BTreeMap<&'static str, String>,
}

/// The windows of the tables: the last seconds, the last minutes, since the start.
type Windows<'s> = [Window<'s>; 3];

impl View {
    /// The contents now.
    pub async fn of(server: &ServerHandle) -> View {
        let statuses = server.worker_statuses().await;
        let (config, samples) = (server.config(), server.traffic.samples());
        let (start, now) = (Sample::at_start(server.started), server.last_sample());
        let first = |age| sample_before(&samples, &start, now.at, age);
        let windows = [first(SHORT), first(LONG), &start].map(|first| Window::new(first, &now));
        let responding: Vec<_> = statuses.iter().flatten().collect();
        let upstreams = status::of_workers(&responding, config.upstream.transport);
        let state = status::state(server.out_of_service(), &statuses);
        let (reasons, reloads) = (reasons::found(&windows), server.reloads.history.last());
        let certificate = Certificate::of(&config);

        let mut view = View {
            fields: fields(server, &config, &responding, &windows[0]),
            tones: BTreeMap::new(),
            rows: BTreeMap::new(),
            lines: BTreeMap::new(),
        };
        let first_questions = [
            ("works", answers::works(&state, &upstreams)),
            ("whom", answers::whom(&config, server.workers.addresses())),
            ("speed", answers::speed(&windows)),
            (
                "fails",
                answers::fails(&upstreams, &windows[1], &reasons, reloads.first(), certificate.as_ref()),
            ),
        ];
        for (name, answer) in first_questions {
            view.tones.insert(name, answer.tone);
            view.fields.insert(name, answer.text);
        }
        view.tones.insert("state", if state == SERVING { "good" } else { "bad" });
        let failed = windows[0].count(Counter::ResponsesServFail) as f64;
        let is_failing = failed > SERVFAIL_SHARE * windows[0].family("responses_total") as f64;
        view.tones.insert("servfail", if is_failing { "bad" } else { "" });
        view.fields.insert("title", format!("Sixfold: {state}"));
        view.fields.insert("state", state);
        view.fields.insert("upstreams", of_upstreams(&upstreams));
        let (line, caption) = chart(&samples);
        view.lines.insert("queries", line);
        view.fields.insert("chart", caption);
        view.rows.insert("traffic", traffic(&windows));
        view.rows.insert("upstreams", upstream_rows(upstreams, &config));
        view.rows.insert("zones", zone_rows(&config));
        view.rows.insert("reasons", reason_rows(reasons));
        let needing = Shown::for_page(server, &config).await;
        view.fields.insert("needs", of_needs(needing.as_ref()));
        view.rows.insert("needs-names", needing_names(needing.as_ref()));
        view.rows.insert("needs-networks", needing_networks(needing.as_ref()));
        view.rows.insert("reloads", history(reloads));
        view.rows.insert("upgrades", upgrades(&server.upgrade.history()));
        view.rows.insert("server", facts(server, &config, &responding, certificate));
        view.without_control_characters()
    }

    /// The contents for the script.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Makes control characters, and those that change the direction of text, visible.
    fn without_control_characters(mut self) -> View {
        let cells = self.rows.values_mut().flatten().flat_map(|row| &mut row.cells);
        for text in self.fields.values_mut().chain(cells) {
            *text = escape::text(text);
        }
        self
    }
}

/// The figures at the top, of the last seconds.
fn fields(
    server: &ServerHandle,
    config: &Config,
    workers: &[&Arc<WorkerStatus>],
    window: &Window<'_>,
) -> BTreeMap<&'static str, String> {
    let pending: usize = workers.iter().map(|status| status.pending).sum();
    let cached: usize = workers.iter().map(|status| status.cached.0).sum();
    let host = rustix::system::uname();
    BTreeMap::from([
        ("host", host.nodename().to_string_lossy().into_owned()),
        ("time", httpdate::fmt_http_date(SystemTime::now())),
        ("queries", rate(window.rate("queries_total"))),
        ("synthesized", synthesized(window)),
        ("cached", from_cache(window)),
        ("servfail", servfail(window)),
        ("latency", latency(window.latency(0.99))),
        ("pending", format!("{} of {}", count(pending as u64), count(pending_limit(server, config)))),
        ("cache", format!("{} of {} MiB", mebibytes(cached as u64), mebibytes(config.cache.size))),
    ])
}

/// Queries that may wait for an upstream, in all workers.
fn pending_limit(server: &ServerHandle, config: &Config) -> u64 {
    (config.limits.pending * server.workers.workers()) as u64
}

fn synthesized(window: &Window<'_>) -> String {
    share(window.family("synthesized_total"), window.family("responses_total"))
}

fn from_cache(window: &Window<'_>) -> String {
    let hits = window.family("cache_hits_total");
    share(hits, hits + window.count(Counter::CacheMisses))
}

fn servfail(window: &Window<'_>) -> String {
    share(window.count(Counter::ResponsesServFail), window.family("responses_total"))
}

/// The table of rates, shares and latencies.
fn traffic(windows: &Windows<'_>) -> Vec<Row> {
    type Figure = fn(&Window<'_>) -> String;
    let figures: [(&str, Figure); 8] = [
        ("Queries", |window| rate(window.rate("queries_total"))),
        ("Synthesized, of all answers", synthesized),
        ("From the cache, of all lookups", from_cache),
        ("SERVFAIL, of all answers", servfail),
        ("Questions to upstreams that timed out", |window| rate(window.rate("upstream_timeouts_total"))),
        ("Latency, median", |window| latency(window.latency(0.5))),
        ("Latency, 99 %", |window| latency(window.latency(0.99))),
        ("Latency, 99.9 %", |window| latency(window.latency(0.999))),
    ];
    let row = |(name, figure): (&str, Figure)| {
        Row::new(std::iter::once(name.to_owned()).chain(windows.iter().map(figure)).collect())
    };
    figures.into_iter().map(row).collect()
}

/// The line of queries per second between the samples, and its caption.
fn chart(samples: &[Sample]) -> (String, String) {
    let pairs = samples.windows(2).map(|pair| Window::new(&pair[0], &pair[1]).rate("queries_total"));
    let rates: Vec<f64> = pairs.map(Option::unwrap_or_default).collect();
    let highest = rates.iter().copied().fold(0.0, f64::max);
    let minutes = (rates.len() as u64 * PERIOD.as_secs()).div_ceil(60);
    let caption = match minutes {
        0 => "Queries per second: the line begins in some seconds.".into(),
        1 => format!("Queries per second over the last minute; at most {}.", rate(Some(highest))),
        _ => format!("Queries per second over the last {minutes} minutes; at most {}.", rate(Some(highest))),
    };
    (points(&rates, highest), caption)
}

fn of_upstreams(upstreams: &[UpstreamStatus]) -> String {
    let up = upstreams.iter().filter(|upstream| upstream.up).count();
    format!("{up} of {} up", upstreams.len())
}

/// The upstreams: first those that are down, then those that some workers do not ask, each in the order of the configuration.
fn upstream_rows(mut upstreams: Vec<UpstreamStatus>, config: &Config) -> Vec<Row> {
    let purposes = purposes(config);
    upstreams.sort_by_key(|upstream| (upstream.up, upstream.details.is_none()));
    let row = |upstream: UpstreamStatus| {
        let (state, is_good) = (upstream.word(), upstream.up && !upstream.strips);
        let (round_trip, trouble) =
            (upstream.round_trip_text(), upstream.trouble.map(|trouble| trouble.to_string()));
        let why: Vec<String> = [trouble, upstream.details].into_iter().flatten().collect();
        let state = if why.is_empty() { state.into() } else { format!("{state}: {}", why.join("; ")) };
        let cells = vec![
            upstream.address.to_string(),
            state,
            round_trip,
            count(upstream.questions),
            count(upstream.failures),
            upstream.transport.to_owned(),
            purposes.get(&upstream.address).map(|zones| listed(zones)).unwrap_or_default(),
        ];
        Row { tone: if is_good { "" } else { "bad" }, cells }
    };
    or_none(upstreams.into_iter().map(row).collect())
}

/// The response policy zones, in the order of their precedence.
fn zone_rows(config: &Config) -> Vec<Row> {
    let row = |zone: &PolicyFile| Row {
        tone: if zone.skipped == 0 { "" } else { "bad" },
        cells: vec![
            zone.file.display().to_string(),
            zone.zone.to_string(),
            zone.serial.to_string(),
            count(zone.records as u64),
            count(zone.skipped as u64),
            policy_zones::shown_age(zone),
        ],
    };
    rows_or_none(config.filter.zones.iter().map(row).collect())
}

/// The zones of each upstream.
fn purposes(config: &Config) -> BTreeMap<SocketAddr, Vec<String>> {
    let mut purposes: BTreeMap<SocketAddr, Vec<String>> = BTreeMap::new();
    let upstream = &config.upstream;
    let general = [("all other names".to_owned(), &upstream.forwarders)];
    let zones = upstream.zones.iter().map(|zone| (zone.zone.to_string(), &zone.forwarders));
    for (purpose, forwarders) in general.into_iter().chain(zones) {
        for address in forwarders.addresses() {
            purposes.entry(upstream.reached_at(address)).or_default().push(purpose.clone());
        }
    }
    purposes
}

/// The reasons for what was refused, dropped or not synthesized.
fn reason_rows(reasons: Vec<Reason>) -> Vec<Row> {
    let row = |Reason { fate, why, counts }: Reason| {
        Row::new(std::iter::once(format!("{fate}: {why}")).chain(counts.map(count)).collect())
    };
    or_none(reasons.into_iter().map(row).collect())
}

fn of_needs(needing: Option<&Shown>) -> String {
    let text = needing.map_or_else(|| needs::OFF.to_owned(), Shown::summary);
    let mut characters = text.chars();
    characters
        .next()
        .map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), characters.as_str()))
}

/// The names that get most synthesized answers.
fn needing_names(needing: Option<&Shown>) -> Vec<Row> {
    let names = needing.into_iter().flat_map(|shown| shown.names(NEEDING));
    let row = |(name, answers, networks)| Row::new(vec![name, count(answers), count(networks)]);
    rows_or_none(names.map(row).collect())
}

/// The client networks that get most of them.
fn needing_networks(needing: Option<&Shown>) -> Vec<Row> {
    let networks = needing.into_iter().flat_map(|shown| shown.networks(NEEDING));
    let row = |(network, counted): (String, NeedingNetwork)| {
        let numbers = [counted.answers, counted.needed(), counted.with_a, counted.sought_prefix];
        Row::new(std::iter::once(network).chain(numbers.map(count)).collect())
    };
    rows_or_none(networks.map(row).collect())
}

/// The events of a history.
fn history(events: Vec<Event>) -> Vec<Row> {
    let row = |event: Event| {
        let (tone, result) = if event.succeeded { ("", "succeeded") } else { ("bad", "failed") };
        Row { tone, cells: vec![httpdate::fmt_http_date(event.at), result.into(), event.message] }
    };
    or_none(events.into_iter().map(row).collect())
}

/// The attempts to upgrade, the newest first.
fn upgrades(history: &upgrade::history::History) -> Vec<Row> {
    let row = |attempt: &upgrade::history::Attempt| {
        let at = SystemTime::UNIX_EPOCH + Duration::from_millis(attempt.unix_ms);
        let (tone, result, message) = match (&attempt.error, attempt.process) {
            (Some(error), _) => ("bad", "failed", error.clone()),
            (None, Some(process)) => {
                ("", "succeeded", format!("process {process}, version {}", attempt.version))
            }
            (None, None) => ("", "succeeded", String::new()),
        };
        Row { tone, cells: vec![httpdate::fmt_http_date(at), result.into(), message] }
    };
    or_none(history.attempts.iter().rev().map(row).collect())
}

/// Rows, or one that says that there are none since the start.
fn or_none(rows: Vec<Row>) -> Vec<Row> {
    match rows.is_empty() {
        true => vec![Row::new(vec!["None since the start.".into()])],
        false => rows,
    }
}

/// Rows, or one that says that there are none.
fn rows_or_none(rows: Vec<Row>) -> Vec<Row> {
    match rows.is_empty() {
        true => vec![Row::new(vec!["None.".into()])],
        false => rows,
    }
}

/// Facts about the process.
fn facts(
    server: &ServerHandle,
    config: &Config,
    workers: &[&Arc<WorkerStatus>],
    certificate: Option<Certificate>,
) -> Vec<Row> {
    let listen: Vec<String> = server.workers.addresses().iter().map(ToString::to_string).collect();
    let prefixes = server.prefix_statuses();
    let sum = |value: fn(&WorkerStatus) -> usize| {
        count(workers.iter().map(|status| value(status)).sum::<usize>() as u64)
    };
    let mut facts = vec![
        ("Version", format!("{}, commit {}", version::VERSION, version::COMMIT)),
        ("Running for", uptime(server.started.elapsed())),
        ("Process", std::process::id().to_string()),
        ("Configuration", status::source(server.source.as_deref())),
        ("Memory", status::memory(server)),
        ("Listening on", listen.join(" ")),
        ("Workers", format!("{}, of which {} respond", server.workers.workers(), workers.len())),
        (
            "Client connections",
            format!("{} of {}", server.streams.connections(), config.limits.tcp_connections),
        ),
        ("Questions in flight", sum(|status| status.outbound_queries)),
        ("Links to upstreams", sum(|status| status.links)),
        ("Cache entries", sum(|status| status.cached.1)),
    ];
    if let Some(anchors) = Summary::of(server) {
        facts.push(("Trust anchors", anchors.to_string()));
        facts.push(("Signatures to verify", sum(|status| status.signatures)));
    }
    for (key, addresses) in status::encrypted_listeners(config) {
        let name = match key {
            "listen-dot" => "DNS over TLS",
            "listen-doh" => "DNS over HTTPS",
            _ => "DNS over QUIC",
        };
        facts.push((name, addresses.join(" ")));
    }
    let mut rows: Vec<Row> =
        facts.into_iter().map(|(name, value)| Row::new(vec![name.into(), value])).collect();
    let is_good =
        prefixes.iter().all(|status| status.state.is_up()) && server.prefixes.empty_sources().is_empty();
    let tone = if is_good { "" } else { "bad" };
    rows.push(Row { tone, cells: vec!["Prefixes".into(), server.prefixes.line(&prefixes)] });
    if let Some(certificate) = certificate {
        let tone = if certificate.has_expired() { "bad" } else { "" };
        rows.push(Row { tone, cells: vec!["Certificate".into(), certificate.to_string()] });
    }
    rows
}
