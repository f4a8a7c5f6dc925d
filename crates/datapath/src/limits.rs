//! Every bound of the datapath, with the arithmetic. How many links there are and how long messages may be is in
//! [`engine::limits`].
//!
//! A worker reserves 2.4 MiB for its mailbox, 128 KiB for questions over UDP, 64 KiB for what it reads from TCP, and
//! one batch for what comes in and one for the answers of each listening socket: 64 x 1,344 to 64 x 4,160 octets, 84 to
//! 260 KiB, and 17 KiB for the gate of each. Write buffers of TCP links grow when they are needed.

use engine::Span;
use engine::limits::MESSAGE;

// Receiving.

/// Datagrams in one receive or send. Measured on loopback, 32, 64 and 128 cost the same within 3 %. At most 256: a slot
/// has eight bits in the keys by which answers are sorted.
pub(crate) const BATCH: usize = 64;

/// Octets asked for as receive buffer: 2 MiB, which the kernel doubles: some 5,000 small datagrams (it counts 768 octets for
/// each). They bridge 30 ms at 150,000 a second; under overload they are the delay that everybody sees, so not more.
pub const RECEIVE_BUFFER: i32 = 2 << 20;

/// The smallest datagram buffer: clients may pad their questions beyond a small `udp_size` (RFC 8467).
pub(crate) const SMALLEST_BUFFER: usize = 1232;

/// Octets of a PROXY header: 16, two addresses of Unix sockets with 216, and 280 for what a proxy likes to add (the name
/// asked in TLS, an identifier). Datagrams may be longer by that when proxies are believed.
pub const PROXY_HEADER: usize = 512;

/// Octets of the name that steer a question; longer names that differ only beyond them share an owner. The kernel's
/// program has 64 x 7 + 10 = 458 instructions, with proxies 64 x 9 + 23 = 599, of 4,096 that it may have (BPF_MAXINSNS).
pub(crate) const STEERING_OCTETS: usize = 64;

// A worker's turn.

/// Time between two calls of the hook.
pub const TICK: Span = Span::from_millis(100);

/// The longest wait in milliseconds. [`TICK`] ends it earlier; this keeps the number within the kernel's.
pub(crate) const WAIT_MS: u64 = 1000;

/// Batches (of a TCP link: reads) taken from one link in a turn. A batch of questions causes two batches of replies at most,
/// so this is more than clients can cause.
pub(crate) const LINK_BATCHES: usize = 8;

/// Octets read from a TCP link at a time: 1,000 replies of 64 octets.
pub(crate) const STREAM_READ_OCTETS: usize = 64 << 10;

/// Letters taken from the mailbox in a turn: as many as come from four listening sockets.
pub(crate) const MESSAGES_PER_TURN: usize = 4 * BATCH;

/// Rounds of telling the machine of failed links and sending what it says to that, in one turn. What fails after
/// them is told in the next turn, which then begins without a wait.
pub(crate) const FAILURE_ROUNDS: usize = 4;

/// Batches read from each listening socket after the order to stop: three times what [`RECEIVE_BUFFER`] can hold,
/// 4 MiB / 768 / 64 = 86.
pub(crate) const LAST_BATCHES: usize = 256;

// The gate in front of a listening socket.

/// How long a question shall wait in a queue at most when more comes than the worker can read. Shorter than what a client
/// notices; long enough that the worker always finds something, although it looks every [`SHEDDING_INTERVAL`] only.
pub(crate) const QUEUE_TARGET: Span = Span::from_millis(40);

/// Within what time the queue is brought to its target.
pub(crate) const QUEUE_DRAIN_TIME: Span = Span::from_millis(50);

/// Octets that the kernel counts for a small datagram in a queue (512 of data with their overhead, 256 of its description).
pub(crate) const DATAGRAM_QUEUE_OCTETS: f64 = 768.0;

/// Datagrams whose networks are remembered, 8 KiB per socket: of the last of them at most [`HEAVY_NETWORKS`] networks send a part
/// that is worth counting.
pub(crate) const SHEDDING_SAMPLE: usize = 1024;

/// A network that sends less than the 32nd part of what comes is never gated: in the smallest sample that are 4 datagrams of
/// 128, less than which says nothing.
pub(crate) const HEAVY_NETWORKS: usize = 32;

/// Networks that are gated at a time, the largest: 7 instructions each, of 4,096 that a filter may have.
pub(crate) const SHED_NETWORKS: usize = 16;

/// Datagrams between two looks at the queue, two batches: a look costs a system call, half a microsecond.
pub(crate) const SHEDDING_DATAGRAMS: u64 = 2 * BATCH as u64;

/// Time between two looks while everybody passes. Two alarms in a row close the gate: at 150,000 datagrams a second after
/// some 2 ms, in which a million a second fill less than half of [`RECEIVE_BUFFER`].
pub(crate) const SHEDDING_IDLE_INTERVAL: Span = Span::from_millis(1);

/// Time between two looks while the gate is closed.
pub(crate) const SHEDDING_INTERVAL: Span = Span::from_millis(10);

/// The longest time between two looks while the gate is closed and datagrams come.
pub(crate) const SHEDDING_LONGEST_INTERVAL: Span = Span::from_millis(50);

/// The smallest part of a network that passes, so that its end is noticed.
pub(crate) const SHEDDING_SMALLEST_SHARE: f64 = 1.0 / 1024.0;

