//! The state of the server for an operator: the text of `sixfold ctl status`, and the state of an upstream over all workers, which
//! the log uses too (`event_log.rs`).

use crate::config::Config;
use crate::date;
use crate::memory;
use crate::prefixes::report;
use crate::running_server::{ServerHandle, WorkerStatus, health};
use crate::trust::report::Summary;
use crate::upgrade::history::History;
use crate::upstream_trouble::Trouble;
use crate::version;
use datapath::tls_upstreams::TlsFailure;
use engine::Span;
use engine::settings::Transport;
use engine::upstream::{BreakerState, QueryKind, Server};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The text of `sixfold ctl status`.
pub async fn text(server: &ServerHandle) -> String {
    let statuses = server.worker_statuses().await;
    let config = server.config();
    let responding: Vec<_> = statuses.iter().flatten().collect();
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<12}{value}");
    };
    line("version", format!("{} (commit {})", version::VERSION, version::COMMIT));
    line("process", std::process::id().to_string());
    line("uptime", format!("{} s", server.started.elapsed().as_secs()));
    line("config", source(server.source.as_deref()));
    line("sandbox", server.sandbox.to_string());
    line("state", state(server.out_of_service(), &statuses));
    let addresses: Vec<_> = server.workers.addresses().iter().map(ToString::to_string).collect();
    line("listen", addresses.join(" "));
    for (key, addresses) in encrypted_listeners(&config) {
        line(key, addresses.join(" "));
    }
    if let Some(certificate) = Certificate::of(&config) {
        line("certificate", certificate.to_string());
    }
    line("prefixes", server.prefixes.line(&server.prefix_statuses()));
    line("workers", format!("{} ({} responding)", statuses.len(), responding.len()));
    line("memory", memory(server));
    line("pending", responding.iter().map(|status| status.pending).sum::<usize>().to_string());
    if let Some(anchors) = Summary::of(server) {
        line("anchors", anchors.to_string());
        line("signatures", format!("{} being verified or waiting", signatures(&responding)));
    }
    line("streams", server.streams.connections().to_string());
    line("upgrades", upgrades(&server.upgrade.history()));
    for upstream in of_workers(&responding, config.upstream.transport) {
        line("upstream", upstream.summary());
    }
    text
}

/// The object of `sixfold ctl status --json`.
pub async fn json(server: &ServerHandle) -> Value {
    let statuses = server.worker_statuses().await;
    let config = server.config();
    let responding: Vec<_> = statuses.iter().flatten().collect();
    let state = state(server.out_of_service(), &statuses);
    json!({
        "version": version::VERSION,
        "commit": version::COMMIT,
        "process_id": std::process::id(),
        "uptime_seconds": server.started.elapsed().as_secs(),
        "configuration_file": server.source.as_deref().map(|file| source(Some(file))),
        "serving": state == SERVING,
        "state": state,
        "listen": server.workers.addresses().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "encrypted": encrypted_listeners(&config).into_iter().collect::<BTreeMap<_, _>>(),
        "certificate": Certificate::of(&config).map(|certificate| json!({
            "file": certificate.file.display().to_string(),
            "expires": certificate.expires.map(date::utc),
        })),
        "memory_resident_bytes": server.process.resident(),
        "memory_bound_bytes": memory::bound(&config),
        "prefixes": server.prefixes.general().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "prefix_states": report::objects(&server.prefix_statuses(), &server.prefixes.empty_sources()),
        "workers": statuses.len(),
        "workers_responding": responding.len(),
        "pending": responding.iter().map(|status| status.pending).sum::<usize>(),
        "streams": server.streams.connections(),
        "trust_anchors": Summary::of(server).as_ref().map(Summary::to_json),
        "signatures": signatures(&responding),
        "upstreams": with_tls(server, &responding)
            .iter()
            .map(UpstreamStatus::to_json)
            .collect::<Vec<_>>(),
    })
}

/// The signatures of all workers that are being verified, or wait for it.
pub fn signatures(workers: &[&Arc<WorkerStatus>]) -> usize {
    workers.iter().map(|status| status.signatures).sum()
}

