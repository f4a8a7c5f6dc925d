//! The three inputs of the engine: a client's query, an upstream's reply (or the failure of a link), and time.
//!
//! `query` checks a client's query, and `upstream` returns the result of a reply or a timeout as a value; this file passes them to the
//! loop of `resolve/driver.rs`.

use crate::answer::builder::write_empty;
use crate::answer::params::ResponseParams;
use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::client::rate_limit::RateDecision;
use crate::client::respond::{Responder, query_counter, send};
use crate::context::Context;
use crate::dns64::decision::{Stage, first_stage};
use crate::engine::{Engine, Resolver};
use crate::interface::{Client, Link, Outbox, VerificationId};
use crate::local::local_answer::IPV4ONLY;
use crate::local::special_use::{self, Alias, InAddr, SpecialUse};
use crate::message::question::{QueryFlags, Question};
use crate::packet_cache::source::Parts;
use crate::packet_cache::{PacketCacheReply, PacketCacheTask};
use crate::query::{self, Query};
use crate::reasons::{Limit, LocalZone};
use crate::resolve::cache_lines;
use crate::resolve::from_cache::NewQuery;
use crate::resolve::join;
use crate::resolve::write::{responder, write_unusable};
use crate::trace::{Subject, TraceEvent, Unreachable, Untrusted};
use crate::upstream::receive::Received;
use crate::upstream::reconnect::{FailedLink, Reconnect};
use crate::upstream::retry::{AttemptDeadline, NextAttempt};
use wire::header::{self, Flags};
use wire::{Class, EdeCode, Message, Opcode, Rcode, Type, lower_question};

/// State machine that a driver calls with messages and the time: the DNS64 engine, or the reflector with which the benchmarks compare it. It
/// sends messages through the driver's [`Outbox`].
pub trait Machine {
    /// Has the messages of the next calls of [`Machine::query`], so that the memory that they need is loaded for all together and
    /// not for one after the other. It changes nothing.
    fn prefetch_cache_lines<'m>(&self, _messages: impl Iterator<Item = &'m [u8]>) {}

    /// Handles a message from a client.
    fn query(&mut self, now: Instant, from: &Client, message: &[u8], out: &mut impl Outbox);

    /// Handles a message from an upstream. It may change the letter case of names in it.
    fn reply(&mut self, now: Instant, via: Link, message: &mut [u8], out: &mut impl Outbox);

    /// Handles the failure of a link: an ICMP error (UDP), or a connection that was refused, reset or closed (TCP; the datapath
    /// has already released it). If its upstream could not be authenticated, another connection would fail as well.
    fn on_link_failure(&mut self, now: Instant, via: Link, reason: Unreachable, out: &mut impl Outbox);

    /// True if no client waits for an answer. A draining datapath stops then.
    fn is_idle(&self) -> bool;

    /// Handles all deadlines up to `now`. Returns the next deadline, if there is one.
    fn expire(&mut self, now: Instant, out: &mut impl Outbox) -> Option<Instant>;

    /// Handles the outcome of a verification that the outbox took ([`Outbox::verify`]).
    fn verified(&mut self, _now: Instant, _id: VerificationId, _is_valid: bool, _out: &mut impl Outbox) {}

    /// Counts the hits of a packet cache, and gives it the entries that it wants. A machine without answers that suit all clients has none.
    fn serve_packet_cache(&mut self, _now: Instant, _task: PacketCacheTask) -> PacketCacheReply {
        PacketCacheReply::default()
    }
}

