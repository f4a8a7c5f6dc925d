//! TCP Fast Open of the kernel (RFC 7413): its setting, its flag, and its counts.

use rustix::net::SendFlags;

/// The setting, a kernel parameter of the namespace.
pub const PARAMETER: &str = "net/ipv4/tcp_fastopen";

/// Its value: clients (1), servers (2), and listeners without the socket option (0x400); Linux, `ip-sysctl`.
pub const ON: &str = "1027";

/// `MSG_FASTOPEN` of Linux: the send opens the connection, with the data on the SYN where the cookie is known.
pub const SEND: SendFlags = SendFlags::from_bits_retain(0x2000_0000);

/// Count of the connections that the namespace's clients have opened with data on the SYN.
pub const ACTIVE: &str = "TCPFastOpenActive";

/// Count of the connections that the namespace's servers have accepted with data on the SYN.
pub const PASSIVE: &str = "TCPFastOpenPassive";

/// A count of the current thread's namespace.
///
/// # Errors
///
/// The kernel has no such count, or /proc is not mounted.
pub fn count(counter: &str) -> Result<u64, String> {
    // Not /proc/net: that is the namespace of the process, not of the thread.
    const FILE: &str = "/proc/thread-self/net/netstat";
    let text = std::fs::read_to_string(FILE).map_err(|error| format!("{FILE}: {error}"))?;
    value(&text, counter).ok_or_else(|| format!("{FILE} has no count {counter}"))
}

/// The value of a counter of `TcpExt`: a line of names, and a line of values.
fn value(text: &str, counter: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let (_, value) = names.split(' ').zip(values.split(' ')).find(|(name, _)| *name == counter)?;
    value.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_stands_below_its_name() {
        let text = "TcpExt: Other TCPFastOpenActive\nTcpExt: 7 12\nIpExt: TCPFastOpenActive\nIpExt: 5\n";
        assert_eq!(value(text, ACTIVE), Some(12));
        assert_eq!(value(text, PASSIVE), None);
    }
}
