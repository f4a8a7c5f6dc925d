//! The addresses and ports that queries leave from (`upstream.source`, `upstream.avoid-ports`), and the sockets that are bound to
//! them. All workers share the table, and a reload replaces it. It is read when a socket is opened, so its lock is not on the way of a
//! query.
//!
//! Which port a query leaves from is one of the things that a forger of replies has to guess (RFC 5452 section 9.2): it is drawn from
//! all allowed ports with equal chances, and so is the address if there are several.

use crate::limits::{PORTS_TRIED, STRAY_DATAGRAMS};
use crate::listen::listener::set_freebind;
use kernel::syscalls::set_option;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::collections::BTreeMap;
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// The ports that a query may leave from over UDP: those from 1,024 on, without the ones that are avoided.
#[derive(Clone, PartialEq, Eq)]
pub struct SourcePorts {
    /// In ascending order. 126 KiB at most, so that a draw needs one random number and no second try.
    allowed: Box<[u16]>,
}

impl SourcePorts {
    /// All ports from 1,024 on that are in none of the ranges.
    pub fn outside(avoided: impl IntoIterator<Item = RangeInclusive<u16>>) -> SourcePorts {
        let mut is_allowed = vec![true; 1 << 16];
        is_allowed[..1024].fill(false);
        for range in avoided {
            for port in range {
                is_allowed[usize::from(port)] = false;
            }
        }
        SourcePorts { allowed: (0..=u16::MAX).filter(|&port| is_allowed[usize::from(port)]).collect() }
    }

    /// Number of ports.
    pub fn count(&self) -> usize {
        self.allowed.len()
    }

    /// True if queries may leave from the port.
    pub fn contains(&self, port: u16) -> bool {
        self.allowed.binary_search(&port).is_ok()
    }

    /// A random port, from the system's generator.
    ///
    /// # Errors
    ///
    /// No port is allowed, or the system has no random numbers.
    pub fn draw(&self) -> io::Result<u16> {
        let place = random_below(self.count())?;
        self.allowed.get(place).copied().ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    }
}

impl std::fmt::Debug for SourcePorts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SourcePorts({})", self.count())
    }
}

/// A random number below `bound`, which is 65,536 at most: no chance differs from another by more than one in 65,536.
fn random_below(bound: usize) -> io::Result<usize> {
    let bits = getrandom::u32().map_err(|error| io::Error::other(error.to_string()))?;
    Ok(((u64::from(bits) * bound as u64) >> 32) as usize)
}

/// Addresses and ports for the sockets towards upstreams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources {
    /// Addresses, at most one of which is used by a socket. A family without an address here leaves the choice to the system.
    pub addresses: Vec<IpAddr>,
    /// Ports for UDP.
    pub ports: SourcePorts,
    /// True if TCP connections, too, leave only from these ports. Without it the kernel chooses, which leaves its reserved ports alone.
    pub ports_for_tcp: bool,
    /// True if an address may be one that no interface has (IP_FREEBIND, ip(7)).
    pub freebind: bool,
}

impl Default for Sources {
    /// Any address, and all ports from 1,024 on.
    fn default() -> Sources {
        Sources {
            addresses: Vec::new(),
            ports: SourcePorts::outside([]),
            ports_for_tcp: false,
            freebind: false,
        }
    }
}

impl Sources {
    /// The addresses for a socket towards an upstream, in the order in which they are tried: from a random one on. The unspecified
    /// address stands for the choice of the system.
    fn for_upstream(&self, upstream: SocketAddr) -> io::Result<impl Iterator<Item = IpAddr>> {
        let of_family =
            self.addresses.iter().copied().filter(move |address| address.is_ipv4() == upstream.is_ipv4());
        let count = of_family.clone().count();
        let first = if count > 1 { random_below(count)? } else { 0 };
        let any = match upstream {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        // Without a vector: links are opened all the time.
        let listed = of_family.clone().skip(first).chain(of_family.take(first));
        Ok(listed.chain((count == 0).then_some(any)))
    }
}

/// A source address that the machine has lost, or has again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceChange {
    /// The address.
    pub address: IpAddr,
    /// True if the machine does not have it.
    pub is_missing: bool,
}

/// The present sources, and which of their addresses the machine does not have.
#[derive(Debug, Default)]
pub struct SourceTable {
    current: RwLock<Arc<Sources>>,
    states: Mutex<BTreeMap<IpAddr, State>>,
    /// True if an address was missing when it was used last. Spares a socket the lock of `states`.
    has_missing: AtomicBool,
}

