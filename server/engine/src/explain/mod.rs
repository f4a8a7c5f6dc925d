//! Explanations: the reasons for one answer (`sixfold ctl explain`).
//!
//! An [`Explainer`] is a separate engine that gets one query. It listens to the decisions of that engine (`trace.rs`) and to the
//! traffic with the upstreams, so the answer that it explains comes from the code that answers all clients. It has no I/O: the
//! driver owns sockets and clock. It does not use the state of a worker (the cache, the upstreams that are dead).
//!
//! Read `listen.rs` first (it records the events), then `decision.rs` (the decisions in words). [`live`] records the queries of
//! clients in the same words, for `sixfold ctl trace`.

use crate::base::network::Network;
use crate::base::time::{Instant, Span};
use crate::dns64::config::Dnssec;
use crate::engine::Engine;
use crate::explain::listen::{Listener, Transcript};
use crate::interface::{Client, Link, Outbox, Transport, VerificationId};
use crate::machine::Machine;
use crate::reasons::LocalReply;
use crate::settings::{Capacity, Settings};
use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use pref64::Pref64;
use std::sync::Arc;
use wire::{Message, Rcode, Type};

mod chain;
mod decision;
mod immediate;
mod listen;
pub mod live;
mod security;

pub use crate::dns64::decision::Cause;
pub use crate::dns64::embed::Embedding;
pub use crate::dns64::gateways::Unused;
pub use crate::trace::{Unreachable, ZoneState};
pub use chain::{CheckedReply, KeyRecord, Link as ChainLink, Reference, Signature};
pub use decision::Decision;
pub use listen::Policy;
pub use security::Security;

/// The explanation of one answer.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The client's query: a whole message.
    pub question: Vec<u8>,
    /// Address of the client.
    pub client: Ipv6Addr,
    /// Decisions, in order.
    pub decisions: Vec<Decision>,
    /// Lookups, in order.
    pub lookups: Vec<LookupReport>,
    /// Real AAAA records, and the decision about each.
    pub real: Vec<Real>,
    /// IPv4 addresses, and the decision about each of them under each prefix.
    pub addresses: Vec<Address>,
    /// TTL of the synthesized records. None: nothing is synthesized.
    pub ttl: Option<Ttl>,
    /// Use of the upstreams' AD bit, from the configuration.
    pub dnssec: Dnssec,
    /// Zones whose keys were searched, those with fewer labels first.
    pub chain: Vec<ChainLink>,
    /// Replies that were validated, each with its last verdict.
    pub checked: Vec<CheckedReply>,
    /// True if all parts of a synthesized answer were secure. None: the answer is not synthesized.
    pub secure: Option<bool>,
    /// The answer. None: it did not come in time, or the query was dropped.
    pub answer: Option<Answer>,
    /// True if the time ran out before there was an answer.
    pub is_unfinished: bool,
}

/// One lookup: a question to the upstreams, or to local data.
#[derive(Clone, Debug)]
pub struct LookupReport {
    /// QNAME, in wire form and lower case.
    pub name: Box<[u8]>,
    /// QTYPE.
    pub qtype: Type,
    /// True if CD was set: the upstream does not validate.
    pub unchecked: bool,
    /// True if the lookup served the search of a zone's keys, and no part of the answer.
    pub is_for_chain: bool,
    /// Local data that answered instead of an upstream.
    pub own: Option<LocalSource>,
    /// Queries to upstreams.
    pub attempts: Vec<Attempt>,
    /// The reply that was used.
    pub reply: Option<Vec<u8>>,
    /// True if the lookup has ended. Otherwise the answer did not need it.
    pub is_over: bool,
}

/// Source of a local reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalSource {
    /// Local records or blocked names.
    Data(LocalReply),
    /// A response policy zone.
    Policy,
    /// A reverse name under a prefix, which is an alias of an IPv4 reverse name.
    Alias,
}

/// One query to one upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Address and port of the upstream.
    pub upstream: SocketAddr,
    /// Transport of the query.
    pub transport: Transport,
    /// Time of the query, after that of the client.
    pub after: Span,
    /// Outcome, and the time until then. None: there was no reply before the explanation ended.
    pub end: Option<(End, Span)>,
}

/// Outcome of one query to one upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A reply with this RCODE.
    Reply(Rcode),
    /// A truncated reply: the question is asked again over TCP.
    Truncated,
    /// The upstream cannot be reached.
    Unreachable(Unreachable),
}

/// Reason why a lookup has no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoReply {
    /// No upstream could be asked: there was no socket, or no route.
    NotAsked,
    /// No upstream could be reached, the last one for this reason.
    Unreachable(Unreachable),
    /// Upstreams replied, but with nothing that answers the question.
    Unusable,
    /// The upstreams did not reply in time.
    TimedOut,
}

/// A real AAAA record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Real {
    /// Address of the record.
    pub address: Ipv6Addr,
    /// Decision about the record.
    pub fate: RealFate,
}

/// Decision about a real AAAA record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RealFate {
    /// The record is passed on.
    Kept,
    /// The record is in this network of `exclude-aaaa`, and counts as absent.
    Excluded(Network),
    /// The record is under this prefix of a rule, and counts as absent.
    OurPrefix(Pref64),
    /// The rule with this number (from 1) ignores the record.
    Ignored(usize),
    /// The rule with this number (from 1) verifies the record: it is passed on, as its address has answered.
    Lives(usize),
    /// The rule with this number (from 1) verifies the record: it is passed on for a short time, until its address has been tried.
    Untried(usize),
    /// The rule with this number (from 1) verifies the record: it counts as absent, as its address has not answered.
    Dead(usize),
}

