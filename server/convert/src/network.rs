//! Networks of both address families, and the set of addresses that a list with exceptions selects, as a plain list of networks.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Networks of one list. Sixfold takes as many in a key.
const MAX_NETWORKS: usize = 1024;

/// Network: an address and a prefix length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Network {
    is_v6: bool,
    /// Address bits from the highest bit on, for both families; IPv4 uses the upper 32.
    bits: u128,
    length: u8,
}

impl Network {
    /// All of IPv4.
    pub(crate) const ALL4: Network = Network { is_v6: false, bits: 0, length: 0 };
    /// All of IPv6.
    pub(crate) const ALL6: Network = Network { is_v6: true, bits: 0, length: 0 };

    /// Network of an address; bits beyond the length are cleared. `None` if the length is too large for the family.
    pub(crate) fn new(address: IpAddr, length: u8) -> Option<Network> {
        let (is_v6, bits, width) = match address {
            IpAddr::V4(v4) => (false, u128::from(u32::from(v4)) << 96, 32),
            IpAddr::V6(v6) => (true, u128::from(v6), 128),
        };
        (length <= width).then(|| Network { is_v6, bits: bits & mask(length), length })
    }

    /// Parses an address with or without a length. IPv4 may be abbreviated as in BIND: `10/8` means 10.0.0.0/8.
    pub(crate) fn parse(text: &str) -> Option<Network> {
        let (host, length) = match text.split_once('/') {
            Some((host, length)) => (host, Some(length)),
            None => (text, None),
        };
        let address = host.parse().ok().or_else(|| length.and_then(|_| abbreviated(host)))?;
        let width = if IpAddr::is_ipv6(&address) { 128 } else { 32 };
        let length = match length {
            None => width,
            Some(digits) if digits.bytes().all(|octet| octet.is_ascii_digit()) => digits.parse().ok()?,
            Some(_) => return None,
        };
        Network::new(address, length)
    }

    /// Prefix length.
    pub(crate) fn length(&self) -> u8 {
        self.length
    }

    /// The address, if the network has only one.
    pub(crate) fn host(&self) -> Option<IpAddr> {
        match (self.is_v6, self.length) {
            (true, 128) => Some(Ipv6Addr::from(self.bits).into()),
            (false, 32) => Some(Ipv4Addr::from((self.bits >> 96) as u32).into()),
            _ => None,
        }
    }

    /// True if every address of `other` is in this network.
    pub(crate) fn contains(&self, other: &Network) -> bool {
        self.is_v6 == other.is_v6
            && self.length <= other.length
            && other.bits & mask(self.length) == self.bits
    }

    /// Reverse zones of the network, without a final dot: of each octet in the length (RFC 1035 section 3.5), or of each nibble (RFC 3596
    /// section 2.5). A length between two of them takes all the longer ones that the network has.
    pub(crate) fn reverse_zones(&self) -> Vec<String> {
        let (step, end) = if self.is_v6 { (4, "ip6.arpa") } else { (8, "in-addr.arpa") };
        let length = self.length.next_multiple_of(step);
        let count = 1_u128 << (length - self.length);
        let zone = |index: u128| {
            // An index shifts by less than 128 bits: with a length of 0 there is one zone.
            let bits = self.bits | index.checked_shl(128 - u32::from(length)).unwrap_or(0);
            let labels = (1..=length / step).rev().map(|label| {
                let value = bits >> (128 - u32::from(label * step)) & ((1 << step) - 1);
                if self.is_v6 { format!("{value:x}.") } else { format!("{value}.") }
            });
            labels.collect::<String>() + end
        };
        (0..count).map(zone).collect()
    }

    /// The two halves of a network; `None` for a single address.
    fn halves(&self) -> Option<[Network; 2]> {
        let width = if self.is_v6 { 128 } else { 32 };
        (self.length < width).then(|| {
            let lower = Network { length: self.length + 1, ..*self };
            [lower, Network { bits: self.bits | 1 << (127 - self.length), ..lower }]
        })
    }
}

impl From<IpAddr> for Network {
    /// The network of one address.
    fn from(address: IpAddr) -> Network {
        let length = if address.is_ipv4() { 32 } else { 128 };
        Network::new(address, length).expect("the length is that of the family")
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_v6 {
            let address = Ipv6Addr::from(self.bits);
            // Rust shows IPv4-mapped addresses as ::ffff:0.0.0.0, operators write ::ffff:0:0.
            if address == Ipv4Addr::UNSPECIFIED.to_ipv6_mapped() {
                return write!(formatter, "::ffff:0:0/{}", self.length);
            }
            write!(formatter, "{address}/{}", self.length)
        } else {
            write!(formatter, "{}/{}", Ipv4Addr::from((self.bits >> 96) as u32), self.length)
        }
    }
}

