//! Values that several files have in common, derived once.

use crate::address::{InterfaceAddress, Network};
use crate::input::{Description, Input, Interface, Role, Server, reaches};
use crate::options::{EncryptedDns, LONGEST_PREF64_S, scaled};
use pref64::Pref64;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// TAYGA's usual pool, as in its example of a configuration.
const TAYGA_POOL: (Ipv4Addr, u8) = (Ipv4Addr::new(192, 168, 255, 0), 24);

/// The common values.
#[derive(Clone, Debug)]
pub struct Agreed {
    /// The prefix of the NAT64. None: there is no NAT64.
    pub prefix: Option<Pref64>,
    /// Its lifetime in router advertisements, in seconds: a multiple of 8.
    pub pref64_lifetime_s: u32,
    /// Lifetime of resolvers in router advertisements, in seconds.
    pub dns_lifetime_s: u32,
    /// Shortest time between two router advertisements, in seconds.
    pub least_interval_s: u32,
    /// The links with clients.
    pub links: Vec<Link>,
    /// Names of the interfaces towards the Internet.
    pub uplinks: Vec<String>,
}

/// A link with clients.
#[derive(Clone, Debug)]
pub struct Link {
    /// Name of the interface.
    pub name: String,
    /// True if its clients reach no other link.
    pub is_guest: bool,
    /// Addresses of this machine on it.
    pub addresses: Vec<InterfaceAddress>,
    /// IPv6 networks of the clients.
    pub networks: Vec<Network>,
    /// Resolvers that are announced.
    pub rdnss: Vec<Ipv6Addr>,
    /// Encrypted resolvers that are announced.
    pub encrypted: Vec<EncryptedDns>,
    /// IPv4, for clients that cannot do without.
    pub ipv4: Option<LinkIpv4>,
}

/// IPv4 on a link.
#[derive(Clone, Debug)]
pub struct LinkIpv4 {
    /// The network.
    pub network: Network,
    /// This machine.
    pub router: Ipv4Addr,
    /// First and last address for clients.
    pub range: (Ipv4Addr, Ipv4Addr),
    /// Resolvers.
    pub dns: Vec<Ipv4Addr>,
    /// Time for which clients that can do without IPv4 do so, in seconds. None: they are not told to.
    pub v6_only_wait_s: Option<u32>,
}

impl Agreed {
    /// The values of an input without contradictions.
    pub fn of(input: &Input) -> Agreed {
        let (server, network) = (&input.server, &input.network);
        let interval_s = network.interval_s;
        Agreed {
            prefix: prefix(input).filter(|_| network.has_nat64()),
            pref64_lifetime_s: pref64_lifetime_s(network),
            dns_lifetime_s: (3 * interval_s).max(network.router_lifetime_s),
            // RFC 4861 section 6.2.1: a third of the longest; of a short one three quarters, the most that is allowed.
            least_interval_s: if interval_s >= 9 { interval_s / 3 } else { (interval_s * 3 / 4).max(3) },
            links: network
                .client_interfaces()
                .map(|(_, interface)| link(server, network, interface))
                .collect(),
            uplinks: network.uplinks().map(|interface| interface.name.clone()).collect(),
        }
    }

    /// Names of the interfaces with clients.
    pub fn client_interfaces(&self) -> impl Iterator<Item = &str> {
        self.links.iter().map(|link| link.name.as_str())
    }
}

/// The prefix of the NAT64: that of the description, else the only one of the server.
pub fn prefix(input: &Input) -> Option<Pref64> {
    let only = match input.server.prefixes[..] {
        [only] => Some(only),
        _ => None,
    };
    input.network.prefix.or(only)
}

/// Lifetime of the prefix in seconds: as written, else at least three intervals (RFC 8781 section 4.1), and that of the router.
pub fn pref64_lifetime_s(network: &Description) -> u32 {
    let fitting = (3 * network.interval_s).max(network.router_lifetime_s).min(LONGEST_PREF64_S);
    scaled(network.pref64_lifetime_s.unwrap_or(fitting))
}

/// Addresses of the pool of TAYGA.
pub fn tayga_pool(network: &Description) -> Network {
    network.pool.unwrap_or_else(|| Network::of(TAYGA_POOL.0.into(), TAYGA_POOL.1))
}

