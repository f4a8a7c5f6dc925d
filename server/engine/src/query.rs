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
use wire::{EdeCode, Message, Opcode, Rcode, Type, ede};

/// A well-formed query, and how it is answered.
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
    message: &Message<'_>,
    from: &Client,
    cx: &mut Context<'_, impl Outbox>,
) -> QueryOptions {
    let mut options = QueryOptions { subnet: Ok(None), cookie: Ok(None) };
    if let Some(opt) = message.opt().filter(|opt| opt.version() == 0) {
        if settings.client_subnet == ClientSubnet::Forward {
            options.subnet = Subnet::of_query(&opt);
        }
        options.cookie = clients.cookie_for(&opt, from, &settings.cookies, cx);
    }
    options
}

/// How a query is answered.
#[inline]
pub(crate) fn params<'q>(
    settings: &Settings,
    message: &Message<'q>,
    options: &'q QueryOptions,
    from: &Client,
) -> ResponseParams<'q> {
    let own_size = settings.udp_size;
    let tells_identity = !settings.server_names.identity.is_empty();
    let edns = message.opt().map(|opt| ResponseParamsEdns::of_query(&opt, from.transport, tells_identity));
    ResponseParams {
        id: message.id(),
        flags: message.flags(),
        question: message.question(),
        edns,
        subnet: options.subnet.as_ref().map_or(None, Option::as_ref),
        scope: 0,
        cookie: options.cookie.as_ref().map_or(None, Option::as_ref),
        limit: answer_limit(from.transport, edns, own_size),
        own_size,
    }
}

/// How a message is answered of which only the header can be read.
pub(crate) fn bare_params(bytes: &[u8], from: &Client, own_size: u16) -> ResponseParams<'static> {
    ResponseParams {
        id: header::id(bytes),
        flags: header::flags(bytes),
        question: &[],
        edns: None,
        subnet: None,
        scope: 0,
        cookie: None,
        limit: answer_limit(from.transport, None, own_size),
        own_size,
    }
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

/// The RCODE, and perhaps the extended error, with which a well-formed query is answered at once; none if it is resolved. The client may ask.
#[inline(always)]
pub(crate) fn reject_reason(
    flags: Flags,
    message: &Message<'_>,
    options: &QueryOptions,
    cx: &mut Context<'_, impl Outbox>,
) -> Option<(Rcode, Option<EdeCode>)> {
    if flags.opcode() != Opcode::QUERY {
        return Some((Rcode::NOTIMP, None));
    }
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
    query: &Query<'_>,
    cx: &mut Context<'_, impl Outbox>,
) {
    let Query { from, message, params } = *query;
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