/// The addresses of the encrypted listeners, by their keys in the configuration.
pub fn encrypted_listeners(config: &Config) -> Vec<(&'static str, Vec<String>)> {
    let tls = &config.tls;
    [("listen-dot", &tls.listen_dot), ("listen-doh", &tls.listen_doh), ("listen-doq", &tls.listen_doq)]
        .into_iter()
        .filter(|(_, addresses)| !addresses.is_empty())
        .map(|(key, addresses)| (key, addresses.iter().map(ToString::to_string).collect()))
        .collect()
}

/// The certificate of the encrypted listeners.
pub struct Certificate {
    /// Its file.
    pub file: PathBuf,
    /// The time after which clients refuse it.
    pub expires: Option<SystemTime>,
}

impl Certificate {
    /// The certificate in use; none without encrypted listeners.
    pub fn of(config: &Config) -> Option<Certificate> {
        let expires = config.tls.server.as_ref()?.expires();
        Some(Certificate { file: config.tls.certificate.clone()?, expires })
    }

    /// True if clients refuse it by now.
    pub fn has_expired(&self) -> bool {
        self.expires.is_some_and(|end| end < SystemTime::now())
    }
}

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        let Some(expires) = self.expires else { return Ok(()) };
        let days = |span: Duration| span.as_secs() / 86_400;
        match expires.duration_since(SystemTime::now()) {
            Ok(left) => write!(f, ", valid until {} ({} days)", date::utc(expires), days(left)),
            Err(past) => {
                write!(f, ", expired since {} ({} days)", date::utc(expires), days(past.duration()))
            }
        }
    }
}

/// The resident memory of the process, and its bound.
pub fn memory(server: &ServerHandle) -> String {
    let mebibytes = |octets: u64| octets.div_ceil(1 << 20);
    let bound = mebibytes(memory::bound(&server.config()));
    match server.process.resident() {
        Some(resident) => format!("{} MiB resident, at most {bound} MiB", mebibytes(resident)),
        None => format!("at most {bound} MiB; how much is resident is unknown without /proc"),
    }
}

/// The file of the configuration, with its whole path: nobody knows the folder in which the server was started.
pub fn source(file: Option<&Path>) -> String {
    let Some(file) = file else { return "defaults and flags".into() };
    std::path::absolute(file).unwrap_or_else(|_| file.to_owned()).display().to_string()
}

/// The state of a healthy server.
pub const SERVING: &str = "serving";

/// The upgrades so far, and the last attempt.
fn upgrades(history: &History) -> String {
    let counts = format!("{} ({} failed)", history.succeeded, history.failed);
    let Some(last) = history.attempts.last() else { return counts };
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let ago = since_1970.saturating_sub(Duration::from_millis(last.unix_ms)).as_secs();
    match (&last.error, last.process) {
        (None, Some(process)) => {
            format!("{counts}, the last {ago} s ago: process {process}, {}", last.version)
        }
        (None, None) => counts,
        (Some(error), _) => format!("{counts}, the last {ago} s ago failed: {error}"),
    }
}

/// The state of the server in words. It says `serving` if and only if the server is healthy.
pub fn state(out_of_service: Option<&str>, statuses: &[Option<Arc<WorkerStatus>>]) -> String {
    match (out_of_service, health(statuses)) {
        (Some(why), _) => why.into(),
        (None, Ok(())) => SERVING.into(),
        (None, Err(why)) => format!("not serving: {why}"),
    }
}

/// One upstream, over all workers.
pub struct UpstreamStatus {
    /// Its address.
    pub address: SocketAddr,
    /// The transport of questions to it.
    pub transport: &'static str,
    /// It is asked in lower case, because it changes letters.
    pub in_lower_case: bool,
    /// True if at least one worker asks it.
    pub up: bool,
    /// True if at least one worker has found that it strips signatures.
    pub strips: bool,
    /// Workers that do not ask it in its turn, and why.
    pub details: Option<String>,
    /// Trouble with it: since when, and why.
    pub trouble: Option<Trouble>,
    /// Mean round trip.
    pub round_trip: Option<Span>,
    /// Questions sent, without probes.
    pub questions: u64,
    /// Tries that failed.
    pub failures: u64,
    /// The latest handshake of TLS, if it failed.
    pub tls_failure: Option<TlsFailure>,
}

