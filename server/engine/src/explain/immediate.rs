//! Words for what ends a live query at once: a limit, or a cached answer. An explainer has neither; a live trace has both.

use crate::counters::Counter;
use core::fmt;

/// Code of a limit: the limit, and the reaction.
pub(super) fn limit_code(counter: Counter) -> &'static str {
    match counter {
        Counter::RefusedQueryRate => "refused_queries_per_client",
        Counter::SlippedQueryRate => "slipped_queries_per_client",
        Counter::DroppedQueryRate => "dropped_queries_per_client",
        Counter::RefusedPending => "refused_pending",
        Counter::RefusedPendingPerClient => "refused_pending_per_client",
        Counter::SlippedPendingPerClient => "slipped_pending_per_client",
        Counter::DroppedPendingPerClient => "dropped_pending_per_client",
        Counter::DroppedRepeated => "dropped_repeated",
        Counter::SlippedResponseRate => "slipped_responses_per_client",
        Counter::DroppedResponseRate => "dropped_responses_per_client",
        Counter::DroppedOverdue => "dropped_overdue",
        Counter::DroppedRunt => "dropped_runt",
        _ => "dropped_response",
    }
}

/// Configuration key or section of an RFC behind a limit.
pub(super) fn limit_requirement(counter: Counter) -> &'static str {
    match counter {
        Counter::RefusedQueryRate | Counter::SlippedQueryRate | Counter::DroppedQueryRate => {
            "limits.queries-per-client"
        }
        Counter::SlippedResponseRate | Counter::DroppedResponseRate => "limits.responses-per-client",
        Counter::RefusedPending => "limits.pending",
        Counter::RefusedPendingPerClient
        | Counter::SlippedPendingPerClient
        | Counter::DroppedPendingPerClient => "limits.pending-per-client",
        Counter::DroppedOverdue => "upstream.timeout, upstream.tries",
        Counter::DroppedRepeated => "RFC 1035 section 4.2.1",
        Counter::DroppedRunt => "RFC 1035 section 4.1.1",
        _ => "RFC 1035 section 7.3",
    }
}

/// Writes the limit that applies to a query, and the reaction.
///
/// # Errors
///
/// Only the error of the formatter that is written to.
pub(super) fn write_limited(f: &mut fmt::Formatter<'_>, counter: Counter) -> fmt::Result {
    let (reason, reaction) = match counter {
        Counter::RefusedQueryRate => ("the client's network exceeds its query rate", "the query is refused"),
        Counter::SlippedQueryRate => {
            ("the client's network exceeds its query rate", "the client is sent to TCP")
        }
        Counter::DroppedQueryRate => ("the client's network exceeds its query rate", "the query is dropped"),
        Counter::RefusedPending => ("no place for pending queries is free", "the query is refused"),
        Counter::RefusedPendingPerClient => {
            ("the client's network has too many pending queries", "the query is refused")
        }
        Counter::SlippedPendingPerClient => {
            ("the client's network has too many pending queries", "the client is sent to TCP")
        }
        Counter::DroppedPendingPerClient => {
            ("the client's network has too many pending queries", "the query is dropped")
        }
        Counter::DroppedRepeated => ("the query is pending already", "this repetition is dropped"),
        Counter::SlippedResponseRate => {
            ("the client's network gets too many equal responses", "the client is sent to TCP")
        }
        Counter::DroppedResponseRate => {
            ("the client's network gets too many equal responses", "the response is dropped")
        }
        Counter::DroppedOverdue => ("the client waits no longer", "the answer is dropped"),
        Counter::DroppedRunt => ("the message is shorter than a header", "it is dropped"),
        _ => ("the message is a response", "it is dropped"),
    };
    write!(f, "{reason}: {reaction}")
}

/// Writes the kind of a cache hit.
///
/// # Errors
///
/// Only the error of the formatter that is written to.
pub(super) fn write_cached(f: &mut fmt::Formatter<'_>, counter: Counter) -> fmt::Result {
    match counter {
        Counter::CacheHitsSynthesized => write!(f, "the cache has the synthesized answer"),
        Counter::CacheHitsNegative => write!(f, "the cache has a negative reply"),
        Counter::CacheHitsFailure => write!(f, "the cache has a failure: no upstream is queried again yet"),
        Counter::CacheHitsStale => {
            write!(f, "the cache has expired data, which are used because the upstreams fail")
        }
        _ => write!(f, "the cache has the reply"),
    }
}
