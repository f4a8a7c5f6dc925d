//! An upstream over UDP whose behavior the test chooses: it answers, waits for the test, or stays silent. It counts the
//! questions.

use authority::Zone;
use std::collections::{HashMap, HashSet};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wire::{Message, Type};

/// Interval at which it checks for due answers.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Treatment of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behavior {
    /// Answers at once.
    Answer,
    /// Answers after this time.
    After(Duration),
    /// Answers when [`Upstream::release`] is called.
    Hold,
    /// Never answers.
    Ignore,
    /// Answers REFUSED.
    Refuse,
}

#[derive(Default)]
struct State {
    /// Number of questions by name (lower case, with a dot after each label) and type.
    asked: Mutex<HashMap<(String, u16), u32>>,
    /// Addresses and ports that questions came from.
    peers: Mutex<HashSet<SocketAddr>>,
    released: AtomicBool,
    stop: AtomicBool,
}

/// The upstream. It ends with the test.
pub struct Upstream {
    pub address: SocketAddr,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

/// The zone in which each name has the IPv4 address that it spells, and no AAAA record.
pub fn zone() -> Zone {
    Zone::new("v4.test").unwrap()
}

impl Upstream {
    /// Starts an upstream. `behavior` gets each name asked, in lower case and with a dot after each label.
    pub fn start(behavior: impl Fn(&str) -> Behavior + Send + 'static) -> Upstream {
        Upstream::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), behavior)
    }

    /// Starts an upstream at an address, for example one that another upstream had before.
    pub fn start_at(address: SocketAddr, behavior: impl Fn(&str) -> Behavior + Send + 'static) -> Upstream {
        let socket = UdpSocket::bind(address).unwrap();
        socket.set_read_timeout(Some(POLL_INTERVAL)).unwrap();
        let address = socket.local_addr().unwrap();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let thread = std::thread::spawn(move || serve(&socket, &shared, behavior));
        Upstream { address, state, thread: Some(thread) }
    }

    /// Answers all held questions, and holds no more.
    pub fn release(&self) {
        self.state.released.store(true, Ordering::SeqCst);
    }

    /// Number of times that a question was asked.
    pub fn asked(&self, name: &str, qtype: Type) -> u32 {
        self.state.asked.lock().unwrap().get(&(format!("{name}."), qtype.0)).copied().unwrap_or(0)
    }

    /// The addresses and ports that questions came from since the last call.
    pub fn take_peers(&self) -> HashSet<SocketAddr> {
        std::mem::take(&mut self.state.peers.lock().unwrap())
    }

    /// Number of times that each question for a name in a zone was asked.
    pub fn all_asked(&self, zone: &str) -> HashMap<(String, u16), u32> {
        let asked = self.state.asked.lock().unwrap();
        asked
            .iter()
            .filter(|((name, _), _)| name.ends_with(zone))
            .map(|(key, count)| (key.clone(), *count))
            .collect()
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(socket: &UdpSocket, state: &State, behavior: impl Fn(&str) -> Behavior) {
    let zone = zone();
    // Due time of each; none: when it is released.
    let mut waiting: Vec<(Option<Instant>, Vec<u8>, SocketAddr)> = Vec::new();
    let mut buffer = [0; 4096];
    while !state.stop.load(Ordering::SeqCst) {
        if let Ok((length, client)) = socket.recv_from(&mut buffer) {
            state.peers.lock().unwrap().insert(client);
            let query = &buffer[..length];
            let name = count_question(query, state);
            match behavior(&name) {
                Behavior::Answer => answer(socket, &zone, query, client),
                Behavior::After(time) => waiting.push((Some(Instant::now() + time), query.to_vec(), client)),
                Behavior::Hold => waiting.push((None, query.to_vec(), client)),
                Behavior::Ignore => {}
                Behavior::Refuse => {
                    let mut refused = query.to_vec();
                    // QR, and RCODE 5.
                    refused[2] |= 0x80;
                    refused[3] = refused[3] & 0xf0 | 5;
                    let _ = socket.send_to(&refused, client);
                }
            }
        }
        let (now, released) = (Instant::now(), state.released.load(Ordering::SeqCst));
        waiting.retain(|(due, query, client)| {
            let is_due = due.map_or(released, |due| due <= now);
            if is_due {
                answer(socket, &zone, query, *client);
            }
            !is_due
        });
    }
}

fn answer(socket: &UdpSocket, zone: &Zone, query: &[u8], client: SocketAddr) {
    let mut out = [0; 4096];
    let length = zone.answer(query, 4096, &mut out).unwrap();
    // The server under test may have ended.
    let _ = socket.send_to(&out[..length], client);
}

fn count_question(query: &[u8], state: &State) -> String {
    let message = Message::parse(query).expect("the server asks well-formed questions");
    let labels = message.question_name().labels();
    let name: String = labels.map(|label| String::from_utf8_lossy(label).to_lowercase() + ".").collect();
    *state.asked.lock().unwrap().entry((name.clone(), message.qtype().0)).or_default() += 1;
    name
}
