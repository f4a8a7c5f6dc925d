//! Sockets of the probes: TCP connections that are tried, and one socket for all ICMP echo requests.

use gateways::Failure;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Types of ICMPv6 messages (RFC 4443 section 4).
const ECHO_REQUEST: u8 = 128;
const ECHO_REPLY: u8 = 129;

/// Octets of an echo message: type, code, checksum, identifier, sequence number, and our data.
const ECHO: usize = 16;

/// A TCP connection that is tried.
pub struct Connection(Socket);

/// Start or outcome of a probe that is no success.
pub enum Fault {
    /// The probe has failed.
    Failed(Failure),
    /// This machine could not carry it out, which says nothing about the gateway.
    Local(io::Error),
}

impl Fault {
    /// The meaning of an error of connect(2) or sendto(2).
    fn of(error: io::Error) -> Fault {
        match error.kind() {
            ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Fault::Failed(Failure::Reset),
            ErrorKind::TimedOut => Fault::Failed(Failure::TimedOut),
            ErrorKind::NetworkUnreachable
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkDown
            | ErrorKind::AddrNotAvailable => Fault::Failed(Failure::Unreachable),
            _ => match error.raw_os_error() {
                // A prohibition by an ICMP error or by a packet filter.
                Some(libc::EACCES | libc::EPERM | libc::EPROTO) => Fault::Failed(Failure::Unreachable),
                _ => Fault::Local(error),
            },
        }
    }
}

impl Connection {
    /// Starts a connection.
    ///
    /// # Errors
    ///
    /// `Fault::Failed`: there is no route, or a host of this machine refuses. `Fault::Local`: the process may have no more open files.
    pub fn start(address: Ipv6Addr, port: u16) -> Result<Connection, Fault> {
        let kind = Type::STREAM.nonblocking().cloexec();
        let socket = Socket::new(Domain::IPV6, kind, Some(Protocol::TCP)).map_err(Fault::Local)?;
        // The end of the probe is a reset: the gateway forgets the connection, and no local port waits (RFC 9293 section 3.10.5).
        socket.set_linger(Some(Duration::ZERO)).map_err(Fault::Local)?;
        match socket.connect(&SockAddr::from(SocketAddrV6::new(address, port, 0, 0))) {
            Ok(()) => Ok(Connection(socket)),
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(Connection(socket)),
            Err(error) => Err(Fault::of(error)),
        }
    }

    /// Outcome of a connection whose socket is ready.
    ///
    /// # Errors
    ///
    /// The reason why the connection was not established.
    pub fn outcome(&self) -> Result<(), Fault> {
        match self.0.take_error() {
            Ok(None) => Ok(()),
            Ok(Some(error)) | Err(error) => Err(Fault::of(error)),
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Socket for ICMP echo requests.
pub struct Echo {
    socket: UdpSocket,
    /// Identifier of our requests. With an unprivileged socket the kernel writes its own, and passes on only replies to that.
    identifier: u16,
}

impl Echo {
    /// Opens an unprivileged socket.
    ///
    /// # Errors
    ///
    /// The error of socket(2). `PermissionDenied`: the system does not allow it to the group of the process (`net.ipv4.ping_group_range`).
    pub fn open() -> io::Result<Echo> {
        Echo::of_type(Type::DGRAM)
    }

    /// Opens an unprivileged socket, else a raw one. The sandbox allows no raw sockets, so this is for the start.
    ///
    /// # Errors
    ///
    /// The error of socket(2) for the raw one. `PermissionDenied`: the process lacks CAP_NET_RAW.
    pub fn open_at_start() -> io::Result<Echo> {
        Echo::open().or_else(|_| Echo::of_type(Type::RAW))
    }

    fn of_type(kind: Type) -> io::Result<Echo> {
        let socket = Socket::new(Domain::IPV6, kind.nonblocking().cloexec(), Some(Protocol::ICMPV6))?;
        let identifier = (std::process::id() & 0xffff) as u16;
        Ok(Echo { socket: UdpSocket::from(OwnedFd::from(socket)), identifier })
    }

    /// Sends an echo request with this number.
    ///
    /// # Errors
    ///
    /// As [`Connection::start`].
    pub fn send(&self, address: Ipv6Addr, number: u64) -> Result<(), Fault> {
        let mut message = [0; ECHO];
        message[0] = ECHO_REQUEST;
        // The kernel fills in the checksum.
        message[4..6].copy_from_slice(&self.identifier.to_be_bytes());
        message[6..8].copy_from_slice(&(number as u16).to_be_bytes());
        message[8..].copy_from_slice(&number.to_be_bytes());
        self.socket.send_to(&message, SocketAddr::from((address, 0))).map(drop).map_err(Fault::of)
    }

    /// Takes the next echo reply: its sender, and the number of the request. None: there is none now.
    pub fn receive(&self) -> Option<(Ipv6Addr, u64)> {
        loop {
            let mut message = [0; 64];
            let (octets, from) = match self.socket.recv_from(&mut message) {
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return None,
            };
            let IpAddr::V6(address) = from.ip() else { continue };
            let data = message[..octets].get(8..).and_then(|data| data.first_chunk());
            if let (ECHO_REPLY, Some(number)) = (message[0], data) {
                return Some((address, u64::from_be_bytes(*number)));
            }
        }
    }
}

impl AsFd for Echo {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
