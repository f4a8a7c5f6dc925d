//! Conversion of the configuration into the settings of the engine.

use super::forwarder::Forwarders;
use super::keys::{Config, Dns64, Rule, Server, Upstream, Validation};
use super::prefix_entry::prefixes;
use super::trust_anchors::AnchorsOfZones;
use super::{Network, ddr, limits};
use crate::arithmetic::DIGESTS;
use anchors::Data;
use datapath::proxy_protocol::TrustedProxies;
use engine::dns64::rules::{self, Rules, RulesTooLarge};
use engine::local::LocalData;
use engine::local::server_names::ServerNames;
use engine::message::cookie::Cookies;
use engine::needs::SharedNeeds;
use engine::settings::{
    self, AnchorRecord, ClientNetworks, Dnssec, Networks, PrivateAddresses, UncheckedZone, ValidationConfig,
};
use engine::{Capacity, Settings};
use gateways::limits::ADVERTISED_TTL_SECS;
use pref64::Pref64;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

impl Config {
    /// The settings of the engine.
    pub fn settings(&self) -> Settings {
        let dns64 = &self.dns64;
        let reached = |forwarders: &Forwarders| {
            forwarders.addresses().map(|address| self.upstream.reached_at(address)).collect()
        };
        Settings {
            allow: self.allowed_networks(),
            upstream: settings::UpstreamConfig {
                forwarders: reached(&self.upstream.forwarders),
                zones: self
                    .upstream
                    .zones
                    .iter()
                    .map(|zone| settings::ForwardZone {
                        name: zone.zone.wire().into(),
                        forwarders: reached(&zone.forwarders),
                    })
                    .collect(),
                select: self.upstream.select,
                timeout: self.upstream.timeout.into(),
                tries: self.upstream.tries,
                transport: self.upstream.transport,
                mix_case: self.upstream.mix_case,
                tls: self.upstream.tls_forwarders(),
            },
            local_data: Arc::new(self.local_data()),
            server_names: ServerNames {
                identity: self.server.identity.as_bytes().into(),
                version: self.server.version.as_bytes().into(),
            },
            rpz: Arc::clone(&self.filter.policy),
            private_addresses: self.private_addresses().map(Arc::new),
            dns64: settings::Dns64 {
                prefixes: dns64.engine_prefixes(),
                clients: client_networks(&dns64.clients),
                exclude_aaaa: dns64.engine_excluded(),
                non_global: dns64.non_global,
                mappings: dns64.mappings.clone(),
                never_embed: engine_networks(&dns64.never_embed),
                lookup: dns64.lookup,
                on_failure: dns64.on_failure,
                dnssec: dns64.dnssec,
                break_dnssec: dns64.break_dnssec,
                recursive_only: dns64.recursive_only,
                max_records: dns64.max_records,
                // Building succeeded when the configuration was checked.
                rules: Arc::new(dns64.built_rules().unwrap_or_default()),
                discovery: dns64.discovery(),
                gateways: dns64.gateways(),
                verdicts: None,
                arpa: settings::Arpa {
                    reverse: dns64.ptr,
                    ipv4only: dns64.ipv4only_arpa,
                    server: dns64.ptr_server.wire().into(),
                    contact: dns64.ptr_contact.wire().into(),
                    designated: self
                        .tls
                        .ddr_name
                        .as_ref()
                        .map_or_else(Box::default, |name| name.wire().into()),
                },
            },
            cache: settings::Caching {
                min_ttl_secs: seconds(self.cache.min_ttl),
                max_ttl_secs: seconds(self.cache.max_ttl),
                max_negative_ttl_secs: seconds(self.cache.max_negative_ttl),
                stale: self.cache.stale.into(),
                prefetch: self.cache.prefetch,
            },
            udp_size: self.edns.udp_size,
            client_subnet: self.edns.client_subnet,
            cookies: Cookies { enabled: self.edns.cookies, secrets: self.edns.cookie_secrets.clone() },
            pending_per_client: self.limits.pending_per_client,
            client_prefix: self.limits.client_prefix,
            queries_per_client: self.limits.queries_per_client,
            responses_per_client: self.limits.responses_per_client,
            validation: self.validation().map(Arc::new),
            needs: self.statistics.needs.then(|| self.shared_needs()),
        }
    }

