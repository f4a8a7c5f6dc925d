//! Sample runs that were never measured: formulas and a seed make them as rich as measured ones, for tests and for
//! viewing a report while its code is changed.
//!
//! The device is a queue: up to its capacity it answers everything; above it, it answers as much as its capacity. It
//! sometimes loses a query at random, as real devices do.

use measure::experiment::Experiment;
use measure::outcome::{Deviation, Latencies, Latency, Outcome, PacingError, Second, Tester, Verdict};
use measure::run::{Cell, CellResult, DeviceUse, Kept, Purpose, Run, Summary, Trial};
use splitmix::SplitMix64;
use std::collections::BTreeMap;

/// Parameters of a sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// The profile's name.
    pub profile: String,
    /// Values of the sweep; empty without a sweep.
    pub sweep: Vec<String>,
    /// Cells, as AAAA share and cached share.
    pub cells: Vec<(f64, f64)>,
    /// Searches for each result.
    pub repetitions: u32,
    /// Length of a trial in seconds.
    pub seconds: u64,
    /// Seed of all random numbers.
    pub seed: u64,
}

impl Shape {
    /// A run of the quick profile: one cell, three repetitions.
    pub fn quick() -> Shape {
        Shape {
            profile: "quick".to_owned(),
            sweep: Vec::new(),
            cells: vec![(0.0, 0.0)],
            repetitions: 3,
            seconds: 3,
            seed: 7,
        }
    }

    /// A run by RFC 8219 with a grid and a sweep of threads.
    pub fn full() -> Shape {
        Shape {
            profile: "rfc8219".to_owned(),
            sweep: ["1", "2", "4", "8"].map(str::to_owned).into(),
            cells: vec![(0.0, 0.0), (0.2, 0.0), (1.0, 0.0), (0.0, 0.4), (0.2, 0.4), (0.0, 1.0)],
            repetitions: 20,
            seconds: 60,
            seed: 8219,
        }
    }
}

/// An approximately normal number, mean 0, deviation 1: the sum of twelve uniform numbers minus six.
fn normal(random: &mut SplitMix64) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}

/// A record of an experiment that was never carried out, with every kind of content: figures of each origin, some without a value, charts
/// with both kinds of axes.
pub fn experiment() -> Experiment {
    serde_json::from_str(include_str!("sample/experiment.json")).expect("tests read this file")
}

/// The run for a shape.
pub fn run(shape: &Shape) -> Run {
    let mut maker = Maker { shape, random: SplitMix64::new(shape.seed), trials: Vec::new(), first_name: 0 };
    let results = maker.results();
    let trials = maker.trials;
    let best = results.iter().map(|result| result.summary.max).fold(0.0, f64::max);
    let mut run: Run = serde_json::from_str(include_str!("sample/run.json")).expect("tests read this file");
    run.profile.clone_from(&shape.profile);
    run.settings.trial_ms = shape.seconds * 1000;
    run.settings.repetitions = shape.repetitions;
    run.device.sweep = (!shape.sweep.is_empty()).then(|| ("threads".to_owned(), shape.sweep.clone()));
    run.self_test.iter_mut().for_each(|test| test.sufficient = best <= test.device_qps);
    for (begin, is_kept, because) in [
        ("A trial lasts", shape.seconds >= 60, format!("{} s", shape.seconds)),
        ("At least 20", shape.repetitions >= 20, shape.repetitions.to_string()),
    ] {
        for rule in run.checklist.iter_mut().filter(|rule| rule.rule.starts_with(begin)) {
            rule.state = if is_kept { Kept::Kept } else { Kept::NotKept };
            rule.because.clone_from(&because);
        }
    }
    Run { trials, results, ..run }
}

/// Generator of trials.
struct Maker<'a> {
    shape: &'a Shape,
    random: SplitMix64,
    trials: Vec<Trial>,
    first_name: u64,
}

