//! Bounds of the probes.

use engine::Span;

/// Gateways that are probed. A large network has some tens of them.
pub const GATEWAYS: usize = 64;

/// Probes of one gateway. All of a round are sent together, so at most 64 x 8 = 512 wait at a time.
pub const PROBES: usize = 8;

/// Share of the interval by which a probe may come early, as a divisor: a tenth. It keeps the probes of many servers and gateways apart. No
/// probe comes late, so that the time in which a death is found has a bound.
pub const JITTER: u64 = 10;

/// Interval of the steps in which client networks leave a prefix that drains over time. In 10 minutes each step moves one network of 600.
pub const DRAIN_STEP: Span = Span::from_secs(1);

/// Addresses of real AAAA records that are tried at a time, each with at most two sockets: 1,024 of them. A thousand addresses that are silent
/// for 2 s then take 4 s.
pub const TRIALS: usize = 512;

/// Trials that start in a second. With two connections each, and a SYN that is sent twice, these are 8,000 packets of 80 octets: 5 Mbit/s at the
/// most, whatever names clients ask for.
pub const TRIALS_PER_SECOND: u64 = 2_000;

/// Addresses that wait for their trial: those of 8 s. Beyond, one is dropped, and its name gets its real addresses.
pub const WAITING: usize = 16_384;

/// Addresses with verdicts: 2 MiB of 32 octets each, which all workers share. Those tried longest ago make room.
pub const VERDICTS: usize = 65_536;

/// Time until an address that has not answered is dead. Linux sends a second SYN after 1 s (RFC 6298 section 2.1), so one lost packet is no
/// death, and an answer to the second one has another second.
pub const TRIAL: Span = Span::from_secs(2);

/// Head start of the first port. A web server is found with one connection, unless its round trip is longer; the other port has time for a second
/// SYN, too.
pub const HEAD_START: Span = Span::from_millis(250);

/// Shortest time between two reports of dead addresses.
pub const REPORTS: Span = Span::from_secs(60);
