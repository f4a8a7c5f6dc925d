//! Recognition of a dialect by its content: each line votes for the dialects in which it makes sense.

use crate::Dialect;

/// Sections of PowerDNS Recursor's YAML.
const YAML_SECTIONS: &str =
    "incoming outgoing recursor recordcache packetcache dnssec logging webservice carbon ecs nod snmp";

/// Clauses of Unbound.
const UNBOUND_CLAUSES: &str = "server remote-control forward-zone stub-zone auth-zone view python dynlib dnscrypt cachedb ipset rpz dnstap \
     include include-toplevel";

/// First words of BIND's statements on the top level.
const BIND_WORDS: &str = "options zone acl view logging controls include dns64 key masters primaries server statistics-channels trust-anchors";

/// Plugins of CoreDNS that stand in most files.
const COREDNS_WORDS: &str = "forward cache dns64 errors health kubernetes prometheus loop reload loadbalance ready log bind hosts acl template rewrite \
     import bufsize file any";

/// Keywords of TOTD.
const TOTD_WORDS: &str = "forwarder prefix port pidfile retry interfaces stf scoped allow http-port";

/// Keywords of MTD64 and mtd64-ng.
const MTD64_WORDS: &str = "nameserver selection-mode dns64-prefix debugging timeout-time timeout-time-sec timeout-time-usec resend-attempts \
     response-maxlength num-threads port";

/// Dialect of a file; `None` if no dialect has the most votes.
pub fn recognize(text: &str) -> Option<Dialect> {
    let mut votes = [0_usize; Dialect::ALL.len()];
    for line in text.lines() {
        for (count, vote) in votes.iter_mut().zip(votes_of(line)) {
            *count += vote;
        }
    }
    let most = *votes.iter().max()?;
    let mut winners = Dialect::ALL.into_iter().zip(votes).filter(|(_, count)| *count == most && most > 0);
    let (winner, _) = winners.next()?;
    winners.next().is_none().then_some(winner)
}

/// Votes of a line, in the order of [`Dialect::ALL`].
fn votes_of(line: &str) -> [usize; Dialect::ALL.len()] {
    let has = |list: &str, word: &str| list.split_whitespace().any(|one| one == word);
    let is_indented = line.starts_with([' ', '\t']);
    let line = line.trim();
    if line.is_empty() || line.starts_with(['#', ';']) || line.starts_with("//") || line.starts_with("/*") {
        return [0; 6];
    }
    let first = line.split_whitespace().next().unwrap_or_default();
    let opens = line.ends_with('{');
    let key = line.split([':', '=']).next().unwrap_or_default();
    let is_key =
        !key.is_empty() && key.bytes().all(|octet| octet.is_ascii_alphanumeric() || b"-_+".contains(&octet));
    let separator = line[key.len()..].chars().next();
    let bare = !first.contains([':', '=']);
    // Passwords and addresses have colons too, but no blank after them.
    let is_label =
        separator == Some(':') && line[key.len() + 1..].chars().next().is_none_or(char::is_whitespace);
    let bind = usize::from(line.ends_with(';'))
        + 2 * usize::from(has(BIND_WORDS, first) && (opens || line.ends_with(';')));
    let is_yaml_section = !is_indented && line.ends_with(':') && has(YAML_SECTIONS, key);
    let unbound = match is_key && is_label {
        true if has(UNBOUND_CLAUSES, key) => 2,
        true => usize::from(!key.contains('_')),
        false => 0,
    };
    let yaml = 5 * usize::from(is_yaml_section)
        + usize::from(line.starts_with("- "))
        + usize::from(is_key && is_label && key.contains('_'));
    let old = usize::from(is_key && separator == Some('='));
    let is_word_line = !line.ends_with(';') && bare;
    let coredns = 2 * usize::from(opens && !has(BIND_WORDS, first))
        + usize::from(!line.ends_with(';') && has(COREDNS_WORDS, first));
    let totd = usize::from(is_word_line && has(TOTD_WORDS, first)) + usize::from(first == "forwarder");
    let mtd64 = usize::from(is_word_line && has(MTD64_WORDS, first)) + usize::from(first == "nameserver");
    [bind, unbound, yaml + 2 * old, coredns, totd, mtd64]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_lines_of_each_dialect_are_recognized() {
        for (text, dialect) in [
            ("options {\n dns64 64:ff9b::/96 { };\n};\n", Dialect::Bind),
            ("// note\ninclude \"/etc/bind/named.conf.options\";\n", Dialect::Bind),
            ("server:\n dns64-prefix: 64:ff9b::/96\n", Dialect::Unbound),
            ("include: \"/etc/unbound/unbound.conf.d/*.conf\"\n", Dialect::Unbound),
            ("dns64-prefix=64:ff9b::/96\n", Dialect::PowerDns),
            ("recursor:\n  dns64_prefix: 64:ff9b::/96\n", Dialect::PowerDns),
            ("incoming:\n  listen:\n    - 127.0.0.1\n", Dialect::PowerDns),
            (".:53 {\n  dns64\n  forward . 192.0.2.1\n}\n", Dialect::CoreDns),
            ("example.org {\n  forward . 192.0.2.1\n}\n", Dialect::CoreDns),
            ("forwarder 192.0.2.1 port 53\nprefix 2001:db8::\n", Dialect::Totd),
            ("nameserver 192.0.2.1\ndns64-prefix 64:ff9b::/96\n", Dialect::Mtd64),
        ] {
            assert_eq!(recognize(text), Some(dialect), "{text}");
        }
    }

    #[test]
    fn other_texts_are_not_recognized() {
        for text in
            ["", "# a comment\n", "Dear reader,\nthis is a letter.\n", "root:x:0:0:root:/root:/bin/bash\n"]
        {
            assert_eq!(recognize(text), None, "{text}");
        }
    }
}
