//! Process of the server under test: started by a command, ready when it prints so or when it answers, with its failures in words.

use crate::limits;
use servers::process::Signal;
use servers::process::{guarded, tells_of_taken_port, write_files};
use servers::{LaunchPlan, Output, Process, Ready};
use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::Path;
use std::process::{self, Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Command line of a server that reads a Sixfold configuration.
#[derive(Clone, Debug)]
pub struct Program {
    serve: Vec<String>,
    check: Option<Vec<String>>,
    ready: Ready,
    /// The command may start processes of its own, which have to end with it. Sixfold does not; it stays in the
    /// process group of the runner, so that an interrupt from the terminal reaches both.
    own_process_group: bool,
}

impl Program {
    /// The `sixfold` binary.
    pub fn sixfold(binary: &Path) -> Program {
        let command = |subcommand: &str| {
            let words = [&binary.to_string_lossy(), subcommand, "--config", "{config}"];
            words.map(str::to_owned).to_vec()
        };
        Program {
            serve: command("serve"),
            check: Some(command("check")),
            ready: Ready::Line("sixfold: ready"),
            own_process_group: false,
        }
    }

    /// Any server, by a command with arguments separated by spaces, in which `{config}` stands for the file. It is
    /// ready when it answers. Cases about `sixfold check` are skipped.
    ///
    /// # Errors
    ///
    /// The command has no `{config}`.
    pub fn from_template(template: &str) -> Result<Program, String> {
        if !template.contains("{config}") {
            return Err(format!("{template}: {{config}} is missing, the place of the configuration file"));
        }
        let serve = template.split_whitespace().map(str::to_owned).collect();
        Ok(Program { serve, check: None, ready: Ready::Answer, own_process_group: true })
    }

    /// As [`from_template`](Self::from_template), for a server that prints a line which begins with `sixfold: ready`.
    ///
    /// # Errors
    ///
    /// As [`from_template`](Self::from_template).
    pub fn with_ready_line(template: &str) -> Result<Program, String> {
        Ok(Program { ready: Ready::Line("sixfold: ready"), ..Program::from_template(template)? })
    }

    /// Starts the server and waits until it is ready.
    ///
    /// # Errors
    ///
    /// The reason with the end of its output: the program cannot be started, ends by itself, or is not ready in time.
    pub fn start(&self, config: &Path, port: u16) -> Result<ServerProcess, Failure> {
        let words = fill(&self.serve, config);
        let output = Output::Kept(limits::MAX_OUTPUT_OCTETS);
        let started = match self.own_process_group {
            true => Process::start(guarded(&words), output),
            false => Process::start_in_our_group(command(&words), output),
        };
        ServerProcess::when_ready(started, self.ready, port)
    }

    /// Checks a configuration file; `None` if this server has no such command.
    pub fn check(&self, config: &Path) -> Option<Result<process::Output, String>> {
        let words = self.check.as_ref()?;
        let mut command = command(&fill(words, config));
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = match spawned {
            Ok(child) => child,
            Err(error) => return Some(Err(format!("{}: {error}", words[0]))),
        };
        Some(wait_for_exit(child))
    }
}

/// Starts a server with its own configuration format in `folder`, into which its files go, and waits until it answers at `port`.
///
/// # Errors
///
/// As [`Program::start`].
pub fn launch(plan: &LaunchPlan, folder: &Path, port: u16) -> Result<ServerProcess, Failure> {
    write_files(&plan.files, folder).map_err(|error| Failure(error.to_string()))?;
    let mut command = guarded(&plan.command);
    command.envs(&plan.environment).current_dir(folder);
    let started = Process::start(command, Output::Kept(limits::MAX_OUTPUT_OCTETS));
    ServerProcess::when_ready(started, Ready::Answer, port)
}

/// Failure of a server to become ready, or its end.
#[derive(Clone, Debug)]
pub struct Failure(pub String);

impl Failure {
    /// True if another process had the port: then another port may do.
    pub fn is_port_taken(&self) -> bool {
        tells_of_taken_port(&self.0)
    }

    /// Reason in a line of its output that begins with `not-applicable: `, printed before it ended: the program says
    /// that the case does not apply to it.
    pub fn not_applicable(&self) -> Option<String> {
        let (before, reason) = self.0.split_once("not-applicable: ")?;
        let begins_a_line = before.ends_with("): ") || before.ends_with(" / ");
        begins_a_line.then(|| reason.split(" / ").next().unwrap_or_default().trim().to_owned())
    }
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct ServerProcess(Process);

impl ServerProcess {
    /// Waits until a server that was started is ready.
    fn when_ready(started: io::Result<Process>, ready: Ready, port: u16) -> Result<ServerProcess, Failure> {
        let mut server = ServerProcess(started.map_err(|error| Failure(error.to_string()))?);
        let at = SocketAddr::from((Ipv6Addr::LOCALHOST, port));
        let waited = server.0.wait_for(limits::START_TIMEOUT, |log| ready.is_given(log, at));
        waited.map_err(|why| Failure(format!("{why}{}", server.last_output())))?;
        Ok(server)
    }

    /// Checks that the process still runs.
    ///
    /// # Errors
    ///
    /// It has ended: its exit status and the end of its output.
    pub fn check_running(&mut self) -> Result<(), Failure> {
        match self.0.ended() {
            None => Ok(()),
            Some(status) => Err(Failure(format!("the server ended ({status}){}", self.last_output()))),
        }
    }

    /// Sends SIGHUP.
    ///
    /// # Errors
    ///
    /// The error of kill(2).
    pub fn send_sighup(&mut self) -> Result<(), String> {
        self.0.signal(Signal::HUP).map_err(|error| format!("SIGHUP: {error}"))
    }

    fn last_output(&self) -> String {
        let text = self.0.log();
        if text.trim().is_empty() { String::new() } else { format!(": {}", text.trim().replace('\n', " / ")) }
    }
}

/// The words of a command line with the path of the configuration.
fn fill(words: &[String], config: &Path) -> Vec<String> {
    words.iter().map(|word| word.replace("{config}", &config.to_string_lossy())).collect()
}

fn command(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// Waits for the end of a process that writes little, and kills it when it takes too long.
///
/// # Errors
///
/// It has not ended within `limits::CHECK_TIMEOUT`, or its output cannot be read.
pub(crate) fn wait_for_exit(mut child: Child) -> Result<process::Output, String> {
    let end = Instant::now() + limits::CHECK_TIMEOUT;
    loop {
        match child.try_wait() {
            Ok(Some(_)) => return child.wait_with_output().map_err(|error| error.to_string()),
            Ok(None) if Instant::now() < end => thread::sleep(Duration::from_millis(2)),
            outcome => {
                drop(child.kill());
                drop(child.wait());
                return Err(format!(
                    "it has not ended after {} s ({outcome:?})",
                    limits::CHECK_TIMEOUT.as_secs()
                ));
            }
        }
    }
}
