//! The packet filter, for nft(8) 1.1: a table of its own, loaded by a unit of its own, beside whatever `/etc/nftables.conf` has.

use super::joined;
use super::tayga::DEVICE;
use crate::PlannedFile;
use crate::address::Network;
use crate::agreed::{Agreed, LinkIpv4, tayga_pool};
use crate::input::{Gateway, Input};
use crate::part::Part;
use pref64::Pref64;
use std::fmt::Write;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Path of the file.
pub const PATH: &str = "etc/sixfold/network/filter.nft";

/// Error messages without which packets are lost in silence, or connections wait for nothing (RFC 4890 section 4.3.1).
const ERRORS_6: &str = "{ destination-unreachable, packet-too-big, time-exceeded, parameter-problem }";
/// The same for IPv4.
const ERRORS_4: &str = "{ destination-unreachable, time-exceeded, parameter-problem }";

/// The file.
pub fn file(input: &Input, agreed: &Agreed) -> PlannedFile {
    let mut text = String::from(
        "# The first two lines remove the table of an earlier run. Fragments need no rule: connection tracking puts \
         them together before these\n\
         # chains, and the kernel cuts them again on the way out.\ntable inet sixfold\ndelete table inet \
         sixfold\ntable inet sixfold {\n",
    );
    sources(&mut text, input, agreed);
    if let Some(ports) = private_ports(input, agreed) {
        local(&mut text, agreed, &ports);
    }
    forward(&mut text, input, agreed);
    shared(&mut text, input, agreed);
    text.push_str("}\n");
    let translator = if input.network.is_gateway() {
        ", and what comes from the Internet for the NAT64 prefix: the gateway is for the clients only"
    } else {
        ""
    };
    let guests = if agreed.links.iter().any(|link| link.is_guest) { ", guests and other links" } else { "" };
    let explanation = format!(
        "nftables forwards what clients, NAT64 and Internet say to each other, with the ICMP messages that must pass, \
         and gives private IPv4 addresses the address of this machine. It drops packets between other \
         interfaces{guests}, packets with sources of others{translator}."
    );
    super::file(input, Part::Nftables, PATH, &text, &explanation)
}

/// A set of interfaces.
fn interfaces<'i>(names: impl IntoIterator<Item = &'i str>) -> String {
    format!("{{ {} }}", joined(names.into_iter().map(|name| format!("\"{name}\""))))
}

fn uplinks(agreed: &Agreed) -> Option<String> {
    (!agreed.uplinks.is_empty()).then(|| interfaces(agreed.uplinks.iter().map(String::as_str)))
}

/// Source addresses, before any translation: the priority is before that of Jool and of NAT44, and after that of the defragmentation.
fn sources(text: &mut String, input: &Input, agreed: &Agreed) {
    text.push_str(
        "    # Sources (RFC 2827). A client has an address of its link, a link-local one, or none while it looks for \
         one. With br_netfilter\n    # \
         the frames between two ports of a bridge come here, too: what stays on the link is left alone.\n    \
         chain sources {\n        type filter hook prerouting priority raw; policy accept;\n",
    );
    for link in &agreed.links {
        let networks = joined(&link.networks);
        source(
            text,
            &link.name,
            "ip6",
            &format!("::, fe80::/10, {networks}"),
            &format!("ff00::/8, fe80::/10, {networks}"),
        );
        if let Some(LinkIpv4 { network, .. }) = &link.ipv4 {
            let there = format!("224.0.0.0/4, 255.255.255.255, 169.254.0.0/16, {network}");
            source(text, &link.name, "ip", &format!("0.0.0.0, {network}"), &there);
        }
    }
    translated(text, input, agreed);
    if let (Some(uplinks), Some(prefix), true) = (uplinks(agreed), agreed.prefix, input.network.is_gateway())
    {
        let prefix = format!("{}/{}", prefix.address(), prefix.length());
        let _ = writeln!(
            text,
            "        # The NAT64 is for the clients only.\n        iifname {uplinks} ip6 daddr {prefix} drop\n        \
             iifname {uplinks} ip6 saddr {prefix} drop"
        );
        if input.network.gateway == Gateway::Tayga {
            let _ = writeln!(text, "        iifname {uplinks} ip saddr {} drop", tayga_pool(&input.network));
        }
    }
    text.push_str("    }\n");
}

/// Rules for the sources of a link: others are dropped if they go beyond it, or to this machine.
fn source(text: &mut String, link: &str, family: &str, own: &str, there: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "        iifname \"{link}\" {family} saddr != {{ {own} }} {family} daddr != {{ {there} }} drop\n        iifname \
         \"{link}\" {family} saddr != {{ {own} }} fib daddr type local drop"
    );
}

/// The way of guests through Jool to the IPv4 networks of other links: what it translates does not come through the chain `forward`.
fn translated(text: &mut String, input: &Input, agreed: &Agreed) {
    let (Gateway::Jool, Some(prefix)) = (input.network.gateway, agreed.prefix) else { return };
    for guests in agreed.links.iter().filter(|link| link.is_guest) {
        let others = agreed.links.iter().filter(|link| link.name != guests.name);
        let others = others.filter_map(|link| embedded(&prefix, &link.ipv4.as_ref()?.network));
        let others: Vec<Network> = others.collect();
        if !others.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "        # Guests do not reach other links through the NAT64 either.\n        iifname \"{}\" ip6 daddr \
                 {{ {} }} drop",
                guests.name,
                joined(others)
            );
        }
    }
}

