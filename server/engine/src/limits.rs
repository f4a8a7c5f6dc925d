//! Limits of the engine, each with its arithmetic. Configurable limits are in `settings.rs`.

use crate::base::time::Span;

/// Open links to all upstreams together. A UDP link carries at most [`LINK_QUESTIONS`] questions, and is used for at most
/// [`LINK_LIFE_SECS`]. A replaced link stays open until its last question is answered or given up (seconds). Two lookups of the
/// default 65,536 pending queries with 3 attempts each, all unanswered: 65,536 x 2 x 3 / 256 = 1,536.
pub const LINKS: usize = 2048;

/// Questions sent over one UDP link before a link with another random port replaces it (in the spirit of RFC 5452 section 9.2).
pub const LINK_QUESTIONS: usize = 256;

/// Seconds for which a UDP link is used before a link with another random port replaces it.
pub const LINK_LIFE_SECS: u64 = 10;

/// Questions sent over one TCP link before it is replaced. IDs count up from a random one, and half of the 65,536 are used, so
/// each is used once (RFC 7766 section 6.2.1).
pub const STREAM_QUESTIONS: usize = 32_768;

/// Upstream servers in one configuration, all zones together.
pub const UPSTREAMS: usize = 256;

/// Time without a reply after which an idle connection to an upstream is closed. Servers close idle connections
/// after 10 s (Knot Resolver) to 30 s (Unbound, BIND, dnsdist); a question that meets the end of a connection costs a round trip
/// more.
pub const STREAM_IDLE: Span = Span::from_secs(8);

/// Connections to one upstream that bounds its connections (`upstream/connection_policy.rs`). An upstream that closes after one
/// answer at 10 ms, with a handshake of 10 ms, answers 64 / 0.02 s = 3,200 queries a second and worker.
pub const STREAM_LINKS: usize = 64;

/// Pause of a question that waits for one of these connections. A thousand questions that wait take a worker 50,000 timers a
/// second.
pub const STREAM_PAUSE: Span = Span::from_millis(20);

/// Time after which a learned bound of an upstream's connections is forgotten, as the upstream may have another configuration.
pub const STREAM_MEMORY: Span = Span::from_secs(600);

/// Queries whose cache entries are loaded together: a batch of a datapath.
pub const PREFETCHED: usize = 64;

/// Longest time for which the questions of a lost connection wait for their upstream to accept another one: a restart takes a
/// second or two, and stub resolvers ask again after 5 s. An upstream that refused connections for this long counts as down, and
/// its questions fail at once.
pub const RECONNECT_PATIENCE: Span = Span::from_secs(3);

/// Pause between two connections to an upstream that refuses them. There is one connection at a time, not one per question.
pub const RECONNECT_PAUSE: Span = Span::from_millis(100);

/// Connections that a question may lose and be asked again at once, if the upstream has answered something over them. An upstream that closes
/// after a number of answers costs a question two, until the number is known. After that the question waits for [`RECONNECT_PAUSE`] each
/// time: 8 + 3 s / 0.1 s = 38 queries at most.
pub const RECONNECTS_AT_ONCE: u8 = 8;

/// Octets of the text of an extended DNS error. A response without records has at most 340 octets with an extended error
/// (`answer/builder.rs`), so 404 with this text, and 512 are free.
pub const EXTRA_TEXT: usize = 64;

/// Largest value of `upstream.tries`.
pub const TRIES: usize = 8;

/// Attempts that are stored for one question in flight, so that late replies still count: every attempt, the retry over TCP, the
/// retries without client subnet, without cookie and without OPT record, and the retry with a renewed cookie. Queries of a comparison
/// (`upstream/suspicion.rs`) take the places of attempts that were not needed.
pub const ATTEMPTS: usize = TRIES + 6;

