//! A host as `run` sees it: an agent behind a pipe, which may be on this machine or at the far end of a command prefix
//! (`ssh HOST sixfold-bench`, `ip netns exec NAME sixfold-bench`). Calls block, each for a bounded time.
//!
//! When the connection is dropped, so is everything that the agent started: it sees the end of its input.

use crate::agent::limits;
use crate::agent::protocol::{
    Attached, Greeting, Order, Progress, Reply, Start, Started, Target, VERSION, version_mismatch,
};
use crate::device::Recipe;
use crate::process::limits::STOP;
use crate::process::{DeviceLog, own_program};
use crate::usage::Usage;
use measure::order::{Authority, Load};
use measure::outcome::Outcome;
use measure::run::{self, Environment};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// An agent, and with it the host that it runs on.
#[derive(Debug)]
pub struct Host {
    /// Role and place, for messages: `the tester (ssh host sixfold-bench)`.
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    last_words: Arc<Mutex<String>>,
    greeting: Greeting,
}

impl Host {
    /// Starts an agent and greets it. Without a prefix it is a child of this process and the same program; with one,
    /// the prefix is a command line that leads to `sixfold-bench` there.
    pub fn connect(role: &str, prefix: Option<&[String]>) -> Result<Host, HostError> {
        let name = match prefix {
            Some(prefix) => format!("the {role} ({})", prefix.join(" ")),
            None => format!("the {role} (this host)"),
        };
        let failed = |why: String| HostError::Start { host: name.clone(), why };
        let (program, arguments) = match prefix {
            Some(words) => {
                let (program, arguments) =
                    words.split_first().ok_or_else(|| failed("the command is empty".into()))?;
                (PathBuf::from(program), arguments)
            }
            None => (own_program().map_err(|error| failed(error.to_string()))?, [].as_slice()),
        };
        let mut command = Command::new(&program);
        command.args(arguments).arg("agent");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // An interrupt from the keyboard is for us: we end agents, and they end what they started. But ssh must stay in
        // the terminal's group, or it could not ask for a passphrase.
        if program.file_name() != Some(OsStr::new("ssh")) {
            command.process_group(0);
        }
        let mut child = command.spawn().map_err(|error| failed(format!("{}: {error}", program.display())))?;
        let last_words = Arc::default();
        let input = child.stdin.take();
        let lines = child.stdout.take().map(read_lines).ok_or_else(|| failed("no pipe".into()))?;
        if let Some(errors) = child.stderr.take() {
            read_last_words(errors, Arc::clone(&last_words));
        }
        let mut host = Host { name, child, input, lines, last_words, greeting: Greeting::default() };
        match host.ask(&Order::Hello { protocol: VERSION }, limits::GREETING)? {
            Reply::Hello(greeting) if greeting.protocol == VERSION => {
                host.greeting = greeting;
                Ok(host)
            }
            Reply::Hello(Greeting { protocol, version, .. }) => {
                let why = version_mismatch(protocol, &version);
                Err(HostError::Refused { host: host.name.clone(), why })
            }
            other => Err(host.strange(&other)),
        }
    }

    /// What it said of itself when it was greeted.
    pub fn greeting(&self) -> &Greeting {
        &self.greeting
    }

    /// Role and place, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The facts of the host; interfaces that lead to `addresses` are described.
    pub fn environment(&mut self, addresses: &[IpAddr]) -> Result<Environment, HostError> {
        match self.ask(&Order::Environment { addresses: addresses.to_vec() }, limits::ENVIRONMENT)? {
            Reply::Environment(environment) => Ok(environment),
            other => Err(self.strange(&other)),
        }
    }

    /// Serves a zone, in the place of the one that was served before. Returns the addresses with the ports chosen.
    pub fn authority(&mut self, order: &Authority) -> Result<Vec<SocketAddr>, HostError> {
        match self.ask(&Order::Authority(order.clone()), limits::ANSWER)? {
            Reply::Serving { addresses } => Ok(addresses),
            other => Err(self.strange(&other)),
        }
    }

    /// Serves no zone any longer.
    pub fn stop_authority(&mut self) -> Result<(), HostError> {
        self.done(&Order::StopAuthority)
    }

    /// What the authority has answered so far, by kind.
    pub fn counters(&mut self) -> Result<BTreeMap<String, u64>, HostError> {
        match self.ask(&Order::Counters, limits::ANSWER)? {
            Reply::Counters { counts } => Ok(counts),
            other => Err(self.strange(&other)),
        }
    }

