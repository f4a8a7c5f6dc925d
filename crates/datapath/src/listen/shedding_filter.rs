//! The socket filter that carries out fair shedding: a classic BPF program, which needs no privilege, that drops a part of the
//! datagrams of some networks. It runs where the kernel would queue the datagram. So a dropped datagram costs no room in the
//! queue, no system call and none of the worker's time.

use crate::listen::fair_shedding::ShedNetwork;
use crate::socket::syscalls::{check, set_option};
use std::io;
use std::mem::size_of;
use std::os::fd::RawFd;

/// Offset of the source address in the network header (RFC 8200 section 3, RFC 791 section 3.1).
const SOURCE6: u32 = 8;
const SOURCE4: u32 = 12;

/// The BPF program: accepts all datagrams, but of the given networks only their share, chosen at random.
fn program(shed: &[ShedNetwork], ipv6: bool) -> Vec<libc::sock_filter> {
    use libc::{BPF_ABS, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W};
    let step = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let load = |offset: i32| step(BPF_LD | BPF_W | BPF_ABS, offset as u32);
    let source = |octet: u32| load(libc::SKF_NET_OFF + octet as i32);
    let unless_equal = |k: u32, jf: u8| libc::sock_filter { jf, ..step(BPF_JMP | BPF_JEQ | BPF_K, k) };
    let mut code = Vec::new();
    for one in shed {
        let (high, low) = ((one.network >> 32) as u32, one.network as u32);
        if ipv6 {
            code.extend([source(SOURCE6), unless_equal(high, 5), source(SOURCE6 + 4), unless_equal(low, 3)]);
        } else {
            code.extend([source(SOURCE4), unless_equal(low, 3)]);
        }
        let passes = (one.share.clamp(0.0, 1.0) * f64::from(u32::MAX)) as u32;
        let at_random = libc::sock_filter { jt: 0, jf: 1, ..step(BPF_JMP | BPF_JGE | BPF_K, passes) };
        code.extend([load(libc::SKF_AD_OFF + libc::SKF_AD_RANDOM), at_random, step(BPF_RET | BPF_K, 0)]);
    }
    code.push(step(BPF_RET | BPF_K, u32::MAX));
    code
}

/// Attaches the filter for these networks to a socket, so that only their shares pass. Without networks, detaches it.
pub(crate) fn attach(socket: RawFd, shed: &[ShedNetwork], ipv6: bool) -> io::Result<()> {
    if shed.is_empty() {
        return set_option(socket, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, 0);
    }
    let mut code = program(shed, ipv6);
    let filter = libc::sock_fprog { len: code.len() as u16, filter: code.as_mut_ptr() };
    // SAFETY: `filter` points at `len` instructions in `code`, which lives through the call; the kernel copies them.
    let result = unsafe {
        libc::setsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const filter).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    check(result).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listen::fair_shedding::client_network;
    use crate::listen::listener::UdpListener;
    use crate::socket::syscalls::receive_queue;
    use std::net::{Ipv6Addr, UdpSocket};
    use std::os::fd::AsRawFd;

    const SENT: usize = 200;

    /// Number of the [`SENT`] datagrams from `source` that pass a filter with these networks.
    fn arrived(listener: &UdpListener, shed: &[ShedNetwork], source: &str) -> usize {
        let socket = listener.socket().as_raw_fd();
        attach(socket, shed, listener.address().is_ipv6()).unwrap();
        let client = UdpSocket::bind(source).unwrap();
        let drops = receive_queue(socket).drops;
        for _ in 0..SENT {
            client.send_to(&[7; 40], listener.address()).unwrap();
        }
        let mut batch = crate::socket::receive_batch::ReceiveBatch::new(512);
        let mut arrived = 0;
        while let Ok(count) = batch.receive_from_clients(socket) {
            arrived += count;
        }
        assert_eq!(receive_queue(socket).drops.wrapping_sub(drops) as usize, SENT - arrived);
        arrived
    }

    fn network(address: &str) -> u64 {
        let address: std::net::IpAddr = address.parse().unwrap();
        client_network(match address {
            std::net::IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            std::net::IpAddr::V6(v6) => v6,
        })
    }

    #[test]
    fn a_shed_network_is_kept_out_and_its_neighbour_is_not() {
        let shed =
            ["127.0.0.9", "127.0.0.2"].map(|address| ShedNetwork { network: network(address), share: 0.0 });
        let listener = UdpListener::bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
        assert_eq!(arrived(&listener, &shed, "127.0.0.2:0"), 0);
        assert_eq!(arrived(&listener, &shed, "127.0.0.3:0"), SENT);
        assert_eq!(arrived(&listener, &[], "127.0.0.2:0"), SENT);
    }

    #[test]
    fn an_ipv6_network_is_64_bits() {
        // The loopback address belongs to ::/64, which has the number 0.
        let listener = UdpListener::bind("[::1]:0".parse().unwrap(), false).unwrap();
        let of = |address: &str| ShedNetwork { network: network(address), share: 0.0 };
        assert_eq!(of("::ffff:0:0:1").network, 0);
        assert_eq!(arrived(&listener, &[of("2001:db8::1"), of("::2")], "[::1]:0"), 0);
        assert_eq!(arrived(&listener, &[of("2001:db8::1"), of("0:0:0:1::"), of("1::")], "[::1]:0"), SENT);
    }

    #[test]
    fn a_part_passes_and_a_part_does_not() {
        let listener = UdpListener::bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let half = ShedNetwork { network: network("127.0.0.2"), share: 0.5 };
        // 200 tosses: outside of 50 to 150 once in 10^12.
        let half = arrived(&listener, &[half], "127.0.0.2:0");
        assert!((50..=150).contains(&half), "{half}");
    }

    #[test]
    fn addresses_of_one_64_are_one_network_and_ipv4_addresses_are_not() {
        assert_eq!(network("2001:db8:1:2::1"), network("2001:db8:1:2:ffff::"));
        assert_ne!(network("2001:db8:1:2::1"), network("2001:db8:1:3::1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
        assert_eq!(client_network(Ipv6Addr::LOCALHOST), 0);
    }
}
