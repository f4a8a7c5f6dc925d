//! Warnings about values that are allowed, but probably not meant: lists that shut everybody out, rules that never apply,
//! prefixes that violate RFC 6052 or overlap. They are not errors: only the operator knows the network.

use super::access::is_reachable;
use super::keys::{Config, Dns64, Server, Upstream};
use super::{Allowed, Network, limits, shadowed_rules};
use engine::settings::{NonGlobal, Transport};
use pref64::Pref64;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Ports where clients and servers expect TLS or QUIC: DNS over TLS and QUIC (RFC 7858, RFC 9250), HTTPS, and the port that drafts of DNS
/// over QUIC had. Each with the key of its listeners.
const ENCRYPTED_PORTS: [(u16, &str); 3] =
    [(853, "tls.listen-dot"), (443, "tls.listen-doh"), (8853, "tls.listen-doq")];

/// The network of the IPv4-mapped addresses (RFC 4291 section 2.5.5.2).
const MAPPED: Network =
    Network { address: IpAddr::V6(Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0)), length: 96 };

/// Warnings about `[server]`: the clients that may send queries. `is_default`: nobody has chosen them.
pub fn of_access(server: &Server, is_default: bool) -> Option<String> {
    if server.allow.entries.is_empty() {
        let remedy = "name the networks of the clients, or delete the key for \"local\"";
        return Some(format!("`server.allow` is empty, so every query is refused: {remedy}"));
    }
    // A list that is written down is a deliberate choice.
    let listen = listens_for_more_than_local(server).filter(|_| is_default)?;
    Some(format!(
        "the server listens on {listen}, but answers only clients of local networks; others, also those with global addresses \
         behind a router, get REFUSED: name their networks, like allow = [\"local\", \"2001:db8:10::/48\"] below [server], or \
         --allow local --allow 2001:db8:10::/48"
    ))
}

/// Warns of clients over IPv4 that get synthesis although nobody has chosen that (`is_default`): they have IPv4, so an address behind the
/// translator is a detour. Clients on this host may be stubs of IPv6 clients.
pub fn of_ipv4_clients(server: &Server, is_default: bool) -> Option<String> {
    let is_meant = |network: &&Network| network.address.is_ipv4() && !network.address.is_loopback();
    let networks = server.allow.entries.iter().filter_map(|entry| match entry {
        Allowed::Network(network) => Some(network),
        Allowed::Local => None,
    });
    let network = networks.filter(|_| is_default).find(is_meant)?;
    Some(format!(
        "clients over IPv4 ({network} in `server.allow`) get synthesized addresses, too, since `dns64.clients` does not say who should: write \
         clients = [\"::/0\"] below [dns64] for those over IPv6 only, or clients = [\"::/0\", \"0.0.0.0/0\"] for all"
    ))
}

/// An address that clients outside the site may reach, if all that may send queries are in `"local"`.
pub fn listens_for_more_than_local(server: &Server) -> Option<&SocketAddr> {
    if !server.allow.has_local() || server.allow.reaches_outside() {
        return None;
    }
    server.listen.iter().find(|listen| is_reachable(listen.ip()))
}

/// Warnings about plain DNS on ports of encrypted DNS, for clients and towards forwarders.
pub fn of_plain_dns(server: &Server, upstream: &Upstream) -> Vec<String> {
    let key_of = |address: &SocketAddr| ENCRYPTED_PORTS.iter().find(|(port, _)| *port == address.port());
    let listening = server.listen.iter().filter_map(|address| {
        let (port, key) = key_of(address)?;
        Some(format!(
            "`server.listen` has {address}: this is plain DNS, and clients expect encrypted DNS on port {port}; move the address \
             to `{key}`, or choose another port"
        ))
    });
    let is_plain = |address: &SocketAddr| {
        upstream.transport != Transport::Tls && !upstream.identities.contains_key(address)
    };
    let forwarders: BTreeSet<SocketAddr> =
        upstream.all_forwarders().filter(|address| is_plain(address)).collect();
    let asked = forwarders.into_iter().filter_map(|address| {
        let (port, _) = key_of(&address)?;
        Some(format!(
            "the forwarder {address} is asked in plain DNS, but servers expect encrypted DNS on port {port}: for DNS over TLS write \
             the name in its certificate behind the address, like \"{}#dns.example\"",
            address.ip()
        ))
    });
    listening.chain(asked).collect()
}

/// Warnings about IPv4-mapped networks and addresses (`::ffff:192.0.2.1`). Clients over IPv4 have IPv4 addresses here, so such a
/// network has no client.
pub fn of_mapped_addresses(config: &Config) -> Vec<String> {
    let allow = config.server.allow.entries.iter().filter_map(|entry| match entry {
        Allowed::Network(network) => Some(network),
        Allowed::Local => None,
    });
    let rules = config.dns64.rules.iter().flat_map(|rule| &rule.clients);
    let lists: [(&str, Vec<&Network>); 4] = [
        ("server.allow", allow.collect()),
        ("server.proxy-from", config.server.proxy_from.iter().collect()),
        ("dns64.clients", config.dns64.clients.iter().map(|(network, _)| network).collect()),
        ("clients", rules.collect()),
    ];
    let networks = lists.into_iter().flat_map(|(key, networks)| {
        networks.into_iter().filter_map(move |network| Some((key, network, unmapped(network)?)))
    });
    let networks = networks.map(|(key, network, v4)| {
        format!(
            "`{key}` has {network}, which matches nobody: clients over IPv4 have IPv4 addresses; write {v4}"
        )
    });
    let asked = config.upstream.all_forwarders().filter_map(|address| {
        let v4 = unmapped(&Network::of(address.ip(), if address.is_ipv4() { 32 } else { 128 }))?;
        Some(format!("the forwarder {address} is an IPv4 address in the form of IPv6; write {}", v4.address))
    });
    networks.chain(asked).collect()
}

