//! All limits of the load generator, with their arithmetic.

use datapath::limits::RECEIVE_BUFFER;
use std::time::Duration;

// Limits of an order.

/// The lowest and the highest rate, in queries per second. The period of the lowest rate, 10^10 ns, times 2^28 is 2.7
/// x 10^18 and fits 64 bits; the highest rate is far beyond what a machine can send.
pub const RATES_QPS: (f64, f64) = (0.1, 1e9);

/// The longest load including its warm-up: 7 days. In nanoseconds this is 6 x 10^14, which leaves 2 of 64 bits for a
/// slot's state. A sending thread counts queries in intervals of 10 ms for the pacing error: 60 million of 4 octets,
/// 242 MB, touched only as time goes on.
pub const DURATION: Duration = Duration::from_secs(7 * 86_400);

/// The longest measured time whose queries are counted in intervals of 1 ms: ten times as many as those of 10 ms, so 2.4 GB in 7
/// days, and 2.4 MB in 10 minutes.
pub const FINE_PACING: Duration = Duration::from_secs(600);

/// The longest timeout.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Threads of a load.
pub const THREADS: u16 = 1024;

/// Ports of one thread, over all its source addresses. Each port is a file descriptor, and 1,024 is the usual limit
/// of open files.
pub const PORTS: usize = 16_384;

/// Queries in a group. Larger groups would leave in several sends in any case.
pub const GROUP: u16 = 4096;

/// Outstanding queries in a closed loop, over all threads.
pub const OUTSTANDING: u32 = 1 << 20;

/// Records of one answer that are checked individually, one bit each: 256 octets. Over UDP fewer fit ([`UDP_SIZE`]).
pub const RECORDS: usize = 2048;

/// CNAME records before the addresses. Each makes the name 2 or 3 octets longer.
pub const CNAMES: u16 = 64;

/// Octets of the longest zone name in wire form: 255 octets (RFC 1035 section 2.3.4) less `AAA-BBB-CCC-DDD` and its
/// length octet, 16, and less the longest label of a CNAME chain, 3.
pub const ZONE_NAME: usize = 236;

// A query file.

/// Queries of a file: 2^24, 16.7 million. Each takes its question and 4 octets.
pub const LIST_QUERIES: usize = 1 << 24;

/// Octets of the questions of a file, in wire form: 2^30 are 64 for each of [`LIST_QUERIES`], and ends fit 32 bits. With
/// the ends (64 MiB) a list takes at most 1.1 GiB.
pub const LIST_OCTETS: usize = 1 << 30;

/// Octets of a line. A name of 255 octets, each written as `\DDD`, has 1,020 characters, a type 10; the rest is for
/// comments.
pub const LIST_LINE: usize = 4096;

/// Faults of a file that are reported.
pub const LIST_ERRORS: usize = 20;

/// Octets of the longest listed query: header 12, name 255, type and class 4.
pub const LIST_QUERY: usize = 12 + 255 + 4;

/// Queries whose times are recorded: 2^26, a minute at 1.1 million queries per second. Two words of 8 octets each are 1 GiB,
/// touched as time goes on: a page of 4 KiB has 512 words, so one page fault of some 0.5 us comes in 512 queries.
pub const QUERY_TIMES: u64 = 1 << 26;

// The first invalid reply of each reason.

/// Octets of a reply that are kept: as many as a reply over UDP may have ([`UDP_SIZE`]). 27 reasons take 108 KiB a thread at
/// most.
pub const SAMPLE: usize = 4096;

/// Records of such a reply that are printed.
pub const SAMPLE_RECORDS: usize = 4;

// Memory.

/// Fewest slots of a thread: queries that are due together at one moment, at any rate.
pub const MIN_SLOTS: u64 = 4096;

/// Most slots of a thread: 2^25 of 16 octets are 512 MiB; three timeouts of 1 s at 11 million queries per second.
pub const MAX_SLOTS: u64 = 1 << 25;

/// Slots of a thread in a closed loop, whose rate is unknown: 2^20 of 16 octets, 16 MiB. They must last for one
/// timeout; at a higher rate the thread waits for its oldest query.
pub const CLOSED_LOOP_SLOTS: u64 = 1 << 20;

/// Timeouts that the slots cover at the rate of the load. Later replies count as unsolicited.
pub const SLOT_TIMEOUTS: u64 = 3;

/// Number of names from which a repeated query is drawn: the newest ones whose answer is old enough. The ring holds
/// them together with the answers of two timeouts, one word each: with as many entries as slots ([`MAX_SLOTS`]) 256
/// MiB per thread.
pub const CACHED_NAMES: u64 = 1 << 16;

/// Entries of the ring in a closed loop: 2^21 of 8 octets are 16 MiB, two timeouts of 1 s at a million queries per
/// second.
pub const CLOSED_LOOP_CACHED_NAMES: u64 = 1 << 21;

