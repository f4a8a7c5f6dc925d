//! The part of a stream thread that its connections use: the way to the workers, counters, the account of buffered
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
    /// Where all connections read to. Borrowed within a turn only.
    pub(crate) scratch: RefCell<Box<[u8]>>,
}

impl<Q: QuerySink> ThreadContext<Q> {
    pub(crate) fn new(shared: Arc<Shared>, queries: Arc<Q>) -> ThreadContext<Q> {
        ThreadContext { shared, queries, scratch: RefCell::new(vec![0; limits::READ_OCTETS].into()) }
    }

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

    /// Changes the common account of buffered octets. False: it is overdrawn.
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
