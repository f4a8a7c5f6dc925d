//! The facts that a host gathers about its network. What could not be looked at is there, too, with its reason: nothing is judged by it.

use pref64::Pref64;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};

/// A fact, or the reason why nobody knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Looked<T> {
    /// It was looked at.
    Seen(T),
    /// It was not, for this reason. The reason says what to do.
    Not(String),
}

impl<T> Looked<T> {
    /// The fact, if it is known.
    pub fn seen(&self) -> Option<&T> {
        match self {
            Looked::Seen(fact) => Some(fact),
            Looked::Not(_) => None,
        }
    }
}

/// Everything that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The clock of the host.
    pub clock: Clock,
    /// The host itself.
    pub host: Host,
    /// Routers, by their advertisements.
    pub routers: Looked<Vec<Router>>,
    /// Offers of DHCPv4 servers.
    pub offers: Looked<Vec<Offer>>,
    /// Resolvers.
    pub resolvers: Vec<Resolver>,
    /// The prefixes of a Sixfold on this host, by its own word.
    pub server: Looked<Vec<ServerPrefix>>,
    /// What passes through each prefix.
    pub paths: Looked<Vec<Path>>,
}

/// The clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Time of the host, in seconds since 1970.
    pub now_secs: u64,
    /// Time before which no clock is right, in the same unit: this program did not exist.
    pub earliest_secs: u64,
    /// Inception and expiration of fresh signatures (RFC 4034 section 3.1.5), in the same unit.
    pub signatures: Vec<(u64, u64)>,
}

/// The host, as its network interface towards the network shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Name of the interface.
    pub interface: String,
    /// Its MTU in octets.
    pub mtu: u32,
    /// Global and unique local addresses of the host (RFC 4291, RFC 4193).
    pub ipv6: Vec<Ipv6Addr>,
    /// IPv4 addresses of the host that reach others: neither loopback, nor link-local, nor those of a CLAT.
    pub ipv4: Vec<Ipv4Addr>,
    /// Address of a CLAT: in 192.0.0.0/29 (RFC 7335).
    pub clat: Option<Ipv4Addr>,
    /// True if there is a default route for IPv6.
    pub has_default_route: bool,
}

impl Host {
    /// True if a program with an IPv4 address alone reaches its server.
    pub fn has_ipv4(&self) -> bool {
        !self.ipv4.is_empty() || self.clat.is_some()
    }
}

/// A router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Router {
    /// Its link-local address.
    pub address: Ipv6Addr,
    /// Time for which it is a default router, in seconds (RFC 4861 section 4.2). None: not known.
    pub lifetime_secs: Option<u16>,
    /// Its MTU option, in octets (RFC 4861 section 4.6.4).
    pub mtu: Option<u32>,
    /// Its RDNSS options (RFC 8106 section 5.1).
    pub resolvers: Vec<Ipv6Addr>,
    /// Its PREF64 options (RFC 8781 section 4).
    pub prefixes: Vec<Announced>,
    /// Number of its PREF64 options that receivers must ignore.
    pub malformed: usize,
    /// Encrypted resolvers of its DNR options (RFC 9463 section 6.1).
    pub encrypted: Vec<Encrypted>,
}

/// A prefix that a router announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announced {
    /// The prefix.
    pub prefix: Pref64,
    /// Time for which it may be used, in seconds. 0: no longer.
    pub lifetime_secs: u32,
}

/// An offer of a DHCPv4 server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The server.
    pub server: Ipv4Addr,
    /// The address that it offers; unspecified if it offers none.
    pub address: Ipv4Addr,
    /// Its option 108 (RFC 8925). None: it has none.
    pub ipv6_only: Option<Wait>,
}

/// The value of option 108.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Time for which IPv4 is off, in seconds.
    Secs(u32),
    /// A value of this many octets instead of four, which clients must ignore.
    Malformed(usize),
}

/// A resolver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolver {
    /// Address and port.
    pub address: SocketAddr,
    /// The answer to the AAAA question for `ipv4only.arpa`, over UDP.
    pub udp: Answer,
    /// The same over TCP.
    pub tcp: Answer,
    /// Its encrypted transports, as it offers them itself (RFC 9461, RFC 9462).
    pub encrypted: Vec<Encrypted>,
    /// Addresses in the answer to the A question for `ipv4only.arpa`. None: no answer, or a failure.
    pub ipv4only: Option<Vec<Ipv4Addr>>,
    /// Addresses in the answer to the AAAA question. None: as above.
    pub synthesized: Option<Vec<Ipv6Addr>>,
    /// The prefixes that these addresses tell (RFC 7050).
    pub prefixes: Vec<Pref64>,
    /// True if it says in RESINFO (RFC 9606) that it does DNS64.
    pub says_dns64: bool,
    /// The reverse name of a synthesized address.
    pub reverse: Looked<Reverse>,
    /// A name with A records only, which a person has named.
    pub name: Looked<NameAnswers>,
    /// Its behaviour with signed zones.
    pub dnssec: Looked<Dnssec>,
}

