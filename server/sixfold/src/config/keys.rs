//! The table of keys. A key is one entry: its first sentences in sixfold.toml(5), its name, its field, the type of the field, its default, its
//! form, and `Upgrade` or `Restart` if a reload does not take it. Reading, `sixfold check`, the errors about a value, the keys that a reload
//! refuses, and the entry in the manual page come from here.
//!
//! Each line of a text is a line of the page; words between backquotes are bold there. The page has further text by hand.

use super::access::{Allow, Allowed};
use super::address::{Network, prefix};
use super::form::{Addresses, Boolean, FILE, List, Number, Text, Time, Words, networks, shown};
use super::forwarder::Forwarders;
use super::key::{Key, further, repeated, tables};
use super::model::{BadRecords, Datapath, Format, Health, Level, LogTarget, PolicyFile, Steer};
use super::network::{host, interface_address, interface_name, lifetime, pool};
use super::port_range::PortRange;
use super::prefix_entry::{PrefixEntry, special};
use super::probe::PROBES;
use super::record::{self, ConfiguredRecord};
use super::trust_anchors::{self, AnchorsOfZones};
use super::values::{
    AllowedClients, CLIENTS, CacheSize, ForwarderList, MetricsAddress, PREFIXES, Ports, RULE_PREFIXES,
    Secrets, User, Workers, anchors, any_network, ddr_name, doh_path, interface, ipv4_network, ipv6_network,
    lookup, policy_zone, server_text, shown_anchors, shown_lookup, socket, source, suffix,
};
use super::{Name, dnstap, limits, units};
use ::anchors::Negative;
use ::dnstap::Destination;
use dnssec::Algorithms;
use engine::dns64::gateways::{AllDown, Spread};
use engine::dns64::rules::RealAaaa;
use engine::limits::{RECORDS, TRIES, UDP_SIZE};
use engine::message::cookie::Secret;
use engine::settings::{
    ClientSubnet, Dnssec, FailurePolicy, Lookup, NonGlobal, OnFailure, Reverse, Select, Transport,
};
use gateways::Probe;
use plan::{Advertiser, Dhcpv4, InterfaceAddress, Role};
use pref64::Pref64;
use pref64::mapping::Mappings;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tls::ServerTls;
use tls::anchors::{AnchorSource, Anchors};
use tls::identity::Identity;

/// Configuration file when the command line names none; it may be missing.
pub const DEFAULT_PATH: &str = "/etc/sixfold/sixfold.toml";

/// Listening addresses: loopback, and a port above 1023, so that a trial run needs no privilege and disturbs nothing.
pub const DEFAULT_LISTEN: [SocketAddr; 2] = [
    SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 5364),
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 5364),
];

/// Address of the metrics.
pub const DEFAULT_METRICS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9464);

/// Path of the control socket.
pub const DEFAULT_CONTROL: &str = "/run/sixfold/control.sock";

/// Path of what was learned about followed trust anchors.
pub const DEFAULT_ANCHOR_STATE: &str = "/var/lib/sixfold/root.key";

/// Port of DNS over TLS (RFC 7858 section 3.1) and of DNS over QUIC (RFC 9250 section 4.1.1).
//= RFC 7858 section 3.1: requirement 71
//= RFC 9250 section 4.1.1: requirement 87
const DNS_PORT: u16 = 853;

