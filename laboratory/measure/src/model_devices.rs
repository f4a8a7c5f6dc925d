//! Model devices: rules that decide which trials pass, for tests of search and procedure without a network or a
//! clock.

use crate::outcome::Verdict;
use crate::search::{Search, Step};
use splitmix::SplitMix64;

/// A device that can be measured.
pub(crate) trait Device {
    /// The verdict of a trial at a rate, whose names begin at this number of the range.
    fn trial(&mut self, rate_qps: f64, first_name: u64) -> Verdict;
}

/// A device that always passes up to its capacity.
#[derive(Clone, Debug)]
pub(crate) struct Ideal {
    pub(crate) capacity_qps: f64,
}

impl Device for Ideal {
    fn trial(&mut self, rate_qps: f64, _: u64) -> Verdict {
        verdict(rate_qps <= self.capacity_qps)
    }
}

/// A device that passes less often the higher the rate: one time in two at its capacity, and one in 1 + e at `width`
/// (relative) above it.
#[derive(Clone, Debug)]
pub(crate) struct Noisy {
    pub(crate) capacity_qps: f64,
    pub(crate) width: f64,
    pub(crate) rng: SplitMix64,
}

impl Device for Noisy {
    fn trial(&mut self, rate_qps: f64, _: u64) -> Verdict {
        let distance = (rate_qps / self.capacity_qps - 1.0) / self.width;
        verdict(self.rng.unit() < 1.0 / (1.0 + distance.exp()))
    }
}

/// A device with a capacity that loses a small share of all packets below it, so that long and fast trials often lose
/// one.
#[derive(Clone, Debug)]
pub(crate) struct Lossy {
    pub(crate) capacity_qps: f64,
    pub(crate) loss: f64,
    pub(crate) seconds: f64,
    pub(crate) rng: SplitMix64,
}

impl Device for Lossy {
    fn trial(&mut self, rate_qps: f64, _: u64) -> Verdict {
        // The probability that none of n packets is lost is (1 - loss)^n.
        let spared = (1.0 - self.loss).powf(rate_qps * self.seconds);
        verdict(rate_qps <= self.capacity_qps && self.rng.unit() < spared)
    }
}

/// A device that loses something in these trials, counted from 0, and in no others up to its capacity.
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

/// A device that answers nothing right for some trials after a load above its capacity, at any rate.
#[derive(Clone, Debug)]
pub(crate) struct Collapsing {
    pub(crate) capacity_qps: f64,
    /// Number of trials until it has recovered.
    pub(crate) recovery: u32,
    pub(crate) recovering: u32,
}

impl Device for Collapsing {
    fn trial(&mut self, rate_qps: f64, _: u64) -> Verdict {
        if self.recovering > 0 {
            self.recovering -= 1;
            return Verdict::Fail;
        }
        if rate_qps > self.capacity_qps {
            self.recovering = self.recovery;
        }
        verdict(rate_qps <= self.capacity_qps)
    }
}

/// A device that is ten times as fast for names that were queried before.
#[derive(Clone, Debug)]
pub(crate) struct Caching {
    pub(crate) capacity_qps: f64,
    /// Names below this number are cached.
    pub(crate) known: u64,
    /// A trial has the rate times this number of queries.
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

/// A device whose tester stalls in the trials for which `stalls` returns true.
#[derive(Clone, Debug)]
pub(crate) struct Stalling<D, F> {
    pub(crate) device: D,
    /// Function of the trial's number, from 0, and the rate.
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

/// A finished trial: its rate and its verdict.
pub(crate) type Done = (f64, Verdict);

/// Runs a search to the end. The names advance by `seconds` times the rate after each trial.
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
