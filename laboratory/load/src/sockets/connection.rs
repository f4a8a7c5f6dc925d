//! The TCP connections of a load: opening, with or without data in the SYN (TCP Fast Open, RFC 7413), reading, writing,
//! closing, and one wait for many of them. Nothing here blocks, and nothing knows DNS.
//!
//! The side that closes a connection first keeps it in TIME-WAIT for 60 s. A client whose ports the kernel chooses can then
//! open 28,232 connections to one server in that time (net.ipv4.ip_local_port_range), 470/s. So the caller chooses the port:
//! a bound port may be used again at once while its old connection is in TIME-WAIT, if both ends use timestamps (RFC 6191).
//! The kernel checks that, and refuses with EADDRNOTAVAIL.

use super::connection_info::ConnectionInfo;
use kernel::epoll::{Epoll, EpollRegistry};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// A connection, which may still be in its handshake. Closed when it is dropped.
#[derive(Debug)]
pub struct Connection(Socket);

impl Connection {
    /// Starts to connect from an address and port (port 0: the kernel chooses).
    ///
    /// # Errors
    ///
    /// Those of socket, bind and connect: EMFILE, EADDRINUSE, EADDRNOTAVAIL (the port has a connection to this server), or
    /// ECONNREFUSED if the kernel knows it at once.
    pub fn open(from: SocketAddr, server: SocketAddr) -> io::Result<Connection> {
        let socket = bound(from)?;
        match socket.connect(&SockAddr::from(server)) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
            _ => Ok(Connection(socket)),
        }
    }

    /// Starts to connect with `first` in the SYN, if the kernel knows a Fast Open cookie of the server. Otherwise the SYN asks
    /// for a cookie and carries no data. Returns the octets in the SYN.
    ///
    /// # Errors
    ///
    /// As [`Connection::open`], and EOPNOTSUPP if net.ipv4.tcp_fastopen lacks the client's bit, 1.
    pub fn open_fast(from: SocketAddr, server: SocketAddr, first: &[u8]) -> io::Result<(Connection, usize)> {
        let socket = bound(from)?;
        match socket.send_to_with_flags(first, &SockAddr::from(server), libc::MSG_FASTOPEN) {
            Ok(taken) => Ok((Connection(socket), taken)),
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok((Connection(socket), 0)),
            Err(error) => Err(error),
        }
    }

    /// Why the handshake or the connection failed, if it did.
    pub fn error(&self) -> Option<io::Error> {
        self.0.take_error().unwrap_or_else(Some)
    }

    /// Hands octets to the kernel; returns their number.
    ///
    /// # Errors
    ///
    /// The error of send(2). `WouldBlock`: the kernel has no room now. After a failed attempt to connect, it is the reason for that.
    pub fn write(&self, octets: &[u8]) -> io::Result<usize> {
        self.0.send_with_flags(octets, libc::MSG_NOSIGNAL)
    }

    /// Reads what has come; 0 means that the server has closed its direction.
    ///
    /// # Errors
    ///
    /// The error of recv(2). `WouldBlock`: nothing has come. `ConnectionReset`: the server has reset the connection.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        io::Read::read(&mut &self.0, buffer)
    }

    /// Closes the direction to the server (FIN). The other one stays open.
    pub fn end_sending(&self) {
        // A connection that the server has reset has no direction left to close.
        let _ = self.0.shutdown(Shutdown::Write);
    }

    /// Closes the connection at once (RST), without TIME-WAIT.
    pub fn abort(self) {
        // If the option fails, the connection is closed in the usual way.
        let _ = self.0.set_linger(Some(Duration::ZERO));
    }

    /// The connection as a stream of the standard library, which does not block, for a caller with an event loop of its own.
    pub fn into_stream(self) -> TcpStream {
        self.0.into()
    }

    /// The kernel's counters; `None` if it does not tell them.
    pub fn info(&self) -> Option<ConnectionInfo> {
        ConnectionInfo::of(self.0.as_raw_fd())
    }
}

/// A socket with this address and port. It may share the port with connections to other servers and in TIME-WAIT.
fn bound(from: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(from), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    // Queries leave at once, although an earlier segment is not acknowledged yet.
    socket.set_tcp_nodelay(true)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SockAddr::from(from))?;
    Ok(socket)
}

/// News of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionEvent {
    /// The number that the connection was added with.
    pub token: u64,
    /// It can be written to: its handshake is over, or the kernel has room again.
    pub writable: bool,
    /// Octets or the end of the server's direction can be read.
    pub readable: bool,
    /// The server has closed its direction, or the connection is over: reads lead to the end of the stream.
    pub ended: bool,
    /// Both directions are closed, or the connection has failed.
    pub over: bool,
}

/// A wait for many connections. Each change of a connection is reported once (edge-triggered), so what an event reports must
/// be read and written until the kernel has no more.
pub struct ConnectionWaiter {
    epoll: Epoll,
    registry: EpollRegistry,
}

