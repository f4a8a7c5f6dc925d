//! A server process with a directory and ports of its own. It is killed when the test ends, whatever the result.

use crate::upstream::{Behavior, Upstream};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

pub use kit::{Folder, TIMEOUT, free_port, wait_until};

/// Number of start attempts: a free port may be taken before the server binds it.
const STARTS: usize = 8;

/// The prefix that tests use: global, so that every address may be embedded.
pub const PREFIX: &str = "2001:db8:64::/96";

/// A path in the source tree.
pub fn in_source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// The text of a file of the source tree.
pub fn source_text(name: &str) -> String {
    std::fs::read_to_string(in_source(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Runs the program.
pub fn sixfold(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sixfold")).args(arguments).output().unwrap()
}

/// Standard output of a command.
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Standard error of a command.
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Standard output of a command that succeeds.
pub fn success(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    stdout(output)
}

/// Configuration for a server to start.
pub struct Setup {
    lines: Vec<String>,
    metrics: bool,
    command: Vec<String>,
    upstream: Option<Upstream>,
}

impl Setup {
    /// A server that forwards to `forwarder`, with one worker, and with the prefix [`PREFIX`].
    pub fn new(forwarder: SocketAddr) -> Setup {
        let lines =
            vec![format!("upstream.forwarders = [\"{forwarder}\"]"), "server.user = \"root\"".to_owned()];
        Setup { lines, metrics: false, command: Vec::new(), upstream: None }
            .line("server.workers = 1")
            .line(&format!("dns64.prefixes = [\"{PREFIX}\"]"))
    }

    /// As [`Setup::new`], with an upstream that answers every question. It ends after the server.
    pub fn answering() -> Setup {
        let upstream = Upstream::start(|_| Behavior::Answer);
        let setup = Setup::new(upstream.address);
        Setup { upstream: Some(upstream), ..setup }
    }

    /// Adds a line to the configuration. It replaces a line for the same key.
    pub fn line(mut self, line: &str) -> Setup {
        let key = line.split('=').next().unwrap_or_default();
        self.lines.retain(|other| other.split('=').next() != Some(key));
        self.lines.push(line.to_owned());
        self
    }

    /// Lines of the configuration, without addresses.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Switches metrics on.
    pub fn metrics(mut self) -> Setup {
        self.metrics = true;
        self
    }

    /// Starts the server through another command.
    pub fn through(mut self, command: &[&str]) -> Setup {
        self.command = command.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// Starts the server and waits until it is ready.
    pub fn start(self) -> Daemon {
        for attempt in 0..STARTS {
            let port = free_port();
            let metrics = SocketAddr::from(([127, 0, 0, 1], free_port()));
            let directory = Folder::for_everybody();
            let control = directory.file("control.sock");
            let mut lines = self.lines.clone();
            lines.push(format!("server.listen = [\"[::1]:{port}\", \"127.0.0.1:{port}\"]"));
            let listen = if self.metrics { metrics.to_string() } else { String::new() };
            lines.push(format!("metrics.listen = \"{listen}\""));
            lines.push(format!("control.socket = \"{}\"", control.display()));
            let config = directory.file("sixfold.toml");
            std::fs::write(&config, lines.join("\n")).unwrap();
            let arguments = ["serve", "--config", &config.display().to_string()].map(str::to_owned);
            let process = Process::start(&self.command, &arguments);
            match process.wait_for("sixfold: ready") {
                Some(_) => {
                    return Daemon {
                        process,
                        port,
                        metrics,
                        control,
                        config,
                        lines,
                        _folder: directory,
                        _upstream: self.upstream,
                    };
                }
                None if attempt + 1 < STARTS && process.log().contains("in use") => {}
                None => panic!("the server did not start:\n{}", process.log()),
            }
        }
        unreachable!("the last attempt returns or panics")
    }
}

/// A server that is ready.
pub struct Daemon {
    pub process: Process,
    /// Port of both listening addresses.
    pub port: u16,
    pub metrics: SocketAddr,
    pub control: PathBuf,
    pub config: PathBuf,
    /// Lines of the configuration.
    lines: Vec<String>,
    _folder: Folder,
    _upstream: Option<Upstream>,
}

impl Daemon {
    pub fn v4(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    pub fn v6(&self) -> SocketAddr {
        SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, self.port))
    }

    /// Writes the configuration again, with other lines for some keys.
    pub fn rewrite(&self, changes: &[&str]) {
        let key = |line: &str| line.split('=').next().map(str::to_owned);
        let kept = self.lines.iter().filter(|line| changes.iter().all(|change| key(change) != key(line)));
        let lines: Vec<&str> = kept.map(String::as_str).chain(changes.iter().copied()).collect();
        // A concurrent reload must not see half of a file.
        let next = self.config.with_extension("next");
        std::fs::write(&next, lines.join("\n")).unwrap();
        std::fs::rename(&next, &self.config).unwrap();
    }

    /// Runs `sixfold ctl` with some arguments.
    pub fn ctl(&self, arguments: &[&str]) -> Output {
        ctl(&self.control, arguments)
    }

    /// The value of one series in `ctl stats`. The name has no `sixfold_`.
    pub fn stat(&self, series: &str) -> f64 {
        let output = self.ctl(&["stats"]);
        let text = String::from_utf8(output.stdout).unwrap();
        let wanted = format!("sixfold_{series} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&wanted));
        line.unwrap_or_else(|| panic!("no {series} in\n{text}")).parse().unwrap()
    }

    /// Waits until a series has a value.
    pub fn wait_for_stat(&self, series: &str, value: f64) {
        wait_until(&format!("{series} is {value}"), || self.stat(series) == value);
    }
}

impl Drop for Daemon {
    /// Stops the server as an operator would, and checks that it ends well, if the test has not ended it another way.
    fn drop(&mut self) {
        if !std::thread::panicking() && self.process.is_running() {
            self.process.stop();
        }
    }
}

/// Copies the program in a process of its own: a child of another test would inherit a descriptor that writes here, and the kernel starts no
/// program that somebody may write ("text file busy").
pub fn copy_program(to: &Path) {
    let status = Command::new("cp").arg(env!("CARGO_BIN_EXE_sixfold")).arg(to).status().unwrap();
    assert!(status.success());
}

/// Runs `sixfold ctl` on a socket.
pub fn ctl(socket: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sixfold"));
    command.arg("ctl").arg("--socket").arg(socket).args(arguments).output().unwrap()
}

/// Lines that a process has written to standard error; true once standard error is closed.
#[derive(Default)]
struct StderrLines {
    lines: Mutex<(Vec<String>, bool)>,
    more: Condvar,
}

impl StderrLines {
    fn lines(&self) -> MutexGuard<'_, (Vec<String>, bool)> {
        self.lines.lock().unwrap()
    }
}

/// A running binary.
pub struct Process {
    child: Mutex<Child>,
    pid: u32,
    written: Arc<StderrLines>,
}

impl Process {
    /// Starts the binary with arguments, through another command unless that is empty.
    pub fn start(command: &[String], arguments: &[String]) -> Process {
        let binary = env!("CARGO_BIN_EXE_sixfold").to_owned();
        let words: Vec<String> =
            command.iter().cloned().chain([binary]).chain(arguments.iter().cloned()).collect();
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{words:?}: {error}"));
        let written = Arc::new(StderrLines::default());
        let errors = child.stderr.take().unwrap();
        let into = Arc::clone(&written);
        std::thread::spawn(move || {
            for line in BufReader::new(errors).lines().map_while(Result::ok) {
                into.lines().0.push(line);
                into.more.notify_all();
            }
            into.lines().1 = true;
            into.more.notify_all();
        });
        Process { pid: child.id(), child: Mutex::new(child), written }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Everything on standard error so far.
    pub fn log(&self) -> String {
        self.written.lines().0.join("\n")
    }

    /// Waits for a line with these words; none if the process ends without one.
    pub fn wait_for(&self, words: &str) -> Option<String> {
        self.wait_for_nth(words, 1)
    }

    /// Waits until `count` lines have these words; returns the last of them.
    pub fn wait_for_nth(&self, words: &str, count: usize) -> Option<String> {
        let end = Instant::now() + TIMEOUT;
        let mut lines = self.written.lines();
        loop {
            if let Some(line) = lines.0.iter().filter(|line| line.contains(words)).nth(count - 1) {
                return Some(line.clone());
            }
            if lines.1 {
                return None;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "not within {TIMEOUT:?}: {words}\n{}", lines.0.join("\n"));
            lines = self.written.more.wait_timeout(lines, left).unwrap().0;
        }
    }

    /// Sends a signal by its name, like `TERM`.
    pub fn signal(&self, name: &str) {
        let kill = Command::new("sh").arg("-c").arg(format!("kill -{name} {}", self.pid)).status();
        assert!(kill.unwrap().success());
    }

    /// True if the process still runs.
    pub fn is_running(&self) -> bool {
        self.child.lock().unwrap().try_wait().unwrap().is_none()
    }

    /// Waits for the end of the process; returns its exit status and standard output.
    pub fn wait(&self) -> (ExitStatus, String) {
        let mut status = None;
        wait_until("the process ends", || {
            status = self.child.lock().unwrap().try_wait().unwrap();
            status.is_some()
        });
        let mut output = String::new();
        if let Some(mut stdout) = self.child.lock().unwrap().stdout.take() {
            stdout.read_to_string(&mut output).unwrap();
        }
        // All lines have been read when the pipe is closed.
        wait_until("standard error is closed", || self.written.lines().1);
        (status.unwrap(), output)
    }

    /// Stops the process, and checks that its exit status is 0.
    pub fn stop(&self) {
        self.signal("TERM");
        let (status, _) = self.wait();
        assert_eq!(status.code(), Some(0), "{}", self.log());
    }

    /// A line of `/proc/PID/status`, without its name.
    pub fn proc_status(&self, name: &str) -> String {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap().trim().to_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap();
        let _ = child.kill();
        let _ = child.wait();
    }
}
