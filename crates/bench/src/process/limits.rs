//! Bounds of the processes of devices.

use std::time::Duration;

/// Octets kept of what a device writes to standard output and error.
pub const LOG_OCTETS: usize = 64 << 10;

/// Time for an agent to end: its devices get [`KILL_GRACE`].
pub const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// Time that devices get between SIGTERM and SIGKILL when an agent ends in order.
pub const KILL_GRACE: Duration = Duration::from_secs(2);

/// Time between two looks at whether processes are gone.
pub const POLL_INTERVAL: Duration = Duration::from_millis(10);
