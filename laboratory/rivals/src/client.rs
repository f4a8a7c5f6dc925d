//! Sockets of the client. Many queries leave in one send call, which the kernel cuts into datagrams of equal size (UDP
//! segmentation offload), because the tester must offer several times the rate that a device can answer.

use crate::limits;
use crate::names::{self, QUERY};
use socket2::{MsgHdr, SockRef};
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::ops::Range;

/// Size of the one control message: header 16, segment size 2, padding to 24.
const CONTROL: usize = 24;

/// Sockets with a random port each, connected to the device.
pub struct Client {
    sockets: Vec<UdpSocket>,
    /// Socket that sent last, and the one that is read next.
    turn: usize,
    next_read: usize,
    control: [u8; CONTROL],
    questions: [u8; limits::SEGMENTS * QUERY],
}

impl Client {
    /// Returns a client with this number of source ports.
    ///
    /// # Errors
    ///
    /// As [`Client::bound`].
    pub fn new(server: SocketAddr, ports: usize) -> io::Result<Client> {
        Client::bound(server, &vec![IpAddr::from(Ipv6Addr::LOCALHOST); ports.max(1)])
    }

    /// Returns a client with a port on each of these addresses.
    ///
    /// # Errors
    ///
    /// A socket cannot be made, bound to its address, or connected to the server.
    pub fn bound(server: SocketAddr, sources: &[IpAddr]) -> io::Result<Client> {
        let sockets = sources.iter().map(|&source| socket(source, server)).collect::<io::Result<_>>()?;
        Ok(Client { sockets, turn: 0, next_read: 0, control: segment_size(QUERY as u16), questions: [0; _] })
    }

    /// Sends at most [`limits::SEGMENTS`] queries from the next port, for new names.
    pub fn send(&mut self, sequences: Range<u64>) {
        self.send_written(sequences, names::write_query);
    }

    /// Sends at most [`limits::SEGMENTS`] queries from the next port. `write` writes each of them, of [`QUERY`] octets.
    pub fn send_written(&mut self, sequences: Range<u64>, write: impl Fn(u64, &mut [u8])) {
        let mut length = 0;
        for (sequence, question) in sequences.zip(self.questions.chunks_exact_mut(QUERY)) {
            write(sequence, question);
            length += QUERY;
        }
        self.turn = (self.turn + 1) % self.sockets.len();
        let buffers = [IoSlice::new(&self.questions[..length])];
        let message = MsgHdr::new().with_buffers(&buffers).with_control(&self.control);
        let socket = SockRef::from(&self.sockets[self.turn]);
        // The first failure may be an ICMP error for an earlier datagram (the device is not up yet).
        let _ = socket.sendmsg(&message, 0).or_else(|_| socket.sendmsg(&message, 0));
    }

    /// The port that sends next.
    pub fn next_port(&self) -> usize {
        (self.turn + 1) % self.sockets.len()
    }

    /// Passes on the messages that have arrived, and returns their number.
    pub fn receive(&mut self, mut take: impl FnMut(&[u8])) -> usize {
        self.receive_from(|_, message| take(message))
    }

    /// Passes on the messages that have arrived, with the port of each, and returns their number. Of more than
    /// [`limits::SOCKETS_PER_TURN`] ports, as many are read in each call.
    pub fn receive_from(&mut self, mut take: impl FnMut(usize, &[u8])) -> usize {
        let mut buffer = [0; 2048];
        let mut received = 0;
        for _ in 0..self.sockets.len().min(limits::SOCKETS_PER_TURN) {
            let port = self.next_read;
            let socket = &self.sockets[port];
            self.next_read = (port + 1) % self.sockets.len();
            for _ in 0..limits::DRAIN {
                match socket.recv(&mut buffer) {
                    Ok(length) => take(port, &buffer[..length]),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(_) => continue,
                }
                received += 1;
            }
        }
        received
    }
}

fn socket(source: IpAddr, server: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((source, 0))?;
    socket.connect(server)?;
    socket.set_nonblocking(true)?;
    SockRef::from(&socket).set_recv_buffer_size(limits::SOCKET_BUFFER)?;
    SockRef::from(&socket).set_send_buffer_size(limits::SOCKET_BUFFER)?;
    Ok(socket)
}

/// The control message `UDP_SEGMENT` (udp(7)): `cmsg_len`, `cmsg_level`, `cmsg_type`, and the size.
fn segment_size(size: u16) -> [u8; CONTROL] {
    let mut control = [0; CONTROL];
    control[..8].copy_from_slice(&18usize.to_ne_bytes());
    control[8..12].copy_from_slice(&libc::SOL_UDP.to_ne_bytes());
    control[12..16].copy_from_slice(&libc::UDP_SEGMENT.to_ne_bytes());
    control[16..18].copy_from_slice(&size.to_ne_bytes());
    control
}
