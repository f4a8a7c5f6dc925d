//! Listening TCP sockets. The process binds them while it has the privilege to bind, and uses them after it has dropped its
//! privileges.

use crate::counters::Counter;
use crate::https;
use crate::limits::{BACKLOG, Limits, RECEIVE_BUFFER_OCTETS, SEND_BUFFER_OCTETS, USER_TIMEOUT};
use crate::quic;
use crate::socket::new_socket;
use datapath::LATE_ADDRESS;
use datapath::proxy_protocol::TrustedProxies;
use datapath::remedy::{of_forbidden_port, of_missing_family, remedy};
use engine::ClientTransport;
use rustls::ServerConfig;
use socket2::{Socket, Type};
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// The options of the client streams.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Options {
    /// The limits, which [`crate::Streams::configure`] may change later.
    pub limits: Limits,
    /// The proxies whose PROXY header is trusted.
    pub proxies: TrustedProxies,
    /// True if addresses are bound that no interface has yet.
    pub freebind: bool,
}

/// The service behind a listening socket.
#[derive(Clone, Debug)]
pub(crate) enum Service {
    /// DNS over TCP.
    Tcp,
    /// DNS over TLS.
    Tls(Arc<ServerConfig>),
    /// DNS over HTTPS.
    Https(https::Service),
}

impl Service {
    /// The transport that its clients use.
    pub(crate) fn transport(&self) -> ClientTransport {
        match self {
            Service::Tcp => ClientTransport::Tcp,
            Service::Tls(_) => ClientTransport::Tls,
            Service::Https(_) => ClientTransport::Https,
        }
    }

    /// The TLS settings; none without TLS.
    pub(crate) fn tls(&self) -> Option<&Arc<ServerConfig>> {
        match self {
            Service::Tcp => None,
            Service::Tls(config) => Some(config),
            Service::Https(https) => Some(&https.tls),
        }
    }

    /// The counter of its connections.
    pub(crate) fn counter(&self) -> Counter {
        match self {
            Service::Tcp => Counter::AcceptedTcp,
            Service::Tls(_) => Counter::AcceptedTls,
            Service::Https(_) => Counter::AcceptedHttps,
        }
    }
}

/// A listening socket and the service behind it.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) socket: TcpListener,
    pub(crate) service: Service,
}

impl Listener {
    /// Another handle of the socket, for another thread.
    ///
    /// # Errors
    ///
    /// The error of fcntl(2): the process may have no more open files.
    pub(crate) fn try_clone(&self) -> io::Result<Listener> {
        Ok(Listener { socket: self.socket.try_clone()?, service: self.service.clone() })
    }
}

/// Sockets that listen already, without threads that accept. The kernel keeps up to [`BACKLOG`] clients waiting.
#[derive(Debug)]
pub struct BoundStreams {
    pub(crate) listeners: Vec<Listener>,
    /// The sockets for DNS over QUIC, with their service.
    pub(crate) quic: Option<(Vec<UdpSocket>, quic::Service)>,
    pub(crate) options: Options,
}

impl BoundStreams {
    /// Binds sockets for DNS over TCP. `given` are listening sockets of these addresses that exist already: they are used instead. Serving
    /// begins with [`BoundStreams::start`].
    ///
    /// # Errors
    ///
    /// [`Error`] has a variant for each cause with a remedy: the address is in use, its port needs a privilege, no interface has it, or
    /// the kernel lacks its family. `Error::Socket` has any other error with an address, `Error::Given` that of an inherited socket.
    pub fn bind(
        listen: &[SocketAddr],
        given: Vec<TcpListener>,
        options: Options,
    ) -> Result<BoundStreams, Error> {
        BoundStreams { listeners: Vec::new(), quic: None, options }.with(listen, given, &Service::Tcp)
    }

    /// Binds sockets for DNS over TLS (RFC 7858) too.
    ///
    /// # Errors
    ///
    /// As [`BoundStreams::bind`].
    pub fn with_tls(
        self,
        listen: &[SocketAddr],
        given: Vec<TcpListener>,
        tls: Arc<ServerConfig>,
    ) -> Result<BoundStreams, Error> {
        self.with(listen, given, &Service::Tls(tls))
    }

    /// Binds sockets for DNS over HTTPS (RFC 8484) too.
    ///
    /// # Errors
    ///
    /// As [`BoundStreams::bind`].
    pub fn with_https(
        self,
        listen: &[SocketAddr],
        given: Vec<TcpListener>,
        service: https::Service,
    ) -> Result<BoundStreams, Error> {
        self.with(listen, given, &Service::Https(service))
    }

