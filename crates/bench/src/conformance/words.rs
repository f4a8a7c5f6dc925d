//! What a case asks of a configuration, in the words of each server: the settings of its template and further lines. What
//! a server has no word for is the reason why a case does not apply to it.
//!
//! Each keeps its defaults, but for what would stand between the cases and DNS64: built-in zones for reserved names, and
//! resource bounds made for measurements. All listen on both loopback addresses.

use conform::ConfigDemands;
use std::net::Ipv6Addr;

/// A prefix and its length.
type Prefix = (Ipv6Addr, u8);

/// What a template is told for a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setup {
    /// The prefix.
    pub(super) prefix: Prefix,
    /// Further lines in the server's own syntax.
    pub(super) options: Vec<String>,
}

/// The words of a server, by the name of its template. None: it reads the configuration of the cases itself.
pub(super) type Words = fn(&ConfigDemands, u16) -> Result<Setup, String>;

/// Finds them.
pub(super) fn find(name: &str) -> Option<Words> {
    match name {
        "unbound" => Some(unbound),
        "bind" => Some(bind),
        "powerdns" => Some(powerdns),
        "knot-resolver" => Some(knot_resolver),
        "coredns" => Some(coredns),
        "dnsproxy" => Some(dnsproxy),
        _ => None,
    }
}

fn unbound(wishes: &ConfigDemands, port: u16) -> Result<Setup, String> {
    let prefix = one_prefix(wishes)?;
    no_bind_options(wishes)?;
    no_trust(wishes)?;
    // Its zones for reserved names (RFC 6303, RFC 6761) stand before dns64.
    let mut options = vec![
        format!("interface: 127.0.0.1@{port}"),
        "outgoing-range: 512".to_owned(),
        "num-queries-per-thread: 256".to_owned(),
        "unblock-lan-zones: yes".to_owned(),
        "insecure-lan-zones: yes".to_owned(),
        "local-zone: \"invalid.\" nodefault".to_owned(),
    ];
    if all_or_default(wishes)? {
        options.push("dns64-synthall: yes".to_owned());
    }
    if wishes.stale {
        options.push("serve-expired: yes".to_owned());
    }
    Ok(Setup { prefix, options })
}

fn bind(wishes: &ConfigDemands, port: u16) -> Result<Setup, String> {
    no_trust(wishes)?;
    let yes_no = |yes: bool| if yes { "yes" } else { "no" };
    let mut common = String::new();
    if let Some(clients) = &wishes.clients {
        common += &format!("clients {{ {} }}; ", list(clients.iter().map(String::as_str)));
    }
    if let Some(exclude) = &wishes.exclude {
        common += &format!("exclude {{ {} }}; ", list(exclude.iter().map(String::as_str)));
    }
    if let Some(suffix) = wishes.suffix {
        common += &format!("suffix {suffix}; ");
    }
    common += &format!("recursive-only {}; ", yes_no(wishes.recursive_only));
    common += &format!("break-dnssec {};", yes_no(wishes.break_dnssec));
    let mut options = vec![format!("listen-on port {port} {{ 127.0.0.1; }};")];
    let block = |(prefix, length): &Prefix, mapped: &str| {
        format!("dns64 {prefix}/{length} {{ mapped {{ {mapped} }}; {common} }};")
    };
    // Of the elements of a list the first that matches decides; so does the first of the rules.
    let mut earlier = Vec::new();
    for rule in &wishes.mapped {
        let own = rule.ipv4.iter().cloned();
        let mapped: Vec<String> = earlier.iter().cloned().chain(own).collect();
        let mapped = list(mapped.iter().map(String::as_str));
        options.extend(rule.prefixes.iter().map(|prefix| block(prefix, &mapped)));
        earlier.extend(rule.ipv4.iter().map(|network| format!("!{network}")));
    }
    earlier.push("any".to_owned());
    let mapped = list(earlier.iter().map(String::as_str));
    options.extend(wishes.prefixes.iter().map(|prefix| block(prefix, &mapped)));
    if !wishes.ipv4only {
        options.push("ipv4only-enable no;".to_owned());
    }
    if wishes.stale {
        options.extend(["stale-cache-enable yes;", "stale-answer-enable yes;"].map(str::to_owned));
    }
    Ok(Setup { prefix: wishes.prefixes[0], options })
}

