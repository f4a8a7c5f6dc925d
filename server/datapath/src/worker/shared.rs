//! The handle to all workers for other threads: mailboxes, counters, addresses, and the request to stop.

use crate::counters::{Counter, Counters, Snapshot};
use crate::listen::popular_names::PopularNames;
use crate::listen::proxy_protocol::TrustedProxies;
use crate::listen::steering::{self, Seed, SteeringChange};
use crate::upstream::sources::SourceTable;
use crate::upstream::tls_upstreams::TlsUpstreams;
use crate::worker::mailbox::{Mailbox, MailboxFull};
use crate::worker::signature_threads::{SignatureThreads, VerifySignature};
use engine::Client;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Interval of the checks whether the workers have released their sockets. A turn of a worker takes less than a millisecond.
const RELEASE_CHECK: Duration = Duration::from_micros(200);

/// The state that all workers share with other threads.
pub struct Shared<M> {
    pub(super) mailboxes: Vec<Arc<Mailbox<M>>>,
    pub(super) counters: Vec<Arc<Counters>>,
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) seed: Seed,
    pub(super) must_forward: AtomicBool,
    pub(super) proxies: TrustedProxies,
    pub(super) client_prefix: AtomicU8,
    /// Workers that have drained their listeners after the request to stop.
    pub(super) drained_workers: AtomicUsize,
    pub(super) steering_error: Option<io::Error>,
    /// Changes of the steering of sockets that another process still reads.
    pub(super) steering_changes: Mutex<Vec<SteeringChange>>,
    pub(super) tls_upstreams: Arc<TlsUpstreams>,
    pub(super) sources: Arc<SourceTable>,
    pub(super) popular_names: PopularNames,
    pub(super) signature_threads: Arc<SignatureThreads<M>>,
}

