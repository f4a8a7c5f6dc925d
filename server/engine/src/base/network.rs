//! Networks of IP addresses, as client lists, exclusion lists and RPZ triggers use them.

use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};

/// Network: an address and a prefix length. IPv4 networks are stored as IPv4-mapped IPv6 networks (prefix length + 96).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Network address as a number. The bits after the prefix length are 0.
    pub address: u128,
    /// Network mask.
    pub mask: u128,
}

impl Network {
    /// Network of the first `length` bits of an IPv6 (or IPv4-mapped) address.
    pub fn new(address: Ipv6Addr, length: u8) -> Network {
        let mask = if length == 0 { 0 } else { u128::MAX << (128 - u32::from(length.min(128))) };
        Network { address: u128::from(address) & mask, mask }
    }

    /// Network of the first `length` bits of an IPv4 address.
    pub fn v4(address: Ipv4Addr, length: u8) -> Network {
        Network::new(address.to_ipv6_mapped(), 96 + length.min(32))
    }

    /// True if `address` (IPv4 as IPv4-mapped) is in the network.
    #[inline]
    pub fn contains(&self, address: Ipv6Addr) -> bool {
        u128::from(address) & self.mask == self.address
    }
}

/// The network as the configuration writes it.
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, length) = (Ipv6Addr::from(self.address), self.mask.count_ones());
        match address.to_ipv4_mapped().filter(|_| length >= 96) {
            Some(address) => write!(f, "{address}/{}", length - 96),
            None => write!(f, "{address}/{length}"),
        }
    }
}

/// Short list of networks, searched one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks(pub Vec<Network>);

impl Networks {
    /// True if one of the networks contains `address` (IPv4 as IPv4-mapped).
    ///
    /// `::/0` means all IPv6 clients and does not contain IPv4-mapped addresses; `0.0.0.0/0` means all IPv4 clients.
    #[inline]
    pub fn contains(&self, address: Ipv6Addr) -> bool {
        contains(&self.0, address)
    }
}

/// True if one of `networks` contains `address`, by the rules of [`Networks::contains`].
#[inline]
pub(crate) fn contains(networks: &[Network], address: Ipv6Addr) -> bool {
    let mapped = is_ipv4(address);
    networks.iter().any(|network| applies(network, address, mapped))
}

/// True if `address` is IPv4-mapped (`::ffff:0:0/96`). For `to_ipv4_mapped` the compiler takes the address apart octet by octet.
#[inline]
pub(crate) fn is_ipv4(address: Ipv6Addr) -> bool {
    u128::from(address) >> 32 == 0xffff
}

/// True if a network of clients contains `address`, which is IPv4-mapped if `mapped`: a network of IPv6 clients leaves those out.
#[inline]
fn applies(network: &Network, address: Ipv6Addr, mapped: bool) -> bool {
    network.contains(address) && (!mapped || network.mask.count_ones() >= 96)
}

/// Networks of clients, with exceptions: the longest network that contains a client decides.
///
/// Exceptions alone mean all other clients. If the same network is listed and excluded, it is excluded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientNetworks {
    /// Networks, the longest first; true for those whose clients belong to the list.
    list: Vec<(Network, bool)>,
}

impl ClientNetworks {
    /// List of the clients in `included` that are not in a longer network of `excluded`.
    pub fn new(included: Vec<Network>, excluded: Vec<Network>) -> ClientNetworks {
        let mut list: Vec<_> = excluded.into_iter().map(|network| (network, false)).collect();
        if !list.is_empty() && included.is_empty() {
            let (all6, all4) = (Ipv6Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED);
            list.extend([(Network::new(all6, 0), true), (Network::v4(all4, 0), true)]);
        }
        list.extend(included.into_iter().map(|network| (network, true)));
        // The sort is stable: of equal networks the excluded one comes first.
        list.sort_by_key(|(network, _)| core::cmp::Reverse(network.mask.count_ones()));
        ClientNetworks { list }
    }