fn powerdns(wishes: &ConfigDemands, _port: u16) -> Result<Setup, String> {
    let prefix = one_prefix_of_96(wishes)?;
    no_bind_options(wishes)?;
    no_exclusion(wishes)?;
    no_trust(wishes)?;
    // Its default validates what a client asks to be validated; the cases have signatures that nobody made.
    let options = ["local-address=::1,127.0.0.1", "dnssec=process-no-validate", "max-mthreads=256"];
    let mut options = options.map(str::to_owned).to_vec();
    if wishes.stale {
        options.push("serve-stale-extensions=1440".to_owned());
    }
    Ok(Setup { prefix, options })
}

fn knot_resolver(wishes: &ConfigDemands, port: u16) -> Result<Setup, String> {
    let prefix = one_prefix_of_96(wishes)?;
    no_bind_options(wishes)?;
    no_trust(wishes)?;
    let mut options = vec![format!("net.listen('127.0.0.1', {port}, {{ kind = 'dns' }})")];
    if let Some(exclude) = &wishes.exclude {
        let quoted: Vec<String> = exclude.iter().map(|network| format!("'{network}'")).collect();
        options.push(format!(
            "dns64.config({{ prefix = '{}', exclude_subnets = {{ {} }} }})",
            prefix.0,
            quoted.join(", ")
        ));
    }
    if wishes.stale {
        options.push("modules.load('serve_stale < cache')".to_owned());
    }
    Ok(Setup { prefix, options })
}

fn coredns(wishes: &ConfigDemands, _port: u16) -> Result<Setup, String> {
    let prefix = one_prefix(wishes)?;
    no_bind_options(wishes)?;
    let mut options = vec!["bind ::1 127.0.0.1".to_owned()];
    if all_or_default(wishes)? {
        let (address, length) = prefix;
        options.push(format!(
            "dns64 {{\n    prefix {address}/{length}\n    allow_ipv4\n    translate_all\n  }}"
        ));
    }
    if wishes.stale {
        options.push("cache {\n    serve_stale\n  }".to_owned());
    }
    Ok(Setup { prefix, options })
}

fn dnsproxy(wishes: &ConfigDemands, _port: u16) -> Result<Setup, String> {
    no_bind_options(wishes)?;
    no_exclusion(wishes)?;
    let mut options = vec!["--listen=127.0.0.1".to_owned()];
    let further = wishes.prefixes.iter().skip(1);
    options.extend(further.map(|(prefix, length)| format!("--dns64-prefix={prefix}/{length}")));
    if wishes.stale {
        options.push("--cache-optimistic".to_owned());
    }
    Ok(Setup { prefix: wishes.prefixes[0], options })
}

fn one_prefix(wishes: &ConfigDemands) -> Result<Prefix, String> {
    match wishes.prefixes.as_slice() {
        [prefix] => Ok(*prefix),
        _ => Err("no option for several prefixes".to_owned()),
    }
}

fn one_prefix_of_96(wishes: &ConfigDemands) -> Result<Prefix, String> {
    let prefix = one_prefix(wishes)?;
    if prefix.1 == 96 {
        Ok(prefix)
    } else {
        Err("no option for prefixes of other lengths than 96".to_owned())
    }
}

/// Whether all AAAA records count as absent; an error if only some do.
fn all_or_default(wishes: &ConfigDemands) -> Result<bool, String> {
    match wishes.exclude.as_deref() {
        None => Ok(false),
        Some([all]) if all == "::/0" => Ok(true),
        Some(_) => no_exclusion(wishes).map(|()| false),
    }
}

fn no_exclusion(wishes: &ConfigDemands) -> Result<(), String> {
    refuse(wishes.exclude.is_some(), "AAAA records that count as absent")
}

