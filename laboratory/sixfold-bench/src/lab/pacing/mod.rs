//! Pace of the tester, certified from outside: a receiver notes when its kernel got each query (SO_TIMESTAMPNS), and these times
//! are compared with the schedule over intervals of 1 ms, 10 ms, 100 ms and 1 s, and with what the tester says about itself.
//!
//! `receiver` notes and answers, `outside` compares; both know the ordered rate alone, and nothing of the tester's clock. `tools` puts other
//! load generators before the same receiver. `record` fills figures, charts and claims. Read `outside.rs` first.

mod outside;
mod receiver;
mod record;
pub mod tools;

use super::context::{Context, until_stopped};
use crate::environment::allowed_cores;
use load::{LoadOptions, NoCompanion, QueryTimes};
use measure::name_range::NameRange;
use measure::order::{Expectation, Lanes, Load, Pace};
use measure::outcome::{Outcome, Verdict};
use outside::Outside;
use receiver::{Received, Receiver};
use std::net::Ipv4Addr;
use std::time::Duration;
use tools::Tool;

/// Zone of the names.
const ZONE: &str = "dns64perf.test";

/// Address of the first name. The names of a trial are those of 10.0.0.0/8 from it on, in order, so that a name tells the number of its
/// query.
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 0);

/// Address of the last name.
const LAST: Ipv4Addr = Ipv4Addr::new(10, 255, 255, 255);

/// Lifetime of the receiver's answers, in seconds.
const TTL_SECS: u32 = 3600;

/// Attempts at a trial that the tester itself calls limited.
const ATTEMPTS: u32 = 3;

/// Ordered rates in queries per second: short and whole version.
const RATES_QPS: (&[f64], &[f64]) = (&[1_000.0, 10_000.0], &[1_000.0, 10_000.0, 50_000.0, 100_000.0]);

/// A way of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    /// Name in tables.
    name: &'static str,
    /// Most queries that leave one port in one system call.
    group: u16,
    /// True if the sending thread waits in a busy loop.
    spin: bool,
}

/// Ways of sending: as `run` does by default, in groups, and awake.
const WAYS: [Way; 3] = [
    Way { name: "single", group: 1, spin: false },
    Way { name: "groups of 16", group: 16, spin: false },
    Way { name: "single, awake", group: 1, spin: true },
];

/// One load, as the tester and as the receiver saw it.
struct Trial {
    rate_qps: f64,
    /// Name of the way of sending, or of another tool.
    sender: &'static str,
    /// Most queries that leave together.
    group: u16,
    /// The tester's own account; none of another tool.
    inside: Option<Outcome>,
    /// The receiver's.
    outside: Outside,
    /// Counts of the receiver.
    received: Received,
}

impl Trial {
    /// Name of the row in tables.
    fn row(&self) -> String {
        format!("{}/s, {}", measure::units::grouped(self.rate_qps as u64), self.sender)
    }

    /// True if the tester itself says that it kept its schedule.
    fn is_accepted(&self) -> bool {
        self.inside.as_ref().is_some_and(|inside| inside.verdict != Verdict::TesterLimited)
    }
}

/// Runs the experiment.
///
/// # Errors
///
/// The highest rate needs more names in `--duration` than there are, a tool or the receiver fails, or the user stops the experiment.
pub fn run(context: &mut Context) -> Result<(), String> {
    let rates = context.choose(RATES_QPS.0, RATES_QPS.1);
    let usual = context.choose(Duration::from_secs(2), Duration::from_secs(10));
    let duration = context.options.duration.unwrap_or(usual);
    if rates[rates.len() - 1] * duration.as_secs_f64() > names().names() as f64 {
        return Err(format!(
            "{} s: a trial at {} queries/s would need more than the {} names; give a shorter --duration",
            duration.as_secs(),
            rates[rates.len() - 1],
            names().names()
        ));
    }
    let mut trials = Vec::new();
    for way in WAYS {
        for rate_qps in rates {
            trials.push(trial(context, *rate_qps, way, duration)?);
        }
    }
    for tool in Tool::all(context)? {
        for rate_qps in rates {
            trials.extend(trial_of_tool(context, &tool, *rate_qps, duration)?);
        }
    }
    record::enter(context, &trials, duration);
    Ok(())
}

/// Names of a trial.
fn names() -> NameRange {
    NameRange::new(FIRST, LAST).expect("the first address is before the last")
}

