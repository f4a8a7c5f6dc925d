//! The workers of a server, built together. Every socket is bound before any thread starts, so that the main thread reports
//! every error, and can drop privileges in between.

use crate::limits::{CLIENT_PREFIX, SMALLEST_BUFFER};
use crate::listen::listener::{BindError, UdpListener};
use crate::listen::popular_names::PopularNames;
use crate::listen::proxy_protocol::TrustedProxies;
use crate::listen::steering::{Seed, Steer, SteeringChange};
use crate::worker::event_loop::{Listening, Worker};
use crate::worker::mailbox::Mailbox;
use crate::worker::shared::Shared;
use crate::worker::signature_threads::SignatureThreads;
use engine::Machine;
use kernel::remedy::remedy;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU8, AtomicUsize};
use std::sync::{Arc, Mutex};

/// The options of the datapath.
#[derive(Clone, Debug)]
pub struct Options {
    /// UDP addresses to listen on. Port 0 means any port. IPv6 addresses do not accept IPv4.
    pub listen: Vec<SocketAddr>,
    /// Worker threads, at least 1.
    pub workers: usize,
    /// The way in which datagrams are steered to the worker that owns the name.
    pub steer: Steer,
    /// Largest UDP message in both directions, in octets.
    pub udp_size: usize,
    /// True if queries may travel with the SYN of a TCP link (RFC 7413), provided that upstream and kernel allow it.
    pub tcp_fast_open: bool,
    /// The proxies whose PROXY header is trusted.
    pub proxies: TrustedProxies,
    /// True if addresses are bound that no interface has yet.
    pub freebind: bool,
}

/// The workers, and the handle for other threads.
pub type Built<M> = (Vec<Worker<M>>, Arc<Shared<M>>);

/// Parts of the datapath that exist already: sockets of the service manager, or those of the predecessor of this process.
#[derive(Debug, Default)]
pub struct Given {
    /// Bound UDP sockets by their address, which is that of the options, in the order of the workers.
    pub sockets: Vec<(SocketAddr, Vec<OwnedFd>)>,
    /// The secret of the steering hash, so that a name keeps its worker.
    pub seed: Option<Seed>,
    /// True if another process still reads the sockets: the workers read and change nothing before [`Shared::listen`].
    pub waits: bool,
}

impl Given {
    /// Takes the sockets of one address.
    fn take(&mut self, address: SocketAddr) -> Vec<OwnedFd> {
        let place = self.sockets.iter().position(|(bound, _)| *bound == address);
        place.map_or_else(Vec::new, |place| self.sockets.swap_remove(place).1)
    }
}

/// Binds all sockets and makes the workers. The caller starts each worker with a machine of its own.
///
/// # Errors
///
/// `BuildError::Bind`: an address cannot be listened on. `BuildError::System`: the system refused random numbers or a descriptor. A
/// kernel that cannot steer by name is no error; [`Shared`] has the reason.
pub fn build<M: Machine + Send + 'static>(options: &Options) -> Result<Built<M>, BuildError> {
    build_with(options, Given::default())
}

