//! The prefixes for operators: `sixfold ctl prefixes`, the status, and metrics.

use super::sources::trouble_text;
use super::state::{Prefixes, State as Locked, answers_with};
use crate::config::{is_same, prefixes};
use crate::date;
use engine::Span;
use engine::counters::COUNTED_PREFIXES;
use engine::dns64::gateways::PrefixState;
use gateways::{Failure, Liveness, Source};
use pref64::Pref64;
use serde_json::{Value, json};
use std::fmt;
use std::time::{Duration, SystemTime};

/// State of a prefix, as one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nobody probes its gateway, or no probe has an outcome yet.
    Unprobed,
    /// Probes are answered.
    Up,
    /// Probes fail.
    Down,
    /// It drains, and its gateway is not known to be down.
    Draining,
}

impl State {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            State::Unprobed => "unprobed",
            State::Up => "up",
            State::Down => "down",
            State::Draining => "draining",
        }
    }

    /// True if new answers have the prefix.
    pub fn is_up(self) -> bool {
        matches!(self, State::Unprobed | State::Up)
    }
}

/// A prefix in use.
pub struct PrefixStatus {
    /// The prefix.
    pub prefix: Pref64,
    /// `configured`, or those from whom it was discovered.
    pub origin: String,
    /// Its state.
    pub state: State,
    /// Begin of the state.
    pub since: SystemTime,
    /// Reason why its gateway is down.
    pub failure: Option<Failure>,
    /// Share of the client networks that have left it, in percent, while it drains over a time.
    pub left_percent: Option<u8>,
    /// Round trip of the latest probe that was answered.
    pub round_trip: Option<Span>,
    /// Share of the client networks.
    pub weight: u32,
    /// Answers with it since the start. None: they are not counted.
    pub answers: Option<u64>,
    /// Answers with it in the last minute.
    pub last_minute: Option<u64>,
}

impl PrefixStatus {
    fn round_trip_ms(&self) -> Option<f64> {
        self.round_trip.map(|span| span.as_secs_f64() * 1e3)
    }

    /// The object of `sixfold ctl prefixes --json`.
    fn to_json(&self) -> Value {
        json!({
            "prefix": self.prefix.to_string(),
            "source": self.origin,
            "state": self.state.word(),
            "since": date::utc(self.since),
            "reason": self.failure.map(Failure::code),
            "left_percent": self.left_percent,
            "round_trip_ms": self.round_trip_ms(),
            "weight": self.weight,
            "answers": self.last_minute,
        })
    }
}

impl fmt::Display for PrefixStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `draining` and `unprobed` have eight letters.
        write!(f, "{} {:<8} since {}", self.origin, self.state.word(), date::utc(self.since))?;
        write!(f, ", weight {}", self.weight)?;
        match self.round_trip_ms() {
            Some(milliseconds) => write!(f, ", round trip {milliseconds:.1} ms")?,
            None => f.write_str(", round trip not measured")?,
        }
        match self.last_minute {
            Some(answers) => write!(f, ", {answers} answers in the last minute")?,
            None => f.write_str(", answers not counted")?,
        }
        self.failure.map_or(Ok(()), |failure| write!(f, "; {failure}"))?;
        self.left_percent.map_or(Ok(()), |percent| write!(f, "; {percent} % of its clients have left it"))
    }
}

/// A source of prefixes that has told of none.
pub struct EmptySource {
    /// The source, as the configuration names it.
    pub source: String,
    /// The reason.
    pub why: String,
}

impl EmptySource {
    /// The object of `sixfold ctl prefixes --json`.
    fn to_json(&self) -> Value {
        json!({ "prefix": null, "source": self.source, "state": "undiscovered", "reason": self.why })
    }
}

impl Prefixes {
    /// The sources that have told of no prefix.
    pub fn empty_sources(&self) -> Vec<EmptySource> {
        let state = self.lock();
        let discovery = &state.discovery;
        let is_empty = |source: &&Source| discovery.found(source).is_empty();
        let of = |source: &Source| {
            let why = match source {
                Source::Upstream => {
                    discovery.trouble().map_or("it has not answered yet", trouble_text).to_owned()
                }
                Source::Interface(name) if discovery.is_missing(name) => {
                    format!("there is no interface {name}")
                }
                Source::Interface(_) => "no router has announced a prefix".to_owned(),
            };
            EmptySource { source: source.to_string(), why }
        };
        discovery.sources().filter(is_empty).map(of).collect()
    }