impl Resolver {
    /// True if it answers over a transport that every client has.
    pub fn answers(&self) -> bool {
        self.udp.is_success() || self.tcp.is_success()
    }

    /// True if it does DNS64.
    pub fn does_dns64(&self) -> bool {
        !self.prefixes.is_empty()
    }
}

/// The answer of a resolver over one transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A message with this RCODE.
    Rcode(u16),
    /// A message that is none of DNS, or not the reply to the question.
    Garbage,
    /// Nothing in time.
    Silent,
    /// The port is closed.
    Closed,
    /// There is no way to the address.
    Unreachable,
}

impl Answer {
    /// True for NOERROR, and for NXDOMAIN, which is an answer, too.
    pub fn is_success(self) -> bool {
        matches!(self, Answer::Rcode(0 | 3))
    }

    /// True if a message of DNS came.
    pub fn is_message(self) -> bool {
        matches!(self, Answer::Rcode(_))
    }
}

/// An encrypted transport that a resolver offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encrypted {
    /// `TLS`, `HTTPS` or `QUIC`.
    pub transport: &'static str,
    /// Address and port.
    pub address: SocketAddr,
    /// The reason why no answer came over it. None: one came.
    pub failure: Option<String>,
    /// A fault of its certificate, which a client that authenticates the server refuses. None: there is none, or no certificate came.
    pub certificate: Option<String>,
}

/// The answer to a PTR question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reverse {
    /// A name, or an alias to the reverse name of the IPv4 address.
    Known,
    /// Neither: RCODE of the answer.
    Unknown(u16),
    /// No answer.
    Silent,
}

/// Answers for a name with A records only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameAnswers {
    /// The name.
    pub name: String,
    /// Its A records.
    pub ipv4: Vec<Ipv4Addr>,
    /// Its AAAA records.
    pub ipv6: Vec<Ipv6Addr>,
    /// Its AAAA records for a client that validates: with DO and CD set (RFC 6147 section 5.5).
    pub validating: Vec<Ipv6Addr>,
}

/// Behaviour with signed zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dnssec {
    /// True if a question with DO gets signatures.
    pub has_signatures: bool,
    /// True if data that do not validate are refused. None: not asked.
    pub refuses_bogus: Option<bool>,
    /// True if it gives such data to a client that sets CD. None: not asked.
    pub obeys_cd: Option<bool>,
}

/// A prefix of a local server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerPrefix {
    /// The prefix.
    pub prefix: Pref64,
    /// True if the probes of its gateway fail.
    pub is_down: bool,
}

/// The way through a gateway to an IPv4 address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Prefix of the gateway.
    pub prefix: Pref64,
    /// The IPv4 address behind it, with the port for TCP and UDP.
    pub target: SocketAddrV4,
    /// A TCP connection.
    pub tcp: Passage,
    /// A datagram.
    pub udp: Passage,
    /// An echo request.
    pub icmp: Looked<Passage>,
    /// An echo request in a packet of 1,280 octets.
    pub smallest_mtu: Looked<Passage>,
    /// An echo request in a packet of the interface's MTU.
    pub link_mtu: Looked<Passage>,
    /// A datagram in fragments.
    pub fragments: Looked<Passage>,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// An answer came from the target; a refusal is one, too.
    Passed,
    /// An ICMP error said that the packet is too big, as path MTU discovery wants it (RFC 8201).
    TooBig,
    /// Another ICMP error came.
    Unreachable,
    /// Nothing came.
    Lost,
}

impl Passage {
    /// True if the target answered.
    pub fn has_passed(self) -> bool {
        self == Passage::Passed
    }
}

/// An address without its port if the port is that of DNS, as people write it.
pub fn shown(address: SocketAddr) -> String {
    match address {
        SocketAddr::V6(v6) if v6.port() == 53 && v6.scope_id() != 0 => {
            format!("{}%{}", v6.ip(), v6.scope_id())
        }
        _ if address.port() == 53 => address.ip().to_string(),
        _ => address.to_string(),
    }
}

/// True if the address belongs to the host itself.
pub fn is_loopback(address: SocketAddr) -> bool {
    match address.ip() {
        IpAddr::V4(address) => address.is_loopback(),
        IpAddr::V6(address) => address.is_loopback(),
    }
}
