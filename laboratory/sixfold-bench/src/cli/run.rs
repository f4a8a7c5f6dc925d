//! `sixfold-bench run`: options of a run.

use super::device_choice::{self, DeviceParser};
use super::report::print;
use super::run_summary::summary;
use super::turns::{conclude, show_estimates};
use crate::file_error::file_error;
use crate::run::{self, Ended, turns};
use crate::signals;
use clap::Args;
use measure::order::Transport;
use measure::plan::{Draft, PROCEDURES, Plan, Prefix, Span};
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
The rfc8219 profile has trials of 60 s, a timeout of 1 s, 20 repetitions and the self-test. It takes hours, can be \
interrupted at any point, and is resumed with --resume. The quick profile takes minutes; its result is labelled not compliant.

The lencse2017 procedure continues the results that Lencse and others published from 2016 to 2021: a bisection from 0 to 16384 \
(--max) in whole queries/s, in which one failed trial excludes a rate; any reply with RCODE 0 and an answer record is valid, as in \
dns64perf++; one sending thread with one port; each query a datagram of its own; the device is restarted for each trial.

TIME is a number with a unit: ns, us, ms, s, m or h. Options override the plan, and the plan overrides the profile; \
sixfold-bench(1) describes every key of a plan.

Placeholders in --command, --device-option and --device-file: {listen} or {listen_address} and {listen_port}, {upstream} or \
{upstream_address} and {upstream_port}, {prefix}, {prefix_address}, {zone}, {workers}, {value} (of the sweep), {dir} (the folder of \
the files).

With --device several times the searches of all devices are taken in turns (repetition 1 of each, repetition 2 of each, ...), so that a \
drift of the machine meets all alike. A device is stopped while another has its turn, so it begins every search with an empty cache. \
DIR/NAME is the bundle of each, as of a run of its own, and DIR/devices.html is the report of all, with its charts beside it as SVG files. \
A device that fails takes no further turn, and the others go on. The same template may be given twice, and FILE.toml gives a device its own \
[device] of a plan; its name is that of the file. All other options hold for all devices.

Exit status: 0 success, 1 failed (a device, of several) or interrupted, 2 wrong usage or an invalid plan.

Example: run the required test on Unbound from the distribution's package, in minutes:
  sixfold-bench run --profile quick --device unbound --out /tmp/unbound
Example: the same for two devices in turns:
  sixfold-bench run --profile quick --device sixfold --device unbound --out /tmp/both";

