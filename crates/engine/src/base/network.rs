//! Networks of IP addresses, as client lists, exclusion lists and RPZ triggers use them.

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
    let mapped = address.to_ipv4_mapped().is_some();
    networks.iter().any(|network| network.contains(address) && (!mapped || network.mask.count_ones() >= 96))
}
