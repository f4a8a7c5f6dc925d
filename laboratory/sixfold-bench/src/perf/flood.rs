//! Experiment 3, second part: clients send several times the rate that Sixfold can answer: one network beside others, one network
//! alone, and a thousand networks that send equally much. The experiment shows how much is answered during the flood, how late, the
//! effect on other clients, and the time to recover.

use crate::perf::device::{Device, Running};
use crate::perf::kind::Setup;
use crate::perf::limits;
use crate::perf::mixed_load::{MixedTester, Phase, QueryKind, Report};
use crate::perf::networks;
use crate::perf::quota::Quota;
use crate::perf::section::{Bound, Goal, cell, summary, table_of};
use crate::perf::series::Timing;
use crate::perf::tester::Pace;
use report::table::Table;
use serde_json::{Value, json};
use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Lowest rate of right answers in time under overload, as a share of that at the peak.
const GOODPUT: f64 = 0.95;

/// Highest 99th percentile of the latency a second after a flood, as a multiple of that before.
const LATENCY: f64 = 1.2;

/// Lowest share of the well-behaved clients' queries that get a right answer in time.
const KEPT: f64 = 0.999;

/// A rate counts as offered if the sender reached this share of it.
const OFFERED: f64 = 0.95;

/// Shares of the closed-loop rate at which the peak is searched for.
const STEPS: [f64; 3] = [0.9, 1.0, 1.1];

/// Highest 99th percentile of the latency of answers during a flood that harms nobody else, in milliseconds.
const FLOOD_LATENCY: f64 = 50.0;

/// Kinds of queries, and their names in the tables. The last one is left out where one network floods beside others.
const QUERY_KINDS: [(QueryKind, &str); 3] =
    [(QueryKind::Cached, "cached"), (QueryKind::HalfMisses, "50 % misses"), (QueryKind::Misses, "misses")];

/// The clients of a flood.
struct Senders {
    title: &'static str,
    /// Addresses that send several times the peak.
    crowd: Vec<IpAddr>,
    /// Networks that always send little. If there are none, all clients are alike.
    others: Vec<IpAddr>,
    /// Rate of the others, as a share of the peak.
    others_part: f64,
}

impl Senders {
    fn all() -> [Senders; 3] {
        let alike = |title, crowd| Senders { title, crowd, others: vec![], others_part: 0.0 };
        [
            Senders {
                title: "one network floods",
                crowd: networks::crowd(),
                others: networks::others(limits::OTHERS),
                others_part: limits::OTHERS_PART,
            },
            alike("one network alone", networks::crowd()),
            alike("a thousand networks alike", networks::others(limits::EQUAL_NETWORKS)),
        ]
    }

    fn are_alike(&self) -> bool {
        self.others.is_empty()
    }

    /// Each kind of query, and its name.
    fn kinds(&self) -> &'static [(QueryKind, &'static str)] {
        if self.are_alike() { &QUERY_KINDS } else { &QUERY_KINDS[..2] }
    }
}

/// One round with one kind of queries.
struct Round {
    peak: f64,
    before: Report,
    /// For each of [`limits::FLOODS`]: the flood, and the time that starts [`limits::RECOVERY`] after it.
    floods: Vec<(Report, Report)>,
    /// A flood of names for which the upstream sends no reply, at the highest rate. Only beside others.
    silent: Option<Report>,
    /// Messages that the tester's sockets dropped in all phases: above 0 the tester was the limit.
    dropped: u64,
}

/// Results: tables, goals, all data.
pub struct Measured {
    /// One table for each kind of queries.
    pub tables: Vec<Table>,
    /// Goals and their measured values.
    pub goals: Vec<Goal>,
    /// Every measurement.
    pub data: Value,
}

/// Description of the measurement.
pub fn note() -> String {
    format!(
        "One network floods: a /64 with {} addresses, a port each, sends the given multiple of the peak; {} others, each \
         a /64 of its own, always send {} of the peak together. One network alone: the others are left out. A thousand \
         networks alike: {} networks send the multiple together, each an equal part. Queries are sent alone, except \
         those of the flood, 16 at a time from one port. Sixfold has its default limits and the quota above, and listens on the loopback \
         interface of a network namespace. An answer counts if it is right and arrives within {} ms. Peak: the best \
         of a closed loop of {} and of open loops at {STEPS:?} of its rate. Latency before and after is measured at \
         {} of the peak, after from {} s after the end of the flood. `kept`: the share of the others' queries that \
         got a right answer in time. `silent`: all names of the flood are new and the upstream sends no reply for \
         them; the flood's answers are refusals and failures. The tester, which is the authoritative server too, is behind in turns of its \
         loop beyond {} ms.",
        limits::PORTS,
        limits::OTHERS,
        limits::OTHERS_PART,
        limits::EQUAL_NETWORKS,
        limits::USEFUL_WITHIN.as_millis(),
        limits::WINDOW,
        limits::NORMAL_LOAD_PART,
        limits::RECOVERY.as_secs(),
        limits::LATE_TURN.as_millis(),
    )
}

