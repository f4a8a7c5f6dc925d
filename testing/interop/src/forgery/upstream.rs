//! Honest upstream: AAAA records of one address over UDP and TCP, after a delay; with cookies, without, or with wrong
//! ones. It passes every query over UDP to a channel.

use super::message::{self, CLIENT_COOKIE, HEADER, cookie_option};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

/// Address in the honest replies.
pub(super) const HONEST_ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 0x80);

/// Time between two checks for due replies.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Behaviour with cookies (RFC 7873).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cookies {
    /// Ignores cookies.
    None,
    /// Returns the client cookie with a server cookie.
    Returned,
    /// Returns another client cookie over UDP.
    Wrong,
}

/// Query that Sixfold sent.
#[derive(Clone, Debug)]
pub(super) struct ObservedQuery {
    /// Source port.
    pub(super) port: u16,
    /// ID.
    pub(super) id: u16,
    /// Question, in the letter case of the query.
    pub(super) question: Vec<u8>,
    /// True if the query had a cookie.
    pub(super) has_cookie: bool,
    /// Time of arrival.
    pub(super) seen: Instant,
}

/// Running upstream; it ends when it is dropped.
pub(super) struct Upstream {
    stop: Arc<AtomicBool>,
    replied: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Upstream {
    /// Starts to answer each query after `delay`, and tells of it in `seen`.
    ///
    /// # Errors
    ///
    /// The address cannot be bound.
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

    /// Number of replies over UDP so far.
    pub(super) fn replied(&self) -> u64 {
        self.replied.load(Ordering::Relaxed)
    }

    /// Waits for its end, which comes only when the process is killed.
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

/// Honest reply to a query; `None` if the octets are no query.
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
            // The channel may have no receiver.
            let _ = seen.send(ObservedQuery { port: from.port(), id, question, has_cookie, seen: now });
            due.push_back((now + delay, from, reply));
        }
        while let Some((_, to, reply)) = due.pop_front_if(|(when, ..)| *when <= Instant::now()) {
            // Sixfold may have closed that port since.
            let _ = socket.send_to(&reply, to);
            replied.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Connection, the octets received of its next query, and its delayed replies.
struct Connection {
    stream: TcpStream,
    arrived: Vec<u8>,
    due: VecDeque<(Instant, Vec<u8>)>,
}

fn over_tcp(listener: &TcpListener, delay: Duration, cookies: Cookies, stop: &AtomicBool) {
    // Over TCP a wrong cookie would show nothing more.
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
    /// Reads and writes as much as possible. Returns false at the end of the connection.
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
