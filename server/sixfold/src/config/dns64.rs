//! The table `[dns64]`, with `[dns64.on-failure]` and `[[dns64.rule]]`.

use super::address::{Family, network, prefix};
use super::draft::{Draft, RuleDraft};
use super::fields::{bounded_list, networks, set};
use super::model::{Clients, Dns64, Rule};
use super::report::{Fault, Item, Problems, quoted};
use super::table::Table;
use super::{Name, Network, amount, limits};
use engine::limits::RECORDS;
use engine::settings::{Dnssec, Lookup, OnFailure, Reverse};
use std::net::Ipv6Addr;

/// Reads the table.
pub fn read(mut table: Table<'_>, draft: &mut Draft, problems: &Problems) {
    if let Some(list) = table.list("prefixes", "a prefix", prefix) {
        if let Some(item) = list.get(limits::PREFIXES) {
            let what = format!("more than {} prefixes", limits::PREFIXES);
            problems.add(
                &item.place,
                Fault::new(what, "name only the prefixes that a NAT64 of this network serves"),
            );
        }
        //= RFC 6147 section 5.2: requirement 18; an empty list leaves the well-known prefix in place.
        if !list.is_empty() {
            draft.prefixes = list;
        }
    }
    if let Some(suffix) = table.parse("suffix", "an IPv6 address", suffix) {
        draft.suffix = suffix;
    }
    let dns64 = &mut draft.config.dns64;
    if let Some(networks) = bounded_list(&mut table, "clients", "a network", problems, client) {
        dns64.clients = Clients { networks };
    }
    if let Some(excluded) = networks(&mut table, "exclude-aaaa", Family::V6, problems) {
        dns64.exclude_aaaa = excluded;
    }
    set(&mut dns64.embed_non_global, table.choice("non-global", &[("omit", false), ("embed", true)]));
    if let Some(never) = networks(&mut table, "never-embed", Family::V4, problems) {
        dns64.never_embed = never;
    }
    let lookup_kind = "\"sequential\" or \"parallel\" or \"stagger 20ms\"";
    set(&mut dns64.lookup, table.parse("lookup", lookup_kind, lookup));
    let trusts = [("trust", Some(Dnssec::Trust)), ("off", Some(Dnssec::Off)), ("validate", None)];
    match table.choice("dnssec", &trusts) {
        Some(Item { value: Some(dnssec), .. }) => dns64.dnssec = dnssec,
        Some(Item { value: None, place }) => {
            let remedy = "write \"trust\" and forward to a resolver that validates, or write \"off\"";
            table.reject_unsupported(&place, "dnssec = \"validate\"", remedy);
        }
        None => {}
    }
    set(&mut dns64.break_dnssec, table.boolean("break-dnssec"));
    set(&mut dns64.recursive_only, table.boolean("recursive-only"));
    if let Some(records) = table.integer("max-records", 1..=RECORDS as u64) {
        dns64.max_records = records.value as usize;
    }
    reverse(&mut table, dns64);
    set(&mut dns64.ipv4only_arpa, table.boolean("ipv4only-arpa"));
    on_failure(table.table("on-failure"), draft);
    let rules = table.tables("rule");
    if let Some(rule) = rules.get(limits::RULES) {
        let what = format!("more than {} rules", limits::RULES);
        problems.add(rule.place(), Fault::new(what, "put several clients, names or networks into one rule"));
    }
    draft.rules = rules.into_iter().map(|rule| read_rule(rule, problems)).collect();
    table.finish();
}

/// Parses a network of clients, which is excluded if it follows `!`.
fn client(text: &str) -> Result<(Network, bool), Fault> {
    match text.strip_prefix('!') {
        Some(excluded) => Ok((network(excluded, Family::Both)?, true)),
        None => Ok((network(text, Family::Both)?, false)),
    }
}

fn suffix(text: &str) -> Result<Ipv6Addr, Fault> {
    text.parse().map_err(|_| {
        let help =
            "write the bits after the embedded address as an IPv6 address, like \"::1\"; \"::\" for none";
        Fault::new(format!("{} is not an IPv6 address", quoted(text)), help)
    })
}

