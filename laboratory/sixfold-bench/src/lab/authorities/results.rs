//! Measurements of one server: correctness, load time, memory, rates, CPU time.

use super::buffers::Buffers;
use super::limits;
use super::question;
use super::rate::{Rates, Tester};
use super::running::{Installed, Running};
use super::schedule::{CoreSplit, Schedule};
use crate::lab::context::Context;
use crate::sockets;
use measure::experiment::Program;
use measure::statistics::{median, sorted};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::Ordering;

/// Rate at which the CPU time of all servers is compared, in queries per second. A server whose highest rate
/// is lower has no such figure.
pub const COMMON_RATE_QPS: f64 = 20_000.0;

/// Start of the first search, in queries per second.
const FIRST_RATE_QPS: f64 = 20_000.0;

/// One start with one zone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Start {
    /// Size of the zone as a power of two.
    pub bits: u32,
    /// Time to the first correct answer for the last name, in seconds.
    pub load_s: f64,
    /// CPU time of all its processes until then, in seconds.
    pub cpu_s: f64,
    /// Memory after loading, in octets.
    pub memory_octets: f64,
}

/// Rates of a server on some cores.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RateResults {
    /// Title of the cores.
    pub cores: String,
    /// Number of the server's cores.
    pub count: usize,
    /// One for each search.
    pub rates: Vec<Rates>,
    /// CPU time of an answered query at half of the highest rate, in microseconds.
    pub cpu_half_us: Vec<f64>,
    /// CPU time of an answered query at [`COMMON_RATE_QPS`], in microseconds.
    pub cpu_common_us: Vec<f64>,
    /// Memory after these trials, in octets.
    pub memory_octets: f64,
    /// Queries that the receive buffers of its sockets dropped in the searches, or in the trial of the short version.
    pub drops: u64,
    /// Share of the queries of the short version's trial that were answered in time; none if there was none, or the tester was the
    /// bottleneck.
    pub answered: Option<f64>,
}

/// Everything about one server.
#[derive(Clone, Debug)]
pub struct Results {
    /// The server.
    pub server: Installed,
    /// Program, version, command line and files of the last start.
    pub program: Option<Program>,
    /// Starts, by size.
    pub starts: Vec<Start>,
    /// Rates, by number of cores.
    pub rates: Vec<RateResults>,
    /// Receive buffers at the last start.
    pub buffers: Option<Buffers>,
    /// First fault: a wrong answer, or a start that failed.
    pub fault: Option<String>,
    /// Number of correctness checks that passed.
    pub checks: u32,
}

impl Results {
    /// Results of a server before its first start.
    pub fn of(server: Installed) -> Results {
        Results {
            server,
            program: None,
            starts: Vec::new(),
            rates: Vec::new(),
            buffers: None,
            fault: None,
            checks: 0,
        }
    }

    /// Starts the server on one core with a zone as often as the schedule says.
    ///
    /// # Errors
    ///
    /// A process does not end, or the user stops the experiment. A server that cannot be started is a fault in the results.
    pub fn load(
        &mut self,
        context: &Context,
        schedule: &Schedule,
        split: &CoreSplit,
        zone: (&Path, u32),
    ) -> Result<(), String> {
        for _ in 0..schedule.starts {
            if self.fault.is_some() {
                return Ok(());
            }
            context.progress(&format!("{}: loads 2^{} names", self.server.recipe.title, zone.1))?;
            let Some(running) = self.start(context, split, zone)? else { return Ok(()) };
            running.stop()?;
        }
        Ok(())
    }

