//! The link between two network namespaces: `sixfold-bench link`.
//!
//! Each namespace gets a TUN interface (`interface.rs`). One thread moves packets between the two (`pump.rs`) through the
//! state machine of the crate `link`, which decides about delay and loss. `summary.rs` compares what was asked with what was
//! achieved. `ttcp_host.rs` puts the laboratory's own TCP behind such an interface. `own_namespace.rs` makes namespaces for
//! experiments. Neither netem nor a kernel module takes part. The interfaces are not persistent: when the process ends, however
//! it ends, the kernel removes them.

pub mod interface;
pub mod limits;
pub mod namespace;
pub mod options;
pub mod own_namespace;
pub mod pump;
pub mod rate_meter;
pub mod summary;
pub mod ttcp_host;
