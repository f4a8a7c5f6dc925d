//! Interpretation of one DNS message: the question, the CNAME chain in the answer section, the kind of an upstream reply, the
//! EDNS options.
//!
//! All functions are pure: they look at one message and know no client, upstream, cache or configuration.
//!
//! Read `cname_chain.rs` first: it defines which records of a reply belong to the answer.

pub(crate) mod client_subnet;
pub mod cname_chain;
pub mod cookie;
pub(crate) mod lame;
pub mod question;
pub(crate) mod reply;
pub mod stream_options;
