//! The reasons for which connections are closed, with or without TLS.

use crate::counters::Counter;

/// The reason why a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    Ended,
    Idle,
    Displaced,
    SlowReader,
    SlowSender,
    MalformedLength,
    ProxyHeader,
    ClientLimit,
    Handshake,
    Reset,
    Unanswered,
    Buffers,
    ProtocolError,
    Cancellations,
    Drained,
}

impl CloseReason {
    pub(crate) fn counter(self) -> Counter {
        match self {
            CloseReason::Ended => Counter::ClosedEnded,
            CloseReason::Idle => Counter::ClosedIdle,
            CloseReason::Displaced => Counter::ClosedDisplaced,
            CloseReason::SlowReader => Counter::ClosedSlowReader,
            CloseReason::SlowSender => Counter::ClosedSlowSender,
            CloseReason::MalformedLength => Counter::ClosedMalformedLength,
            CloseReason::ProxyHeader => Counter::ClosedProxyHeader,
            CloseReason::ClientLimit => Counter::ClosedClientLimit,
            CloseReason::Handshake => Counter::ClosedHandshake,
            CloseReason::Reset => Counter::ClosedReset,
            CloseReason::Unanswered => Counter::ClosedUnanswered,
            CloseReason::Buffers => Counter::ClosedBuffers,
            CloseReason::ProtocolError => Counter::ClosedProtocolError,
            CloseReason::Cancellations => Counter::ClosedCancellations,
            CloseReason::Drained => Counter::ClosedDrained,
        }
    }

    /// True if the connection is reset: the kernel discards the octets that it still holds for the client.
    pub(crate) fn is_abrupt(self) -> bool {
        matches!(
            self,
            CloseReason::SlowReader
                | CloseReason::Buffers
                | CloseReason::ProxyHeader
                | CloseReason::ClientLimit
        )
    }
}
