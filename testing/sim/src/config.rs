//! The configuration of a world: how it is drawn, how the oracle reads it, and its translation into the engine's settings.

use crate::cookie::Secret;
use crate::gateway_config::GatewayConfig;
use crate::ground_truth::{FIRST_ARPA_ID, GroundTruth, MILLI, NameId, SECOND, ZONES, zone_of};
use crate::local_oracle::Owned;
use crate::mappings::MappingLines;
use crate::policy::Rules as PolicyRules;
use crate::prefix::Prefix;
use crate::rng::Rng;
use engine::dns64::rules::{RealAaaa, Rule, Rules};
use engine::message::cookie::{Cookies, Secret as EngineSecret};
use engine::settings::{
    Arpa, Caching, ClientNetworks, Discovery, Dns64, Dnssec, FailurePolicy, ForwardZone, Lookup, Network,
    Networks, NonGlobal, OnFailure, Reverse, Select, UpstreamConfig,
};
use engine::{Settings, Span, Transport};
use pref64::Pref64;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// Discovery of a configuration.
#[derive(Clone, Copy, Debug)]
pub struct DiscoveryConfig {
    /// Number of the general prefixes that are configured. Those behind them were discovered.
    pub configured: usize,
    /// Longest TTL with which clients learn of the prefixes, seconds.
    pub ttl: u32,
}

/// All settings of a world.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "switches")]
pub struct Config {
    /// NAT64 prefixes, in order.
    pub prefixes: Vec<Prefix>,
    /// Prefix for names under `legacy.test`, instead of the others.
    pub legacy: Option<Prefix>,
    /// Gateways behind the prefixes, and the choice among them; none: each answer has all prefixes.
    pub gateways: Option<GatewayConfig>,
    /// Discovery of more general prefixes; none: all are configured.
    pub discovery: Option<DiscoveryConfig>,
    /// Explicit address mappings.
    pub mappings: MappingLines,
    /// Real AAAA records of names under `ignore.test` are ignored.
    pub ignores: bool,
    /// Zone of the names whose real AAAA records are verified.
    pub verified: Option<usize>,
    /// IPv4 addresses of 45.0.0.0/8 are not embedded.
    pub leaves_out: bool,
    /// IPv4 clients have no DNS64.
    pub v6_only: bool,
    /// The last client network is not allowed to query.
    pub closed: bool,
    /// AAAA failures after which AAAA records are synthesized: SERVFAIL, REFUSED, FORMERR, NOTIMP, timeout.
    pub synthesize: [bool; 5],
    /// AD of upstreams is trusted.
    pub trust: bool,
    /// Synthesis for queries with both DO and CD.
    pub break_dnssec: bool,
    /// No synthesis for queries without RD.
    pub recursive_only: bool,
    /// Largest number of synthesized records in one answer.
    pub max_records: usize,
    /// Time of the A query: after the AAAA reply, together with the AAAA query, or a little later.
    pub lookup: Lookup,
    /// Upstream servers: the general ones, and those of the zone with servers of its own.
    pub servers: [Vec<SocketAddr>; 2],
    /// Choice of the first server.
    pub select: Select,
    /// Longest timeout of one attempt, nanoseconds.
    pub timeout: u64,
    /// Tries of one query.
    pub tries: u8,
    /// Upstreams are queried over TCP.
    pub tcp: bool,
    /// Smallest and largest TTL of cached data, seconds.
    pub ttl_range: (u32, u32),
    /// Largest negative TTL, seconds.
    pub max_negative: u32,
    /// Time for which expired data may be served, nanoseconds.
    pub stale: u64,
    /// Popular data are refreshed before they expire.
    pub prefetch: bool,
    /// UDP payload size.
    pub udp_size: u16,
    /// Largest number of pending queries of one client network.
    pub pending_per_client: u32,
    /// Server cookie secrets, the one in use first; empty: clients get no cookies.
    pub secrets: Vec<Secret>,
    /// Queries of a client network per second; 0: no limit.
    pub queries: u32,
    /// Similar answers to a client network per second; 0: no limit.
    pub responses: u32,
    /// Local data: records, blocked names, names under `arpa`.
    pub own: Owned,
    /// Response policy.
    pub policy: PolicyRules,
    /// Treatment of the reverse names of addresses under prefixes.
    pub reverse: Reverse,
    /// Octets of the cache; 0: no cache.
    pub cache: usize,
    /// Room for pending queries.
    pub pending: usize,
}

/// The address of the `number`-th upstream.
pub fn server_address(number: u64) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::new(192, 0, 2, 1 + number as u8).into(), 53)
}

