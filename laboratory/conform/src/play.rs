//! Plays one case with its own server, upstream, folder and ports.

use crate::case::{Case, Check, Plan, Step};
use crate::choice;
use crate::client::{self, Exchange};
use crate::configuration::{self, RunParameters};
use crate::expect::{self, Differences, Observation};
use crate::json::Object;
use crate::limits;
use crate::query::Query;
use crate::report::Outcome;
use crate::server_process::{self, Failure, Program, ServerProcess};
use crate::target::{RunningServer, Target};
use crate::upstream::Upstream;
use servers::WorkingFolder;
use std::cell::RefCell;
use std::collections::HashSet;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// State that all cases share.
#[derive(Debug)]
pub struct RunContext {
    /// The server under test.
    pub target: Target,
    /// Name of the user who runs this program.
    pub user: String,
    /// Ports that cases have been given. No port is given twice, so that cases which run at the same time do not
    /// collide.
    pub ports: Mutex<HashSet<u16>>,
}

/// Plays one case.
pub fn play(case: &Case, context: &RunContext) -> Outcome {
    let outcome = match (&case.plan, &context.target) {
        (Plan::Check(check), Target::Program(program)) => play_check(case, check, program, context),
        (Plan::Check(_), _) => Ok(skipped("it is about Sixfold's configuration file")),
        (Plan::Questions(steps), Target::Running(running)) => play_to_running(case, steps, running),
        (Plan::Questions(steps), _) => play_questions(case, steps, context),
    };
    outcome.unwrap_or_else(|error| Outcome::Failed { differences: vec![error] })
}

/// Checks that the server can be started with defaults only, or that it answers if it runs already.
///
/// # Errors
///
/// The reason why it cannot be started, or the differences between its answer and the right one.
pub fn check_target(context: &RunContext) -> Result<(), String> {
    if let Target::Running(running) = &context.target {
        return running.prepare();
    }
    match play(&plain_case(), context) {
        Outcome::Passed | Outcome::Remarked { .. } => Ok(()),
        Outcome::Failed { differences } => Err(differences.join("; ")),
        Outcome::Skipped { reason } => Err(reason),
    }
}

/// A case with an empty configuration, which every server passes that answers.
pub fn plain_case() -> Case {
    let line = r#"{"id": "try-out", "category": "", "rfc": "-", "source": "", "level": "MUST", "config": {},
                   "query": {"name": "ready.invalid.", "type": "A"}, "expect": {}}"#;
    Case::read(line).expect("it is a case")
}

fn play_check(
    case: &Case,
    check: &Check,
    program: &Program,
    context: &RunContext,
) -> Result<Outcome, String> {
    // Nothing listens there: only the configuration is read.
    let upstream = SocketAddr::from((Ipv4Addr::LOCALHOST, 53));
    let environment = CaseEnvironment::prepare(case, context, upstream)?;
    match &check.raw_config {
        Some(text) => write(&environment.config, text)?,
        None => environment.write_config(&case.config)?,
    }
    let Some(output) = program.check(&environment.config) else {
        return Ok(skipped("this server has no command that checks a configuration"));
    };
    let output = output?;
    let text =
        [output.stdout, output.stderr].map(|octets| String::from_utf8_lossy(&octets).into_owned()).concat();
    let said = || text.trim().replace('\n', " / ");
    let mut differences = Vec::new();
    if output.status.code() != Some(check.exit) {
        differences.push(format!("{}, expected exit status {}: {}", output.status, check.exit, said()));
    }
    for words in check.output_has.iter().filter(|words| !text.contains(words.as_str())) {
        differences.push(format!("the output does not name {words}: {}", said()));
    }
    Ok(outcome(Differences { answer: differences, upstream: Vec::new() }))
}

