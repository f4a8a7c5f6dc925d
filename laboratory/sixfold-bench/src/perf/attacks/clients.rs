//! Clients of the experiment: one network that attacks, and others whose questions are honest. Each kind of question has a rate of its own,
//! which does not depend on the answers.

use crate::perf::attacks::limits;
use crate::perf::names::PREFIX;
use measure::statistics::{percentile, sorted};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signed_zones::attacks::{Attack, address, signed_name, unsigned_name, wrong_name};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};
use wire::header::{self, HEADER};
use wire::{Rcode, Type};

/// Kinds of questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// New names of a zone that costs much.
    Attack,
    /// Names that the device has in its cache.
    Cached,
    /// New names of a zone that is not signed.
    Unsigned,
    /// New names of a signed zone.
    Signed,
}

impl Kind {
    /// The honest kinds.
    pub const HONEST: [Kind; 3] = [Kind::Cached, Kind::Unsigned, Kind::Signed];
    const ALL: [Kind; 4] = [Kind::Attack, Kind::Cached, Kind::Unsigned, Kind::Signed];

    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Attack => "attack",
            Kind::Cached => "cached",
            Kind::Unsigned => "new unsigned",
            Kind::Signed => "new signed",
        }
    }
}

/// Phase of a load.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    /// Its length.
    pub length: Duration,
    /// Attack, and its questions a second.
    pub attack: Option<(Attack, f64)>,
}

/// Questions of a kind in a phase.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Questions.
    pub sent: u64,
    /// Questions with any answer in time.
    pub answered: u64,
    /// Questions with the right answer in time. An attack has none.
    pub right: u64,
    /// Times of the right answers in microseconds.
    pub delays_us: Vec<u32>,
}

impl Tally {
    /// Percentile of the times, in milliseconds.
    pub fn ms(&self, percent: f64) -> f64 {
        let delays: Vec<f64> = self.delays_us.iter().map(|delay| f64::from(*delay) / 1e3).collect();
        percentile(&sorted(&delays), percent).unwrap_or(f64::NAN)
    }
}

/// Result of a phase.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Duration in seconds.
    pub seconds: f64,
    /// CPU time of the device, in seconds.
    pub cpu_s: f64,
    tallies: [Tally; Kind::ALL.len()],
}

impl Report {
    /// Questions of a kind.
    pub fn of(&self, kind: Kind) -> &Tally {
        &self.tallies[kind as usize]
    }

    /// Share of all honest questions with the right answer in time.
    pub fn kept(&self) -> f64 {
        let sum = |count: fn(&Tally) -> u64| {
            Kind::HONEST.iter().map(|&kind| count(self.of(kind))).sum::<u64>() as f64
        };
        sum(|tally| tally.right) / sum(|tally| tally.sent)
    }
}

/// Question without an answer so far.
struct Outstanding {
    kind: Kind,
    /// Number of the address that its answer has.
    number: u64,
    sent: Instant,
}

/// Socket of a client, and its next message ID.
struct Port {
    socket: UdpSocket,
    next_id: u16,
}

/// All clients of a device.
pub struct Clients {
    ports: Vec<Port>,
    /// Number of the first ports, which attack.
    attackers: usize,
    /// By port and message ID.
    outstanding: HashMap<(usize, u16), Outstanding>,
    /// Questions of each kind so far.
    asked: [u64; Kind::ALL.len()],
}

impl Clients {
    /// Clients at these addresses: those of the network that attacks, and others.
    ///
    /// # Errors
    ///
    /// An address cannot be bound.
    pub fn new(server: SocketAddr, attackers: &[IpAddr], others: &[IpAddr]) -> io::Result<Clients> {
        let port = |address: &IpAddr| {
            let socket = UdpSocket::bind((*address, 0))?;
            socket.connect(server)?;
            socket.set_nonblocking(true)?;
            Ok(Port { socket, next_id: 0 })
        };
        Ok(Clients {
            ports: attackers.iter().chain(others).map(port).collect::<io::Result<_>>()?,
            attackers: attackers.len(),
            outstanding: HashMap::new(),
            asked: [0; _],
        })
    }

    /// Waits until the device answers for a signed name, checks that it refuses a wrong signature, and puts the names into its cache that
    /// are asked for again and again.
    ///
    /// # Errors
    ///
    /// It does not answer in time, or does not validate.
    pub fn prepare(&mut self) -> io::Result<()> {
        let first = limits::CACHED_NAMES;
        let begun = Instant::now();
        while !self.is_answered(&signed_name(first), first)? {
            if begun.elapsed() > limits::READY_TIMEOUT {
                return Err(io::Error::other("no right answer for a signed name"));
            }
        }
        self.asked[Kind::Signed as usize] = 1;
        // The A record: PowerDNS Recursor 5.2 does not refuse the question for the AAAA records of such a name, with DNS64.
        if self
            .ask(&wrong_name(), Type::A)?
            .is_none_or(|message| header::flags(&message).rcode() != Rcode::SERVFAIL)
        {
            return Err(io::Error::other("a wrong signature is not refused"));
        }
        for number in 0..limits::CACHED_NAMES {
            if !self.is_answered(&signed_name(number), number)? {
                return Err(io::Error::other("no right answer for a name that is to be cached"));
            }
        }
        Ok(())
    }

