//! Resolution of an admitted query: lookup order, the AAAA and A lookups, CNAME chase, RPZ, cache, and completion of a question
//! in flight.
//!
//! The parts below (client, cache, upstream, local, rpz) do not know each other; here they meet.
//!
//! Read `lookup.rs` first (the lookup order), then `completion.rs` (a reply is stored and given to the pending queries), `dispatch.rs` (the
//! dispatch on the stage), `aaaa.rs` and `a.rs`.
//!
//! Steps call each other in a circle here, as a step may need another lookup and a lookup may be answered at once: a chase of at most
//! [`HOPS`](crate::limits::HOPS) names over the five stages of [`Stage`](crate::dns64::decision::Stage) bounds its depth.

pub(crate) mod a;
pub(crate) mod aaaa;
pub(crate) mod bogus_check;
pub(crate) mod cache_lines;
pub(crate) mod chase;
pub(crate) mod completion;
pub(crate) mod dispatch;
pub(crate) mod divert;
pub(crate) mod early_a;
pub(crate) mod from_cache;
pub(crate) mod lookup;
pub(crate) mod pending_queries;
pub(crate) mod prefetch;
pub(crate) mod respond;
pub(crate) mod rpz;
pub(crate) mod serve_stale;
pub(crate) mod to_cache;
