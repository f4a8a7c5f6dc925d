//! The host itself, as the kernel tells it over rtnetlink(7): interfaces, addresses, routes.

use crate::facts::Host;
use kernel::netlink;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

// linux/rtnetlink.h, linux/if_link.h: octets of the fixed parts, and types of attributes.
const LINK: usize = 16;
const ADDRESS: usize = 8;
const ROUTE: usize = 12;
const UNICAST: u8 = 1;

/// An interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its MTU in octets.
    pub mtu: u32,
    /// Its address, if it is one of Ethernet.
    pub ethernet: Option<[u8; 6]>,
    is_up: bool,
    is_loopback: bool,
}

/// What the kernel told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    links: Vec<Link>,
    ipv6: Vec<(u32, Ipv6Addr)>,
    ipv4: Vec<(u32, Ipv4Addr)>,
    /// Interfaces of the default routes.
    routes6: Vec<u32>,
    routes4: Vec<u32>,
}

impl Kernel {
    /// Asks the kernel.
    ///
    /// # Errors
    ///
    /// The error of a netlink socket: a sandbox may forbid it.
    pub fn ask() -> io::Result<Kernel> {
        let mut told = Kernel::default();
        let dump = |kind, body: &[u8], take: &mut dyn FnMut(&[u8])| {
            netlink::ask(libc::NETLINK_ROUTE, kind, netlink::DUMP, body, |_, body| take(body))
        };
        dump(libc::RTM_GETLINK, &[0; LINK], &mut |body| told.links.extend(link(body)))?;
        dump(libc::RTM_GETADDR, &[0; ADDRESS], &mut |body| told.note_address(body).unwrap_or_default())?;
        dump(libc::RTM_GETROUTE, &[0; ROUTE], &mut |body| told.note_route(body).unwrap_or_default())?;
        Ok(told)
    }

    fn note_address(&mut self, body: &[u8]) -> Option<()> {
        let (family, index) = (i32::from(*body.first()?), netlink::word(body.get(4..)?)?);
        let attributes = body.get(ADDRESS..)?;
        // Where both are there, the second one is that of the other end of the link.
        let own = netlink::attribute(attributes, libc::IFA_LOCAL);
        let octets = own.or_else(|| netlink::attribute(attributes, libc::IFA_ADDRESS))?;
        match family {
            libc::AF_INET => self.ipv4.push((index, Ipv4Addr::from(*octets.first_chunk()?))),
            libc::AF_INET6 => self.ipv6.push((index, Ipv6Addr::from(*octets.first_chunk::<16>()?))),
            _ => {}
        }
        Some(())
    }

    fn note_route(&mut self, body: &[u8]) -> Option<()> {
        let [family, length, .., kind] = *body.first_chunk::<8>()?;
        if length != 0 || kind != UNICAST {
            return None;
        }
        let interface = netlink::attribute(body.get(ROUTE..)?, libc::RTA_OIF);
        // A route with several next hops has none of its own.
        let interface = interface.and_then(netlink::word).unwrap_or(0);
        match i32::from(family) {
            libc::AF_INET => self.routes4.push(interface),
            libc::AF_INET6 => self.routes6.push(interface),
            _ => {}
        }
        Some(())
    }

    /// The interface towards the network: the one with this name, or else that of the default route, or else the first one that is up.
    pub fn link(&self, wanted: Option<&str>) -> Option<&Link> {
        if let Some(wanted) = wanted {
            return self.links.iter().find(|link| link.name == wanted);
        }
        let routes = self.routes6.iter().chain(&self.routes4);
        let mut of_routes = routes.filter_map(|index| self.links.iter().find(|link| link.index == *index));
        let others = self.links.iter().filter(|link| link.is_up && !link.is_loopback);
        of_routes.find(|link| !link.is_loopback).or_else(|| others.into_iter().next())
    }

    /// The facts about the host, with this interface.
    pub fn host(&self, link: &Link) -> Host {
        let is_clat = |address: &Ipv4Addr| matches!(address.octets(), [192, 0, 0, 0..=7]);
        let ipv4 = self.ipv4.iter().map(|(_, address)| *address);
        let reaches =
            |address: &Ipv4Addr| !(address.is_loopback() || address.is_link_local() || is_clat(address));
        // Without a route they are those of a bridge for containers, say.
        let has_route = !self.routes4.is_empty();
        let ipv6 = self.ipv6.iter().map(|(_, address)| *address);
        Host {
            interface: link.name.clone(),
            mtu: link.mtu,
            ipv6: ipv6.filter(|one| !(one.is_loopback() || one.is_unicast_link_local())).collect(),
            ipv4: ipv4.clone().filter(|one| has_route && reaches(one)).collect(),
            clat: ipv4.clone().find(is_clat),
            has_default_route: !self.routes6.is_empty(),
        }
    }
}