tables! {
    /// `[server]`.
    "server" server: Server {
        /// Addresses to listen on, over UDP and TCP, 1 to 64; default port 53.
        "listen" listen: Vec<SocketAddr> = DEFAULT_LISTEN.into(), Addresses { port: 53, empty: Some("write at least one address, like \"[::]:53\"") }, Upgrade;
        /// Number of worker threads; or `"auto"` for one per core.
        "workers" workers: Option<u16> = None, Workers, Upgrade;
        /// Networks of clients that may send queries.
        /// Other clients get REFUSED.
        "allow" allow: Allow = Allow { entries: vec![Allowed::Local], interfaces: Vec::new() }, AllowedClients;
        /// Steering: how the kernel selects the worker for a datagram.
        "steer" steer: Steer = Steer::Name, Words(&[("name", Steer::Name), ("flow", Steer::Flow)]), Upgrade;
        /// Interface to the kernel for datagrams:
        /// `"sockets"`, or `"xdp"`, which takes queries over UDP from the `interfaces` as frames (AF_XDP), and needs a build with `--features xdp`.
        "datapath" datapath: Datapath = Datapath::Sockets, Words(&[("sockets", Datapath::Sockets), ("xdp", Datapath::Xdp)]), Restart;
        /// Network interfaces to which `datapath = "xdp"` attaches its program.
        "interfaces" interfaces: Vec<String> = Vec::new(), List {
            most: Some((limits::INTERFACES, "interfaces", "sockets serve the others: leave them out")),
            twice: Some(("interface", "name each interface once")),
            ..List::of("names", "the name of an interface", interface, String::clone)
        }, Restart;
        /// User that the server becomes after binding, if started as root; 1 to 32 characters.
        "user" user: Option<String> = None, User, Restart;
        /// Sandbox after binding:
        "sandbox" sandbox: bool = true, Words(&[("on", true), ("off", false)]), Upgrade;
        /// Networks of proxies that send a PROXY header of version 2, before the message in each datagram and at the start of each
        /// connection, with TLS before the handshake or within TLS; at most 1024.
        "proxy-from" proxy_from: Vec<Network> = Vec::new(), networks(any_network), Upgrade;
        /// Bind addresses that no interface has yet, as with DHCPv6, VRRP or duplicate address detection (IP_FREEBIND).
        "freebind" freebind: bool = false, Boolean, Upgrade;
        /// Name of this server, up to 255 octets, for clients that ask for it:
        "identity" identity: String = String::new(), Text { shape: "text", kind: "a text", parse: server_text, show: String::clone };
        /// Version for clients that ask for it, up to 255 octets:
        "version" version: String = String::new(), Text { shape: "text", kind: "a text", parse: server_text, show: String::clone };
    }

    /// `[upstream]` and `[[upstream.zone]]`.
    "upstream" upstream: Upstream {
        /// Resolvers to forward to: at least one, and at most 256 different ones including those of zones; default port 53.
        "forwarders" forwarders: Forwarders = Forwarders { system: true, list: Vec::new() }, ForwarderList;
        /// Selection of the forwarder that is asked first:
        "select" select: Select = Select::Ordered,
            Words(&[("ordered", Select::Ordered), ("random", Select::Random), ("fastest", Select::Fastest)]);
        /// Maximum timeout of one try.
        "timeout" timeout: Duration = Duration::from_secs(1), Time(limits::TIMEOUT, "1s");
        /// Tries for one lookup in total, over all forwarders.
        "tries" tries: u8 = 3, Number(1..=TRIES as u64);
        /// Transport of upstream queries:
        "transport" transport: Transport = Transport::Udp,
            Words(&[("udp", Transport::Udp), ("tcp", Transport::Tcp), ("tls", Transport::Tls)]);
        /// Trust anchors for forwarders with a name: a file of certificates (PEM), or `"system"` for those of the system.
        "tls-ca" tls_ca: AnchorSource = AnchorSource::System, Text {
            shape: "\"system\" | file", kind: "\"system\" or the path of a file", parse: anchors, show: shown_anchors,
        };
        /// TCP Fast Open (RFC 7413) towards forwarders, where the system allows it.
        "tcp-fast-open" tcp_fast_open: bool = true, Boolean, Upgrade;
        /// Letters of questions over UDP are mixed at random (0x20), and a reply with other letters is not accepted.
        "mix-case" mix_case: bool = true, Boolean;
        /// Prefix of a NAT64 (RFC 6052) through which forwarders with IPv4 addresses are reached, for a host without IPv4.
        "via-nat64" via_nat64: Option<Pref64> = None, Text {
            shape: "prefix", kind: "a prefix like \"64:ff9b::/96\"", parse: prefix, show: Pref64::to_string,
        };
        /// Addresses of this machine, without ports, that questions leave from, over UDP, TCP and TLS; at most 64.
        "source" sources: Vec<IpAddr> = Vec::new(), List {
            most: Some((limits::SOURCES, "addresses", "name fewer addresses")),
            twice: Some(("address", "name each address once: all have the same share")),
            ..List::of("addresses", "an address of this machine", source, IpAddr::to_string)
        };
        /// Ports that no question leaves from:
        "avoid-ports" avoid_ports: Vec<PortRange> = Vec::new(), Ports;
        with {
            /// Forward zones, with different names.
            zones: Vec<Zone> = Vec::new();
            /// The trust anchors. None: no forwarder is asked over TLS by its name.
            anchors: Option<Anchors> = None;
            /// Identities of the forwarders that are asked over TLS.
            identities: BTreeMap<SocketAddr, Identity> = BTreeMap::new();
            /// The ports that the system reserved when the configuration was read.
            reserved_ports: Vec<PortRange> = Vec::new();
        }
    }

    /// `[dns64]`, `[dns64.on-failure]`, `[dns64.health]`, `[[dns64.rule]]` and `[[dns64.gateway]]`.
    "dns64" dns64: Dns64 {
        /// Prefixes in which IPv4 addresses are embedded, at most 64: one AAAA record for each address and prefix, in this order,
        /// unless `spread` says otherwise.
        /// `"discover:upstream"` stands for the prefixes of the DNS64 that the default forwarders do (RFC 7050), `"discover:IFNAME"` for those
        /// that routers announce on the link of an interface (RFC 8781).
        "prefixes" prefixes: Vec<PrefixEntry> = vec![PrefixEntry::Prefix(pref64::WELL_KNOWN)], PREFIXES;
        /// Spread of the clients over several prefixes:
        "spread" spread: Spread = Spread::All,
            Words(&[("all", Spread::All), ("client", Spread::Client), ("ordered", Spread::Ordered)]);
        /// Bits after the embedded address, for prefixes shorter than 96 bits.
        "suffix" suffix: Ipv6Addr = Ipv6Addr::UNSPECIFIED, Text {
            shape: "IPv6 address", kind: "an IPv6 address", parse: suffix, show: Ipv6Addr::to_string,
        };
        /// Networks of clients that get synthesis; other clients are served without it.
        "clients" clients: Vec<(Network, bool)> = vec![(known(("::", 0)), false), (known(("0.0.0.0", 0)), false)], CLIENTS;
        /// IPv6 networks whose real AAAA records count as absent.
        "exclude-aaaa" exclude_aaaa: Vec<Network> = excluded_by_default(), networks(ipv6_network);
        /// Treatment of non-global IPv4 addresses, which must not be embedded in the well-known prefix (RFC 6052 section 3.1):
        "non-global" non_global: NonGlobal = NonGlobal::Omit,
            Words(&[("omit", NonGlobal::Omit), ("private", NonGlobal::Private), ("embed", NonGlobal::Embed)]);
        /// Path of a file with explicit address mappings (RFC 7757; a regular file of at most 16 MiB): IPv4 prefixes and the IPv6 prefixes
        /// that stand for them.
        "mappings-file" mappings_file: Option<PathBuf> = None, FILE;
        /// IPv4 networks whose addresses are never embedded under any prefix.
        "never-embed" never_embed: Vec<Network> = never_embedded_by_default(), networks(ipv4_network);
        /// Time of the A query:
        "lookup" lookup: Lookup = Lookup::Sequential, Text {
            shape: "\"sequential\" | \"parallel\" | \"stagger DURATION\"",
            kind: "\"sequential\" or \"parallel\" or \"stagger 20ms\"", parse: lookup, show: shown_lookup,
        };
        /// Validation (RFC 4035):
        "dnssec" dnssec: Dnssec = Dnssec::Trust,
            Words(&[("trust", Dnssec::Trust), ("validate", Dnssec::Validate), ("off", Dnssec::Off)]);
        /// Synthesize even if a client sets both DO and CD, and so validates itself.
        "break-dnssec" break_dnssec: bool = false, Boolean;
        /// No synthesis for queries without RD.
        "recursive-only" recursive_only: bool = false, Boolean;
        /// Answers for the reverse names (ip6.arpa) of addresses under the prefixes, and under `64:ff9b::/96` even if that is not a configured
        /// prefix:
        "ptr" ptr: Reverse = Reverse::Cname, Words(&[("cname", Reverse::Cname), ("local", Reverse::Local), ("off", Reverse::Off)]);
        /// Name of the server in the SOA and NS records of these zones, and in the SOA of `ipv4only.arpa`.
        "ptr-server" ptr_server: Name = Name::from_wire(b"\x09localhost\x00"), NAME;
        /// Mailbox of the person responsible for these zones, in the same records.
        "ptr-contact" ptr_contact: Name = Name::from_wire(b"\x06nobody\x07invalid\x00"), NAME;
        /// Answers `ipv4only.arpa` locally for clients with DNS64, so that they learn the prefixes (RFC 7050) independently of the upstreams
        /// (RFC 8880).
        "ipv4only-arpa" ipv4only_arpa: bool = true, Boolean;
        /// Maximum number of synthesized records in one answer.
        "max-records" max_records: usize = 64, Number(1..=RECORDS as u64);
        with {
            /// The mappings of the file. None: there are none.
            mappings: Option<Arc<Mappings>> = None;
            /// `[dns64.on-failure]`.
            on_failure: FailurePolicy = FailurePolicy::default();
            /// `[[dns64.rule]]`, in order.
            rules: Vec<Rule> = Vec::new();
            /// `[[dns64.gateway]]`, in order.
            gateways: Vec<Gateway> = Vec::new();
            /// `[dns64.health]`.
            health: Health = Health::default();
        }
    }

    /// `[dnssec]`, with `dns64.dnssec = "validate"`.
    "dnssec" dnssec: Validation {
        /// Trust anchors: `"root"` for the keys of the root, which are built in, or the path of a file with DS or DNSKEY records of any
        /// zones (a regular file of at most 1 MiB).
        "trust-anchors" trust_anchors: AnchorsOfZones = AnchorsOfZones::Root, Text {
            shape: "\"root\" | file", kind: "\"root\" or the path of a file",
            parse: trust_anchors::source, show: trust_anchors::shown_source,
        };
        /// Changes of the keys in the file of `trust-anchors` are followed (RFC 5011); those of the root's keys are followed in any case.
        "follow" follow: bool = false, Boolean;
        /// Path of the file that keeps what was learned about followed keys; the server writes it, and another one beside it.
        /// `""` keeps nothing.
        "state-file" state_file: Option<PathBuf> = Some(DEFAULT_ANCHOR_STATE.into()),
            Text { shape: "file", kind: "a path", parse: trust_anchors::state_file, show: |path| shown(path) }, Upgrade;
        /// Zones whose signatures are not looked at (negative trust anchors, RFC 7646), each without an end, or with one:
        /// `"broken.example until 2027-01-31T00:00:00Z"`.
        "negative-trust-anchors" negative: Vec<Negative> = Vec::new(), List {
            most: Some((limits::NEGATIVE_ANCHORS, "zones", "name a common parent, or trust no anchor above them")),
            ..List::of("names", "a domain name", trust_anchors::negative, trust_anchors::shown_negative)
        };
        /// Bogus data are answered without AD, and counted.
        "permissive" permissive: bool = false, Boolean;
        /// Algorithms that count as supported; zones that have no other are insecure:
        "algorithms" algorithms: Algorithms = Algorithms::CURRENT,
            Words(&[("current", Algorithms::CURRENT), ("all", Algorithms::ALL)]);
        /// Iterations of NSEC3 above which proofs count as insecure (RFC 9276).
        "nsec3-iterations" nsec3_iterations: u16 = 50, Number(0..=500);
        /// Names are denied without a question by the proofs of replies to other questions, as long as these hold (RFC 8198).
        "aggressive-nsec" aggressive_nsec: bool = true, Boolean;
        /// Number of threads that verify signatures; or `"auto"` for one per core.
        "threads" threads: Option<u16> = None, Workers, Upgrade;
        with {
            /// The trust anchors of the source.
            anchors: Vec<::anchors::TrustAnchor> = Vec::new();
        }
    }

    /// `[local]`.
    "local" local: Local {
        /// Records in the presentation format (RFC 1035 section 5.1), such as `"nas.home. 60 IN A 192.168.1.5"`;
        /// names are absolute, class IN may be omitted, and the default TTL is one hour.
        "records" records: Vec<ConfiguredRecord> = Vec::new(),
            List::of("records", "a record", record::parse, |record| record.text.clone());
        /// Path of a hosts(5) file (a regular file of at most 16 MiB).
        "hosts-file" hosts_file: Option<PathBuf> = None, FILE;
        /// Answers the reverse zones of addresses without a meaning outside the site, which the public DNS does not have, with empty zones
        /// (RFC 6303 section 4, RFC 7793).
        "empty-zones" empty_zones: bool = false, Boolean;
        with {
            /// Records of the hosts file: as many as a million, so copies of the configuration share them.
            hosts: Arc<[engine::local::LocalRecord]> = Arc::default();
        }
    }

    /// `[filter]`.
    "filter" filter: Filter {
        /// Blocked names, without a wildcard in front: these names and all names below them do not exist (NXDOMAIN, extended DNS error 15),
        /// with a TTL of 60 s, unless `[local]` has them.
        "block" block: Vec<Name> = Vec::new(), List::of("names", "a domain name", Name::covering, Name::to_string);
        /// Response policy zones (draft-vixie-dnsop-dns-rpz-00), as master files.
        "rpz" rpz: Vec<PathBuf> = Vec::new(), List::of("paths", "a path", policy_zone, |path| shown(path));
        /// Treatment of a record of a response policy zone that cannot be used:
        "rpz-bad-records" rpz_bad_records: BadRecords = BadRecords::Skip,
            Words(&[("skip", BadRecords::Skip), ("refuse", BadRecords::Refuse)]);
        /// IPv6 and IPv4 networks that no answer of an upstream may lead into (DNS rebinding), at most 1024.
        "private-addresses" private_addresses: Vec<Network> = Vec::new(), networks(any_network);
        /// Names for which answers may lead there: the queried name is one of these or below one; without a wildcard in front.
        "private-names" private_names: Vec<Name> = Vec::new(), List::of("names", "a domain name", Name::covering, Name::to_string);
        with {
            /// The rules of the response policy zones.
            policy: Arc<engine::rpz::ResponsePolicy> = Arc::default();
            /// The zones as they were loaded, in the order of their files.
            zones: Vec<PolicyFile> = Vec::new();
        }
    }

    /// `[statistics]`.
    "statistics" statistics: Statistics {
        /// Count the names and the client networks that get synthesized answers, for `sixfold ctl needs` and the status page.
        "needs" needs: bool = false, Boolean;
        /// Number of client networks (IPv6 /64, IPv4 /32) from which a name must have been asked for before it is shown.
        "min-clients" min_clients: u8 = 3, Number(limits::MIN_CLIENTS);
    }

    /// `[cache]`.
    "cache" cache: Cache {
        /// Size in octets, sum of all workers, including the hash tables; reserved at start.
        /// `"0MiB"` means no cache.
        "size" size: u64 = 128 << 20, CacheSize, Upgrade;
        /// Minimum TTL: smaller TTLs are raised to it.
        "min-ttl" min_ttl: Duration = Duration::ZERO, Time(limits::TTL, "1h");
        /// Maximum TTL: larger TTLs are lowered to it.
        "max-ttl" max_ttl: Duration = Duration::from_secs(86_400), Time(limits::TTL, "1h");
        /// Maximum time for which a negative answer is cached.
        "max-negative-ttl" max_negative_ttl: Duration = Duration::from_secs(3_600), Time(limits::TTL, "1h");
        /// Time for which expired data still answer queries when the upstreams fail (RFC 8767); `"0s"` turns this off.
        "stale" stale: Duration = Duration::from_secs(86_400), Time(limits::TTL, "1h");
        /// Refresh of data before they expire: a query in the last tenth of their lifetime triggers an upstream query.
        "prefetch" prefetch: bool = true, Boolean;
    }

    /// `[edns]`.
    "edns" edns: Edns {
        /// Size of the largest UDP message in both directions, in octets.
        "udp-size" udp_size: u16 = 1232, Number(512..=UDP_SIZE as u64), Upgrade;
        /// Use of DNS cookies (RFC 7873).
        "cookies" cookies: bool = true, Boolean;
        /// Secret of the server cookies: 32 hex digits, equal on all servers of a fleet.
        "cookie-secret" cookie_secrets: Vec<Secret> = Vec::new(), Secrets;
        /// Treatment of the EDNS Client Subnet option in queries (RFC 7871).
        "client-subnet" client_subnet: ClientSubnet = ClientSubnet::Off,
            Words(&[("off", ClientSubnet::Off), ("forward", ClientSubnet::Forward)]);
    }

    /// `[limits]`.
    "limits" limits: Limits {
        /// Bits of the IPv6 prefix that one customer has.
        "client-prefix" client_prefix: u8 = 56, Number(limits::CLIENT_PREFIX);
        /// Query rate of one client network per second; 0 for no limit.
        "queries-per-client" queries_per_client: u32 = 0, Number(limits::RATE);
        /// Rate of answers to one question (case-insensitive) that one client network gets over UDP per second; 0 for no limit.
        "responses-per-client" responses_per_client: u32 = 0, Number(limits::RATE);
        /// Maximum number of pending queries (queries that wait for an upstream) per worker; each takes about 1,900 octets of memory.
        "pending" pending: usize = 65_536, Number(limits::PENDING), Upgrade;
        /// Maximum number of pending queries of one client network (IPv6 /64, IPv4 /32) per worker.
        "pending-per-client" pending_per_client: u32 = 1000, Number(limits::PENDING);
        /// Maximum number of client connections in total.
        "tcp-connections" tcp_connections: usize = 10_000, Number(limits::CONNECTIONS);
        /// Maximum number of connections of one client network.
        "tcp-per-client" tcp_per_client: usize = 100, Number(limits::CONNECTIONS);
        /// Idle timeout of client connections.
        "tcp-idle" tcp_idle: Duration = Duration::from_secs(10), Time(limits::TCP_IDLE, "10s");
    }

    /// `[tls]`.
    "tls" tls: Tls {
        /// File with the certificate chain (PEM), the server's certificate first.
        "certificate" certificate: Option<PathBuf> = None, FILE;
        /// File with the private key of that certificate (PEM, not encrypted; PKCS#8, PKCS#1 or SEC1).
        "key" key: Option<PathBuf> = None, FILE;
        /// Addresses for DNS over TLS, with port 853 unless said.
        "listen-dot" listen_dot: Vec<SocketAddr> = Vec::new(), Addresses { port: DNS_PORT, empty: None }, Upgrade;
        /// Addresses for DNS over HTTPS (HTTP/2 and HTTP/1.1), with port 443 unless said.
        "listen-doh" listen_doh: Vec<SocketAddr> = Vec::new(), Addresses { port: 443, empty: None }, Upgrade;
        /// Addresses for DNS over QUIC (RFC 9250; UDP), with port 853 unless said.
        "listen-doq" listen_doq: Vec<SocketAddr> = Vec::new(), Addresses { port: DNS_PORT, empty: None }, Upgrade;
        /// Path of DNS over HTTPS, which requests must name exactly.
        "doh-path" doh_path: String = limits::DEFAULT_DOH_PATH.to_owned(), Text {
            shape: "path", kind: "a path like \"/dns-query\"", parse: doh_path, show: String::clone,
        }, Upgrade;
        /// File with 32 or more random octets, from which the keys of session tickets are made.
        "ticket-secret-file" ticket_secret_file: Option<PathBuf> = None, FILE;
        /// Name of this server in its certificate.
        "ddr-name" ddr_name: Option<Name> = None, Text {
            shape: "name", kind: "a host name like \"dns.example\"", parse: ddr_name, show: Name::to_string,
        };
        with {
            /// Certificate, key and tickets as they were read. None: no encrypted listener.
            server: Option<ServerTls> = None;
        }
    }

    /// `[metrics]`.
    "metrics" metrics: Metrics {
        /// Address of the HTTP server for /metrics, /livez, /readyz and /status (an HTML status page); default port 9464.
        /// `""` turns it off.
        "listen" listen: Option<SocketAddr> = Some(DEFAULT_METRICS), MetricsAddress(DEFAULT_METRICS.port()), Upgrade;
        /// Networks that may use this HTTP server; connections from elsewhere are closed, and counted. Empty: whoever reaches it.
        "allow" allow: Vec<Network> = Vec::new(), networks(any_network);
    }

    /// `[control]`.
    "control" control: Control {
        /// Path of the socket of `sixfold ctl`, at most 107 octets.
        /// `""` turns it off.
        "socket" socket: Option<PathBuf> = Some(DEFAULT_CONTROL.into()),
            Text { shape: "path", kind: "a path", parse: socket, show: |path| shown(path) }, Upgrade;
    }

    /// `[log]`.
    "log" log: Log {
        /// Least severe level that is logged:
        "level" level: Level = Level::Info, Words(&[
            ("error", Level::Error), ("warn", Level::Warn), ("info", Level::Info), ("debug", Level::Debug), ("trace", Level::Trace),
        ]);
        /// Format of a log line:
        "format" format: Format = Format::Text, Words(&[("text", Format::Text), ("json", Format::Json)]);
        /// Destination of log lines:
        "to" to: LogTarget = LogTarget::Stderr,
            Words(&[("stderr", LogTarget::Stderr), ("journald", LogTarget::Journald), ("syslog", LogTarget::Syslog)]);
        /// Reader of dnstap, to which the server connects and writes every message of clients and upstreams (Frame Streams):
        "dnstap" dnstap: Option<Destination> = None, Text {
            shape: "address", kind: "the address of a reader", parse: dnstap::destination, show: Destination::to_string,
        };
    }

    /// `[network]` and `[[network.interface]]`, which are for `sixfold plan` only.
    "network" network: Surroundings {
        /// The NAT64:
        "gateway" gateway: plan::Gateway = plan::Gateway::None, Words(&[
            ("jool", plan::Gateway::Jool), ("tayga", plan::Gateway::Tayga), ("elsewhere", plan::Gateway::Elsewhere), ("none", plan::Gateway::None),
        ]);
        /// The sender of router advertisements:
        "advertiser" advertiser: Advertiser = Advertiser::None, Words(&[
            ("radvd", Advertiser::Radvd), ("networkd", Advertiser::Networkd), ("bird", Advertiser::Bird), ("odhcpd", Advertiser::Odhcpd),
            ("elsewhere", Advertiser::Elsewhere), ("none", Advertiser::None),
        ]);
        /// The DHCPv4 server:
        "dhcpv4" dhcpv4: Dhcpv4 = Dhcpv4::None,
            Words(&[("kea", Dhcpv4::Kea), ("dnsmasq", Dhcpv4::Dnsmasq), ("none", Dhcpv4::None)]);
        /// Prefix of the NAT64, which is announced (RFC 8781): one of `dns64.prefixes`.
        /// `""` means the only one there.
        "prefix" prefix: Option<Pref64> = None, Text {
            shape: "prefix", kind: "a prefix like \"64:ff9b::/96\"", parse: prefix, show: Pref64::to_string,
        };
        /// IPv4 addresses of the gateway: those that TAYGA gives to clients, or those that clients share with Jool.
        /// `""` means 192.168.255.0/24 with TAYGA, and the addresses of this machine with Jool.
        "pool" pool: Option<Network> = None, Text {
            shape: "network", kind: "a network like \"192.168.255.0/24\"", parse: pool, show: Network::to_string,
        };
        /// IPv6 address of TAYGA itself, from which it sends ICMPv6 errors: an address of the site that is on no link.
        /// TAYGA with the prefix `64:ff9b::/96` needs one.
        "gateway-address" gateway_address: Option<Ipv6Addr> = None, Text {
            shape: "IPv6 address", kind: "an IPv6 address", parse: host, show: Ipv6Addr::to_string,
        };
        /// Octets of the largest packet on the links of the clients.
        "mtu" mtu: u32 = 1500, Number(limits::MTU);
        /// Addresses of resolvers that are announced (RFC 8106), at most 16.
        /// An empty list means those of this server on each interface.
        "rdnss" rdnss: Vec<Ipv6Addr> = Vec::new(), List {
            most: Some((limits::ANNOUNCED_RESOLVERS, "addresses", "announce fewer: clients use about three")),
            twice: Some(("address", "name each address once")),
            ..List::of("addresses", "an IPv6 address", host, Ipv6Addr::to_string)
        };
        /// Announce the encrypted listeners of `[tls]`, by the name `tls.ddr-name` (RFC 9463), if the advertiser can.
        "dnr" dnr: bool = true, Boolean;
        /// Longest time between two router advertisements.
        "interval" interval: Duration = Duration::from_secs(600), Time(limits::ANNOUNCED, "10m");
        /// Lifetime of the default router in advertisements.
        "router-lifetime" router_lifetime: Duration = Duration::from_secs(1800), Time(limits::ANNOUNCED, "30m");
        /// Lifetime of the NAT64 prefix in advertisements, rounded up to 8 s.
        /// `""` means three times `interval`, or `router-lifetime` if that is longer.
        "pref64-lifetime" pref64_lifetime: Option<Duration> = None, Text {
            shape: "duration", kind: "a duration like \"30m\"", parse: lifetime, show: |lifetime| units::show_duration(*lifetime),
        };
        /// Time for which DHCPv4 clients that can do without IPv4 do so (option 108, RFC 8925).
        /// `"0s"` means that they are not told to.
        "v6-only-wait" v6_only_wait: Duration = Duration::from_secs(1800), Time(limits::ANNOUNCED, "30m");
        with {
            /// `[[network.interface]]`, in order.
            interfaces: Vec<NetworkInterface> = Vec::new();
        }
    }
}