impl Machine for Engine {
    #[inline]
    fn prefetch_cache_lines<'m>(&self, messages: impl Iterator<Item = &'m [u8]>) {
        let Resolver { cache, upstream, key, .. } = &self.resolver;
        if !cache.is_off() {
            cache_lines::touch_entries(cache, upstream, *key, messages);
        }
    }

    fn query(&mut self, now: Instant, from: &Client, message: &[u8], out: &mut impl Outbox) {
        let Engine { resolver, counters } = self;
        resolver.on_query(from, message, &mut Context { now, out, counters });
    }

    fn reply(&mut self, now: Instant, via: Link, bytes: &mut [u8], out: &mut impl Outbox) {
        let Engine { resolver, counters } = self;
        resolver.on_reply(via, bytes, &mut Context { now, out, counters });
    }

    fn on_link_failure(&mut self, now: Instant, via: Link, reason: Unreachable, out: &mut impl Outbox) {
        let Engine { resolver, counters } = self;
        resolver.on_link_failure(via, reason, &mut Context { now, out, counters });
    }

    fn verified(&mut self, now: Instant, id: VerificationId, is_valid: bool, out: &mut impl Outbox) {
        let Engine { resolver, counters } = self;
        resolver.on_verified(id, is_valid, &mut Context { now, out, counters });
    }

    fn is_idle(&self) -> bool {
        self.pending() == 0
    }

    fn serve_packet_cache(&mut self, now: Instant, task: PacketCacheTask) -> PacketCacheReply {
        let Engine { resolver, counters } = self;
        let Resolver { packet_cache, settings, cache, upstream, key, needs, .. } = resolver;
        let (servers, needs) = (&upstream.servers, needs.as_deref_mut());
        packet_cache.serve(now, task, Parts { settings, cache, servers, key, counters, needs })
    }

    fn expire(&mut self, now: Instant, out: &mut impl Outbox) -> Option<Instant> {
        let Engine { resolver, counters } = self;
        let cx = &mut Context { now, out, counters };
        while let Some(outbound) = resolver.upstream.pop_due(now) {
            resolver.on_timer(outbound, cx);
        }
        resolver.upstream.maintain(cx)
    }
}

impl Resolver {
    /// Handles a message of a client.
    ///
    /// The steps go from cheap to expensive, so that a flood costs little: count, drop what is never answered, rate limit, parse,
    /// cookie (it may lift the rate limit, so it comes before the drop), reject, classify. `begin` looks into the cache before it
    /// admits a query: a cache hit is none.
    fn on_query(&mut self, from: &Client, bytes: &[u8], cx: &mut Context<'_, impl Outbox>) {
        cx.counters.count(query_counter(from.transport, from.is_ipv4()));
        if bytes.len() < wire::HEADER {
            return query::note_limit(Limit::DroppedShort, cx);
        }
        let flags = header::flags(bytes);
        // A response is never answered, or two servers would talk for ever (RFC 1035 section 7.3, CVE-2024-2169).
        if flags.contains(Flags::QR) {
            return query::note_limit(Limit::DroppedResponse, cx);
        }
        // Rate limit: the client's network pays, whatever the query holds. A stream proves the source address.
        let mut proven = !from.transport.is_datagram();
        let mut rate = self.clients.rate_limiter.query(cx.now, from, proven);
        // Only an OPT record could have a cookie that counts for the client.
        if rate == RateDecision::Beyond && !proven && header::arcount(bytes) == 0 {
            return query::note_limit(Limit::DroppedQueryRate, cx);
        }
        let parsed = Message::parse(bytes);
        let Ok(message) = &parsed else {
            return self.answer_malformed(from, bytes, rate, cx);
        };
        let options = query::read_options(&self.clients, &self.settings, message, from, cx);
        let params = query::params(&self.settings, message, &options, from);
        if rate != RateDecision::Within && !proven && params.has_valid_cookie() {
            // A valid cookie proves the source address: skip the anti-spoofing measures, but still apply the rate limit (RFC
            // 7873 section 5.2.5).
            proven = true;
            rate = self.clients.rate_limiter.query(cx.now, from, true);
        }
        if rate != RateDecision::Within {
            let limit = query::over_rate(&self.settings, from, &params, rate, proven);
            return query::answer_limited(self.responder(), from, &params, limit, cx);
        }
        // Reject at once, or resolve.
        if !self.is_allowed(from) {
            let reason = query::refuse(&mut self.clients, self.key, from, cx);
            return self.reject(from, &params, reason, cx);
        }
        match query::reject_reason(flags, message, &options, cx) {
            Some(reason) => self.reject(from, &params, reason, cx),
            None => self.answer(&Query { from, message, params: &params }, cx),
        }
    }

