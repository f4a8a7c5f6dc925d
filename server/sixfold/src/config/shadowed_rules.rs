//! Rules that never decide about an address, because an earlier rule matches everything that they match.

use super::{Name, Network, Rule, limits};
use std::collections::HashMap;

/// Pairs of a rule that never applies and the first earlier rule that hides it, both numbered from 1. A rule that only several
/// earlier ones hide together is not found. The search ends after [`limits::RULE_COMPARISONS`].
pub fn shadowed(rules: &[Rule]) -> Vec<(usize, usize)> {
    let mut earlier: HashMap<&[u8], Vec<usize>> = HashMap::new();
    let (mut found, mut left) = (Vec::new(), limits::RULE_COMPARISONS);
    for (place, rule) in rules.iter().enumerate() {
        // A rule that hides this one has the first name of this one, or a name above it.
        let first = rule.names.first().map_or(&[0][..], Name::wire);
        let mut candidates: Vec<usize> =
            suffixes(first).filter_map(|name| earlier.get(name)).flatten().copied().take(left).collect();
        left -= candidates.len();
        candidates.sort_unstable();
        if let Some(&by) = candidates.iter().find(|&&other| hides(&rules[other], rule)) {
            found.push((place + 1, by + 1));
        }
        if left == 0 {
            break;
        }
        let root = rule.names.is_empty().then_some(&[0][..]);
        for name in rule.names.iter().map(Name::wire).chain(root) {
            earlier.entry(name).or_default().push(place);
        }
    }
    found
}

/// True if `earlier` matches whatever `later` matches.
fn hides(earlier: &Rule, later: &Rule) -> bool {
    covers(&earlier.clients, &later.clients, Network::contains)
        && covers(&earlier.ipv4, &later.ipv4, Network::contains)
        && covers(&earlier.names, &later.names, |outer, inner| {
            wire::is_at_or_below(inner.wire(), outer.wire())
        })
}

/// True if a condition on `outer` holds whenever one on `inner` does. An empty list is no condition.
fn covers<T>(outer: &[T], inner: &[T], contains: impl Fn(&T, &T) -> bool) -> bool {
    let within = |item: &T| outer.iter().any(|outer| contains(outer, item));
    outer.is_empty() || !inner.is_empty() && inner.iter().all(within)
}

/// A name in wire form and the names above it.
fn suffixes(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(Some(name), |rest| {
        rest.first().filter(|&&length| length > 0).and_then(|&length| rest.get(1 + usize::from(length)..))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::address::{Family, network};

    /// A rule from words: clients and IPv4 networks after `c` and `4`, names after `n`.
    fn rule(text: &str) -> Rule {
        let mut rule = Rule::default();
        for word in text.split_whitespace() {
            let (kind, value) = word.split_once('=').unwrap();
            match kind {
                "c" => rule.clients.push(network(value, Family::Both).unwrap()),
                "4" => rule.ipv4.push(network(value, Family::V4).unwrap()),
                _ => rule.names.push(Name::parse(value).unwrap()),
            }
        }
        rule
    }

    fn found(rules: &[&str]) -> Vec<(usize, usize)> {
        shadowed(&rules.iter().map(|text| rule(text)).collect::<Vec<_>>())
    }

    #[test]
    fn a_rule_is_hidden_by_an_earlier_one_with_the_same_or_wider_clients_names_and_addresses() {
        for rules in [
            &["n=example.com", "n=www.example.com"][..],
            &["n=example.com", "n=example.com"],
            &["", "c=2001:db8::/32"],
            &["c=2001:db8::/32", "c=2001:db8:1::/48 4=10.0.0.0/8 n=a"],
            &["4=10.0.0.0/8", "4=10.1.0.0/16 4=10.2.0.0/16"],
            &["n=b n=a", "n=x.a n=b"],
        ] {
            assert_eq!(found(rules), [(2, 1)], "{rules:?}");
        }
        assert_eq!(found(&["n=a", "n=b", "c=::1/128", "c=::1/128 n=x.b", "n=c.b"]), [(4, 2), (5, 2)]);
    }

    #[test]
    fn a_rule_that_matches_anything_more_is_not_hidden() {
        for rules in [
            &["n=www.example.com", "n=example.com"][..],
            &["c=2001:db8::/32", ""],
            &["c=2001:db8::/32 n=a", "c=2001:db8::/32"],
            &["c=::/0", "c=10.0.0.0/8"],
            &["4=10.0.0.0/8", "4=10.1.0.0/16 4=192.168.0.0/16"],
            &["n=example.com", "n=notexample.com"],
        ] {
            assert_eq!(found(rules), [], "{rules:?}");
        }
    }

    #[test]
    fn the_search_among_many_rules_has_an_end() {
        let rules: Vec<Rule> = (0..60_000u32)
            .map(|number| {
                let address = std::net::Ipv6Addr::from(0x2001_0db8 << 96 | u128::from(number) << 64);
                Rule { clients: vec![Network { address: address.into(), length: 64 }], ..Rule::default() }
            })
            .collect();
        assert_eq!(shadowed(&rules), []);
    }
}
