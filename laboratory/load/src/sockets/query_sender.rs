//! The client side of a load: source ports, and sends of many queries at a time. The ports are not connected, so that a
//! reply from a wrong address is seen.
//!
//! [`reply_receiver`](super::reply_receiver) receives the replies. [`tester_thread`](super::tester_thread) waits, and measures
//! the usage of a thread. Nothing here knows DNS.

use crate::limits::TESTER_BUFFER;
use datapath::limits::{GSO_OCTETS, GSO_SEGMENTS};
use kernel::control_messages::ControlMessages;
use kernel::syscalls::{check, receive_drops, send_messages, set_option, set_receive_buffer, socket_memory};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::mem::zeroed;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

/// A socket address in the kernel's form, as octets, which are compared with those of each reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(8))]
pub(crate) struct Peer {
    octets: [u8; Peer::SIZE],
    /// Octets in use.
    length: u32,
    /// Octets that are compared: family and port, then the address. Scope and padding are left out.
    compared: u32,
}

impl Peer {
    /// sockaddr_in6: family 2, port 2, flow information 4, address 16, scope 4.
    pub(crate) const SIZE: usize = 28;

    pub(crate) fn empty() -> Peer {
        Peer { octets: [0; Peer::SIZE], length: 0, compared: 0 }
    }

    pub(crate) fn new(address: SocketAddr) -> Peer {
        let mut peer = Peer::empty();
        let octets = &mut peer.octets;
        octets[2..4].copy_from_slice(&address.port().to_be_bytes());
        let (family, length, compared) = match address {
            SocketAddr::V4(v4) => {
                octets[4..8].copy_from_slice(&v4.ip().octets());
                (libc::AF_INET, 16, 8)
            }
            SocketAddr::V6(v6) => {
                octets[8..24].copy_from_slice(&v6.ip().octets());
                octets[24..].copy_from_slice(&v6.scope_id().to_ne_bytes());
                (libc::AF_INET6, 28, 24)
            }
        };
        octets[..2].copy_from_slice(&(family as libc::sa_family_t).to_ne_bytes());
        (peer.length, peer.compared) = (length, compared);
        peer
    }

    /// The address, if the kernel wrote one of IPv4 or IPv6.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        let octets = &self.octets;
        let port = u16::from_be_bytes([octets[2], octets[3]]);
        match i32::from(libc::sa_family_t::from_ne_bytes([octets[0], octets[1]])) {
            libc::AF_INET => {
                let [.., a, b, c, d] = *octets.first_chunk::<8>()?;
                Some(SocketAddr::from(([a, b, c, d], port)))
            }
            libc::AF_INET6 => {
                let address: [u8; 16] = octets[8..24].try_into().ok()?;
                let scope = u32::from_ne_bytes(octets[24..].try_into().ok()?);
                Some(SocketAddrV6::new(address.into(), port, 0, scope).into())
            }
            _ => None,
        }
    }

    /// True if an address that the kernel wrote has this address and port.
    #[inline]
    pub(crate) fn matches(&self, other: &Peer) -> bool {
        let compared = self.compared as usize;
        self.octets[..compared] == other.octets[..compared]
    }
}

/// A source port.
#[derive(Debug)]
pub struct Port(Socket);

