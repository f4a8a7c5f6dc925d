//! Authority and load of an agent. An authority without a thread of its own is polled by the thread of the load while a
//! load runs, and by an idle thread between loads: if the upstream were silent between trials, the device would take it
//! for dead.

use super::protocol::Progress;
use crate::background::Background;
use crate::process;
use ::authority::{PolledServer, Server, Settings, Zone, ZoneError};
use load::{Companion, LoadError, LoadOptions, NoCompanion, TlsOptions};
use measure::order::{Authority, Load};
use measure::outcome::{Outcome, Second};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;

/// The authority of an agent, if it has one.
#[derive(Default)]
pub(super) struct AgentAuthority {
    running: Option<RunningAuthority>,
}

struct RunningAuthority {
    /// The requested addresses, and those with the chosen ports.
    requested: Vec<SocketAddr>,
    addresses: Vec<SocketAddr>,
    driver: Driver,
}

/// Threads that serve the authority.
enum Driver {
    /// The authority has threads of its own.
    Threads(Server),
    /// The authority is polled: by an idle thread between loads, by the load's thread during a load.
    Polled(IdleThread),
}

impl AgentAuthority {
    /// Serves a zone. It replaces the zone before, and keeps its addresses if the same ones are requested.
    ///
    /// # Errors
    ///
    /// `AuthorityError`: the chain of CNAME records is longer than 255, the zone's name is malformed, or an address cannot be bound.
    /// The zone before is gone then.
    pub(super) fn serve(&mut self, order: Authority) -> Result<Vec<SocketAddr>, AuthorityError> {
        let depth =
            u8::try_from(order.cname_depth).map_err(|_| AuthorityError::CnameDepth(order.cname_depth))?;
        let zone = Zone::new(&order.zone)?.ttl(order.ttl).addresses(order.addresses).cname_depth(depth);
        let zone = zone.aaaa_share(order.aaaa_share).seed(order.seed);
        let pins = order.pins.iter().copied().map(usize::from).collect();
        let settings =
            Settings::new(zone).threads(usize::from(order.threads)).pins(pins).offload(order.offload);
        let listen = match self.running.take() {
            Some(before) if before.requested == order.listen => before.addresses,
            _ => order.listen.clone(),
        };
        let (addresses, driver) = if order.threads == 0 {
            let turns = PolledServer::new(&listen, &settings)?;
            (turns.addresses().to_vec(), Driver::Polled(IdleThread::new(turns)))
        } else {
            let server = Server::with(&listen, &settings)?;
            (server.addresses().to_vec(), Driver::Threads(server))
        };
        self.running =
            Some(RunningAuthority { requested: order.listen, addresses: addresses.clone(), driver });
        Ok(addresses)
    }

    /// The number of answers so far, by kind.
    ///
    /// # Errors
    ///
    /// `AuthorityError::NoAuthority`: no zone is served.
    pub(super) fn counters(&mut self) -> Result<BTreeMap<String, u64>, AuthorityError> {
        let running = self.running.as_mut().ok_or(AuthorityError::NoAuthority)?;
        let owned = |totals: &mut dyn Iterator<Item = (&'static str, u64)>| {
            totals.map(|(name, count)| (name.to_owned(), count)).collect()
        };
        Ok(match &mut running.driver {
            Driver::Threads(server) => owned(&mut server.counters().totals()),
            Driver::Polled(idle) => idle.lend(|turns| owned(&mut turns.counters().totals())),
        })
    }

    /// Runs a load on a server. Ends early when `progress` returns false.
    ///
    /// # Errors
    ///
    /// The order is impossible, or the load fails, as `load::run_with` says.
    pub(super) fn load(
        &mut self,
        order: &Load,
        mut progress: impl FnMut(Progress) -> bool,
    ) -> Result<Outcome, AuthorityError> {
        let mut before = Second::default();
        let report = |so_far: &load::Progress| {
            let now =
                Second { sent: so_far.sent, valid: so_far.valid, invalid: so_far.invalid, late: so_far.late };
            let counted = Second {
                sent: now.sent.saturating_sub(before.sent),
                valid: now.valid.saturating_sub(before.valid),
                invalid: now.invalid.saturating_sub(before.invalid),
                late: now.late.saturating_sub(before.late),
            };
            before = now;
            let is_wanted = progress(Progress { elapsed_s: so_far.elapsed.as_secs_f64(), counted });
            if is_wanted { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let outcome = match self.running.as_mut().map(|running| &mut running.driver) {
            Some(Driver::Polled(idle)) => {
                idle.lend(|turns| load::run(order, Some(&mut PolledCompanion(turns)), report))
            }
            Some(Driver::Threads(_)) | None => {
                // The certificate is the one that the run made, or the device's own: a name in it proves nothing here.
                let tls = TlsOptions { insecure: order.transport.is_encrypted(), ..TlsOptions::default() };
                let options = LoadOptions { tls, ..LoadOptions::default() };
                load::run_with(order, &options, None::<&mut NoCompanion>, report).map(|(outcome, _)| outcome)
            }
        };
        Ok(outcome?)
    }
}

/// A polled authority that an idle thread serves. Once it is dropped, the ports are free.
struct IdleThread(Option<Background<PolledServer>>);

impl IdleThread {
    fn new(turns: PolledServer) -> IdleThread {
        let mut idle = IdleThread(None);
        idle.resume(turns);
        idle
    }

    /// Takes the authority from its thread for the duration of `use_it`.
    fn lend<T>(&mut self, use_it: impl FnOnce(&mut PolledServer) -> T) -> T {
        // The thread is missing only here, which borrows all of `self`.
        let mut turns = self.0.take().expect("the authority is with its thread").end();
        let result = use_it(&mut turns);
        self.resume(turns);
        result
    }

    fn resume(&mut self, mut turns: PolledServer) {
        self.0 = Some(Background::start(move |stop| {
            while !stop.load(Ordering::Relaxed) {
                if turns.poll() == 0 {
                    turns.wait(process::limits::POLL_INTERVAL);
                }
            }
            turns
        }));
    }
}

/// An authority that the loop of a load polls.
struct PolledCompanion<'a>(&'a mut PolledServer);

impl Companion for PolledCompanion<'_> {
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

/// Reasons why the authority or the load cannot start.
#[derive(Debug)]
pub(super) enum AuthorityError {
    /// The name of the zone is wrong.
    Zone(ZoneError),
    /// More CNAME records than an authority can have.
    CnameDepth(u16),
    /// An address cannot be bound.
    Listen(io::Error),
    /// The agent has no authority.
    NoAuthority,
    /// The load was refused, or failed.
    Load(LoadError),
}

impl fmt::Display for AuthorityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuthorityError::Zone(error) => error.fmt(f),
            AuthorityError::CnameDepth(depth) => {
                write!(f, "{depth} CNAME records before the addresses are too many; use at most {}", u8::MAX)
            }
            AuthorityError::Listen(error) => error.fmt(f),
            AuthorityError::NoAuthority => write!(f, "this agent has no authority; order one first"),
            AuthorityError::Load(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AuthorityError {}

impl From<ZoneError> for AuthorityError {
    fn from(error: ZoneError) -> AuthorityError {
        AuthorityError::Zone(error)
    }
}

impl From<io::Error> for AuthorityError {
    fn from(error: io::Error) -> AuthorityError {
        AuthorityError::Listen(error)
    }
}

impl From<LoadError> for AuthorityError {
    fn from(error: LoadError) -> AuthorityError {
        AuthorityError::Load(error)
    }
}
