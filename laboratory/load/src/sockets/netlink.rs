//! Queries to the kernel over rtnetlink(7) and sock_diag(7): the interfaces with their drops, the drops of their queueing
//! disciplines, the interface over which a packet leaves, and the UDP sockets with their receive buffers.

use kernel::netlink::{DUMP, ask, attribute, word};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Families of netlink (linux/netlink.h): routes and interfaces, and sockets.
const ROUTES: i32 = 0;
const SOCKETS: i32 = 4;

// linux/sock_diag.h, linux/inet_diag.h.
const SOCKET_BY_FAMILY: u16 = 20;
/// inet_diag_req_v2: family, protocol, extensions and padding 1 each, states 4, ID 48.
const SOCKET_REQUEST: usize = 56;
/// inet_diag_msg: family, state, timer and retransmits 1 each, ID 48, timeout, two queues, user and inode 4 each. The ID has the
/// two ports, 2 octets each, and the two addresses, 16 octets each.
const SOCKET_MESSAGE: usize = 72;
/// Attribute with the memory of a socket: words of 32 bits, as for SO_MEMINFO (linux/sock_diag.h).
const SOCKET_MEMORY: u16 = 7;
const MEMORY_RECEIVE_BUFFER: usize = 1;
const MEMORY_DROPS: usize = 8;
/// IPPROTO_UDP.
const UDP: u8 = 17;

// linux/rtnetlink.h, linux/if_link.h, linux/pkt_sched.h.
const NEW_LINK: u16 = 16;
const GET_LINK: u16 = 18;
const NEW_ROUTE: u16 = 24;
const GET_ROUTE: u16 = 26;
const NEW_QUEUE: u16 = 36;
const GET_QUEUE: u16 = 38;

/// ifinfomsg: family 1, padding 1, type 2, index 4, flags 4, change 4.
const LINK: usize = 16;
/// rtmsg: family, lengths of destination and source, TOS, table, protocol, scope and type 1 each, flags 4.
const ROUTE: usize = 12;
/// tcmsg: family 1, padding 3, index 4, handle 4, parent 4, information 4.
const QUEUE: usize = 20;

const LINK_LOWER: u16 = 5;
const LINK_UPPER: u16 = 10;
const LINK_STATISTICS: u16 = 23;
const LINK_ELSEWHERE: u16 = 37;
/// rtnl_link_stats64, words of 64 bits: dropped on receipt and on sending, FIFO errors, missed. On the loopback
/// interface the first counts packets that found the backlog of a processor full (netdev_max_backlog).
const LINK_DROPS: [usize; 4] = [6, 7, 14, 15];
const ROUTE_TO: u16 = 1;
const ROUTE_OUT: u16 = 4;
const QUEUE_STATISTICS: u16 = 7;
const QUEUE_COUNTS: u16 = 3;
/// gnet_stats_queue, words of 32 bits: length, backlog, drops.
const QUEUE_DROPS: usize = 2;
/// Parent of the root queueing discipline, which stands for all of an interface.
const ROOT: u32 = 0xffff_ffff;

/// An interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Interface index.
    pub index: u32,
    /// The interface that it sends through: the parent of a VLAN, the peer of a veth pair.
    pub lower: Option<u32>,
    /// The interface that sends through it: a bond, a bridge.
    pub upper: Option<u32>,
    /// Number of dropped packets.
    pub drops: u64,
}

/// All interfaces.
///
/// # Errors
///
/// The error of a netlink socket, or the error number that the kernel answered. A sandbox may forbid these sockets.
pub fn links() -> io::Result<Vec<Link>> {
    let mut links = Vec::new();
    ask(ROUTES, GET_LINK, DUMP, &[0; LINK], |kind, body| {
        links.extend((kind == NEW_LINK).then(|| link(body)).flatten());
    })?;
    Ok(links)
}

/// Number of packets that an interface's queueing discipline has dropped, with the interface index.
///
/// # Errors
///
/// As [`links`].
pub fn queue_drops() -> io::Result<Vec<(u32, u64)>> {
    let mut queues = Vec::new();
    ask(ROUTES, GET_QUEUE, DUMP, &[0; QUEUE], |kind, body| {
        queues.extend((kind == NEW_QUEUE).then(|| queue(body)).flatten());
    })?;
    Ok(queues)
}