impl UpstreamStatus {
    fn new(address: SocketAddr, servers: &[&Server], transport: Transport) -> UpstreamStatus {
        let states: Vec<BreakerState> = servers.iter().map(|server| server.state()).collect();
        let round_trips: Vec<Option<Span>> = servers.iter().map(|server| server.round_trip).collect();
        let questions = servers
            .iter()
            .map(|server| server.asked.iter().sum::<u64>() - server.asked[QueryKind::Probe as usize]);
        UpstreamStatus {
            address,
            transport: match transport {
                _ if servers.iter().any(|server| server.is_tls()) => "tls",
                Transport::Udp => "udp",
                Transport::Tcp => "tcp",
                Transport::Tls => "tls",
            },
            in_lower_case: servers.iter().any(|server| server.is_asked_in_lower_case(datapath::now())),
            up: is_up(&states),
            strips: states.contains(&BreakerState::Strips),
            details: details(&states),
            trouble: trouble(servers),
            round_trip: mean(&round_trips),
            questions: questions.sum(),
            failures: servers.iter().map(|server| server.failures).sum(),
            tls_failure: None,
        }
    }

    /// The mean round trip.
    pub fn round_trip_text(&self) -> String {
        self.round_trip.map_or("not measured".into(), |span| format!("{:.1} ms", span.as_secs_f64() * 1e3))
    }

    /// Its state in a word.
    pub fn word(&self) -> &'static str {
        match () {
            () if !self.up => "down",
            () if self.strips => "strips",
            () => "up",
        }
    }

    /// The line of `status`: whether it is up, and why not.
    fn summary(&self) -> String {
        let round_trip = format!("round trip {}", self.round_trip_text());
        let trouble = self.trouble.as_ref().map(ToString::to_string);
        let parts: Vec<String> =
            [trouble, self.details.clone(), Some(round_trip)].into_iter().flatten().collect();
        let state = if self.up { format!("{},", self.word()) } else { self.word().into() };
        format!("{} {state} {}", self.address, parts.join("; "))
    }

    fn to_json(&self) -> Value {
        json!({
            "address": self.address.to_string(),
            "transport": self.transport,
            "lower_case": self.in_lower_case,
            "state": self.word(),
            "details": self.details,
            "since": self.trouble.as_ref().map(|trouble| date::utc(trouble.since)),
            "reason": self.trouble.as_ref().map(|trouble| trouble.cause.code()),
            "reason_text": self.trouble.as_ref().map(|trouble| trouble.cause.to_string()),
            "failed_tries": self.trouble.as_ref().map(|trouble| trouble.tries),
            "round_trip_milliseconds": self.round_trip.map(|span| span.as_secs_f64() * 1e3),
            "questions": self.questions,
            "failures": self.failures,
            "tls_failure": self.tls_failure.as_ref().map(|failure| json!({
                "reason": failure.fault.code(),
                "text": failure.text,
            })),
        })
    }
}

impl fmt::Display for UpstreamStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `down` has four letters; `strips` is rare.
        let state = format!("{},", self.word());
        write!(f, "{:<3} {state:<5}", self.transport)?;
        let round_trip = self.round_trip_text();
        write!(f, " round trip {round_trip}, {} questions, {} failures", self.questions, self.failures)?;
        if self.in_lower_case {
            f.write_str("; asked in lower case, because it changes letters")?;
        }
        self.trouble.as_ref().map_or(Ok(()), |trouble| write!(f, "; {trouble}"))?;
        self.details.as_ref().map_or(Ok(()), |details| write!(f, "; {details}"))?;
        let failure =
            |failure: &TlsFailure| write!(f, "; no TLS connection to {}: {}", failure.name, failure.text);
        self.tls_failure.as_ref().map_or(Ok(()), failure)
    }
}

