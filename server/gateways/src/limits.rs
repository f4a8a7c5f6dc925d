//! Bounds of the probes, and of the discovery of prefixes.

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

/// Prefixes of one source that are used: a network has one or two. All sources together have no more than the configuration may name.
pub const PREFIXES: usize = 8;

/// Announcements that are kept of one interface: each router's prefixes count apart.
pub const ANNOUNCEMENTS: usize = 4 * PREFIXES;

/// AAAA records of an answer that are looked at: two for each prefix, and others that may be among them.
pub const RECORDS: usize = 64;

/// PREF64 options of one router advertisement that are read.
pub const OPTIONS: usize = 16;

/// Sources of prefixes.
pub const SOURCES: usize = 8;

/// Longest TTL that is believed: a day, as in the cache. A prefix that was told once by mistake would otherwise stay for years.
pub const LONGEST_TTL_SECS: u32 = 86_400;

/// Time before the end of a TTL at which the upstreams are asked again; half of the TTL if that is later.
pub const LEAD: Span = Span::from_secs(10);

/// Shortest time between two questions to the upstreams, whatever the TTLs are.
pub const SHORTEST_PAUSE: Span = Span::from_secs(1);

/// Longest time between two questions that fail. It begins with the shortest and doubles.
pub const LONGEST_RETRY: Span = Span::from_secs(60);

/// Longest time until the upstreams are asked again after they have told of no prefix.
pub const LONGEST_NEGATIVE: Span = Span::from_secs(300);

/// Time after which a question is given up that the engine does not answer: all tries of a question take less.
pub const QUESTION_TIMEOUT: Span = Span::from_secs(120);

/// Time for which a prefix is used on after its TTL, while the upstreams cannot be asked.
pub const OVERTIME: Span = Span::from_secs(3600);

/// Shortest and longest TTL with which clients learn of discovered prefixes, in seconds.
pub const ADVERTISED_TTL_SECS: std::ops::RangeInclusive<u32> = 60..=3600;

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