    /// Loads a server. `progress` is told about once a second how it goes; when it returns false, the load is ended
    /// and the result is [`HostError::Aborted`].
    pub fn load(
        &mut self,
        order: &Load,
        mut progress: impl FnMut(&Progress) -> bool,
    ) -> Result<Outcome, HostError> {
        let length = order.warm_up_ms.saturating_add(order.duration_ms).saturating_add(2 * order.timeout_ms);
        let mut end = Instant::now() + Duration::from_millis(length) + limits::LOAD_GRACE;
        let mut is_wanted = true;
        let order = Order::Load(order.clone());
        self.tell(&order)?;
        loop {
            match self.hear(&order, end.saturating_duration_since(Instant::now()))? {
                Reply::Progress(so_far) if is_wanted => {
                    is_wanted = progress(&so_far);
                    if !is_wanted {
                        self.tell(&Order::Abort)?;
                        end = Instant::now() + limits::LOAD_GRACE;
                    }
                }
                Reply::Progress(_) => {}
                // It may have ended by itself before it was told to.
                Reply::Aborted | Reply::Outcome(_) if !is_wanted => {
                    return Err(HostError::Aborted { host: self.name.clone() });
                }
                Reply::Outcome(outcome) => return Ok(*outcome),
                other => return Err(self.strange(&other)),
            }
        }
    }

    /// Starts a device.
    pub fn start(&mut self, order: &Start) -> Result<Started, HostError> {
        match self.ask(&Order::Start(order.clone()), limits::START)? {
            Reply::Started(started) => Ok(started),
            other => Err(self.strange(&other)),
        }
    }

    /// Watches a device that runs already. It is only read, never ended.
    pub fn attach(&mut self, target: &Target) -> Result<Attached, HostError> {
        match self.ask(&Order::Attach(target.clone()), limits::ANSWER)? {
            Reply::Attached(attached) => Ok(attached),
            other => Err(self.strange(&other)),
        }
    }

    /// What a device has used so far; see [`Usage::since`].
    pub fn usage(&mut self, device: u32) -> Result<Usage, HostError> {
        match self.ask(&Order::Usage { device }, limits::ANSWER)? {
            Reply::Usage(usage) => Ok(usage),
            other => Err(self.strange(&other)),
        }
    }

    /// The last that a device said, and whether it still runs.
    pub fn log(&mut self, device: u32) -> Result<DeviceLog, HostError> {
        match self.ask(&Order::Log { device }, limits::ANSWER)? {
            Reply::Log(log) => Ok(log),
            other => Err(self.strange(&other)),
        }
    }

    /// Ends a device: SIGTERM, and SIGKILL for what is left after `grace`. Its number is then free.
    pub fn stop(&mut self, device: u32, grace: Duration) -> Result<DeviceLog, HostError> {
        let order = Order::Stop { device, grace_ms: grace.as_millis() as u64 };
        match self.ask(&order, grace + limits::ANSWER)? {
            Reply::Log(log) => Ok(log),
            other => Err(self.strange(&other)),
        }
    }

    /// Ends everything that was started there, and the agent. Dropping does the same without saying how it went.
    pub fn quit(mut self) -> Result<(), HostError> {
        self.done(&Order::Quit)
    }

    fn done(&mut self, order: &Order) -> Result<(), HostError> {
        match self.ask(order, STOP)? {
            Reply::Done => Ok(()),
            other => Err(self.strange(&other)),
        }
    }

    fn ask(&mut self, order: &Order, wait: Duration) -> Result<Reply, HostError> {
        self.tell(order)?;
        self.hear(order, wait)
    }

    fn tell(&mut self, order: &Order) -> Result<(), HostError> {
        let text = serde_json::to_string(order).map_err(|error| HostError::Start {
            host: self.name.clone(),
            why: format!("an order cannot be written: {error}"),
        })?;
        let written = self
            .input
            .as_mut()
            .is_some_and(|input| writeln!(input, "{text}").and_then(|()| input.flush()).is_ok());
        if written { Ok(()) } else { Err(self.gone()) }
    }

