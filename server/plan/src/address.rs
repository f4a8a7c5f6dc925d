//! Networks, and addresses of interfaces with the length of their network.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network: its first address and the length of its prefix in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The first address.
    pub address: IpAddr,
    /// At most 32 or 128.
    pub length: u8,
}

impl Network {
    /// The network of an address, whose bits beyond the length are cleared. A length beyond that of the address counts as it.
    pub fn of(address: IpAddr, length: u8) -> Network {
        match address {
            IpAddr::V4(v4) => {
                let length = length.min(32);
                let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
                Network { address: Ipv4Addr::from_bits(v4.to_bits() & mask).into(), length }
            }
            IpAddr::V6(v6) => {
                let length = length.min(128);
                let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
                Network { address: Ipv6Addr::from_bits(v6.to_bits() & mask).into(), length }
            }
        }
    }

    /// True if every address of `other` is in this network.
    pub fn contains(&self, other: &Network) -> bool {
        self.length <= other.length
            && self.address.is_ipv4() == other.address.is_ipv4()
            && Network::of(other.address, self.length) == *self
    }

    /// True if an address is in both.
    pub fn overlaps(&self, other: &Network) -> bool {
        self.contains(other) || other.contains(self)
    }

    /// True if the network has the address.
    pub fn has(&self, address: IpAddr) -> bool {
        self.contains(&Network::of(address, 128))
    }

    /// The address `steps` behind the first one, of an IPv4 network. None for IPv6, or beyond its end.
    pub fn nth(&self, steps: u32) -> Option<Ipv4Addr> {
        let IpAddr::V4(first) = self.address else { return None };
        let address = Ipv4Addr::from_bits(first.to_bits().checked_add(steps)?);
        self.has(address.into()).then_some(address)
    }

    /// The last address of an IPv4 network, its broadcast address.
    pub fn last(&self) -> Option<Ipv4Addr> {
        let IpAddr::V4(first) = self.address else { return None };
        let hosts = u32::MAX.checked_shr(u32::from(self.length)).unwrap_or(0);
        Some(Ipv4Addr::from_bits(first.to_bits() | hosts))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// An address of an interface, with the length of the network on its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The address of this machine.
    pub address: IpAddr,
    /// Bits of the network's prefix, at most 32 or 128.
    pub length: u8,
}

impl InterfaceAddress {
    /// The network on the link.
    pub fn network(&self) -> Network {
        Network::of(self.address, self.length)
    }
}

impl fmt::Display for InterfaceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(address: &str, length: u8) -> Network {
        Network::of(address.parse().unwrap(), length)
    }

    #[test]
    fn a_network_has_the_addresses_from_its_first_to_its_last() {
        let home = network("192.168.7.9", 24);
        assert_eq!(home.to_string(), "192.168.7.0/24");
        assert_eq!(home.nth(1), Some(Ipv4Addr::new(192, 168, 7, 1)));
        assert_eq!((home.nth(256), home.last()), (None, Some(Ipv4Addr::new(192, 168, 7, 255))));
        assert!(home.has("192.168.7.255".parse().unwrap()) && !home.has("192.168.8.0".parse().unwrap()));
        assert_eq!(network("0.0.0.0", 0).last(), Some(Ipv4Addr::BROADCAST));
        assert_eq!((network("2001:db8::", 64).nth(1), network("2001:db8::", 64).last()), (None, None));
    }

    #[test]
    fn networks_overlap_if_one_contains_the_other() {
        let (site, link) = (network("2001:db8::", 32), network("2001:db8:7::", 64));
        assert!(site.contains(&link) && !link.contains(&site));
        assert!(site.overlaps(&link) && link.overlaps(&site));
        assert!(!link.overlaps(&network("2001:db8:8::", 64)));
        assert!(!network("::", 0).overlaps(&network("0.0.0.0", 0)));
        assert!(network("::", 0).contains(&site) && network("0.0.0.0", 0).contains(&network("10.0.0.0", 8)));
    }
}