    /// The general prefixes in use.
    pub fn general(&self) -> Vec<Pref64> {
        self.lock().plan.in_use().engine_prefixes()
    }

    /// The general prefixes in one line, each with its state if new answers do not have it, and the sources that have told of none.
    pub fn line(&self, statuses: &[PrefixStatus]) -> String {
        let state = self.lock();
        let shown = state.plan.in_use().prefixes.iter().map(|entry| {
            let Some(prefix) = entry.prefix() else { return format!("{entry} (nothing found)") };
            let status = statuses.iter().find(|status| status.prefix == *prefix);
            match status.filter(|status| !status.state.is_up()) {
                Some(status) => format!("{prefix} ({})", status.state.word()),
                None => prefix.to_string(),
            }
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    /// The prefixes in use, up to the number whose answers are counted. `started`: begin of the process; `answers`: those so far.
    pub fn statuses(&self, started: SystemTime, answers: &[(Pref64, u64)]) -> Vec<PrefixStatus> {
        let (now, clock) = (datapath::now(), SystemTime::now());
        let at = |past: engine::Instant| clock - Duration::from_nanos((now - past).0);
        let state = self.lock();
        let is_counted = state.gateways(now).is_some();
        let of = |of: &engine::dns64::gateways::TablePrefix| {
            let status = state.monitor.status(&of.prefix);
            let (word, since) = match (status.liveness, status.drain) {
                (Liveness::Down, _) => (State::Down, status.since),
                (_, Some(drain)) => (State::Draining, Some(drain.since)),
                (Liveness::Up, None) => (State::Up, status.since),
                (Liveness::Unprobed, None) => (State::Unprobed, status.since),
            };
            let left_percent = match status.drain.map(|drain| drain.state(now)) {
                Some(PrefixState::Leaving(share)) => Some(((u64::from(share) * 100) >> 32) as u8),
                _ => None,
            };
            let count = answers_with(answers, &of.prefix);
            let (origin, found) = origin(&state, &of.prefix);
            let since = since.or(found);
            PrefixStatus {
                prefix: of.prefix,
                origin,
                state: word,
                since: since.map_or(started, at),
                failure: status.failure.filter(|_| word == State::Down),
                left_percent,
                round_trip: status.round_trip,
                weight: of.weight,
                answers: is_counted.then_some(count),
                last_minute: is_counted.then(|| count.saturating_sub(self.answers_before(&of.prefix))),
            }
        };
        state.plan.table().prefixes().take(COUNTED_PREFIXES).map(of).collect()
    }
}

/// Where a prefix comes from, and the time at which it was discovered.
fn origin(state: &Locked, prefix: &Pref64) -> (String, Option<engine::Instant>) {
    let of_this = |one: &&gateways::Announcement| is_same(&one.prefix, prefix);
    let told: Vec<_> = state.discovery.announcements().filter(of_this).collect();
    if told.is_empty() || prefixes(&state.plan.configured().prefixes).any(|own| is_same(own, prefix)) {
        return ("configured".to_owned(), None);
    }
    let whom: Vec<String> = told.iter().map(|one| one.from.to_string()).collect();
    (format!("discovered from {}", whom.join(", ")), told.iter().map(|one| one.since).min())
}

/// The lines of `sixfold ctl prefixes`.
pub fn text(statuses: &[PrefixStatus], empty: &[EmptySource]) -> String {
    let width = statuses.iter().map(|status| status.prefix.to_string().len()).max().unwrap_or(0);
    let prefixes = statuses.iter().map(|status| format!("{:<width$} {status}\n", status.prefix.to_string()));
    prefixes.chain(empty.iter().map(|one| format!("{} has no prefix: {}\n", one.source, one.why))).collect()
}

/// The objects of `sixfold ctl prefixes --json`.
pub fn objects(statuses: &[PrefixStatus], empty: &[EmptySource]) -> Vec<Value> {
    statuses.iter().map(PrefixStatus::to_json).chain(empty.iter().map(EmptySource::to_json)).collect()
}

/// Lines about the prefixes that new answers do not have, and about sources without prefixes.
pub fn trouble(statuses: &[PrefixStatus], empty: &[EmptySource]) -> String {
    let line = |status: &PrefixStatus| {
        let (word, since) = (status.state.word(), date::utc(status.since));
        format!("prefix {} {word} since {since}\n", status.prefix)
    };
    let prefixes = statuses.iter().filter(|status| !status.state.is_up()).map(line);
    prefixes.chain(empty.iter().map(|one| format!("{} has no prefix: {}\n", one.source, one.why))).collect()
}