repeated! {
    /// `[[network.interface]]`.
    "network.interface" NetworkInterface {
        /// Name of the interface.
        "name" name: String = String::new(), Text { shape: "name", kind: "the name of an interface", parse: interface_name, show: String::clone };
        /// Side of this machine that the interface is on:
        "role" role: Role = Role::Clients, Words(&[
            ("clients", Role::Clients), ("guests", Role::Guests), ("uplink", Role::Uplink),
        ]);
        /// Addresses of this machine on the interface, with the lengths of their networks: those are the networks of the clients there.
        "addresses" addresses: Vec<InterfaceAddress> = Vec::new(), List {
            twice: Some(("address", "name each address once")),
            ..List::of("addresses", "an address with a length", interface_address, InterfaceAddress::to_string)
        };
        /// Tell DHCPv4 clients of the interface to do without IPv4 if they can, for the time of `network.v6-only-wait`.
        "v6-only" v6_only: bool = true, Boolean;
    }
}

repeated! {
    /// `[[upstream.zone]]`.
    "upstream.zone" Zone {
        /// Zone: this name and all names below it, without a wildcard in front.
        "zone" zone: Name = Name::from_wire(b"\0"), Text { shape: "name", kind: "a domain name", parse: Name::covering, show: Name::to_string };
        /// As in `[upstream]`: recursive resolvers, or authoritative servers of the zone if nothing below it is delegated, because a referral
        /// counts as a failure.
        "forwarders" forwarders: Forwarders = Forwarders { system: false, list: Vec::new() }, ForwarderList;
        /// Validation of replies about the zone, with `dns64.dnssec = "validate"`:
        "dnssec" is_validated: bool = false, Words(&[("off", false), ("validate", true)]);
    }
}

