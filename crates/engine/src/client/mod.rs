//! Clients: pending queries, limits per network, cookies, and the way out for a response.
//!
//! It knows no upstream and no cache.
//!
//! Read `waiter.rs` first: one client query that waits for its answer.

pub(crate) mod chased;
pub(crate) mod cookies;
pub(crate) mod quota;
pub(crate) mod rate_limit;
pub(crate) mod respond;
pub(crate) mod waiter;
