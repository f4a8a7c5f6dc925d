//! Sizes, times and bounds of the experiment on authoritative servers, with their arithmetic.

use std::time::Duration;

/// Zone size of the short version, as a power of two. 2^14 names last for 0.3 s at 54,613 queries per second.
pub const QUICK_ZONE_BITS: u32 = 14;

/// Zone sizes below the largest one in the whole version: 4 and 16 times smaller. Three sizes show if growth is linear.
pub const ZONE_STEPS_BITS: [u32; 3] = [4, 2, 0];

/// Rate of the trial of the short version, which searches no rate, in queries per second.
pub const QUICK_RATE_QPS: f64 = 2_000.0;

/// Largest zone: 2^24 names, a file of 1.3 GB.
pub const ZONE_BITS_MAX: u32 = 24;

/// Smallest large zone of the whole version.
pub const ZONE_BITS_MIN: u32 = 16;

/// Octets of memory that the most demanding server is taken to need for a name with two records, peaks while it loads
/// included, so that a zone fits the memory of the machine. The largest measured value after loading is below 700.
pub const OCTETS_PER_NAME: u64 = 1_400;

/// Rate for which the names of a trial must last, in queries per second: several times that of one core.
pub const CEILING_QPS: f64 = 1_000_000.0;

/// Names of the paper's zone (a /5 network), for extrapolation.
pub const PAPER_NAMES: f64 = 134_217_728.0;

/// Length of a trial: short version.
pub const QUICK_TRIAL: Duration = Duration::from_millis(300);

/// Length of a trial: whole version. `--duration 60s` gives the paper's and RFC 8219's.
pub const TRIAL: Duration = Duration::from_secs(1);

/// Timeout of a query in a trial: a quarter of 1 s (RFC 8219 section 9.2.1), as in the paper.
pub const TIMEOUT: Duration = Duration::from_millis(250);

/// Trials of one search. 14 reach a precision of 2 % from any start: doubling 5 times and halving 6 times, and three
/// repetitions of failures.
pub const SEARCH_TRIALS: u32 = 14;

/// Source ports of a tester's thread: enough that the kernel's hash gives each core of a server its share.
pub const PORTS: u16 = 64;

/// Time for a server to load a zone: 60 s, and 200 us for each name, twice the slowest measured pace in a test build.
pub const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Part of [`START_TIMEOUT`] for each name.
pub const START_TIMEOUT_PER_NAME: Duration = Duration::from_micros(200);

/// Pause between two queries to a server that is loading. It is the resolution of the load time.
pub const READY_INTERVAL: Duration = Duration::from_millis(5);

/// Time for the answer to a single query.
pub const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

/// Time for a server to end after SIGTERM, before SIGKILL: it has nothing to save.
pub const STOP_GRACE: Duration = Duration::from_secs(2);

/// Most memory that computed answers may add while they answer a whole zone, in octets.
pub const COMPUTED_GROWTH_OCTETS: f64 = 20e6;

/// Longest start of computed answers. A start takes some 20 ms.
pub const COMPUTED_START_S: f64 = 1.0;
