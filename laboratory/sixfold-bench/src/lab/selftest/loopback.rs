//! The self-test on loopback: the load generator asks this laboratory's own authority, without a device.

use super::{PAPER_DELTA, PLACE, RATE_OF_INTEREST_QPS};
use crate::agent_client::AgentClient;
use crate::lab::context::{Context, figure, median_figure, share};
use measure::experiment::{Figure, Origin, Program, median_interval};
use measure::order::{Authority, Expectation, Lanes, Load, Pace};
use measure::outcome::{Outcome, Verdict};
use measure::plan::{Draft, Plan};
use measure::run::Summary;
use measure::search::{Limits, Method, Search, Step};
use papers::bisection::self_test_rates;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Timeout of the self-test: a quarter of the 1 s of the test (RFC 8219 section 9.2.1).
const TIMEOUT_MS: u64 = 250;

/// Rate of the paper's self-test, in queries per second.
const PAPER_RATE_QPS: f64 = 24_000.0;

/// Name of the table.
const TABLE: &str = "Self-test on loopback, timeout 0.25 s";

/// Tester and authority on this host.
struct Loopback {
    tester: AgentClient,
    plan: Plan,
    server: SocketAddr,
    lanes: Lanes,
    stop: Arc<AtomicBool>,
    /// Number of the next name.
    next_name: u64,
}

/// The self-test at the paper's rate, and the highest rate at which it passes.
///
/// # Errors
///
/// The agents cannot be started, a trial fails, or the user stops the experiment.
pub(super) fn run(context: &mut Context) -> Result<(), String> {
    let mut loopback = Loopback::open(Arc::clone(&context.stop))?;
    context.program(Program {
        name: "load and authority of sixfold-bench".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Program::default()
    });
    let (trials, seconds) = context.choose((4, 1), (10, 10));
    let mut passed = 0;
    let mut slowest_ms = Vec::new();
    for trial in 1..=trials {
        context.progress(&format!("self-test at {PAPER_RATE_QPS}/s, {trial} of {trials}"))?;
        let outcome = loopback.trial(PAPER_RATE_QPS, seconds * 1000)?;
        passed += u64::from(outcome.verdict == Verdict::Pass);
        slowest_ms.push(outcome.latency_us.intended.max / 1000.0);
    }
    at_the_papers_rate(context, passed, trials, &slowest_ms);
    let (searches, trial_ms, precision) = context.choose((2, 300, 0.15), (10, 2000, 0.05));
    let mut rates = Vec::new();
    for search in 1..=searches {
        context.progress(&format!("search for the highest rate of the self-test, {search} of {searches}"))?;
        rates.push(loopback.search(trial_ms, precision)?);
    }
    highest(context, &rates);
    context.difference(
        "Self-test",
        format!(
            "The paper ran its tester against its authority over loopback for 60 s. Here load generator and authority are those \
             of this laboratory; a trial takes {seconds} s at the paper's rate, and {} s in a search.",
            trial_ms as f64 / 1000.0
        ),
    );
    Ok(())
}

/// Figures about the paper's rate.
fn at_the_papers_rate(context: &mut Context, passed: u64, trials: u64, slowest_ms: &[f64]) {
    let row = "at 24,000/s";
    context.figure(share(TABLE, row, "trials that passed", (passed, trials), Origin::Measured));
    context.figure(Figure {
        samples: trials,
        paper: Some(TIMEOUT_MS as f64),
        place: format!("{PLACE}: the limit"),
        ..median_figure(TABLE, row, "slowest answer of a trial", slowest_ms, "ms", context.seed(90))
    });
    // No claim: a host that other programs use fails trials, and one that passes of many says nothing about the tester.
    if passed < trials {
        context.warning(format!(
            "{} of {trials} trials of the self-test at 24,000 queries/s did not pass: another load on this host?",
            trials - passed
        ));
    }
}

/// Figures about the highest rate.
fn highest(context: &mut Context, rates: &[f64]) {
    let interval = median_interval(rates, context.seed(91));
    let median = Summary::of(rates).median;
    let (_, factor) = self_test_rates(1.0, PAPER_DELTA);
    for (row, divisor, paper) in [
        ("highest rate that passes (median of searches)", 1.0, PAPER_RATE_QPS),
        ("rate of a device that this certifies, δ = 0.2", factor, RATE_OF_INTEREST_QPS),
    ] {
        context.figure(Figure {
            interval: interval.map(|(low, high)| (low / divisor, high / divisor)),
            samples: rates.len() as u64,
            paper: Some(paper),
            place: format!("{PLACE}: more than"),
            ..figure(TABLE, row, "rate", median / divisor, "1/s", Origin::Measured)
        });
    }
}

