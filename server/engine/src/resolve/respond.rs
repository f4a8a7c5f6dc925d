//! Responses to waiters: an upstream reply forwarded, an empty response, the aliases alone.

use crate::answer::builder::{Written, write_empty, write_failure, write_truncated};
use crate::answer::forward::{ForwardedReply, forward};
use crate::answer::requestor::Requestor;
use crate::answer::synthesis::write_aliases;
use crate::base::slab::Index;
use crate::base::time::Instant;
use crate::client::Clients;
use crate::client::chased::replies;
use crate::client::respond::{ResponseSink, respond};
use crate::dns64::config::Dnssec;
use crate::dns64::decision::{Cause, Stage};
use crate::dns64::embed::EmbeddingCounts;
use crate::engine::Engine;
use crate::interface::Outbox;
use crate::message::cname_chain::Chain;
use crate::message::question::QueryFlags;
use crate::message::reply::{Outcome, warrants_failover};
use crate::resolve::divert::depends_on_client;
use crate::trace::{Subject, Untrusted};
use crate::upstream::groups::Unanswered;
use wire::header::{self, Flags};
use wire::{EdeCode, Message, Rcode, ede};

impl Engine {
    /// The sink for a response: counters and the response rate limit.
    pub(crate) fn response_sink(&mut self, now: Instant) -> ResponseSink<'_> {
        let identity = &self.settings.server_names.identity;
        let rate_limiter = Some(&mut self.clients.rate_limiter);
        ResponseSink { counters: &mut self.counters, rate_limiter, now, identity }
    }

    /// Answers a waiter with what `write` writes, and frees it.
    pub(crate) fn respond_with(
        &mut self,
        waiter: Index,
        now: Instant,
        out: &mut impl Outbox,
        write: impl FnOnce(&mut [u8], &Requestor<'_>) -> Written,
    ) {
        let Engine { settings, clients, counters, .. } = self;
        let Clients { waiters, rate_limiter, .. } = clients;
        let identity = &settings.server_names.identity;
        let sink = ResponseSink { counters, rate_limiter: Some(rate_limiter), now, identity };
        respond(waiters, sink, settings.udp_size, waiter, out, write);
        self.free_waiter(waiter, out);
    }

    /// Answers a waiter without records, and frees it.
    pub(crate) fn respond_empty(
        &mut self,
        index: Index,
        rcode: Rcode,
        ede: Option<EdeCode>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        self.respond_with(index, now, out, |frame, requestor| write_empty(frame, requestor, rcode, ede));
    }

    /// Sends the client of a waiter to TCP, and frees the waiter.
    #[cold]
    pub(crate) fn respond_truncated(&mut self, index: Index, now: Instant, out: &mut impl Outbox) {
        // No answer of a rule, and no longer than the query.
        self.clients.waiters[index].policy_mark = None;
        let identity = &self.settings.server_names.identity;
        let sink = ResponseSink { counters: &mut self.counters, rate_limiter: None, now, identity };
        respond(&self.clients.waiters, sink, self.settings.udp_size, index, out, write_truncated);
        self.free_waiter(index, out);
    }

    /// Answers a waiter whose question has no reply with SERVFAIL, and frees it. The text of the extended error tells if an upstream
    /// could not be authenticated.
    #[cold]
    pub(crate) fn respond_failed(&mut self, index: Index, now: Instant, out: &mut impl Outbox) {
        self.count_failed(index);
        let reason = self.upstream.untrusted(self.clients.current_question(index).forward_key());
        let text = reason.map_or("", Untrusted::text);
        self.respond_with(index, now, out, |frame, requestor| {
            write_failure(frame, requestor, ede::NETWORK_ERROR, text)
        });
    }

    /// Counts a waiter whose question the upstreams of its zone did not answer.
    #[cold]
    fn count_failed(&mut self, index: Index) {
        let question = self.clients.current_question(index);
        let one = Unanswered { failed: 1, ..Unanswered::default() };
        self.upstream.servers.count_unanswered(question.forward_key(), one);
    }

    /// Answers with the outcome of a question without DNS64.
    pub(crate) fn on_direct(
        &mut self,
        waiter: Index,
        outcome: &Outcome<'_, '_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        out.trace(Subject::Waiter(waiter), || self.leg_event(waiter, outcome));
        match outcome {
            Outcome::Reply(message, chain) => {
                if self.follows_to_the_end(waiter, message, chain) {
                    return self.chase_cname(waiter, message, chain.end(), now, out);
                }
                if !depends_on_client(chain) {
                    self.mark_valid(waiter, None);
                }
                self.forward_to(waiter, message, chain, false, now, out);
            }
            Outcome::Failed => self.respond_failed(waiter, now, out),
        }
    }

    /// True if a reply ends in an alias that has to be followed here: clients are stubs, which do not follow aliases (RFC 1034 section
    /// 5.3.1), and servers that do not recurse leave those that leave their zones to the asker (section 4.3.2). A client that asks
    /// without RD wants to know what there is.
    pub(crate) fn follows_to_the_end(&self, waiter: Index, message: &Message<'_>, chain: &Chain<'_>) -> bool {
        chain.is_alias()
            && self.clients.waiters[waiter].query_flags.has(QueryFlags::RD)
            && chain.is_unfinished(message)
    }

    /// Answers a waiter with the aliases alone: their target exists, but the negative answer for it did not come.
    pub(crate) fn respond_aliases(&mut self, waiter: Index, now: Instant, out: &mut impl Outbox) {
        let Engine { settings, clients, counters, .. } = self;
        let Clients { waiters, rate_limiter, chases, .. } = clients;
        let before = replies(chases, waiters[waiter].chase);
        let identity = &settings.server_names.identity;
        let sink = ResponseSink { counters, rate_limiter: Some(rate_limiter), now, identity };
        respond(waiters, sink, settings.udp_size, waiter, out, |frame, requestor| {
            write_aliases(frame, requestor, before)
        });
        self.free_waiter(waiter, out);
    }

    /// Forwards a reply to a waiter, and frees it. `filter`: excluded AAAA records are left out.
    pub(crate) fn forward_to(
        &mut self,
        waiter: Index,
        message: &Message<'_>,
        chain: &Chain<'_>,
        filter: bool,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        if message.rcode() != Rcode::NOERROR && warrants_failover(message) {
            self.count_failed(waiter);
        }
        // An A reply instead of the AAAA reply says that there is no AAAA record: both must be secure, and it must be true.
        let state = &self.clients.waiters[waiter];
        let proved = state.stage != Stage::A || state.aaaa_secure && state.cause == Cause::NoData;
        let trusted = self.settings.dns64.dnssec == Dnssec::Trust && proved && self.came_secure(waiter);
        let Engine { settings, clients, counters, last_answers, .. } = self;
        let Clients { waiters, rate_limiter, chases, .. } = clients;
        let forwarded = ForwardedReply {
            message,
            chain,
            trusted,
            exclude: filter.then_some(&settings.dns64),
            before: replies(chases, waiters[waiter].chase),
        };
        let identity = &settings.server_names.identity;
        let sink = ResponseSink { counters, rate_limiter: Some(rate_limiter), now, identity };
        respond(waiters, sink, settings.udp_size, waiter, out, |frame, requestor| {
            let compose = |frame: &mut [u8], requestor: &Requestor<'_>| {
                (forward(frame, requestor, &forwarded), EmbeddingCounts::default())
            };
            last_answers.write(message.bytes(), || forwarded.composition(), frame, requestor, compose).0
        });
        self.free_waiter(waiter, out);
    }

    /// True if every reply of a waiter's CNAME chase was secure: AD covers all records of an answer (RFC 4035 section
    /// 3.2.3).
    pub(crate) fn came_secure(&self, waiter: Index) -> bool {
        let before = replies(&self.clients.chases, self.clients.waiters[waiter].chase);
        before.iter().all(|reply| header::flags(reply).contains(Flags::AD))
    }
}