/// The upstreams that the configuration names or that are still in use, in its order.
async fn upstream_statuses(server: &ServerHandle) -> Vec<UpstreamStatus> {
    let statuses = server.worker_statuses().await;
    with_tls(server, &statuses.iter().flatten().collect::<Vec<_>>())
}

/// The upstreams as these workers know them, with the failures of TLS.
fn with_tls(server: &ServerHandle, statuses: &[&Arc<WorkerStatus>]) -> Vec<UpstreamStatus> {
    let mut upstreams = of_workers(statuses, server.config().upstream.transport);
    for upstream in &mut upstreams {
        upstream.tls_failure = server.workers.tls_upstreams().failure(upstream.address);
    }
    upstreams
}

/// The upstreams as these workers know them.
pub fn of_workers(statuses: &[&Arc<WorkerStatus>], transport: Transport) -> Vec<UpstreamStatus> {
    let upstreams = by_address(statuses).into_iter();
    upstreams.map(|(address, servers)| UpstreamStatus::new(address, &servers, transport)).collect()
}

/// The text of `sixfold ctl upstreams`: a line for each, with addresses and transports in columns.
pub async fn upstreams(server: &ServerHandle) -> String {
    table(&upstream_statuses(server).await)
}

fn table(upstreams: &[UpstreamStatus]) -> String {
    let width = upstreams.iter().map(|upstream| upstream.address.to_string().len()).max().unwrap_or(0);
    upstreams
        .iter()
        .map(|upstream| format!("{:<width$} {upstream}\n", upstream.address.to_string()))
        .collect()
}

/// The objects of `sixfold ctl upstreams --json`.
pub async fn upstreams_json(server: &ServerHandle) -> Vec<Value> {
    upstream_statuses(server).await.iter().map(UpstreamStatus::to_json).collect()
}

/// The upstreams in the order of the configuration, each as every worker knows it.
fn by_address<'s>(statuses: &[&'s Arc<WorkerStatus>]) -> Vec<(SocketAddr, Vec<&'s Server>)> {
    let mut upstreams: Vec<(SocketAddr, Vec<&Server>)> = Vec::new();
    for server in statuses.iter().flat_map(|status| &status.servers) {
        match upstreams.iter_mut().find(|(address, _)| *address == server.address) {
            Some((_, servers)) => servers.push(server),
            None => upstreams.push((server.address, vec![server])),
        }
    }
    upstreams
}

/// The trouble that the workers have with an upstream.
fn trouble(servers: &[&Server]) -> Option<Trouble> {
    Trouble::join(servers.iter().filter_map(|server| server.trouble()), datapath::now())
}

/// Mean of the round trips of the workers that have measured one.
fn mean(round_trips: &[Option<Span>]) -> Option<Span> {
    let measured: Vec<u64> = round_trips.iter().flatten().map(|span| span.0).collect();
    let count = measured.len() as u64;
    (count > 0).then(|| Span(measured.iter().sum::<u64>() / count))
}

/// True if at least one worker asks the upstream in its turn, or as the last one while it probes it or because it strips signatures: it
/// answers. Other workers may not have asked it for a while.
pub fn is_up(states: &[BreakerState]) -> bool {
    let is_up = |state: &BreakerState| {
        matches!(state, BreakerState::Closed | BreakerState::HalfOpen | BreakerState::Strips)
    };
    states.iter().any(is_up)
}