/// Longest time after its answer at which a name is queried again, unless the order's TTL allows less. It is well
/// below the authority's default TTL of one hour.
pub const MAX_REQUERY_AGE: Duration = Duration::from_secs(1800);

/// The longest latency in a histogram, in nanoseconds: 2 minutes, twice [`TIMEOUT`].
pub const LATENCY_NS: u64 = 120_000_000_000;

/// Significant decimal digits of a latency. 3 digits from 1 ns to 2 minutes take 28 x 1,024 buckets of 8 octets, 224
/// KiB, of which a load uses a few.
pub const LATENCY_DIGITS: u8 = 3;

/// A UDP answer without EDNS has at most 512 octets (RFC 1035 section 4.2.1). For longer answers the query has an OPT
/// record with this size.
pub const UDP_SIZE: u16 = 4096;

// Limits of one poll of a thread.

/// Time from the order to the first query, so that all threads have started and their memory is reserved.
pub const START_DELAY: Duration = Duration::from_millis(20);

/// Queries in one poll, so that a late sender still empties its sockets: 256 x 1 us.
pub const QUERIES_PER_POLL: usize = 256;

/// Attempts to send when the kernel's queue is full, with a yield to other threads between them: some 100 us in all.
pub const SEND_TRIES: usize = 100;

/// Receives from one port in one poll: 8 x 32 datagrams.
pub const RECEIVES_PER_POLL: usize = 8;

/// ICMP errors that are read from one port in one poll. The kernel bounds their queue by the port's receive buffer.
pub const ERRORS_PER_POLL: usize = 256;

/// Octets of a datagram in an ICMP error that are read. A router quotes as much as fits 576 octets, or 1,280 in IPv6 (RFC
/// 1812 section 4.3.2.3, RFC 4443 section 3.1).
pub const QUOTED: usize = 1280;

/// Shortest sleep. If the next query is due sooner than this, the thread sleeps this long and sends all queries that
/// became due. A tenth of a 10 ms interval is 1 ms, so 50 us are invisible in the pacing error, and they save one
/// wake-up per query. A reply is seen, and its latency taken, at most that much later; to measure shorter latencies,
/// let the threads spin.
pub const MIN_SLEEP_NS: u64 = 50_000;

/// Shortest sleep with a companion, because a sleep delays each of the companion's answers.
pub const MIN_SLEEP_COMPANION_NS: u64 = 20_000;

/// In a closed loop, a thread sleeps until this part of the outstanding queries is answered. The server always has
/// the rest to do, and the latency, which is the time in which all of them are answered, grows by at most a quarter.
/// Arming a timer is the largest cost besides the messages, above all in a virtual machine.
pub const CLOSED_LOOP_PAUSE_PART: u64 = 4;

/// The longest such sleep, so that little time is lost with a server that is slow because it waits, not because it is
/// busy.
pub const MAX_PAUSE_NS: u64 = 300_000;

/// The longest wait: the time within which a thread sees that it must stop, and the precision with which it detects a
/// stall.
pub const MAX_WAIT_NS: u64 = 10_000_000;

/// Waiting time for duplicates after every reply has come.
pub const DUPLICATE_WAIT: Duration = Duration::from_millis(50);

/// Extra time after the timeout before a place in a closed loop is free: a receiving thread may just be taking a
/// timestamp.
pub const TIMEOUT_GRACE_NS: u64 = 10_000_000;

/// Interval of progress reports.
pub const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

// Tester faults that make the result say nothing about the server.

/// A larger relative deviation of the number of queries in one second means that the load was not as ordered. RFC
/// 8219 gives no limit; 5 % fits the precision of a search. A difference of one query is always accepted.
pub const MAX_DEVIATION: f64 = 0.05;

/// A query sent later than this makes a burst of the queries after it: at 100,000 per second 10,000 queries, as many
/// as a receive buffer holds. A thread that stalls for this long has the same effect: replies of that time may seem
/// late.
pub const MAX_LAG: Duration = Duration::from_millis(100);

/// Replies that came while a thread stalled for more than this part of a timeout may seem late, too, if that is
/// shorter than [`MAX_LAG`]: three quarters of the timeout are left to the server.
pub const STALL_TIMEOUT_PART: u32 = 4;

/// Share of the time for which the threads of a closed loop may work if they encrypt. Above it the rate is that of the tester.
pub const MAX_BUSY: f64 = 0.95;

/// Rate of a warm-up that fills a cache, in queries per second: 3,000 names in three seconds, which every server
/// resolves easily and every cache holds.
pub const PRIMING_QPS: f64 = 1000.0;

/// Messages that one dropped packet may have held: the most that the kernel combines (UDP_MAX_SEGMENTS, and
/// UDP_GRO_CNT_MAX for received packets).
pub const PACKET_MESSAGES: u64 = 64;

