//! Client of an agent, with which `run` controls a host. The agent is at the other end of a pipe: a child of this
//! process, or a process that a command prefix leads to (`ssh HOST sixfold-bench`, `ip netns exec NAME sixfold-bench`).
//! Calls block, each for a bounded time.
//!
//! When the connection closes, the agent reads the end of its input and ends everything that it started.

use crate::agent::limits;
use crate::agent::protocol::{
    Attached, Greeting, Order, Progress, Reply, Start, Started, Target, VERSION, version_mismatch,
};
use crate::device::Recipe;
use crate::process::limits::STOP_TIMEOUT;
use crate::process::{DeviceLog, own_program};
use crate::usage::Usage;
use measure::order::{Authority, Load};
use measure::outcome::Outcome;
use measure::run::{self, Environment, Participant};
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

/// Sends an order, and takes its part of the one reply that fits.
macro_rules! ask {
    ($client:expr, $order:expr, $wait:expr, $reply:pat => $part:expr) => {
        match $client.request($order, $wait)? {
            $reply => Ok($part),
            other => Err($client.unexpected(&other)),
        }
    };
}

/// Connection to an agent, and so to the host that the agent runs on.
#[derive(Debug)]
pub struct AgentClient {
    /// Role and place, for error messages: `the tester (ssh host sixfold-bench)`.
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    replies: Receiver<String>,
    stderr_tail: Arc<Mutex<String>>,
    greeting: Greeting,
}

impl AgentClient {
    /// Starts an agent and greets it. Without a prefix the agent is a child of this process and the same program. With
    /// a prefix, the prefix is the command line that leads to `sixfold-bench` on the other host.
    ///
    /// # Errors
    ///
    /// [`AgentError::Start`]: the command cannot be run, ends by itself, or does not greet in time with the version of this program.
    /// The error has the end of its output.
    pub fn connect(role: &str, prefix: Option<&[String]>) -> Result<AgentClient, AgentError> {
        let name = match prefix {
            Some(prefix) => format!("the {role} ({})", prefix.join(" ")),
            None => format!("the {role} (this host)"),
        };
        let failed = |why: String| AgentError::Start { agent: name.clone(), why };
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
        // An interrupt from the keyboard is meant for this process: it ends the agents, and they end what they started.
        // But ssh must stay in the process group of the terminal, so that it can ask for a passphrase.
        if program.file_name() != Some(OsStr::new("ssh")) {
            command.process_group(0);
        }
        let mut child = command.spawn().map_err(|error| failed(format!("{}: {error}", program.display())))?;
        let stderr_tail = Arc::default();
        let input = child.stdin.take();
        let replies = child.stdout.take().map(read_lines).ok_or_else(|| failed("no pipe".into()))?;
        if let Some(errors) = child.stderr.take() {
            read_stderr_tail(errors, Arc::clone(&stderr_tail));
        }
        let mut client =
            AgentClient { name, child, input, replies, stderr_tail, greeting: Greeting::default() };
        match client.request(&Order::Hello { protocol: VERSION }, limits::GREETING_TIMEOUT)? {
            Reply::Hello(greeting) if greeting.protocol == VERSION => {
                client.greeting = greeting;
                Ok(client)
            }
            Reply::Hello(Greeting { protocol, version, .. }) => {
                let why = version_mismatch(protocol, &version);
                Err(AgentError::Refused { agent: client.name.clone(), why })
            }
            other => Err(client.unexpected(&other)),
        }
    }

    /// The agent's reply to the greeting.
    pub fn greeting(&self) -> &Greeting {
        &self.greeting
    }

    /// Role and place, for error messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads the facts of the host. Describes the interfaces that lead to `addresses`.
    ///
    /// # Errors
    ///
    /// As [`AgentClient::quit`].
    pub fn environment(&mut self, addresses: &[IpAddr]) -> Result<Environment, AgentError> {
        ask!(self, &Order::Environment { addresses: addresses.to_vec() }, limits::ENVIRONMENT_TIMEOUT, Reply::Environment(environment) => environment)
    }

