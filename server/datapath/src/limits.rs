//! Every bound of the datapath, with the arithmetic. The number of links and the length of messages are in
//! [`engine::limits`].
//!
//! A worker reserves 2.4 MiB for its mailbox, 128 KiB for queries over UDP, 64 KiB for reads from TCP, one batch for
//! received datagrams, and for each listening socket one batch for its answers and 165 KiB for its overload. A batch
//! takes 64 x 1,344 to 64 x 4,160 octets, 84 to 260 KiB. Write buffers of TCP links grow when they are needed.

use engine::Span;
use engine::limits::MESSAGE;

// Receiving.

/// Datagrams in one receive or send. On loopback, 32, 64 and 128 cost the same within 3 %. At most 256, because a slot has
/// eight bits in the keys by which answers are sorted.
pub(crate) const BATCH: usize = 64;

/// Receive buffer of a listening socket in octets: 6 MiB, which the kernel doubles. That holds some 15,000 small datagrams, as the kernel
/// counts 832 octets for each. It bridges 23 ms at 650,000 datagrams a second: the pause of a worker with a CPU quota, in which a
/// flood begins. It is not the delay of clients under overload: what is older than `LATE_AGE` gives way.
pub const RECEIVE_BUFFER: i32 = 6 << 20;

/// Receive buffer of a UDP link in octets, which the kernel doubles: replies to 5,000 questions.
pub(crate) const LINK_RECEIVE_BUFFER: i32 = 2 << 20;

/// Smallest datagram buffer in octets: clients may pad their queries beyond a small `udp_size` (RFC 8467).
pub(crate) const SMALLEST_BUFFER: usize = 1232;

/// Largest PROXY header in octets: 16, two addresses of Unix sockets with 216, and 280 for additions of the proxy (the
/// server name of TLS, an identifier). When a proxy is trusted, datagrams may be longer by this.
pub const PROXY_HEADER: usize = 512;

/// Octets of the name that steer a query. Longer names that differ only beyond them have one owner. The program in the
/// kernel has 64 x 7 + 10 = 458 instructions, with proxies 64 x 9 + 23 = 599, and with popular names 19 more, of 4,096 that it may have (BPF_MAXINSNS).
pub(crate) const STEERING_OCTETS: usize = 64;

// A worker's turn.

/// Time between two calls of the hook.
pub const TICK: Span = Span::from_millis(100);

/// Longest wait in milliseconds. [`TICK`] ends it earlier. This keeps the number within the kernel's range.
pub(crate) const WAIT_MS: u64 = 1000;

/// Batches (of a TCP link: reads) taken from one link in a turn. A batch of queries causes two batches of replies at most,
/// so this is more than clients can cause.
pub(crate) const LINK_BATCHES: usize = 8;

/// Octets read from a TCP link at a time: 1,000 replies of 64 octets.
pub(crate) const STREAM_READ_OCTETS: usize = 64 << 10;

/// Octets read from a TLS link at a time. What is decrypted of them and of a part of a record that came before, at most 16 KiB and
/// 256 octets (RFC 8446 section 5.2), fits into `STREAM_READ_OCTETS`.
pub const TLS_READ_OCTETS: usize = STREAM_READ_OCTETS - (18 << 10);

/// Characters of an error of TLS that are kept for each upstream: a line of the log. The error may list the names of a certificate.
pub(crate) const TLS_ERROR_CHARACTERS: usize = 256;

/// Messages taken from the mailbox in a turn: as many as come from four listening sockets.
pub(crate) const MESSAGES_PER_TURN: usize = 4 * BATCH;

/// Rounds in one turn that report failed links to the machine and send its reaction. Links that fail after them are reported
/// in the next turn, which then begins without a wait.
pub(crate) const FAILURE_ROUNDS: usize = 4;

/// Batches read from each listening socket after the request to stop: three times the 12 MiB / 768 / 64 = 256 batches that
/// [`RECEIVE_BUFFER`] can hold.
pub(crate) const LAST_BATCHES: usize = 768;

// Overload of a listening socket.

/// Age of the queue that is aimed at: a twentieth of [`OVERLOAD_INTERVAL`] (RFC 8289 section 4). A worker that reads 100,000 datagrams a
/// second then finds 500 when an update comes late.
pub(crate) const QUEUE_TARGET: Span = Span::from_millis(5);

/// Time for which the queue must be older than its target before that is an overload (RFC 8289 section 4), and over which the rate at
/// which a worker reads is averaged. The backlog of a worker that was held up for some hundredths of a second is gone before.
pub(crate) const OVERLOAD_INTERVAL: Span = Span::from_millis(100);

/// Time for which the age must rise before that is an overload, if it is more than [`LATE_AGE`]: two pauses of a worker with a CPU quota.
pub(crate) const RISING_TIME: Span = Span::from_millis(30);

/// Age from which on a queued datagram of a shed network is dropped unread. With pauses of 16 ms, as of a CPU quota, it has waited for
/// two of them; a younger one whose resolution is interrupted by a pause is answered within 50 ms.
pub(crate) const LATE_AGE: Span = Span::from_millis(25);