repeated! {
    /// `[[dns64.rule]]`. An empty list of `clients`, `names` or `ipv4` matches everything.
    "dns64.rule" Rule {
        /// IPv6 and IPv4 networks of the client.
        "clients" clients: Vec<Network> = Vec::new(), List { empty: Some(ALL), ..networks(any_network) };
        /// Names: the queried name is one of these or below one; without a wildcard in front.
        "names" names: Vec<Name> = Vec::new(), List {
            empty: Some("delete the key: a rule without it applies to all names"),
            ..List::of("names", "a domain name", Name::covering, Name::to_string)
        };
        /// IPv4 networks of the address.
        "ipv4" ipv4: Vec<Network> = Vec::new(), List { empty: Some(ALL), ..networks(ipv4_network) };
        /// Prefixes in which the address is embedded, with `suffix` of `[dns64]`: one AAAA record for each; an empty list omits the address.
        /// `"discovered"` stands for all prefixes that are discovered.
        "prefixes" prefixes: Vec<PrefixEntry> = Vec::new(), RULE_PREFIXES;
        /// Treatment of real AAAA records:
        "real-aaaa" real_aaaa: RealAaaa = RealAaaa::Prefer,
            Words(&[("prefer", RealAaaa::Prefer), ("ignore", RealAaaa::Ignore), ("verify", RealAaaa::Verify)]);
        /// Queries for A records of clients with synthesis:
        "a" suppresses_a: bool = false, Words(&[("answer", false), ("suppress", true)]);
    }
}

