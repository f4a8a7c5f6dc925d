//! A client's query: check it, answer it at once if that is possible, or admit it and look it up.
//!
//! ```text
//! on_query -> rate limit, cookie -> reject_reason -> classify -> begin -> cache, admit -> look_up_here -> wait_for_upstream
//! ```

use crate::answer::builder::{write_empty, write_truncated};
use crate::answer::params::{ResponseParams, ResponseParamsEdns, answer_limit};
use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::client::rate_limit::RateDecision;
use crate::client::respond::{ResponseContext, query_counter, send};
use crate::context::Context;
use crate::counters::Counter;
use crate::dns64::config::Lookup;
use crate::dns64::decision::{Stage, first_stage};
use crate::engine::Engine;
use crate::interface::{Client, Outbox};
use crate::local::special_use::{self, Alias, InAddr, SpecialUse};
use crate::message::client_subnet::{MalformedSubnet, Subnet};
use crate::message::cookie::{Cookie, MalformedCookie};
use crate::message::question::{QueryFlags, Question};
use crate::reasons::{Limit, LocalZone, Reaction};
use crate::resolve::from_cache::CacheLookup;
use crate::settings::ClientSubnet;
use crate::trace::{Subject, TraceEvent};
use wire::header::{self, Flags};
use wire::{Class, EdeCode, Malformed, Message, Opcode, Rcode, Type, ede};

/// Pending queries of a question in flight that a new query is compared with, to find a repetition.
const REPETITIONS_COMPARED: usize = 16;

/// The EDNS options of a query that the engine looks at.
struct QueryOptions {
    subnet: Result<Option<Subnet>, MalformedSubnet>,
    cookie: Result<Option<Cookie>, MalformedCookie>,
}

impl Engine {
    /// Handles a message of a client.
    ///
    /// The steps go from cheap to expensive, so that a flood costs little: count, drop what is never answered, rate limit, parse,
    /// cookie (it may lift the rate limit, so it comes before the drop), reject, classify. `begin` looks into the cache before it
    /// admits a query: a cache hit is none.
    pub(crate) fn on_query(&mut self, now: Instant, from: &Client, message: &[u8], out: &mut impl Outbox) {
        self.counters.count(query_counter(from.transport, from.is_ipv4()));
        if message.len() < wire::HEADER {
            return self.note_limit(Limit::DroppedShort, out);
        }
        let flags = header::flags(message);
        // A response is never answered, or two servers would talk for ever (RFC 1035 section 7.3, CVE-2024-2169).
        if flags.contains(Flags::QR) {
            return self.note_limit(Limit::DroppedResponse, out);
        }
        // Rate limit: the client's network pays, whatever the query holds. A stream proves the source address.
        let mut proven = !from.transport.is_datagram();
        let mut rate = self.clients.rate_limiter.query(now, from, proven);
        // Only an OPT record could have a cookie that counts for the client.
        if rate == RateDecision::Beyond && !proven && header::arcount(message) == 0 {
            return self.note_limit(Limit::DroppedQueryRate, out);
        }
        // Parse. A malformed message goes on, as it may get FORMERR, and a response needs ID and flags only.
        let parsed = Message::parse(message);
        let options = self.read_options(parsed.as_ref().ok(), from, now);
        let mut params = self.params(message, parsed.as_ref().ok(), &options, from);
        if rate != RateDecision::Within && !proven && params.has_valid_cookie() {
            // A valid cookie proves the source address: skip the anti-spoofing measures, but still apply the rate limit (RFC
            // 7873 section 5.2.5).
            proven = true;
            rate = self.clients.rate_limiter.query(now, from, true);
        }
        if rate != RateDecision::Within {
            let limit = self.over_rate(from, &params, rate, proven);
            return self.answer_limited(now, from, &params, limit, out);
        }
        // Reject at once, or resolve. A message with a cookie and no question is malformed to the parser, but has an answer (RFC
        // 7873 section 5.4).
        let alone = if parsed.is_err() { self.cookie_alone(from, message, now) } else { None };
        let rejected = match &alone {
            Some((edns, cookie)) => {
                Some((params.ask_cookie(*edns, cookie, from, self.settings.udp_size), None))
            }
            None => self.reject_reason(from, flags, &parsed, &options),
        };
        match (rejected, &parsed) {
            (Some((rcode, ede)), _) => {
                out.trace(Subject::Query, || TraceEvent::Refused { rcode, ede });
                send(self.response_context(now), from, &params, out, |frame, params| {
                    write_empty(frame, params, rcode, ede)
                });
            }
            (None, Ok(parsed)) => self.classify(now, from, parsed, &params, out),
            (None, Err(_)) => {}
        }
    }