/// Draws server cookie secrets, or none.
fn draw_secrets(rng: &mut Rng) -> Vec<Secret> {
    let count = *rng.choose(&[0, 0, 1, 2]);
    (0..count)
        .map(|_| (u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())).to_be_bytes())
        .collect()
}

impl Config {
    /// Draws a configuration: the start of a world, or a reload.
    pub fn draw(rng: &mut Rng) -> Config {
        let keeps_defaults = rng.permille(300);
        let prefix_count = 1 + usize::from(rng.permille(250)) + usize::from(rng.permille(60));
        let mut config = Config::draw_basics(rng);
        for place in 0..prefix_count {
            let prefix = Prefix::draw(rng, place as u8);
            if !config.prefixes.contains(&prefix) {
                config.prefixes.push(prefix);
            }
        }
        config.draw_servers(rng);
        if !keeps_defaults {
            config.draw_options(rng);
        }
        config
    }

    /// Draws the settings that no world leaves at their defaults. Prefixes and servers are missing yet.
    fn draw_basics(rng: &mut Rng) -> Config {
        Config {
            prefixes: vec![],
            legacy: None,
            gateways: None,
            discovery: None,
            mappings: MappingLines::default(),
            ignores: false,
            verified: None,
            leaves_out: false,
            v6_only: false,
            closed: rng.permille(200),
            synthesize: [true; 5],
            trust: true,
            break_dnssec: false,
            recursive_only: false,
            max_records: 64,
            lookup: *rng.choose(&[Lookup::Sequential, Lookup::Parallel, Lookup::Stagger(Span(20 * MILLI))]),
            servers: [vec![], vec![]],
            select: *rng.choose(&[Select::Ordered, Select::Random, Select::Fastest]),
            timeout: 500 * MILLI,
            tries: 3,
            tcp: rng.permille(80),
            ttl_range: (0, 86_400),
            max_negative: 3600,
            stale: *rng.choose(&[0, 10 * SECOND, 86_400 * SECOND]),
            prefetch: rng.permille(700),
            udp_size: *rng.choose(&[512, 1232, 1232, 4096]),
            pending_per_client: *rng.choose(&[1000, 1000, 30]),
            secrets: draw_secrets(rng),
            queries: *rng.choose(&[0, 0, 0, 0, 0, 0, 200, 20, 1]),
            responses: *rng.choose(&[0, 0, 0, 0, 0, 0, 20, 5, 1]),
            own: Owned::draw(rng),
            policy: PolicyRules::draw(rng),
            reverse: *rng.choose(&[Reverse::Cname, Reverse::Cname, Reverse::Local, Reverse::Off]),
            cache: *rng.choose(&[0, 64 << 10, 256 << 10, 4 << 20, 4 << 20]),
            pending: *rng.choose(&[1024, 1024, 1024, 60]),
        }
    }

    fn draw_servers(&mut self, rng: &mut Rng) {
        let first = rng.below(3);
        self.servers = [
            (first..first + 1 + rng.below(3)).map(server_address).collect(),
            (6..7 + rng.below(2)).map(server_address).collect(),
        ];
    }

    /// Draws the settings that many operators leave at their defaults.
    fn draw_options(&mut self, rng: &mut Rng) {
        self.legacy = rng.permille(300).then(|| Prefix::draw(rng, 9));
        self.ignores = rng.permille(250);
        self.leaves_out = rng.permille(250);
        self.v6_only = rng.permille(200);
        self.synthesize = core::array::from_fn(|_| !rng.permille(150));
        self.trust = !rng.permille(200);
        self.break_dnssec = rng.permille(150);
        self.recursive_only = rng.permille(150);
        self.max_records = *rng.choose(&[64, 64, 3, 1]);
        self.timeout = *rng.choose(&[200, 500]) * MILLI;
        self.tries = 1 + rng.below(3) as u8;
        self.ttl_range = *rng.choose(&[(0, 86_400), (0, 86_400), (3, 86_400), (0, 10), (2, 60)]);
        self.max_negative = *rng.choose(&[3600, 5]);
    }

    /// Draws the configuration that follows this one at a reload. Cache size and room for pending queries cannot change.
    pub fn draw_reload(&self, rng: &mut Rng) -> Config {
        let mut other = Config::draw(rng);
        (other.cache, other.pending) = (self.cache, self.pending);
        // Half of the reloads change one setting only.
        if rng.permille(500) {
            let (servers, secrets) = (core::mem::take(&mut other.servers), other.secrets.clone());
            other = self.clone();
            match rng.below(5) {
                0 => other.servers = servers,
                // Rollover: the next secret is put in front, and the previous one is still accepted.
                1 => {
                    other.secrets.splice(..0, secrets);
                    other.secrets.truncate(2);
                }
                2 => other.queries = *rng.choose(&[0, 1, 50]),
                3 => other.own = Owned::draw(rng),
                _ => {
                    other.prefixes = vec![Prefix::draw(rng, 5)];
                    (other.gateways, other.discovery) = (None, None);
                }
            }
        }
        other
    }

