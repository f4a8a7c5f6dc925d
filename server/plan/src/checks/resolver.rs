//! The resolver: whom it answers, whom it synthesizes for, and what is announced of it.

use crate::address::Network;
use crate::agreed::{encrypted, rdnss};
use crate::contradiction::{Contradiction, Place, of_interface};
use crate::input::{Advertiser, Input, Interface, Server};

/// Reports clients that the server does not serve, and announced addresses that it does not hear.
pub fn check(input: &Input, found: &mut Vec<Contradiction>) {
    for (_, interface) in input.network.client_interfaces() {
        clients(input, interface, found);
    }
    if !matches!(input.network.advertiser, Advertiser::None | Advertiser::Elsewhere) {
        announced(input, found);
    }
}

fn clients(input: &Input, interface: &Interface, found: &mut Vec<Contradiction>) {
    for (_, entry) in interface.ipv6() {
        let network = entry.network();
        if !is_allowed(&input.server, &network) {
            let what = format!(
                "clients of {network} on {} are refused: `server.allow` does not have them all",
                interface.name
            );
            found.push(server_fault(&what, "server.allow", format!("add \"{network}\" to `server.allow`")));
        }
        if input.network.has_nat64() && !keeps_ipv4(interface) && !is_synthesized_for(&input.server, &network)
        {
            let what = format!(
                "clients of {network} on {} have a NAT64 and get no synthesis: `dns64.clients` does not have them all",
                interface.name
            );
            let remedy = format!(
                "add \"{network}\" to `dns64.clients`; or, if they have IPv4 and keep it, write v6-only = false for the \
                 interface"
            );
            found.push(server_fault(&what, "dns64.clients", remedy));
        }
    }
}

/// True if clients of the interface have IPv4 and keep it, and so need no synthesis.
fn keeps_ipv4(interface: &Interface) -> bool {
    !interface.v6_only && interface.ipv4().next().is_some()
}

/// A contradiction whose place is a key of the server.
fn server_fault(what: &str, key: &str, remedy: String) -> Contradiction {
    let place = Place { key: key.to_owned(), item: None };
    Contradiction { what: what.to_owned(), place: Some(place), remedy }
}

fn is_allowed(server: &Server, network: &Network) -> bool {
    server.allow.as_ref().is_none_or(|allow| allow.iter().any(|allowed| allowed.contains(network)))
}

/// True if all clients of the network get synthesis. Exclusions alone mean all others.
fn is_synthesized_for(server: &Server, network: &Network) -> bool {
    let (excluded, included): (Vec<_>, Vec<_>) =
        server.clients.iter().partition(|(_, is_excluded)| *is_excluded);
    let is_in = included.is_empty() || included.iter().any(|(clients, _)| clients.contains(network));
    is_in && !excluded.iter().any(|(clients, _)| clients.overlaps(network))
}

fn announced(input: &Input, found: &mut Vec<Contradiction>) {
    let (server, network) = (&input.server, &input.network);
    for (item, &address) in network.rdnss.iter().enumerate() {
        if !server.listens_on(address.into()) {
            let listen: Vec<String> = server.listen.iter().map(ToString::to_string).collect();
            let what = format!(
                "clients would be told to ask {address} on port 53, and the server listens on {} (`server.listen`)",
                listen.join(", ")
            );
            let remedy =
                format!("add \"[{address}]:53\" to `server.listen`, or announce an address that is there");
            found.push(Contradiction::at("rdnss", what, remedy).with_item(item));
        }
    }
    for (number, interface) in network.client_interfaces() {
        if rdnss(server, network, interface).is_empty() {
            let listen: Vec<String> = server.listen.iter().map(ToString::to_string).collect();
            let what = format!(
                "there is no resolver to announce on {}: the server listens on {} (`server.listen`), and not on port \
                 53 of an IPv6 \
                 address that clients reach",
                interface.name,
                listen.join(", ")
            );
            let remedy = "listen on \"[::]:53\", or on the IPv6 address of this machine on that interface";
            found.push(Contradiction::at(&of_interface(number, "addresses"), what, remedy));
        }
    }
    encrypted_listeners(input, found);
}

/// Reports encrypted listeners that cannot be announced. radvd and networkd announce none.
fn encrypted_listeners(input: &Input, found: &mut Vec<Contradiction>) {
    let (server, network) = (&input.server, &input.network);
    let can_announce = matches!(network.advertiser, Advertiser::Bird | Advertiser::Odhcpd);
    if !(can_announce && network.dnr && server.is_encrypted()) {
        return;
    }
    if server.name.is_none() {
        let what = "encrypted listeners are announced with the name in their certificate (RFC 9463), and there is no \
                    `tls.ddr-name`";
        let remedy = "add ddr-name = \"dns.example\" to [tls], or dnr = false to [network]";
        found.push(Contradiction::at("dnr", what, remedy));
        return;
    }
    for (_, interface) in network.client_interfaces() {
        let rdnss = rdnss(server, network, interface);
        if !rdnss.is_empty() && encrypted(server, network, &rdnss).is_empty() {
            let what = format!(
                "no encrypted listener of [tls] is on an address that is announced on {}, so clients could not use it",
                interface.name
            );
            let remedy = "let `listen-dot`, `listen-doh` or `listen-doq` have that address or \"[::]\", or write dnr \
                          = false";
            found.push(Contradiction::at("dnr", what, remedy));
        }
    }
}
