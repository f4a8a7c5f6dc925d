//! The shares of the QUIC thread in the limits of all transports: places in the admission, and buffered octets. They are kept outside of
//! the thread, so that its supervisor can give them back after a panic, when nothing of the thread runs any more.

use crate::admission::ConnectionSlot;
use crate::budget::Buffered;
use crate::limits;
use crate::shared::Shared;
use engine::Client;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;

/// The shares of all connections of one run of the thread, by token.
pub(crate) struct Shares {
    shared: Arc<Shared>,
    connections: Mutex<HashMap<u64, Share>>,
}

struct Share {
    slot: Option<ConnectionSlot>,
    buffered: Arc<Buffered>,
}

/// The share of one connection, until it is dropped.
pub(crate) struct ConnectionShare {
    shares: Arc<Shares>,
    token: u64,
    /// Octets of queries and answers that are kept.
    pub(crate) buffered: Arc<Buffered>,
}

impl Shares {
    pub(crate) fn new(shared: Arc<Shared>) -> Shares {
        Shares { shared, connections: Mutex::default() }
    }

    /// The state that all transports share.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Begins the share of a connection, with its place in the admission if it has one already.
    pub(crate) fn begin(
        self: &Arc<Shares>,
        client: &Client,
        slot: Option<ConnectionSlot>,
    ) -> ConnectionShare {
        let (token, buffered) = (client.stream, Arc::new(self.shared.budget.begin(client)));
        self.connections().insert(token, Share { slot, buffered: buffered.clone() });
        ConnectionShare { shares: self.clone(), token, buffered }
    }

    /// Gives back the shares of a thread that does not run any more. Returns false if the thread has died with a lock that others need:
    /// then no transport can go on.
    #[must_use]
    pub(crate) fn release(&self) -> bool {
        let is_free = (0..limits::QUIC_LOCK_TRIES).any(|_| {
            let own = !matches!(self.connections.try_lock(), Err(TryLockError::WouldBlock));
            let is_free = own && !self.shared.admission.is_locked() && !self.shared.budget.is_locked();
            if !is_free {
                thread::sleep(limits::QUIC_LOCK_PAUSE);
            }
            is_free
        });
        if is_free {
            for (_, share) in self.connections().drain() {
                share.buffered.subtract(share.buffered.octets());
            }
        }
        is_free
    }

    fn connections(&self) -> MutexGuard<'_, HashMap<u64, Share>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionShare {
    /// True if the connection has a place in the admission.
    pub(crate) fn has_slot(&self) -> bool {
        self.shares.connections().get(&self.token).is_some_and(|share| share.slot.is_some())
    }

    /// Keeps the place of the connection.
    pub(crate) fn put_slot(&self, slot: ConnectionSlot) {
        if let Some(share) = self.shares.connections().get_mut(&self.token) {
            share.slot = Some(slot);
        }
    }

    /// Gives the place of the connection back, if it has one.
    pub(crate) fn take_slot(&self) -> Option<ConnectionSlot> {
        self.shares.connections().get_mut(&self.token)?.slot.take()
    }
}

impl Drop for ConnectionShare {
    fn drop(&mut self) {
        let share = self.shares.connections().remove(&self.token);
        drop(share); // Takes the lock of the admission, without that of the shares.
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Account;

    #[test]
    fn the_shares_of_a_dead_thread_are_given_back() {
        let shared = Arc::new(Shared::for_tests());
        let shares = Arc::new(Shares::new(shared.clone()));
        let client = Client::udp("192.0.2.1:4000".parse().unwrap());
        let slot = shared.admission.admit(&client).ok();
        let connection = shares.begin(&client, slot);
        let account = Account::of_response(connection.buffered.clone(), 100);
        assert!(connection.has_slot() && shared.budget.octets() == 100);
        // As a parked thread, which drops nothing.
        std::mem::forget((connection, account));
        assert!(shares.release());
        assert_eq!((shared.admission.connections(), shared.budget.octets()), (0, 0));
    }

    #[test]
    fn a_lock_that_a_dead_thread_holds_is_noticed() {
        let shares = Arc::new(Shares::new(Arc::new(Shared::for_tests())));
        let held = shares.connections.lock().unwrap();
        assert!(!shares.release());
        drop(held);
        assert!(shares.release());
    }
}