    /// True if changes of the trust anchors are followed (RFC 5011).
    pub fn follows_anchors(&self) -> bool {
        let Validation { trust_anchors, follow, .. } = &self.dnssec;
        self.dns64.dnssec == Dnssec::Validate && (*follow || *trust_anchors == AnchorsOfZones::Root)
    }

    /// The settings of validation, with the anchors of the configuration; none if nothing is validated. The zones that are not looked at
    /// begin with the negative trust anchors.
    pub fn validation(&self) -> Option<ValidationConfig> {
        if self.dns64.dnssec != Dnssec::Validate {
            return None;
        }
        let Validation {
            anchors, negative, algorithms, nsec3_iterations, permissive, aggressive_nsec, ..
        } = &self.dnssec;
        let negative = negative.iter().map(|anchor| UncheckedZone {
            zone: anchor.zone.clone(),
            // Times are compared modulo 2^32 (RFC 4034 section 3.1.5): an end in 2106 or later is none.
            until: anchor.until.and_then(|until| u32::try_from(until).ok()),
        });
        let zones = self.upstream.zones.iter().filter(|zone| !zone.is_validated);
        let private = zones.map(|zone| UncheckedZone { zone: zone.zone.wire().into(), until: None });
        Some(ValidationConfig {
            digests: DIGESTS,
            anchors: anchors.iter().cloned().map(anchor_of_engine).collect(),
            unchecked: negative.chain(private).collect(),
            algorithms: *algorithms,
            nsec3_iterations: *nsec3_iterations,
            permissive: *permissive,
            aggressive_nsec: *aggressive_nsec,
        })
    }

    /// Threads that verify signatures; none if nothing is validated.
    pub fn signature_threads(&self) -> usize {
        let per_core = || std::thread::available_parallelism().map_or(1, usize::from);
        match self.dns64.dnssec {
            Dnssec::Validate => self.dnssec.threads.map_or_else(per_core, usize::from),
            Dnssec::Trust | Dnssec::Off => 0,
        }
    }

    /// The counts of what needs DNS64. An engine that counts already keeps its own, so each call may draw another key.
    fn shared_needs(&self) -> Arc<SharedNeeds> {
        // The keys of the standard library's hash maps come from the system.
        let key = [RandomState::new(), RandomState::new()].map(|state| state.hash_one(0));
        Arc::new(SharedNeeds::new(key, self.server.worker_count()))
    }

    /// Networks of clients that are served.
    pub fn allowed_networks(&self) -> Networks {
        Networks(engine_networks(&self.server.allow.networks()))
    }

    /// The proxies whose PROXY headers are trusted.
    pub fn proxies(&self) -> TrustedProxies {
        TrustedProxies::new(Networks(engine_networks(&self.server.proxy_from)))
    }

    /// The local data. For a name in both, `records` override the hosts file, and the records of `tls.ddr-name`.
    fn local_data(&self) -> LocalData {
        let records = self.local.records.iter().map(|record| &record.record);
        let owners: HashSet<&[u8]> = records.clone().map(|record| &record.owner[..]).collect();
        let hosts = self.local.hosts.iter().filter(|host| !owners.contains(&host.owner[..]));
        let blocked = self.filter.block.iter().map(|name| name.wire().into());
        let designated = match &self.tls.ddr_name {
            Some(name) if !owners.contains(ddr::NAME) => ddr::records(name, &self.tls),
            _ => Vec::new(),
        };
        LocalData::new(records.chain(hosts).cloned().chain(designated).collect(), blocked)
            .with_empty_zones(self.local.empty_zones)
    }