/// Datagrams before which nothing is decided, two batches: a decision costs some microseconds.
pub(crate) const OVERLOAD_DATAGRAMS: u64 = 2 * BATCH as u64;

/// Time between two updates of the shares: PIE's is 15 ms (RFC 8033 section 4.2), but here a flood takes 10 ms to fill half of the
/// queue at 800,000 datagrams a second.
pub(crate) const UPDATE_INTERVAL: Span = Span::from_millis(10);

/// Time in which a wrong rate is corrected: an update comes at the latest after it, and a distance of the age from its target is removed
/// in it.
pub(crate) const CORRECTION_TIME: Span = Span::from_millis(50);

/// Time over which what clients send is averaged: two updates.
pub(crate) const OFFERED_TIME: Span = Span::from_millis(20);

/// Least rate of a worker that has emptied its queue, as a multiple of the rate at which it has read.
pub(crate) const IDLE_GAIN: f64 = 1.25;

/// Cost of a datagram that is read and dropped, as a part of that of a datagram that is answered: some 0.7 of 9 us.
pub(crate) const STALE_COST: f64 = 0.1;

/// Octets that the kernel counts for a small datagram in a queue at least: 512 of data with their overhead, 256 of its descriptor.
/// Linux 6.18 counts 832.
pub(crate) const DATAGRAM_QUEUE_OCTETS: f64 = 768.0;

/// Time without a full batch after which the kernel's time stamps are switched off: some overloads come and go.
pub(crate) const STAMPS_OFF_TIME: Span = Span::from_secs(1);

/// Datagrams whose networks are counted at a time, so networks that are known at most: 160 KiB per socket, in tables that never grow.
pub(crate) const OVERLOAD_SAMPLE: u32 = 1024;

/// Heavy networks and customers at most, as none of their datagrams count twice: one that sends less than the 32nd part is never shed.
pub(crate) const HEAVY_HITTERS: usize = 32;

/// Datagrams of a heavy network at least: more than a resolver sends in one burst proves something.
pub(crate) const HEAVY_LEAST: u32 = 16;

/// A network is shed apart from the others of its customer if it sends at least this part of the customer's datagrams (one in so many),
/// and until it sends less than half of that. A customer that floods from more networks than this is shed as one: its networks
/// would all be near the bound of [`HEAVY_HITTERS`], some above it and some below.
pub(crate) const CUSTOMER_PARTS: f64 = 8.0;

/// Networks and customers that are shed at a time, the heaviest ones, beside all others together: at most 12 instructions each (four
/// words of an address that are loaded and compared, and four to toss a coin), 384 of 4,096 that a filter may have (BPF_MAXINSNS).
/// If fewer were, flooding networks beyond them could take all of the worker's time.
pub(crate) const SHED_NETWORKS: usize = HEAVY_HITTERS;

/// Smallest share of a network's datagrams that passes, so that the end of its flood is noticed.
pub(crate) const SMALLEST_SHARE: f64 = 1.0 / 1024.0;

/// Trusted proxies within these networks whose datagrams the filter lets through: at most 10 instructions each (a word that is
/// loaded, masked and compared, three that are loaded and compared, and the end), 2,560 of the 4,096. A network that contains
/// more proxies is not shed.
pub(crate) const PROXIES_PASSED: usize = 256;

// Popular names.

/// Queries in a sample of a worker's queries, one of each full batch: 256 x 64 = 16,384 queries, 0.05 s at 300,000 a second.
pub(crate) const NAME_SAMPLE: usize = 256;

/// Part of a busy worker's queries from which a name is popular: one in eight. Spread over many workers, such a name leaves an eighth of the
/// worker's time to the others.
pub(crate) const POPULAR_PART: usize = 8;

/// Sets of four counters for the names of a sample, as many counters as the 32 queries that make a name popular.
pub(crate) const NAME_SETS: usize = 8;

/// Names that all workers answer, at most. In the kernel each costs every datagram one comparison.
pub(crate) const POPULAR_NAMES: usize = 16;

/// Time after which a popular name belongs to one worker again. If it is still popular, it is found within a tenth of a second.
pub(crate) const POPULAR_NAME_MEMORY: Span = Span::from_secs(60);

// The mailbox.

/// Octets of a queued message that are stored inline. Queries are hardly ever longer.
pub const INLINE_OCTETS: usize = 512;

/// Messages that wait for a worker: 4,096 of about 600 octets, 2.4 MiB per worker.
pub const QUEUED_MESSAGES: usize = 4096;

/// Octets of all messages that wait for a worker, each counted as [`INLINE_OCTETS`] at least: 2 MiB. Longer ones are stored outside the
/// mailbox. While three quarters are taken, one customer may have a sixteenth: 256 queries, or two of the longest.
pub const QUEUED_OCTETS: usize = QUEUED_MESSAGES * INLINE_OCTETS;

/// Bits of the IPv6 prefix that one customer has, until they are set.
pub(crate) const CLIENT_PREFIX: u8 = 64;

