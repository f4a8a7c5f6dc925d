//! Highest rate without loss, by the search of RFC 8219.

use super::limits;
use super::running::Running;
use super::zone_file::{FIRST, ZONE, address};
use crate::lab::context::until_stopped;
use load::NoCompanion;
use measure::name_range::NameRange;
use measure::order::{Expectation, Lanes, Load, Pace};
use measure::outcome::Outcome;
use measure::search::{Found, Limits, Method, Search, Step};
use measure::starvation;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Cores and trials of a tester.
#[derive(Clone, Debug)]
pub struct Tester<'a> {
    /// Its cores.
    pub cores: Vec<u16>,
    /// Length of a trial.
    pub trial: Duration,
    /// Size of the zone as a power of two: each trial asks each name at most once.
    pub bits: u32,
    /// Seed of message IDs.
    pub seed: u64,
    /// Set when the user wants to stop.
    pub stop: &'a AtomicBool,
}

/// Results of one search: each failure counts, or failures are repeated once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// One failed trial excludes a rate, as in the paper.
    pub strict: Found,
    /// A failed rate is tried again.
    pub confirmed: Found,
    /// Queries of all trials that say something about the server, and those of them without a valid reply in time.
    pub asked: (u64, u64),
}

impl Tester<'_> {
    /// Highest rate for which the names of the zone last.
    pub fn ceiling_qps(&self) -> f64 {
        // A trial has round(rate * duration) queries.
        ((1u64 << self.bits) as f64 - 1.0) / self.trial.as_secs_f64()
    }

    /// Limits of a search: precision as a share, and most trials.
    pub fn limits(&self, start_qps: f64, precision: f64, steps_max: u32) -> Limits {
        let method = Method::Geometric { start_qps, precision };
        Limits { min_qps: 100.0, max_qps: self.ceiling_qps(), method, steps_max }
    }

    /// Sends AAAA queries at a rate, and checks every answer. A failure while other programs had the server's cores is not the
    /// server's.
    ///
    /// # Errors
    ///
    /// The load is impossible on this host or fails, or the user stops the experiment.
    pub fn trial(&self, server: &Running, rate_qps: f64) -> Result<Outcome, String> {
        let load = self.load(server, rate_qps);
        let before = server.usage();
        let mut outcome = load::run(&load, None::<&mut NoCompanion>, until_stopped(self.stop))
            .map_err(|error| error.to_string())?;
        let used = server.usage().since(&before, outcome.valid);
        starvation::apply(&mut outcome, &used, self.trial.as_secs_f64());
        match self.stop.load(Ordering::Relaxed) {
            true => Err("stopped by a signal; nothing was written".to_owned()),
            false => Ok(outcome),
        }
    }

    fn load(&self, server: &Running, rate_qps: f64) -> Load {
        let last = address(((1u64 << self.bits) - 1) as u32);
        let pairs = (self.cores.len() as u16 / 2).max(1);
        let names = NameRange::new(FIRST, last).expect("the first address is before the last");
        let expect =
            Expectation { ttl: (server.answers.ttl, server.answers.ttl), ..Expectation::native(ZONE) };
        let pace = Pace::Open { rate_qps, burst: 1 };
        Load {
            timeout_ms: limits::TIMEOUT.as_millis() as u64,
            lanes: Lanes {
                senders: pairs,
                // With one core, the sending thread receives as well.
                receivers: if self.cores.len() < 2 { 0 } else { pairs },
                ports: limits::PORTS,
                pins: self.cores.clone(),
                ..Lanes::default()
            },
            seed: self.seed,
            ..Load::of_new_names(server.address, pace, self.trial, names, expect)
        }
    }

    /// Searches the highest rate without loss.
    ///
    /// # Errors
    ///
    /// As [`Tester::trial`].
    pub fn search(&self, server: &Running, limits: Limits) -> Result<Rates, String> {
        let mut search = Search::confirmed(limits, 2);
        let mut asked = (0, 0);
        loop {
            match search.next() {
                Step::Done(confirmed) => {
                    let strict = search.strict_result().unwrap_or(confirmed);
                    return Ok(Rates { strict, confirmed, asked });
                }
                Step::Try { rate_qps, .. } => {
                    let outcome = self.trial(server, rate_qps)?;
                    if !outcome.verdict.is_inconclusive() {
                        asked =
                            (asked.0 + outcome.sent, asked.1 + outcome.sent.saturating_sub(outcome.valid));
                    }
                    let verdict = outcome.verdict;
                    // The search takes the verdict for the rate that it asked for.
                    let _ = search.record(rate_qps, verdict);
                }
            }
        }
    }
}

/// True if the result is bounded by the zone or the tester, so that the server may be faster.
pub fn is_bounded(found: &Found) -> bool {
    found.censored || found.tester_limited
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_the_zone_last_for_a_trial_at_the_ceiling() {
        let stop = AtomicBool::new(false);
        let trial = Duration::from_secs(60);
        let tester = Tester { cores: vec![0], trial, bits: 27, seed: 1, stop: &stop };
        // 2^27 / 60 s is 2,236,962: the highest rate of the paper's searches.
        assert_eq!(tester.ceiling_qps().floor(), 2_236_962.0);
        assert!((tester.ceiling_qps() * 60.0).round() < 134_217_728.0);
    }
}
