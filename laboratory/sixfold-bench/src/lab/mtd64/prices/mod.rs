//! `mtd64-prices`: the price of each function that the paper on MTD64 plans to add one by one (section VI): parallel lookups, a cache, EDNS.
//!
//! A comparison is a pair of setups of one device that differ in one thing (`setups.rs`). All processes of a device run side by side, and
//! in each round each setup gets the same load, forwards in one round and backwards in the next. So a drift of the machine meets both of
//! a pair alike, and the ratio is taken within a round. `upstreams.rs` has the authorities, `results.rs` figures and claims. Read
//! `setups.rs` first.

mod limits;
mod results;
mod setups;
mod upstreams;

use super::cores::Cores;
use super::devices::{self, Launch, PREFIX, Subject};
use super::place::Place;
use crate::agent_client::AgentClient;
use crate::lab::context::{Context, until_stopped};
use crate::lab::device::RunningDevice;
use load::{LoadOptions, NoCompanion};
use measure::name_range::NameRange;
use measure::order::{Expectation, Lanes, Load, Pace, Validity};
use measure::outcome::{Outcome, Verdict};
use results::{Measured, Series};
use setups::{Change, Setup, Upstream};
use std::net::Ipv4Addr;
use std::sync::Arc;
use upstreams::{Upstreams, ZONE};

/// Devices without `--device`: those with a setting for more than EDNS.
const DEFAULT: [&str; 2] = ["sixfold", "unbound"];

/// Addresses of the first and the last name.
const NAMES: (Ipv4Addr, Ipv4Addr) = (Ipv4Addr::new(10, 0, 0, 0), Ipv4Addr::new(10, 255, 255, 255));

/// Runs the experiment.
///
/// # Errors
///
/// A server does not start, a load cannot be made, or the experiment was stopped.
pub fn run(context: &mut Context) -> Result<(), String> {
    let subjects = devices::subjects(context, &DEFAULT)?;
    let place = Place::open(subjects.iter().any(Subject::is_of_the_papers))?;
    let mut agent = place.agent()?;
    let cores = Cores::choose(context, &agent);
    let upstreams = Upstreams::start(&place, &cores)?;
    for subject in &subjects {
        let mut bench = Bench { place: &place, upstreams: &upstreams, cores: &cores, subject, next_name: 0 };
        match bench.measure(context, &mut agent) {
            Ok(series) => results::enter(context, &subject.name, &series),
            Err(why) if subject.name == "sixfold" => return Err(why),
            Err(why) => context.warning(format!("{} could not be measured: {why}", subject.name)),
        }
        context.check_stop()?;
    }
    results::differences(context);
    Ok(())
}

/// A process of a device. Setups with the same configuration and the same upstream share it.
struct Process {
    change: Change,
    upstream: Upstream,
    device: RunningDevice,
    /// Number of the first name of its last load for new names.
    asked_from: u64,
}

impl Process {
    fn serves(&self, setup: &Setup) -> bool {
        (self.change, self.upstream) == (setup.change, setup.upstream)
    }
}

/// A device with all that is around it.
struct Bench<'a> {
    place: &'a Place,
    upstreams: &'a Upstreams,
    cores: &'a Cores,
    subject: &'a Subject,
    /// Number of the next name that was not asked for yet.
    next_name: u64,
}

