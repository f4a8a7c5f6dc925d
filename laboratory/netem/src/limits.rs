//! Limits of a link, with their arithmetic.

use core::time::Duration;

/// Octets that may be under way in one direction. 64 MiB hold one second of a line of 500 Mbit/s, and the kernel's largest
/// send buffers of some thousand connections. Packets beyond are lost and counted.
pub const OCTETS_UNDER_WAY: usize = 64 << 20;

/// Packets that may be under way in one direction: 64 MiB of packets of 64 octets. Memory per packet is about 100 octets
/// besides its content.
pub const PACKETS_UNDER_WAY: usize = 1 << 20;

/// Time for which a reordered packet waits for one to overtake it. Longer than the gap between two packets of any load that is
/// worth reordering (5 ms: 200 packets a second), and shorter than any retransmission timer.
pub const OVERTAKING: Duration = Duration::from_millis(5);

/// Longest one-way delay: a minute. TCP's and DNS's own patience ends before.
pub const DELAY: Duration = Duration::from_secs(60);

/// Queue before the line where none is configured: 256 KiB, about 170 packets of 1500 octets, as home routers have.
pub const QUEUE_OCTETS: usize = 256 << 10;

/// Smallest MTU: IPv4's minimum (RFC 791 section 3.2). IPv6 needs 1280 (RFC 8200 section 5), which the caller checks where
/// the link carries IPv6.
pub const SMALLEST_MTU: usize = 68;

/// Largest MTU: the largest IP packet.
pub const LARGEST_MTU: usize = 65_535;

/// Unused packet buffers that are kept for the next packets: 4096 buffers of 1500 octets are 6 MiB.
pub const SPARE_BUFFERS: usize = 4096;
