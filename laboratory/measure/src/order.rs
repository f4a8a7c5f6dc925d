//! Orders to a tester, an authority or the host of a device. They travel as JSON, so the roles may be threads of one
//! process, processes of one machine, or three hosts.

use crate::name_range::NameRange;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// One load on one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Address and port of the server.
    pub server: SocketAddr,
    /// Sending times of the queries.
    pub pace: Pace,
    /// Time of measured sending, in milliseconds. RFC 8219 section 9.2: at least 60,000.
    pub duration_ms: u64,
    /// Time of unmeasured sending before that, in milliseconds. All its queries are for new names, at the rate of new
    /// names in the measured time (or at a low rate if that has none).
    pub warm_up_ms: u64,
    /// Timeout in milliseconds: a reply later than this after its query was sent is late. RFC 8219 section 9.2: at
    /// most 1,000.
    pub timeout_ms: u64,
    /// Range of the queried names.
    pub names: NameRange,
    /// Number of the first name in the range.
    pub first_name: u64,
    /// Contents of a valid reply.
    pub expect: Expectation,
    /// Share of queries, 0 to 1, for a name that was answered at least two timeouts ago.
    pub cached_share: f64,
    /// Threads, sockets and cores of the load.
    pub lanes: Lanes,
    /// Seed of all random choices: message IDs, names to query again.
    pub seed: u64,
    /// Transport of the queries.
    #[serde(default)]
    pub transport: Transport,
}

impl Load {
    /// A load over UDP whose queries are all for new names: one thread, no warm-up, the timeout of RFC 8219 section 9.2, which is 1 s.
    pub fn of_new_names(
        server: SocketAddr,
        pace: Pace,
        duration: Duration,
        names: NameRange,
        expect: Expectation,
    ) -> Load {
        Load {
            server,
            pace,
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            warm_up_ms: 0,
            timeout_ms: 1000,
            names,
            first_name: 0,
            expect,
            cached_share: 0.0,
            lanes: Lanes::default(),
            seed: 1,
            transport: Transport::Udp,
        }
    }

    /// True if each query has a connection of its own.
    pub fn has_connection_per_query(&self) -> bool {
        match self.transport {
            Transport::Tcp | Transport::Tfo => true,
            Transport::Tls | Transport::Https | Transport::Quic => self.lanes.connection_per_query,
            Transport::Udp | Transport::TcpReuse => false,
        }
    }
}

/// Transport of the queries of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// One datagram for a query.
    #[default]
    Udp,
    /// One TCP connection for a query: it is opened, asked one query, and closed (RFC 7766 section 6.2).
    Tcp,
    /// A few TCP connections that stay open, with many queries in flight on each (RFC 7766 section 6.2.1.1).
    TcpReuse,
    /// One TCP connection for a query, with the query in the SYN if the kernel knows a Fast Open cookie (RFC 7413).
    Tfo,
    /// DNS over TLS (RFC 7858): a few connections that stay open, or one for each query (`Lanes::connection_per_query`).
    Tls,
    /// DNS over HTTPS (RFC 8484) with HTTP/2: a stream for each query, on connections as those of `Tls`.
    Https,
    /// DNS over QUIC (RFC 9250): a stream for each query, on connections as those of `Tls`.
    Quic,
}

impl Transport {
    /// All transports.
    pub const ALL: [Transport; 7] = [
        Transport::Udp,
        Transport::Tcp,
        Transport::TcpReuse,
        Transport::Tfo,
        Transport::Tls,
        Transport::Https,
        Transport::Quic,
    ];

    /// True for the transports with connections.
    pub fn is_stream(self) -> bool {
        self != Transport::Udp
    }

    /// True for the transports that encrypt.
    pub fn is_encrypted(self) -> bool {
        matches!(self, Transport::Tls) || self.is_multiplexed()
    }

    /// True for the transports that give each query a stream of its own on a connection.
    pub fn is_multiplexed(self) -> bool {
        matches!(self, Transport::Https | Transport::Quic)
    }

    /// The port of a server that is given without one (RFC 1035, RFC 7858, RFC 8484, RFC 9250).
    pub fn default_port(self) -> u16 {
        match self {
            Transport::Udp | Transport::Tcp | Transport::TcpReuse | Transport::Tfo => 53,
            Transport::Tls | Transport::Quic => 853,
            Transport::Https => 443,
        }
    }

    /// Its name in a sentence.
    pub fn title(self) -> &'static str {
        match self {
            Transport::Udp => "UDP",
            Transport::Tcp => "TCP, one connection for each query",
            Transport::TcpReuse => "TCP",
            Transport::Tfo => "TCP Fast Open",
            Transport::Tls => "TLS",
            Transport::Https => "HTTPS",
            Transport::Quic => "QUIC",
        }
    }

    /// The name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Udp => "udp",
            Transport::Tcp => "tcp",
            Transport::TcpReuse => "tcp-reuse",
            Transport::Tfo => "tfo",
            Transport::Tls => "tls",
            Transport::Https => "https",
            Transport::Quic => "quic",
        }
    }
}

