//! Every bound of the authority, with the arithmetic.

use std::time::Duration;

/// Addresses of one name. 2,000 AAAA records of 28 octets behind header, question and OPT record:
/// 12 + 259 + 56,000 + 11 = 56,282 octets, which fits a stream.
pub const ADDRESSES: u16 = 2000;

/// The longest zone name in wire form: 255 octets (RFC 1035 section 2.3.4) less the longest label of an address
/// with its length octet, 16.
pub const ZONE_NAME: usize = 239;

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

/// Octets asked for as receive buffer of a UDP socket; the kernel may grant less. At 700 octets that it accounts for a
/// small datagram, 4 MiB are 6,000 questions: 12 ms at 500,000 per second.
pub const RECEIVE_BUFFER: usize = 4 << 20;

/// Tries to find a port that is free for both UDP and TCP, when asked for port 0.
pub const PORT_TRIES: usize = 32;
