//! The context that a stream thread gives to its connections: the way to the workers, the counters, the total of buffered
//! octets, and the read buffer.

use crate::QuerySink;
use crate::counters::Counter;
use crate::limits;
use crate::shared::Shared;
use engine::Client;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The context of all connections of one stream thread.
pub(crate) struct ThreadContext<Q> {
    pub(crate) shared: Arc<Shared>,
    queries: Arc<Q>,
    /// The buffer that all connections read into. Borrowed only within [`Connection::poll`](crate::connection::Connection::poll).
    pub(crate) scratch: RefCell<Box<[u8]>>,
}

impl<Q: QuerySink> ThreadContext<Q> {
    pub(crate) fn new(shared: Arc<Shared>, queries: Arc<Q>) -> ThreadContext<Q> {
        ThreadContext { shared, queries, scratch: RefCell::new(vec![0; limits::READ_OCTETS].into()) }
    }

    /// Hands a query to the server, and counts it. Returns false if the server has no room.
    pub(crate) fn post(&self, client: &Client, message: &[u8]) -> bool {
        let posted = self.queries.post(client, message);
        if posted {
            self.count(Counter::QuestionsPosted);
        }
        posted
    }

    pub(crate) fn count(&self, counter: Counter) {
        self.shared.counters.count(counter);
    }

    /// Updates the total of buffered octets. Returns false if it exceeds the limit.
    pub(crate) fn adjust_buffered(&self, before: usize, after: usize) -> bool {
        let account = &self.shared.buffered;
        match after.checked_sub(before) {
            Some(0) => true,
            Some(more) => account.fetch_add(more, Ordering::Relaxed) + more <= limits::BUFFER_OCTETS,
            None => {
                account.fetch_sub(before - after, Ordering::Relaxed);
                true
            }
        }
    }
}
