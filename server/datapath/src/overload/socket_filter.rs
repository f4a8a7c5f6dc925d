//! The socket filter that carries out the decisions: a classic BPF program, which needs no privilege, that drops a part of the
//! datagrams of some networks. It runs where the kernel would queue the datagram. So a dropped datagram costs no room in the
//! queue, no system call and none of the worker's time.

use crate::limits::PROXIES_PASSED;
use crate::overload::heavy_hitters::ShedNetwork;
use engine::settings::{Network, Networks};
use kernel::syscalls::{check, set_option};
use std::io;
use std::mem::size_of;
use std::os::fd::RawFd;

/// Offset of the source address in the network header (RFC 8200 section 3, RFC 791 section 3.1).
const SOURCE6: u32 = 8;
const SOURCE4: u32 = 12;

/// The result of the program that accepts a datagram whole.
const ACCEPT: u32 = u32::MAX;

/// The BPF program: accepts all datagrams, but of the given networks only their share, chosen at random. Datagrams of trusted
/// proxies all pass, because a proxy sends for others. A network is looked for before its customer.
fn program(shed: &[ShedNetwork], ipv6: bool, proxies: &Networks) -> Vec<libc::sock_filter> {
    let mut networks: Vec<&ShedNetwork> = Vec::with_capacity(shed.len());
    let mut passed: Vec<&Network> = Vec::new();
    for one in shed {
        // Only a proxy within a network that is shed has to be let through.
        let prefix = Network::new(one.network.bits().into(), one.length);
        let within = |proxy: &&Network| {
            proxy.mask & prefix.mask == prefix.mask && proxy.address & prefix.mask == prefix.address
        };
        let within: Vec<&Network> = proxies.0.iter().filter(within).collect();
        if passed.len() + within.len() <= PROXIES_PASSED {
            passed.extend(within);
            networks.push(one);
        }
    }
    networks.sort_by_key(|one| std::cmp::Reverse(one.length));
    let mut code = Vec::new();
    for proxy in passed {
        let length = proxy.mask.count_ones() as u8;
        code.extend(when_from(proxy.address, length, ipv6, &[step(libc::BPF_RET | libc::BPF_K, ACCEPT)]));
    }
    for one in networks {
        code.extend(when_from(one.network.bits(), one.length, ipv6, &pass_share(one.share)));
    }
    code.push(step(libc::BPF_RET | libc::BPF_K, ACCEPT));
    code
}

