//! The state that stream threads, workers and the server share, and the queue of answers from the workers to a stream
//! thread.

use crate::admission::Admission;
use crate::budget::Budget;
use crate::counters::Counters;
use crate::limits;
use datapath::proxy_protocol::TrustedProxies;
use datapath::{MessageQueue, QueuedMessage};
use engine::Client;
use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Instant;
use tokio::sync::{Notify, oneshot, watch};

/// The state that stream threads, workers and the server share.
pub(crate) struct Shared {
    /// One queue per stream thread.
    pub(crate) answer_queues: Box<[AnswerQueue]>,
    /// The listening addresses, by the number in [`Client::listener`].
    pub(crate) addresses: Arc<[SocketAddr]>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) counters: Counters,
    /// The proxies whose PROXY header is trusted.
    pub(crate) proxies: TrustedProxies,
    /// The octets buffered for all connections.
    pub(crate) budget: Arc<Budget>,
    /// True once this process accepts connections.
    pub(crate) accepts: watch::Sender<bool>,
    /// Set when another process accepts the new connections: the time from which on a connection is closed after its answers.
    pub(crate) last_answers: OnceLock<Instant>,
    /// Set when draining begins.
    pub(crate) drain_deadline: OnceLock<Instant>,
    /// Connections that were cut off at the end of the grace period.
    pub(crate) cut_off: AtomicUsize,
    /// Number of running stream threads, and the signal that one has ended.
    pub(crate) running: Mutex<usize>,
    pub(crate) ended: Condvar,
}

impl Shared {
    /// The state of streams with so many threads, of which none runs yet.
    pub(crate) fn new(
        threads: usize,
        addresses: Arc<[SocketAddr]>,
        limits: limits::Limits,
        proxies: TrustedProxies,
    ) -> Shared {
        let shared = Shared {
            answer_queues: (0..threads).map(|_| AnswerQueue::new()).collect(),
            addresses,
            admission: Arc::new(Admission::new(limits)),
            counters: Counters::new(),
            proxies,
            budget: Arc::new(Budget::new(limits.client_prefix)),
            accepts: watch::Sender::new(false),
            last_answers: OnceLock::new(),
            drain_deadline: OnceLock::new(),
            cut_off: AtomicUsize::new(0),
            running: Mutex::new(0),
            ended: Condvar::new(),
        };
        shared.set_client_prefix(limits.client_prefix);
        shared
    }

    /// The time from which on a connection is closed after its answers, once another process accepts the new ones.
    pub(crate) fn last_answers(&self) -> Option<Instant> {
        self.last_answers.get().copied()
    }

    /// True once no new connections are accepted here.
    pub(crate) fn is_ending(&self) -> bool {
        self.last_answers.get().is_some() || self.drain_deadline.get().is_some()
    }

    /// Sets new limits, for open connections too.
    pub(crate) fn configure(&self, limits: limits::Limits) {
        self.admission.configure(limits);
        self.set_client_prefix(limits.client_prefix);
    }

    /// Sets the length of the prefix that one customer has.
    fn set_client_prefix(&self, length: u8) {
        self.budget.set_client_prefix(length);
        self.answer_queues.iter().for_each(|queue| queue.answers.set_client_prefix(length));
    }

    /// The end of the grace period, once draining has begun.
    pub(crate) fn drain_deadline(&self) -> Option<Instant> {
        self.drain_deadline.get().copied()
    }
}

/// Counts a running thread until it is dropped.
pub(crate) struct Running {
    pub(crate) shared: Arc<Shared>,
    pub(crate) index: usize,
}

impl Running {
    pub(crate) fn new(shared: Arc<Shared>, index: usize) -> Running {
        *shared.running.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Running { shared, index }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.answer_queues[self.index].closed.store(true, Ordering::Release);
        self.shared.answer_queues[self.index].end_report();
        *self.shared.running.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.shared.ended.notify_all();
    }
}

