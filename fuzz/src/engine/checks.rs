//! The engine, what it was asked and told, and what must hold after every step: deadlines pass, questions upstream and answers
//! are well-formed, an answer is for who asked and has ID and question of what he asked, no TTL is longer than what is left
//! of what an upstream said, every bound is kept, every message is accounted for.

use super::outbox::Ways;
use super::settings::settings;
use crate::input::Script;
use crate::model::{self, OURS};
use crate::view::{Item, View};
use engine::{Capacity, Carrier, Client, Counter, Engine, Instant, Link, Machine, Span, Transport};
use std::sync::LazyLock;

/// Octets of caches that are tried.
const CACHES: [usize; 4] = [256 << 10, 0, 8 << 10, 64 << 10];

/// Client questions that may wait.
const PENDING: [usize; 4] = [64, 1, 3, 16];

/// The TTL of expired data (RFC 8767 section 4), and more than the smallest one that a configuration here sets.
const STALE_SECS: u32 = 30;

/// Names at whose end no upstream has anything to say: they are our own.
const OWN: [&[u8]; 3] = [b"\x04arpa\0", b"\x04home\0", b"\x04test\0"];

/// Unix time at the start, in seconds.
const UNIX_SECS: u64 = 1_559_731_985;

/// Counters of a family: what came, and what became of it.
static QUERIES: LazyLock<Vec<Counter>> = LazyLock::new(|| family("queries_total"));
static ANSWERED: LazyLock<Vec<Counter>> = LazyLock::new(|| family("responses_total"));
const DROPPED: [Counter; 8] = [
    Counter::DroppedRunt,
    Counter::DroppedResponse,
    Counter::DroppedRepeated,
    Counter::DroppedAnswer,
    Counter::DroppedOverdue,
    Counter::DroppedQueryRate,
    Counter::DroppedResponseRate,
    Counter::FilteredDrop,
];

fn family(name: &str) -> Vec<Counter> {
    Counter::ALL.iter().copied().filter(|counter| counter.describe().0 == name).collect()
}

/// A client's message.
struct Query {
    client: Client,
    bytes: Vec<u8>,
    at: Instant,
    /// How often it was sent, and answered.
    sent: usize,
    answered: usize,
}

/// What an upstream said of a name.
struct Said {
    owner: Vec<u8>,
    ttl: u32,
    at: Instant,
}

/// See the module.
pub struct World {
    pub engine: Engine,
    pub outbox: Ways,
    capacity: Capacity,
    now: Instant,
    deadline: Option<Instant>,
    queries: Vec<Query>,
    /// Questions that have not been answered yet, and all of them.
    waiting: Vec<(Link, Vec<u8>)>,
    asked: Vec<(Link, Vec<u8>)>,
    said: Vec<Said>,
}

impl World {
    /// A world whose first octets say how large it is and how it is configured.
    pub fn new(script: &mut Script<'_>) -> World {
        let (sizes, first) = (script.octet(), script.octet());
        let capacity =
            Capacity { pending: PENDING[usize::from(sizes >> 2 & 3)], cache: CACHES[usize::from(sizes & 3)] };
        let mut engine = Engine::new(settings(first), capacity, [sizes; 32]);
        let now = Instant(1_000_000_000);
        engine.set_unix_time(now, Span::from_secs(UNIX_SECS));
        World {
            engine,
            outbox: Ways::default(),
            capacity,
            now,
            deadline: None,
            queries: Vec::new(),
            waiting: Vec::new(),
            asked: Vec::new(),
            said: Vec::new(),
        }
    }

    /// A client sends a message that it has not sent before: the ID and the port are new.
    pub fn ask(&mut self, mut client: Client, mut bytes: Vec<u8>) {
        let number = self.queries.len() as u16 + 1;
        client.port = number;
        client.stream = if client.carrier == Carrier::Tcp { u64::from(number) } else { 0 };
        if let Some(id) = bytes.first_chunk_mut::<2>() {
            *id = number.wrapping_mul(0x9e37).to_be_bytes();
        }
        self.queries.push(Query { client, bytes, at: self.now, sent: 0, answered: 0 });
        self.ask_again(self.queries.len() - 1);
    }

