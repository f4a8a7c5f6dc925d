//! Response policy in the oracle: a rule decides a question before its lookup is asked, or when the reply has come. The decision
//! then holds for all lookups that follow.

use crate::case::{Case, RpzState};
use crate::comparison::{embedded_addresses, has_aliases, may_be_truncated};
use crate::config::Config;
use crate::ground_truth::{A, AAAA, NameId, Said};
use crate::lookup::LookupReport;
use crate::policy::{Action, DENIAL_SOA, Rule};

/// Effect of the response policy on a lookup.
pub(crate) enum RpzEffect<'a> {
    /// No rule matches.
    None,
    /// A rule sets the answer. True if the answer that came is that one.
    Decided(bool),
    /// The lookup is repeated in this state.
    Continue(RpzState<'a>),
}

/// The lookup that a lookup belongs to.
#[derive(Clone, Copy)]
pub(crate) enum Lookup {
    /// The client's question of this type, without synthesis.
    Direct(u16),
    /// AAAA, with synthesis. True if A is asked after it.
    Aaaa(bool),
    /// A, for the synthesis.
    A,
}

impl Lookup {
    /// Record type of the question.
    fn rtype(self) -> u16 {
        match self {
            Lookup::Direct(rtype) => rtype,
            Lookup::Aaaa(_) => AAAA,
            Lookup::A => A,
        }
    }
}

/// True if the name at a place of the chain is the target of an alias that the reply leaves unfinished, and is looked up next. Without RD
/// the client gets what there is.
fn is_looked_up_next(case: &Case<'_>, lookup: &LookupReport<'_>, place: usize, kind: Lookup) -> bool {
    let Some(said) = lookup.reply.filter(|_| !lookup.is_diverted) else { return false };
    let is_followed = !matches!(kind, Lookup::Direct(_)) || case.query.bits.rd;
    is_followed && said.is_unfinished() && place == said.edges.len()
}

/// True if no rule has seen the names before: only local aliases led here, so the client's address is compared now.
fn is_first_upstream(before: &[LookupReport<'_>]) -> bool {
    before.iter().all(|lookup| lookup.is_local)
}

/// The effect before a lookup is asked.
pub(crate) fn before_lookup<'a>(
    case: &Case<'a>,
    name: NameId,
    rtype: u16,
    before: &[LookupReport<'a>],
    config: &'a Config,
) -> RpzEffect<'a> {
    let is_undecided =
        matches!(case.rpz.get(), RpzState::Undecided) && !case.is_answered_locally(name, rtype, config);
    let client = is_first_upstream(before).then_some(case.client);
    match config.policy.for_question(client, name) {
        Some(rule) if is_undecided && !config.policy.may_be_overridden(rule, rtype) => {
            apply_rule(case, rule, before, None)
        }
        _ => RpzEffect::None,
    }
}

/// The effect when the reply has come or has failed. If `lookup` is diverted, only the names before the last of its aliases count.
pub(crate) fn after_lookup<'a>(
    case: &Case<'a>,
    name: NameId,
    lookup: &LookupReport<'a>,
    before: &[LookupReport<'a>],
    config: &'a Config,
    kind: Lookup,
) -> RpzEffect<'a> {
    if !matches!(case.rpz.get(), RpzState::Undecided) || lookup.is_local {
        return RpzEffect::None;
    }
    let client = is_first_upstream(before).then_some(case.client);
    let found = match lookup.reply {
        Some(said) if lookup.is_diverted => {
            let before = lookup.edges().len() - 1;
            let shown = Said { edges: said.edges[..before].to_vec(), ..Said::default() };
            config.policy.for_reply(client, name, &shown)
        }
        // The client never gets the addresses that are left out.
        Some(said) if matches!(kind, Lookup::A) => {
            let v4 = embedded_addresses(case, said, config).into_iter().map(|(v4, _)| v4).collect();
            config.policy.for_reply(client, name, &Said { v4, ..said.clone() })
        }
        Some(said) => config.policy.for_reply(client, name, said),
        None => config.policy.for_question(client, name).map(|rule| (rule, 0)),
    };
    match found {
        // The addresses of the A lookup may match a rule of an earlier zone.
        Some((rule, _)) if matches!(kind, Lookup::Aaaa(true)) && config.policy.may_be_overridden(rule, A) => {
            RpzEffect::None
        }
        // So may those of the target of an alias, which is looked up next.
        Some((rule, place))
            if is_looked_up_next(case, lookup, place, kind)
                && config.policy.may_be_overridden(rule, kind.rtype()) =>
        {
            RpzEffect::None
        }
        Some((rule, place)) => apply_rule(case, rule, before, Some((lookup, place))),
        None => RpzEffect::None,
    }
}

/// The effect of a rule. `matched`: the lookup whose reply the rule matches, and the number of CNAME records before the match.
fn apply_rule<'a>(
    case: &Case<'a>,
    rule: &'a Rule,
    before: &[LookupReport<'a>],
    matched: Option<(&LookupReport<'a>, usize)>,
) -> RpzEffect<'a> {
    let mut lookups = before.to_vec();
    // The upstream's part of the answer ends at the name that the rule is about.
    if let Some((lookup, place)) = matched.filter(|matched| matched.1 > 0) {
        lookups.push(LookupReport { alias_limit: Some(place), ..*lookup });
    }
    let answer = case.answer;
    let is_empty = answer.v4.is_empty() && answer.v6.is_empty() && answer.pointers.is_empty() && !answer.ad();
    let has_chain =
        has_aliases(case, &lookups) && (!answer.is_truncated() || may_be_truncated(case, &lookups, 2));
    match rule.action {
        Action::NxDomain | Action::NoData => {
            let rcode = if rule.action == Action::NxDomain { 3 } else { 0 };
            let has_denial = answer.soa == Some(DENIAL_SOA) || answer.is_truncated();
            RpzEffect::Decided(answer.rcode() == rcode && is_empty && has_denial && has_chain)
        }
        Action::Drop => RpzEffect::Decided(false),
        Action::TcpOnly if !case.query.tcp => {
            let is_bare = is_empty && answer.edges.is_empty();
            RpzEffect::Decided(answer.rcode() == 0 && answer.is_truncated() && is_bare)
        }
        Action::Passthru | Action::TcpOnly => RpzEffect::Continue(RpzState::Passthru),
        Action::V4 | Action::V6 if lookups.len() == before.len() => RpzEffect::Continue(RpzState::Data(rule)),
        // Local data of that name take precedence over the rule.
        Action::V4 | Action::V6 if case.configs.iter().any(|config| config.own.is_in_use()) => {
            RpzEffect::Decided(true)
        }
        // Behind an alias: the data of the rule, or addresses that are synthesized from them.
        Action::V4 | Action::V6 => {
            let all = answer.v4.iter().all(|record| is_rule_data(&record.2))
                && answer.v6.iter().all(|record| is_rule_data(&record.2));
            RpzEffect::Decided(answer.rcode() == 0 && all && !answer.ad() && has_chain)
        }
    }
}

/// True if an address is one of a rule, or is synthesized from one.
fn is_rule_data(address: &[u8]) -> bool {
    address.windows(3).any(|part| part == [255, 255, 251])
        || address.windows(3).any(|part| part == [255, 255, 0])
        || address.ends_with(&[251, 9])
        || address.windows(2).any(|part| part == [44, 255])
}
