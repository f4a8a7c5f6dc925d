//! Refusal of loads over TCP that this host cannot carry out.

use crate::error::{LoadError, refuse};
use crate::limits;
use crate::plan::Plan;
use crate::stream_order::lines;
use measure::order::Transport;
use std::fs;

/// Bit of net.ipv4.tcp_fastopen that lets clients use Fast Open (`ip-sysctl` of the kernel).
const FAST_OPEN_CLIENT: u32 = 1;

/// Raises the limit of open files, and checks that the host is set up for a load.
///
/// # Errors
///
/// `LoadError::Order`: the process may not have a connection per line open, or net.ipv4.tcp_fastopen does not allow clients what the
/// transport needs.
pub fn check_host(plan: &Plan) -> Result<(), LoadError> {
    let (capacity, lines) = (capacity(plan), lines(&plan.order).unwrap_or(0));
    if capacity < lines.max(1) {
        return refuse(format!(
            "{} threads with {lines} connections each need more open files than this process may have; raise the limit \
             (ulimit -n) or use fewer connections (--connections, --threads)",
            plan.threads
        ));
    }
    if plan.order.transport == Transport::Tfo
        && let Ok(setting) = fs::read_to_string("/proc/sys/net/ipv4/tcp_fastopen")
        && !allows_client(&setting)
    {
        return refuse(format!(
            "net.ipv4.tcp_fastopen is {}, which does not let clients use TCP Fast Open; set bit 1 (sysctl -w \
             net.ipv4.tcp_fastopen=1; the server's host needs bit 2: 3 for both)",
            setting.trim()
        ));
    }
    Ok(())
}

/// True if a value of net.ipv4.tcp_fastopen has the client's bit. The kernel decides on a value that cannot be read.
fn allows_client(setting: &str) -> bool {
    let value = setting.trim();
    let value = value.strip_prefix("0x").map_or_else(|| value.parse(), |hex| u32::from_str_radix(hex, 16));
    value.map_or(true, |bits| bits & FAST_OPEN_CLIENT != 0)
}

/// Open connections that a thread may have at a time: its share of the descriptors that the process may open.
pub fn capacity(plan: &Plan) -> usize {
    // If the limit cannot be raised, the usual soft limit holds.
    let files = datapath::privileges::raise_file_limit().unwrap_or(limits::USUAL_FILES);
    let share = files.saturating_sub(limits::OTHER_FILES) / plan.threads;
    (share as usize).min(limits::CONNECTIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_open_needs_the_bit_of_the_client() {
        for (setting, expected) in
            [("0\n", false), ("1\n", true), ("2", false), ("3", true), ("0x601", true), ("?", true)]
        {
            assert_eq!(allows_client(setting), expected, "{setting}");
        }
    }
}