/// What only BIND has.
fn no_bind_options(wishes: &ConfigDemands) -> Result<(), String> {
    refuse(!wishes.mapped.is_empty(), "prefixes by IPv4 network")?;
    refuse(wishes.clients.is_some(), "clients with and without synthesis")?;
    refuse(wishes.suffix.is_some(), "a suffix")?;
    refuse(wishes.recursive_only, "queries without RD")?;
    refuse(wishes.break_dnssec, "synthesis with DO and CD")
}

/// It validates itself, or nothing is validated.
fn no_trust(wishes: &ConfigDemands) -> Result<(), String> {
    refuse(wishes.trust, "trust in the upstream's validation")
}

fn refuse(is_wished: bool, what: &str) -> Result<(), String> {
    if is_wished { Err(format!("no option for {what}")) } else { Ok(()) }
}

/// The elements of a list of BIND.
fn list<'a>(elements: impl IntoIterator<Item = &'a str>) -> String {
    let elements: Vec<String> = elements.into_iter().map(|element| format!("{element};")).collect();
    if elements.is_empty() { "none;".to_owned() } else { elements.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device;
    use conform::Case;

    fn wishes(config: &str) -> ConfigDemands {
        let line = format!(
            r#"{{"id": "w", "category": "c", "rfc": "RFC 6147 5", "source": "", "level": "MUST", "config": {{"dns64": {config}}},
                "query": {{"name": "a.", "type": "AAAA"}}, "expect": {{}}}}"#
        );
        ConfigDemands::of(&Case::read(&line).unwrap()).unwrap()
    }

    #[test]
    fn every_template_but_ours_has_words() {
        let without: Vec<&str> = device::NAMES.into_iter().filter(|name| find(name).is_none()).collect();
        assert_eq!(without, ["sixfold"]);
    }

    #[test]
    fn what_a_server_has_no_word_for_is_the_reason() {
        let refused = |name: &str, config| find(name).unwrap()(&wishes(config), 53).unwrap_err();
        assert!(refused("knot-resolver", r#"{"prefixes": ["2001:db8::/32"]}"#).contains("96"));
        assert!(refused("unbound", r#"{"exclude-aaaa": ["2001:db8::/32"]}"#).contains("count as absent"));
        assert!(refused("coredns", r#"{"prefixes": ["2001:db8::/32", "64:ff9b::/96"]}"#).contains("several"));
        assert!(refused("dnsproxy", r#"{"suffix": "::1"}"#).contains("suffix"));
        assert!(refused("powerdns", r#"{"recursive-only": true}"#).contains("RD"));
    }

    #[test]
    fn the_rules_of_a_case_are_lists_of_bind_in_which_the_first_match_decides() {
        let config = r#"{"prefixes": ["64:ff9b::/96"], "exclude-aaaa": [], "rule": [
            {"ipv4": ["10.1.0.0/16"], "prefixes": ["2001:db8:1::/96"]}, {"ipv4": ["10.0.0.0/8"], "prefixes": []}]}"#;
        let options = bind(&wishes(config), 5353).unwrap().options;
        let rest = "exclude { none; }; recursive-only no; break-dnssec no;";
        assert_eq!(
            options,
            [
                "listen-on port 5353 { 127.0.0.1; };".to_owned(),
                format!("dns64 2001:db8:1::/96 {{ mapped {{ 10.1.0.0/16; }}; {rest} }};"),
                format!("dns64 64:ff9b::/96 {{ mapped {{ !10.1.0.0/16; !10.0.0.0/8; any; }}; {rest} }};"),
            ]
        );
    }

    #[test]
    fn all_aaaa_records_are_ignored_in_each_server_s_words() {
        let wishes = wishes(r#"{"exclude-aaaa": ["::/0"]}"#);
        for (name, word) in [
            ("unbound", "dns64-synthall: yes"),
            ("bind", "exclude { ::/0; }"),
            ("knot-resolver", "exclude_subnets = { '::/0' }"),
            ("coredns", "translate_all"),
        ] {
            let options = find(name).unwrap()(&wishes, 53).unwrap().options.join("\n");
            assert!(options.contains(word), "{name}: {options}");
        }
    }
}
