//! The tester of RFC 8219 section 9.1: client and authoritative server in one thread on one core, so that neither waits
//! until the scheduler runs the other. One turn of the loop sends the queries that are due, answers the device's
//! upstream queries, and reads the device's answers. With nothing to do it sleeps for some microseconds.
//!
//! The open loop follows an absolute schedule: query n is due at n / rate, independent of the device, and a late sender
//! catches up. The closed loop keeps a fixed number of queries outstanding.

use crate::client::Client;
use crate::limits;
use crate::names::{self, Fault};
use crate::popularity::Popularity;
use crate::process::Usage;
use crate::upstream::Upstream;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Pace of the queries.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// This number of queries a second, independent of the answers.
    Open(f64),
    /// This number of outstanding queries: a new one for each that is answered or given up.
    Closed(u64),
}

/// Returns the sequence number of the query that a message answers, or the fault of the message.
pub type Check = fn(&[u8]) -> Result<u64, Fault>;

/// Names of the queries, and the check of their answers.
#[derive(Clone, Copy, Debug)]
pub enum Names<'a> {
    /// Each name once.
    Fresh(Check),
    /// A few names, repeated, with synthesized answers.
    Repeated(&'a Popularity),
}

impl Names<'_> {
    fn write(self, sequence: u64, question: &mut [u8]) {
        match self {
            Names::Fresh(_) => names::write_query(sequence, question),
            Names::Repeated(popularity) => popularity.write(sequence, question),
        }
    }

    /// The sequence number of the query that a message answers; `next` is the next one to be sent.
    fn check(self, message: &[u8], next: u64) -> Result<u64, Fault> {
        match self {
            Names::Fresh(check) => check(message),
            Names::Repeated(popularity) => popularity.check(message, next),
        }
    }
}

/// One load on one device.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    /// Pace of the queries.
    pub pace: Pace,
    /// Source ports to send from.
    pub ports: usize,
    /// Duration of the load before the window, to fill caches, tables and estimates.
    pub warm_up: Duration,
    /// Duration of the measured window.
    pub window: Duration,
    /// Names and the check of their answers.
    pub names: Names<'a>,
    /// Queries that leave one port together, at most [`limits::SEGMENTS`].
    pub group: u64,
}

/// Counts of the window.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Length of the window, in seconds.
    pub seconds: f64,
    /// Queries sent.
    pub sent: u64,
    /// Right answers in time.
    pub valid: u64,
    /// Mean time from the turn that sent a query to its right answer in time, in seconds.
    pub delay: f64,
    /// Right answers that arrived too late, or twice.
    pub late: u64,
    /// Wrong answers, by [`Fault::index`].
    pub invalid: [u64; 7],
    /// Queries, of the window and before, without a right answer in time.
    pub lost: u64,
    /// Upstream queries of the device.
    pub upstream: u64,
    /// CPU time of the device, in seconds.
    pub cpu: f64,
    /// Time that its threads were ready to run and did not, because other programs had the core or its quota was used
    /// up.
    pub waited: f64,
    /// Highest delay of the sender behind its schedule, in seconds.
    pub behind: f64,
}

impl Tally {
    /// CPU time per right answer, in microseconds.
    pub fn cost_us(&self) -> f64 {
        self.cpu * 1e6 / self.valid as f64
    }

    /// Right answers per second.
    pub fn goodput(&self) -> f64 {
        self.valid as f64 / self.seconds
    }

    /// Queries per second.
    pub fn offered(&self) -> f64 {
        self.sent as f64 / self.seconds
    }

    /// Share of one core's time that the device used.
    pub fn busy(&self) -> f64 {
        self.cpu / self.seconds
    }

    /// Upstream queries per right answer: 2 in the worst case.
    pub fn legs(&self) -> f64 {
        self.upstream as f64 / self.valid as f64
    }
}

/// Client and authoritative server, for all devices of a run.
pub struct Tester {
    upstream: Upstream,
    /// The next sequence number, which only grows.
    next: u64,
    /// Send time of each of the last queries, in nanoseconds after `origin`; 0 once answered.
    sent_at: Vec<u64>,
    origin: Instant,
}

/// Counters that only grow.
#[derive(Clone, Copy, Default)]
struct Count {
    sent: u64,
    valid: u64,
    /// Sum of the valid answers' delays, in nanoseconds.
    delays: u64,
    late: u64,
    lost: u64,
    invalid: [u64; 7],
}

impl Tester {
    /// A tester whose authoritative server listens on a free port of the loopback interface.
    ///
    /// # Errors
    ///
    /// As [`Upstream::new`].
    pub fn new() -> io::Result<Tester> {
        Ok(Tester {
            upstream: Upstream::new()?,
            next: 0,
            sent_at: vec![0; limits::OUTSTANDING],
            origin: Instant::now(),
        })
    }

