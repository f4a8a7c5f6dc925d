//! The state that stream threads, workers and the server share.

use crate::admission::Admission;
use crate::counters::Counters;
use crate::limits;
use crossbeam_queue::ArrayQueue;
use datapath::Letter;
use datapath::proxy_protocol::Trusted;
use engine::Client;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Instant;
use tokio::sync::Notify;

/// What stream threads, workers and the server share.
pub(crate) struct Shared {
    /// One per stream thread.
    pub(crate) rings: Box<[Ring]>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) counters: Counters,
    /// The proxies whose PROXY header is believed.
    pub(crate) proxies: Trusted,
    /// Octets buffered for all connections.
    pub(crate) buffered: AtomicUsize,
    /// Set when draining begins.
    pub(crate) deadline: OnceLock<Instant>,
    /// Connections cut off at the end of the grace.
    pub(crate) cut: AtomicUsize,
    /// Threads that run.
    pub(crate) running: Mutex<usize>,
    pub(crate) ended: Condvar,
}

impl Shared {
    /// Until when to drain, once draining has begun.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline.get().copied()
    }
}

/// Answers on the way from the workers to a stream thread.
pub(crate) struct Ring {
    letters: ArrayQueue<Letter>,
    octets: AtomicUsize,
    /// Wakes the stream thread: for answers, for draining, and while draining for each connection that ends.
    pub(crate) bell: Notify,
    /// The thread has ended.
    pub(crate) closed: AtomicBool,
}

impl Ring {
    pub(crate) fn new() -> Ring {
        Ring {
            letters: ArrayQueue::new(limits::RING_LETTERS),
            octets: AtomicUsize::new(0),
            bell: Notify::new(),
            closed: AtomicBool::new(false),
        }
    }

    pub(crate) fn put(&self, to: &Client, message: &[u8]) -> bool {
        let fits =
            self.octets.fetch_add(message.len(), Ordering::Relaxed) + message.len() <= limits::RING_OCTETS;
        if !fits || self.letters.is_full() || self.letters.push(Letter::new(to, message)).is_err() {
            self.octets.fetch_sub(message.len(), Ordering::Relaxed);
            return false;
        }
        self.bell.notify_one();
        true
    }

    pub(crate) fn take(&self) -> Option<Letter> {
        let letter = self.letters.pop()?;
        self.octets.fetch_sub(letter.message().len(), Ordering::Relaxed);
        Some(letter)
    }
}
