//! Answer that all clients get for a question at present, for a packet cache in front of the engine.
//!
//! A packet cache knows questions and answers as octets, and neither rules nor clients. The engine gives it only answers that are
//! the same for every client, and says how long: a prefetch, and everything that follows the end of a lifetime, stay with the
//! engine ([`Machine::packet_cache_entry`](crate::interface::Machine::packet_cache_entry)).

use crate::base::time::Instant;
use crate::reasons::AnswerReason;
use wire::{EdeCode, Rcode};

/// Octets of the longest common answer, without its OPT record.
pub const PACKET_CACHE_ANSWER: usize = 512;
/// Most records of a common answer.
pub const PACKET_CACHE_RECORDS: usize = 12;

/// A copy of a cached answer, with the facts that a packet cache needs.
#[derive(Clone, Debug)]
pub struct PacketCacheEntry {
    pub(crate) message: [u8; PACKET_CACHE_ANSWER],
    pub(crate) length: usize,
    pub(crate) ttls: [u16; PACKET_CACHE_RECORDS],
    pub(crate) records: usize,
    /// Time from which the TTLs in the message count down.
    pub stored: Instant,
    /// End of the answer.
    pub until: Instant,
    /// UDP payload size that the OPT record of an answer tells, if the query has one. The record has no options but an extended error.
    pub udp_size: u16,
    /// Kind of the answer, which its counters need.
    pub kind: PacketCacheEntryKind,
}

/// RCODE of an answer, its extended error, and the reason why it has synthesized addresses or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketCacheEntryKind {
    pub(crate) rcode: Rcode,
    pub(crate) reason: Option<AnswerReason>,
    pub(crate) ede: Option<EdeCode>,
}

impl PacketCacheEntryKind {
    /// The extended error that the OPT record of an answer has (RFC 8914), if there is one.
    pub fn extended_error(self) -> Option<EdeCode> {
        self.ede
    }
}

/// Numbers of answers that a packet cache has given over one transport, by the family of the client's address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCacheHits {
    /// To IPv4 clients.
    pub ipv4: u64,
    /// To IPv6 clients.
    pub ipv6: u64,
    /// Those of both that had an OPT record.
    pub with_opt: u64,
}

impl PacketCacheEntry {
    /// An answer of no octets, as a place for [`Machine::packet_cache_entry`](crate::interface::Machine::packet_cache_entry).
    pub fn empty() -> PacketCacheEntry {
        PacketCacheEntry {
            message: [0; PACKET_CACHE_ANSWER],
            length: 0,
            ttls: [0; PACKET_CACHE_RECORDS],
            records: 0,
            stored: Instant(0),
            until: Instant(0),
            udp_size: 0,
            kind: PacketCacheEntryKind { rcode: Rcode::NOERROR, reason: None, ede: None },
        }
    }

    /// The answer with this message, without records, for tests of packet caches.
    pub fn of_message(message: &[u8]) -> PacketCacheEntry {
        let mut answer = PacketCacheEntry::empty();
        answer.length = message.len().min(PACKET_CACHE_ANSWER);
        answer.message[..answer.length].copy_from_slice(&message[..answer.length]);
        answer
    }

    /// Header, question and records, without an OPT record. The ID is 0; the TTLs are those at `stored`.
    pub fn message(&self) -> &[u8] {
        &self.message[..self.length]
    }

    /// Offsets of the TTLs in the message.
    pub fn ttls(&self) -> impl Iterator<Item = usize> + '_ {
        self.ttls[..self.records].iter().map(|&at| usize::from(at))
    }
}

impl Default for PacketCacheEntry {
    fn default() -> PacketCacheEntry {
        PacketCacheEntry::empty()
    }
}
