//! A network of addresses: the form of every client, exclusion and trigger list.

use core::net::{Ipv4Addr, Ipv6Addr};

/// A network: an address and a prefix length. IPv4 networks are kept as IPv4-mapped IPv6 (length + 96).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The network's address as a number, bits beyond the length zero.
    pub address: u128,
    /// The mask that belongs to the length.
    pub mask: u128,
}

impl Network {
    /// A network of `length` leading bits of an IPv6 (or IPv4-mapped) address.
    pub fn new(address: Ipv6Addr, length: u8) -> Network {
        let mask = if length == 0 { 0 } else { u128::MAX << (128 - u32::from(length.min(128))) };
        Network { address: u128::from(address) & mask, mask }
    }

    /// A network of `length` leading bits of an IPv4 address.
    pub fn v4(address: Ipv4Addr, length: u8) -> Network {
        Network::new(address.to_ipv6_mapped(), 96 + length.min(32))
    }

    /// Whether `address` (IPv4 as IPv4-mapped) lies in the network.
    #[inline]
    pub fn contains(&self, address: Ipv6Addr) -> bool {
        u128::from(address) & self.mask == self.address
    }
}

/// A few networks, searched one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks(pub Vec<Network>);

impl Networks {
    /// Whether one of the networks contains `address` (IPv4 as IPv4-mapped).
    ///
    /// `::/0` means IPv6 clients and contains no IPv4-mapped address; `0.0.0.0/0` means IPv4 clients.
    #[inline]
    pub fn contains(&self, address: Ipv6Addr) -> bool {
        contains(&self.0, address)
    }
}

/// Whether one of `networks` contains `address`, as [`Networks::contains`] has it.
#[inline]
pub(crate) fn contains(networks: &[Network], address: Ipv6Addr) -> bool {
    let mapped = address.to_ipv4_mapped().is_some();
    networks.iter().any(|network| network.contains(address) && (!mapped || network.mask.count_ones() >= 96))
}