/// Floods Sixfold in rounds. Sixfold is restarted for each kind of queries.
///
/// # Errors
///
/// The device cannot be started, gives no right answer, or a socket fails.
pub fn measure(device: &Device, timing: Timing) -> io::Result<Measured> {
    let mut tester = MixedTester::new()?;
    let mut measured = Measured { tables: vec![], goals: vec![], data: Value::Null };
    let mut data = serde_json::Map::new();
    for senders in Senders::all() {
        for (ask, name) in senders.kinds() {
            let mut rounds = vec![];
            for number in 1..=timing.rounds {
                eprintln!("overload: round {number} of {}, {}, {name}", timing.rounds, senders.title);
                rounds.push(round(&mut tester, device, *ask, timing, &senders)?);
            }
            let name = format!("{}, {name}", senders.title);
            measured.tables.push(table(&name, &rounds));
            measured.goals.extend(goals(&name, &rounds, senders.are_alike()));
            data.insert(name, rounds.iter().map(json).collect());
        }
    }
    Ok(Measured { data: data.into(), ..measured })
}

fn round(
    tester: &mut MixedTester,
    device: &Device,
    ask: QueryKind,
    timing: Timing,
    senders: &Senders,
) -> io::Result<Round> {
    let setup = Setup { quota: Some(Quota::new(1)?), as_shipped: true, ..Setup::default() };
    let running = device.start(tester.upstream(), setup)?;
    let dropped = tester.dropped();
    let mut run_phases = |phases: &[Phase]| tester.run(&running, &senders.crowd, &senders.others, phases);
    fill(&mut run_phases, &running)?;
    let part = senders.others_part;
    let of = |crowd, length, peak: f64| Phase { length, crowd, ask, group: 1, others: part * peak };
    let short = timing.window / 2;
    let closed = run_phases(&[of(Pace::Closed(limits::WINDOW), short, 0.0)])?[0].goodput();
    let steps = STEPS.map(|step| of(Pace::Open(step * closed), short, 0.0));
    let peak = run_phases(&steps)?.iter().map(Report::goodput).fold(closed, f64::max);
    let at_ease = |length| of(Pace::Open(limits::NORMAL_LOAD_PART * peak), length, peak);
    // The tester reaches this rate only with groups; the note of the page says so.
    let group = limits::SEGMENTS as u64;
    let flood = |times: f64| Phase { group, ..of(Pace::Open((times - part) * peak), timing.window, peak) };
    let mut phases = vec![at_ease(timing.warm_up), at_ease(timing.window)];
    for times in limits::FLOODS {
        phases.extend([flood(times), at_ease(limits::RECOVERY), at_ease(timing.window)]);
    }
    if !senders.are_alike() {
        let most = limits::FLOODS.into_iter().fold(0.0, f64::max);
        phases.push(Phase { ask: QueryKind::Silent, ..flood(most) });
    }
    let mut reports = run_phases(&phases)?.into_iter().skip(1);
    let mut next = || reports.next().unwrap_or_default();
    let before = next();
    let floods = limits::FLOODS.map(|_| {
        let (flood, _, after) = (next(), next(), next());
        (flood, after)
    });
    let silent = reports.next();
    Ok(Round { peak, before, floods: floods.into(), silent, dropped: tester.dropped() - dropped })
}

/// Asks for the cached names until all are answered.
fn fill(
    run_phases: &mut impl FnMut(&[Phase]) -> io::Result<Vec<Report>>,
    running: &Running,
) -> io::Result<()> {
    let gentle = Phase {
        length: limits::CACHED_FILL,
        crowd: Pace::Open(limits::COMMON_RATE),
        ask: QueryKind::Cached,
        group: 1,
        others: 0.0,
    };
    let start = Instant::now();
    loop {
        // The device may still be starting.
        let tried = run_phases(&[Phase { length: Duration::from_millis(100), ..gentle }])?;
        if tried[0].crowd.useful > 0 {
            break;
        }
        if start.elapsed() > limits::READY_TIMEOUT {
            return Err(io::Error::other(format!("no right answer from {}", running.address)));
        }
    }
    run_phases(&[gentle]).map(|_| ())
}

fn each(rounds: &[Round], figure: impl Fn(&Round) -> f64) -> Vec<f64> {
    rounds.iter().map(figure).collect()
}