fn mask(length: u8) -> u128 {
    if length == 0 { 0 } else { u128::MAX << (128 - u32::from(length)) }
}

/// Parses an IPv4 address of one to three parts, the missing ones zero.
fn abbreviated(host: &str) -> Option<IpAddr> {
    let mut octets = [0; 4];
    let parts: Vec<&str> = host.trim_end_matches('.').split('.').collect();
    if parts.len() > 4 {
        return None;
    }
    for (octet, part) in octets.iter_mut().zip(parts) {
        *octet = part.parse().ok()?;
    }
    Some(IpAddr::from(octets))
}

/// Networks that together contain exactly the addresses that `selects` selects. `parts` are the networks that the decision
/// depends on: inside a network without a smaller part, all addresses are decided alike. `None` if the list would be longer than
/// [`MAX_NETWORKS`].
pub(crate) fn selected(
    root: Network,
    parts: &[Network],
    selects: &impl Fn(&Network) -> bool,
) -> Option<Vec<Network>> {
    let inside: Vec<Network> =
        parts.iter().copied().filter(|part| root.contains(part) && *part != root).collect();
    match root.halves() {
        Some([lower, upper]) if !inside.is_empty() => {
            let mut networks = selected(lower, &inside, selects)?;
            networks.extend(selected(upper, &inside, selects)?);
            if networks == [lower, upper] {
                return Some(vec![root]);
            }
            (networks.len() <= MAX_NETWORKS).then_some(networks)
        }
        _ => Some(if selects(&root) { vec![root] } else { Vec::new() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        Network::parse(text).unwrap()
    }

    #[test]
    fn networks_are_read_and_shown() {
        for (text, shown) in [
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("10/8", "10.0.0.0/8"),
            ("192.168/16", "192.168.0.0/16"),
            ("192.0.2.7", "192.0.2.7/32"),
            ("2001:DB8::/32", "2001:db8::/32"),
            ("2001:db8::1/32", "2001:db8::/32"),
            ("::ffff:0:0/96", "::ffff:0:0/96"),
            ("::/0", "::/0"),
        ] {
            assert_eq!(network(text).to_string(), shown);
        }
        for text in ["", "10", "10.0.0.0/33", "::/129", "any", "10.0.0.0/+8", "1.2.3.4.5/8"] {
            assert_eq!(Network::parse(text), None, "{text}");
        }
    }

    #[test]
    fn reverse_zones_end_at_octets_and_nibbles() {
        for (text, zones) in [
            ("10.0.0.0/8", &["10.in-addr.arpa"][..]),
            ("192.168.4.0/24", &["4.168.192.in-addr.arpa"]),
            ("192.0.2.7", &["7.2.0.192.in-addr.arpa"]),
            (
                "172.16.0.0/14",
                &["16.172.in-addr.arpa", "17.172.in-addr.arpa", "18.172.in-addr.arpa", "19.172.in-addr.arpa"],
            ),
            ("2001:db8::/32", &["8.b.d.0.1.0.0.2.ip6.arpa"]),
            ("2001:db8::/31", &["8.b.d.0.1.0.0.2.ip6.arpa", "9.b.d.0.1.0.0.2.ip6.arpa"]),
            ("fd00::/8", &["d.f.ip6.arpa"]),
            ("0.0.0.0/0", &["in-addr.arpa"]),
            ("::/0", &["ip6.arpa"]),
        ] {
            assert_eq!(network(text).reverse_zones(), zones, "{text}");
        }
        assert_eq!(network("10.0.0.0/9").reverse_zones().len(), 128);
    }

    #[test]
    fn a_hole_in_a_network_is_left_by_the_halves_beside_it() {
        let (all, hole) = (network("10.0.0.0/8"), network("10.64.0.0/10"));
        let networks =
            selected(Network::ALL4, &[all, hole], &|part| all.contains(part) && !hole.contains(part));
        let shown: Vec<String> = networks.unwrap().iter().map(Network::to_string).collect();
        assert_eq!(shown, ["10.0.0.0/10", "10.128.0.0/9"]);
    }

    #[test]
    fn two_halves_that_are_selected_are_one_network() {
        let parts = [network("10.0.0.0/9"), network("10.128.0.0/9")];
        let selects = |part: &Network| parts.iter().any(|network| network.contains(part));
        assert_eq!(selected(Network::ALL4, &parts, &selects), Some(vec![network("10.0.0.0/8")]));
    }
}
