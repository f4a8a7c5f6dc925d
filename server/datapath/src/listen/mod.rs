//! The server side: listening sockets, the choice of the worker (`steering.rs`, `popular_names.rs`), fairness between client networks under
//! overload (`fair_shedding.rs` decides, `heavy_hitters.rs` divides, `active_networks.rs` knows for whose sake, `shedding_filter.rs`
//! carries it out, `filter_history.rs` knows which filter a datagram came through, `sojourn.rs` how old it is), the responses that wait to leave (`response_batch.rs`), the header of a proxy (`proxy_protocol.rs`), and the sockets of a service manager (`activation.rs`).
//!
//! Nothing here knows machines, upstreams or threads. Read `listener.rs` first.

#[allow(unsafe_code)]
pub(crate) mod activation;
pub(crate) mod active_networks;
pub(crate) mod fair_shedding;
pub(crate) mod filter_history;
pub(crate) mod heavy_hitters;
pub(crate) mod listener;
pub(crate) mod popular_names;
pub mod proxy_protocol;
#[allow(unsafe_code)]
pub(crate) mod response_batch;
#[allow(unsafe_code)]
pub(crate) mod shedding_filter;
pub(crate) mod sojourn;
#[allow(unsafe_code)]
pub mod steering;
