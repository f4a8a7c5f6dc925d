//! The UDP sockets of a device: the kernel lists them (sock_diag(7)), and the descriptors in `/proc/PID/fd` tell whose they are.
//!
//! The receive buffer decides how long a pause a server survives without losing a query. Not every server has a setting for it, and the
//! kernel cuts the size that a server asks for to `net.core.rmem_max` unless the server insists as root. So those who compare servers give
//! the listening sockets of all of them one size from outside ([`DeviceSocket`]).

use super::DeviceSocket;
use super::netlink::{UdpSocket, udp_sockets};
use datapath::limits::RECEIVE_BUFFER;
use std::collections::BTreeMap;
use std::fs;
use std::io;

/// Receive buffer of the listening sockets of every server, in octets as the kernel counts them: twice the size that a program asks for.
pub const WANTED: u32 = 2 * RECEIVE_BUFFER as u32;

/// A UDP socket of a process.
#[derive(Clone, Copy, Debug)]
pub struct ProcessSocket {
    /// The kernel's account of it.
    pub socket: UdpSocket,
    /// A process and a descriptor that lead to it.
    place: (u32, i32),
}

impl ProcessSocket {
    /// True if it receives queries at this port.
    pub fn listens_at(&self, port: u16) -> bool {
        self.socket.peer_port.is_none() && self.socket.local.port() == port
    }

    /// Duplicates it, as far as this process may.
    ///
    /// # Errors
    ///
    /// The error of pidfd_open(2) or pidfd_getfd(2): the process has ended, has closed the socket, or may not be traced by this one.
    pub fn take(&self) -> io::Result<DeviceSocket> {
        let (pid, descriptor) = self.place;
        DeviceSocket::take(pid, descriptor)
    }
}

/// The UDP sockets of these processes, each once. A kernel without sock_diag tells of none.
pub fn of(pids: &[u32]) -> Vec<ProcessSocket> {
    let mut places = BTreeMap::new();
    for pid in pids {
        for entry in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
            let target = fs::read_link(entry.path()).unwrap_or_default();
            let inode = target.to_str().and_then(|text| text.strip_prefix("socket:[")?.strip_suffix(']'));
            let inode = inode.and_then(|text| text.parse::<u32>().ok());
            let descriptor = entry.file_name().to_str().and_then(|text| text.parse::<i32>().ok());
            if let (Some(inode), Some(descriptor)) = (inode, descriptor) {
                places.insert(inode, (*pid, descriptor));
            }
        }
    }
    let all = udp_sockets().unwrap_or_default();
    let of_places =
        |socket: UdpSocket| places.get(&socket.inode).map(|place| ProcessSocket { socket, place: *place });
    all.into_iter().filter_map(of_places).collect()
}

/// The sockets of these processes that receive queries at a port.
pub fn listening(pids: &[u32], port: u16) -> Vec<UdpSocket> {
    of(pids).into_iter().filter(|found| found.listens_at(port)).map(|found| found.socket).collect()
}

/// True if a UDP socket of any process is bound to the port. A kernel without sock_diag tells of none.
pub fn is_bound(port: u16) -> bool {
    udp_sockets().unwrap_or_default().iter().any(|socket| socket.local.port() == port)
}

/// Gives the sockets of these processes that receive queries at a port a receive buffer of [`WANTED`], as far as this process may.
/// Returns the number of those that have a larger one now.
pub fn equalize(pids: &[u32], port: u16) -> u32 {
    let small = |found: &ProcessSocket| found.listens_at(port) && found.socket.receive_buffer < WANTED;
    let raise = |found: ProcessSocket| {
        // Without the permission, the buffer stays as it is.
        let raised = found.take().map_or(0, |taken| taken.raise_receive_buffer());
        u32::from(raised > found.socket.receive_buffer)
    };
    of(pids).into_iter().filter(small).map(raise).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::SockRef;
    use std::net;

    #[test]
    fn a_bound_port_is_seen_over_both_families() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let socket = net::UdpSocket::bind(address).unwrap();
            assert!(is_bound(socket.local_addr().unwrap().port()), "{address}");
        }
        // Nobody can have it.
        assert!(!is_bound(0));
    }

    #[test]
    fn the_listening_sockets_of_a_process_get_one_size_and_the_others_stay() {
        let small = net::UdpSocket::bind("127.0.0.1:0").unwrap();
        SockRef::from(&small).set_recv_buffer_size(10_000).unwrap();
        let port = small.local_addr().unwrap().port();
        let towards = net::UdpSocket::bind("127.0.0.1:0").unwrap();
        SockRef::from(&towards).set_recv_buffer_size(5_000).unwrap();
        towards.connect(small.local_addr().unwrap()).unwrap();
        let me = [std::process::id()];
        assert_eq!(listening(&me, port).iter().map(|it| it.receive_buffer).collect::<Vec<_>>(), [20_000]);
        let found = of(&me).into_iter().find(|found| found.listens_at(port)).unwrap();
        if let Err(error) = found.take() {
            return eprintln!("this sandbox does not permit pidfd_getfd: {error}");
        }
        assert_eq!(equalize(&me, port), 1);
        assert!(listening(&me, port)[0].receive_buffer > 20_000);
        assert_eq!(SockRef::from(&towards).recv_buffer_size().unwrap(), 10_000, "it is connected");
        assert_eq!((listening(&me, 0).len(), listening(&[], port).len(), equalize(&[], port)), (0, 0, 0));
    }
}
