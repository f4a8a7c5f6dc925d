//! Responses to clients as bytes: an upstream reply forwarded, AAAA records synthesized, or an empty response.
//!
//! These functions write into a frame and return what they wrote. They know no socket, waiter or cache.
//!
//! Read `requestor.rs` first: what the response must fit; then `builder.rs`.

pub(crate) mod builder;
pub(crate) mod forward;
pub(crate) mod requestor;
pub(crate) mod synthesis;
