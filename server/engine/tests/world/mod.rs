//! The simulated environment of one engine: clients that send queries, upstreams that reply as a test defines, links with
//! delay and loss, and a clock that only the test moves. Everything follows from a seed. Like a datapath, [`World`] passes
//! messages to the engine and then handles its deadlines. It knows nothing of DNS64: a test decides what is correct.
//! [`client_query`] and [`reply`] write messages, [`answer`] parses answers, [`outbox`] records what the engine sends.

mod answer;
mod client_query;
mod edns_option;
mod outbox;
mod recording;
mod reply;
mod settings;
pub mod statistics;

pub use answer::{Answer, canonical};
pub use client_query::{ClientQuery, client, name, query};
pub use edns_option::{COOKIE, cookie_of, octets, subnet, subnets};
pub use kit::Random as Rng;
pub use outbox::{SentQuery, TestOutbox};
pub use recording::{Heard, Recording};
pub use reply::{ParsedRecord, Reply, record, records};
pub use settings::{
    START_UNIX_SECS, clients, forwarders, networks, over, set_prefixes, settings, with_forwarders,
};

use engine::{
    Capacity, Client, Counter, Engine, Instant, Link, Machine, ObservedEngine, Settings, Span, Unreachable,
};
use std::collections::{BTreeMap, HashMap};
use std::net::Ipv6Addr;

/// A message or a link failure on its way to the engine.
pub struct Delivery {
    pub after: Span,
    pub via: Link,
    pub arrival: Arrival,
}

/// An event on a link to an upstream.
pub enum Arrival {
    Message(Vec<u8>),
    /// An ICMP error, or a closed connection.
    Failure,
}

/// A function that returns the replies of the upstreams to a query.
pub type Upstreams = Box<dyn FnMut(&SentQuery, &mut Rng) -> Vec<Delivery>>;

enum Event {
    FromUpstream(Link, Arrival),
    FromClient(Client, Vec<u8>),
}

/// Identifies a client query of [`World::ask`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(usize);

/// One engine with its clients, upstreams, links and clock.
pub struct World {
    pub engine: ObservedEngine<Recording>,
    pub now: Instant,
    pub outbox: TestOutbox,
    pub rng: Rng,
    /// Queries sent to upstreams so far, in order.
    pub asked: Vec<SentQuery>,
    /// Answers sent to clients so far, in order.
    pub answers: Vec<Answer>,
    upstreams: Option<Upstreams>,
    events: BTreeMap<(Instant, u64), Event>,
    event: u64,
    deadline: Option<Instant>,
    tokens: HashMap<(Ipv6Addr, u16, u64, u16), Token>,
    answers_of: Vec<Vec<usize>>,
}

impl World {
    /// A world without a cache, for 1,024 pending queries. Its upstreams do not reply; the test gives replies by hand.
    pub fn new(settings: Settings) -> World {
        World::sized(settings, 1024, 1)
    }

    /// A world with a cache of `cache` octets, for 1,024 pending queries.
    pub fn with_cache(settings: Settings, cache: usize) -> World {
        World::reserved(settings, Capacity { pending: 1024, cache }, 1)
    }

    /// A world without a cache, for `pending` pending queries, with this seed.
    pub fn sized(settings: Settings, pending: usize, seed: u64) -> World {
        World::reserved(settings, Capacity { pending, cache: 0 }, seed)
    }

    fn reserved(settings: Settings, capacity: Capacity, seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let entropy: Vec<u8> = (0..4).flat_map(|_| rng.bits().to_le_bytes()).collect();
        let mut engine = Engine::new(settings, capacity, entropy.try_into().expect("32 octets"));
        engine.set_unix_time(Instant(0), Span::from_secs(START_UNIX_SECS));
        World {
            engine: ObservedEngine::new(engine),
            now: Instant(0),
            outbox: TestOutbox::default(),
            rng,
            asked: vec![],
            answers: vec![],
            upstreams: None,
            events: BTreeMap::new(),
            event: 0,
            deadline: None,
            tokens: HashMap::new(),
            answers_of: vec![],
        }
    }

