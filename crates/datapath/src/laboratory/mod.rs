//! The sockets of testers.
mod query_sender;
mod reflector;
mod reply_receiver;
mod responder;
mod tester_thread;

pub use query_sender::{Outlet, Port};
pub use reflector::{Reflection, Reflector};
pub use reply_receiver::{Arrival, Inlet};
pub use responder::Responder;
pub use tester_thread::{Pinned, PreciseTimers, Ready, Usage, Waiter};
