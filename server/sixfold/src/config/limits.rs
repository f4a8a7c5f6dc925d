//! Limits of configuration values, with their reasons. The engine has limits of its own (`engine::limits`).

use engine::needs::EXACT_NETWORKS;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Octets of a configuration file. A large one has some kilobytes. Local data may be long, but a file of gigabytes is a
/// mistake (a device, a log) and must not fill the memory.
pub const FILE_OCTETS: u64 = 16 << 20;

/// Octets of a file of trust anchors: thousands of records.
pub const ANCHOR_OCTETS: u64 = 1 << 20;

/// Zones whose signatures are not looked at. Each name that is validated is compared with all of them: 1,024 comparisons are a few
/// microseconds.
pub const NEGATIVE_ANCHORS: usize = 1024;

/// Reported faults of a file of mappings: the first ones show the error, and a file of another kind has thousands.
pub const MAPPING_FAULTS: usize = 20;

/// Worker threads: one per core; large servers have 256 cores.
pub const WORKERS: RangeInclusive<u64> = 1..=256;

/// Time for a new process of an upgrade to become ready. One that takes longer reads no file of a sensible size.
pub const UPGRADE_PATIENCE: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(600);

/// Wait of `sixfold doctor` for each answer. The round trip to a satellite and back takes 0.6 s.
pub const DOCTOR_WAIT: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(30);

/// Listening addresses. Each costs three descriptors per worker: 64 x 3 x 256 = 49,152 descriptors at worst.
pub const LISTENERS: usize = 64;

/// Interfaces with an XDP program. Servers have one or two towards their clients.
pub const INTERFACES: usize = 8;

/// Networks in one list. Each query is compared with them one by one: 1,024 comparisons of 128 bits take about a
/// microsecond, as much as a whole resolution should cost.
pub const NETWORKS: usize = 1024;

/// The same, with the name of the items and the remedy for more.
pub const MOST_NETWORKS: Option<(usize, &str, &str)> =
    Some((NETWORKS, "networks", "join adjacent networks into larger ones"));

/// Prefixes: each IPv4 address gives one record per prefix, and an answer has at most 1,024 records.
pub const PREFIXES: usize = 64;

/// Interval of the probes of a gateway. With 64 gateways and 8 probes each, one tenth of a second makes 5,120 probes a second; after ten
/// minutes nobody would call it health.
pub const PROBE_INTERVAL: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(600);

/// Timeout of a probe. Below 10 ms the scheduler decides.
pub const PROBE_TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(600);

/// Outcomes in a row that change the state of a gateway.
pub const PROBE_ROW: RangeInclusive<u64> = 1..=100;

/// Weight of a gateway. Finer shares than a thousandth have no use among 64 gateways.
pub const WEIGHT: RangeInclusive<u64> = 0..=1000;

/// Longest TTL of an answer with a probed prefix. With 0 nothing of it could be cached; after a day the host has another address anyway.
pub const ANSWER_TTL: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(86_400);

/// Time over which the clients of a prefix leave it. In a second all leave at once; a drain of more than a day was forgotten.
pub const DRAIN: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(86_400);

/// Time for which a negative trust anchor is added while the server runs.
pub const NEGATIVE_LIFE: RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(::anchors::limits::NEGATIVE_SECONDS);

/// Source addresses. Each adds to what a forger has to guess; 64 of them are 6 bits.
pub const SOURCES: usize = 64;

/// Entries of the list of ports to avoid.
pub const AVOIDED_PORTS: usize = 1024;

/// Ports that questions may leave from, at least: 14 bits of the 16 that a forger of replies has to guess beside the message ID. All
/// 64,512 unprivileged ports are 15.98 bits (RFC 5452 section 7.2).
pub const FEWEST_PORTS: usize = 1 << 14;

/// Forward zones: 2^16 of them in 16 MiB of text. Each takes about 100 octets in every worker, 6.5 MiB in all; a lookup does not
/// depend on their number.
pub const ZONES: usize = 1 << 16;

/// Comparisons of rules with earlier ones, in search of rules that never apply: 2^24 of about 10 ns are 0.2 s.
pub const RULE_COMPARISONS: usize = 1 << 24;

/// Rules that never apply that are reported one by one.
pub const SHADOWED_RULES: usize = 20;

/// Rules: as many as the largest lists of broken names today have entries; 2^16 rules are built in less than a second.
pub const RULES: usize = 1 << 16;

