//! Client questions: what is answered at once, what is refused, and what waits for an upstream.

use crate::answer::builder::{write_empty, write_truncated};
use crate::answer::requestor::{Requestor, RequestorEdns, answer_limit};
use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::client::rate_limit::RateDecision;
use crate::client::respond::{ResponseSink, send};
use crate::counters::Counter;
use crate::dns64::config::Lookup;
use crate::dns64::decision::{Stage, first_stage};
use crate::engine::Engine;
use crate::event::TraceEvent;
use crate::interface::{Client, ClientTransport, Outbox};
use crate::local::special_use::{self, Alias, InAddr, SpecialUse};
use crate::message::client_subnet::Subnet;
use crate::message::question::{QueryFlags, Question};
use crate::resolve::from_cache::CacheLookup;
use crate::settings::ClientSubnet;
use wire::header::{self, Flags};
use wire::{EdeCode, Malformed, Message, Opcode, Rcode, Type, ede};

/// How many of the clients of a flight are compared with a newcomer that may be a repetition.
const REPETITIONS_COMPARED: usize = 16;

impl Engine {
    pub(crate) fn on_query(&mut self, now: Instant, from: &Client, message: &[u8], out: &mut impl Outbox) {
        self.counters.count(match (from.transport, from.is_ipv4()) {
            (ClientTransport::Udp, true) => Counter::QueriesUdp4,
            (ClientTransport::Udp, false) => Counter::QueriesUdp6,
            (ClientTransport::Tcp, true) => Counter::QueriesTcp4,
            (ClientTransport::Tcp, false) => Counter::QueriesTcp6,
        });
        if message.len() < wire::HEADER {
            return self.counters.count(Counter::DroppedRunt);
        }
        let flags = header::flags(message);
        // A response is never answered, or two servers would talk for ever (RFC 1035 section 7.3, CVE-2024-2169).
        if flags.contains(Flags::QR) {
            return self.counters.count(Counter::DroppedResponse);
        }
        let mut proven = from.transport == ClientTransport::Tcp;
        let mut rate = self.clients.rate_limiter.query(now, from.address, proven);
        // Only an OPT record could have a cookie that counts for the client.
        if rate == RateDecision::Beyond && !proven && header::arcount(message) == 0 {
            return self.counters.count(Counter::DroppedQueryRate);
        }
        let (mut subnet, mut cookie) = (Ok(None), Ok(None));
        let mut requestor = Requestor {
            id: header::id(message),
            flags,
            question: &[],
            edns: None,
            subnet: None,
            scope: 0,
            cookie: None,
            limit: answer_limit(from.transport, None, self.settings.udp_size),
            own_size: self.settings.udp_size,
        };
        let parsed = Message::parse(message);
        if let Ok(parsed) = &parsed {
            requestor.question = parsed.question();
            requestor.edns =
                parsed.opt().map(|opt| RequestorEdns { size: opt.udp_size(), dnssec_ok: opt.dnssec_ok() });
            requestor.limit = answer_limit(from.transport, requestor.edns, self.settings.udp_size);
            if let Some(opt) = parsed.opt().filter(|opt| opt.version() == 0) {
                if self.settings.client_subnet == ClientSubnet::Forward {
                    subnet = Subnet::of_query(&opt);
                    requestor.subnet = subnet.as_ref().map_or(None, Option::as_ref);
                }
                cookie = self.cookie_for(&opt, from, now);
                requestor.cookie = cookie.as_ref().map_or(None, Option::as_ref);
            }
        }
        if rate != RateDecision::Within && !proven && requestor.has_valid_cookie() {
            // RFC 7873 section 5.2.5: what is done against forged sources is not for who is there. The limit is, though.
            proven = true;
            rate = self.clients.rate_limiter.query(now, from.address, true);
        }
        if rate != RateDecision::Within {
            return self.answer_over_rate(now, from, &requestor, rate, proven, out);
        }
        // RFC 7871 section 7.2.1 and RFC 7873 section 5.2.2.
        let malformed = (subnet.is_err() || cookie.is_err()).then_some((Rcode::FORMERR, None));
        let alone = if parsed.is_err() { self.cookie_alone(from, message, now) } else { None };
        let reject_reason = match &alone {
            Some((edns, cookie)) => {
                Some((requestor.ask_cookie(*edns, cookie, from, self.settings.udp_size), None))
            }
            None => self.reject_reason(from, flags, &parsed).or(malformed),
        };
        match reject_reason {
            Some((rcode, ede)) => {
                out.trace(|| TraceEvent::Refused { rcode, ede });
                send(self.response_sink(now), from, &requestor, out, |frame, requestor| {
                    write_empty(frame, requestor, rcode, ede)
                });
            }
            None => {
                if let Ok(parsed) = &parsed {
                    self.classify(now, from, parsed, &requestor, out);
                }
            }
        }
    }