    /// A client sends again what it has sent.
    pub fn ask_again(&mut self, number: usize) {
        let count = self.queries.len();
        let Some(query) = self.queries.get_mut(number % count.max(1)) else { return };
        query.sent += 1;
        // It may be answered out of what is known by then.
        self.engine.query(self.now, &query.client, &query.bytes, &mut self.outbox);
    }

    /// A question that waits for its reply.
    pub fn take_asked(&mut self, number: u8) -> Option<(Link, Vec<u8>)> {
        let place = usize::from(number) % self.waiting.len().max(1);
        (place < self.waiting.len()).then(|| self.waiting.remove(place))
    }

    /// Any question that was ever sent.
    pub fn asked_before(&self, number: u8) -> Option<(Link, Vec<u8>)> {
        let place = self.asked.len().checked_sub(1 + usize::from(number) % self.asked.len().max(1))?;
        self.asked.get(place).cloned()
    }

    /// Something arrives over a link. What arrives at a closed socket goes nowhere.
    pub fn reply(&mut self, via: Link, bytes: &[u8]) {
        if !self.outbox.links.contains_key(&via) {
            return;
        }
        let view = model::read(bytes, &OURS);
        for Item { owner, ttl, .. } in view.iter().flat_map(|view| view.sections.iter().flatten()) {
            let said = Said { owner: owner.to_ascii_lowercase(), ttl: positive(*ttl), at: self.now };
            self.said.push(said);
        }
        self.engine.reply(self.now, via, bytes, &mut self.outbox);
    }

    /// A link fails. A connection is closed by that.
    pub fn fail(&mut self, number: u8) {
        let mut links: Vec<Link> = self.outbox.links.keys().copied().collect();
        links.sort_by_key(|link| (link.slot, link.generation));
        let Some(&via) = links.get(usize::from(number) % links.len().max(1)) else { return };
        if self.outbox.links[&via] == Transport::Tcp {
            self.outbox.links.remove(&via);
        }
        self.engine.unreachable(self.now, via, &mut self.outbox);
    }

    /// Time passes.
    pub fn wait(&mut self, span: Span) {
        self.now += span;
    }

    /// Time passes until the engine wants to look.
    pub fn wait_for_deadline(&mut self) {
        self.now = self.now.max(self.deadline.unwrap_or(self.now));
    }

    /// The operator changes the configuration, or sets the clock.
    pub fn reload(&mut self, script: &mut Script<'_>) {
        let number = script.octet();
        if number == 0x7f {
            return self.engine.set_unix_time(self.now, Span::from_secs(u64::from(script.long())));
        }
        self.engine.configure(settings(number));
    }

    /// The operator looks at what is kept of a name.
    pub fn inspect(&self, name: &[u8]) {
        for kept in self.engine.kept(name, None, self.now) {
            let Some(message) = kept.message else { continue };
            let view = read(&message);
            assert!(view.qname.eq_ignore_ascii_case(name) && view.qtype == kept.qtype.0);
            assert!(kept.octets <= self.capacity.cache);
        }
    }

    /// What a datapath does after each batch, and everything that is to be checked.
    pub fn look(&mut self) {
        self.deadline = self.engine.expire(self.now, &mut self.outbox);
        assert!(self.deadline.is_none_or(|deadline| deadline > self.now), "a deadline that never passes");
        for (link, bytes) in std::mem::take(&mut self.outbox.asked) {
            let view = read(&bytes);
            assert_eq!(view.flags & 0xf80f, 0, "a question upstream is a plain query: {bytes:02x?}");
            assert!(view.sections.iter().all(Vec::is_empty));
            self.waiting.push((link, bytes.clone()));
            self.asked.push((link, bytes));
        }
        for (client, bytes) in std::mem::take(&mut self.outbox.answered) {
            self.answered(&client, &bytes);
        }
        self.count();
    }

