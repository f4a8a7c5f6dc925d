//! Limits of DNS over T/TCP between namespaces, with their arithmetic.

use std::time::Duration;

/// Questions that wait for the server: a quarter of the connections that the relay holds. The message IDs suffice for 65,536.
pub const PENDING: usize = 1000;

/// Questions over TCP at the same time, each with a thread.
pub const TCP_PENDING: usize = 16;

/// Wait for the server's answer: that of a stub resolver.
pub const UPSTREAM_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest sleep of the relay, so that it sees its end soon.
pub const RELAY_SLEEP: Duration = Duration::from_millis(50);

/// Sleep of the relay while a question waits over TCP, whose end wakes nobody.
pub const TCP_SLEEP: Duration = Duration::from_millis(1);

/// Largest message of the server.
pub const MESSAGE: usize = 65_535;
