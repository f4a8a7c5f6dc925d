//! Limits of the log.

use std::time::Duration;

/// Records in the queue. The server writes some lines a second at most, so 1,024 are minutes of a target that hangs.
pub const QUEUE_RECORDS: usize = 1024;

/// Octets of text in the queue: 4 MiB are 16 of the longest messages.
pub const QUEUE_OCTETS: usize = 4 << 20;

/// Octets of one message; the rest is cut off. A configuration with a thousand errors of 250 octets fits.
pub const MESSAGE_OCTETS: usize = 256 << 10;

/// Octets of one message to a syslog daemon: the default of rsyslog (`$MaxMessageSize`). RFC 5424 section 6.1 wants receivers to
/// take 2,048.
pub const SYSLOG_OCTETS: usize = 8192;

/// Lines with equal text in each [`REPEAT_INTERVAL`] that are written; more are held back.
pub const REPEATS: u32 = 20;

/// Time for which equal lines are counted.
pub const REPEAT_INTERVAL: Duration = Duration::from_secs(30);

/// Texts that are counted at a time. A new text takes the place of the oldest one.
pub const REPEAT_TEXTS: usize = 256;

/// Octets of a text in the line that says how often it was repeated.
pub const REPEATED_TEXT_OCTETS: usize = 512;

/// Time after which a target that refused a line gets it again.
pub const RETRY: Duration = Duration::from_millis(500);

/// Time for which one write to a target may hang before the writer looks at the queue again, for a change of the target or the end.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// Time that the end of the process waits for the log.
pub const END: Duration = Duration::from_secs(2);