    /// Computes all local answers. They follow from local data, prefixes and the treatment of reverse names.
    pub fn prepare(&mut self, ground_truth: &GroundTruth) {
        let prefixes: Vec<Prefix> = self.all_prefixes().copied().collect();
        let longest_ttl = self.discovery.map(|discovery| discovery.ttl);
        self.own.prepare(ground_truth, &prefixes, longest_ttl, &self.mappings, self.reverse);
    }

    /// True if an IPv4 address lacks a prefix only because none was discovered.
    pub fn awaits_discovery(&self, address: [u8; 4]) -> bool {
        self.discovery.is_some() && self.prefixes.is_empty() && !(self.leaves_out && address[0] == 45)
    }

    /// All prefixes: the general ones, and that of the rule.
    pub fn all_prefixes(&self) -> impl Iterator<Item = &Prefix> {
        self.prefixes.iter().chain(&self.legacy)
    }

    /// The prefixes for an IPv4 address of a name: the first rule that matches, in the order of [`Config::to_engine`].
    pub fn prefixes_for(&self, name: NameId, address: [u8; 4]) -> &[Prefix] {
        if self.leaves_out && address[0] == 45 {
            return &[];
        }
        match &self.legacy {
            Some(prefix) if zone_of(name) == 1 => core::slice::from_ref(prefix),
            _ => &self.prefixes,
        }
    }

    /// True if an IPv6 address counts as absent (RFC 6147 section 5.1.4).
    pub fn excludes(&self, address: &[u8; 16]) -> bool {
        let is_mapped = address[..10] == [0; 10] && address[10..12] == [0xff; 2];
        is_mapped || self.all_prefixes().any(|prefix| prefix.contains(address))
    }

    /// True if real AAAA records of a name are ignored.
    pub fn ignores_real(&self, name: NameId) -> bool {
        self.ignores && zone_of(name) == 2
    }

    /// True if the addresses in real AAAA records of a name are verified.
    pub fn verifies_real(&self, name: NameId) -> bool {
        self.verified == Some(zone_of(name)) && name < FIRST_ARPA_ID
    }

    /// The configuration as settings of the engine.
    pub fn to_engine(&self, ground_truth: &GroundTruth) -> Settings {
        Settings {
            allow: Networks(if self.closed {
                networks(&[("2001:db8:c::", 48), ("10.0.0.0", 8)])
            } else {
                networks(&EVERYWHERE)
            }),
            upstream: self.upstream(),
            local_data: Arc::new(self.own.to_engine(ground_truth)),
            server_names: Default::default(),
            rpz: Arc::new(self.policy.to_engine(ground_truth)),
            private_addresses: None,
            cache: Caching {
                min_ttl_secs: self.ttl_range.0,
                max_ttl_secs: self.ttl_range.1,
                max_negative_ttl_secs: self.max_negative,
                stale: Span(self.stale),
                prefetch: self.prefetch,
            },
            dns64: self.dns64(),
            udp_size: self.udp_size,
            client_subnet: Default::default(),
            cookies: Cookies {
                enabled: true,
                secrets: self.secrets.iter().copied().map(EngineSecret).collect(),
            },
            pending_per_client: self.pending_per_client,
            // The simulator predicts rates of networks, and not of sites.
            client_prefix: if self.queries == 0 && self.responses == 0 { 56 } else { 64 },
            queries_per_client: self.queries,
            responses_per_client: self.responses,
            validation: None,
            needs: None,
        }
    }

    fn upstream(&self) -> UpstreamConfig {
        UpstreamConfig {
            forwarders: self.servers[0].clone(),
            zones: vec![ForwardZone { name: Box::from(ZONES[3]), forwarders: self.servers[1].clone() }],
            select: self.select,
            timeout: Span(self.timeout),
            tries: self.tries,
            transport: if self.tcp { Transport::Tcp } else { Transport::Udp },
            mix_case: true,
            tls: Vec::new(),
        }
    }

