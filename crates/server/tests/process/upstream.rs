//! An upstream over UDP that does as a test tells it: it answers, waits until the test lets it go on, or says nothing.
//! It counts what it is asked.

use authority::Zone;
use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wire::{Message, Type};

/// How often it looks whether something is due.
const LOOK: Duration = Duration::from_millis(10);

/// What it does with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conduct {
    /// Answers at once.
    Answer,
    /// Answers after so long.
    After(Duration),
    /// Answers when [`Upstream::release`] is called.
    Hold,
    /// Never answers.
    Ignore,
}

#[derive(Default)]
struct State {
    /// Questions by name (lower case, with lengths as dots) and type.
    asked: Mutex<HashMap<(String, u16), u32>>,
    released: AtomicBool,
    stop: AtomicBool,
}

/// The upstream. It ends with the test.
pub struct Upstream {
    pub address: SocketAddr,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

/// The zone whose names have the addresses that they say, and no AAAA.
pub fn zone() -> Zone {
    Zone::new("v4.test").unwrap()
}

impl Upstream {
    /// Starts one. `conduct` gets each name asked, in lower case and with a dot after each label.
    pub fn start(conduct: impl Fn(&str) -> Conduct + Send + 'static) -> Upstream {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(LOOK)).unwrap();
        let address = socket.local_addr().unwrap();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let thread = std::thread::spawn(move || serve(&socket, &shared, conduct));
        Upstream { address, state, thread: Some(thread) }
    }

    /// Answers what was held, and holds nothing more.
    pub fn release(&self) {
        self.state.released.store(true, Ordering::SeqCst);
    }

    /// How often a question was asked.
    pub fn asked(&self, name: &str, kind: Type) -> u32 {
        self.state.asked.lock().unwrap().get(&(format!("{name}."), kind.0)).copied().unwrap_or(0)
    }

    /// How often each question for names of a zone was asked.
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

fn serve(socket: &UdpSocket, state: &State, conduct: impl Fn(&str) -> Conduct) {
    let zone = zone();
    // When each is due; none: when it is released.
    let mut waiting: Vec<(Option<Instant>, Vec<u8>, SocketAddr)> = Vec::new();
    let mut buffer = [0; 4096];
    while !state.stop.load(Ordering::SeqCst) {
        if let Ok((length, client)) = socket.recv_from(&mut buffer) {
            let query = &buffer[..length];
            let name = note(query, state);
            match conduct(&name) {
                Conduct::Answer => answer(socket, &zone, query, client),
                Conduct::After(time) => waiting.push((Some(Instant::now() + time), query.to_vec(), client)),
                Conduct::Hold => waiting.push((None, query.to_vec(), client)),
                Conduct::Ignore => {}
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
    // The server under test may be gone.
    let _ = socket.send_to(&out[..length], client);
}

fn note(query: &[u8], state: &State) -> String {
    let message = Message::parse(query).expect("the server asks well-formed questions");
    let labels = message.question_name().labels();
    let name: String = labels.map(|label| String::from_utf8_lossy(label).to_lowercase() + ".").collect();
    *state.asked.lock().unwrap().entry((name.clone(), message.qtype().0)).or_default() += 1;
    name
}
