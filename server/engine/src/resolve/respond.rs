//! Responses to pending queries: an upstream reply forwarded, an empty response, the aliases alone.

use crate::answer::builder::{Written, write_empty, write_failure, write_truncated};
use crate::answer::forward::{ForwardedReply, forward};
use crate::answer::params::ResponseParams;
use crate::answer::synthesis::write_aliases;
use crate::base::slab::Index;
use crate::base::time::Instant;
use crate::client::Clients;
use crate::client::chased::replies;
use crate::client::respond::{ResponseContext, respond};
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
use crate::upstream::forward_zones::Unanswered;
use wire::header::{self, Flags};
use wire::{EdeCode, Message, Rcode, ede};

impl Engine {
    /// The context of a response: counters and the response rate limit.
    pub(crate) fn response_context(&mut self, now: Instant) -> ResponseContext<'_> {
        let identity = &self.settings.server_names.identity;
        let rate_limiter = Some(&mut self.clients.rate_limiter);
        ResponseContext { counters: &mut self.counters, rate_limiter, now, identity }
    }

    /// Answers a pending query with what `write` writes, and frees it.
    pub(crate) fn respond_with(
        &mut self,
        pending: Index,
        now: Instant,
        out: &mut impl Outbox,
        write: impl FnOnce(&mut [u8], &ResponseParams<'_>) -> Written,
    ) {
        let Engine { settings, clients, counters, .. } = self;
        let Clients { pending_queries, rate_limiter, .. } = clients;
        let identity = &settings.server_names.identity;
        let context = ResponseContext { counters, rate_limiter: Some(rate_limiter), now, identity };
        respond(pending_queries, context, settings.udp_size, pending, out, write);
        self.free_pending_query(pending, out);
    }

    /// Answers a pending query without records, and frees it.
    pub(crate) fn respond_empty(
        &mut self,
        index: Index,
        rcode: Rcode,
        ede: Option<EdeCode>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        self.respond_with(index, now, out, |frame, params| write_empty(frame, params, rcode, ede));
    }

    /// Sends the client of a pending query to TCP, and frees the pending query.
    #[cold]
    pub(crate) fn respond_truncated(&mut self, index: Index, now: Instant, out: &mut impl Outbox) {
        // No answer of a rule, and no longer than the query.
        self.clients.pending_queries[index].policy_mark = None;
        let identity = &self.settings.server_names.identity;
        let context = ResponseContext { counters: &mut self.counters, rate_limiter: None, now, identity };
        respond(&self.clients.pending_queries, context, self.settings.udp_size, index, out, write_truncated);
        self.free_pending_query(index, out);
    }

    /// Answers a pending query whose question has no reply with SERVFAIL, and frees it. The text of the extended error tells if an upstream
    /// could not be authenticated.
    #[cold]
    pub(crate) fn respond_failed(&mut self, index: Index, now: Instant, out: &mut impl Outbox) {
        self.count_failed(index);
        let reason = self.upstream.untrusted(self.clients.current_question(index).forward_key());
        let text = reason.map_or("", Untrusted::text);
        self.respond_with(index, now, out, |frame, params| {
            write_failure(frame, params, ede::NETWORK_ERROR, text)
        });
    }

    /// Counts a pending query whose question the upstreams of its zone did not answer.
    #[cold]
    fn count_failed(&mut self, index: Index) {
        let question = self.clients.current_question(index);
        let one = Unanswered { failed: 1, ..Unanswered::default() };
        self.upstream.servers.count_unanswered(question.forward_key(), one);
    }

    /// Answers with the outcome of a question without DNS64.
    pub(crate) fn on_direct(
        &mut self,
        pending: Index,
        outcome: &Outcome<'_, '_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        out.trace(Subject::PendingQuery(pending), || self.lookup_event(pending, outcome));
        match outcome {
            Outcome::Reply(message, chain) => {
                if self.follows_to_the_end(pending, message, chain) {
                    return self.chase_cname(pending, message, chain.end(), now, out);
                }
                if !depends_on_client(chain) {
                    self.mark_valid(pending, None);
                }
                self.forward_to(pending, message, chain, false, now, out);
            }
            Outcome::Failed => self.respond_failed(pending, now, out),
        }
    }

    /// True if a reply ends in an alias that has to be followed here: clients are stubs, which do not follow aliases (RFC 1034 section
    /// 5.3.1), and servers that do not recurse leave those that leave their zones to the asker (section 4.3.2). A client that asks
    /// without RD wants to know what there is.
    pub(crate) fn follows_to_the_end(
        &self,
        pending: Index,
        message: &Message<'_>,
        chain: &Chain<'_>,
    ) -> bool {
        chain.is_alias()
            && self.clients.pending_queries[pending].query_flags.has(QueryFlags::RD)
            && chain.is_unfinished(message)
    }

    /// Answers a pending query with the aliases alone: their target exists, but the negative answer for it did not come.
    pub(crate) fn respond_aliases(&mut self, pending: Index, now: Instant, out: &mut impl Outbox) {
        let Engine { settings, clients, counters, .. } = self;
        let Clients { pending_queries, rate_limiter, chases, .. } = clients;
        let before = replies(chases, pending_queries[pending].chase);
        let identity = &settings.server_names.identity;
        let context = ResponseContext { counters, rate_limiter: Some(rate_limiter), now, identity };
        respond(pending_queries, context, settings.udp_size, pending, out, |frame, params| {
            write_aliases(frame, params, before)
        });
        self.free_pending_query(pending, out);
    }

    /// Forwards a reply to a pending query, and frees it. `filter`: excluded AAAA records are left out.
    pub(crate) fn forward_to(
        &mut self,
        pending: Index,
        message: &Message<'_>,
        chain: &Chain<'_>,
        filter: bool,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        if message.rcode() != Rcode::NOERROR && warrants_failover(message) {
            self.count_failed(pending);
        }
        // An A reply instead of the AAAA reply says that there is no AAAA record: both must be secure, and it must be true.
        let state = &self.clients.pending_queries[pending];
        let proved = state.stage != Stage::A || state.aaaa_secure && state.cause == Cause::NoData;
        let trusted = self.settings.dns64.dnssec == Dnssec::Trust && proved && self.came_secure(pending);
        let Engine { settings, clients, counters, answer_memo, .. } = self;
        let Clients { pending_queries, rate_limiter, chases, .. } = clients;
        let forwarded = ForwardedReply {
            message,
            chain,
            trusted,
            exclude: filter.then_some(&settings.dns64),
            before: replies(chases, pending_queries[pending].chase),
        };
        let identity = &settings.server_names.identity;
        let context = ResponseContext { counters, rate_limiter: Some(rate_limiter), now, identity };
        respond(pending_queries, context, settings.udp_size, pending, out, |frame, params| {
            let compose = |frame: &mut [u8], params: &ResponseParams<'_>| {
                (forward(frame, params, &forwarded), EmbeddingCounts::default())
            };
            answer_memo.write(message.bytes(), || forwarded.composition(), frame, params, compose).0
        });
        self.free_pending_query(pending, out);
    }

    /// True if every reply of a pending query's CNAME chase was secure: AD covers all records of an answer (RFC 4035 section
    /// 3.2.3).
    pub(crate) fn came_secure(&self, pending: Index) -> bool {
        let before = replies(&self.clients.chases, self.clients.pending_queries[pending].chase);
        before.iter().all(|reply| header::flags(reply).contains(Flags::AD))
    }
}
