//! The thread that moves packets between the two interfaces.

use super::limits::{DELAY_DIGITS, DELAY_NS, PACKET, PACKETS_PER_TURN, SLEEP_MS};
use super::rate_meter::RateMeter;
use core::sync::atomic::{AtomicBool, Ordering};
use hdrhistogram::Histogram;
use netem::{Counts, Direction, Impairments};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::time::{Duration, Instant};
use tun_rs::SyncDevice;

/// One direction of the link, as it was achieved.
#[derive(Debug)]
pub struct Achieved {
    /// Counts of the state machine.
    pub counts: Counts,
    /// Time from reading a packet to writing it, ns.
    pub delay_ns: Histogram<u64>,
    /// Packets that the interface did not take: malformed by damage, or no memory.
    pub refused: u64,
    /// Packets that were under way at the end.
    pub under_way: u64,
    /// Rate of the packets that came out, bits/s; none for fewer than two packets.
    pub bits_per_second: Option<f64>,
}

/// A direction with its measurements.
struct Lane<'a> {
    from: &'a SyncDevice,
    to: &'a SyncDevice,
    direction: Direction,
    delay_ns: Histogram<u64>,
    refused: u64,
    rate: RateMeter,
}

/// Impairments of both directions.
#[derive(Clone, Copy, Debug)]
pub struct Both<T> {
    /// From the left to the right namespace.
    pub to_right: T,
    /// From the right to the left namespace.
    pub to_left: T,
}

impl Both<Achieved> {
    /// Share of the packets of both directions that the link lost.
    pub fn lost(&self) -> f64 {
        let counts = [self.to_right.counts, self.to_left.counts];
        let lost: u64 = counts.iter().map(|counts| counts.lost).sum();
        let reached: u64 = counts.iter().map(|counts| counts.reached_line()).sum();
        lost as f64 / reached.max(1) as f64
    }
}

/// Sets the flag when it is dropped.
struct StopGuard<'a>(&'a AtomicBool);

impl Drop for StopGuard<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` while packets move between the interfaces, with the same impairments in both directions. Returns the measurements of
/// the link, too.
///
/// # Errors
///
/// The error of `work`, or the link has failed.
pub fn during<T>(
    [left, right]: [&SyncDevice; 2],
    impairments: Impairments,
    seed: u64,
    work: impl FnOnce() -> Result<T, String>,
) -> Result<(T, Both<Achieved>), String> {
    let both = Both { to_right: impairments, to_left: impairments };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let pump = scope.spawn(|| run(left, right, both, seed, None, &stop));
        let result = {
            // A panic in the work must end the pump, or the scope would wait for it.
            let _end = StopGuard(&stop);
            work()
        };
        let achieved = pump.join().map_err(|_| "the thread of the link has failed".to_owned())?;
        let achieved = achieved.map_err(|error| format!("the link has failed: {error}"))?;
        Ok((result?, achieved))
    })
}

/// Moves packets until `stop` is set or `duration` is over. Returns what was achieved in each direction.
///
/// # Errors
///
/// The error of read(2), write(2) or poll(2) on an interface: it was removed, or set down.
pub fn run(
    left: &SyncDevice,
    right: &SyncDevice,
    impairments: Both<Impairments>,
    seed: u64,
    duration: Option<Duration>,
    stop: &AtomicBool,
) -> io::Result<Both<Achieved>> {
    let start = Instant::now();
    let mut lanes = [
        Lane::new(left, right, impairments.to_right, seed),
        // Another stream of numbers, or both directions would lose the same packets.
        Lane::new(right, left, impairments.to_left, !seed),
    ];
    let mut buffer = vec![0; PACKET];
    while !stop.load(Ordering::Relaxed) && duration.is_none_or(|duration| start.elapsed() < duration) {
        for lane in &mut lanes {
            lane.deliver(start)?;
            lane.read(start, &mut buffer)?;
            lane.deliver(start)?;
        }
        wait(&lanes, start)?;
    }
    let [to_right, to_left] = lanes.map(Lane::achieved);
    Ok(Both { to_right, to_left })
}

/// Waits for a packet, or until one is due.
fn wait(lanes: &[Lane<'_>; 2], start: Instant) -> io::Result<()> {
    let due = lanes.iter().filter_map(|lane| lane.direction.next_due()).min();
    let longest = Duration::from_millis(SLEEP_MS);
    let sleep = due.map_or(longest, |due| due.saturating_sub(start.elapsed()).min(longest));
    let timeout = Timespec { tv_sec: sleep.as_secs() as i64, tv_nsec: i64::from(sleep.subsec_nanos()) };
    let mut ready = [PollFd::new(lanes[0].from, PollFlags::IN), PollFd::new(lanes[1].from, PollFlags::IN)];
    match poll(&mut ready, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl<'a> Lane<'a> {
    fn new(from: &'a SyncDevice, to: &'a SyncDevice, impairments: Impairments, seed: u64) -> Lane<'a> {
        let delay_ns = Histogram::new_with_bounds(1, DELAY_NS, DELAY_DIGITS).expect("valid bounds");
        Lane {
            from,
            to,
            direction: Direction::new(impairments, seed),
            delay_ns,
            refused: 0,
            rate: RateMeter::default(),
        }
    }

    /// Reads packets that wait at the interface.
    fn read(&mut self, start: Instant, buffer: &mut [u8]) -> io::Result<()> {
        for _ in 0..PACKETS_PER_TURN {
            match self.from.recv(buffer) {
                Ok(octets) => self.direction.offer(start.elapsed(), &buffer[..octets]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes the packets that are due.
    fn deliver(&mut self, start: Instant) -> io::Result<()> {
        loop {
            let now = start.elapsed();
            let (to, mut result, mut came, mut octets) = (self.to, Ok(0), now, 0);
            let delivered = self.direction.take_due(now, |packet, offered| {
                (came, octets) = (offered, packet.len());
                result = to.send(packet);
            });
            if !delivered {
                return Ok(());
            }
            match result {
                Ok(_) => {}
                // The kernel looks at the IP version, which a flipped bit may have changed.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => self.refused += 1,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.refused += 1,
                Err(error) => return Err(error),
            }
            let written = start.elapsed();
            self.delay_ns.saturating_record((written.saturating_sub(came)).as_nanos() as u64);
            self.rate.count(written, octets);
        }
    }

    fn achieved(self) -> Achieved {
        Achieved {
            counts: self.direction.counts(),
            under_way: self.direction.under_way() as u64,
            delay_ns: self.delay_ns,
            refused: self.refused,
            bits_per_second: self.rate.bits_per_second(),
        }
    }
}
