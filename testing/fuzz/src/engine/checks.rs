//! The engine with everything that it received, and the invariants after every step: deadlines pass, upstream queries and
//! answers are well-formed, an answer goes to the client that asked and has the ID and question of its query, no TTL is larger
//! than the rest of an upstream's TTL, every limit is kept, every message is accounted for.

use super::outbox::FuzzOutbox;
use super::settings::settings;
use crate::input::InputReader;
use crate::model::{self, OURS};
use crate::view::{Item, View};
use engine::{Capacity, Client, ClientTransport, Counter, Engine, Instant, Link, Machine, Span};
use std::sync::LazyLock;

/// Sizes of the caches, octets.
const CACHE_SIZES: [usize; 4] = [256 << 10, 0, 8 << 10, 64 << 10];

/// Limits of pending client queries.
const PENDING: [usize; 4] = [64, 1, 3, 16];

/// The TTL of expired data (RFC 8767 section 4). It is larger than the smallest minimum TTL of a configuration here.
const STALE_SECS: u32 = 30;

/// Zones of local data, for which upstreams need not have replied.
const LOCAL_ZONES: [&[u8]; 3] = [b"\x04arpa\0", b"\x04home\0", b"\x04test\0"];

/// Unix time at the start, in seconds.
const UNIX_SECS: u64 = 1_559_731_985;

/// Counters by family: received queries, sent answers, dropped messages.
static QUERIES: LazyLock<Vec<Counter>> = LazyLock::new(|| family("queries_total"));
static ANSWERS: LazyLock<Vec<Counter>> = LazyLock::new(|| family("responses_total"));
const DROPPED: [Counter; 9] = [
    Counter::DroppedShort,
    Counter::DroppedResponse,
    Counter::DroppedRepeated,
    Counter::DroppedAnswer,
    Counter::DroppedTooLate,
    Counter::DroppedQueryRate,
    Counter::DroppedPendingPerClient,
    Counter::DroppedResponseRate,
    Counter::FilteredDrop,
];

fn family(name: &str) -> Vec<Counter> {
    Counter::ALL.iter().copied().filter(|counter| counter.describe().0 == name).collect()
}

/// A message of a client.
struct Query {
    client: Client,
    bytes: Vec<u8>,
    at: Instant,
    /// Number of times that it was sent, and that it was answered.
    sent: usize,
    answered: usize,
}

/// A record in an upstream's reply.
struct UpstreamRecord {
    owner: Vec<u8>,
    ttl: u32,
    at: Instant,
}

/// The engine and its world. See the module.
pub struct World {
    pub engine: Engine,
    pub outbox: FuzzOutbox,
    capacity: Capacity,
    now: Instant,
    deadline: Option<Instant>,
    queries: Vec<Query>,
    /// Upstream queries without a reply yet, and all upstream queries.
    unanswered: Vec<(Link, Vec<u8>)>,
    sent: Vec<(Link, Vec<u8>)>,
    records: Vec<UpstreamRecord>,
}

impl World {
    /// A new world. The first octets choose its sizes and its configuration.
    pub fn new(reader: &mut InputReader<'_>) -> World {
        let (sizes, first) = (reader.octet(), reader.octet());
        let capacity = Capacity {
            pending: PENDING[usize::from(sizes >> 2 & 3)],
            cache: CACHE_SIZES[usize::from(sizes & 3)],
        };
        let mut engine = Engine::new(settings(first), capacity, [sizes; 32]);
        let now = Instant(1_000_000_000);
        engine.set_unix_time(now, Span::from_secs(UNIX_SECS));
        World {
            engine,
            outbox: FuzzOutbox::default(),
            capacity,
            now,
            deadline: None,
            queries: Vec::new(),
            unanswered: Vec::new(),
            sent: Vec::new(),
            records: Vec::new(),
        }
    }

