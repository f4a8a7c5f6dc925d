//! The real UDP sockets of a server: their receive buffers, which decide how long a pause of the server may be before it loses
//! queries. They are read and raised from outside ([`device_sockets`]).

use crate::usage::Usage;
use load::sockets::device_sockets;
use measure::run::Participant;

pub use load::sockets::device_sockets::{WANTED, listening};

/// Reads the sockets of these processes; those at `port` receive queries. `raise`: gives these sockets a receive buffer of
/// [`WANTED`], as far as this process may.
pub fn read(pids: &[u32], port: u16, raise: bool) -> Participant {
    let usage = Usage::read(pids);
    let cores: Vec<String> = usage.allowed_cores().iter().map(u16::to_string).collect();
    let mut found = Participant {
        threads: usage.processes.iter().map(|process| process.threads.len() as u32).sum(),
        cores: cores.join(","),
        raised: if raise { device_sockets::equalize(pids, port) } else { 0 },
        ..Participant::default()
    };
    for of_process in device_sockets::of(pids) {
        let receive_buffer = of_process.socket.receive_buffer;
        if !of_process.listens_at(port) {
            found.other_sockets += 1;
            found.other_receive_buffer = widened(found.other_receive_buffer, receive_buffer);
            continue;
        }
        // Without the permission, it is unknown.
        if let Ok(taken) = of_process.take() {
            found.coalescing = Some(found.coalescing == Some(true) || taken.is_coalescing());
        }
        found.sockets += 1;
        found.receive_buffer = widened(found.receive_buffer, receive_buffer);
    }
    found
}

/// The warning about a device whose listening sockets have a smaller receive buffer than [`WANTED`] although they were to be raised.
pub fn warning_of_small_buffer(found: &Participant) -> Option<String> {
    let (smallest, _) = found.receive_buffer;
    let is_small = found.sockets > 0 && smallest < u64::from(WANTED);
    is_small.then(|| {
        format!(
            "the receive buffer of the device has {smallest} octets, not {WANTED} as that of other servers: run as root, or `sysctl \
             net.core.rmem_max={}`",
            WANTED / 2
        )
    })
}

/// Datagrams that the sockets of these processes at `port` dropped so far, because their receive buffers were full.
pub fn drops(pids: &[u32], port: u16) -> u64 {
    listening(pids, port).iter().map(|socket| u64::from(socket.drops)).sum()
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
