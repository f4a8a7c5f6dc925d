//! The agent: `sixfold-bench agent` carries out the orders of a `run`, on this host or another. It knows no plan and no
//! procedure, only the [`protocol`].
//!
//! The main thread carries out the orders one after the other. Another thread reads them, so that a load can be aborted
//! while it runs, and the end of the input is seen in every state of the main thread. First file to read:
//! `protocol.rs`.

mod authority;
mod devices;
pub mod limits;
pub mod protocol;

use crate::environment;
use crate::process;
use crate::sockets;
use authority::AgentAuthority;
use devices::Devices;
use protocol::{Greeting, Order, Reply, VERSION, version_mismatch};
use std::io::{self, BufRead, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

/// State of an agent. Dropping it ends everything that it started.
pub struct Agent {
    devices: Devices,
    authority: AgentAuthority,
    /// Aborts the load that runs.
    abort: Arc<AtomicBool>,
    is_greeted: bool,
}

impl Agent {
    /// Carries out the orders on standard input until the input ends.
    pub fn run() -> ExitCode {
        // Loads open many ports, and devices inherit the limit, which is 1,024 over ssh. A failure is ignored here: a
        // load that needs more files reports it.
        let _ = datapath::privileges::raise_file_limit();
        let abort = Arc::new(AtomicBool::new(false));
        let orders = read_orders(Arc::clone(&abort));
        let mut agent = Agent {
            devices: Devices::default(),
            authority: AgentAuthority::default(),
            abort,
            is_greeted: false,
        };
        while let Ok(order) = orders.recv() {
            let is_end = matches!(order, Ok(Order::Quit));
            let reply = match order {
                Ok(Order::Quit) => {
                    agent.devices = Devices::default();
                    Reply::Done
                }
                Ok(order) => agent.execute(order),
                Err(why) => Reply::Refused { why },
            };
            if send_reply(&reply).is_err() || is_end {
                break;
            }
        }
        ExitCode::SUCCESS
    }

    fn execute(&mut self, order: Order) -> Reply {
        if !self.is_greeted && !matches!(order, Order::Hello { .. }) {
            return Reply::Refused {
                why: format!("the first order must be \"hello\", not \"{}\"", order.name()),
            };
        }
        let refused = |error: &dyn std::fmt::Display| Reply::Refused { why: error.to_string() };
        match order {
            Order::Hello { protocol } => self.greet(protocol),
            Order::Environment { addresses } => Reply::Environment(environment::read(&addresses)),
            Order::Authority(order) => match self.authority.serve(order) {
                Ok(addresses) => Reply::Serving { addresses },
                Err(error) => refused(&error),
            },
            Order::Counters => match self.authority.counters() {
                Ok(counts) => Reply::Counters { counts },
                Err(error) => refused(&error),
            },
            Order::Load(load) => {
                self.abort.store(false, Ordering::Relaxed);
                let abort = &self.abort;
                let progress = |progress| {
                    // A client that reads no progress wants no result either.
                    send_reply(&Reply::Progress(progress)).is_ok() && !abort.load(Ordering::Relaxed)
                };
                match self.authority.load(&load, progress) {
                    Ok(_) if abort.load(Ordering::Relaxed) => Reply::Aborted,
                    Ok(outcome) => Reply::Outcome(Box::new(outcome)),
                    Err(error) => refused(&error),
                }
            }
            Order::Start(start) => {
                self.devices.start(start).map_or_else(|error| refused(&error), Reply::Started)
            }
            Order::Attach(target) => {
                self.devices.attach(&target).map_or_else(|error| refused(&error), Reply::Attached)
            }
            Order::Usage { device } => {
                self.devices.usage(device).map_or_else(|error| refused(&error), Reply::Usage)
            }
            Order::Sockets { device: None, port, raise } => {
                Reply::Sockets(sockets::read(&[std::process::id()], port, raise))
            }
            Order::Sockets { device: Some(device), port, raise } => match self.devices.members(device) {
                Ok(pids) => Reply::Sockets(sockets::read(&pids, port, raise)),
                Err(error) => refused(&error),
            },
            Order::Log { device } => {
                self.devices.log(device).map_or_else(|error| refused(&error), Reply::Log)
            }
            Order::Stop { device, grace_ms } => {
                let grace = Duration::from_millis(grace_ms);
                self.devices.stop(device, grace).map_or_else(|error| refused(&error), Reply::Log)
            }
            // Both are handled earlier: the reading thread handles Abort, the loop handles Quit.
            Order::Abort | Order::Quit => Reply::Done,
        }
    }

    fn greet(&mut self, protocol: u32) -> Reply {
        if protocol != VERSION {
            return Reply::Refused { why: version_mismatch(protocol, "of the client") };
        }
        self.is_greeted = true;
        Reply::Hello(Greeting {
            protocol: VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: env!("SIXFOLD_COMMIT").to_owned(),
            host: environment::host_name(),
            cores: environment::core_count() as u32,
            allowed: environment::allowed_cores(),
            machine: environment::boot_id(),
        })
    }
}

/// Reads orders in a thread of its own. At the end of the input the thread waits for the agent to end, and ends the
/// process if that takes too long; the supervisors of the devices then end the devices.
fn read_orders(abort: Arc<AtomicBool>) -> Receiver<Result<Order, String>> {
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let read = (&mut input).take(limits::LINE_OCTETS).read_until(b'\n', &mut line);
            if read.is_err() || line.last() != Some(&b'\n') {
                break;
            }
            let order = serde_json::from_slice(&line).map_err(|error| format!("not an order: {error}"));
            match order {
                Ok(Order::Abort) => abort.store(true, Ordering::Relaxed),
                order => {
                    if sender.send(order).is_err() {
                        return;
                    }
                }
            }
        }
        abort.store(true, Ordering::Relaxed);
        drop(sender);
        thread::sleep(process::limits::STOP_TIMEOUT / 2);
        std::process::exit(1);
    });
    receiver
}

/// Writes a reply to standard output.
fn send_reply(reply: &Reply) -> io::Result<()> {
    let line = serde_json::to_string(reply)?;
    let mut output = io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()
}
