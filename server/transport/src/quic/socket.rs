//! The UDP sockets under QUIC. They count the datagrams that QUIC ignores, and stop reading once a successor of this process reads the
//! same sockets.

use crate::counters::Counter;
use crate::limits;
use crate::quic::error::Error;
use crate::quic::settings::VERSION;
use crate::shared::Shared;
use crate::socket::new_socket;
use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, ConnectionId, ConnectionIdGenerator, Runtime, TokioRuntime, UdpPoller};
use quinn_proto::HashedConnectionIdGenerator;
use socket2::{Socket, Type};
use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

/// Octets of the connection IDs of this server: the length of [`HashedConnectionIdGenerator`].
const CONNECTION_ID_OCTETS: usize = 8;

/// Octets of the smallest datagram with the first packet of a client (RFC 9000 section 14.1).
const FIRST_DATAGRAM_OCTETS: usize = 1200;

/// Binds UDP sockets. `given` are sockets of these addresses that exist already: they are used instead.
/// `freebind`: addresses may be bound that no interface has yet.
///
/// # Errors
///
/// `Error::Socket` with the first address that cannot be used, and the error of socket(2), of a socket option or of bind(2).
pub(crate) fn bind(
    listen: &[SocketAddr],
    mut given: Vec<UdpSocket>,
    freebind: bool,
) -> Result<Vec<UdpSocket>, Error> {
    let sockets = listen.iter().map(|&address| {
        let is_here = |one: &UdpSocket| one.local_addr().is_ok_and(|local| local == address);
        match given.iter().position(is_here) {
            Some(place) => with_buffers(given.swap_remove(place).into()),
            None => bind_one(address, freebind),
        }
        .map_err(|error| Error::Socket(address, error))
    });
    sockets.collect()
}

fn bind_one(address: SocketAddr, freebind: bool) -> io::Result<UdpSocket> {
    let socket = new_socket(address, Type::DGRAM, freebind)?;
    socket.bind(&address.into())?;
    with_buffers(socket)
}

fn with_buffers(socket: Socket) -> io::Result<UdpSocket> {
    socket.set_recv_buffer_size(limits::QUIC_RECEIVE_BUFFER_OCTETS)?;
    socket.set_send_buffer_size(limits::QUIC_SEND_BUFFER_OCTETS)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// A UDP socket as quinn sees it.
pub(crate) struct QuicSocket {
    socket: Arc<dyn AsyncUdpSocket>,
    connection_ids: HashedConnectionIdGenerator,
    shared: Arc<Shared>,
    is_read: AtomicBool,
}

impl QuicSocket {
    /// Gives a socket to the runtime. It is read at once.
    ///
    /// # Errors
    ///
    /// The error of a socket option or of epoll_ctl(2): the process may have no more open files, or memory.
    pub(crate) fn new(
        socket: UdpSocket,
        connection_ids: HashedConnectionIdGenerator,
        shared: Arc<Shared>,
    ) -> io::Result<QuicSocket> {
        let socket = TokioRuntime.wrap_udp_socket(socket)?;
        Ok(QuicSocket { socket, connection_ids, shared, is_read: AtomicBool::new(true) })
    }

    /// Leaves the datagrams that arrive from now on to another process. The socket still sends.
    pub(crate) fn stop_reading(&self) {
        self.is_read.store(false, Ordering::Relaxed);
    }

    /// Counts a datagram if quinn will ignore it.
    fn inspect(&self, datagram: &[u8]) {
        let counter = match kind(datagram) {
            Kind::Other => Counter::QuicNoQuic,
            Kind::ShortHeader(id) if self.connection_ids.validate(&ConnectionId::new(id)).is_err() => {
                Counter::QuicNoConnection
            }
            _ => return,
        };
        self.shared.counters.count(counter);
    }
}

/// A datagram by its first packet.
#[derive(Debug, PartialEq, Eq)]
enum Kind<'d> {
    /// A packet of a handshake, or of another version in a datagram that could begin a connection: quinn answers that with the version.
    LongHeader,
    /// A packet with this destination connection ID.
    ShortHeader(&'d [u8]),
    /// Anything else, for example a query without QUIC.
    Other,
}

/// The kind of a datagram (RFC 9000 sections 17.2 and 17.3).
fn kind(datagram: &[u8]) -> Kind<'_> {
    const LONG: u8 = 0x80;
    const FIXED: u8 = 0x40;
    let Some((&first, rest)) = datagram.split_first() else { return Kind::Other };
    if first & LONG == 0 {
        let id = rest.get(..CONNECTION_ID_OCTETS).filter(|_| first & FIXED != 0);
        return id.map_or(Kind::Other, Kind::ShortHeader);
    }
    match rest.first_chunk() {
        Some(version) if u32::from_be_bytes(*version) == VERSION && first & FIXED != 0 => Kind::LongHeader,
        Some(_) if datagram.len() >= FIRST_DATAGRAM_OCTETS => Kind::LongHeader,
        _ => Kind::Other,
    }
}

impl AsyncUdpSocket for QuicSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        self.socket.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit) -> io::Result<()> {
        self.socket.try_send(transmit)
    }

    fn poll_recv(
        &self,
        context: &mut Context,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        if !self.is_read.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        let received = self.socket.poll_recv(context, buffers, meta);
        if let Poll::Ready(Ok(messages)) = received {
            for (buffer, meta) in buffers.iter().zip(&*meta).take(messages) {
                // With GRO a buffer holds several datagrams of one sender.
                buffer[..meta.len].chunks(meta.stride.max(1)).for_each(|datagram| self.inspect(datagram));
            }
        }
        received
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.socket.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.socket.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }
}

impl fmt::Debug for QuicSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicSocket").field("socket", &self.socket).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_are_told_apart_by_their_first_packet() {
        let initial = [&[0xc3, 0, 0, 0, 1][..], &[8; 1195]].concat();
        let draft = [&[0xc3, 0xff, 0, 0, 29][..], &[8; 1195]].concat();
        assert_eq!(kind(&initial), Kind::LongHeader);
        assert_eq!(kind(&draft), Kind::LongHeader);
        assert_eq!(kind(&draft[..1199]), Kind::Other);
        assert_eq!(kind(b"\x40abcdefghijkl"), Kind::ShortHeader(b"abcdefgh"));
        // Too short for a connection ID; the fixed bit is missing; an empty datagram.
        for other in [&b"\x40abcdefg"[..], b"\x00abcdefghijkl", b"\x80\x00\x00\x00\x01abcdefgh", b""] {
            assert_eq!(kind(other), Kind::Other, "{other:?}");
        }
    }

    #[test]
    fn a_given_socket_takes_the_place_of_its_address() {
        let given = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = given.local_addr().unwrap();
        let sockets = bind(&[address, "127.0.0.1:0".parse().unwrap()], vec![given], false).unwrap();
        assert_eq!(sockets[0].local_addr().unwrap(), address);
        assert_eq!(sockets.len(), 2);
        let error = bind(&[address], Vec::new(), false).unwrap_err();
        assert!(error.to_string().contains(&address.to_string()) && error.to_string().contains("ss -lunp"));
    }
}
