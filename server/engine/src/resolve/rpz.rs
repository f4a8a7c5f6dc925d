//! Application of response policy zones: a rule replaces the reply of an upstream, before or after it is asked. `rpz/table.rs` finds
//! the rule, and `here.rs` carries out its action.
//!
//! One rule decides a query, with all its lookups and its whole CNAME chase (draft-vixie-dnsop-dns-rpz-00 section 5.1). Local data of a
//! zone are the reply of each lookup, so DNS64 applies to them; a denial is the answer, and no lookup is asked. The pending query keeps the marks of
//! the rule (`rpz/mark.rs`), which `respond` adds to its answer, whatever follows.

use crate::base::slab::Index;
use crate::client::Clients;
use crate::client::pending_query::{NO_HOP_YET, PendingQuery};
use crate::context::Context;
use crate::dns64::decision::{AaaaDecision, Stage, decide};
use crate::interface::Outbox;
use crate::message::question::QueryFlags;
use crate::message::reply::Outcome;
use crate::reasons::{PassReason, PolicyAction};
use crate::resolve::steps::{Origin, follows_to_the_end, passes_over_real};
use crate::rpz::response::{Decided, RewritePoint};
use crate::rpz::table::{Action, NO_RULE_YET, PASSTHRU, ReplyAddresses, ResponsePolicy, RuleMatch};
use crate::settings::Settings;
use crate::trace::{RuleSource, Subject, TraceEvent};
use core::net::Ipv6Addr;
use wire::Type;

/// Subject for which a reply is compared with the rules.
pub(crate) struct Compared<'o, 'm, 'a> {
    pub(crate) outcome: &'o Outcome<'m, 'a>,
    /// True if the reply is not cut off at an alias, so it says whether the A lookup follows.
    pub(crate) is_whole: bool,
}

/// True if a rule of a response policy zone may still decide about a pending query.
#[inline]
pub(crate) fn is_subject(settings: &Settings, query: &PendingQuery) -> bool {
    !settings.rpz.is_empty()
        && query.rpz_rule == NO_RULE_YET
        // The client never gets the reply without validation.
        && query.stage != Stage::AaaaWithCd
}

/// The rule for a pending query's current question, before it is asked. None: an upstream has to answer it.
pub(crate) fn of_question(
    clients: &mut Clients,
    settings: &Settings,
    pending: Index,
    cx: &mut Context<'_, impl Outbox>,
) -> Option<Decided<'static, 'static>> {
    if !clients.current_question(pending).is_ours() {
        return None;
    }
    let client = client_to_compare(clients, pending);
    let (lookup, policy) = (clients.current_question(pending), &settings.rpz);
    let hit = policy.of_question(client, lookup.name)?;
    if policy.is_open(hit, lookup.qtype) {
        return None;
    }
    let source = || policy.source(hit.rule, lookup.name, client, None);
    let query = &clients.pending_queries[pending];
    cx.out.trace(Subject::PendingQuery(pending), || policy_event(policy, query, hit.rule, source()));
    Some(Decided { rule: hit.rule, from: None })
}

/// The rule for the outcome of a pending query's current question. None: no rule decides, or not yet.
pub(crate) fn of_reply<'m, 'a>(
    clients: &mut Clients,
    settings: &Settings,
    pending: Index,
    compared: &Compared<'_, 'm, 'a>,
    cx: &mut Context<'_, impl Outbox>,
) -> Option<Decided<'m, 'a>> {
    if !clients.current_question(pending).is_ours() {
        return None;
    }
    let client = client_to_compare(clients, pending);
    let (query, lookup) = (&clients.pending_queries[pending], clients.current_question(pending));
    let (policy, dns64) = (&settings.rpz, &settings.dns64);
    let Compared { outcome, is_whole } = *compared;
    let Outcome::Reply(message, chain) = *outcome else {
        let hit = policy.of_question(client, lookup.name)?;
        if is_whole && waits_for_addresses(settings, query, hit, outcome) {
            return None;
        }
        let source = || policy.source(hit.rule, lookup.name, client, None);
        cx.out.trace(Subject::PendingQuery(pending), || policy_event(policy, query, hit.rule, source()));
        return Some(Decided { rule: hit.rule, from: None });
    };
    let rules = (query.stage == Stage::A).then(|| dns64.rules.of(query.client.address, query.name()));
    let reply = ReplyAddresses {
        message,
        chain,
        dns64,
        rules: rules.as_ref(),
        excludes: matches!(query.stage, Stage::Aaaa | Stage::NegativeAaaa | Stage::DeadAaaa),
        ignores_aaaa: query.stage == Stage::Aaaa && passes_over_real(query, dns64, outcome),
    };
    let (hit, place) = policy.of_reply(&reply, client)?;
    let waits = is_whole
        && (waits_for_addresses(settings, query, hit, outcome)
            || place + 1 == chain.len() && waits_behind_alias(settings, query, hit, outcome));
    if waits {
        return None;
    }
    cx.out.trace(Subject::PendingQuery(pending), || {
        let mut name = [0; wire::MAX_NAME];
        let length = chain.name(place).write(&mut name);
        let client = client.filter(|_| place == 0);
        let addresses = (place + 1 == chain.len()).then_some(&reply);
        let source = policy.source(hit.rule, &name[..length], client, addresses);
        policy_event(policy, query, hit.rule, source)
    });
    Some(Decided { rule: hit.rule, from: Some(RewritePoint { message, chain, place }) })
}

