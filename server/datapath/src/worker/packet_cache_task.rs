//! Work of a worker for the packet cache of another thread: it counts the answers that the cache has given, and copies answers for it.
//!
//! Each worker tells all threads the version for which such answers hold ([`Shared::packet_cache_epoch`](crate::Shared::packet_cache_epoch)), so a
//! reload or a flush ends them at once.

use engine::message::plain_query::PlainQuery;
use engine::settings::Networks;
use engine::{ClientTransport, Instant, Machine, PacketCacheEntry, PacketCacheEntryKind, PacketCacheHits};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The version under which no common answer holds: its worker has not begun, is at a task, or has ended.
pub const NO_PACKET_CACHE: u64 = u64::MAX;

/// Answers that a packet cache has given to a query over one transport.
#[derive(Debug)]
pub struct CountedHits {
    /// The query.
    pub query: PlainQuery,
    /// Transport of the clients.
    pub transport: ClientTransport,
    /// Counters of the answer.
    pub kind: PacketCacheEntryKind,
    /// The numbers.
    pub hits: PacketCacheHits,
}

/// A task for a worker's machine.
#[derive(Debug)]
pub struct PacketCacheTask {
    /// The worker's number, for the reply.
    pub worker: usize,
    /// Answers to be counted.
    pub hits: Vec<CountedHits>,
    /// Queries whose answers the cache wants, at most [`PACKET_CACHE_WANTED`](crate::limits::PACKET_CACHE_WANTED). If there are none, there is no
    /// reply.
    pub wanted: Vec<PlainQuery>,
    /// The version whose clients the cache knows.
    pub known_version: u64,
    /// The way of the reply.
    pub replies: Arc<PacketCacheReplies>,
}

/// The answers that a cache wanted.
#[derive(Debug)]
pub struct PacketCacheReply {
    /// The worker's number.
    pub worker: usize,
    /// The version for which the answers hold.
    pub version: u64,
    /// The clients to which they may be given, if the cache does not know them.
    pub clients: Option<Networks>,
    /// Queries and their answers. Queries without such an answer are left out.
    pub answers: Vec<(PlainQuery, Box<PacketCacheEntry>)>,
}

/// The replies on their way to the thread of the cache, which looks for them when it has no answer.
#[derive(Debug, Default)]
pub struct PacketCacheReplies {
    has_some: AtomicBool,
    replies: Mutex<Vec<PacketCacheReply>>,
}

impl PacketCacheTask {
    /// Counts, copies and replies.
    pub fn run(self, machine: &mut impl Machine, now: Instant) {
        for CountedHits { query, transport, kind, hits } in self.hits {
            machine.count_packet_cache_hits(now, transport, query.message(), kind, hits);
        }
        if self.wanted.is_empty() {
            return;
        }
        let mut room = PacketCacheEntry::empty();
        let mut answers = Vec::new();
        for query in self.wanted {
            if machine.packet_cache_entry(now, query.message(), &mut room) {
                answers.push((query, Box::new(room.clone())));
            }
        }
        let version = machine.packet_cache_epoch();
        let is_news = version != self.known_version;
        let clients = is_news.then(|| Networks(machine.packet_cache_clients().to_vec()));
        self.replies.put(PacketCacheReply { worker: self.worker, version, clients, answers });
    }
}

impl PacketCacheReplies {
    fn put(&self, reply: PacketCacheReply) {
        self.replies.lock().unwrap_or_else(PoisonError::into_inner).push(reply);
        self.has_some.store(true, Ordering::Release);
    }

    /// Takes the replies that have come.
    #[inline]
    pub fn take(&self) -> Vec<PacketCacheReply> {
        if !self.has_some.load(Ordering::Relaxed) || !self.has_some.swap(false, Ordering::Acquire) {
            return Vec::new();
        }
        std::mem::take(&mut *self.replies.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
