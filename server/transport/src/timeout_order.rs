//! The order in which the timeouts of connections began, so that a sweep looks at those connections only of which one may have expired.
//!
//! The order is kept lazily: a connection that becomes active stays where it is. When its turn comes, the sweep puts it back with the
//! time since which its timeouts run now. So a query costs nothing here, and an idle connection is looked at once in a timeout.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

/// Connections that have ended stay in the order until they are half of it, and so many more.
const SLACK: usize = 64;

/// Connections by the time since which a timeout may run, the earliest first.
#[derive(Default)]
pub(crate) struct TimeoutOrder(RefCell<BinaryHeap<Reverse<(Instant, u64)>>>);

impl TimeoutOrder {
    /// Enters a new connection. `open` is the number of open connections, `is_open` tells which they are.
    pub(crate) fn enter(&self, token: u64, now: Instant, open: usize, is_open: impl Fn(u64) -> bool) {
        let mut order = self.0.borrow_mut();
        if order.len() > 2 * open + SLACK {
            order.retain(|&Reverse((_, token))| is_open(token));
        }
        order.push(Reverse((now, token)));
    }

    /// Takes out the first connection, if its time is not after `latest`.
    pub(crate) fn take(&self, latest: Instant) -> Option<u64> {
        let mut order = self.0.borrow_mut();
        if order.peek()?.0.0 > latest {
            return None;
        }
        order.pop().map(|Reverse((_, token))| token)
    }

    /// Puts back a connection of which a timeout may run since this time.
    pub(crate) fn put_back(&self, token: u64, since: Instant) {
        self.0.borrow_mut().push(Reverse((since, token)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn connections_are_taken_in_the_order_of_their_times_and_not_before() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let order = TimeoutOrder::default();
        for token in [3, 1, 2] {
            order.enter(token, at(token), 3, |_| true);
        }
        assert_eq!(order.take(start), None);
        assert_eq!((order.take(at(2)), order.take(at(2)), order.take(at(2))), (Some(1), Some(2), None));
        order.put_back(1, at(4));
        order.put_back(2, at(2));
        assert_eq!([(); 4].map(|()| order.take(at(4))), [Some(2), Some(3), Some(1), None]);
    }

    #[test]
    fn ended_connections_take_no_memory() {
        let order = TimeoutOrder::default();
        for token in 0..100_000 {
            order.enter(token, Instant::now(), 1, |open| open == token);
        }
        assert!(order.0.borrow().len() <= 2 + SLACK + 1);
    }
}