/// Client networks of a name before it is shown. Up to 16 are counted exactly.
pub const MIN_CLIENTS: RangeInclusive<u64> = 1..=EXACT_NETWORKS as u64;

/// Octets of all records of one name: the room of an answer beside the question and an OPT record.
pub const LOCAL_OCTETS: usize = 60_000;

/// Octets of the files of all response policy zones together: 2^23 names, the maximum of the engine, at 60 octets a line.
/// The files are in memory while they are read, one at a time.
pub const RPZ_OCTETS: u64 = 512 << 20;

/// Reported faults of a response policy zone: the first ones show the error, and a file of another kind has millions.
pub const RPZ_FAULTS: usize = 20;

/// Reasons for which records of a response policy zone are left out that are told one by one: the first ones show the error.
pub const RPZ_REASONS: usize = 20;

/// Lines that are told for each of them, beside the first.
pub const RPZ_PLACES: usize = 10;

/// Parentheses without an end, behind which a response policy zone is read on: each costs a walk through the rest of the file.
pub const RPZ_OPEN: usize = 16;

/// TTL of a record, in seconds, if neither the record nor the file says one.
pub const DEFAULT_TTL: u32 = 3600;

/// Words of a hosts file that are reported one by one as left out: the first ones show the error, and a file of another
/// kind has millions.
pub const HOSTS_WARNINGS: usize = 20;

/// Timeout of one try. Below 10 ms the scheduler decides; after 30 s every client has given up (RFC 1035 section 4.2.1
/// proposes 2 to 5 s).
pub const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(30);

/// Delay of the A lookup in a staggered lookup: with a delay above the longest timeout the A lookup would never start.
pub const STAGGER: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(30);

/// Pending queries per worker, reserved at start: 2^20 of about 1,500 octets are 1.5 GiB per worker.
pub const PENDING: RangeInclusive<u64> = 1..=1 << 20;

/// Queries or responses of a client network in a second; 0: no limit. A million is more than a worker handles; the engine
/// counts in nanoseconds.
pub const RATE: RangeInclusive<u64> = 0..=1_000_000;

/// Bits of the prefix that one customer has: RFC 6177 speaks of a /48 and of longer prefixes, households mostly have a /56, and
/// a phone has one /64. At 64 there is no second level above the /64.
pub const CLIENT_PREFIX: RangeInclusive<u64> = 48..=64;

/// Client connections, one descriptor each: 2^20 is the usual hard limit of a process.
pub const CONNECTIONS: RangeInclusive<u64> = 1..=1 << 20;

/// Idle time of a client connection. RFC 7766 section 6.2.3 speaks of seconds; an hour is for local clients that keep one
/// connection open.
pub const TCP_IDLE: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(3600);

/// TTLs: RFC 2181 section 8 limits them to 31 bits of seconds; a year is longer than any cache keeps data.
pub const TTL: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(365 * 86_400);

/// Octets of the cache, of all workers together. Below 1 MiB the share of a worker holds no message of usual size; 1 TiB
/// is more memory than any machine that runs this server has.
pub const CACHE: RangeInclusive<u64> = 1 << 20..=1 << 40;

/// Path of DNS over HTTPS, as RFC 8484 has it in its examples.
pub const DEFAULT_DOH_PATH: &str = "/dns-query";

/// Octets of the path of DNS over HTTPS. Path and query of a request have at most 8,192 octets, and the longest query takes 5,462 of them.
pub const DOH_PATH: usize = 1024;

/// Octets of the path of a Unix socket: `sun_path` has 108, the last one is zero (unix(7)).
pub const SOCKET_PATH: usize = 107;

/// Nameservers used from resolv.conf. The C library uses three; some systems list more.
pub const SYSTEM_FORWARDERS: usize = 16;

/// Interfaces of a router in `[network]`: switches with routing have some hundred, and files for so many are still written at once.
pub const NETWORK_INTERFACES: usize = 256;

/// Octets of a packet on a link. `sixfold plan` refuses what no link with IPv6 has, with the reason.
pub const MTU: RangeInclusive<u64> = 68..=65_575;

/// Times in router advertisements and DHCPv4. A week is more than any of them may be but the wait of option 108, and a network that clients
/// take for a week as it was cannot be changed. `sixfold plan` knows the limits of each, and their reasons.
pub const ANNOUNCED: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(7 * 86_400);

/// Resolvers in one router advertisement: more do not fit into a packet beside the other options, and clients keep about three.
pub const ANNOUNCED_RESOLVERS: usize = 16;