/// The client's address, if it is compared with the rules together with the pending query's current name: with the first name that is
/// compared at all. That may be the target of a local alias, which no rule has seen.
fn client_to_compare(clients: &mut Clients, pending: Index) -> Option<Ipv6Addr> {
    let hop = clients.replies(pending).len() as u8;
    let state = &mut clients.pending_queries[pending];
    if state.rpz_hop == NO_HOP_YET {
        state.rpz_hop = hop;
    }
    (state.rpz_hop == hop).then_some(state.client.address)
}

/// True if the A lookup follows, whose addresses may match a rule of an earlier zone: that zone decides (draft section 5.2), so the rule
/// waits for the A lookup.
fn waits_for_addresses(
    settings: &Settings,
    query: &PendingQuery,
    hit: RuleMatch,
    outcome: &Outcome<'_, '_>,
) -> bool {
    // Aliases without an end are an error, and no A lookup follows.
    let has_no_end = matches!(outcome, Outcome::Reply(message, chain) if chain.has_no_end(message));
    query.stage == Stage::Aaaa
        && !has_no_end
        && settings.rpz.gives_way_to_addresses(hit)
        && match decide(outcome, &settings.dns64) {
            AaaaDecision::Synthesize(_) | AaaaDecision::CheckBogus => true,
            AaaaDecision::Pass(PassReason::RealAaaa) => passes_over_real(query, &settings.dns64, outcome),
            AaaaDecision::Unproven => query.query_flags.has(QueryFlags::CD),
            AaaaDecision::Pass(_) | AaaaDecision::ChaseCname => false,
        }
}

/// True if a rule for the end of an unfinished chain waits: that name is looked up next, and its addresses may match a rule of an
/// earlier zone, which decides (draft section 5.2).
fn waits_behind_alias(
    settings: &Settings,
    query: &PendingQuery,
    hit: RuleMatch,
    outcome: &Outcome<'_, '_>,
) -> bool {
    let Outcome::Reply(message, chain) = *outcome else { return false };
    settings.rpz.is_open(hit, query.current_type())
        && !chain.has_no_end(message)
        && match query.stage {
            Stage::Direct | Stage::SuppressedA => follows_to_the_end(query, message, chain, Origin::Upstream),
            Stage::Aaaa => matches!(decide(outcome, &settings.dns64), AaaaDecision::ChaseCname),
            Stage::A => chain.is_alias() && chain.is_unfinished(message),
            Stage::NegativeAaaa | Stage::DeadAaaa | Stage::AaaaWithCd => false,
        }
}

/// The event that a rule decides a pending query's query.
fn policy_event<'n>(
    policy: &ResponsePolicy,
    query: &'n PendingQuery,
    rule: u32,
    source: Option<RuleSource>,
) -> TraceEvent<'n> {
    let over_udp = query.client.transport.is_datagram();
    let found = policy.rule_of(rule);
    let action = found.map_or(PolicyAction::Passthru, |(found, _)| found.action.applied(over_udp));
    let (client, name, qtype) = (query.client.address, query.name(), query.qtype_and_class().0);
    TraceEvent::PolicyRule { action, source, client, name, qtype }
}

/// Notes a rule in the query that it decides. Returns its action; none for PASSTHRU.
pub(crate) fn apply(
    policy: &ResponsePolicy,
    query: &mut PendingQuery,
    rule: u32,
    cx: &mut Context<'_, impl Outbox>,
) -> Option<PolicyAction> {
    let (found, _) = policy.rule_of(rule)?;
    let action = found.action.applied(query.client.transport.is_datagram());
    cx.counters.count(action.counter());
    if action == PolicyAction::Passthru {
        query.rpz_rule = PASSTHRU;
        return None;
    }
    query.policy_mark = policy.mark(rule);
    if action == PolicyAction::LocalData {
        query.rpz_rule = rule;
        // The name has the data of the rule and no others, so DNS64 begins anew: AAAA data of a rule that only the A lookup has met are the
        // answer (draft section 3.6, RFC 6147 section 5.1.1).
        if matches!(query.stage, Stage::A | Stage::NegativeAaaa | Stage::DeadAaaa) {
            query.stage = Stage::Aaaa;
        }
    }
    Some(action)
}

/// True if a rule has data for the lookups of a query. If the rule is gone after a reload, no rule applies any more; if the data are an
/// alias, none applies to its target.
pub(crate) fn has_data(policy: &ResponsePolicy, query: &mut PendingQuery, rule: u32) -> bool {
    let Some((found, _)) = policy.rule_of(rule) else {
        (query.rpz_rule, query.policy_mark) = (PASSTHRU, None);
        return false;
    };
    let is_alias = match &found.action {
        Action::Data(records) => records.iter().any(|record| record.rtype == Type::CNAME),
        _ => true,
    };
    if is_alias {
        query.rpz_rule = PASSTHRU;
    }
    true
}
