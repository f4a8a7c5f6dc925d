//! The benchmark behind `make bench`: Sixfold beside a bare reflector, Unbound, BIND, PowerDNS and Knot Resolver, on one machine, in
//! one run, in turns. It prints medians, ranges and ratios, with the project's goals. It has no part in the laboratory
//! (`sixfold-bench`), whose parts it compares with other programs.
//!
//! Each experiment is a file with a `measure` function. First file to read: `cost.rs`, then `tester.rs`.
#![forbid(unsafe_code)]

mod authorities;
mod budget;
mod cached;
mod callgrind;
mod chart;
mod client;
mod configuration;
mod cost;
mod device;
mod echo;
mod flood;
mod generators;
mod hot;
mod kind;
mod limits;
mod lossless;
mod memory;
mod messages;
mod mixed_load;
mod names;
mod namespace;
mod overload;
mod page;
mod popularity;
mod process;
mod quota;
mod reflect;
mod report;
mod resolve;
mod series;
mod statistics;
mod tester;
mod upstream;
mod workers;

use clap::builder::PossibleValue;
use clap::{Parser, Subcommand, ValueEnum};
use device::Device;
use kind::Kind;
use messages::Step;
use report::Section;
use resolve::Workload;
use serde_json::{Value, json};
use series::Timing;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::LazyLock;
use std::time::Duration;
use tester::Tester;

/// Measures Sixfold beside a bare reflector, Unbound, BIND, PowerDNS and Knot Resolver.
///
/// Example: sixfold-rivals --rounds 3 --only cost,sixfold,unbound --json result.json
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Rounds in which all devices take turns
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
    rounds: u16,
    /// Length of each measured window, in seconds, after a third of that as warm-up
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Run only these experiments and devices (default: all)
    #[arg(long, value_delimiter = ',')]
    only: Vec<Selection>,
    /// Run one round with windows of one second, only to show that everything runs
    #[arg(long)]
    quick: bool,
    /// Also write every measurement to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Path of the sixfold binary (default: beside this program)
    #[arg(long, value_name = "FILE")]
    sixfold: Option<PathBuf>,
    /// Also measure the rivals in the root of another system, a folder as mmdebstrap makes it (needs root, for chroot)
    #[arg(long, value_name = "DIR")]
    rivals: Option<PathBuf>,
    /// Also write a page with charts: Markdown to this file, SVG files beside it
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    #[command(subcommand)]
    subprocess: Option<Subprocess>,
}

/// Parts of the benchmark that run as processes of their own.
#[derive(Subcommand)]
#[command(disable_help_subcommand = true)]
enum Subprocess {
    /// Resolutions in memory, counted by valgrind
    #[command(hide = true)]
    Resolve { workload: Workload, count: u64 },
    /// Compares the instructions of each step with a file of budgets (valgrind)
    Budget { file: PathBuf },
    /// Single steps on messages, counted by valgrind
    #[command(hide = true)]
    Messages { step: Step, count: u64 },
    /// The bare echo, measured from outside
    #[command(hide = true)]
    Echo { listen: SocketAddr },
    /// The bare reflector, measured from outside
    #[command(hide = true)]
    Reflect { listen: SocketAddr, upstream: SocketAddr },
}

/// An experiment of the benchmark.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Experiment {
    Cost,
    Cached,
    Hot,
    Memory,
    Workers,
    Overload,
    Lossless,
    Engine,
    Authority,
    Generator,
}

/// A part of the benchmark that can be selected.
#[derive(Clone, Copy)]
enum Selection {
    Experiment(Experiment),
    Device(Kind),
}

static SELECTIONS: LazyLock<Vec<Selection>> = LazyLock::new(|| {
    let experiments = Experiment::value_variants().iter().copied().map(Selection::Experiment);
    experiments.chain(Kind::ALL.map(Selection::Device)).collect()
});

impl ValueEnum for Selection {
    fn value_variants<'a>() -> &'a [Selection] {
        &SELECTIONS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Selection::Experiment(experiment) => experiment.to_possible_value(),
            Selection::Device(kind) => Some(PossibleValue::new(kind.name())),
        }
    }
}

