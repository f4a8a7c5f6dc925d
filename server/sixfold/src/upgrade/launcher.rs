//! The launcher: a small process that starts the successors of a server. The server starts it once, before it enters its sandbox:
//! a successor inherits no restriction that a newer version could not live with, and a server that an attacker has taken over cannot
//! start programs itself.
//!
//! The launcher takes no arguments of the successor from the server while it runs: it got them at its start. It ends when the
//! server closes its end of the channel.

use crate::upgrade::binary;
use crate::upgrade::channel::Channel;
use crate::upgrade::successor::{HANDOVER, STDIN};
use datapath::remedy::remedy;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Time for an answer of the launcher. It only starts or ends a process.
const ANSWER: Duration = Duration::from_secs(10);

/// Variables that are about the process that they were set for: the watchdog of systemd (sd_watchdog_enabled(3)) applies to any
/// process without WATCHDOG_PID, and the sockets of systemd come from the predecessor.
const OF_ONE_PROCESS: [&str; 5] = ["WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", HANDOVER];

/// A request of the server.
#[derive(Debug, Serialize, Deserialize)]
enum Request {
    /// Start a successor, which gets the descriptor of this message as standard input: the program of the server, or another one.
    Start(Option<PathBuf>),
    /// End the successor, if it still runs.
    End,
}

/// An answer of the launcher.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    /// The successor runs, with this number.
    Started(u32),
    /// There is no successor, for this reason.
    Refused(String),
    /// The successor has ended, with this status.
    Ended(String),
}

/// The server's handle to its launcher.
#[derive(Debug)]
pub struct Launcher {
    /// None once the launcher must end.
    channel: Option<Channel>,
    process: Child,
}

impl Launcher {
    /// Starts the launcher, which will start successors with the arguments of this process.
    ///
    /// # Errors
    ///
    /// The path of this program is unknown, or the error of socketpair(2), fork(2) or execve(2).
    pub fn start() -> io::Result<Launcher> {
        let (channel, end) = Channel::pair()?;
        let program = binary::of_this_process()?;
        // The file of this process: a package may have replaced the one at its path. Without /proc there is only the path.
        let own = Path::new("/proc/self/exe");
        let mut command = Command::new(if own.exists() { own } else { &program });
        command.arg0(&program).arg("launcher").arg(&program).args(std::env::args_os().skip(1));
        for variable in OF_ONE_PROCESS {
            command.env_remove(variable);
        }
        let process = command.stdin(Stdio::from(end.into_descriptor())).spawn()?;
        Ok(Launcher { channel: Some(channel), process })
    }

    /// Number of its process.
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Starts a successor with this end of a channel. Returns its number.
    ///
    /// # Errors
    ///
    /// The text for the operator: the program is not trusted or cannot be started, or the launcher has ended.
    pub fn start_successor(&self, program: Option<&Path>, handover: Channel) -> Result<u32, String> {
        match self.ask(&Request::Start(program.map(Path::to_owned)), Some(handover))? {
            Answer::Started(process) => Ok(process),
            Answer::Refused(error) | Answer::Ended(error) => Err(error),
        }
    }

    /// Ends the successor if it still runs. Returns its exit status.
    ///
    /// # Errors
    ///
    /// The text for the operator: the launcher has ended, or gives another answer.
    pub fn end_successor(&self) -> Result<String, String> {
        match self.ask(&Request::End, None)? {
            Answer::Ended(status) => Ok(status),
            other => Err(format!("the launcher has answered {other:?}")),
        }
    }

    fn ask(&self, request: &Request, handover: Option<Channel>) -> Result<Answer, String> {
        let broken = |error: io::Error| {
            format!(
                "the launcher, process {}, does not answer: {error}; restart the service",
                self.process.id()
            )
        };
        let channel = self.channel.as_ref().ok_or("the launcher has ended; restart the service")?;
        let descriptors: Vec<_> = handover.iter().map(AsFd::as_fd).collect();
        channel.send(request, &descriptors).map_err(broken)?;
        let answer = channel.receive(Some(ANSWER)).map_err(broken)?;
        answer.map(|(answer, _)| answer).ok_or_else(|| broken(io::ErrorKind::TimedOut.into()))
    }
}