/// The workers that do not ask an upstream in its turn, and why. None: all of them do.
pub fn details(states: &[BreakerState]) -> Option<String> {
    let all = states.len();
    let told = [BreakerState::Open, BreakerState::Failing, BreakerState::Strips, BreakerState::HalfOpen];
    let parts: Vec<String> = told
        .into_iter()
        .filter_map(|state| {
            let workers = states.iter().filter(|&&other| other == state).count();
            let (one, more) = match state {
                BreakerState::Open => ("has stopped asking it", "have stopped asking it"),
                BreakerState::Failing => (
                    "asks it last, because it replies with errors",
                    "ask it last, because it replies with errors",
                ),
                BreakerState::Strips => (
                    "asks it last, because it strips signatures",
                    "ask it last, because it strips signatures",
                ),
                BreakerState::HalfOpen | BreakerState::Closed => {
                    ("probes it, because it was silent", "probe it, because it was silent")
                }
            };
            let words = if workers == 1 { one } else { more };
            (workers > 0).then(|| format!("{workers} of {all} workers {words}"))
        })
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use BreakerState::{Closed, Failing, HalfOpen, Open, Strips};
    use engine::Unreachable;
    use engine::upstream::Cause;

    #[test]
    fn the_round_trip_is_that_of_all_workers_that_have_measured_one() {
        let ms = |ms| Some(Span::from_millis(ms));
        assert_eq!(mean(&[None, ms(4)]), ms(4));
        assert_eq!(mean(&[ms(2), None, ms(4)]), ms(3));
        assert_eq!(mean(&[None, None]), None);
    }

    #[test]
    fn the_lines_about_upstreams_are_a_table() {
        let upstream = |address: &str, up, round_trip| UpstreamStatus {
            address: address.parse().unwrap(),
            transport: "udp",
            in_lower_case: up,
            up,
            strips: false,
            details: (!up).then(|| "1 of 1 workers has stopped asking it".into()),
            trouble: (!up).then(|| Trouble {
                since: UNIX_EPOCH + Duration::from_secs(1_700_000_000),
                tries: 7_779,
                cause: Cause::Unreachable(Unreachable::PortRefused),
            }),
            round_trip,
            questions: 7,
            failures: 1,
            tls_failure: None,
        };
        let all = [
            upstream("192.0.2.53:53", true, Some(Span::from_millis(4))),
            upstream("[2001:db8::1]:53", false, None),
        ];
        assert_eq!(
            table(&all),
            "192.0.2.53:53    udp up,   round trip 4.0 ms, 7 questions, 1 failures; asked in lower case, because it changes letters\n\
             [2001:db8::1]:53 udp down, round trip not measured, 7 questions, 1 failures; \
             since 2023-11-14T22:13:20Z: port refused (7779 failed attempts); 1 of 1 workers has stopped asking it\n"
        );
        let stripping = UpstreamStatus { strips: true, ..upstream("192.0.2.53:53", true, None) };
        assert!(table(&[stripping]).starts_with("192.0.2.53:53 udp strips, round trip"));
    }

    #[test]
    fn the_file_of_the_configuration_is_told_with_its_whole_path() {
        let folder = std::env::current_dir().unwrap();
        assert_eq!(source(Some(Path::new("s.toml"))), folder.join("s.toml").display().to_string());
        assert_eq!(source(Some(Path::new("/etc/s.toml"))), "/etc/s.toml");
        assert_eq!(source(None), "defaults and flags");
    }

    #[test]
    fn the_state_of_an_upstream_is_told_with_the_workers_that_do_not_ask_it() {
        for (states, up, told) in [
            (&[Closed, Closed][..], true, None),
            (&[Open, Open], false, Some("2 of 2 workers have stopped asking it")),
            (&[Closed, Open], true, Some("1 of 2 workers has stopped asking it")),
            (&[HalfOpen], true, Some("1 of 1 workers probes it, because it was silent")),
            (&[Strips, Closed], true, Some("1 of 2 workers asks it last, because it strips signatures")),
            (&[Strips, Strips], true, Some("2 of 2 workers ask it last, because it strips signatures")),
            (
                &[Failing, Open, Failing],
                false,
                Some(
                    "1 of 3 workers has stopped asking it, 2 of 3 workers ask it last, because it replies with errors",
                ),
            ),
        ] {
            assert_eq!((is_up(states), details(states).as_deref()), (up, told), "{states:?}");
        }
    }
}
