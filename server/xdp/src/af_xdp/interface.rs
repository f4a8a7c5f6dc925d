//! Facts about a network interface: its number, its Ethernet address, its MTU, its queues, its addresses, and the XDP program that it
//! has already (netdevice(7), ethtool, rtnetlink(7)).

use crate::af_xdp::frame::EthernetAddress;
use kernel::syscalls::check;
use kernel::{interfaces, netlink};
use std::ffi::CString;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// ETHTOOL_GCHANNELS of include/uapi/linux/ethtool.h: the numbers of queues.
const ETHTOOL_GDRVINFO: u32 = 3;
const ETHTOOL_GCHANNELS: u32 = 0x3c;

/// Octets of struct ifinfomsg.
const LINK: usize = 16;

// Attributes of include/uapi/linux/if_link.h.
const IFLA_XDP: u16 = 43;
const IFLA_XDP_PROG_ID: u16 = 4;
const IFLA_XDP_DRV_PROG_ID: u16 = 5;
const IFLA_XDP_SKB_PROG_ID: u16 = 6;
const IFLA_XDP_HW_PROG_ID: u16 = 7;

/// An Ethernet interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    /// Its number.
    pub(super) index: u32,
    pub(super) ethernet: EthernetAddress,
    /// Octets of the longest IP packet.
    pub(super) mtu: usize,
    /// Receive queues in use.
    pub(super) queues: u32,
    /// True for a virtual Ethernet pair.
    pub(super) is_veth: bool,
}

impl Interface {
    /// Looks an interface up by its name. None: it is no Ethernet interface.
    ///
    /// # Errors
    ///
    /// ENODEV if there is none of this name; else the error of a request.
    pub(super) fn find(name: &str) -> io::Result<Option<Interface>> {
        let no_device = || io::Error::from_raw_os_error(libc::ENODEV);
        let terminated = CString::new(name).map_err(|_| no_device())?;
        // SAFETY: the name is a string that ends with a zero octet and lives through the call.
        let index = unsafe { libc::if_nametoindex(terminated.as_ptr()) };
        if index == 0 || name.len() >= libc::IFNAMSIZ {
            return Err(no_device());
        }
        let mut request = Request::new(name)?;
        // SAFETY: SIOCGIFHWADDR fills this member.
        let hardware = unsafe { request.ask(libc::SIOCGIFHWADDR)?.ifr_ifru.ifru_hwaddr };
        if hardware.sa_family != libc::ARPHRD_ETHER {
            return Ok(None);
        }
        let ethernet = std::array::from_fn(|octet| hardware.sa_data[octet] as u8);
        // SAFETY: SIOCGIFMTU fills this member.
        let mtu = unsafe { request.ask(libc::SIOCGIFMTU)?.ifr_ifru.ifru_mtu };
        Ok(Some(Interface {
            index,
            ethernet,
            mtu: mtu.max(0) as usize,
            queues: request.queues(),
            is_veth: request.is_veth(),
        }))
    }
}

/// A request about an interface (netdevice(7)).
struct Request {
    socket: OwnedFd,
    request: libc::ifreq,
}

impl Request {
    fn new(name: &str) -> io::Result<Request> {
        // SAFETY: the call takes plain numbers.
        let socket = check(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })?;
        // SAFETY: the descriptor was just made and nothing else owns it.
        let socket = unsafe { OwnedFd::from_raw_fd(socket as RawFd) };
        // SAFETY: ifreq consists of integers, unions of them and pointers; all zeros is a valid value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, &from) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(name.as_bytes()) {
            *to = from as libc::c_char;
        }
        Ok(Request { socket, request })
    }

    fn ask(&mut self, what: libc::c_ulong) -> io::Result<&libc::ifreq> {
        // SAFETY: these requests read the name from an ifreq, and write to it or to the memory that it points to (`queues`).
        check(unsafe { libc::ioctl(self.socket.as_raw_fd(), what as _, &raw mut self.request) })?;
        Ok(&self.request)
    }

    /// True if the driver is that of virtual Ethernet pairs.
    fn is_veth(&mut self) -> bool {
        // struct ethtool_drvinfo: command, name of the driver (32 octets), and others, 196 octets in all.
        let mut information = [0u32; 49];
        information[0] = ETHTOOL_GDRVINFO;
        self.request.ifr_ifru.ifru_data = information.as_mut_ptr().cast();
        self.ask(libc::SIOCETHTOOL).is_ok() && information[1..3] == [u32::from_ne_bytes(*b"veth"), 0]
    }

    /// Receive queues in use. Drivers that cannot tell have one.
    fn queues(&mut self) -> u32 {
        // struct ethtool_channels: command; maxima of receive, send, other and combined; numbers of the same.
        let mut channels = [ETHTOOL_GCHANNELS, 0, 0, 0, 0, 0, 0, 0, 0];
        self.request.ifr_ifru.ifru_data = channels.as_mut_ptr().cast();
        let told = self.ask(libc::SIOCETHTOOL).is_ok();
        if told { channels[5].saturating_add(channels[8]).max(1) } else { 1 }
    }
}

