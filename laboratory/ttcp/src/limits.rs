//! Limits of the stack, with their arithmetic.

use core::time::Duration;

/// Octets in either direction that a connection holds: the largest window without scaling, and more than a DNS message over TCP
/// (65,535 octets and 2 of length) needs at once.
pub const WINDOW: usize = 65_535;

/// Octets that a caller may have queued for sending on one connection: two DNS messages of the largest size.
pub const SEND_QUEUE: usize = 2 * (65_535 + 2);

/// Pieces out of order that one connection holds: a window of segments of 536 octets, each second one missing.
pub const PIECES: usize = 64;

/// Window of a peer that has not said one yet, for data with the SYN (RFC 1644 section 3.6; FreeBSD's `TTCP_CLIENT_SND_WND`).
pub const FIRST_WINDOW: usize = 4096;

/// Segment size of a peer that has not said one (RFC 9293 section 3.7.1).
pub const DEFAULT_MSS: u16 = 536;

/// Segments in flight at the start of a connection (RFC 6928).
pub const FIRST_SEGMENTS: usize = 10;

/// Wait for data to acknowledge with (RFC 9293 section 3.8.6.3: less than 0.5 s).
pub const ACK_DELAY: Duration = Duration::from_millis(200);

/// Retransmissions until a connection is given up. 12, as FreeBSD has it: with a first timer of 1 s and a longest of 64 s it
/// takes about 9 minutes.
pub const RETRANSMISSIONS: u32 = 12;

/// Longest retransmission timer (RFC 6298 section 2.4: at least 60 s).
pub const LONGEST_RTO: Duration = Duration::from_secs(64);

/// Time without a segment after which a connection is given up, so that a peer that died leaves no block behind: 15 minutes,
/// longer than all retransmissions of a peer that lives, about 9 minutes.
pub const IDLE: Duration = Duration::from_secs(900);

/// Packets that wait to be fetched from a stack: beyond, they are lost, as on an interface with a full queue.
pub const PACKETS_WAITING: usize = 65_536;

/// Events that wait to be fetched. A caller fetches after each call; more than this means that it does not.
pub const EVENTS_WAITING: usize = 1 << 20;
