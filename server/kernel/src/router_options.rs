//! Options of router advertisements that the kernel does not use itself, as it passes them on to programs (RTNLGRP_ND_USEROPT of
//! rtnetlink(7)): among them the PREF64 option (RFC 8781), since Linux 5.9.
//!
//! The kernel has checked the advertisement (RFC 4861 section 6.1.2): hop limit, checksum, and that its sender is a link-local address. It
//! passes nothing on from an interface on which it accepts no advertisements (`accept_ra`).

use crate::netlink;
use rustix::net::netdevice::name_to_index;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};
use std::io::{self, ErrorKind};
use std::net::Ipv6Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

// linux/rtnetlink.h: the multicast group as a bit of the mask of bind(2), the type of its messages, and an attribute of them.
const GROUP: u32 = 1 << (20 - 1);
const NEW_OPTION: u16 = 68;
const SOURCE_ADDRESS: u16 = 1;

/// nduseroptmsg: family 1, padding 1, octets of the options 2, interface 4, ICMP type 1, ICMP code 1, padding 6.
const HEADER: usize = 16;

/// Type of a router advertisement (RFC 4861 section 4.2).
const ROUTER_ADVERTISEMENT: u8 = 134;

/// Octets of one message: a header, the longest option (255 units of 8 octets), an address.
const MESSAGE: usize = 4096;

/// Subscription to the options.
pub struct RouterOptions(OwnedFd);

/// Options from one router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Number of the interface.
    pub interface: u32,
    /// Link-local address of the router.
    pub router: Ipv6Addr,
    /// The options, each with its type and length.
    pub options: Vec<u8>,
}

impl RouterOptions {
    /// Subscribes. It needs no privilege. The socket does not block.
    ///
    /// # Errors
    ///
    /// The error of socket(2) or bind(2): the process may have no more open files, or a sandbox forbids netlink sockets.
    pub fn subscribe() -> io::Result<RouterOptions> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // Without a protocol, it is that of routes and interfaces.
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&socket, &SocketAddrNetlink::new(0, GROUP))?;
        Ok(RouterOptions(socket))
    }

    /// Takes the next options. None: there are none now.
    pub fn take(&self) -> Option<Options> {
        let mut buffer = [0; MESSAGE];
        loop {
            match recv(&self.0, &mut buffer[..], RecvFlags::empty()) {
                Ok((octets, _)) => {
                    if let Some(options) = read(&buffer[..octets]) {
                        return Some(options);
                    }
                }
                // The kernel had to drop messages: routers repeat what they announce.
                Err(rustix::io::Errno::INTR | rustix::io::Errno::NOBUFS) => {}
                Err(_) => return None,
            }
        }
    }

    /// Number of the interface with this name. None: there is none.
    ///
    /// # Errors
    ///
    /// The error of ioctl(2).
    pub fn interface(&self, name: &str) -> io::Result<Option<u32>> {
        match name_to_index(&self.0, name).map_err(io::Error::from) {
            Ok(number) => Ok(Some(number)),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for RouterOptions {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Reads a message of the kernel. None: it has no options of a router advertisement.
pub fn read(message: &[u8]) -> Option<Options> {
    let (kind, body) = netlink::first(message)?;
    let is_advertisement = kind == NEW_OPTION
        && i32::from(*body.first()?) == libc::AF_INET6
        && *body.get(8)? == ROUTER_ADVERTISEMENT;
    if !is_advertisement {
        return None;
    }
    let length = usize::from(u16::from_ne_bytes(*body.get(2..)?.first_chunk()?));
    let interface = netlink::word(body.get(4..)?)?;
    let (options, rest) = body.get(HEADER..)?.split_at_checked(length)?;
    let router = netlink::attribute(rest, SOURCE_ADDRESS)?;
    Some(Options {
        interface,
        router: Ipv6Addr::from(*router.first_chunk::<16>()?),
        options: options.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message by struct nduseroptmsg of linux/rtnetlink.h.
    fn message(icmp: u8, options: &[u8], router: Option<Ipv6Addr>) -> Vec<u8> {
        let mut body = vec![libc::AF_INET6 as u8, 0];
        body.extend((options.len() as u16).to_ne_bytes());
        body.extend(7u32.to_ne_bytes());
        body.extend([icmp, 0, 0, 0, 0, 0, 0, 0]);
        body.extend(options);
        if let Some(router) = router {
            body.extend(20u16.to_ne_bytes());
            body.extend(SOURCE_ADDRESS.to_ne_bytes());
            body.extend(router.octets());
        }
        let mut message = ((16 + body.len()) as u32).to_ne_bytes().to_vec();
        message.extend(NEW_OPTION.to_ne_bytes());
        message.extend([0; 10]);
        message.extend(body);
        message
    }

    #[test]
    fn options_are_read_with_their_interface_and_router() {
        let router: Ipv6Addr = "fe80::1".parse().unwrap();
        let options = [38, 2, 0, 8, 0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0];
        let good = message(ROUTER_ADVERTISEMENT, &options, Some(router));
        assert_eq!(read(&good), Some(Options { interface: 7, router, options: options.to_vec() }));
        for length in 0..good.len() {
            assert_eq!(read(&good[..length]), None, "{length} octets");
        }
        assert_eq!(read(&message(136, &options, Some(router))), None, "a neighbour advertisement");
        assert_eq!(read(&message(ROUTER_ADVERTISEMENT, &options, None)), None, "nobody sent it");
        let mut longer = good.clone();
        longer[18..20].copy_from_slice(&200u16.to_ne_bytes());
        assert_eq!(read(&longer), None, "options beyond the message");
    }

    #[test]
    fn a_subscription_needs_no_privilege_and_knows_the_interfaces() {
        let options = RouterOptions::subscribe().unwrap();
        assert_eq!(options.take(), None);
        assert_eq!(options.interface("lo").unwrap(), Some(1));
        assert_eq!(options.interface("no-such-link").unwrap(), None);
    }
}