    /// A question is beyond the rate of the client's network: who is `proven` to be there is refused; to others every second
    /// time TCP is offered, as it may be somebody else who asks in their name.
    fn answer_over_rate(
        &mut self,
        now: Instant,
        from: &Client,
        requestor: &Requestor<'_>,
        rate: RateDecision,
        proven: bool,
        out: &mut impl Outbox,
    ) {
        let sink = ResponseSink { counters: &mut self.counters, rate_limiter: None, now };
        if proven {
            sink.counters.count(Counter::RefusedQueryRate);
            send(sink, from, requestor, out, |frame, requestor| {
                write_empty(frame, requestor, Rcode::REFUSED, None)
            });
        } else if rate == RateDecision::Slip
            && !requestor.question.is_empty()
            && self.settings.allow.contains(from.address)
        {
            sink.counters.count(Counter::SlippedQueryRate);
            send(sink, from, requestor, out, write_truncated);
        } else {
            sink.counters.count(Counter::DroppedQueryRate);
        }
    }

    /// Why a question is answered at once with an RCODE and nothing else, and the extended error if there is one.
    fn reject_reason(
        &mut self,
        from: &Client,
        flags: Flags,
        parsed: &Result<Message<'_>, Malformed>,
    ) -> Option<(Rcode, Option<EdeCode>)> {
        if !self.settings.allow.contains(from.address) {
            self.counters.count(Counter::RefusedNotAllowed);
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
            _ => None,
        }
    }

    /// Answers what is answered here; everything else is taken in.
    fn classify(
        &mut self,
        now: Instant,
        from: &Client,
        message: &Message<'_>,
        requestor: &Requestor<'_>,
        out: &mut impl Outbox,
    ) {
        let qname = message.qname();
        match special_use::classify(&self.settings, from.address, qname, message.qtype(), message.qclass()) {
            SpecialUse::Ordinary => self.begin(now, from, message, None, requestor, out),
            // What the configuration says of a name goes before what it says of a prefix.
            //= RFC 7050 section 3.1.1: requirement 42; so the name of the translator can be told.
            _ if self.settings.local_data.has_records(qname) => {
                self.begin(now, from, message, None, requestor, out);
            }
            SpecialUse::Here(here) => {
                out.trace(|| TraceEvent::Arpa { counter: here.counter, name: qname });
                self.counters.count(here.counter);
                let sink = ResponseSink {
                    counters: &mut self.counters,
                    rate_limiter: Some(&mut self.clients.rate_limiter),
                    now,
                };
                send(sink, from, requestor, out, |frame, requestor| here.write(frame, requestor, qname, &[]));
            }
            SpecialUse::Alias(address) => {
                out.trace(|| TraceEvent::Alias { name: qname, address });
                self.counters.count(Counter::LocalReverse);
                match special_use::alias(requestor.question, address) {
                    Some(alias) => self.begin(now, from, message, Some(alias), requestor, out),
                    None => send(self.response_sink(now), from, requestor, out, |frame, requestor| {
                        write_empty(frame, requestor, Rcode::SERVFAIL, None)
                    }),
                }
            }
        }
    }