/// Questions in flight for one name, type and class with different client subnets. Queries of further subnets are asked
/// upstream without a subnet. Such questions share a link, each with its own ID, so a forged reply that hits the right port matches one
/// of [`SUBNETS`] IDs instead of one, and each wrong guess ends UDP over this link for a question: one of 8 guesses at 8 of 65,536 IDs is
/// right with a probability below 8 x 8 / 65,536 = 0.1 %, times that of the port (1 in 64,512) and, where letters are mixed, of the letter
/// case (2 to the power of the letters). A question that comes back to UDP because nothing came over TCP has another port for each query,
/// where no other question waits (`upstream/suspicion.rs`). Without this limit, and with the 1,000 pending queries that a client may have,
/// the factor would be 15,000 times as much. With a round trip of 20 ms, 8 are enough for 400 different subnets a second that ask for one
/// name.
pub const SUBNETS: usize = 8;

/// Time for which a client waits for an answer over UDP: the default of stub resolvers (resolv.conf(5), `timeout`). If all attempts
/// at an upstream may take longer by configuration, this longer time counts. A later answer serves no client; an attacker may
/// have made many answers accumulate for a victim (DNSBomb, CVE-2024-33655).
pub const CLIENT_TIMEOUT: Span = Span::from_secs(5);

/// Age at which a pending query may give way to a new one, if its network has all of its share or the table is full, and if the
/// upstream is late with its reply: Unbound's `jostle-timeout`. Replies that are lost under overload would otherwise hold the places of
/// a network for all attempts (seconds), and its other queries, which the upstream answers, would be rejected for as long. 1,000 places
/// that are held for 200 ms allow for 5,000 lost replies a second.
pub const JOSTLE_AGE: Span = Span::from_millis(200);

/// Oldest pending queries of a network among which a late one is searched: 16 are at most 32 cache misses, about 2 microseconds, and
/// only while a limit is reached.
pub const JOSTLE_COMPARED: usize = 16;

/// Validations under way, of replies and of what they depend on. Each takes 480 octets: 1.9 MiB. Their messages are parked
/// ([`PARKED_OCTETS`]). With 100 microseconds for each, they are 0.4 s of the work of one thread.
pub const VALIDATIONS: usize = 4096;

/// Searches of zones under way. Each takes 368 octets. With 100 ms for each, 5,120 zones a second are found, half of them at most for one
/// customer.
pub const SEARCHES: usize = 512;

/// Octets of DS records and of keys on trial that the searches under way have kept, half of them at most for one customer. A zone with a DS
/// record of SHA-256 and a key of RSA with 2,048 bits takes 300; the longest that is accepted 11 KiB.
pub const SEARCH_OCTETS: usize = 1 << 18;

/// Searches that refresh what is known of zones, under way at a time. With 100 ms for each, 320 zones a second: those that expire in an hour
/// are a million.
pub const REFRESHES: usize = 32;

/// Octets of what is known of zones, with the index: 32 for an entry and some 5 for its place in the index. The name of an insecure zone takes
/// some 24 more, name and keys of one with three keys of P-256 some 250: 1.1 MiB are left for them, enough for [`ZONES`] of which 8 % are
/// signed.
pub const ZONE_OCTETS: usize = 2 << 20;

/// Zones that are known.
pub const ZONES: usize = 24_576;

/// Octets of denials that are used for other names (RFC 8198), with the entries that lead to them.
pub const RANGE_OCTETS: usize = 1 << 20;

/// Denials that are used for other names. A record with one signature of P-256 takes some 240 octets, so all of these have room: 16 octets for
/// each entry, 64 KiB of the whole.
pub const RANGES: usize = 4096;

/// Longest time for which a zone is known, in seconds: a day.
pub const ZONE_SECS: u32 = 86_400;

/// Verifications that a worker has outside at a time: enough to keep eight threads busy while results are on their way. It does not follow the
/// number of threads, as a worker can hardly feed more: a synthesized answer takes it some 25 microseconds, and its two verifications 150 of
/// a thread with P-256, so six threads. With a thread for each worker, as by default, a newcomer waits behind 32 at most.
pub const JOBS: usize = 32;

/// Places among which customers are spread, so that verifications are taken fairly.
pub const CUSTOMERS: usize = 256;

/// Flows among which the networks of a customer are spread. With 16 octets for a flow, those of all customers take 64 KiB.
pub const NETWORKS: usize = 16;

