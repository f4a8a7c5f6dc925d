//! Server with its own threads. Each UDP thread has a socket for every address; each address has one thread that
//! accepts TCP connections.

use crate::counters::{Kind, ServerCounters};
use crate::limits;
use crate::listen::{Bound, ThreadGroup};
use crate::service::{Content, Service};
use crate::settings::Settings;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A running server. Dropping it stops it, within [`limits::POLL`], or [`limits::WRITE`] when a TCP client does not
/// read its answers.
#[derive(Debug)]
pub struct Server {
    addresses: Vec<SocketAddr>,
    service: Arc<Service>,
    _threads: ThreadGroup,
}

impl Server {
    /// Listens on UDP and TCP of every address and serves `content` with `threads` UDP threads (at least one),
    /// without faults. Port 0 means any port that is free for both UDP and TCP.
    ///
    /// # Errors
    ///
    /// An address cannot be bound, with that address, or the system starts no more threads. The server then serves nothing.
    pub fn start(listen: &[SocketAddr], content: impl Into<Content>, threads: usize) -> io::Result<Server> {
        Server::with(listen, &Settings::new(content).threads(threads))
    }

    /// Like [`Server::start`], with every setting.
    ///
    /// # Errors
    ///
    /// As [`Server::start`]; or a thread cannot run on its core.
    pub fn with(listen: &[SocketAddr], settings: &Settings) -> io::Result<Server> {
        BoundServer::new(listen, settings)?.start()
    }

    /// The addresses served, in the order of `listen`, with the chosen ports.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Number of messages of one kind so far, over all threads.
    pub fn answers(&self, kind: Kind) -> u64 {
        self.service.counters.total(kind)
    }

    /// Number of messages that got no answer so far: responses, and messages shorter than a header.
    pub fn ignored(&self) -> u64 {
        self.answers(Kind::Ignored)
    }

    /// All counters of the server.
    pub fn counters(&self) -> &ServerCounters {
        &self.service.counters
    }
}

/// A server whose sockets are bound and which has no threads yet: the caller may give up privileges before it starts them.
pub struct BoundServer {
    bound: Bound,
    /// Cores of the UDP threads, in turn.
    pins: Vec<usize>,
}

impl BoundServer {
    /// Binds UDP and TCP of every address, like [`Server::with`].
    ///
    /// # Errors
    ///
    /// An address cannot be bound, with that address.
    pub fn new(listen: &[SocketAddr], settings: &Settings) -> io::Result<BoundServer> {
        Ok(BoundServer { bound: Bound::new(listen, settings)?, pins: settings.pins.clone() })
    }

    /// The addresses, in the order of `listen`, with the chosen ports.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.bound.addresses
    }

    /// Starts the threads.
    ///
    /// # Errors
    ///
    /// The system starts no more threads, or a thread cannot run on its core.
    pub fn start(self) -> io::Result<Server> {
        let BoundServer { bound: Bound { addresses, workers, service, tcp }, pins } = self;
        let mut threads = tcp.start()?;
        for (index, mut worker) in workers.into_iter().enumerate() {
            threads.spawn("authority-udp", move |stop| {
                worker.count_cpu_of_this_thread();
                while !stop.load(Ordering::Relaxed) {
                    if worker.poll() == 0 {
                        worker.wait(limits::POLL);
                    }
                }
            })?;
            if let (Some(core), Some(thread)) = (pins.get(index % pins.len().max(1)), threads.threads.last())
            {
                datapath::pin(thread, *core).map_err(|error| {
                    io::Error::new(error.kind(), format!("cannot run on core {core}: {error}"))
                })?;
            }
        }
        Ok(Server { addresses, service, _threads: threads })
    }
}
