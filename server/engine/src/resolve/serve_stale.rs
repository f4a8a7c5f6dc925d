//! Serve-stale (RFC 8767): pending queries get expired data when an upstream fails, or when the client response timer expires.
//!
//! A query that comes later, while the upstreams are known to fail, finds expired data at once (`from_cache.rs`).

use crate::base::slab::{Index, NONE};
use crate::base::time::{Instant, Span};
use crate::cache::entry::{self, FAILURE};
use crate::cache::ttl::{Age, stale_ede, write_cached_message};
use crate::engine::Engine;
use crate::interface::Outbox;
use crate::reasons::CacheHit;
use crate::upstream::forward_zones::Unanswered;
use wire::Message;

/// Failure recheck timer after a failure: expired data are served without another attempt until then (RFC 8767 section 5).
const FAILURE_RECHECK: Span = Span::from_secs(30);
/// Failure recheck timer after a timeout. It is short: by then the server is known to be dead, or it is asked again.
const SILENCE_RECHECK: Span = Span::from_secs(1);

impl Engine {
    /// The client response timer of a question in flight has expired (RFC 8767 section 5): pending queries that have expired data get
    /// them. The question stays in flight for the next query.
    pub(crate) fn on_client_response_timer(&mut self, outbound: Index, now: Instant, out: &mut impl Outbox) {
        let mut pending = self.upstream.outbound_queries[outbound].pending_queries;
        while pending != NONE {
            let next = self.clients.pending_queries[pending].next;
            if self.clients.pending_queries[pending].has_stale {
                self.detach(pending);
                self.clients.pending_queries[pending].client_timer_expired = true;
                if !self.answer_from_cache(pending, now, out) {
                    // The entry was evicted meanwhile.
                    self.attach(outbound, pending);
                }
            }
            pending = next;
        }
    }

    /// Ends a failed question with expired data (RFC 8767); `has_reply`: the upstream replied with a failure. Returns false if
    /// there are no such data.
    pub(crate) fn complete_with_stale(
        &mut self,
        index: Index,
        has_reply: bool,
        now: Instant,
        out: &mut impl Outbox,
    ) -> bool {
        let outbound = &self.upstream.outbound_queries[index];
        let found = self.cache.find_reply(&outbound.question(), outbound.qtype, outbound.group);
        let Some(place) = found else { return false };
        let entry = self.cache.entries.entry(place);
        if entry.is(FAILURE) || entry.expires() + self.settings.cache.stale <= now {
            return false;
        }
        let is_fresh = entry.expires() > now;
        // A failed refresh sets no recheck timer: it made one attempt and had no client. A client's query makes all attempts.
        if !is_fresh {
            let recheck = if has_reply { FAILURE_RECHECK } else { SILENCE_RECHECK };
            entry::set_failure_recheck(self.cache.entries.entry_mut(place), now + recheck);
        }
        let mut pending = outbound.pending_queries;
        let mut expired = 0;
        while pending != NONE && !is_fresh {
            let state = &mut self.clients.pending_queries[pending];
            let before = state.cache_hit.replace(CacheHit::Stale);
            expired += u64::from(before != Some(CacheHit::Stale));
            pending = state.next;
        }
        if expired > 0 {
            let more = Unanswered { expired, ..Unanswered::default() };
            self.upstream.servers.count_unanswered(outbound.forward_key(), more);
        }
        let mut frame = self.frames.take();
        let entry = self.cache.entries.entry(place);
        let length = if is_fresh {
            // A refresh failed, and the cached data are still fresh.
            write_cached_message(&entry, &mut frame, Age::of(&entry, now), entry.ede())
        } else {
            write_cached_message(&entry, &mut frame, Age::Stale, Some(stale_ede(&entry)))
        };
        let parsed = Message::parse(&frame[..length]);
        if let Ok(message) = &parsed {
            self.serve_reply(index, Some(message), now, out);
        }
        let is_served = parsed.is_ok();
        self.frames.give(frame);
        is_served
    }
}