fn play_questions(case: &Case, steps: &[Step], context: &RunContext) -> Result<Outcome, String> {
    let upstream = Upstream::start().map_err(|error| format!("the runner's upstream: {error}"))?;
    let (environment, server) = match start(case, context, upstream.address())? {
        Started::Ready(environment, server) => (environment, RefCell::new(server)),
        Started::NotApplicable(reason) => return Ok(Outcome::Skipped { reason }),
    };
    let session = Session {
        upstream: &upstream,
        ask: &|query, timeout| client::ask(environment.port, query, timeout),
        reload: &|config| {
            environment.write_config(config)?;
            server.borrow_mut().send_sighup()
        },
    };
    let mut differences = session.play(case, steps)?;
    if let Err(Failure(words)) = server.borrow_mut().check_running() {
        differences.answer.push(words);
    }
    differences.answer.extend(upstream.faults());
    Ok(outcome(differences))
}

fn play_to_running(case: &Case, steps: &[Step], running: &RunningServer) -> Result<Outcome, String> {
    if let Some(reason) = running.not_applicable_reason(case) {
        return Ok(Outcome::Skipped { reason });
    }
    let upstream = running.upstream();
    // Rules of the case before would answer the probe and late queries.
    upstream.set_rules(Vec::new());
    running.prepare()?;
    let faults = upstream.faults().len();
    let session = Session {
        upstream,
        ask: &|query, timeout| client::ask_at(running.server(), query, timeout),
        reload: &|_| Err("a running server cannot be told to reload its configuration".to_owned()),
    };
    let mut differences = session.play(case, steps)?;
    differences.answer.extend(upstream.faults().into_iter().skip(faults));
    Ok(outcome(differences))
}

/// A ready server and its upstream.
struct Session<'a> {
    upstream: &'a Upstream,
    ask: &'a dyn Fn(&Query, Duration) -> io::Result<Exchange>,
    reload: &'a dyn Fn(&Object) -> Result<(), String>,
}

impl Session<'_> {
    /// Plays the steps up to the first whose answer fails: later steps build on earlier ones.
    fn play(&self, case: &Case, steps: &[Step]) -> Result<Differences, String> {
        let mut all = Differences::default();
        for (index, step) in steps.iter().enumerate() {
            let number = if steps.len() == 1 { String::new() } else { format!("step {}: ", index + 1) };
            let differences = self.play_step(case, step)?.prefixed(&number);
            all.upstream.extend(differences.upstream);
            if !differences.answer.is_empty() {
                return Ok(Differences { answer: differences.answer, ..all });
            }
        }
        Ok(all)
    }

    fn play_step(&self, case: &Case, step: &Step) -> Result<Differences, String> {
        thread::sleep(step.wait);
        if let Some(rules) = &step.upstream {
            self.upstream.set_rules(rules.clone());
        }
        if let Some(config) = &step.reload {
            (self.reload)(config)?;
            thread::sleep(limits::RELOAD_WAIT);
        }
        let end = Instant::now() + step.retry;
        loop {
            self.upstream.clear_received();
            let exchange = (self.ask)(&step.query, step.timeout)
                .map_err(|error| format!("the runner's client: {error}"))?;
            thread::sleep(limits::LATE_QUERY_WAIT);
            let observation = Observation {
                query: &step.query,
                sent: &exchange.sent,
                answer: exchange.answer.as_deref(),
                elapsed: exchange.elapsed,
                upstream: &self.upstream.received(),
            };
            let mut differences = expect::judge(&step.expect, &observation);
            if !differences.answer.is_empty()
                && let Some(remark) = choice::other_choice(case, step, &observation)
            {
                differences = Differences { answer: Vec::new(), upstream: vec![remark] };
            }
            if differences.is_empty() || Instant::now() >= end {
                return Ok(differences);
            }
            thread::sleep(limits::RETRY_INTERVAL);
        }
    }
}

/// Result of starting a server.
enum Started<'a> {
    /// The server runs.
    Ready(CaseEnvironment<'a>, ServerProcess),
    /// The case does not apply to the server; the reason.
    NotApplicable(String),
}