impl Port {
    /// Binds a port that the kernel chooses, at a source address (unspecified: the address that routing chooses). `offload`: the
    /// kernel may hand over replies of equal length together (UDP GRO), as they left a sender on the same machine.
    ///
    /// # Errors
    ///
    /// The error of socket(2), of a socket option or of bind(2): `AddrNotAvailable` if no interface has the source address. A smaller
    /// buffer and missing UDP GRO are no errors.
    pub fn bind(source: IpAddr, offload: bool) -> io::Result<Port> {
        let address = SocketAddr::new(source, 0);
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM.cloexec(), Some(Protocol::UDP))?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.set_nonblocking(true)?;
        set_receive_buffer(socket.as_raw_fd(), TESTER_BUFFER, true);
        // The kernel cuts the size down to net.core.wmem_max. A smaller buffer is not an error.
        let _ = socket.set_send_buffer_size(TESTER_BUFFER as usize);
        socket.bind(&address.into())?;
        if offload {
            // A kernel without UDP GRO (before 5.0) hands over datagrams one by one.
            let _ = set_option(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_GRO, 1);
        }
        Ok(Port(socket))
    }

    /// Its receive buffer in octets, as the kernel counts it: twice the size that was asked for.
    pub fn receive_buffer(&self) -> u32 {
        socket_memory(self.descriptor()).size
    }

    /// The address that replies go to.
    ///
    /// # Errors
    ///
    /// The error of getsockname(2). It does not fail for a port that is bound.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()?.as_socket().ok_or_else(|| io::Error::other("no Internet address"))
    }

    /// From now on the kernel reports ICMP errors of this port: a send or a receive may then fail once
    /// ([`QuerySender::is_icmp_error`]), and [`Port::next_error`] must empty the queue of errors.
    ///
    /// # Errors
    ///
    /// The error of setsockopt(2) for IP_RECVERR or IPV6_RECVERR.
    pub fn report_errors(&self) -> io::Result<()> {
        let (level, name) = match self.address()? {
            SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_RECVERR),
            SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
        };
        set_option(self.descriptor(), level, name, 1)
    }

    /// The next ICMP error of this port. Copies the beginning of the datagram that caused it, as far as the ICMP message has
    /// it, to `quoted`.
    pub fn next_error(&self, quoted: &mut [u8]) -> Option<PortError> {
        let mut iovec = libc::iovec { iov_base: quoted.as_mut_ptr().cast(), iov_len: quoted.len() };
        let mut controls = ControlMessages::empty();
        // SAFETY: msghdr consists of integers and raw pointers; all zeros (null, nothing) is a valid value.
        let mut header: libc::msghdr = unsafe { zeroed() };
        header.msg_iov = &mut iovec;
        header.msg_iovlen = 1;
        header.msg_control = (&raw mut controls).cast();
        header.msg_controllen = ControlMessages::SIZE as _;
        // SAFETY: the header points at `iovec`, which points at `quoted`, and at `controls`, whose words come first
        // (repr(C)); all of them live through the call, which writes at most the lengths given.
        let received = check(unsafe {
            libc::recvmsg(self.descriptor(), &mut header, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT)
        } as libc::c_int);
        let octets = received.ok()?.min(quoted.len());
        let is_refused = controls.error_number() == Some(libc::ECONNREFUSED);
        Some(PortError { is_refused, octets })
    }

    /// Replies that were dropped because the port's queue was full (wraps around).
    pub fn drops(&self) -> u32 {
        receive_drops(self.0.as_raw_fd())
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// An ICMP error about a datagram of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortError {
    /// True for "port unreachable": no process listens at the server's address and port.
    pub is_refused: bool,
    /// Octets of the datagram that were copied.
    pub octets: usize,
}

/// A sender of messages of equal length to one server.
#[derive(Debug)]
pub struct QuerySender {
    server: Peer,
    /// True as long as the way out supports UDP GSO.
    gso: bool,
}

impl QuerySender {
    /// A sender to `server`.
    pub fn new(server: SocketAddr) -> QuerySender {
        QuerySender { server: Peer::new(server), gso: true }
    }

    /// Number of messages of `size` octets that [`QuerySender::send`] takes at once.
    pub fn max_messages(size: usize) -> usize {
        (GSO_OCTETS / size.max(1)).clamp(1, GSO_SEGMENTS)
    }

