//! The authority and the load of an agent. When the authority is to have no thread of its own, it is served by the thread
//! of the load while one goes on, and by a thread that waits in between.

use crate::protocol::Progress;
use ::authority::{Kind, Server, Zone, ZoneError};
use measure::order::{Authority, Load};
use measure::outcome::Outcome;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;

/// The authority of an agent, if it has one.
#[derive(Debug, Default)]
pub(super) struct Serving {
    running: Option<(Authority, Server)>,
}

impl Serving {
    /// Serves a zone in the place of the one before, at the same addresses if the same are asked for.
    pub(super) fn serve(&mut self, order: Authority) -> Result<Vec<SocketAddr>, ServingError> {
        let zone = Zone::new(&order.zone)?.ttl(order.ttl).addresses(order.addresses);
        let zone = zone.aaaa_share(order.aaaa_share).seed(order.seed);
        let before = self.running.take();
        let listen = match &before {
            Some((before, server)) if before.listen == order.listen => server.addresses().to_vec(),
            _ => order.listen.clone(),
        };
        drop(before);
        let server = Server::start(&listen, zone, usize::from(order.threads))?;
        let addresses = server.addresses().to_vec();
        self.running = Some((order, server));
        Ok(addresses)
    }

    /// Its answers so far, by kind.
    pub(super) fn counters(&self) -> Result<BTreeMap<String, u64>, ServingError> {
        let (_, server) = self.running.as_ref().ok_or(ServingError::NoAuthority)?;
        Ok(Kind::ALL.into_iter().map(|kind| (format!("{kind:?}"), server.answers(kind))).collect())
    }

    /// Loads a server.
    pub(super) fn load(
        &mut self,
        _order: &Load,
        _progress: impl FnMut(Progress) -> bool,
    ) -> Result<Outcome, ServingError> {
        Err(ServingError::NoLoad)
    }
}

/// Why nothing is served or loaded.
#[derive(Debug)]
pub(super) enum ServingError {
    /// The zone's name.
    Zone(ZoneError),
    /// An address cannot be listened on.
    Listen(io::Error),
    /// There is none.
    NoAuthority,
    /// This agent cannot.
    NoLoad,
}

impl fmt::Display for ServingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServingError::Zone(error) => error.fmt(f),
            ServingError::Listen(error) => error.fmt(f),
            ServingError::NoAuthority => write!(f, "there is no authority here; order one first"),
            ServingError::NoLoad => write!(f, "this release cannot load a server"),
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
