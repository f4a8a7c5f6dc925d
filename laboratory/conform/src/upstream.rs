//! Scripted upstream: UDP and TCP on one port of 127.0.0.1, its script, and the queries that it received.
//!
//! There is one thread per socket. Delayed replies wait in a queue; a thread sleeps in `recv` until the next of them
//! is due, so a slow reply delays no other.
//!
//! It is a part of `sixfold-bench conform` and not the upstream of the tests (`testing/kit`): queries and replies have limits, an error is
//! told and ends nothing, and a reply may be forged in each way that a case asks for.

use crate::limits;
use crate::message::{Transport, UpstreamQuery};
use crate::query::Subnet;
use crate::record::OwnedName;
use crate::reply;
use crate::script::{ForgeryKind, ReplyContent, Rule, Script};
use domain::base::iana::{Class, Rtype};
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Source address of forged replies of the kind `source-address`.
const FORGED_SOURCE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 99);

/// Query that reached the upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedQuery {
    /// Name, with its letter case.
    pub name: OwnedName,
    /// Type.
    pub rtype: Rtype,
    /// Class.
    pub class: Class,
    /// Transport.
    pub transport: Transport,
    /// Client subnet of the query.
    pub subnet: Option<Subnet>,
}

impl ReceivedQuery {
    /// Name in lower case, with its final dot.
    pub fn lower_case_name(&self) -> String {
        self.name.fmt_with_dot().to_string().to_ascii_lowercase()
    }
}

/// Source of the upstream's replies.
pub trait ReplySource: Send + fmt::Debug {
    /// Reply to `query`; `None` for no reply at all.
    fn reply(&mut self, query: &UpstreamQuery, transport: Transport) -> Option<ReplyContent>;
}

impl ReplySource for Script {
    fn reply(&mut self, query: &UpstreamQuery, transport: Transport) -> Option<ReplyContent> {
        Script::reply(self, query, transport)
    }
}

/// Upstream that runs until it is dropped.
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
    source: Box<dyn ReplySource>,
    received: Vec<ReceivedQuery>,
    /// Errors of the upstream itself; a case with such an error says nothing about the server.
    faults: Vec<String>,
}

impl Upstream {
    /// Starts without rules: every name is answered with NXDOMAIN.
    ///
    /// # Errors
    ///
    /// As [`Upstream::serving_at`].
    pub fn start() -> io::Result<Upstream> {
        Upstream::serving(Ipv4Addr::LOCALHOST, Box::new(Script::default()))
    }

    /// Starts at an address that a running server forwards to.
    ///
    /// # Errors
    ///
    /// As [`Upstream::serving_at`].
    pub fn start_at(address: SocketAddr) -> io::Result<Upstream> {
        Upstream::serving_at(address, Box::new(Script::default()))
    }

    /// Starts at a loopback address, with replies from `source`.
    ///
    /// # Errors
    ///
    /// As [`Upstream::serving_at`].
    pub fn serving(at: Ipv4Addr, source: Box<dyn ReplySource>) -> io::Result<Upstream> {
        Upstream::serving_at(SocketAddr::from((at, 0)), source)
    }

    /// Starts at an address and port, with replies from `source`.
    ///
    /// # Errors
    ///
    /// The error of a socket: the address is in use or not there, its port needs a privilege, or no port is free for UDP and TCP.
    pub fn serving_at(address: SocketAddr, source: Box<dyn ReplySource>) -> io::Result<Upstream> {
        let (datagrams, streams) = sockets(address)?;
        Upstream::with(datagrams, streams, source)
    }

    fn with(
        datagrams: UdpSocket,
        streams: TcpListener,
        source: Box<dyn ReplySource>,
    ) -> io::Result<Upstream> {
        let address = datagrams.local_addr()?;
        let state = Mutex::new(State { source, received: Vec::new(), faults: Vec::new() });
        let shared = Arc::new(Shared { state, ended: AtomicBool::new(false) });
        let for_datagrams = Arc::clone(&shared);
        let for_streams = Arc::clone(&shared);
        let threads = vec![
            thread::spawn(move || for_datagrams.serve_datagrams(&datagrams)),
            thread::spawn(move || for_streams.accept(&streams)),
        ];
        Ok(Upstream { address, shared, threads })
    }

