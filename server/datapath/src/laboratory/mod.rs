//! The sockets of the laboratory: the source ports of a tester with its sends and receives, its TCP connections, a server
//! without a machine (`responder.rs`), a machine without DNS that measures the cost of the packets alone (`reflector.rs`), a
//! receiver with the kernel's time of each datagram (`stamped_receiver.rs`), and the sockets of a device (`device_sockets.rs`).
//!
//! Only benchmarks and tests use this folder, and the authority server. Nothing here knows DNS. Read `query_sender.rs`
//! first.

mod connection;
mod connection_info;
mod device_socket;
pub mod device_sockets;
pub mod netlink;
mod query_sender;
mod reflector;
mod reply_receiver;
mod responder;
mod stamped_receiver;
mod tester_thread;

pub use connection::{Connection, ConnectionEvent, ConnectionWaiter};
pub use connection_info::ConnectionInfo;
pub use device_socket::DeviceSocket;
pub use query_sender::{Port, PortError, QuerySender};
pub use reflector::{Reflector, ReflectorOptions};
pub use reply_receiver::{Arrival, ReplyReceiver};
pub use responder::Responder;
pub use stamped_receiver::{Stamped, StampedReceiver};
pub use tester_thread::{Pinned, PreciseTimers, Ready, Usage, Waiter};
