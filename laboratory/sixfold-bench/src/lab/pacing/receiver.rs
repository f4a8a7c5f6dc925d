//! The receiver: it notes when its kernel got each query, and answers as an authority with AAAA records would, so that the tester has
//! the work of a trial.

use super::{TTL_SECS, names};
use crate::background::Background;
use load::sockets::{Pinned, StampedReceiver};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Longest wait for a query, so that the thread sees its end soon.
const WAIT: Duration = Duration::from_millis(20);

/// Time from the first socket with time stamps until the kernel takes them at the entry to its network stack: it switches that on
/// in the background.
const STAMPS_ON: Duration = Duration::from_millis(100);

/// Octets of the longest query that is read: a header, a name of the zone, type and class have 48.
const QUERY: usize = 512;

/// Octets of a header (RFC 1035 section 4.1.1), and of the label `AAA-BBB-CCC-DDD` with its length.
const HEADER: usize = 12;
const LABEL: usize = 16;

/// Times that a receiver has noted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Time at which the kernel received the query of each number, in nanoseconds of CLOCK_REALTIME; 0: it never came.
    pub stamps: Vec<u64>,
    /// Queries that came a second time.
    pub repeated: u64,
    /// Datagrams that are no query of the trial.
    pub unknown: u64,
    /// Queries without a time.
    pub unstamped: u64,
    /// Datagrams that the full queue of the receiver dropped.
    pub dropped: u64,
    /// Change of CLOCK_REALTIME against CLOCK_BOOTTIME during the trial, in nanoseconds: 0 unless the clock was set.
    pub clock_step_ns: u64,
}

/// A receiver in a thread of its own.
pub struct Receiver {
    address: SocketAddr,
    thread: Background<Result<Received, String>>,
}