fn table(name: &str, rounds: &[Round]) -> Table {
    let row = |what: String, report: &dyn Fn(&Round) -> &Report, after: Option<usize>| {
        vec![
            what,
            cell(&each(rounds, |round| report(round).offered() / round.peak), 2),
            cell(&each(rounds, |round| report(round).goodput() / round.peak * 100.0), 1),
            cell(&each(rounds, |round| report(round).others.kept() * 100.0), 2),
            cell(&each(rounds, |round| report(round).others.p99_ms()), 1),
            cell(&each(rounds, |round| report(round).crowd.p99_ms()), 1),
            after.map_or_else(
                || "-".to_owned(),
                |at| cell(&each(rounds, |round| latency_ratio(round, at)), 2),
            ),
            cell(&each(rounds, |round| report(round).cost_us()), 1),
            rounds
                .iter()
                .map(|round| report(round).crowd.late + report(round).others.late)
                .sum::<u64>()
                .to_string(),
            cell(&each(rounds, |round| report(round).behind() * 100.0), 2),
        ]
    };
    let mut rows = vec![row("before".to_owned(), &|round| &round.before, None)];
    for (at, times) in limits::FLOODS.iter().enumerate() {
        rows.push(row(format!("{times} x"), &|round| &round.floods[at].0, Some(at)));
    }
    if rounds.iter().all(|round| round.silent.is_some()) {
        rows.push(row("silent".to_owned(), &|round| round.silent.as_ref().unwrap_or(&round.before), None));
    }
    let dropped: u64 = rounds.iter().map(|round| round.dropped).sum();
    let peak = cell(&each(rounds, |round| round.peak), 0);
    table_of(
        format!("{name}: peak {peak} answers/s, the tester dropped {dropped} messages"),
        &[
            "flood",
            "offered/peak",
            "% of peak",
            "others kept %",
            "others p99 ms",
            "crowd p99 ms",
            "p99 after/before",
            "CPU us/answer",
            "late",
            "tester behind %",
        ],
        rows,
    )
}

/// Latency of all clients after a flood as a multiple of that before.
fn latency_ratio(round: &Round, at: usize) -> f64 {
    let p99 = |report: &Report| {
        let mut whole = report.crowd.clone();
        whole.delays_us.extend_from_slice(&report.others.delays_us);
        whole.p99_ms()
    };
    p99(&round.floods[at].1) / p99(&round.before)
}

fn goals(name: &str, rounds: &[Round], are_alike: bool) -> Vec<Goal> {
    let mut goals = Vec::new();
    for (at, times) in limits::FLOODS.iter().enumerate() {
        let offered = summary(&each(rounds, |round| round.floods[at].0.offered() / round.peak));
        // Below this share, the tester was the limit.
        let enough = offered.is_some_and(|offered| offered.median >= OFFERED * times);
        let mut add = |ratio: &str, bound, figure: &dyn Fn(&Round) -> f64| {
            let measured = summary(&each(rounds, figure)).filter(|_| enough);
            goals.push(Goal { ratio: format!("{name}, {times} x the peak: {ratio}"), bound, measured });
        };
        add("goodput / peak", Bound::AtLeast(GOODPUT), &|round| round.floods[at].0.goodput() / round.peak);
        add("p99 one second after / before", Bound::AtMost(LATENCY), &|round| latency_ratio(round, at));
        match are_alike {
            true => {
                add("p99 in ms", Bound::AtMost(FLOOD_LATENCY), &|round| round.floods[at].0.crowd.p99_ms())
            }
            false => add("well-behaved clients keep", Bound::AtLeast(KEPT), &|round| {
                round.floods[at].0.others.kept()
            }),
        }
    }
    if !are_alike {
        goals.push(Goal {
            ratio: format!("{name}, names that nobody answers: well-behaved clients keep"),
            bound: Bound::AtLeast(KEPT),
            measured: summary(&each(rounds, |round| {
                round.silent.as_ref().map_or(f64::NAN, |silent| silent.others.kept())
            })),
        });
    }
    goals
}

fn json(round: &Round) -> Value {
    let side = |tally: &crate::perf::mixed_load::Tally| json!({"sent": tally.sent, "useful": tally.useful, "came": tally.came, "late": tally.late, "wrong": tally.wrong, "p99_ms": tally.p99_ms()});
    let report = |report: &Report| json!({"seconds": report.seconds, "cpu_seconds": report.cpu, "tester_behind_seconds": report.behind, "crowd": side(&report.crowd), "others": side(&report.others)});
    let floods: Value = limits::FLOODS
        .iter()
        .zip(&round.floods)
        .map(
            |(times, (flood, after))| json!({"times": times, "flood": report(flood), "after": report(after)}),
        )
        .collect();
    json!({"peak_answers_per_second": round.peak, "before": report(&round.before), "floods": floods, "silent": round.silent.as_ref().map(report), "dropped_by_tester": round.dropped})
}
