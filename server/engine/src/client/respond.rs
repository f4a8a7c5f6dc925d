//! Sending of responses: rate limit, counters, and the frame of the datapath.

use crate::answer::builder::{Written, write_truncated};
use crate::answer::params::ResponseParams;
use crate::answer::stream_options;
use crate::base::slab::{Index, Slab};
use crate::client::pending_query::PendingQuery;
use crate::client::rate_limit::{RateDecision, RateLimiter};
use crate::context::Context;
use crate::counters::Counter;
use crate::interface::{Client, ClientTransport, Outbox};
use crate::local::server_names::ServerNames;
use crate::message::stream_options::StreamOptions;
use crate::reasons::Limit;
use crate::trace::{Subject, TraceEvent};
use wire::Rcode;

/// What every response passes: the rate limit, and what the server adds to it.
pub(crate) struct Responder<'e> {
    /// Rate limits that apply to the response, if any.
    pub(crate) rate_limiter: Option<&'e mut RateLimiter>,
    /// The server's names, with its identity for clients that ask for it.
    pub(crate) names: &'e ServerNames,
    /// UDP payload size that the server advertises.
    pub(crate) own_size: u16,
}

/// The counter of the queries over a transport, from clients of a family.
#[inline]
pub(crate) fn query_counter(transport: ClientTransport, is_ipv4: bool) -> Counter {
    let (ipv4, ipv6) = match transport {
        ClientTransport::Udp => (Counter::QueriesUdp4, Counter::QueriesUdp6),
        ClientTransport::Tcp => (Counter::QueriesTcp4, Counter::QueriesTcp6),
        ClientTransport::Tls => (Counter::QueriesTls4, Counter::QueriesTls6),
        ClientTransport::Https => (Counter::QueriesHttps4, Counter::QueriesHttps6),
        ClientTransport::Quic => (Counter::QueriesQuic4, Counter::QueriesQuic6),
    };
    if is_ipv4 { ipv4 } else { ipv6 }
}

/// The counter of the responses with an RCODE.
#[inline]
pub(crate) fn response_counter(rcode: Rcode) -> Counter {
    match rcode {
        Rcode::NOERROR => Counter::ResponsesNoError,
        Rcode::FORMERR => Counter::ResponsesFormErr,
        Rcode::SERVFAIL => Counter::ResponsesServFail,
        Rcode::NXDOMAIN => Counter::ResponsesNxDomain,
        Rcode::NOTIMP => Counter::ResponsesNotImp,
        Rcode::REFUSED => Counter::ResponsesRefused,
        _ => Counter::ResponsesOther,
    }
}

/// Sends a response and counts it, unless the response rate of the client's network is exceeded.
pub(crate) fn send(
    responder: Responder<'_>,
    client: &Client,
    params: &ResponseParams<'_>,
    cx: &mut Context<'_, impl Outbox>,
    write: impl FnOnce(&mut [u8], &ResponseParams<'_>) -> Written,
) {
    let Responder { rate_limiter, names, .. } = responder;
    let Context { now, out, counters } = cx;
    let Some(frame) = out.answer_frame(client, params.limit) else {
        return counters.count(Counter::DroppedAnswer);
    };
    let mut written = write(frame, params);
    let decision = match rate_limiter {
        // Over TCP, and with a valid server cookie, the source address is proven, so the response floods no victim.
        Some(limiter) if client.transport.is_datagram() && !params.has_valid_cookie() => {
            limiter.response(*now, client, params.question, written.rcode)
        }
        _ => RateDecision::Within,
    };
    match decision {
        // Last of all, so that neither the cache nor the answers that are copied for other clients have these options.
        RateDecision::Within
            if params.edns.is_some_and(|edns| edns.stream_options != StreamOptions::NONE) =>
        {
            stream_options::append(frame, params, client.idle_timeout, &names.identity, &mut written);
        }
        RateDecision::Within => {}
        RateDecision::Slip => written = write_truncated(frame, params),
        RateDecision::Beyond => written.len = 0,
    }
    let is_sent = out.send_answer(client, written.len);
    match decision {
        RateDecision::Within => {}
        RateDecision::Slip => {
            out.trace(Subject::Response, || TraceEvent::Limited(Limit::SlippedResponseRate));
            counters.count(Limit::SlippedResponseRate.counter());
        }
        RateDecision::Beyond => {
            out.trace(Subject::Response, || TraceEvent::Limited(Limit::DroppedResponseRate));
            return counters.count(Limit::DroppedResponseRate.counter());
        }
    }
    if !is_sent {
        return counters.count(Counter::DroppedAnswer);
    }
    counters.count(response_counter(written.rcode));
    if written.truncated {
        counters.count(Counter::Truncated);
    }
    if let Some(code) = written.ede {
        counters.count(Counter::of_extended_error(code));
    }
}

/// Writes and sends the response to a pending query.
pub(crate) fn respond(
    responder: Responder<'_>,
    pending_queries: &Slab<PendingQuery>,
    index: Index,
    cx: &mut Context<'_, impl Outbox>,
    write: impl FnOnce(&mut [u8], &ResponseParams<'_>) -> Written,
) {
    let pending = &pending_queries[index];
    // Accumulated responses must not leave at once, for a victim (DNSBomb). Over TCP a client waits as long as its connection is
    // open.
    if pending.client.transport.is_datagram() && cx.now > pending.useful_until {
        cx.out.trace(Subject::PendingQuery(index), || TraceEvent::Limited(Limit::DroppedTooLate));
        return cx.counters.count(Limit::DroppedTooLate.counter());
    }
    let params = pending.params(responder.own_size);
    cx.counters.duration(cx.now - pending.arrived);
    cx.out.trace(Subject::PendingQuery(index), || TraceEvent::Responds);
    send(responder, &pending.client, &params, cx, |frame, params| {
        let Some(mark) = &pending.policy_mark else { return write(frame, params) };
        let written = write(frame, &mark.leave_room(params));
        mark.add_to(frame, params, written)
    });
}
