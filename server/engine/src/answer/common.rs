//! Responses of a packet cache: a common answer ([`PacketCacheEntry`]) as the engine would send it to the client of a plain query.

use crate::answer::builder::{Written, append_opt};
use crate::answer::params::{ResponseParams, ResponseParamsEdns, unlimited_params};
use crate::answer::stream_options;
use crate::base::time::Instant;
use crate::interface::Client;
use crate::message::plain_query::PlainQuery;
use crate::message::question::QueryFlags;
use crate::packet_cache_entry::{PACKET_CACHE_ANSWER, PacketCacheEntry};
use wire::header;

/// Octets of the longest response: the answer, an OPT record (11) with an extended error (6) and an idle timeout (6), and padding (4) to
/// the next multiple of 468.
pub const COMMON_RESPONSE: usize = (PACKET_CACHE_ANSWER + 11 + 6 + 6 + 4).next_multiple_of(468);

impl PacketCacheEntry {
    /// Writes the response to a plain query. `message`: the query as the client sent it; `plain`: the same query. The client of a stream
    /// gets the options that its query asks for. Returns the octets of the response.
    pub fn write_response(
        &self,
        now: Instant,
        client: &Client,
        message: &[u8],
        plain: &PlainQuery,
        frame: &mut [u8; COMMON_RESPONSE],
    ) -> usize {
        let end = plain.message().len();
        frame[..self.length].copy_from_slice(self.message());
        frame[..2].copy_from_slice(&message[..2]);
        frame[wire::HEADER..end].copy_from_slice(&message[wire::HEADER..end]);
        let elapsed = ((now - self.stored).0 / 1_000_000_000).min(u64::from(u32::MAX)) as u32;
        for at in self.ttls() {
            if let Some(ttl) = frame[at..].first_chunk_mut::<4>() {
                *ttl = u32::from_be_bytes(*ttl).saturating_sub(elapsed).to_be_bytes();
            }
        }
        let Some(options) = plain.options() else { return self.length };
        let edns = ResponseParamsEdns::of_plain_query(options, client.transport);
        let params = ResponseParams {
            edns: Some(edns),
            limit: COMMON_RESPONSE,
            own_size: self.udp_size,
            ..unlimited_params(QueryFlags::default(), &[])
        };
        let ede = self.kind.extended_error();
        let opt = append_opt(&mut frame[self.length..], &params, self.kind.rcode, ede);
        let additional = header::arcount(frame) + 1;
        header::set_arcount(frame, additional);
        let mut written = Written { len: self.length + opt, rcode: self.kind.rcode, truncated: false, ede };
        // A query that asks for the identity is not plain.
        stream_options::append(frame, &params, client.idle_timeout, &[], &mut written);
        written.len
    }
}
