//! Settings that tests start from: the defaults of the configuration file, except for the prefix, which can embed the
//! addresses of examples, and the upstream.

use engine::message::cookie::Cookies;
use engine::settings::{
    Arpa, ClientNetworks, Dns64, Dnssec, FailurePolicy, Lookup, Network, Networks, NonGlobal, Select,
    TlsForwarder, UpstreamConfig,
};
use engine::{Settings, Span, Transport};
use pref64::Pref64;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// The secret of server cookies and the Unix time at the start of a test: both from RFC 9018 appendix A.1.
const COOKIE_SECRET: &str = "e5e973e5a6b2a43f48e7dc849e37bfcf";
pub const START_UNIX_SECS: u64 = 1_559_731_985;

/// The upstream.
const UPSTREAM: &str = "192.0.2.53:53";

/// Parses a network like `10.0.0.0/8` or `2001:db8::/32`.
fn network(text: &str) -> Network {
    let (address, length) = text.split_once('/').expect(text);
    let length = length.parse().expect(text);
    match address.parse::<Ipv4Addr>() {
        Ok(v4) => Network::v4(v4, length),
        Err(_) => Network::new(address.parse::<Ipv6Addr>().expect(text), length),
    }
}

/// Parses networks.
pub fn networks(text: &str) -> Vec<Network> {
    text.split_whitespace().map(network).collect()
}

/// Parses networks of clients; a network after `!` is excluded.
pub fn clients(text: &str) -> ClientNetworks {
    let words = || text.split_whitespace();
    let included = words().filter(|word| !word.starts_with('!')).map(network).collect();
    ClientNetworks::new(included, words().filter_map(|word| word.strip_prefix('!')).map(network).collect())
}

/// Parses the addresses of upstreams; the default port is 53.
pub fn forwarders(text: &str) -> Vec<SocketAddr> {
    let address = |word: &str| match word.parse() {
        Ok(address) => address,
        Err(_) => SocketAddr::new(word.parse().expect(word), 53),
    };
    text.split_whitespace().map(address).collect()
}

/// Sets the DNS64 prefixes, and adds them to the excluded networks.
pub fn set_prefixes(dns64: &mut Dns64, text: &str) {
    dns64.prefixes = text.split_whitespace().map(|word| word.parse::<Pref64>().expect(word)).collect();
    dns64.exclude_aaaa.extend(networks(text));
}

/// The default settings.
pub fn settings() -> Settings {
    let mut settings = Settings {
        allow: Networks(networks("::/0 0.0.0.0/0")),
        upstream: UpstreamConfig {
            forwarders: forwarders(UPSTREAM),
            zones: vec![],
            select: Select::Ordered,
            timeout: Span::from_secs(1),
            tries: 3,
            transport: Transport::Udp,
            mix_case: true,
            tls: Vec::new(),
        },
        local_data: Default::default(),
        server_names: Default::default(),
        rpz: Default::default(),
        private_addresses: None,
        cache: Default::default(),
        dns64: Dns64 {
            prefixes: vec![],
            clients: clients("::/0 0.0.0.0/0"),
            exclude_aaaa: networks("::ffff:0:0/96"),
            non_global: NonGlobal::default(),
            mappings: None,
            never_embed: networks("0.0.0.0/8 127.0.0.0/8 169.254.0.0/16 224.0.0.0/4 240.0.0.0/4"),
            lookup: Lookup::Sequential,
            on_failure: FailurePolicy::default(),
            dnssec: Dnssec::Trust,
            break_dnssec: false,
            recursive_only: false,
            max_records: 64,
            arpa: Arpa::default(),
            rules: Default::default(),
            discovery: None,
            gateways: None,
            verdicts: None,
        },
        udp_size: 1232,
        client_subnet: Default::default(),
        cookies: Cookies { enabled: true, secrets: vec![COOKIE_SECRET.parse().expect("a secret")] },
        pending_per_client: 1000,
        client_prefix: 56,
        queries_per_client: 0,
        responses_per_client: 0,
        validation: None,
        needs: None,
    };
    set_prefixes(&mut settings.dns64, "2001:db8:64::/96");
    settings
}

/// The default settings with these upstreams.
pub fn with_forwarders(text: &str) -> Settings {
    let mut settings = settings();
    settings.upstream.forwarders = forwarders(text);
    settings
}

/// Settings with this transport to all upstreams.
pub fn over(transport: Transport, mut settings: Settings) -> Settings {
    let tls = |&address: &SocketAddr| TlsForwarder { address, identity: 1 };
    match transport {
        Transport::Tls => settings.upstream.tls = settings.upstream.forwarders.iter().map(tls).collect(),
        other => settings.upstream.transport = other,
    }
    settings
}