    /// Starts the authority, which replaces an earlier one. Returns the addresses with the chosen ports.
    ///
    /// # Errors
    ///
    /// As [`AgentClient::quit`]; the agent refuses if an address cannot be bound.
    pub fn authority(&mut self, order: &Authority) -> Result<Vec<SocketAddr>, AgentError> {
        ask!(self, &Order::Authority(order.clone()), limits::ORDER_TIMEOUT, Reply::Serving { addresses } => addresses)
    }

    /// Reads the authority's counters: answers so far, by kind.
    ///
    /// # Errors
    ///
    /// As [`AgentClient::quit`]; the agent refuses if it serves no zone.
    pub fn counters(&mut self) -> Result<BTreeMap<String, u64>, AgentError> {
        ask!(self, &Order::Counters, limits::ORDER_TIMEOUT, Reply::Counters { counts } => counts)
    }

    /// Runs a load on a server. Calls `progress` about once a second.
    ///
    /// # Errors
    ///
    /// [`AgentError::Aborted`]: `progress` returned false. Otherwise as [`AgentClient::quit`]; the agent refuses an
    /// impossible order.
    pub fn load(
        &mut self,
        order: &Load,
        mut progress: impl FnMut(&Progress) -> bool,
    ) -> Result<Outcome, AgentError> {
        let length = order.warm_up_ms.saturating_add(order.duration_ms).saturating_add(2 * order.timeout_ms);
        let mut end = Instant::now() + Duration::from_millis(length) + limits::LOAD_GRACE;
        let mut is_wanted = true;
        let order = Order::Load(order.clone());
        self.send(&order)?;
        loop {
            match self.receive(&order, end.saturating_duration_since(Instant::now()))? {
                Reply::Progress(so_far) if is_wanted => {
                    is_wanted = progress(&so_far);
                    if !is_wanted {
                        self.send(&Order::Abort)?;
                        end = Instant::now() + limits::LOAD_GRACE;
                    }
                }
                Reply::Progress(_) => {}
                // The load may have ended by itself before the abort arrived.
                Reply::Aborted | Reply::Outcome(_) if !is_wanted => {
                    return Err(AgentError::Aborted { agent: self.name.clone() });
                }
                Reply::Outcome(outcome) => return Ok(*outcome),
                other => return Err(self.unexpected(&other)),
            }
        }
    }

    /// Starts a device.
    ///
    /// # Errors
    ///
    /// As [`AgentClient::quit`]; the agent refuses if the program is not installed or cannot be started.
    pub fn start(&mut self, order: &Start) -> Result<Started, AgentError> {
        ask!(self, &Order::Start(order.clone()), limits::START_TIMEOUT, Reply::Started(started) => started)
    }

    /// Attaches to a device that runs already. The agent only reads its usage and never ends it.
    ///
    /// # Errors
    ///
    /// As [`AgentClient::quit`]; the agent refuses if there is no such process.
    pub fn attach(&mut self, target: &Target) -> Result<Attached, AgentError> {
        ask!(self, &Order::Attach(target.clone()), limits::ORDER_TIMEOUT, Reply::Attached(attached) => attached)
    }

    /// Reads the resources that a device has used so far; see [`Usage::since`].
    ///
    /// # Errors
    ///
    /// As [`AgentClient::quit`]; the agent refuses a number that no device has.
    pub fn usage(&mut self, device: u32) -> Result<Usage, AgentError> {
        ask!(self, &Order::Usage { device }, limits::ORDER_TIMEOUT, Reply::Usage(usage) => usage)
    }

