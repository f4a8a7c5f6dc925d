//! The configuration of a world, as the oracle reads it, and the same as the engine's settings.

use crate::cookie::Secret;
use crate::local_oracle::Owned;
use crate::policy::Rules as PolicyRules;
use crate::rng::Rng;
use crate::truth::{MILLI, NameId, SECOND, Truth, ZONES, zone_of};
use engine::cookie::{Cookies, Secret as EngineSecret};
use engine::rules::{Rule, Rules};
use engine::settings::{
    Arpa, Caching, Dns64, Dnssec, FailurePolicy, Lookup, Network, Networks, OnFailure, Reverse, Select,
    Upstream, Zone,
};
use engine::{Settings, Span, Transport};
use pref64::Pref64;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// A prefix: its address, its length in bits, and what the rest of the addresses ends in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Address.
    pub address: [u8; 16],
    /// Bits: 32, 40, 48, 56, 64 or 96.
    pub length: usize,
    /// Suffix.
    pub suffix: [u8; 16],
}

/// What a prefix under which nothing global is embedded begins with (RFC 6052 section 2.1).
const WELL_KNOWN: &str = "64:ff9b::";

/// Everything that can be set.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "switches")]
pub struct Config {
    /// Prefixes, in order.
    pub prefixes: Vec<Prefix>,
    /// Names under `legacy.test` are embedded under this one instead.
    pub legacy: Option<Prefix>,
    /// Real AAAA records of names under `ignore.test` are ignored.
    pub ignores: bool,
    /// IPv4 addresses of 45.0.0.0/8 are left out.
    pub leaves_out: bool,
    /// IPv4 clients have no DNS64.
    pub v6_only: bool,
    /// The last client network is not allowed to ask.
    pub closed: bool,
    /// What failures of the AAAA leg mean: synthesize for SERVFAIL, REFUSED, FORMERR, NOTIMP, silence.
    pub synthesize: [bool; 5],
    /// Whether AD is believed.
    pub trust: bool,
    /// Synthesis for DO and CD together.
    pub break_dnssec: bool,
    /// No synthesis for RD=0.
    pub recursive_only: bool,
    /// Synthesized records in one answer.
    pub max_records: usize,
    /// When the A leg is asked.
    pub lookup: Lookup,
    /// Servers: those in use of the general ones, and of the zone that has its own.
    pub servers: [Vec<SocketAddr>; 2],
    /// Which is asked first.
    pub select: Select,
    /// Ceiling of a try.
    pub timeout: u64,
    /// Tries.
    pub tries: u8,
    /// Upstreams are asked over TCP.
    pub tcp: bool,
    /// TTL range.
    pub ttl_range: (u32, u32),
    /// Largest negative TTL.
    pub max_negative: u32,
    /// Stale data are given for so long.
    pub stale: u64,
    /// Data are refreshed.
    pub prefetch: bool,
    /// UDP size.
    pub udp_size: u16,
    /// Pending questions of one network.
    pub pending_per_client: u32,
    /// What server cookies are made with, the one in use first; none: clients get no cookies.
    pub secrets: Vec<Secret>,
    /// Questions of a network in a second; 0: no limit.
    pub queries: u32,
    /// Answers of one kind to a network in a second; 0: no limit.
    pub responses: u32,
    /// What it says of names by itself.
    pub own: Owned,
    /// Response policy.
    pub policy: PolicyRules,
    /// What is done with the reverse names of addresses under prefixes.
    pub reverse: Reverse,
    /// Octets of the cache: 0 none.
    pub cache: usize,
    /// Room for pending questions.
    pub pending: usize,
}

/// The address of the `number`-th upstream.
pub fn server(number: u64) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::new(192, 0, 2, 1 + number as u8).into(), 53)
}

/// Draws the secrets of a server that gives cookies, or none.
fn secrets(rng: &mut Rng) -> Vec<Secret> {
    let many = *rng.choose(&[0, 0, 1, 2]);
    (0..many).map(|_| (u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())).to_be_bytes()).collect()
}

/// Draws a prefix.
pub fn prefix(rng: &mut Rng, place: u8) -> Prefix {
    let (text, length) = *rng.choose(&[
        (WELL_KNOWN, 96),
        ("2001:db8:64::", 96),
        ("2001:db8:64:ff00::", 56),
        ("2001:db8:64::", 48),
        ("2001:db8:64:7::", 64),
        ("2001:db8:6400::", 40),
        ("2001:db8::", 32),
    ]);
    let mut address = text.parse::<Ipv6Addr>().map_or([0; 16], |address| address.octets());
    if length == 96 && text != WELL_KNOWN {
        address[7] = place;
    }
    if length == 32 {
        address[1] = 2 + place;
    }
    let mut suffix = [0; 16];
    if length < 96 && rng.permille(300) {
        suffix[15] = 0x5a;
    }
    Prefix { address, length, suffix }
}

