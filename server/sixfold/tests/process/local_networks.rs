//! `"local"` in `server.allow`: the networks of this machine's interfaces count, those of the moment. The tests run in a network
//! namespace, where addresses can be added and removed.

use crate::client::{Udp, name_of};
use crate::daemon::{Daemon, Setup, wait_until};
use kit::namespace;
use std::process::Command;
use wire::{Rcode, Type};

/// Makes an interface with a global address, and routes that make all addresses of some networks local, so that clients can have
/// addresses that no interface has. Then executes the program.
const ENTER: &str = r#"set -e
ip link set lo up
ip link add near type veth peer name far
ip link set near up
ip link set far up
ip address add 2001:db8:7::1/64 dev near nodad
for network in 2001:db8:7::/64 2001:db8:8::/64 203.0.113.0/24; do ip route add local $network dev lo; done
echo 1 > /proc/sys/net/ipv6/ip_nonlocal_bind
exec "$@""#;

#[test]
fn clients_of_the_networks_of_interfaces_are_served_while_these_have_an_address() {
    if !namespace::is_played_in(
        ENTER,
        "local_networks::clients_of_the_networks_of_interfaces_are_served_while_these_have_an_address",
    ) {
        networks_come_and_go();
    }
}

/// Result of a query from a client with this address.
fn ask(server: &Daemon, client: &str) -> Rcode {
    let client: std::net::IpAddr = client.parse().unwrap();
    let address = if client.is_ipv4() { server.v4() } else { server.v6() };
    Udp::from(client, address).ask(&name_of(1), Type::AAAA).rcode
}

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status().unwrap();
    assert!(status.success(), "ip {arguments}");
}

fn networks_come_and_go() {
    let server = Setup::answering().start();
    let [own, other6, other4] = ["2001:db8:7::9", "2001:db8:8::9", "203.0.113.9"];
    assert_eq!(
        [own, other6, other4].map(|client| ask(&server, client)),
        [Rcode::NOERROR, Rcode::REFUSED, Rcode::REFUSED]
    );
    for (network, client) in [("2001:db8:8::1/64", other6), ("203.0.113.1/24", other4)] {
        ip(&format!("address add {network} dev near"));
        wait_until("the new network is served", || ask(&server, client) == Rcode::NOERROR);
        ip(&format!("address del {network} dev near"));
        wait_until("the removed network is refused", || ask(&server, client) == Rcode::REFUSED);
    }
    assert!(server.process.wait_for("addresses of this machine have changed").is_some());
    assert_eq!(ask(&server, own), Rcode::NOERROR);

    // A list without "local" does not follow the interfaces; after a reload with it, the server does so again.
    server.rewrite(&["server.allow = [\"::1\", \"2001:db8:8::/64\"]"]);
    assert_eq!(server.ctl(&["reload"]).status.code(), Some(0));
    assert_eq!([own, other6].map(|client| ask(&server, client)), [Rcode::REFUSED, Rcode::NOERROR]);
    ip("address add 203.0.113.1/24 dev near");
    server.rewrite(&["server.allow = [\"local\"]"]);
    assert_eq!(server.ctl(&["reload"]).status.code(), Some(0));
    assert_eq!(
        [own, other6, other4].map(|client| ask(&server, client)),
        [Rcode::NOERROR, Rcode::REFUSED, Rcode::NOERROR]
    );
}
