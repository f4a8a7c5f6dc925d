//! Epoch of the entries that an engine has given: the clients that they are for, and their common end.

use crate::base::network::Networks;
use core::net::Ipv6Addr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Time in which neither settings nor commands change the answers of an engine. The engine ends it, and others may look from any thread: it is
/// the only word of an engine that they read.
#[derive(Debug, Default)]
pub struct PacketCacheEpoch {
    clients: Networks,
    has_ended: AtomicBool,
}

impl PacketCacheEpoch {
    /// Begins an epoch, in which these clients are served.
    pub fn new(clients: Networks) -> PacketCacheEpoch {
        PacketCacheEpoch { clients, has_ended: AtomicBool::new(false) }
    }

    /// Networks of the clients that are served.
    pub fn clients(&self) -> &Networks {
        &self.clients
    }

    /// True if a client is served now. IPv4 as IPv4-mapped.
    #[inline]
    pub fn serves(&self, client: Ipv6Addr) -> bool {
        !self.has_ended() && self.clients.contains(client)
    }

    /// True if no entry of the epoch holds any more.
    #[inline]
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// Ends all entries.
    pub fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
    }
}