/// `sixfold-bench run`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct RunArguments {
    /// Plan (TOML) of the run; options on the command line override it [default: the profile alone]
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Profile, source of all values that are not given: rfc8219 or quick [default: rfc8219]
    #[arg(long, value_name = "NAME", value_parser = ["rfc8219", "quick"])]
    profile: Option<String>,
    /// Procedure: rfc8219, or lencse2017, which repeats that of publications with dns64perf++ (see below) [default: rfc8219]
    #[arg(long, value_name = "NAME", value_parser = PROCEDURES)]
    procedure: Option<String>,
    /// Folder for the bundle: journal, run.json, report.html and the rest
    #[arg(long, value_name = "DIR", required_unless_present = "estimate")]
    out: Option<PathBuf>,
    /// Resume the run in --out, with its own plan; only --quiet can be combined with these two
    #[arg(long, conflicts_with_all = [
        "plan", "profile", "procedure", "device", "device_program", "command", "device_address", "device_pid", "device_option", "device_file", "as_shipped", "workers", "sweep", "grid",
        "repetitions", "trial", "timeout", "transport", "connections", "start", "max", "loss_goal", "prefix", "conformance", "estimate",
    ])]
    resume: bool,
    /// Device under test: the name of a template, which is configured and started, or FILE.toml with a table `device`; several take
    /// turns (see below)
    #[arg(long, value_name = "NAME", value_parser = DeviceParser)]
    device: Vec<String>,
    /// Path of the program of --device, on the device's host [default: searched for]
    #[arg(long, value_name = "FILE", requires = "device")]
    device_program: Option<String>,
    /// Device under test, started by any command line: words separated by spaces, with placeholders (see below)
    #[arg(long, value_name = "COMMAND", conflicts_with = "device")]
    command: Option<String>,
    /// Address for the device to listen on. Without --device and --command: address of a device that runs already; its
    /// authority is then that of the plan (authority.address) [default: a free port of ::1]
    #[arg(long, value_name = "ADDR")]
    device_address: Option<SocketAddr>,
    /// Process ID of a device that runs already, to watch its CPU time and memory; with --device-address [default: not watched]
    #[arg(long, value_name = "PID")]
    device_pid: Option<u32>,
    /// Line for the device's configuration, in its own syntax; may be repeated
    #[arg(long, value_name = "LINE")]
    device_option: Vec<String>,
    /// File for the folder of a --command device, with placeholders in its text; its name there is FILE without folders; may
    /// be repeated [default: none]
    #[arg(long, value_name = "FILE", conflicts_with = "device")]
    device_file: Vec<PathBuf>,
    /// Leave the device its own defaults for buffers and limits. Otherwise all devices get the same receive buffer, and a template
    /// raises limits that one busy client would reach
    #[arg(long)]
    as_shipped: bool,
    /// Threads of the device, or processes if it has no threads, 1 to 1024 [default: 1]
    #[arg(long, value_name = "N")]
    workers: Option<u16>,
    /// Measure for each value of a parameter: workers=1,2,4, or any name, and {value} for its value in --command,
    /// --device-option and --device-file
    #[arg(long, value_name = "NAME=V1,V2,...", value_parser = parse_sweep)]
    sweep: Option<(String, Vec<String>)>,
    /// Measure all combinations of 0, 20, 40, 60, 80 and 100 % of names with AAAA records and of cached names [default: 0 and 0]
    #[arg(long)]
    grid: bool,
    /// Searches for each result, 1 to 1000 [default: 20; quick: 4]
    #[arg(long, value_name = "N")]
    repetitions: Option<u32>,
    /// Length of a trial, 100ms to 24h [default: 60s; quick: 1.5s]
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    trial: Option<Span>,
    /// Timeout of a query, 4ms to 60s [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    timeout: Option<Span>,
    /// Transport of the queries to the device: udp, tcp (a connection for each query), tcp-reuse, tfo, tls, https or quic. The
    /// device gets a certificate for the encrypted ones, which the tester does not verify; it asks its authority over UDP
    /// [default: udp]
    #[arg(long, value_name = "NAME", hide_possible_values = true, value_parser = parse_transport)]
    transport: Option<Transport>,
    /// Connections of each sending thread that stay open, over tcp-reuse, tls, https and quic [default: 4]
    #[arg(long, value_name = "N")]
    connections: Option<u16>,
    /// First rate, queries a second, at least 1 [default: 1000; quick: 2000]
    #[arg(long, value_name = "QPS")]
    start: Option<f64>,
    /// Highest rate, queries a second, up to 100000000 [default: 2000000]
    #[arg(long, value_name = "QPS")]
    max: Option<f64>,
    /// Also search for the highest rate at which at most this share of the queries, between 0 and 1, gets no valid reply in
    /// time; may be repeated [default: only without loss]
    #[arg(long, value_name = "SHARE")]
    loss_goal: Vec<f64>,
    /// DNS64 prefix [default: 2001:2:0:64::/96]
    #[arg(long, value_name = "PREFIX", value_parser = parse_prefix)]
    prefix: Option<Prefix>,
    /// Conformance cases (JSON lines) to play before the measurement; only for --device sixfold on this host [default:
    /// none]
    #[arg(long, value_name = "FILE")]
    conformance: Option<PathBuf>,
    /// Print no progress, only the result on standard output
    #[arg(long)]
    quiet: bool,
    /// Print the effective plan as JSON and an estimate of its time, and exit
    #[arg(long)]
    estimate: bool,
}

