//! A false upstream over UDP and TCP: a script of the test says what becomes of each question.

use crate::message::{framed, question};
use std::collections::{HashMap, HashSet};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::ops::AddAssign;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

/// Interval at which it checks for due replies.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Shortest wait for a question while a reply is due soon.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// A question that the upstream was asked.
#[derive(Debug)]
pub struct Asked<'a> {
    /// The query.
    pub message: &'a [u8],
    /// The name, in lower case and with a dot after each label.
    pub name: &'a str,
    /// The type.
    pub rtype: u16,
    /// Address and port that it came from.
    pub peer: SocketAddr,
    /// True over TCP.
    pub is_tcp: bool,
}

/// What the script makes of a question: nothing, or replies.
#[derive(Debug, Default)]
pub struct Replies(Vec<(When, Vec<u8>)>);

#[derive(Debug)]
enum When {
    Due(Instant),
    Released,
}

impl Replies {
    /// Replies at once.
    pub fn now(&mut self, message: Vec<u8>) {
        self.after(Duration::ZERO, message);
    }

    /// Replies after some time.
    pub fn after(&mut self, time: Duration, message: Vec<u8>) {
        self.0.push((When::Due(Instant::now() + time), message));
    }

    /// Replies when [`Upstream::release`] is called.
    pub fn hold(&mut self, message: Vec<u8>) {
        self.0.push((When::Released, message));
    }
}

#[derive(Default)]
struct State {
    asked: Mutex<HashMap<(String, u16), u32>>,
    peers: Mutex<HashSet<SocketAddr>>,
    replied: AtomicU64,
    is_released: AtomicBool,
    stop: AtomicBool,
}

/// The upstream. It ends with the test.
pub struct Upstream {
    /// The address of both sockets.
    pub address: SocketAddr,
    state: Arc<State>,
    threads: Vec<JoinHandle<()>>,
}