impl Maker<'_> {
    fn results(&mut self) -> Vec<CellResult> {
        for rate in [115_000.0, 230_000.0, 460_000.0, 920_000.0] {
            let outcome = self.outcome(rate, 500_000.0, 0.0);
            self.record(Purpose::SelfTest, "", Cell { aaaa_share: 1.0, cached_share: 0.0 }, 0, outcome, None);
        }
        let mut values = self.shape.sweep.clone();
        if values.is_empty() {
            values.push(String::new());
        }
        let mut results = Vec::new();
        for sweep in values {
            for (aaaa_share, cached_share) in self.shape.cells.clone() {
                results.push(self.result(&sweep, Cell { aaaa_share, cached_share }));
            }
        }
        results
    }

    fn result(&mut self, sweep: &str, cell: Cell) -> CellResult {
        let workers = sweep.parse().unwrap_or(1.0f64);
        let work = (1.0 - cell.cached_share) * (1.0 - 0.35 * cell.aaaa_share) + 0.12 * cell.cached_share;
        let capacity = 24_300.0 * workers.powf(0.86) / work;
        let (mut strict, mut confirmed) = (Vec::new(), Vec::new());
        for repetition in 0..self.shape.repetitions {
            let capacity = capacity * (1.0 + 0.008 * normal(&mut self.random));
            let (one, two) = self.search(sweep, cell, repetition, capacity, workers);
            strict.push(one);
            confirmed.push(two);
        }
        let summary = Summary::of(&strict);
        for part in [0.25, 0.5, 0.8, 0.95, 1.05, 1.25, 1.5, 2.0] {
            let outcome = self.outcome(part * summary.median, capacity, cell.cached_share);
            let used = self.device(&outcome, capacity, workers);
            self.record(Purpose::Curve, sweep, cell, 0, outcome, Some(used));
        }
        CellResult {
            sweep: sweep.to_owned(),
            cell,
            confirmed_summary: Summary::of(&confirmed),
            summary,
            strict,
            confirmed,
            censored: false,
            upstream_per_query: (1.0 - cell.cached_share) * (2.0 - cell.aaaa_share) * 1.0004,
            achieved_cached_share: cell.cached_share * 0.998,
            achieved_aaaa_share: cell.aaaa_share * 1.0007,
            cpu_us_per_query: Some(0.93e6 * workers / capacity),
            ..CellResult::default()
        }
    }

    /// Doubles the rate, then bisects the interval. Returns the strict and the confirmed result.
    fn search(
        &mut self,
        sweep: &str,
        cell: Cell,
        repetition: u32,
        capacity: f64,
        workers: f64,
    ) -> (f64, f64) {
        let (mut low, mut high) = (0.0, f64::INFINITY);
        let mut lowest_failed = f64::INFINITY;
        let mut rate = if repetition == 0 { 1000.0 } else { (capacity * 0.97).round() };
        while high.is_infinite() || high - low > 0.01 * high {
            let mut ok = false;
            for purpose in [Purpose::Search, Purpose::Confirm] {
                let outcome = self.outcome(rate, capacity, cell.cached_share);
                let used = self.device(&outcome, capacity, workers);
                ok = outcome.verdict == Verdict::Pass;
                self.record(purpose, sweep, cell, repetition, outcome, Some(used));
                if ok {
                    break;
                }
                lowest_failed = lowest_failed.min(rate);
            }
            if ok {
                low = rate;
            } else {
                high = rate;
            }
            rate = if high.is_infinite() { rate * 2.0 } else { ((low + high) / 2.0).round() };
        }
        // A strict search ends just below the lowest rate that failed.
        (if lowest_failed < low { (lowest_failed * 0.996).floor() } else { low }, low)
    }

    fn record(
        &mut self,
        purpose: Purpose,
        sweep: &str,
        cell: Cell,
        repetition: u32,
        outcome: Outcome,
        device: Option<DeviceUse>,
    ) {
        let number = self.trials.len() as u32;
        let minutes = number as u64 * (self.shape.seconds + 2) / 60;
        let new = outcome.sent - outcome.asked_again;
        let authority = BTreeMap::from([
            (measure::run::ASKED_AAAA.to_owned(), new),
            (measure::run::ASKED_A.to_owned(), (new as f64 * (1.0 - cell.aaaa_share)) as u64),
        ]);
        self.trials.push(Trial {
            number,
            purpose,
            sweep: sweep.to_owned(),
            cell,
            repetition,
            rate_qps: outcome.rate_asked,
            started: format!("2026-03-01T{:02}:{:02}:00Z", (8 + minutes / 60) % 24, minutes % 60),
            first_name: self.first_name,
            outcome,
            authority: if purpose.is_self_test() { BTreeMap::new() } else { authority },
            device,
            fresh: false,
        });
        self.first_name += new;
    }

    /// A load at a rate on a device with this capacity.
    fn outcome(&mut self, rate: f64, capacity: f64, cached_share: f64) -> Outcome {
        let sent = (rate * self.shape.seconds as f64).round() as u64;
        let accident = if self.random.unit() < 0.008 { 1 + self.random.bits() % 3 } else { 0 };
        let beyond = if rate > capacity { (sent as f64 * (1.0 - capacity / rate)) as u64 } else { 0 };
        let failed = (beyond + accident).min(sent);
        let (late, wrong) = (failed / 3, failed / 50);
        let valid = sent - failed;
        let intended = self.latency(valid, rate / capacity);
        let actual = self.latency(valid, rate / capacity * 0.98);
        let stalled = self.random.unit() < 0.004;
        let verdict = match () {
            () if stalled => Verdict::TesterLimited,
            () if failed == 0 => Verdict::Pass,
            () => Verdict::Fail,
        };
        let each = sent / self.shape.seconds.max(1);
        let per_second = self.per_second(failed, each);
        let noise = 1.0 + self.random.unit();
        Outcome {
            sent,
            received: valid + late + wrong,
            valid,
            invalid: invalid(wrong),
            late,
            lost: failed - late - wrong,
            duplicates: u64::from(self.random.unit() < 0.02),
            asked_again: (sent as f64 * cached_share) as u64,
            names_used: sent - (sent as f64 * cached_share) as u64,
            rate_asked: rate,
            rate_achieved: rate * (1.0 - 2e-5),
            seconds: self.shape.seconds as f64,
            pacing_error: pacing_error(noise, self.shape.seconds),
            lag_max_us: 180.0 * noise,
            latency_us: Latencies { intended, actual },
            per_second,
            tester: Tester {
                user_s: sent as f64 * 0.45e-6,
                system_s: sent as f64 * 1.3e-6,
                waited_s: 0.0004 * sent as f64 / 1e5,
                socket_drops: if stalled { 12 } else { 0 },
                ..Tester::default()
            },
            verdict,
            reason: match verdict {
                Verdict::Pass => String::new(),
                Verdict::Fail => format!("{failed} of {sent} queries got no valid reply in time"),
                Verdict::TesterLimited | Verdict::DeviceStarved => {
                    "12 replies were dropped in the tester's own socket queues".to_owned()
                }
            },
            ..Outcome::default()
        }
    }

    /// The seconds of a trial with `failed` queries without a valid reply, of `each` queries.
    fn per_second(&mut self, failed: u64, each: u64) -> Vec<Second> {
        (0..self.shape.seconds)
            .map(|_| {
                let missing = (failed as f64 / self.shape.seconds as f64
                    * (1.0 + 0.2 * normal(&mut self.random)))
                .max(0.0);
                let missing = (missing as u64).min(each);
                Second { sent: each, valid: each - missing, invalid: missing / 50, late: missing / 3 }
            })
            .collect()
    }

    /// A latency distribution with a minimum and a tail that grows with the load, in buckets that grow by a twelfth.
    fn latency(&mut self, count: u64, load: f64) -> Latency {
        let scale = if load < 1.0 { 45.0 + 25.0 / (1.02 - load) } else { 200_000.0 };
        let below = |us: f64| 1.0 - (-((us - 85.0).max(0.0) / scale).powf(0.8)).exp();
        let (mut histogram, mut done, mut upper) = (Vec::new(), 0, 85.0f64);
        while done < count && upper < 2e6 {
            upper *= 13.0 / 12.0;
            let upto = (below(upper) * count as f64).round().min(count as f64) as u64;
            if upto > done {
                histogram.push(((upper * 1e3) as u64, upto - done));
                done = upto;
            }
        }
        let at = |share: f64| {
            let mut seen = 0;
            let wanted = (share * done as f64).ceil() as u64;
            histogram
                .iter()
                .find(|(_, many)| {
                    seen += many;
                    seen >= wanted
                })
                .map_or(0.0, |(ns, _)| *ns as f64 / 1e3)
        };
        let total: f64 = histogram.iter().map(|(ns, many)| *ns as f64 / 1e3 * *many as f64).sum();
        Latency {
            count: done,
            min: at(0.0).min(91.0),
            mean: if done == 0 { 0.0 } else { total / done as f64 },
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: at(1.0),
            histogram,
            ..Latency::default()
        }
    }

    fn device(&mut self, outcome: &Outcome, capacity: f64, workers: f64) -> DeviceUse {
        let load = (outcome.rate_asked / capacity).min(1.0);
        let cost_us = 0.93e6 * workers / capacity * (1.0 + 0.35 * (-3.0 * load).exp());
        let total_s = outcome.valid as f64 * cost_us / 1e6;
        let threads = (0..workers as u32)
            .map(|at| {
                let part = total_s / workers * (1.0 + 0.03 * normal(&mut self.random));
                (format!("device/{at}"), part * 0.4, part * 0.6)
            })
            .collect();
        DeviceUse {
            waited_s: 0.01,
            user_s: total_s * 0.4,
            system_s: total_s * 0.6,
            threads,
            resident: 48_000_000 + (workers * 9e6) as u64 + outcome.sent,
            resident_peak: 52_000_000 + (workers * 9e6) as u64 + 2 * outcome.sent,
            voluntary_switches: (outcome.sent as f64 * 0.7 * (1.0 - 0.8 * load)) as u64,
            involuntary_switches: (outcome.sent as f64 * 0.01 * load) as u64,
            cpu_us_per_query: cost_us,
            ..DeviceUse::default()
        }
    }
}

/// Invalid replies by reason.
fn invalid(wrong: u64) -> BTreeMap<String, u64> {
    if wrong > 0 {
        BTreeMap::from([("servfail".to_owned(), wrong - wrong / 4), ("wrong-address".to_owned(), wrong / 4)])
    } else {
        BTreeMap::new()
    }
}

/// Deviations from the schedule.
fn pacing_error(noise: f64, seconds: u64) -> PacingError {
    let deviation = |max: f64, intervals: u64| Deviation {
        max,
        mean: max / 6.0,
        beyond_1_percent: if max > 0.01 { 0.002 } else { 0.0 },
        intervals,
    };
    PacingError {
        ms1: deviation(0.03 * noise, seconds * 1000),
        ms10: deviation(0.006 * noise, seconds * 100),
        ms100: deviation(0.0011 * noise, seconds * 10),
        s1: deviation(0.0002 * noise, seconds),
    }
}