    /// Answers a message that is no well-formed query. A response needs its ID and flags only. A message with a cookie and no question has an
    /// answer of its own (RFC 7873 section 5.4).
    #[cold]
    fn answer_malformed(
        &mut self,
        from: &Client,
        bytes: &[u8],
        rate: RateDecision,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        let (own_size, is_proven) = (self.settings.udp_size, !from.transport.is_datagram());
        let mut params = query::bare_params(bytes, from, own_size);
        if rate != RateDecision::Within {
            let limit = query::over_rate(&self.settings, from, &params, rate, is_proven);
            return query::answer_limited(self.responder(), from, &params, limit, cx);
        }
        if !self.is_allowed(from) {
            let reason = query::refuse(&mut self.clients, self.key, from, cx);
            return self.reject(from, &params, reason, cx);
        }
        let reason = match self.clients.cookie_alone(from, bytes, &self.settings.cookies, cx) {
            Some((edns, cookie)) => {
                let rcode = params.ask_cookie(edns, &cookie, from, own_size);
                return self.reject(from, &params, (rcode, None), cx);
            }
            // Other operations have sections of their own kind (RFC 8490 section 5.4: no question at all).
            None if header::flags(bytes).opcode() != Opcode::QUERY => Rcode::NOTIMP,
            //= RFC 9619 section 4: requirement 51; another number of questions than one is malformed.
            None => Rcode::FORMERR,
        };
        self.reject(from, &params, (reason, None), cx);
    }

    /// Answers a query that is not resolved.
    #[cold]
    fn reject(
        &mut self,
        from: &Client,
        params: &ResponseParams<'_>,
        (rcode, ede): (Rcode, Option<EdeCode>),
        cx: &mut Context<'_, impl Outbox>,
    ) {
        cx.out.trace(Subject::Query, || TraceEvent::Refused { rcode, ede });
        send(self.responder(), from, params, cx, |frame, params| write_empty(frame, params, rcode, ede));
    }

    /// True if a client may ask.
    #[inline]
    fn is_allowed(&self, from: &Client) -> bool {
        self.settings.allow.contains(from.address)
    }

