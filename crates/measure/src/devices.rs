//! Devices that exist only as a rule for which trials pass, to test search and procedure without a network or a clock.

use crate::outcome::Verdict;
use crate::search::{Search, Step};
use crate::statistics::Draws;

/// Something that is measured.
pub(crate) trait Device {
    /// The verdict of a trial at a rate, whose names begin at this number of the window.
    fn trial(&mut self, rate_qps: f64, first_name: u64) -> Verdict;
}

/// Passes up to its capacity, always.
#[derive(Clone, Debug)]
pub(crate) struct Ideal {
    pub(crate) capacity_qps: f64,
}

impl Device for Ideal {
    fn trial(&mut self, rate_qps: f64, _: u64) -> Verdict {
        verdict(rate_qps <= self.capacity_qps)
    }
}

/// Passes ever less often around its capacity: one time in two there, and one in 1 + e at `width` (a part of it) above.
#[derive(Clone, Debug)]
pub(crate) struct Noisy {
    pub(crate) capacity_qps: f64,
    pub(crate) width: f64,
    pub(crate) draws: Draws,
}

impl Device for Noisy {
    fn trial(&mut self, rate_qps: f64, _: u64) -> Verdict {
        let distance = (rate_qps / self.capacity_qps - 1.0) / self.width;
        verdict(self.draws.unit() < 1.0 / (1.0 + distance.exp()))
    }
}

/// Has a capacity, and below it loses a small share of all packets, so that long and fast trials often lose one.
#[derive(Clone, Debug)]
pub(crate) struct Lossy {
    pub(crate) capacity_qps: f64,
    pub(crate) loss: f64,
    pub(crate) seconds: f64,
    pub(crate) draws: Draws,
}

impl Device for Lossy {
    fn trial(&mut self, rate_qps: f64, _: u64) -> Verdict {
        // None of n packets is lost with probability (1 - loss)^n.
        let spared = (1.0 - self.loss).powf(rate_qps * self.seconds);
        verdict(rate_qps <= self.capacity_qps && self.draws.unit() < spared)
    }
}

/// Loses something in these trials, counted from 0, and in no others up to its capacity.
#[derive(Clone, Debug)]
pub(crate) struct LosesAt {
    pub(crate) capacity_qps: f64,
    pub(crate) trials: Vec<u32>,
    pub(crate) trial: u32,
}

impl Device for LosesAt {
    fn trial(&mut self, rate_qps: f64, _: u64) -> Verdict {
        let lost = self.trials.contains(&self.trial);
        self.trial += 1;
        verdict(rate_qps <= self.capacity_qps && !lost)
    }
}

/// After a load above its capacity it answers nothing right for some trials, whatever their rate.
#[derive(Clone, Debug)]
pub(crate) struct Collapsing {
    pub(crate) capacity_qps: f64,
    /// Trials that it takes to recover.
    pub(crate) recovery: u32,
    pub(crate) ill: u32,
}

impl Device for Collapsing {
    fn trial(&mut self, rate_qps: f64, _: u64) -> Verdict {
        if self.ill > 0 {
            self.ill -= 1;
            return Verdict::Fail;
        }
        if rate_qps > self.capacity_qps {
            self.ill = self.recovery;
        }
        verdict(rate_qps <= self.capacity_qps)
    }
}

/// Is ten times as fast for names that it was asked before.
#[derive(Clone, Debug)]
pub(crate) struct Caching {
    pub(crate) capacity_qps: f64,
    /// The names below this number are in the cache.
    pub(crate) known: u64,
    /// Queries of one trial are the rate times this.
    pub(crate) seconds: f64,
}

impl Device for Caching {
    fn trial(&mut self, rate_qps: f64, first_name: u64) -> Verdict {
        let end = first_name + (rate_qps * self.seconds) as u64;
        let capacity_qps = if end <= self.known { 10.0 * self.capacity_qps } else { self.capacity_qps };
        self.known = self.known.max(end);
        verdict(rate_qps <= capacity_qps)
    }
}

/// Measured by a tester that is held up in each trial for which `stalls` says so.
#[derive(Clone, Debug)]
pub(crate) struct Stalling<D, F> {
    pub(crate) device: D,
    /// Of the number of the trial, from 0, and the rate.
    pub(crate) stalls: F,
    pub(crate) trial: u32,
}

impl<D: Device, F: Fn(u32, f64) -> bool> Device for Stalling<D, F> {
    fn trial(&mut self, rate_qps: f64, first_name: u64) -> Verdict {
        self.trial += 1;
        if (self.stalls)(self.trial - 1, rate_qps) {
            return Verdict::TesterLimited;
        }
        self.device.trial(rate_qps, first_name)
    }
}

/// A trial that was done: its rate, and what came of it.
pub(crate) type Done = (f64, Verdict);

/// Searches to the end, with names that move on by `seconds` of the rate after each trial.
pub(crate) fn run(search: &mut Search, device: &mut impl Device, seconds: f64) -> Vec<Done> {
    let mut done = Vec::new();
    let mut first_name = 0;
    while let Step::Try { rate_qps, .. } = search.next() {
        let verdict = device.trial(rate_qps, first_name);
        first_name += (rate_qps * seconds) as u64;
        assert!(search.record(rate_qps, verdict), "{rate_qps} is the rate that was named");
        done.push((rate_qps, verdict));
    }
    done
}

fn verdict(passed: bool) -> Verdict {
    if passed { Verdict::Pass } else { Verdict::Fail }
}