fn step(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// Instructions that accept a share of the datagrams, and reject the others.
fn pass_share(share: f64) -> [libc::sock_filter; 4] {
    use libc::{BPF_ABS, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W};
    let passes = (share.clamp(0.0, 1.0) * f64::from(u32::MAX)) as u32;
    [
        step(BPF_LD | BPF_W | BPF_ABS, (libc::SKF_AD_OFF + libc::SKF_AD_RANDOM) as u32),
        libc::sock_filter { jt: 0, jf: 1, ..step(BPF_JMP | BPF_JGE | BPF_K, passes) },
        step(BPF_RET | BPF_K, 0),
        step(BPF_RET | BPF_K, ACCEPT),
    ]
}

/// Instructions that carry out `then` for datagrams from a prefix (IPv4 as IPv4-mapped), and skip it for others.
fn when_from(prefix: u128, length: u8, ipv6: bool, then: &[libc::sock_filter]) -> Vec<libc::sock_filter> {
    use libc::{BPF_ABS, BPF_ALU, BPF_AND, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_W};
    let mut code = Vec::new();
    // The words of the address that the prefix reaches into. Of an IPv4-mapped address the packet has the last one.
    for word in if ipv6 { 0..4 } else { 3..4 } {
        let bits = u32::from(length).saturating_sub(32 * word).min(32);
        if bits == 0 {
            break;
        }
        let offset = if ipv6 { SOURCE6 + 4 * word } else { SOURCE4 };
        code.push(step(BPF_LD | BPF_W | BPF_ABS, libc::SKF_NET_OFF as u32 + offset));
        if bits < 32 {
            code.push(step(BPF_ALU | BPF_AND | BPF_K, u32::MAX << (32 - bits)));
        }
        code.push(step(BPF_JMP | BPF_JEQ | BPF_K, (prefix >> (96 - 32 * word)) as u32));
    }
    code.extend(then);
    let (end, conditions) = (code.len(), code.len() - then.len());
    for (place, condition) in code[..conditions].iter_mut().enumerate() {
        if condition.code == (BPF_JMP | BPF_JEQ | BPF_K) as u16 {
            condition.jf = (end - place - 1) as u8;
        }
    }
    code
}

/// Attaches the filter for these networks to a socket, so that only their shares pass, and all datagrams of `proxies`. Without
/// networks, detaches it.
///
/// # Errors
///
/// The error of setsockopt(2). ENOENT: there was no filter to detach. ENOMEM: the socket's memory for options (net.core.optmem_max) has
/// no room.
pub(crate) fn attach(socket: RawFd, shed: &[ShedNetwork], ipv6: bool, proxies: &Networks) -> io::Result<()> {
    if shed.is_empty() {
        return set_option(socket, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, 0);
    }
    let mut code = program(shed, ipv6, proxies);
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
    use crate::listen::listener::UdpListener;
    use crate::socket::syscalls::receive_queue;
    use engine::ClientNetwork;
    use std::net::{IpAddr, Ipv6Addr, UdpSocket};
    use std::os::fd::AsRawFd;

    const SENT: usize = 200;

    /// Number of the [`SENT`] datagrams from `source` that pass a filter with these networks.
    fn arrived(listener: &UdpListener, shed: &[ShedNetwork], source: &str) -> usize {
        arrived_with(listener, shed, source, &Networks::default())
    }

    fn arrived_with(listener: &UdpListener, shed: &[ShedNetwork], source: &str, proxies: &Networks) -> usize {
        let socket = listener.socket().as_raw_fd();
        attach(socket, shed, listener.address().is_ipv6(), proxies).unwrap();
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

    fn shed(address: &str, share: f64) -> ShedNetwork {
        let address = match address.parse().unwrap() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        let network = ClientNetwork::of(address, 0);
        ShedNetwork { network, length: network.length(), share }
    }

    #[test]
    fn a_shed_network_is_kept_out_and_its_neighbour_is_not() {
        let shed = ["127.0.0.9", "127.0.0.2"].map(|address| shed(address, 0.0));
        let listener = UdpListener::bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
        assert_eq!(arrived(&listener, &shed, "127.0.0.2:0"), 0);
        assert_eq!(arrived(&listener, &shed, "127.0.0.3:0"), SENT);
        assert_eq!(arrived(&listener, &[], "127.0.0.2:0"), SENT);
    }

    #[test]
    fn an_ipv6_network_is_64_bits() {
        // The loopback address belongs to ::/64.
        let listener = UdpListener::bind("[::1]:0".parse().unwrap(), false).unwrap();
        let of = |address: &str| shed(address, 0.0);
        assert_eq!(of("::2").length, 64);
        assert_eq!(arrived(&listener, &[of("2001:db8::1"), of("::2")], "[::1]:0"), 0);
        assert_eq!(arrived(&listener, &[of("2001:db8::1"), of("0:0:0:1::"), of("1::")], "[::1]:0"), SENT);
    }

    #[test]
    fn a_prefix_may_have_any_length_and_the_longest_one_counts() {
        let listener = UdpListener::bind("[::1]:0".parse().unwrap(), false).unwrap();
        let of = |address: &str, length: u8, share: f64| {
            let address: Ipv6Addr = address.parse().unwrap();
            // The number of a link-local address has all bits of the address.
            let network = ClientNetwork::of(address, 0);
            ShedNetwork { network: network.customer(length), length, share }
        };
        for length in [1, 31, 33, 48, 52, 56, 63] {
            assert_eq!(arrived(&listener, &[of("::", length, 0.0)], "[::1]:0"), 0, "{length}");
            let other = of("8000::", length, 0.0);
            assert_eq!(arrived(&listener, &[other], "[::1]:0"), SENT, "{length}");
        }
        assert_eq!(arrived(&listener, &[of("0:0:0:100::", 56, 0.0)], "[::1]:0"), SENT);
        let (customer, network) = (of("::", 56, 0.0), of("::", 64, 1.0));
        assert_eq!(arrived(&listener, &[customer, network], "[::1]:0"), SENT);
        let (customer, network) = (of("::", 56, 1.0), of("::", 64, 0.0));
        assert_eq!(arrived(&listener, &[customer, network], "[::1]:0"), 0);
    }

    #[test]
    fn of_a_link_local_address_all_bits_count() {
        let code = program(&[shed("fe80::9", 0.0)], true, &Networks::default());
        let compared: Vec<u32> =
            code.iter().filter(|step| step.code == 0x15 || step.code == 0x54).map(|step| step.k).collect();
        assert_eq!(compared, [0xfe80_0000, 0, 0, 9]);
    }

    #[test]
    fn a_trusted_proxy_in_a_shed_network_is_let_through() {
        let listener = UdpListener::bind("[::1]:0".parse().unwrap(), false).unwrap();
        let proxies = |texts: &[(&str, u8)]| {
            let network = |&(text, length): &(&str, u8)| Network::new(text.parse().unwrap(), length);
            Networks(texts.iter().map(network).collect())
        };
        let flooder = [shed("::9", 0.0)];
        for (proxies, passed) in [
            (proxies(&[("::1", 128)]), SENT),
            (proxies(&[("2001:db8::", 32), ("::", 120)]), SENT),
            (proxies(&[("::2", 128), ("::ffff:0.0.0.1", 128)]), 0),
        ] {
            assert_eq!(arrived_with(&listener, &flooder, "[::1]:0", &proxies), passed, "{proxies:?}");
        }
        // A network with more proxies than the program can hold is not shed.
        let many = (0..=PROXIES_PASSED as u128).map(|number| Network::new((100 + number).into(), 128));
        assert_eq!(arrived_with(&listener, &flooder, "[::1]:0", &Networks(many.collect())), SENT);
    }

    #[test]
    fn the_longest_program_is_one_that_the_kernel_takes() {
        let proxies = (0..PROXIES_PASSED as u128).map(|number| Network::new((100 + number).into(), 128));
        let shed: Vec<ShedNetwork> = (0..crate::limits::SHED_NETWORKS as u16)
            .map(|number| match number {
                0 => shed("::9", 0.0),
                _ => shed(&format!("fe80::{number}"), 0.5),
            })
            .collect();
        let listener = UdpListener::bind("[::1]:0".parse().unwrap(), false).unwrap();
        assert_eq!(arrived_with(&listener, &shed, "[::1]:0", &Networks(proxies.collect())), 0);
    }

    #[test]
    fn a_part_passes_and_a_part_does_not() {
        let listener = UdpListener::bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
        // 200 tosses: outside of 50 to 150 once in 10^12.
        let half = arrived(&listener, &[shed("127.0.0.2", 0.5)], "127.0.0.2:0");
        assert!((50..=150).contains(&half), "{half}");
    }

    #[test]
    fn a_filter_stays_until_it_is_detached() {
        let bound = UdpListener::bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let address = bound.address();
        let shed = [shed("127.0.0.1", 0.0)];
        attach(bound.socket().as_raw_fd(), &shed, false, &Networks::default()).unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.send_to(b"dropped", address).unwrap();
        let adopted = UdpListener::adopt(bound.socket().try_clone_to_owned().unwrap(), address).unwrap();
        client.send_to(b"dropped", address).unwrap();
        adopted.detach_filter();
        client.send_to(b"question", address).unwrap();
        let mut batch = crate::socket::receive_batch::ReceiveBatch::new(512);
        assert_eq!(batch.receive_from_clients(adopted.socket().as_raw_fd()).unwrap(), 1);
        assert_eq!(batch.message(0), b"question");
    }
}