/// An IPv4 address under one prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Owner of the A record, in wire form.
    pub owner: Box<[u8]>,
    /// The IPv4 address.
    pub ipv4: Ipv4Addr,
    /// Number of the rule that decided, from 1. None: no rule matches.
    pub rule: Option<usize>,
    /// The prefix. None: the rule has none, or the address has a mapping.
    pub prefix: Option<Pref64>,
    /// Decision about the address.
    pub fate: Embedding,
    /// The synthesized address.
    pub aaaa: Option<Ipv6Addr>,
}

/// TTL of the synthesized records, with its parts, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ttl {
    /// Lowest TTL of the A records.
    pub a: u32,
    /// TTL and MINIMUM of the SOA in the AAAA answer.
    pub soa: Option<(u32, u32)>,
    /// Upper bound from the SOA; 600 without an SOA.
    pub bound: u32,
    /// `dns64.health.answer-ttl`, if it decides.
    pub gateway: Option<u32>,
    /// The lowest of these.
    pub result: u32,
}

/// The answer to the client.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The whole message.
    pub message: Vec<u8>,
    /// Time from query to answer.
    pub after: Span,
}

impl Explanation {
    /// The client's query, parsed.
    pub fn asked(&self) -> Option<Message<'_>> {
        Message::parse(&self.question).ok()
    }

    /// The answer, parsed.
    pub fn answered(&self) -> Option<Message<'_>> {
        Message::parse(&self.answer.as_ref()?.message).ok()
    }
}

impl LookupReport {
    /// The reply that was used, parsed.
    pub fn replied(&self) -> Option<Message<'_>> {
        Message::parse(self.reply.as_ref()?).ok()
    }

    /// The reason why the lookup has ended without a reply; none if it has a reply, or has not ended.
    pub fn no_reply(&self) -> Option<NoReply> {
        if !self.is_over || self.reply.is_some() {
            return None;
        }
        let ends = || self.attempts.iter().map(|attempt| attempt.end.map(|(end, _)| end));
        let last_failure = ends().rev().find_map(|end| match end {
            Some(End::Unreachable(reason)) => Some(reason),
            _ => None,
        });
        Some(match last_failure {
            None if self.attempts.is_empty() => NoReply::NotAsked,
            Some(reason) if ends().all(|end| matches!(end, Some(End::Unreachable(_)))) => {
                NoReply::Unreachable(reason)
            }
            _ if ends().any(|end| matches!(end, Some(End::Reply(_)))) => NoReply::Unusable,
            _ => NoReply::TimedOut,
        })
    }
}

/// An engine that gets one query, and the transcript of its events.
pub struct Explainer {
    engine: Engine,
    transcript: Transcript,
    client: Client,
}

impl Explainer {
    /// Prepares the query `question`, a whole message from `client`. `seed` is 32 octets of entropy.
    pub fn new(settings: Settings, client: Client, question: Vec<u8>, seed: [u8; 32]) -> Explainer {
        let transcript = Transcript::new(Arc::new(Policy::of(&settings)), client.address, question);
        // An explanation is no query of a client.
        let settings = Settings { needs: None, ..settings };
        let engine = Engine::new(settings, Capacity { pending: 1, cache: 0 }, seed);
        Explainer { engine, transcript, client }
    }

    /// Sets the time of day: `unix` after 1970 at `now`, as [`Engine::set_unix_time`] does. Signatures are judged by it.
    pub fn set_unix_time(&mut self, now: Instant, unix: Span) {
        self.engine.set_unix_time(now, unix);
    }

    /// Sends the query to the engine.
    pub fn begin(&mut self, now: Instant, out: &mut impl Outbox) {
        self.transcript.started = now;
        let question = self.transcript.explanation.question.clone();
        let mut out = Listener { transcript: &mut self.transcript, now, out };
        self.engine.query(now, &self.client, &question, &mut out);
    }

    /// Handles a message from an upstream.
    pub fn reply(&mut self, now: Instant, via: Link, message: &mut [u8], out: &mut impl Outbox) {
        self.transcript.on_reply(now, via, message);
        self.engine.reply(now, via, message, &mut Listener { transcript: &mut self.transcript, now, out });
    }

    /// Handles the failure of a link.
    pub fn on_link_failure(&mut self, now: Instant, via: Link, reason: Unreachable, out: &mut impl Outbox) {
        self.transcript.on_link_failure(now, via, reason);
        self.engine.on_link_failure(
            now,
            via,
            reason,
            &mut Listener { transcript: &mut self.transcript, now, out },
        );
    }

    /// Handles the outcome of a verification that the outbox took.
    pub fn verified(&mut self, now: Instant, id: VerificationId, is_valid: bool, out: &mut impl Outbox) {
        self.engine.verified(now, id, is_valid, &mut Listener { transcript: &mut self.transcript, now, out });
    }

    /// Handles the passage of time. Returns the next deadline, if there is one.
    pub fn expire(&mut self, now: Instant, out: &mut impl Outbox) -> Option<Instant> {
        self.engine.expire(now, &mut Listener { transcript: &mut self.transcript, now, out })
    }

    /// True if the query is answered, or dropped.
    pub fn is_over(&self) -> bool {
        self.transcript.explanation.answer.is_some() || self.engine.is_idle()
    }

    /// Returns the explanation, complete or not.
    pub fn explain(self) -> Explanation {
        let is_unfinished = !self.is_over();
        Explanation { is_unfinished, ..self.transcript.explanation }
    }
}
