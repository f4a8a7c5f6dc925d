//! The server side: listening sockets, the choice of the worker (`steering.rs`, `popular_names.rs`), the responses that wait to leave
//! (`response_batch.rs`), the header of a proxy (`proxy_protocol.rs`), and the sockets of a service manager (`activation.rs`).
//!
//! Nothing here knows machines, upstreams or threads. Read `listener.rs` first.

#[allow(unsafe_code)]
pub(crate) mod activation;
pub(crate) mod listener;
pub(crate) mod popular_names;
pub mod proxy_protocol;
#[allow(unsafe_code)]
pub(crate) mod response_batch;
#[allow(unsafe_code)]
pub mod steering;
