//! Plays one case: a fresh server, a fresh upstream, a folder and ports of its own.

use crate::case::{Case, Check, Object, Plan, Step};
use crate::client::{self, Exchange};
use crate::configuration::{self, Places};
use crate::expect::{self, Observation};
use crate::limits;
use crate::query::Query;
use crate::report::Outcome;
use crate::server_process::{Device, Failure, Folder, Program};
use crate::target::{Running, Subject};
use crate::upstream::Upstream;
use std::collections::HashSet;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// What all cases share.
#[derive(Debug)]
pub struct Stage {
    /// The server that is tested.
    pub subject: Subject,
    /// The name of whoever runs this.
    pub user: String,
    /// Ports that a case has been given. None is given twice, so that cases which run side by side do not meet.
    pub ports: Mutex<HashSet<u16>>,
}

/// Plays `case`.
pub fn play(case: &Case, stage: &Stage) -> Outcome {
    let outcome = match (&case.plan, &stage.subject) {
        (Plan::Check(check), Subject::Program(program)) => play_check(case, check, program, stage),
        (Plan::Check(_), _) => Ok(skipped("it is about Sixfold's configuration file")),
        (Plan::Questions(steps), Subject::Running(running)) => play_to_running(case, steps, running),
        (Plan::Questions(steps), _) => play_questions(case, steps, stage),
    };
    outcome.unwrap_or_else(|error| Outcome::Failed { differences: vec![error] })
}

/// Whether the server can be started with nothing but defaults, or answers if it runs already.
pub fn try_out(stage: &Stage) -> Result<(), String> {
    if let Subject::Running(running) = &stage.subject {
        return running.prepare();
    }
    let line = r#"{"id": "try-out", "category": "", "rfc": "-", "source": "", "level": "MUST", "config": {},
                   "query": {"name": "ready.invalid.", "type": "A"}, "expect": {}}"#;
    let case = Case::read(line).expect("it is a case");
    match play(&case, stage) {
        Outcome::Passed => Ok(()),
        Outcome::Failed { differences } => Err(differences.join("; ")),
        Outcome::Skipped { reason } => Err(reason),
    }
}

fn play_check(case: &Case, check: &Check, program: &Program, stage: &Stage) -> Result<Outcome, String> {
    // Nothing listens there: only the configuration is read.
    let upstream = SocketAddr::from((Ipv4Addr::LOCALHOST, 53));
    let setting = Setting::prepare(case, stage, upstream)?;
    match &check.raw_config {
        Some(text) => write(&setting.config, text)?,
        None => setting.write_config(&case.config)?,
    }
    let Some(output) = program.check(&setting.config) else {
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
    Ok(outcome(differences))
}

fn play_questions(case: &Case, steps: &[Step], stage: &Stage) -> Result<Outcome, String> {
    let upstream = Upstream::start().map_err(|error| format!("the runner's upstream: {error}"))?;
    let (setting, mut device) = match start(case, stage, upstream.address())? {
        Started::Ready(setting, device) => (setting, device),
        Started::Inapplicable(reason) => return Ok(Outcome::Skipped { reason }),
    };
    let scene = Scene {
        upstream: &upstream,
        ask: &|query, timeout| client::ask(setting.port, query, timeout),
        reload: &|config| {
            setting.write_config(config)?;
            device.hang_up()
        },
    };
    let mut differences = scene.play(steps)?;
    if let Err(Failure(words)) = device.alive() {
        differences.push(words);
    }
    differences.extend(upstream.faults());
    Ok(outcome(differences))
}

fn play_to_running(case: &Case, steps: &[Step], running: &Running) -> Result<Outcome, String> {
    if let Some(reason) = running.refusal(case) {
        return Ok(Outcome::Skipped { reason });
    }
    let upstream = running.upstream();
    // What the case before left would answer the probe and late questions.
    upstream.set_rules(Vec::new());
    running.prepare()?;
    let faults = upstream.faults().len();
    let scene = Scene {
        upstream,
        ask: &|query, timeout| client::ask_at(running.server(), query, timeout),
        reload: &|_| Err("a server that runs already is not told to read its configuration".to_owned()),
    };
    let mut differences = scene.play(steps)?;
    differences.extend(upstream.faults().into_iter().skip(faults));
    Ok(outcome(differences))
}

/// A server that is ready, and its upstream.
struct Scene<'a> {
    upstream: &'a Upstream,
    ask: &'a dyn Fn(&Query, Duration) -> io::Result<Exchange>,
    reload: &'a dyn Fn(&Object) -> Result<(), String>,
}