// Loads over TCP.

/// Connections that a thread keeps open, over all its source addresses. Few are needed: each carries many queries.
pub const LINES: usize = 1024;

/// Connections that a thread may have open at a time, as far as the limit of open files allows it. Each takes one descriptor
/// and less than 1 KiB here: 64 MiB. With a connection for each query, rate times round-trip times are open while the server
/// answers (10,000 queries per second and 5 ms: some 100), and rate times timeout if it does not: 10,000.
pub const CONNECTIONS: usize = 1 << 16;

/// Descriptors that the process needs for other things: standard streams, epoll instances, files of results.
pub const OTHER_FILES: u64 = 64;

/// The usual soft limit of open files, if it cannot be raised.
pub const USUAL_FILES: u64 = 1024;

/// EMFILE, as the kernel would say it: all descriptors of a thread are in use.
pub const TOO_MANY_FILES: i32 = 24;

/// EADDRNOTAVAIL: no local port is free.
pub const NO_FREE_PORT: i32 = 99;

/// EPERM: a firewall of this host refuses the packet.
pub const REFUSED_BY_POLICY: i32 = 1;

/// ENOBUFS: the queue of the interface is full.
pub const QUEUE_FULL: i32 = 105;

/// ENETUNREACH: no route to the network of the server.
pub const NO_NETWORK: i32 = 101;

/// EHOSTUNREACH: no route to the server.
pub const NO_ROUTE: i32 = 113;

/// Local ports that are tried for one connection: other programs use some of them. A failed try costs some 3 us.
pub const PORT_TRIES: usize = 64;

/// Octets of queries that wait to be written on one connection: 1,000 queries of 64 octets, besides those in the kernel's buffer.
pub const STREAM_BUFFER: usize = 64 << 10;

/// Octets of one read: one message of the largest size.
pub const STREAM_READ: usize = 64 << 10;

/// Queries in one poll over TCP: opening a connection takes some 30 us, so 16 take 0.5 ms, in which no reply is read.
pub const STREAM_QUERIES_PER_POLL: usize = 16;

/// Timeouts for which a connection with a single query is kept, so that a late reply is seen. If descriptors are short, it is
/// kept for one.
pub const LATE_TIMEOUTS: u64 = 2;

/// Longest wait for the server to close its side of the last connections. It needs one round-trip time.
pub const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// Tickets of TLS sessions that a thread keeps. Servers send two or more for a connection, and each is used once. A ticket and
/// its session take some 3 KiB with the certificate: 12 MiB.
pub const TICKETS: usize = 4096;

/// Octets of decrypted data that are read at a time: four records of the largest size (RFC 8446 section 5.1).
pub const PLAIN_READ: usize = 64 << 10;

/// Octets of an answer over TCP (RFC 1035 section 4.2.2).
pub const TCP_SIZE: usize = 65_535;

// Loads over HTTPS and QUIC.

/// Queries that wait for the handshake of one connection: as many as [`STREAM_BUFFER`] holds over TCP.
pub const WAITING_QUERIES: usize = 1000;

/// News of connections and queries that are entered before the next queries leave. Each takes 1 us or less: 0.3 ms.
pub const EVENTS_PER_POLL: usize = 256;

/// Octets that the server may send ahead on a stream of HTTP/2, and on a connection: one message of the largest size, and 256 of them.
/// The windows are never the limit of a load whose answers have the usual 100 octets.
pub const STREAM_WINDOW: u32 = 1 << 16;
/// See [`STREAM_WINDOW`].
pub const CONNECTION_WINDOW: u32 = 1 << 24;

/// Octets of the receive buffer of a port of QUIC: 1,000 datagrams of 1,200 octets and the kernel's own share.
pub const QUIC_BUFFER: usize = 4 << 20;

// Sockets.

/// Receive and send buffer of each source port of a load, in octets: that of a listening socket. It holds 15,000 small replies,
/// so a tester that was held up for 100 ms at 100,000 a second loses none. Only waiting datagrams take memory.
pub const TESTER_BUFFER: i32 = RECEIVE_BUFFER;

/// Datagrams in one receive of a tester.
pub const TESTER_BATCH: usize = 32;

/// Octets for one datagram of a tester: the largest possible one, because the kernel may put many replies together (UDP
/// GRO), and a cache line more, so that the beginnings spread over all sets of the processor's caches. 32 of them are
/// 2 MiB, of which only written pages are ever resident.
pub const TESTER_STRIDE: usize = (64 << 10) + 64;

/// Ports that one wait of a tester may report. The next wait reports the others.
pub const TESTER_EVENTS: usize = 64;

/// Connections that one wait of a tester may report: 3 KiB of events.
pub const CONNECTION_EVENTS: usize = 256;
