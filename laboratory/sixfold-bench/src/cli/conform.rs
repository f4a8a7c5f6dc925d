//! `sixfold-bench conform`: plays conformance cases to any DNS64 server, and scores it.

use super::authority::parse_endpoint;
use super::report::print;
use super::result_file::{check_writable, write_result};
use crate::conformance::{self, Circumstances, Comparison, Scorecard};
use crate::file_error::file_error;
use crate::{clock, environment, signals};
use clap::{ArgGroup, Args};
use conform::namespace::{self, Entry};
use conform::{
    Case, Level, Played, Program, Requirements, Runner, RunningServer, Target, config_demands, play, run,
    suite,
};
use report::command_line::command_line;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::net::{Ipv6Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const HELP: &str = "\
A case has a configuration, a scripted upstream, questions, and the expected answers. The server to test is one of these:

  --device NAME      a server on this host, started for each case with a configuration in its own syntax
  --start COMMAND    any server: words separated by spaces, {config} stands for the case's configuration (TOML); a program \
that has no option for a case prints a line \"not-applicable: REASON\" and exits
  --server ADDR      a server that runs already, with one prefix, and forwards to --upstream-listen; its cache must be off, or \
emptied by --flush

Cases are not played to a server that has no option for them, or for whose option there is no translation; the table counts them, \
with the reasons. Cases whose clients have addresses that this host does not have need root, for a network namespace.

A requirement of an RFC holds if all its cases of a level pass. A case passes with a remark if the client gets what it should, but \
the upstream gets other queries than expected, or if the server makes the other choice that RFC 6147 section 5.3.1 leaves. What only \
Sixfold's own interface demands is of level local for other servers.

--servers DIR plays all servers in DIR/servers.toml, one after the other, and stores their results in DIR/servers.json; --page FILE \
then writes the tables of a page from them.

Exit status: 0 all applicable cases of level MUST and SHOULD have passed, 1 some have not, or none could be played, 2 wrong \
usage or an error in a file of cases.

Example: test the DNS64 of Unbound from the distribution's package:
  sixfold-bench conform --device unbound --html unbound.html";

/// `sixfold-bench conform`.
#[derive(Debug, Args)]
#[command(after_help = HELP, group = ArgGroup::new("tested").required(true).args(["device", "start", "server", "servers", "list"]))]
pub struct ConformArguments {
    /// Server to test, configured and started for each case
    #[arg(long, value_name = "NAME", value_parser = servers::NAMES)]
    device: Option<String>,
    /// Path of the program of --device [default: searched for]
    #[arg(long, value_name = "FILE", requires = "device")]
    program: Option<String>,
    /// Server to test, started for each case by this command line: words separated by spaces, one of them with {config}
    #[arg(long, value_name = "COMMAND", value_parser = parse_start_command)]
    start: Option<String>,
    /// Server to test that runs already; the default port is 53
    #[arg(long, value_name = "ADDR", requires = "upstream_listen", value_parser = parse_endpoint)]
    server: Option<SocketAddr>,
    /// Address of the scripted upstream, to which --server forwards everything; the default port is 53
    #[arg(long, value_name = "ADDR", requires = "server", value_parser = parse_endpoint)]
    upstream_listen: Option<SocketAddr>,
    /// DNS64 prefix of --server; only cases with this single prefix apply
    #[arg(long, value_name = "PREFIX", default_value = "64:ff9b::/96", value_parser = parse_prefix)]
    prefix: (Ipv6Addr, u8),
    /// Command line that empties the cache of --server before each case [default: none; the cache must be off]
    #[arg(long, value_name = "COMMAND", requires = "server")]
    flush: Option<String>,
    /// Cases: a file with one JSON object a line [default: the built-in cases]
    #[arg(long, value_name = "FILE")]
    cases: Option<PathBuf>,
    /// Only cases of this category; may be repeated [default: all]
    #[arg(long, value_name = "NAME")]
    category: Vec<String>,
    /// Only cases of this level: MUST, SHOULD, MAY or local; may be repeated [default: all]
    #[arg(long, value_name = "LEVEL", value_parser = parse_level)]
    level: Vec<Level>,
    /// Only the case with this ID; may be repeated [default: all]
    #[arg(long, value_name = "ID")]
    case: Vec<String>,
    /// Folder with a list of servers (servers.toml); plays them and stores the results there (servers.json)
    #[arg(long, value_name = "DIR", conflicts_with_all = ["cases", "category", "level", "case", "json", "html"])]
    servers: Option<PathBuf>,
    /// Of --servers only the server with this name, while the others keep their results; may be repeated; "none": only write
    /// the page [default: all]
    #[arg(long, value_name = "NAME", requires = "servers")]
    only: Vec<String>,
    /// Page whose tables are written from the results of --servers, each between its marks [default: none is written]
    #[arg(long, value_name = "FILE", requires = "servers")]
    page: Option<PathBuf>,
    /// Print the cases, one a line, and exit
    #[arg(long)]
    list: bool,
    /// Write the results as JSON to this file (-: standard output) [default: not written]
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the results as a page to this file (-: standard output) [default: not written]
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Cases played at the same time, 1 to 64; always one with --server [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    jobs: Option<u8>,
}

/// Plays the cases and prints the scorecard.
///
/// # Errors
///
/// A result file cannot be written, the server cannot be found or does not pass a plain query, or a signal comes. Cases that cannot be
/// selected are exit status 2, failed cases 1.
pub fn conform(arguments: &ConformArguments) -> Result<ExitCode, String> {
    if let Some(folder) = &arguments.servers {
        return compare_servers(arguments, folder);
    }
    let cases = match select_cases(arguments) {
        Ok(cases) => cases,
        Err(error) => {
            eprintln!("sixfold-bench: conform: {error}");
            return Ok(ExitCode::from(2));
        }
    };
    if arguments.list {
        print(&list_cases(&cases))?;
        return Ok(ExitCode::SUCCESS);
    }
    for file in [&arguments.json, &arguments.html].into_iter().flatten() {
        check_writable("conform", file)?;
    }
    let (subject, device, version) = select_subject(arguments)?;
    let runner = match prepare_execution(arguments, subject, &cases) {
        Execution::InProcess(runner) => runner,
        Execution::InNamespace(code) => return Ok(code),
    };
    let stop = signals::stop_flag().map_err(|error| format!("conform: {error}"))?;
    let runner = runner.stop_when(stop.clone());
    runner.check_target().map_err(|error| {
        let program = arguments.device.as_ref().map_or("", |_| device.as_str());
        format!("conform: {device} cannot be tested: {error}{}", conformance::confinement_hint(program))
    })?;
    let base = runner.target().configuration(&play::plain_case());
    let mut host = environment::read(&[]).facts;
    // These stand beside the host.
    host.retain(|name, _| name != "tool" && name != "time");
    let words = std::iter::once("sixfold-bench".to_owned()).chain(std::env::args().skip(1));
    let command = command_line(&words.collect::<Vec<_>>());
    let circumstances = Circumstances { date: clock::now_utc(), command, host, configuration: base };
    let further = |case: &Case| {
        conformance::further_lines(&circumstances.configuration, &runner.target().configuration(case))
    };
    let configured = cases.iter().map(further).collect();
    let results = play_cases(&runner, &cases);
    let suite = match &arguments.cases {
        Some(file) => file.display().to_string(),
        None => "built-in cases".to_owned(),
    };
    let tool = format!("sixfold-bench {}", super::VERSION.lines().next().unwrap_or_default());
    let requirements = Requirements::built_in()?;
    let card =
        Scorecard { device, version, suite, tool, cases, results, configured, circumstances, requirements };
    let is_output = |file: &Option<PathBuf>| file.as_deref().is_some_and(|file| file.as_os_str() == "-");
    if is_output(&arguments.json) || is_output(&arguments.html) {
        eprint!("{}", card.text());
    } else {
        print(&card.text())?;
    }
    if let Some(file) = &arguments.json {
        write_result("conform", file, &card.json())?;
    }
    if let Some(file) = &arguments.html {
        write_result("conform", file, &card.page())?;
    }
    if stop.load(Ordering::Relaxed) {
        return Err("conform: interrupted: some cases were not played".to_owned());
    }
    Ok(if card.score().holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Plays the servers of a list and writes the tables of a page.
fn compare_servers(arguments: &ConformArguments, folder: &Path) -> Result<ExitCode, String> {
    let failed = |error: String| format!("conform: {error}");
    let comparison = Comparison::new(folder).map_err(failed)?;
    if arguments.only != ["none"] {
        comparison.play(&arguments.only, arguments.jobs, |words| eprintln!("{words}")).map_err(failed)?;
    }
    if let Some(file) = &arguments.page {
        let page = File::open(file).and_then(textfile::read_to_string);
        let page = page.map_err(|error| failed(file_error(file, &error)))?;
        let page = comparison.fill_page(&page).map_err(failed)?;
        write_result("conform", file, &page)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Selects the cases. An error is wrong usage.
fn select_cases(arguments: &ConformArguments) -> Result<Vec<Case>, String> {
    let all = match &arguments.cases {
        Some(file) => {
            let text = File::open(file).and_then(textfile::read_to_string);
            let text = text.map_err(|error| file_error(file, &error))?;
            Case::read_all(&text).map_err(|error| format!("{}: {error}", file.display()))?
        }
        None => suite::built_in()?,
    };
    for id in &arguments.case {
        if !all.iter().any(|case| case.id == *id) {
            return Err(format!("no case has the ID \"{id}\"; --list prints all"));
        }
    }
    for category in &arguments.category {
        if !all.iter().any(|case| case.category == *category) {
            let mut known: Vec<&str> = all.iter().map(|case| case.category.as_str()).collect();
            known.sort_unstable();
            known.dedup();
            return Err(format!(
                "no case has the category \"{category}\"; the categories are {}",
                known.join(", ")
            ));
        }
    }
    let wanted = |case: &Case| {
        (arguments.case.is_empty() || arguments.case.contains(&case.id))
            && (arguments.category.is_empty() || arguments.category.contains(&case.category))
            && (arguments.level.is_empty() || arguments.level.contains(&case.level))
    };
    let cases: Vec<Case> = all.into_iter().filter(wanted).collect();
    if cases.is_empty() { Err("no case is left; remove a filter".to_owned()) } else { Ok(cases) }
}

fn list_cases(cases: &[Case]) -> String {
    let line = |case: &Case| format!("{}\t{}\t{}\t{}\n", case.id, case.level, case.category, case.rfc);
    cases.iter().map(line).collect()
}

/// The subject of the test, its name, and its version.
fn select_subject(arguments: &ConformArguments) -> Result<(Target, String, String), String> {
    if let Some(name) = &arguments.device {
        let (subject, version) = conformance::find_template(name, arguments.program.as_deref())
            .map_err(|error| format!("conform: {error}, or give its path with --program"))?;
        return Ok((subject, name.clone(), version));
    }
    if let Some(command) = &arguments.start {
        let program = Program::from_template(command)?;
        return Ok((Target::Program(program), command.clone(), String::new()));
    }
    let (Some(server), Some(upstream)) = (arguments.server, arguments.upstream_listen) else {
        return Err("conform: nothing to test; give --device, --start or --server".to_owned());
    };
    let words = arguments.flush.as_deref().unwrap_or_default();
    let flush = words.split_whitespace().map(str::to_owned).collect();
    let running = RunningServer::new(server, upstream, arguments.prefix, flush)
        .map_err(|error| format!("conform: {error}"))?;
    Ok((Target::Running(Box::new(running)), server.to_string(), String::new()))
}

/// How the cases are played.
enum Execution {
    /// By this runner, in this process.
    InProcess(Runner),
    /// A second process of this program has played them, in a network namespace that has the clients' addresses.
    InNamespace(ExitCode),
}

fn prepare_execution(arguments: &ConformArguments, subject: Target, cases: &[Case]) -> Execution {
    let cores = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let jobs = arguments.jobs.and_then(|jobs| NonZeroUsize::new(jobs.into())).unwrap_or(cores);
    let clients = run::foreign_clients(cases);
    if clients.is_empty() || matches!(subject, Target::Running(_)) {
        return Execution::InProcess(Runner::for_target(subject, jobs));
    }
    let own: Vec<String> = std::env::args().skip(1).collect();
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    match namespace::enter(&clients, &own, &[]) {
        Entry::Inside => Execution::InProcess(Runner::for_target(subject, jobs).inside_namespace()),
        Entry::Done(status) => {
            Execution::InNamespace(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1).into())
        }
        Entry::Unavailable(reason) => Execution::InProcess(
            Runner::for_target(subject, jobs)
                .without_namespace(format!("clients at other addresses: {reason}")),
        ),
    }
}

/// Plays the cases, with the progress on a terminal.
fn play_cases(runner: &Runner, cases: &[Case]) -> Vec<Played> {
    let is_terminal = io::stderr().is_terminal();
    let (done, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results = runner.run(cases, |played| {
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        let failed =
            failed.fetch_add(usize::from(played.failed()), Ordering::Relaxed) + usize::from(played.failed());
        if is_terminal {
            // A status that cannot be shown does not stop the cases.
            let _ = write!(io::stderr(), "\r\x1b[K{done} of {} cases, {failed} failed", cases.len());
        }
    });
    if is_terminal {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
    results
}

fn parse_start_command(text: &str) -> Result<String, String> {
    Program::from_template(text).map(|_| text.to_owned())
}

fn parse_prefix(text: &str) -> Result<(Ipv6Addr, u8), String> {
    config_demands::prefix(text).ok_or_else(|| "write it like 64:ff9b::/96".to_owned())
}

fn parse_level(text: &str) -> Result<Level, String> {
    let levels = [Level::Must, Level::Should, Level::May, Level::Local];
    let found = levels.into_iter().find(|level| level.to_string().eq_ignore_ascii_case(text));
    found.ok_or_else(|| "the levels are MUST, SHOULD, MAY and local".to_owned())
}
