//! Words for what ends a live query at once: a limit, or a cached answer. An explainer has neither; a live trace has both.

use crate::reasons::{CacheHit, Limit, Reaction};
use core::fmt;

/// Code of a limit: the limit, and the reaction.
pub(super) fn limit_code(limit: Limit) -> &'static str {
    match limit {
        Limit::RefusedQueryRate => "refused_queries_per_client",
        Limit::SlippedQueryRate => "slipped_queries_per_client",
        Limit::DroppedQueryRate => "dropped_queries_per_client",
        Limit::RefusedPending => "refused_pending",
        Limit::RefusedPendingPerClient => "refused_pending_per_client",
        Limit::SlippedPendingPerClient => "slipped_pending_per_client",
        Limit::DroppedPendingPerClient => "dropped_pending_per_client",
        Limit::DroppedRepeated => "dropped_repeated",
        Limit::SlippedResponseRate => "slipped_responses_per_client",
        Limit::DroppedResponseRate => "dropped_responses_per_client",
        Limit::DroppedTooLate => "dropped_too_late",
        Limit::DroppedShort => "dropped_short",
        Limit::DroppedResponse => "dropped_response",
    }
}

/// Configuration key or section of an RFC behind a limit.
pub(super) fn limit_requirement(limit: Limit) -> &'static str {
    match limit {
        Limit::RefusedQueryRate | Limit::SlippedQueryRate | Limit::DroppedQueryRate => {
            "limits.queries-per-client"
        }
        Limit::SlippedResponseRate | Limit::DroppedResponseRate => "limits.responses-per-client",
        Limit::RefusedPending => "limits.pending",
        Limit::RefusedPendingPerClient | Limit::SlippedPendingPerClient | Limit::DroppedPendingPerClient => {
            "limits.pending-per-client"
        }
        Limit::DroppedTooLate => "upstream.timeout, upstream.tries",
        Limit::DroppedRepeated => "RFC 1035 section 4.2.1",
        Limit::DroppedShort => "RFC 1035 section 4.1.1",
        Limit::DroppedResponse => "RFC 1035 section 7.3",
    }
}

/// Writes the limit that applies to a query, and the reaction.
///
/// # Errors
///
/// Only the error of the formatter that is written to.
pub(super) fn write_limited(f: &mut fmt::Formatter<'_>, limit: Limit) -> fmt::Result {
    let reason = match limit {
        Limit::RefusedQueryRate | Limit::SlippedQueryRate | Limit::DroppedQueryRate => {
            "the client's network exceeds its query rate"
        }
        Limit::RefusedPending => "no place for pending queries is free",
        Limit::RefusedPendingPerClient | Limit::SlippedPendingPerClient | Limit::DroppedPendingPerClient => {
            "the client's network has too many pending queries"
        }
        Limit::DroppedRepeated => "the query is pending already",
        Limit::SlippedResponseRate | Limit::DroppedResponseRate => {
            "the client's network gets too many equal responses"
        }
        Limit::DroppedTooLate => "the client waits no longer",
        Limit::DroppedShort => "the message is shorter than a header",
        Limit::DroppedResponse => "the message is a response",
    };
    let reaction = match (limit.reaction(), limit) {
        (Reaction::Refuse, _) => "the query is refused",
        (Reaction::Slip, _) => "the client is sent to TCP",
        (Reaction::Drop, Limit::DroppedRepeated) => "this repetition is dropped",
        (Reaction::Drop, Limit::DroppedResponseRate) => "the response is dropped",
        (Reaction::Drop, Limit::DroppedTooLate) => "the answer is dropped",
        (Reaction::Drop, Limit::DroppedShort | Limit::DroppedResponse) => "it is dropped",
        (Reaction::Drop, _) => "the query is dropped",
    };
    write!(f, "{reason}: {reaction}")
}

/// Writes the kind of a cache hit.
///
/// # Errors
///
/// Only the error of the formatter that is written to.
pub(super) fn write_cached(f: &mut fmt::Formatter<'_>, hit: CacheHit) -> fmt::Result {
    match hit {
        CacheHit::Synthesized => write!(f, "the cache has the synthesized answer"),
        CacheHit::Negative => write!(f, "the cache has a negative reply"),
        CacheHit::Failure => write!(f, "the cache has a failure: no upstream is queried again yet"),
        CacheHit::Stale => {
            write!(f, "the cache has expired data, which are used because the upstreams fail")
        }
        CacheHit::Positive => write!(f, "the cache has the reply"),
    }
}