impl<M> Shared<M> {
    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.mailboxes.len()
    }

    /// The listening addresses with their actual ports, in the order of the options.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The mailbox of one worker.
    pub fn mailbox(&self, worker: usize) -> &Arc<Mailbox<M>> {
        &self.mailboxes[worker]
    }

    /// The worker that owns the query name of a message.
    #[inline]
    pub fn home_worker(&self, message: &[u8]) -> usize {
        steering::home_worker(message, self.seed, self.workers())
    }

    /// Queues a client's message for the worker that owns its query name; for a popular name, a worker of the client's. The worker may sleep
    /// until [`Shared::wake_workers`].
    ///
    /// # Errors
    ///
    /// [`MailboxFull`]: the mailbox of that worker has no room, or the worker has ended. The message is dropped.
    pub fn enqueue(&self, client: &Client, message: &[u8]) -> Result<(), MailboxFull> {
        let worker = match steering::name_hash(message, self.seed) {
            None => 0,
            Some(hash) if self.popular_names.contains(hash) => usize::from(client.port) % self.workers(),
            Some(hash) => steering::home_worker_of(hash, self.workers()),
        };
        self.mailboxes[worker].enqueue(client, message)
    }

    /// The worker that must answer a message which came to another worker; `None` if any worker can.
    #[inline]
    pub(crate) fn find_home_worker(&self, message: &[u8]) -> Option<usize> {
        let hash = steering::name_hash(message, self.seed)?;
        (!self.popular_names.contains(hash)).then(|| steering::home_worker_of(hash, self.workers()))
    }

    /// The names that all workers answer.
    pub(crate) fn popular_names(&self) -> &PopularNames {
        &self.popular_names
    }

    /// Wakes the workers that sleep and have messages. One call serves any number of messages.
    pub fn wake_workers(&self) {
        self.mailboxes.iter().for_each(|mailbox| mailbox.wake_for_messages());
    }

    /// Stops all workers, as [`Mailbox::stop`] describes. No worker ends before all have drained their listeners, because the
    /// queries that they find there may belong to another worker.
    pub fn stop(&self, grace: Duration) {
        self.mailboxes.iter().for_each(|mailbox| mailbox.stop(grace));
    }

    /// Makes all workers read their listening sockets, which another process has read until now ([`crate::Given::waits`],
    /// [`Shared::release_listeners`]). Call it when that process has stopped reading: only then may its filter and its steering be
    /// replaced.
    ///
    /// # Errors
    ///
    /// The last error of setsockopt(2): why the kernel does not steer an address by name. The workers read their sockets all the same,
    /// and pass queries on to their owners.
    pub fn listen(&self) -> io::Result<()> {
        let changes =
            std::mem::take(&mut *self.steering_changes.lock().unwrap_or_else(PoisonError::into_inner));
        let mut steered = Ok(());
        for change in changes {
            if let Err(error) = change.apply() {
                self.must_forward.store(true, Ordering::Relaxed);
                steered = Err(error);
            }
        }
        self.mailboxes.iter().for_each(|mailbox| mailbox.listen());
        steered
    }

    /// Makes all workers stop reading their listening sockets, for another process. They go on answering the queries that they
    /// have, and those of streams. Waits until all have stopped, for at most `time`; false if one has not.
    pub fn release_listeners(&self, time: Duration) -> bool {
        self.mailboxes.iter().for_each(|mailbox| mailbox.release_listeners());
        let end = Instant::now() + time;
        loop {
            let is_released = self.mailboxes.iter().all(|mailbox| mailbox.is_settled());
            if is_released || Instant::now() >= end {
                return is_released;
            }
            std::thread::sleep(RELEASE_CHECK);
        }
    }

    /// The counters of one worker.
    pub fn counters(&self, worker: usize) -> Snapshot {
        let mut snapshot = self.counters[worker].snapshot();
        snapshot.set(Counter::MailboxFull, self.mailboxes[worker].refused_messages());
        snapshot
    }

    /// The sum of the counters of all workers.
    pub fn total(&self) -> Snapshot {
        let mut total = Snapshot::default();
        (0..self.workers()).for_each(|worker| total.add(&self.counters(worker)));
        total
    }

    /// The reason why the kernel does not steer by name although the options ask for it. The workers then forward queries to
    /// their owners, which is slower. Report it at start.
    pub fn steering_error(&self) -> Option<&io::Error> {
        self.steering_error.as_ref()
    }

    /// The upstreams that are asked over TLS. A reload replaces them.
    pub fn tls_upstreams(&self) -> &Arc<TlsUpstreams> {
        &self.tls_upstreams
    }

    /// Starts threads that verify signatures, until there are so many. Without any, machines verify none.
    ///
    /// # Errors
    ///
    /// The error of pthread_create(3): the process may have no more threads. Those that were started go on.
    pub fn verify_signatures(&self, threads: usize, verify: VerifySignature) -> io::Result<()>
    where
        M: 'static,
    {
        self.signature_threads.start(threads, verify)
    }

    /// Processor time of the threads that verify signatures.
    pub fn signature_time(&self) -> Duration
    where
        M: 'static,
    {
        self.signature_threads.time()
    }

    /// The addresses and ports that queries to upstreams leave from. A reload replaces them.
    pub fn sources(&self) -> &Arc<SourceTable> {
        &self.sources
    }

    /// True if workers must forward queries that another worker owns.
    pub(crate) fn must_forward(&self) -> bool {
        self.must_forward.load(Ordering::Relaxed)
    }

    /// The proxies whose PROXY header is trusted.
    #[inline]
    pub fn proxies(&self) -> &TrustedProxies {
        &self.proxies
    }

    /// Sets the bits of the IPv6 prefix that one customer has, for the overload control and the mailboxes
    /// ([`engine::Settings::client_prefix`]).
    pub fn set_client_prefix(&self, length: u8) {
        self.client_prefix.store(length, Ordering::Relaxed);
        self.mailboxes.iter().for_each(|mailbox| mailbox.set_client_prefix(length));
    }

    /// The bits of the IPv6 prefix that one customer has.
    pub(crate) fn client_prefix(&self) -> u8 {
        self.client_prefix.load(Ordering::Relaxed)
    }

    /// A worker has drained its listeners after the request to stop, and has no more queries for the others. The last worker to
    /// call this wakes all of them: they wait for it.
    pub(crate) fn note_listeners_drained(&self) {
        if self.drained_workers.fetch_add(1, Ordering::SeqCst) + 1 == self.workers() {
            self.mailboxes.iter().for_each(|mailbox| mailbox.wake_always());
        }
    }

    /// True if no worker has queries for others any more.
    pub(crate) fn all_listeners_drained(&self) -> bool {
        self.drained_workers.load(Ordering::SeqCst) >= self.workers()
    }

    /// The secret of the hash by which names belong to workers.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    pub(crate) fn live_counters(&self, worker: usize) -> Arc<Counters> {
        Arc::clone(&self.counters[worker])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listen::steering::tests::question;
    use crate::{Options, Steer, build};
    use engine::{Instant, Link, Machine, Outbox, Unreachable};

    struct Silent;

    impl Machine for Silent {
        fn query(&mut self, _: Instant, _: &Client, _: &[u8], _: &mut impl Outbox) {}
        fn reply(&mut self, _: Instant, _: Link, _: &mut [u8], _: &mut impl Outbox) {}
        fn on_link_failure(&mut self, _: Instant, _: Link, _: Unreachable, _: &mut impl Outbox) {}
        fn expire(&mut self, _: Instant, _: &mut impl Outbox) -> Option<Instant> {
            None
        }
        fn is_idle(&self) -> bool {
            true
        }
    }

    #[test]
    fn a_popular_name_has_no_home_worker_and_streams_go_to_a_worker_of_their_client() {
        let options = Options {
            listen: vec!["127.0.0.1:0".parse().unwrap()],
            workers: 4,
            steer: Steer::Flow,
            udp_size: 1232,
            tcp_fast_open: false,
            proxies: TrustedProxies::default(),
            freebind: false,
        };
        let (_workers, shared) = build::<Silent>(&options).unwrap();
        let message = question("www.example");
        assert_eq!(shared.find_home_worker(&message), Some(shared.home_worker(&message)));
        let hash = steering::name_hash(&message, shared.seed()).unwrap();
        assert!(shared.popular_names().add(hash, Instant(1)).is_some());
        assert_eq!(shared.find_home_worker(&message), None);
        assert_eq!(shared.find_home_worker(&message[..14]), None, "a runt has none either");
        for port in 0..8 {
            let client = Client { port, ..Client::udp("127.0.0.1:1".parse().unwrap()) };
            shared.enqueue(&client, &message).unwrap();
        }
        for worker in 0..4 {
            let queued = std::iter::from_fn(|| shared.mailbox(worker).take_message()).count();
            assert_eq!(queued, 2, "worker {worker}");
        }
    }
}
