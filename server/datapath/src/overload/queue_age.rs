//! The time at which each datagram of a receive queue came, by the kernel's own time stamps (SO_TIMESTAMPNS). The kernel then stamps all
//! datagrams of the machine, and hands over each stamp in a control message. So they are switched on when a batch is full, and off after
//! a second without one.
//!
//! A datagram that came before the stamps were switched on has none; the kernel gives it the time at which it is read
//! (`sock_recv_timestamp` in include/net/sock.h). So a stamp that is later than the begin of the receive is none.

use crate::limits::STAMPS_OFF_TIME;
use engine::Instant;

/// The time at which a batch is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchTime {
    pub(crate) now: Instant,
    /// Nanoseconds of CLOCK_REALTIME, the clock of the stamps.
    pub(crate) wall_ns: u64,
}

/// The time stamps of one socket.
#[derive(Debug, Default)]
pub(crate) struct QueueAge {
    /// The time at which they were switched on.
    on_since: Option<Instant>,
    /// True once a datagram was read that has a stamp.
    is_known: bool,
    /// The time of the latest full batch.
    full_at: Instant,
}

impl QueueAge {
    /// True if the kernel stamps datagrams.
    pub(crate) fn is_on(&self) -> bool {
        self.on_since.is_some()
    }

    /// True if the times of [`QueueAge::arrival`] are those at which datagrams came.
    pub(crate) fn is_known(&self) -> bool {
        self.is_known
    }

    /// The time at which a datagram of a batch came; at the latest, if it has no stamp. `stamp_ns`: what the kernel tells, in nanoseconds of
    /// CLOCK_REALTIME.
    #[inline]
    pub(crate) fn arrival(&mut self, time: BatchTime, stamp_ns: Option<u64>) -> Instant {
        let (Some(on_since), Some(stamp_ns)) = (self.on_since, stamp_ns) else { return time.now };
        if stamp_ns < time.wall_ns {
            self.is_known = true;
            Instant(time.now.0.saturating_sub(time.wall_ns - stamp_ns))
        } else if self.is_known {
            time.now
        } else {
            on_since
        }
    }

    /// A batch was read. Returns true or false if the stamps must be switched on or off.
    pub(crate) fn switch(&mut self, now: Instant, is_full: bool) -> Option<bool> {
        if is_full {
            self.full_at = now;
        }
        let next = match self.on_since {
            None if is_full => Some(now),
            Some(_) if now - self.full_at >= STAMPS_OFF_TIME => None,
            _ => return None,
        };
        (self.on_since, self.is_known) = (next, false);
        Some(self.is_on())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listen::listener::UdpListener;
    use crate::socket::receive_batch::ReceiveBatch;
    use crate::socket::syscalls::wall_clock_ns;
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn the_kernel_tells_when_a_datagram_came() {
        for address in ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0", "[::]:0"] {
            let listener = UdpListener::bind(address.parse().unwrap(), false).unwrap();
            let ipv6 = listener.address().is_ipv6();
            let local = if ipv6 { "[::1]:0" } else { "127.0.0.1:0" };
            let client = UdpSocket::bind(local).unwrap();
            client.connect((client.local_addr().unwrap().ip(), listener.address().port())).unwrap();
            let (mut batch, mut age) = (ReceiveBatch::new(512), QueueAge::default());
            assert_eq!(age.switch(Instant(SECOND), true), Some(true));
            listener.set_stamps(true);
            // The kernel begins to stamp within moments.
            for number in 0.. {
                let before = wall_clock_ns();
                client.send(&[7; 40]).unwrap();
                let after = wall_clock_ns();
                while wall_clock_ns() <= after {}
                let time = BatchTime { now: Instant(SECOND), wall_ns: wall_clock_ns() };
                assert_eq!(batch.receive_from_clients(listener.socket().as_raw_fd()).unwrap(), 1);
                let (from, message, stamp_ns) = batch.client_message(0, ipv6, 0).unwrap();
                assert_eq!((from.port, message), (client.local_addr().unwrap().port(), &[7; 40][..]));
                let arrival = age.arrival(time, stamp_ns);
                if age.is_known() {
                    let came = time.wall_ns - (SECOND - arrival.0);
                    assert!((before..=after).contains(&came), "{address}: {came}, not {before} to {after}");
                    break;
                }
                assert!(number < 10_000, "{address}: no stamp");
                // A thread of the kernel switches stamps on, and waits its turn on a busy machine.
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            listener.set_stamps(false);
            client.send(&[7; 40]).unwrap();
            batch.receive_from_clients(listener.socket().as_raw_fd()).unwrap();
            assert!(batch.client_message(0, ipv6, 0).unwrap().2.is_none());
        }
    }

    #[test]
    fn what_came_before_the_stamps_is_as_old_as_they_are() {
        let (mut age, at) = (QueueAge::default(), |now| BatchTime { now: Instant(now), wall_ns: now });
        assert_eq!(age.arrival(at(5), None), Instant(5));
        assert_eq!(age.switch(Instant(10), true), Some(true));
        // The kernel stamps it as it is read.
        assert_eq!((age.arrival(at(30), Some(31)), age.is_known()), (Instant(10), false));
        assert_eq!((age.arrival(at(40), Some(12)), age.is_known()), (Instant(12), true));
        assert_eq!(age.arrival(at(50), Some(51)), Instant(50));
        // A kernel without stamps, and a clock that was set back.
        assert_eq!(age.arrival(at(60), None), Instant(60));
        assert_eq!(age.arrival(BatchTime { now: Instant(60), wall_ns: 2 }, Some(9)), Instant(60));
    }

    #[test]
    fn the_stamps_end_after_a_second_without_a_full_batch() {
        let mut age = QueueAge::default();
        assert_eq!(age.switch(Instant(0), false), None);
        assert_eq!(age.switch(Instant(0), true), Some(true));
        assert_eq!(age.switch(Instant(SECOND / 2), true), None);
        assert_eq!(age.switch(Instant(SECOND), false), None);
        assert_eq!(age.switch(Instant(SECOND * 3 / 2), false), Some(false));
        assert!(!age.is_on());
    }
}
