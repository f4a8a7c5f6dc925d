//! The scripted upstream: UDP and TCP on one port of 127.0.0.1, its script, and what it has been asked.
//!
//! One thread per socket. Replies that are to come later wait in a queue; a thread sleeps in `recv` until the
//! next of them is due, so a slow reply delays no other.

use crate::limits;
use crate::message::{Asked, Transport};
use crate::query::Subnet;
use crate::record::OwnedName;
use crate::reply;
use crate::script::{Content, ForgeryKind, Rule, Script};
use domain::base::iana::{Class, Rtype};
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Where forged replies of the kind `source-address` come from.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 99);

/// A question that reached the upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The name, letter by letter.
    pub name: OwnedName,
    /// The type.
    pub rtype: Rtype,
    /// The class.
    pub class: Class,
    /// How it came.
    pub transport: Transport,
    /// The client subnet that it carried.
    pub subnet: Option<Subnet>,
}

impl Seen {
    /// The name in the form in which names are compared, with its final dot.
    pub fn lower_case_name(&self) -> String {
        self.name.fmt_with_dot().to_string().to_ascii_lowercase()
    }
}

/// Where an upstream has its replies from.
pub trait Source: Send + fmt::Debug {
    /// The reply to `asked`; none, if there is to be no reply at all.
    fn reply(&mut self, asked: &Asked, transport: Transport) -> Option<Content>;
}

impl Source for Script {
    fn reply(&mut self, asked: &Asked, transport: Transport) -> Option<Content> {
        Script::reply(self, asked, transport)
    }
}

/// An upstream that runs until it is dropped.
#[derive(Debug)]
pub struct Upstream {
    address: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    ended: AtomicBool,
}

#[derive(Debug)]
struct State {
    source: Box<dyn Source>,
    seen: Vec<Seen>,
    /// What the upstream itself could not do; a case in which this happens says nothing about the server.
    faults: Vec<String>,
}

impl Upstream {
    /// Starts without rules: everything it is asked does not exist.
    pub fn start() -> io::Result<Upstream> {
        Upstream::serving(Ipv4Addr::LOCALHOST, Box::new(Script::default()))
    }

    /// Starts at an address that a running server forwards to.
    pub fn start_at(address: SocketAddr) -> io::Result<Upstream> {
        let streams = TcpListener::bind(address)?;
        Upstream::with(UdpSocket::bind(streams.local_addr()?)?, streams, Box::new(Script::default()))
    }

    /// Starts at a loopback address, with replies from `source`.
    pub fn serving(at: Ipv4Addr, source: Box<dyn Source>) -> io::Result<Upstream> {
        let (datagrams, streams) = sockets(at)?;
        Upstream::with(datagrams, streams, source)
    }

    fn with(datagrams: UdpSocket, streams: TcpListener, source: Box<dyn Source>) -> io::Result<Upstream> {
        let address = datagrams.local_addr()?;
        let state = Mutex::new(State { source, seen: Vec::new(), faults: Vec::new() });
        let shared = Arc::new(Shared { state, ended: AtomicBool::new(false) });
        let for_datagrams = Arc::clone(&shared);
        let for_streams = Arc::clone(&shared);
        let threads = vec![
            thread::spawn(move || for_datagrams.serve_datagrams(&datagrams)),
            thread::spawn(move || for_streams.accept(&streams)),
        ];
        Ok(Upstream { address, shared, threads })
    }

    /// Where it listens, UDP and TCP.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces the rules.
    pub fn set_rules(&self, rules: Vec<Rule>) {
        self.shared.state().source = Box::new(Script::new(rules));
    }

    /// Forgets what has been asked.
    pub fn forget(&self) {
        self.shared.state().seen.clear();
    }

    /// What has been asked since the start or the last [`forget`](Self::forget).
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.state().seen.clone()
    }

    /// What the upstream itself could not do.
    pub fn faults(&self) -> Vec<String> {
        self.shared.state().faults.clone()
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
        // Wakes the thread that waits for connections. One that listens everywhere is reached at home.
        let mut own = self.address;
        if own.ip().is_unspecified() {
            own.set_ip(if own.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
        }
        drop(TcpStream::connect(own));
        for thread in self.threads.drain(..) {
            // A panic of a thread has been printed where it happened.
            drop(thread.join());
        }
    }
}

/// A reply that waits for its time.
#[derive(Debug)]
struct Waiting {
    due: Instant,
    from: From,
    octets: Vec<u8>,
}

/// Which socket a reply leaves by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Here,
    AnotherPort,
    AnotherAddress,
}

/// Replies that wait, each with its destination.
#[derive(Debug)]
struct Queue<To>(Vec<(Waiting, To)>);

impl<To> Queue<To> {
    /// How long to wait for questions before the next reply is due. Never zero, which would mean for ever.
    fn patience(&self) -> Duration {
        let next = self.0.iter().map(|(waiting, _)| waiting.due).min();
        let until = next.map_or(limits::POLL, |due| due.saturating_duration_since(Instant::now()));
        until.clamp(Duration::from_millis(1), limits::POLL)
    }

    /// Takes the replies that are due out, in order.
    fn due(&mut self) -> Vec<(Waiting, To)> {
        let now = Instant::now();
        let (mut due, later) =
            std::mem::take(&mut self.0).into_iter().partition(|(waiting, _)| waiting.due <= now);
        self.0 = later;
        let ready: &mut Vec<(Waiting, To)> = &mut due;
        ready.sort_by_key(|(waiting, _)| waiting.due);
        due
    }
}

