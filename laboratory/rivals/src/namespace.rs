//! A network namespace for the whole program, with addresses of many networks on its loopback interface, so that a
//! server that distinguishes clients by their networks sees many. The machine's own network stays unchanged.

use crate::limits;
use load::sockets::netlink::{UdpSocket, udp_sockets};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv6Addr};
use std::process::{Command, ExitCode, Stdio};

/// Environment variable that is set inside the namespace.
const INSIDE: &str = "SIXFOLD_RIVALS_NAMESPACE";

/// The third 16 bits of the crowd's network, and of the first other network: each network is a site of its own. All are in
/// fd00::/8, which servers serve by default.
const CROWD: u16 = 1;
const FIRST_OTHER: u16 = 0x100;

/// Runs this program again, with the same arguments, in a namespace of its own. Returns `None` if it is inside already,
/// or if no namespace can be created here.
pub fn enter() -> Option<ExitCode> {
    if is_inside() {
        return None;
    }
    let own = std::env::current_exe().ok()?;
    let possible = Command::new("unshare").args(["--net", "true"]).stderr(Stdio::null()).status();
    if !possible.is_ok_and(|status| status.success()) {
        return None;
    }
    let status = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "unshare", "--net", "--"])
        .arg(own)
        .args(std::env::args_os().skip(1))
        .env(INSIDE, "1")
        .status()
        .ok()?;
    Some(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns true if this program has a namespace of its own.
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Adds the addresses of [`crowd`] and of this number of [`others`] to the loopback interface of the namespace.
///
/// # Errors
///
/// The program `ip` is missing or refuses an address; this needs CAP_NET_ADMIN.
pub fn add_addresses(networks: u16) -> io::Result<()> {
    let mut ip = Command::new("ip").args(["-6", "-batch", "-"]).stdin(Stdio::piped()).spawn()?;
    let mut orders = ip.stdin.take().ok_or_else(|| io::Error::other("ip takes no orders"))?;
    writeln!(orders, "link set lo up")?;
    for address in crowd().into_iter().chain(others(networks)) {
        writeln!(orders, "address replace {address}/128 dev lo nodad")?;
    }
    drop(orders);
    let status = ip.wait()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("ip -6 -batch -: {status}"))) }
}

/// Addresses of one /64.
pub fn crowd() -> Vec<IpAddr> {
    (1..=limits::PORTS as u16).map(|host| address(CROWD, host)).collect()
}

/// One address in each of this number of other /64 networks.
pub fn others(networks: u16) -> Vec<IpAddr> {
    (0..networks).map(|network| address(FIRST_OTHER + network, 1)).collect()
}

/// Datagrams that the kernel has dropped at the UDP sockets that are connected to a port, over IPv6.
///
/// # Errors
///
/// As [`udp_sockets`].
pub fn drops_towards(port: u16) -> io::Result<u64> {
    drops(|socket| socket.peer_port == Some(port))
}

/// Datagrams that the kernel has dropped at the UDP sockets that are bound to a port, over IPv6.
///
/// # Errors
///
/// As [`udp_sockets`].
pub fn drops_at(port: u16) -> io::Result<u64> {
    drops(|socket| socket.local.port() == port)
}

fn drops(counts: impl Fn(&UdpSocket) -> bool) -> io::Result<u64> {
    let sockets = udp_sockets()?;
    let counted = sockets.iter().filter(|socket| socket.local.is_ipv6() && counts(socket));
    Ok(counted.map(|socket| u64::from(socket.drops)).sum())
}

fn address(network: u16, host: u16) -> IpAddr {
    Ipv6Addr::new(0xfd00, 0, network, 0, 0, 0, 0, host).into()
}

#[cfg(test)]
mod tests {
    use super::{drops_at, drops_towards};
    use std::net::UdpSocket;

    #[test]
    fn the_drops_of_sockets_of_a_port_are_added() {
        let [receiver, sender] = [(); 2].map(|()| UdpSocket::bind("[::1]:0").unwrap());
        let ports = [&receiver, &sender].map(|socket| socket.local_addr().unwrap().port());
        receiver.connect(sender.local_addr().unwrap()).unwrap();
        socket2::SockRef::from(&receiver).set_recv_buffer_size(1).unwrap();
        let to = receiver.local_addr().unwrap();
        let sent = (0..100).map(|_| u64::from(sender.send_to(&[0; 500], to).is_ok())).sum::<u64>();
        receiver.set_nonblocking(true).unwrap();
        let read = std::iter::from_fn(|| receiver.recv(&mut [0; 512]).ok()).count() as u64;
        assert!(read < sent);
        assert_eq!([drops_at(ports[0]).unwrap(), drops_towards(ports[1]).unwrap()], [sent - read; 2]);
        assert_eq!([drops_at(ports[1]).unwrap(), drops_towards(ports[0]).unwrap()], [0; 2]);
    }
}
