//! Entry of a packet cache: the answer that all clients get to a query at present.

use crate::answer::builder::{Written, append_opt};
use crate::answer::params::{ResponseParams, ResponseParamsEdns, unlimited_params};
use crate::answer::stream_options;
use crate::base::time::Instant;
use crate::interface::Client;
use crate::limits::{PACKET_CACHE_ANSWER, PACKET_CACHE_RECORDS};
use crate::message::question::QueryFlags;
use crate::packet_cache::epoch::PacketCacheEpoch;
use crate::packet_cache::query::PacketCacheQuery;
use crate::reasons::AnswerReason;
use std::sync::Arc;
use wire::{EdeCode, Rcode, header};

/// Octets of the longest response: the answer, an OPT record (11) with an extended error (6) and an idle timeout (6), and padding (4) to
/// the next multiple of 468.
pub const PACKET_CACHE_RESPONSE: usize = (PACKET_CACHE_ANSWER + 11 + 6 + 6 + 4).next_multiple_of(468);

/// A copy of a cached answer, with the facts that a packet cache needs.
#[derive(Clone, Debug)]
pub struct PacketCacheEntry {
    /// The query that it answers.
    pub query: PacketCacheQuery,
    pub(super) message: [u8; PACKET_CACHE_ANSWER],
    pub(super) length: usize,
    pub(super) ttls: [u16; PACKET_CACHE_RECORDS],
    pub(super) records: usize,
    /// Time from which the TTLs in the message count down.
    pub stored: Instant,
    /// End of the answer.
    pub until: Instant,
    /// Clients, and the end of all entries.
    pub epoch: Arc<PacketCacheEpoch>,
    /// UDP payload size that the OPT record of an answer tells, if the query has one. The record has no options but an extended error.
    pub udp_size: u16,
    /// Kind of the answer, which its counters need.
    pub kind: PacketCacheKind,
}

/// RCODE of an answer, its extended error, and the reason why it has synthesized addresses or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketCacheKind {
    pub(super) rcode: Rcode,
    pub(super) reason: Option<AnswerReason>,
    pub(super) ede: Option<EdeCode>,
}

impl PacketCacheKind {
    /// The extended error that the OPT record of an answer has (RFC 8914), if there is one.
    pub fn extended_error(self) -> Option<EdeCode> {
        self.ede
    }
}

impl PacketCacheEntry {
    /// The entry for a query with an answer of no octets, that has ended.
    pub(super) fn empty(query: PacketCacheQuery) -> PacketCacheEntry {
        PacketCacheEntry {
            query,
            message: [0; PACKET_CACHE_ANSWER],
            length: 0,
            ttls: [0; PACKET_CACHE_RECORDS],
            records: 0,
            stored: Instant(0),
            until: Instant(0),
            epoch: Arc::default(),
            udp_size: 0,
            kind: PacketCacheKind { rcode: Rcode::NOERROR, reason: None, ede: None },
        }
    }

    /// The entry that answers a query with the query itself until this time, for tests of packet caches.
    pub fn echo(query: PacketCacheQuery, until: Instant) -> PacketCacheEntry {
        let mut entry = PacketCacheEntry { until, ..PacketCacheEntry::empty(query) };
        entry.length = entry.query.message().len();
        entry.message[..entry.length].copy_from_slice(entry.query.message());
        entry
    }

    /// Header, question and records, without an OPT record. The ID is 0; the TTLs are those at `stored`.
    pub fn message(&self) -> &[u8] {
        &self.message[..self.length]
    }

    /// Offsets of the TTLs in the message.
    pub fn ttls(&self) -> impl Iterator<Item = usize> + '_ {
        self.ttls[..self.records].iter().map(|&at| usize::from(at))
    }

    /// Octets of a response over UDP, with OPT record or without.
    pub fn response_octets(&self, has_opt: bool) -> usize {
        let ede = self.kind.ede.map_or(0, |_| wire::EDE_LEN);
        self.length + if has_opt { wire::OPT_LEN + ede } else { 0 }
    }

    /// True if the entry answers a client's query now.
    #[inline]
    pub fn answers(&self, query: &PacketCacheQuery, client: &Client, now: Instant) -> bool {
        self.query.message() == query.message() && self.holds(now) && self.epoch.serves(client.address)
    }

    /// True if neither the entry nor its epoch has ended.
    #[inline]
    pub fn holds(&self, now: Instant) -> bool {
        self.stored <= now && now < self.until && !self.epoch.has_ended()
    }

    /// Writes the response to a query. `message`: the query as the client sent it; `query`: the same query. The client of a stream
    /// gets the options that its query asks for. Returns the octets of the response.
    pub fn write_response(
        &self,
        now: Instant,
        client: &Client,
        message: &[u8],
        query: &PacketCacheQuery,
        frame: &mut [u8; PACKET_CACHE_RESPONSE],
    ) -> usize {
        let end = query.message().len();
        frame[..self.length].copy_from_slice(self.message());
        frame[..2].copy_from_slice(&message[..2]);
        frame[wire::HEADER..end].copy_from_slice(&message[wire::HEADER..end]);
        let elapsed = ((now - self.stored).0 / 1_000_000_000).min(u64::from(u32::MAX)) as u32;
        for at in self.ttls() {
            if let Some(ttl) = frame[at..].first_chunk_mut::<4>() {
                *ttl = u32::from_be_bytes(*ttl).saturating_sub(elapsed).to_be_bytes();
            }
        }
        let Some(options) = query.options() else { return self.length };
        let edns = ResponseParamsEdns::of_stream_options(options, client.transport);
        let params = ResponseParams {
            edns: Some(edns),
            limit: PACKET_CACHE_RESPONSE,
            own_size: self.udp_size,
            ..unlimited_params(QueryFlags::default(), &[])
        };
        let ede = self.kind.ede;
        let opt = append_opt(&mut frame[self.length..], &params, self.kind.rcode, ede);
        let additional = header::arcount(frame) + 1;
        header::set_arcount(frame, additional);
        let mut written =
            Written { len: self.length + opt, rcode: self.kind.rcode, truncated: false, ede, ede_text: 0 };
        // A query that asks for the identity is not for a packet cache.
        stream_options::append(frame, &params, client.idle_timeout, &[], &mut written);
        written.len
    }
}
