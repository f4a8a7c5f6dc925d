//! Limits of the experiments.

use std::time::Duration;

/// Time limit of a query of the functional tests. A server with a good upstream on the loopback interface answers within
/// milliseconds; BIND repeats a query upstream after 1.2 s.
pub const REPLY_TIMEOUT: Duration = Duration::from_millis(2500);

/// Interval at which threads look if they should stop.
pub const POLL: Duration = Duration::from_millis(20);

/// Delay of a true reply after a forged one, so that a device that takes the forged one has seen it first.
pub const FORGED_LEAD: Duration = Duration::from_millis(30);

/// Entries in the log of upstream queries: more than all tests of a device cause, repetitions included.
pub const UPSTREAM_QUERIES: usize = 10_000;

/// Time limit of the closed loop of a device in the short version.
pub const SPEED_QUICK: Duration = Duration::from_millis(2500);

/// Time limit of the closed loop of a device in the whole version: the paper's slowest device took 31 s for its 65,536 queries.
pub const SPEED: Duration = Duration::from_secs(120);

/// Attempts to find a port that is free for UDP and TCP.
pub const PORT_TRIES: u32 = 32;
