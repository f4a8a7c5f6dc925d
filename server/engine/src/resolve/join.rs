//! Pending queries and the questions in flight that they wait for: an equal question is joined, any other one is launched.

use crate::base::slab::{Index, NONE};
use crate::base::time::Span;
use crate::cache::store::MessageCache;
use crate::client::Clients;
use crate::context::Context;
use crate::counters::Counter;
use crate::dns64::config::{Dns64, Lookup, OnFailure};
use crate::interface::{Client, Outbox};
use crate::message::question::Question;
use crate::trace::{Subject, TraceEvent};
use crate::upstream::Upstream;
use wire::Type;

/// Client response timer: time that a client waits for fresh data if the cache has expired data (RFC 8767 section 5: 1.8 s, because
/// many clients give up after 2 s).
const CLIENT_RESPONSE_TIMER: Span = Span::from_millis(1_800);

/// Pending queries of a question in flight that a new query is compared with, to find a repetition.
const REPETITIONS_COMPARED: usize = 16;

/// Joins the equal question in flight, if there is one (`known`), or launches a new one. None: there is no room for it.
#[inline]
pub(crate) fn join_or_launch(
    upstream: &mut Upstream,
    question: &Question<'_>,
    known: Option<Index>,
    cx: &mut Context<'_, impl Outbox>,
) -> Option<Index> {
    match known {
        Some(outbound) => {
            cx.counters.count(Counter::Joined);
            Some(outbound)
        }
        None => upstream.launch(question, cx),
    }
}

/// Joins or launches the question of a type for a pending query's current name. None: there is no room for it.
pub(crate) fn ask(
    clients: &mut Clients,
    upstream: &mut Upstream,
    pending: Index,
    qtype: Type,
    cx: &mut Context<'_, impl Outbox>,
) -> Option<Index> {
    let mut question = clients.upstream_question(pending, qtype);
    let scope = upstream.drop_subnet_if_crowded(&mut question, cx.counters);
    let known = upstream.outbound_queries.find(&question);
    let outbound = join_or_launch(upstream, &question, known, cx)?;
    let state = &mut clients.pending_queries[pending];
    state.scope = state.scope.max(scope);
    Some(outbound)
}

/// Attaches a pending query to a question in flight. Returns true if it has not waited for an upstream before.
#[inline]
pub(crate) fn attach(clients: &mut Clients, upstream: &mut Upstream, outbound: Index, index: Index) -> bool {
    let first = upstream.outbound_queries[outbound].pending_queries;
    let pending = &mut clients.pending_queries[index];
    let has_waited = core::mem::replace(&mut pending.cache_missed, true);
    pending.outbound = outbound;
    pending.previous = NONE;
    pending.next = first;
    if first != NONE {
        clients.pending_queries[first].previous = index;
    }
    upstream.outbound_queries[outbound].pending_queries = index;
    let pending = &clients.pending_queries[index];
    if pending.has_stale {
        upstream.set_client_response_timer(outbound, pending.arrived + CLIENT_RESPONSE_TIMER);
    }
    !has_waited
}

/// Detaches a pending query from a question that is still in flight.
pub(crate) fn detach(clients: &mut Clients, upstream: &mut Upstream, index: Index) {
    let pending = &clients.pending_queries[index];
    let (outbound, previous, next) = (pending.outbound, pending.previous, pending.next);
    if previous == NONE {
        upstream.outbound_queries[outbound].pending_queries = next;
    } else {
        clients.pending_queries[previous].next = next;
    }
    if next != NONE {
        clients.pending_queries[next].previous = previous;
    }
}

/// Gives up a question that a pending query has asked early, if there is one.
#[inline]
pub(crate) fn release_early_a(clients: &mut Clients, upstream: &mut Upstream, pending: Index) {
    let state = &mut clients.pending_queries[pending];
    let a_outbound_query = core::mem::replace(&mut state.a_outbound_query, NONE);
    if a_outbound_query != NONE {
        upstream.release_outbound_query(a_outbound_query);
    }
}

/// Asks the A lookup of a pending query before its AAAA lookup is decided, unless the cache has a fresh reply.
//= RFC 6147 section 5.1.8: requirements 15, 15b
pub(crate) fn ask_a_early(
    clients: &mut Clients,
    upstream: &mut Upstream,
    cache: &MessageCache,
    pending: Index,
    cx: &mut Context<'_, impl Outbox>,
) {
    let state = &clients.pending_queries[pending];
    let question = Question { qtype: Type::A, ..state.own_question() };
    let group = upstream.servers.group_number(question.forward_key());
    if state.chase == NONE
        && cache.is_cacheable(&question)
        && cache.has_fresh(&question, Type::A, group, cx.now)
    {
        return;
    }
    if let Some(outbound) = ask(clients, upstream, pending, Type::A, cx) {
        trace_wait(clients, pending, Type::A, outbound, cx);
        upstream.outbound_queries[outbound].early_a_users += 1;
        clients.pending_queries[pending].a_outbound_query = outbound;
    }
}

/// True if the A lookup of a new pending query of an AAAA question in flight is asked at once.
pub(crate) fn asks_a_at_once(dns64: &Dns64, upstream: &Upstream, outbound: Index) -> bool {
    let outbound = &upstream.outbound_queries[outbound];
    match dns64.lookup {
        Lookup::Parallel => true,
        // The stagger of the question that it joined has expired already.
        Lookup::Stagger(_) => outbound.stagger.is_none(),
        Lookup::Sequential => outbound.tries > 1 && dns64.on_failure.timeout == OnFailure::Synthesize,
    }
}

/// True if a question that gets no reply leads to a synthesis, which hides real addresses if the replies were lost.
pub(crate) fn is_silence_synthesized(dns64: &Dns64, upstream: &Upstream, outbound: Index) -> bool {
    upstream.outbound_queries[outbound].qtype == Type::AAAA
        && dns64.on_failure.timeout == OnFailure::Synthesize
}

/// A client, and the message ID and question of its query.
pub(crate) struct Sender<'q> {
    pub(crate) client: &'q Client,
    pub(crate) id: u16,
    pub(crate) question: &'q [u8],
}

/// True if a pending query of the question in flight is the same client with the same message ID: a retransmission over UDP.
pub(crate) fn is_repeated(
    clients: &Clients,
    upstream: &Upstream,
    outbound: Index,
    sender: &Sender<'_>,
) -> bool {
    let Sender { client: from, id, question } = *sender;
    let mut index = upstream.outbound_queries[outbound].pending_queries;
    for _ in 0..REPETITIONS_COMPARED {
        if index == NONE {
            return false;
        }
        let pending = &clients.pending_queries[index];
        if pending.id == id
            && pending.question() == question
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

/// Tells that a pending query waits for a question in flight.
pub(crate) fn trace_wait(
    clients: &Clients,
    pending: Index,
    qtype: Type,
    outbound: Index,
    cx: &mut Context<'_, impl Outbox>,
) {
    cx.out.trace(Subject::PendingQuery(pending), || TraceEvent::WaitsFor {
        outbound,
        name: clients.current_question(pending).name,
        qtype,
    });
}