/// Tasks that wait for a worker, and the most that it runs in a turn. A reload or a look into the cache is one task.
pub const QUEUED_TASKS: usize = 64;

// Sending.

/// Send buffer in octets: a whole batch of 64 datagrams of 4 KiB, twice.
pub(crate) const SEND_BUFFER: usize = 512 << 10;

/// Smallest MTU of IPv6 (RFC 8200 section 5). Larger datagrams leave in fragments of this size, so that no packet-too-big
/// message is ever needed: anyone can forge one.
pub(crate) const IPV6_MINIMUM_MTU: i32 = 1280;

/// Messages in one GSO send: the number that every kernel takes (UDP_MAX_SEGMENTS).
pub const GSO_SEGMENTS: usize = 64;

/// Octets in one GSO send: a datagram that the kernel cuts up has at most 65,535 - 20 - 8 = 65,507.
pub const GSO_OCTETS: usize = 65_000;

/// Longest message in a GSO send, in octets. With its headers it must not exceed the path's MTU, because the kernel does not
/// cut up a message that needs fragments. 1,280 - 40 - 8 = 1,232 fits wherever IPv6 does (RFC 9715).
pub(crate) const GSO_MESSAGE_OCTETS: usize = 1232;

// Links to upstreams.

/// Octets of the frame of a query to an upstream: a header, the longest name, type and class, and an OPT record take
/// 12 + 255 + 4 + 11 = 282, and 230 are left for options.
pub(crate) const QUESTION_OCTETS: usize = 512;

/// Queries that wait at a time, over all UDP links of a worker. When there are so many, they are sent: 256 x 512 octets =
/// 128 KiB.
pub(crate) const WAITING_QUESTIONS: usize = 256;

/// Ports tried before a link counts as one that cannot be opened. With a thousand ports in use,
/// one try in 16 fails if 16,384 ports are allowed, and 16 in a row once in 2^64.
pub(crate) const PORTS_TRIED: usize = 16;

/// Datagrams that may come to a port between bind and connect. A port with more is given up as under attack.
pub(crate) const STRAY_DATAGRAMS: usize = 16;

/// Largest frame on a stream: two octets of length and 65,535 of message.
pub const FRAME: usize = 2 + MESSAGE;

/// Octets of queries that wait for a TCP connection: 256 KiB, some 4,000 queries of 62 octets. More are refused.
pub(crate) const WRITE_BUFFER: usize = 256 << 10;

/// Time between two writes into one busy TCP or TLS connection to an upstream, so that queries and replies travel together, and pause
/// between two turns of a worker (`worker/write_coalescing.rs`). A write costs some 8 us of system time whether it carries one query or fifty;
/// 2,900 writes a second take a worker 2.3 % of a core. With more, a query waits for 0.2 ms on average.
pub(crate) const WRITE_PAUSE: Span = Span(350_000);

/// Time between two such writes after a write of many queries: some 20 clients' queries are served together at 40,000 a second.
pub(crate) const LONG_PAUSE: Span = Span(550_000);

/// Queries in one write from which they are many. At 20,000 queries of clients a second, 16 come in [`WRITE_PAUSE`]; at 30,000 24.
pub(crate) const MANY_QUERIES: u32 = 24;

/// Queries in one write from which a busy connection stays so: twice as many as come from one client's query. So many come in
/// [`WRITE_PAUSE`] at 6,000 queries of clients a second.
pub(crate) const BUSY_QUERIES: u32 = 4;

/// Answers to clients for each query over a connection, at most, that allow a worker to pause while connections are busy. A resolution
/// has two queries. With more answers, most come out of the cache, and they would wait for the others.
pub(crate) const ANSWERS_PER_QUERY: u64 = 2;

/// Answers over which this is found out: 10 ms at 25,000 a second.
pub(crate) const TURN_PAUSE_ANSWERS: u64 = 256;

/// Writes in a row without a pause: the A query that follows the answer to the AAAA query of a near upstream must not wait.
pub(crate) const WRITES_IN_A_ROW: u64 = 8;

/// Octets of queries that are written without a pause: 16 KiB, some 250 queries.
pub(crate) const WRITE_AT_ONCE: usize = 16 << 10;

/// Write buffers of closed TCP links that are kept for new links: 8 x 256 KiB at most.
pub(crate) const SPARE_ENCODERS: usize = 8;

// The reflector.

/// Octets of a query that are kept to send it a second time. Longer queries are ignored. A length has eight bits.
pub(crate) const REFLECTOR_QUESTION_OCTETS: usize = 255;

/// Links that are used in rotation. A link stays open until its slot is used again.
pub(crate) const REFLECTOR_LINKS: u16 = 64;

/// Queries that wait for replies, by their IDs of 16 bits: 65,536 of some 320 octets, 20 MiB.
pub(crate) const REFLECTOR_SLOTS: usize = 1 << 16;

// Start-up.

/// Longest entry of the user database that can be read, in octets. The C library suggests 1 KiB.
pub(crate) const USER_ENTRY_OCTETS: usize = 16 << 10;
