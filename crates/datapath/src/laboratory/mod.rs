//! The sockets of testers.
pub mod query_sender;
pub mod reflector;
pub mod reply_receiver;
pub mod responder;
pub mod tester_thread;
