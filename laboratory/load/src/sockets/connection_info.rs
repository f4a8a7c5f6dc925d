//! The kernel's counters of a TCP connection (TCP_INFO, tcp(7)). The C library's structure ends before the counters, so the
//! fields are read by their offsets, which never change: the kernel only adds fields at the end (`linux/tcp.h`).

use std::mem::size_of;
use std::os::fd::{AsRawFd, RawFd};

/// Offsets of its fields.
const STATE: usize = 0;
const OPTIONS: usize = 5;
const TOTAL_RETRANS: usize = 100;
const SEGS_OUT: usize = 136;
const SEGS_IN: usize = 140;
const BYTES_SENT: usize = 200;

/// Octets of the structure up to the last field that is read here, which exists since Linux 4.19.
const SIZE: usize = BYTES_SENT + size_of::<u64>();

/// TCP_CLOSE of the kernel, which a connection in TIME-WAIT has, too.
const CLOSED: u8 = 7;

/// Bits of the options (`TCPI_OPT_*`).
const TIMESTAMPS: u8 = 1;
const SACK: u8 = 2;
const WINDOW_SCALE: u8 = 4;
const SYN_DATA: u8 = 32;

/// Octets of a TCP header without options (RFC 9293 section 3.1), and of the options, padded to words: timestamps (with SACK
/// permitted in the padding of a SYN), SACK permitted alone, maximum segment size, window scale.
const HEADER: u64 = 20;
const TIMESTAMPS_OPTION: u64 = 12;
const SACK_OPTION: u64 = 4;
const SEGMENT_SIZE_OPTION: u64 = 4;
const WINDOW_SCALE_OPTION: u64 = 4;

/// Counts of one connection, from the first SYN on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionInfo {
    /// No state is left but TIME-WAIT.
    pub is_closed: bool,
    /// Segments sent, with those without data and the repeated ones. Each is one IP packet.
    pub packets_sent: u64,
    /// Segments received.
    pub packets_received: u64,
    /// Octets of data sent, repeated ones as often as they were sent.
    pub octets_sent: u64,
    /// Segments sent again.
    pub retransmitted: u64,
    /// The server acknowledged data of the SYN (RFC 7413).
    pub syn_data_acknowledged: bool,
    options: u8,
}

impl ConnectionInfo {
    /// Asks the kernel for the counters of a TCP socket; `None` if it is too old.
    pub fn of_socket(socket: &impl AsRawFd) -> Option<ConnectionInfo> {
        ConnectionInfo::of(socket.as_raw_fd())
    }

    /// Asks the kernel; `None` if it is too old.
    pub(crate) fn of(socket: RawFd) -> Option<ConnectionInfo> {
        let mut info = [0u8; SIZE];
        let mut length = SIZE as libc::socklen_t;
        // SAFETY: `info` has room for `length` octets; the kernel writes at most that many and updates `length`.
        let result = unsafe {
            libc::getsockopt(socket, libc::IPPROTO_TCP, libc::TCP_INFO, info.as_mut_ptr().cast(), &mut length)
        };
        (result == 0 && length as usize >= SIZE).then(|| ConnectionInfo::read(&info))
    }

    fn read(info: &[u8; SIZE]) -> ConnectionInfo {
        let word = |at: usize| {
            let mut octets = [0; size_of::<u32>()];
            octets.copy_from_slice(&info[at..at + size_of::<u32>()]);
            u64::from(u32::from_ne_bytes(octets))
        };
        let mut long = [0; size_of::<u64>()];
        long.copy_from_slice(&info[BYTES_SENT..BYTES_SENT + size_of::<u64>()]);
        ConnectionInfo {
            is_closed: info[STATE] == CLOSED,
            packets_sent: word(SEGS_OUT),
            packets_received: word(SEGS_IN),
            octets_sent: u64::from_ne_bytes(long),
            retransmitted: word(TOTAL_RETRANS),
            syn_data_acknowledged: info[OPTIONS] & SYN_DATA != 0,
            options: info[OPTIONS],
        }
    }

    /// Octets of the TCP headers of `packets` segments in one direction, the first of which is a SYN. The options are those
    /// that both ends use. Blocks of selective acknowledgements (RFC 2018), which follow a loss, are not counted.
    pub fn header_octets(&self, packets: u64) -> u64 {
        let has = |option| self.options & option != 0;
        let of_each = HEADER + if has(TIMESTAMPS) { TIMESTAMPS_OPTION } else { 0 };
        let of_syn = SEGMENT_SIZE_OPTION
            + if has(WINDOW_SCALE) { WINDOW_SCALE_OPTION } else { 0 }
            + if has(SACK) && !has(TIMESTAMPS) { SACK_OPTION } else { 0 };
        if packets == 0 { 0 } else { packets * of_each + of_syn }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_the_options_that_were_agreed_on() {
        let headers =
            |options, packets| ConnectionInfo { options, ..ConnectionInfo::default() }.header_octets(packets);
        // Linux among itself: 40 octets of a SYN, 32 of each other segment.
        assert_eq!(headers(TIMESTAMPS | SACK | WINDOW_SCALE, 1), 40);
        assert_eq!(headers(TIMESTAMPS | SACK | WINDOW_SCALE, 5), 40 + 4 * 32);
        assert_eq!(headers(0, 5), 24 + 4 * 20);
        assert_eq!(headers(SACK, 1), 28);
        assert_eq!(headers(TIMESTAMPS, 0), 0);
    }
}
