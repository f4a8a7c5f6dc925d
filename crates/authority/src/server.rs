//! A plain server over blocking sockets: per address, some threads with a UDP socket each (SO_REUSEPORT spreads the
//! clients over them), and a thread that accepts TCP connections.
//!
//! An answer leaves from the address that routing chooses, which on a host with several may differ from the one asked
//! when listening on a wildcard address: listen on the addresses themselves there.

use crate::counters::{Counters, Kind};
use crate::limits;
use crate::stream::Listener;
use crate::zone::Zone;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// A running server. It stops when dropped, within [`limits::POLL`], or [`limits::WRITE`] when a TCP client does not
/// take its answers.
#[derive(Debug)]
pub struct Server {
    addresses: Vec<SocketAddr>,
    counters: Vec<Arc<Counters>>,
    threads: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl Server {
    /// Listens on UDP and TCP of every address and serves `zone`, with `threads` UDP threads per address (at least
    /// one). Port 0 means any port that is free for both.
    ///
    /// An address that cannot be bound is an error that names it; nothing is served then.
    pub fn start(listen: &[SocketAddr], zone: Zone, threads: usize) -> io::Result<Server> {
        let mut bound = Vec::with_capacity(listen.len());
        for address in listen {
            bound.push(bind(*address, threads.max(1))?);
        }
        let mut server =
            Server { addresses: Vec::new(), counters: Vec::new(), threads: Vec::new(), stop: Arc::default() };
        for (address, listener, sockets) in bound {
            server.addresses.push(address);
            for socket in sockets {
                let zone = zone.clone();
                server.spawn("authority-udp", move |counters, stop| {
                    datagrams(&socket, &zone, counters, stop)
                })?;
            }
            let zone = zone.clone();
            server.spawn("authority-tcp", move |counters, stop| {
                Listener { socket: &listener, zone: &zone, counters, stop }.run();
            })?;
        }
        Ok(server)
    }

    /// The addresses served, in the order of `listen`, with the ports that were chosen.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Answers of one kind so far, of all threads.
    pub fn answers(&self, kind: Kind) -> u64 {
        self.counters.iter().map(|counters| counters.answers(kind)).sum()
    }

    /// Messages that got no answer so far: responses, and what is shorter than a header.
    pub fn ignored(&self) -> u64 {
        self.counters.iter().map(|counters| counters.ignored()).sum()
    }

    fn spawn(
        &mut self,
        name: &str,
        serve: impl FnOnce(&Counters, &AtomicBool) + Send + 'static,
    ) -> io::Result<()> {
        let counters = Arc::new(Counters::default());
        let stop = Arc::clone(&self.stop);
        self.counters.push(Arc::clone(&counters));
        let thread = thread::Builder::new().name(name.into()).spawn(move || serve(&counters, &stop))?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so on standard error, and has ended, which is all that is wanted here.
            let _ = thread.join();
        }
    }
}

/// Answers datagrams until told to stop.
fn datagrams(socket: &UdpSocket, zone: &Zone, counters: &Counters, stop: &AtomicBool) {
    // As large as a datagram can be: a question that was cut off would count as malformed.
    let mut query = vec![0; limits::STREAM];
    let mut out = vec![0; limits::UDP_SIZE];
    while !stop.load(Ordering::Relaxed) {
        match socket.recv_from(&mut query) {
            Ok((length, client)) => {
                let answer = zone.respond(&query[..length], limits::UDP_SIZE, &mut out);
                counters.count(answer.map(|answer| answer.kind));
                if let Some(answer) = answer {
                    // An answer that cannot leave is a lost datagram; the client asks again.
                    let _ = socket.send_to(&out[..answer.length], client);
                }
            }
            Err(error) if is_transient(&error) => {}
            // Out of memory or the like: do not spin.
            Err(_) => thread::sleep(limits::POLL),
        }
    }
}

/// Whether a socket merely had nothing to give. Linux reports ICMP errors of earlier answers as refused connections.
pub(crate) fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted | ErrorKind::ConnectionRefused
    )
}

/// Binds the TCP socket and all UDP sockets of an address. With port 0 TCP chooses the port; when UDP finds it in
/// use, another is tried.
fn bind(address: SocketAddr, threads: usize) -> io::Result<(SocketAddr, TcpListener, Vec<UdpSocket>)> {
    let mut tries = 1;
    loop {
        let listener = stream_socket(address).map_err(|error| name(error, address, "tcp"))?;
        let chosen = listener.local_addr()?;
        let sockets: io::Result<Vec<UdpSocket>> =
            (0..threads).map(|index| datagram_socket(chosen, index == 0)).collect();
        match sockets {
            Ok(sockets) => return Ok((chosen, listener, sockets)),
            Err(error)
                if address.port() == 0
                    && error.kind() == ErrorKind::AddrInUse
                    && tries < limits::PORT_TRIES =>
            {
                tries += 1;
            }
            Err(error) => return Err(name(error, chosen, "udp")),
        }
    }
}

fn name(error: io::Error, address: SocketAddr, protocol: &str) -> io::Error {
    io::Error::new(error.kind(), format!("cannot listen on {address} ({protocol}): {error}"))
}

fn stream_socket(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    prepare(&socket, address)?;
    // Only so that a restart does not wait for connections in TIME_WAIT; two listeners still exclude each other.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(limits::CONNECTIONS as i32)?;
    Ok(socket.into())
}

fn datagram_socket(address: SocketAddr, first: bool) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    prepare(&socket, address)?;
    socket.set_recv_buffer_size(limits::RECEIVE_BUFFER)?;
    // The first socket binds without SO_REUSEPORT, so an address that somebody else serves is an error instead of being
    // shared in silence.
    if first {
        socket.bind(&address.into())?;
        socket.set_reuse_port(true)?;
    } else {
        socket.set_reuse_port(true)?;
        socket.bind(&address.into())?;
    }
    Ok(socket.into())
}

fn prepare(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    if address.is_ipv6() {
        // So that [::] and 0.0.0.0 can both be listened on.
        socket.set_only_v6(true)?;
    }
    socket.set_read_timeout(Some(limits::POLL))
}
