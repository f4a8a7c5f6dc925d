//! An explanation as text.

use super::format::{milliseconds, network, outcome, source};
use super::{chain, records};
use crate::config::Config;
use crate::escape::name;
use engine::Transport;
use engine::explain::{Address, Decision, Embedding, End, Explanation, LookupReport, Real, RealFate, Unused};
use std::fmt::Write as _;
use wire::Section;

/// The explanation as lines.
pub fn of(explanation: &Explanation, config: &Config) -> String {
    let mut text = String::new();
    write_head(&mut text, explanation);
    let _ = writeln!(text, "\nwhy");
    for decision in &explanation.decisions {
        let _ = writeln!(text, "  {decision} [{}]", decision.requirement());
    }
    if !explanation.lookups.is_empty() {
        let _ = writeln!(text, "\nlookups");
    }
    for lookup in &explanation.lookups {
        write_lookup(&mut text, lookup, config);
    }
    if !explanation.real.is_empty() {
        let _ = writeln!(text, "\nAAAA records");
    }
    for real in &explanation.real {
        write_real(&mut text, real);
    }
    if !explanation.addresses.is_empty() {
        let _ = writeln!(text, "\naddresses");
    }
    for address in &explanation.addresses {
        write_address(&mut text, address);
    }
    write_ttl(&mut text, explanation);
    write_security(&mut text, explanation);
    text
}

fn write_head(text: &mut String, explanation: &Explanation) {
    if let Some(asked) = explanation.asked() {
        let mut bits = records::flags(&asked);
        bits.extend(explanation.dnssec_ok().then_some("do"));
        let client = explanation.client.to_canonical();
        let (name, qtype) = (asked.question_name(), asked.qtype());
        let _ = writeln!(text, "question  {name} {qtype} from {client}, {}", bits.join(" "));
    }
    let (Some(answer), Some(message)) = (&explanation.answer, explanation.answered()) else {
        let why = if explanation.is_unfinished { "none yet: the upstreams take too long" } else { "none" };
        let _ = writeln!(text, "answer    {why}");
        return;
    };
    let _ =
        writeln!(text, "answer    {} after {:.1} ms", records::summary(&message), milliseconds(answer.after));
    for section in [Section::Answer, Section::Authority] {
        for line in records::lines(&answer.message, section) {
            let _ = writeln!(text, "          {line}");
        }
    }
}

fn write_lookup(text: &mut String, lookup: &LookupReport, config: &Config) {
    let unchecked = if lookup.unchecked { " without validation" } else { "" };
    let _ = write!(text, "  {} {}{unchecked}: ", name(&lookup.name), lookup.qtype);
    let _ = match (lookup.replied(), lookup.no_reply()) {
        (Some(reply), _) => {
            writeln!(text, "{} from {}", records::summary(&reply), source(lookup, config))
        }
        (None, Some(no_reply)) => writeln!(text, "{no_reply}"),
        (None, None) => writeln!(text, "not needed"),
    };
    for attempt in &lookup.attempts {
        let transport = match attempt.transport {
            Transport::Udp => "UDP",
            Transport::Tcp => "TCP",
            Transport::Tls => "TLS",
        };
        let mut outcome = outcome(attempt).replace('_', " ");
        if let Some((End::Unreachable(reason), _)) = attempt.end {
            let _ = write!(outcome, " ({reason})");
        }
        let _ = write!(
            text,
            "    at {:.1} ms {} over {transport}: {outcome}",
            milliseconds(attempt.after),
            attempt.upstream
        );
        let _ = match attempt.end {
            Some((_, span)) => writeln!(text, " after {:.1} ms", milliseconds(span)),
            None => writeln!(text),
        };
    }
    // The chain of trust has what matters of the keys.
    let sections: &[Section] = if lookup.is_for_chain { &[] } else { &[Section::Answer, Section::Authority] };
    for &section in sections {
        for line in records::lines(lookup.reply.as_deref().unwrap_or_default(), section) {
            let _ = writeln!(text, "    {line}");
        }
    }
}

