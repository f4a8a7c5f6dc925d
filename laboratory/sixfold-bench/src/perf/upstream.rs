//! The authoritative server to which the devices forward: the zone with computed answers, over one socket, served from
//! the tester's loop.

use crate::perf::limits;
use crate::perf::names::ZONE;
use authority::Zone;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use std::io;
use std::net::{SocketAddr, UdpSocket};

/// First of the names that it never answers, in the order of addresses: those of 111.0.0.0/8.
pub const SILENT: u64 = 110 << 24;
const SILENT_LABEL: &[u8] = b"\x0f111-";

/// Highest size of a UDP answer; the answers here have about a hundred octets.
const SIZE: usize = 1232;

/// The zone `dns64perf.test` at a port of the loopback interface: every name has one A record and no AAAA, but for some that are
/// never answered.
pub struct Upstream {
    socket: UdpSocket,
    address: SocketAddr,
    zone: Zone,
}

impl Upstream {
    /// Binds a free port.
    ///
    /// # Errors
    ///
    /// The loopback interface has no IPv6, no port is free, or a buffer cannot be set.
    pub fn new() -> io::Result<Upstream> {
        let socket = UdpSocket::bind("[::1]:0")?;
        socket.set_nonblocking(true)?;
        set_socket_recv_buffer_size(&socket, limits::SOCKET_BUFFER)?;
        set_socket_send_buffer_size(&socket, limits::SOCKET_BUFFER)?;
        let zone = Zone::new(ZONE).map_err(io::Error::other)?;
        Ok(Upstream { address: socket.local_addr()?, socket, zone })
    }

    /// Address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers the queries that have arrived, and returns their number.
    pub fn serve(&mut self) -> usize {
        let (mut query, mut answer) = ([0; 2048], [0; SIZE]);
        for served in 0..limits::DRAIN {
            // No query, or an ICMP error of a device that has ended.
            let Ok((length, from)) = self.socket.recv_from(&mut query) else { return served };
            if query[..length].get(12..).is_some_and(|name| name.starts_with(SILENT_LABEL)) {
                continue;
            }
            if let Some(length) = self.zone.answer(&query[..length], SIZE, &mut answer) {
                // An answer that does not fit the buffer of the device is lost, as on any network.
                let _ = self.socket.send_to(&answer[..length], from);
            }
        }
        limits::DRAIN
    }
}
