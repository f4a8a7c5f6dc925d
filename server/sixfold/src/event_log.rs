//! Events of the workers in the log: upstreams that fail and recover, clients that are refused, workers that do not respond.
//!
//! The workers write no log. Once a second the control thread asks each of them for the state of its upstreams and for the clients
//! that it refused, and compares them with what it knew. Each kind of line has a limit, as upstreams may fail and recover all the
//! time, and as anybody can forge the source addresses of refused queries.

use crate::config::Config;
use crate::date;
use crate::log_line::Line;
use crate::policy_hits;
use crate::running_server::{SILENT_WORKER, ServerHandle, WORKER_TIMEOUT};
use crate::status::{details, is_up};
use crate::stream_events::{StreamEvents, Streams};
use crate::upstream_trouble::Trouble;
use crate::zone_outages::ZoneOutages;
use datapath::sources::SourceChange;
use datapath::tls_upstreams::TlsFailure;
use engine::upstream::{BreakerState, Server, Unanswered};
use engine::{Engine, RefusedClients};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::oneshot::Receiver;
use tracing::Level;

/// Time between two looks at the workers.
const PERIOD: Duration = Duration::from_secs(1);

/// Time between two lines about one upstream.
const UPSTREAM_PAUSE: Duration = Duration::from_secs(5);

/// Time between two lines about one refused client network, and about all the networks that have no lines of their own.
const REFUSAL_PAUSE: Duration = Duration::from_secs(60);

/// Lines about refused client networks in each [`REFUSAL_PAUSE`]: 20 a minute are 3 MiB of log a day in the worst case.
const REFUSAL_LINES: u32 = 20;

/// The state of one worker, and its refusals since the last look.
struct Observation {
    upstreams: Vec<(SocketAddr, Seen)>,
    streams: Vec<(SocketAddr, Streams)>,
    refused: Box<RefusedClients>,
    /// Pending queries, questions in flight, open links.
    load: [usize; 3],
    /// Queries since the last look that the upstreams of each list did not answer.
    unanswered: Vec<(Vec<SocketAddr>, Unanswered)>,
    /// All forwarders strip signatures.
    has_only_stripping: bool,
}

/// One upstream, as one worker sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    state: BreakerState,
    trouble: Option<engine::upstream::Trouble>,
    /// Replies so far.
    replies: u64,
}

impl Seen {
    fn of(server: &Server) -> Seen {
        Seen { state: server.state(), trouble: server.trouble(), replies: server.replies() }
    }

    /// True if the worker does not ask the upstream in its turn, or gets nothing but errors from it.
    fn is_trouble(&self) -> bool {
        match self.state {
            BreakerState::Open | BreakerState::Failing => true,
            BreakerState::Closed => self.trouble.is_some(),
            // It has lines of its own.
            BreakerState::HalfOpen | BreakerState::Strips => false,
        }
    }
}

impl Observation {
    fn of(engine: &mut Engine) -> Observation {
        Observation {
            upstreams: engine.servers().map(|server| (server.address, Seen::of(server))).collect(),
            streams: engine.servers().map(|server| (server.address, Streams::of(server))).collect(),
            refused: Box::new(engine.take_refused_clients()),
            load: [engine.pending(), engine.outbound_queries(), engine.open_links()],
            unanswered: engine.take_unanswered(),
            has_only_stripping: engine.has_only_stripping_forwarders(),
        }
    }
}

/// Writes the log until the server stops.
pub async fn run(server: Arc<ServerHandle>) {
    let mut events = Events::default();
    let mut looks = Vec::new();
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let observations = look(&server, &mut looks).await;
        policy_hits::log(&server.policy_hits);
        // Workers that stop do not respond.
        if server.draining.load(Ordering::Relaxed) {
            return;
        }
        let refused = REFUSED_CONNECTIONS.map(|(counter, _)| server.streams.counter(counter));
        let now = server.started.elapsed();
        let mut lines = events.observe(now, &observations, refused);
        lines.extend(events.observe_outages(now, &server.config(), &observations));
        events.observe_tls(now, server.workers.tls_upstreams().take_failures(), &mut lines);
        lines.extend(server.workers.sources().take_changes().into_iter().map(source_line));
        lines.iter().for_each(Line::write);
    }
}