    fn hear(&mut self, order: &Order, wait: Duration) -> Result<Reply, HostError> {
        let line = match self.lines.recv_timeout(wait) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => return Err(self.gone()),
            Err(RecvTimeoutError::Timeout) => {
                // Whatever it says later would be taken for the reply to another order.
                self.end(Duration::ZERO);
                return Err(HostError::Silent { host: self.name.clone(), order: order.name(), after: wait });
            }
        };
        match serde_json::from_str(&line) {
            Ok(Reply::Refused { why }) => Err(HostError::Refused { host: self.name.clone(), why }),
            Ok(reply) => Ok(reply),
            Err(_) => {
                self.end(Duration::ZERO);
                let said = line.chars().take(limits::QUOTED).collect();
                Err(HostError::Strange { host: self.name.clone(), said })
            }
        }
    }

    /// The error for an agent that has ended.
    fn gone(&mut self) -> HostError {
        // What it wrote to standard error may come a moment after the end of its standard output.
        self.end(limits::LAST_WORDS);
        thread::sleep(Duration::from_millis(20));
        let mut last_words = lock(&self.last_words).trim().to_owned();
        if last_words.is_empty() && self.greeting.protocol == VERSION {
            last_words.push_str("the connection was lost, or somebody killed sixfold-bench there");
        }
        HostError::Gone { host: self.name.clone(), last_words }
    }

    /// The error for a reply that does not fit the order.
    fn strange(&mut self, reply: &Reply) -> HostError {
        self.end(Duration::ZERO);
        let said = format!("{reply:?}").chars().take(limits::QUOTED).collect();
        HostError::Strange { host: self.name.clone(), said }
    }

    /// Closes the pipe, waits for the agent to end, and ends it if it does not.
    fn end(&mut self, wait: Duration) {
        drop(self.input.take());
        let end = Instant::now() + wait;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() >= end {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.end(STOP);
    }
}

fn lock(text: &Mutex<String>) -> MutexGuard<'_, String> {
    text.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands on what comes in, line by line, from a thread that ends with the pipe.
fn read_lines(pipe: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = mpsc::sync_channel(limits::LINES);
    thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        loop {
            let mut line = Vec::new();
            let read = (&mut pipe).take(limits::LINE).read_until(b'\n', &mut line);
            let is_whole = line.last() == Some(&b'\n');
            let Ok(line) = String::from_utf8(line) else { return };
            if read.is_err() || !is_whole || sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Keeps the end of what an agent writes to standard error.
fn read_last_words(mut pipe: ChildStderr, kept: Arc<Mutex<String>>) {
    thread::spawn(move || {
        let mut octets = [0; 4096];
        while let Ok(length @ 1..) = pipe.read(&mut octets) {
            let mut kept = lock(&kept);
            kept.push_str(&String::from_utf8_lossy(&octets[..length]));
            let beyond = kept.len().saturating_sub(limits::LAST_WORDS_LENGTH);
            let cut = (beyond..=kept.len()).find(|at| kept.is_char_boundary(*at)).unwrap_or(0);
            kept.drain(..cut);
        }
    });
}

impl Started {
    /// The device as the record of a run describes it.
    pub fn describe(&self, order: &Start, sweep: Option<(String, Vec<String>)>) -> run::Device {
        run::Device {
            name: match &order.recipe {
                Recipe::Template { name, .. } => name.clone(),
                Recipe::Custom { .. } => "custom".to_owned(),
            },
            version: self.version.clone(),
            command: self.command.clone(),
            address: self.listen.to_string(),
            cores: order.cores.clone(),
            files: self.files.clone(),
            sweep,
        }
    }
}

/// Why a host did not do what it was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostError {
    /// The agent could not be started.
    Start {
        /// Role and place.
        host: String,
        /// Why.
        why: String,
    },
    /// The agent, or the connection to it, ended.
    Gone {
        /// Role and place.
        host: String,
        /// What was on its standard error.
        last_words: String,
    },
    /// No reply came in time.
    Silent {
        /// Role and place.
        host: String,
        /// The order.
        order: &'static str,
        /// The time.
        after: Duration,
    },
    /// The order could not be carried out. The connection stands.
    Refused {
        /// Role and place.
        host: String,
        /// What, why, and the remedy.
        why: String,
    },
    /// What came back was no reply to the order.
    Strange {
        /// Role and place.
        host: String,
        /// What it was.
        said: String,
    },
    /// The load was ended before its time, as `progress` wished. The connection stands.
    Aborted {
        /// Role and place.
        host: String,
    },
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostError::Start { host, why } => write!(f, "{host} could not be started: {why}"),
            HostError::Gone { host, last_words } if last_words.is_empty() => {
                write!(f, "{host} ended without a word; does the command lead to sixfold-bench there?")
            }
            HostError::Gone { host, last_words } => write!(f, "{host} ended: {last_words}"),
            HostError::Silent { host, order, after } => write!(
                f,
                "{host} did not answer \"{order}\" within {}; is it overloaded, or the connection broken?",
                measure::amount::show(*after)
            ),
            HostError::Refused { host, why } => write!(f, "{host}: {why}"),
            HostError::Strange { host, said } => write!(
                f,
                "{host} said what is no reply: {said:?}; nothing but sixfold-bench may write to the standard output of \
                 the command (look at the shell's start files there)"
            ),
            HostError::Aborted { host } => write!(f, "{host}: the load was ended before its time, as asked"),
        }
    }
}

impl std::error::Error for HostError {}
