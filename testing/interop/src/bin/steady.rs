//! Steady queries over UDP, for tests that need the time of each lost query: `steady SERVER NAME RATE SECONDS FLOWS END`.
//!
//! It sends RATE queries for NAME a second in an equal pace, by turns from FLOWS sockets (one flow each for a router with
//! equal-cost routes). It stops after SECONDS, or when the file END exists. Then it prints one line for each query
//! without an answer, `lost MICROSECONDS` (the send time since 1970), and then `sent N answered N`.

#![forbid(unsafe_code)]

use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Wait for late answers at the end: more than a busy machine delays them.
const GRACE: Duration = Duration::from_secs(3);

/// Largest number of queries of one socket, so that no ID is used twice.
const IDS: usize = 1 << 16;

struct Flow {
    socket: UdpSocket,
    /// Send times of the queries, whose places are their IDs.
    sent: Vec<SystemTime>,
    answered: Vec<bool>,
}

impl Flow {
    /// A flow on a socket that is not connected: an ICMP error is one more lost query, and no error of the socket.
    fn new() -> std::io::Result<Flow> {
        let socket = UdpSocket::bind((IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0))?;
        socket.set_nonblocking(true)?;
        Ok(Flow { socket, sent: Vec::new(), answered: Vec::new() })
    }

    fn ask(&mut self, server: SocketAddr, question: &[u8]) {
        let id = u16::try_from(self.sent.len()).expect("fewer queries than IDs");
        let mut query = vec![0; 12];
        query[..2].copy_from_slice(&id.to_be_bytes());
        // RD, and one question.
        (query[2], query[5]) = (1, 1);
        query.extend_from_slice(question);
        self.sent.push(SystemTime::now());
        self.answered.push(false);
        // A query that the kernel rejects is a lost one.
        let _ = self.socket.send_to(&query, server);
    }

    /// Takes the answers that are there: with the ID of a query, QR, and RCODE 0.
    fn receive(&mut self) {
        let mut buffer = [0; 1500];
        while let Ok((length, _)) = self.socket.recv_from(&mut buffer) {
            let id = usize::from(u16::from_be_bytes([buffer[0], buffer[1]]));
            let is_answer = length > 12 && buffer[2] & 0x80 != 0 && buffer[3] & 0x0f == 0 && buffer[7] > 0;
            if is_answer && id < self.answered.len() {
                self.answered[id] = true;
            }
        }
    }
}

/// Times of the queries.
struct Schedule {
    start: Instant,
    pause: Duration,
    total: usize,
    sent: usize,
}

impl Schedule {
    /// Waits for the time of the next query; returns its number.
    fn next(&mut self, end: &Path) -> Option<usize> {
        // A look at the file system for one query in sixteen.
        if self.sent == self.total || (self.sent.is_multiple_of(16) && end.exists()) {
            return None;
        }
        let due = self.pause * u32::try_from(self.sent).expect("as many queries as 16 bits of IDs allow");
        if let Some(early) = due.checked_sub(self.start.elapsed()) {
            std::thread::sleep(early);
        }
        self.sent += 1;
        Some(self.sent - 1)
    }
}

/// The question for the AAAA records of a name.
fn question(name: &str) -> Vec<u8> {
    [&kit::name(name)[..], &[0, 28, 0, 1]].concat()
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let [_, server, name, rate, secs, flows, end] = &words[..] else {
        eprintln!("usage: steady SERVER NAME RATE SECONDS FLOWS END");
        std::process::exit(2);
    };
    let number = |text: &String| text.parse::<usize>().expect("a number");
    let server = SocketAddr::new(server.parse().expect("an address"), 53);
    let total = number(rate) * number(secs);
    assert!(total.div_ceil(number(flows)) <= IDS, "too many queries for each flow");
    let flows: Result<Vec<Flow>, _> = (0..number(flows)).map(|_| Flow::new()).collect();
    let mut flows = flows.expect("sockets");
    let mut schedule = Schedule {
        start: Instant::now(),
        pause: Duration::from_secs(1) / number(rate) as u32,
        total,
        sent: 0,
    };
    let question = question(name);
    while let Some(number) = schedule.next(Path::new(end)) {
        let turn = number % flows.len();
        flows[turn].ask(server, &question);
        flows[turn].receive();
    }
    let deadline = Instant::now() + GRACE;
    while Instant::now() < deadline && flows.iter().any(|flow| flow.answered.contains(&false)) {
        flows.iter_mut().for_each(Flow::receive);
        std::thread::sleep(Duration::from_millis(5));
    }
    report(&flows);
}

fn report(flows: &[Flow]) {
    let [mut sent, mut answered] = [0; 2];
    for flow in flows {
        for (time, &is_answered) in flow.sent.iter().zip(&flow.answered) {
            sent += 1;
            answered += usize::from(is_answered);
            if !is_answered {
                println!("lost {}", time.duration_since(UNIX_EPOCH).expect("after 1970").as_micros());
            }
        }
    }
    println!("sent {sent} answered {answered}");
}
