//! Queries to upstream servers and their replies: everything between "ask this" and "this came back".
//!
//! It knows no client and no cache. Results leave as values.
//!
//! Read `in_flight.rs` first (one question under way), then `send.rs` and `receive.rs`.

pub mod circuit_breaker;
pub(crate) mod cookies;
pub(crate) mod edns_support;
pub mod groups;
pub(crate) mod in_flight;
pub(crate) mod links;
pub(crate) mod parked_replies;
#[cfg(test)]
mod planted_tests;
pub(crate) mod receive;
pub(crate) mod retry_budget;
pub(crate) mod send;
