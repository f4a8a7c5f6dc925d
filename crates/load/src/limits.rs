//! Every bound of the load generator, with the arithmetic.

use std::time::Duration;

// What may be ordered.

/// The lowest and the highest rate, queries a second. The period of the lowest, 10^10 ns, times 2^28 is 2.7 x 10^18 and
/// fits 64 bits; the highest is far beyond what a machine sends.
pub const RATES_QPS: (f64, f64) = (0.1, 1e9);

/// The longest load with its warm-up: 7 days. In nanoseconds 6 x 10^14, which leaves 2 of 64 bits for a slot's state. For the
/// pacing a sending thread counts in intervals of 10 ms: 60 million of 4 octets, 242 MB, touched as time goes on.
pub const DURATION: Duration = Duration::from_secs(7 * 86_400);

/// The longest timeout.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Threads of a load.
pub const THREADS: u16 = 1024;

/// Ports of one thread, over all its source addresses: each is a descriptor, and 1,024 is the usual limit of those.
pub const PORTS: usize = 16_384;

/// Queries in a group. Longer ones leave in several sends anyway.
pub const GROUP: u16 = 4096;

/// Queries outstanding in a closed loop, over all threads.
pub const OUTSTANDING: u32 = 1 << 20;

/// Records of one answer that are told apart, a bit for each: 256 octets. Over UDP fewer fit ([`UDP_SIZE`]).
pub const RECORDS: usize = 2048;

/// CNAME records before the addresses. Their names become longer by 2 or 3 octets with each.
pub const CNAMES: u16 = 64;

/// The longest zone name in wire form: 255 octets (RFC 1035 section 2.3.4) less `AAA-BBB-CCC-DDD` and its length, 16, and
/// less the longest label of a CNAME chain, 3.
pub const ZONE_NAME: usize = 236;

// Memory.

/// Slots of a thread at least: queries that are due together in a moment, whatever the rate.
pub const SLOTS_LEAST: u64 = 4096;

/// Slots of a thread at most: 2^25 of 16 octets are 512 MiB; three timeouts of 1 s at 11 million queries a second.
pub const SLOTS_MOST: u64 = 1 << 25;

/// Slots of a thread in a closed loop, whose rate is not known beforehand: 2^20 of 16 octets, 16 MiB. They must outlast one
/// timeout; should the rate be higher, the thread waits for its oldest query.
pub const SLOTS_CLOSED: u64 = 1 << 20;

/// Timeouts that the slots cover at the rate of the load: replies that are later than that are unsolicited.
pub const SLOTS_TIMEOUTS: u64 = 3;

/// Names that may be asked again are drawn from this many, the newest that were answered long enough ago. The ring holds them
/// beside the answers of two timeouts, a word each: with as many queries as there are slots ([`SLOTS_MOST`]) 256 MiB a thread.
pub const POOL: u64 = 1 << 16;

/// Places of the pool in a closed loop: 2^21 of 8 octets are 16 MiB, two timeouts of 1 s at a million queries a second.
pub const POOL_CLOSED: u64 = 1 << 21;

/// A name is asked again at the latest so long after its answer, or when its TTL may be over, if the order tells a lower one:
/// well within the hour that is the authority's TTL unless it is told otherwise.
pub const POOL_AGE: Duration = Duration::from_secs(1800);

/// The longest latency in a histogram, in nanoseconds: 2 minutes, twice [`TIMEOUT`].
pub const LATENCY_NS: u64 = 120_000_000_000;

/// Decimal digits of a latency. 3 of them from 1 ns to 2 minutes take 28 x 1,024 buckets of 8 octets, 224 KiB, of which a
/// load uses a few.
pub const LATENCY_DIGITS: u8 = 3;

/// An UDP answer without EDNS has at most 512 octets (RFC 1035 section 4.2.1); longer ones are asked for with an OPT record
/// of this size.
pub const UDP_SIZE: u16 = 4096;

// A thread's turn.

/// From the order to the first query, so that all threads have started and their memory is there.
pub const LEAD: Duration = Duration::from_millis(20);

/// Queries in one turn, so that a late sender still empties its sockets: 256 x 1 us.
pub const TURN: usize = 256;

/// Tries to send when the kernel's queue is full, giving way to other threads between them: some 100 us in all.
pub const SEND_TRIES: usize = 100;

/// Receives from one port in one turn: 8 x 32 datagrams.
pub const DRAIN: usize = 8;

/// When the next query is due sooner than this, the thread sleeps so long and sends all that became due together: a tenth of
/// a bin of 10 ms is 1 ms, so 50 us cannot be seen in the pacing, and save a wake-up for each query. A reply is seen, and its
/// latency taken, that much later at most; who measures shorter latencies has the threads spin.
pub const NAP_NS: u64 = 50_000;

/// The same beside a companion, for whom a nap is a delay of each answer.
pub const NAP_COMPANION_NS: u64 = 20_000;

/// In a closed loop a thread sleeps until this part of the outstanding queries is answered: the server always has the rest
/// to do, and the latency, which is the time in which all of them are answered, grows by a quarter at most. Arming a timer is
/// what costs most beside the messages, in a virtual machine above all.
pub const PAUSE_PART: u64 = 4;

/// The longest such sleep, so that a server that is slow because it waits, not because it is busy, loses little.
pub const PAUSE_NS: u64 = 300_000;

/// The longest wait: how soon a thread sees that it shall stop, and how precisely it sees that it stood still.
pub const WAIT_NS: u64 = 10_000_000;

/// How long duplicates are waited for when every reply has come.
pub const AFTERWARDS: Duration = Duration::from_millis(50);

/// A place in a closed loop is free so long after the timeout: a receiving thread may just be stamping a reply.
pub const PLACE_GRACE_NS: u64 = 10_000_000;

/// How often progress is told.
pub const PROGRESS: Duration = Duration::from_secs(1);

// What a tester may do wrong before it says nothing of the server.

/// A second in which the number of queries deviates by more than this was not the load that was ordered. RFC 8219 names no
/// bound; 5 % is what a search's precision can bear. One query more or less is never too much.
pub const DEVIATION: f64 = 0.05;

/// A query that leaves later than this after it was due makes a burst of what follows: at 100,000 a second 10,000 queries,
/// as much as a receive buffer holds. So does a thread that stood still for so long: what came meanwhile may seem late.
pub const LAG: Duration = Duration::from_millis(100);

/// What came while a thread stood still for more than this part of a timeout may seem late, too, if that is shorter than
/// [`LAG`]: three quarters are left to the server.
pub const TIMEOUT_PART: u32 = 4;

/// The pace of a warm-up that fills a cache, in queries a second: in three seconds 3,000 names, which every server resolves
/// without effort and every cache holds.
pub const PRIMING_QPS: f64 = 1000.0;

/// Messages that one dropped packet may have held: what the kernel puts together at most (UDP_MAX_SEGMENTS, and
/// UDP_GRO_CNT_MAX for what it receives).
pub const PACKET_MESSAGES: u64 = 64;