/// State of an address that was missing.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// It was missing when a socket was to be bound to it last.
    is_missing: bool,
    /// State that the log has told last.
    is_told: bool,
}

impl SourceTable {
    /// Replaces the sources. Sockets that are open keep theirs.
    pub fn replace(&self, sources: Sources) {
        let mut states = self.states();
        states.retain(|address, _| sources.addresses.contains(address));
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(sources);
    }

    /// The addresses whose state differs from that of the last call, for the log.
    pub fn take_changes(&self) -> Vec<SourceChange> {
        let mut states = self.states();
        let mut changes = Vec::new();
        for (&address, state) in states.iter_mut().filter(|(_, state)| state.is_missing != state.is_told) {
            state.is_told = state.is_missing;
            changes.push(SourceChange { address, is_missing: state.is_missing });
        }
        states.retain(|_, state| state.is_missing);
        changes
    }

    /// A UDP socket that is connected to `upstream`, from `port` if that may be used and is free, else from a random port. It does not
    /// block, and has no datagrams of others: until connect(2) a bound socket takes them from anyone, after it from the upstream only.
    ///
    /// # Errors
    ///
    /// The error of the system for the address that was tried last. [`io::ErrorKind::AddrNotAvailable`]: the machine does not have it.
    pub fn udp(&self, upstream: SocketAddr, port: u16) -> io::Result<Socket> {
        let sources = self.current();
        let first = if sources.ports.contains(port) { port } else { sources.ports.draw()? };
        try_addresses(&sources, upstream, |address| {
            let mut port = first;
            for _ in 0..PORTS_TRIED {
                let socket = udp_socket(upstream)?;
                match self.bind(&socket, &sources, address, port) {
                    Ok(()) if connect_udp(&socket, upstream)? => return Ok(socket),
                    // Somebody floods this port.
                    Ok(()) => {}
                    // Another socket has the port, or only others may use it.
                    Err(error) if matches!(error.raw_os_error(), Some(libc::EADDRINUSE | libc::EACCES)) => {}
                    Err(error) => return Err(error),
                }
                port = sources.ports.draw()?;
            }
            Err(io::Error::from_raw_os_error(libc::EADDRINUSE))
        })
    }

    /// A TCP socket whose connection to `upstream` is being established. It does not block. `prepare` sets options before that.
    ///
    /// # Errors
    ///
    /// As [`SourceTable::udp`], and those of `prepare`.
    pub fn tcp(
        &self,
        upstream: SocketAddr,
        prepare: impl Fn(&Socket) -> io::Result<()>,
    ) -> io::Result<Socket> {
        let sources = self.current();
        try_addresses(&sources, upstream, |address| {
            let connect = |socket: Socket| {
                prepare(&socket)?;
                match socket.connect(&SockAddr::from(upstream)) {
                    Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
                    _ => Ok(socket),
                }
            };
            if !sources.ports_for_tcp {
                let socket = tcp_socket(upstream)?;
                if !address.is_unspecified() {
                    // The kernel chooses the port in connect(2), where it may be one that another connection has, to another
                    // upstream. Without the option it chooses in bind(2), which serves as well.
                    let _ =
                        set_option(socket.as_raw_fd(), libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1);
                    self.bind(&socket, &sources, address, 0)?;
                }
                return connect(socket);
            }
            for _ in 0..PORTS_TRIED {
                let Some(socket) = self.tcp_from_port(&sources, upstream, address)? else { continue };
                match connect(socket) {
                    // A connection to this upstream has the port, perhaps in TIME-WAIT.
                    Err(error) if error.raw_os_error() == Some(libc::EADDRNOTAVAIL) => {}
                    other => return other,
                }
            }
            Err(io::Error::from_raw_os_error(libc::EADDRINUSE))
        })
    }

    /// A TCP socket that is bound to a random allowed port; none if that is taken.
    fn tcp_from_port(
        &self,
        sources: &Sources,
        upstream: SocketAddr,
        address: IpAddr,
    ) -> io::Result<Option<Socket>> {
        let socket = tcp_socket(upstream)?;
        match self.bind(&socket, sources, address, sources.ports.draw()?) {
            Err(error) if error.raw_os_error() == Some(libc::EADDRINUSE) => return Ok(None),
            Err(error) if error.raw_os_error() == Some(libc::EACCES) => {}
            bound => return bound.map(|()| Some(socket)),
        }
        // A sandbox from before the reload that set ports to avoid: only the kernel may choose a port (Landlock).
        self.bind(&socket, sources, address, 0)?;
        let local = socket.local_addr()?.as_socket();
        let is_allowed = local.is_some_and(|local| sources.ports.contains(local.port()));
        Ok(is_allowed.then_some(socket))
    }

