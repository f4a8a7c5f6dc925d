//! News that the tasks of connections and queries report to the loop of their thread. The tasks do the I/O; the loop alone
//! counts and judges.

use crate::multiplexed::handle::Handle;
use crate::sockets::ConnectionInfo;
use crate::stream::Fault;
use tokio::sync::mpsc::UnboundedSender;

/// News of a connection or of one of its queries.
pub enum Event {
    /// A handshake is over. The handle is there unless the connection had it before, for early data.
    Established(u64, Established, Option<Handle>),
    /// A handshake failed.
    Refused(u64, Failure),
    /// The reply to a query, at this time.
    Reply(u64, Reply),
    /// A query of a connection ended without a reply.
    Failed(Lost),
    /// The queries of a connection could not have a stream at once; their number.
    Waited(u64),
    /// A connection is over, and why.
    Over(u64, Fault),
    /// The packets of a connection over TCP, and the octets of data that were read.
    Segments(ConnectionInfo, u64),
    /// The datagrams of a connection over QUIC, and their octets: sent, received.
    Datagrams((u64, u64), (u64, u64)),
}

/// Times of a handshake, in nanoseconds since the origin of the load.
#[derive(Clone, Copy, Debug, Default)]
pub struct Established {
    /// End of the handshake of TCP.
    pub connected: Option<u64>,
    /// End of the handshake.
    pub at: u64,
    /// True if the first query left as early data; then true if the server accepted it.
    pub early_data: Option<bool>,
}

/// Reason why a handshake failed.
pub struct Failure {
    /// The fault of the connection's queries.
    pub fault: Fault,
    /// The reason in words, of a handshake of TLS.
    pub reason: Option<String>,
}

/// A reply.
pub struct Reply {
    /// Number of the query.
    pub k: u64,
    /// Time of its arrival, in nanoseconds since the origin of the plan.
    pub at: u64,
    /// The message.
    pub message: Vec<u8>,
}

/// A query without a reply.
pub struct Lost {
    /// Token of its connection.
    pub token: u64,
    /// Number of the query.
    pub k: u64,
    /// Reason; `None` if no reply came in two timeouts.
    pub fault: Option<Fault>,
    /// The HTTP status, if it is the reason.
    pub status: Option<u16>,
}

/// The way of news to the loop.
#[derive(Clone)]
pub struct Reporter {
    events: UnboundedSender<Event>,
    origin: u64,
}

impl Reporter {
    /// News whose instants count from `origin`, in nanoseconds of [`datapath::now`].
    pub fn new(events: UnboundedSender<Event>, origin: u64) -> Reporter {
        Reporter { events, origin }
    }

    /// Nanoseconds since the origin.
    pub fn now(&self) -> u64 {
        datapath::now().0.saturating_sub(self.origin)
    }

    /// Reports news. Their number is limited by those of queries and connections.
    pub fn report(&self, event: Event) {
        // The loop ends before some tasks do; nobody needs their news.
        let _ = self.events.send(event);
    }
}