/// Pending queries of a question in flight among which the payer of its validation is searched.
pub const PAYERS_COMPARED: usize = 16;

/// Searches that a validation may wait for one behind the other: more than labels or budgets allow.
pub const SEARCHES_IN_A_ROW: usize = 64;

/// Names in one CNAME or DNAME chain (Unbound and BIND stop at 11 to 16).
pub const CHAIN: usize = 16;

/// CNAME and DNAME records, and signatures over the latter, in an answer section whose chain is followed: 15 of each kind,
/// every DNAME signed twice, are 60. Each name of them is hashed once.
pub const ALIASES: usize = 64;

/// Labels of the owners in an answer section of more than [`ALIASES`] records. Owners that are compressed to the question, or
/// to the same octets as that of the record before, are not counted: an answer that repeats a name of three labels in full has
/// room for 1,024 records. Each label is hashed once and compared once, at about 10 ns: 80 microseconds for a reply. The names of the aliases
/// in any answer section have no more labels either: fifteen aliases with names of 127 labels have 3,810.
pub const OWNER_LABELS: usize = 4096;

/// Questions asked upstream for one client query to chase a CNAME chain that the upstream left unfinished.
pub const HOPS: usize = 8;

/// Steps of one client query between two waits for an upstream, when every lookup has its reply here. Each of the [`HOPS`] names of a chase, and
/// the name asked, goes through five stages at most, with a step more for a reply that loses private addresses; a rule of a response policy
/// zone begins them anew once, and an alias that leads where the configuration decides costs a step more: 9 x (2 x 5 + 1) + 10 = 109. Each
/// step is as much work as a reply.
pub const STEPS: usize = 112;

/// Octets of a chain that was collected over several hops.
pub const CHAIN_OCTETS: usize = 4096;

/// Client queries that chase such a chain, or the alias of a reverse name under a prefix, at a time: 1,024 x 4 KiB = 4 MiB.
/// One client network alone gets a third of them, and one customer half (`client/chased.rs`).
pub const CHASES: usize = 1024;

/// Octets of parked replies: of the A lookup, which wait for the AAAA lookup (`lookup` parallel or staggered), and of those that are
/// validated. They are 100,000 replies of 160 octets. A reply of the A lookup that has no room is dropped, and asked again once the AAAA
/// lookup is decided.
pub const PARKED_OCTETS: usize = 16 << 20;

/// Token buckets of rate limits, a power of two: 2^17 of 16 octets are 2 MiB per worker, touched only if there is a limit. A
/// bucket matters until it is full again: at 20 queries a second, 1/20 s after the last query. So 2^17 buckets are enough for
/// 2.6 million networks a second.
pub const RATE_BUCKETS: usize = 1 << 17;

/// Rates of a customer (`client-prefix`), as a multiple of those of one client network. A household with a /56 uses a handful of its
/// 256 networks (home, guests, devices, a tunnel), rarely at the same moment; 4 is more than they need together, and a customer that
/// spreads its queries over all 256 gets 4 shares instead of 256. Forged sources of a whole /56 that use up these 4 shares cost
/// its clients nothing but the way to TCP, as with one network.
pub const CUSTOMER_RATES: u32 = 4;

/// Networks of one customer that are compared when the largest of them must give way. The search starts at the one that was largest
/// when it last grew, so it is exact for a network that floods. It is bounded because a /48 has 65,536 networks: 16 steps are
/// at most 16 cache misses, about a microsecond, and only while the table of pending queries is full.
pub const NETWORKS_COMPARED: usize = 16;

/// Client networks that are not allowed and whose refused queries are counted apart, for the log: 64 of 32 octets are 2 KiB per
/// worker. The server takes the table once a second; the queries of further networks are counted together.
pub const REFUSED_NETWORKS: usize = 64;