repeated! {
    /// `[[dns64.gateway]]`. A prefix without a gateway here counts as up, and has the weight 1.
    "dns64.gateway" Gateway {
        /// Prefix in front of the gateway: one of `prefixes`, or of those of a rule. `"discovered"` stands for each prefix that is discovered.
        "prefix" prefix: Option<PrefixEntry> = None, Text {
            shape: "prefix", kind: "a prefix like \"64:ff9b::/96\"", parse: special, show: PrefixEntry::to_string,
        };
        /// Probes through the prefix, at most 8, towards IPv4 addresses behind the gateway; one that is answered is enough:
        /// `"tcp ADDRESS:PORT"` is a connection that is established, `"icmp ADDRESS"` a reply to an echo request.
        "probe" probes: Vec<Probe> = Vec::new(), PROBES;
        /// Share of the client networks under `spread = "client"`; 0: only when no other prefix is up.
        "weight" weight: u32 = 1, Number(limits::WEIGHT);
    }
}

/// The remedy for an empty list of a rule: it would match nothing, although an absent list matches everything.
const ALL: &str = "delete the key: a rule without it applies to all of them";

/// A name of the server itself.
const NAME: Text<Name> =
    Text { shape: "name", kind: "a domain name", parse: Name::configured, show: Name::to_string };