    /// Reads the UDP sockets, threads and cores of a device, or of the agent with its authority; see
    /// [`sockets::read`](crate::sockets::read).
    ///
    /// # Errors
    ///
    /// As [`AgentClient::usage`].
    pub fn sockets(
        &mut self,
        device: Option<u32>,
        port: u16,
        raise: bool,
    ) -> Result<Participant, AgentError> {
        ask!(self, &Order::Sockets { device, port, raise }, limits::ORDER_TIMEOUT, Reply::Sockets(found) => found)
    }

    /// Reads the last output of a device, and whether it still runs.
    ///
    /// # Errors
    ///
    /// As [`AgentClient::usage`].
    pub fn log(&mut self, device: u32) -> Result<DeviceLog, AgentError> {
        ask!(self, &Order::Log { device }, limits::ORDER_TIMEOUT, Reply::Log(log) => log)
    }

    /// Ends a device: SIGTERM, then SIGKILL for the processes that are left after `grace`. Its number is then free.
    ///
    /// # Errors
    ///
    /// As [`AgentClient::usage`].
    pub fn stop(&mut self, device: u32, grace: Duration) -> Result<DeviceLog, AgentError> {
        let order = Order::Stop { device, grace_ms: grace.as_millis() as u64 };
        ask!(self, &order, grace + limits::ORDER_TIMEOUT, Reply::Log(log) => log)
    }

    /// Ends the agent and everything that it started. Dropping the client does so too, but reports no result.
    ///
    /// # Errors
    ///
    /// The agent refuses the order, with its reason; it has ended, does not answer in time, or answers something else.
    pub fn quit(mut self) -> Result<(), AgentError> {
        ask!(self, &Order::Quit, STOP_TIMEOUT, Reply::Done => ())
    }

    fn request(&mut self, order: &Order, wait: Duration) -> Result<Reply, AgentError> {
        self.send(order)?;
        self.receive(order, wait)
    }

    fn send(&mut self, order: &Order) -> Result<(), AgentError> {
        let text = serde_json::to_string(order).map_err(|error| AgentError::Start {
            agent: self.name.clone(),
            why: format!("the order cannot be serialized: {error}"),
        })?;
        let written = self
            .input
            .as_mut()
            .is_some_and(|input| writeln!(input, "{text}").and_then(|()| input.flush()).is_ok());
        if written { Ok(()) } else { Err(self.disconnected()) }
    }

    fn receive(&mut self, order: &Order, wait: Duration) -> Result<Reply, AgentError> {
        let line = match self.replies.recv_timeout(wait) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => return Err(self.disconnected()),
            Err(RecvTimeoutError::Timeout) => {
                // A later reply would be taken for the reply to another order, so close the connection.
                self.end(Duration::ZERO);
                return Err(AgentError::TimedOut {
                    agent: self.name.clone(),
                    order: order.name(),
                    timeout: wait,
                });
            }
        };
        match serde_json::from_str(&line) {
            Ok(Reply::Refused { why }) => Err(AgentError::Refused { agent: self.name.clone(), why }),
            Ok(reply) => Ok(reply),
            Err(_) => {
                self.end(Duration::ZERO);
                let reply = line.chars().take(limits::QUOTED_CHARACTERS).collect();
                Err(AgentError::UnexpectedReply { agent: self.name.clone(), reply })
            }
        }
    }

    /// Returns the error for an agent that has ended.
    fn disconnected(&mut self) -> AgentError {
        // Its last output on standard error may arrive a moment after the end of its standard output.
        self.end(limits::STDERR_WAIT);
        thread::sleep(Duration::from_millis(20));
        let mut stderr_tail = lock(&self.stderr_tail).trim().to_owned();
        if stderr_tail.is_empty() && self.greeting.protocol == VERSION {
            stderr_tail.push_str("the connection was lost, or sixfold-bench was killed on that host");
        }
        AgentError::Disconnected { agent: self.name.clone(), stderr_tail }
    }

    /// Returns the error for a reply that does not fit the order.
    fn unexpected(&mut self, reply: &Reply) -> AgentError {
        self.end(Duration::ZERO);
        let reply = format!("{reply:?}").chars().take(limits::QUOTED_CHARACTERS).collect();
        AgentError::UnexpectedReply { agent: self.name.clone(), reply }
    }

    /// Closes the pipe, waits for the agent to end, and kills it if it does not.
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