/// Index of the interface over which packets to an address leave.
///
/// # Errors
///
/// As [`links`]: ENETUNREACH if there is no route to the address.
pub fn interface_to(address: IpAddr) -> io::Result<Option<u32>> {
    let (family, octets) = match address {
        // AF_INET and AF_INET6.
        IpAddr::V4(v4) => (2, v4.octets().to_vec()),
        IpAddr::V6(v6) => (10, v6.octets().to_vec()),
    };
    let mut body = vec![0; ROUTE];
    (body[0], body[1]) = (family, 8 * octets.len() as u8);
    body.extend((4 + octets.len() as u16).to_ne_bytes());
    body.extend(ROUTE_TO.to_ne_bytes());
    body.extend(octets);
    let mut found = None;
    ask(ROUTES, GET_ROUTE, 0, &body, |kind, body| {
        found = found.or((kind == NEW_ROUTE).then(|| out(body)).flatten());
    })?;
    Ok(found)
}

/// A UDP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpSocket {
    /// Its inode, which the files below `/proc/PID/fd` name.
    pub inode: u32,
    /// Its own address and port.
    pub local: SocketAddr,
    /// The port of the one peer that it is connected to, if it is.
    pub peer_port: Option<u16>,
    /// Its receive buffer in octets, as the kernel counts it: twice the size that a program asks for.
    pub receive_buffer: u32,
    /// Datagrams that it dropped so far, because the buffer was full (wraps around).
    pub drops: u32,
}

/// All UDP sockets.
///
/// # Errors
///
/// As [`links`]: ENOENT if the kernel has no UDP diagnostics (module udp_diag).
pub fn udp_sockets() -> io::Result<Vec<UdpSocket>> {
    let mut sockets = Vec::new();
    // AF_INET and AF_INET6.
    for family in [2, 10] {
        let mut body = vec![0; SOCKET_REQUEST];
        (body[0], body[1], body[2]) = (family, UDP, 1 << (SOCKET_MEMORY - 1));
        // All states.
        body[4..8].fill(0xff);
        ask(SOCKETS, SOCKET_BY_FAMILY, DUMP, &body, |kind, body| {
            sockets.extend((kind == SOCKET_BY_FAMILY).then(|| udp_socket(body)).flatten());
        })?;
    }
    Ok(sockets)
}

fn udp_socket(body: &[u8]) -> Option<UdpSocket> {
    let memory = attribute(body.get(SOCKET_MESSAGE..)?, SOCKET_MEMORY)?;
    let port = |at: usize| Some(u16::from_be_bytes(*body.get(at..)?.first_chunk()?));
    let address = match body.first()? {
        2 => IpAddr::from(*body.get(8..)?.first_chunk::<4>()?),
        _ => IpAddr::from(Ipv6Addr::from(*body.get(8..)?.first_chunk::<16>()?)),
    };
    Some(UdpSocket {
        inode: word(body.get(SOCKET_MESSAGE - 4..)?)?,
        local: SocketAddr::new(address, port(4)?),
        peer_port: Some(port(6)?).filter(|port| *port != 0),
        receive_buffer: word(memory.get(4 * MEMORY_RECEIVE_BUFFER..)?)?,
        drops: word(memory.get(4 * MEMORY_DROPS..)?)?,
    })
}

fn link(body: &[u8]) -> Option<Link> {
    let index = word(body.get(4..)?)?;
    let rest = body.get(LINK..)?;
    let number = |wanted| attribute(rest, wanted).and_then(word).filter(|index| *index > 0);
    // For a veth pair whose peer is in another namespace, this is an index in that namespace.
    let lower = number(LINK_LOWER).filter(|_| attribute(rest, LINK_ELSEWHERE).is_none());
    let statistics = attribute(rest, LINK_STATISTICS).unwrap_or_default();
    let count = |at: usize| {
        let octets = statistics.get(8 * at..)?.first_chunk::<8>()?;
        Some(u64::from_ne_bytes(*octets))
    };
    let drops = LINK_DROPS.iter().filter_map(|at| count(*at)).sum();
    Some(Link { index, lower, upper: number(LINK_UPPER), drops })
}

