//! Every bound of the client streams, with the arithmetic. The bounds that an operator sets are in [`Limits`].
//!
//! An idle connection over TCP takes about 1,400 octets (its state, its task, tokio's registration), without the memory of the
//! kernel. It holds no buffer unless a message is partly read or octets wait to be written. Over TLS it takes 9,000 octets, over HTTP/2
//! 20,000. The state of the TLS library is not counted in [`BUFFER_OCTETS`], nor is a TLS record that has not arrived as a whole, of at most
//! 22 KiB. The command that prints the figures: `cargo test -p sixfold-transport -- --ignored --nocapture idle_connection_memory`.

use engine::IdleTimeout;
pub use engine::limits::{
    PACKET_CACHE_ENTRIES, PACKET_CACHE_IDLE_SECS, PACKET_CACHE_POPULAR, PACKET_CACHE_WANTED,
};
use std::time::Duration;

/// Queries of one connection that may wait for their answers. At this number reading stops, and TCP slows the client down.
pub const OUTSTANDING: u32 = 128;

/// Octets of one read, into a buffer that all connections of a thread share. 128 queries of the usual 60 octets are 8 KiB, so
/// few octets must be kept when [`OUTSTANDING`] stops the reading.
pub const READ_OCTETS: usize = 16 * 1024;

/// Reads of one connection before the other connections have their turn.
pub const READS_PER_TURN: usize = 4;

/// Octets of unwritten answers at which a connection is no longer read: a client that does not read answers may not send
/// queries.
pub const UNREAD_OCTETS: usize = 64 * 1024;

/// Octets of answers that may wait to be written to one connection: [`UNREAD_OCTETS`] and three of the largest messages.
/// Beyond it the client counts as a slow reader, and the connection is closed. A request over HTTPS whose body goes beyond it is refused.
pub const WRITE_QUEUE_OCTETS: usize = 256 * 1024;

/// Octets buffered for all connections together, in both directions. When they are used up, the client networks that hold most of them
/// pay: their connections are closed.
pub const BUFFER_OCTETS: usize = 64 * 1024 * 1024;

/// Octets that are buffered until those connections have ended, which takes a turn of their threads. Beyond them, every connection is
/// closed that wants more than [`SMALL_OCTETS`]. So all buffers together stay below this plus 4 KiB per connection: 80 MiB + 10,000 x 4 KiB
/// = 119 MiB.
pub const BUFFER_OCTETS_AT_MOST: usize = BUFFER_OCTETS + BUFFER_OCTETS / 4;

/// Octets that these networks give back at once. A search for them takes 0.1 ms per 1,000 networks, so it should not come too often.
pub const BUFFER_RETURN_OCTETS: usize = BUFFER_OCTETS / 16;

/// Time after which others are searched, if these networks have not given back what they should.
pub const BUFFER_ROUND: Duration = Duration::from_secs(1);

/// Octets that a connection may always hold, all of its requests and answers together: a query or an answer of usual size.
pub const SMALL_OCTETS: usize = 4 * 1024;

/// Connections whose timeouts are checked at once. 10,000 connections at once took 3 ms, in which queries over UDP wait if their worker has
/// the same core (docs/benchmarks.md); a part takes 0.06 ms.
pub const SWEPT_AT_ONCE: usize = 64;

/// Time between two such parts while more connections are due.
pub const SWEEP_PART: Duration = Duration::from_millis(1);

/// Sweeps in the shortest timeout, so a connection stays for a tenth longer.
pub const CHECKS_PER_TIMEOUT: u32 = 10;

/// Longest time between two sweeps.
pub const LONGEST_CHECK: Duration = Duration::from_secs(2);

/// Queries that a stream thread posts before it wakes the workers within a turn, and answers that the workers queue for it before they
/// wake it within a turn. Usually a turn has fewer, and one wake-up at its end serves them all.
pub const QUERIES_PER_WAKE: usize = 128;

/// Time between two counts of the answers that the packet cache has given.
pub const PACKET_CACHE_COUNT: Duration = Duration::from_secs(1);

/// Time that a reader of counters gives the stream threads for their reports. A turn of a thread takes less than some milliseconds.
pub const REPORT_TIME: Duration = Duration::from_millis(50);

/// Answers that wait for one stream thread: 4,096 queued messages of about 600 octets, 2.4 MiB.
pub const QUEUED_ANSWERS: usize = 4096;