fn lookup(text: &str) -> Result<Lookup, Fault> {
    match text {
        "sequential" => Ok(Lookup::Sequential),
        "parallel" => Ok(Lookup::Parallel),
        _ => match text.strip_prefix("stagger ") {
            Some(delay) => Ok(Lookup::Stagger(amount::duration(delay, limits::STAGGER)?.into())),
            None => {
                let what = format!("{} is not a value of `dns64.lookup`", quoted(text));
                Err(Fault::new(
                    what,
                    "write \"sequential\" or \"parallel\" or \"stagger\" and a duration, like \"stagger 20ms\"",
                ))
            }
        },
    }
}

/// Reads the keys for reverse names under the prefixes (RFC 6147 section 5.3.1).
fn reverse(table: &mut Table<'_>, dns64: &mut Dns64) {
    let modes = [("cname", Reverse::Cname), ("local", Reverse::Local), ("off", Reverse::Off)];
    set(&mut dns64.ptr, table.choice("ptr", &modes));
    set(&mut dns64.ptr_server, table.parse("ptr-server", "a domain name", Name::configured));
    set(&mut dns64.ptr_contact, table.parse("ptr-contact", "a domain name", Name::configured));
}

fn on_failure(mut table: Table<'_>, draft: &mut Draft) {
    let policy = &mut draft.config.dns64.on_failure;
    let actions = [("synthesize", OnFailure::Synthesize), ("pass", OnFailure::Pass)];
    for (key, field) in [
        ("servfail", &mut policy.servfail),
        ("refused", &mut policy.refused),
        ("formerr", &mut policy.formerr),
        ("notimp", &mut policy.notimp),
        ("timeout", &mut policy.timeout),
        ("nxdomain", &mut policy.nxdomain),
    ] {
        set(field, table.choice(key, &actions));
    }
    table.finish();
}

fn read_rule(mut table: Table<'_>, problems: &Problems) -> RuleDraft {
    let place = table.place().clone();
    let mut rule =
        Rule { clients: rule_networks(&mut table, "clients", Family::Both, problems), ..Rule::default() };
    if let Some(entry) = table.get("names") {
        entry.refuse_empty("delete the key: a rule without it applies to all names");
        if let Some(names) = entry.list("a domain name", Name::covering) {
            rule.names = names.into_iter().map(|item| item.value).collect();
        }
    }
    rule.ipv4 = rule_networks(&mut table, "ipv4", Family::V4, problems);
    let prefixes = table.list("prefixes", "a prefix", prefix);
    if let Some(list) = &prefixes
        && let Some(item) = list.get(limits::PREFIXES)
    {
        let what = format!("more than {} prefixes", limits::PREFIXES);
        problems
            .add(&item.place, Fault::new(what, "name only the prefixes that a NAT64 of this network serves"));
    }
    if let Some(real) = table.choice("real-aaaa", &[("prefer", false), ("ignore", true)]) {
        rule.ignores_real = real.value;
        if real.value && !rule.ipv4.is_empty() {
            let what = "a rule with `ipv4` cannot ignore AAAA records";
            let help = "the IPv4 addresses are known only after the decision on AAAA records: delete `ipv4`, or write \"prefer\"";
            problems.add(&real.place, Fault::new(what.to_owned(), help));
        }
    }
    let is_empty = table.is_empty();
    table.finish();
    RuleDraft { place, rule, prefixes, is_empty }
}

/// Reads networks of a rule. An empty list is an error: it would match nothing, although an absent list matches everything.
fn rule_networks(
    table: &mut Table<'_>,
    key: &'static str,
    family: Family,
    problems: &Problems,
) -> Vec<Network> {
    if let Some(entry) = table.get(key) {
        entry.refuse_empty("delete the key: a rule without it applies to all of them");
    }
    networks(table, key, family, problems).unwrap_or_default()
}
