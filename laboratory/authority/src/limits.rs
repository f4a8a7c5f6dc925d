//! All limits of the authority, with their arithmetic.

use std::time::Duration;

/// Addresses of one name. 2,000 AAAA records of 28 octets after header, question, CNAME and OPT records: 12 + 259 +
/// 64 x 17 + 56,000 + 11 = 57,370 octets, which fits a TCP message.
pub const ADDRESSES: u16 = 2000;

/// CNAME records before the addresses. This is more than resolvers follow, so a test can reach their limits. Two
/// digits number the records, and a compression pointer reaches the last one: 12 + 259 + 64 x 17 is below 2^14.
pub const CNAME_DEPTH: u8 = 64;

/// Octets of the longest zone name in wire form: 255 octets (RFC 1035 section 2.3.4) less the longest address label
/// and a number of two digits, both with their length octets: 16 + 3.
pub const ZONE_NAME: usize = 236;

/// The largest TTL (RFC 2181 section 8).
pub const TTL_SECS: u32 = 0x7fff_ffff;

/// The largest UDP message that [`Server`](crate::Server) sends, and the size that its OPT records advertise.
pub const UDP_SIZE: usize = 4096;

/// The largest message over TCP. No UDP datagram can have this size (IPv6 allows 65,487 octets, IPv4 65,507), so this
/// value as a size limit also means that the message goes over TCP.
pub const STREAM: usize = 65_535;

/// TCP connections of one listener. Each has a thread and 64 KiB + 128 KiB of buffers: 24 MiB in all. A further
/// connection waits for [`PLACE_WAIT`] and is then closed.
pub const CONNECTIONS: usize = 128;

/// Longest time that a further connection waits for the end of another one. Connections with one query end within
/// milliseconds, on a busy machine within tens of them.
pub const PLACE_WAIT: Duration = Duration::from_millis(100);

/// Interval at which it looks for that end.
pub const PLACE_POLL: Duration = Duration::from_millis(1);

/// TCP connections that the kernel keeps until they are accepted (listen(2)): 0.8 s at 5,000 connections per second. It lowers
/// the number to net.core.somaxconn, 4,096 by default. If the queue is full, it drops SYNs, and clients repeat them after 1 s.
pub const BACKLOG: i32 = 4096;

/// Longest time of a TCP connection without a complete query.
pub const IDLE: Duration = Duration::from_secs(10);

/// Longest time that a client may leave its answers unread over TCP, and so the longest time that stopping can take.
pub const WRITE: Duration = Duration::from_secs(2);

/// Interval at which a waiting thread checks the stop flag.
pub const POLL: Duration = Duration::from_millis(100);

/// Attempts to find a port that is free for both UDP and TCP, for port 0.
pub const PORT_TRIES: usize = 32;

/// UDP threads.
pub const THREADS: usize = 256;

/// Failures that can be configured: each of the six for five types.
pub const FAILURES: usize = 30;

/// The longest delay of an answer: far beyond any resolver's timeout.
pub const DELAY: Duration = Duration::from_secs(60);

/// Delayed queries per thread: 65,536 last 0.65 s at 100,000 queries per second. Each takes 384 octets (client,
/// length, query), with its due time and its free-list entry: 65,536 x (384 + 16 + 4) = 25 MiB of address space when
/// answers are delayed. Only as much is touched as queries ever waited at one time.
pub const DELAYED: usize = 65_536;

/// Octets of the longest query that can be delayed: the longest name with an OPT record has 12 + 255 + 4 + 11 = 282;
/// 38 are left for options.
pub const DELAYED_QUERY: usize = 320;

/// Octets of a master file that are read at a time, and so the longest entry.
pub const ENTRY: usize = 1 << 20;

/// Faults of a master file that are reported.
pub const ZONE_ERRORS: usize = 20;

/// CNAME records that an answer from a master file follows: more than servers usually follow. A CNAME loop ends here.
pub const CHAIN: usize = 16;

// The responder.

/// Buffers of one receive of a responder. Each has [`RESPONDER_BUFFER`] octets of address space, 2.1 MiB in all. Plain
/// datagrams touch a page or two of each: 32 x 8 KiB = 256 KiB.
pub const RESPONDER_SLOTS: usize = 32;

/// Octets of one buffer: datagrams that the kernel hands over as one (GRO) can have 65,535.
pub const RESPONDER_BUFFER: usize = 65_535;

/// Receives from one socket in a turn: 8 x 32 datagrams fill the response queue once.
pub const RESPONDER_RECEIVES: usize = 8;

/// Answers of a socket that wait to leave together. The more there are, the more of them go to the same client and leave in
/// one GSO send. A slot has eight bits in the keys by which they are sorted.
pub const RESPONDER_ANSWERS: usize = 256;
