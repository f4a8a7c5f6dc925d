//! The configuration that a conversion makes: the values of Sixfold's keys as far as the source decides them. A dialect sets a
//! value that the source names, and one whose default differs from Sixfold's in a way that changes answers.

use crate::ledger::Spot;
use crate::network::Network;
use crate::source_ports::SourcePorts;
use crate::trust::Validation;
use pref64::Pref64;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// Address of a server or listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// The address.
    pub(crate) address: IpAddr,
    /// Interface of a link-local address.
    pub(crate) scope: Option<String>,
    /// The port.
    pub(crate) port: u16,
    /// For a forwarder that is asked over TLS: the name that its certificate must have.
    pub(crate) tls_name: Option<String>,
}

impl Endpoint {
    /// An address without an interface.
    pub(crate) fn new(address: impl Into<IpAddr>, port: u16) -> Endpoint {
        Endpoint { address: address.into(), scope: None, port, tls_name: None }
    }
}

/// `[tls]`: the encrypted listeners.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tls {
    pub(crate) certificate: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) listen_dot: Vec<Endpoint>,
    pub(crate) listen_doh: Vec<Endpoint>,
    pub(crate) listen_doq: Vec<Endpoint>,
    pub(crate) doh_path: Option<String>,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Endpoint { address, scope, port, tls_name } = self;
        match (address, scope) {
            (IpAddr::V4(v4), _) => write!(formatter, "{v4}:{port}")?,
            (IpAddr::V6(v6), None) => write!(formatter, "[{v6}]:{port}")?,
            (IpAddr::V6(v6), Some(scope)) => write!(formatter, "[{v6}%{scope}]:{port}")?,
        }
        tls_name.iter().try_for_each(|name| write!(formatter, "#{name}"))
    }
}

/// Entry of `server.allow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowed {
    /// `local`.
    Local,
    /// A network.
    Network(Network),
}

impl fmt::Display for Allowed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Allowed::Local => formatter.write_str("local"),
            Allowed::Network(network) => network.fmt(formatter),
        }
    }
}

/// Zone with forwarders of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Zone {
    pub(crate) zone: String,
    pub(crate) forwarders: Vec<Endpoint>,
}

/// Rule of `[[dns64.rule]]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) clients: Vec<Network>,
    pub(crate) names: Vec<String>,
    pub(crate) ipv4: Vec<Network>,
    pub(crate) prefixes: Option<Vec<Pref64>>,
    pub(crate) ignores_real: bool,
}

/// `[dns64]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dns64 {
    /// False if the source synthesizes nothing.
    pub(crate) is_on: bool,
    pub(crate) prefixes: Vec<Pref64>,
    pub(crate) suffix: Option<Ipv6Addr>,
    /// Networks of clients; true for those that are excluded. `None` for all clients.
    pub(crate) clients: Option<Vec<(Network, bool)>>,
    pub(crate) exclude_aaaa: Vec<Network>,
    /// False if the source resolves reverse names under the prefix like all other names.
    pub(crate) answers_ptr: bool,
    pub(crate) ptr_server: Option<String>,
    pub(crate) ptr_contact: Option<String>,
    pub(crate) break_dnssec: Option<bool>,
    pub(crate) recursive_only: Option<bool>,
    pub(crate) ipv4only_arpa: Option<bool>,
    /// Failures of the AAAA query that the client gets, from `servfail`, `refused`, `formerr`, `notimp` and `timeout`.
    pub(crate) passed_failures: &'static [&'static str],
    pub(crate) rules: Vec<Rule>,
}

/// `[cache]`; times in seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cache {
    pub(crate) octets: Option<u64>,
    pub(crate) min_ttl: Option<u64>,
    pub(crate) max_ttl: Option<u64>,
    pub(crate) max_negative_ttl: Option<u64>,
    pub(crate) stale: Option<u64>,
    pub(crate) prefetch: Option<bool>,
}

/// `[limits]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) queries_per_client: Option<u64>,
    pub(crate) responses_per_client: Option<u64>,
    pub(crate) pending: Option<u64>,
    pub(crate) tcp_connections: Option<u64>,
    pub(crate) tcp_per_client: Option<u64>,
    pub(crate) tcp_idle_ms: Option<u64>,
}

