//! Listening UDP sockets. The sockets of all workers for one address form one SO_REUSEPORT group, in the order of the
//! workers. The steering program depends on that order.
//!
//! A socket that is bound already comes from the service manager or from the predecessor of this process
//! ([`UdpListener::adopt`]). Such a group may have fewer sockets than there are workers, which then share them.

use crate::limits::{RECEIVE_BUFFER, SEND_BUFFER};
use crate::socket::syscalls::{ignore_path_mtu, receive_queue};
use kernel::epoll::EpollRegistry;
use kernel::remedy::{of_forbidden_port, of_missing_family, remedy};
use kernel::syscalls::{set_option, set_receive_buffer};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// A nonblocking UDP socket bound to one address, for one worker.
#[derive(Debug)]
pub struct UdpListener {
    socket: Socket,
    address: SocketAddr,
    /// True if several workers read this socket.
    is_shared: bool,
    /// True if this is another handle of the socket of a worker before.
    is_duplicate: bool,
}

impl UdpListener {
    /// Binds one socket per worker to one address. With port 0 the others use the port of the first socket.
    ///
    /// The first socket is bound alone, without SO_REUSEPORT. So a port that is in use, even by a second instance of this
    /// program, is an error and is not shared by accident. The first socket admits the others after that.
    ///
    /// `freebind`: the address may be one that no interface has yet (IP_FREEBIND, ip(7)).
    ///
    /// # Errors
    ///
    /// [`BindError`] has a variant for each cause with a remedy: the address is in use, no interface has it (not with `freebind`), its
    /// port needs a privilege, or the system lacks the address family. Other causes name the system call that failed.
    pub fn bind_group(
        address: SocketAddr,
        workers: usize,
        freebind: bool,
    ) -> Result<Vec<UdpListener>, BindError> {
        let first = UdpListener::open(address, false, freebind)?;
        let address = first.address;
        if workers > 1 {
            first
                .socket
                .set_reuse_port(true)
                .map_err(|error| BindError::new(address, "SO_REUSEPORT", error))?;
        }
        let mut group = vec![first];
        for _ in 1..workers {
            group.push(UdpListener::open(address, true, freebind)?);
        }
        Ok(group)
    }

    /// Binds a socket. `reuseport`: shares the address with other sockets that set SO_REUSEPORT.
    ///
    /// # Errors
    ///
    /// As [`UdpListener::bind_group`].
    pub fn bind(address: SocketAddr, reuseport: bool) -> Result<UdpListener, BindError> {
        UdpListener::open(address, reuseport, false)
    }

    fn open(address: SocketAddr, reuseport: bool, freebind: bool) -> Result<UdpListener, BindError> {
        let failed = |step| move |error| BindError::new(address, step, error);
        let socket =
            Socket::new(Domain::for_address(address), Type::DGRAM.nonblocking(), Some(Protocol::UDP))
                .map_err(failed("socket"))?;
        if address.is_ipv6() {
            socket.set_only_v6(true).map_err(failed("IPV6_V6ONLY"))?;
        }
        set_options(&socket, address)?;
        set_receive_buffer(socket.as_raw_fd(), RECEIVE_BUFFER, true);
        if freebind {
            set_freebind(&socket, address).map_err(failed("IP_FREEBIND"))?;
        }
        if reuseport {
            socket.set_reuse_port(true).map_err(failed("SO_REUSEPORT"))?;
        }
        socket.bind(&SockAddr::from(address)).map_err(failed("bind"))?;
        let address = socket
            .local_addr()
            .and_then(|bound| bound.as_socket().ok_or_else(|| io::Error::other("not an IP address")))
            .map_err(failed("getsockname"))?;
        Ok(UdpListener { socket, address, is_shared: false, is_duplicate: false })
    }

    /// Takes over a socket that another process has bound to `address`. The datagrams that wait in it stay there. The other process
    /// may still read it: the options that are set here are those that it has set too, and its filter stays
    /// (`detach_filter`).
    ///
    /// # Errors
    ///
    /// The error of a socket option, with its name: the descriptor is no UDP socket of this address family.
    pub fn adopt(socket: OwnedFd, address: SocketAddr) -> Result<UdpListener, BindError> {
        let failed = |step| move |error| BindError::new(address, step, error);
        let socket = Socket::from(socket);
        socket.set_nonblocking(true).map_err(failed("O_NONBLOCK"))?;
        set_options(&socket, address)?;
        // Asking again could only make it smaller, if this process has fewer privileges than the one that asked first. The kernel
        // reports twice the size that it was asked for.
        if receive_queue(socket.as_raw_fd()).size < 2 * RECEIVE_BUFFER as u32 {
            set_receive_buffer(socket.as_raw_fd(), RECEIVE_BUFFER, true);
        }
        Ok(UdpListener { socket, address, is_shared: false, is_duplicate: false })
    }

