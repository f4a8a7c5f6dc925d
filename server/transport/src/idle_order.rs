//! The order in which connections were last active. When all places are taken, the one that has been idle for the longest time gives
//! way to a new client (RFC 7766 section 6.2.3 lets a server close idle connections when resources are low).
//!
//! The order is kept lazily: a connection that becomes active stays where it is, and moves to the end when its turn comes. So a query
//! costs nothing here.

use crate::limits::DISPLACED_IDLE;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::Instant;

/// Connections that a search looks at: a bound on its cost when most of the oldest ones have become active again.
const LOOKS: usize = 16;

/// Connections that have ended stay in the order until they are half of it, and so many more.
const SLACK: usize = 64;

/// A connection as the order sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It has ended.
    Gone,
    /// Something is under way.
    Busy,
    /// It has been idle since this time.
    IdleSince(Instant),
}

/// Connections by the time at which they were last active, the longest idle one first.
#[derive(Default)]
pub(crate) struct IdleOrder(RefCell<VecDeque<(u64, Instant)>>);

impl IdleOrder {
    /// Enters a new connection. `open` is the number of open connections, `is_open` tells which they are.
    pub(crate) fn enter(&self, token: u64, now: Instant, open: usize, is_open: impl Fn(u64) -> bool) {
        let mut order = self.0.borrow_mut();
        if order.len() > 2 * open + SLACK {
            order.retain(|&(token, _)| is_open(token));
        }
        order.push_back((token, now));
    }

    /// Takes out the connection that has been idle for the longest time, and for [`DISPLACED_IDLE`] at least. None if none of the first
    /// few has been.
    pub(crate) fn take_oldest(&self, now: Instant, standing: impl Fn(u64) -> Standing) -> Option<u64> {
        let mut order = self.0.borrow_mut();
        for _ in 0..LOOKS {
            let (token, entered) = order.pop_front()?;
            match standing(token) {
                Standing::Gone => {}
                Standing::IdleSince(since) if since <= entered => {
                    if now.saturating_duration_since(since) >= DISPLACED_IDLE {
                        return Some(token);
                    }
                    order.push_front((token, entered));
                    return None;
                }
                Standing::IdleSince(since) => order.push_back((token, since)),
                Standing::Busy => order.push_back((token, now)),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::time::Duration;

    #[test]
    fn the_connection_that_was_idle_for_the_longest_time_gives_way() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let order = IdleOrder::default();
        let mut standing: HashMap<u64, Standing> = HashMap::new();
        for token in 0..5 {
            standing.insert(token, Standing::IdleSince(at(token)));
            order.enter(token, at(token), 5, |_| true);
        }
        standing.insert(0, Standing::IdleSince(at(9)));
        standing.insert(1, Standing::Busy);
        standing.remove(&2);
        let take = |standing: &HashMap<u64, Standing>| {
            order.take_oldest(at(10), |token| standing.get(&token).copied().unwrap_or(Standing::Gone))
        };
        assert_eq!(take(&standing), Some(3));
        assert_eq!(take(&standing), Some(4));
        assert_eq!(take(&standing), Some(0));
        // Only the busy one is left.
        assert_eq!(take(&standing), None);
        standing.insert(1, Standing::IdleSince(at(10)));
        assert_eq!(take(&standing), None);
        standing.insert(1, Standing::IdleSince(at(10) - DISPLACED_IDLE));
        assert_eq!(take(&standing), Some(1));
    }

    #[test]
    fn ended_connections_take_no_memory() {
        let order = IdleOrder::default();
        for token in 0..100_000 {
            order.enter(token, Instant::now(), 1, |open| open == token);
        }
        assert!(order.0.borrow().len() <= 2 + SLACK + 1);
    }
}