impl Drop for AgentClient {
    fn drop(&mut self) {
        self.end(STOP_TIMEOUT);
    }
}

fn lock(text: &Mutex<String>) -> MutexGuard<'_, String> {
    text.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes on the lines that arrive, from a thread that ends with the pipe.
fn read_lines(pipe: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = mpsc::sync_channel(limits::QUEUED_REPLIES);
    thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        loop {
            let mut line = Vec::new();
            let read = (&mut pipe).take(limits::LINE_OCTETS).read_until(b'\n', &mut line);
            let is_whole = line.last() == Some(&b'\n');
            let Ok(line) = String::from_utf8(line) else { return };
            if read.is_err() || !is_whole || sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Keeps the last part of the agent's standard error.
fn read_stderr_tail(mut pipe: ChildStderr, kept: Arc<Mutex<String>>) {
    thread::spawn(move || {
        let mut octets = [0; 4096];
        while let Ok(length @ 1..) = pipe.read(&mut octets) {
            let mut kept = lock(&kept);
            kept.push_str(&String::from_utf8_lossy(&octets[..length]));
            let beyond = kept.len().saturating_sub(limits::STDERR_TAIL_OCTETS);
            let cut = (beyond..=kept.len()).find(|at| kept.is_char_boundary(*at)).unwrap_or(0);
            kept.drain(..cut);
        }
    });
}

impl Started {
    /// Describes the device as the record of a run does.
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

/// Reasons why an agent did not carry out an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentError {
    /// The agent could not be started.
    Start {
        /// Role and place.
        agent: String,
        /// Why.
        why: String,
    },
    /// The agent, or the connection to it, ended.
    Disconnected {
        /// Role and place.
        agent: String,
        /// The last of its standard error.
        stderr_tail: String,
    },
    /// No reply arrived in time.
    TimedOut {
        /// Role and place.
        agent: String,
        /// The order.
        order: String,
        /// The time that was allowed.
        timeout: Duration,
    },
    /// The agent could not carry out the order. The connection stays open.
    Refused {
        /// Role and place.
        agent: String,
        /// Problem, cause and remedy.
        why: String,
    },
    /// The reply does not fit the order.
    UnexpectedReply {
        /// Role and place.
        agent: String,
        /// The reply, shortened.
        reply: String,
    },
    /// The load was aborted because `progress` returned false. The connection stays open.
    Aborted {
        /// Role and place.
        agent: String,
    },
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AgentError::Start { agent, why } => write!(f, "{agent} could not be started: {why}"),
            AgentError::Disconnected { agent, stderr_tail } if stderr_tail.is_empty() => {
                write!(
                    f,
                    "{agent} ended without a message; check that the command starts sixfold-bench on that host"
                )
            }
            AgentError::Disconnected { agent, stderr_tail } => write!(f, "{agent} ended: {stderr_tail}"),
            AgentError::TimedOut { agent, order, timeout } => write!(
                f,
                "{agent} did not reply to \"{order}\" within {}; the host may be overloaded, or the connection broken",
                measure::units::show(*timeout)
            ),
            AgentError::Refused { agent, why } => write!(f, "{agent}: {why}"),
            AgentError::UnexpectedReply { agent, reply } => write!(
                f,
                "{agent} sent something other than the expected reply: {reply:?}; only sixfold-bench may write to the standard output of \
                 the command (check the shell's start files on that host)"
            ),
            AgentError::Aborted { agent } => {
                write!(f, "{agent}: the load was aborted, as requested")
            }
        }
    }
}

impl std::error::Error for AgentError {}