    /// One listener per worker for the sockets of a group that are bound already: each worker has its own, or shares one with
    /// others if there are too few. There must be at least one, and no more than workers.
    ///
    /// # Errors
    ///
    /// As [`UdpListener::adopt`], or the error of dup(2) for a shared socket: the process may have no more open files.
    pub fn adopt_group(
        sockets: Vec<OwnedFd>,
        address: SocketAddr,
        workers: usize,
    ) -> Result<Vec<UdpListener>, BindError> {
        let adopted = sockets.into_iter().map(|socket| UdpListener::adopt(socket, address));
        let mut group = adopted.collect::<Result<Vec<_>, _>>()?;
        let count = group.len();
        for worker in count..workers {
            let other = &mut group[worker % count];
            other.is_shared = true;
            let socket = other.socket.try_clone().map_err(|error| BindError::new(address, "dup", error))?;
            group.push(UdpListener { socket, address, is_shared: true, is_duplicate: true });
        }
        Ok(group)
    }

    /// Detaches the filter of an overload, if another process has left one.
    pub(crate) fn detach_filter(&self) {
        // Without a filter the result is an error, which is none.
        let _ = set_option(self.socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_DETACH_FILTER, 0);
    }

    /// Lets the kernel stamp datagrams with the time at which it receives them, or not.
    pub(crate) fn set_stamps(&self, is_on: bool) {
        // Without stamps all datagrams seem to be new: an overload is noticed when the queue is full.
        let _ = set_option(self.socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, i32::from(is_on));
    }

    /// The address that the socket is bound to, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// True if the socket is bound to all addresses of its family, so that each datagram carries its local address.
    pub fn is_wildcard(&self) -> bool {
        self.address.ip().is_unspecified()
    }

    /// True if this is another handle of the socket of a worker before.
    pub fn is_duplicate(&self) -> bool {
        self.is_duplicate
    }

    /// True if several workers read this socket.
    pub(crate) fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// The socket.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Sets the options that are the same for sockets that this process has bound and for others.
fn set_options(socket: &Socket, address: SocketAddr) -> Result<(), BindError> {
    let failed = |step| move |error| BindError::new(address, step, error);
    let raw = socket.as_raw_fd();
    let any = address.ip().is_unspecified();
    if address.is_ipv6() && any {
        set_option(raw, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1).map_err(failed("IPV6_RECVPKTINFO"))?;
    } else if any {
        set_option(raw, libc::IPPROTO_IP, libc::IP_PKTINFO, 1).map_err(failed("IP_PKTINFO"))?;
    }
    ignore_path_mtu(raw, address.is_ipv6());
    // A smaller send buffer is not an error: datagrams that do not fit are dropped and counted.
    let _ = socket.set_send_buffer_size(SEND_BUFFER);
    Ok(())
}

/// The reason why an address cannot be listened on. Its text contains the remedy.
#[derive(Debug)]
pub enum BindError {
    /// Another process uses the address. Stop that process, or choose another port.
    InUse(SocketAddr),
    /// The process may not use the port. Ports below 1024 need root or CAP_NET_BIND_SERVICE; others are forbidden by a policy.
    Permission(SocketAddr),
    /// No interface of this machine has the address. Add the address, or correct the configuration.
    NoSuchAddress(SocketAddr),
    /// The system has no IPv6 (or no IPv4). Remove the address.
    NoSuchFamily(SocketAddr),
    /// Any other error, with the step that failed.
    Failed {
        /// The address to bind.
        address: SocketAddr,
        /// The system call or the socket option.
        step: &'static str,
        /// The error of the system.
        error: io::Error,
    },
}

impl BindError {
    fn new(address: SocketAddr, step: &'static str, error: io::Error) -> BindError {
        match error.raw_os_error() {
            Some(libc::EADDRINUSE) => BindError::InUse(address),
            Some(libc::EACCES | libc::EPERM) if step == "bind" => BindError::Permission(address),
            Some(libc::EADDRNOTAVAIL) => BindError::NoSuchAddress(address),
            Some(libc::EAFNOSUPPORT) => BindError::NoSuchFamily(address),
            _ => BindError::Failed { address, step, error },
        }
    }

    /// The address that cannot be listened on.
    pub fn address(&self) -> SocketAddr {
        match self {
            BindError::InUse(address)
            | BindError::Permission(address)
            | BindError::NoSuchAddress(address)
            | BindError::NoSuchFamily(address)
            | BindError::Failed { address, .. } => *address,
        }
    }
}

/// The remedies for an address that no interface has yet, for errors of all transports.
pub const LATE_ADDRESS: &str = "if the address comes later, set `server.freebind`, or let the service manager start the server again until \
                                it is there, as the packaged unit does";

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot listen on {} (UDP): ", self.address())?;
        match self {
            BindError::InUse(address) => write!(
                f,
                "the port is in use; find the process with `ss -lunp sport = :{}` and stop it, or listen on another port",
                address.port()
            ),
            BindError::Permission(address) => {
                write!(f, "permission denied; {}", of_forbidden_port(address.port()))
            }
            BindError::NoSuchAddress(address) => {
                let family = if matches!(address.ip(), IpAddr::V6(_)) { "[::]" } else { "0.0.0.0" };
                write!(
                    f,
                    "no interface has this address; check with `ip address`, add it, or listen on {family}:{}; {LATE_ADDRESS}",
                    address.port()
                )
            }
            BindError::NoSuchFamily(address) => {
                let family = if address.is_ipv6() { "IPv6" } else { "IPv4" };
                write!(f, "this system has no {family}; {}", of_missing_family(address.is_ipv6()))
            }
            BindError::Failed { step, error, .. } => write!(f, "{step}: {error}; {}", remedy(error)),
        }
    }
}