    /// The addresses that replies of upstreams must not have.
    fn private_addresses(&self) -> Option<PrivateAddresses> {
        let names = self.filter.private_names.iter().map(|name| name.wire().into());
        PrivateAddresses::new(&engine_networks(&self.filter.private_addresses), names.collect())
    }

    /// Memory that each of `workers` workers reserves at start.
    pub fn capacity(&self, workers: usize) -> Capacity {
        let cache = usize::try_from(self.cache.size).unwrap_or(usize::MAX) / workers.max(1);
        Capacity { pending: self.limits.pending, cache }
    }
}

impl Dns64 {
    /// The rules as the lookup tables of the engine.
    ///
    /// # Errors
    ///
    /// As [`Rules::build`]: too many names are nested, or the rules overlap too much.
    pub fn built_rules(&self) -> Result<Rules, RulesTooLarge> {
        let rule = |rule: &Rule| rules::Rule {
            clients: engine_networks(&rule.clients),
            names: rule.names.iter().map(|name| name.wire().into()).collect(),
            ipv4: engine_networks(&rule.ipv4),
            prefixes: prefixes(&rule.prefixes).copied().collect(),
            awaits_discovery: !rule.prefixes.is_empty() && prefixes(&rule.prefixes).next().is_none(),
            real_aaaa: rule.real_aaaa,
            suppresses_a: rule.suppresses_a,
        };
        Rules::build(self.rules.iter().map(rule).collect())
    }

    /// The general prefixes, as far as they are known.
    pub fn engine_prefixes(&self) -> Vec<Pref64> {
        prefixes(&self.prefixes).copied().collect()
    }

    /// The networks whose real AAAA records count as absent.
    pub fn engine_excluded(&self) -> Vec<settings::Network> {
        engine_networks(&self.exclude_aaaa)
    }

    /// The discovery, before anything is found; none if there is no source.
    fn discovery(&self) -> Option<settings::Discovery> {
        let none = settings::Discovery { configuration: 0, ttl_secs: *ADVERTISED_TTL_SECS.end() };
        self.sources().next().map(|_| none)
    }
}

impl Server {
    /// Worker threads in effect: one per core of this machine, unless a number is set.
    pub fn worker_count(&self) -> usize {
        let per_core = || std::thread::available_parallelism().map_or(1, usize::from);
        self.workers.map_or_else(|| per_core().min(*limits::WORKERS.end() as usize), usize::from)
    }
}

impl Upstream {
    /// The forwarders of all zones; one of several zones comes several times.
    pub fn all_forwarders(&self) -> impl Iterator<Item = SocketAddr> {
        let of_zones = self.zones.iter().map(|zone| &zone.forwarders);
        std::iter::once(&self.forwarders).chain(of_zones).flat_map(Forwarders::addresses)
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

/// Clients with synthesis. The longest network that contains a client decides.
fn client_networks(clients: &[(Network, bool)]) -> ClientNetworks {
    let of = |wanted: bool| {
        let networks = clients.iter().filter(|&&(_, is_excluded)| is_excluded == wanted);
        networks.map(|&(network, _)| network.into()).collect()
    };
    ClientNetworks::new(of(false), of(true))
}

/// Whole seconds, rounded up: half a second must not become zero.
fn seconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis().div_ceil(1000)).unwrap_or(u32::MAX)
}

fn engine_networks(networks: &[Network]) -> Vec<settings::Network> {
    networks.iter().map(|&network| network.into()).collect()
}

/// A trust anchor in the form of the engine.
pub fn anchor_of_engine(anchor: anchors::TrustAnchor) -> settings::TrustAnchor {
    let record = match anchor.data {
        Data::Ds(rdata) => AnchorRecord::Ds(rdata),
        Data::Dnskey(rdata) => AnchorRecord::Dnskey(rdata),
    };
    settings::TrustAnchor { zone: anchor.zone, record }
}
