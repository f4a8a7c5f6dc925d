//! The bounded queue between the threads that log and the one that writes. A thread that logs holds its lock for an insertion, and
//! never waits for a target.

use super::counts::Counts;
use super::limits::{QUEUE_OCTETS, QUEUE_RECORDS};
use super::record::Record;
use crate::config::{Format, LogTarget};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An order to the writer.
#[derive(Debug, PartialEq, Eq)]
pub enum Item {
    /// Write this record to the target.
    Record(Record),
    /// Write the message of this record to standard error.
    Plain(Record),
    /// Use this format and this target from now on.
    Configure(Format, LogTarget),
}

/// Result of a wait for an item.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    /// The next item, and the number of records that were dropped since the last one was taken.
    Item(Item, u64),
    /// Nothing came in time.
    Nothing,
    /// The log ends, and the queue is empty or waits for a target that refuses.
    End,
}

/// The queue.
pub struct Queue {
    state: Mutex<State>,
    /// There is more to take.
    more: Condvar,
    /// The writer has ended.
    ended: Condvar,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct State {
    items: VecDeque<Item>,
    octets: usize,
    dropped: u64,
    is_closed: bool,
    has_ended: bool,
}

impl Queue {
    /// An empty queue.
    pub fn new(counts: Arc<Counts>) -> Queue {
        Queue { state: Mutex::default(), more: Condvar::new(), ended: Condvar::new(), counts }
    }

    /// Adds a record, or drops it if there is no room.
    pub fn push(&self, record: Record) {
        let octets = record.octets();
        self.push_bounded(Item::Record(record), octets);
    }

    /// Adds a message for standard error, or drops it if there is no room.
    pub fn push_plain(&self, record: Record) {
        let octets = record.octets();
        self.push_bounded(Item::Plain(record), octets);
    }

    fn push_bounded(&self, item: Item, octets: usize) {
        let mut state = self.state();
        if state.items.len() >= QUEUE_RECORDS || state.octets + octets > QUEUE_OCTETS {
            state.dropped += 1;
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        state.octets += octets;
        state.items.push_back(item);
        drop(state);
        self.more.notify_one();
    }

    /// Changes format and target. This has no bound, as reloads take turns and each replaces the change that is queued.
    pub fn configure(&self, format: Format, target: LogTarget) {
        let mut state = self.state();
        let later = Item::Configure(format, target);
        match state.items.back_mut() {
            Some(last @ Item::Configure(..)) => *last = later,
            _ => state.items.push_back(later),
        }
        drop(state);
        self.more.notify_one();
    }

    /// Takes the next item, and waits for it. With `changes_only`, only a change of the target is taken: a record waits for the
    /// target that refused the one before.
    pub fn take(&self, wait: Duration, changes_only: bool) -> Taken {
        let end = Instant::now() + wait;
        let mut state = self.state();
        loop {
            if let Some(item) = state.next(changes_only) {
                let dropped = std::mem::take(&mut state.dropped);
                return Taken::Item(item, dropped);
            }
            if state.is_closed {
                return Taken::End;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Taken::Nothing;
            }
            state = self.more.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends the log: the writer ends when it has written the rest.
    pub fn close(&self) {
        self.state().is_closed = true;
        self.more.notify_one();
    }

    /// True once the log ends.
    pub fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// The writer has ended. The lines left in the queue are lost.
    pub fn set_ended(&self) {
        let mut state = self.state();
        state.has_ended = true;
        let lost = state.items.drain(..).filter(|item| !matches!(item, Item::Configure(..))).count();
        self.counts.dropped.fetch_add(lost as u64, Ordering::Relaxed);
        drop(state);
        self.ended.notify_all();
    }

    /// Waits until the writer has ended.
    pub fn wait_for_end(&self, wait: Duration) {
        let state = self.state();
        let waited = self.ended.wait_timeout_while(state, wait, |state| !state.has_ended);
        drop(waited);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn next(&mut self, changes_only: bool) -> Option<Item> {
        let item = match changes_only {
            true => {
                let place = self.items.iter().position(|item| matches!(item, Item::Configure(..)))?;
                self.items.remove(place)?
            }
            false => self.items.pop_front()?,
        };
        self.octets -= match &item {
            Item::Record(record) | Item::Plain(record) => record.octets(),
            Item::Configure(..) => 0,
        };
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    fn queue() -> Queue {
        Queue::new(Arc::default())
    }

    fn record(text: &str) -> Record {
        Record { time: String::new(), ..Record::new(Level::INFO, "test", text.into()) }
    }

    #[test]
    fn items_come_in_order_and_a_change_overtakes_records_that_wait() {
        let queue = queue();
        queue.push(record("a"));
        queue.push_plain(record("b"));
        queue.configure(Format::Text, LogTarget::Syslog);
        queue.configure(Format::Json, LogTarget::Stderr);
        let change = Item::Configure(Format::Json, LogTarget::Stderr);
        assert_eq!(queue.take(Duration::ZERO, true), Taken::Item(change, 0));
        assert_eq!(queue.take(Duration::ZERO, true), Taken::Nothing);
        assert_eq!(queue.take(Duration::ZERO, false), Taken::Item(Item::Record(record("a")), 0));
        queue.close();
        assert_eq!(queue.take(Duration::ZERO, false), Taken::Item(Item::Plain(record("b")), 0));
        assert_eq!(queue.take(Duration::ZERO, false), Taken::End);
    }

    #[test]
    fn records_without_room_are_dropped_and_counted() {
        let queue = queue();
        for _ in 0..QUEUE_RECORDS + 3 {
            queue.push(record("a"));
        }
        assert_eq!(queue.counts.dropped.load(Ordering::Relaxed), 3);
        assert_eq!(queue.take(Duration::ZERO, false), Taken::Item(Item::Record(record("a")), 3));
        assert_eq!(queue.take(Duration::ZERO, false), Taken::Item(Item::Record(record("a")), 0));
        // By octets: the room that they leave is used again.
        let queue = self::queue();
        let half = "x".repeat(QUEUE_OCTETS / 2 - "test".len());
        for _ in 0..3 {
            queue.push(record(&half));
        }
        assert_eq!(queue.counts.dropped.load(Ordering::Relaxed), 1);
        assert!(matches!(queue.take(Duration::ZERO, false), Taken::Item(_, 1)));
        queue.push(record(&half));
        assert_eq!(queue.counts.dropped.load(Ordering::Relaxed), 1);
    }
}