/// Octets of all answers that wait for one stream thread, each counted as 4 KiB at least. The largest answers are stored outside the queue.
/// While three quarters are taken, one client customer may have a sixteenth.
pub const QUEUED_ANSWER_OCTETS: usize = 16 * 1024 * 1024;

/// Answers delivered to their connections before the connections have their turn to write.
pub const ANSWERS_PER_PASS: usize = 512;

/// Stream threads at most.
pub const MAX_THREADS: usize = 16;

/// Connections that the kernel keeps until they are accepted.
pub const BACKLOG: i32 = 1024;

/// Pause before a refused query is offered again to the server, at most [`RETRIES`] times: 50 x 2 ms. A worker empties its
/// mailbox in a few milliseconds after a burst. If it takes longer, it is overloaded.
pub const RETRY: Duration = Duration::from_millis(2);
/// Number of times that a refused query is offered again. See [`RETRY`].
pub const RETRIES: u32 = 50;

/// Time for which a connection must be idle before it gives way to a new one: two round trips of most clients, which ask right after
/// they have connected. With all places taken, the idle timeout itself is a tenth of `tcp-idle`.
pub const DISPLACED_IDLE: Duration = Duration::from_millis(200);

/// Time for the PROXY header and the TLS handshake of a connection. An honest handshake takes two round trips and at most one lost
/// segment, which TCP sends again after a second.
pub const HANDSHAKE_TIME: Duration = Duration::from_secs(5);

/// Handshakes of a stream thread that are under way. With an estimate of 20 KiB each, 20 MiB. One more displaces the oldest: honest clients are
/// displaced only if 1,024 connections come within their two round trips, which is 5,000 in a second at 100 ms.
pub const HANDSHAKES: usize = 1024;

/// Time for whose handshakes a client network has tokens: with 200 a second ([`Limits::handshakes_per_second`]) it may begin 1,000 at once. Of
/// 128 us each these take a stream thread 0.13 s, and 200 a second 2.6 % of its time; a customer has four times as many.
pub const HANDSHAKE_BURST: Duration = Duration::from_secs(5);

/// Client networks, and customers, of which the handshakes are counted. A network is of interest until its tokens are back: with 200 a second for
/// 5 ms after each handshake. So 4,096 are of interest at one time only if 820,000 handshakes begin in a second, a hundred times what a
/// core can do. Each takes about 64 octets, so 512 KiB.
pub const HANDSHAKE_BUCKETS: usize = 4096;

/// HTTPS requests that wait for their answers, for all connections of a stream thread, and as many QUIC streams. Each takes about 1 KiB
/// beside its octets, so 8 MiB. Beyond it requests get status 503, and QUIC streams DOQ_INTERNAL_ERROR.
pub const REQUESTS: usize = 8192;

/// Octets of the path and query of an HTTPS request. A query of 4,096 octets has 5,462 characters of base64url, or a third more
/// if a client percent-encodes some of them.
pub const HTTPS_URI_OCTETS: usize = 8 * 1024;

/// Octets that HTTP/2 hands over at once, that a response has before its record ends, and that are encrypted before they must leave.
/// rustls keeps 64 KiB: the shortest response has 10 octets and a record adds at most 29, so these three become at most 48 KiB.
pub const HTTPS_ENCRYPTED_OCTETS: usize = 8 * 1024;

/// Octets of the header fields of an HTTPS request: [`HTTPS_URI_OCTETS`] and as much for all other fields. HTTP/2 counts them
/// decompressed, so a compression bomb ends at this size.
pub const HTTPS_HEADER_OCTETS: u32 = 16 * 1024;

/// Header fields of an HTTP/1.1 request. Browsers send about 20.
pub const HTTPS_HEADER_FIELDS: usize = 64;

/// Octets of the table by which a client compresses header fields (RFC 7541 section 4.2): the initial value, which clients expect.
pub const HTTPS_HEADER_TABLE_OCTETS: u32 = 4096;

/// Octets that a client may send ahead in one HTTP/2 stream: the largest query, and nearly the initial value of RFC 9113 section 6.9.2.
pub const HTTPS_STREAM_WINDOW_OCTETS: u32 = 65_535;

/// Octets that a client may send ahead in one HTTP/2 connection: four of the largest queries.
pub const HTTPS_CONNECTION_WINDOW_OCTETS: u32 = 256 * 1024;

/// HTTP/2 streams that the client reset before they were accepted. Beyond it the connection ends: a rapid reset
/// (CVE-2023-44487).
pub const HTTPS_PENDING_RESETS: usize = 20;

