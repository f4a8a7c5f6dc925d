//! The real UDP sockets of a server: their receive buffers, which decide how long a pause of the server may be before it loses
//! queries. They are read over sock_diag(7) and found by the descriptors in `/proc/PID/fd`.
//!
//! Not every server has a setting for its receive buffer, and the kernel cuts the size that a server asks for to
//! `net.core.rmem_max` unless the server insists as root. So the buffers of listening sockets that are smaller than that of the
//! other servers are raised from outside ([`DeviceSocket`]).

use crate::usage::Usage;
use datapath::laboratory::DeviceSocket;
use datapath::limits::RECEIVE_BUFFER;
use load::netlink::{self, UdpSocket};
use measure::run::Participant;
use std::collections::BTreeMap;
use std::fs;

/// Receive buffer of the listening sockets of every server, in octets as the kernel counts them.
pub const WANTED: u32 = 2 * RECEIVE_BUFFER as u32;

/// Reads the sockets of these processes; those at `port` receive queries. `raise`: gives these sockets a receive buffer of
/// [`WANTED`], as far as this process may.
pub fn read(pids: &[u32], port: u16, raise: bool) -> Participant {
    let usage = Usage::read(pids);
    let cores: Vec<String> = usage.allowed_cores().iter().map(u16::to_string).collect();
    let mut found = Participant {
        threads: usage.processes.iter().map(|process| process.threads.len() as u32).sum(),
        cores: cores.join(","),
        ..Participant::default()
    };
    for (socket, (pid, descriptor)) in sockets_of(pids) {
        if socket.is_connected || socket.local.port() != port {
            found.other_sockets += 1;
            found.other_receive_buffer = widened(found.other_receive_buffer, socket.receive_buffer);
            continue;
        }
        let mut receive_buffer = socket.receive_buffer;
        // Without the permission, buffer and offload stay as they are.
        if let Ok(taken) = DeviceSocket::take(pid, descriptor) {
            if raise && receive_buffer < WANTED {
                receive_buffer = taken.raise_receive_buffer();
                found.raised += u32::from(receive_buffer > socket.receive_buffer);
            }
            found.coalescing = Some(found.coalescing == Some(true) || taken.is_coalescing());
        }
        found.sockets += 1;
        found.receive_buffer = widened(found.receive_buffer, receive_buffer);
    }
    found
}

/// The sockets of these processes that listen at `port`.
pub fn listening(pids: &[u32], port: u16) -> Vec<UdpSocket> {
    let sockets = sockets_of(pids).into_iter().map(|(socket, _)| socket);
    sockets.filter(|socket| !socket.is_connected && socket.local.port() == port).collect()
}

/// Datagrams that the sockets of these processes at `port` dropped so far, because their receive buffers were full.
pub fn drops(pids: &[u32], port: u16) -> u64 {
    listening(pids, port).iter().map(|socket| u64::from(socket.drops)).sum()
}

/// The UDP sockets of these processes, each once, with a process and a descriptor that lead to it.
fn sockets_of(pids: &[u32]) -> Vec<(UdpSocket, (u32, i32))> {
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
    // A kernel without sock_diag knows no sockets, and the record says nothing about them.
    let all = netlink::udp_sockets().unwrap_or_default();
    all.into_iter().filter_map(|socket| Some((socket, *places.get(&socket.inode)?))).collect()
}

/// The range with one value more. A range that begins with 0 is empty.
fn widened((low, high): (u64, u64), value: u32) -> (u64, u64) {
    let value = u64::from(value);
    (if low == 0 { value } else { low.min(value) }, high.max(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::sockopt::{set_socket_recv_buffer_size, socket_recv_buffer_size};
    use std::net;

    #[test]
    fn the_buffers_of_a_process_are_told_and_raised() {
        let small = net::UdpSocket::bind("127.0.0.1:0").unwrap();
        set_socket_recv_buffer_size(&small, 10_000).unwrap();
        let port = small.local_addr().unwrap().port();
        let me = [std::process::id()];
        let found = read(&me, port, false);
        assert_eq!((found.sockets, found.receive_buffer, found.raised), (1, (20_000, 20_000), 0));
        assert!(found.threads > 0 && !found.cores.is_empty(), "{found:?}");
        let towards = net::UdpSocket::bind("127.0.0.1:0").unwrap();
        set_socket_recv_buffer_size(&towards, 5_000).unwrap();
        towards.connect(small.local_addr().unwrap()).unwrap();
        let found = read(&me, port, true);
        assert!(found.other_sockets >= 1 && found.other_receive_buffer.0 <= 10_000, "{found:?}");
        let after = socket_recv_buffer_size(&small).unwrap() as u64;
        assert_eq!(found.receive_buffer, (after, after));
        // Only a sandbox forbids it.
        assert!(found.coalescing.is_none() || (found.raised == 1 && after > 20_000), "{found:?}");
        assert_eq!(socket_recv_buffer_size(&towards).unwrap(), 10_000, "only listening sockets change");
    }

    #[test]
    fn drops_are_those_of_full_buffers() {
        let receiver = net::UdpSocket::bind("127.0.0.1:0").unwrap();
        set_socket_recv_buffer_size(&receiver, 1).unwrap();
        let address = receiver.local_addr().unwrap();
        let sender = net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let me = [std::process::id()];
        assert_eq!(drops(&me, address.port()), 0);
        let sent = (0..100).map(|_| u64::from(sender.send_to(&[0; 500], address).is_ok())).sum::<u64>();
        receiver.set_nonblocking(true).unwrap();
        let mut octets = [0; 512];
        let read = std::iter::from_fn(|| receiver.recv(&mut octets).ok()).count() as u64;
        assert!(read < sent);
        assert_eq!(drops(&me, address.port()), sent - read);
    }
}
