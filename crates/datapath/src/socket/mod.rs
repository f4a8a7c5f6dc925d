//! The kernel's side of a socket, for every part of the crate.
pub(crate) mod address;
pub(crate) mod pinned_array;
pub(crate) mod receive_batch;
pub(crate) mod send_batch;
pub(crate) mod syscalls;
mod truncation;