// The mailbox.

/// Octets of a message that a letter carries inline; questions are hardly ever longer.
pub const INLINE_OCTETS: usize = 512;

/// Letters that wait for a worker: 4,096 of about 600 octets, 2.4 MiB per worker.
pub const QUEUED_MESSAGES: usize = 4096;

/// Orders that wait for a worker, and the most that it carries out in a turn. There is one for a reload or a look
/// into the cache.
pub const QUEUED_TASKS: usize = 64;

// Sending.

/// Octets asked for as send buffer: a whole batch of 64 datagrams of 4 KiB, twice over.
pub(crate) const SEND_BUFFER: usize = 512 << 10;

/// The smallest MTU of IPv6 (RFC 8200 section 5): larger datagrams leave in fragments of this size, so that no
/// packet-too-big message, which anyone can forge, is ever needed.
pub(crate) const IPV6_MINIMUM_MTU: i32 = 1280;

/// Messages in one large send: what every kernel takes (UDP_MAX_SEGMENTS).
pub(crate) const GSO_SEGMENTS: usize = 64;

/// Octets in one large send; a datagram to be cut up has at most 65,535 - 20 - 8 = 65,507.
pub(crate) const GSO_OCTETS: usize = 65_000;

/// The longest message that leaves in bulk: with headers it must not exceed the path's MTU, as the kernel does not cut up
/// what needs fragments. 1,280 - 40 - 8 = 1,232 fits wherever IPv6 does (RFC 9715).
pub(crate) const GSO_MESSAGE_OCTETS: usize = 1232;

// Links to upstreams.

/// Octets of a question's frame: a header, the longest name, type and class, and an OPT record take
/// 12 + 255 + 4 + 11 = 282; 230 are left for options.
pub(crate) const QUESTION_OCTETS: usize = 512;

/// Questions that wait at a time, over all UDP links of a worker; then they are sent: 256 x 512 octets = 128 KiB.
pub(crate) const WAITING_QUESTIONS: usize = 256;

/// Ports tried before a link counts as one that cannot be opened. With a thousand ports in use one try in 64 fails.
pub(crate) const PORTS_TRIED: usize = 16;

/// Draws of a random port. One in 64 is a port below 1,024 and drawn again: after 64 of them, something is wrong with
/// the generator.
pub(crate) const PORT_DRAWS: usize = 64;

/// Datagrams that may have come to a port between bind and connect before it is given up as under attack.
pub(crate) const STRAY_DATAGRAMS: usize = 16;

/// The largest frame on a stream: two octets of length and 65,535 of message.
pub const FRAME: usize = 2 + MESSAGE;

/// Octets of questions that wait for a TCP connection: 256 KiB, some 4,000 of 62 octets. More are refused.
pub(crate) const WRITE_BUFFER: usize = 256 << 10;

/// Write buffers of closed TCP links that are kept for new ones: 8 x 256 KiB at most.
pub(crate) const SPARE_ENCODERS: usize = 8;

// The reflector.

/// Octets of a question that are kept to be asked a second time; longer questions are ignored. A length has eight bits.
pub(crate) const REFLECTOR_QUESTION_OCTETS: usize = 255;

/// Links that are in use in turn; a rotated one stays open until it is its turn again.
pub(crate) const REFLECTOR_LINKS: u16 = 64;

/// Questions that wait for replies, by their IDs of 16 bits: 65,536 of some 320 octets, 20 MiB.
pub(crate) const REFLECTOR_SLOTS: usize = 1 << 16;

// The responder.

/// Buffers of one receive of a responder. Each has [`RESPONDER_BUFFER`] octets of address space, 2.1 MiB in all, of
/// which plain datagrams touch a page or two per buffer: 32 x 8 KiB = 256 KiB.
pub(crate) const RESPONDER_SLOTS: usize = 32;

/// Octets of one buffer: what the kernel hands over as one can have 65,535.
pub(crate) const RESPONDER_BUFFER: usize = 65_535;

/// Receives from one socket in a turn: 8 x 32 datagrams fill the queue of answers once.
pub(crate) const RESPONDER_RECEIVES: usize = 8;

/// Answers of a socket that wait to leave together; the more, the more of them go to the same client and leave in one large
/// send. A slot has eight bits in the keys by which they are sorted.
pub(crate) const RESPONDER_ANSWERS: usize = 256;

// A tester.

/// Octets asked for as receive and send buffer of each port of a load: 4 MiB, which the kernel doubles: 10,000 small
/// replies, so a tester that was held up for 100 ms at 100,000 a second loses none. Only what waits takes memory.
pub(crate) const TESTER_BUFFER: i32 = 4 << 20;

/// Datagrams in one receive of a tester.
pub(crate) const TESTER_BATCH: usize = 32;

/// Octets for one datagram of a tester: the largest there is, as the kernel may put many replies together (UDP GRO), and
/// a cache line more, so that the beginnings spread over all sets of the processor's caches. 32 of them are 2 MiB, of
/// which only what is written is ever resident.
pub(crate) const TESTER_STRIDE: usize = (64 << 10) + 64;

/// Ports that one wait of a tester may report; others are reported by the next.
pub(crate) const TESTER_EVENTS: usize = 64;

// Start-up.

/// Longest entry of the user database that is read, in octets. The C library suggests 1 KiB.
pub(crate) const USER_ENTRY_OCTETS: usize = 16 << 10;