impl Receiver {
    /// Listens on a port of the IPv6 loopback address, for a number of queries.
    ///
    /// # Errors
    ///
    /// No port can be bound, or the kernel gives no time stamps.
    pub fn start(queries: usize, core: Option<u16>) -> Result<Receiver, String> {
        let failed = |error: std::io::Error| format!("the receiver of the time stamps: {error}");
        let listen = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
        let socket = StampedReceiver::bind(listen, WAIT).map_err(failed)?;
        let address = socket.address().map_err(failed)?;
        let thread = Background::start(move |stop| {
            let _pinned = core.map(|core| Pinned::new(usize::from(core))).transpose().map_err(failed)?;
            receive(&socket, queries, stop).map_err(failed)
        });
        std::thread::sleep(STAMPS_ON);
        Ok(Receiver { address, thread })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends the receiver and returns what it has noted.
    ///
    /// # Errors
    ///
    /// The thread cannot run on its core, or the error of recvmsg(2).
    pub fn end(self) -> Result<Received, String> {
        self.thread.end()
    }
}

fn receive(socket: &StampedReceiver, queries: usize, stop: &AtomicBool) -> std::io::Result<Received> {
    let mut received = Received { stamps: vec![0; queries], ..Received::default() };
    let before = clock_difference();
    let mut buffer = [0; QUERY];
    // After the end of the load, what waits in the queue is read, too.
    while let Some(stamped) = next(socket, &mut buffer, stop)? {
        let query = &buffer[..stamped.octets];
        let Some(asked) = asked(query) else {
            received.unknown += 1;
            continue;
        };
        let number = names().number(asked.octets()).and_then(|number| usize::try_from(number).ok());
        match number.and_then(|number| received.stamps.get_mut(number)) {
            None => received.unknown += 1,
            Some(stamp) if *stamp != 0 => received.repeated += 1,
            Some(stamp) => match stamped.at {
                Some(at) => *stamp = at,
                None => received.unstamped += 1,
            },
        }
        socket.send(&answer(query, asked), stamped.from);
    }
    received.dropped = u64::from(socket.drops());
    received.clock_step_ns = clock_difference().abs_diff(before) as u64;
    Ok(received)
}

/// The next datagram; none when the load is over and nothing waits.
fn next(
    socket: &StampedReceiver,
    buffer: &mut [u8],
    stop: &AtomicBool,
) -> std::io::Result<Option<load::sockets::Stamped>> {
    loop {
        let is_over = stop.load(Ordering::Relaxed);
        match socket.receive(buffer)? {
            None if !is_over => {}
            stamped => return Ok(stamped),
        }
    }
}

/// CLOCK_REALTIME less CLOCK_BOOTTIME, in nanoseconds.
fn clock_difference() -> i128 {
    let real = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    real.as_nanos() as i128 - i128::from(datapath::now().0)
}

/// The address in the name of a query.
fn asked(query: &[u8]) -> Option<Ipv4Addr> {
    let label = query.get(HEADER..HEADER + LABEL)?;
    let text = std::str::from_utf8(&label[1..]).ok().filter(|_| usize::from(label[0]) == LABEL - 1)?;
    let mut octets = text.split('-').map(|digits| digits.parse::<u8>().ok());
    let address = [octets.next()??, octets.next()??, octets.next()??, octets.next()??];
    octets.next().is_none().then(|| address.into())
}

/// The answer to a query without an OPT record: one AAAA record, `2001:db8::` with the address of the name in its last 32 bits.
fn answer(query: &[u8], asked: Ipv4Addr) -> Vec<u8> {
    let mut answer = query.to_vec();
    // QR, AA and RD of the query; one question, one answer.
    answer[2] = 0x84 | query[2] & 1;
    answer[3] = 0;
    answer[6..HEADER].copy_from_slice(&[0, 1, 0, 0, 0, 0]);
    // The name of the question, AAAA, IN.
    answer.extend([0xc0, HEADER as u8, 0, 28, 0, 1]);
    answer.extend(TTL_SECS.to_be_bytes());
    answer.extend([0, 16]);
    let [a, b, c, d] = asked.octets();
    answer.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d]);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    fn query(label: &str) -> Vec<u8> {
        kit::query(0x0708, &format!("{label}.dns64perf.test"), 28)
    }

    #[test]
    fn a_name_tells_its_address() {
        assert_eq!(asked(&query("010-000-001-002")), Some(Ipv4Addr::new(10, 0, 1, 2)));
        assert_eq!(names().number([10, 0, 1, 2]), Some(258));
        for wrong in ["010-000-001-256", "010-000-00-1-02", "0100000-001-002", "x"] {
            assert_eq!(asked(&query(wrong)), None, "{wrong}");
        }
        for length in 0..HEADER + LABEL {
            assert_eq!(asked(&query("010-000-001-002")[..length]), None);
        }
    }

    #[test]
    fn each_query_is_noted_once_and_answered() {
        let receiver = Receiver::start(3, None).unwrap();
        let socket = UdpSocket::bind("[::1]:0").unwrap();
        socket.connect(receiver.address()).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut buffer = [0; 512];
        for name in ["010-000-000-002", "010-000-000-000", "010-000-000-002", "010-000-000-003"] {
            socket.send(&query(name)).unwrap();
            let octets = socket.recv(&mut buffer).unwrap();
            let answer = conform::message::Answer::read(&buffer[..octets]).unwrap();
            let line = conform::record::line(&answer.answer[0]);
            let last = &name[14..];
            assert!(
                line.eq_ignore_ascii_case(&format!(
                    "{name}.dns64perf.test. 3600 IN AAAA 2001:db8::a00:{last}"
                )),
                "{line}"
            );
        }
        socket.send(b"no query").unwrap();
        let received = receiver.end().unwrap();
        let came: Vec<bool> = received.stamps.iter().map(|stamp| *stamp > 0).collect();
        assert_eq!(came, [true, false, true]);
        assert_eq!((received.repeated, received.unknown, received.unstamped, received.dropped), (1, 2, 0, 0));
        assert!(received.stamps[0] > received.stamps[2], "the last name came first");
    }
}