fn parse_span(text: &str) -> Result<Span, String> {
    Span::try_from(text.to_owned())
}

fn parse_prefix(text: &str) -> Result<Prefix, String> {
    Prefix::try_from(text.to_owned())
}

fn parse_transport(text: &str) -> Result<Transport, String> {
    let names = Transport::ALL.map(Transport::name);
    let found = Transport::ALL.into_iter().find(|transport| transport.name() == text);
    found.ok_or_else(|| format!("the transports are {}", names.join(", ")))
}

fn parse_sweep(text: &str) -> Result<(String, Vec<String>), String> {
    let (name, values) = text.split_once('=').ok_or("write NAME=V1,V2,..., like workers=1,2,4")?;
    let values: Vec<String> =
        values.split(',').map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned).collect();
    if name.is_empty() || values.is_empty() {
        return Err("write NAME=V1,V2,..., like workers=1,2,4".to_owned());
    }
    Ok((name.to_owned(), values))
}

impl RunArguments {
    /// Carries out the command.
    ///
    /// # Errors
    ///
    /// The folder is missing or has another run, a host cannot be reached, or the run fails. A plan with an error is exit status 2.
    pub fn run(&self) -> Result<ExitCode, String> {
        let stop = signals::stop_flag()?;
        let ended = if self.resume {
            let out = self.out()?;
            if turns::is_folder_of_turns(out) {
                return conclude(&turns::resume(out, self.quiet, &stop)?, out);
            }
            run::resume(out, self.quiet, &stop)?
        } else {
            let mut plans = match self.plans() {
                Ok(plans) => plans,
                Err(error) => {
                    eprintln!("sixfold-bench: run: {error}");
                    return Ok(ExitCode::from(2));
                }
            };
            match (plans.len(), plans.pop()) {
                (1, Some((_, plan))) if self.estimate => return show_estimate(plan),
                (1, Some((_, plan))) => run::begin(&plan, self.out()?, self.quiet, &stop)?,
                (_, last) => {
                    plans.extend(last);
                    if self.estimate {
                        return show_estimates(plans);
                    }
                    let out = self.out()?;
                    return conclude(&turns::begin(&plans, out, self.quiet, &stop)?, out);
                }
            }
        };
        match ended {
            Ended::Complete(run) => {
                print(&summary(&run.device.title(), &run, self.out()?))?;
                Ok(ExitCode::SUCCESS)
            }
            Ended::Interrupted => {
                let out = self.out()?.display();
                eprintln!(
                    "interrupted; results so far: {out}/report.html; resume with: sixfold-bench run --resume --out {out}"
                );
                Ok(ExitCode::FAILURE)
            }
            Ended::Stopped(why) => Err(why),
        }
    }

    /// Folder of the bundle. Only an estimate needs none.
    fn out(&self) -> Result<&Path, String> {
        self.out.as_deref().ok_or_else(|| "--out is missing".to_owned())
    }

    /// The plan of each device with its name; of one device without `--device`, its plan alone.
    fn plans(&self) -> Result<Vec<(String, Plan)>, String> {
        if self.device.is_empty() {
            return Ok(vec![(String::new(), self.plan(None)?)]);
        }
        if self.device.len() > 1 && (self.device_program.is_some() || !self.device_option.is_empty()) {
            return Err("--device-program and --device-option are for one --device; write program and options of each of several in a \
                        FILE.toml with a [device], for --device FILE.toml"
                .to_owned());
        }
        let names = device_choice::names(&self.device);
        let plan = |(name, value): (String, &String)| match self.plan(Some(value.as_str())) {
            Ok(plan) => Ok((name, plan)),
            Err(why) if self.device.len() > 1 => Err(format!("{name}: {why}")),
            Err(why) => Err(why),
        };
        names.into_iter().zip(&self.device).map(plan).collect()
    }