impl std::error::Error for BindError {}

/// Lets a socket be bound to an address that no interface has yet. Datagrams and connections arrive once one has it.
///
/// # Errors
///
/// The error of the system, on a kernel before Linux 4.15 for IPv6.
pub fn set_freebind(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    if address.is_ipv6() { socket.set_freebind_v6(true) } else { socket.set_freebind_v4(true) }
}

/// Begins to read listening sockets. Sockets that are read already stay so.
///
/// # Errors
///
/// The error of epoll_ctl(2), except EEXIST: the user's limit of watched descriptors, or no memory.
pub(crate) fn start_reading<'l>(
    listeners: impl Iterator<Item = &'l UdpListener>,
    registry: &EpollRegistry,
) -> io::Result<()> {
    for (number, listener) in listeners.enumerate() {
        // The other handles are read, and perhaps filtered, by workers before this one.
        if !listener.is_duplicate() {
            listener.detach_filter();
            listener.set_stamps(false);
        }
        // Of the workers that share a socket and sleep, the kernel wakes one, not all.
        let exclusive = if listener.is_shared() { libc::EPOLLEXCLUSIVE } else { 0 };
        let socket = listener.socket().as_raw_fd();
        match registry.add(socket, libc::EPOLLIN | exclusive, number as u64) {
            Err(error) if error.raw_os_error() != Some(libc::EEXIST) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_used_port_is_an_error_that_names_it_even_when_the_user_shares_ports() {
        let address = "127.0.0.1:0".parse().unwrap();
        let group = UdpListener::bind_group(address, 2, false).unwrap();
        assert_eq!(group[0].address(), group[1].address());
        let error = UdpListener::bind_group(group[0].address(), 2, false).unwrap_err();
        assert!(matches!(error, BindError::InUse(_)));
        let text = error.to_string();
        assert!(text.contains(&group[0].address().to_string()), "{text}");
        assert!(text.contains("another port"), "{text}");
    }

    #[test]
    fn an_address_of_another_machine_is_an_error_with_a_remedy() {
        let error = UdpListener::bind("192.0.2.77:0".parse().unwrap(), false).unwrap_err();
        assert!(matches!(error, BindError::NoSuchAddress(_)));
        assert!(error.to_string().contains("0.0.0.0:0"));
    }

    #[test]
    fn the_remedy_of_an_error_follows_its_step_and_its_cause() {
        let told = |address: &str, step, number| {
            let error = io::Error::from_raw_os_error(number);
            BindError::new(address.parse().unwrap(), step, error).to_string()
        };
        assert!(told("192.0.2.1:53", "bind", libc::EACCES).contains("CAP_NET_BIND_SERVICE"));
        assert!(told("192.0.2.1:5353", "bind", libc::EACCES).contains("journalctl -k"));
        // A socket option needs no privilege of the port.
        let option = told("192.0.2.1:53", "SO_REUSEPORT", libc::EPERM);
        assert!(option.contains("SO_REUSEPORT: ") && option.contains("SELinux"), "{option}");
        assert!(told("[::1]:53", "socket", libc::EAFNOSUPPORT).contains("AF_INET6"));
        assert!(told("[::1]:53", "socket", libc::EMFILE).contains("LimitNOFILE="));
    }

    #[test]
    fn workers_share_the_sockets_of_a_group_that_has_too_few() {
        let bound = UdpListener::bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let address = bound.address();
        let given = vec![OwnedFd::from(bound.socket)];
        let group = UdpListener::adopt_group(given, address, 3).unwrap();
        assert_eq!(group.len(), 3);
        assert!(group.iter().all(|listener| listener.is_shared() && listener.address() == address));
        let client = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        client.send_to(b"question", address).unwrap();
        let mut buffer = [std::mem::MaybeUninit::uninit(); 16];
        assert_eq!(group[2].socket.recv(&mut buffer).unwrap(), 8);
        let error = group[0].socket.recv(&mut buffer).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "the sockets are one");
    }

    #[test]
    fn ipv4_and_ipv6_wildcards_share_a_port() {
        let six = UdpListener::bind("[::]:0".parse().unwrap(), false).unwrap();
        let four = UdpListener::bind(SocketAddr::from(([0, 0, 0, 0], six.address().port())), false).unwrap();
        assert!(six.is_wildcard() && four.is_wildcard());
    }
}