/// The answers on the way from the workers to a stream thread.
pub(crate) struct AnswerQueue {
    answers: MessageQueue,
    /// The connections and requests of which an answer found no room.
    lost: Mutex<HashSet<u64>>,
    has_lost: AtomicBool,
    /// Number of answers that the thread was not woken for.
    unannounced: AtomicUsize,
    /// Wakes the stream thread: for answers, for retiring and draining, and during them for each connection that ends.
    pub(crate) wakeup: Notify,
    /// True once the thread has ended.
    pub(crate) closed: AtomicBool,
    /// Wakes the task of the thread's packet cache, for `waiting`.
    pub(crate) report: Notify,
    /// Those who wait until the workers have been told of the answers out of the packet cache.
    waiting: Mutex<Vec<oneshot::Sender<()>>>,
}

impl AnswerQueue {
    pub(crate) fn new() -> AnswerQueue {
        AnswerQueue {
            answers: MessageQueue::new(limits::QUEUED_ANSWERS, limits::QUEUED_ANSWER_OCTETS),
            lost: Mutex::default(),
            has_lost: AtomicBool::new(false),
            unannounced: AtomicUsize::new(0),
            wakeup: Notify::new(),
            closed: AtomicBool::new(false),
            report: Notify::new(),
            waiting: Mutex::default(),
        }
    }

    /// Has the thread tell the workers of the answers out of its packet cache. The receiver learns when it has, or has ended.
    pub(crate) fn ask_for_report(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        if !self.closed.load(Ordering::Acquire) {
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
            self.report.notify_one();
        }
        receiver
    }

    /// Tells those who wait that the workers have been told.
    pub(crate) fn end_report(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        for sender in waiting {
            // The reader may have given up.
            let _ = sender.send(());
        }
    }

    /// Queues an answer. The thread may sleep until [`AnswerQueue::wake`]. An answer without room is lost, and the thread is told.
    pub(crate) fn put(&self, to: &Client, message: &[u8]) -> bool {
        if !self.answers.put(to, message) {
            self.note_lost(to.stream);
            return false;
        }
        if self.unannounced.fetch_add(1, Ordering::Relaxed) + 1 >= limits::QUERIES_PER_WAKE {
            self.wake();
        }
        true
    }

    /// Wakes the thread if answers have come since it was last woken.
    pub(crate) fn wake(&self) {
        // The read-modify-writes of all workers have one order, and each worker that puts an answer calls this afterwards.
        if self.unannounced.load(Ordering::Relaxed) > 0 && self.unannounced.swap(0, Ordering::AcqRel) > 0 {
            self.wakeup.notify_one();
        }
    }

    pub(crate) fn take(&self) -> Option<QueuedMessage> {
        self.answers.take()
    }

    /// Notes that an answer to this connection or request is lost. They are at most as many as wait for answers.
    fn note_lost(&self, token: u64) {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).insert(token);
        self.has_lost.store(true, Ordering::Release);
        self.wakeup.notify_one();
    }

    /// Takes the connections and requests of which an answer is lost.
    pub(crate) fn take_lost(&self) -> HashSet<u64> {
        if !self.has_lost.swap(false, Ordering::Acquire) {
            return HashSet::new();
        }
        std::mem::take(&mut *self.lost.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_whose_answers_fill_the_queue_loses_its_own_and_the_thread_is_told() {
        let client = |address: &str, stream| Client { stream, ..Client::udp(address.parse().unwrap()) };
        let queue = AnswerQueue::new();
        let greedy = client("192.0.2.1:4000", 5);
        assert!(queue.take_lost().is_empty());
        let mut put = (0..1000).filter(|_| queue.put(&greedy, &[0; 60_000])).count();
        assert!(put < 1000);
        // One of a thousand has the account of another.
        let others =
            ["198.51.100.1:4000", "198.51.100.2:4000", "198.51.100.3:4000"].map(|other| client(other, 5));
        put += others.iter().filter(|other| queue.put(other, &[0; 60_000])).count();
        assert!(others.iter().any(|other| queue.put(other, &[0; 60_000])), "the share of a network");
        put += 1;
        assert_eq!(queue.take_lost(), HashSet::from([5]));
        assert!(queue.take_lost().is_empty());
        assert_eq!(std::iter::from_fn(|| queue.take()).count(), put);
        assert!(queue.put(&greedy, &[0; 60_000]));
    }
}