/// The line about an address of `upstream.source` that the machine has lost, or has again.
fn source_line(SourceChange { address, is_missing }: SourceChange) -> Line {
    if is_missing {
        let text = format!(
            "no question can leave from {address}: this machine does not have the address; give it to an interface, or take it out of \
             `upstream.source`"
        );
        Line::new(Level::ERROR, "upstream_source_missing", text)
    } else {
        Line::new(Level::INFO, "upstream_source_present", format!("questions leave from {address} again"))
    }
}

/// Looks at every worker. None for a worker that does not respond in time. `looks` has the looks that are under way: such a worker
/// gets no second task, as its mailbox has room for few, and its refusals are not lost.
async fn look(
    server: &ServerHandle,
    looks: &mut Vec<Option<Receiver<Observation>>>,
) -> Vec<Option<Observation>> {
    looks.resize_with(server.workers.workers(), || None);
    for (worker, look) in looks.iter_mut().enumerate() {
        if look.is_none() {
            *look = server.submit(worker, |engine, _| Observation::of(engine));
        }
    }
    let deadline = tokio::time::Instant::now() + WORKER_TIMEOUT;
    let mut observations = Vec::new();
    for look in looks {
        let observation = match look {
            Some(receiver) => tokio::time::timeout_at(deadline, receiver).await.ok(),
            None => None,
        };
        if observation.is_some() {
            *look = None;
        }
        observations.push(observation.and_then(Result::ok));
    }
    observations
}

/// Counters of client connections that were refused, and the reason of each.
const REFUSED_CONNECTIONS: [(transport::Counter, &str); 3] = [
    (transport::Counter::RefusedTotalLimit, "`limits.tcp-connections` are open"),
    (transport::Counter::RefusedClientLimit, "`limits.tcp-per-client` of one network are open"),
    (transport::Counter::AcceptFailed, "the system could not accept them"),
];

/// Everything that the log knows.
#[derive(Default)]
struct Events {
    /// The last load of each worker; none if it did not respond.
    workers: Vec<Option<[usize; 3]>>,
    upstreams: BTreeMap<SocketAddr, UpstreamEvents>,
    outages: ZoneOutages,
    streams: StreamEvents,
    /// Time of the last line about a handshake of TLS with each upstream.
    tls: BTreeMap<SocketAddr, Duration>,
    refusals: Refusals,
    refused_connections: [u64; 3],
    /// All forwarders of a worker strip signatures.
    has_only_stripping: bool,
}

impl Events {
    /// The lines for what has changed since the last look. `now` is the time since the start.
    fn observe(
        &mut self,
        now: Duration,
        observations: &[Option<Observation>],
        refused_connections: [u64; 3],
    ) -> Vec<Line> {
        let mut lines = Vec::new();
        self.observe_workers(observations, &mut lines);
        self.observe_upstreams(now, observations, &mut lines);
        lines.extend(self.signatures_line(observations));
        let streams = observations.iter().flatten().flat_map(|one| one.streams.iter().copied());
        lines.extend(self.streams.lines(streams));
        for observation in observations.iter().flatten() {
            self.refusals.add(&observation.refused);
        }
        self.refusals.lines(now, &mut lines);
        let before = std::mem::replace(&mut self.refused_connections, refused_connections);
        for (index, (_, reason)) in REFUSED_CONNECTIONS.iter().enumerate() {
            let more = refused_connections[index].saturating_sub(before[index]);
            if more > 0 {
                let text = format!("client connections refused: {more}, as {reason}");
                lines
                    .push(Line { count: Some(more), ..Line::new(Level::DEBUG, "connections_refused", text) });
            }
        }
        lines
    }

    /// The lines about zones for which nobody answers any more, or for which somebody answers again.
    fn observe_outages(
        &mut self,
        now: Duration,
        config: &Config,
        observations: &[Option<Observation>],
    ) -> Vec<Line> {
        // Without a worker that responds nothing is known.
        if observations.iter().flatten().next().is_none() {
            return Vec::new();
        }
        let silent = |(&address, upstream): (&SocketAddr, &UpstreamEvents)| {
            Some((address, upstream.without_answers(now)?))
        };
        let silent = self.upstreams.iter().filter_map(silent).collect();
        let mut unanswered = BTreeMap::<_, Unanswered>::new();
        for (upstreams, more) in observations.iter().flatten().flat_map(|one| &one.unanswered) {
            *unanswered.entry(upstreams.clone()).or_default() += *more;
        }
        self.outages.lines(now, config, &silent, &unanswered)
    }