    /// Sends the messages of `size` octets in `octets`, in one system call if the way out supports GSO. At most
    /// [`QuerySender::max_messages`]. Returns the number that the kernel took, and the error that stopped it.
    pub fn send(&mut self, port: &Port, octets: &[u8], size: usize) -> (usize, io::Result<()>) {
        assert!(
            size > 0
                && octets.len().is_multiple_of(size)
                && octets.len() / size <= QuerySender::max_messages(size)
        );
        let count = octets.len() / size;
        if count == 0 {
            return (0, Ok(()));
        }
        if count > 1 && !self.gso {
            return self.send_each(port, octets.chunks_exact(size));
        }
        match self.send_one(port, octets, if count > 1 { size } else { 0 }) {
            Ok(()) => (count, Ok(())),
            // EIO: the interface does not support GSO. EINVAL: the kernel does not, or a message is beyond the path's MTU.
            Err(error) if count > 1 && matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL)) => {
                self.gso = false;
                self.send_each(port, octets.chunks_exact(size))
            }
            Err(error) => (0, Err(error)),
        }
    }

    /// Sends messages of any lengths, which stand one after the other in `octets`, in one system call. At most
    /// [`QuerySender::max_messages`] of the longest one. Returns the number that the kernel took, and the error that stopped
    /// it. Messages of equal length leave as [`QuerySender::send`] sends them.
    pub fn send_of_lengths(
        &mut self,
        port: &Port,
        octets: &[u8],
        lengths: &[usize],
    ) -> (usize, io::Result<()>) {
        let Some(first) = lengths.first().copied() else { return (0, Ok(())) };
        if lengths.iter().all(|length| *length == first) {
            return self.send(port, &octets[..first * lengths.len()], first);
        }
        let mut rest = octets;
        let messages = lengths.iter().map(|length| {
            let (message, after) = rest.split_at(*length);
            rest = after;
            message
        });
        self.send_each(port, messages)
    }

    /// True if an error means that the way out is full for the moment.
    pub fn is_send_buffer_full(error: &io::Error) -> bool {
        error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::ENOBUFS)
    }

    /// True if an error may be the ICMP error of an earlier datagram, which the kernel reports once: the send can be repeated.
    pub fn is_icmp_error(error: &io::Error) -> bool {
        let numbers = [
            libc::ECONNREFUSED,
            libc::EHOSTUNREACH,
            libc::ENETUNREACH,
            libc::EHOSTDOWN,
            libc::ENONET,
            libc::EACCES,
            libc::EPROTO,
            libc::ENOPROTOOPT,
            libc::EOPNOTSUPP,
        ];
        error.raw_os_error().is_some_and(|number| numbers.contains(&number))
    }

    /// Sends once. The kernel cuts the octets into messages of `segment_octets` octets (0: does not cut).
    fn send_one(&self, port: &Port, octets: &[u8], segment_octets: usize) -> io::Result<()> {
        let mut iovec = libc::iovec { iov_base: octets.as_ptr().cast_mut().cast(), iov_len: octets.len() };
        let mut controls = ControlMessages::empty();
        let mut header = self.header(&mut iovec);
        if segment_octets > 0 {
            controls.set_segment_size(segment_octets as u16);
            header.msg_control = (&raw mut controls).cast();
            header.msg_controllen = controls.length() as _;
        }
        // SAFETY: the header points at the address in `self`, at `iovec` (which points at `octets`) and at `controls`,
        // whose words come first (repr(C)); all of them live through the call, which only reads them.
        check(unsafe { libc::sendmsg(port.descriptor(), &header, libc::MSG_DONTWAIT) } as libc::c_int)
            .map(|_| ())
    }

    /// Sends up to [`GSO_SEGMENTS`] messages in one system call, each as a datagram of its own.
    fn send_each<'a>(
        &self,
        port: &Port,
        messages: impl Iterator<Item = &'a [u8]>,
    ) -> (usize, io::Result<()>) {
        let empty = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        let mut iovecs = [empty; GSO_SEGMENTS];
        // SAFETY: mmsghdr consists of integers and raw pointers; all zeros (null, nothing) is a valid value.
        let mut headers: [libc::mmsghdr; GSO_SEGMENTS] = unsafe { zeroed() };
        let mut count = 0;
        for (message, (iovec, header)) in messages.zip(iovecs.iter_mut().zip(&mut headers)) {
            *iovec = libc::iovec { iov_base: message.as_ptr().cast_mut().cast(), iov_len: message.len() };
            header.msg_hdr = self.header(iovec);
            count += 1;
        }
        let mut sent = 0;
        while sent < count {
            // SAFETY: the headers from `sent` to `count` point at the address in `self` and at `iovecs`, which point at
            // the messages; all of them live through the call, which writes only the headers' lengths.
            let result = check(unsafe { send_messages(port.descriptor(), &mut headers[sent..count]) });
            match result {
                Ok(taken) if taken > 0 => sent += taken,
                Ok(_) => return (sent, Err(io::ErrorKind::WriteZero.into())),
                Err(error) => return (sent, Err(error)),
            }
        }
        (sent, Ok(()))
    }

    fn header(&self, iovec: &mut libc::iovec) -> libc::msghdr {
        // SAFETY: msghdr consists of integers and raw pointers; all zeros (null, nothing) is a valid value.
        let mut header: libc::msghdr = unsafe { zeroed() };
        header.msg_name = self.server.octets.as_ptr().cast_mut().cast();
        header.msg_namelen = self.server.length;
        header.msg_iov = iovec;
        header.msg_iovlen = 1;
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn messages_leave_together_or_one_by_one_and_arrive_cut() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let server = UdpSocket::bind(address).unwrap();
            let server_address = server.local_addr().unwrap();
            let port = Port::bind(server_address.ip(), true).unwrap();
            for gso in [true, false] {
                let mut sender = QuerySender { server: Peer::new(server_address), gso };
                for count in [1u8, 3, 64] {
                    let octets: Vec<u8> = (0..count).flat_map(|number| [number; 48]).collect();
                    let (sent, outcome) = sender.send(&port, &octets, 48);
                    outcome.unwrap();
                    assert_eq!(sent, usize::from(count));
                    let mut buffer = [0; 512];
                    for number in 0..count {
                        let (length, from) = server.recv_from(&mut buffer).unwrap();
                        assert_eq!(buffer[..length], [number; 48]);
                        assert_eq!(from, port.address().unwrap());
                    }
                }
            }
        }
    }

    #[test]
    fn messages_of_different_lengths_leave_together_and_arrive_as_they_are() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = Port::bind("127.0.0.1".parse().unwrap(), true).unwrap();
        let mut sender = QuerySender::new(server.local_addr().unwrap());
        for lengths in [&[][..], &[5], &[7, 7, 7], &[3, 9, 1, 200], &[8; 64]] {
            let octets: Vec<u8> = (0..lengths.iter().sum::<usize>()).map(|octet| octet as u8).collect();
            let (sent, outcome) = sender.send_of_lengths(&port, &octets, lengths);
            outcome.unwrap();
            assert_eq!(sent, lengths.len());
            let (mut buffer, mut at) = ([0; 512], 0);
            for length in lengths {
                assert_eq!(server.recv(&mut buffer).unwrap(), *length);
                assert_eq!(buffer[..*length], octets[at..at + length]);
                at += length;
            }
        }
    }

    #[test]
    fn a_port_where_nobody_listens_is_reported_with_the_datagram_that_went_there() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let closed = UdpSocket::bind(address).unwrap().local_addr().unwrap();
            let port = Port::bind(closed.ip(), true).unwrap();
            port.report_errors().unwrap();
            let mut quoted = [0; 512];
            assert_eq!(port.next_error(&mut quoted), None);
            let mut sender = QuerySender::new(closed);
            sender.send(&port, &[7; 48], 48).1.unwrap();
            let (_, outcome) = sender.send(&port, &[8; 48], 48);
            assert!(QuerySender::is_icmp_error(&outcome.unwrap_err()));
            assert_eq!(port.next_error(&mut quoted), Some(PortError { is_refused: true, octets: 48 }));
            assert_eq!(quoted[..48], [7; 48]);
            assert_eq!(port.next_error(&mut quoted), None);
        }
    }

    #[test]
    fn a_send_that_the_kernel_refuses_is_an_error() {
        let port = Port::bind("127.0.0.1".parse().unwrap(), true).unwrap();
        let mut sender = QuerySender::new("127.0.0.1:0".parse().unwrap());
        let (sent, outcome) = sender.send(&port, &[0; 96], 48);
        assert_eq!(sent, 0);
        assert!(outcome.is_err());
    }

    #[test]
    fn a_peer_is_known_by_address_and_port() {
        let peer = |text: &str| Peer::new(text.parse().unwrap());
        assert!(peer("192.0.2.1:53").matches(&peer("192.0.2.1:53")));
        assert!(!peer("192.0.2.1:53").matches(&peer("192.0.2.1:54")));
        assert!(!peer("192.0.2.1:53").matches(&peer("192.0.2.2:53")));
        assert!(peer("[2001:db8::1]:53").matches(&peer("[2001:db8::1]:53")));
        assert!(!peer("[2001:db8::1]:53").matches(&peer("[2001:db8::2]:53")));
    }
}
