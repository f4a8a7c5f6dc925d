//! Every response that a resolution can end in.

use crate::answer::answer_memo::AnswerMemo;
use crate::answer::builder::{write_empty, write_failure, write_truncated, write_unfit};
use crate::answer::forward::ForwardedReply;
use crate::answer::params::{ResponseParams, unlimited_params};
use crate::answer::synthesis::{SynthesisInput, synthesize, write_aliases};
use crate::base::slab::Index;
use crate::client::Clients;
use crate::client::chased::{name_of, replies};
use crate::client::pending_query::PendingQuery;
use crate::client::rate_limit::RateLimiter;
use crate::client::respond::{Responder, respond};
use crate::context::Context;
use crate::counters::{Counter, Counters};
use crate::dns64::decision::{Cause, Stage, TTL_WITHOUT_SOA, is_secure};
use crate::dns64::embed::{EmbeddingCounts, Lack};
use crate::interface::Outbox;
use crate::local::no_gateway::write_no_gateway;
use crate::local::special_use::SpecialUse;
use crate::message::cname_chain::Chain;
use crate::message::reply::warrants_failover;
use crate::needs::Needs;
use crate::reasons::CacheHit;
use crate::resolve::divert;
use crate::resolve::steps::Addresses;
use crate::settings::Settings;
use crate::trace::{Subject, TraceEvent, Untrusted};
use crate::upstream::Upstream;
use crate::upstream::forward_zones::Unanswered;
use wire::header::{self, Flags};
use wire::{EdeCode, Message, Rcode, ede};

/// End of a resolution: what the client gets.
pub(crate) enum End<'m, 'a> {
    /// The reply.
    Reply(&'m Message<'a>, &'m Chain<'a>),
    /// The reply without its excluded AAAA records.
    FilteredReply(&'m Message<'a>, &'m Chain<'a>),
    /// The local answer for the special-use name to which the aliases have led.
    SpecialUse,
    /// The aliases alone: their target exists, but the negative answer for it did not come.
    AliasesOnly,
    /// The aliases alone: no gateway of the prefixes for the addresses in the reply lives, or no prefix was discovered.
    NoGateway(&'m Message<'a>, &'m Chain<'a>, Lack),
    /// No records.
    Empty(Rcode, Option<EdeCode>),
    /// SERVFAIL, as the question has no reply. The text of the extended error tells if an upstream could not be authenticated.
    Failed,
    /// SERVFAIL, as the aliases have no end that is followed: an answer with aliases alone would say that there are no data. With the text
    /// of the extended error.
    Endless(&'static str),
    /// TC, and no records: an expired answer does not fit.
    Unfit(Rcode, Option<EdeCode>),
    /// TC, and no records but the mark of the rule that says so.
    TcpOnly,
    /// TC, outside of the response rate: the query has given way to another one.
    Evicted,
    /// No response at all.
    Dropped,
}

/// The parts that responses are made of.
pub(crate) struct Writer<'e> {
    pub(crate) settings: &'e Settings,
    pub(crate) clients: &'e mut Clients,
    pub(crate) upstream: &'e mut Upstream,
    pub(crate) answer_memo: &'e mut AnswerMemo,
}

/// Limits and texts of the responses of this server.
#[inline]
pub(crate) fn responder<'e>(settings: &'e Settings, rate_limiter: &'e mut RateLimiter) -> Responder<'e> {
    Responder { rate_limiter: Some(rate_limiter), names: &settings.server_names, own_size: settings.udp_size }
}