impl Loopback {
    /// Starts the authority: every name has an AAAA record, as the RFC demands for the self-test.
    fn open(stop: Arc<AtomicBool>) -> Result<Loopback, String> {
        // Only the names and the ports of the plan are used; its device is not started.
        let plan = Draft::parse("profile = \"quick\"\n[device]\ntemplate = \"sixfold\"\n")
            .and_then(Draft::finish)
            .map_err(|error| format!("the plan of the self-test: {error}"))?;
        let mut tester = AgentClient::connect("tester", None).map_err(|error| error.to_string())?;
        let (ours, of_authority) = split(&tester.greeting().allowed);
        let names = &plan.names;
        let order = Authority {
            listen: vec![SocketAddr::from((Ipv6Addr::LOCALHOST, 0))],
            threads: of_authority.len() as u16,
            pins: of_authority,
            zone: names.zone.clone(),
            aaaa_share: 1.0,
            seed: names.seed,
            addresses: names.addresses,
            cname_depth: names.cname_depth,
            ttl: names.ttl,
            offload: plan.tester.group > 1,
        };
        let addresses = tester.authority(&order).map_err(|error| error.to_string())?;
        let server = *addresses.first().ok_or("the authority listens nowhere")?;
        let pairs = (ours.len() as u16 / 2).max(1);
        let lanes = Lanes {
            senders: pairs,
            receivers: if ours.len() < 2 { 0 } else { pairs },
            ports: plan.tester.ports,
            sources: Vec::new(),
            group: plan.tester.group,
            pins: ours,
            spin: false,
            ..Lanes::default()
        };
        Ok(Loopback { tester, plan, server, lanes, stop, next_name: 0 })
    }

    /// A trial.
    fn trial(&mut self, rate_qps: f64, duration_ms: u64) -> Result<Outcome, String> {
        let names = &self.plan.names;
        let expect = Expectation {
            addresses: names.addresses,
            cname_depth: names.cname_depth,
            aaaa_seed: names.seed,
            ttl: (0, names.ttl),
            ..Expectation::native(&names.zone)
        };
        let pace = Pace::Open { rate_qps, burst: self.plan.tester.burst };
        let duration = Duration::from_millis(duration_ms);
        let load = Load {
            timeout_ms: TIMEOUT_MS,
            first_name: self.next_name,
            lanes: self.lanes.clone(),
            seed: names.seed.wrapping_add(self.next_name),
            ..Load::of_new_names(self.server, pace, duration, names.window, expect)
        };
        let stop = &self.stop;
        let outcome =
            self.tester.load(&load, |_| !stop.load(Ordering::Relaxed)).map_err(|error| error.to_string())?;
        self.next_name = (self.next_name + outcome.names_used) % names.window.names();
        Ok(outcome)
    }

    /// The highest rate at which the self-test passes; a failure counts if it is confirmed. A trial that the tester limits is
    /// repeated, as in a run.
    fn search(&mut self, trial_ms: u64, precision: f64) -> Result<f64, String> {
        let method = Method::Geometric { start_qps: PAPER_RATE_QPS, precision };
        let limits = Limits { min_qps: 100.0, max_qps: 10e6, method, steps_max: 40 };
        let mut search = Search::confirmed(limits, 2);
        loop {
            match search.next() {
                Step::Done(found) => return Ok(found.rate_qps),
                Step::Try { rate_qps, .. } => {
                    let verdict = self.trial(rate_qps, trial_ms)?.verdict;
                    if !search.record(rate_qps, verdict) {
                        return Err(format!("the search did not ask for {rate_qps} queries/s"));
                    }
                }
            }
        }
    }
}

/// Cores of the tester and of the authority: half each. With one core the tester's thread serves the authority in turn.
fn split(all: &[u16]) -> (Vec<u16>, Vec<u16>) {
    let (ours, others) = all.split_at(all.len().div_ceil(2));
    (ours.to_vec(), others.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tester_and_authority_share_no_core_if_there_are_two() {
        assert_eq!(split(&[4]), (vec![4], vec![]));
        assert_eq!(split(&[0, 1]), (vec![0], vec![1]));
        assert_eq!(split(&[0, 1, 2]), (vec![0, 1], vec![2]));
    }
}