    /// Adds listening sockets. Their numbers ([`engine::Client`]) follow those before.
    fn with(
        mut self,
        listen: &[SocketAddr],
        mut given: Vec<TcpListener>,
        service: &Service,
    ) -> Result<BoundStreams, Error> {
        for &address in listen {
            let is_here = |one: &TcpListener| one.local_addr().is_ok_and(|local| local == address);
            let socket = match given.iter().position(is_here) {
                Some(place) => adopt_one(given.remove(place)),
                None => bind_one(address, self.options.freebind),
            };
            let socket = socket.map_err(|error| Error::at(address, error))?;
            self.listeners.push(Listener { socket, service: service.clone() });
        }
        // Further sockets of an address, which a service manager binds with SO_REUSEPORT, have clients of their own.
        for further in given {
            let socket = adopt_one(further).map_err(Error::Given)?;
            self.listeners.push(Listener { socket, service: service.clone() });
        }
        Ok(self)
    }

    /// Binds sockets for DNS over QUIC too, which a thread of its own serves. `given` are UDP sockets of these addresses that exist
    /// already: they are used instead. The numbers of the listeners ([`engine::Client`]) follow those of the other transports.
    ///
    /// # Errors
    ///
    /// `Error::Quic` with an address and the error of socket(2), of a socket option or of bind(2).
    pub fn with_quic(
        mut self,
        listen: &[SocketAddr],
        given: Vec<UdpSocket>,
        service: quic::Service,
    ) -> Result<BoundStreams, Error> {
        self.quic = Some((quic::bind(listen, given, self.options.freebind).map_err(Error::Quic)?, service));
        Ok(self)
    }

    /// The addresses for DNS over QUIC, in the order of the request. A port 0 has become an actual port.
    ///
    /// # Errors
    ///
    /// The error of getsockname(2). It does not fail for a socket that is bound.
    pub fn quic_addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.quic.iter().flat_map(|(sockets, _)| sockets).map(UdpSocket::local_addr).collect()
    }

    /// The sockets for DNS over QUIC, in the order of the addresses, for a successor of this process.
    pub fn quic_sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.quic.iter().flat_map(|(sockets, _)| sockets).map(AsFd::as_fd)
    }

    /// The listening addresses, in the order of the requests: a port 0 has become an actual port.
    ///
    /// # Errors
    ///
    /// The error of getsockname(2). It does not fail for a socket that is bound.
    pub fn local_addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.listeners.iter().map(|listener| listener.socket.local_addr()).collect()
    }

    /// The listening sockets, in the order of the addresses, for further socket options.
    pub fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.listeners.iter().map(|listener| listener.socket.as_fd())
    }
}

fn bind_one(address: SocketAddr, freebind: bool) -> io::Result<TcpListener> {
    let socket = new_socket(address, Type::STREAM, freebind)?;
    socket.set_reuse_address(true)?; // A restart must not wait for the TIME-WAIT of old connections.
    set_options(&socket)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Takes over a socket that listens already. Clients that wait in it stay there.
fn adopt_one(listener: TcpListener) -> io::Result<TcpListener> {
    let socket = Socket::from(listener);
    set_options(&socket)?;
    // A second call only changes the length of the queue (listen(2)).
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Sets the options of a listening socket. Connections inherit them, which saves the system calls.
fn set_options(socket: &Socket) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?; // An answer is written whole; waiting for more would only delay it.
    socket.set_send_buffer_size(SEND_BUFFER_OCTETS)?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER_OCTETS)?;
    socket.set_tcp_user_timeout(Some(USER_TIMEOUT))?;
    socket.set_nonblocking(true)
}

/// The reason why client streams cannot start.
#[derive(Debug)]
pub enum Error {
    /// Another process listens there. Stop it, or choose another address.
    InUse(SocketAddr),
    /// The process may not use the port. It needs CAP_NET_BIND_SERVICE for ports below 1024; others are forbidden by a policy.
    NotPermitted(SocketAddr),
    /// No interface has the address. Add it, or start later.
    NoSuchAddress(SocketAddr),
    /// The kernel does not support this address family. Remove the address, or enable IPv6.
    NoSuchFamily(SocketAddr),
    /// Any other error with an address.
    Socket(SocketAddr, io::Error),
    /// A socket that this process was given cannot be used. Start the socket unit and the server anew.
    Given(io::Error),
    /// DNS over QUIC cannot start.
    Quic(quic::Error),
    /// A stream thread could not be started. Raise the limits of processes and open files.
    Thread(io::Error),
}

