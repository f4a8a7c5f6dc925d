//! Experiment 7: cost of a popular name. Each name belongs to one worker, but for popular names, which all workers answer. Without
//! that exception a single name would get at most one worker's answers. Two workers get queries for equally popular names, for names with the
//! popularity that is usual in practice (the k-th in proportion to 1 / k), and for a single name.
//!
//! The tester needs a core, and there may be only two, so both workers share core 0. Their CPU times give the number of
//! answers with a core for each worker, under the condition that the worker with more load is busy all the time.

use crate::perf::device::Device;
use crate::perf::kind::Setup;
use crate::perf::limits;
use crate::perf::popularity::Popularity;
use crate::perf::section::{Section, cell, table_of};
use crate::perf::series::{self, Timing};
use crate::perf::tester::{Load, Names, Pace, Tally, Tester};
use measure::run::DeviceUse;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::io;

/// Highest number of workers of the device.
const WORKERS: usize = 2;

/// One measurement.
#[derive(Clone)]
struct Turn {
    tally: Tally,
    /// CPU time of each worker in the window, in seconds.
    workers: [f64; WORKERS],
}

impl Turn {
    /// Share of the workers' CPU time that the worker with more load used.
    fn busiest(&self) -> f64 {
        self.most() / self.workers.iter().sum::<f64>()
    }

    /// Answers a second if each worker had a core and the busiest worker were busy all the time.
    fn capacity(&self) -> f64 {
        self.tally.valid as f64 / self.most()
    }

    fn most(&self) -> f64 {
        self.workers.iter().copied().fold(0.0, f64::max)
    }
}

/// Measures Sixfold with each kind of names in turn, in rounds.
///
/// # Errors
///
/// The device cannot be started, gives no right answer, or a socket fails.
pub fn measure(tester: &mut Tester, device: &Device, timing: Timing) -> io::Result<Section> {
    let kinds = [
        ("all as often", WORKERS, Popularity::even(limits::CACHED_NAMES)),
        ("the k-th as 1 / k", WORKERS, Popularity::zipf(limits::CACHED_NAMES)),
        ("a single name", WORKERS, Popularity::even(1)),
        ("all as often", 1, Popularity::even(limits::CACHED_NAMES)),
    ];
    let mut all: [Vec<Turn>; 4] = Default::default();
    for round in 1..=timing.rounds {
        for ((name, workers, popularity), turns) in kinds.iter().zip(&mut all) {
            eprintln!("hot: round {round} of {}, {workers} workers, {name}", timing.rounds);
            turns.push(measure_turn(tester, device, timing, *workers, popularity)?);
        }
    }
    Ok(Section {
        key: "hot",
        title: "Popular names",
        charts: Vec::new(),
        notes: notes(),
        tables: vec![table_of(
            "closed loop",
            &[
                "names",
                "workers",
                "largest part %",
                "CPU us/answer",
                "busiest worker's %",
                "answers/s",
                "with a core each",
                "beside even",
                "waited %",
                "lookups",
                "lost or wrong",
            ],
            kinds.iter().zip(&all).map(|(kind, turns)| row(kind, turns, &all[0])).collect(),
        )],
        goals: Vec::new(),
        data: kinds
            .iter()
            .zip(&all)
            .map(|((name, workers, _), turns)| {
                let turn = |turn: &Turn| {
                    json!({"tally": series::tally_json(&turn.tally), "workers_cpu_seconds": turn.workers})
                };
                (format!("{name}, {workers} workers"), turns.iter().map(turn).collect::<Value>())
            })
            .collect::<Value>(),
    })
}

/// Measures Sixfold once with one kind of names.
fn measure_turn(
    tester: &mut Tester,
    device: &Device,
    timing: Timing,
    workers: usize,
    popularity: &Popularity,
) -> io::Result<Turn> {
    let setup = Setup { workers: workers as u16, ..Setup::default() };
    let running = series::start(tester, device, setup)?;
    let names = Names::Repeated(popularity);
    let fill = Load { window: limits::CACHED_FILL, ..timing.load(Pace::Open(limits::COMMON_RATE), names) };
    tester.run(running.address, &fill, || running.usage())?;
    // One query per datagram: all queries of a merged datagram would go to the worker of the first one.
    let load = Load { group: 1, ..timing.load(Pace::Closed(limits::WINDOW), names) };
    // Before the window, and at its end.
    let readings = RefCell::new(Vec::new());
    let tally = tester.run(running.address, &load, || {
        let usage = running.usage();
        readings.borrow_mut().push(usage.clone());
        usage
    })?;
    let workers = match &readings.into_inner()[..] {
        [begin, end] => worker_cpu_seconds(&end.since(begin, 0)),
        _ => [f64::NAN; WORKERS],
    };
    Ok(Turn { tally, workers })
}

/// The table row of one kind of names; `even` are the turns of the kind in which all names are equally popular.
fn row(
    (name, workers, popularity): &(&str, usize, Popularity),
    turns: &[Turn],
    even: &[Turn],
) -> Vec<String> {
    let of =
        |figure: fn(&Turn) -> f64, decimals| cell(&turns.iter().map(figure).collect::<Vec<_>>(), decimals);
    let relative: Vec<f64> =
        turns.iter().zip(even).map(|(own, even)| own.capacity() / even.capacity()).collect();
    vec![
        (*name).to_owned(),
        workers.to_string(),
        format!("{:.1}", popularity.largest_part() * 100.0),
        of(|turn| turn.tally.cost_us(), 2),
        of(|turn| turn.busiest() * 100.0, 0),
        of(|turn| turn.tally.goodput(), 0),
        of(Turn::capacity, 0),
        cell(&relative, 2),
        of(|turn| turn.tally.waited * 100.0 / turn.tally.seconds, 0),
        of(Turn::lookups, 2),
        turns.iter().map(|turn| turn.tally.lost()).sum::<u64>().to_string(),
    ]
}

/// The notes of the report.
fn notes() -> Vec<String> {
    vec![
        format!(
            "Sixfold with two workers and with one; each name belongs to one of them, but for popular names. {} names in the cache, each \
             query sent alone, closed loop. The tester has core 1, so both workers share core 0: `answers/s` is their \
             rate on that core. `with a core each` is computed: the right answers divided by the CPU time of the \
             worker that used more.",
            limits::CACHED_NAMES
        ),
        "If popular names belonged to one worker, a name with a share p of all queries would limit any number of workers to 1 / p of one \
         worker's rate. Figures are median [lowest-highest]; `beside even` is taken within a round."
            .to_owned(),
    ]
}

impl Turn {
    fn lookups(&self) -> f64 {
        self.tally.lookups()
    }
}

/// CPU time of each worker, in seconds. Their threads are called `sixfold-0`, `sixfold-1`.
fn worker_cpu_seconds(used: &DeviceUse) -> [f64; WORKERS] {
    std::array::from_fn(|worker| {
        let name = format!("sixfold-{worker}");
        let own = used.threads.iter().filter(|(thread, ..)| *thread == name);
        own.map(|(_, user_s, system_s)| user_s + system_s).sum()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_worker_says_what_a_core_each_would_give() {
        let tally = Tally { valid: 1000, seconds: 1.0, cpu: 0.004, ..Tally::default() };
        let turn = Turn { tally, workers: [0.001, 0.003] };
        assert_eq!(turn.busiest(), 0.75);
        assert!((turn.capacity() - 1000.0 / 0.003).abs() < 1e-6);
    }
}
