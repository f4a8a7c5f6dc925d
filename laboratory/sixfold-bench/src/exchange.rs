//! One query and its reply over the sockets of the kernel, for clients that ask now and then.

use papers::dns::frame;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// Octets of the longest reply over UDP that is read.
const DATAGRAM: usize = 4096;

/// A UDP socket with a new port of the loopback or of any address, connected to a server.
///
/// # Errors
///
/// The error of bind(2) or connect(2): the network is unreachable.
pub fn socket_to(server: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = if server.is_ipv4() { ([0; 4], 0).into() } else { ([0; 16], 0).into() };
    let socket = UdpSocket::bind(any)?;
    socket.connect(server)?;
    Ok(socket)
}

/// Sends a query and waits for a reply that `is_right` takes. None: there was none in time.
///
/// # Errors
///
/// The error of send(2) or recv(2): no process listens at the port of the server.
pub fn ask(
    socket: &UdpSocket,
    query: &[u8],
    limit: Duration,
    mut is_right: impl FnMut(&[u8]) -> bool,
) -> io::Result<Option<Vec<u8>>> {
    socket.send(query)?;
    let end = Instant::now() + limit;
    let mut buffer = [0; DATAGRAM];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        socket.set_read_timeout(Some(left))?;
        match socket.recv(&mut buffer) {
            Ok(length) if is_right(&buffer[..length]) => return Ok(Some(buffer[..length].to_vec())),
            Ok(_) => {}
            Err(error) if is_no_datagram(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

/// True if no datagram came in time.
pub fn is_no_datagram(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Connects to a server, for one query at a time, each answered within `limit`.
///
/// # Errors
///
/// The error of connect(2): the server refuses, or does not answer within `limit`.
pub fn connect(server: SocketAddr, limit: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&server, limit)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(limit))?;
    stream.set_write_timeout(Some(limit))?;
    Ok(stream)
}

/// Asks on a connection.
///
/// # Errors
///
/// The query is too long for a stream, or as [`read_message`].
pub fn ask_on(stream: &mut TcpStream, query: &[u8]) -> io::Result<Vec<u8>> {
    stream.write_all(&frame(query).ok_or(ErrorKind::InvalidInput)?)?;
    read_message(stream)
}

/// The next message of a stream, without its length (RFC 1035 section 4.2.2).
///
/// # Errors
///
/// The error of recv(2). `UnexpectedEof`: the other end has closed the connection.
pub fn read_message(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut message)?;
    Ok(message)
}
