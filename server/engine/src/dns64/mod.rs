//! DNS64 logic (RFC 6147 section 5, RFC 6052): configuration, prefix rules, the decision about an AAAA reply, and the embedding
//! of IPv4 addresses.
//!
//! All functions are pure. Nothing here knows pending queries, upstreams or the cache.
//!
//! Read `decision.rs` first: it holds RFC 6147 sections 5.1.1 to 5.1.4 as one function.

pub mod config;
pub mod decision;
pub mod embed;
pub mod gateways;
pub(crate) mod prefix_table;
pub mod private;
pub mod rules;
pub mod verdicts;
pub(crate) mod verify;
