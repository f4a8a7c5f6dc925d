//! Server that its owner polls. It has no UDP thread, so a load generator can share one thread, and so one core, with it.

use crate::counters::ServerCounters;
use crate::listen::{Bound, ThreadGroup};
use crate::settings::Settings;
use crate::udp_worker::UdpWorker;
use engine::Instant;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// A server that answers UDP queries when its owner polls it. TCP has its own threads, which end when this is
/// dropped.
pub struct PolledServer {
    worker: UdpWorker,
    addresses: Vec<SocketAddr>,
    _tcp_threads: ThreadGroup,
}

impl PolledServer {
    /// Listens on UDP and TCP of every address. Port 0 means any port that is free for both. The number of threads
    /// and their cores in `settings` are ignored.
    ///
    /// # Errors
    ///
    /// An address cannot be bound, with that address, or the system starts no more threads.
    pub fn new(listen: &[SocketAddr], settings: &Settings) -> io::Result<PolledServer> {
        let Bound { addresses, mut workers, tcp, .. } = Bound::new(listen, &settings.clone().threads(1))?;
        let worker = workers.pop().ok_or_else(|| io::Error::other("no thread to serve"))?;
        Ok(PolledServer { worker, addresses, _tcp_threads: tcp.start()? })
    }

    /// Answers the waiting queries and the delayed queries that are due; returns their number. Never blocks.
    #[inline]
    pub fn poll(&mut self) -> usize {
        self.worker.poll()
    }

    /// Waits until [`PolledServer::poll`] has work, at most for `timeout`. For owners without other work.
    pub fn wait(&mut self, timeout: Duration) {
        self.worker.wait(timeout);
    }

    /// The descriptors that are readable when [`PolledServer::poll`] has work.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.worker.descriptors()
    }

    /// Due time of the next delayed answer, on the clock of [`datapath::now`].
    pub fn deadline(&self) -> Option<Instant> {
        self.worker.deadline()
    }

    /// The addresses served, in the order of `listen`, with the chosen ports.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// All counters of the server.
    pub fn counters(&self) -> &ServerCounters {
        self.worker.counters()
    }
}
