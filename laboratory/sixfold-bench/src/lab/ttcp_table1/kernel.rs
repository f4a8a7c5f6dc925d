//! Questions by the sockets of the kernel.

use crate::lab::kernel_fast_open;
use papers::dns::frame;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, sendto, socket_with, sockopt};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

/// Wait for an answer: no packet is lost, so only a machine that stands still needs it.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// A socket for all questions.
///
/// # Errors
///
/// The error of bind(2) or connect(2): the network is unreachable.
pub fn udp(server: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(("0.0.0.0", 0))?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    Ok(socket)
}

/// Asks over UDP.
///
/// # Errors
///
/// The error of send(2) or recv(2). `WouldBlock`: no answer within [`ANSWER_TIMEOUT`].
pub fn ask_datagram(socket: &UdpSocket, question: &[u8]) -> io::Result<Vec<u8>> {
    socket.send(question)?;
    let mut answer = vec![0; 4096];
    let octets = socket.recv(&mut answer)?;
    answer.truncate(octets);
    Ok(answer)
}

/// A connection to the server.
///
/// # Errors
///
/// The error of connect(2): the server refuses, or does not answer within [`ANSWER_TIMEOUT`].
pub fn connect(server: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&server, ANSWER_TIMEOUT)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    Ok(stream)
}

/// Asks on a connection.
///
/// # Errors
///
/// The question is too long for a stream, or the error of send(2) or recv(2). `UnexpectedEof`: the server has closed the connection.
pub fn ask_stream(stream: &mut TcpStream, question: &[u8]) -> io::Result<Vec<u8>> {
    stream.write_all(&framed(question)?)?;
    read_answer(stream)
}

/// Asks on a connection of its own with Fast Open (RFC 7413).
///
/// # Errors
///
/// As [`ask_stream`], or the error of sendto(2): net.ipv4.tcp_fastopen does not let clients use Fast Open.
pub fn ask_by_fast_open(server: SocketAddr, question: &[u8]) -> io::Result<Vec<u8>> {
    let socket =
        socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, Some(ipproto::TCP))?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    let octets = framed(question)?;
    let sent = sendto(&socket, &octets, kernel_fast_open::SEND | SendFlags::NOSIGNAL, &server)?;
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.write_all(&octets[sent..])?;
    read_answer(&mut stream)
}

/// The question behind its length.
fn framed(question: &[u8]) -> io::Result<Vec<u8>> {
    frame(question).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// The next answer, without its length.
fn read_answer(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}
