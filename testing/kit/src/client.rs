//! A false client: queries over UDP and TCP, and the messages that come back.

use crate::message::{framed, read_frame};
use crate::wait::TIMEOUT;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

/// The unspecified address of a server's family.
pub fn unspecified(server: SocketAddr) -> IpAddr {
    if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}

/// A socket that is connected to a server. It waits for [`TIMEOUT`] at most.
///
/// # Panics
///
/// If this machine lacks the address.
#[track_caller]
pub fn udp(own: IpAddr, server: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind((own, 0)).expect("an address of this machine");
    socket.connect(server).expect("a way to the server");
    socket.set_read_timeout(Some(TIMEOUT)).expect("a time above zero");
    socket
}

/// The next message; none if nothing arrives in time, or if the server has ended.
///
/// # Panics
///
/// On any other error.
#[track_caller]
pub fn receive(socket: &UdpSocket, within: Duration) -> Option<Vec<u8>> {
    socket.set_read_timeout(Some(within)).expect("a time above zero");
    let mut buffer = vec![0; 65_536];
    loop {
        match socket.recv(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Some(buffer);
            }
            // The process was stopped for a while (signal(7)).
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // The server has ended: the kernel reports that to a sender.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused) => {
                return None;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Sends a query, and waits for the message that comes back.
///
/// # Panics
///
/// If none comes within [`TIMEOUT`].
#[track_caller]
pub fn ask(socket: &UdpSocket, query: &[u8]) -> Vec<u8> {
    socket.send(query).expect("a socket that sends");
    receive(socket, TIMEOUT).expect("an answer")
}

/// A connection to a server. It waits for [`TIMEOUT`] at most.
///
/// # Panics
///
/// If the server does not take it.
#[track_caller]
pub fn tcp(server: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&server, TIMEOUT).expect("a server that takes connections");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a time above zero");
    stream
}

/// Sends a query over a connection, and waits for the message that comes back.
///
/// # Panics
///
/// If none comes.
#[track_caller]
pub fn ask_stream(stream: &mut (impl Read + Write), query: &[u8]) -> Vec<u8> {
    stream.write_all(&framed(query)).and_then(|()| stream.flush()).expect("a connection");
    read_frame(stream).expect("an answer")
}