/// HTTP/2 streams that this server reset because of the client's errors. Beyond it the connection ends (CVE-2025-8671).
pub const HTTPS_LOCAL_RESETS: usize = 128;

/// Time from the end of an HTTPS connection (GOAWAY, `Connection: close`) until it is cut off: some round trips for the last answers.
pub const HTTPS_FAREWELL: Duration = Duration::from_secs(2);

/// Octets that a client may send ahead in one QUIC stream. A message that is longer arrives in several round trips.
pub const QUIC_STREAM_WINDOW_OCTETS: u32 = 16 * 1024;

/// Octets that a client may send ahead in one QUIC connection: [`OUTSTANDING`] queries of 128 octets, the padding of RFC 8467, and as
/// much again. Octets that arrive with gaps stay in the QUIC library: at worst 10,000 connections x 32 KiB = 313 MiB, and 3.1 MiB for the
/// 100 connections of one client network.
pub const QUIC_CONNECTION_WINDOW_OCTETS: u32 = 32 * 1024;

/// Handshakes that may be under way on the QUIC thread. Each takes about 30 KiB: the state of TLS, and up to 16 KiB of handshake messages,
/// so 30 MiB. Beyond it new connections are refused.
pub const QUIC_HANDSHAKES: usize = 1024;

/// Handshakes that may be under way with clients whose address is not validated. Beyond it a new client must return a token first (Retry,
/// RFC 9000 section 8.1.2), which costs it a round trip and the server no state. With [`QUIC_HANDSHAKE`], forged addresses get at most 64
/// signatures in 5 seconds beyond the handshakes that end by themselves.
pub const QUIC_UNVALIDATED: usize = 64;

/// Time for a QUIC handshake: two round trips of 600 ms, each with two retransmissions.
pub const QUIC_HANDSHAKE: Duration = Duration::from_secs(5);

/// Connection attempts that wait for the thread to look at them. Each keeps its first datagram, of at most 1,472 octets, so 376 KiB, and
/// the datagrams that follow it ([`QUIC_INCOMING_OCTETS`]).
pub const QUIC_INCOMING: usize = 256;

/// Octets of datagrams that follow the first one of a connection attempt, all attempts together at most 16 times as many: 256 KiB.
pub const QUIC_INCOMING_OCTETS: u64 = 16 * 1024;

/// Sessions that clients may resume, with 0-RTT data. Each takes about 1 KiB, so 8 MiB; the oldest one makes room. A handshake stores two.
pub const QUIC_SESSIONS: usize = 8192;

/// Queries that the client of a QUIC connection may cancel beyond those that it lets the server answer. A cancelled query costs the server
/// as much as an answered one, but takes no place among the [`OUTSTANDING`] ones: beyond it the connection ends with DOQ_EXCESSIVE_LOAD.
pub const QUIC_CANCELLATIONS: u32 = 256;

/// Time for the last packets of QUIC connections that the server closes at its end. They leave at once; only a full socket buffer delays
/// them.
pub const QUIC_FAREWELL: Duration = Duration::from_millis(100);

/// Time from the last answer of a QUIC connection until it is closed, once another process reads the sockets and acknowledgements do not
/// come here any more. Without them the QUIC library repeats the answer: with a round trip of 20 ms and a variation of 10 ms after 85 and 255 ms
/// (RFC 9002 section 6.2.1).
pub const QUIC_UNACKNOWLEDGED: Duration = Duration::from_millis(500);

/// Receive buffer of a QUIC socket: 700 first datagrams of 1,200 octets, which take 2,304 octets of it each. The kernel doubles it, and
/// limits it to net.core.rmem_max.
pub const QUIC_RECEIVE_BUFFER_OCTETS: usize = 1024 * 1024;

/// Send buffer of a QUIC socket: the answers to [`QUIC_RECEIVE_BUFFER_OCTETS`] of queries. The kernel limits it to net.core.wmem_max.
pub const QUIC_SEND_BUFFER_OCTETS: usize = 1024 * 1024;

/// Pause after an accept that failed because descriptors or memory were used up.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Send buffer in the kernel, which doubles it for its own bookkeeping. It is fixed, because otherwise the kernel would
/// enlarge it to several MiB for each slow reader.
pub const SEND_BUFFER_OCTETS: usize = 128 * 1024;

/// Receive buffer in the kernel. It is fixed, because otherwise the kernel would enlarge it too.
pub const RECEIVE_BUFFER_OCTETS: usize = 64 * 1024;