    /// The plan of a device; `None`: that of `--plan` or of another option.
    fn plan(&self, chosen: Option<&str>) -> Result<Plan, String> {
        let mut file = match &self.plan {
            Some(path) => {
                let text = File::open(path).and_then(textfile::read_to_string);
                let text = text.map_err(|error| file_error(path, &error))?;
                Draft::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?
            }
            None => Draft::default(),
        };
        let mut line =
            Draft { profile: self.profile.clone(), procedure: self.procedure.clone(), ..Draft::default() };
        line.trial.duration = self.trial;
        line.trial.timeout = self.timeout;
        line.search.repetitions = self.repetitions;
        line.tester.transport = self.transport;
        line.tester.connections = self.connections;
        line.search.start = self.start;
        line.search.max = self.max;
        line.search.loss_goals = (!self.loss_goal.is_empty()).then(|| self.loss_goal.clone());
        line.names.prefix = self.prefix;
        line.correctness.conformance = self.conformance.as_deref().map(absolute).transpose()?;
        if self.grid {
            let shares = vec![0.0, 0.2, 0.4, 0.6, 0.8, 1.0];
            line.grid.aaaa = Some(shares.clone());
            line.grid.cached = Some(shares);
        }
        if let Some((parameter, values)) = self.sweep.clone() {
            line.sweep.parameter = Some(parameter);
            line.sweep.values = Some(values);
        }
        // A device on the command line replaces the plan's device, whichever way each is given.
        if chosen.is_some() || self.command.is_some() {
            (file.device.template, file.device.program, file.device.command) = (None, None, None);
            file.device.pid = None;
        }
        if let Some(chosen) = chosen {
            file.device.files = None;
            file.device = device_choice::read(chosen)?.over(file.device);
        }
        line.device.program = self.device_program.clone();
        let words = |command: &String| command.split_whitespace().map(str::to_owned).collect();
        line.device.command = self.command.as_ref().map(words);
        line.device.address = self.device_address;
        line.device.pid = self.device_pid;
        line.device.as_shipped = self.as_shipped.then_some(true);
        line.device.workers = self.workers;
        line.device.options = (!self.device_option.is_empty()).then(|| self.device_option.clone());
        if !self.device_file.is_empty() {
            let mut files = file.device.files.take().unwrap_or_default();
            for path in &self.device_file {
                let (name, text) = read_device_file(path)?;
                files.insert(name, text);
            }
            line.device.files = Some(files);
        }
        let plan = line.over(file).finish().map_err(|error| error.to_string())?;
        if !plan.device.template.is_empty() && !servers::NAMES.contains(&plan.device.template.as_str()) {
            return Err(format!(
                "no device template is called \"{}\"; the templates are {}; start any other server with --command",
                plan.device.template,
                servers::NAMES.join(", ")
            ));
        }
        Ok(plan)
    }
}

/// Name and text of a file for the device's folder. The text stays as it is: the device knows its own files.
fn read_device_file(path: &Path) -> Result<(String, String), String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("--device-file {}: {error}; name a readable text file", path.display()))?;
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name
        .ok_or_else(|| format!("--device-file {}: its name is not UTF-8: rename the file", path.display()))?;
    Ok((name.to_owned(), text))
}

/// Makes a path absolute for the plan: --resume may be run in another folder.
fn absolute(path: &Path) -> Result<String, String> {
    let path = std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let text = path.to_str().ok_or_else(|| {
        format!("{}: a plan is UTF-8, and this name is not: rename the file", path.display())
    })?;
    Ok(text.to_owned())
}

fn show_estimate(plan: Plan) -> Result<ExitCode, String> {
    let text = serde_json::to_string_pretty(&plan).map_err(|error| error.to_string())?;
    print(&(text + "\n"))?;
    let procedure = measure::procedure::Procedure::new(plan);
    eprintln!("about {} trials, {}", procedure.trials_left(), measure::units::show(procedure.time_left()));
    Ok(ExitCode::SUCCESS)
}