/// Records of an upstream's reply, all sections together, without OPT. A reply with more is a failure, which is cached as such: 64 KiB have room
/// for 5,000 records, and every pass over them takes 50 us and more, for each question again if the reply is not cached. Every
/// reply that is used can be cached; the offsets of its TTLs take 2 octets each.
///
/// Honest replies have far fewer. BIND serves at most 100 records of one type (`max-records-per-type`), PowerDNS Recursor 256
/// (`max-rrset-size`), so no zone that people can reach has RRsets larger than that. 512 are such an RRset with the signatures,
/// name servers and addresses that come with it, or a reply to ANY. A reply over UDP never has so many: 4,096 octets have room for
/// 340 records with data.
pub const REPLY_RECORDS: usize = 512;

/// Answers that are kept while several clients are served together: queries with and without EDNS wait for one reply, and those for A
/// records wait with those for AAAA records. Each takes up to 64 KiB, and its reply as much: 512 KiB per
/// worker, touched as far as messages are long. 1,000 clients that wait for an answer composed in 50 us would take 50 ms, copies of
/// 1,232 octets take 0.2 ms.
pub const KEPT_ANSWERS: usize = 4;

/// Octets of the shortest record: an owner of 1, and type, class, TTL and length.
pub const SHORTEST_RECORD: usize = 11;

/// Buckets of the cache index over which the entries of one name are spread: 8 for addresses with any flags, 256 for other types.
/// An operator's flush or lookup of a name reads all of them: 264 x 16 entries, about 1 ms if each has to be fetched from memory. A
/// client that wants to evict an entry of another type has to fill its bucket: 256 x 8 free slots, each asked for four times, are
/// 8,192 queries, and the name's addresses stay even then.
pub const NAME_BUCKETS: usize = 264;

/// Largest answer over UDP that may be configured, in octets.
pub const UDP_SIZE: usize = 4096;

/// Largest DNS message, in octets.
pub const MESSAGE: usize = 65_535;

/// Different IPv4 addresses of one answer that are stored, so that each is embedded once: the default of `dns64.max-records`
/// under a single prefix. They take 256 octets of stack. In an answer with more addresses, a later one may be embedded twice.
pub const DISTINCT: usize = 64;

/// Prefixes of one list: a word has a bit for each.
pub const LISTED: usize = 64;

/// Largest value of `dns64.max-records`.
pub const RECORDS: usize = 1024;

/// Octets of the longest answer in a packet cache, without its OPT record: hardly any answer with addresses has more.
pub const PACKET_CACHE_ANSWER: usize = 512;

/// Most records of an answer in a packet cache: 505 octets, the longest answer that the XDP program gives, have room for 12 AAAA records of 28
/// behind a question.
pub const PACKET_CACHE_RECORDS: usize = 12;

/// Entries of a packet cache. Each takes about 1 KiB in a stream thread, so 4 MiB, and half of that in the kernel.
pub const PACKET_CACHE_ENTRIES: usize = 4096;

/// Queries for the same answer in a second that make it worth a place in a packet cache. To put it there costs as much as three queries.
pub const PACKET_CACHE_POPULAR: u8 = 4;

/// Counters for the search of these answers: twice as many as entries, 8 octets each, 64 KiB.
pub const PACKET_CACHE_COUNTERS: usize = 2 * PACKET_CACHE_ENTRIES;

/// Counts in a row without a hit, one a second, after which an entry leaves a packet cache.
pub const PACKET_CACHE_IDLE_SECS: u8 = 10;

/// Entries that a packet cache may ask a worker for in one task, each of which takes some microseconds of the worker's turn.
pub const PACKET_CACHE_WANTED: usize = 32;

/// Names of all workers together whose synthesized answers are counted. A name with more than 1 in 8,192 of all answers is certainly among
/// them; under Zipf's law with a million names, that of rank 100 has 1 in 1,439. Each takes 352 octets, so all 2.8 MiB.
pub const NEEDS_NAMES: usize = 8192;

/// Client networks of a worker whose synthesized answers are counted, 66 octets each.
pub const NEEDS_NETWORKS: usize = 1024;

/// Queries of a worker whose other half, for A or AAAA records, may follow: those of the last seconds at 1,000 queries a second, 8 octets each.
pub const NEEDS_PAIRS: usize = 4096;

/// Clients of all workers that are known to have asked for `ipv4only.arpa`, 4 octets each: 256 KiB.
pub const NEEDS_CLIENTS: usize = 1 << 16;