/// The IPv4 network that an IPv4-mapped network stands for.
fn unmapped(network: &Network) -> Option<Network> {
    let IpAddr::V6(address) = network.address else { return None };
    let v4 = address.to_ipv4_mapped().filter(|_| MAPPED.contains(network))?;
    Some(Network::of(v4.into(), network.length - MAPPED.length))
}

/// Warnings about the clients, exclusions and rules of `[dns64]`. `empty` has the numbers (from 1) of rules without any key.
pub fn of_dns64(dns64: &Dns64, empty: &[usize]) -> Vec<String> {
    let mut warnings = Vec::new();
    let clients = &dns64.clients;
    if clients.is_empty() {
        warnings.push(
            "`dns64.clients` is empty, so no client gets synthesis: name the clients, or delete the key for all".to_owned(),
        );
    }
    for (network, _) in
        clients.iter().filter(|(network, excluded)| *excluded && clients.contains(&(*network, false)))
    {
        warnings.push(format!(
            "`dns64.clients` has both {network} and !{network}: its clients are excluded; delete one of the two"
        ));
    }
    if let Some(all) = dns64.exclude_aaaa.iter().find(|network| network.length == 0) {
        warnings.push(format!(
            "`dns64.exclude-aaaa` has {all}: all real AAAA records count as absent, so clients reach every host over the \
             translator; name only the networks that they cannot reach"
        ));
    }
    for rule in empty {
        warnings.push(format!(
            "rule {rule} of [[dns64.rule]] is empty: it applies to everything, and later rules to nothing; give it `names`, \
             `clients`, `ipv4` or `prefixes`, or delete it"
        ));
    }
    let shadowed: Vec<_> =
        shadowed_rules::shadowed(&dns64.rules).into_iter().filter(|(_, by)| !empty.contains(by)).collect();
    for (rule, by) in shadowed.iter().take(limits::SHADOWED_RULES) {
        warnings.push(format!(
            "rule {rule} of [[dns64.rule]] never applies: rule {by} before it matches the same clients, names and addresses; \
             put the narrower rule first, or delete it"
        ));
    }
    if let Some(more) = shadowed.len().checked_sub(limits::SHADOWED_RULES).filter(|&more| more > 0) {
        warnings.push(format!("{more} more rules of [[dns64.rule]] never apply"));
    }
    warnings
}

/// Warnings about the prefixes of `[dns64]` and its rules.
pub fn of_prefixes(dns64: &Dns64) -> Vec<String> {
    let mut prefixes: Vec<Pref64> = dns64.all_prefixes().copied().collect();
    // Sorted so that a prefix follows the prefix that contains it, or other prefixes inside that one.
    let key = |prefix: &Pref64| (prefix.address(), prefix.length());
    prefixes.sort_by_key(key);
    prefixes.dedup_by_key(|prefix| key(prefix));

    let mut warnings = Vec::new();
    if dns64.non_global == NonGlobal::Embed && prefixes.iter().any(Pref64::is_well_known) {
        warnings.push(
            "`dns64.non-global` is \"embed\" with the prefix 64:ff9b::/96, which must not carry non-global addresses \
             (RFC 6052 section 3.1), and translators drop them: add a rule with `ipv4` that gives these addresses a prefix \
             of your own or one in 64:ff9b:1::/48 (RFC 8215)"
                .to_owned(),
        );
    }
    if !dns64.suffix.is_unspecified() {
        warnings.push(format!(
            "`dns64.suffix` is {}, and should be \"::\" (RFC 6052 section 2.2): keep it only if your translator requires it",
            dns64.suffix
        ));
    }
    for prefix in &prefixes {
        let address = prefix.address();
        if address.is_multicast() || address.is_unicast_link_local() || address.to_ipv4_mapped().is_some() {
            warnings.push(format!(
                "no host can be reached over the prefix {prefix}: use a prefix that is routed to your translator"
            ));
        }
    }
    let mut outer: Option<&Pref64> = None;
    let (mut first, mut more) = (None, 0);
    for prefix in &prefixes {
        match outer.filter(|outer| outer.contains(prefix.address().octets())) {
            Some(outer) if first.is_none() => first = Some((prefix, outer)),
            Some(_) => more += 1,
            None => outer = Some(prefix),
        }
    }
    if let Some((inner, outer)) = first {
        let others =
            if more > 0 { format!(", and {more} more prefixes lie in others") } else { String::new() };
        warnings.push(format!(
            "the prefix {inner} lies in {outer}{others}: some IPv6 addresses stand for two IPv4 addresses, but the mapping \
             must be reversible (RFC 6147 section 5.2); use prefixes that do not overlap"
        ));
    }
    warnings
}
