//! All workers of a server together: every socket is bound before any thread starts, so that whatever is wrong is
//! reported from the main thread, and privileges can be dropped in between.

use crate::limits::SMALLEST_BUFFER;
use crate::listen::listener::{BindError, UdpListener};
use crate::listen::proxy_protocol::TrustedProxies;
use crate::listen::steering::{self, Seed, Steer};
use crate::worker::event_loop::Worker;
use crate::worker::mailbox::Mailbox;
use crate::worker::shared::Shared;
use engine::Machine;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

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
    pub proxies: TrustedProxies,
}

/// The workers, and what others need of them.
pub type Built<M> = (Vec<Worker<M>>, Arc<Shared<M>>);

/// Binds all sockets and makes the workers, which are to be started, each with a machine of its own.
pub fn build<M: Machine + Send + 'static>(options: &Options) -> Result<Built<M>, BuildError> {
    let workers = options.workers.max(1);
    let seed = Seed::random().map_err(|error| BuildError::System { step: "random seed", error })?;
    let mut listeners: Vec<Vec<UdpListener>> = (0..workers).map(|_| Vec::new()).collect();
    let mut addresses = Vec::new();
    let mut must_forward = workers > 1 && options.steer == Steer::Flow;
    let mut steering_error = None;
    for &address in &options.listen {
        let group = UdpListener::bind_group(address, workers).map_err(BuildError::Bind)?;
        addresses.push(group[0].address());
        if workers > 1
            && options.steer == Steer::Name
            && let Err(error) =
                steering::attach(group[0].socket(), workers, seed, !options.proxies.is_empty())
        {
            must_forward = true;
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
        must_forward,
        proxies: options.proxies.clone(),
        drained_workers: AtomicUsize::new(0),
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