fn write_real(text: &mut String, real: &Real) {
    let why = match real.fate {
        RealFate::Kept => "passed on".to_owned(),
        RealFate::Excluded(excluded) => format!("left out: excluded by {}", network(&excluded)),
        RealFate::OurPrefix(prefix) => format!("left out: under the prefix {prefix} of a rule"),
        RealFate::Ignored(rule) => format!("left out: rule {rule} ignores it"),
        RealFate::Lives(rule) => format!("passed on: rule {rule} verifies it, and it has answered"),
        RealFate::Untried(rule) => {
            format!(
                "passed on for at most 30 s: rule {rule} verifies it, and it was not tried in the last minutes"
            )
        }
        RealFate::Dead(rule) => format!("rule {rule} verifies it, and it has not answered on port 443 or 80"),
    };
    let _ = writeln!(text, "  {}: {why} [{}]", real.address, real.fate.requirement());
}

fn write_address(text: &mut String, address: &Address) {
    let _ = write!(text, "  {}: ", address.ipv4);
    let under = address.prefix.map(|prefix| format!(" under {prefix}")).unwrap_or_default();
    let _ = match (address.fate, address.aaaa) {
        (Embedding::Mapped(_), Some(aaaa)) => write!(text, "{aaaa}, by a mapping"),
        (_, Some(aaaa)) => write!(text, "{aaaa}{under}"),
        (Embedding::NonGlobal, _) => write!(text, "left out{under}: it is not global"),
        (Embedding::NeverEmbed, _) => write!(text, "left out{under}: it is never embedded"),
        (Embedding::Unused(Unused::Down), _) => write!(text, "not{under}: its gateway is down"),
        (Embedding::Unused(Unused::Draining), _) => write!(text, "not{under}: it drains"),
        (Embedding::Unused(Unused::Other), _) => write!(text, "not{under}: this client gets another prefix"),
        (Embedding::BeyondMax, _) => write!(text, "left out{under}: `max-records` is reached"),
        (Embedding::Undiscovered, _) => write!(text, "left out: no prefix has been discovered"),
        (Embedding::NoPrefix | Embedding::Embedded | Embedding::Mapped(_), _) => {
            write!(text, "left out: the rule has no prefixes")
        }
    };
    if let Some(rule) = address.rule {
        let _ = write!(text, ", by rule {rule}");
    }
    let _ = writeln!(text, " [{}]", address.fate.requirement());
}

fn write_ttl(text: &mut String, explanation: &Explanation) {
    let Some(ttl) = explanation.ttl else { return };
    let is_dead = explanation.real.iter().any(|real| matches!(real.fate, RealFate::Dead(_)));
    let bound = match ttl.soa {
        _ if is_dead => format!("{}, as the real addresses are dead", ttl.bound),
        Some((soa, minimum)) => format!("SOA TTL {soa}, SOA MINIMUM {minimum}"),
        None => format!("{}, as the AAAA answer has no SOA", ttl.bound),
    };
    let gateway = ttl.gateway.map(|limit| format!(", dns64.health answer-ttl {limit}")).unwrap_or_default();
    let _ = writeln!(
        text,
        "\nTTL\n  the lowest of A records {}, {bound}{gateway}: {} [RFC 6147 section 5.1.7]",
        ttl.a, ttl.result
    );
}

/// Writes why AD is set or clear, unless nobody asked for DNSSEC or the query was refused.
fn write_security(text: &mut String, explanation: &Explanation) {
    let is_refused = |one: &Decision| matches!(one, Decision::Refused(..) | Decision::Transfer);
    if explanation.asks_for_dnssec() && !explanation.decisions.iter().any(is_refused) {
        chain::write(text, explanation);
        let security = explanation.security();
        let _ = writeln!(text, "\nDNSSEC\n  {security} [{}]", security.requirement());
    }
}
