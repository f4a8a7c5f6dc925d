//! Experiment 3, second part: one network sends several times the rate that Sixfold can answer. The experiment shows
//! how much is answered during the flood, the effect on other clients, and the time to recover.

use crate::device::{Device, Running, Setup};
use crate::limits;
use crate::mixed_load::{MixedTester, Pace, Phase, QueryKind, Report};
use crate::namespace;
use crate::quota::Quota;
use crate::report::{Bound, Goal, Table, cell};
use crate::series::Timing;
use crate::statistics::Summary;
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

/// Kinds of queries, and their names in the tables.
const QUERY_KINDS: [(QueryKind, &str); 2] =
    [(QueryKind::Cached, "cached"), (QueryKind::HalfMisses, "50 % misses")];

/// One round with one kind of queries.
struct Round {
    peak: f64,
    before: Report,
    /// For each of [`limits::FLOODS`]: the flood, and the time that starts [`limits::RECOVERY`] after it.
    floods: Vec<(Report, Report)>,
    /// A flood of names for which the upstream sends no reply, at the highest rate.
    silent: Report,
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
        "One network (a /64, {} addresses, a port each) sends the given multiple of the peak; {} others, each a /64 of \
         its own, always send {} of the peak together. Queries are sent alone, except those of the flood, 16 at a \
         time from one port. Sixfold has its default limits and the quota above, and listens on the loopback \
         interface of a network namespace. An answer counts if it is right and arrives within {} ms. Peak: the best \
         of a closed loop of {} and of open loops at {STEPS:?} of its rate. Latency before and after is measured at \
         {} of the peak, after from {} s after the end of the flood. `kept`: the share of the others' queries that \
         got a right answer in time. `silent`: all names of the flood are new and the upstream sends no reply for \
         them; the flood's answers are refusals and failures.",
        limits::PORTS,
        limits::OTHERS,
        limits::OTHERS_PART,
        limits::USEFUL_WITHIN.as_millis(),
        limits::WINDOW,
        limits::NORMAL_LOAD_PART,
        limits::RECOVERY.as_secs(),
    )
}

/// Floods Sixfold in rounds. Sixfold is restarted for each kind of queries.
pub fn measure(device: &Device, timing: Timing) -> io::Result<Measured> {
    let (crowd, others) = (namespace::crowd(), namespace::others(limits::OTHERS));
    let mut tester = MixedTester::new()?;
    let mut all: Vec<Vec<Round>> = QUERY_KINDS.iter().map(|_| Vec::new()).collect();
    for number in 1..=timing.rounds {
        for ((ask, name), rounds) in QUERY_KINDS.iter().zip(&mut all) {
            eprintln!("overload: round {number} of {}, one network floods, {name}", timing.rounds);
            rounds.push(round(&mut tester, device, *ask, timing, (&crowd, &others))?);
        }
    }
    let named = || QUERY_KINDS.iter().map(|(_, name)| *name).zip(&all);
    Ok(Measured {
        tables: named().map(|(name, rounds)| table(name, rounds)).collect(),
        goals: named().flat_map(|(name, rounds)| goals(name, rounds)).collect(),
        data: named().map(|(name, rounds)| (name, rounds.iter().map(json).collect::<Value>())).collect(),
    })
}