impl Arguments {
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

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments.subprocess {
        // A namespace with clients of many networks; without it some figures are left out.
        None if wants_networks(&arguments)
            && let Some(code) = namespace::enter() =>
        {
            return code;
        }
        None => benchmark(&arguments),
        Some(Subprocess::Resolve { workload, count }) => {
            println!("{}", resolve::run(*workload, *count, false));
            Ok(())
        }
        Some(Subprocess::Messages { step, count }) => {
            println!("{}", messages::run(*step, *count));
            Ok(())
        }
        Some(Subprocess::Budget { file }) => budget::check(file),
        Some(Subprocess::Echo { listen }) => echo::serve(*listen),
        Some(Subprocess::Reflect { listen, upstream }) => reflect::serve(*listen, *upstream),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sixfold-rivals: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns true if a selected experiment needs addresses of many networks.
fn wants_networks(arguments: &Arguments) -> bool {
    arguments.runs(Experiment::Overload) || arguments.names_experiment(Experiment::Memory)
}

/// Finds the selected devices. Adds the reasons why others are missing to `left_out`.
fn find_devices(arguments: &Arguments, left_out: &mut Vec<String>) -> Vec<Device> {
    let mut devices = Vec::new();
    for kind in Kind::ALL {
        if arguments.measures(kind) {
            match Device::find(kind, arguments.sixfold.as_deref()) {
                Ok(device) => devices.push(device),
                Err(reason) => left_out.push(reason),
            }
            match arguments.rivals.as_deref().and_then(|root| Device::find_in(kind, root)) {
                Some(Ok(device)) => devices.push(device),
                Some(Err(reason)) => left_out.push(reason),
                None => {}
            }
        }
    }
    devices
}

/// Runs the selected experiments and prints their sections.
fn benchmark(arguments: &Arguments) -> Result<(), String> {
    let timing = build_timing(arguments)?;
    let mut left_out = Vec::new();
    let devices = find_devices(arguments, &mut left_out);

    if namespace::is_inside() {
        // Few addresses: among a thousand, each bind of a source port costs half a millisecond. The experiments that need them add them.
        namespace::add_addresses(0).map_err(|error| format!("addresses of the namespace: {error}"))?;
    }

    let mut programs = None;
    if arguments.runs(Experiment::Generator) {
        match generators::Programs::find() {
            Ok(found) => programs = Some(found),
            Err(reason) => left_out.push(reason),
        }
    }

    let mut laboratory = None;
    if arguments.runs(Experiment::Lossless) {
        match lossless::find() {
            Ok(found) => laboratory = Some(found),
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
    process::pin_self("1").map_err(|error| format!("pinning to core 1 (two cores are needed): {error}"))?;
    if let Some(laboratory) = &laboratory {
        let section = lossless::measure(laboratory, &devices, timing);
        print(section.map_err(|error| format!("rate without loss: {error}"))?);
    }
    measure_devices(arguments, &devices, timing, &mut print)?;
    if arguments.runs(Experiment::Engine) {
        print(resolve::measure(timing.rounds).map_err(|error| format!("engine: {error}"))?);
    }
    if arguments.runs(Experiment::Authority) {
        let section = authorities::measure(arguments.sixfold.as_deref(), timing);
        print(section.map_err(|error| format!("authority: {error}"))?);
    }
    if let Some(programs) = &programs {
        print(generators::measure(programs, timing).map_err(|error| format!("generators: {error}"))?);
    }
    let versions = devices.iter().filter_map(Device::with_version).collect();
    write_files(arguments, &machine, versions, &left_out, &sections)
}

/// Writes the files that were asked for.
fn write_files(
    arguments: &Arguments,
    machine: &str,
    versions: Vec<String>,
    left_out: &[String],
    sections: &[Section],
) -> Result<(), String> {
    if let Some(path) = &arguments.json {
        let sections: Value =
            sections.iter().map(|section| (section.key.to_owned(), section.json())).collect();
        let all = json!({"machine": machine, "left_out": left_out, "sections": sections});
        std::fs::write(path, format!("{all:#}\n")).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    if let Some(path) = &arguments.page {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let command = format!("sixfold-rivals {}", words.join(" "));
        let now = humantime::format_rfc3339(std::time::SystemTime::now()).to_string();
        let date = now.split('T').next().unwrap_or_default();
        let frame = page::Frame { date, command: &command, machine, versions: &versions, left_out };
        page::write(path, &frame, sections)?;
    }
    Ok(())
}

/// Runs the selected experiments on devices.
fn measure_devices(
    arguments: &Arguments,
    devices: &[Device],
    timing: Timing,
    print: &mut impl FnMut(Section),
) -> Result<(), String> {
    let runs = |experiment| arguments.runs(experiment);
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
        print(overload::measure(&mut tester, devices, timing).map_err(|error| format!("overload: {error}"))?);
    }
    // Last, because its addresses would slow the other servers down.
    if let Some(device) = devices.iter().find(|device| device.kind == Kind::Sixfold)
        && runs(Experiment::Memory)
    {
        let names = limits::MEMORY_NAMES / if arguments.quick { 100 } else { 1 };
        print(memory::measure(device, names).map_err(|error| format!("memory: {error}"))?);
    }
    Ok(())
}

fn build_timing(arguments: &Arguments) -> Result<Timing, String> {
    let seconds = if arguments.quick { 1.0 } else { arguments.seconds };
    if !(0.1..=600.0).contains(&seconds) {
        return Err(format!("--seconds {seconds}: 0.1 to 600 are allowed"));
    }
    let window = Duration::from_secs_f64(seconds);
    let rounds = if arguments.quick { 1 } else { usize::from(arguments.rounds) };
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