impl Bench<'_> {
    /// Measures all setups of the device.
    fn measure(&mut self, context: &mut Context, agent: &mut AgentClient) -> Result<Series, String> {
        let name = self.subject.name.as_str();
        let comparisons = setups::of_device(name, self.subject.is_of_the_papers());
        let setups = setups::used(&comparisons);
        let mut processes = Vec::new();
        let series = self
            .start_all(context, agent, &setups, &mut processes)
            .and_then(|()| self.rounds(context, agent, &setups, &mut processes));
        for process in processes {
            process.device.stop(agent);
        }
        Ok(Series { comparisons, setups, rounds: series? })
    }

    /// Starts the processes of all setups.
    fn start_all(
        &self,
        context: &mut Context,
        agent: &mut AgentClient,
        setups: &[Setup],
        processes: &mut Vec<Process>,
    ) -> Result<(), String> {
        for setup in setups {
            if !processes.iter().any(|process| process.serves(setup)) {
                context.progress(&format!("{}: starting it for \"{}\"", self.subject.name, setup.name))?;
                processes.push(self.start(context, agent, setup)?);
            }
        }
        Ok(())
    }

    /// Starts the process of a setup.
    fn start(
        &self,
        context: &mut Context,
        agent: &mut AgentClient,
        setup: &Setup,
    ) -> Result<Process, String> {
        let Subject { name, .. } = self.subject;
        let options = setup.change.options(name).ok_or_else(|| format!("{name} cannot do this"))?;
        let workers = if self.subject.is_of_the_papers() { limits::PAPER_PROGRAM_THREADS } else { 1 };
        let upstream = self.upstreams.address(setup.upstream);
        let launch =
            Launch { workers, cores: self.cores.device.clone(), options, ..Launch::new(upstream, ZONE) };
        self.place.set_v6only(self.subject.is_v6only())?;
        let first = format!("011-000-000-000.{ZONE}");
        let (device, _) = devices::start(context, self.place, agent, self.subject, &launch, &first)?;
        Ok(Process { change: setup.change, upstream: setup.upstream, device, asked_from: 0 })
    }

    /// Loads every setup once in each round, every other round in the opposite order. Returns what was measured by setup.
    fn rounds(
        &mut self,
        context: &Context,
        agent: &mut AgentClient,
        setups: &[Setup],
        processes: &mut [Process],
    ) -> Result<Vec<Vec<Measured>>, String> {
        let (rounds, _) = context.choose(limits::QUICK, limits::WHOLE);
        let mut series = vec![Vec::new(); setups.len()];
        for round in 0..rounds {
            context.progress(&format!("{}: round {} of {rounds}", self.subject.name, round + 1))?;
            let mut turns: Vec<usize> = (0..setups.len()).collect();
            if round % 2 == 1 {
                turns.reverse();
            }
            for at in turns {
                let setup = &setups[at];
                let process = processes.iter_mut().find(|process| process.serves(setup));
                let process = process.ok_or_else(|| format!("\"{}\" has no process", setup.name))?;
                series[at].push(self.load(context, agent, setup, process)?);
            }
        }
        Ok(series)
    }

    /// One load.
    fn load(
        &mut self,
        context: &Context,
        agent: &mut AgentClient,
        setup: &Setup,
        process: &mut Process,
    ) -> Result<Measured, String> {
        let order = self.order(context, setup, process);
        let options = LoadOptions { edns: setup.client_edns, ..LoadOptions::default() };
        let stop = Arc::clone(&context.stop);
        let before = process.device.usage(agent)?;
        let asked_before = self.upstreams.asked(setup.upstream);
        let loaded = self.place.run(|| {
            load::run_with(&order, &options, None::<&mut NoCompanion>, until_stopped(&stop))
                .map(|(outcome, _)| outcome)
                .map_err(|error| format!("{}, {}: {error}", self.subject.name, setup.name))
        });
        let outcome: Outcome = loaded?;
        let asked = self.upstreams.asked(setup.upstream) - asked_before;
        let used = process.device.usage(agent)?.since(&before, outcome.valid);
        context.check_stop()?;
        if !setup.again {
            process.asked_from = order.first_name;
            self.next_name = order.first_name + outcome.names_used;
        }
        // Without a valid answer there is no cost of one.
        let of_an_answer = |value: f64| if outcome.valid > 0 { value } else { f64::NAN };
        Ok(Measured {
            cpu_us: of_an_answer(used.cpu_us_per_query),
            latency_ms: of_an_answer(outcome.latency_us.actual.p50 / 1e3),
            upstream: asked as f64 / outcome.valid as f64,
            sent: outcome.sent,
            valid: outcome.valid,
            is_limited: outcome.verdict == Verdict::TesterLimited,
        })
    }

    /// The load of a setup.
    fn order(&self, context: &Context, setup: &Setup, process: &Process) -> Load {
        let (_, duration) = context.choose(limits::QUICK, limits::WHOLE);
        let names = NameRange::new(NAMES.0, NAMES.1).expect("the first address is before the last");
        let expect = match setup.upstream.is_native() {
            true => Expectation::native(ZONE),
            false => Expectation::synthesized(ZONE, PREFIX),
        };
        // MTD64 changes addresses whose third octet is 192 or more (see `papers::mtd64::model`).
        let validity = if self.subject.name == "mtd64" { Validity::Answered } else { Validity::Exact };
        let pace = Pace::Open { rate_qps: limits::RATE_QPS, burst: 1 };
        Load {
            first_name: if setup.again { process.asked_from } else { self.next_name },
            lanes: Lanes { pins: self.cores.tester.into_iter().collect(), ..Lanes::default() },
            seed: context.seed(self.next_name),
            ..Load::of_new_names(
                process.device.address,
                pace,
                duration,
                names,
                Expectation { validity, ..expect },
            )
        }
    }
}
