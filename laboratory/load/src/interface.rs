//! Packet drops on the path to the server on this host: the interfaces that carry the load, those below them, and
//! their queueing disciplines. Other interfaces do not count: a management interface drops packets of unknown
//! protocols from time to time.

use crate::sockets::netlink::{self, Link};
use std::net::SocketAddr;

/// The interfaces that carry a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Interface indexes; `None` if they are unknown: then all interfaces count.
    interfaces: Option<Vec<u32>>,
}

impl Path {
    /// The path to a server.
    pub fn to(server: SocketAddr) -> Path {
        let scope = match server {
            SocketAddr::V6(v6) if v6.scope_id() > 0 => Some(v6.scope_id()),
            _ => None,
        };
        let first = scope.or_else(|| netlink::interface_to(server.ip()).ok().flatten());
        let links = netlink::links().unwrap_or_default();
        Path { interfaces: first.map(|first| with_lower(first, &links)) }
    }

    /// Number of packets dropped on the path so far; 0 where the kernel does not count them.
    pub fn drops(&self) -> u64 {
        let counts = |index: &u32| self.interfaces.as_ref().is_none_or(|own| own.contains(index));
        let links = netlink::links().unwrap_or_default();
        let queues = netlink::queue_drops().unwrap_or_default();
        let of_links = links.iter().map(|link| (link.index, link.drops));
        of_links.chain(queues).filter(|(index, _)| counts(index)).map(|(_, drops)| drops).sum()
    }
}

/// An interface and all those that it sends through, over any number of levels.
fn with_lower(first: u32, links: &[Link]) -> Vec<u32> {
    let mut path = vec![first];
    let mut at = 0;
    while let Some(index) = path.get(at).copied() {
        let below = links.iter().filter(|link| link.upper == Some(index)).map(|link| link.index);
        let through = links.iter().filter(|link| link.index == index).filter_map(|link| link.lower);
        for lower in below.chain(through).collect::<Vec<u32>>() {
            if !path.contains(&lower) {
                path.push(lower);
            }
        }
        at += 1;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, lower: Option<u32>, upper: Option<u32>) -> Link {
        Link { index, lower, upper, drops: 0 }
    }

    #[test]
    fn a_load_on_this_host_is_carried_by_the_loopback_interface_alone() {
        let loopback = Path::to("127.0.0.1:53".parse().unwrap());
        assert_eq!(loopback.interfaces.as_ref().map(Vec::len), Some(1));
        assert_eq!(Path::to("[::1]:53".parse().unwrap()), loopback);
        assert!(loopback.drops() <= Path { interfaces: None }.drops());
    }

    #[test]
    fn the_interfaces_below_an_interface_belong_to_its_path() {
        // A VLAN (5) of a bond (4) of two network cards (2, 3); another card (6); and a veth pair (7, 8), each
        // other's peer.
        let links = [
            link(1, None, None),
            link(2, None, Some(4)),
            link(3, None, Some(4)),
            link(4, None, None),
            link(5, Some(4), None),
            link(6, None, None),
            link(7, Some(8), None),
            link(8, Some(7), None),
        ];
        assert_eq!(with_lower(5, &links), [5, 4, 2, 3]);
        assert_eq!(with_lower(6, &links), [6]);
        assert_eq!(with_lower(7, &links), [7, 8]);
        assert_eq!(with_lower(99, &links), [99]);
    }
}
