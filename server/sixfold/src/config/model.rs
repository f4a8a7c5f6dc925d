//! The types of the effective configuration. Names and meanings are those of the file; see sixfold.toml(5).

use super::port_range::PortRange;
use super::{Allow, ConfiguredRecord, Name, Network, limits};
use dnstap::Destination;
use engine::message::cookie::Cookies;
use engine::settings::{ClientSubnet, Dnssec, FailurePolicy, Lookup, Reverse, Select, Transport};
use pref64::Pref64;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tls::ServerTls;
use tls::anchors::{AnchorSource, Anchors};
use tls::identity::Identity;

/// The effective configuration.
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
    /// `[edns] client-subnet`: the treatment of client subnets in queries.
    pub client_subnet: ClientSubnet,
    /// `[edns] cookies` and `cookie-secret`; without a secret the server draws one at start.
    pub cookies: Cookies,
    /// `[limits]`.
    pub limits: Limits,
    /// `[metrics] listen`: the address of the HTTP server; none when switched off (`""`).
    pub metrics_listen: Option<SocketAddr>,
    /// `[control] socket`: the path of the control socket; none when switched off (`""`).
    pub control_socket: Option<PathBuf>,
    /// `[tls]`.
    pub tls: Tls,
    /// `[log]`.
    pub log: Log,
}

/// `[server]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Listening addresses, UDP and TCP on each: at least one, all different. The default is port 5364 on the loopback
    /// addresses, so that a trial run needs no privilege and disturbs nothing.
    pub listen: Vec<SocketAddr>,
    /// Worker threads; none means one per core.
    pub workers: Option<u16>,
    /// Networks whose queries are answered.
    pub allow: Allow,
    /// How the kernel chooses the worker of a datagram.
    pub steer: Steer,
    /// The way of datagrams between the network and the workers.
    pub datapath: Datapath,
    /// Interfaces of `datapath = "xdp"`, all different.
    pub interfaces: Vec<String>,
    /// User that a server started as root becomes after binding. None: `sixfold`, with only a warning when there is no
    /// such user.
    pub user: Option<String>,
    /// The sandbox: after binding the server gives up its capabilities, and restricts its file accesses and system calls.
    pub sandbox: bool,
    /// Networks of proxies whose PROXY headers are trusted.
    pub proxy_from: Vec<Network>,
    /// True if addresses are bound that no interface has yet (IP_FREEBIND).
    pub freebind: bool,
    /// Identity for clients that ask for it; empty: not told.
    pub identity: String,
    /// Version for clients that ask for it; empty: not told.
    pub version: String,
}

impl Server {
    /// Worker threads in effect: one per core of this machine, unless a number is set.
    pub fn worker_count(&self) -> usize {
        let per_core = || std::thread::available_parallelism().map_or(1, usize::from);
        self.workers.map_or_else(|| per_core().min(*limits::WORKERS.end() as usize), usize::from)
    }
}

/// How the kernel chooses the worker of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steer {
    /// By a hash of the name in the question, so that equal questions reach the same worker.
    Name,
    /// By addresses and ports.
    Flow,
}

/// The way of datagrams between the network and the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datapath {
    /// Through UDP sockets.
    Sockets,
    /// As frames, past the kernel's network stack (AF_XDP). A build without the feature `xdp` refuses it.
    Xdp,
}

/// Forwarders of the root or of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarders {
    /// True if they come from the system's resolver configuration (`"system"`).
    pub system: bool,
    /// Their addresses, in order, at least one.
    pub addresses: Vec<SocketAddr>,
}

/// `[[upstream.zone]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// The zone's name.
    pub zone: Name,
    /// Forwarders for names in the zone.
    pub forwarders: Forwarders,
}