/// The addresses of an IPv4 network under a prefix. None: the network is none of IPv4.
fn embedded(prefix: &Pref64, network: &Network) -> Option<Network> {
    let IpAddr::V4(first) = network.address else { return None };
    let bits = prefix.length() + network.length;
    // RFC 6052 section 2.2: the octet from bit 64 on is left out.
    let length = if prefix.length() <= 64 && bits > 64 { bits + 8 } else { bits };
    Some(Network::of(Ipv6Addr::from(prefix.embed(first.octets())).into(), length))
}

/// Ports of the resolver, if its clients are those of the links: then nobody else needs them.
fn private_ports(input: &Input, agreed: &Agreed) -> Option<Vec<u16>> {
    let allow = input.server.allow.iter().flatten();
    let is_of_link = |network: &Network| {
        let links = agreed
            .links
            .iter()
            .flat_map(|link| link.networks.iter().chain(link.ipv4.as_ref().map(|ipv4| &ipv4.network)));
        network.address.is_loopback() || links.into_iter().any(|link| link.contains(network))
    };
    if agreed.uplinks.is_empty()
        || !input.network.has_server(&input.server)
        || !allow.into_iter().all(is_of_link)
    {
        return None;
    }
    let server = &input.server;
    let listen = server.listen.iter().chain(&server.dot).chain(&server.doh).chain(&server.doq);
    let mut ports: Vec<u16> =
        listen.filter(|listen| !listen.ip().is_loopback()).map(SocketAddr::port).collect();
    ports.sort_unstable();
    ports.dedup();
    (!ports.is_empty()).then_some(ports)
}

fn local(text: &mut String, agreed: &Agreed, ports: &[u16]) {
    let Some(uplinks) = uplinks(agreed) else { return };
    let ports = joined(ports);
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "    # The resolver is for the clients, as `server.allow` says.\n    chain input {{\n        \
         type filter hook input priority filter; policy accept;\n        ct state {{ established, related }} accept\n        \
         iifname {uplinks} tcp dport {{ {ports} }} drop\n        iifname {uplinks} udp dport {{ {ports} }} drop\n    }}"
    );
}

fn forward(text: &mut String, input: &Input, agreed: &Agreed) {
    let clients = interfaces(agreed.client_interfaces());
    text.push_str(
        "    chain forward {\n        type filter hook forward priority filter; policy drop;\n        \
         # Within a link. With br_netfilter the frames between two ports of a bridge come here, too.\n",
    );
    // Writing to a string cannot fail.
    for link in &agreed.links {
        let _ = writeln!(text, "        iifname \"{0}\" oifname \"{0}\" accept", link.name);
    }
    let _ = writeln!(
        text,
        "        ct state {{ established, related }} accept\n        ct state invalid drop\n        \
         # Without these, large packets are lost in silence (RFC 4890 section 4.3.1).\n        icmpv6 type {ERRORS_6} \
         accept\n        \
         icmp type {ERRORS_4} accept"
    );
    between(text, agreed, &clients);
    if let Some(uplinks) = uplinks(agreed) {
        let _ = writeln!(text, "        iifname {clients} oifname {uplinks} accept");
    }
    match (input.network.gateway, agreed.prefix) {
        (Gateway::Tayga, Some(prefix)) => {
            let _ = writeln!(
                text,
                "        # The NAT64: IPv6 goes in, IPv4 comes out.\n        iifname {clients} oifname \"{DEVICE}\" \
                 ip6 daddr {}/{} accept",
                prefix.address(),
                prefix.length()
            );
            if let Some(uplinks) = uplinks(agreed) {
                let pool = tayga_pool(&input.network);
                let _ =
                    writeln!(text, "        iifname \"{DEVICE}\" oifname {uplinks} ip saddr {pool} accept");
            }
        }
        (Gateway::Jool, _) => {
            text.push_str("        # What Jool translates leaves before this chain.\n");
        }
        _ => {}
    }
    text.push_str("    }\n");
}

/// Links among each other. Guests reach none, and all others reach them.
fn between(text: &mut String, agreed: &Agreed, clients: &str) {
    let trusted: Vec<&str> =
        agreed.links.iter().filter(|link| !link.is_guest).map(|link| link.name.as_str()).collect();
    if trusted.len() < agreed.links.len() {
        text.push_str("        # Guests reach no other link.\n");
    }
    if agreed.links.len() > 1 && !trusted.is_empty() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "        iifname {} oifname {clients} accept", interfaces(trusted));
    }
}

/// Private addresses share the address of this machine (NAT44).
fn shared(text: &mut String, input: &Input, agreed: &Agreed) {
    let pool = (input.network.gateway == Gateway::Tayga).then(|| tayga_pool(&input.network));
    let links = agreed.links.iter().filter_map(|link| link.ipv4.as_ref()).map(|ipv4| ipv4.network);
    let private: Vec<Network> = pool.into_iter().chain(links).filter(is_private).collect();
    let (Some(uplinks), false) = (uplinks(agreed), private.is_empty()) else { return };
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "    # Private addresses share the address of this machine.\n    chain postrouting {{\n        \
         type nat hook postrouting priority srcnat; policy accept;\n        ip saddr {{ {} }} oifname {uplinks} \
         masquerade\n    }}",
        joined(private)
    );
}

/// True for networks that the Internet does not route back: RFC 1918, and others that are not global.
fn is_private(network: &Network) -> bool {
    matches!(network.address, IpAddr::V4(address) if !pref64::is_global(address.octets()))
}