    /// A client sends a new message: ID and port are new.
    pub fn send_query(&mut self, mut client: Client, mut bytes: Vec<u8>) {
        let number = self.queries.len() as u16 + 1;
        client.port = number;
        client.stream = if client.transport == ClientTransport::Tcp { u64::from(number) } else { 0 };
        if let Some(id) = bytes.first_chunk_mut::<2>() {
            *id = number.wrapping_mul(0x9e37).to_be_bytes();
        }
        self.queries.push(Query { client, bytes, at: self.now, sent: 0, answered: 0 });
        self.retransmit(self.queries.len() - 1);
    }

    /// A client sends one of its messages again.
    pub fn retransmit(&mut self, number: usize) {
        let count = self.queries.len();
        let Some(query) = self.queries.get_mut(number % count.max(1)) else { return };
        query.sent += 1;
        // It may be answered from the cache by now.
        self.engine.query(self.now, &query.client, &query.bytes, &mut self.outbox);
    }

    /// An upstream query without a reply yet.
    pub fn take_unanswered(&mut self, number: u8) -> Option<(Link, Vec<u8>)> {
        let place = usize::from(number) % self.unanswered.len().max(1);
        (place < self.unanswered.len()).then(|| self.unanswered.remove(place))
    }

    /// Any upstream query, answered or not.
    pub fn any_sent(&self, number: u8) -> Option<(Link, Vec<u8>)> {
        let place = self.sent.len().checked_sub(1 + usize::from(number) % self.sent.len().max(1))?;
        self.sent.get(place).cloned()
    }

    /// A message arrives over a link. A message to a closed socket is lost.
    pub fn reply(&mut self, via: Link, bytes: &[u8]) {
        if !self.outbox.links.contains_key(&via) {
            return;
        }
        let view = model::read(bytes, &OURS);
        for Item { owner, ttl, .. } in view.iter().flat_map(|view| view.sections.iter().flatten()) {
            let record =
                UpstreamRecord { owner: owner.to_ascii_lowercase(), ttl: effective_ttl(*ttl), at: self.now };
            self.records.push(record);
        }
        self.engine.reply(self.now, via, &mut bytes.to_vec(), &mut self.outbox);
    }

    /// A link fails. A failed connection is closed.
    pub fn fail_link(&mut self, number: u8) {
        let mut links: Vec<Link> = self.outbox.links.keys().copied().collect();
        links.sort_by_key(|link| (link.slot, link.generation));
        let Some(&via) = links.get(usize::from(number) % links.len().max(1)) else { return };
        if self.outbox.links[&via].is_stream() {
            self.outbox.links.remove(&via);
        }
        self.engine.on_link_failure(self.now, via, engine::Unreachable::PortRefused, &mut self.outbox);
    }

    /// Time passes.
    pub fn wait(&mut self, span: Span) {
        self.now += span;
    }

    /// Time passes until the engine's deadline.
    pub fn wait_for_deadline(&mut self) {
        self.now = self.now.max(self.deadline.unwrap_or(self.now));
    }

    /// The operator reloads the configuration, or sets the clock.
    pub fn reload(&mut self, reader: &mut InputReader<'_>) {
        let number = reader.octet();
        if number == 0x7f {
            return self.engine.set_unix_time(self.now, Span::from_secs(u64::from(reader.next_u32())));
        }
        self.engine.configure(settings(number));
    }

    /// The operator looks up a name in the cache.
    pub fn inspect(&self, name: &[u8]) {
        for kept in self.engine.cached_entries(name, None, self.now) {
            let Some(message) = kept.message else { continue };
            let view = read(&message);
            assert!(view.qname.eq_ignore_ascii_case(name) && view.qtype == kept.qtype.0);
            assert!(kept.octets <= self.capacity.cache);
        }
    }