/// `[upstream]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Upstream {
    /// Forwarders for names in no zone of `zones`.
    pub forwarders: Forwarders,
    /// Zones with forwarders of their own, with different names.
    pub zones: Vec<Zone>,
    /// Which forwarder is asked first.
    pub select: Select,
    /// Upper limit of the timeout of one try.
    pub timeout: Duration,
    /// Tries per question, over all forwarders.
    pub tries: u8,
    /// Transport of questions.
    pub transport: Transport,
    /// `transport = "auto"`: TCP is used where it proves good. `transport` is UDP then.
    pub auto_transport: bool,
    /// `tls-ca`: source of the trust anchors for forwarders with TLS.
    pub tls_ca: AnchorSource,
    /// The trust anchors. None: no forwarder is asked over TLS by its name.
    pub anchors: Option<Anchors>,
    /// Identities of the forwarders that are asked over TLS.
    pub identities: BTreeMap<SocketAddr, Identity>,
    /// TCP Fast Open (RFC 7413) towards forwarders.
    pub tcp_fast_open: bool,
    /// `mix-case`: questions over UDP have random letter case, which replies must repeat.
    pub mix_case: bool,
    /// `via-nat64`: the prefix of a NAT64 through which forwarders with IPv4 addresses are reached. None: over IPv4.
    pub via_nat64: Option<Pref64>,
    /// `source`: addresses that questions leave from. A family without one leaves the choice to the system.
    pub sources: Vec<IpAddr>,
    /// `avoid-ports`: ports that no question leaves from.
    pub avoid_ports: Vec<PortRange>,
    /// The ports that the system reserved when the configuration was read.
    pub reserved_ports: Vec<PortRange>,
}

impl Upstream {
    /// The forwarders of all zones; one of several zones comes several times.
    pub fn all_forwarders(&self) -> impl Iterator<Item = &SocketAddr> {
        let of_zones = self.zones.iter().map(|zone| &zone.forwarders);
        std::iter::once(&self.forwarders).chain(of_zones).flat_map(|forwarders| &forwarders.addresses)
    }

    /// The address at which a forwarder is asked. A loopback address is on this host, so no NAT64 is in between.
    pub fn reached_at(&self, forwarder: SocketAddr) -> SocketAddr {
        match (self.via_nat64, forwarder.ip()) {
            (Some(prefix), IpAddr::V4(v4)) if !v4.is_loopback() => {
                SocketAddr::new(Ipv6Addr::from(prefix.embed(v4.octets())).into(), forwarder.port())
            }
            _ => forwarder,
        }
    }
}

/// `[dns64]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Dns64 {
    /// The prefixes, in order: at least one, all different; each contains the suffix.
    pub prefixes: Vec<Pref64>,
    /// The suffix of every prefix.
    pub suffix: Ipv6Addr,
    /// Clients that get synthesized records.
    pub clients: Clients,
    /// AAAA records in these networks count as absent; contains the prefixes.
    pub exclude_aaaa: Vec<Network>,
    /// `non-global = "embed"`: non-global addresses may be embedded in the well-known prefix.
    pub embed_non_global: bool,
    /// IPv4 addresses that are never embedded.
    pub never_embed: Vec<Network>,
    /// Order of the AAAA leg and the A leg.
    pub lookup: Lookup,
    /// `[dns64.on-failure]`.
    pub on_failure: FailurePolicy,
    /// Trust in the AD bit of the upstream.
    pub dnssec: Dnssec,
    /// Synthesis even for queries with both DO and CD set.
    pub break_dnssec: bool,
    /// No synthesis for queries without RD.
    pub recursive_only: bool,
    /// Answers to PTR queries for addresses under the prefixes.
    pub ptr: Reverse,
    /// MNAME of the SOA of local zones.
    pub ptr_server: Name,
    /// RNAME of that SOA: the mailbox of the administrator, as a name.
    pub ptr_contact: Name,
    /// Local answers for `ipv4only.arpa` (RFC 8880).
    pub ipv4only_arpa: bool,
    /// `[[dns64.rule]]`, in order.
    pub rules: Vec<Rule>,
    /// Largest number of synthesized records in one answer.
    pub max_records: usize,
}

/// `dns64.clients`: the longest network that contains a client decides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clients {
    /// The networks, in order, each with true if it is excluded (`!`).
    pub networks: Vec<(Network, bool)>,
}

/// One `[[dns64.rule]]`. An empty list of `clients`, `names` or `ipv4` matches everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// Client networks.
    pub clients: Vec<Network>,
    /// Names in the question; each includes all names below it.
    pub names: Vec<Name>,
    /// Networks of the IPv4 addresses.
    pub ipv4: Vec<Network>,
    /// Prefixes for these addresses, with the suffix; none: such addresses are left out.
    pub prefixes: Vec<Pref64>,
    /// `real-aaaa = "ignore"`.
    pub ignores_real: bool,
}