    /// Address of the authoritative server.
    pub fn upstream(&self) -> SocketAddr {
        self.upstream.address()
    }

    /// Sends queries until the first right answer arrives, at most for [`limits::READY_TIMEOUT`]. Returns false if none
    /// arrived.
    ///
    /// # Errors
    ///
    /// As [`Client::new`].
    pub fn wait_until_ready(&mut self, server: SocketAddr, check: Check) -> io::Result<bool> {
        let mut client = Client::new(server, 1)?;
        let start = Instant::now();
        while start.elapsed() < limits::READY_TIMEOUT {
            client.send(self.next..self.next + 1);
            self.next += 1;
            let asked = Instant::now();
            while asked.elapsed() < Duration::from_millis(50) {
                self.upstream.serve();
                let mut ready = false;
                client.receive(|message| ready |= check(message).is_ok());
                if ready {
                    return Ok(true);
                }
                std::thread::sleep(limits::IDLE_SLEEP);
            }
        }
        Ok(false)
    }

    /// Runs a load. `used` returns the CPU usage of the device so far.
    ///
    /// # Errors
    ///
    /// As [`Client::new`].
    pub fn run(
        &mut self,
        server: SocketAddr,
        load: &Load<'_>,
        used: impl Fn() -> Usage,
    ) -> io::Result<Tally> {
        let mut client = Client::new(server, load.ports)?;
        let mut count = Count::default();
        // Queries below `settled` are answered or given up; the window of a closed loop counts from there.
        let (first, mut settled) = (self.next, self.next);
        let (mut behind, mut open) = (0.0f64, None);
        let start = self.origin.elapsed();
        let close = start + load.warm_up + load.window;
        loop {
            let now = self.origin.elapsed();
            if open.is_none() && now >= start + load.warm_up {
                open = Some((now, count, self.upstream.answered(), used()));
                behind = 0.0;
            }
            if now >= close {
                break;
            }
            let due = due_now(load.pace, now - start, self.next - first, &count, &mut behind);
            let due = due.min(limits::BURST);
            self.send(&mut client, load, due, now, &mut count);
            let served = self.upstream.serve();
            let received = self.receive(&mut client, load.names, &mut count);
            self.expire(&mut settled, &mut count);
            if due == 0 && served == 0 && received == 0 {
                std::thread::sleep(limits::IDLE_SLEEP);
            }
        }
        let (opened, before, legs_before, used_before) = open.unwrap_or((start, count, 0, Usage::default()));
        let (closed, at_close, legs, used) = (self.origin.elapsed(), count, self.upstream.answered(), used());
        self.drain(&mut client, load.names, &mut settled, &mut count, closed);
        let mut invalid = at_close.invalid;
        for (after, before) in invalid.iter_mut().zip(before.invalid) {
            *after -= before;
        }
        Ok(Tally {
            seconds: (closed - opened).as_secs_f64(),
            sent: at_close.sent - before.sent,
            valid: at_close.valid - before.valid,
            delay: (at_close.delays - before.delays) as f64
                / 1e9
                / (at_close.valid - before.valid).max(1) as f64,
            late: count.late - before.late,
            invalid,
            lost: count.lost - before.lost,
            upstream: legs - legs_before,
            cpu: used.cpu.saturating_sub(used_before.cpu).as_secs_f64(),
            waited: used.waited.saturating_sub(used_before.waited).as_secs_f64(),
            behind,
        })
    }

    /// Waits for the outstanding answers of a load. One in time counts as valid, but not as goodput of the window.
    fn drain(
        &mut self,
        client: &mut Client,
        names: Names<'_>,
        settled: &mut u64,
        count: &mut Count,
        closed: Duration,
    ) {
        while *settled < self.next && self.origin.elapsed() < closed + 2 * limits::TIMEOUT {
            let served = self.upstream.serve();
            let received = self.receive(client, names, count);
            self.expire(settled, count);
            if served == 0 && received == 0 {
                std::thread::sleep(limits::IDLE_SLEEP);
            }
        }
    }

    fn send(&mut self, client: &mut Client, load: &Load<'_>, due: u64, now: Duration, count: &mut Count) {
        let end = self.next + due;
        while self.next < end {
            let group = self.next..end.min(self.next + load.group);
            for sequence in group.clone() {
                self.sent_at[slot(sequence)] = now.as_nanos() as u64;
            }
            self.next = group.end;
            count.sent += group.end - group.start;
            // A datagram that could not be sent stays unanswered and counts as lost.
            client.send_written(group, |sequence, question| load.names.write(sequence, question));
        }
    }