/// Values of Sixfold's keys; an absent one keeps its default.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) listen: Vec<Endpoint>,
    pub(crate) allow: Option<Vec<Allowed>>,
    pub(crate) workers: Option<u64>,
    pub(crate) proxy_from: Vec<Network>,
    pub(crate) identity: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) freebind: bool,
    pub(crate) tls: Tls,
    /// Trust anchors for forwarders that are asked over TLS; none for those of the system.
    pub(crate) tls_ca: Option<String>,
    /// Forwarders of all names that no zone has.
    pub(crate) forwarders: Vec<Endpoint>,
    /// True if the source reads the forwarders from the system.
    pub(crate) uses_system_forwarders: bool,
    pub(crate) select: Option<&'static str>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) tries: Option<u64>,
    pub(crate) uses_tcp: bool,
    pub(crate) mix_case: Option<bool>,
    /// Addresses that questions leave from.
    pub(crate) sources: Vec<IpAddr>,
    pub(crate) source_ports: SourcePorts,
    pub(crate) via_nat64: Option<Pref64>,
    pub(crate) zones: Vec<Zone>,
    /// Zones, `.` for all names, with a forwarder over TLS that is not carried over, and the statement that has it.
    pub(crate) lost_tls: Vec<(String, Spot)>,
    /// Zones that the source asks its general forwarders for, although zones like them are answered locally.
    pub(crate) forwarded_zones: Vec<String>,
    pub(crate) dns64: Dns64,
    pub(crate) validation: Validation,
    pub(crate) records: Vec<String>,
    pub(crate) hosts_file: Option<String>,
    pub(crate) empty_zones: Option<bool>,
    pub(crate) block: Vec<String>,
    pub(crate) rpz: Vec<String>,
    pub(crate) private_addresses: Vec<Network>,
    pub(crate) private_names: Vec<String>,
    pub(crate) cache: Cache,
    pub(crate) udp_size: Option<u64>,
    pub(crate) cookies: Option<bool>,
    pub(crate) cookie_secrets: Vec<String>,
    pub(crate) forwards_client_subnet: bool,
    pub(crate) limits: Limits,
    pub(crate) metrics_listen: Option<Endpoint>,
    pub(crate) log_level: Option<&'static str>,
}

impl Model {
    /// Adds a forward zone. The root sets the general forwarders; a zone that is there already gets more forwarders.
    pub(crate) fn forward(&mut self, zone: &str, forwarders: Vec<Endpoint>) {
        let list = self.forwarders_of(zone);
        for endpoint in forwarders {
            add(list, endpoint);
        }
    }

    /// The forwarders of a zone, which is made if it is not there.
    fn forwarders_of(&mut self, zone: &str) -> &mut Vec<Endpoint> {
        let zone = zone.trim_end_matches('.');
        if zone.is_empty() {
            return &mut self.forwarders;
        }
        let found = self.zones.iter().position(|known| known.zone.eq_ignore_ascii_case(zone));
        let index = found.unwrap_or_else(|| {
            self.zones.push(Zone { zone: zone.to_owned(), forwarders: Vec::new() });
            self.zones.len() - 1
        });
        &mut self.zones[index].forwarders
    }

    /// Takes the plain forwarders from each list that has lost one over TLS: questions that went over TLS must not go to them. Returns
    /// the statements and the zones to which this happened.
    pub(crate) fn drop_plain_beside_lost_tls(&mut self) -> Vec<(String, Spot)> {
        let mut lost = std::mem::take(&mut self.lost_tls);
        lost.retain(|(zone, _)| {
            let is_general = zone == ".";
            let list = self.forwarders_of(zone);
            let before = list.len();
            list.retain(|endpoint| endpoint.tls_name.is_some());
            let is_shorter = list.len() < before;
            (is_general && std::mem::take(&mut self.uses_system_forwarders)) || is_shorter
        });
        lost
    }

    /// Brings the parts together that the dialects set in any order.
    pub(crate) fn finish(&mut self) {
        for zone in std::mem::take(&mut self.forwarded_zones) {
            let is_there =
                self.zones.iter().any(|known| known.zone.eq_ignore_ascii_case(zone.trim_end_matches('.')));
            if !is_there && !self.forwarders.is_empty() {
                self.forward(&zone, self.forwarders.clone());
            }
        }
    }
}

/// Adds an element that the list does not have.
pub(crate) fn add<T: PartialEq>(list: &mut Vec<T>, element: T) {
    if !list.contains(&element) {
        list.push(element);
    }
}