    fn is_answered(&mut self, name: &[u8], number: u64) -> io::Result<bool> {
        Ok(self.ask(name, Type::AAAA)?.is_some_and(|message| is_right(&message, number)))
    }

    /// Asks one question from the last port, and waits for its answer.
    fn ask(&mut self, name: &[u8], qtype: Type) -> io::Result<Option<Vec<u8>>> {
        let Some(port) = self.ports.last_mut() else { return Ok(None) };
        let id = port.take_id();
        let begun = Instant::now();
        // Until the device listens, the kernel refuses the datagram.
        let _ = port.socket.send(&query(id, name, qtype));
        let mut buffer = [0; limits::ANSWER];
        while begun.elapsed() < limits::ANSWER_TIMEOUT {
            wait(std::slice::from_ref(port), limits::READY_INTERVAL)?;
            while let Ok(length) = port.socket.recv(&mut buffer) {
                if length >= HEADER && buffer[..2] == id.to_be_bytes() {
                    return Ok(Some(buffer[..length].to_vec()));
                }
            }
        }
        Ok(None)
    }

    /// Runs a phase, and waits at its end for the answers that may still be in time. `cpu_s`: CPU time of the device so far.
    ///
    /// # Errors
    ///
    /// The sockets cannot be waited for.
    pub fn run(&mut self, phase: &Phase, cpu_s: impl Fn() -> f64) -> io::Result<Report> {
        let mut report = Report { cpu_s: -cpu_s(), ..Report::default() };
        let rates = Kind::ALL.map(|kind| (kind, rate(kind, phase)));
        let mut sent = [0u64; Kind::ALL.len()];
        let begun = Instant::now();
        while begun.elapsed() < phase.length {
            let elapsed = begun.elapsed().as_secs_f64();
            let mut next = phase.length.as_secs_f64();
            for (kind, rate) in rates {
                let count = &mut sent[kind as usize];
                let due = (elapsed * rate) as u64;
                while *count < due {
                    *count += 1;
                    self.send(kind, phase, &mut report);
                }
                if rate > 0.0 {
                    next = next.min((due + 1) as f64 / rate);
                }
            }
            self.receive(&mut report);
            let left = Duration::from_secs_f64(next).saturating_sub(begun.elapsed());
            wait(&self.ports, left)?;
            self.receive(&mut report);
        }
        report.seconds = begun.elapsed().as_secs_f64();
        report.cpu_s += cpu_s();
        let last = Instant::now();
        while last.elapsed() < limits::ANSWER_TIMEOUT && !self.outstanding.is_empty() {
            wait(&self.ports, limits::READY_INTERVAL)?;
            self.receive(&mut report);
        }
        self.outstanding.clear();
        Ok(report)
    }

    fn send(&mut self, kind: Kind, phase: &Phase, report: &mut Report) {
        let count = &mut self.asked[kind as usize];
        let number = *count;
        *count += 1;
        let (name, number) = match (kind, phase.attack) {
            (Kind::Attack, Some((attack, _))) => (attack.name(number), number),
            (Kind::Attack, None) => return,
            (Kind::Cached, _) => {
                let number = number % limits::CACHED_NAMES;
                (signed_name(number), number)
            }
            (Kind::Unsigned, _) => (unsigned_name(number), number),
            (Kind::Signed, _) => (signed_name(limits::CACHED_NAMES + number), limits::CACHED_NAMES + number),
        };
        let place = match kind {
            Kind::Attack => (number % self.attackers as u64) as usize,
            _ => self.attackers + (number % (self.ports.len() - self.attackers) as u64) as usize,
        };
        let port = &mut self.ports[place];
        let id = port.take_id();
        // A datagram that the kernel does not take is a question without an answer.
        let _ = port.socket.send(&query(id, &name, Type::AAAA));
        self.outstanding.insert((place, id), Outstanding { kind, number, sent: Instant::now() });
        report.tallies[kind as usize].sent += 1;
    }

