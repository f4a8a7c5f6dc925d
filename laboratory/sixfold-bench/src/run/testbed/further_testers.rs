//! Further hosts of the tester: each sends an equal part of a trial's load, at the same time, for names of its own. Checks and probes
//! are left to the first host.

use crate::agent::protocol::Progress;
use crate::agent_client::{AgentClient, AgentError};
use load::merge;
use measure::order::{Load, Pace};
use measure::outcome::Outcome;
use measure::plan::{Plan, TesterHost};
use measure::procedure::Task;
use measure::run::Environment;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// The further hosts, each with its agent.
pub(super) struct FurtherTesters {
    hosts: Vec<(TesterHost, AgentClient)>,
}

impl FurtherTesters {
    /// Connects to the further hosts of a plan.
    ///
    /// # Errors
    ///
    /// An agent cannot be started at a host.
    pub(super) fn connect(plan: &Plan) -> Result<FurtherTesters, String> {
        let connect = |(number, host): (usize, &TesterHost)| {
            let agent = AgentClient::connect(&role(number), Some(&host.host));
            agent.map(|agent| (host.clone(), agent)).map_err(|error| error.to_string())
        };
        let hosts = plan.tester.more.iter().enumerate().map(connect).collect::<Result<_, _>>()?;
        Ok(FurtherTesters { hosts })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// The facts of each host, by role.
    ///
    /// # Errors
    ///
    /// An agent has ended, or does not answer.
    pub(super) fn environments(
        &mut self,
        addresses: &[IpAddr],
    ) -> Result<Vec<(String, Environment)>, String> {
        let read = |(number, (_, agent)): (usize, &mut (TesterHost, AgentClient))| {
            let facts = agent.environment(addresses).map_err(|error| error.to_string())?;
            Ok((role(number), facts))
        };
        self.hosts.iter_mut().enumerate().map(read).collect()
    }

    /// Number of names from the first one of a task to the last one that a host used.
    pub(super) fn range_used(&self, plan: &Plan, task: &Task, used: u64) -> u64 {
        if self.is_empty() { used } else { plan.names_needed(task.rate_qps, task.cell) }
    }

    /// Runs a load with all hosts, the first one included: each sends at an equal share of the rate, for the next `names` names of
    /// the range. Returns `None` if the run was stopped. The progress is that of the first host.
    ///
    /// # Errors
    ///
    /// A host has failed, with its reason.
    pub(super) fn run_load(
        &mut self,
        first: &mut AgentClient,
        load: &Load,
        names: u64,
        stop: &AtomicBool,
        progress: &mut impl FnMut(&Progress),
    ) -> Result<Option<Outcome>, String> {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let parts = parts(load, names, self.hosts.iter().map(|(host, _)| host));
        let (own, further) = parts.split_first().ok_or("no host sends")?;
        let outcomes = std::thread::scope(|scope| {
            let threads: Vec<_> = (self.hosts.iter_mut().zip(further))
                .map(|((_, agent), part)| scope.spawn(|| agent.load(part, |_| !stop.load(Ordering::Relaxed))))
                .collect();
            let own = first.load(own, |now| {
                progress(now);
                !stop.load(Ordering::Relaxed)
            });
            let joined = threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            std::iter::once(own).chain(joined).collect::<Vec<_>>()
        });
        let mut ended = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            match outcome {
                Ok(outcome) => ended.push(outcome),
                Err(AgentError::Aborted { .. }) => return Ok(None),
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(Some(merge(&ended)))
    }
}

/// The role of a further host in messages and in the record; the first host is `tester`.
fn role(number: usize) -> String {
    format!("tester {}", number + 2)
}

/// The load of each host, the first one included.
fn parts<'a>(load: &Load, names: u64, further: impl Iterator<Item = &'a TesterHost>) -> Vec<Load> {
    let further: Vec<&TesterHost> = further.collect();
    let hosts = 1 + further.len();
    let pace = match load.pace {
        Pace::Open { rate_qps, burst } => Pace::Open { rate_qps: rate_qps / hosts as f64, burst },
        Pace::Closed { outstanding } => Pace::Closed { outstanding: outstanding.div_ceil(hosts as u32) },
    };
    let part = |number: usize| {
        let mut part = Load { pace, first_name: load.first_name + number as u64 * names, ..load.clone() };
        part.seed = load.seed.wrapping_add(number as u64 * names);
        if let Some(host) = number.checked_sub(1).map(|number| further[number]) {
            part.lanes.pins = host.cores.clone();
            part.lanes.sources = host.sources.clone();
        }
        part
    };
    (0..hosts).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::name_range::NameRange;
    use measure::order::{Expectation, Lanes};

    #[test]
    fn each_host_sends_its_share_for_names_of_its_own() {
        let (pace, second) = (Pace::Open { rate_qps: 900.0, burst: 1 }, std::time::Duration::from_secs(1));
        let names = NameRange::new([10, 0, 0, 0].into(), [10, 255, 255, 255].into()).unwrap();
        let expect = Expectation { aaaa_share: 0.0, ..Expectation::native("dns64perf.test") };
        let load = Load::of_new_names("[::1]:53".parse().unwrap(), pace, second, names, expect);
        let lanes = Lanes { pins: vec![3], ..Lanes::default() };
        let load = Load { first_name: 5_000, lanes, ..load };
        let host = |core, source: &str| TesterHost {
            host: vec!["ssh".to_owned()],
            cores: vec![core],
            sources: vec![source.parse().unwrap()],
        };
        let further = [host(1, "2001:2::1"), host(2, "2001:2::2")];
        let parts = parts(&load, 400, further.iter());
        assert_eq!(parts.len(), 3);
        for (number, part) in parts.iter().enumerate() {
            assert_eq!(part.pace, Pace::Open { rate_qps: 300.0, burst: 1 });
            assert_eq!(part.first_name, 5_000 + 400 * number as u64);
            assert_eq!(part.lanes.pins, [[3], [1], [2]][number]);
            assert_eq!(part.lanes.sources.len(), usize::from(number > 0));
        }
    }
}
