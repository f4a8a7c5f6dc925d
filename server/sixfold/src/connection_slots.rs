//! Slots for connections of operators and probes: a bounded number at a time, of which idle clients cannot deprive the others.
//!
//! A connection waits for a request of its client, or works on one. If all slots are taken, the connection that has waited
//! longest gives way to a new one. A connection that works is never cut off: the request costs a bounded time, and the new
//! connection waits for that.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use tokio::sync::Notify;

/// The slots of one listener.
pub struct ConnectionSlots {
    most: usize,
    state: RefCell<State>,
    /// Wakes the listener when a slot becomes free, or a connection begins to wait.
    changed: Notify,
}

#[derive(Default)]
struct State {
    taken: usize,
    /// Connections that wait for a request, the one that has waited longest first.
    waiting: BTreeMap<u64, Rc<Notify>>,
    last_turn: u64,
}

/// Activity of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Activity {
    /// It waits for a request, since this turn.
    Waits(u64),
    /// It works on a request.
    Works,
    /// It had to give way: its slot belongs to another connection.
    Evicted,
}

/// A slot. It is free again when it is dropped.
pub struct ConnectionSlot {
    slots: Rc<ConnectionSlots>,
    activity: Cell<Activity>,
    /// Wakes the connection when it must give way.
    evicted: Rc<Notify>,
}

impl ConnectionSlots {
    /// `most` slots.
    pub fn new(most: usize) -> Rc<ConnectionSlots> {
        Rc::new(ConnectionSlots { most, state: RefCell::default(), changed: Notify::new() })
    }

    /// Takes a slot for a new connection, which waits for its first request.
    pub async fn take(self: &Rc<Self>) -> ConnectionSlot {
        loop {
            let changed = self.changed.notified();
            if let Some(slot) = self.try_take() {
                return slot;
            }
            changed.await;
        }
    }

    fn try_take(self: &Rc<Self>) -> Option<ConnectionSlot> {
        {
            let mut state = self.state.borrow_mut();
            if state.taken == self.most {
                let (_, evicted) = state.waiting.pop_first()?;
                evicted.notify_one();
            } else {
                state.taken += 1;
            }
        }
        let activity = Cell::new(Activity::Works);
        let slot = ConnectionSlot { slots: Rc::clone(self), activity, evicted: Rc::new(Notify::new()) };
        slot.wait_for_request();
        Some(slot)
    }
}

impl ConnectionSlot {
    /// The connection waits for a request, and may have to give way.
    pub fn wait_for_request(&self) {
        if self.activity.get() != Activity::Works {
            return;
        }
        let mut state = self.slots.state.borrow_mut();
        state.last_turn += 1;
        let turn = state.last_turn;
        state.waiting.insert(turn, Rc::clone(&self.evicted));
        self.activity.set(Activity::Waits(turn));
        self.slots.changed.notify_one();
    }

    /// The connection has a request to work on. Returns false if it had to give way before.
    pub fn begin_request(&self) -> bool {
        self.activity.set(self.stop_waiting());
        self.activity.get() == Activity::Works
    }

    /// The activity once the connection no longer waits.
    fn stop_waiting(&self) -> Activity {
        match self.activity.get() {
            Activity::Waits(turn) if self.slots.state.borrow_mut().waiting.remove(&turn).is_none() => {
                Activity::Evicted
            }
            Activity::Waits(_) => Activity::Works,
            other => other,
        }
    }

    /// Waits until the connection must give way.
    pub async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        if self.stop_waiting() == Activity::Works {
            self.slots.state.borrow_mut().taken -= 1;
            self.slots.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    /// Polls once: what is ready needs no time.
    fn poll<T>(future: impl Future<Output = T>) -> Option<T> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    #[test]
    fn the_connection_that_has_waited_longest_gives_way_to_a_new_one() {
        let slots = ConnectionSlots::new(3);
        let silent: Vec<ConnectionSlot> = (0..3).map(|_| poll(slots.take()).unwrap()).collect();
        // The first has sent its request meanwhile; so the second is the oldest that waits.
        assert!(silent[0].begin_request());
        let fourth = poll(slots.take()).unwrap();
        let evicted: Vec<bool> = silent.iter().map(|slot| poll(slot.evicted()).is_some()).collect();
        assert_eq!(evicted, [false, true, false]);
        assert!(!silent[1].begin_request(), "its place is gone");
        // After its answer a connection waits again, behind those that have waited all the time.
        silent[0].wait_for_request();
        let fifth = poll(slots.take()).unwrap();
        assert!(poll(silent[2].evicted()).is_some());
        drop((silent, fourth, fifth));
        assert_eq!(slots.state.borrow().taken, 0);
        assert!(slots.state.borrow().waiting.is_empty());
    }

    #[test]
    fn a_connection_with_a_request_keeps_its_place_and_a_new_one_waits() {
        let slots = ConnectionSlots::new(2);
        let busy: Vec<ConnectionSlot> = (0..2).map(|_| poll(slots.take()).unwrap()).collect();
        assert!(busy.iter().all(ConnectionSlot::begin_request));
        let mut next = pin!(slots.take());
        let mut context = Context::from_waker(Waker::noop());
        assert!(next.as_mut().poll(&mut context).is_pending());
        busy[1].wait_for_request();
        assert!(next.as_mut().poll(&mut context).is_ready());
        assert!(poll(busy[0].evicted()).is_none() && poll(busy[1].evicted()).is_some());
    }

    #[test]
    fn a_thousand_silent_connections_never_take_all_places() {
        let slots = ConnectionSlots::new(32);
        let mut silent = Vec::new();
        for _ in 0..1_000 {
            silent.push(poll(slots.take()).unwrap());
            assert!(slots.state.borrow().taken <= 32);
        }
        let open = silent.iter().filter(|slot| poll(slot.evicted()).is_none()).count();
        assert_eq!(open, 32);
    }
}
