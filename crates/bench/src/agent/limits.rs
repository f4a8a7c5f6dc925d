//! Bounds of agents and of those who talk to them.

use std::time::Duration;

/// Octets of a line. The longest is an outcome: 3 histograms of at most 40,000 buckets of two numbers, 40 octets each, are
/// 5 MB, and an hour of seconds is 200 kB.
pub const LINE_OCTETS: u64 = 16 << 20;

/// Replies that wait to be read.
pub const QUEUED_REPLIES: usize = 64;

/// Octets kept of what an agent writes to standard error.
pub const STDERR_TAIL_OCTETS: usize = 4096;

/// Characters quoted of a reply that is none.
pub const QUOTED_CHARACTERS: usize = 200;

/// Devices that an agent has at the same time: one is measured; some more for whoever starts several.
pub const DEVICES: usize = 16;

/// Time to greet: a connection over ssh, perhaps with a passphrase that somebody types.
pub const GREETING_TIMEOUT: Duration = Duration::from_secs(60);

/// Time for an order that takes no time by itself: a host under full load, on a slow connection.
pub const ORDER_TIMEOUT: Duration = Duration::from_secs(30);

/// Time for the facts of a host: a few commands, 5 s each at most.
pub const ENVIRONMENT_TIMEOUT: Duration = Duration::from_secs(60);

/// Time to start a device: its version is asked first, which may take 10 s.
pub const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Time beyond its length for a load to begin and to be summed up.
pub const LOAD_GRACE: Duration = Duration::from_secs(60);

/// Time for an agent that has closed its standard output to say why on standard error.
pub const STDERR_WAIT: Duration = Duration::from_secs(2);
