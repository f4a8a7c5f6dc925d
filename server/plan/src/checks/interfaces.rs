//! Interfaces: their roles, and the networks on their links.

use crate::contradiction::{Contradiction, of_interface};
use crate::input::{Advertiser, Description, Input};

/// Reports interfaces that cannot be meant so.
pub fn check(input: &Input, found: &mut Vec<Contradiction>) {
    let network = &input.network;
    names(network, found);
    roles(network, found);
    networks(network, found);
}

fn names(network: &Description, found: &mut Vec<Contradiction>) {
    for (number, interface) in network.interfaces.iter().enumerate() {
        let earlier = network.interfaces[..number].iter().find(|earlier| earlier.name == interface.name);
        let Some(earlier) = earlier else { continue };
        let what = match earlier.role == interface.role {
            true => format!("the interface {} is listed twice", interface.name),
            false => format!(
                "the interface {} has two roles: what comes from one side could not be told from what comes from the \
                 other",
                interface.name
            ),
        };
        let remedy = "give each interface one entry; for two roles on one cable use two VLAN interfaces";
        found.push(Contradiction::at(&of_interface(number, "name"), what, remedy));
    }
}

fn roles(network: &Description, found: &mut Vec<Contradiction>) {
    if network.client_interfaces().next().is_none() {
        let remedy = "add [[network.interface]] with name = \"...\", role = \"clients\" and addresses = \
                      [\"2001:db8:c::1/64\"]";
        found.push(Contradiction::at("interface", "no interface has clients", remedy));
    }
    if network.is_gateway() && network.uplinks().next().is_none() {
        let what = "this machine is the NAT64, and no interface leads to the Internet: translated packets have no way";
        let remedy = "add [[network.interface]] with name = \"...\" and role = \"uplink\", or write gateway = \
                      \"elsewhere\"";
        found.push(Contradiction::at("gateway", what, remedy));
    }
}

fn networks(network: &Description, found: &mut Vec<Contradiction>) {
    for (number, interface) in network.client_interfaces() {
        let key = of_interface(number, "addresses");
        if interface.ipv6().next().is_none() {
            let what = format!(
                "the clients of {} have no IPv6 network: no address of this machine on it is IPv6",
                interface.name
            );
            let remedy =
                "add this machine's address with the length of the network, like \"2001:db8:c::1/64\"";
            found.push(Contradiction::at(&key, what, remedy));
        }
        for (item, entry) in interface.ipv6() {
            // RFC 4862 section 5.5.3 (d): prefix and interface identifier, of 64 bits on Ethernet (RFC 2464), make up 128.
            if entry.length != 64 && network.advertiser != Advertiser::None {
                let what = format!(
                    "clients make no address of {}: that needs a network of 64 bits (RFC 4862)",
                    entry.network()
                );
                let remedy = format!("write \"{}/64\"", entry.address);
                found.push(Contradiction::at(&key, what, remedy).with_item(item));
            }
        }
    }
    overlaps(network, found);
}

/// Reports links with common addresses: a router cannot know on which of them a host is.
fn overlaps(network: &Description, found: &mut Vec<Contradiction>) {
    let all = network.interfaces.iter().enumerate();
    let all = all.flat_map(|(number, interface)| {
        interface
            .addresses
            .iter()
            .enumerate()
            .map(move |(item, entry)| (number, interface, item, entry.network()))
    });
    let all: Vec<_> = all.collect();
    for (position, (number, interface, item, here)) in all.iter().enumerate() {
        let other =
            all[..position].iter().find(|(earlier, _, _, there)| earlier != number && there.overlaps(here));
        let Some((_, other, _, there)) = other else { continue };
        if other.name == interface.name {
            continue;
        }
        let what = format!(
            "{here} on {} and {there} on {} have common addresses: this machine cannot know on which link such a host \
             is",
            interface.name, other.name
        );
        let remedy = "give each link a network of its own";
        found.push(Contradiction::at(&of_interface(*number, "addresses"), what, remedy).with_item(*item));
    }
    for (number, interface) in network.client_interfaces() {
        let several: Vec<usize> = interface.ipv4().map(|(item, _)| item).collect();
        if let [_, second, ..] = several[..] {
            let what = format!("{} has two IPv4 networks: the files have one for each link", interface.name);
            let remedy = "leave one of them out, or use two VLAN interfaces";
            found.push(Contradiction::at(&of_interface(number, "addresses"), what, remedy).with_item(second));
        }
    }
}