    /// Handshakes of TLS with upstreams that failed: the reason is for the operator, and the metrics have the number.
    fn observe_tls(&mut self, now: Duration, failures: Vec<TlsFailure>, lines: &mut Vec<Line>) {
        self.tls.retain(|_, last| now.saturating_sub(*last) < UPSTREAM_PAUSE);
        for TlsFailure { address, name, text, fault } in failures {
            if let Entry::Vacant(place) = self.tls.entry(address) {
                place.insert(now);
                let text =
                    format!("upstream {address}: no TLS connection to {name}: {text}; {}", fault.remedy());
                lines.push(Line {
                    upstream: Some(address.to_string()),
                    reason: Some(fault.code()),
                    ..Line::new(Level::WARN, "upstream_tls_failed", text)
                });
            }
        }
    }

    /// The line for the first worker whose forwarders all strip signatures, or for the end of that in all of them.
    fn signatures_line(&mut self, observations: &[Option<Observation>]) -> Option<Line> {
        // Without a worker that responds nothing is known.
        observations.iter().flatten().next()?;
        let is_so = observations.iter().flatten().any(|one| one.has_only_stripping);
        let was_so = std::mem::replace(&mut self.has_only_stripping, is_so);
        match (was_so, is_so) {
            (false, true) => {
                let text = "no upstream passes on signatures (DNSSEC): all names that are to be validated get SERVFAIL; name a forwarder \
                            that passes them on, or set `dns64.dnssec` to \"trust\" or \"off\"";
                Some(Line::new(Level::ERROR, "signatures_missing", text.into()))
            }
            (true, false) => {
                let text = "an upstream passes on signatures again";
                Some(Line::new(Level::INFO, "signatures_present", text.into()))
            }
            _ => None,
        }
    }

    fn observe_workers(&mut self, observations: &[Option<Observation>], lines: &mut Vec<Line>) {
        let is_first = self.workers.is_empty();
        let loads: Vec<_> = observations.iter().map(|one| one.as_ref().map(|one| one.load)).collect();
        let before = std::mem::replace(&mut self.workers, loads);
        let of = |worker, level, event, text| Line { worker: Some(worker), ..Line::new(level, event, text) };
        for (worker, load) in self.workers.iter().enumerate() {
            match (before.get(worker).copied().flatten(), load) {
                (Some(_), None) => {
                    let text = format!("worker {worker} does not respond; {SILENT_WORKER}");
                    lines.push(of(worker, Level::WARN, "worker_silent", text));
                }
                (None, Some(_)) if !is_first => {
                    let text = format!("worker {worker} responds again");
                    lines.push(of(worker, Level::INFO, "worker_responds", text));
                }
                (Some(old), Some(new)) if old != *new => {
                    let [pending, outbound_queries, links] = new;
                    let text = format!(
                        "worker {worker}: {pending} pending queries, {outbound_queries} questions in flight, {links} links"
                    );
                    lines.push(of(worker, Level::TRACE, "worker_load", text));
                }
                _ => {}
            }
        }
    }

    fn observe_upstreams(
        &mut self,
        now: Duration,
        observations: &[Option<Observation>],
        lines: &mut Vec<Line>,
    ) {
        // A reload may have removed some. Without a worker that responds nothing is known.
        if observations.iter().flatten().next().is_some() {
            self.upstreams.retain(|address, _| {
                let has = |one: &Observation| one.upstreams.iter().any(|(other, _)| other == address);
                observations.iter().flatten().any(has)
            });
        }
        for (worker, observation) in observations.iter().enumerate() {
            for &(address, seen) in observation.iter().flat_map(|one| &one.upstreams) {
                let upstream = self.upstreams.entry(address).or_default();
                let before =
                    upstream.seen.insert(worker, seen).map_or(BreakerState::Closed, |seen| seen.state);
                if before != seen.state {
                    let (before, state) = (before.word(), seen.state.word());
                    let text = format!("upstream {address}: worker {worker}: {before} -> {state}");
                    lines.push(Line {
                        upstream: Some(address.to_string()),
                        worker: Some(worker),
                        reason: seen.trouble.map(|trouble| trouble.cause.code()),
                        ..Line::new(Level::DEBUG, "upstream_state", text)
                    });
                }
            }
        }
        for (address, upstream) in &mut self.upstreams {
            upstream.look(now);
            lines.extend(upstream.line(now, address));
            lines.extend(upstream.signatures_line(address));
        }
    }
}

