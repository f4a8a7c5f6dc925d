//! Sockets that are bound when the process starts: those of the service manager (sd_listen_fds(3)), or those of the predecessor
//! (`upgrade/`). They are taken in the place of the addresses that they match, by the kernel's own description of them.

use crate::config::Config;
use socket2::{Domain, Socket, Type};
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// The process from which the sockets come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The service manager, which keeps them: a socket without a use is a mistake in its units.
    ServiceManager,
    /// The predecessor, whose configuration may have been another: a socket without a use is closed.
    Predecessor,
}

/// Bound sockets that are not in use yet.
#[derive(Debug)]
pub struct InheritedSockets {
    origin: Origin,
    sockets: Vec<Given>,
}

#[derive(Debug)]
struct Given {
    socket: Socket,
    place: Place,
}

/// The address of a socket, and the kind of its clients.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Udp(SocketAddr),
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Udp(address) => write!(f, "UDP {address}"),
            Place::Tcp(address) => write!(f, "TCP {address}"),
            Place::Unix(path) => write!(f, "Unix {}", path.display()),
        }
    }
}

impl InheritedSockets {
    /// Describes the sockets.
    ///
    /// # Errors
    ///
    /// The first socket that this server cannot use, by its number, with the reason and the remedy: it is not bound, does not listen,
    /// or has another protocol or family.
    pub fn new(descriptors: Vec<OwnedFd>, origin: Origin) -> Result<InheritedSockets, String> {
        let sockets = descriptors.into_iter().enumerate().map(|(number, descriptor)| {
            let socket = Socket::from(descriptor);
            let place = place(&socket).map_err(|error| format!("passed socket {}: {error}", number + 1))?;
            Ok(Given { socket, place })
        });
        Ok(InheritedSockets { origin, sockets: sockets.collect::<Result<_, String>>()? })
    }

    /// No sockets.
    pub fn none() -> InheritedSockets {
        InheritedSockets { origin: Origin::Predecessor, sockets: Vec::new() }
    }

    /// Takes the UDP sockets of these addresses.
    pub fn take_udp(&mut self, listen: &[SocketAddr]) -> Vec<(SocketAddr, Vec<OwnedFd>)> {
        let taken = listen.iter().map(|&address| {
            let sockets: Vec<OwnedFd> =
                self.take(&Place::Udp(address)).into_iter().map(OwnedFd::from).collect();
            (address, sockets)
        });
        taken.filter(|(_, sockets)| !sockets.is_empty()).collect()
    }

    /// Takes the listening TCP sockets of these addresses.
    pub fn take_tcp(&mut self, listen: &[SocketAddr]) -> Vec<TcpListener> {
        listen.iter().flat_map(|&address| self.take(&Place::Tcp(address))).map(TcpListener::from).collect()
    }

    /// Takes the listening TCP socket of the metrics.
    pub fn take_metrics(&mut self, address: SocketAddr) -> Option<TcpListener> {
        self.take(&Place::Tcp(address)).into_iter().next().map(TcpListener::from)
    }

    /// Takes the control socket.
    pub fn take_control(&mut self, path: &Path) -> Option<UnixListener> {
        self.take(&Place::Unix(path.to_owned())).into_iter().next().map(UnixListener::from)
    }

    fn take(&mut self, place: &Place) -> Vec<Socket> {
        let matching = self.sockets.extract_if(.., |given| given.place == *place);
        matching.map(|given| given.socket).collect()
    }

    /// Checks that every socket has a use in this configuration, before any is taken. Those of a predecessor need none: they are
    /// closed, and the log says so.
    ///
    /// # Errors
    ///
    /// The service manager has bound a socket of IPv6 for IPv4, too, or has passed sockets that the configuration does not use. The
    /// text has the remedy.
    pub fn check(&mut self, config: &Config, listen: &[SocketAddr]) -> Result<(), String> {
        let is_used = |place: &Place| match place {
            Place::Udp(address) => listen.contains(address) || config.tls.listen_doq.contains(address),
            Place::Tcp(address) => {
                let mut encrypted = config.tls.tcp_addresses();
                listen.contains(address)
                    || config.metrics.listen == Some(*address)
                    || encrypted.any(|one| one == *address)
            }
            Place::Unix(path) => config.control.socket.as_ref() == Some(path),
        };
        for given in &self.sockets {
            if self.origin == Origin::ServiceManager && is_for_both_families(&given.socket, &given.place) {
                return Err(format!(
                    "the service manager has bound {} for IPv4 too: set `BindIPv6Only=ipv6-only` in the socket unit, and \
                     list the IPv4 address on its own",
                    given.place
                ));
            }
        }
        let mut unused: Vec<String> = Vec::new();
        self.sockets.retain(|given| {
            let is_used = is_used(&given.place);
            if !is_used && !unused.contains(&given.place.to_string()) {
                unused.push(given.place.to_string());
            }
            is_used
        });
        match (unused.is_empty(), self.origin) {
            (true, _) => Ok(()),
            (false, Origin::Predecessor) => {
                tracing::info!(
                    event = "sockets_closed",
                    "sockets of the former process that the configuration no longer names, closed: {}",
                    unused.join(", ")
                );
                Ok(())
            }
            (false, Origin::ServiceManager) => Err(format!(
                "the service manager has passed sockets that the configuration does not use: {}; add them to `server.listen` \
                 (`tls.listen-dot`, `tls.listen-doh`, `metrics.listen`, `control.socket`), or remove them from the socket unit",
                unused.join(", ")
            )),
        }
    }
}

