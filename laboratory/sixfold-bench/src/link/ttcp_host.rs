//! A host that speaks T/TCP on a TUN interface: the state machine of the crate `ttcp`, the clock, and a link of the same process
//! between the two.
//!
//! The kernel has the other end of the interface, so its TCP talks with this one.

use super::limits::{PACKET, PACKETS_PER_TURN, SLEEP_MS};
use netem::{Direction, Impairments};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};
use ttcp::{Event, Stack};
use tun_rs::SyncDevice;

/// A host on an interface.
pub struct TtcpHost {
    device: SyncDevice,
    /// The host's TCP. Calls take the time of [`TtcpHost::now`].
    pub stack: Stack,
    /// Packets from the kernel to the host.
    inbound: Direction,
    /// Packets from the host to the kernel.
    outbound: Direction,
    start: Instant,
    buffer: Vec<u8>,
}

impl TtcpHost {
    /// A host behind a link with these two directions.
    pub fn new(device: SyncDevice, stack: Stack, inbound: Direction, outbound: Direction) -> TtcpHost {
        TtcpHost { device, stack, inbound, outbound, start: Instant::now(), buffer: vec![0; PACKET] }
    }

    /// A host at the interface itself: nothing delays or loses its packets.
    pub fn direct(device: SyncDevice, stack: Stack) -> TtcpHost {
        // No impairment draws a number from the seed.
        let direction = || Direction::new(Impairments::default(), 0);
        TtcpHost::new(device, stack, direction(), direction())
    }

    /// Time of the host.
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// The next event of the stack, waiting for packets and timers until `deadline`. None: nothing came.
    ///
    /// # Errors
    ///
    /// The error of read(2), write(2) or poll(2) on the interface: it was removed, or set down.
    pub fn next_event(&mut self, deadline: Duration) -> io::Result<Option<Event>> {
        self.next_event_beside(deadline, None)
    }

    /// Like [`TtcpHost::next_event`], and returns none as soon as `other` can be read, too.
    ///
    /// # Errors
    ///
    /// As [`TtcpHost::next_event`].
    pub fn next_event_beside(
        &mut self,
        deadline: Duration,
        other: Option<BorrowedFd<'_>>,
    ) -> io::Result<Option<Event>> {
        loop {
            self.turn()?;
            if let Some(event) = self.stack.next_event() {
                return Ok(Some(event));
            }
            if self.now() >= deadline || self.wait(deadline, other)? {
                return Ok(None);
            }
        }
    }

    /// Moves packets and timers on for `time`.
    ///
    /// # Errors
    ///
    /// As [`TtcpHost::next_event`].
    pub fn run_for(&mut self, time: Duration) -> io::Result<()> {
        let end = self.now() + time;
        while self.now() < end {
            self.turn()?;
            self.wait(end, None)?;
        }
        Ok(())
    }

    /// Moves everything that can move now.
    fn turn(&mut self) -> io::Result<()> {
        for _ in 0..PACKETS_PER_TURN {
            match self.device.recv(&mut self.buffer) {
                Ok(octets) => self.inbound.offer(self.start.elapsed(), &self.buffer[..octets]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let now = self.now();
        while self.inbound.take_due(now, |packet, _| self.stack.on_packet(now, packet)) {}
        self.stack.on_time(now);
        while let Some(packet) = self.stack.next_packet() {
            self.outbound.offer(now, &packet);
        }
        let mut result = Ok(());
        while result.is_ok() && self.outbound.take_due(now, |packet, _| result = send(&self.device, packet)) {
        }
        result
    }

    /// Waits for a packet or the next deadline, at most until `end`. Returns true if `other` can be read.
    fn wait(&self, end: Duration, other: Option<BorrowedFd<'_>>) -> io::Result<bool> {
        let due = [self.stack.next_deadline(), self.inbound.next_due(), self.outbound.next_due(), Some(end)];
        let due = due.into_iter().flatten().min().unwrap_or(end);
        let sleep = due.saturating_sub(self.now()).min(Duration::from_millis(SLEEP_MS));
        let timeout = Timespec { tv_sec: sleep.as_secs() as i64, tv_nsec: i64::from(sleep.subsec_nanos()) };
        let device = PollFd::new(&self.device, PollFlags::IN);
        let polled = match other {
            None => poll(&mut [device], Some(&timeout)).map(|_| false),
            Some(other) => {
                let mut both = [device, PollFd::from_borrowed_fd(other, PollFlags::IN)];
                poll(&mut both, Some(&timeout)).map(|_| !both[1].revents().is_empty())
            }
        };
        match polled {
            Ok(is_other) => Ok(is_other),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Writes a packet to the interface. One that the kernel does not take counts as lost.
fn send(device: &SyncDevice, packet: &[u8]) -> io::Result<()> {
    match device.send(packet) {
        Err(error) if !matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::WouldBlock) => {
            Err(error)
        }
        _ => Ok(()),
    }
}
