//! Steady queries for cached names, with the fate of each: at a fixed rate, over IPv4 and IPv6, for AAAA records of `h0.lab.test` and so
//! on.

use super::question;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Names that are asked for, by turns.
pub const NAMES: u32 = 400;

/// Source ports, by turns for IPv4 and IPv6.
const PORTS: usize = 16;

/// Wait for late answers at the end, longer than a server takes for any.
const GRACE: Duration = Duration::from_secs(5);

/// Longest load.
const LONGEST: Duration = Duration::from_secs(300);

/// Type AAAA.
const AAAA: u16 = 28;

/// The fate of all queries.
#[derive(Default)]
pub struct Fates {
    /// Queries that were sent.
    pub sent: u64,
    /// Queries with an answer with RCODE 0 and a record.
    pub answered: u64,
    /// Answers with another RCODE or without a record, and answers to no query or to one that has its answer.
    pub wrong: u64,
    /// Send times of the queries without an answer, oldest first.
    pub lost: Vec<Instant>,
}

/// A socket that is not connected, so that an ICMP error is one more lost query and no error of the socket, and the send times of the
/// queries that wait, by their IDs.
struct Flow {
    socket: UdpSocket,
    server: SocketAddr,
    waiting: Vec<Option<Instant>>,
    next: u16,
}

impl Flow {
    fn new(server: SocketAddr) -> Flow {
        let any: SocketAddr = if server.is_ipv4() { ([0; 4], 0).into() } else { ([0u16; 8], 0).into() };
        let socket = UdpSocket::bind(any).expect("a socket");
        socket.set_nonblocking(true).expect("a socket has modes");
        Flow { socket, server, waiting: vec![None; 1 << 16], next: 0 }
    }

    fn ask(&mut self, query: &mut [u8], fates: &mut Fates) {
        query[..2].copy_from_slice(&self.next.to_be_bytes());
        let place = &mut self.waiting[usize::from(self.next)];
        // The ID comes back after minutes, so the earlier query is lost.
        fates.lost.extend(place.replace(Instant::now()));
        self.next = self.next.wrapping_add(1);
        fates.sent += 1;
        // A query that the kernel rejects is a lost one.
        let _ = self.socket.send_to(query, self.server);
    }

    fn receive(&mut self, fates: &mut Fates) {
        let mut buffer = [0; 1500];
        while let Ok((length, _)) = self.socket.recv_from(&mut buffer) {
            let id = usize::from(u16::from_be_bytes([buffer[0], buffer[1]]));
            let is_right = length > 12 && buffer[2] & 0x80 != 0 && buffer[3] & 0x0f == 0 && buffer[7] > 0;
            if self.waiting[id].take().is_some() && is_right {
                fates.answered += 1;
            } else {
                fates.wrong += 1;
            }
        }
    }
}

/// Asks `servers` by turns, `rate` times a second, until `is_over`, and then waits for the last answers. The namespace is that of the
/// calling thread.
pub fn load(servers: [SocketAddr; 2], rate: u32, is_over: &AtomicBool) -> Fates {
    let mut fates = Fates::default();
    let mut flows: Vec<Flow> = (0..PORTS).map(|place| Flow::new(servers[place % 2])).collect();
    let mut queries: Vec<Vec<u8>> =
        (0..NAMES).map(|number| question(0, &format!("h{number}.lab.test"), AAAA, None, 0)).collect();
    let start = Instant::now();
    while !is_over.load(Ordering::Relaxed) && start.elapsed() < LONGEST {
        let due = (start.elapsed().as_secs_f64() * f64::from(rate)) as u64;
        while fates.sent < due {
            let number = fates.sent as usize;
            // The next flow begins with another name in each round.
            let query = &mut queries[(number + number / PORTS) % NAMES as usize];
            flows[number % PORTS].ask(query, &mut fates);
        }
        flows.iter_mut().for_each(|flow| flow.receive(&mut fates));
        std::thread::sleep(Duration::from_micros(300));
    }
    let end = Instant::now() + GRACE;
    let waits = |flows: &[Flow]| flows.iter().any(|flow| flow.waiting.iter().any(Option::is_some));
    while Instant::now() < end && waits(&flows) {
        flows.iter_mut().for_each(|flow| flow.receive(&mut fates));
        std::thread::sleep(Duration::from_millis(5));
    }
    fates.lost.extend(flows.iter().flat_map(|flow| flow.waiting.iter().copied().flatten()));
    fates.lost.sort_unstable();
    fates
}