/// Resolvers that are announced on an interface: those of the description, else the addresses of this machine on the interface that the
/// server hears, else the addresses that it names itself.
pub fn rdnss(server: &Server, network: &Description, interface: &Interface) -> Vec<Ipv6Addr> {
    if !network.rdnss.is_empty() {
        return network.rdnss.clone();
    }
    let six = |address: IpAddr| match address {
        IpAddr::V6(address) if !address.is_loopback() && !address.is_unspecified() => Some(address),
        _ => None,
    };
    let own: Vec<Ipv6Addr> = interface
        .ipv6()
        .filter(|(_, entry)| server.listens_on(entry.address))
        .filter_map(|(_, entry)| six(entry.address))
        .collect();
    if !own.is_empty() {
        return own;
    }
    let listen = server.listen.iter().filter(|listen| listen.port() == 53);
    listen.filter_map(|listen| six(listen.ip())).filter(|address| !address.is_unicast_link_local()).collect()
}

/// The encrypted resolvers on the announced addresses, one for each transport and port; preference as in the server's own records
/// (RFC 9462): DNS over TLS, over HTTPS, over QUIC.
pub fn encrypted(server: &Server, network: &Description, rdnss: &[Ipv6Addr]) -> Vec<EncryptedDns> {
    let Some(name) = server.name.as_ref().filter(|_| network.dnr) else { return Vec::new() };
    let path = format!("{}{{?dns}}", server.doh_path);
    let kinds = [
        ("dot", 853, &server.dot, None),
        ("h2", 443, &server.doh, Some(path)),
        ("doq", 853, &server.doq, None),
    ];
    let mut resolvers = Vec::new();
    for (alpn, usual, listen, path) in kinds {
        let mut ports: Vec<u16> = listen.iter().map(SocketAddr::port).collect();
        ports.sort_unstable();
        ports.dedup();
        for port in ports {
            let here: Vec<&SocketAddr> = listen.iter().filter(|address| address.port() == port).collect();
            let hears =
                |address: &&Ipv6Addr| here.iter().any(|listen| reaches(listen.ip(), (**address).into()));
            let addresses: Vec<Ipv6Addr> = rdnss.iter().filter(hears).copied().collect();
            if !addresses.is_empty() {
                let priority = resolvers.len() as u16 + 1;
                let port = Some(port).filter(|&port| port != usual);
                resolvers.push(EncryptedDns {
                    priority,
                    name: name.clone(),
                    addresses,
                    alpn,
                    port,
                    path: path.clone(),
                });
            }
        }
    }
    resolvers
}

fn link(server: &Server, network: &Description, interface: &Interface) -> Link {
    let rdnss = rdnss(server, network, interface);
    let encrypted = encrypted(server, network, &rdnss);
    let v6_only_wait_s = network.offers_v6_only_on(interface).then_some(network.v6_only_wait_s);
    Link {
        name: interface.name.clone(),
        is_guest: interface.role == Role::Guests,
        addresses: interface.addresses.clone(),
        networks: interface.ipv6().map(|(_, entry)| entry.network()).collect(),
        rdnss,
        encrypted,
        ipv4: interface.ipv4().next().and_then(|(_, entry)| link_ipv4(server, entry, v6_only_wait_s)),
    }
}

/// IPv4 of a link: all addresses behind that of this machine, or before it if that is the last one.
fn link_ipv4(server: &Server, entry: &InterfaceAddress, v6_only_wait_s: Option<u32>) -> Option<LinkIpv4> {
    let (network, IpAddr::V4(router)) = (entry.network(), entry.address) else { return None };
    let (first, last) = (network.nth(1)?, network.last()?);
    // The last one is the broadcast address.
    let last = Ipv4Addr::from_bits(last.to_bits().checked_sub(1)?);
    let behind = Ipv4Addr::from_bits(router.to_bits().checked_add(1)?);
    let before = Ipv4Addr::from_bits(router.to_bits().checked_sub(1)?);
    // The longer of the two sides.
    let range = match last.to_bits().saturating_sub(router.to_bits())
        >= router.to_bits() - network.nth(0)?.to_bits()
    {
        true => (behind, last),
        false => (first, before),
    };
    let dns = dns_ipv4(server, router);
    (range.0 <= range.1).then_some(LinkIpv4 { network, router, range, dns, v6_only_wait_s })
}

/// Resolvers for DHCPv4: this machine on the link, if the server hears it there, else the IPv4 addresses that the server names itself.
fn dns_ipv4(server: &Server, router: Ipv4Addr) -> Vec<Ipv4Addr> {
    if server.listens_on(router.into()) {
        return vec![router];
    }
    let named = server.listen.iter().filter(|listen| listen.port() == 53);
    let named = named.filter_map(|listen| match listen.ip() {
        IpAddr::V4(address) if !address.is_loopback() && !address.is_link_local() => Some(address),
        _ => None,
    });
    named.collect()
}
