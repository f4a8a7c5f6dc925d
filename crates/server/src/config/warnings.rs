//! Warnings about values that are allowed, but probably not meant: lists that shut everybody out, rules that never apply,
//! prefixes that violate RFC 6052 or overlap. They are not errors: only the operator knows the network.

use super::access::is_reachable;
use super::{Dns64, Server, hidden_rules, limits};
use pref64::Pref64;

/// Warnings about `[server]`: the clients that may send queries.
pub fn of_access(server: &Server) -> Option<String> {
    if server.allow.entries.is_empty() {
        let remedy = "name the networks of the clients, or delete the key for \"local\"";
        return Some(format!("`server.allow` is empty, so every query is refused: {remedy}"));
    }
    // A list without "local" is a deliberate choice.
    if !server.allow.has_local() || server.allow.reaches_outside() {
        return None;
    }
    let listen = server.listen.iter().find(|listen| is_reachable(listen.ip()))?;
    Some(format!(
        "the server listens on {listen}, but answers only clients of local networks; others, also those with global addresses \
         behind a router, get REFUSED: name their networks, like allow = [\"local\", \"2001:db8:10::/48\"] below [server], or \
         --allow local --allow 2001:db8:10::/48"
    ))
}

/// Warnings about the clients, exclusions and rules of `[dns64]`. `empty` has the numbers (from 1) of rules without any key.
pub fn of_dns64(dns64: &Dns64, empty: &[usize]) -> Vec<String> {
    let mut warnings = Vec::new();
    let clients = &dns64.clients.networks;
    if clients.is_empty() {
        warnings.push(
            "`dns64.clients` is empty, so no client gets synthesis: name the clients, or delete the key for all".to_owned(),
        );
    }
    for (network, _) in
        clients.iter().filter(|(network, excluded)| *excluded && clients.contains(&(*network, false)))
    {
        warnings.push(format!(
            "`dns64.clients` has both {network} and !{network}: its clients are excluded; delete one of the two"
        ));
    }
    if let Some(all) = dns64.exclude_aaaa.iter().find(|network| network.length == 0) {
        warnings.push(format!(
            "`dns64.exclude-aaaa` has {all}: all real AAAA records count as absent, so clients reach every host over the \
             translator; name only the networks that they cannot reach"
        ));
    }
    for rule in empty {
        warnings.push(format!(
            "rule {rule} of [[dns64.rule]] is empty: it applies to everything, and later rules to nothing; give it `names`, \
             `clients`, `ipv4` or `prefixes`, or delete it"
        ));
    }
    let hidden: Vec<_> =
        hidden_rules::hidden(&dns64.rules).into_iter().filter(|(_, by)| !empty.contains(by)).collect();
    for (rule, by) in hidden.iter().take(limits::HIDDEN_RULES) {
        warnings.push(format!(
            "rule {rule} of [[dns64.rule]] never applies: rule {by} before it matches the same clients, names and addresses; \
             put the narrower rule first, or delete it"
        ));
    }
    if let Some(more) = hidden.len().checked_sub(limits::HIDDEN_RULES).filter(|&more| more > 0) {
        warnings.push(format!("{more} more rules of [[dns64.rule]] never apply"));
    }
    warnings
}

/// Warnings about the prefixes of `[dns64]` and its rules.
pub fn of_prefixes(dns64: &Dns64) -> Vec<String> {
    let mut prefixes: Vec<Pref64> = dns64.prefixes.clone();
    prefixes.extend(dns64.rules.iter().flat_map(|rule| rule.prefixes.iter().copied()));
    // Sorted so that a prefix follows the prefix that contains it, or other prefixes inside that one.
    let key = |prefix: &Pref64| (prefix.address(), prefix.length());
    prefixes.sort_by_key(key);
    prefixes.dedup_by_key(|prefix| key(prefix));

    let mut warnings = Vec::new();
    if dns64.embed_non_global && prefixes.iter().any(Pref64::is_well_known) {
        warnings.push(
            "`dns64.non-global` is \"embed\" with the prefix 64:ff9b::/96, which must not carry non-global addresses \
             (RFC 6052 section 3.1), and translators drop them: add a rule with `ipv4` that gives these addresses a prefix \
             of your own or one in 64:ff9b:1::/48 (RFC 8215)"
                .to_owned(),
        );
    }
    if !dns64.suffix.is_unspecified() {
        warnings.push(format!(
            "`dns64.suffix` is {}, and should be \"::\" (RFC 6052 section 2.2): keep it only if your translator requires it",
            dns64.suffix
        ));
    }
    for prefix in &prefixes {
        let address = prefix.address();
        if address.is_multicast() || address.is_unicast_link_local() || address.to_ipv4_mapped().is_some() {
            warnings.push(format!(
                "no host can be reached over the prefix {prefix}: use a prefix that is routed to your translator"
            ));
        }
    }
    let mut outer: Option<&Pref64> = None;
    let (mut first, mut more) = (None, 0);
    for prefix in &prefixes {
        match outer.filter(|outer| outer.contains(prefix.address().octets())) {
            Some(outer) if first.is_none() => first = Some((prefix, outer)),
            Some(_) => more += 1,
            None => outer = Some(prefix),
        }
    }
    if let Some((inner, outer)) = first {
        let others =
            if more > 0 { format!(", and {more} more prefixes lie in others") } else { String::new() };
        warnings.push(format!(
            "the prefix {inner} lies in {outer}{others}: some IPv6 addresses stand for two IPv4 addresses, but the mapping \
             must be reversible (RFC 6147 section 5.2); use prefixes that do not overlap"
        ));
    }
    warnings
}