    fn dns64(&self) -> Dns64 {
        let mut exclude_aaaa = networks(&[("::ffff:0:0", 96)]);
        exclude_aaaa.extend(
            self.prefixes.iter().map(|prefix| Network::new(prefix.address.into(), prefix.length as u8)),
        );
        let on = |synthesize: bool| if synthesize { OnFailure::Synthesize } else { OnFailure::Pass };
        let [servfail, refused, formerr, notimp, timeout] = self.synthesize.map(on);
        Dns64 {
            prefixes: self.prefixes.iter().map(Prefix::to_engine).collect(),
            clients: ClientNetworks::new(
                networks(if self.v6_only { &EVERYWHERE[..1] } else { &EVERYWHERE }),
                vec![],
            ),
            exclude_aaaa,
            non_global: NonGlobal::default(),
            mappings: self.mappings.to_engine(),
            never_embed: networks(&[("127.0.0.0", 8)]),
            lookup: self.lookup,
            on_failure: FailurePolicy {
                servfail,
                refused,
                formerr,
                notimp,
                timeout,
                ..FailurePolicy::default()
            },
            dnssec: if self.trust { Dnssec::Trust } else { Dnssec::Off },
            break_dnssec: self.break_dnssec,
            recursive_only: self.recursive_only,
            max_records: self.max_records,
            arpa: Arpa { reverse: self.reverse, ..Arpa::default() },
            // There are at most four rules, so the limit of the engine is never reached.
            rules: Arc::new(Rules::build(self.rules()).unwrap_or_default()),
            discovery: self
                .discovery
                .map(|DiscoveryConfig { ttl, .. }| Discovery { configuration: 1, ttl_secs: ttl }),
            gateways: None,
            verdicts: None,
        }
    }

    fn rules(&self) -> Vec<Rule> {
        let mut rules = vec![];
        if self.leaves_out {
            rules.push(Rule { ipv4: networks(&[("45.0.0.0", 8)]), ..Rule::default() });
        }
        let zone = |place: usize| vec![Box::from(ZONES[place])];
        if let Some(prefix) = &self.legacy {
            rules.push(Rule { names: zone(1), prefixes: vec![prefix.to_engine()], ..Rule::default() });
        }
        let mut add_general = |place: usize, real_aaaa: RealAaaa| {
            let prefixes: Vec<Pref64> = self.prefixes.iter().map(Prefix::to_engine).collect();
            let awaits_discovery = prefixes.is_empty();
            rules.push(Rule { names: zone(place), awaits_discovery, prefixes, real_aaaa, ..Rule::default() });
        };
        if self.ignores {
            add_general(2, RealAaaa::Ignore);
        }
        if let Some(place) = self.verified {
            add_general(place, RealAaaa::Verify);
        }
        rules
    }
}

/// Settings with one upstream and one prefix, for all clients, and the server's defaults otherwise.
pub fn plain_settings(upstream: SocketAddr, prefix: Pref64) -> Settings {
    Settings {
        allow: Networks(networks(&EVERYWHERE)),
        upstream: UpstreamConfig {
            forwarders: vec![upstream],
            zones: Vec::new(),
            select: Select::default(),
            timeout: Span::from_secs(1),
            tries: 1,
            transport: Transport::Udp,
            mix_case: true,
            tls: Vec::new(),
        },
        local_data: Arc::default(),
        server_names: Default::default(),
        rpz: Arc::default(),
        private_addresses: None,
        cache: Caching::default(),
        dns64: Dns64 {
            prefixes: vec![prefix],
            clients: ClientNetworks::new(networks(&EVERYWHERE), vec![]),
            exclude_aaaa: vec![],
            non_global: NonGlobal::default(),
            mappings: None,
            never_embed: vec![],
            lookup: Lookup::default(),
            on_failure: FailurePolicy::default(),
            dnssec: Dnssec::default(),
            break_dnssec: false,
            recursive_only: false,
            max_records: 64,
            arpa: Arpa::default(),
            rules: Arc::default(),
            discovery: None,
            gateways: None,
            verdicts: None,
        },
        udp_size: 1232,
        client_subnet: Default::default(),
        cookies: Cookies::default(),
        pending_per_client: 1000,
        client_prefix: 56,
        queries_per_client: 0,
        responses_per_client: 0,
        validation: None,
        needs: None,
    }
}

/// All addresses of both families, IPv6 first.
const EVERYWHERE: [(&str, u8); 2] = [("::", 0), ("0.0.0.0", 0)];

fn networks(texts: &[(&str, u8)]) -> Vec<Network> {
    let network = |&(text, length): &(&str, u8)| match text.parse::<Ipv4Addr>() {
        Ok(v4) => Network::v4(v4, length),
        Err(_) => Network::new(text.parse().unwrap_or(Ipv6Addr::UNSPECIFIED), length),
    };
    texts.iter().map(network).collect()
}
