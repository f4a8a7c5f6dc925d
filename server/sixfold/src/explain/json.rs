//! An explanation as JSON. The names of the fields are fixed and documented in
//! docs/reference/explanations-and-traces.md; fields may be added.

use super::format::{milliseconds, network, outcome, source};
use super::{chain, records};
use crate::config::Config;
use crate::escape::name;
use engine::explain::{Address, Attempt, End, Explanation, LookupReport, Real, RealFate};
use engine::{RuleSource, Transport};
use serde_json::{Value, json};
use wire::{Flags, Section};

/// The explanation as one object.
pub fn of(explanation: &Explanation, config: &Config) -> Value {
    let decisions: Vec<Value> = explanation
        .decisions
        .iter()
        .map(|decision| {
            let mut object = json!({
                "decision": decision.code(),
                "text": decision.to_string(),
                "requirement": decision.requirement(),
            });
            if let Some(source) = decision.rule_source() {
                object["policy"] = rule_source(source);
            }
            object
        })
        .collect();
    json!({
        "question": question(explanation),
        "answer": answer(explanation),
        "unfinished": explanation.is_unfinished,
        "decisions": decisions,
        "lookups": explanation.lookups.iter().map(|one| lookup(one, config)).collect::<Vec<_>>(),
        "aaaa": explanation.real.iter().map(real).collect::<Vec<_>>(),
        "addresses": explanation.addresses.iter().map(address).collect::<Vec<_>>(),
        "ttl": explanation.ttl.map(|ttl| json!({
            "a": ttl.a,
            "soa": ttl.soa.map(|(soa, _)| soa),
            "minimum": ttl.soa.map(|(_, minimum)| minimum),
            "bound": ttl.bound,
            "gateway": ttl.gateway,
            "result": ttl.result,
            "requirement": "RFC 6147 section 5.1.7",
        })),
        "dnssec": dnssec(explanation),
        "chain": chain::links(explanation),
        "verdicts": chain::verdicts(explanation),
    })
}

/// The source of the rule of a response policy zone.
pub fn rule_source(source: &RuleSource) -> Value {
    json!({
        "zone": name(&source.zone),
        "file": Some(&source.file).filter(|file| !file.is_empty()),
        "line": source.line,
        "trigger": source.trigger,
        "trigger_kind": source.kind,
    })
}

fn question(explanation: &Explanation) -> Value {
    let asked = explanation.asked();
    let has = |flag| asked.is_some_and(|question| question.flags().contains(flag));
    json!({
        "name": asked.map(|question| question.question_name().to_string()),
        "type": asked.map(|question| question.qtype().to_string()),
        "client": explanation.client.to_canonical().to_string(),
        "do": explanation.dnssec_ok(),
        "cd": has(Flags::CD),
    })
}

fn answer(explanation: &Explanation) -> Value {
    let (Some(answer), Some(message)) = (&explanation.answer, explanation.answered()) else {
        return Value::Null;
    };
    json!({
        "rcode": message.rcode().to_string(),
        "flags": records::flags(&message),
        "records": records::lines(&answer.message, Section::Answer),
        "authority": records::lines(&answer.message, Section::Authority),
        "extended_errors": extended_errors(&message),
        "milliseconds": milliseconds(answer.after),
    })
}

fn extended_errors(message: &wire::Message<'_>) -> Vec<Value> {
    let errors = records::extended_errors(message).into_iter();
    errors.map(|(code, text)| json!({ "code": code, "text": text })).collect()
}

fn lookup(lookup: &LookupReport, config: &Config) -> Value {
    let reply = lookup.replied();
    let bytes = lookup.reply.as_deref().unwrap_or_default();
    json!({
        "name": name(&lookup.name),
        "type": lookup.qtype.to_string(),
        "source": source(lookup, config),
        "unchecked": lookup.unchecked,
        "needed": lookup.is_over,
        "rcode": reply.map(|reply| reply.rcode().to_string()),
        "flags": reply.map(|reply| records::flags(&reply)),
        "records": records::lines(bytes, Section::Answer),
        "authority": records::lines(bytes, Section::Authority),
        "extended_errors": reply.map(|reply| extended_errors(&reply)).unwrap_or_default(),
        "attempts": lookup.attempts.iter().map(one_attempt).collect::<Vec<_>>(),
    })
}

fn one_attempt(attempt: &Attempt) -> Value {
    json!({
        "upstream": attempt.upstream.to_string(),
        "transport": match attempt.transport {
            Transport::Udp => "udp",
            Transport::Tcp => "tcp",
            Transport::Tls => "tls",
        },
        "after_milliseconds": milliseconds(attempt.after),
        "outcome": outcome(attempt),
        "reason": match attempt.end {
            Some((End::Unreachable(reason), _)) => Some(reason.code()),
            _ => None,
        },
        "milliseconds": attempt.end.map(|(_, span)| milliseconds(span)),
    })
}

fn real(real: &Real) -> Value {
    let (excluded_by, rule) = match real.fate {
        RealFate::Kept => (None, None),
        RealFate::Excluded(excluded) => (Some(network(&excluded)), None),
        RealFate::OurPrefix(prefix) => (Some(prefix.to_string()), None),
        RealFate::Ignored(rule) | RealFate::Lives(rule) | RealFate::Untried(rule) | RealFate::Dead(rule) => {
            (None, Some(rule))
        }
    };
    json!({
        "address": real.address.to_string(),
        "fate": real.fate.code(),
        "network": excluded_by,
        "rule": rule,
        "requirement": real.fate.requirement(),
    })
}

fn address(address: &Address) -> Value {
    json!({
        "owner": name(&address.owner),
        "ipv4": address.ipv4.to_string(),
        "rule": address.rule,
        "prefix": address.prefix.map(|prefix| prefix.to_string()),
        "fate": address.fate.code(),
        "aaaa": address.aaaa.map(|address| address.to_string()),
        "requirement": address.fate.requirement(),
    })
}

fn dnssec(explanation: &Explanation) -> Value {
    let security = explanation.security();
    let answered = explanation.answered();
    json!({
        "ad": answered.is_some_and(|answer| answer.flags().contains(Flags::AD)),
        "reason": security.code(),
        "text": security.to_string(),
        "requirement": security.requirement(),
    })
}
