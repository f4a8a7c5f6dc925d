//! Bounds of agents and their clients.

use std::time::Duration;

/// Octets of a line. The longest line is an outcome: 3 histograms of at most 40,000 buckets of two numbers, 40 octets
/// each, are 5 MB, and an hour of seconds is 200 kB.
pub const LINE_OCTETS: u64 = 16 << 20;

/// Replies that wait to be read.
pub const QUEUED_REPLIES: usize = 64;

/// Octets kept of an agent's standard error.
pub const STDERR_TAIL_OCTETS: usize = 4096;

/// Characters quoted of an unexpected reply.
pub const QUOTED_CHARACTERS: usize = 200;

/// Devices that an agent has at the same time: one is measured; the others are for users who start several.
pub const DEVICES: usize = 16;

/// Time for the greeting: a connection over ssh, perhaps with a passphrase that a person types.
pub const GREETING_TIMEOUT: Duration = Duration::from_secs(60);

/// Time for an order that needs no time by itself: the host may be under full load, and the connection slow.
pub const ORDER_TIMEOUT: Duration = Duration::from_secs(30);

/// Time to read the facts of a host: a few commands, at most 5 s each.
pub const ENVIRONMENT_TIMEOUT: Duration = Duration::from_secs(60);

/// Time to start a device: the program reports its version first, which may take 10 s.
pub const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Time beyond the duration of a load for its start and its summary.
pub const LOAD_GRACE: Duration = Duration::from_secs(60);

/// Time for an agent that has closed its standard output to write the cause to standard error.
pub const STDERR_WAIT: Duration = Duration::from_secs(2);
