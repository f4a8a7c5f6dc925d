//! Constants of TOTD 1.5 and bounds of the model.

use core::time::Duration;

/// Entries of the table of duplicates (TOTD: 1,000).
pub const DUPLICATES: usize = 1000;

/// Lifetime of an entry of the table of duplicates (TOTD: 60 s). This is the paper's minute.
pub const LIFETIME: Duration = Duration::from_secs(60);

/// Time that the upstream has for a reply (TOTD: 2 s); a repeated query gets twice as long.
pub const TIMEOUT: Duration = Duration::from_secs(2);

/// Number of repetitions of an A query (TOTD: 1). AAAA queries are not repeated.
pub const REPETITIONS: u8 = 1;

/// Timeouts of an upstream after which the next one is used (TOTD: 3).
pub const TIMEOUTS_UNTIL_DOWN: u32 = 3;

/// Time after which an upstream that is down is tried again (TOTD: `retry 300`).
pub const RETRY: Duration = Duration::from_secs(300);

/// Upstream queries that wait for a reply. TOTD has no bound. 4,096 is 50 times the 80 that 10 clients with 4 loops cause
/// when each loop has given up one query and waits for another.
pub const OUTSTANDING: usize = 4096;

/// IDs of a permutation (paper, section 5: 0x8000).
pub const PERMUTATION: usize = 0x8000;

/// IDs that are used of a permutation (paper, section 5: 0x4000).
pub const USED: usize = 0x4000;

/// Events of a run of the load. 10 clients with 65,536 names take some 13 events a name: 8.6 million.
pub const EVENTS: u64 = 100_000_000;
