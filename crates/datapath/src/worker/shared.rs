//! The handle to all workers that other threads hold: mailboxes, counters, addresses, and the order to stop.

use crate::counters::{Counter, Counters, Snapshot};
use crate::listen::proxy_protocol::TrustedProxies;
use crate::listen::steering::{self, Seed};
use crate::worker::mailbox::{Mailbox, MailboxFull};
use engine::Client;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// What other threads need of the workers.
pub struct Shared<M> {
    pub(super) mailboxes: Vec<Arc<Mailbox<M>>>,
    pub(super) counters: Vec<Arc<Counters>>,
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) seed: Seed,
    pub(super) must_forward: bool,
    pub(super) proxies: TrustedProxies,
    /// Workers that have emptied their listeners after the order to stop.
    pub(super) drained_workers: AtomicUsize,
    pub(super) steering_error: Option<io::Error>,
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
    pub fn post(&self, client: &Client, message: &[u8]) -> Result<(), MailboxFull> {
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
        snapshot.set(Counter::MailboxFull, self.mailboxes[worker].refused_messages());
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
    pub(crate) fn must_forward(&self) -> bool {
        self.must_forward
    }

    /// The proxies whose PROXY header is believed.
    #[inline]
    pub fn proxies(&self) -> &TrustedProxies {
        &self.proxies
    }

    /// A worker has emptied its listeners after the order to stop, and has no more letters for the others. The last one
    /// to say so wakes them: they wait for it.
    pub(crate) fn note_listeners_drained(&self) {
        if self.drained_workers.fetch_add(1, Ordering::SeqCst) + 1 == self.workers() {
            self.mailboxes.iter().for_each(|mailbox| mailbox.wake_always());
        }
    }

    /// Whether no worker has letters for others any more.
    pub(crate) fn all_listeners_drained(&self) -> bool {
        self.drained_workers.load(Ordering::SeqCst) >= self.workers()
    }

    pub(crate) fn seed(&self) -> Seed {
        self.seed
    }

    pub(crate) fn live_counters(&self, worker: usize) -> Arc<Counters> {
        Arc::clone(&self.counters[worker])
    }
}
