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

/// Starts of a server at a port that this program chooses. A port is taken before the server has it once in some thousand starts beside
/// other tests, so not four times in a row.
pub const STARTS: u32 = 4;
