//! Sizes of the experiment.

use std::time::Duration;

/// Queries per second of every load. MTD64 and mtd64-ng answer as many, so no queue decides.
pub const RATE_QPS: f64 = 2000.0;

/// Delay of a slow upstream's answers: far above what a server needs itself, and below the time after which it repeats a query.
pub const DELAY: Duration = Duration::from_millis(10);

/// Delay of the second lookup where it is staggered: half of [`DELAY`], so that the three orders have three latencies.
pub const STAGGER: Duration = Duration::from_millis(5);

/// Rounds and length of a load in the short version: 18 loads of 0.25 s and 3 rounds are 14 s, and the starts of 13 servers take 5 s.
pub const QUICK: (usize, Duration) = (3, Duration::from_millis(200));

/// Rounds and length of a load in the whole version: 18 loads of 3 s and 15 rounds are 14 minutes.
pub const WHOLE: (usize, Duration) = (15, Duration::from_secs(3));

/// Threads of mtd64-ng, its default, as in `mtd64-speed`.
pub const PAPER_PROGRAM_THREADS: u16 = 10;
