//! The checks of a client's query before it is resolved: limits, cookie, what is rejected at once. `machine.rs` has their order.

use crate::answer::builder::{write_empty, write_truncated};
use crate::answer::params::{ResponseParams, ResponseParamsEdns, answer_limit};
use crate::base::name_hash::HashKey;
use crate::client::Clients;
use crate::client::rate_limit::{RateDecision, RateLimiter};
use crate::client::respond::{Responder, send};
use crate::context::Context;
use crate::counters::Counter;
use crate::interface::{Client, Outbox};
use crate::message::client_subnet::{MalformedSubnet, Subnet};
use crate::message::cookie::{Cookie, MalformedCookie};
use crate::reasons::{Limit, LocalZone, Reaction};
use crate::resolve::write::responder;
use crate::settings::{ClientSubnet, Settings};
use crate::trace::{Subject, TraceEvent};
use wire::header::{self, Flags};
use wire::{EdeCode, Malformed, Message, Opcode, Rcode, Type, ede};

/// A well-formed query, and how it is answered.
#[derive(Clone, Copy)]
pub(crate) struct Query<'q> {
    pub(crate) from: &'q Client,
    pub(crate) message: &'q Message<'q>,
    pub(crate) params: &'q ResponseParams<'q>,
}

/// The EDNS options of a query that the engine looks at.
pub(crate) struct QueryOptions {
    subnet: Result<Option<Subnet>, MalformedSubnet>,
    cookie: Result<Option<Cookie>, MalformedCookie>,
}

/// Reads the client subnet and the cookie of a query.
#[inline]
pub(crate) fn read_options(
    clients: &Clients,
    settings: &Settings,
    message: Option<&Message<'_>>,
    from: &Client,
    cx: &mut Context<'_, impl Outbox>,
) -> QueryOptions {
    let mut options = QueryOptions { subnet: Ok(None), cookie: Ok(None) };
    let opt = message.and_then(Message::opt);
    if let Some(opt) = opt.filter(|opt| opt.version() == 0) {
        if settings.client_subnet == ClientSubnet::Forward {
            options.subnet = Subnet::of_query(&opt);
        }
        options.cookie = clients.cookie_for(&opt, from, &settings.cookies, cx);
    }
    options
}

/// How a query is answered, as far as it can be read.
#[inline]
pub(crate) fn params<'q>(
    settings: &Settings,
    bytes: &[u8],
    message: Option<&Message<'q>>,
    options: &'q QueryOptions,
    from: &Client,
) -> ResponseParams<'q> {
    let own_size = settings.udp_size;
    let tells_identity = !settings.server_names.identity.is_empty();
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
pub(crate) fn cookie_alone(
    clients: &Clients,
    settings: &Settings,
    from: &Client,
    message: &[u8],
    cx: &mut Context<'_, impl Outbox>,
) -> Option<(ResponseParamsEdns, Cookie)> {
    if !settings.allow.contains(from.address) {
        return None;
    }
    clients.cookie_alone(from, message, &settings.cookies, cx)
}

/// The limit, with the reaction, for a query over the rate of the client's network. A client that is `proven` to be at its address is
/// refused; others get TC every second time, as the source address may be forged.
pub(crate) fn over_rate(
    settings: &Settings,
    from: &Client,
    params: &ResponseParams<'_>,
    rate: RateDecision,
    proven: bool,
) -> Limit {
    if proven {
        Limit::RefusedQueryRate
    } else if rate == RateDecision::Slip
        && !params.question.is_empty()
        && settings.allow.contains(from.address)
    {
        Limit::SlippedQueryRate
    } else {
        Limit::DroppedQueryRate
    }
}

/// Counts a limit that applies to the query, and tells of it.
#[inline]
pub(crate) fn note_limit(limit: Limit, cx: &mut Context<'_, impl Outbox>) {
    cx.out.trace(Subject::Query, || TraceEvent::Limited(limit));
    cx.counters.count(limit.counter());
}

/// Answers a query beyond a limit.
#[cold]
pub(crate) fn answer_limited(
    mut responder: Responder<'_>,
    from: &Client,
    params: &ResponseParams<'_>,
    limit: Limit,
    cx: &mut Context<'_, impl Outbox>,
) {
    note_limit(limit, cx);
    match limit.reaction() {
        Reaction::Refuse => {
            send(responder, from, params, cx, |frame, params| {
                write_empty(frame, params, Rcode::REFUSED, None)
            });
        }
        Reaction::Slip => {
            responder.rate_limiter = None;
            send(responder, from, params, cx, write_truncated);
        }
        Reaction::Drop => {}
    }
}

/// Counts a query of a client that may not ask. Returns the RCODE and the extended error for it.
pub(crate) fn refuse(
    clients: &mut Clients,
    key: HashKey,
    from: &Client,
    cx: &mut Context<'_, impl Outbox>,
) -> (Rcode, Option<EdeCode>) {
    cx.counters.count(Counter::RefusedNotAllowed);
    clients.refused.count(from.address, key);
    // RFC 8914 section 4.19.
    (Rcode::REFUSED, Some(ede::PROHIBITED))
}

/// The RCODE, and perhaps the extended error, with which a query is answered at once; none if it is resolved. The client may ask.
#[inline(always)]
pub(crate) fn reject_reason(
    flags: Flags,
    parsed: &Result<Message<'_>, Malformed>,
    options: &QueryOptions,
    cx: &mut Context<'_, impl Outbox>,
) -> Option<(Rcode, Option<EdeCode>)> {
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
            cx.counters.count(Counter::RefusedTransfer);
            Some((Rcode::REFUSED, Some(ede::PROHIBITED)))
        }
        // Types that live in other sections, or are obsolete and never forwarded.
        Type::OPT | Type::TSIG | Type::TKEY | Type::MAILA | Type::MAILB => Some((Rcode::FORMERR, None)),
        // RFC 7871 section 7.2.1 and RFC 7873 section 5.2.2.
        _ if options.subnet.is_err() || options.cookie.is_err() => Some((Rcode::FORMERR, None)),
        _ => None,
    }
}

/// Answers a query of class CH, which is about this server.
#[cold]
pub(crate) fn answer_chaos(
    settings: &Settings,
    rate_limiter: &mut RateLimiter,
    query: Query<'_>,
    cx: &mut Context<'_, impl Outbox>,
) {
    let Query { from, message, params } = query;
    let names = &settings.server_names;
    if names.knows(message) {
        let (zone, name) = (LocalZone::Server, message.qname());
        cx.out.trace(Subject::Query, || TraceEvent::SpecialUse { zone, name });
        cx.counters.count(zone.counter());
    } else {
        let (rcode, ede) = (Rcode::REFUSED, Some(ede::NOT_SUPPORTED));
        cx.out.trace(Subject::Query, || TraceEvent::Refused { rcode, ede });
        cx.counters.count(Counter::RefusedClass);
    }
    send(responder(settings, rate_limiter), from, params, cx, |frame, params| {
        names.write(frame, params, message)
    });
}