    /// Binds a socket, and notes whether the machine has the address.
    fn bind(&self, socket: &Socket, sources: &Sources, address: IpAddr, port: u16) -> io::Result<()> {
        let local = SocketAddr::new(address, port);
        if address.is_unspecified() {
            return socket.bind(&SockAddr::from(local));
        }
        if sources.freebind {
            set_freebind(socket, local)?;
        }
        let bound = socket.bind(&SockAddr::from(local));
        match &bound {
            Ok(()) => self.note(address, false),
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => self.note(address, true),
            Err(_) => {}
        }
        bound
    }

    /// Notes that the machine has an address, or does not have it.
    fn note(&self, address: IpAddr, is_missing: bool) {
        if !is_missing && !self.has_missing.load(Ordering::Relaxed) {
            return;
        }
        // The flag changes with the states, under their lock: a flag that is false for a missing address would hide its return.
        let mut states = self.states();
        // A reload may have taken the address out since the socket was opened.
        if is_missing && self.current().addresses.contains(&address) {
            states.entry(address).or_default().is_missing = true;
        } else if let Some(state) = states.get_mut(&address) {
            state.is_missing = false;
        }
        self.has_missing.store(states.values().any(|state| state.is_missing), Ordering::Relaxed);
    }

    fn current(&self) -> Arc<Sources> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn states(&self) -> MutexGuard<'_, BTreeMap<IpAddr, State>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens a socket from one address after the other, until the machine has one of them, and a port and a route from it.
fn try_addresses(
    sources: &Sources,
    upstream: SocketAddr,
    open: impl Fn(IpAddr) -> io::Result<Socket>,
) -> io::Result<Socket> {
    let mut last = io::ErrorKind::AddrNotAvailable.into();
    for address in sources.for_upstream(upstream)? {
        match open(address) {
            Err(error) if is_about_the_source(&error) => last = error,
            other => return other,
        }
    }
    Err(last)
}

/// True if another address may serve: this one is missing, or has no free port or no route. EINVAL is what older kernels say if the
/// address is missing and was bound all the same (IP_FREEBIND).
fn is_about_the_source(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EADDRNOTAVAIL | libc::EADDRINUSE | libc::ENETUNREACH | libc::EHOSTUNREACH | libc::EINVAL)
    )
}

/// Connects a UDP socket, and discards what came before: until then a bound socket takes datagrams from anyone, after it the kernel
/// filters by the peer's address. False: there are more than can be discarded.
fn connect_udp(socket: &Socket, upstream: SocketAddr) -> io::Result<bool> {
    socket.connect(&SockAddr::from(upstream))?;
    for _ in 0..STRAY_DATAGRAMS {
        // The rest of a datagram is cut off.
        if socket.recv(&mut [MaybeUninit::uninit()]).is_err() {
            // No datagram left (EAGAIN). Any other error comes again when the socket is used.
            return Ok(true);
        }
    }
    Ok(false)
}