/// `[local]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Local {
    /// `records`: local records.
    pub records: Vec<ConfiguredRecord>,
    /// The hosts file.
    pub hosts_file: Option<PathBuf>,
    /// Records of the hosts file: as many as a million, so copies of the configuration share them.
    pub hosts: Arc<[engine::local::LocalRecord]>,
    /// `empty-zones`: the reverse zones of RFC 6303 are answered locally.
    pub empty_zones: bool,
}

/// `[filter] rpz`: response policy zones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rpz {
    /// The zone files, in order.
    pub files: Vec<PathBuf>,
    /// `rpz-bad-records`.
    pub bad_records: BadRecords,
    /// The rules of the zones.
    pub policy: Arc<engine::rpz::ResponsePolicy>,
    /// The zones as they were loaded, in the order of `files`.
    pub zones: Vec<PolicyFile>,
}

/// `[filter] rpz-bad-records`: what a record of a response policy zone means that cannot be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BadRecords {
    /// It is left out.
    #[default]
    Skip,
    /// The zone cannot be used, nor the configuration.
    Refuse,
}

/// A response policy zone as it was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFile {
    /// The file.
    pub file: PathBuf,
    /// Name of the zone: the owner of its SOA record.
    pub zone: Name,
    /// Serial number in the SOA record.
    pub serial: u32,
    /// Records that were taken, with the SOA record and others of the zone itself.
    pub records: usize,
    /// Records that were left out.
    pub skipped: usize,
    /// Time of the file's last change; none if the file system does not tell it.
    pub modified: Option<std::time::SystemTime>,
}

/// `[limits]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Queries that wait for an upstream, per worker.
    pub pending: usize,
    /// Pending queries of one client network (IPv6 /64, IPv4 /32), per worker.
    pub pending_per_client: u32,
    /// Bits of the IPv6 prefix that one customer has: its networks together are a site, with limits of its own.
    pub client_prefix: u8,
    /// Queries of one client network in a second; 0: no limit.
    pub queries_per_client: u32,
    /// Responses of one kind to one client network over UDP in a second; 0: no limit.
    pub responses_per_client: u32,
    /// Client connections in all.
    pub tcp_connections: usize,
    /// Client connections of one network.
    pub tcp_per_client: usize,
    /// Idle time after which a client connection is closed.
    pub tcp_idle: Duration,
}

/// `[cache]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Octets, of all workers together; 0: no cache.
    pub size: u64,
    /// Smallest TTL.
    pub min_ttl: Duration,
    /// Largest TTL.
    pub max_ttl: Duration,
    /// Largest TTL of negative answers.
    pub max_negative_ttl: Duration,
    /// Time after expiry in which stale data may be used; zero: none.
    pub stale: Duration,
    /// Prefetch: refreshes entries in use before they expire.
    pub prefetch: bool,
}

/// `[tls]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Tls {
    /// File with the certificate chain (PEM).
    pub certificate: Option<PathBuf>,
    /// File with the private key (PEM).
    pub key: Option<PathBuf>,
    /// Addresses for DNS over TLS.
    pub listen_dot: Vec<SocketAddr>,
    /// Addresses for DNS over HTTPS.
    pub listen_doh: Vec<SocketAddr>,
    /// Addresses for DNS over QUIC.
    pub listen_doq: Vec<SocketAddr>,
    /// Path of DNS over HTTPS.
    pub doh_path: String,
    /// File with the secret of session tickets; none: the server draws one at start.
    pub ticket_secret_file: Option<PathBuf>,
    /// `ddr-name`: name of this server as a designated resolver; none: it is not announced.
    pub ddr_name: Option<Name>,
    /// Certificate, key and tickets as they were read. None: no encrypted listener.
    pub server: Option<ServerTls>,
}

/// `[log]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// Level: messages of this level and of more severe ones are logged.
    pub level: Level,
    /// Format of a line.
    pub format: Format,
    /// Destination of the lines.
    pub to: LogTarget,
    /// Reader of dnstap; none when switched off (`""`).
    pub dnstap: Option<Destination>,
}

/// `log.level`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something does not work.
    Error,
    /// Something may fail soon, or does not work as expected.
    Warn,
    /// Starts, stops, reloads, upstreams that fail and recover.
    Info,
    /// Details for an operator who looks for a fault.
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

/// `log.to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// Standard error.
    Stderr,
    /// systemd-journald, by its native protocol.
    Journald,
    /// The local syslog daemon, by RFC 5424.
    Syslog,
}
