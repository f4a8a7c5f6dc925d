//! Every bound of the engine, with the arithmetic. What is configurable has its default in `settings.rs`.

use crate::base::time::Span;

/// Links to upstreams that are open at a time, of all upstreams. A UDP link carries at most
/// [`LINK_QUESTIONS`] questions or lives [`LINK_LIFE_SECS`]; a replaced one lingers until its last question is
/// answered or given up (seconds). Two legs of the default 65,536 pending queries with 3 tries each, none of
/// them answered: 65,536 x 2 x 3 / 256 = 1,536.
pub const LINKS: usize = 2048;

/// Questions asked over one UDP link before another random port takes over (RFC 5452 section 9.2 in spirit).
pub const LINK_QUESTIONS: usize = 256;

/// Seconds that a UDP link is used before another random port takes over.
pub const LINK_LIFE_SECS: u64 = 10;

/// Questions over one TCP link before it is replaced: IDs count upwards from a random one, and half of the
/// 65,536 are used, so none comes twice (RFC 7766 section 6.2.1).
pub const STREAM_QUESTIONS: usize = 32_768;

/// Upstream servers in one configuration, all zones together.
pub const UPSTREAMS: usize = 256;

/// The most that `upstream.tries` may ask for.
pub const TRIES: usize = 8;

/// Attempts that one question remembers, so that late replies still count: every try, the move to TCP, the question
/// without its client subnet, its cookie or its OPT record, and with a renewed cookie.
pub const ATTEMPTS: usize = TRIES + 6;

/// Questions in flight for one name, type and class that differ in their client subnets; further subnets are asked for
/// without one. Each such question has an ID of its own, so a forged reply that hits the right port fits one of
/// [`SUBNETS`] IDs instead of one, and every wrong one moves a question to TCP: 8 guesses at 8 of 65,536 IDs are right
/// with a probability below 8 x 8 / 65,536 = 0.1 %, times that of the port (1 in 64,512) and of the letter case (2 to the
/// power of the letters). Without the bound, and with the 1,000 pending questions that a client may have, the factor would
/// be 15,000 times as much. With a round trip of 20 ms, 8 suffice for 400 different subnets a second that ask for one name.
pub const SUBNETS: usize = 8;

/// How long a client waits for an answer over UDP: what resolvers of hosts do by default (resolv.conf(5), `timeout`). Whoever
/// lets all tries at an upstream take longer has clients that wait as long. What comes later is for nobody, or for a victim
/// for whom many answers were made to accumulate (DNSBomb, CVE-2024-33655).
pub const CLIENT_TIMEOUT: Span = Span::from_secs(5);

/// Names in one CNAME or DNAME chain (Unbound and BIND stop at 11 to 16).
pub const CHAIN: usize = 16;

/// CNAME and DNAME records, and signatures over the latter, in an answer section whose chain is followed: 15 of each kind,
/// every DNAME signed twice, make 60. Each is compared with [`CHAIN`] names at most.
pub const ALIASES: usize = 64;

/// Labels of the owners in an answer section of more than [`ALIASES`] records, those that point at the question or at the same
/// octets as the record before left out: an answer that repeats a name of three labels in full has room for 1,024 records.
/// Each label is compared with [`CHAIN`] names at most, at some 15 ns: 1 ms for a reply.
pub const OWNER_LABELS: usize = 4096;

/// Questions asked for one client question to follow a chain that the upstream left unfinished.
pub const HOPS: usize = 8;

/// Octets that a chain collected over several hops may take.
pub const CHAIN_OCTETS: usize = 4096;

/// Client questions that follow such a chain, or the alias of a reverse name under a prefix, at a time: 1,024 x 4 KiB = 4 MiB.
/// One client network alone gets half of them (`followed.rs`).
pub const CHASES: usize = 1024;

/// Octets of replies of the A leg that wait for the AAAA leg (`lookup` parallel or staggered): 100,000 replies of
/// 160 octets. Beyond it, the A leg is asked again once the AAAA leg is decided.
pub const PARKED_OCTETS: usize = 16 << 20;

/// Buckets of rate limits: 2^17 of 16 octets, 2 MiB per worker, touched only when there is a limit. A bucket matters until
/// it is full again: at 20 queries a second 1/20 s after the last query, so 2^17 are enough for 2.6 million networks a second.
/// A power of two.
pub const RATE_BUCKETS: usize = 1 << 17;

/// Records of a message that is kept in the cache; messages with more are not kept. Their places take 2 octets each.
pub const CACHED_RECORDS: usize = 256;

/// The largest answer over UDP that may be configured, in octets.
pub const UDP_SIZE: usize = 4096;

/// The largest DNS message, in octets.
pub const MESSAGE: usize = 65_535;

/// Different IPv4 addresses of one answer that are remembered, so that none is embedded twice: the default of
/// `dns64.max-records` under a single prefix. 256 octets of stack; a set with more repeats itself behind them at worst.
pub const DISTINCT: usize = 64;

/// Bound of `dns64.max-records`.
pub const RECORDS: usize = 1024;
