//! The account of the octets that HTTP and QUIC keep for a request or a response, among those of its connection.

use crate::budget::Buffered;
use crate::limits;
use std::sync::Arc;

/// Octets kept for a request or a response. Dropping the account subtracts them.
pub(crate) struct Account {
    buffered: Arc<Buffered>,
    octets: usize,
    /// Of a response: the round of the clock in which the client has not read it.
    unread: Option<u32>,
}

impl Account {
    /// The account of a request, whose octets come little by little.
    pub(crate) fn new(buffered: Arc<Buffered>) -> Account {
        Account { buffered, octets: 0, unread: None }
    }

    /// Counts more octets of a request. Returns false if its connection holds too many, or may not have them as the budget is used up.
    pub(crate) fn add(&mut self, octets: usize) -> bool {
        self.octets += octets;
        self.buffered.add(octets) && self.buffered.octets() <= limits::WRITE_QUEUE_OCTETS
    }

    /// The account of a response of so many octets, which waits until the client has read it. None if its connection may not have them as
    /// the budget is used up.
    pub(crate) fn of_response(buffered: Arc<Buffered>, octets: usize) -> Option<Account> {
        let is_taken = buffered.add(octets);
        let unread = is_taken.then(|| buffered.unread.enter());
        let account = Account { buffered, octets, unread };
        is_taken.then_some(account)
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.buffered.subtract(self.octets);
        if let Some(round) = self.unread {
            self.buffered.unread.leave(round);
        }
    }
}
