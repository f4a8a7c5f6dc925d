//! The sockets that clients send to.
pub(crate) mod fair_shedding;
pub(crate) mod listener;
pub mod proxy_protocol;
pub(crate) mod response_queue;
pub(crate) mod shedding_filter;
pub mod steering;
