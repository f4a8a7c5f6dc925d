//! Serve-stale (RFC 8767): the pending queries of a question that has failed get expired data.
//!
//! Those that wait too long get expired data when the client response timer expires (`machine.rs`). A query that comes later, while the
//! upstreams are known to fail, finds expired data at once (`from_cache.rs`).

use crate::base::slab::{Index, NONE};
use crate::base::time::{Instant, Span};
use crate::cache::entry::{self, FAILURE};
use crate::cache::store::MessageCache;
use crate::client::Clients;
use crate::reasons::CacheHit;
use crate::resolve::from_cache::Usable;
use crate::upstream::Upstream;
use crate::upstream::forward_zones::Unanswered;

/// Failure recheck timer after a failure: expired data are served without another attempt until then (RFC 8767 section 5).
const FAILURE_RECHECK: Span = Span::from_secs(30);
/// Failure recheck timer after a timeout. It is short: by then the server is known to be dead, or it is asked again.
const SILENCE_RECHECK: Span = Span::from_secs(1);

/// Finds the cached reply that stands for that of a failed question, and notes that its pending queries get it. `has_reply`: the upstream
/// replied with a failure. The data may still be fresh: then a refresh has failed.
pub(crate) fn stand_in(
    cache: &mut MessageCache,
    clients: &mut Clients,
    upstream: &mut Upstream,
    (index, has_reply): (Index, bool),
    now: Instant,
) -> Option<Usable> {
    let outbound = &upstream.outbound_queries[index];
    let place = cache.find_reply(&outbound.question(), outbound.qtype, outbound.group)?;
    let entry = cache.entries.entry(place);
    if entry.is(FAILURE) || entry.expires() + cache.stale() <= now {
        return None;
    }
    let is_stale = entry.expires() <= now;
    // A failed refresh sets no recheck timer: it made one attempt and had no client. A client's query makes all attempts.
    if is_stale {
        let recheck = if has_reply { FAILURE_RECHECK } else { SILENCE_RECHECK };
        entry::set_failure_recheck(cache.entries.entry_mut(place), now + recheck);
    }
    let mut pending = outbound.pending_queries;
    let mut expired = 0;
    while pending != NONE && is_stale {
        let state = &mut clients.pending_queries[pending];
        let before = state.cache_hit.replace(CacheHit::Stale);
        expired += u64::from(before != Some(CacheHit::Stale));
        pending = state.next;
    }
    if expired > 0 {
        let more = Unanswered { expired, ..Unanswered::default() };
        upstream.servers.count_unanswered(outbound.forward_key(), more);
    }
    Some(Usable { place, is_stale })
}