impl Config {
    /// A configuration for the start of a world.
    pub fn draw(rng: &mut Rng) -> Config {
        let defaults = rng.permille(300);
        let many = 1 + usize::from(rng.permille(250)) + usize::from(rng.permille(60));
        let mut config = Config {
            prefixes: vec![],
            legacy: None,
            ignores: false,
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
            secrets: secrets(rng),
            queries: *rng.choose(&[0, 0, 0, 0, 0, 0, 200, 20, 1]),
            responses: *rng.choose(&[0, 0, 0, 0, 0, 0, 20, 5, 1]),
            own: Owned::draw(rng),
            policy: PolicyRules::draw(rng),
            reverse: *rng.choose(&[Reverse::Cname, Reverse::Cname, Reverse::Local, Reverse::Off]),
            cache: *rng.choose(&[0, 64 << 10, 256 << 10, 4 << 20, 4 << 20]),
            pending: *rng.choose(&[1024, 1024, 1024, 60]),
        };
        for place in 0..many {
            let prefix = prefix(rng, place as u8);
            if !config.prefixes.contains(&prefix) {
                config.prefixes.push(prefix);
            }
        }
        config.draw_servers(rng);
        if !defaults {
            config.legacy = rng.permille(300).then(|| prefix(rng, 9));
            config.ignores = rng.permille(250);
            config.leaves_out = rng.permille(250);
            config.v6_only = rng.permille(200);
            config.synthesize = core::array::from_fn(|_| !rng.permille(150));
            config.trust = !rng.permille(200);
            config.break_dnssec = rng.permille(150);
            config.recursive_only = rng.permille(150);
            config.max_records = *rng.choose(&[64, 64, 3, 1]);
            config.timeout = *rng.choose(&[200, 500]) * MILLI;
            config.tries = 1 + rng.below(3) as u8;
            config.ttl_range = *rng.choose(&[(0, 86_400), (0, 86_400), (3, 86_400), (0, 10), (2, 60)]);
            config.max_negative = *rng.choose(&[3600, 5]);
        }
        config
    }

    /// What the operator makes of it at run time.
    pub fn reload(&self, rng: &mut Rng) -> Config {
        let mut other = Config::draw(rng);
        (other.cache, other.pending) = (self.cache, self.pending);
        // Often only one thing changes.
        if rng.permille(500) {
            let (servers, secrets) = (core::mem::take(&mut other.servers), other.secrets.clone());
            other = self.clone();
            match rng.below(5) {
                0 => other.servers = servers,
                // The next secret comes into use, the one before it is still known.
                1 => {
                    other.secrets.splice(..0, secrets);
                    other.secrets.truncate(2);
                }
                2 => other.queries = *rng.choose(&[0, 1, 50]),
                3 => other.own = Owned::draw(rng),
                _ => other.prefixes = vec![prefix(rng, 5)],
            }
        }
        other
    }

    fn draw_servers(&mut self, rng: &mut Rng) {
        let first = rng.below(3);
        self.servers = [
            (first..first + 1 + rng.below(3)).map(server).collect(),
            (6..7 + rng.below(2)).map(server).collect(),
        ];
    }

    /// The prefixes for an IPv4 address of a name: naively the first rule that matches, in the order of [`Config::settings`].
    pub fn prefixes_for(&self, name: NameId, address: [u8; 4]) -> &[Prefix] {
        if self.leaves_out && address[0] == 45 {
            return &[];
        }
        match &self.legacy {
            Some(prefix) if zone_of(name) == 1 => core::slice::from_ref(prefix),
            _ => &self.prefixes,
        }
    }

    /// Whether an IPv6 address counts as absent.
    pub fn excludes(&self, address: &[u8; 16]) -> bool {
        let mapped = address[..10] == [0; 10] && address[10..12] == [0xff; 2];
        let under = |prefix: &Prefix| address[..prefix.length / 8] == prefix.address[..prefix.length / 8];
        mapped || self.prefixes.iter().chain(&self.legacy).any(under)
    }

    /// Whether real addresses of a name are ignored.
    pub fn ignores_real(&self, name: NameId) -> bool {
        self.ignores && zone_of(name) == 2
    }

