//! Translation of the configuration that a case needs into the syntax of each server: the settings of its template and
//! further lines. If a server has no option for it, the case does not apply to that server, and the missing option is
//! the reason.
//!
//! Each server keeps its defaults, except those that would interfere with DNS64 cases: built-in zones for reserved
//! names, and resource limits made for measurements. All servers listen on both loopback addresses.

use conform::ConfigDemands;
use std::net::Ipv6Addr;

/// A prefix and its length.
type Prefix = (Ipv6Addr, u8);

/// Settings of a template for a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DialectSettings {
    /// The DNS64 prefix.
    pub(super) prefix: Prefix,
    /// Further lines in the server's own syntax.
    pub(super) options: Vec<String>,
}

/// Translation for the server of a template; the second argument is the port to listen on.
pub(super) type Dialect = fn(&ConfigDemands, u16) -> Result<DialectSettings, String>;

/// Finds the translation for a template. `None` if its server reads the configuration of the cases itself.
pub(super) fn find(name: &str) -> Option<Dialect> {
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

fn unbound(demands: &ConfigDemands, port: u16) -> Result<DialectSettings, String> {
    let prefix = single_prefix(demands)?;
    refuse_bind_options(demands)?;
    refuse_trust(demands)?;
    // Its built-in zones for reserved names (RFC 6303, RFC 6761) would answer before dns64.
    let mut options = vec![
        format!("interface: 127.0.0.1@{port}"),
        "outgoing-range: 512".to_owned(),
        "num-queries-per-thread: 256".to_owned(),
        "unblock-lan-zones: yes".to_owned(),
        "insecure-lan-zones: yes".to_owned(),
        "local-zone: \"invalid.\" nodefault".to_owned(),
    ];
    if excludes_all_aaaa(demands)? {
        options.push("dns64-synthall: yes".to_owned());
    }
    if demands.stale {
        options.push("serve-expired: yes".to_owned());
    }
    Ok(DialectSettings { prefix, options })
}

fn bind(demands: &ConfigDemands, port: u16) -> Result<DialectSettings, String> {
    refuse_trust(demands)?;
    let yes_no = |yes: bool| if yes { "yes" } else { "no" };
    let mut common = String::new();
    if let Some(clients) = &demands.clients {
        common += &format!("clients {{ {} }}; ", bind_list(clients.iter().map(String::as_str)));
    }
    if let Some(exclude) = &demands.exclude {
        common += &format!("exclude {{ {} }}; ", bind_list(exclude.iter().map(String::as_str)));
    }
    if let Some(suffix) = demands.suffix {
        common += &format!("suffix {suffix}; ");
    }
    common += &format!("recursive-only {}; ", yes_no(demands.recursive_only));
    common += &format!("break-dnssec {};", yes_no(demands.break_dnssec));
    let mut options = vec![format!("listen-on port {port} {{ 127.0.0.1; }};")];
    let block = |(prefix, length): &Prefix, mapped: &str| {
        format!("dns64 {prefix}/{length} {{ mapped {{ {mapped} }}; {common} }};")
    };
    // The first matching element of a list decides, as does the first matching rule.
    let mut earlier = Vec::new();
    for rule in &demands.mapped {
        let own = rule.ipv4.iter().cloned();
        let mapped: Vec<String> = earlier.iter().cloned().chain(own).collect();
        let mapped = bind_list(mapped.iter().map(String::as_str));
        options.extend(rule.prefixes.iter().map(|prefix| block(prefix, &mapped)));
        earlier.extend(rule.ipv4.iter().map(|network| format!("!{network}")));
    }
    earlier.push("any".to_owned());
    let mapped = bind_list(earlier.iter().map(String::as_str));
    options.extend(demands.prefixes.iter().map(|prefix| block(prefix, &mapped)));
    if !demands.ipv4only {
        options.push("ipv4only-enable no;".to_owned());
    }
    if demands.stale {
        options.extend(["stale-cache-enable yes;", "stale-answer-enable yes;"].map(str::to_owned));
    }
    Ok(DialectSettings { prefix: demands.prefixes[0], options })
}

fn powerdns(demands: &ConfigDemands, _port: u16) -> Result<DialectSettings, String> {
    let prefix = single_prefix_of_96(demands)?;
    refuse_bind_options(demands)?;
    refuse_exclusion(demands)?;
    refuse_trust(demands)?;
    // By default it validates if a client asks for validation; the signatures in the cases are invented.
    let options = ["local-address=::1,127.0.0.1", "dnssec=process-no-validate", "max-mthreads=256"];
    let mut options = options.map(str::to_owned).to_vec();
    if demands.stale {
        options.push("serve-stale-extensions=1440".to_owned());
    }
    Ok(DialectSettings { prefix, options })
}

fn knot_resolver(demands: &ConfigDemands, port: u16) -> Result<DialectSettings, String> {
    let prefix = single_prefix_of_96(demands)?;
    refuse_bind_options(demands)?;
    refuse_trust(demands)?;
    let mut options = vec![format!("net.listen('127.0.0.1', {port}, {{ kind = 'dns' }})")];
    if let Some(exclude) = &demands.exclude {
        let quoted: Vec<String> = exclude.iter().map(|network| format!("'{network}'")).collect();
        options.push(format!(
            "dns64.config({{ prefix = '{}', exclude_subnets = {{ {} }} }})",
            prefix.0,
            quoted.join(", ")
        ));
    }
    if demands.stale {
        options.push("modules.load('serve_stale < cache')".to_owned());
    }
    Ok(DialectSettings { prefix, options })
}

fn coredns(demands: &ConfigDemands, _port: u16) -> Result<DialectSettings, String> {
    let prefix = single_prefix(demands)?;
    refuse_bind_options(demands)?;
    let mut options = vec!["bind ::1 127.0.0.1".to_owned()];
    if excludes_all_aaaa(demands)? {
        let (address, length) = prefix;
        options.push(format!(
            "dns64 {{\n    prefix {address}/{length}\n    allow_ipv4\n    translate_all\n  }}"
        ));
    }
    if demands.stale {
        options.push("cache {\n    serve_stale\n  }".to_owned());
    }
    Ok(DialectSettings { prefix, options })
}

fn dnsproxy(demands: &ConfigDemands, _port: u16) -> Result<DialectSettings, String> {
    refuse_bind_options(demands)?;
    refuse_exclusion(demands)?;
    let mut options = vec!["--listen=127.0.0.1".to_owned()];
    let further = demands.prefixes.iter().skip(1);
    options.extend(further.map(|(prefix, length)| format!("--dns64-prefix={prefix}/{length}")));
    if demands.stale {
        options.push("--cache-optimistic".to_owned());
    }
    Ok(DialectSettings { prefix: demands.prefixes[0], options })
}

fn single_prefix(demands: &ConfigDemands) -> Result<Prefix, String> {
    match demands.prefixes.as_slice() {
        [prefix] => Ok(*prefix),
        _ => Err("no option for several prefixes".to_owned()),
    }
}

fn single_prefix_of_96(demands: &ConfigDemands) -> Result<Prefix, String> {
    let prefix = single_prefix(demands)?;
    if prefix.1 == 96 {
        Ok(prefix)
    } else {
        Err("no option for prefixes of other lengths than 96".to_owned())
    }
}

/// Returns true if all AAAA records count as absent. Returns an error if only some do.
fn excludes_all_aaaa(demands: &ConfigDemands) -> Result<bool, String> {
    match demands.exclude.as_deref() {
        None => Ok(false),
        Some([all]) if all == "::/0" => Ok(true),
        Some(_) => refuse_exclusion(demands).map(|()| false),
    }
}

fn refuse_exclusion(demands: &ConfigDemands) -> Result<(), String> {
    refuse(demands.exclude.is_some(), "AAAA records that count as absent")
}

/// Refuses the options that only BIND has.
fn refuse_bind_options(demands: &ConfigDemands) -> Result<(), String> {
    refuse(!demands.mapped.is_empty(), "prefixes by IPv4 network")?;
    refuse(demands.clients.is_some(), "clients with and without synthesis")?;
    refuse(demands.suffix.is_some(), "a suffix")?;
    refuse(demands.recursive_only, "queries without RD")?;
    refuse(demands.break_dnssec, "synthesis with DO and CD")
}

/// Refuses trust in the upstream: the server validates by itself, or nothing is validated.
fn refuse_trust(demands: &ConfigDemands) -> Result<(), String> {
    refuse(demands.trust, "trust in the upstream's validation")
}

fn refuse(is_demanded: bool, what: &str) -> Result<(), String> {
    if is_demanded { Err(format!("no option for {what}")) } else { Ok(()) }
}

/// Formats the elements of a list in BIND's syntax.
fn bind_list<'a>(elements: impl IntoIterator<Item = &'a str>) -> String {
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
    fn every_template_but_sixfold_has_a_dialect() {
        let without: Vec<&str> = device::NAMES.into_iter().filter(|name| find(name).is_none()).collect();
        assert_eq!(without, ["sixfold"]);
    }

    #[test]
    fn a_missing_option_of_a_server_is_the_reason() {
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
    fn all_aaaa_records_are_ignored_in_each_server_s_dialect() {
        let demands = wishes(r#"{"exclude-aaaa": ["::/0"]}"#);
        for (name, word) in [
            ("unbound", "dns64-synthall: yes"),
            ("bind", "exclude { ::/0; }"),
            ("knot-resolver", "exclude_subnets = { '::/0' }"),
            ("coredns", "translate_all"),
        ] {
            let options = find(name).unwrap()(&demands, 53).unwrap().options.join("\n");
            assert!(options.contains(word), "{name}: {options}");
        }
    }
}
