//! Addresses of this machine's network interfaces, and the news that one was added or removed (rtnetlink(7)).

use crate::socket::syscalls::check;
use std::io;
use std::mem::size_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixDatagram;

/// The addresses of all interfaces of this machine (of its network namespace), each with the prefix length of its network.
///
/// # Errors
///
/// The system does not tell: a sandbox may forbid AF_NETLINK sockets, which the C library needs.
pub fn addresses() -> io::Result<Vec<(IpAddr, u8)>> {
    Ok(scoped_addresses()?.into_iter().map(|(address, length, _)| (address, length)).collect())
}

/// As [`addresses`], with the number of its interface for each link-local address (else 0).
///
/// # Errors
///
/// As [`addresses`].
pub(crate) fn scoped_addresses() -> io::Result<Vec<(IpAddr, u8, u32)>> {
    let mut first = std::ptr::null_mut();
    // SAFETY: the call stores a pointer to a list that it allocates, and nothing else.
    check(unsafe { libc::getifaddrs(&raw mut first) })?;
    let mut found = Vec::new();
    let mut next = first;
    while !next.is_null() {
        // SAFETY: `next` is an element of the list, which is not freed before the end of this function.
        let entry = unsafe { &*next };
        // SAFETY: both pointers come from an element of that list: each is null, or points to a socket address of the family
        // that it names.
        let (address, mask) = unsafe { (ip_address(entry.ifa_addr), ip_address(entry.ifa_netmask)) };
        match (address, mask) {
            (Some((address @ IpAddr::V4(_), _)), Some((IpAddr::V4(mask), _))) => {
                found.push((address, u32::from(mask).leading_ones() as u8, 0));
            }
            (Some((address @ IpAddr::V6(_), scope)), Some((IpAddr::V6(mask), _))) => {
                found.push((address, u128::from(mask).leading_ones() as u8, scope));
            }
            _ => {}
        }
        next = entry.ifa_next;
    }
    // SAFETY: `first` is what getifaddrs stored, and no reference to an element is left.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

/// The IPv4 or IPv6 address in a socket address, with its scope; `None` for null and for other families.
///
/// # Safety
///
/// `address` is null, or points to a socket address of the size that its family has.
unsafe fn ip_address(address: *const libc::sockaddr) -> Option<(IpAddr, u32)> {
    if address.is_null() {
        return None;
    }
    // SAFETY: by the condition of this function; each cast is to the type of the family.
    unsafe {
        match i32::from((*address).sa_family) {
            libc::AF_INET => {
                let address = *address.cast::<libc::sockaddr_in>();
                Some((Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)).into(), 0))
            }
            libc::AF_INET6 => {
                let address = *address.cast::<libc::sockaddr_in6>();
                Some((Ipv6Addr::from(address.sin6_addr.s6_addr).into(), address.sin6_scope_id))
            }
            _ => None,
        }
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
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the call takes plain numbers.
    let socket = check(unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) })?;
    // SAFETY: the descriptor is new and open, and belongs to nobody else.
    let socket = unsafe { OwnedFd::from_raw_fd(socket as RawFd) };
    // SAFETY: sockaddr_nl is a struct of integers, for which all zeros is a valid value.
    let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
    address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
    address.nl_groups = (libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR) as u32;
    // SAFETY: the address lives through the call, and its size is given.
    check(unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_nl>() as libc::socklen_t,
        )
    })?;
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
    fn news_about_addresses_is_awaited_without_blocking() {
        let news = address_news().unwrap();
        // Another process may change an address at any time.
        match news.recv(&mut [0; 64]) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
    }
}
