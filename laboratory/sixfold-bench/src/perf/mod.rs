//! `sixfold-bench perf`: Sixfold beside a bare reflector, a bare echo, Unbound, BIND, PowerDNS and Knot Resolver, on one machine, in one
//! run, in turns, and parts of the laboratory beside similar programs. It prints medians, ranges and ratios, with the project's goals.
//!
//! Each experiment is a file with a `measure` function. First file to read: `cost.rs`, then `tester.rs`.

mod attacks;
mod authorities;
mod budget;
mod cached;
mod callgrind;
mod client;
mod cost;
mod device;
mod dnsperf;
mod echo;
mod flood;
mod generators;
mod hot;
mod kind;
mod limits;
mod lossless;
mod mappings;
mod memory;
mod messages;
mod mixed_load;
mod names;
mod networks;
mod overload;
mod page;
pub(crate) mod part;
mod popularity;
mod quota;
mod reflect;
mod resolve;
mod section;
mod selection;
mod series;
mod tester;
mod validation;
mod workers;

use crate::clock;
use crate::link::own_namespace::OwnNamespace;
use clap::Args;
use device::Device;
use kind::Kind;
use load::sockets::Pinned;
use section::Section;
use selection::{Experiment, Selection};
use serde_json::{Value, json};
use series::Timing;
use std::path::PathBuf;
use std::time::Duration;
use tester::Tester;

/// The hidden command that runs a part of the benchmark as a process of its own.
pub const PART_COMMAND: &str = "perf-part";

/// Core of the tester.
const TESTER_CORE: usize = 1;

/// Options of a benchmark.
#[derive(Debug, Args)]
pub struct Options {
    /// Rounds in which all devices take turns
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
    rounds: u16,
    /// Length of each measured window, in seconds, after a third of that as warm-up
    #[arg(long, value_name = "N", default_value_t = 3.0)]
    seconds: f64,
    /// Run only these experiments and devices; a list with commas [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<Selection>,
    /// Run one round with windows of one second, only to show that everything runs
    #[arg(long)]
    quick: bool,
    /// Also write every measurement to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Path of the sixfold binary [default: beside this program, or in PATH]
    #[arg(long, value_name = "FILE")]
    sixfold: Option<PathBuf>,
    /// Also measure the rivals in the root of another system, a folder as mmdebstrap makes it (needs root, for chroot)
    #[arg(long, value_name = "DIR")]
    rivals: Option<PathBuf>,
    /// Also write a page with charts: Markdown to this file, SVG files beside it
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

impl Options {
    /// Returns true if the experiment was named, or none was.
    fn runs(&self, experiment: Experiment) -> bool {
        self.names_experiment(experiment) || self.only.iter().all(|one| matches!(one, Selection::Device(_)))
    }

    /// Returns true if the experiment was named.
    fn names_experiment(&self, experiment: Experiment) -> bool {
        self.only.iter().any(|one| matches!(one, Selection::Experiment(named) if *named == experiment))
    }