fn udp_socket(upstream: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(upstream), Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
    if upstream.is_ipv6() {
        // Without this option the port would be taken in IPv4 too.
        set_option(socket.as_raw_fd(), libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
    }
    Ok(socket)
}

fn tcp_socket(upstream: SocketAddr) -> io::Result<Socket> {
    Socket::new(Domain::for_address(upstream), Type::STREAM.nonblocking(), Some(Protocol::TCP))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kit::namespace;
    use std::io::{Read, Write};
    use std::net::{TcpListener, UdpSocket};
    use std::time::Duration;

    fn sources(addresses: &[&str], ports: SourcePorts, ports_for_tcp: bool) -> SourceTable {
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        let table = SourceTable::default();
        table.replace(Sources { addresses, ports, ports_for_tcp, freebind: false });
        table
    }

    fn local(socket: &Socket) -> SocketAddr {
        socket.local_addr().unwrap().as_socket().unwrap()
    }

    #[test]
    fn an_avoided_port_is_never_drawn_and_all_others_are_equally_likely() {
        // 62,465 ports are left after the first list, 17,408 after the second.
        for (avoided, count) in [
            (vec![1234..=1234, 2000..=2999, 60_000..=61_045, 1..=900], 62_465),
            (vec![1024..=40_000, 45_000..=53_126], 17_408),
        ] {
            let ports = SourcePorts::outside(avoided.clone());
            assert_eq!(ports.count(), count);
            let is_avoided = |port: u16| port < 1024 || avoided.iter().any(|range| range.contains(&port));
            // 64 classes of consecutive allowed ports, all of one size but the last.
            let allowed: Vec<u16> = (0..=u16::MAX).filter(|&port| !is_avoided(port)).collect();
            let mut drawn = [0u32; 64];
            for _ in 0..100_000 {
                let port = ports.draw().unwrap();
                assert!(!is_avoided(port) && ports.contains(port), "{port}");
                drawn[allowed.binary_search(&port).unwrap() * 64 / count] += 1;
            }
            // 63 degrees of freedom: chi-square is above 154 once in 10^9 runs. The classes differ in size by one port at most.
            let expected = 100_000.0 / 64.0;
            let chi: f64 = drawn.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
            assert!(chi < 154.0, "{chi}: {drawn:?}");
        }
        assert_eq!(SourcePorts::outside([]).count(), 65_536 - 1024);
        assert!(SourcePorts::outside([0..=u16::MAX]).draw().is_err());
    }

    #[test]
    fn the_lowest_and_the_highest_port_are_drawn() {
        let ports = SourcePorts::outside([1025..=65_534]);
        let drawn: std::collections::BTreeSet<u16> = (0..200).map(|_| ports.draw().unwrap()).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [1024, 65_535]);
    }

    #[test]
    fn sockets_leave_from_all_sources_of_the_family_and_from_allowed_ports() {
        let table = sources(&["127.0.0.2", "::1", "127.0.0.3"], SourcePorts::outside([1024..=49_000]), true);
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let (mut seen_udp, mut seen_tcp) = (BTreeMap::<IpAddr, u32>::new(), BTreeMap::<IpAddr, u32>::new());
        for round in 0..100 {
            // The port that the engine proposes may be an avoided one.
            let socket = table.udp(udp.local_addr().unwrap(), 1024 + round * 480).unwrap();
            socket.send(b"question").unwrap();
            let from = udp.recv_from(&mut [0; 16]).unwrap().1;
            assert!(from.port() > 49_000, "{from}");
            *seen_udp.entry(from.ip()).or_default() += 1;

            let _connection = table.tcp(tcp.local_addr().unwrap(), |_| Ok(())).unwrap();
            let (_, from) = tcp.accept().unwrap();
            assert!(from.port() > 49_000, "{from}");
            *seen_tcp.entry(from.ip()).or_default() += 1;
        }
        for seen in [seen_udp, seen_tcp] {
            // Fewer than 10 of 100 from one of two addresses: once in 10^17 runs.
            let addresses: Vec<IpAddr> = seen.keys().copied().collect();
            assert_eq!(
                addresses,
                ["127.0.0.2", "127.0.0.3"].map(|address| address.parse::<IpAddr>().unwrap())
            );
            assert!(seen.values().all(|&count| count >= 10), "{seen:?}");
        }
    }

    #[test]
    fn a_port_that_is_taken_is_replaced_by_another_allowed_one() {
        // Three ports are left. Another socket takes one of them at a time.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let upstream = listener.local_addr().unwrap();
        let table = sources(&["127.0.0.2"], SourcePorts::outside([0..=61_150, 61_154..=65_535]), true);
        let taken = table.udp(upstream, 61_152).unwrap();
        assert_eq!(local(&taken), "127.0.0.2:61152".parse().unwrap());
        let other = table.udp(upstream, 61_152).unwrap();
        assert!([61_151, 61_153].contains(&local(&other).port()));
        let connections: Vec<Socket> = (0..2).map(|_| table.tcp(upstream, |_| Ok(())).unwrap()).collect();
        assert_ne!(local(&connections[0]).port(), local(&connections[1]).port());
        assert!(connections.iter().all(|socket| (61_151..=61_153).contains(&local(socket).port())));
    }

    #[test]
    fn the_system_chooses_for_a_family_without_a_source() {
        let table = sources(&["::1"], SourcePorts::outside([]), false);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let upstream = listener.local_addr().unwrap();
        let udp = table.udp(upstream, 0).unwrap();
        assert!(local(&udp).ip() == upstream.ip() && local(&udp).port() >= 1024);
        let before = |socket: &Socket| {
            assert_eq!(local(socket), "0.0.0.0:0".parse().unwrap());
            Ok(())
        };
        assert_eq!(local(&table.tcp(upstream, before).unwrap()).ip(), upstream.ip());
    }

    #[test]
    fn connections_of_one_source_may_share_a_port_where_the_kernel_chooses() {
        let table = sources(&["127.0.0.2"], SourcePorts::outside([]), false);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let before = |socket: &Socket| {
            assert_eq!(local(socket), "127.0.0.2:0".parse().unwrap(), "no port before the connection");
            Ok(())
        };
        let socket = table.tcp(listener.local_addr().unwrap(), before).unwrap();
        let (mut stream, from) = listener.accept().unwrap();
        assert_eq!(from, local(&socket));
        stream.write_all(b"reply").unwrap();
        let mut reply = [0; 5];
        socket.set_nonblocking(false).unwrap();
        (&socket).read_exact(&mut reply).unwrap();
        assert_eq!(&reply, b"reply");
    }

    #[test]
    fn another_address_serves_if_one_has_no_free_port() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let upstream = listener.local_addr().unwrap();
        let table =
            sources(&["127.0.0.2", "127.0.0.3"], SourcePorts::outside([0..=61_159, 61_161..=65_535]), true);
        let _taken =
            (UdpSocket::bind("127.0.0.2:61160").unwrap(), TcpListener::bind("127.0.0.2:61160").unwrap());
        // Each begins with a random address: 20 begin with the other one once in a million runs.
        for _ in 0..20 {
            assert_eq!(local(&table.udp(upstream, 61_160).unwrap()), "127.0.0.3:61160".parse().unwrap());
            let connection = table.tcp(upstream, |_| Ok(())).unwrap();
            assert_eq!(local(&connection), "127.0.0.3:61160".parse().unwrap());
            // A reset instead of TIME-WAIT, in which the port would stay taken.
            connection.set_linger(Some(Duration::ZERO)).unwrap();
        }
        let _others =
            (UdpSocket::bind("127.0.0.3:61160").unwrap(), TcpListener::bind("127.0.0.3:61160").unwrap());
        assert_eq!(table.udp(upstream, 61_160).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert_eq!(table.tcp(upstream, |_| Ok(())).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }

    /// Leaves one port to the kernel's choice, and executes the program.
    const ENTER: &str = r#"set -e
ip link set lo up
echo 61170 61170 > /proc/sys/net/ipv4/ip_local_port_range
exec "$@""#;

    #[test]
    fn another_address_serves_if_the_kernel_finds_no_port_for_one() {
        if !namespace::is_played_in(
            ENTER,
            "upstream::sources::tests::another_address_serves_if_the_kernel_finds_no_port_for_one",
        ) {
            the_kernel_finds_no_port();
        }
    }

    fn the_kernel_finds_no_port() {
        let listener = TcpListener::bind("127.0.0.1:5300").unwrap();
        let upstream = listener.local_addr().unwrap();
        let first = sources(&["127.0.0.2"], SourcePorts::outside([]), false);
        let connection = first.tcp(upstream, |_| Ok(())).unwrap();
        assert_eq!(local(&connection), "127.0.0.2:61170".parse().unwrap());
        // connect(2): "all port numbers in the ephemeral port range are currently in use".
        assert_eq!(first.tcp(upstream, |_| Ok(())).unwrap_err().kind(), io::ErrorKind::AddrNotAvailable);
        assert_eq!(first.take_changes(), [], "the machine has the address");
        let both = sources(&["127.0.0.2", "127.0.0.3"], SourcePorts::outside([]), false);
        for _ in 0..20 {
            let connection = both.tcp(upstream, |_| Ok(())).unwrap();
            assert_eq!(local(&connection), "127.0.0.3:61170".parse().unwrap());
            connection.set_linger(Some(Duration::ZERO)).unwrap();
        }
    }

    #[test]
    fn an_upstream_that_refuses_is_asked_from_one_address_only() {
        let upstream: SocketAddr = "127.0.0.1:9".parse().unwrap();
        let table = sources(&["127.0.0.2", "127.0.0.3"], SourcePorts::outside([]), false);
        let tried = std::cell::Cell::new(0);
        // The kernel may tell it in connect(2), or later.
        let refuse = |_: &Socket| {
            tried.set(tried.get() + 1);
            Err(io::Error::from_raw_os_error(libc::ECONNREFUSED))
        };
        assert_eq!(table.tcp(upstream, refuse).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        assert_eq!(tried.get(), 1);
    }

    #[test]
    fn a_missing_address_is_told_once_and_another_one_takes_its_place() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let upstream = listener.local_addr().unwrap();
        let missing: IpAddr = "192.0.2.77".parse().unwrap();
        let table = sources(&["192.0.2.77"], SourcePorts::outside([]), false);
        assert_eq!(table.udp(upstream, 0).unwrap_err().kind(), io::ErrorKind::AddrNotAvailable);
        assert_eq!(table.tcp(upstream, |_| Ok(())).unwrap_err().kind(), io::ErrorKind::AddrNotAvailable);
        assert_eq!(table.take_changes(), [SourceChange { address: missing, is_missing: true }]);
        assert!(table.udp(upstream, 0).is_err());
        assert_eq!(table.take_changes(), []);

        let both = Sources { addresses: vec![missing, "127.0.0.2".parse().unwrap()], ..Sources::default() };
        table.replace(both.clone());
        for _ in 0..20 {
            assert_eq!(local(&table.udp(upstream, 0).unwrap()).ip(), both.addresses[1]);
            assert_eq!(local(&table.tcp(upstream, |_| Ok(())).unwrap()).ip(), both.addresses[1]);
        }
        assert_eq!(table.take_changes(), [], "the log knows it already");
        // The machine gets the address, as far as the kernel is concerned.
        table.replace(Sources { freebind: true, ..both.clone() });
        for _ in 0..64 {
            // There is no route from it, so the other one serves.
            assert_eq!(local(&table.udp(upstream, 0).unwrap()).ip(), both.addresses[1]);
        }
        assert_eq!(table.take_changes(), [SourceChange { address: missing, is_missing: false }]);
        assert_eq!(table.take_changes(), []);
    }

    #[test]
    fn the_return_of_an_address_is_never_overlooked() {
        // Two workers: one finds an address missing while the other finds another one present again.
        let addresses = ["192.0.2.77", "192.0.2.78"];
        let [missing, present] = addresses.map(|address| address.parse::<IpAddr>().unwrap());
        let table = sources(&addresses, SourcePorts::outside([]), false);
        let barrier = std::sync::Barrier::new(2);
        for round in 0..20_000 {
            table.note(present, true);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    barrier.wait();
                    table.note(missing, true);
                });
                barrier.wait();
                table.note(present, false);
            });
            table.note(missing, false);
            let changes = table.take_changes();
            assert!(changes.iter().all(|change| !change.is_missing), "round {round}: {changes:?}");
        }
    }

    #[test]
    fn a_source_that_a_reload_took_out_is_not_noted_any_more() {
        let table = sources(&["127.0.0.2"], SourcePorts::outside([]), false);
        // A worker that has the sources of before.
        table.note("192.0.2.77".parse().unwrap(), true);
        assert_eq!(table.take_changes(), []);
    }

    #[test]
    fn datagrams_from_before_the_connection_are_discarded() {
        let [upstream, stranger] = [0; 2].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
        let open = || {
            let socket = udp_socket(upstream.local_addr().unwrap()).unwrap();
            socket.bind(&SockAddr::from(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))).unwrap();
            socket
        };
        let forge = |socket: &Socket, count| {
            for _ in 0..count {
                // A socket that is connected does not take it, which the kernel may tell at the next send.
                let _ = stranger.send_to(b"forged", local(socket));
            }
        };
        let socket = open();
        forge(&socket, STRAY_DATAGRAMS - 1);
        assert!(connect_udp(&socket, upstream.local_addr().unwrap()).unwrap());
        forge(&socket, 1);
        upstream.send_to(b"genuine", local(&socket)).unwrap();
        let mut reply = [0; 16];
        assert_eq!((&socket).read(&mut reply).unwrap(), 7);
        assert_eq!(&reply[..7], b"genuine");
        assert_eq!((&socket).read(&mut reply).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        // A port that is flooded is given up.
        let socket = open();
        forge(&socket, STRAY_DATAGRAMS);
        assert!(!connect_udp(&socket, upstream.local_addr().unwrap()).unwrap());
    }
}
