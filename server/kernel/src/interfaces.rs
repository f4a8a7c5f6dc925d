//! Addresses of this machine's network interfaces, and the news that one was added or removed (rtnetlink(7)).

use crate::netlink;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::net::UnixDatagram;

/// The addresses of all interfaces of this machine (of its network namespace), each with the prefix length of its network.
///
/// # Errors
///
/// The system does not tell: a sandbox may forbid AF_NETLINK sockets.
pub fn addresses() -> io::Result<Vec<(IpAddr, u8)>> {
    Ok(scoped_addresses()?.into_iter().map(|(address, length, _)| (address, length)).collect())
}

/// As [`addresses`], with the number of its interface for each link-local address (else 0).
///
/// # Errors
///
/// As [`addresses`].
pub fn scoped_addresses() -> io::Result<Vec<(IpAddr, u8, u32)>> {
    let mut found = Vec::new();
    netlink::ask(libc::NETLINK_ROUTE, libc::RTM_GETADDR, netlink::DUMP, &[0; ADDRESS], |kind, body| {
        found.extend((kind == libc::RTM_NEWADDR).then(|| scoped_address(body)).flatten());
    })?;
    Ok(found)
}

/// ifaddrmsg (linux/if_addr.h): family, prefix length, flags and scope 1 each, index 4.
const ADDRESS: usize = 8;

/// The address in a message; `None` for other families than IPv4 and IPv6.
fn scoped_address(body: &[u8]) -> Option<(IpAddr, u8, u32)> {
    let (family, length, index) = (*body.first()?, *body.get(1)?, netlink::word(body.get(4..)?)?);
    let attributes = body.get(ADDRESS..)?;
    // Where both are there, the second one is that of the other end of the link.
    let own = netlink::attribute(attributes, libc::IFA_LOCAL);
    let octets = own.or_else(|| netlink::attribute(attributes, libc::IFA_ADDRESS))?;
    match i32::from(family) {
        libc::AF_INET => Some((Ipv4Addr::from(*octets.first_chunk()?).into(), length, 0)),
        libc::AF_INET6 => {
            let address = Ipv6Addr::from(*octets.first_chunk::<16>()?);
            Some((address.into(), length, if address.is_unicast_link_local() { index } else { 0 }))
        }
        _ => None,
    }
}

/// Subscribes to news about addresses: the socket receives a message when an address of an interface is added, changed or
/// removed. It needs no privilege. ENOBUFS from a receive means that the kernel had to drop messages, so there is news, too.
///
/// `std` has no type for netlink sockets. That of local datagram sockets serves: it receives with recv(2), which is the same for
/// all families. The socket does not block.
///
/// # Errors
///
/// The error of socket(2) or bind(2): the process may have no more open files, or a sandbox forbids netlink sockets.
pub fn address_news() -> io::Result<UnixDatagram> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    // Without a protocol, it is that of routes and interfaces.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    let groups = (libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR) as u32;
    bind(&socket, &SocketAddrNetlink::new(0, groups))?;
    Ok(UnixDatagram::from(socket))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_addresses_have_their_prefix_lengths() {
        let found = addresses().unwrap();
        let loopback =
            |address: &IpAddr| found.iter().find(|(found, _)| found == address).map(|&(_, length)| length);
        assert_eq!(loopback(&Ipv4Addr::LOCALHOST.into()), Some(8));
        assert!(matches!(loopback(&Ipv6Addr::LOCALHOST.into()), Some(128) | None));
    }

    #[test]
    fn an_address_is_its_own_one_and_has_a_scope_only_if_it_is_link_local() {
        let message = |family: i32, attributes: &[(u16, &[u8])]| {
            let mut body = vec![family as u8, 24, 0, 0, 7, 0, 0, 0];
            body[4..].copy_from_slice(&7u32.to_ne_bytes());
            for (kind, data) in attributes {
                body.extend((4 + data.len() as u16).to_ne_bytes());
                body.extend(kind.to_ne_bytes());
                body.extend(*data);
            }
            scoped_address(&body)
        };
        let (own, other) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 9));
        let both: [(u16, &[u8]); 2] =
            [(libc::IFA_ADDRESS, &other.octets()), (libc::IFA_LOCAL, &own.octets())];
        assert_eq!(message(libc::AF_INET, &both), Some((own.into(), 24, 0)));
        for (text, scope) in [("fe80::1", 7), ("2001:db8::1", 0)] {
            let address: Ipv6Addr = text.parse().unwrap();
            let one: [(u16, &[u8]); 1] = [(libc::IFA_ADDRESS, &address.octets())];
            assert_eq!(message(libc::AF_INET6, &one), Some((address.into(), 24, scope)));
        }
        assert_eq!(message(libc::AF_PACKET, &both), None);
        assert_eq!(message(libc::AF_INET, &[]), None);
    }

    #[test]
    fn news_about_addresses_is_awaited_without_blocking() {
        let news = address_news().unwrap();
        // Another process may change an address at any time.
        match news.recv(&mut [0; 64]) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
    }
}