impl Error {
    fn at(address: SocketAddr, error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::AddrInUse => Error::InUse(address),
            io::ErrorKind::PermissionDenied => Error::NotPermitted(address),
            io::ErrorKind::AddrNotAvailable => Error::NoSuchAddress(address),
            // EAFNOSUPPORT has no stable kind of its own.
            _ if error.raw_os_error() == Some(97) => Error::NoSuchFamily(address),
            _ => Error::Socket(address, error),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::InUse(address) => write!(
                f,
                "cannot listen on TCP {address}: the port is in use; find the process with `ss -ltnp sport = :{}` and stop \
                 it, or listen on another address",
                address.port()
            ),
            Error::NotPermitted(address) => write!(
                f,
                "cannot listen on TCP {address}: permission denied; {}",
                of_forbidden_port(address.port())
            ),
            Error::NoSuchAddress(address) => write!(
                f,
                "cannot listen on TCP {address}: no interface has this address; add it, or correct the configuration; \
                 {LATE_ADDRESS}"
            ),
            Error::NoSuchFamily(address) => write!(
                f,
                "cannot listen on TCP {address}: this system has no {}; {}",
                if address.is_ipv6() { "IPv6" } else { "IPv4" },
                of_missing_family(address.is_ipv6())
            ),
            Error::Socket(address, error) => {
                write!(f, "cannot listen on TCP {address}: {error}; {}", remedy(error))
            }
            Error::Quic(error) => error.fmt(f),
            Error::Given(error) => write!(
                f,
                "cannot use a TCP socket that the service manager or the former process has passed: {error}; {}; then restart \
                 the socket unit, if there is one, and the service",
                remedy(error)
            ),
            Error::Thread(error) => {
                write!(f, "cannot start a thread for client streams: {error}; {}", remedy(error))
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Socket(_, error) | Error::Given(error) | Error::Thread(error) => Some(error),
            Error::Quic(error) => error.source(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind(listen: &[&str]) -> Result<BoundStreams, Error> {
        let listen: Vec<SocketAddr> = listen.iter().map(|address| address.parse().unwrap()).collect();
        BoundStreams::bind(&listen, Vec::new(), Options::default())
    }

    #[test]
    fn port_0_becomes_a_real_port_and_both_families_share_it() {
        let v6 = bind(&["[::]:0"]).unwrap().local_addresses().unwrap()[0];
        assert_ne!(v6.port(), 0);
        let (_bound, addresses) = (0..50)
            .find_map(|_| {
                let v6 = bind(&["[::]:0"]).unwrap();
                let port = v6.local_addresses().unwrap()[0].port();
                let v4 = bind(&[&format!("0.0.0.0:{port}")]).ok()?;
                Some(((v6, v4), port))
            })
            .expect("one of many ports is free in both families");
        assert_ne!(addresses, 0);
    }

    #[test]
    fn a_given_socket_takes_the_place_of_its_address_with_the_clients_that_wait() {
        let first = bind(&["127.0.0.1:0"]).unwrap();
        let address = first.local_addresses().unwrap()[0];
        let _client = std::net::TcpStream::connect(address).unwrap();
        let given = first.listeners.into_iter().map(|listener| listener.socket).collect();
        let addresses = [address, "127.0.0.1:0".parse().unwrap()];
        let second = BoundStreams::bind(&addresses, given, Options::default()).unwrap();
        assert_eq!(second.local_addresses().unwrap()[0], address);
        assert_eq!(second.listeners.len(), 2);
        assert!(second.listeners[0].socket.accept().is_ok());
    }

    #[test]
    fn an_address_in_use_is_named_with_the_remedy() {
        let first = bind(&["127.0.0.1:0"]).unwrap();
        let address = first.local_addresses().unwrap()[0].to_string();
        let error = bind(&[&address]).unwrap_err();
        assert!(matches!(error, Error::InUse(_)));
        assert!(error.to_string().contains(&address) && error.to_string().contains("ss -ltnp"));
    }

    #[test]
    fn the_remedy_follows_the_cause() {
        let told = |address: &str, number| {
            Error::at(address.parse().unwrap(), io::Error::from_raw_os_error(number)).to_string()
        };
        // Numbers of Linux: EACCES 13, EMFILE 24, EAFNOSUPPORT 97.
        assert!(told("192.0.2.1:853", 13).contains("CAP_NET_BIND_SERVICE"));
        assert!(told("192.0.2.1:8853", 13).contains("SELinux"));
        assert!(told("192.0.2.1:853", 24).contains("LimitNOFILE="));
        assert!(told("[::1]:853", 97).contains("no IPv6; enable it"));
    }

    #[test]
    fn an_address_that_no_interface_has_is_named_with_the_remedy() {
        let error = bind(&["192.0.2.1:0"]).unwrap_err();
        assert!(matches!(error, Error::NoSuchAddress(_)), "{error}");
        assert!(error.to_string().contains("192.0.2.1") && error.to_string().contains(LATE_ADDRESS));
    }
}
