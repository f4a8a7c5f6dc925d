//! Warnings about prefixes that are allowed but violate RFC 6052 or overlap. They are not errors: only the operator knows
//! the behaviour of the translator.

use super::Dns64;
use pref64::Pref64;

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
