//! The lookup order of a pending query's current question, and its local part: local data, and special-use names that a CNAME chase
//! reaches.

use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::client::Clients;
use crate::client::chased::CnameChase;
use crate::client::respond::{ResponseContext, respond};
use crate::context::Context;
use crate::counters::Counter;
use crate::dns64::decision::Stage;
use crate::engine::Engine;
use crate::interface::Outbox;
use crate::local::special_use::{self, Alias, SpecialUse};
use crate::message::cname_chain::Chain;
use crate::message::question::{QUESTION, Question};
use crate::message::reply::Outcome;
use crate::reasons::LocalZone;
use crate::resolve::chase::NO_END;
use crate::trace::{Subject, TraceEvent};
use wire::{Class, Message, Rcode, Type};

impl Engine {
    /// Looks up the current question of a pending query, which then has its answer, or waits. This is the lookup order of the engine:
    /// local data, special-use names, RPZ, cache, questions in flight, upstreams.
    pub(crate) fn look_up(&mut self, pending: Index, now: Instant, out: &mut impl Outbox) {
        if !self.look_up_here(pending, true, now, out) {
            self.ask_upstream(pending, now, out);
        }
    }

    /// Looks up the current question of a pending query without the upstreams. Returns false if they have to be asked. `may_be_cached`:
    /// the cache may have the reply.
    #[inline]
    pub(crate) fn look_up_here(
        &mut self,
        pending: Index,
        may_be_cached: bool,
        now: Instant,
        out: &mut impl Outbox,
    ) -> bool {
        self.clients.pending_queries[pending].chase != NONE && self.answer_special_use(pending, now, out)
            || !self.settings.local_data.is_empty() && self.answer_from_local_data(pending, now, out)
            || !self.settings.rpz.is_empty() && self.apply_rpz_to_question(pending, now, out)
            || may_be_cached && !self.cache.is_off() && self.answer_from_cache(pending, now, out)
    }

    /// Has a pending query wait for the upstreams' reply to its current question, which is in flight already or is asked now.
    pub(crate) fn ask_upstream(&mut self, pending: Index, now: Instant, out: &mut impl Outbox) {
        let qtype = self.clients.pending_queries[pending].current_type();
        match self.outbound_query_for(pending, qtype, now, out) {
            Some(outbound) => {
                out.trace(Subject::PendingQuery(pending), || self.wait_event(pending, qtype, outbound));
                self.attach(outbound, pending);
            }
            // The A lookup has shown that the name exists.
            None if self.clients.pending_queries[pending].stage == Stage::NegativeAaaa => {
                self.respond_aliases(pending, now, out);
            }
            None => self.respond_empty(pending, Rcode::SERVFAIL, None, now, out),
        }
    }

    /// Answers a pending query whose CNAME chase has reached a special-use name (RFC 8880 section 7.1, RFC 6147 section 5.3.1,
    /// RFC 6761), or continues with its alias target. The response consists of the aliases and the local answer. No upstream is ever
    /// asked for such a name. Returns false for an ordinary name.
    pub(crate) fn answer_special_use(&mut self, pending: Index, now: Instant, out: &mut impl Outbox) -> bool {
        let Engine { settings, clients, counters, .. } = self;
        let Clients { pending_queries, rate_limiter, chases, .. } = clients;
        let state = &pending_queries[pending];
        if state.chase == NONE {
            return false;
        }
        let CnameChase { name, replies, .. } = &chases[state.chase];
        // As for the name in a query: records of the configuration come first, blocks come later.
        if !settings.local_data.is_empty() && settings.local_data.has_records(name) {
            return false;
        }
        // The client's own question is answered, from the AAAA lookup and from the A lookup alike.
        let (qtype, class) = state.qtype_and_class();
        let own_size = settings.udp_size;
        match special_use::classify(settings.special_use(), state.client.address, name, qtype, class) {
            SpecialUse::Ordinary => false,
            SpecialUse::Local(answer) => {
                out.trace(Subject::PendingQuery(pending), || TraceEvent::SpecialUse {
                    zone: answer.zone,
                    name,
                });
                counters.count(answer.zone.counter());
                let identity = &settings.server_names.identity;
                let context = ResponseContext { counters, rate_limiter: Some(rate_limiter), now, identity };
                respond(pending_queries, context, own_size, pending, out, |frame, params| {
                    answer.write(frame, params, name, replies)
                });
                self.free_pending_query(pending, out);
                true
            }
            SpecialUse::Alias(address) => {
                let lookup = if state.stage == Stage::A { Type::A } else { qtype };
                let mut question = name.clone();
                question.extend([lookup.0.to_be_bytes(), class.0.to_be_bytes()].as_flattened());
                let Some(Alias { reply, .. }) = special_use::alias(&question, address) else { return false };
                counters.count(LocalZone::Reverse.counter());
                out.trace(Subject::PendingQuery(pending), || TraceEvent::ReverseAlias { name, address });
                // `special_use::alias` wrote it with the builder of `wire`.
                let message = Message::parse(&reply).expect("an alias is well formed");
                let chain = Chain::follow(&message);
                self.chase_cname(pending, &message, chain.end(), now, out);
                true
            }
        }
    }