fn round(
    tester: &mut MixedTester,
    device: &Device,
    ask: QueryKind,
    timing: Timing,
    (crowd, others): (&[IpAddr], &[IpAddr]),
) -> io::Result<Round> {
    let setup = Setup { quota: Some(Quota::new(1)?), limits: "", ..Setup::default() };
    let running = device.start(tester.upstream(), setup)?;
    let mut run_phases = |phases: &[Phase]| tester.run(&running, crowd, others, phases);
    fill(&mut run_phases, &running)?;
    let of =
        |crowd, length, peak: f64| Phase { length, crowd, ask, group: 1, others: limits::OTHERS_PART * peak };
    let short = timing.window / 2;
    let closed = run_phases(&[of(Pace::Closed(limits::WINDOW), short, 0.0)])?[0].goodput();
    let steps = STEPS.map(|step| of(Pace::Open(step * closed), short, 0.0));
    let peak = run_phases(&steps)?.iter().map(Report::goodput).fold(closed, f64::max);
    let at_ease = |length| of(Pace::Open(limits::NORMAL_LOAD_PART * peak), length, peak);
    // The tester reaches this rate only with merged datagrams.
    let group = limits::SEGMENTS as u64;
    let flood = |times: f64| Phase {
        group,
        ..of(Pace::Open((times - limits::OTHERS_PART) * peak), timing.window, peak)
    };
    let mut phases = vec![at_ease(timing.warm_up), at_ease(timing.window)];
    for times in limits::FLOODS {
        phases.extend([flood(times), at_ease(limits::RECOVERY), at_ease(timing.window)]);
    }
    let most = limits::FLOODS.into_iter().fold(0.0, f64::max);
    phases.push(Phase { ask: QueryKind::Silent, ..flood(most) });
    let mut reports = run_phases(&phases)?.into_iter().skip(1);
    let mut next = || reports.next().unwrap_or_default();
    let before = next();
    let floods = limits::FLOODS.map(|_| {
        let (flood, _, after) = (next(), next(), next());
        (flood, after)
    });
    Ok(Round { peak, before, floods: floods.into(), silent: next() })
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
        ]
    };
    let mut rows = vec![row("before".to_owned(), &|round| &round.before, None)];
    for (at, times) in limits::FLOODS.iter().enumerate() {
        rows.push(row(format!("{times} x"), &|round| &round.floods[at].0, Some(at)));
    }
    rows.push(row("silent".to_owned(), &|round| &round.silent, None));
    let peak = cell(&each(rounds, |round| round.peak), 0);
    Table {
        title: format!("one network floods, {name}: peak {peak} answers/s"),
        columns: vec![
            "flood",
            "offered/peak",
            "% of peak",
            "others kept %",
            "others p99 ms",
            "crowd p99 ms",
            "p99 after/before",
            "CPU us/answer",
            "late",
        ],
        rows,
    }
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

fn goals(name: &str, rounds: &[Round]) -> Vec<Goal> {
    let mut goals = Vec::new();
    for (at, times) in limits::FLOODS.iter().enumerate() {
        let offered = Summary::of(&each(rounds, |round| round.floods[at].0.offered() / round.peak));
        // Below this share, the tester was the limit.
        let enough = offered.is_some_and(|offered| offered.median >= OFFERED * times);
        let measured = |figure: &dyn Fn(&Round) -> f64| Summary::of(&each(rounds, figure)).filter(|_| enough);
        goals.push(Goal {
            ratio: format!("{name}, {times} x the peak: goodput / peak"),
            bound: Bound::AtLeast(GOODPUT),
            measured: measured(&|round| round.floods[at].0.goodput() / round.peak),
        });
        goals.push(Goal {
            ratio: format!("{name}, {times} x the peak: p99 one second after / before"),
            bound: Bound::AtMost(LATENCY),
            measured: measured(&|round| latency_ratio(round, at)),
        });
        goals.push(Goal {
            ratio: format!("{name}, {times} x the peak: well-behaved clients keep"),
            bound: Bound::AtLeast(KEPT),
            measured: measured(&|round| round.floods[at].0.others.kept()),
        });
    }
    goals.push(Goal {
        ratio: format!("{name}, names that nobody answers: well-behaved clients keep"),
        bound: Bound::AtLeast(KEPT),
        measured: Summary::of(&each(rounds, |round| round.silent.others.kept())),
    });
    goals
}

fn json(round: &Round) -> Value {
    let side = |tally: &crate::mixed_load::Tally| json!({"sent": tally.sent, "useful": tally.useful, "came": tally.came, "late": tally.late, "wrong": tally.wrong, "p99_ms": tally.p99_ms()});
    let report = |report: &Report| json!({"seconds": report.seconds, "cpu_seconds": report.cpu, "crowd": side(&report.crowd), "others": side(&report.others)});
    let floods: Value = limits::FLOODS
        .iter()
        .zip(&round.floods)
        .map(
            |(times, (flood, after))| json!({"times": times, "flood": report(flood), "after": report(after)}),
        )
        .collect();
    json!({"peak_answers_per_second": round.peak, "before": report(&round.before), "floods": floods, "silent": report(&round.silent)})
}