impl<To: Clone> Queue<To> {
    fn add(&mut self, replies: Vec<Waiting>, to: &To) {
        if self.0.len() < limits::WAITING {
            self.0.extend(replies.into_iter().map(|waiting| (waiting, to.clone())));
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the state")
    }

    fn ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// What `octets` call for: the forged replies and the right one.
    fn replies(&self, octets: &[u8], transport: Transport) -> Vec<Waiting> {
        let Some(asked) = Asked::read(octets) else { return Vec::new() };
        let content = {
            let mut state = self.state();
            if state.seen.len() < limits::SEEN {
                state.seen.push(seen(&asked, transport));
            }
            state.source.reply(&asked, transport)
        };
        content.map_or_else(Vec::new, |content| schedule(&asked, &content, transport))
    }

    fn serve_datagrams(&self, socket: &UdpSocket) {
        let mut queue: Queue<SocketAddr> = Queue(Vec::new());
        let mut buffer = vec![0; 65_536];
        while !self.ended() {
            socket.set_read_timeout(Some(queue.patience())).expect("the time is not zero");
            // Any error is one of this question: a timeout, or a port that has closed since.
            if let Ok((length, asker)) = socket.recv_from(&mut buffer) {
                queue.add(self.replies(&buffer[..length], Transport::Udp), &asker);
            }
            for (waiting, asker) in queue.due() {
                if let Err(error) = send(socket, &waiting, asker) {
                    self.state().faults.push(format!("the upstream could not send a reply: {error}"));
                }
            }
        }
    }

    fn accept(self: Arc<Self>, listener: &TcpListener) {
        let mut threads: Vec<JoinHandle<()>> = Vec::new();
        while !self.ended() {
            let Ok((stream, _)) = listener.accept() else { continue };
            threads.retain(|thread| !thread.is_finished());
            if threads.len() < limits::CONNECTIONS {
                let shared = Arc::clone(&self);
                // An error ends the connection, as the asker's going away does.
                threads.push(thread::spawn(move || drop(shared.serve_stream(stream))));
            }
        }
        for thread in threads {
            drop(thread.join());
        }
    }

    /// Answers one connection; questions may be pipelined and replies overtake each other (RFC 7766 section 6.2.1.1).
    fn serve_stream(&self, mut stream: TcpStream) -> io::Result<()> {
        let mut queue: Queue<()> = Queue(Vec::new());
        let mut received: Vec<u8> = Vec::new();
        let mut buffer = vec![0; 65_536];
        stream.set_nodelay(true)?;
        while !self.ended() {
            stream.set_read_timeout(Some(queue.patience()))?;
            match stream.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(length) => received.extend(&buffer[..length]),
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
            while let Some(question) = take_framed(&mut received) {
                queue.add(self.replies(&question, Transport::Tcp), &());
            }
            for (waiting, ()) in queue.due() {
                let length = u16::try_from(waiting.octets.len()).expect("a message has at most 65535 octets");
                stream.write_all(&[&length.to_be_bytes(), waiting.octets.as_slice()].concat())?;
            }
        }
        Ok(())
    }
}

/// The two sockets, on one port that both could have.
fn sockets(at: Ipv4Addr) -> io::Result<(UdpSocket, TcpListener)> {
    let mut last = None;
    for _ in 0..100 {
        let streams = TcpListener::bind((at, 0))?;
        match UdpSocket::bind(streams.local_addr()?) {
            Ok(datagrams) => return Ok((datagrams, streams)),
            Err(error) => last = Some(error),
        }
    }
    Err(last.expect("it has failed"))
}

fn seen(asked: &Asked, transport: Transport) -> Seen {
    let subnet = asked.edns.and_then(|edns| edns.subnet);
    Seen {
        name: asked.name.clone(),
        rtype: asked.rtype,
        class: asked.class,
        transport,
        subnet: subnet.map(|subnet| Subnet { address: subnet.addr(), length: subnet.source_prefix_len() }),
    }
}

fn schedule(asked: &Asked, content: &Content, transport: Transport) -> Vec<Waiting> {
    let now = Instant::now();
    let mut replies = Vec::new();
    let mut free = now;
    for forgery in content.forgeries.iter().filter(|_| transport == Transport::Udp) {
        let from = match forgery.kind {
            ForgeryKind::SourcePort => From::AnotherPort,
            ForgeryKind::SourceAddress => From::AnotherAddress,
            _ => From::Here,
        };
        replies.push(Waiting { due: free, from, octets: reply::forged(asked, forgery) });
        free += limits::FORGERY;
    }
    let due = free.max(now + Duration::from_millis(content.delay_ms));
    replies.push(Waiting { due, from: From::Here, octets: reply::proper(asked, content, transport) });
    replies
}

fn send(socket: &UdpSocket, waiting: &Waiting, asker: SocketAddr) -> io::Result<()> {
    let sent = match waiting.from {
        From::Here => socket.send_to(&waiting.octets, asker),
        From::AnotherPort => UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.send_to(&waiting.octets, asker),
        From::AnotherAddress => {
            let port = socket.local_addr()?.port();
            UdpSocket::bind((ELSEWHERE, port))?.send_to(&waiting.octets, asker)
        }
    };
    match sent {
        // An asker that has closed its socket makes a later send fail; that is its right.
        Err(error) if error.kind() != ErrorKind::ConnectionRefused => Err(error),
        _ => Ok(()),
    }
}

/// Takes a message with its length in front off the start of `received`, when it is complete.
fn take_framed(received: &mut Vec<u8>) -> Option<Vec<u8>> {
    let length = usize::from(u16::from_be_bytes([*received.first()?, *received.get(1)?]));
    if received.len() < 2 + length {
        return None;
    }
    let message = received[2..2 + length].to_vec();
    received.drain(..2 + length);
    Some(message)
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

#[cfg(test)]
#[path = "upstream_tests.rs"]
mod tests;
