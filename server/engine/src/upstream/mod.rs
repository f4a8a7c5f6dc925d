//! Upstream queries and replies: everything between the decision to ask a question and its reply or failure.
//!
//! This folder knows no client and no cache. It returns each result as a value (`receive::Received`,
//! `retry::NextAttempt`, `retry::AttemptDeadline`), and the caller decides its meaning for clients.
//!
//! Read `in_flight.rs` first (one question under way), then `send.rs`, `judge.rs` (the meaning of a reply) and `receive.rs`.

pub(crate) mod bare_replies;
pub mod circuit_breaker;
pub(crate) mod config;
mod connect;
pub mod connection_policy;
pub(crate) mod cookies;
pub(crate) mod dns0x20;
pub(crate) mod edns_support;
pub mod forward_zones;
mod held;
pub(crate) mod in_flight;
pub(crate) mod judge;
pub(crate) mod links;
pub(crate) mod own_question;
pub(crate) mod parked_replies;
#[cfg(test)]
mod planted_tests;
pub(crate) mod probe;
pub(crate) mod query_form;
pub(crate) mod receive;
pub(crate) mod reconnect;
pub(crate) mod retry;
pub(crate) mod retry_budget;
pub(crate) mod send;
pub mod server;
pub(crate) mod signatures;
mod streams;
pub(crate) mod suspicion;
mod verdict;
mod zones;

pub use circuit_breaker::{BreakerState, Cause, Trouble};
pub use forward_zones::Unanswered;
pub use own_question::OwnReply;
pub use server::{QueryKind, Server};

use crate::base::name_hash::HashKey;
use crate::base::random::Random;
use crate::base::slab::Index;
use crate::base::time::{Instant, Span};
use crate::base::timer_wheel::TimerWheel;
use crate::context::Context;
use crate::interface::{Link, Outbox, Transport};
use crate::message::question::ForwardKey;
use crate::upstream::config::{Parameters, UpstreamConfig};
use crate::upstream::cookies::ClientCookieSecret;
use crate::upstream::forward_zones::ForwardZones;
use crate::upstream::in_flight::OutboundQueries;
use crate::upstream::links::Links;
use crate::upstream::own_question::OwnQuestion;
use crate::upstream::parked_replies::ParkedReplies;
use crate::upstream::retry_budget::RetryBudget;
use core::net::SocketAddr;

/// The upstream part of the engine: servers, links, and the questions in flight to them.
pub(crate) struct Upstream {
    parameters: Parameters,
    /// Questions in flight.
    pub outbound_queries: OutboundQueries,
    /// Servers and their groups.
    pub servers: ForwardZones,
    links: Links,
    wheel: TimerWheel,
    budget: RetryBudget,
    /// Replies of A lookups that wait for the AAAA lookup.
    pub parked: ParkedReplies,
    cookie_secret: ClientCookieSecret,
    random: Random,
    key: HashKey,
    /// The question of the server itself.
    own: OwnQuestion,
    /// Questions that are validated here and asked with CD clear all the same (`held.rs`), and the hashes of their names.
    with_checking: Vec<(Index, u64)>,
    /// There is rare work to do: links to servers that the configuration no longer names are to be closed, or the server has a question of its
    /// own.
    has_rare_work: bool,
    /// The links to all servers are to be closed ([`Upstream::retire_links`]).
    must_retire_all: bool,
}

impl Upstream {
    /// Creates the upstream part for the servers of `config`, with room for `outbound_queries` questions. `key` hashes names as the rest
    /// of the engine does.
    pub fn new(
        config: &UpstreamConfig,
        parameters: Parameters,
        outbound_queries: usize,
        key: HashKey,
        cookie_secret: ClientCookieSecret,
        random: Random,
    ) -> Upstream {
        Upstream {
            parameters,
            outbound_queries: OutboundQueries::new(outbound_queries),
            servers: ForwardZones::new(config),
            links: Links::new(),
            wheel: TimerWheel::new(),
            budget: RetryBudget::default(),
            parked: ParkedReplies::new(),
            cookie_secret,
            random,
            key,
            own: OwnQuestion::default(),
            with_checking: Vec::new(),
            has_rare_work: false,
            must_retire_all: false,
        }
    }

    /// Applies another configuration. Questions in flight go on.
    pub fn configure(&mut self, config: &UpstreamConfig, parameters: Parameters) {
        let Upstream { servers, links, .. } = self;
        servers.configure(config, |number| !links.leads_to(number));
        self.parameters = parameters;
        self.has_rare_work = true;
    }

    /// Retires all open links: no more question takes them, and each is closed when its last question has its reply.
    pub fn retire_links(&mut self) {
        self.has_rare_work = true;
        self.must_retire_all = true;
    }

    /// Number of open links.
    pub fn open_links(&self) -> usize {
        self.links.open_count()
    }

    /// Open links, with the upstream and the transport of each.
    pub fn addresses_of_links(&self) -> impl Iterator<Item = (Link, SocketAddr, Transport)> {
        let links = &self.links;
        links.open().map(|link| {
            let server = &self.servers.list[usize::from(links.server(link))];
            (link, server.address, links.transport(link))
        })
    }

    /// True if a question with expired data in the cache is not asked now, because its servers have only just recovered
    /// (see [`ForwardZones::in_slow_start`]).
    pub fn in_slow_start(&mut self, question: ForwardKey<'_>, now: Instant) -> bool {
        let Upstream { servers, random, .. } = self;
        servers.in_slow_start(question, now, |bound| random.below(bound))
    }

    /// Returns a question in flight whose timer has come due; none if there is no more. The caller goes on with
    /// [`Upstream::take_due`].
    pub fn pop_due(&mut self, now: Instant) -> Option<Index> {
        self.wheel.pop(&mut self.outbound_queries.slab, now)
    }

    /// Does the periodic work that belongs to no question: closes links, sends probes. Returns the next deadline.
    pub fn maintain(&mut self, cx: &mut Context<'_, impl Outbox>) -> Option<Instant> {
        if core::mem::take(&mut self.has_rare_work) {
            self.close_stale_links(cx.out);
            self.launch_own(cx);
        }
        let mut next = None;
        let mut has_opened = false;
        for number in 0..self.servers.list.len() {
            has_opened |= self.servers.list[number].breaker.take_has_opened();
            if self.servers.list[number].take_probe(cx.now) {
                self.probe(number as u16, cx);
            }
            let streams = self.maintain_streams(number, cx);
            for due in self.servers.list[number].next_probe().into_iter().chain(streams) {
                next = Some(next.map_or(due, |next: Instant| next.min(due)));
            }
        }
        if has_opened {
            self.expedite_retries(cx.now);
        }
        // Probes have set deadlines of their own.
        let next = next.into_iter().chain(self.wheel.next()).min();
        // A tick never comes due twice at the same time.
        next.map(|next| next.max(cx.now + Span(1)))
    }
}
