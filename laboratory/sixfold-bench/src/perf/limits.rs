//! Bounds of the benchmark, with the arithmetic.

use std::time::Duration;

/// Timeout of a query (RFC 8219 section 9.2).
pub const TIMEOUT: Duration = Duration::from_secs(1);

/// Source ports of loads with many ports. Each costs an empty receive call per turn of the loop.
pub const PORTS: usize = 16;

/// Most queries in one send call, cut into datagrams by the kernel (which allows 64 or more). Only loads that name their groups
/// send more than one.
pub const SEGMENTS: usize = 16;

/// Queries sent in one turn of the loop, so that a late sender still empties its sockets: 64 x 0.6 us = 40 us.
pub const BURST: u64 = 64;

/// Receives of up to 32 datagrams from one socket of the client in one turn.
pub const RECEIVES: usize = 8;

/// Longest turn of the loop in time. The tester is the authoritative server too, so queries wait for as long as a turn takes.
pub const LATE_TURN: Duration = Duration::from_millis(1);

/// Sleep of the loop when nothing is due and nothing has arrived.
pub const IDLE_SLEEP: Duration = Duration::from_micros(20);

/// Outstanding queries in a closed loop: enough to keep a device busy, and few enough for the kernel's default receive
/// buffer (212,992 octets, about 277 small datagrams), which a device keeps if this process may not raise it.
pub const WINDOW: u64 = 256;

/// Silence after which a closed loop gives up its outstanding queries: far longer than an answer takes.
pub const STALL_TIMEOUT: Duration = Duration::from_millis(50);

/// Time for a device to listen, and the time between two looks.
pub const LISTEN_TIMEOUT: Duration = Duration::from_secs(20);
/// See [`LISTEN_TIMEOUT`].
pub const LISTEN_POLL: Duration = Duration::from_millis(10);

/// Time for a device to give its first right answer, and the time between two questions.
pub const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// See [`READY_TIMEOUT`].
pub const READY_INTERVAL: Duration = Duration::from_millis(50);

/// A rate that every device can handle, even in a slow phase of a shared machine, in queries per second.
pub const COMMON_RATE: f64 = 3_000.0;

/// Share of its own closed-loop rate that is offered to a device in the second table.
pub const PART_OF_PEAK: f64 = 0.6;

/// Multiple of the peak that is offered in the overload test.
pub const OVERLOAD: f64 = 5.0;

/// Most rounds of searches for the rate without loss: a search takes a minute.
pub const LOSSLESS_ROUNDS: usize = 2;

/// Time within which an answer under overload is useful.
pub const USEFUL_WITHIN: Duration = Duration::from_millis(500);

/// Multiples of the peak that a flooding network offers.
pub const FLOODS: [f64; 3] = [2.0, 5.0, 10.0];

/// Share of the peak that is offered before and after a flood.
pub const NORMAL_LOAD_PART: f64 = 0.5;

/// Time after a flood at which the latency is measured again.
pub const RECOVERY: Duration = Duration::from_secs(1);

/// Rate of the well-behaved clients, as a share of the peak: under ten times the peak it is one query in two hundred.
pub const OTHERS_PART: f64 = 0.05;

/// Number of networks of well-behaved clients.
pub const OTHERS: u16 = 20;

/// Number of networks that send equally much.
pub const EQUAL_NETWORKS: u16 = 1_000;

/// Outstanding queries that a kind of client can tell apart: 16 octets each.
pub const DISTINCT_QUERIES: usize = 1 << 21;

/// Sockets that a client reads in one turn. With more, each is read in its turn: a thousand after 16 turns, in about a
/// millisecond.
pub const SOCKETS_PER_TURN: usize = 64;

/// CPU quota per core of the overload test: the kernel's smallest quota, 1 ms, in each 5 ms, a fifth of a core. The
/// rest of the machine can then generate a multiple of the load that the device can handle.
pub const QUOTA_US: u64 = 1_000;
/// See [`QUOTA_US`].
pub const PERIOD_US: u64 = 5_000;

/// Queries that are pending together when the engine runs in memory: a batch of a datapath.
pub const PENDING_BATCH: usize = 64;

