//! Companion of a load: a server in the load's own thread.

use std::os::fd::BorrowedFd;

/// A server that shares the load's thread and is polled in every iteration of its loop. For machines whose other
/// cores belong to the device under test.
pub trait Companion {
    /// Handles the waiting messages without blocking; returns their number.
    fn poll(&mut self) -> usize;

    /// Descriptors that are readable when there is work. Called once, when the load begins; for descriptors that come
    /// and go later (connections), return the descriptor of an epoll instance.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>>;

    /// Time of the next poll although nothing is readable, in nanoseconds of `datapath::now`.
    fn deadline_ns(&self) -> Option<u64>;
}

/// No companion: the type parameter of a run where there is none.
#[derive(Clone, Copy, Debug)]
pub enum NoCompanion {}

impl Companion for NoCompanion {
    fn poll(&mut self) -> usize {
        match *self {}
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        match *self {}
    }

    fn deadline_ns(&self) -> Option<u64> {
        match *self {}
    }
}