    /// Reads all answers that have arrived.
    fn receive(&mut self, report: &mut Report) {
        let mut buffer = [0; limits::ANSWER];
        for (place, port) in self.ports.iter().enumerate() {
            while let Ok(length) = port.socket.recv(&mut buffer) {
                let message = &buffer[..length];
                let Some(id) = message.first_chunk::<2>().filter(|_| length >= HEADER) else { continue };
                let Some(of) = self.outstanding.remove(&(place, u16::from_be_bytes(*id))) else { continue };
                let delay = of.sent.elapsed();
                if delay > limits::ANSWER_TIMEOUT {
                    continue;
                }
                let tally = &mut report.tallies[of.kind as usize];
                tally.answered += 1;
                if of.kind != Kind::Attack && is_right(message, of.number) {
                    tally.right += 1;
                    tally.delays_us.push(delay.as_micros() as u32);
                }
            }
        }
    }
}

impl Port {
    fn take_id(&mut self) -> u16 {
        self.next_id = self.next_id.wrapping_add(1);
        self.next_id
    }
}

/// Questions a second.
fn rate(kind: Kind, phase: &Phase) -> f64 {
    match kind {
        Kind::Attack => phase.attack.map_or(0.0, |(_, rate)| rate),
        Kind::Cached => limits::CACHED_RATE,
        Kind::Unsigned | Kind::Signed => limits::NEW_RATE,
    }
}

/// Waits until a port can be read.
fn wait(ports: &[Port], most: Duration) -> io::Result<()> {
    let mut waiting: Vec<PollFd<'_>> =
        ports.iter().map(|port| PollFd::new(&port.socket, PollFlags::IN)).collect();
    let timeout = Timespec { tv_sec: most.as_secs() as i64, tv_nsec: i64::from(most.subsec_nanos()) };
    match poll(&mut waiting, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Query for the records of a type of a name, with RD.
fn query(id: u16, name: &[u8], qtype: Type) -> Vec<u8> {
    let mut query = id.to_be_bytes().to_vec();
    query.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    query.extend(name);
    query.extend(qtype.0.to_be_bytes());
    query.extend([0, 1]);
    query
}

/// True for NOERROR with the synthesized address of a number.
fn is_right(message: &[u8], number: u64) -> bool {
    let expected = u128::from(PREFIX) | u128::from(u32::from(address(number)));
    header::flags(message).rcode() == Rcode::NOERROR
        && message.windows(16).any(|octets| octets == expected.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Runs a phase against a thread that answers honest questions with their address, and attacks with SERVFAIL. Every n-th honest
    /// answer is left out.
    fn against(phase: &Phase, leave_out: u64) -> Report {
        let socket = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let server = socket.local_addr().unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut buffer, mut count) = ([0; 512], 0);
                while !stop.load(Ordering::Relaxed) {
                    let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
                    let label = std::str::from_utf8(&buffer[14..13 + usize::from(buffer[12])]).unwrap();
                    let number = label.parse::<u64>().unwrap();
                    let mut answer = buffer[..length].to_vec();
                    answer[2] |= 0x80;
                    if length < HEADER + 30 && answer.windows(7).any(|octets| octets == b"sigjam\0") {
                        answer[3] = 2;
                    } else {
                        count += 1;
                        let address = u128::from(PREFIX) | u128::from(u32::from(address(number)));
                        answer.extend(address.to_be_bytes());
                        if leave_out != 0 && count % leave_out == 0 {
                            continue;
                        }
                    }
                    socket.send_to(&answer, from).unwrap();
                }
            });
            let local = [IpAddr::from(Ipv6Addr::LOCALHOST); 3];
            let mut clients = Clients::new(server, &local[..1], &local[1..]).unwrap();
            let report = clients.run(phase, || 1.0).unwrap();
            stop.store(true, Ordering::Relaxed);
            report
        })
    }

    #[test]
    fn every_kind_of_question_has_its_rate_and_right_answers_count_once() {
        let attack = Some((Attack::SigJam, 100.0));
        let report = against(&Phase { length: Duration::from_millis(300), attack }, 0);
        // Never more than the rate allows; fewer where the machine lets the test wait.
        for (kind, rate) in
            [(Kind::Attack, 100.0), (Kind::Cached, limits::CACHED_RATE), (Kind::Signed, limits::NEW_RATE)]
        {
            let tally = report.of(kind);
            assert!(tally.sent > 0 && tally.sent as f64 <= rate * report.seconds, "{kind:?}: {tally:?}");
            assert_eq!(tally.answered, tally.sent);
        }
        assert_eq!((report.kept(), report.of(Kind::Attack).right, report.cpu_s), (1.0, 0, 0.0));
    }

    #[test]
    fn a_missing_answer_is_a_question_that_was_not_kept() {
        let report = against(&Phase { length: Duration::from_millis(200), attack: None }, 4);
        assert!(report.kept() < 1.0 && report.kept() > 0.5, "{report:?}");
        assert_eq!(report.of(Kind::Attack).sent, 0);
    }
}