/// Time for which the kernel retransmits data to a client that does not acknowledge it, also after the close. A connection that is
/// closed as idle has no place in `tcp-connections` any more, but answers that its client has not acknowledged, at most
/// [`SEND_BUFFER_OCTETS`] doubled, stay in the kernel for this time. So with 100 connections a client network can bind 25 MiB
/// of the kernel's memory, and the same again with each further 100 that it opens after the idle timeout, as often as that
/// expires within this time: 3 times with 10 s. The kernel bounds this memory for all sockets together (net.ipv4.tcp_mem,
/// tcp_max_orphans) and resets connections beyond it. A reset at the close instead would take answers away from clients that
/// are slow and honest.
pub const USER_TIMEOUT: Duration = Duration::from_secs(30);

/// Time for which a connection may be idle once another process accepts the new ones. Shorter than `tcp-idle`, so that this process
/// ends soon; longer than the round trip of any client that goes on asking.
pub const RETIRED_IDLE: Duration = Duration::from_secs(2);

/// A network may open one more connection while it holds at most one in so many parts of what its customer may still take. With
/// 10,000 connections, 42 networks of a customer may have all of their 100: 16 x 100 < 10,000 - 2 x 4,200. All 256 networks of a
/// greedy /56 get 19 each: 16 x 19 < 10,000 - 2 x 256 x 19 = 272; then a neighbour still gets some ten.
pub const CUSTOMER_PARTS: usize = 16;

/// The limits that an operator sets. They may change while connections are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `tcp-connections`: open connections in all.
    pub connections: usize,
    /// `tcp-per-client`: open connections of one client network (IPv6 /64, IPv4 /32).
    pub per_client: usize,
    /// `client-prefix`: bits of the IPv6 prefix that one customer has. Its networks together are a customer.
    pub client_prefix: u8,
    /// `tcp-idle`: the longest time for which a connection may be idle, a message may take to arrive, and buffered answers may
    /// take to be read. It shrinks when few connections are left.
    pub idle: Duration,
    /// The longest time for which a connection waits for pending answers. Some never come: for example, the engine does not
    /// answer a repeated query. Must exceed the longest resolution.
    pub answer_wait: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 10_000,
            per_client: 100,
            client_prefix: 56,
            idle: Duration::from_secs(10),
            answer_wait: Duration::from_secs(15),
        }
    }
}

impl Limits {
    /// TLS or QUIC handshakes that a client network may begin in a second, and five times as many at once ([`HANDSHAKE_BURST`]): each of its
    /// connections anew twice a second. A NAT with thousands of clients, which has more connections than the default, needs a larger
    /// `tcp-per-client` anyway.
    pub fn handshakes_per_second(&self) -> u32 {
        u32::try_from(self.per_client).unwrap_or(u32::MAX).saturating_mul(2).clamp(2, 1_000_000)
    }

    /// The idle timeout when `connections` connections are open: the full time up to half of the limit, then linearly less, down
    /// to a tenth at the limit. RFC 7766 section 6.2.3 lets a server do so when resources are low.
    pub fn idle_at(&self, connections: usize) -> Duration {
        let half = self.connections / 2;
        let over = connections.min(self.connections).saturating_sub(half);
        let span = (self.connections - half).max(1);
        self.idle.mul_f64(1.0 - 0.9 * over as f64 / span as f64)
    }

    /// The idle timeout that clients are told when `connections` connections are open: that of [`Limits::idle_at`], and at the limit
    /// the wish that they close, because the next client takes the place of an idle one ([`DISPLACED_IDLE`]).
    //= RFC 7828 section 3.3.2: requirement 67
    pub fn idle_timeout_at(&self, connections: usize) -> IdleTimeout {
        if connections < self.connections {
            IdleTimeout::of(self.idle_at(connections))
        } else {
            IdleTimeout::CLOSE
        }
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

    //= RFC 7828 section 3.3.2: requirement 67
    #[test]
    fn clients_are_told_the_idle_time_and_at_the_limit_to_close() {
        let limits = Limits { connections: 1000, ..Limits::default() };
        let told = |connections| limits.idle_timeout_at(connections);
        assert_eq!([0, 500, 750].map(told), [100, 100, 55].map(IdleTimeout));
        assert_eq!(told(999), IdleTimeout(10), "1.018 s");
        assert_eq!([1000, 2000].map(told), [IdleTimeout::CLOSE; 2]);
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