    /// The same as settings of the engine.
    pub fn settings(&self, truth: &Truth) -> Settings {
        let networks = |texts: &[(&str, u8)]| {
            let network = |&(text, length): &(&str, u8)| match text.parse::<Ipv4Addr>() {
                Ok(v4) => Network::v4(v4, length),
                Err(_) => Network::new(text.parse().unwrap_or(Ipv6Addr::UNSPECIFIED), length),
            };
            texts.iter().map(network).collect::<Vec<_>>()
        };
        let all = [("::", 0), ("0.0.0.0", 0)];
        let mut exclude_aaaa = networks(&[("::ffff:0:0", 96)]);
        exclude_aaaa.extend(
            self.prefixes.iter().map(|prefix| Network::new(prefix.address.into(), prefix.length as u8)),
        );
        let mut rules = vec![];
        if self.leaves_out {
            rules.push(Rule { ipv4: networks(&[("45.0.0.0", 8)]), ..Rule::default() });
        }
        let zone = |place: usize| vec![Box::from(ZONES[place])];
        if let Some(prefix) = &self.legacy {
            rules.push(Rule { names: zone(1), prefixes: vec![prefix.compiled()], ..Rule::default() });
        }
        if self.ignores {
            let prefixes = self.prefixes.iter().map(Prefix::compiled).collect();
            rules.push(Rule { names: zone(2), prefixes, ignores_real: true, ..Rule::default() });
        }
        let on = |synthesize: bool| if synthesize { OnFailure::Synthesize } else { OnFailure::Pass };
        let [servfail, refused, formerr, notimp, timeout] = self.synthesize.map(on);
        Settings {
            allow: Networks(if self.closed {
                networks(&[("2001:db8:c::", 48), ("10.0.0.0", 8)])
            } else {
                networks(&all)
            }),
            upstream: Upstream {
                forwarders: self.servers[0].clone(),
                zones: vec![Zone { name: Box::from(ZONES[3]), forwarders: self.servers[1].clone() }],
                select: self.select,
                timeout: Span(self.timeout),
                tries: self.tries,
                transport: if self.tcp { Transport::Tcp } else { Transport::Udp },
            },
            own: Arc::new(self.own.compiled(truth)),
            policy: Arc::new(self.policy.compiled(truth)),
            cache: Caching {
                min_ttl_secs: self.ttl_range.0,
                max_ttl_secs: self.ttl_range.1,
                max_negative_ttl_secs: self.max_negative,
                stale: Span(self.stale),
                prefetch: self.prefetch,
            },
            dns64: Dns64 {
                prefixes: self.prefixes.iter().map(Prefix::compiled).collect(),
                clients: Networks(networks(if self.v6_only { &all[..1] } else { &all })),
                exclude_aaaa,
                embed_non_global: false,
                never_embed: networks(&[("127.0.0.0", 8)]),
                lookup: self.lookup,
                on_failure: FailurePolicy { servfail, refused, formerr, notimp, timeout },
                dnssec: if self.trust { Dnssec::Trust } else { Dnssec::Off },
                break_dnssec: self.break_dnssec,
                recursive_only: self.recursive_only,
                max_records: self.max_records,
                arpa: Arpa { reverse: self.reverse, ..Arpa::default() },
                // Four rules can never be too many.
                rules: Arc::new(Rules::build(rules).unwrap_or_default()),
            },
            udp_size: self.udp_size,
            client_subnet: Default::default(),
            cookies: Cookies {
                enabled: true,
                secrets: self.secrets.iter().copied().map(EngineSecret).collect(),
            },
            pending_per_client: self.pending_per_client,
            queries_per_client: self.queries,
            responses_per_client: self.responses,
        }
    }
}

impl Prefix {
    fn compiled(&self) -> Pref64 {
        Pref64::new(self.address.into(), self.length as u8)
            .and_then(|prefix| prefix.with_suffix(self.suffix.into()))
            .unwrap_or(pref64::WELL_KNOWN)
    }

    /// 64:ff9b::/96.
    pub fn well_known() -> Prefix {
        let mut address = [0; 16];
        address[..4].copy_from_slice(&[0, 0x64, 0xff, 0x9b]);
        Prefix { address, length: 96, suffix: [0; 16] }
    }

    /// The IPv4 address that an address under the prefix carries.
    pub fn extract(&self, address: &[u8; 16]) -> Option<[u8; 4]> {
        let mut octets = address.to_vec();
        // Octet u carries nothing.
        if self.length < 96 {
            octets.remove(8);
        }
        octets.get(self.length / 8..self.length / 8 + 4)?.try_into().ok()
    }

    /// Whether it is the well-known one.
    pub fn is_well_known(&self) -> bool {
        self.length == 96 && self.address[..4] == [0, 0x64, 0xff, 0x9b] && self.address[4..12] == [0; 8]
    }

    /// The address that carries an IPv4 address: the table of RFC 6052 section 2.2, octet by octet.
    pub fn embed(&self, v4: [u8; 4]) -> [u8; 16] {
        let mut address = self.suffix;
        let mut at = self.length / 8;
        address[..at].copy_from_slice(&self.address[..at]);
        for octet in v4 {
            // Octet u.
            if at == 8 {
                at = 9;
            }
            address[at] = octet;
            at += 1;
        }
        address
    }
}
