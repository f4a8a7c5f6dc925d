//! Timeouts and maximum numbers. Every wait ends: a server that hangs costs time, but never stops the run.

use std::time::Duration;

/// Longest start of a server; one that has not reported readiness by then has failed. Start-up takes some 50 ms; a machine whose
/// cores are busy with other tests needs a wide margin.
pub const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Attempts to start one server: a port that was free a moment ago may be taken when the server binds it.
pub const MAX_STARTS: usize = 4;

/// A running server that answers no probe for this long is treated as gone.
pub const RUNNING_SERVER_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest run of a command that does little: `sixfold check`, which reads a file and ends, or a cache flush.
pub const CHECK_TIMEOUT: Duration = Duration::from_secs(20);

/// Time to wait for an answer if the case names none.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Time to wait for an answer to raw octets if the case names none: silence is the usual answer to them.
pub const RAW_ANSWER_TIMEOUT: Duration = Duration::from_millis(600);

/// Time after an answer during which further queries of the server to the upstream still count for the step.
pub const LATE_QUERY_WAIT: Duration = Duration::from_millis(50);

/// Time between SIGHUP and the next query. A server need not have finished by then (`retry_ms` is for that); this only makes it
/// probable that a reload which breaks something is noticed.
pub const RELOAD_WAIT: Duration = Duration::from_millis(200);

/// Time between two attempts of a query with `retry_ms`.
pub const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Time between two forged replies, and between the last of them and the genuine one.
pub const FORGERY_INTERVAL: Duration = Duration::from_millis(5);

/// Interval at which the threads of the upstream check whether they should end.
pub const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Connections to one upstream at a time; a server needs a few.
pub const MAX_CONNECTIONS: usize = 64;

/// Delayed replies of one upstream socket; a case asks a few questions.
pub const MAX_SCHEDULED_REPLIES: usize = 1024;

/// Queries that one step records. A server that repeats queries without end must not fill the memory.
pub const MAX_RECEIVED_QUERIES: usize = 10_000;

/// Octets at the end of a server's output that are kept for the report.
pub const MAX_OUTPUT_OCTETS: usize = 8 * 1024;