impl Scene<'_> {
    /// Plays the steps up to the first that fails: later ones build on earlier ones.
    fn play(&self, steps: &[Step]) -> Result<Vec<String>, String> {
        for (index, step) in steps.iter().enumerate() {
            let differences = self.play_step(step)?;
            if !differences.is_empty() {
                let number = if steps.len() == 1 { String::new() } else { format!("step {}: ", index + 1) };
                let numbered = differences.into_iter().map(|difference| format!("{number}{difference}"));
                return Ok(numbered.collect());
            }
        }
        Ok(Vec::new())
    }

    fn play_step(&self, step: &Step) -> Result<Vec<String>, String> {
        thread::sleep(step.wait);
        if let Some(rules) = &step.upstream {
            self.upstream.set_rules(rules.clone());
        }
        if let Some(config) = &step.reload {
            (self.reload)(config)?;
            thread::sleep(limits::RELOAD);
        }
        let end = Instant::now() + step.retry;
        loop {
            self.upstream.forget();
            let exchange = (self.ask)(&step.query, step.timeout)
                .map_err(|error| format!("the runner's client: {error}"))?;
            thread::sleep(limits::AFTERWARDS);
            let observation = Observation {
                query: &step.query,
                sent: &exchange.sent,
                answer: exchange.answer.as_deref(),
                elapsed: exchange.elapsed,
                upstream: &self.upstream.seen(),
            };
            let differences = expect::judge(&step.expect, &observation);
            if differences.is_empty() || Instant::now() >= end {
                return Ok(differences);
            }
            thread::sleep(limits::RETRY);
        }
    }
}

/// What came of starting a server.
enum Started<'a> {
    /// It runs.
    Ready(Setting<'a>, Device),
    /// The case does not apply to it; the reason.
    Inapplicable(String),
}

/// Starts the server, with other ports when somebody else was faster.
fn start<'a>(case: &Case, stage: &'a Stage, upstream: SocketAddr) -> Result<Started<'a>, String> {
    let mut last = String::new();
    for _ in 0..limits::STARTS {
        let setting = Setting::prepare(case, stage, upstream)?;
        let started = match &stage.subject {
            Subject::Program(program) => {
                setting.write_config(&case.config)?;
                program.start(&setting.config, setting.port)
            }
            Subject::Foreign(foreign) => match foreign.launch(case, &setting.places()) {
                Ok(launch) => {
                    for (name, text) in &launch.files {
                        write(&setting.folder.path().join(name), text)?;
                    }
                    launch.start(setting.folder.path(), setting.port)
                }
                Err(reason) => return Ok(Started::Inapplicable(reason)),
            },
            Subject::Running(_) => return Err("it runs already".to_owned()),
        };
        match started {
            Ok(device) => return Ok(Started::Ready(setting, device)),
            Err(failure) if failure.is_port_taken() => last = failure.0,
            Err(failure) => match failure.not_applicable() {
                Some(reason) => return Ok(Started::Inapplicable(reason)),
                None => return Err(failure.0),
            },
        }
    }
    Err(last)
}

/// The folder and the ports of a case.
struct Setting<'a> {
    folder: Folder,
    config: PathBuf,
    upstream: SocketAddr,
    port: u16,
    metrics_port: u16,
    user: &'a str,
}

impl<'a> Setting<'a> {
    fn prepare(case: &Case, stage: &'a Stage, upstream: SocketAddr) -> Result<Setting<'a>, String> {
        let io = |error: std::io::Error| format!("the runner's folder: {error}");
        let folder = Folder::create(&case.id).map_err(io)?;
        let config = folder.path().join("sixfold.toml");
        let (port, metrics_port) = (free_port(stage)?, free_port(stage)?);
        let setting = Setting { folder, config, upstream, port, metrics_port, user: &stage.user };
        for (name, text) in &case.files {
            write(&setting.folder.path().join(name), &setting.places().fill(text))?;
        }
        Ok(setting)
    }

    fn places(&self) -> Places<'_> {
        Places {
            directory: self.folder.path(),
            upstream: self.upstream,
            port: self.port,
            metrics_port: self.metrics_port,
            user: self.user,
        }
    }

    /// Replaces the file at once: a server that reads it meanwhile sees the one or the other.
    fn write_config(&self, config: &Object) -> Result<(), String> {
        let text = configuration::write(config, &self.places())?;
        let new = self.folder.path().join("new.toml");
        write(&new, &text)?;
        std::fs::rename(&new, &self.config).map_err(|error| format!("{}: {error}", self.config.display()))
    }
}

/// A port that is free for UDP and TCP on both loopback addresses, and has not been given to another case.
fn free_port(stage: &Stage) -> Result<u16, String> {
    let mut given = stage.ports.lock().expect("no case panics while it holds the ports");
    for _ in 0..1000 {
        // The first socket chooses; the others, which must have the same port, are closed with it.
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

fn outcome(differences: Vec<String>) -> Outcome {
    if differences.is_empty() { Outcome::Passed } else { Outcome::Failed { differences } }
}