    /// Sets the function that returns the replies of the upstreams.
    pub fn set_upstreams(&mut self, upstreams: impl FnMut(&SentQuery, &mut Rng) -> Vec<Delivery> + 'static) {
        self.upstreams = Some(Box::new(upstreams));
    }

    /// Sends a client query now.
    pub fn ask(&mut self, query: &ClientQuery) -> Token {
        self.ask_later(Span::ZERO, query)
    }

    /// Sends a client query after a time.
    pub fn ask_later(&mut self, after: Span, query: &ClientQuery) -> Token {
        let token = Token(self.answers_of.len());
        self.answers_of.push(vec![]);
        let Client { address, port, stream, .. } = query.client;
        self.tokens.insert((address, port, stream, query.id), token);
        if after == Span::ZERO {
            self.send_message(&query.client, &query.bytes());
        } else {
            self.schedule(after, Event::FromClient(query.client, query.bytes()));
        }
        token
    }

    /// Sends one query for an A record with a name of its own, and advances the clock.
    pub fn ask_and_wait(&mut self, number: u16, span: Span) -> Token {
        let question = query(&format!("n{number}.example."), wire::Type::A).id(number).port(number);
        let token = self.ask(&question);
        self.run(span);
        token
    }

    /// Passes any message of a client to the engine.
    pub fn send_message(&mut self, from: &Client, message: &[u8]) {
        self.outbox.now = self.now;
        self.engine.query(self.now, from, message, &mut self.outbox);
        self.poll();
    }

    /// Passes a message of an upstream to the engine. A message over a closed link is lost, as with a closed socket.
    pub fn reply(&mut self, via: Link, message: &[u8]) {
        if self.outbox.links.contains_key(&via) {
            self.outbox.now = self.now;
            self.engine.reply(self.now, via, &mut message.to_vec(), &mut self.outbox);
            self.poll();
        }
    }

    /// The last query to an upstream.
    pub fn last(&self) -> SentQuery {
        self.asked.last().expect("a query to an upstream").clone()
    }

    /// Replies to the query to an upstream at this place.
    pub fn reply_to(&mut self, place: usize, reply: &Reply) {
        let SentQuery { link, bytes, .. } = self.asked[place].clone();
        self.reply(link, &reply.to(&bytes));
    }

    /// Replies to the last query to an upstream.
    pub fn reply_to_last(&mut self, reply: &Reply) {
        self.reply_to(self.asked.len() - 1, reply);
    }

    /// Lets the upstreams reply to every query after this time.
    pub fn set_replies(&mut self, after: Span, mut reply: impl FnMut(&SentQuery) -> Reply + 'static) {
        self.set_upstreams(move |asked, _| vec![deliver(asked, after, &reply(asked))]);
    }

    /// Reports a link failure to the engine. It closes a TCP connection.
    pub fn fail(&mut self, via: Link) {
        let Some(opened) = self.outbox.links.get(&via) else { return };
        if opened.transport.is_stream() {
            self.outbox.links.remove(&via);
        }
        self.outbox.now = self.now;
        self.engine.on_link_failure(self.now, via, Unreachable::PortRefused, &mut self.outbox);
        self.poll();
    }

    /// Handles expired deadlines and collects everything that the engine sent, as a datapath does after each batch.
    pub fn poll(&mut self) {
        self.outbox.now = self.now;
        while let Some((id, is_valid)) = self.outbox.verified.pop() {
            self.engine.verified(self.now, id, is_valid, &mut self.outbox);
        }
        self.deadline = self.engine.expire(self.now, &mut self.outbox);
        assert!(self.deadline.is_none_or(|deadline| deadline > self.now), "the deadline has expired already");
        for (to, bytes) in std::mem::take(&mut self.outbox.answered) {
            let id = wire::header::id(&bytes);
            if let Some(token) = self.tokens.get(&(to.address, to.port, to.stream, id)) {
                self.answers_of[token.0].push(self.answers.len());
            }
            self.answers.push(Answer { at: self.now, to, bytes });
        }
        for asked in std::mem::take(&mut self.outbox.asked) {
            if let Some(mut upstreams) = self.upstreams.take() {
                for Delivery { after, via, arrival } in upstreams(&asked, &mut self.rng) {
                    self.schedule(after, Event::FromUpstream(via, arrival));
                }
                self.upstreams = Some(upstreams);
            }
            self.asked.push(asked);
        }
    }

