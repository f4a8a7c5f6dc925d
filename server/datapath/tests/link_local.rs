//! Answers from a link-local address, which needs an interface (RFC 4007), on a listener for all addresses. The test runs in
//! a network namespace with one interface that has such an address.

use crate::echo;

use echo::{Echo, Running, options};
use kit::namespace;
use sixfold_datapath::{Counter, Steer};
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::time::Duration;

const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Makes an interface with two addresses, and executes the program. The other end of the veth pair takes no IPv6, so that a
/// datagram to a multicast group arrives once.
const ENTER: &str = r#"set -e
ip link set lo up
ip link add near type veth peer name far
echo 1 > /proc/sys/net/ipv6/conf/far/disable_ipv6
ip link set near up
ip link set far up
ip address add fe80::5/64 dev near nodad
ip address add 2001:db8::7/64 dev near nodad
exec "$@""#;

#[test]
fn a_global_client_is_answered_from_the_link_local_address_that_it_asked() {
    if !namespace::is_played_in(
        ENTER,
        "link_local::a_global_client_is_answered_from_the_link_local_address_that_it_asked",
    ) {
        clients_are_answered();
    }
}

fn clients_are_answered() {
    let options = options("[::]:0".parse().unwrap(), 1, Steer::Name);
    let running = Running::start(&options, Echo::default);
    let port = running.address().port();
    let scope = index_of("near");
    let asked = |address: &str| -> SocketAddr {
        let address: Ipv6Addr = address.parse().unwrap();
        SocketAddrV6::new(address, port, 0, scope).into()
    };
    for source in ["2001:db8::7", "fe80::5"] {
        let source = SocketAddrV6::new(source.parse().unwrap(), 0, 0, scope);
        let client = UdpSocket::bind(source).unwrap();
        client.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let mut buffer = [0; 64];
        for asked in [asked("fe80::5"), asked("2001:db8::7")] {
            client.send_to(&[5; 30], asked).unwrap();
            let (length, from) = client.recv_from(&mut buffer).unwrap();
            assert_eq!((length, from.ip(), from.port()), (30, asked.ip(), port));
        }
        // The answer to a query for a multicast group shows a member of the group.
        client.send_to(&[6; 30], asked("ff02::1")).unwrap();
        let (length, from) = client.recv_from(&mut buffer).unwrap();
        assert_eq!((length, from.port()), (30, port));
    }
    let (_, shared) = running.stop();
    assert!(shared.total().iter().all(|(counter, value)| !counter.is_drop() || value == 0));
    assert_eq!(shared.total().get(Counter::ClientPacketsOut), 6);
}

/// The index of an interface of this namespace that has an IPv6 address. (/sys may still show another namespace.)
fn index_of(interface: &str) -> u32 {
    let text = std::fs::read_to_string("/proc/net/if_inet6").unwrap();
    let line = text.lines().find(|line| line.split_whitespace().last() == Some(interface)).unwrap();
    u32::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap()
}
