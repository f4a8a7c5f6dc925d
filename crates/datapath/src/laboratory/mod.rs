//! The sockets of testers.
mod query_sender;
mod reflector;
mod reply_receiver;
mod responder;
mod tester_thread;

pub use query_sender::{Port, QuerySender};
pub use reflector::{Reflector, ReflectorOptions};
pub use reply_receiver::{Arrival, ReplyReceiver};
pub use responder::Responder;
pub use tester_thread::{Pinned, PreciseTimers, Ready, Usage, Waiter};