/// Sending times of the queries.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// Open loop: an absolute schedule, independent of the replies.
    Open {
        /// Queries per second, over all threads.
        rate_qps: f64,
        /// Number of queries that are due at the same instant; 1 spaces them evenly.
        burst: u32,
    },
    /// Closed loop: a query whenever fewer than this are outstanding, as in dnsperf.
    Closed {
        /// Outstanding queries, over all threads.
        outstanding: u32,
    },
}

/// Threads, sockets and cores of a load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lanes {
    /// Sending threads, at least 1.
    pub senders: u16,
    /// Receiving threads; 0 means that the sending threads also receive.
    pub receivers: u16,
    /// Source ports of each sending thread, for each source address.
    pub ports: u16,
    /// Source addresses; empty: chosen by routing.
    pub sources: Vec<IpAddr>,
    /// Number of consecutive queries of a thread that leave from one port before the next port is used. Queries of a
    /// group that are due together can leave in one system call.
    pub group: u16,
    /// Cores for the sending threads, then for the receiving threads, in turn; empty: not pinned.
    pub pins: Vec<u16>,
    /// True if sending threads busy-wait instead of sleeping. For cores that nothing else uses.
    pub spin: bool,
    /// Connections that each sending thread keeps open for each source address, with [`Transport::TcpReuse`] and
    /// the encrypted transports.
    #[serde(default = "default_connections")]
    pub connections: u16,
    /// True if each query of an encrypted transport has a connection of its own.
    #[serde(default)]
    pub connection_per_query: bool,
    /// True if the source ports take their turns in a pseudorandom order, anew in each round (RFC 4814).
    #[serde(default)]
    pub random_ports: bool,
}

/// Connections of a thread unless the order says otherwise: some servers admit only ten from all clients together.
fn default_connections() -> u16 {
    4
}

impl Default for Lanes {
    fn default() -> Lanes {
        Lanes {
            senders: 1,
            receivers: 0,
            ports: 16,
            sources: Vec::new(),
            group: 1,
            pins: Vec::new(),
            spin: false,
            connections: default_connections(),
            connection_per_query: false,
            random_ports: false,
        }
    }
}

/// Rule by which a reply in time is valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Validity {
    /// It has exactly the expected records.
    #[default]
    Exact,
    /// Its RCODE is 0 and it has an answer record, whatever that holds: the rule of dns64perf++ and so of the results
    /// published with it. RFC 8219 section 9.2 asks for an AAAA record.
    Answered,
}

/// Contents of a valid reply to the AAAA query for a name: exactly these records, no more and no fewer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expectation {
    /// The zone of the names, without the final dot.
    pub zone: String,
    /// The DNS64 prefixes with their lengths. A name without AAAA records has one AAAA record per address and prefix.
    /// Empty: no synthesis; the zone's own AAAA records are expected (the self-test).
    pub prefixes: Vec<(Ipv6Addr, u8)>,
    /// Number of addresses of a name: the address in the name and its successors.
    pub addresses: u16,
    /// Number of CNAME records before the addresses.
    pub cname_depth: u16,
    /// Share of names that have AAAA records, equal to the authority's.
    pub aaaa_share: f64,
    /// The authority's seed for that share.
    pub aaaa_seed: u64,
    /// Lowest and highest valid TTL of an answer record, in seconds.
    pub ttl: (u32, u32),
    /// The rule; all fields above but the zone count only for [`Validity::Exact`].
    #[serde(default)]
    pub validity: Validity,
}

impl Expectation {
    /// One synthesized address for each name of a zone whose names have no AAAA records, with a TTL of at most an hour, which is that of an
    /// authority by default.
    pub fn synthesized(zone: &str, prefix: (Ipv6Addr, u8)) -> Expectation {
        Expectation { prefixes: vec![prefix], aaaa_share: 0.0, ..Expectation::native(zone) }
    }

    /// One AAAA record for each name of a zone whose names all have one, with such a TTL.
    pub fn native(zone: &str) -> Expectation {
        Expectation {
            zone: zone.to_owned(),
            prefixes: Vec::new(),
            addresses: 1,
            cname_depth: 0,
            aaaa_share: 1.0,
            aaaa_seed: 0,
            ttl: (0, 3600),
            validity: Validity::Exact,
        }
    }
}

/// Options of an authority.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Authority {
    /// Addresses to listen on, UDP and TCP; port 0 means any free port.
    pub listen: Vec<SocketAddr>,
    /// Threads; 0 means that the tester's own thread serves the authority in turn with the load.
    pub threads: u16,
    /// Cores for the threads; empty: not pinned.
    pub pins: Vec<u16>,
    /// The zone of the names, without the final dot.
    pub zone: String,
    /// Share of names that have AAAA records, 0 to 1.
    pub aaaa_share: f64,
    /// Seed that selects these names.
    pub seed: u64,
    /// Number of addresses of each name.
    pub addresses: u16,
    /// Number of CNAME records before the addresses.
    pub cname_depth: u16,
    /// TTL of all records and the negative TTL, in seconds.
    pub ttl: u32,
    /// True if datagrams of equal length may come and leave together (UDP GRO and GSO), as no wire carries them.
    pub offload: bool,
}