/// One trial, repeated if the tester says that it was limited.
fn trial(context: &mut Context, rate_qps: f64, way: Way, duration: Duration) -> Result<Trial, String> {
    let mut attempt = 1;
    loop {
        context.progress(&format!(
            "{} queries/s, {}, {} s",
            measure::units::grouped(rate_qps as u64),
            way.name,
            duration.as_secs_f64()
        ))?;
        let trial = trial_once(context, rate_qps, way, duration)?;
        match trial.is_accepted() {
            false if attempt < ATTEMPTS => attempt += 1,
            is_accepted => {
                if !is_accepted {
                    let row = trial.row();
                    let reason =
                        trial.inside.as_ref().map(|inside| inside.reason.clone()).unwrap_or_default();
                    context.warning(format!(
                        "{row}: the tester called {ATTEMPTS} trials limited; the last one is shown: {reason}"
                    ));
                }
                return Ok(trial);
            }
        }
    }
}

fn trial_once(context: &Context, rate_qps: f64, way: Way, duration: Duration) -> Result<Trial, String> {
    let (tester_cores, receiver_core) = split(&allowed_cores());
    let queries = (rate_qps * duration.as_secs_f64()).round() as usize;
    let receiver = Receiver::start(queries, receiver_core)?;
    let pace = Pace::Open { rate_qps, burst: 1 };
    let expect = Expectation { ttl: (TTL_SECS, TTL_SECS), ..Expectation::native(ZONE) };
    let order = Load {
        lanes: Lanes { group: way.group, spin: way.spin, pins: tester_cores, ..Lanes::default() },
        seed: context.seed(rate_qps as u64),
        ..Load::of_new_names(receiver.address(), pace, duration, names(), expect)
    };
    let options = LoadOptions { query_times: true, ..LoadOptions::default() };
    let progress = until_stopped(&context.stop);
    let loaded = load::run_with(&order, &options, None::<&mut NoCompanion>, progress);
    let received = receiver.end()?;
    let (inside, times) = loaded.map_err(|error| error.to_string())?;
    context.check_stop()?;
    let outside = Outside::of(&received.stamps, &sent_times(&times), rate_qps, duration)
        .ok_or("the receiver's kernel stamped no query")?;
    Ok(Trial { rate_qps, sender: way.name, group: way.group, inside: Some(inside), outside, received })
}

/// One load of another tool. None, with a warning, if the receiver saw none of its queries.
fn trial_of_tool(
    context: &mut Context,
    tool: &Tool,
    rate_qps: f64,
    duration: Duration,
) -> Result<Option<Trial>, String> {
    context.progress(&format!(
        "{} queries/s, {}, {} s",
        measure::units::grouped(rate_qps as u64),
        tool.name,
        duration.as_secs_f64()
    ))?;
    let (tester_cores, receiver_core) = split(&allowed_cores());
    let queries = (rate_qps * duration.as_secs_f64()).round() as usize;
    let receiver = Receiver::start(queries, receiver_core)?;
    let core = tester_cores.first().copied();
    tool.run(context, receiver.address(), queries, (rate_qps, duration), core)?;
    let received = receiver.end()?;
    let outside = Outside::of(&received.stamps, &[], rate_qps, duration);
    if outside.is_none() {
        context.warning(format!("{}: the receiver saw none of its queries, so it was left out", tool.name));
    }
    Ok(outside.map(|outside| Trial {
        rate_qps,
        sender: tool.name,
        group: 1,
        inside: None,
        outside,
        received,
    }))
}

/// The tester's own sending times by number of query, in nanoseconds of its measured time.
fn sent_times(times: &QueryTimes) -> Vec<Option<u64>> {
    times.queries().map(|query| query.sent).collect()
}

/// Cores of the tester, and the core of the receiver: none if there is one core alone.
fn split(allowed: &[u16]) -> (Vec<u16>, Option<u16>) {
    match allowed {
        [] | [_] => (Vec::new(), None),
        [first, .., last] => (vec![*first], Some(*last)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tester_and_receiver_have_a_core_each_if_there_are_two() {
        assert_eq!(split(&[7]), (vec![], None));
        assert_eq!(split(&[2, 3]), (vec![2], Some(3)));
        assert_eq!(split(&[2, 3, 5]), (vec![2], Some(5)));
    }

    #[test]
    fn the_names_last_for_a_minute_at_the_highest_rate() {
        let (_, rates) = RATES_QPS;
        assert!(rates[rates.len() - 1] * 60.0 <= names().names() as f64);
    }
}