/// The place of a socket. The error says what is wrong with it.
fn place(socket: &Socket) -> Result<Place, String> {
    let of_system =
        |error: io::Error| format!("not a socket: {error}; correct the socket unit, or unset LISTEN_FDS");
    let (kind, domain) = (socket.r#type().map_err(of_system)?, socket.domain().map_err(of_system)?);
    let address = socket.local_addr().map_err(of_system)?;
    let must_listen = || match socket.is_listener() {
        Ok(true) => Ok(()),
        _ => Err("a socket that does not listen; the socket unit needs `Accept=no`".to_owned()),
    };
    match (domain, kind, address.as_socket(), address.as_pathname()) {
        (Domain::IPV4 | Domain::IPV6, Type::DGRAM, Some(address), _) => Ok(Place::Udp(address)),
        (Domain::IPV4 | Domain::IPV6, Type::STREAM, Some(address), _) => {
            must_listen().map(|()| Place::Tcp(address))
        }
        (Domain::UNIX, Type::STREAM, _, Some(path)) => must_listen().map(|()| Place::Unix(path.to_owned())),
        _ => Err("neither UDP nor TCP nor a Unix stream socket; correct the socket unit".to_owned()),
    }
}

/// True for a socket on `[::]` that takes IPv4 too, whose clients would come with addresses that nothing here expects.
fn is_for_both_families(socket: &Socket, place: &Place) -> bool {
    let (Place::Udp(address) | Place::Tcp(address)) = place else { return false };
    address.is_ipv6() && address.ip().is_unspecified() && socket.only_v6().is_ok_and(|only| !only)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    fn config(text: &str) -> Config {
        match crate::config::parse("x.toml", text, &Default::default(), "/etc/resolv.conf".as_ref()) {
            Ok((config, _)) => config,
            Err(_) => panic!("a configuration without faults"),
        }
    }

    #[test]
    fn sockets_are_told_apart_by_the_kernels_description() {
        let (udp, tcp) = (UdpSocket::bind("[::1]:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let (six, four) = (udp.local_addr().unwrap(), tcp.local_addr().unwrap());
        let second = udp.try_clone().unwrap();
        let descriptors = vec![udp.into(), tcp.into(), second.into()];
        let mut given = InheritedSockets::new(descriptors, Origin::ServiceManager).unwrap();
        assert!(given.take_udp(&[four]).is_empty() && given.take_tcp(&[six]).is_empty());
        assert!(given.take_metrics(six).is_none());
        let taken = given.take_udp(&[four, six]);
        assert_eq!((taken.len(), taken[0].0, taken[0].1.len()), (1, six, 2));
        assert_eq!(given.take_tcp(&[four]).len(), 1);
    }

    #[test]
    fn a_socket_without_a_use_is_named_with_the_remedy_or_closed() {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let shown = format!("UDP {}", udp.local_addr().unwrap());
        let config = config("[upstream]\nforwarders = [\"192.0.2.53\"]");
        let copy = udp.try_clone().unwrap();
        let mut given = InheritedSockets::new(vec![udp.into()], Origin::ServiceManager).unwrap();
        let error = given.check(&config, &config.server.listen).unwrap_err();
        assert!(error.contains(&shown) && error.contains("server.listen"), "{error}");
        let mut given = InheritedSockets::new(vec![copy.into()], Origin::Predecessor).unwrap();
        assert!(given.check(&config, &config.server.listen).is_ok());
        assert!(given.sockets.is_empty());
    }

    #[test]
    fn sockets_that_cannot_serve_are_errors() {
        let (stream, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let error = InheritedSockets::new(vec![stream.into()], Origin::ServiceManager).unwrap_err();
        assert!(error.contains("passed socket 1"), "{error}");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let error = InheritedSockets::new(vec![client.into()], Origin::ServiceManager).unwrap_err();
        assert!(error.contains("Accept=no"), "{error}");
        let file = std::fs::File::open("/dev/null").unwrap();
        let error = InheritedSockets::new(vec![file.into()], Origin::ServiceManager).unwrap_err();
        assert!(error.contains("not a socket"), "{error}");
    }

    #[test]
    fn a_socket_for_both_families_is_refused() {
        let socket = Socket::new(Domain::IPV6, Type::DGRAM, None).unwrap();
        socket.set_only_v6(false).unwrap();
        let any: SocketAddr = "[::]:0".parse().unwrap();
        socket.bind(&any.into()).unwrap();
        let config = config("[upstream]\nforwarders = [\"192.0.2.53\"]");
        let mut given = InheritedSockets::new(vec![socket.into()], Origin::ServiceManager).unwrap();
        let error = given.check(&config, &config.server.listen).unwrap_err();
        assert!(error.contains("BindIPv6Only=ipv6-only"), "{error}");
    }
}