    /// Reads the client subnet and the cookie of a query.
    #[inline]
    fn read_options(&mut self, message: Option<&Message<'_>>, from: &Client, now: Instant) -> QueryOptions {
        let mut options = QueryOptions { subnet: Ok(None), cookie: Ok(None) };
        let opt = message.and_then(Message::opt);
        if let Some(opt) = opt.filter(|opt| opt.version() == 0) {
            if self.settings.client_subnet == ClientSubnet::Forward {
                options.subnet = Subnet::of_query(&opt);
            }
            let Engine { clients, settings, counters, .. } = self;
            options.cookie = clients.cookie_for(&opt, from, &settings.cookies, now, counters);
        }
        options
    }

    /// The requestor of a query, as far as it can be read.
    #[inline]
    fn params<'q>(
        &self,
        bytes: &[u8],
        message: Option<&Message<'q>>,
        options: &'q QueryOptions,
        from: &Client,
    ) -> ResponseParams<'q> {
        let own_size = self.settings.udp_size;
        let tells_identity = !self.settings.server_names.identity.is_empty();
        let opt = message.and_then(Message::opt);
        let edns = opt.map(|opt| ResponseParamsEdns::of_query(&opt, from.transport, tells_identity));
        ResponseParams {
            id: header::id(bytes),
            flags: header::flags(bytes),
            question: message.map_or(&[], Message::question),
            edns,
            subnet: options.subnet.as_ref().map_or(None, Option::as_ref),
            scope: 0,
            cookie: options.cookie.as_ref().map_or(None, Option::as_ref),
            limit: answer_limit(from.transport, edns, own_size),
            own_size,
        }
    }

    /// The cookie that a message without a question asks for, if the client may ask at all.
    #[cold]
    fn cookie_alone(
        &mut self,
        from: &Client,
        message: &[u8],
        now: Instant,
    ) -> Option<(ResponseParamsEdns, Cookie)> {
        let Engine { clients, settings, counters, .. } = self;
        if !settings.allow.contains(from.address) {
            return None;
        }
        clients.cookie_alone(from, message, &settings.cookies, now, counters)
    }

    /// The limit, with the reaction, for a query over the rate of the client's network. A client that is `proven` to be at its address is
    /// refused; others get TC every second time, as the source address may be forged.
    fn over_rate(
        &self,
        from: &Client,
        params: &ResponseParams<'_>,
        rate: RateDecision,
        proven: bool,
    ) -> Limit {
        if proven {
            Limit::RefusedQueryRate
        } else if rate == RateDecision::Slip
            && !params.question.is_empty()
            && self.settings.allow.contains(from.address)
        {
            Limit::SlippedQueryRate
        } else {
            Limit::DroppedQueryRate
        }
    }

    /// Counts a limit that applies to the query, and tells of it.
    #[inline]
    fn note_limit(&mut self, limit: Limit, out: &mut impl Outbox) {
        out.trace(Subject::Query, || TraceEvent::Limited(limit));
        self.counters.count(limit.counter());
    }

    /// Answers a query beyond a limit.
    #[cold]
    fn answer_limited(
        &mut self,
        now: Instant,
        from: &Client,
        params: &ResponseParams<'_>,
        limit: Limit,
        out: &mut impl Outbox,
    ) {
        self.note_limit(limit, out);
        match limit.reaction() {
            Reaction::Refuse => {
                send(self.response_context(now), from, params, out, |frame, params| {
                    write_empty(frame, params, Rcode::REFUSED, None)
                });
            }
            Reaction::Slip => {
                let context = ResponseContext { rate_limiter: None, ..self.response_context(now) };
                send(context, from, params, out, write_truncated);
            }
            Reaction::Drop => {}
        }
    }

    /// The RCODE, and perhaps the extended error, with which a query is answered at once; none if it is resolved.
    #[inline(always)]
    fn reject_reason(
        &mut self,
        from: &Client,
        flags: Flags,
        parsed: &Result<Message<'_>, Malformed>,
        options: &QueryOptions,
    ) -> Option<(Rcode, Option<EdeCode>)> {
        if !self.settings.allow.contains(from.address) {
            self.counters.count(Counter::RefusedNotAllowed);
            self.clients.refused.count(from.address, self.key);
            // RFC 8914 section 4.19.
            return Some((Rcode::REFUSED, Some(ede::PROHIBITED)));
        }
        // First of all, as other operations have sections of their own kind (RFC 8490 section 5.4: no question at all).
        if flags.opcode() != Opcode::QUERY {
            return Some((Rcode::NOTIMP, None));
        }
        let message = match parsed {
            Ok(message) => message,
            //= RFC 9619 section 4: requirement 51; another number of questions than one is malformed.
            Err(_) => return Some((Rcode::FORMERR, None)),
        };
        // RFC 6891 section 6.1.3.
        if message.opt().is_some_and(|opt| opt.version() > 0) {
            return Some((Rcode::BADVERS, None));
        }
        match message.qtype() {
            Type::AXFR | Type::IXFR => {
                self.counters.count(Counter::RefusedTransfer);
                Some((Rcode::REFUSED, Some(ede::PROHIBITED)))
            }
            // Types that live in other sections, or are obsolete and never forwarded.
            Type::OPT | Type::TSIG | Type::TKEY | Type::MAILA | Type::MAILB => Some((Rcode::FORMERR, None)),
            // RFC 7871 section 7.2.1 and RFC 7873 section 5.2.2.
            _ if options.subnet.is_err() || options.cookie.is_err() => Some((Rcode::FORMERR, None)),
            _ => None,
        }
    }

    /// Answers a query for a special-use name; any other one begins its resolution.
    fn classify(
        &mut self,
        now: Instant,
        from: &Client,
        message: &Message<'_>,
        params: &ResponseParams<'_>,
        out: &mut impl Outbox,
    ) {
        let qname = message.qname();
        let (qtype, class) = (message.qtype(), message.qclass());
        if class == Class::CH {
            return self.answer_chaos(now, from, message, params, out);
        }
        match special_use::classify(self.settings.special_use(), from.address, qname, qtype, class) {
            SpecialUse::Ordinary => self.begin(now, from, message, None, params, out),
            // A record of the configuration takes precedence over the zone of a special-use name.
            //= RFC 7050 section 3.1.1: requirement 42; so the name of the translator can be told.
            _ if self.settings.local_data.has_records(qname) => {
                self.begin(now, from, message, None, params, out);
            }
            SpecialUse::Local(answer) => {
                out.trace(Subject::Query, || TraceEvent::SpecialUse { zone: answer.zone, name: qname });
                self.counters.count(answer.zone.counter());
                let context = ResponseContext {
                    counters: &mut self.counters,
                    rate_limiter: Some(&mut self.clients.rate_limiter),
                    now,
                    identity: &self.settings.server_names.identity,
                };
                send(context, from, params, out, |frame, params| answer.write(frame, params, qname, &[]));
            }
            SpecialUse::Alias(address) => {
                out.trace(Subject::Query, || TraceEvent::ReverseAlias { name: qname, address });
                self.counters.count(LocalZone::Reverse.counter());
                match special_use::alias(params.question, address) {
                    Some(alias) => self.begin(now, from, message, Some(alias), params, out),
                    None => send(self.response_context(now), from, params, out, |frame, params| {
                        write_empty(frame, params, Rcode::SERVFAIL, None)
                    }),
                }
            }
        }
    }

    /// Answers a query of class CH, which is about this server.
    #[cold]
    fn answer_chaos(
        &mut self,
        now: Instant,
        from: &Client,
        message: &Message<'_>,
        params: &ResponseParams<'_>,
        out: &mut impl Outbox,
    ) {
        let Engine { settings, clients, counters, .. } = self;
        let names = &settings.server_names;
        if names.knows(message) {
            let (zone, name) = (LocalZone::Server, message.qname());
            out.trace(Subject::Query, || TraceEvent::SpecialUse { zone, name });
            counters.count(zone.counter());
        } else {
            let (rcode, ede) = (Rcode::REFUSED, Some(ede::NOT_SUPPORTED));
            out.trace(Subject::Query, || TraceEvent::Refused { rcode, ede });
            counters.count(Counter::RefusedClass);
        }
        let rate_limiter = Some(&mut clients.rate_limiter);
        let context = ResponseContext { counters, rate_limiter, now, identity: &names.identity };
        send(context, from, params, out, |frame, params| names.write(frame, params, message));
    }

    /// Begins the resolution of a query: for the name asked, or for the name that this is an alias of (`alias`).
    fn begin(
        &mut self,
        now: Instant,
        from: &Client,
        message: &Message<'_>,
        alias: Option<Alias>,
        params: &ResponseParams<'_>,
        out: &mut impl Outbox,
    ) {
        let query_flags = QueryFlags::of_query(params.flags, params.edns.is_some_and(|edns| edns.dnssec_ok));
        let (stage, reason) = first_stage(&self.settings.dns64, from.address, message, query_flags);
        if let Some(reason) = reason {
            self.counters.count(reason.counter());
        }
        out.trace(Subject::Query, || TraceEvent::Taken { dns64: stage == Stage::Aaaa, reason });
        let target = alias.as_ref().map(|alias| alias.target);
        let name = target.as_ref().map_or(message.qname(), InAddr::wire);
        let mut question = Question {
            name,
            hash: self.key.hash(name),
            qtype: message.qtype(),
            class: message.qclass(),
            query_flags,
            subnet: params.subnet,
        };
        // Cache: with a complete answer the query never waits. The answer for a reverse alias begins with our own
        // CNAME record, so no cached answer is complete.
        let cached = match alias {
            None => self.answer_query_from_cache(&question, stage, from, params, now, out),
            Some(_) => CacheLookup::Unfit,
        };
        if cached == CacheLookup::Answered {
            return;
        }
        let scope = self.upstream.drop_subnet_if_crowded(&mut question, &mut self.counters);
        // A retransmission gets the answer to the first query.
        let outbound = self.upstream.outbound_queries.find(&question);
        if outbound.is_some_and(|outbound| self.is_repeated(outbound, from, params)) {
            return self.note_limit(Limit::DroppedRepeated, out);
        }
        // Admission: from here on the query is a pending query.
        let proven = !from.transport.is_datagram() || params.has_valid_cookie();
        let index = match self.admit(from, proven, outbound, now, out) {
            Ok(index) => index,
            Err(limit) => return self.answer_limited(now, from, params, limit, out),
        };
        out.trace(Subject::PendingQuery(index), || TraceEvent::Admitted);
        self.clients.pending_queries[index].fill(params, stage, query_flags, question.hash, scope);
        if let Some(alias) = alias {
            let Some(chase) = self.clients.start_chase(index) else {
                return self.respond_empty(index, Rcode::SERVFAIL, None, now, out);
            };
            self.clients.chases[chase].advance(question.name, alias.reply);
        }
        // Local data, special-use names, RPZ, and the cache for parts of an answer; then the upstreams.
        if !self.look_up_here(index, cached != CacheLookup::Absent, now, out) {
            self.wait_for_upstream(index, &question, outbound, stage, now, out);
        }
    }

    /// Has a new pending query wait for its question: one in flight already, or a new one. For a query with DNS64 the A lookup is asked
    /// with it, or later, as configured.
    fn wait_for_upstream(
        &mut self,
        pending: Index,
        question: &Question<'_>,
        outbound: Option<Index>,
        stage: Stage,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        if let Some(outbound) = outbound {
            self.counters.count(Counter::Joined);
            out.trace(Subject::PendingQuery(pending), || self.wait_event(pending, question.qtype, outbound));
            self.attach(outbound, pending);
            // The stagger of the question that it joined has expired already.
            if stage == Stage::Aaaa && self.asks_a_at_once(outbound) {
                self.ask_a_early(pending, now, out);
            }
            return;
        }
        let Engine { upstream, counters, .. } = self;
        let Some(outbound) = upstream.launch(question, &mut Context { now, out, counters }) else {
            return self.respond_empty(pending, Rcode::SERVFAIL, None, now, out);
        };
        out.trace(Subject::PendingQuery(pending), || self.wait_event(pending, question.qtype, outbound));
        self.attach(outbound, pending);
        if stage == Stage::Aaaa {
            //= RFC 6147 section 5.1.8: requirements 15, 15b
            match self.settings.dns64.lookup {
                Lookup::Sequential => {}
                Lookup::Parallel => self.ask_a_early(pending, now, out),
                Lookup::Stagger(span) => self.upstream.set_stagger(outbound, now + span),
            }
        }
    }

    /// True if a pending query of the question in flight is the same client with the same message ID: a retransmission over UDP.
    fn is_repeated(&self, outbound: Index, from: &Client, params: &ResponseParams<'_>) -> bool {
        let mut index = self.upstream.outbound_queries[outbound].pending_queries;
        for _ in 0..REPETITIONS_COMPARED {
            if index == NONE {
                return false;
            }
            let pending = &self.clients.pending_queries[index];
            if pending.id == params.id
                && pending.question() == params.question
                && pending.client.port == from.port
                && pending.client.address == from.address
                && pending.client.stream == from.stream
                && pending.client.proxy == from.proxy
                && from.transport.is_datagram()
            {
                return true;
            }
            index = pending.next;
        }
        false
    }
}