    fn receive(&mut self, client: &mut Client, names: Names<'_>, count: &mut Count) -> usize {
        let (sent_at, next, origin) = (&mut self.sent_at, self.next, self.origin);
        let (now, limit) = (origin.elapsed().as_nanos() as u64, limits::TIMEOUT.as_nanos() as u64);
        client.receive(|message| match names.check(message, next) {
            // A slot belongs to the newest sequence number; older ones were given up long ago.
            Ok(number) => {
                let sent = &mut sent_at[slot(number)];
                let age = (next.wrapping_sub(1).wrapping_sub(number)) % crate::names::NAMES;
                if *sent != 0 && now <= *sent + limit && age < limits::OUTSTANDING as u64 {
                    count.delays += now.saturating_sub(*sent);
                    *sent = 0;
                    count.valid += 1;
                } else {
                    count.late += 1;
                }
            }
            Err(fault) => count.invalid[fault.index()] += 1,
        })
    }

    /// Advances over the answered queries, and gives up those that have timed out.
    fn expire(&mut self, settled: &mut u64, count: &mut Count) {
        let now = self.origin.elapsed().as_nanos() as u64;
        while *settled < self.next {
            let sent = &mut self.sent_at[slot(*settled)];
            if *sent != 0 {
                if now <= *sent + limits::TIMEOUT.as_nanos() as u64
                    && self.next - *settled < limits::OUTSTANDING as u64
                {
                    break;
                }
                *sent = 0;
                count.lost += 1;
            }
            *settled += 1;
        }
    }
}

/// Number of queries that are due. An open loop also notes how far the sender is behind its schedule, in seconds.
fn due_now(pace: Pace, elapsed: Duration, issued: u64, count: &Count, behind: &mut f64) -> u64 {
    match pace {
        Pace::Open(rate) => {
            let due = (elapsed.as_secs_f64() * rate) as u64;
            let due = due.saturating_sub(issued);
            *behind = behind.max(due as f64 / rate);
            due
        }
        Pace::Closed(window) => (count.valid + count.lost + window).saturating_sub(count.sent),
    }
}

fn slot(sequence: u64) -> usize {
    sequence as usize % limits::OUTSTANDING
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::QUERY;
    use std::net::UdpSocket;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Runs a load on a thread that echoes all but every n-th query, marked as a response.
    fn with_echo(leave_out: u64, load: &Load<'_>) -> Tally {
        let socket = UdpSocket::bind("[::1]:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let server = socket.local_addr().unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut buffer = [0; 512];
                let mut count = 0;
                while !stop.load(Ordering::Relaxed) {
                    let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
                    assert_eq!(length, QUERY, "the kernel cuts a large send into questions");
                    count += 1;
                    buffer[2] |= 0x80;
                    if leave_out == 0 || count % leave_out != 0 {
                        socket.send_to(&buffer[..length], from).unwrap();
                    }
                }
            });
            let tally = Tester::new().unwrap().run(server, load, Usage::default);
            stop.store(true, Ordering::Relaxed);
            tally.unwrap()
        })
    }

    fn load(pace: Pace) -> Load<'static> {
        Load {
            pace,
            ports: 3,
            warm_up: Duration::ZERO,
            window: Duration::from_millis(300),
            names: Names::Fresh(names::check_reflected),
            group: limits::SEGMENTS as u64,
        }
    }

    #[test]
    fn an_open_loop_sends_what_the_schedule_asks_for() {
        let tally = with_echo(0, &load(Pace::Open(2_000.0)));
        // Never more than 0.3 s at 2,000 a second; less where the machine lets the test wait.
        assert!((1..=600).contains(&tally.sent), "{tally:?}");
        assert_eq!((tally.lost, tally.late, tally.invalid), (0, 0, [0; 7]));
        assert!(tally.valid <= tally.sent && tally.valid > 0);
    }

    #[test]
    fn a_closed_loop_goes_on_after_losses() {
        let tally = with_echo(10, &load(Pace::Closed(64)));
        assert!(tally.lost > 0 && tally.valid > 0, "{tally:?}");
        assert_eq!(tally.invalid, [0; 7]);
    }

    #[test]
    fn a_wrong_answer_is_no_valid_one() {
        let tally = with_echo(
            0,
            &Load { names: Names::Fresh(names::check_synthesized), ..load(Pace::Open(1_000.0)) },
        );
        assert_eq!(tally.valid, 0);
        assert!(tally.invalid[Fault::Records.index()] > 0, "{tally:?}");
    }
}
