//! Process of the server under test: started by a command, ready when it prints so or when it answers, and killed
//! when the [`ServerProcess`] is dropped.

use crate::client;
use crate::limits;
use crate::query::Query;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
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

/// Sign that a server is ready.
#[derive(Clone, Copy, Debug)]
enum Ready {
    /// A line of its output that begins with this text.
    Line(&'static str),
    /// An answer to a query.
    Answer,
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
        start(command(&self.serve, config), self.ready, self.own_process_group, port)
    }

    /// Checks a configuration file; `None` if this server has no such command.
    pub fn check(&self, config: &Path) -> Option<Result<Output, String>> {
        let words = self.check.as_ref()?;
        let mut command = command(words, config);
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = match spawned {
            Ok(child) => child,
            Err(error) => return Some(Err(format!("{}: {error}", words[0]))),
        };
        Some(wait_for_exit(child))
    }
}

/// Command line of a server with its own configuration format, made for one case, and the files that it needs.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// Command line; never empty.
    pub command: Vec<String>,
    /// Files for the folder of the case: name and text.
    pub files: BTreeMap<String, String>,
    /// Environment variables, in addition to those of this process.
    pub environment: BTreeMap<String, String>,
}

impl Launch {
    /// Starts the server in `folder`, which already has the files, and waits until it answers at `port`.
    ///
    /// # Errors
    ///
    /// As [`Program::start`], and if the command line is empty.
    pub fn start(&self, folder: &Path, port: u16) -> Result<ServerProcess, Failure> {
        let (program, arguments) =
            self.command.split_first().ok_or_else(|| Failure("the command line is empty".to_owned()))?;
        let mut command = Command::new(program);
        command.args(arguments).envs(&self.environment).current_dir(folder);
        start(command, Ready::Answer, true, port)
    }
}

/// Starts a server and waits until it is ready. The error has the end of its output.
fn start(
    mut command: Command,
    ready: Ready,
    own_process_group: bool,
    port: u16,
) -> Result<ServerProcess, Failure> {
    if own_process_group {
        command.process_group(0);
    }
    // Error messages may be on either output.
    let pipe = io::pipe().and_then(|(reader, writer)| Ok((reader, writer.try_clone()?, writer)));
    let (output, stdout, stderr) = pipe.map_err(|error| Failure(format!("a pipe: {error}")))?;
    let spawned = command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).spawn();
    let program = || command.get_program().to_string_lossy().into_owned();
    let child = spawned.map_err(|error| Failure(format!("{}: {error}", program())))?;
    // The command holds copies of the writing ends, which would keep the pipe open.
    drop(command);
    let words = Arc::new(Mutex::new(VecDeque::new()));
    let kept = Arc::clone(&words);
    let (sender, lines) = mpsc::channel();
    let reader = thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        // Long lines are cut, so that a server without line ends needs bounded memory too.
        while matches!(output.by_ref().take(4096).read_until(b'\n', &mut line), Ok(1..)) {
            let text = String::from_utf8_lossy(&line).into_owned();
            keep_last_lines(&mut kept.lock().expect("no reader panics"), &text);
            // The receiver is gone once the server is ready.
            drop(sender.send(text));
            line.clear();
        }
    });
    let mut server = ServerProcess { child, own_process_group, reader: Some(reader), words };
    match ready {
        Ready::Line(beginning) => server.wait_for_line(beginning, &lines)?,
        Ready::Answer => server.wait_for_answer(port)?,
    }
    Ok(server)
}

