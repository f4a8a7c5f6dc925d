//! Tests of this crate from outside, in one program: it is linked once. `allocation.rs` has an allocator of its own.

mod echo;
mod fast_open;
mod flood;
mod link_local;
mod loopback;
mod successor;
mod suspend;
mod workers;
