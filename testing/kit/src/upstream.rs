//! A false upstream over UDP and TCP: a script of the test says what becomes of each question.

use crate::listening::{Connection, Listening};
use crate::message::{framed, question, take_frame};
use crate::wait::join;
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::ops::AddAssign;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

/// Interval at which it checks for due replies.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Shortest wait for a question while a reply is due soon.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// Size of the receive buffer, in octets: a pause of the machine must not look like a loss.
const RECEIVE_BUFFER: usize = 4 << 20;

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
pub struct Replies {
    planned: Vec<(When, Vec<u8>)>,
    from_elsewhere: Vec<Vec<u8>>,
}

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
        self.planned.push((When::Due(Instant::now() + time), message));
    }

    /// Replies when [`Upstream::release`] is called.
    pub fn hold(&mut self, message: Vec<u8>) {
        self.planned.push((When::Released, message));
    }

    /// Replies at once from another port, as a forger does. For questions over UDP.
    pub fn from_elsewhere(&mut self, message: Vec<u8>) {
        self.from_elsewhere.push(message);
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
    udp: Option<JoinHandle<()>>,
    _tcp: Option<Listening>,
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
        rustix::net::sockopt::set_socket_recv_buffer_size(&udp, RECEIVE_BUFFER).expect("a socket");
        let (address, state) = (udp.local_addr().expect("an address"), Arc::new(State::default()));
        let script: Arc<Mutex<Script>> = Arc::new(Mutex::new(script));
        let (shared, for_udp) = (Arc::clone(&state), Arc::clone(&script));
        let udp = Some(spawn(move || serve_udp(&udp, &shared, &for_udp)));
        let shared = Arc::clone(&state);
        let serve = move |connection| serve_connection(connection, &shared, &script);
        Upstream { address, state, udp, _tcp: tcp.map(|tcp| Listening::on(tcp, serve)) }
    }

    /// Waits for its end, which comes only when the process is killed.
    pub fn join(mut self) {
        self.udp.take().into_iter().for_each(join);
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
        self.udp.take().into_iter().for_each(join);
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

/// Time to wait for a question. Never zero, which would mean without limit.
fn wait_time<T>(waiting: &[(When, Vec<u8>, T)]) -> Duration {
    let due = waiting.iter().filter_map(|(when, ..)| match when {
        When::Due(due) => Some(due.saturating_duration_since(Instant::now())),
        When::Released => None,
    });
    due.min().map_or(POLL_INTERVAL, |due| due.clamp(SHORTEST_WAIT, POLL_INTERVAL))
}

fn serve_udp(socket: &UdpSocket, state: &State, script: &Mutex<Script>) {
    let (mut waiting, mut buffer) = (Vec::<(When, Vec<u8>, SocketAddr)>::new(), [0; 4096]);
    while !state.stop.load(Ordering::SeqCst) {
        socket.set_read_timeout(Some(wait_time(&waiting))).expect("a time above zero");
        if let Ok((length, peer)) = socket.recv_from(&mut buffer) {
            let replies = replies(state, script, &buffer[..length], peer, false);
            for message in replies.from_elsewhere {
                let _ = elsewhere(socket).send_to(&message, peer);
            }
            waiting.extend(replies.planned.into_iter().map(|(when, message)| (when, message, peer)));
        }
        // The server under test may have ended.
        send_due(&mut waiting, state, |message, peer| {
            let _ = socket.send_to(message, peer);
            state.replied.fetch_add(1, Ordering::SeqCst);
        });
    }
}

/// A socket on another port of the address.
fn elsewhere(socket: &UdpSocket) -> UdpSocket {
    let own = socket.local_addr().expect("an address");
    UdpSocket::bind((own.ip(), 0)).expect("a free port")
}

fn serve_connection(mut connection: Connection, state: &State, script: &Mutex<Script>) {
    let (mut waiting, mut received, mut buffer) = (Vec::new(), Vec::new(), [0; 4096]);
    loop {
        match connection.read_within(wait_time(&waiting), &mut buffer) {
            Ok(None) => {}
            Ok(Some(octets @ 1..)) => received.extend(&buffer[..octets]),
            Ok(Some(0)) | Err(_) => return,
        }
        while let Some(message) = take_frame(&mut received) {
            let replies = replies(state, script, &message, connection.peer, true);
            waiting.extend(replies.planned.into_iter().map(|(when, message)| (when, message, ())));
        }
        let mut due = Vec::new();
        send_due(&mut waiting, state, |message, ()| due.extend(framed(message)));
        if connection.write_all(&due).is_err() {
            return;
        }
    }
}
