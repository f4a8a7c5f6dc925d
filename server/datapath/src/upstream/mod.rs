//! The client side: links to upstreams, over UDP, TCP and TLS, as the machine numbers them. The queries of a turn of the event
//! loop are collected, and leave at its end with one system call per link.
//!
//! Nothing here knows which query belongs to which client, or when a query times out: that is the machine's. Read
//! `links.rs` first.

pub mod framing;
pub(crate) mod links;
pub mod sources;
mod tcp_link;
mod tls_link;
pub mod tls_upstreams;
#[allow(unsafe_code)]
mod udp_link;
