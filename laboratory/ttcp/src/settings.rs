//! Settings of a stack.

use crate::cookie::FastOpen;
use core::time::Duration;
use std::ops::RangeInclusive;

/// Settings of a stack.
#[derive(Clone, Debug)]
pub struct Settings {
    /// T/TCP is on: FreeBSD's `net.inet.tcp.rfc1644`.
    pub transactions: bool,
    /// Connection count before the first one; a host draws it at random when it starts.
    pub last_count: u32,
    /// Retransmission timer before the first measurement: 1 s (RFC 6298), 3 s (RFC 1122, FreeBSD 4).
    pub first_rto: Duration,
    /// Shortest retransmission timer: 1 s (RFC 6298, FreeBSD 4), 200 ms (Linux).
    pub shortest_rto: Duration,
    /// Maximum segment lifetime: 30 s in FreeBSD, 2 minutes in RFC 9293.
    pub msl: Duration,
    /// Largest packet of the link, octets, at least 576 (IPv4) or 1280 (IPv6).
    pub mtu: u16,
    /// Connection blocks; FreeBSD 4 had about 8000 in the paper's experiment.
    pub blocks: usize,
    /// Hosts in the cache of connection counts.
    pub hosts: usize,
    /// Ports for outgoing connections: 1024 to 5000 in FreeBSD 4.
    pub ports: RangeInclusive<u16>,
    /// A SYN,ACK without CC.ECHO makes the client send its data again at once. FreeBSD waits for the retransmission timer.
    pub resend_at_once: bool,
    /// A SYN that is repeated carries neither data nor FIN. FreeBSD repeats it as it was.
    pub plain_syn_again: bool,
    /// TCP Fast Open (RFC 7413), the successor of T/TCP. A client uses it where `transactions` is off; a server answers both.
    pub fast_open: Option<FastOpen>,
}

impl Default for Settings {
    /// T/TCP as FreeBSD 4 had it, with the timer of RFC 6298.
    fn default() -> Settings {
        Settings {
            transactions: true,
            last_count: 0,
            first_rto: Duration::from_secs(1),
            shortest_rto: Duration::from_secs(1),
            msl: Duration::from_secs(30),
            mtu: 1500,
            blocks: 8000,
            hosts: 10_000,
            ports: 1024..=65_535,
            resend_at_once: true,
            plain_syn_again: false,
            fast_open: None,
        }
    }
}