/// Extent of the trouble with an upstream, over all workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Extent {
    /// All workers ask it.
    #[default]
    Nothing,
    /// Some workers do not ask it in its turn, or get nothing but errors from it.
    Some,
    /// No worker asks it in its turn.
    Down,
}

/// History of one upstream.
#[derive(Default)]
struct UpstreamEvents {
    /// The last observation of each worker.
    seen: BTreeMap<usize, Seen>,
    now: Extent,
    /// Extent in the last line.
    logged: Extent,
    last_line: Option<Duration>,
    /// Time at which the last trouble began, and time at which it ended.
    began: Duration,
    ended: Duration,
    /// Times that it failed or recovered since the last line.
    changes: u32,
    /// It strips signatures, as a worker has found.
    strips: bool,
    /// Replies to the workers without trouble, and the time at which there was a new one.
    replies: u64,
    replied: Duration,
}

/// Time after which workers without trouble, but without replies either, do not show that an upstream answers: they may ask nothing.
const WITHOUT_REPLIES: Duration = Duration::from_secs(2);

impl UpstreamEvents {
    /// Compares the present state with that of the last look.
    fn look(&mut self, now: Duration) {
        let states: Vec<BreakerState> = self.seen.values().map(|seen| seen.state).collect();
        let extent = match () {
            () if !is_up(&states) => Extent::Down,
            () if self.seen.values().any(Seen::is_trouble) => Extent::Some,
            () => Extent::Nothing,
        };
        match (self.now, extent) {
            (Extent::Nothing, Extent::Some | Extent::Down) => {
                self.began = now;
                self.changes += 1;
            }
            (Extent::Some | Extent::Down, Extent::Nothing) => {
                self.ended = now;
                self.changes += 1;
            }
            _ => {}
        }
        self.now = extent;
        let others = self.seen.values().filter(|seen| !seen.is_trouble());
        let replies = others.map(|seen| seen.replies).sum();
        if replies > self.replies {
            self.replied = now;
        }
        self.replies = replies;
    }

    /// The trouble with the upstream, in words and with its codes; none if no worker has any.
    fn trouble(&self) -> Option<Trouble> {
        let of_workers = self.seen.values().filter(|seen| seen.is_trouble()).filter_map(|seen| seen.trouble);
        Trouble::join(of_workers, datapath::now())
    }

    /// The trouble if the upstream answers no worker any more. A worker that does not ask it does not know.
    fn without_answers(&self, now: Duration) -> Option<Trouble> {
        let is_last = now - self.began.max(self.replied).min(now) >= WITHOUT_REPLIES;
        let is_out = self.seen.values().all(Seen::is_trouble) || self.now != Extent::Nothing && is_last;
        self.trouble().filter(|_| is_out)
    }

    /// The line for the present state, if there is something to say and the last line was long enough ago.
    fn line(&mut self, now: Duration, address: &SocketAddr) -> Option<Line> {
        let states: Vec<BreakerState> = self.seen.values().map(|seen| seen.state).collect();
        let extent = self.now;
        let is_news = extent > self.logged || extent == Extent::Nothing && self.logged != Extent::Nothing;
        if !is_news || self.last_line.is_some_and(|last| now - last < UPSTREAM_PAUSE) {
            return None;
        }
        let left_out = match self.changes.saturating_sub(1) {
            0 => String::new(),
            1 => "; 1 change before that is left out".into(),
            changes => format!("; {changes} changes before that are left out"),
        };
        (self.logged, self.last_line, self.changes) = (extent, Some(now), 0);
        let trouble = self.trouble();
        let why = trouble.as_ref().map(|trouble| format!(" {trouble}")).unwrap_or_default();
        let details = details(&states).map(|details| format!("; {details}")).unwrap_or_default();
        let remedy = trouble.as_ref().map(|trouble| format!("; {}", trouble.remedy())).unwrap_or_default();
        let (level, event, text) = match extent {
            Extent::Down => (Level::WARN, "upstream_down", format!("is down{why}{details}{remedy}")),
            Extent::Some => (Level::WARN, "upstream_trouble", format!("has trouble{why}{details}{remedy}")),
            Extent::Nothing => {
                let seconds = (self.ended - self.began).as_secs();
                (Level::INFO, "upstream_up", format!("answers again, after {seconds} s"))
            }
        };
        Some(Line {
            upstream: Some(address.to_string()),
            reason: trouble.as_ref().map(|trouble| trouble.cause.code()),
            since: trouble.as_ref().map(|trouble| date::utc(trouble.since)),
            count: trouble.as_ref().map(|trouble| trouble.tries),
            ..Line::new(level, event, format!("upstream {address} {text}{left_out}"))
        })
    }
}

