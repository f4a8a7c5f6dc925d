//! Bounds of the experiment.

use std::time::Duration;

/// Questions of the attacker a second: what one client may ask for, and ten times as many.
pub const ATTACK_RATES: [f64; 2] = [50.0, 500.0];

/// Questions a second for cached names, by all honest clients together. In ten seconds 2,000, of which 20 are beyond the 99th percentile.
pub const CACHED_RATE: f64 = 200.0;

/// Questions a second for new names, of each of the two zones: 1,000 in ten seconds.
pub const NEW_RATE: f64 = 100.0;

/// Names that are cached. They have a TTL of an hour.
pub const CACHED_NAMES: u64 = 100;

/// Networks of honest clients, each with one address.
pub const OTHERS: u16 = 20;

/// Addresses of the network that attacks.
pub const ATTACKERS: usize = 4;

/// Time within which an answer counts: a stub resolver asks again or gives up after that.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Octets of the longest answer: without EDNS 512 (RFC 1035 section 4.2.1).
pub const ANSWER: usize = 4096;

/// Time for a device to give its first right answer, and the time between two looks at the sockets.
pub const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// See [`READY_TIMEOUT`].
pub const READY_INTERVAL: Duration = Duration::from_millis(50);
