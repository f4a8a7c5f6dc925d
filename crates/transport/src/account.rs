//! The account of the octets that HTTP and QUIC keep for a request or a response: in the total of all connections, and in that of one
//! connection.

use crate::limits;
use crate::shared::Shared;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Octets kept for a request or a response. Dropping the account subtracts them.
pub(crate) struct Account {
    shared: Arc<Shared>,
    connection: Arc<AtomicUsize>,
    octets: usize,
}

impl Account {
    pub(crate) fn new(shared: Arc<Shared>, connection: Arc<AtomicUsize>) -> Account {
        Account { shared, connection, octets: 0 }
    }

    /// Counts more octets. Returns false if the total exceeds the limit and these are more than every request may have.
    pub(crate) fn add(&mut self, octets: usize) -> bool {
        self.octets += octets;
        self.connection.fetch_add(octets, Ordering::Relaxed);
        let before = self.shared.buffered.fetch_add(octets, Ordering::Relaxed);
        before + octets <= limits::BUFFER_OCTETS || self.octets <= limits::SMALL_OCTETS
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.connection.fetch_sub(self.octets, Ordering::Relaxed);
        self.shared.buffered.fetch_sub(self.octets, Ordering::Relaxed);
    }
}
