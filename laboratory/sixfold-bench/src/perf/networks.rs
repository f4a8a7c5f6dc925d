//! Addresses of many networks on the loopback interface of a network namespace, so that a server that distinguishes clients by their
//! networks sees many.

use crate::perf::limits;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv6Addr};
use std::process::{Command, Stdio};

/// The third 16 bits of the crowd's network, and of the first other network: each network is a site of its own. All are in
/// fd00::/8, which servers serve by default.
const CROWD: u16 = 1;
const FIRST_OTHER: u16 = 0x100;

/// Adds the addresses of [`crowd`] and of this number of [`others`] to the loopback interface of the current thread's namespace.
///
/// # Errors
///
/// The program `ip` is missing or refuses an address; this needs CAP_NET_ADMIN.
pub fn add_addresses(networks: u16) -> io::Result<()> {
    let mut ip = Command::new("ip").args(["-6", "-batch", "-"]).stdin(Stdio::piped()).spawn()?;
    let mut orders = ip.stdin.take().ok_or_else(|| io::Error::other("ip takes no orders"))?;
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

fn address(network: u16, host: u16) -> IpAddr {
    Ipv6Addr::new(0xfd00, 0, network, 0, 0, 0, 0, host).into()
}
