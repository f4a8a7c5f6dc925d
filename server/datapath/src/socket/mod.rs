//! Batches of datagrams: socket addresses in the kernel's form, the arrays that recvmmsg and sendmmsg work on, and UDP GSO and GRO; and
//! the system calls of workers. What the laboratory and AF_XDP need too is in the crate `kernel`.
//!
//! Nothing here knows workers, machines or upstreams. Read `syscalls.rs` first, then `receive_batch.rs` and `send_batch.rs`.

#[allow(unsafe_code)]
pub(crate) mod address;
#[allow(unsafe_code)]
pub(crate) mod receive_batch;
#[allow(unsafe_code)]
pub(crate) mod send_batch;
#[allow(unsafe_code)]
pub(crate) mod syscalls;
mod truncation;