/// Resolutions in one timed run in memory: a few hundred milliseconds.
pub const TIMED_RESOLUTIONS: u64 = 1 << 20;

/// Resolutions of the two runs under valgrind, which is some fifty times slower.
pub const VALGRIND_RESOLUTIONS: [u64; 2] = [4 * PENDING_BATCH as u64, 260 * PENDING_BATCH as u64];

/// Names of the server for the comparison of load generators, as a power of two: 2^20, which last 3 s at 350,000 queries a second. Knot
/// DNS takes some 700 MB for them.
pub const GENERATORS_NAMES_BITS: u32 = 20;

/// Outstanding queries of each generator: the default of dnsperf.
pub const GENERATORS_OUTSTANDING: u32 = 100;

/// New names of a turn on a server that must not have them in its cache: 3 s at 66,000 a second, which Unbound does not
/// reach.
pub const GENERATORS_FRESH: u32 = 200_000;

/// Rate at which the pacing of a schedule is judged, in queries per second.
pub const GENERATORS_RATE: u32 = 100_000;

/// Answers from a cache in the runs under valgrind: both begin with the three queries for each of 1,024 names after
/// which all answers are copied from the cache.
pub const VALGRIND_CACHED_ANSWERS: [u64; 2] = [4 * 1024, 20 * 1024];

/// Number of repeated names. Every cache holds them, and in a warm-up each is asked for many times.
pub const CACHED_NAMES: u16 = 1000;

/// Time during which they are asked for before the first measured load. At 3,000 queries a second 65,536, one round of
/// all turns of a popularity, take 22 s, but only one name in 10^4 is still missing after 3 s (e^-9), and the first
/// load's warm-up follows.
pub const CACHED_FILL: Duration = Duration::from_secs(3);

/// Highest number of upstream queries per answer from the cache: one in a thousand answers. So a name that was still
/// missing, or a device that refreshes early, is visible in the table and does not count as a failure.
pub const CACHED_LEGS: f64 = 0.001;

/// Number of names in the memory experiment. Sixfold caches two messages of 64 octets and more for each: 1.2 GB and
/// more, twenty times the cache.
pub const MEMORY_NAMES: u64 = 10_000_000;

/// Size of Sixfold's cache in that experiment.
pub const MEMORY_CACHE_MIB: u32 = 64;

/// Number of windows in a row without any right answer after which Sixfold counts as dead, half a minute: on a busy
/// machine it may stand still for one window.
pub const MEMORY_SILENT: u32 = 3;

/// Number of open and idle connections in the memory experiment: the default of `tcp-connections`.
pub const MEMORY_CONNECTIONS: usize = 10_000;

/// Number of networks that fill the table of pending queries: each may have 1,000 of the 65,536 by default. Each may
/// have 100 connections, so together they may open all connections.
pub const MEMORY_NETWORKS: u16 = 110;

/// Pending queries per worker by default, and the octets that each takes at most (docs/how-to/size-and-tune.md).
pub const MEMORY_PENDING: f64 = 65_536.0 * 1_900.0;

/// Rate of the flood that fills this table, in queries a second: the table is full after three seconds, the shortest
/// time for which a query without a reply stays pending (three tries of a second at most).
pub const MEMORY_FLOOD: f64 = 30_000.0;

/// Highest rate of names with two signatures to verify, for which as many names are signed as a load may ask for: 22 us of a resolution
/// and 2 x 20 us of RSA-2048, the cheapest one, give 16,000 a second. A load whose names are used up ends early.
pub const VALIDATION_RATE: f64 = 20_000.0;

/// Names that are signed beside these, for the questions until a device is ready: one every 50 ms for up to a minute, and half of the
/// names are left to the load.
pub const VALIDATION_SPARE: u64 = 2_500;

/// Signatures that the bare verification takes in turns: 1,024 of them with their data are 300 KiB at most, beyond the first cache.
pub const VALIDATION_SAMPLES: usize = 1_024;

/// New zones whose first names a device is asked for in one round: 82 ms each.
pub const VALIDATION_ZONES: usize = 20;

/// Interval at which the memory is read, and duration of the flood.
pub const MEMORY_WINDOW: Duration = Duration::from_secs(10);
