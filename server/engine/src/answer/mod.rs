//! Writers of responses to clients: a forwarded upstream reply, synthesized AAAA records, or an empty response.
//!
//! These functions write into a frame and return a [`builder::Written`]. They do not know sockets, pending queries or the cache.
//!
//! Read `params.rs` first (the query's properties that shape the response), then `builder.rs`.

pub(crate) mod answer_memo;
pub mod builder;
pub(crate) mod fit;
pub(crate) mod forward;
pub(crate) mod padding;
pub mod params;
pub(crate) mod stream_options;
pub mod synthesis;