/// The addresses at which an interface gets queries for a listening address: for a wildcard all addresses of this machine but those of
/// loopback and link-local ones of other interfaces. IPv4 as IPv4-mapped.
///
/// # Errors
///
/// The error of getifaddrs(3), for a wildcard address only.
pub(super) fn local_addresses(listen: SocketAddr, interface: u32) -> io::Result<Vec<Ipv6Addr>> {
    let fits = |address: IpAddr, scope: u32| {
        let is_link_local = matches!(address, IpAddr::V6(address) if address.is_unicast_link_local());
        !address.is_loopback() && (!is_link_local || scope == interface)
    };
    let mapped = |address| match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    if !listen.ip().is_unspecified() {
        let scope = if let SocketAddr::V6(listen) = listen { listen.scope_id() } else { 0 };
        return Ok(Some(listen.ip())
            .filter(|&address| fits(address, scope))
            .map(mapped)
            .into_iter()
            .collect());
    }
    let all = interfaces::scoped_addresses()?;
    let of_family = all.into_iter().filter(|(address, ..)| address.is_ipv6() == listen.is_ipv6());
    Ok(of_family
        .filter(|&(address, _, scope)| fits(address, scope))
        .map(|(address, ..)| mapped(address))
        .collect())
}

/// The ID of the XDP program that an interface has, in whatever mode.
///
/// # Errors
///
/// The kernel does not tell.
pub(super) fn attached_program(interface: u32) -> io::Result<Option<u32>> {
    // struct ifinfomsg: family and type, number, flags, changes.
    let mut request = [0; LINK];
    request[4..8].copy_from_slice(&interface.to_ne_bytes());
    let mut found = None;
    netlink::ask(libc::NETLINK_ROUTE, libc::RTM_GETLINK, 0, &request, |kind, body| {
        found = body.get(LINK..).filter(|_| kind == libc::RTM_NEWLINK).map(program_of);
    })?;
    found.ok_or_else(|| io::Error::other("an unexpected reply about the interface"))
}

/// The ID of a program in the attributes of an interface.
fn program_of(attributes: &[u8]) -> Option<u32> {
    let xdp = netlink::attribute(attributes, IFLA_XDP)?;
    let ids = [IFLA_XDP_PROG_ID, IFLA_XDP_DRV_PROG_ID, IFLA_XDP_SKB_PROG_ID, IFLA_XDP_HW_PROG_ID];
    let id = ids.iter().find_map(|id| netlink::attribute(xdp, *id))?;
    netlink::word(id).filter(|&id| id != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut octets = [(4 + value.len() as u16).to_ne_bytes(), kind.to_ne_bytes()].concat();
        octets.extend(value);
        octets.resize(octets.len().next_multiple_of(4), 0);
        octets
    }

    #[test]
    fn the_program_is_found_among_the_attributes() {
        let xdp = [attribute(2, &[1]), attribute(IFLA_XDP_PROG_ID, &77u32.to_ne_bytes())].concat();
        let all =
            [attribute(3, b"eth0\0"), attribute(IFLA_XDP | 0x8000, &xdp), attribute(4, &[0; 4])].concat();
        assert_eq!(program_of(&all), Some(77));
        assert_eq!(
            program_of(&[attribute(3, b"eth0\0"), attribute(IFLA_XDP, &attribute(2, &[0]))].concat()),
            None
        );
        assert_eq!(program_of(&[]), None);
        for length in 0..all.len() {
            program_of(&all[..length]);
        }
        assert_eq!(program_of(&[0; 64]), None, "an attribute without length ends the list");
    }

    #[test]
    fn loopback_is_no_ethernet_interface_and_has_no_program() {
        assert_eq!(Interface::find("lo").unwrap(), None);
        let none = Interface::find("no-such-if0").unwrap_err();
        assert_eq!(none.raw_os_error(), Some(libc::ENODEV));
        assert_eq!(attached_program(1).unwrap(), None);
        assert!(attached_program(u32::MAX >> 1).is_err());
    }

    #[test]
    fn no_query_for_a_loopback_address_comes_over_an_interface() {
        let of = |listen: &str| local_addresses(listen.parse().unwrap(), 7).unwrap();
        assert_eq!(of("127.0.0.1:53"), [] as [Ipv6Addr; 0]);
        assert_eq!(of("192.0.2.53:53"), ["::ffff:192.0.2.53".parse::<Ipv6Addr>().unwrap()]);
        assert_eq!(of("[fe80::1%7]:53").len(), 1);
        assert_eq!(of("[fe80::1%8]:53"), [] as [Ipv6Addr; 0]);
        assert!(
            of("0.0.0.0:53").iter().all(|address| address.to_ipv4_mapped().is_some_and(|a| !a.is_loopback()))
        );
    }
}