    /// Measures rates on some cores.
    ///
    /// # Errors
    ///
    /// As [`Results::load`], and as [`Tester::trial`].
    pub fn measure_rates(
        &mut self,
        context: &Context,
        schedule: &Schedule,
        split: &CoreSplit,
        zone: (&Path, u32),
    ) -> Result<(), String> {
        let searches = if split.server.threads == 1 { schedule.searches.0 } else { schedule.searches.1 };
        let is_beyond = self.server.recipe.is_single && split.server.threads > 1;
        if self.fault.is_some() || is_beyond || (searches == 0 && schedule.has_searches()) {
            return Ok(());
        }
        let Some(running) = self.start(context, split, zone)? else { return Ok(()) };
        let stop = std::sync::Arc::clone(&context.stop);
        let tester = Tester {
            cores: split.tester.clone(),
            trial: schedule.trial,
            bits: zone.1,
            seed: context.seed(split.server.threads as u64),
            stop: &stop,
        };
        let mut results =
            RateResults { cores: split.title(), count: split.server.threads, ..RateResults::default() };
        let mut expected = FIRST_RATE_QPS;
        let port = running.address.port();
        let dropped = || sockets::drops(&running.members(), port);
        let drops = dropped();
        for number in 1..=searches {
            context.progress(&format!(
                "{}: {}, search {number} of {searches}",
                self.server.recipe.title, results.cores
            ))?;
            let limits = tester.limits(FIRST_RATE_QPS, schedule.precision, schedule.search_trials);
            // All others begin at one rate, on the grid of doublings of the first.
            let limits = results.rates.first().map_or(limits, |first| limits.from_scout(&first.confirmed));
            results.rates.push(tester.search(&running, limits)?);
            expected = median_of(&results.rates).max(limits.min_qps);
        }
        if !schedule.has_searches() {
            context.progress(&format!(
                "{}: {} queries/s",
                self.server.recipe.title,
                limits::QUICK_RATE_QPS
            ))?;
            let outcome = tester.trial(&running, limits::QUICK_RATE_QPS)?;
            results.answered = (!outcome.verdict.is_inconclusive()).then(|| 1.0 - outcome.loss());
        }
        results.drops = dropped().saturating_sub(drops);
        for _ in 0..schedule.cpu_trials.0 {
            results.cpu_half_us.extend(cpu(&tester, &running, expected / 2.0)?);
        }
        if schedule.has_searches() && expected > COMMON_RATE_QPS {
            for _ in 0..schedule.cpu_trials.1 {
                results.cpu_common_us.extend(cpu(&tester, &running, COMMON_RATE_QPS)?);
            }
        }
        results.memory_octets = running.memory_octets();
        self.rates.push(results);
        running.stop()
    }

    /// Starts the server, and checks its answers. None if it failed: the fault is recorded.
    fn start(
        &mut self,
        context: &Context,
        split: &CoreSplit,
        zone: (&Path, u32),
    ) -> Result<Option<Running>, String> {
        let started =
            Running::start(&self.server, &split.server, Ipv4Addr::LOCALHOST.into(), zone, &context.stop);
        if context.stop.load(Ordering::Relaxed) {
            // Progress fails now.
            context.progress("stops")?;
        }
        let running = match started {
            Ok(running) => running,
            Err(error) => {
                self.fault = Some(error);
                return Ok(None);
            }
        };
        self.program = Some(running.program.clone());
        self.buffers = Some(Buffers::equalize(&running.members(), running.address.port()));
        if let Err(error) = question::check(running.address, zone.1, running.answers) {
            self.fault = Some(error);
            running.stop()?;
            return Ok(None);
        }
        self.checks += 1;
        if split.server.threads == 1 {
            let memory_octets = running.memory_octets();
            self.starts.push(Start {
                bits: zone.1,
                load_s: running.load_s,
                cpu_s: running.load_cpu_s,
                memory_octets,
            });
        }
        Ok(Some(running))
    }
}

/// Median of the confirmed rates, in queries per second; 0 without any.
pub fn median_of(rates: &[Rates]) -> f64 {
    let rates: Vec<f64> = rates.iter().map(|rates| rates.confirmed.rate_qps).collect();
    median(&sorted(&rates)).unwrap_or(0.0)
}

/// CPU time of an answered query, if the tester kept its schedule and nearly all queries were answered: lost queries may have
/// cost time as well.
fn cpu(tester: &Tester, running: &Running, rate_qps: f64) -> Result<Option<f64>, String> {
    let before = running.usage();
    let outcome = tester.trial(running, rate_qps)?;
    let used = running.usage().since(&before, outcome.valid);
    Ok((!outcome.verdict.is_inconclusive() && outcome.loss() < 0.05).then_some(used.cpu_us_per_query))
}