    /// An answer leaves.
    fn answered(&mut self, client: &Client, bytes: &[u8]) {
        let number = usize::from(client.port).checked_sub(1);
        let query = number.and_then(|number| self.queries.get_mut(number)).expect("somebody asked");
        assert_eq!(*client, query.client, "an answer for somebody else");
        query.answered += 1;
        assert!(query.answered <= query.sent, "{} answers to {} messages", query.answered, query.sent);
        let asked = &query.bytes;
        assert!(asked.len() >= 12 && asked[2] & 0x80 == 0, "an answer to what is no question: {asked:02x?}");
        assert_eq!(bytes[..2], asked[..2], "another ID");
        assert_eq!(bytes[2] & 0xf9, 0x80 | asked[2] & 0x79, "QR, opcode and RD: {asked:02x?} {bytes:02x?}");
        let question = model::read(asked, &OURS);
        let Some(question) = question else {
            assert_eq!(bytes[6..10], [0; 4], "records for what cannot be read: {bytes:02x?}");
            return;
        };
        let answer = read(bytes);
        let octets = 12..12 + question.qname.len() + 4;
        assert_eq!(bytes[octets.clone()], asked[octets], "another question");
        assert_eq!(answer.edns.is_some(), question.edns.is_some(), "OPT: {asked:02x?} {bytes:02x?}");
        let limit = match (client.carrier, &question.edns) {
            (Carrier::Tcp, _) => engine::limits::MESSAGE,
            (Carrier::Udp, None) => 512,
            (Carrier::Udp, Some(edns)) => usize::from(edns.udp_size.max(512)).min(engine::limits::UDP_SIZE),
        };
        assert!(bytes.len() <= limit, "{} octets for a client that takes {limit}", bytes.len());
        // What an answer is made of was heard while it waited, or was kept when it was asked for.
        let at = if query.sent > 1 { Instant(0) } else { query.at };
        for item in answer.sections.iter().flatten() {
            assert!(self.has_said(item, at), "{item:?} at {:?}, asked {at:?}: {bytes:02x?}", self.now);
        }
    }

    /// Whether an upstream has said something of the owner of a record that lives as long.
    fn has_said(&self, item: &Item, asked: Instant) -> bool {
        let owner = item.owner.to_ascii_lowercase();
        positive(item.ttl) <= STALE_SECS
            || OWN.iter().any(|own| wire::is_at_or_below(&owner, own))
            || self.said.iter().filter(|said| said.owner == owner).any(|said| {
                let age_secs = (asked - said.at).0 / 1_000_000_000;
                u64::from(item.ttl) + age_secs <= u64::from(said.ttl)
            })
    }

    /// Bounds, and that nothing is lost.
    fn count(&self) {
        let engine = &self.engine;
        let (octets, entries) = engine.cached();
        assert!(
            octets <= self.capacity.cache && entries * 64 <= octets,
            "{entries} entries, {octets} octets"
        );
        assert!(engine.pending() <= self.capacity.pending && engine.followed() <= engine::limits::CHAINS);
        assert!(engine.flights() <= 2 * self.capacity.pending + 2 * engine::limits::UPSTREAMS);
        assert_eq!(engine.open_links(), self.outbox.links.len());
        assert_eq!(engine.idle(), engine.pending() == 0);
        let sum = |of: &[Counter]| of.iter().map(|&counter| engine.counters().get(counter)).sum::<u64>();
        let (queries, answered) = (sum(&QUERIES), sum(&ANSWERED));
        let dropped = sum(&DROPPED);
        let sent: usize = self.queries.iter().map(|query| query.sent).sum();
        let seen: usize = self.queries.iter().map(|query| query.answered).sum();
        let pending = engine.pending() as u64;
        assert_eq!((queries, answered), (sent as u64, seen as u64), "counted, and sent and seen");
        assert_eq!(
            queries,
            answered + dropped + pending,
            "{answered} answered, {dropped} dropped, {pending} pending"
        );
    }

    /// When nothing arrives any more, every client has its answer in the end, and nothing is left but what a dead upstream
    /// is asked now and then.
    pub fn end(&mut self) {
        self.outbox.hinder(0);
        for _ in 0..ROUNDS {
            if self.engine.idle() {
                break;
            }
            self.wait_for_deadline();
            self.look();
        }
        assert!(self.engine.idle(), "{} clients wait for ever", self.engine.pending());
    }
}

/// Deadlines until all have their answers: tries of two legs and of the hops of an alias, for each that may wait, and probes
/// of dead upstreams in between.
const ROUNDS: usize = 4_000;

/// A message that we wrote, by the plain reader.
fn read(bytes: &[u8]) -> View {
    model::read(bytes, &OURS).unwrap_or_else(|| panic!("we wrote what cannot be read: {bytes:02x?}"))
}

/// RFC 2181 section 8: a TTL with the highest bit set is zero.
fn positive(ttl: u32) -> u32 {
    if ttl > i32::MAX as u32 { 0 } else { ttl }
}