    /// True if all clients belong to the list.
    pub fn includes_everybody(&self) -> bool {
        let has = |all: Network| self.list.contains(&(all, true));
        self.list.iter().all(|&(_, is_included)| is_included)
            && has(Network::new(Ipv6Addr::UNSPECIFIED, 0))
            && has(Network::v4(Ipv4Addr::UNSPECIFIED, 0))
    }

    /// True if `address` (IPv4 as IPv4-mapped) belongs to the list. `::/0` and `0.0.0.0/0` mean the same as in [`Networks`].
    #[inline]
    pub fn contains(&self, address: Ipv6Addr) -> bool {
        self.decider(address).is_some_and(|&(_, is_included)| is_included)
    }

    /// Network that excludes `address`; `None` if the address belongs to the list, or is in none of its networks.
    pub fn excluder(&self, address: Ipv6Addr) -> Option<&Network> {
        self.decider(address).filter(|(_, is_included)| !is_included).map(|(network, _)| network)
    }

    /// Longest network that contains `address`.
    #[inline]
    fn decider(&self, address: Ipv6Addr) -> Option<&(Network, bool)> {
        let mapped = is_ipv4(address);
        self.list.iter().find(|(network, _)| applies(network, address, mapped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        let (address, length) = text.split_once('/').unwrap();
        let length = length.parse().unwrap();
        match address.parse::<Ipv4Addr>() {
            Ok(v4) => Network::v4(v4, length),
            Err(_) => Network::new(address.parse().unwrap(), length),
        }
    }

    fn clients(text: &str) -> ClientNetworks {
        let (excluded, included): (Vec<&str>, Vec<&str>) =
            text.split_whitespace().partition(|word| word.starts_with('!'));
        let networks = |words: Vec<&str>| {
            words.into_iter().map(|word| network(word.trim_start_matches('!'))).collect::<Vec<_>>()
        };
        ClientNetworks::new(networks(included), networks(excluded))
    }

    fn address(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    #[test]
    fn the_longest_network_that_contains_a_client_decides() {
        let list = clients("2001:db8:99::5/128 ::/0 !2001:db8:99::/64 0.0.0.0/0 !10.0.0.0/8 10.64.0.0/10");
        for (client, expected) in [
            ("2001:db8:98::1", true),
            ("2001:db8:99::1", false),
            ("2001:db8:99::5", true),
            ("2001:db8:99:1::5", true),
            ("::ffff:192.0.2.1", true),
            ("::ffff:10.1.2.3", false),
            ("::ffff:10.64.2.3", true),
        ] {
            assert_eq!(list.contains(address(client)), expected, "{client}");
        }
        assert_eq!(list.excluder(address("2001:db8:99::1")), Some(&network("2001:db8:99::/64")));
        assert_eq!(list.excluder(address("2001:db8:99::5")), None);
    }

    #[test]
    fn exceptions_alone_mean_all_other_clients_and_an_empty_list_means_nobody() {
        let list = clients("!2001:db8:99::/64");
        assert!(list.contains(address("2001:db8::1")) && list.contains(address("::ffff:192.0.2.1")));
        assert!(!list.contains(address("2001:db8:99::1")));
        assert!(!clients("").contains(address("2001:db8::1")));
        assert_eq!(clients("2001:db8::/32").excluder(address("::1")), None);
    }

    #[test]
    fn an_exclusion_wins_over_the_same_network_and_ipv6_networks_mean_no_ipv4_client() {
        assert!(!clients("2001:db8::/32 !2001:db8::/32").contains(address("2001:db8::1")));
        assert!(!clients("::/0").contains(address("::ffff:192.0.2.1")));
        assert!(clients("0.0.0.0/0 !::/0").contains(address("::ffff:192.0.2.1")));
        assert!(clients("::ffff:0:0/96").contains(address("::ffff:192.0.2.1")));
    }
}