    /// Address for UDP and TCP.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces the rules.
    pub fn set_rules(&self, rules: Vec<Rule>) {
        self.shared.state().source = Box::new(Script::new(rules));
    }

    /// Clears the list of received queries.
    pub fn clear_received(&self) {
        self.shared.state().received.clear();
    }

    /// Queries received since the start or the last [`clear_received`](Self::clear_received).
    pub fn received(&self) -> Vec<ReceivedQuery> {
        self.shared.state().received.clone()
    }

    /// Errors of the upstream itself.
    pub fn faults(&self) -> Vec<String> {
        self.shared.state().faults.clone()
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
        // Wakes the thread that accepts connections. A socket on the unspecified address is reached by the loopback
        // address.
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

/// Reply that waits for its time.
#[derive(Debug)]
struct ScheduledReply {
    due: Instant,
    from: SourceSocket,
    octets: Vec<u8>,
}

/// Socket that a reply is sent from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SourceSocket {
    Here,
    AnotherPort,
    AnotherAddress,
}

/// Delayed replies, each with its destination.
#[derive(Debug)]
struct ReplyQueue<To>(Vec<(ScheduledReply, To)>);

impl<To> ReplyQueue<To> {
    /// Time to wait for queries before the next reply is due. Never zero, which would mean without limit.
    fn time_to_next(&self) -> Duration {
        let next = self.0.iter().map(|(reply, _)| reply.due).min();
        let until = next.map_or(limits::POLL_INTERVAL, |due| due.saturating_duration_since(Instant::now()));
        until.clamp(Duration::from_millis(1), limits::POLL_INTERVAL)
    }

