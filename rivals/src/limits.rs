//! Every bound of the benchmark, with the arithmetic.

use std::time::Duration;

/// Sequence numbers remembered while their answer may come: 2^19 at 8 octets are 4 MiB, and last 2 s at 262,000
/// questions a second. A question that is overwritten has been lost long before.
pub const OUTSTANDING: usize = 1 << 19;

/// Answers later than this are worth nothing (RFC 8219 section 9.2).
pub const TIMEOUT: Duration = Duration::from_secs(1);

/// Source ports where many are asked for. Each costs an empty receive call per turn of the loop.
pub const PORTS: usize = 16;

/// Questions in one send call, cut into datagrams by the kernel (which allows 64 or more).
pub const SEGMENTS: usize = 16;

/// Questions sent in one turn of the loop, so that a late sender still empties its sockets: 64 x 0.6 us = 40 us.
pub const BURST: u64 = 64;

/// Datagrams taken from one socket in one turn.
pub const DRAIN: usize = 256;

/// How long the loop sleeps when nothing is due and nothing has come.
pub const IDLE_SLEEP: Duration = Duration::from_micros(20);

/// Receive and send buffers of the tester's sockets, in octets; the kernel's bound is 4 MiB by default here.
pub const SOCKET_BUFFER: usize = 4 << 20;

/// Questions outstanding in a closed loop: keeps a device busy, and fits the kernel's default receive buffer (212,992
/// octets, about 277 small datagrams), which BIND leaves as it is.
pub const WINDOW: u64 = 256;

/// How long nothing may come until a closed loop gives up what is outstanding: far longer than an answer takes.
pub const STALL_TIMEOUT: Duration = Duration::from_millis(50);

/// How long a server may take to end its processes.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a device may take to give its first right answer.
pub const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// A rate that every device carries, even in a slow phase of a shared machine, in questions per second.
pub const COMMON_RATE: f64 = 3_000.0;

/// Part of its own closed-loop rate that a device is offered in the second table.
pub const PART_OF_PEAK: f64 = 0.6;

/// Times the peak that is offered in the overload test.
pub const OVERLOAD: f64 = 5.0;

/// An answer under overload is useful when it comes within this time.
pub const USEFUL_WITHIN: Duration = Duration::from_millis(500);

/// Multiples of the peak that are offered when a network floods.
pub const FLOODS: [f64; 3] = [2.0, 5.0, 10.0];

/// The part of the peak that is offered before and after a flood.
pub const NORMAL_LOAD_PART: f64 = 0.5;

/// How long after a flood the latency is looked at again.
pub const RECOVERY: Duration = Duration::from_secs(1);

/// What the well-behaved clients ask, as a part of the peak: under ten times the peak one question in two hundred.
pub const OTHERS_PART: f64 = 0.05;

/// Networks of well-behaved clients.
pub const OTHERS: u16 = 20;

/// CPU quota per core of the overload test: the kernel's smallest quota, 1 ms, in each 5 ms, a fifth of a core. What
/// the rest of the machine can generate is then a multiple of what the device can carry.
pub const QUOTA_US: u64 = 1_000;
/// See [`QUOTA_US`].
pub const PERIOD_US: u64 = 5_000;

/// Questions that are pending together when the engine runs in memory: a batch of a datapath.
pub const PENDING_BATCH: usize = 64;

/// Resolutions in one timed run in memory: a few hundred milliseconds.
pub const TIMED: u64 = 1 << 20;

/// Resolutions of the two runs under valgrind, which is some fifty times slower.
pub const COUNTED: [u64; 2] = [4 * PENDING_BATCH as u64, 260 * PENDING_BATCH as u64];

/// Names of the server that load generators are compared on: 2^20, which last 3 s at 350,000 queries a second. Knot DNS takes
/// 340 MB for them.
pub const GENERATORS_NAMES: u32 = 1 << 20;

/// Queries that each generator keeps outstanding: what dnsperf does unless told otherwise.
pub const GENERATORS_OUTSTANDING: u32 = 100;

/// Fresh names of a turn on a server that must not know them: 3 s at 66,000 a second, which Unbound does not reach.
pub const GENERATORS_FRESH: u32 = 200_000;

/// The rate at which the pacing of a schedule is judged, in queries per second.
pub const GENERATORS_RATE: u32 = 100_000;

/// Answers out of a cache in those runs: both begin with the three questions for each of 1,024 names after which all answers
/// come out of the cache as they are.
pub const COUNTED_CACHED: [u64; 2] = [4 * 1024, 20 * 1024];

/// Names that are asked for again and again. Every cache holds them, and in a warm-up each comes up many times.
pub const CACHED_NAMES: u16 = 1000;

/// How long they are asked for before the first measured load: at 3,000 questions a second 65,536, one round of all turns of a
/// popularity, take 22 s, but only one name in 10^4 is still missing after 3 s (e^-9), and the first load's warm-up follows.
pub const CACHED_FILL: Duration = Duration::from_secs(3);

/// Questions to the upstream that an answer out of the cache may cost: one in a thousand answers, so that a name which
/// was still missing, or a device that refreshes early, is seen in the table and does not count as a failure.
pub const CACHED_LEGS: f64 = 0.001;

/// Names that are asked for to see what memory it takes. Two messages of 64 octets and more are kept for each: 1.2 GB and
/// more, twenty times the cache.
pub const MEMORY_NAMES: u64 = 10_000_000;

/// Sixfold's cache in that experiment.
pub const MEMORY_CACHE_MIB: u32 = 64;

/// Windows in a row without any right answer after which Sixfold is taken for dead, half a minute: on a machine that has
/// other things to do it may stand still for one.
pub const MEMORY_SILENT: u32 = 3;

/// Connections that are open and idle when its memory is looked at: the default of `tcp-connections`.
pub const MEMORY_CONNECTIONS: usize = 10_000;

/// Networks that fill the table of pending questions: each may have 1,000 of the 65,536 by default. Each may have 100
/// connections, so they may have all.
pub const MEMORY_NETWORKS: u16 = 110;

/// Questions pending per worker by default, and the octets that each takes at most (docs/operating.md).
pub const MEMORY_PENDING: f64 = 65_536.0 * 1_800.0;

/// Questions a second of the flood that fills this table: it is full after three seconds, the least that a question waits which
/// nobody answers (three tries of a second at most).
pub const MEMORY_FLOOD: f64 = 30_000.0;

/// How often its memory is looked at, and how long the flood lasts.
pub const MEMORY_WINDOW: Duration = Duration::from_secs(10);
