//! The authority and the load of an agent. When the authority is to have no thread of its own, it is served by the thread
//! of the load while one goes on, and by a thread that waits in between: an upstream that is silent between trials would
//! be taken for dead by the device.

use super::limits;
use crate::protocol::Progress;
use ::authority::{PolledServer, Server, Settings, Zone, ZoneError};
use load::{Companion, LoadError, NoCompanion};
use measure::order::{Authority, Load};
use measure::outcome::{Outcome, Second};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// The authority of an agent, if it has one.
#[derive(Default)]
pub(super) struct Serving {
    running: Option<Running>,
}

struct Running {
    /// Where it was asked to listen, and where it does.
    asked: Vec<SocketAddr>,
    addresses: Vec<SocketAddr>,
    form: Form,
}

/// Who serves.
enum Form {
    /// Threads of its own.
    Threads(Server),
    /// Between loads a thread that waits, during a load that of the load.
    Turns(Waiting),
}

impl Serving {
    /// Serves a zone in the place of the one before, at the same addresses if the same are asked for.
    pub(super) fn serve(&mut self, order: Authority) -> Result<Vec<SocketAddr>, ServingError> {
        let depth = u8::try_from(order.cname_depth).map_err(|_| ServingError::Depth(order.cname_depth))?;
        let zone = Zone::new(&order.zone)?.ttl(order.ttl).addresses(order.addresses).cname_depth(depth);
        let zone = zone.aaaa_share(order.aaaa_share).seed(order.seed);
        let pins = order.pins.iter().copied().map(usize::from).collect();
        let settings = Settings::new(zone).threads(usize::from(order.threads)).pins(pins);
        let listen = match self.running.take() {
            Some(before) if before.asked == order.listen => before.addresses,
            _ => order.listen.clone(),
        };
        let (addresses, form) = if order.threads == 0 {
            let turns = PolledServer::new(&listen, &settings)?;
            (turns.addresses().to_vec(), Form::Turns(Waiting::new(turns)))
        } else {
            let server = Server::with(&listen, &settings)?;
            (server.addresses().to_vec(), Form::Threads(server))
        };
        self.running = Some(Running { asked: order.listen, addresses: addresses.clone(), form });
        Ok(addresses)
    }

    /// Its answers so far, by kind.
    pub(super) fn counters(&mut self) -> Result<BTreeMap<String, u64>, ServingError> {
        let running = self.running.as_mut().ok_or(ServingError::NoAuthority)?;
        let owned = |totals: &mut dyn Iterator<Item = (&'static str, u64)>| {
            totals.map(|(name, count)| (name.to_owned(), count)).collect()
        };
        Ok(match &mut running.form {
            Form::Threads(server) => owned(&mut server.counters().totals()),
            Form::Turns(waiting) => waiting.lend(|turns| owned(&mut turns.counters().totals())),
        })
    }

    /// Loads a server. Ends early when `progress` returns false.
    pub(super) fn load(
        &mut self,
        order: &Load,
        mut progress: impl FnMut(Progress) -> bool,
    ) -> Result<Outcome, ServingError> {
        let mut before = Second::default();
        let tell = |so_far: &load::Progress| {
            let now =
                Second { sent: so_far.sent, valid: so_far.valid, invalid: so_far.invalid, late: so_far.late };
            let counted = Second {
                sent: now.sent.saturating_sub(before.sent),
                valid: now.valid.saturating_sub(before.valid),
                invalid: now.invalid.saturating_sub(before.invalid),
                late: now.late.saturating_sub(before.late),
            };
            before = now;
            let goes_on = progress(Progress { elapsed_s: so_far.elapsed.as_secs_f64(), counted });
            if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let outcome = match self.running.as_mut().map(|running| &mut running.form) {
            Some(Form::Turns(waiting)) => {
                waiting.lend(|turns| load::run(order, Some(&mut Beside(turns)), tell))
            }
            Some(Form::Threads(_)) | None => load::run(order, None::<&mut NoCompanion>, tell),
        };
        Ok(outcome?)
    }
}

/// An authority that a waiting thread serves.
struct Waiting {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<PolledServer>>,
}

impl Waiting {
    fn new(turns: PolledServer) -> Waiting {
        let stop = Arc::new(AtomicBool::new(false));
        let mut waiting = Waiting { stop, thread: None };
        waiting.resume(turns);
        waiting
    }

    /// Takes the authority from its thread, for as long as `use_it` takes.
    fn lend<T>(&mut self, use_it: impl FnOnce(&mut PolledServer) -> T) -> T {
        let mut turns = self.pause();
        let result = use_it(&mut turns);
        self.resume(turns);
        result
    }

    fn pause(&mut self) -> PolledServer {
        self.stop.store(true, Ordering::Relaxed);
        // There is a thread but for the time of a loan, and a loan borrows all of this.
        let thread = self.thread.take().expect("the authority is with its thread");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn resume(&mut self, mut turns: PolledServer) {
        self.stop.store(false, Ordering::Relaxed);
        let stop = Arc::clone(&self.stop);
        self.thread = Some(thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                if turns.poll() == 0 {
                    turns.wait(limits::LOOK);
                }
            }
            turns
        }));
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Its ports are free when it has ended.
            let _ = thread.join();
        }
    }
}

/// An authority in the loop of a load.
struct Beside<'a>(&'a mut PolledServer);

impl Companion for Beside<'_> {
    #[inline]
    fn poll(&mut self) -> usize {
        self.0.poll()
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.0.descriptors().collect()
    }

    #[inline]
    fn deadline_ns(&self) -> Option<u64> {
        self.0.deadline().map(|deadline| deadline.0)
    }
}

/// Why nothing is served or loaded.
#[derive(Debug)]
pub(super) enum ServingError {
    /// The zone's name.
    Zone(ZoneError),
    /// More CNAME records than can be.
    Depth(u16),
    /// An address cannot be listened on.
    Listen(io::Error),
    /// There is none.
    NoAuthority,
    /// The load is refused, or failed.
    Load(LoadError),
}

impl fmt::Display for ServingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServingError::Zone(error) => error.fmt(f),
            ServingError::Depth(depth) => {
                write!(f, "{depth} CNAME records before the addresses are too many; use at most {}", u8::MAX)
            }
            ServingError::Listen(error) => error.fmt(f),
            ServingError::NoAuthority => write!(f, "there is no authority here; order one first"),
            ServingError::Load(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ServingError {}

impl From<ZoneError> for ServingError {
    fn from(error: ZoneError) -> ServingError {
        ServingError::Zone(error)
    }
}

impl From<io::Error> for ServingError {
    fn from(error: io::Error) -> ServingError {
        ServingError::Listen(error)
    }
}

impl From<LoadError> for ServingError {
    fn from(error: LoadError) -> ServingError {
        ServingError::Load(error)
    }
}
