//! The types of the effective configuration.

use super::{LocalRecord, Name, Network};
use engine::cookie::Cookies;
use engine::settings::{ClientSubnet, Dnssec, FailurePolicy, Lookup, Reverse, Select, Transport};
use pref64::Pref64;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The effective configuration. Names and meanings are those of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `[server]`.
    pub server: Server,
    /// `[upstream]` and `[[upstream.zone]]`.
    pub upstream: Upstream,
    /// `[dns64]`.
    pub dns64: Dns64,
    /// `[local]`.
    pub local: Local,
    /// `[filter] block`: names that do not exist, and all below them.
    pub blocked: Vec<Name>,
    /// `[filter] rpz`.
    pub rpz: Rpz,
    /// `[cache]`.
    pub cache: Cache,
    /// `[edns] udp-size`: the largest UDP message in both directions, in octets.
    pub udp_size: u16,
    /// `[edns] client-subnet`: what is done with the client subnets of queries.
    pub client_subnet: ClientSubnet,
    /// `[edns] cookies` and `cookie-secret`; without a secret one is drawn at start.
    pub cookies: Cookies,
    /// `[limits]`.
    pub limits: Limits,
    /// `[metrics] listen`: the address of the HTTP server; none when it is switched off (`""`).
    pub metrics_listen: Option<SocketAddr>,
    /// `[control] socket`: the path of the control socket; none when it is switched off (`""`).
    pub control_socket: Option<PathBuf>,
    /// `[log]`.
    pub log: Log,
}

/// `[server]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// UDP and TCP on each, at least one, no two alike. Without a file, and in a file without this key: port
    /// 5364 on the loopback addresses, so that a trial run needs no privilege and disturbs nothing.
    pub listen: Vec<SocketAddr>,
    /// Worker threads; none means one per core.
    pub workers: Option<u16>,
    /// Who may ask.
    pub allow: Vec<Network>,
    /// How the kernel picks the worker of a datagram.
    pub steer: Steer,
    /// The identity taken after binding, when started as root. None: `sixfold`, and only a warning when there
    /// is no such user.
    pub user: Option<String>,
    /// Who sends a PROXY header, which is believed.
    pub proxy_from: Vec<Network>,
}

/// How the kernel picks the worker of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steer {
    /// By a hash of the name asked, so that equal questions meet.
    Name,
    /// By addresses and ports.
    Flow,
}

/// Forwarders of the root or of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarders {
    /// Whether they were taken from the system (`"system"`).
    pub system: bool,
    /// Their addresses, in order, at least one.
    pub addresses: Vec<SocketAddr>,
}

/// `[[upstream.zone]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// The zone's name.
    pub zone: Name,
    /// Where names in it are asked.
    pub forwarders: Forwarders,
}

/// `[upstream]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Upstream {
    /// For everything that no zone claims.
    pub forwarders: Forwarders,
    /// Zones that go elsewhere, no two of the same name.
    pub zones: Vec<Zone>,
    /// Which forwarder is asked first.
    pub select: Select,
    /// Ceiling of the wait of one try.
    pub timeout: Duration,
    /// Tries in all.
    pub tries: u8,
    /// How questions travel.
    pub transport: Transport,
    /// TCP Fast Open (RFC 7413) towards forwarders.
    pub tcp_fast_open: bool,
}

/// `[dns64]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Dns64 {
    /// The prefixes, in order, at least one, no two alike; the suffix is part of each.
    pub prefixes: Vec<Pref64>,
    /// The suffix of every prefix.
    pub suffix: Ipv6Addr,
    /// Clients that get synthesis.
    pub clients: Vec<Network>,
    /// Real AAAA records in these count as absent; contains the prefixes.
    pub exclude_aaaa: Vec<Network>,
    /// `non-global = "embed"`: addresses that are not global may be embedded in the well-known prefix.
    pub embed_non_global: bool,
    /// IPv4 addresses that are never embedded.
    pub never_embed: Vec<Network>,
    /// Order of the two legs.
    pub lookup: Lookup,
    /// `[dns64.on-failure]`.
    pub on_failure: FailurePolicy,
    /// Trust in the AD bit of the upstream.
    pub dnssec: Dnssec,
    /// Synthesize even when DO and CD are both set.
    pub break_dnssec: bool,
    /// No synthesis for queries without RD.
    pub recursive_only: bool,
    /// What is done with the reverse names of addresses under the prefixes.
    pub ptr: Reverse,
    /// Name of the server in the SOA of the zones that are answered here.
    pub ptr_server: Name,
    /// Mailbox of who is responsible for them, as a name.
    pub ptr_contact: Name,
    /// Whether `ipv4only.arpa` is answered here.
    pub ipv4only_arpa: bool,
    /// `[[dns64.rule]]`, in order.
    pub rules: Vec<Rule>,
    /// Synthesized records in one answer.
    pub max_records: usize,
}

/// One `[[dns64.rule]]`. An empty list of what it matches stands for everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// Who asks.
    pub clients: Vec<Network>,
    /// The names asked, and all below them.
    pub names: Vec<Name>,
    /// IPv4 addresses.
    pub ipv4: Vec<Network>,
    /// The prefixes that carry them, with the suffix; none: such addresses are left out.
    pub prefixes: Vec<Pref64>,
    /// `real-aaaa = "ignore"`.
    pub ignores_real: bool,
}

/// `[local]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Local {
    /// Records of our own.
    pub records: Vec<LocalRecord>,
    /// The hosts file.
    pub hosts_file: Option<PathBuf>,
    /// What it said when it was read.
    pub hosts: Vec<engine::own::Record>,
}

/// `[filter] rpz`: response policy zones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rpz {
    /// Their files, in order.
    pub files: Vec<PathBuf>,
    /// What these said when they were read.
    pub policy: Arc<engine::policy::Policy>,
}

/// `[limits]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Queries that wait for an upstream, per worker.
    pub pending: usize,
    /// Of these, queries of one network (IPv6 /64, IPv4 /32).
    pub pending_per_client: u32,
    /// Queries of one network in a second; 0: no limit.
    pub queries_per_client: u32,
    /// Answers of one kind to one network over UDP in a second; 0: no limit.
    pub responses_per_client: u32,
    /// Client connections in all.
    pub tcp_connections: usize,
    /// Client connections of one network.
    pub tcp_per_client: usize,
    /// A client connection is closed after so much silence.
    pub tcp_idle: Duration,
}

/// `[cache]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Octets of all workers together; 0: no cache.
    pub size: u64,
    /// No TTL is smaller.
    pub min_ttl: Duration,
    /// No TTL is larger.
    pub max_ttl: Duration,
    /// Answers that there is nothing are not kept longer.
    pub max_negative_ttl: Duration,
    /// How long after expiry data may still answer; zero: not at all.
    pub stale: Duration,
    /// Whether what is asked for is asked again before it expires.
    pub prefetch: bool,
}

/// `[log]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// What is logged: this level and all that are more severe.
    pub level: Level,
    /// How a line looks.
    pub format: Format,
}

/// `log.level`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something does not work.
    Error,
    /// Something may not work soon, or not as expected.
    Warn,
    /// Starts, stops, reloads, upstreams that fail and recover.
    Info,
    /// For the operator who looks for a fault.
    Debug,
    /// Everything.
    Trace,
}

/// `log.format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}