    /// Answers a pending query from local data, or continues with the local reply. Returns false if the name has none.
    fn answer_from_local_data(&mut self, pending: Index, now: Instant, out: &mut impl Outbox) -> bool {
        let lookup = self.clients.current_question(pending);
        // Most names are not local: this one lookup is all they cost.
        if !lookup.is_ours() || self.settings.local_data.find(lookup.name).is_none() {
            return false;
        }
        let (mut room, qtype) = ([0; QUESTION], lookup.qtype);
        let question = lookup.question(&mut room);
        let mut frame = self.frames.take();
        let reply = self.settings.local_data.reply(question, &self.settings.dns64.arpa, &mut frame);
        if let Some((length, source)) = reply {
            self.counters.count(source.counter());
            out.trace(Subject::PendingQuery(pending), || TraceEvent::LocalReply(source));
            self.use_local_reply(pending, &frame[..length], qtype, now, out);
        }
        self.frames.give(frame);
        reply.is_some()
    }

    /// Continues a pending query with a local reply, as if an upstream had sent it.
    pub(crate) fn use_local_reply(
        &mut self,
        pending: Index,
        reply: &[u8],
        qtype: Type,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        let Ok(message) = Message::parse(reply) else {
            // The record data do not have the form of their type.
            return self.respond_empty(pending, Rcode::SERVFAIL, None, now, out);
        };
        let chain = Chain::follow(&message);
        // No upstream knows this alias, so it is followed here.
        let follows = self.clients.pending_queries[pending].stage == Stage::Direct
            && !matches!(qtype, Type::CNAME | Type::ANY)
            && chain.is_unfinished(&message);
        match () {
            () if chain.has_no_end(&message) => self.respond_endless(pending, NO_END, now, out),
            () if follows => self.chase_cname(pending, &message, chain.end(), now, out),
            () => self.on_local_outcome(pending, &Outcome::Reply(&message, &chain), now, out),
        }
    }

    /// Question in flight for a type of a pending query's current name: an existing one, or a new one. None if the table is full.
    pub(crate) fn outbound_query_for(
        &mut self,
        index: Index,
        qtype: Type,
        now: Instant,
        out: &mut impl Outbox,
    ) -> Option<Index> {
        let Engine { clients, upstream, key, counters, .. } = self;
        let pending = &clients.pending_queries[index];
        let (name, hash) = match pending.chase {
            NONE => (pending.name(), pending.hash),
            chase => (&clients.chases[chase].name[..], key.hash(&clients.chases[chase].name)),
        };
        let query_flags = pending.query_flags_for(qtype);
        let mut question =
            Question { name, hash, qtype, class: Class::IN, query_flags, subnet: pending.subnet.as_ref() };
        let scope = pending.scope.max(upstream.drop_subnet_if_crowded(&mut question, counters));
        let outbound = match upstream.outbound_queries.find(&question) {
            Some(outbound) => {
                counters.count(Counter::Joined);
                outbound
            }
            None => upstream.launch(&question, &mut Context { now, out, counters })?,
        };
        clients.pending_queries[index].scope = scope;
        Some(outbound)
    }
}