impl UpstreamEvents {
    /// The line for the first worker that has found that the upstream strips signatures, or for the end of that in all of them.
    fn signatures_line(&mut self, address: &SocketAddr) -> Option<Line> {
        let strips = self.seen.values().any(|seen| seen.state == BreakerState::Strips);
        // Of a dead upstream nothing is known.
        if !strips && self.seen.values().all(|seen| seen.state == BreakerState::Open) {
            return None;
        }
        let (level, event, text) = match (std::mem::replace(&mut self.strips, strips), strips) {
            (false, true) => (
                Level::WARN,
                "upstream_strips",
                "strips signatures (DNSSEC), so it is asked last; it is checked again and again, and asked in its turn once it \
                 passes them on",
            ),
            (true, false) => (Level::INFO, "upstream_signs", "does not strip signatures any more"),
            _ => return None,
        };
        let line = Line::new(level, event, format!("upstream {address} {text}"));
        Some(Line { upstream: Some(address.to_string()), ..line })
    }
}

/// Client networks that are refused, with the queries that no line has told of.
#[derive(Default)]
struct Refusals {
    networks: BTreeMap<Ipv6Addr, Refusal>,
    /// The networks without lines of their own.
    others: Refusal,
    /// Begin of the present minute, and lines in it.
    minute: (Duration, u32),
}

#[derive(Default)]
struct Refusal {
    queries: u64,
    last_line: Option<Duration>,
}

impl Refusal {
    /// True if a line is due.
    fn is_due(&self, now: Duration) -> bool {
        self.queries > 0 && self.last_line.is_none_or(|last| now - last >= REFUSAL_PAUSE)
    }

    /// Number of queries for a line that is written now.
    fn take(&mut self, now: Duration) -> String {
        self.last_line = Some(now);
        match std::mem::take(&mut self.queries) {
            1 => "1 query".into(),
            queries => format!("{queries} queries"),
        }
    }
}

impl Refusals {
    fn add(&mut self, refused: &RefusedClients) {
        self.others.queries += refused.others();
        for (network, queries) in refused.networks() {
            self.networks.entry(network).or_default().queries += queries;
        }
    }

    /// Adds the lines that are due. Afterwards only networks that have had a line of their own are remembered: at most
    /// [`REFUSAL_LINES`] for each minute.
    fn lines(&mut self, now: Duration, lines: &mut Vec<Line>) {
        if now - self.minute.0 >= REFUSAL_PAUSE {
            self.minute = (now, 0);
        }
        for (&network, refusal) in &mut self.networks {
            if !refusal.is_due(now) {
                continue;
            }
            if self.minute.1 < REFUSAL_LINES {
                self.minute.1 += 1;
                let text = format!(
                    "refused {} of {}: not in server.allow (add the network there if it should be served)",
                    refusal.take(now),
                    Shown(network)
                );
                lines.push(Line::new(Level::INFO, "clients_refused", text));
            } else {
                self.others.queries += std::mem::take(&mut refusal.queries);
            }
        }
        self.networks.retain(|_, refusal| refusal.last_line.is_some_and(|last| now - last < REFUSAL_PAUSE));
        if self.others.is_due(now) {
            let text = format!(
                "refused {} of other networks: not in server.allow (`sixfold_refused_total` counts all)",
                self.others.take(now)
            );
            lines.push(Line::new(Level::INFO, "clients_refused", text));
        }
    }
}

/// A client network as the log shows it: an IPv4 address, an IPv6 /64, or an address that counts by itself.
struct Shown(Ipv6Addr);

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.to_ipv4_mapped() {
            Some(address) => write!(f, "{address}"),
            None if u128::from(self.0) as u64 == 0 => write!(f, "{}/64", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
#[path = "event_log_tests.rs"]
mod tests;
