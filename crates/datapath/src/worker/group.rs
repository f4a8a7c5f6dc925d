//! All workers of a server together: every socket is bound before any thread starts, so that whatever is wrong is
//! reported from the main thread, and privileges can be dropped in between.

use crate::counters::{Counter, Counters, Snapshot};
use crate::limits::SMALLEST_BUFFER;
use crate::listen::listener::{BindError, UdpListener};
use crate::listen::proxy_protocol::Trusted;
use crate::listen::steering::{self, Seed, Steer};
use crate::worker::event_loop::Worker;
use crate::worker::mailbox::{Full, Mailbox};
use engine::{Client, Machine};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// What the datapath is to be.
#[derive(Clone, Debug)]
pub struct Options {
    /// UDP addresses to listen on; port 0 means any. IPv6 addresses take no IPv4.
    pub listen: Vec<SocketAddr>,
    /// Worker threads, at least 1.
    pub workers: usize,
    /// How datagrams find the worker that owns the name.
    pub steer: Steer,
    /// Largest UDP message in both directions, in octets.
    pub udp_size: usize,
    /// Whether questions may travel with the SYN of a TCP link (RFC 7413), where upstream and kernel allow it.
    pub tcp_fast_open: bool,
    /// The proxies whose PROXY header is believed.
    pub proxies: Trusted,
}

/// The workers, and what others need of them.
pub type Built<M> = (Vec<Worker<M>>, Arc<Shared<M>>);

/// Binds all sockets and makes the workers, which are to be started, each with a machine of its own.
pub fn build<M: Machine + Send + 'static>(options: &Options) -> Result<Built<M>, BuildError> {
    let workers = options.workers.max(1);
    let seed = Seed::random().map_err(|error| BuildError::System { step: "random seed", error })?;
    let mut listeners: Vec<Vec<UdpListener>> = (0..workers).map(|_| Vec::new()).collect();
    let mut addresses = Vec::new();
    let mut crosses = workers > 1 && options.steer == Steer::Flow;
    let mut steering_error = None;
    for &address in &options.listen {
        let group = UdpListener::bind_group(address, workers).map_err(BuildError::Bind)?;
        addresses.push(group[0].address());
        if workers > 1
            && options.steer == Steer::Name
            && let Err(error) =
                steering::attach(group[0].socket(), workers, seed, !options.proxies.is_empty())
        {
            crosses = true;
            steering_error = Some(error);
        }
        for (worker, listener) in listeners.iter_mut().zip(group) {
            worker.push(listener);
        }
    }
    let mailboxes: io::Result<Vec<_>> = (0..workers).map(|_| Mailbox::new().map(Arc::new)).collect();
    let shared = Arc::new(Shared {
        mailboxes: mailboxes.map_err(|error| BuildError::System { step: "eventfd", error })?,
        counters: (0..workers).map(|_| Arc::default()).collect(),
        addresses,
        seed,
        crosses,
        proxies: options.proxies.clone(),
        emptied: AtomicUsize::new(0),
        steering_error,
    });
    let udp_size = options.udp_size.max(SMALLEST_BUFFER);
    let workers: io::Result<Vec<_>> = listeners
        .into_iter()
        .enumerate()
        .map(|(index, listeners)| {
            Worker::new(index, listeners, Arc::clone(&shared), udp_size, options.tcp_fast_open)
        })
        .collect();
    Ok((workers.map_err(|error| BuildError::System { step: "epoll", error })?, shared))
}

/// What other threads need of the workers.
pub struct Shared<M> {
    mailboxes: Vec<Arc<Mailbox<M>>>,
    counters: Vec<Arc<Counters>>,
    addresses: Vec<SocketAddr>,
    seed: Seed,
    crosses: bool,
    proxies: Trusted,
    /// Workers that have emptied their listeners after the order to stop.
    emptied: AtomicUsize,
    steering_error: Option<io::Error>,
}

impl<M> Shared<M> {
    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.mailboxes.len()
    }

    /// The addresses that are listened on, with their actual ports, in the order of the options.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The mailbox of one worker.
    pub fn mailbox(&self, worker: usize) -> &Arc<Mailbox<M>> {
        &self.mailboxes[worker]
    }

    /// The worker that owns the name which a message asks for.
    #[inline]
    pub fn owner(&self, message: &[u8]) -> usize {
        steering::owner(message, self.seed, self.workers())
    }

    /// Posts a client's message to the worker that owns the name.
    pub fn post(&self, client: &Client, message: &[u8]) -> Result<(), Full> {
        self.mailboxes[self.owner(message)].post(client, message)
    }

    /// Has all workers stop, as [`Mailbox::stop`] says.
    /// None ends before all have emptied their listeners: what they find there may belong to another.
    pub fn stop(&self, grace: Duration) {
        self.mailboxes.iter().for_each(|mailbox| mailbox.stop(grace));
    }

    /// What one worker has counted.
    pub fn counters(&self, worker: usize) -> Snapshot {
        let mut snapshot = self.counters[worker].snapshot();
        snapshot.set(Counter::MailboxFull, self.mailboxes[worker].refused_letters());
        snapshot
    }

    /// What all workers have counted.
    pub fn total(&self) -> Snapshot {
        let mut total = Snapshot::default();
        (0..self.workers()).for_each(|worker| total.add(&self.counters(worker)));
        total
    }

    /// Why the kernel does not steer by name although it was to: the workers hand on what others own instead, which is
    /// slower. To be reported at start.
    pub fn steering_error(&self) -> Option<&io::Error> {
        self.steering_error.as_ref()
    }

    /// Whether workers have to hand on what another one owns.
    pub(crate) fn crosses(&self) -> bool {
        self.crosses
    }

    /// The proxies whose PROXY header is believed.
    #[inline]
    pub fn proxies(&self) -> &Trusted {
        &self.proxies
    }

    /// A worker has emptied its listeners after the order to stop, and has no more letters for the others. The last one
    /// to say so wakes them: they wait for it.
    pub(crate) fn has_emptied(&self) {
        if self.emptied.fetch_add(1, Ordering::SeqCst) + 1 == self.workers() {
            self.mailboxes.iter().for_each(|mailbox| mailbox.ring());
        }
    }

    /// Whether no worker has letters for others any more.
    pub(crate) fn all_have_emptied(&self) -> bool {
        self.emptied.load(Ordering::SeqCst) >= self.workers()
    }

    pub(crate) fn seed(&self) -> Seed {
        self.seed
    }

    pub(crate) fn live_counters(&self, worker: usize) -> Arc<Counters> {
        Arc::clone(&self.counters[worker])
    }
}

/// Why the datapath cannot be built.
#[derive(Debug)]
pub enum BuildError {
    /// An address cannot be listened on; the text says what to do.
    Bind(BindError),
    /// The system refused something that never fails on a healthy one; most likely the limit of open files
    /// (`ulimit -n`, or LimitNOFILE= of the unit) is too low.
    System {
        /// What was asked for.
        step: &'static str,
        /// What the system said.
        error: io::Error,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Bind(error) => error.fmt(f),
            BuildError::System { step, error } => {
                write!(
                    f,
                    "cannot set the workers up: {step}: {error}; is the limit of open files high enough?"
                )
            }
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BuildError::Bind(error) => Some(error),
            BuildError::System { error, .. } => Some(error),
        }
    }
}
