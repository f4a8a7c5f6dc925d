//! Bounds of the processes of devices.

use std::time::Duration;

/// Octets kept of a device's standard output and standard error.
pub const LOG_OCTETS: usize = 64 << 10;

/// Time for an agent to end; its devices get [`KILL_GRACE`] of it.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// Time between SIGTERM and SIGKILL for devices whose agent ends in order.
pub const KILL_GRACE: Duration = Duration::from_secs(2);

/// Interval at which ended processes are polled for.
pub const POLL_INTERVAL: Duration = Duration::from_millis(10);
