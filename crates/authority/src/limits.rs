//! Every bound of the authority, with the arithmetic.

use std::time::Duration;

/// Addresses of one name. 2,000 AAAA records of 28 octets behind header, question, CNAME and OPT records:
/// 12 + 259 + 64 x 17 + 56,000 + 11 = 57,370 octets, which fits a stream.
pub const ADDRESSES: u16 = 2000;

/// CNAME records before the addresses: more than resolvers are willing to follow, so that their bounds can be tested. Two
/// digits number them, and pointers reach the last of them: 12 + 259 + 64 x 17 is below 2^14.
pub const CNAME_DEPTH: u8 = 64;

/// The longest zone name in wire form: 255 octets (RFC 1035 section 2.3.4) less the longest label of an address and
/// a number of two digits, both with their length octets: 16 + 3.
pub const ZONE_NAME: usize = 236;

/// The largest TTL (RFC 2181 section 8).
pub const TTL_SECS: u32 = 0x7fff_ffff;

/// The largest message over UDP that [`Server`](crate::Server) sends, and the size that its OPT records announce.
pub const UDP_SIZE: usize = 4096;

/// The largest message over a stream. No datagram can have this size (IPv6 leaves it 65,487 octets, IPv4 65,507), so
/// as a limit it also says that the message goes over a stream.
pub const STREAM: usize = 65_535;

/// TCP connections of one listener; each has a thread and 64 KiB + 128 KiB of buffers: 24 MiB in all. A connection
/// more is closed at once.
pub const CONNECTIONS: usize = 128;

/// How long a TCP connection may go without completing a question.
pub const IDLE: Duration = Duration::from_secs(10);

/// How long a client may refuse to take an answer over TCP, and so the longest that stopping can take.
pub const WRITE: Duration = Duration::from_secs(2);

/// How often a waiting thread looks whether it shall stop.
pub const POLL: Duration = Duration::from_millis(100);

/// Tries to find a port that is free for both UDP and TCP, when asked for port 0.
pub const PORT_TRIES: usize = 32;

/// Threads for datagrams.
pub const THREADS: usize = 256;

/// Failures that can be asked for: each of the six for five types.
pub const FAILURES: usize = 30;

/// The longest delay of an answer: far beyond any timeout of a resolver.
pub const DELAY: Duration = Duration::from_secs(60);

/// Queries that wait for their time, per thread: 65,536 last 0.65 s at 100,000 a second. Of 384 octets each (client, length,
/// query), with their times and their free places: 65,536 x (384 + 16 + 4) = 25 MiB of address space when answers are
/// delayed, touched as far as queries ever waited at a time.
pub const DELAYED: usize = 65_536;

/// Octets of a query that can wait: the longest name with an OPT record has 12 + 255 + 4 + 11 = 282; 38 are left for
/// options.
pub const DELAYED_QUERY: usize = 320;

/// Octets of a master file that are read at a time, and the longest entry in it.
pub const ENTRY: usize = 1 << 20;

/// CNAME records that an answer from a master file follows: more than servers usually do; a loop ends here.
pub const CHAIN: usize = 16;
