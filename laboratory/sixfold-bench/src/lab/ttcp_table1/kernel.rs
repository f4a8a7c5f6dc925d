//! Questions by the sockets of the kernel, beside those of [`exchange`].

use crate::exchange;
use crate::lab::kernel_fast_open;
use papers::dns::frame;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, sendto, socket_with, sockopt};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

/// Wait for an answer: no packet is lost, so only a machine that stands still needs it.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Asks on a connection of its own with Fast Open (RFC 7413).
///
/// # Errors
///
/// The question is too long for a stream, the error of send(2) or recv(2), or the error of sendto(2): net.ipv4.tcp_fastopen does not let clients use Fast Open.
pub fn ask_by_fast_open(server: SocketAddr, question: &[u8]) -> io::Result<Vec<u8>> {
    let socket =
        socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, Some(ipproto::TCP))?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    let octets = frame(question).ok_or(io::ErrorKind::InvalidInput)?;
    let sent = sendto(&socket, &octets, kernel_fast_open::SEND | SendFlags::NOSIGNAL, &server)?;
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.write_all(&octets[sent..])?;
    exchange::read_message(&mut stream)
}

/// Asks over UDP, and takes the first reply.
///
/// # Errors
///
/// The error of send(2) or recv(2). `TimedOut`: no answer within [`ANSWER_TIMEOUT`].
pub fn ask_datagram(socket: &UdpSocket, question: &[u8]) -> io::Result<Vec<u8>> {
    exchange::ask(socket, question, ANSWER_TIMEOUT, |_| true)?.ok_or_else(|| io::ErrorKind::TimedOut.into())
}
