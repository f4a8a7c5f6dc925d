//! The reports of a stack to its user: events and failures of connections, refused calls, counts.

use core::fmt;
use std::net::{IpAddr, SocketAddr};

/// A connection of a stack. It is never used again for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Connection(pub(super) u64);

/// A change of a connection, for its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A listener has a connection whose data may be given to the user.
    Accepted {
        /// The connection.
        connection: Connection,
        /// Local address and port.
        local: SocketAddr,
        /// Address and port of the peer.
        remote: SocketAddr,
        /// The TAO test passed or the cookie was valid: there was no three-way handshake.
        by_transaction: bool,
    },
    /// The peer has answered the SYN of a connection of ours.
    Connected(Connection),
    /// Octets have come, in order.
    Received(Connection, Vec<u8>),
    /// The peer has finished: all its octets have come.
    Finished(Connection),
    /// The connection is over; nothing is left of it but its state in TIME-WAIT.
    Closed(Connection),
    /// The connection has failed.
    Failed(Connection, Failure),
}

/// Failure of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The peer has no listener on the port.
    Refused,
    /// The peer has reset it.
    Reset,
    /// No acknowledgment through all retransmissions.
    TimedOut,
    /// [`Stack::abort`](crate::Stack::abort).
    Aborted,
}

/// A call that the stack refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// An address outside 198.18.0.0/15 and 2001:2::/48. T/TCP is not safe on other networks; use the addresses for benchmarks.
    Address(IpAddr),
    /// The stack has no address of the peer's family; give it one.
    NoLocalAddress(IpAddr),
    /// All connection blocks are in use, those in TIME-WAIT included. Wait, or raise [`Settings::blocks`](crate::Settings::blocks).
    NoBlock,
    /// All ports to this peer are in use. Wait, or widen [`Settings::ports`](crate::Settings::ports).
    NoPort,
    /// The port has a listener already.
    PortInUse(u16),
    /// The connection is over, or its sending side is.
    Over,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Address(address) => {
                write!(
                    f,
                    "{address} is no address for benchmarks; T/TCP runs only in 198.18.0.0/15 and 2001:2::/48"
                )
            }
            Refusal::NoLocalAddress(peer) => write!(f, "this host has no address of the family of {peer}"),
            Refusal::NoBlock => f.write_str("all connection blocks are in use"),
            Refusal::NoPort => f.write_str("all ports to this host are in use"),
            Refusal::PortInUse(port) => write!(f, "port {port} has a listener already"),
            Refusal::Over => f.write_str("the connection is over"),
        }
    }
}

impl std::error::Error for Refusal {}

/// Counts of a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets taken.
    pub received: u64,
    /// Packets sent.
    pub sent: u64,
    /// Packets that are no whole TCP segment or are damaged.
    pub malformed: u64,
    /// Packets from or to an address outside the networks for benchmarks, or to another host.
    pub foreign: u64,
    /// SYNs for which there was no connection block.
    pub no_block: u64,
    /// Packets lost because the queue to the link was full.
    pub unfetched: u64,
    /// SYNs that passed the TAO test.
    pub transactions: u64,
    /// SYNs with a valid cookie whose data was taken at once.
    pub fast_opens: u64,
    /// SYNs that a listener took and that did neither.
    pub handshakes: u64,
}
