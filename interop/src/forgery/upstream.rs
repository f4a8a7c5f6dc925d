//! The honest upstream: AAAA records of one address over UDP and TCP, after a delay; with cookies, without, or with wrong ones. It
//! shows every question that it is asked over UDP to whoever wants to see it.

use super::message::{self, CLIENT_COOKIE, HEADER, cookie_option};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

/// The address that it answers with.
pub(super) const HONEST_ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 0x80);

/// Between two looks at what is due.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// What it does about cookies (RFC 7873).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cookies {
    /// It has never heard of them.
    None,
    /// It returns the client's, with one of its own.
    Returned,
    /// It returns another one than the client's over UDP.
    Wrong,
}

/// A question that Sixfold has asked.
#[derive(Clone, Debug)]
pub(super) struct ObservedQuery {
    /// Sixfold's port.
    pub(super) port: u16,
    /// The ID.
    pub(super) id: u16,
    /// The question, in the letter case that was sent.
    pub(super) question: Vec<u8>,
    /// Whether there was a cookie.
    pub(super) has_cookie: bool,
    /// When it came.
    pub(super) seen: Instant,
}

/// A running upstream; it ends when it is dropped.
pub(super) struct Upstream {
    stop: Arc<AtomicBool>,
    replied: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Upstream {
    pub(super) fn start(
        at: SocketAddrV4,
        delay: Duration,
        cookies: Cookies,
        seen: Sender<ObservedQuery>,
    ) -> io::Result<Upstream> {
        let udp = UdpSocket::bind(at)?;
        let tcp = TcpListener::bind(at)?;
        udp.set_read_timeout(Some(POLL_INTERVAL))?;
        tcp.set_nonblocking(true)?;
        let (stop, replied) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (for_udp, for_tcp, count) = (Arc::clone(&stop), Arc::clone(&stop), Arc::clone(&replied));
        let threads = vec![
            spawn(move || over_udp(&udp, delay, cookies, &seen, &count, &for_udp)),
            spawn(move || over_tcp(&tcp, delay, cookies, &for_tcp)),
        ];
        Ok(Upstream { stop, replied, threads })
    }

    /// Replies over UDP so far.
    pub(super) fn replied(&self) -> u64 {
        self.replied.load(Ordering::Relaxed)
    }

    /// Waits for its end, which only comes when somebody kills the process.
    pub(super) fn join(mut self) {
        for thread in self.threads.drain(..) {
            let _ = thread.join(); // A thread that panicked has said so.
        }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join(); // A thread that panicked has said so.
        }
    }
}

/// The honest reply to a query; none to what is no question.
fn honest(query: &[u8], cookies: Cookies) -> Option<Vec<u8>> {
    let question = message::question(query)?;
    let id = u16::from_be_bytes([query[0], query[1]]);
    let (edns, brought) = message::cookie(query);
    let client = brought.and_then(|data| data.first_chunk::<CLIENT_COOKIE>());
    let options = match (cookies, client) {
        (Cookies::Returned, Some(client)) => cookie_option(&[&client[..], &[0x5a; 16]].concat()),
        (Cookies::Wrong, Some(client)) => {
            let wrong = client.map(|octet| !octet);
            cookie_option(&[&wrong[..], &[0x5a; 16]].concat())
        }
        _ => vec![],
    };
    Some(message::reply(id, question, HONEST_ADDRESS, edns.then_some(&options)))
}

fn over_udp(
    socket: &UdpSocket,
    delay: Duration,
    cookies: Cookies,
    seen: &Sender<ObservedQuery>,
    replied: &AtomicU64,
    stop: &AtomicBool,
) {
    let mut buffer = [0; 1_500];
    let mut due: VecDeque<(Instant, SocketAddr, Vec<u8>)> = VecDeque::new();
    while !stop.load(Ordering::Relaxed) {
        if let Ok((octets, from)) = socket.recv_from(&mut buffer)
            && let Some(reply) = honest(&buffer[..octets], cookies)
        {
            let now = Instant::now();
            let question = message::question(&reply).unwrap_or_default().to_vec();
            let has_cookie = message::cookie(&buffer[..octets]).1.is_some();
            let id = u16::from_be_bytes([buffer[0], buffer[1]]);
            // Nobody may want to see it.
            let _ = seen.send(ObservedQuery { port: from.port(), id, question, has_cookie, seen: now });
            due.push_back((now + delay, from, reply));
        }
        while let Some((_, to, reply)) = due.pop_front_if(|(when, ..)| *when <= Instant::now()) {
            // Sixfold may have closed that port by now.
            let _ = socket.send_to(&reply, to);
            replied.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A connection, what has come of its next question, and what is due.
struct Connection {
    stream: TcpStream,
    arrived: Vec<u8>,
    due: VecDeque<(Instant, Vec<u8>)>,
}

fn over_tcp(listener: &TcpListener, delay: Duration, cookies: Cookies, stop: &AtomicBool) {
    // Over TCP nobody sees the difference between who is wrong on purpose and who is not.
    let cookies = if cookies == Cookies::Wrong { Cookies::None } else { cookies };
    let mut connections: Vec<Connection> = vec![];
    while !stop.load(Ordering::Relaxed) {
        while let Ok((stream, _)) = listener.accept() {
            if stream.set_nonblocking(true).is_ok() {
                connections.push(Connection { stream, arrived: vec![], due: VecDeque::new() });
            }
        }
        connections.retain_mut(|connection| connection.turn(delay, cookies));
        std::thread::sleep(POLL_INTERVAL);
    }
}

impl Connection {
    /// Reads and writes what there is. False: it is over.
    fn turn(&mut self, delay: Duration, cookies: Cookies) -> bool {
        let mut buffer = [0; 16_384];
        match self.stream.read(&mut buffer) {
            Ok(0) => return false,
            Ok(octets) => self.arrived.extend(&buffer[..octets]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return false,
        }
        while let Some((length, rest)) = self.arrived.split_first_chunk::<2>()
            && let Some(query) = rest.get(..usize::from(u16::from_be_bytes(*length)))
        {
            if query.len() >= HEADER
                && let Some(reply) = honest(query, cookies)
            {
                let framed = [&(reply.len() as u16).to_be_bytes()[..], &reply].concat();
                self.due.push_back((Instant::now() + delay, framed));
            }
            let used = 2 + query.len();
            self.arrived.drain(..used);
        }
        while let Some((_, framed)) = self.due.pop_front_if(|(when, _)| *when <= Instant::now()) {
            // A few hundred octets always fit, as Sixfold reads.
            if self.stream.write_all(&framed).is_err() {
                return false;
            }
        }
        true
    }
}
