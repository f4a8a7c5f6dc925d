//! Tests over TUN interfaces in network namespaces: the link, and the laboratory's own TCP.

mod link;
mod namespaces;
mod ttcp;
mod ttcp_dns;
