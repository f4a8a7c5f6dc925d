//! From facts to findings. A finding is the first cause: what follows from it is no finding of its own. So the order matters: the host,
//! then its resolvers, then the prefixes that everybody tells, then option 108, and at last the gateways.

mod gateway;
mod host;
mod ipv4;
mod prefixes;
mod resolvers;
#[cfg(test)]
mod tests;

use crate::facts::Facts;
use crate::finding::Finding;
use pref64::Pref64;

/// The findings, the most fundamental first.
pub fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = host::clock(&facts.clock);
    let is_right = findings.is_empty();
    findings.extend(host::mtu(facts));
    if host::is_off(&facts.host) {
        return findings;
    }
    if let Some(finding) = host::address(facts) {
        findings.push(finding);
        return findings;
    }
    findings.extend(host::route(facts));
    findings.extend(resolvers::judge(facts, is_right));
    let prefixes = prefixes::judge(facts);
    findings.extend(prefixes.findings);
    findings.extend(ipv4::judge(facts));
    if facts.host.has_default_route {
        findings.extend(gateway::judge(facts, &prefixes.blamed));
    }
    findings
}

/// The prefixes that the resolvers tell, each once.
fn told(facts: &Facts) -> Vec<Pref64> {
    unique(facts.resolvers.iter().flat_map(|resolver| resolver.prefixes.iter().copied()))
}

/// The prefixes that routers announce and have not withdrawn, each once.
fn announced(facts: &Facts) -> Vec<Pref64> {
    let routers = facts.routers.seen().into_iter().flatten();
    let valid = routers.flat_map(|router| &router.prefixes).filter(|one| one.lifetime_secs > 0);
    unique(valid.map(|one| one.prefix))
}

fn unique(prefixes: impl Iterator<Item = Pref64>) -> Vec<Pref64> {
    let mut found = Vec::new();
    for prefix in prefixes {
        if !found.contains(&prefix) {
            found.push(prefix);
        }
    }
    found
}

/// Things in a sentence: `a`, `a and b`, `a, b and c`.
fn listed(things: impl IntoIterator<Item = impl ToString>) -> String {
    let words: Vec<String> = things.into_iter().map(|thing| thing.to_string()).collect();
    match &words[..] {
        [] => "none".to_owned(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}
