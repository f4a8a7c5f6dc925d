//! The values of a plan, from the configuration.

use crate::config::{Allowed, Config, Name, Network, NetworkInterface, prefixes};
use plan::{Description, Input, Interface, Server, Source};
use std::path::Path;
use std::time::Duration;

/// The input of a plan.
pub fn of(config: &Config, file: &Path) -> Input {
    let name = file.file_name().unwrap_or(file.as_os_str());
    let source =
        Source { file: name.to_string_lossy().into_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    Input { source, server: server(config), network: description(config) }
}

fn server(config: &Config) -> Server {
    let is_local = config.server.allow.has_local();
    let named = config.server.allow.entries.iter().filter_map(|entry| match entry {
        Allowed::Network(network) => Some(planned(network)),
        Allowed::Local => None,
    });
    let tls = &config.tls;
    Server {
        listen: config.server.listen.clone(),
        allow: (!is_local).then(|| named.collect()),
        prefixes: prefixes(&config.dns64.prefixes).copied().collect(),
        clients: config
            .dns64
            .clients
            .iter()
            .map(|(network, is_excluded)| (planned(network), *is_excluded))
            .collect(),
        dot: tls.listen_dot.clone(),
        doh: tls.listen_doh.clone(),
        doq: tls.listen_doq.clone(),
        doh_path: tls.doh_path.clone(),
        name: tls.ddr_name.as_ref().map(without_dot),
    }
}

fn without_dot(name: &Name) -> String {
    name.to_string().trim_end_matches('.').to_owned()
}

fn planned(network: &Network) -> plan::Network {
    plan::Network::of(network.address, network.length)
}

fn description(config: &Config) -> Description {
    let network = &config.network;
    let interface = |interface: &NetworkInterface| Interface {
        name: interface.name.clone(),
        role: interface.role,
        addresses: interface.addresses.clone(),
        v6_only: interface.v6_only,
    };
    Description {
        gateway: network.gateway,
        advertiser: network.advertiser,
        dhcpv4: network.dhcpv4,
        prefix: network.prefix,
        pool: network.pool.as_ref().map(planned),
        gateway_address: network.gateway_address,
        mtu: network.mtu,
        rdnss: network.rdnss.clone(),
        dnr: network.dnr,
        interval_s: seconds(network.interval),
        router_lifetime_s: seconds(network.router_lifetime),
        pref64_lifetime_s: network.pref64_lifetime.map(seconds),
        v6_only_wait_s: seconds(network.v6_only_wait),
        interfaces: network.interfaces.iter().map(interface).collect(),
    }
}

/// Whole seconds: a started one counts.
fn seconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis().div_ceil(1000)).unwrap_or(u32::MAX)
}
