//! The NAT64: its prefix, its pool, its own address, and the MTU of the links.

use crate::address::Network;
use crate::agreed::{prefix, tayga_pool};
use crate::contradiction::{Contradiction, of_interface};
use crate::input::{Description, Gateway, Input, Interface};
use pref64::Pref64;

/// Smallest MTU of a link with IPv6 (RFC 8200 section 5).
const LEAST_MTU: u32 = 1280;

/// Largest MTU: the length of a packet without a jumbo payload is 16 bits, beside the header of 40 octets.
const LARGEST_MTU: u32 = 65_575;

/// Longest prefix of TAYGA's pool: the first address is reserved, another one is TAYGA's, and one is left for a client.
const LONGEST_POOL: u8 = 30;

/// Reports what no gateway can do.
pub fn check(input: &Input, found: &mut Vec<Contradiction>) {
    let network = &input.network;
    if network.mtu < LEAST_MTU || network.mtu > LARGEST_MTU {
        let what = format!(
            "an MTU of {}: every link with IPv6 carries packets of {LEAST_MTU} octets (RFC 8200 section 5), and none \
             of more than \
             {LARGEST_MTU}",
            network.mtu
        );
        found.push(Contradiction::at(
            "mtu",
            what,
            "write mtu = 1500, or the MTU of the links, at least 1280",
        ));
    }
    if network.has_nat64() {
        nat64_prefix(input, found);
    }
    pool(network, found);
    own_address(input, found);
}

fn nat64_prefix(input: &Input, found: &mut Vec<Contradiction>) {
    let Some(chosen) = prefix(input) else {
        let what = match input.server.prefixes.len() {
            0 => "`dns64.prefixes` has no prefix that is known now, and there is no `network.prefix`"
                .to_owned(),
            count => {
                format!("`dns64.prefixes` has {count} prefixes, and nothing says which one this gateway has")
            }
        };
        found.push(Contradiction::at(
            "prefix",
            what,
            "add a line like prefix = \"64:ff9b::/96\" to [network]",
        ));
        return;
    };
    let is_this = |known: &Pref64| (known.address(), known.length()) == (chosen.address(), chosen.length());
    if !input.server.prefixes.is_empty() && !input.server.prefixes.iter().any(is_this) {
        let known: Vec<String> = input.server.prefixes.iter().map(Pref64::to_string).collect();
        let what = format!(
            "the gateway and the announcements would have {chosen}, and the server embeds into {} (`dns64.prefixes`): \
             its answers \
             would lead nowhere",
            known.join(", ")
        );
        let remedy = "write the same prefix in both places, or leave `network.prefix` out";
        found.push(Contradiction::at("prefix", what, remedy));
    }
    let translated = Network::of(chosen.address().into(), chosen.length());
    for (number, interface) in input.network.interfaces.iter().enumerate() {
        for (item, entry) in interface.ipv6().filter(|(_, entry)| entry.network().overlaps(&translated)) {
            let what = format!(
                "{} on {} and the NAT64 prefix {chosen} have common addresses: packets to its hosts would be \
                 translated",
                entry.network(),
                interface.name
            );
            let remedy = "use a prefix that no link has, such as 64:ff9b::/96 or a /96 of your own";
            found.push(Contradiction::at(&of_interface(number, "addresses"), what, remedy).with_item(item));
        }
    }
}

fn pool(network: &Description, found: &mut Vec<Contradiction>) {
    if let (Some(pool), false) = (network.pool, network.is_gateway()) {
        let what = format!("a pool of {pool}, and this machine is no NAT64");
        let remedy = "write gateway = \"jool\" or \"tayga\", or leave `pool` out";
        found.push(Contradiction::at("pool", what, remedy));
    }
    let (pool, links): (Network, Vec<&Interface>) = match (network.gateway, network.pool) {
        (Gateway::Tayga, _) => (tayga_pool(network), network.interfaces.iter().collect()),
        // Jool may have addresses of the network towards the Internet.
        (Gateway::Jool, Some(pool)) => {
            (pool, network.client_interfaces().map(|(_, interface)| interface).collect())
        }
        _ => return,
    };
    if network.gateway == Gateway::Tayga && pool.length > LONGEST_POOL {
        let what = format!("a pool of {pool} has no address for a client beside TAYGA's own");
        let remedy = "TAYGA gives each client one address: write a larger network, like \"192.168.255.0/24\"";
        found.push(Contradiction::at("pool", what, remedy));
    }
    for interface in links {
        for (_, entry) in interface.ipv4().filter(|(_, entry)| entry.network().overlaps(&pool)) {
            let what = format!(
                "the pool {pool}{} and {} on {} have common addresses: replies would go to the one and never reach \
                 the other",
                if network.pool.is_none() { ", TAYGA's usual one," } else { "" },
                entry.network(),
                interface.name
            );
            let remedy = "write another network as `network.pool`, which no link has";
            found.push(Contradiction::at("pool", what, remedy));
        }
    }
}

/// Checks the address of the translator itself, from which it sends ICMPv6 errors.
fn own_address(input: &Input, found: &mut Vec<Contradiction>) {
    let network = &input.network;
    let Some(own) = network.gateway_address else {
        // TAYGA would embed its private IPv4 address, which that prefix must not carry (RFC 6052 section 3.1).
        if network.gateway == Gateway::Tayga && prefix(input).is_some_and(|prefix| prefix.is_well_known()) {
            let what = "TAYGA with the prefix 64:ff9b::/96 needs an IPv6 address of its own: without one it sends no \
                        ICMPv6 errors, and \
                        large packets are lost";
            let remedy =
                "add gateway-address = \"...\" to [network]: an address of your site that no link has";
            found.push(Contradiction::at("gateway-address", what, remedy));
        }
        return;
    };
    if network.gateway != Gateway::Tayga {
        let what = format!("{own} is the address of TAYGA, and the gateway is another one");
        found.push(Contradiction::at(
            "gateway-address",
            what,
            "leave `gateway-address` out, or write gateway = \"tayga\"",
        ));
        return;
    }
    let translated = prefix(input).map(|prefix| Network::of(prefix.address().into(), prefix.length()));
    let links =
        network.interfaces.iter().flat_map(|interface| interface.ipv6()).map(|(_, entry)| entry.network());
    if let Some(taken) = links.chain(translated).find(|taken| taken.has(own.into())) {
        let what = format!(
            "{own} is in {taken}, which is a link's or the prefix itself: packets to TAYGA would not reach it"
        );
        let remedy =
            "write an address of your site that is in no network of a link, like the first of an unused /64";
        found.push(Contradiction::at("gateway-address", what, remedy));
    }
}
