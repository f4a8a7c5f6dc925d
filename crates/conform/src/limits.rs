//! Bounds of time and number. All waits end: a server that hangs costs time, never the run.

use std::time::Duration;

/// A server that has not said that it is ready by then has failed. Start-up is some 50 ms; a machine whose cores
/// are busy with other tests needs a wide margin.
pub const START: Duration = Duration::from_secs(20);

/// Starts of one server: a port that was free a moment ago may be taken when the server binds it.
pub const STARTS: usize = 4;

/// A running server that answers nothing for so long is gone.
pub const ALIVE: Duration = Duration::from_secs(5);

/// `sixfold check` reads a file and ends.
pub const CHECK: Duration = Duration::from_secs(20);

/// How long an answer is waited for when the case names no time.
pub const ANSWER: Duration = Duration::from_secs(10);

/// The same for raw octets, where silence is the usual answer.
pub const RAW_ANSWER: Duration = Duration::from_millis(600);

/// Questions that the server still sends after its answer are seen when they come within this time.
pub const AFTERWARDS: Duration = Duration::from_millis(50);

/// Between SIGHUP and the next question. A server is not obliged to have finished (`retry_ms` is for that); this
/// only makes it probable that a reload which breaks something is noticed.
pub const RELOAD: Duration = Duration::from_millis(200);

/// Between two askings of a question with `retry_ms`.
pub const RETRY: Duration = Duration::from_millis(100);

/// Between the forged replies, and between the last of them and the right one.
pub const FORGERY: Duration = Duration::from_millis(5);

/// How often the threads of the upstream look whether they should end.
pub const POLL: Duration = Duration::from_millis(20);

/// Connections to one upstream at a time; a server needs a few.
pub const CONNECTIONS: usize = 64;

/// Replies that wait for their time at one upstream socket; a case asks a few questions.
pub const WAITING: usize = 1024;

/// Questions that one step remembers. A server that repeats itself without end must not fill the memory.
pub const SEEN: usize = 10_000;

/// Octets of a server's standard error that are kept for the report: its last words.
pub const OUTPUT: usize = 8 * 1024;