type Script = dyn FnMut(&Asked<'_>, &mut Replies) + Send;

impl Upstream {
    /// Starts an upstream on a free port of 127.0.0.1.
    ///
    /// # Panics
    ///
    /// If no port is free.
    pub fn start(script: impl FnMut(&Asked<'_>, &mut Replies) + Send + 'static) -> Upstream {
        let bound = || {
            let udp = UdpSocket::bind("127.0.0.1:0").ok()?;
            let tcp = TcpListener::bind(udp.local_addr().ok()?).ok()?;
            Some((udp, tcp))
        };
        let (udp, tcp) = (0..100).find_map(|_| bound()).expect("a port that is free for both");
        Upstream::serve(udp, Some(tcp), script)
    }

    /// Starts an upstream over UDP and TCP at this address.
    ///
    /// # Errors
    ///
    /// The address cannot be bound.
    pub fn bind(
        address: SocketAddr,
        script: impl FnMut(&Asked<'_>, &mut Replies) + Send + 'static,
    ) -> std::io::Result<Upstream> {
        Ok(Upstream::serve(UdpSocket::bind(address)?, Some(TcpListener::bind(address)?), script))
    }

    /// Starts an upstream over UDP alone, for example at the address that another one had before.
    ///
    /// # Panics
    ///
    /// If the address is taken.
    pub fn start_at(
        address: SocketAddr,
        script: impl FnMut(&Asked<'_>, &mut Replies) + Send + 'static,
    ) -> Upstream {
        Upstream::serve(UdpSocket::bind(address).expect("a free address"), None, script)
    }

    fn serve(
        udp: UdpSocket,
        tcp: Option<TcpListener>,
        script: impl FnMut(&Asked<'_>, &mut Replies) + Send + 'static,
    ) -> Upstream {
        let (address, state) = (udp.local_addr().expect("an address"), Arc::new(State::default()));
        let script: Arc<Mutex<Script>> = Arc::new(Mutex::new(script));
        let (shared, for_udp) = (Arc::clone(&state), Arc::clone(&script));
        let mut threads = vec![spawn(move || serve_udp(&udp, &shared, &for_udp))];
        if let Some(tcp) = tcp {
            let shared = Arc::clone(&state);
            threads.push(spawn(move || serve_tcp(&tcp, &shared, &script)));
        }
        Upstream { address, state, threads }
    }

    /// Waits for its end, which comes only when the process is killed.
    pub fn join(mut self) {
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }

    /// Number of replies over UDP so far.
    pub fn replied(&self) -> u64 {
        self.state.replied.load(Ordering::SeqCst)
    }

    /// Sends all replies that are held, and holds no more.
    pub fn release(&self) {
        self.state.is_released.store(true, Ordering::SeqCst);
    }

    /// Number of times that a question was asked. The name has no dot at its end.
    pub fn asked(&self, name: &str, rtype: u16) -> u32 {
        lock(&self.state.asked).get(&(format!("{name}."), rtype)).copied().unwrap_or(0)
    }

    /// Number of times that each question for a name with this end was asked.
    pub fn all_asked(&self, zone: &str) -> HashMap<(String, u16), u32> {
        let asked = lock(&self.state.asked);
        let matching = asked.iter().filter(|((name, _), _)| name.ends_with(zone));
        matching.map(|(key, count)| (key.clone(), *count)).collect()
    }

    /// The addresses and ports that questions came from since the last call.
    pub fn take_peers(&self) -> HashSet<SocketAddr> {
        std::mem::take(&mut lock(&self.state.peers))
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::SeqCst);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

fn lock<T: ?Sized>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().expect("no script panics")
}

/// Counts a question, and asks the script.
fn replies(state: &State, script: &Mutex<Script>, message: &[u8], peer: SocketAddr, is_tcp: bool) -> Replies {
    let (name, rtype) = question(message).expect("the server asks well-formed questions");
    lock(&state.peers).insert(peer);
    lock(&state.asked).entry((name.clone(), rtype)).or_default().add_assign(1);
    let mut replies = Replies::default();
    (*lock(script))(&Asked { message, name: &name, rtype, peer, is_tcp }, &mut replies);
    replies
}

/// Sends what is due, and keeps the rest.
fn send_due<T>(waiting: &mut Vec<(When, Vec<u8>, T)>, state: &State, mut send: impl FnMut(&[u8], &T)) {
    let (now, is_released) = (Instant::now(), state.is_released.load(Ordering::SeqCst));
    waiting.retain(|(when, message, to)| {
        let is_due = match when {
            When::Due(due) => *due <= now,
            When::Released => is_released,
        };
        if is_due {
            send(message, to);
        }
        !is_due
    });
}

fn serve_udp(socket: &UdpSocket, state: &State, script: &Mutex<Script>) {
    let (mut waiting, mut buffer) = (Vec::<(When, Vec<u8>, SocketAddr)>::new(), [0; 4096]);
    while !state.stop.load(Ordering::SeqCst) {
        let due = waiting.iter().filter_map(|(when, ..)| match when {
            When::Due(due) => Some(due.saturating_duration_since(Instant::now())),
            When::Released => None,
        });
        let wait = due.min().map_or(POLL_INTERVAL, |due| due.clamp(SHORTEST_WAIT, POLL_INTERVAL));
        socket.set_read_timeout(Some(wait)).expect("a time above zero");
        if let Ok((length, peer)) = socket.recv_from(&mut buffer) {
            let replies = replies(state, script, &buffer[..length], peer, false);
            waiting.extend(replies.0.into_iter().map(|(when, message)| (when, message, peer)));
        }
        // The server under test may have ended.
        send_due(&mut waiting, state, |message, peer| {
            let _ = socket.send_to(message, peer);
            state.replied.fetch_add(1, Ordering::SeqCst);
        });
    }
}

fn serve_tcp(listener: &TcpListener, state: &State, script: &Mutex<Script>) {
    listener.set_nonblocking(true).expect("a socket");
    let mut connections: Vec<(TcpStream, SocketAddr, Vec<u8>, Vec<_>)> = Vec::new();
    let mut buffer = [0; 65_536];
    while !state.stop.load(Ordering::SeqCst) {
        if let Ok((stream, peer)) = listener.accept() {
            stream.set_nonblocking(true).expect("a socket");
            connections.push((stream, peer, Vec::new(), Vec::new()));
        }
        let mut is_idle = true;
        connections.retain_mut(|(stream, peer, received, waiting)| {
            match stream.read(&mut buffer) {
                Ok(0) => return false,
                Ok(octets) => received.extend(&buffer[..octets]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return false,
            }
            while let Some((length, rest)) = received.split_first_chunk::<2>()
                && let Some(message) = rest.get(..usize::from(u16::from_be_bytes(*length)))
            {
                is_idle = false;
                let replies = replies(state, script, message, *peer, true);
                waiting.extend(replies.0.into_iter().map(|(when, message)| (when, message, ())));
                let used = 2 + message.len();
                received.drain(..used);
            }
            let mut due = Vec::new();
            send_due(waiting, state, |message, ()| due.extend(framed(message)));
            // Only a few questions wait at a time: the kernel takes all replies at once.
            stream.write_all(&due).is_ok()
        });
        if is_idle {
            sleep(if connections.is_empty() { POLL_INTERVAL } else { Duration::from_micros(100) });
        }
    }
}