/// Like [`build`], with sockets that are bound already in the place of the addresses that they have. A group with more sockets
/// than workers makes more workers: nobody would read the others. Workers share the sockets of a group that has fewer, and
/// pass on the queries that others own.
///
/// # Errors
///
/// As [`build`], and `BuildError::Bind` if an inherited socket is no UDP socket of its address.
pub fn build_with<M: Machine + Send + 'static>(
    options: &Options,
    mut given: Given,
) -> Result<Built<M>, BuildError> {
    let largest = given.sockets.iter().map(|(_, sockets)| sockets.len()).max();
    let workers = options.workers.max(largest.unwrap_or(1)).max(1);
    let random = || Seed::random().map_err(|error| BuildError::System { step: "random seed", error });
    let seed = given.seed.map_or_else(random, Ok)?;
    let mut listeners: Vec<Vec<UdpListener>> = (0..workers).map(|_| Vec::new()).collect();
    let mut addresses = Vec::new();
    let mut must_forward = workers > 1 && options.steer == Steer::Flow;
    let mut steering_error = None;
    let mut changes = Vec::new();
    for &address in &options.listen {
        let (group, steering) = open_group(options, address, given.take(address), workers, seed)?;
        addresses.push(group[0].address());
        let steering = match steering {
            Steering::Changed(change) if given.waits => {
                changes.push(change);
                Ok(())
            }
            Steering::Changed(change) => change.apply(),
            Steering::Kept => Ok(()),
            Steering::Impossible(error) => Err(error),
        };
        if let Err(error) = steering {
            must_forward = true;
            steering_error = Some(error);
        }
        for (worker, listener) in listeners.iter_mut().zip(group) {
            worker.push(listener);
        }
    }
    let mailboxes: io::Result<Vec<_>> = (0..workers).map(|_| Mailbox::new().map(Arc::new)).collect();
    let mailboxes = mailboxes.map_err(|error| BuildError::System { step: "eventfd", error })?;
    let shared = Arc::new(Shared {
        signature_threads: Arc::new(SignatureThreads::new(mailboxes.clone())),
        mailboxes,
        counters: (0..workers).map(|_| Arc::default()).collect(),
        addresses,
        seed,
        must_forward: must_forward.into(),
        proxies: options.proxies.clone(),
        client_prefix: AtomicU8::new(CLIENT_PREFIX),
        drained_workers: AtomicUsize::new(0),
        steering_error,
        steering_changes: Mutex::new(changes),
        tls_upstreams: Arc::default(),
        sources: Arc::default(),
        popular_names: PopularNames::default(),
    });
    let udp_size = options.udp_size.max(SMALLEST_BUFFER);
    let workers: io::Result<Vec<_>> = listeners
        .into_iter()
        .enumerate()
        .map(|(index, listeners)| {
            let listening = if given.waits { Listening::Waits } else { Listening::Reads };
            Worker::new(index, listeners, Arc::clone(&shared), udp_size, options.tcp_fast_open, listening)
        })
        .collect();
    Ok((workers.map_err(|error| BuildError::System { step: "epoll", error })?, shared))
}

/// The steering of the sockets of one address.
enum Steering {
    /// The kernel steers as it must already.
    Kept,
    /// The kernel has to be told.
    Changed(SteeringChange),
    /// The kernel cannot steer by name to these sockets, for this reason.
    Impossible(io::Error),
}

/// The listeners of all workers for one address, bound here or given, and their steering.
fn open_group(
    options: &Options,
    address: SocketAddr,
    given: Vec<OwnedFd>,
    workers: usize,
    seed: Seed,
) -> Result<(Vec<UdpListener>, Steering), BuildError> {
    let bound = given.len();
    let group = match bound {
        0 => UdpListener::bind_group(address, workers, options.freebind),
        _ => UdpListener::adopt_group(given, address, workers),
    }
    .map_err(BuildError::Bind)?;
    let first = || {
        let first = group[0].socket().try_clone_to_owned();
        first.map_err(|error| BuildError::System { step: "dup", error })
    };
    let steering = match options.steer {
        Steer::Name if workers == 1 => Steering::Kept,
        Steer::Name if bound == 0 || bound == workers => {
            let proxied = !options.proxies.is_empty();
            Steering::Changed(SteeringChange::ByName { first: first()?, workers, seed, proxied })
        }
        Steer::Name => Steering::Impossible(io::Error::other(format!(
            "{bound} passed socket{} on {address} for {workers} workers",
            if bound == 1 { "" } else { "s" }
        ))),
        // The process that used the sockets before may have steered by name.
        Steer::Flow if bound > 1 => Steering::Changed(SteeringChange::ByFlow { first: first()? }),
        Steer::Flow => Steering::Kept,
    };
    Ok((group, steering))
}

/// The reason why the datapath cannot be built.
#[derive(Debug)]
pub enum BuildError {
    /// An address cannot be listened on. The text contains the remedy.
    Bind(BindError),
    /// The system refused a step that never fails on a healthy system. The text contains the remedy for the error's number.
    System {
        /// The step that failed.
        step: &'static str,
        /// The error of the system.
        error: io::Error,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Bind(error) => error.fmt(f),
            BuildError::System { step, error } => {
                write!(f, "cannot set up the workers: {step}: {error}; {}", remedy(error))
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