    /// Makes room for a question, and sends it on its way: for the name asked, or for what that is an alias of.
    fn begin(
        &mut self,
        now: Instant,
        from: &Client,
        message: &Message<'_>,
        alias: Option<Alias>,
        requestor: &Requestor<'_>,
        out: &mut impl Outbox,
    ) {
        let query_flags = QueryFlags::default()
            .with(QueryFlags::RD, requestor.flags.contains(Flags::RD))
            .with(QueryFlags::CD, requestor.flags.contains(Flags::CD))
            .with(QueryFlags::AD, requestor.flags.contains(Flags::AD))
            .with(QueryFlags::DO, requestor.edns.is_some_and(|edns| edns.dnssec_ok));
        let (stage, reason) = first_stage(&self.settings.dns64, from.address, message, query_flags);
        if let Some(reason) = reason {
            self.counters.count(reason);
        }
        out.trace(|| TraceEvent::Taken { dns64: stage == Stage::Aaaa, reason });
        let target = alias.as_ref().map(|alias| alias.target);
        let name = target.as_ref().map_or(message.qname(), InAddr::wire);
        let mut question = Question {
            name,
            hash: self.key.hash(name),
            qtype: message.qtype(),
            class: message.qclass(),
            query_flags,
            subnet: requestor.subnet,
        };
        let look = match alias {
            None => self.answer_query_from_cache(&question, stage, from, requestor, now, out),
            Some(_) => CacheLookup::Unfit,
        };
        if look == CacheLookup::Answered {
            return;
        }
        let scope = self.upstream.drop_subnet_if_crowded(&mut question, &mut self.counters);
        let flight = self.upstream.flights.find(&question);
        if flight.is_some_and(|flight| self.is_repeated(flight, from, requestor)) {
            return self.counters.count(Counter::DroppedRepeated);
        }
        let Some(index) = self.admit(from, now, out) else {
            return send(self.response_sink(now), from, requestor, out, |frame, requestor| {
                write_empty(frame, requestor, Rcode::REFUSED, None)
            });
        };
        let waiter = &mut self.clients.waiters[index];
        waiter.id = requestor.id;
        waiter.flags = requestor.flags;
        waiter.edns = requestor.edns;
        waiter.query_flags = query_flags;
        waiter.subnet = requestor.subnet.copied();
        waiter.scope = scope;
        waiter.cookie = requestor.cookie.copied();
        waiter.stage = stage;
        waiter.hash = question.hash;
        waiter.question_len = requestor.question.len() as u16;
        waiter.question[..requestor.question.len()].copy_from_slice(requestor.question);
        if let Some(alias) = alias {
            let Some(chain) = self.clients.start_chase(index) else {
                return self.respond_empty(index, Rcode::SERVFAIL, None, now, out);
            };
            let chain = &mut self.clients.chases[chain];
            chain.name.clear();
            chain.name.extend_from_slice(question.name);
            chain.replies.push(alias.reply);
        }
        if self.lookup_local(index, now, out)
            || look != CacheLookup::Absent && self.answer_from_cache(index, now, out)
        {
            return;
        }
        match flight {
            Some(flight) => {
                self.counters.count(Counter::Joined);
                self.attach(flight, index);
                // The stagger of the question that it joined has run out already.
                if stage == Stage::Aaaa && self.asks_a_at_once(flight) {
                    self.ask_a_early(index, now, out);
                }
            }
            None => {
                let Some(flight) = self.upstream.launch(&question, now, &mut self.counters, out) else {
                    return self.respond_empty(index, Rcode::SERVFAIL, None, now, out);
                };
                self.attach(flight, index);
                if stage == Stage::Aaaa {
                    //= RFC 6147 section 5.1.8: requirements 15, 15b
                    match self.settings.dns64.lookup {
                        Lookup::Sequential => {}
                        Lookup::Parallel => self.ask_a_early(index, now, out),
                        Lookup::Stagger(span) => self.upstream.set_stagger(flight, now + span),
                    }
                }
            }
        }
    }

    /// Whether a client of the flight is the same that asks now, the same with the same ID: it did not want to wait.
    fn is_repeated(&self, flight: Index, from: &Client, requestor: &Requestor<'_>) -> bool {
        let mut index = self.upstream.flights[flight].waiters;
        for _ in 0..REPETITIONS_COMPARED {
            if index == NONE {
                return false;
            }
            let waiter = &self.clients.waiters[index];
            if waiter.id == requestor.id
                && waiter.question() == requestor.question
                && waiter.client.port == from.port
                && waiter.client.address == from.address
                && waiter.client.stream == from.stream
                && waiter.client.proxy == from.proxy
                && from.transport == ClientTransport::Udp
            {
                return true;
            }
            index = waiter.next;
        }
        false
    }
}