impl Writer<'_> {
    /// Writes and sends the response of a resolution that has ended.
    pub(crate) fn end(self, pending: Index, end: &End<'_, '_>, cx: &mut Context<'_, impl Outbox>) {
        let Writer { settings, clients, upstream, answer_memo } = self;
        let (mut is_trusted, mut untrusted) = (false, None);
        match *end {
            End::Reply(message, _) | End::FilteredReply(message, _) => {
                if message.rcode() != Rcode::NOERROR && warrants_failover(message) {
                    count_failed(clients, upstream, pending);
                }
                is_trusted = settings.dns64.dnssec.trusts_ad()
                    && proves_absence(&clients.pending_queries[pending])
                    && clients.came_secure(pending);
            }
            End::Failed => {
                count_failed(clients, upstream, pending);
                untrusted = upstream.untrusted(clients.current_question(pending).forward_key());
            }
            End::Endless(_) => {
                cx.out.trace(Subject::PendingQuery(pending), || TraceEvent::ChaseEnds);
                if clients.pending_queries[pending].stage.has_dns64() {
                    cx.counters.count(Counter::NotSynthesizedFailure);
                }
            }
            // No answer of a rule, and no longer than the query.
            End::Evicted => clients.pending_queries[pending].policy_mark = None,
            End::Dropped => {
                let client = clients.pending_queries[pending].client;
                if !client.transport.is_datagram() {
                    cx.out.drop_query(&client);
                }
                return;
            }
            _ => {}
        }
        let special_use = match end {
            End::SpecialUse => divert::special_use_of(settings, clients, pending),
            _ => SpecialUse::Ordinary,
        };
        let Clients { pending_queries, rate_limiter, chases, .. } = clients;
        let chase = pending_queries[pending].chase;
        let (before, asked) = (replies(chases, chase), name_of(chases, chase));
        let mut responder = responder(settings, rate_limiter);
        if matches!(end, End::Evicted) {
            responder.rate_limiter = None;
        }
        respond(responder, pending_queries, pending, cx, |frame, params| match *end {
            End::Reply(message, chain) | End::FilteredReply(message, chain) => {
                let exclude = matches!(end, End::FilteredReply(..)).then_some(&settings.dns64);
                let forwarded = ForwardedReply { message, chain, trusted: is_trusted, exclude, before };
                answer_memo.write(&forwarded, frame, params).0
            }
            End::SpecialUse => match &special_use {
                SpecialUse::Local(answer) => answer.write(frame, params, asked, before),
                SpecialUse::Ordinary | SpecialUse::Alias(_) => write_aliases(frame, params, before),
            },
            End::AliasesOnly => write_aliases(frame, params, before),
            End::NoGateway(message, chain, lack) => {
                write_no_gateway(frame, params, (message, chain), before, (&settings.dns64.arpa, lack))
            }
            End::Empty(rcode, ede) => write_empty(frame, params, rcode, ede),
            End::Failed => {
                write_failure(frame, params, ede::NETWORK_ERROR, untrusted.map_or("", Untrusted::text))
            }
            End::Endless(reason) => write_failure(frame, params, ede::OTHER, reason),
            End::Unfit(rcode, ede) => write_unfit(frame, params, rcode, ede),
            End::TcpOnly | End::Evicted | End::Dropped => write_truncated(frame, params),
        });
    }

    /// Writes and sends the response with the AAAA records that are made of addresses. Writes the synthesis into `copy`, too, as far as it
    /// is the answer of all clients: returns its octets, and the packed numbers of addresses that it leaves out.
    pub(crate) fn synthesize(
        self,
        pending: Index,
        addresses: &Addresses<'_, '_, '_>,
        copy: Option<&mut [u8]>,
        needs: Option<&mut Needs>,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Option<(usize, u32)> {
        let Writer { settings, clients, answer_memo, .. } = self;
        let (Addresses { reply: message, chain, rules }, dns64) = (*addresses, &settings.dns64);
        let secure = clients.pending_queries[pending].aaaa_secure
            && is_secure(message, dns64)
            && clients.came_secure(pending);
        cx.out.trace(Subject::PendingQuery(pending), || TraceEvent::Synthesizes { secure });
        let Clients { pending_queries, chases, rate_limiter, .. } = clients;
        let state = &pending_queries[pending];
        let negative_ttl = state.negative_ttl.unwrap_or(TTL_WITHOUT_SOA);
        let before = replies(chases, state.chase);
        let input = SynthesisInput { message, chain, dns64, rules, negative_ttl, secure, before };
        let copied = copy.and_then(|frame| synthesize_for_cache(frame, state, &input));
        let mut counts = EmbeddingCounts::default();
        respond(responder(settings, rate_limiter), pending_queries, pending, cx, |frame, params| {
            let written;
            (written, counts) = answer_memo.write(&input, frame, params);
            written
        });
        count_synthesis(&mut pending_queries[pending], cx.counters, &counts);
        if let Some(needs) = needs
            && counts.records > 0
        {
            let state = &pending_queries[pending];
            needs.count(&state.client, state.name(), state.hash, cx.now);
        }
        copied
    }
}