    /// Removes the replies that are due, in order.
    fn due(&mut self) -> Vec<(ScheduledReply, To)> {
        let now = Instant::now();
        let (mut due, later) =
            std::mem::take(&mut self.0).into_iter().partition(|(reply, _)| reply.due <= now);
        self.0 = later;
        let ready: &mut Vec<(ScheduledReply, To)> = &mut due;
        ready.sort_by_key(|(reply, _)| reply.due);
        due
    }
}

impl<To: Clone> ReplyQueue<To> {
    fn add(&mut self, replies: Vec<ScheduledReply>, to: &To) {
        if self.0.len() < limits::MAX_SCHEDULED_REPLIES {
            self.0.extend(replies.into_iter().map(|reply| (reply, to.clone())));
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

    /// Replies to the query in `octets`: the forged replies and the genuine one.
    fn replies(&self, octets: &[u8], transport: Transport) -> Vec<ScheduledReply> {
        let Some(query) = UpstreamQuery::read(octets) else { return Vec::new() };
        let content = {
            let mut state = self.state();
            if state.received.len() < limits::MAX_RECEIVED_QUERIES {
                state.received.push(received_query(&query, transport));
            }
            state.source.reply(&query, transport)
        };
        content.map_or_else(Vec::new, |content| schedule(&query, &content, transport))
    }

    fn serve_datagrams(&self, socket: &UdpSocket) {
        let mut queue: ReplyQueue<SocketAddr> = ReplyQueue(Vec::new());
        let mut buffer = vec![0; 65_536];
        while !self.ended() {
            socket.set_read_timeout(Some(queue.time_to_next())).expect("the time is not zero");
            // Any error concerns one query: a timeout, or a port that has been closed since.
            if let Ok((length, server)) = socket.recv_from(&mut buffer) {
                queue.add(self.replies(&buffer[..length], Transport::Udp), &server);
            }
            for (reply, server) in queue.due() {
                if let Err(error) = send(socket, &reply, server) {
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
            if threads.len() < limits::MAX_CONNECTIONS {
                let shared = Arc::clone(&self);
                // An error ends the connection, as a close by the server does.
                threads.push(thread::spawn(move || drop(shared.serve_stream(stream))));
            }
        }
        for thread in threads {
            drop(thread.join());
        }
    }

    /// Answers one connection. Queries may be pipelined, and replies may overtake each other (RFC 7766 section
    /// 6.2.1.1).
    fn serve_stream(&self, mut stream: TcpStream) -> io::Result<()> {
        let mut queue: ReplyQueue<()> = ReplyQueue(Vec::new());
        let mut received: Vec<u8> = Vec::new();
        let mut buffer = vec![0; 65_536];
        stream.set_nodelay(true)?;
        while !self.ended() {
            stream.set_read_timeout(Some(queue.time_to_next()))?;
            match stream.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(length) => received.extend(&buffer[..length]),
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
            while let Some(question) = take_framed(&mut received) {
                queue.add(self.replies(&question, Transport::Tcp), &());
            }
            for (reply, ()) in queue.due() {
                let length = u16::try_from(reply.octets.len()).expect("a message has at most 65535 octets");
                stream.write_all(&[&length.to_be_bytes(), reply.octets.as_slice()].concat())?;
            }
        }
        Ok(())
    }
}

/// Binds both sockets to one port. With port 0, TCP chooses it; if UDP finds it in use, another one is tried.
fn sockets(address: SocketAddr) -> io::Result<(UdpSocket, TcpListener)> {
    let mut tries_left = if address.port() == 0 { 100 } else { 1 };
    loop {
        let streams = TcpListener::bind(address)?;
        tries_left -= 1;
        match UdpSocket::bind(streams.local_addr()?) {
            Ok(datagrams) => return Ok((datagrams, streams)),
            Err(error) if tries_left == 0 => return Err(error),
            Err(_) => {}
        }
    }
}

fn received_query(query: &UpstreamQuery, transport: Transport) -> ReceivedQuery {
    let subnet = query.edns.and_then(|edns| edns.subnet);
    ReceivedQuery {
        name: query.name.clone(),
        rtype: query.rtype,
        class: query.class,
        transport,
        subnet: subnet.map(|subnet| Subnet { address: subnet.addr(), length: subnet.source_prefix_len() }),
    }
}

fn schedule(query: &UpstreamQuery, content: &ReplyContent, transport: Transport) -> Vec<ScheduledReply> {
    let now = Instant::now();
    let mut replies = Vec::new();
    let mut free = now;
    for forgery in content.forgeries.iter().filter(|_| transport == Transport::Udp) {
        let from = match forgery.kind {
            ForgeryKind::SourcePort => SourceSocket::AnotherPort,
            ForgeryKind::SourceAddress => SourceSocket::AnotherAddress,
            _ => SourceSocket::Here,
        };
        replies.push(ScheduledReply { due: free, from, octets: reply::forged(query, forgery) });
        free += limits::FORGERY_INTERVAL;
    }
    let due = free.max(now + Duration::from_millis(content.delay_ms));
    replies.push(ScheduledReply {
        due,
        from: SourceSocket::Here,
        octets: reply::proper(query, content, transport),
    });
    replies
}

fn send(socket: &UdpSocket, reply: &ScheduledReply, server: SocketAddr) -> io::Result<()> {
    let sent = match reply.from {
        SourceSocket::Here => socket.send_to(&reply.octets, server),
        SourceSocket::AnotherPort => {
            UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.send_to(&reply.octets, server)
        }
        SourceSocket::AnotherAddress => {
            let port = socket.local_addr()?.port();
            UdpSocket::bind((FORGED_SOURCE, port))?.send_to(&reply.octets, server)
        }
    };
    match sent {
        // A server that has closed its socket makes a later send fail; it is free to do so.
        Err(error) if error.kind() != ErrorKind::ConnectionRefused => Err(error),
        _ => Ok(()),
    }
}

/// Removes one length-prefixed message from the start of `received`, if it is complete.
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
