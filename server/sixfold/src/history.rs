//! History of steps that an operator asks about later, like reloads: the last ones with time, result and message, and how many
//! succeeded and failed since the start.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Events that are kept.
const EVENTS: usize = 20;

/// Octets of a message: the first ten errors of a file or so. 20 events take at most 40 KiB.
const MESSAGE_OCTETS: usize = 2048;

/// A step that succeeded or failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time of its end.
    pub at: SystemTime,
    /// True if it succeeded.
    pub succeeded: bool,
    /// The result in words. It may quote a file, so it must be escaped where it is shown.
    pub message: String,
}

/// The last events of one kind.
#[derive(Default)]
pub struct History(Mutex<Events>);

#[derive(Default)]
struct Events {
    /// The oldest first.
    last: VecDeque<Event>,
    succeeded: u64,
    failed: u64,
}

impl History {
    /// Adds an event that has ended just now.
    pub fn record(&self, succeeded: bool, message: &str) {
        let mut events = self.events();
        match succeeded {
            true => events.succeeded += 1,
            false => events.failed += 1,
        }
        if events.last.len() == EVENTS {
            events.last.pop_front();
        }
        events.last.push_back(Event { at: SystemTime::now(), succeeded, message: shortened(message) });
    }

    /// The last events, the newest first.
    pub fn last(&self) -> Vec<Event> {
        self.events().last.iter().rev().cloned().collect()
    }

    /// Number of events since the start: those that succeeded, and those that failed.
    pub fn totals(&self) -> (u64, u64) {
        let events = self.events();
        (events.succeeded, events.failed)
    }

    fn events(&self) -> MutexGuard<'_, Events> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The beginning of a message that is too long.
fn shortened(message: &str) -> String {
    let message = message.trim_end();
    match message.len() <= MESSAGE_OCTETS {
        true => message.to_owned(),
        false => format!("{}...", &message[..message.floor_char_boundary(MESSAGE_OCTETS)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_events_are_kept_and_all_are_counted() {
        let history = History::default();
        for number in 0..EVENTS + 5 {
            history.record(number % 5 != 0, &format!("event {number}\n"));
        }
        let last = history.last();
        assert_eq!(last.len(), EVENTS);
        assert_eq!((last[0].message.as_str(), last[0].succeeded), ("event 24", true));
        assert_eq!((last[19].message.as_str(), last[19].succeeded), ("event 5", false));
        assert_eq!(history.totals(), (20, 5));
    }

    #[test]
    fn a_long_message_is_cut_between_two_characters() {
        let history = History::default();
        history.record(false, &"\u{e9}".repeat(MESSAGE_OCTETS));
        assert_eq!(history.last()[0].message, "\u{e9}".repeat(MESSAGE_OCTETS / 2) + "...");
    }
}
