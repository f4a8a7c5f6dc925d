//! The sockets that upstreams are asked through.
pub mod framing;
pub(crate) mod links;
mod tcp_link;
mod udp_link;