/// An A reply instead of the AAAA reply says that there is no AAAA record: both must be secure, and it must be true.
fn proves_absence(query: &PendingQuery) -> bool {
    query.stage != Stage::A || query.aaaa_secure && query.cause == Cause::NoData
}

/// Counts a pending query whose question the upstreams of its zone did not answer.
#[cold]
fn count_failed(clients: &Clients, upstream: &mut Upstream, pending: Index) {
    let one = Unanswered { failed: 1, ..Unanswered::default() };
    upstream.servers.count_unanswered(clients.current_question(pending).forward_key(), one);
}

/// Counts the addresses of a synthesis, and why it was made or not.
pub(crate) fn count_synthesis(query: &mut PendingQuery, counters: &mut Counters, counts: &EmbeddingCounts) {
    count_omitted(counters, counts);
    if counts.prefixes != 0 {
        counters.count_prefixes(counts.prefixes, 1);
    }
    if query.cache_hit == Some(CacheHit::Positive) && counts.records > 0 {
        query.cache_hit = Some(CacheHit::Synthesized);
    }
    counters.count(match query.cause {
        _ if counts.lack() == Some(Lack::Gateway) => Counter::NotSynthesizedNoGateway,
        _ if counts.lack() == Some(Lack::Prefix) => Counter::NotSynthesizedNoPrefix,
        _ if counts.records == 0 => Counter::NotSynthesizedPolicy,
        Cause::NoData => Counter::SynthesizedNoData,
        Cause::Excluded => Counter::SynthesizedExcluded,
        Cause::Ignored => Counter::SynthesizedIgnored,
        Cause::Dead => Counter::SynthesizedDead,
        Cause::Error => Counter::SynthesizedError,
        Cause::Timeout => Counter::SynthesizedTimeout,
    });
}

/// Counts the addresses that a synthesis leaves out.
pub(crate) fn count_omitted(counters: &mut Counters, counts: &EmbeddingCounts) {
    for (counter, amount) in [
        (Counter::OmittedNonGlobal, counts.non_global),
        (Counter::OmittedNeverEmbed, counts.never_embed),
        (Counter::OmittedRule, counts.by_rule),
        (Counter::OmittedMaxRecords, counts.beyond_max),
    ] {
        if amount > 0 {
            counters.add(counter, amount);
        }
    }
}

/// Writes the failure that stands for a reply that clients cannot use: SERVFAIL with this extended DNS error (RFC 8914). Returns its octets.
#[cold]
pub(crate) fn write_unusable(frame: &mut [u8], message: &Message<'_>, reason: EdeCode) -> usize {
    let end = wire::HEADER + message.question().len();
    frame[..end].copy_from_slice(&message.bytes()[..end]);
    let flags = message.flags().without(Flags::TC).without(Flags::AD).with_rcode(Rcode::SERVFAIL);
    header::set_flags(frame, flags);
    header::set_ancount(frame, 0);
    header::set_nscount(frame, 0);
    header::set_arcount(frame, 1);
    let octets = wire::write_opt(&mut frame[end..], 512, 0, 0, false, Some(reason));
    end + octets.unwrap_or(0)
}

/// Writes the synthesis that every client with the same query flags gets. Returns its octets, and the packed numbers of addresses that
/// it leaves out, which each answer counts; none if it depends on the client, or has no address.
fn synthesize_for_cache(
    frame: &mut [u8],
    pending: &PendingQuery,
    input: &SynthesisInput<'_, '_>,
) -> Option<(usize, u32)> {
    let params =
        ResponseParams { flags: pending.flags, ..unlimited_params(pending.query_flags, pending.question()) };
    let (written, counts) = synthesize(frame, &params, input);
    let omitted = counts.pack_omitted()?;
    (counts.records > 0 && !written.truncated).then_some((written.len, omitted))
}
