//! The clients that may send queries (`server.allow`): networks, and the word `"local"` for the networks near this machine.
//! Like `localnets` of BIND, these include the networks of its interfaces, which come and go while the server runs.

use super::address::{Family, Network, network};
use super::limits;
use super::report::Fault;
use std::net::IpAddr;

/// Networks that no router outside the site forwards: loopback, unique local and private addresses, link-local addresses
/// (RFC 6890). Not 100.64.0.0/10, which customers of one provider share (RFC 6598).
const NEAR: [(&str, u8); 8] = [
    ("::1", 128),
    ("127.0.0.0", 8),
    ("fc00::", 7),
    ("fe80::", 10),
    ("10.0.0.0", 8),
    ("172.16.0.0", 12),
    ("192.168.0.0", 16),
    ("169.254.0.0", 16),
];

/// Entry of `server.allow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// `"local"`.
    Local,
    /// A network.
    Network(Network),
}

impl std::fmt::Display for Allowed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Allowed::Local => f.write_str("local"),
            Allowed::Network(network) => network.fmt(f),
        }
    }
}

/// `server.allow`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allow {
    /// The entries, in order.
    pub entries: Vec<Allowed>,
    /// Networks of this machine's interfaces that are in none of the networks that always belong to `"local"`.
    pub interfaces: Vec<Network>,
}

impl Allow {
    /// True if `"local"` is an entry.
    pub fn has_local(&self) -> bool {
        self.entries.contains(&Allowed::Local)
    }

    /// The networks that `"local"` stands for.
    pub fn local(&self) -> Vec<Network> {
        near().chain(self.interfaces.iter().copied()).collect()
    }

    /// The networks of all entries.
    pub fn networks(&self) -> Vec<Network> {
        let networks = |entry: &Allowed| match entry {
            Allowed::Local => self.local(),
            Allowed::Network(network) => vec![*network],
        };
        self.entries.iter().flat_map(networks).collect()
    }

    /// True if an entry has clients outside the networks that always belong to `"local"`.
    pub fn reaches_outside(&self) -> bool {
        let is_outside = |entry: &Allowed| match entry {
            Allowed::Local => false,
            Allowed::Network(network) => !near().any(|near| near.contains(network)),
        };
        self.entries.iter().any(is_outside)
    }
}

/// Parses an entry of `server.allow`.
///
/// # Errors
///
/// The text is neither `local` nor a network, as [`network`] says.
pub fn allowed(text: &str) -> Result<Allowed, Fault> {
    if text == "local" {
        return Ok(Allowed::Local);
    }
    let result = network(text, Family::Both).map(Allowed::Network);
    result.map_err(|fault| match text.starts_with(|c: char| c.is_ascii_alphabetic()) && !text.contains(':') {
        true => Fault { help: format!("{}, or \"local\"", fault.help), ..fault },
        false => fault,
    })
}

/// True if clients outside the site may reach an address that the server listens on.
pub fn is_reachable(address: IpAddr) -> bool {
    let host = Network::of(address, if address.is_ipv4() { 32 } else { 128 });
    !near().any(|near| near.contains(&host))
}

fn near() -> impl Iterator<Item = Network> {
    NEAR.iter().filter_map(|&(address, length)| Some(Network { address: address.parse().ok()?, length }))
}

/// The networks of this machine's interfaces that lie in no near network: each once, none in another, in order.
///
/// # Errors
///
/// The reason why the system does not tell.
pub fn of_interfaces() -> Result<Vec<Network>, String> {
    let addresses = datapath::interfaces::addresses().map_err(|error| error.to_string())?;
    Ok(distinct(addresses.into_iter().map(|(address, length)| Network::of(address, length)).collect()))
}

/// The networks that are in no other one, nor in [`NEAR`]. One of length 0, which some tunnels have, is left out: it would open
/// the server to everybody.
fn distinct(mut networks: Vec<Network>) -> Vec<Network> {
    networks.retain(|network| network.length > 0 && !near().any(|near| near.contains(network)));
    // A network follows the one that contains it, or others in that one.
    networks.sort_by_key(|network| (network.address, network.length));
    let mut distinct: Vec<Network> = Vec::new();
    for network in networks {
        if !distinct.last().is_some_and(|last| last.contains(&network)) {
            distinct.push(network);
        }
    }
    distinct.truncate(limits::NETWORKS);
    distinct
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(text: &[&str]) -> Vec<Network> {
        text.iter().map(|text| network(text, Family::Both).unwrap()).collect()
    }

    #[test]
    fn networks_of_interfaces_are_named_once_and_not_within_others() {
        let found = networks(&[
            "2001:db8:1::/64",
            "10.1.0.0/16",
            "fe80::/64",
            "203.0.113.0/24",
            "2001:db8::/32",
            "203.0.113.5/32",
            "127.0.0.0/8",
            "2001:db8:1::/64",
            "0.0.0.0/0",
            "::/0",
        ]);
        assert_eq!(distinct(found), networks(&["203.0.113.0/24", "2001:db8::/32"]));
    }

    #[test]
    fn addresses_are_reachable_from_outside_unless_no_router_forwards_to_them() {
        for (address, reachable) in [
            ("::", true),
            ("0.0.0.0", true),
            ("2001:db8::53", true),
            ("203.0.113.5", true),
            ("100.64.0.1", true),
            ("::1", false),
            ("fe80::1", false),
            ("fd00::1", false),
            ("172.31.0.1", false),
            ("127.0.0.53", false),
        ] {
            assert_eq!(is_reachable(address.parse().unwrap()), reachable, "{address}");
        }
    }
}