/// True if the last output of a server says that another process has its port. A port that was chosen because it was free may be taken
/// before the server binds it.
pub fn tells_of_taken_port(output: &str) -> bool {
    let words = output.to_ascii_lowercase();
    ["address already in use", "address in use", "port is in use", "os error 98"]
        .iter()
        .any(|told| words.contains(told))
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
pub struct ServerProcess {
    child: Child,
    own_process_group: bool,
    reader: Option<JoinHandle<()>>,
    words: Arc<Mutex<VecDeque<String>>>,
}

impl ServerProcess {
    /// Checks that the process still runs.
    ///
    /// # Errors
    ///
    /// It has ended: its exit status and the end of its output.
    pub fn check_running(&mut self) -> Result<(), Failure> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(Failure(format!("the server ended ({status}){}", self.last_output()))),
            Err(error) => Err(Failure(format!("the server's state: {error}"))),
        }
    }

    /// Sends SIGHUP.
    ///
    /// # Errors
    ///
    /// The error of kill(2).
    pub fn send_sighup(&self) -> Result<(), String> {
        kill_process(Pid::from_child(&self.child), Signal::HUP).map_err(|error| format!("SIGHUP: {error}"))
    }

    fn wait_for_line(&mut self, beginning: &str, lines: &Receiver<String>) -> Result<(), Failure> {
        let end = Instant::now() + limits::START_TIMEOUT;
        loop {
            match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) if line.starts_with(beginning) => return Ok(()),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return Err(self.not_ready()),
                // The output is closed, so the process is ending.
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.child.wait().map_err(|error| Failure(error.to_string()))?;
                    return Err(Failure(format!("the server ended ({status}){}", self.last_output())));
                }
            }
        }
    }

    fn wait_for_answer(&mut self, port: u16) -> Result<(), Failure> {
        let end = Instant::now() + limits::START_TIMEOUT;
        let query = Query::probe();
        while Instant::now() < end {
            self.check_running()?;
            let pause = Duration::from_millis(100);
            match client::ask(port, &query, pause) {
                Ok(exchange) if exchange.answer.is_some() => return Ok(()),
                // A closed port refuses at once.
                _ => thread::sleep(pause),
            }
        }
        Err(self.not_ready())
    }

    fn not_ready(&self) -> Failure {
        Failure(format!(
            "the server is not ready after {} s{}",
            limits::START_TIMEOUT.as_secs(),
            self.last_output()
        ))
    }

    fn last_output(&self) -> String {
        let words = self.words.lock().expect("no reader panics");
        let text: String = words.iter().map(String::as_str).collect();
        if text.trim().is_empty() { String::new() } else { format!(": {}", text.trim().replace('\n', " / ")) }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Errors mean that the process has already ended. The process group has the ID of its first process, which
        // the system cannot reuse before the wait below.
        if self.own_process_group {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        }
        drop(self.child.kill());
        drop(self.child.wait());
        if let Some(reader) = self.reader.take() {
            drop(reader.join());
        }
    }
}

/// Temporary folder that is removed when it is dropped.
#[derive(Debug)]
pub struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Creates a new, empty folder in the system's temporary folder.
    ///
    /// # Errors
    ///
    /// The error of mkdir(2), except for a folder that is there already: the temporary folder cannot be written.
    pub fn create(name: &str) -> std::io::Result<TemporaryFolder> {
        loop {
            // The process ID is not unique: in a namespace every runner may be process 1.
            let number = RandomState::new().hash_one(name);
            // Servers put sockets there, and paths of sockets are short (unix(7): 108 octets).
            let name: String = name.chars().take(24).collect();
            let path = std::env::temp_dir().join(format!("sixfold-conform-{number:016x}-{name}"));
            match std::fs::create_dir(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                other => return other.map(|()| TemporaryFolder(path)),
            }
        }
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // The system clears temporary files that cannot be removed here.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn command(words: &[String], config: &Path) -> Command {
    let fill = |word: &String| word.replace("{config}", &config.to_string_lossy());
    let mut command = Command::new(fill(&words[0]));
    command.args(words[1..].iter().map(fill));
    command
}

/// Adds a line and drops the oldest ones beyond [`limits::MAX_OUTPUT_OCTETS`].
fn keep_last_lines(words: &mut VecDeque<String>, line: &str) {
    words.push_back(line.to_owned());
    while words.iter().map(String::len).sum::<usize>() > limits::MAX_OUTPUT_OCTETS {
        words.pop_front();
    }
}

/// Waits for the end of a process that writes little, and kills it when it takes too long.
///
/// # Errors
///
/// It has not ended within `limits::CHECK_TIMEOUT`, or its output cannot be read.
pub(crate) fn wait_for_exit(mut child: Child) -> Result<Output, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_known_by_what_servers_say_of_it() {
        for words in [
            "the server ended (exit status: 1): sixfold: cannot listen on [::1]:5300 (UDP): the port is in use; see who has it",
            "listen tcp 127.0.0.1:5300: bind: address already in use",
            "error: can't bind socket: Address already in use for ::1",
        ] {
            assert!(Failure(words.to_owned()).is_port_taken(), "{words}");
        }
        assert!(!Failure("the server ended (exit status: 1): no such file".to_owned()).is_port_taken());
    }
}
