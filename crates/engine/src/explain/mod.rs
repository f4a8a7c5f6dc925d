//! Why a question is answered as it is. An [`Explainer`] is an engine of its own that is asked one question; it hears what
//! that engine decides (`note.rs`) and what goes to and comes from the upstreams, so the answer that it explains is the
//! answer that the very same code gives. It has no I/O either: the driver owns sockets and clock.
//!
//! What a worker knows from before (its cache, which upstream is dead) has no part in it.

use crate::base::network::Network;
use crate::base::time::{Instant, Span};
use crate::dns64::config::Dnssec;
use crate::engine::Engine;
use crate::explain::listen::{Listener, Transcript};
use crate::interface::{Client, Link, Machine, Outbox, Transport};
use crate::settings::{Capacity, Settings};
use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use pref64::Pref64;
use wire::{Message, Rcode, Type};

mod decision;
mod listen;
mod security;

pub use crate::dns64::decision::Cause;
pub use crate::dns64::embed::Embedding;
pub use decision::Decision;
pub use security::Security;

/// How an answer came about.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The question: a whole message.
    pub question: Vec<u8>,
    /// Who asks.
    pub client: Ipv6Addr,
    /// What was decided, in order.
    pub decisions: Vec<Decision>,
    /// What was asked, in order.
    pub legs: Vec<Leg>,
    /// The AAAA records that there are, and what became of each.
    pub real: Vec<Real>,
    /// The IPv4 addresses, and what became of each under each prefix.
    pub addresses: Vec<Address>,
    /// How long the synthesized records may be kept.
    pub ttl: Option<Ttl>,
    /// What the AD bit of an upstream is worth.
    pub dnssec: Dnssec,
    /// Whether everything was secure that the answer is made of. None: it is not made of several parts.
    pub secure: Option<bool>,
    /// The answer. None: there was none as long as anybody waited, or the question was dropped.
    pub answer: Option<Answer>,
    /// The answer did not come in time, and might still have come.
    pub is_unfinished: bool,
}

/// One question on the way: to the upstreams, or to our own data.
#[derive(Clone, Debug)]
pub struct Leg {
    /// The name asked, in wire form and lower case.
    pub name: Box<[u8]>,
    /// The type asked.
    pub qtype: Type,
    /// It was asked with CD: the upstream is not to validate.
    pub unchecked: bool,
    /// Our own data that answered in the upstreams' place.
    pub own: Option<LocalSource>,
    /// What was asked of upstreams.
    pub tries: Vec<Try>,
    /// The reply that counted.
    pub reply: Option<Vec<u8>>,
    /// Whether it has come to its end. Else the answer did not need it.
    pub is_over: bool,
}

/// Data of our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalSource {
    /// Records, blocked names and policies, by what they count as.
    Counted(crate::counters::Counter),
    /// A reverse name under a prefix, which is an alias.
    Alias,
}

/// One question to one upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Try {
    /// The upstream.
    pub upstream: SocketAddr,
    /// How.
    pub transport: Transport,
    /// When, after the client's question.
    pub after: Span,
    /// What came of it, and how long that took. None: nothing until the explanation ended.
    pub end: Option<(End, Span)>,
}

/// What came of one question to one upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A reply with this RCODE.
    Reply(Rcode),
    /// A reply that did not fit: the question is asked again over TCP.
    Truncated,
    /// It cannot be reached: an ICMP error, or a connection that was refused or lost.
    Unreachable,
}

/// A real AAAA record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Real {
    /// Its address.
    pub address: Ipv6Addr,
    /// What became of it.
    pub fate: RealFate,
}

/// What became of a real AAAA record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RealFate {
    /// It is passed on.
    Kept,
    /// It lies in this network, and counts as absent.
    Excluded(Network),
    /// It lies under this prefix of a rule, and counts as absent.
    OurPrefix(Pref64),
    /// This rule ignores it; numbers count from 1.
    Ignored(usize),
}

/// An IPv4 address under one prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Owner of the A record, in wire form.
    pub owner: Box<[u8]>,
    /// The address.
    pub ipv4: Ipv4Addr,
    /// The rule that decided; numbers count from 1. None: no rule matches.
    pub rule: Option<usize>,
    /// The prefix. None: the rule has none.
    pub prefix: Option<Pref64>,
    /// What became of it.
    pub fate: Embedding,
    /// The address that it became.
    pub aaaa: Option<Ipv6Addr>,
}

/// The TTL of the synthesized records in seconds, and what it is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ttl {
    /// The lowest of the A records.
    pub a: u32,
    /// TTL and MINIMUM of the SOA in the AAAA answer.
    pub soa: Option<(u32, u32)>,
    /// What that allows at most; without an SOA 600.
    pub bound: u32,
    /// The lower of the two.
    pub result: u32,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The message.
    pub message: Vec<u8>,
    /// How long it took.
    pub after: Span,
}

impl Explanation {
    /// The question.
    pub fn asked(&self) -> Option<Message<'_>> {
        Message::parse(&self.question).ok()
    }

    /// The answer.
    pub fn answered(&self) -> Option<Message<'_>> {
        Message::parse(&self.answer.as_ref()?.message).ok()
    }
}

impl Leg {
    /// The reply that counted.
    pub fn replied(&self) -> Option<Message<'_>> {
        Message::parse(self.reply.as_ref()?).ok()
    }
}

/// An engine that is asked one question, and whoever listens to it.
pub struct Explainer {
    engine: Engine,
    record: Transcript,
    client: Client,
}

impl Explainer {
    /// Prepares to ask `question`, a whole message, on behalf of `client`. `seed` is 32 octets of entropy.
    pub fn new(settings: Settings, client: Client, question: Vec<u8>, seed: [u8; 32]) -> Explainer {
        let record = Transcript::new(settings.clone(), client.address, question);
        let engine = Engine::new(settings, Capacity { pending: 1, cache: 0 }, seed);
        Explainer { engine, record, client }
    }

    /// Asks.
    pub fn begin(&mut self, now: Instant, out: &mut impl Outbox) {
        self.record.began = now;
        let question = self.record.explanation.question.clone();
        let mut out = Listener { record: &mut self.record, now, out };
        self.engine.query(now, &self.client, &question, &mut out);
    }

    /// A message from an upstream.
    pub fn reply(&mut self, now: Instant, via: Link, message: &[u8], out: &mut impl Outbox) {
        self.record.came(now, via, message);
        self.engine.reply(now, via, message, &mut Listener { record: &mut self.record, now, out });
    }

    /// A link failed.
    pub fn unreachable(&mut self, now: Instant, via: Link, out: &mut impl Outbox) {
        self.record.failed(now, via);
        self.engine.unreachable(now, via, &mut Listener { record: &mut self.record, now, out });
    }

    /// Time has passed. Returns the next deadline, if there is one.
    pub fn expire(&mut self, now: Instant, out: &mut impl Outbox) -> Option<Instant> {
        self.engine.expire(now, &mut Listener { record: &mut self.record, now, out })
    }

    /// Whether the question is answered, or dropped.
    pub fn is_over(&self) -> bool {
        self.record.explanation.answer.is_some() || self.engine.idle()
    }

    /// What is known now.
    pub fn explain(self) -> Explanation {
        let is_unfinished = !self.is_over();
        Explanation { is_unfinished, ..self.record.explanation }
    }
}
