//! Every bound of the client streams, with the arithmetic. What an operator sets is in [`Limits`].
//!
//! Memory of an idle connection: about 1,000 octets (its state, its task, tokio's registration) beside what the kernel
//! keeps. No buffer is held while nothing is half read and nothing waits to be written. The command that prints the
//! figure: `cargo test -p sixfold-transport -- --ignored --nocapture idle_connection_memory`.

use std::time::Duration;

/// Questions of one connection that may wait for their answers; then reading stops, and TCP tells the client.
pub const OUTSTANDING: u32 = 128;

/// Octets of one read, into a buffer that all connections of a thread share. 128 questions of a usual 60 octets are
/// 8 KiB, so little is left to be kept when [`OUTSTANDING`] stops the reading.
pub const READ_OCTETS: usize = 16 * 1024;

/// Reads of one connection before the others have their turn.
pub const READS_PER_TURN: usize = 4;

/// Octets of answers waiting to be written at which a connection is no longer read: whoever does not take answers
/// may not ask.
pub const UNREAD_OCTETS: usize = 64 * 1024;

/// Octets of answers that may wait to be written to one connection: what [`UNREAD_OCTETS`] allows and three of the
/// largest messages. Beyond it the client is a slow reader, and cut off.
pub const WRITE_QUEUE_OCTETS: usize = 256 * 1024;

/// Octets buffered for all connections together, in both directions. When they are used up, a connection that
/// holds more than [`SMALL_OCTETS`] is closed, so all buffers together stay below this and 4 KiB per connection:
/// 64 MiB + 10,000 x 4 KiB = 103 MiB.
pub const BUFFER_OCTETS: usize = 64 * 1024 * 1024;

/// Octets that a connection may always hold: a question or an answer of a usual size.
pub const SMALL_OCTETS: usize = 4 * 1024;

/// Answers on the way from the workers to one stream thread. 4,096 letters of about 600 octets: 2.4 MiB.
pub const QUEUED_ANSWERS: usize = 4096;

/// Octets of all answers on the way to one stream thread; the largest are kept outside of the letters.
pub const QUEUED_ANSWER_OCTETS: usize = 16 * 1024 * 1024;

/// Answers brought to their connections before the connections have their turn to write.
pub const ANSWERS_PER_PASS: usize = 512;

/// Stream threads.
pub const MAX_THREADS: usize = 16;

/// Connections that the kernel keeps until they are accepted.
pub const BACKLOG: i32 = 1024;

/// How long to wait before a question is offered again that the server had no room for, and how often it is:
/// 50 x 2 ms. A worker empties its mailbox in a few milliseconds, or it is not a burst but overload.
pub const RETRY: Duration = Duration::from_millis(2);
/// See [`RETRY`].
pub const RETRIES: u32 = 50;

/// Pause after an accept that failed for want of descriptors or memory.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Send buffer in the kernel, which doubles it for its own bookkeeping. It is fixed because the kernel would else
/// grow it up to several MiB for each slow reader.
pub const SEND_BUFFER_OCTETS: usize = 128 * 1024;

/// Receive buffer in the kernel; fixed for the same reason.
pub const RECEIVE_BUFFER_OCTETS: usize = 64 * 1024;

/// How long the kernel tries to bring data to a client that does not acknowledge it, also after the close.
pub const USER_TIMEOUT: Duration = Duration::from_secs(30);

/// What an operator sets; may change while connections are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `tcp-connections`: open connections in all.
    pub connections: usize,
    /// `tcp-per-client`: open connections of one client network (IPv6 /64, IPv4 /32).
    pub per_client: usize,
    /// `tcp-idle`: how long a connection may be idle, a message may take to arrive, and buffered answers may take
    /// to be read. Shrinks when connections become scarce.
    pub idle: Duration,
    /// How long a connection may wait for answers that the server owes it. Some never come: the engine does not
    /// answer a repeated question, for example. Must exceed what a resolution takes at most.
    pub answer_wait: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 10_000,
            per_client: 100,
            idle: Duration::from_secs(10),
            answer_wait: Duration::from_secs(15),
        }
    }
}

impl Limits {
    /// The idle time when so many connections are open: the whole of it up to half of the limit, then less,
    /// linearly, down to a tenth at the limit (RFC 7766 section 6.2.3 lets a server do so when resources are low).
    pub fn idle_at(&self, connections: usize) -> Duration {
        let half = self.connections / 2;
        let over = connections.min(self.connections).saturating_sub(half);
        let span = (self.connections - half).max(1);
        self.idle.mul_f64(1.0 - 0.9 * over as f64 / span as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_idle_time_shrinks_from_half_of_the_limit_to_a_tenth() {
        let limits = Limits { connections: 1000, ..Limits::default() };
        let at = |connections| limits.idle_at(connections).as_millis();
        assert_eq!([at(0), at(500), at(750), at(1000), at(2000)], [10_000, 10_000, 5_500, 1_000, 1_000]);
    }

    #[test]
    fn tiny_limits_do_not_divide_by_zero() {
        for connections in 0..3 {
            for open in 0..4 {
                let limits = Limits { connections, ..Limits::default() };
                assert!(limits.idle_at(open) >= limits.idle / 11);
            }
        }
    }
}