/// Actions after a failed AAAA query.
const ACTIONS: Words<OnFailure> = Words(&[("synthesize", OnFailure::Synthesize), ("pass", OnFailure::Pass)]);

further! {
    /// The keys of `[dns64.on-failure]`, whose values the engine has as they are.
    ON_FAILURE "dns64.on-failure" {
        /// The upstream answers SERVFAIL (RCODE 2), often because the servers of the name do not answer AAAA queries.
        "servfail" [dns64.on_failure.servfail]: OnFailure, ACTIONS;
        /// The upstream answers REFUSED (RCODE 5).
        "refused" [dns64.on_failure.refused]: OnFailure, ACTIONS;
        /// The upstream answers FORMERR (RCODE 1), as some servers do for types that they do not know.
        "formerr" [dns64.on_failure.formerr]: OnFailure, ACTIONS;
        /// The upstream answers NOTIMP (RCODE 4), as some servers do for types that they do not know.
        "notimp" [dns64.on_failure.notimp]: OnFailure, ACTIONS;
        /// There is no reply in time.
        "timeout" [dns64.on_failure.timeout]: OnFailure, ACTIONS;
        /// The upstream answers NXDOMAIN (RCODE 3): the name does not exist.
        "nxdomain" [dns64.on_failure.nxdomain]: OnFailure, ACTIONS;
    }
}