    fn schedule(&mut self, after: Span, event: Event) {
        self.event += 1;
        self.events.insert((self.now + after, self.event), event);
    }

    /// Advances the clock by `span`; all events until then happen in order.
    pub fn run(&mut self, span: Span) {
        self.run_until(self.now + span);
    }

    /// Advances the clock to `end`; all events until then happen in order.
    pub fn run_until(&mut self, end: Instant) {
        loop {
            let event = self.events.first_key_value().map(|(&(at, _), _)| at);
            let next = [event, self.deadline].into_iter().flatten().min();
            let Some(next) = next.filter(|&next| next <= end) else { break };
            self.now = self.now.max(next);
            match self.events.first_entry().filter(|entry| entry.key().0 <= self.now) {
                None => self.poll(),
                Some(entry) => match entry.remove() {
                    Event::FromUpstream(via, Arrival::Message(bytes)) => self.reply(via, &bytes),
                    Event::FromUpstream(via, Arrival::Failure) => self.fail(via),
                    Event::FromClient(from, bytes) => self.send_message(&from, &bytes),
                },
            }
        }
        self.now = end;
        self.poll();
    }

    /// The answers to a client query.
    pub fn answers_to(&self, token: Token) -> Vec<&Answer> {
        self.answers_of[token.0].iter().map(|&index| &self.answers[index]).collect()
    }

    /// The only answer to a client query; panics if there is none or more than one.
    pub fn answer_to(&self, token: Token) -> &Answer {
        match self.answers_to(token)[..] {
            [only] => only,
            ref all => panic!("{} answers", all.len()),
        }
    }

    /// The value of a counter.
    pub fn count(&self, counter: Counter) -> u64 {
        self.engine.counters().get(counter)
    }

    /// The sum of the counters whose family `wanted` accepts.
    pub fn sum(&self, wanted: impl Fn(&str) -> bool) -> u64 {
        Counter::ALL.iter().filter(|counter| wanted(counter.describe().0)).map(|&c| self.count(c)).sum()
    }

    /// Checks the counters: each message of a client was answered, was dropped for a counted reason, or is still pending.
    pub fn assert_conservation(&self) {
        let queries = self.sum(|family| family == "queries_total");
        let answered = self.sum(|family| family == "responses_total");
        let dropped: u64 = [
            Counter::DroppedShort,
            Counter::DroppedResponse,
            Counter::DroppedRepeated,
            Counter::DroppedAnswer,
            Counter::DroppedTooLate,
            Counter::DroppedQueryRate,
            Counter::DroppedPendingPerClient,
            Counter::DroppedResponseRate,
        ]
        .map(|counter| self.count(counter))
        .iter()
        .sum();
        let pending = self.engine.pending() as u64;
        assert_eq!(
            queries,
            answered + dropped + pending,
            "{answered} answered, {dropped} dropped, {pending} pending"
        );
    }
}

/// A reply to a query that arrives after a time over the link of the query.
pub fn deliver(asked: &SentQuery, after: Span, reply: &Reply) -> Delivery {
    Delivery { after, via: asked.link, arrival: Arrival::Message(reply.to(&asked.bytes)) }
}

/// A message that arrives after a time over the link of a query.
pub fn deliver_octets(asked: &SentQuery, after: Span, octets: Vec<u8>) -> Delivery {
    Delivery { after, via: asked.link, arrival: Arrival::Message(octets) }
}
