//! A network namespace for the whole program, with addresses of many networks on its loopback interface: a server that tells
//! clients apart by their networks is to see many. Nothing of the machine's own network is touched.

use crate::limits;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv6Addr};
use std::process::{Command, ExitCode, Stdio};

/// Set for the program inside.
const INSIDE: &str = "SIXFOLD_RIVALS_NAMESPACE";

/// The second 16 bits of the network of the crowd, and of the first other one. All are in fd00::/8, which servers serve by default.
const CROWD: u16 = 1;
const FIRST_OTHER: u16 = 0x100;

/// Runs this program once more, with the same arguments, in a namespace of its own. Nothing: it is inside already, or that
/// cannot be had here.
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

/// Whether this program has a namespace of its own.
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Gives the loopback interface of the own namespace the addresses of [`crowd`] and of so many [`others`].
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

/// An address of each of so many other /64.
pub fn others(networks: u16) -> Vec<IpAddr> {
    (0..networks).map(|network| address(FIRST_OTHER + network, 1)).collect()
}

fn address(network: u16, host: u16) -> IpAddr {
    Ipv6Addr::new(0xfd00, 0, 0, network, 0, 0, 0, host).into()
}