    /// Ends a step as a datapath ends a batch, and checks the invariants.
    pub fn finish_step(&mut self) {
        self.deadline = self.engine.expire(self.now, &mut self.outbox);
        assert!(self.deadline.is_none_or(|deadline| deadline > self.now), "a deadline that never passes");
        for (link, bytes) in std::mem::take(&mut self.outbox.queries) {
            let view = read(&bytes);
            assert_eq!(view.flags & 0xf80f, 0, "a question upstream is a plain query: {bytes:02x?}");
            assert!(view.sections.iter().all(Vec::is_empty));
            self.unanswered.push((link, bytes.clone()));
            self.sent.push((link, bytes));
        }
        for (client, bytes) in std::mem::take(&mut self.outbox.answers) {
            self.check_answer(&client, &bytes);
        }
        self.check_bounds();
    }

    /// Checks an answer.
    fn check_answer(&mut self, client: &Client, bytes: &[u8]) {
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
        let limit = match (client.transport, &question.edns) {
            (ClientTransport::Udp, None) => 512,
            (ClientTransport::Udp, Some(edns)) => {
                usize::from(edns.udp_size.max(512)).min(engine::limits::UDP_SIZE)
            }
            _ => engine::limits::MESSAGE,
        };
        assert!(bytes.len() <= limit, "{} octets for a client that takes {limit}", bytes.len());
        // The data of an answer arrived while the query was pending, or were in the cache when it arrived.
        let at = if query.sent > 1 { Instant(0) } else { query.at };
        for item in answer.sections.iter().flatten() {
            assert!(self.is_backed(item, at), "{item:?} at {:?}, asked {at:?}: {bytes:02x?}", self.now);
        }
    }

    /// True if an upstream has returned a record of this owner whose TTL allows this one.
    fn is_backed(&self, item: &Item, asked: Instant) -> bool {
        let owner = item.owner.to_ascii_lowercase();
        effective_ttl(item.ttl) <= STALE_SECS
            || LOCAL_ZONES.iter().any(|zone| wire::is_at_or_below(&owner, zone))
            || self.records.iter().filter(|record| record.owner == owner).any(|record| {
                let age_secs = (asked - record.at).0 / 1_000_000_000;
                u64::from(item.ttl) + age_secs <= u64::from(record.ttl)
            })
    }

    /// Checks limits and accounting.
    fn check_bounds(&self) {
        let engine = &self.engine;
        let (octets, entries) = engine.cached();
        assert!(
            octets <= self.capacity.cache && entries * 64 <= octets,
            "{entries} entries, {octets} octets"
        );
        assert!(engine.pending() <= self.capacity.pending && engine.chases() <= engine::limits::CHASES);
        assert!(engine.outbound_queries() <= 2 * self.capacity.pending + 2 * engine::limits::UPSTREAMS);
        assert_eq!(engine.open_links(), self.outbox.links.len());
        assert_eq!(engine.is_idle(), engine.pending() == 0);
        let sum = |of: &[Counter]| of.iter().map(|&counter| engine.counters().get(counter)).sum::<u64>();
        let (queries, answered) = (sum(&QUERIES), sum(&ANSWERS));
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

    /// When no more messages arrive, every client has an answer in the end. Only the probes of dead upstreams remain.
    pub fn finish(&mut self) {
        self.outbox.refuse(0);
        for _ in 0..MAX_ROUNDS {
            if self.engine.is_idle() {
                break;
            }
            self.wait_for_deadline();
            self.finish_step();
        }
        assert!(self.engine.is_idle(), "{} clients wait for ever", self.engine.pending());
    }
}

/// Largest number of deadlines until all clients have answers: the tries of two lookups, for every hop of an alias and every
/// pending query, with probes of dead upstreams in between.
const MAX_ROUNDS: usize = 4_000;

/// Parses a message of the engine with the plain reader.
fn read(bytes: &[u8]) -> View {
    model::read(bytes, &OURS).unwrap_or_else(|| panic!("we wrote what cannot be read: {bytes:02x?}"))
}

/// A TTL as it counts: 0 if the highest bit is set (RFC 2181 section 8).
fn effective_ttl(ttl: u32) -> u32 {
    if ttl > i32::MAX as u32 { 0 } else { ttl }
}