impl Link {
    /// True for the loopback interface, on which there is neither a router nor a DHCP server.
    pub fn is_loopback(&self) -> bool {
        self.is_loopback
    }
}

fn link(body: &[u8]) -> Option<Link> {
    let (index, flags) = (netlink::word(body.get(4..)?)?, netlink::word(body.get(8..)?)?.cast_signed());
    let attributes = body.get(LINK..)?;
    let name = netlink::attribute(attributes, libc::IFLA_IFNAME)?;
    let mtu = netlink::attribute(attributes, libc::IFLA_MTU).and_then(netlink::word)?;
    let kind = u16::from_ne_bytes(*body.get(2..)?.first_chunk()?);
    let address = netlink::attribute(attributes, libc::IFLA_ADDRESS);
    let ethernet = address.filter(|_| kind == libc::ARPHRD_ETHER).and_then(|octets| octets.first_chunk());
    Some(Link {
        index,
        name: String::from_utf8_lossy(name).trim_end_matches('\0').to_owned(),
        mtu,
        ethernet: ethernet.copied(),
        is_up: flags & libc::IFF_UP != 0,
        is_loopback: flags & libc::IFF_LOOPBACK != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(ipv4: &[&str], routes4: &[u32]) -> (Kernel, Link) {
        let link = |index, name: &str, is_loopback| Link {
            index,
            name: name.to_owned(),
            mtu: 1500,
            ethernet: None,
            is_up: true,
            is_loopback,
        };
        let lan = link(3, "lan", false);
        let kernel = Kernel {
            links: vec![link(1, "lo", true), link(2, "bridge", false), lan.clone()],
            ipv6: ["::1", "fe80::10", "fd00::10", "2001:db8:c::10"]
                .map(|text| (3, text.parse().unwrap()))
                .to_vec(),
            ipv4: ipv4.iter().map(|text| (2, text.parse().unwrap())).collect(),
            routes6: vec![3],
            routes4: routes4.to_vec(),
        };
        (kernel, lan)
    }

    #[test]
    fn the_interface_of_the_default_route_is_looked_at_unless_another_is_named() {
        let (mut kernel, lan) = kernel(&[], &[]);
        assert_eq!(kernel.link(None), Some(&lan));
        assert_eq!(kernel.link(Some("bridge")).unwrap().index, 2);
        assert_eq!(kernel.link(Some("nothing")), None);
        kernel.routes6.clear();
        assert_eq!(kernel.link(None).unwrap().name, "bridge");
    }

    #[test]
    fn addresses_count_if_they_reach_beyond_the_link() {
        let (kernel, lan) = kernel(&["127.0.0.1", "169.254.1.1", "172.17.0.1", "192.0.0.2"], &[]);
        let host = kernel.host(&lan);
        assert_eq!(
            host.ipv6.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["fd00::10", "2001:db8:c::10"]
        );
        // RFC 7335: 192.0.0.0/29 is for CLAT. No default route: the bridge leads nowhere.
        assert_eq!((host.ipv4, host.clat), (Vec::new(), Some(Ipv4Addr::new(192, 0, 0, 2))));
        let (kernel, lan) = self::kernel(&["192.0.2.7"], &[3]);
        assert_eq!(kernel.host(&lan).ipv4, [Ipv4Addr::new(192, 0, 2, 7)]);
    }

    #[test]
    fn the_kernel_tells_of_the_loopback_interface() {
        let told = Kernel::ask().unwrap();
        let loopback = told.link(Some("lo")).unwrap();
        assert!(loopback.is_loopback() && loopback.mtu >= 1280 && loopback.ethernet.is_none());
    }

    #[test]
    fn a_route_counts_if_it_leads_everywhere_and_forwards() {
        // rtmsg: family, length of destination, of source, TOS, table, protocol, scope, type, flags.
        let route = |family: i32, length, kind| {
            let mut body = vec![family as u8, length, 0, 0, 254, 4, 0, kind, 0, 0, 0, 0];
            body.extend(8u16.to_ne_bytes());
            body.extend(libc::RTA_OIF.to_ne_bytes());
            body.extend(7u32.to_ne_bytes());
            body
        };
        let mut told = Kernel::default();
        for body in [route(libc::AF_INET6, 64, UNICAST), route(libc::AF_INET6, 0, 7)] {
            assert_eq!(told.note_route(&body), None);
        }
        assert!(told.note_route(&route(libc::AF_INET6, 0, UNICAST)).is_some());
        assert_eq!((told.routes6, told.routes4), (vec![7], vec![]));
    }
}
