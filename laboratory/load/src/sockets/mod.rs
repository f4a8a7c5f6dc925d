//! The sockets of a tester: its source ports with their sends and receives, its TCP connections, its threads; a receiver with the
//! kernel's time of each datagram (`stamped_receiver.rs`), the sockets of a device ([`device_sockets`]), and what the kernel tells of
//! interfaces and sockets ([`netlink`]).
//!
//! Nothing here knows DNS. Read `query_sender.rs` first.

mod connection;
mod connection_info;
mod device_socket;
pub mod device_sockets;
pub mod netlink;
mod query_sender;
mod reply_receiver;
mod stamped_receiver;
mod tester_thread;

pub(crate) use connection::{Connection, ConnectionEvent, ConnectionWaiter};
pub(crate) use connection_info::ConnectionInfo;
pub use device_socket::DeviceSocket;
pub use query_sender::{Port, PortError, QuerySender};
pub use reply_receiver::{Arrival, ReplyReceiver};
pub use stamped_receiver::{Stamped, StampedReceiver};
pub use tester_thread::{Pinned, Usage};
pub(crate) use tester_thread::{PreciseTimers, Ready, Waiter};