impl ConnectionWaiter {
    /// A waiter without connections.
    ///
    /// # Errors
    ///
    /// The error of epoll_create1(2) or of the duplication of its descriptor: the process may have no more open files.
    pub fn new() -> io::Result<ConnectionWaiter> {
        let epoll = Epoll::new(crate::limits::CONNECTION_EVENTS)?;
        let registry = epoll.registry()?;
        Ok(ConnectionWaiter { epoll, registry })
    }

    /// Reports this connection from now on, with a number. The kernel removes it when it is closed.
    ///
    /// # Errors
    ///
    /// The error of epoll_ctl(2): EEXIST if the connection is reported already, ENOSPC beyond the limit of the user
    /// (fs.epoll.max_user_watches).
    pub fn add(&self, connection: &Connection, token: u64) -> io::Result<()> {
        let interest = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;
        self.registry.add(connection.0.as_raw_fd(), interest, token)
    }

    /// Waits for at most `nanoseconds` (0: does not wait). Returns the number of events; 0 also if a signal has interrupted the wait.
    pub fn wait(&mut self, nanoseconds: u64) -> usize {
        self.epoll.wait_nanoseconds(nanoseconds);
        self.epoll.ready()
    }

    /// True if the last wait reported as many events as it can, so more may be waiting.
    pub fn is_full(&self) -> bool {
        self.epoll.ready() == crate::limits::CONNECTION_EVENTS
    }

    /// An event of the last wait.
    pub fn event(&self, index: usize) -> ConnectionEvent {
        let (token, bits) = self.epoll.event(index);
        let has = |wanted: i32| bits & wanted as u32 != 0;
        ConnectionEvent {
            token,
            writable: has(libc::EPOLLOUT),
            readable: has(libc::EPOLLIN | libc::EPOLLRDHUP),
            ended: has(libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR),
            over: has(libc::EPOLLHUP | libc::EPOLLERR),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    fn anywhere() -> SocketAddr {
        "127.0.0.1:0".parse().unwrap()
    }

    fn wait(waiter: &mut ConnectionWaiter, wanted: impl Fn(&ConnectionEvent) -> bool) -> ConnectionEvent {
        for _ in 0..1000 {
            let ready = waiter.wait(10_000_000);
            if let Some(event) = (0..ready).map(|index| waiter.event(index)).find(&wanted) {
                return event;
            }
        }
        panic!("the event never came");
    }

    #[test]
    fn a_connection_is_opened_used_closed_and_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut waiter = ConnectionWaiter::new().unwrap();
        let connection = Connection::open(anywhere(), listener.local_addr().unwrap()).unwrap();
        waiter.add(&connection, 7).unwrap();
        assert_eq!(wait(&mut waiter, |event| event.writable).token, 7);
        let (mut server, _) = listener.accept().unwrap();
        assert_eq!(connection.write(b"query").unwrap(), 5);
        let mut buffer = [0; 64];
        server.read_exact(&mut buffer[..5]).unwrap();
        server.write_all(b"reply").unwrap();
        wait(&mut waiter, |event| event.readable);
        assert_eq!(connection.read(&mut buffer).unwrap(), 5);
        assert_eq!(connection.read(&mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        connection.end_sending();
        assert_eq!(server.read(&mut buffer).unwrap(), 0);
        drop(server);
        wait(&mut waiter, |event| event.over);
        let info = connection.info().unwrap();
        assert!(info.is_closed && !info.syn_data_acknowledged, "{info:?}");
        // SYN, ACK, query, FIN at least; SYN-ACK, reply and FIN at least.
        assert!(info.packets_sent >= 4 && info.packets_received >= 3, "{info:?}");
        assert_eq!((info.octets_sent, info.retransmitted), (5, 0));
    }

    #[test]
    fn a_port_in_time_wait_can_be_used_again_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let mut waiter = ConnectionWaiter::new().unwrap();
        let mut from = anywhere();
        for round in 0..3 {
            let connection = Connection::open(from, server).unwrap();
            waiter.add(&connection, round).unwrap();
            wait(&mut waiter, |event| event.token == round && event.writable);
            from = connection.0.local_addr().unwrap().as_socket().unwrap();
            let (accepted, peer) = listener.accept().unwrap();
            assert_eq!(peer, from);
            // A second connection of the same two ends cannot be.
            let second = Connection::open(from, server).unwrap_err();
            assert_eq!(second.kind(), io::ErrorKind::AddrNotAvailable);
            connection.end_sending();
            drop(accepted);
            wait(&mut waiter, |event| event.token == round && event.over);
        }
    }

    #[test]
    fn a_refused_connection_has_its_error() {
        let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = match Connection::open(anywhere(), gone) {
            Err(error) => error,
            Ok(connection) => {
                let mut waiter = ConnectionWaiter::new().unwrap();
                waiter.add(&connection, 0).unwrap();
                wait(&mut waiter, |event| event.over);
                connection.error().unwrap()
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