/// Starts the server; tries other ports if another process took one of them first.
fn start<'a>(case: &Case, context: &'a RunContext, upstream: SocketAddr) -> Result<Started<'a>, String> {
    let mut last = String::new();
    for _ in 0..limits::MAX_STARTS {
        let environment = CaseEnvironment::prepare(case, context, upstream)?;
        let started = match &context.target {
            Target::Program(program) => {
                environment.write_config(&case.config)?;
                program.start(&environment.config, environment.port)
            }
            Target::Foreign(foreign) => match foreign.launch(case, &environment.parameters()) {
                Ok(launch) => server_process::launch(&launch, environment.folder.path(), environment.port),
                Err(reason) => return Ok(Started::NotApplicable(reason)),
            },
            Target::Running(_) => return Err("it runs already".to_owned()),
        };
        match started {
            Ok(server) => return Ok(Started::Ready(environment, server)),
            Err(failure) if failure.is_port_taken() => last = failure.0,
            Err(failure) => match failure.not_applicable() {
                Some(reason) => return Ok(Started::NotApplicable(reason)),
                None => return Err(failure.0),
            },
        }
    }
    Err(last)
}

/// Folder and ports of a case.
struct CaseEnvironment<'a> {
    folder: WorkingFolder,
    config: PathBuf,
    upstream: SocketAddr,
    port: u16,
    metrics_port: u16,
    user: &'a str,
}

impl<'a> CaseEnvironment<'a> {
    fn prepare(
        case: &Case,
        context: &'a RunContext,
        upstream: SocketAddr,
    ) -> Result<CaseEnvironment<'a>, String> {
        let io = |error: std::io::Error| format!("the runner's folder: {error}");
        let folder = WorkingFolder::for_everybody(&case.id).map_err(io)?;
        let config = folder.path().join("sixfold.toml");
        let (port, metrics_port) = (free_port(context)?, free_port(context)?);
        let environment =
            CaseEnvironment { folder, config, upstream, port, metrics_port, user: &context.user };
        for (name, text) in &case.files {
            write(&environment.folder.path().join(name), &environment.parameters().fill(text))?;
        }
        Ok(environment)
    }

    fn parameters(&self) -> RunParameters<'_> {
        RunParameters {
            directory: self.folder.path(),
            upstream: self.upstream,
            port: self.port,
            metrics_port: self.metrics_port,
            user: self.user,
        }
    }

    /// Replaces the file atomically: a server that reads it at the same time sees the old or the new file.
    fn write_config(&self, config: &Object) -> Result<(), String> {
        let text = configuration::write(config, &self.parameters())?;
        let new = self.folder.path().join("new.toml");
        write(&new, &text)?;
        std::fs::rename(&new, &self.config).map_err(|error| format!("{}: {error}", self.config.display()))
    }
}

/// Finds a port that is free for UDP and TCP on both loopback addresses, and has not been given to another case.
fn free_port(context: &RunContext) -> Result<u16, String> {
    let mut given = context.ports.lock().expect("no case panics while it holds the ports");
    for _ in 0..1000 {
        // The first socket chooses the port. All sockets of this attempt are closed at its end.
        let first = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
        let port = first.local_addr().map_err(|error| error.to_string())?.port();
        let free = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
            && TcpListener::bind((Ipv6Addr::LOCALHOST, port)).is_ok()
            && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
        if free && given.insert(port) {
            return Ok(port);
        }
    }
    Err("no free port".to_owned())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn skipped(reason: &str) -> Outcome {
    Outcome::Skipped { reason: reason.to_owned() }
}

/// Result of a case. What only the upstream sees is a remark: the client got what it should.
fn outcome(differences: Differences) -> Outcome {
    if differences.is_empty() {
        Outcome::Passed
    } else if differences.answer.is_empty() {
        Outcome::Remarked { remarks: differences.upstream }
    } else {
        Outcome::Failed { differences: differences.all() }
    }
}