    /// Limits and texts of the responses of this server.
    fn responder(&mut self) -> Responder<'_> {
        responder(&self.settings, &mut self.clients.rate_limiter)
    }

    /// Answers a query about the server or for a special-use name; any other one begins its resolution.
    fn answer(&mut self, query: &Query<'_>, cx: &mut Context<'_, impl Outbox>) {
        let (qtype, class) = (query.message.qtype(), query.message.qclass());
        if class == Class::CH {
            query::answer_chaos(&self.settings, &mut self.clients.rate_limiter, query, cx);
        } else if special_use::is_candidate(query.message.qname(), qtype, class) {
            self.answer_special_use(query, cx);
        } else {
            self.begin_at(query, None, cx);
        }
    }

    #[cold]
    fn answer_special_use(&mut self, query: &Query<'_>, cx: &mut Context<'_, impl Outbox>) {
        let Query { from, message, params } = *query;
        let (settings, qname) = (&self.settings, message.qname());
        self.upstream.compare_with_mark(qname);
        let (qtype, class) = (message.qtype(), message.qclass());
        if let Some(needs) = &self.needs
            && qtype == Type::AAAA
            && wire::eq_ignore_case(qname, IPV4ONLY)
        {
            needs.note_prefix_seeker(from);
        }
        match special_use::classify(settings.special_use(), from.address, qname, qtype, class) {
            SpecialUse::Ordinary => self.begin_at(query, None, cx),
            // A record of the configuration takes precedence over the zone of a special-use name.
            //= RFC 7050 section 3.1.1: requirement 42; so the name of the translator can be told.
            _ if settings.local_data.precedes_zones(qname, qtype) => self.begin_at(query, None, cx),
            SpecialUse::Local(answer) => {
                cx.out.trace(Subject::Query, || TraceEvent::SpecialUse { zone: answer.zone, name: qname });
                cx.counters.count(answer.zone.counter());
                let responder = responder(settings, &mut self.clients.rate_limiter);
                send(responder, from, params, cx, |frame, params| answer.write(frame, params, qname, &[]));
            }
            SpecialUse::Alias(address) => {
                cx.out.trace(Subject::Query, || TraceEvent::ReverseAlias { name: qname, address });
                cx.counters.count(LocalZone::Reverse.counter());
                match special_use::alias(params.question, address) {
                    Some(alias) => self.begin_at(query, Some(alias), cx),
                    None => send(self.responder(), from, params, cx, |frame, params| {
                        write_empty(frame, params, Rcode::SERVFAIL, None)
                    }),
                }
            }
        }
    }

    /// Begins the resolution of a query: for the name asked, or for the name that this is an alias of (`alias`).
    fn begin_at(&mut self, query: &Query<'_>, alias: Option<Alias>, cx: &mut Context<'_, impl Outbox>) {
        let Query { from, message, params } = *query;
        let query_flags = QueryFlags::of_query(params.flags, params.edns.is_some_and(|edns| edns.dnssec_ok));
        let (stage, reason) = first_stage(&self.settings.dns64, from.address, message, query_flags);
        if let Some(reason) = reason {
            cx.counters.count(reason.counter());
        }
        cx.out.trace(Subject::Query, || TraceEvent::Taken { dns64: stage == Stage::Aaaa, reason });
        let target = alias.as_ref().map(|alias| alias.target);
        let name = target.as_ref().map_or(message.qname(), InAddr::wire);
        let question = Question {
            name,
            hash: self.key.hash(name),
            qtype: message.qtype(),
            class: message.qclass(),
            query_flags,
            subnet: params.subnet,
        };
        if let Some(needs) = &mut self.needs
            && question.qtype == Type::A
        {
            needs.note_a(from, question.hash, cx.now);
        }
        let begun = self.begin(&mut NewQuery { from, params, question, stage }, alias, cx);
        if let Err(limit) = begun {
            query::answer_limited(self.responder(), from, params, limit, cx);
        }
    }

    // The way of a reply: `may_be_reply` (socket, QR), the parse, `receive` (ID, question, letter case, cookie; then TCP, EDNS or
    // another server if it is no answer), `complete` (store it), and then for each pending query the loop.
    fn on_reply(&mut self, via: Link, bytes: &mut [u8], cx: &mut Context<'_, impl Outbox>) {
        let upstream = &mut self.upstream;
        if !upstream.may_be_reply(via, bytes, cx) {
            return;
        }
        let parsed = Message::parse(bytes);
        let Ok(message) = &parsed else {
            let received = upstream.receive_bare(via, bytes, cx);
            if let Received::Failed(outbound) = received {
                self.complete(outbound, None, cx);
            }
            return;
        };
        let received = upstream.receive(via, message, cx);
        if received == Received::Nothing {
            return;
        }
        // The letter case of the query has done its work. Clients and operators see names in lower case.
        let offsets = message.offsets();
        // Nobody else's verdict counts where replies are validated here (RFC 4035 section 3.2.3).
        if self.settings.validation.is_some() {
            header::set_flags(bytes, header::flags(bytes).without(Flags::AD));
        }
        let message = lower_question(bytes, offsets);
        match received {
            Received::Nothing => {}
            Received::Completed(outbound) => self.complete(outbound, Some(&message), cx),
            Received::Failed(outbound) => self.complete(outbound, None, cx),
            Received::Unusable(outbound, reason) => {
                self.complete_unusable(outbound, &message, reason, cx);
            }
        }
    }

    /// Ends a question that got only unusable replies: its clients get SERVFAIL with this extended DNS error (RFC 8914).
    #[cold]
    fn complete_unusable(
        &mut self,
        index: Index,
        message: &Message<'_>,
        reason: EdeCode,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        let mut frame = self.frames.take();
        let length = write_unusable(&mut frame, message, reason);
        let failure = Message::parse(&frame[..length]);
        debug_assert!(failure.is_ok(), "a failure of our own parses");
        self.complete(index, failure.as_ref().ok(), cx);
        self.frames.give(frame);
    }

    //= RFC 7858 section 3.4: requirement 75
    fn on_link_failure(&mut self, via: Link, reason: Unreachable, cx: &mut Context<'_, impl Outbox>) {
        let Some(mut failed) = self.upstream.fail_link(via, reason, cx) else { return };
        if let Unreachable::Untrusted(reason) = reason {
            return self.fail_untrusted(failed, reason, cx);
        }
        // Every question whose current attempt used the link is asked again at once, over another server if possible.
        while let Some(outbound) = self.upstream.next_stranded(&mut failed) {
            cx.out.trace(Subject::OutboundQuery(outbound), || TraceEvent::LinkFailed);
            if self.upstream.reconnect(outbound, &failed.lost, cx) == Reconnect::Later {
                self.ask_a_before_retry(outbound, cx);
            } else {
                self.retry(outbound, cx);
            }
        }
        self.upstream.finish_failed_link(&failed, cx.out);
    }

    /// Goes on with the questions on a TLS link whose upstream could not be authenticated.
    //= RFC 8310 section 5.1: requirement 78
    fn fail_untrusted(
        &mut self,
        mut failed: FailedLink,
        reason: Untrusted,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        self.upstream.distrust(failed.lost.server, reason);
        while let Some(outbound) = self.upstream.next_stranded(&mut failed) {
            cx.out.trace(Subject::OutboundQuery(outbound), || TraceEvent::Untrusted(reason));
            if self.upstream.has_another(outbound, &failed.lost) {
                self.retry(outbound, cx);
            } else {
                // Another connection would end in the same way, and there is no other way that is as safe.
                self.complete(outbound, None, cx);
            }
        }
    }

    /// Handles the timer of a question in flight.
    fn on_timer(&mut self, outbound: Index, cx: &mut Context<'_, impl Outbox>) {
        let due = self.upstream.take_due(outbound, cx.now);
        if due.a_lookup {
            self.ask_a_for_all(outbound, cx);
        }
        if due.client_response {
            self.on_client_response_timer(outbound, cx);
        }
        let is_crowded = self.clients.pending_queries.is_crowded();
        if due.repetition {
            self.upstream.repeat(outbound, is_crowded, cx);
        }
        match self.upstream.on_attempt_deadline(outbound, is_crowded, cx) {
            AttemptDeadline::NotYet => {}
            AttemptDeadline::WaitUntil(until) => {
                self.ask_a_before_retry(outbound, cx);
                self.upstream.set_deadline(outbound, until);
            }
            AttemptDeadline::Over(silent) => {
                // A query that could not be sent was told of then.
                if self.upstream.outbound_queries[outbound].awaits_reply() {
                    cx.out.trace(Subject::OutboundQuery(outbound), || TraceEvent::NoReply);
                }
                self.retry(outbound, cx);
                if let Some(server) = silent {
                    self.upstream.probe_idle_servers(outbound, server, cx.now);
                }
            }
        }
    }

    /// Makes the next attempt of a question whose current attempt is over, or ends the question as failed.
    fn retry(&mut self, outbound: Index, cx: &mut Context<'_, impl Outbox>) {
        match self.upstream.next_attempt(outbound, cx) {
            NextAttempt::Wait => {}
            NextAttempt::Failed => self.complete(outbound, None, cx),
            NextAttempt::Send => {
                self.ask_a_before_retry(outbound, cx);
                self.upstream.send(outbound, cx);
                if join::is_silence_synthesized(&self.settings.dns64, &self.upstream, outbound) {
                    self.upstream.plan_repetition(outbound, cx.now);
                }
            }
        }
    }

    /// Asks the A lookup when an AAAA query is repeated, if a failed AAAA lookup leads to the A lookup: the client waits for both at the
    /// same time.
    fn ask_a_before_retry(&mut self, outbound: Index, cx: &mut Context<'_, impl Outbox>) {
        if join::is_silence_synthesized(&self.settings.dns64, &self.upstream, outbound) {
            self.upstream.outbound_queries[outbound].stagger = None;
            self.ask_a_for_all(outbound, cx);
        }
    }

    /// Asks the A lookup for every pending query of an AAAA question that may need it.
    pub(crate) fn ask_a_for_all(&mut self, outbound: Index, cx: &mut Context<'_, impl Outbox>) {
        let mut pending = self.upstream.outbound_queries[outbound].pending_queries;
        while pending != NONE {
            let state = &self.clients.pending_queries[pending];
            let next = state.next;
            if state.stage == Stage::Aaaa && state.a_outbound_query == NONE {
                self.ask_a_early(pending, cx);
            }
            pending = next;
        }
    }

    /// The client response timer of a question in flight has expired (RFC 8767 section 5): pending queries that have expired data get
    /// them. The question stays in flight for the next query.
    fn on_client_response_timer(&mut self, outbound: Index, cx: &mut Context<'_, impl Outbox>) {
        let mut pending = self.upstream.outbound_queries[outbound].pending_queries;
        while pending != NONE {
            let state = &mut self.clients.pending_queries[pending];
            let next = state.next;
            if state.has_stale {
                state.client_timer_expired = true;
                join::detach(&mut self.clients, &mut self.upstream, pending);
                let progress = match self.look_in_cache(pending, cx) {
                    Some(progress) => progress,
                    // The entry was evicted meanwhile.
                    None => self.wait(pending, outbound, cx),
                };
                self.drive(pending, progress, cx);
            }
            pending = next;
        }
    }
}
