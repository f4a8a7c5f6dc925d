//! The context that a stream thread gives to its connections: the way to the workers, the counters, the budget of buffered
//! octets, and the read buffer.

use crate::QuerySink;
use crate::counters::Counter;
use crate::limits;
use crate::packet_cache::PacketCache;
use crate::shared::{AnswerQueue, Shared};
use engine::{Client, IdleTimeout};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::Notify;

/// The context of all connections of one stream thread.
pub(crate) struct ThreadContext<Q: QuerySink> {
    /// The thread's number: the top octet of its tokens.
    index: usize,
    /// Number of connections and requests so far: the rest of the token. 56 bits last two thousand years at a million per second.
    opened: Cell<u64>,
    /// The idle timeout that clients are told, as of the last sweep.
    pub(crate) idle_timeout: Cell<IdleTimeout>,
    pub(crate) shared: Arc<Shared>,
    queries: Arc<Q>,
    /// Number of queries that the workers were not woken for.
    unannounced: Cell<usize>,
    /// Wakes the task that wakes the workers.
    posted: Notify,
    /// The answers that the thread gives itself.
    packet_cache: RefCell<PacketCache>,
    /// The buffer that all connections read into. Borrowed only within [`Connection::poll`](crate::connection::Connection::poll).
    pub(crate) scratch: RefCell<Box<[u8]>>,
}

impl<Q: QuerySink> ThreadContext<Q> {
    pub(crate) fn new(shared: Arc<Shared>, queries: Arc<Q>, index: usize) -> ThreadContext<Q> {
        ThreadContext {
            index,
            opened: Cell::new(0),
            idle_timeout: Cell::new(shared.admission.timeouts().told),
            shared,
            queries,
            unannounced: Cell::new(0),
            posted: Notify::new(),
            packet_cache: RefCell::new(PacketCache::new()),
            scratch: RefCell::new(vec![0; limits::READ_OCTETS].into()),
        }
    }

    /// The next token, of a connection or of a request that is a connection of its own to the engine.
    pub(crate) fn next_token(&self) -> u64 {
        self.opened.update(|opened| opened + 1);
        (self.index as u64) << 56 | self.opened.get()
    }

    /// The answers to this thread's clients.
    pub(crate) fn answer_queue(&self) -> &AnswerQueue {
        &self.shared.answer_queues[self.index]
    }

    /// Wakes the end of the thread, which waits for its last connection.
    pub(crate) fn wake_end(&self) {
        if self.shared.is_ending() {
            self.answer_queue().wakeup.notify_one();
        }
    }

    /// Answers a query out of the packet cache: calls `take` with the response, and returns what it returned. None: the query is one for
    /// the server.
    pub(crate) fn answer<T>(
        &self,
        client: &Client,
        message: &[u8],
        take: impl FnOnce(&[u8]) -> T,
    ) -> Option<T> {
        let mut packet_cache = self.packet_cache.borrow_mut();
        let response = packet_cache.answer(&*self.queries, client, message)?;
        self.count(Counter::QuestionsAnswered);
        Some(take(response))
    }

    /// Does the regular work of the packet cache, and reports its answers when somebody reads the counters.
    pub(crate) async fn keep_packet_cache(self: Rc<Self>) {
        let mut ticks = tokio::time::interval(limits::PACKET_CACHE_COUNT);
        loop {
            tokio::select! {
                _ = ticks.tick() => self.packet_cache.borrow_mut().maintain(&*self.queries),
                () = self.answer_queue().report.notified() => {
                    self.packet_cache.borrow_mut().report(&*self.queries);
                    self.answer_queue().end_report();
                }
            }
        }
    }

    /// Hands a query to the server, and counts it. Returns false if the server has no room.
    pub(crate) fn post(&self, client: &Client, message: &[u8]) -> bool {
        if !self.queries.post(client, message) {
            // The queries that fill the mailbox may be those that the worker does not know of yet.
            self.wake_workers();
            return false;
        }
        self.count(Counter::QuestionsPosted);
        self.unannounced.update(|queries| queries + 1);
        match self.unannounced.get() {
            1 => self.posted.notify_one(),
            limits::QUERIES_PER_WAKE.. => self.wake_workers(),
            _ => {}
        }
        true
    }

    fn wake_workers(&self) {
        self.unannounced.set(0);
        self.queries.wake();
    }

    /// Wakes the workers after queries were posted. The first query schedules this task behind the connections that are ready then,
    /// and those post their queries before it runs. So it wakes a worker once for all of them.
    pub(crate) async fn announce_queries(self: Rc<Self>) {
        loop {
            self.posted.notified().await;
            if self.unannounced.get() > 0 {
                self.wake_workers();
            }
        }
    }

    /// Counts what became of an answer on its way to a connection. The news that a query gets none is not counted.
    pub(crate) fn count_delivery(&self, is_answer: bool, is_taken: bool) {
        match is_taken {
            _ if !is_answer => {}
            true => self.count(Counter::AnswersQueued),
            false => self.count(Counter::AnswersUndeliverable),
        }
    }

    pub(crate) fn count(&self, counter: Counter) {
        self.shared.counters.count(counter);
    }
}

impl<Q: QuerySink> Drop for ThreadContext<Q> {
    /// Has the workers count the last answers out of the packet cache. They run for longer than the thread.
    fn drop(&mut self) {
        self.packet_cache.get_mut().report(&*self.queries);
    }
}
