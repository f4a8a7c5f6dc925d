//! The defaults of the configuration. docs/man/sixfold.toml.5 has them as well.

use super::model::{
    Cache, Clients, Config, Datapath, Dns64, Format, Forwarders, Level, Limits, Local, Log, LogTarget, Rpz,
    Server, Steer, Tls, Upstream,
};
use super::{Allow, Allowed, Name, Network, limits};
use engine::limits::RECORDS;
use engine::message::cookie::Cookies;
use engine::settings::{ClientSubnet, Dnssec, FailurePolicy, Lookup, Reverse, Select, Transport};
use std::collections::BTreeMap;
use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;
use tls::anchors::AnchorSource;

/// Configuration file when the command line names none; it may be missing.
pub const DEFAULT_PATH: &str = "/etc/sixfold/sixfold.toml";

/// Listening addresses: loopback, and a port above 1023, so that a trial run needs no privilege.
pub const DEFAULT_LISTEN: [SocketAddr; 2] = [
    SocketAddr::new(std::net::IpAddr::V6(Ipv6Addr::LOCALHOST), 5364),
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 5364),
];

/// Address of the metrics.
pub const DEFAULT_METRICS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9464);

/// Path of the control socket.
pub const DEFAULT_CONTROL: &str = "/run/sixfold/control.sock";

/// The configuration of an empty file. Fields that a draft holds with their places are empty here.
pub fn config() -> Config {
    Config {
        server: server(),
        upstream: upstream(),
        dns64: dns64(),
        local: Local::default(),
        blocked: Vec::new(),
        rpz: Rpz::default(),
        cache: cache(),
        udp_size: 1232,
        client_subnet: ClientSubnet::Off,
        cookies: Cookies::default(),
        limits: default_limits(),
        metrics_listen: None,
        control_socket: Some(DEFAULT_CONTROL.into()),
        tls: Tls {
            certificate: None,
            key: None,
            listen_dot: Vec::new(),
            listen_doh: Vec::new(),
            listen_doq: Vec::new(),
            doh_path: limits::DEFAULT_DOH_PATH.to_owned(),
            ticket_secret_file: None,
            ddr_name: None,
            server: None,
        },
        log: Log { level: Level::Info, format: Format::Text, to: LogTarget::Stderr, dnstap: None },
    }
}

fn server() -> Server {
    Server {
        listen: Vec::new(),
        workers: None,
        allow: Allow { entries: vec![Allowed::Local], interfaces: Vec::new() },
        steer: Steer::Name,
        datapath: Datapath::Sockets,
        interfaces: Vec::new(),
        user: None,
        sandbox: true,
        proxy_from: Vec::new(),
        freebind: false,
        identity: String::new(),
        version: String::new(),
    }
}

fn upstream() -> Upstream {
    Upstream {
        forwarders: Forwarders { system: true, addresses: Vec::new() },
        zones: Vec::new(),
        select: Select::Ordered,
        timeout: Duration::from_secs(1),
        tries: 3,
        transport: Transport::Udp,
        auto_transport: false,
        tls_ca: AnchorSource::System,
        anchors: None,
        identities: BTreeMap::new(),
        tcp_fast_open: true,
        mix_case: true,
        via_nat64: None,
        sources: Vec::new(),
        avoid_ports: Vec::new(),
        reserved_ports: Vec::new(),
    }
}

fn dns64() -> Dns64 {
    Dns64 {
        prefixes: Vec::new(),
        suffix: Ipv6Addr::UNSPECIFIED,
        clients: Clients {
            networks: networks(&[("::", 0), ("0.0.0.0", 0)])
                .into_iter()
                .map(|network| (network, false))
                .collect(),
        },
        // Also with other prefixes: addresses under the well-known one come from a DNS64 elsewhere (an upstream that synthesizes),
        // and lead to a translator that this network may not have.
        //= RFC 6147 section 5.1.4: requirement 6
        exclude_aaaa: networks(&[("::ffff:0:0", 96), ("64:ff9b::", 96)]),
        embed_non_global: false,
        never_embed: networks(&[
            ("0.0.0.0", 8),
            ("127.0.0.0", 8),
            ("169.254.0.0", 16),
            ("224.0.0.0", 4),
            ("240.0.0.0", 4),
        ]),
        lookup: Lookup::Sequential,
        on_failure: FailurePolicy::default(),
        dnssec: Dnssec::Trust,
        break_dnssec: false,
        recursive_only: false,
        ptr: Reverse::Cname,
        ptr_server: Name::from_wire(b"\x09localhost\x00"),
        ptr_contact: Name::from_wire(b"\x06nobody\x07invalid\x00"),
        ipv4only_arpa: true,
        rules: Vec::new(),
        max_records: RECORDS.min(64),
    }
}

fn cache() -> Cache {
    Cache {
        size: 128 << 20,
        min_ttl: Duration::ZERO,
        max_ttl: Duration::from_secs(86_400),
        max_negative_ttl: Duration::from_secs(3_600),
        stale: Duration::from_secs(86_400),
        prefetch: true,
    }
}

fn default_limits() -> Limits {
    Limits {
        pending: 65_536,
        pending_per_client: 1000,
        client_prefix: 56,
        queries_per_client: 0,
        responses_per_client: 0,
        tcp_connections: 10_000,
        tcp_per_client: 100,
        tcp_idle: Duration::from_secs(10),
    }
}

fn networks(list: &[(&str, u8)]) -> Vec<Network> {
    list.iter()
        .filter_map(|&(address, length)| Some(Network { address: address.parse().ok()?, length }))
        .collect()
}
