//! The worker threads.
pub(crate) mod event_loop;
pub(crate) mod group;
pub(crate) mod mailbox;
mod outbox;
pub(crate) mod shared;