    /// Returns true if devices of this kind were named, or none were.
    fn measures(&self, kind: Kind) -> bool {
        let named = |one: &Selection| matches!(one, Selection::Device(named) if *named == kind);
        self.only.iter().any(named) || self.only.iter().all(|one| matches!(one, Selection::Experiment(_)))
    }
}

/// Runs the selected experiments, and prints their sections. An experiment with clients of many networks has a network namespace of its
/// own; where none can be made, as without root, some figures are left out.
///
/// # Errors
///
/// An option is out of range, the machine has no second core, a file cannot be written, or an experiment fails.
pub fn run(options: &Options) -> Result<(), String> {
    let own = if wants_networks(options) { OwnNamespace::make().ok() } else { None };
    match &own {
        // Few addresses: among a thousand, each bind of a source port costs half a millisecond. The experiments that need them add them.
        Some(own) => own.namespace().run(|| {
            networks::add_addresses(0).map_err(|error| format!("addresses of the namespace: {error}"))?;
            benchmark(options, true)
        }),
        None => benchmark(options, false),
    }
}

/// Returns true if a selected experiment needs addresses of many networks.
fn wants_networks(options: &Options) -> bool {
    options.runs(Experiment::Overload)
        || options.names_experiment(Experiment::Memory)
        || options.names_experiment(Experiment::ValidationAttacks)
}

/// Finds the selected devices. Adds the reasons why others are missing to `left_out`.
fn find_devices(options: &Options, left_out: &mut Vec<String>) -> Vec<Device> {
    let mut devices = Vec::new();
    for kind in Kind::ALL {
        if options.measures(kind) {
            match Device::find(kind, options.sixfold.as_deref()) {
                Ok(device) => devices.push(device),
                Err(reason) => left_out.push(reason),
            }
            match options.rivals.as_deref().and_then(|root| Device::find_in(kind, root)) {
                Some(Ok(device)) => devices.push(device),
                Some(Err(reason)) => left_out.push(reason),
                None => {}
            }
        }
    }
    devices
}

/// Runs the selected experiments and prints their sections.
fn benchmark(options: &Options, has_networks: bool) -> Result<(), String> {
    let timing = build_timing(options)?;
    let mut left_out = Vec::new();
    let devices = find_devices(options, &mut left_out);
    let mut programs = None;
    if options.runs(Experiment::Generator) {
        match generators::Programs::find() {
            Ok(found) => programs = Some(found),
            Err(reason) => left_out.push(reason),
        }
    }

    // Before the tester pins itself to one core, after which it sees only that core.
    let machine = format!("{} {}", describe_machine(), device::describe_receive_buffers());
    println!("# Sixfold and its rivals\n\n{machine}\n");
    for reason in &left_out {
        println!("Left out: {reason}\n");
    }
    let mut sections = Vec::new();
    let mut print = |section: Section| {
        println!("{section}");
        sections.push(section);
    };
    let _pinned = Pinned::new(TESTER_CORE)
        .map_err(|error| format!("pinning to core {TESTER_CORE} (two cores are needed): {error}"))?;
    if options.runs(Experiment::Lossless) {
        let section = lossless::measure(&devices, timing);
        print(section.map_err(|error| format!("rate without loss: {error}"))?);
    }
    measure_devices(options, &devices, timing, has_networks, &mut print)?;
    if options.runs(Experiment::Engine) {
        print(resolve::measure(timing.rounds).map_err(|error| format!("engine: {error}"))?);
    }
    if options.runs(Experiment::Authority) {
        print(authorities::measure(timing).map_err(|error| format!("authority: {error}"))?);
    }
    if let Some(programs) = &programs {
        print(generators::measure(programs, timing).map_err(|error| format!("generators: {error}"))?);
    }
    if options.runs(Experiment::Validation) {
        print(validation::measure(&devices, timing).map_err(|error| format!("validation: {error}"))?);
    }
    let versions = devices.iter().filter_map(Device::with_version).collect();
    write_files(options, &machine, versions, &left_out, &sections)
}

/// Writes the files that were asked for.
fn write_files(
    options: &Options,
    machine: &str,
    versions: Vec<String>,
    left_out: &[String],
    sections: &[Section],
) -> Result<(), String> {
    if let Some(path) = &options.json {
        let sections: Value =
            sections.iter().map(|section| (section.key.to_owned(), section.json())).collect();
        let all = json!({"machine": machine, "left_out": left_out, "sections": sections});
        std::fs::write(path, format!("{all:#}\n")).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    if let Some(path) = &options.page {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let command = format!("sixfold-bench {}", words.join(" "));
        let now = clock::now_utc();
        let date = now.split('T').next().unwrap_or_default();
        let frame = page::Frame { date, command: &command, machine, versions: &versions, left_out };
        page::write(path, &frame, sections)?;
    }
    Ok(())
}

/// Runs the selected experiments on devices.
fn measure_devices(
    options: &Options,
    devices: &[Device],
    timing: Timing,
    has_networks: bool,
    print: &mut impl FnMut(Section),
) -> Result<(), String> {
    let runs = |experiment| options.runs(experiment);
    let mut tester = Tester::new().map_err(|error| format!("sockets of the tester: {error}"))?;
    if runs(Experiment::Cost) {
        print(cost::measure(&mut tester, devices, timing).map_err(|error| format!("cost: {error}"))?);
    }
    if runs(Experiment::Cached) {
        print(cached::measure(&mut tester, devices, timing).map_err(|error| format!("cached: {error}"))?);
    }
    if let Some(device) = devices.iter().find(|device| device.kind == Kind::Sixfold) {
        if runs(Experiment::Hot) {
            print(hot::measure(&mut tester, device, timing).map_err(|error| format!("hot: {error}"))?);
        }
        if runs(Experiment::Workers) {
            print(
                workers::measure(&mut tester, device, timing).map_err(|error| format!("workers: {error}"))?,
            );
        }
    }
    if runs(Experiment::Overload) {
        let section = overload::measure(&mut tester, devices, timing, has_networks);
        print(section.map_err(|error| format!("overload: {error}"))?);
    }
    // Only by its name: twelve attacks and their pauses take longer than all other experiments together.
    if options.names_experiment(Experiment::ValidationAttacks) {
        let section = attacks::measure(devices, timing, has_networks, options.quick);
        print(section.map_err(|error| format!("validation-attacks: {error}"))?);
    }
    // Last, because its addresses would slow the other servers down.
    if let Some(device) = devices.iter().find(|device| device.kind == Kind::Sixfold)
        && runs(Experiment::Memory)
    {
        let names = limits::MEMORY_NAMES / if options.quick { 100 } else { 1 };
        print(memory::measure(device, names, has_networks).map_err(|error| format!("memory: {error}"))?);
    }
    Ok(())
}

fn build_timing(options: &Options) -> Result<Timing, String> {
    let seconds = if options.quick { 1.0 } else { options.seconds };
    if !(0.1..=600.0).contains(&seconds) {
        return Err(format!("--seconds {seconds}: 0.1 to 600 are allowed"));
    }
    let window = Duration::from_secs_f64(seconds);
    let rounds = if options.quick { 1 } else { usize::from(options.rounds) };
    Ok(Timing { rounds, warm_up: window / 3, window })
}

/// Describes the machine of the run.
fn describe_machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let processor = read("/proc/cpuinfo");
    let model = processor.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "{cores} cores, {}, Linux {}, load {} when it began.",
        model.map_or("processor unknown", |(_, name)| name),
        read("/proc/sys/kernel/osrelease").trim(),
        read("/proc/loadavg").split(' ').next().unwrap_or_default()
    )
}