fn queue(body: &[u8]) -> Option<(u32, u64)> {
    let (index, parent) = (word(body.get(4..)?)?, word(body.get(12..)?)?);
    let statistics = attribute(body.get(QUEUE..)?, QUEUE_STATISTICS)?;
    let drops = word(attribute(statistics, QUEUE_COUNTS)?.get(4 * QUEUE_DROPS..)?)?;
    (parent == ROOT).then_some((index, u64::from(drops)))
}

fn out(body: &[u8]) -> Option<u32> {
    attribute(body.get(ROUTE..)?, ROUTE_OUT).and_then(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An attribute with its padding.
    fn with(kind: u16, data: &[u8]) -> Vec<u8> {
        let mut octets = (4 + data.len() as u16).to_ne_bytes().to_vec();
        octets.extend(kind.to_ne_bytes());
        octets.extend(data);
        octets.resize(octets.len().next_multiple_of(4), 0);
        octets
    }

    #[test]
    fn the_loopback_interface_is_there_and_carries_what_is_sent_to_it() {
        let links = links().unwrap();
        for address in ["127.0.0.1", "127.9.9.9", "::1"] {
            let index = interface_to(address.parse().unwrap()).unwrap().unwrap();
            assert!(links.iter().any(|link| link.index == index), "{address}: {index} of {links:?}");
        }
        assert!(queue_drops().is_ok());
    }

    #[test]
    fn a_udp_socket_is_found_by_its_address_with_its_buffer() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let socket = std::net::UdpSocket::bind(address).unwrap();
            let asked = socket2::SockRef::from(&socket);
            asked.set_recv_buffer_size(20_000).unwrap();
            let local = socket.local_addr().unwrap();
            let find = || udp_sockets().unwrap().into_iter().find(|found| found.local == local).unwrap();
            let found = find();
            assert_eq!((found.receive_buffer, found.peer_port), (40_000, None), "the kernel doubles it");
            assert!(found.inode > 0 && found.drops == 0, "{found:?}");
            socket.connect(local).unwrap();
            assert_eq!(find().peer_port, Some(local.port()));
        }
        for length in 0..SOCKET_MESSAGE + 40 {
            assert_eq!(udp_socket(&vec![2; length]), None, "a message that is cut off");
        }
    }

    #[test]
    fn a_link_tells_its_neighbours_and_the_sum_of_its_drops() {
        let mut body = vec![0; LINK];
        body[4..8].copy_from_slice(&7u32.to_ne_bytes());
        let counts = (0..24u64).flat_map(|word| (1000 * word).to_ne_bytes()).collect::<Vec<u8>>();
        body.extend(with(3, b"eth0\0"));
        body.extend(with(LINK_LOWER, &2u32.to_ne_bytes()));
        body.extend(with(LINK_UPPER, &9u32.to_ne_bytes()));
        body.extend(with(LINK_STATISTICS, &counts));
        let expected =
            Link { index: 7, lower: Some(2), upper: Some(9), drops: 6_000 + 7_000 + 14_000 + 15_000 };
        assert_eq!(link(&body), Some(expected));
        let elsewhere = [body.clone(), with(LINK_ELSEWHERE, &[0; 4])].concat();
        assert_eq!(link(&elsewhere), Some(Link { lower: None, ..expected }));
        // A truncated message is never read beyond its end.
        for length in 0..body.len() {
            assert!(link(&body[..length]).is_none_or(|link| link.index == 7));
        }
    }

    #[test]
    fn only_the_root_of_the_queues_counts_as_it_has_the_drops_of_the_others() {
        let body = |parent: u32| {
            let mut body = vec![0; QUEUE];
            body[4..8].copy_from_slice(&3u32.to_ne_bytes());
            body[12..16].copy_from_slice(&parent.to_ne_bytes());
            let counts =
                [9u32, 8, 55, 6, 5].iter().flat_map(|count| count.to_ne_bytes()).collect::<Vec<u8>>();
            body.extend(with(1, b"fq_codel\0"));
            // Nested attributes may have a flag for that.
            body.extend(with(
                QUEUE_STATISTICS | 0x8000,
                &[with(1, &[0; 12]), with(QUEUE_COUNTS, &counts)].concat(),
            ));
            body
        };
        assert_eq!(queue(&body(ROOT)), Some((3, 55)));
        assert_eq!(queue(&body(0x10000)), None);
        for length in 0..body(ROOT).len() {
            assert_eq!(queue(&body(ROOT)[..length]), None);
        }
    }
}