impl Drop for Launcher {
    /// Ends the launcher. A successor that runs becomes a child of the service manager.
    fn drop(&mut self) {
        self.channel = None;
        let _ = self.process.wait();
    }
}

/// The command of the successors.
struct Successors<'a> {
    program: &'a Path,
    arguments: &'a [OsString],
}

/// Runs `sixfold launcher` for successors with this command, until the server closes its end of the channel, which is standard
/// input.
pub fn run(program: &Path, arguments: &[OsString]) -> ExitCode {
    // Signals for the whole service, like a Ctrl-C or `systemctl kill`, are for the server. A handler, unlike an ignored signal, does
    // not pass to the successor.
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2] {
        let _ = signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)));
    }
    // Started by its link in /proc, the process would be called "exe".
    let _ = rustix::thread::set_name(c"sixfold");
    let Ok(channel) = Channel::from_stdin() else {
        eprintln!("sixfold: `sixfold launcher` is started by `sixfold serve` only");
        return ExitCode::FAILURE;
    };
    let successors = Successors { program, arguments };
    let mut successor = None;
    loop {
        let answer = match channel.receive::<Request>(None) {
            Ok(None) => continue,
            Ok(Some((Request::Start(program), descriptors))) => {
                start(&successors, program.as_deref(), descriptors, &mut successor)
            }
            Ok(Some((Request::End, _))) => end(successor.take()),
            Err(_) => return ExitCode::SUCCESS,
        };
        if channel.send(&answer, &[]).is_err() {
            return ExitCode::SUCCESS;
        }
    }
}

fn start(
    successors: &Successors<'_>,
    program: Option<&Path>,
    mut descriptors: Vec<OwnedFd>,
    successor: &mut Option<Child>,
) -> Answer {
    let user = rustix::process::geteuid().as_raw();
    let program = match program.map(|program| binary::trusted(program, user)) {
        None => successors.program.to_owned(),
        Some(Ok(program)) => program,
        Some(Err(error)) => return Answer::Refused(error),
    };
    let Some(handover) = descriptors.pop() else { return Answer::Refused("no channel was given".into()) };
    let mut command = Command::new(&program);
    command.args(successors.arguments).stdin(Stdio::from(handover)).env(HANDOVER, STDIN);
    match command.spawn() {
        Ok(child) => Answer::Started(successor.insert(child).id()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Answer::Refused(not_executable(&program, &error))
        }
        Err(error) => {
            Answer::Refused(format!("cannot start {}: {error}; {}", program.display(), start_remedy(&error)))
        }
    }
}

/// The error for a program that has the permission to be executed, and is in a place where none is.
fn not_executable(program: &Path, error: &io::Error) -> String {
    let shown = program.display();
    format!(
        "cannot start {shown}: {error}; programs there may not be executed: put it below /usr, or add its folder to ExecPaths= \
         (and BindReadOnlyPaths=) of the systemd unit, or mount its file system without `noexec`"
    )
}

/// The remedy for a program that cannot be started.
fn start_remedy(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOENT) => {
            "it is gone, or its dynamic loader is missing: install the package again, or name another with --binary"
        }
        Some(libc::ENOEXEC) => {
            "it is damaged, or for another processor: install the package for this machine"
        }
        _ => remedy(error),
    }
}

fn end(successor: Option<Child>) -> Answer {
    let Some(mut successor) = successor else { return Answer::Ended("not started".into()) };
    // One that has ended already cannot be killed, and its number is not another process's: nobody has waited for it yet.
    let _ = successor.kill();
    Answer::Ended(successor.wait().map_or_else(|error| error.to_string(), |status| status.to_string()))
}
