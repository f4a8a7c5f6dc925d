//! Equal receive buffers. Servers ask for receive buffers of different sizes, or for none, and a server with a small one loses
//! queries in each pause of the machine, however fast it is. So the sockets of every server get one size, from outside
//! ([`DeviceSocket`]), and the sizes that the kernel then reports are read again.

use datapath::laboratory::DeviceSocket;
use datapath::limits::RECEIVE_BUFFER;
use load::netlink::{self, UdpSocket};
use std::collections::BTreeMap;
use std::fs;

/// Receive buffer of each socket of every server, in octets as the kernel counts them: twice the size that is asked for.
pub const WANTED: u32 = 2 * RECEIVE_BUFFER as u32;

/// Receive buffers of the sockets of a server that listen at one port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffers {
    /// Sizes as the server made them, one for each socket, in octets.
    pub as_shipped: Vec<u32>,
    /// Sizes in the measurement, in octets.
    pub measured: Vec<u32>,
}

impl Buffers {
    /// Gives the sockets of these processes at a port the size [`WANTED`], as far as this process may, and reads it again.
    pub fn equalize(pids: &[u32], port: u16) -> Buffers {
        let before = sockets_at(port);
        let places = descriptors(pids);
        for socket in before.iter().filter(|socket| socket.receive_buffer != WANTED) {
            // Without the permission the buffer stays as it is, which is told.
            if let Some(taken) = places
                .get(&socket.inode)
                .and_then(|(pid, descriptor)| DeviceSocket::take(*pid, *descriptor).ok())
            {
                taken.raise_receive_buffer();
            }
        }
        let sizes = |sockets: &[UdpSocket]| sockets.iter().map(|socket| socket.receive_buffer).collect();
        Buffers { as_shipped: sizes(&before), measured: sizes(&sockets_at(port)) }
    }
}

/// Datagrams that the sockets at a port of this host dropped so far.
pub fn drops(port: u16) -> u64 {
    sockets_at(port).iter().map(|socket| u64::from(socket.drops)).sum()
}

/// The UDP sockets at a port. A kernel without sock_diag tells none.
fn sockets_at(port: u16) -> Vec<UdpSocket> {
    let all = netlink::udp_sockets().unwrap_or_default();
    all.into_iter().filter(|socket| !socket.is_connected && socket.local.port() == port).collect()
}

/// A process and a descriptor for each socket of these processes, by inode.
fn descriptors(pids: &[u32]) -> BTreeMap<u32, (u32, i32)> {
    let mut places = BTreeMap::new();
    for pid in pids {
        for entry in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
            let target = fs::read_link(entry.path()).unwrap_or_default();
            let inode = target.to_str().and_then(|text| text.strip_prefix("socket:[")?.strip_suffix(']'));
            let inode = inode.and_then(|text| text.parse().ok());
            let descriptor = entry.file_name().to_str().and_then(|text| text.parse().ok());
            if let (Some(inode), Some(descriptor)) = (inode, descriptor) {
                places.insert(inode, (*pid, descriptor));
            }
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net;

    #[test]
    fn the_sockets_of_a_port_get_one_size_and_their_drops_are_counted() {
        let socket = net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let sender = net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(drops(port), 0);
        // More than the usual buffer of 212,992 octets holds.
        let sent: u64 =
            (0..2000).map(|_| u64::from(sender.send_to(&[0; 1000], ("127.0.0.1", port)).is_ok())).sum();
        socket.set_nonblocking(true).unwrap();
        let mut octets = [0; 1024];
        let read = std::iter::from_fn(|| socket.recv(&mut octets).ok()).count() as u64;
        assert_eq!(drops(port), sent - read);
        let buffers = Buffers::equalize(&[std::process::id()], port);
        assert_eq!((buffers.as_shipped.len(), buffers.measured.len()), (1, 1));
        assert!(buffers.measured[0] >= buffers.as_shipped[0], "{buffers:?}");
        assert_eq!(Buffers::equalize(&[], 1), Buffers::default());
    }
}
