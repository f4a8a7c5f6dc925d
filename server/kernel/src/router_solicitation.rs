//! Router solicitations (RFC 4861 section 4.1): who sends one hears from the routers on the link at once.

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{Ipv6Addr, SocketAddrV6};

const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);

/// Type of the message.
const SOLICITATION: u8 = 133;

/// Opens a raw socket for solicitations.
///
/// # Errors
///
/// The error of socket(2). `PermissionDenied`: the process lacks CAP_NET_RAW.
pub fn open() -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6))?;
    // A receiver drops what may have crossed a router (RFC 4861 section 6.1.1).
    socket.set_multicast_hops_v6(255)?;
    Ok(socket)
}

/// Asks the routers on the link of the interface with this number.
///
/// # Errors
///
/// The error of sendto(2): the interface is down, or has no link-local address yet.
pub fn send(socket: &Socket, interface: u32) -> io::Result<()> {
    let to = SockAddr::from(SocketAddrV6::new(ALL_ROUTERS, 0, 0, interface));
    // The kernel fills in the checksum. Without an option with our Ethernet address, routers answer to all.
    socket.send_to(&[SOLICITATION, 0, 0, 0, 0, 0, 0, 0], &to).map(drop)
}