further! {
    /// The keys of `[dns64.health]`.
    HEALTH "dns64.health" {
        /// Time between the starts of two probes of a gateway.
        "interval" [dns64.health.interval]: Duration, Time(limits::PROBE_INTERVAL, "300ms");
        /// Time after which a probe has failed; at most `interval`.
        "timeout" [dns64.health.timeout]: Duration, Time(limits::PROBE_TIMEOUT, "250ms");
        /// Probes in a row that fail before a gateway is down.
        "fall" [dns64.health.fall]: u32, Number(limits::PROBE_ROW);
        /// Probes in a row that are answered before it is up again.
        "rise" [dns64.health.rise]: u32, Number(limits::PROBE_ROW);
        /// Answers when no gateway of the prefixes for an address is up:
        "all-down" [dns64.health.all_down]: AllDown, Words(&[("keep", AllDown::Keep), ("empty", AllDown::Empty)]);
        /// Longest TTL of an answer with a prefix that is probed.
        "answer-ttl" [dns64.health.answer_ttl]: Duration, Time(limits::ANSWER_TTL, "60s");
    }
}

/// All keys but those of tables that may stand in a file several times.
pub fn keys() -> impl Iterator<Item = &'static Key<Config>> {
    KEYS.iter().chain(ON_FAILURE).chain(HEALTH)
}

/// The networks of `dns64.exclude-aaaa`. Also with other prefixes than the well-known one: addresses under that come from a DNS64 elsewhere
/// (an upstream that synthesizes), and lead to a translator that this network may not have.
//= RFC 6147 section 5.1.4: requirement 6
fn excluded_by_default() -> Vec<Network> {
    [("::ffff:0:0", 96), ("64:ff9b::", 96)].map(known).into()
}

fn never_embedded_by_default() -> Vec<Network> {
    [("0.0.0.0", 8), ("127.0.0.0", 8), ("169.254.0.0", 16), ("224.0.0.0", 4), ("240.0.0.0", 4)]
        .map(known)
        .into()
}

fn known((address, length): (&str, u8)) -> Network {
    Network { address: address.parse().expect("an address"), length }
}
