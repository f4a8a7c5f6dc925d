//! A network namespace for the whole program, with addresses of many networks on its loopback interface, so that a
//! server that distinguishes clients by their networks sees many. The machine's own network stays unchanged.

use crate::limits;
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
/// /proc/net/udp6 cannot be read: the kernel has no IPv6.
pub fn drops_towards(port: u16) -> io::Result<u64> {
    std::fs::read_to_string("/proc/net/udp6").map(|table| sum_drops(&table, REMOTE, port))
}

/// Datagrams that the kernel has dropped at the UDP sockets that are bound to a port, over IPv6.
///
/// # Errors
///
/// As [`drops_towards`].
pub fn drops_at(port: u16) -> io::Result<u64> {
    std::fs::read_to_string("/proc/net/udp6").map(|table| sum_drops(&table, LOCAL, port))
}

/// Columns of `/proc/net/udp6`.
const LOCAL: usize = 1;
const REMOTE: usize = 2;

/// The sum of the last column of `/proc/net/udp6`, of the sockets whose address in a column has this port.
fn sum_drops(table: &str, column: usize, port: u16) -> u64 {
    let end = format!(":{port:04X}");
    let rows = table.lines().skip(1).map(|row| row.split_whitespace().collect::<Vec<_>>());
    let of_port = rows.filter(|row| row.get(column).is_some_and(|address| address.ends_with(&end)));
    of_port.filter_map(|row| row.last()?.parse::<u64>().ok()).sum()
}

fn address(network: u16, host: u16) -> IpAddr {
    Ipv6Addr::new(0xfd00, 0, network, 0, 0, 0, 0, host).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drops_of_sockets_of_a_port_are_added() {
        let row = |remote: &str, drops: u64| {
            format!(
                "  7: 0000:D431 0000:{remote} 01 00000000:00000000 00:00000000 00000000 0 0 9 2 0 {drops}\n"
            )
        };
        let table = ["sl local remote\n".to_owned(), row("0035", 3), row("1035", 5), row("0035", 4)].concat();
        assert_eq!(sum_drops(&table, REMOTE, 0x35), 7);
        assert_eq!(sum_drops(&table, REMOTE, 53 << 8), 0);
        assert_eq!(sum_drops(&table, LOCAL, 0xd431), 12);
        assert_eq!(sum_drops(&table, LOCAL, 0x35), 0);
    }
}
