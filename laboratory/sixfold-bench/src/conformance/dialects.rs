//! Translation of the configuration that a case needs into the syntax of each server: the settings of its template,
//! further lines and files. If a server has no option for it, the case does not apply to that server, and the missing
//! option is the reason. If it may have one that nothing here writes, the reason is that there is no translation.
//!
//! Each server keeps its defaults, except those that would interfere with DNS64 cases: built-in zones for private reverse
//! names, and resource limits made for measurements. All servers listen on both loopback addresses.

use conform::ConfigDemands;
use conform::config_demands::no_translation;
use conform::configuration::RunParameters;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
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
    /// Statements for the end of the configuration file, outside of the block that has the options.
    pub(super) statements: String,
    /// Further files beside the configuration: name and text.
    pub(super) files: BTreeMap<String, String>,
}

impl DialectSettings {
    fn new(prefix: Prefix, options: Vec<String>) -> DialectSettings {
        DialectSettings { prefix, options, statements: String::new(), files: BTreeMap::new() }
    }
}

/// Translation for the server of a template.
pub(super) type Dialect = fn(&ConfigDemands, &RunParameters) -> Result<DialectSettings, String>;

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

fn unbound(demands: &ConfigDemands, places: &RunParameters) -> Result<DialectSettings, String> {
    let prefix = single_prefix(demands)?;
    refuse_bind_options(demands)?;
    refuse_trust(demands)?;
    let mut options = vec![
        format!("interface: 127.0.0.1@{}", places.port),
        "outgoing-range: 512".to_owned(),
        "num-queries-per-thread: 256".to_owned(),
    ];
    if !demands.empty_zones {
        // Its built-in zones for private reverse names (RFC 6303) would answer before the upstream is asked.
        options.extend(["unblock-lan-zones: yes", "insecure-lan-zones: yes"].map(str::to_owned));
    }
    if excludes_all_aaaa(demands)? {
        options.push("dns64-synthall: yes".to_owned());
    }
    if demands.stale {
        options.push("serve-expired: yes".to_owned());
    }
    if let Some(allow) = &demands.allow {
        // The longest match decides, and of two entries for one network the first. Two halves are longer than the networks
        // of length 0 of the template; loopback networks are allowed by default.
        options.extend(allow.iter().map(|network| format!("access-control: {network} allow")));
        let others = ["::/1", "8000::/1", "0.0.0.0/1", "128.0.0.0/1", "127.0.0.0/8", "::1/128"];
        options.extend(others.map(|network| format!("access-control: {network} refuse")));
    }
    options.extend(demands.records.iter().map(|record| format!("local-data: '{record}'")));
    options.extend(demands.block.iter().map(|name| format!("local-zone: \"{name}.\" always_nxdomain")));
    let mut settings = DialectSettings::new(prefix, options);
    for zone in &demands.policies {
        settings.statements += &format!("rpz:\n  name: \"{}.\"\n  zonefile: \"{}\"\n", zone.name, zone.file);
    }
    if !demands.policies.is_empty() {
        // A name that is given twice has its last value.
        settings.options.push("module-config: \"respip dns64 iterator\"".to_owned());
    }
    Ok(settings)
}

fn bind(demands: &ConfigDemands, places: &RunParameters) -> Result<DialectSettings, String> {
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
    let mut options = vec![format!("listen-on port {} {{ 127.0.0.1; }};", places.port)];
    let mapping = |(prefix, length): &Prefix, mapped: &str| {
        format!("dns64 {prefix}/{length} {{ mapped {{ {mapped} }}; {common} }};")
    };
    // The first matching element of a list decides, as does the first matching rule.
    let mut earlier = Vec::new();
    for rule in &demands.mapped {
        let own = rule.ipv4.iter().cloned();
        let mapped: Vec<String> = earlier.iter().cloned().chain(own).collect();
        let mapped = bind_list(mapped.iter().map(String::as_str));
        options.extend(rule.prefixes.iter().map(|prefix| mapping(prefix, &mapped)));
        earlier.extend(rule.ipv4.iter().map(|network| format!("!{network}")));
    }
    earlier.push("any".to_owned());
    let mapped = bind_list(earlier.iter().map(String::as_str));
    options.extend(demands.prefixes.iter().map(|prefix| mapping(prefix, &mapped)));
    // BIND has its built-in zones only for names that are not under `forward only`, so those of the template have none.
    // `forward first` for such a name changes nothing else: the built-in zone answers.
    let upstream = places.upstream;
    let forward_first = |name: &str| {
        format!(
            "zone \"{name}\" {{ type forward; forward first; forwarders {{ {} port {}; }}; }};\n",
            upstream.ip(),
            upstream.port()
        )
    };
    options.push("empty-zones-enable yes;".to_owned());
    let mut statements = forward_first("home.arpa") + &forward_first("resolver.arpa");
    if demands.ipv4only {
        statements += &forward_first("ipv4only.arpa");
    } else {
        options.push("ipv4only-enable no;".to_owned());
    }
    if demands.empty_zones {
        statements += &(forward_first("in-addr.arpa") + &forward_first("ip6.arpa"));
    }
    if let Some(allow) = &demands.allow {
        let allow = bind_list(allow.iter().map(String::as_str));
        options.extend(
            ["allow-query", "allow-query-cache", "allow-recursion"]
                .map(|key| format!("{key} {{ {allow} }};")),
        );
    }
    let mut files = own_zones(demands);
    for file in files.keys() {
        let name = file.trim_end_matches(ZONE_FILE);
        statements += &format!("zone \"{name}\" {{ type primary; file \"{file}\"; }};\n");
    }
    let policies = policy_zones(demands, &mut files);
    if !policies.is_empty() {
        let names: String = policies.iter().map(|(name, _)| format!("zone \"{name}\"; ")).collect();
        options.push(format!("response-policy {{ {names}}};"));
    }
    for (name, file) in policies {
        statements += &format!("zone \"{name}\" {{ type primary; file \"{file}\"; }};\n");
    }
    if demands.stale {
        options.extend(["stale-cache-enable yes;", "stale-answer-enable yes;"].map(str::to_owned));
    }
    Ok(DialectSettings { prefix: demands.prefixes[0], options, statements, files })
}

fn powerdns(demands: &ConfigDemands, places: &RunParameters) -> Result<DialectSettings, String> {
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
    if demands.empty_zones {
        options.push("serve-rfc1918=yes".to_owned());
    }
    if let Some(allow) = &demands.allow {
        options.push(format!("allow-from={}", allow.join(",")));
    }
    let folder = places.directory.display();
    let mut files = own_zones(demands);
    if !files.is_empty() {
        let zone = |file: &String| format!("{}={folder}/{file}", file.trim_end_matches(ZONE_FILE));
        let zones: Vec<String> = files.keys().map(zone).collect();
        options.push(format!("auth-zones={}", zones.join(",")));
    }
    let policies = policy_zones(demands, &mut files);
    if !policies.is_empty() {
        // Policy zones are configured in Lua.
        let line = |(name, file): (&str, &str)| {
            format!("rpzFile(\"{folder}/{file}\", {{ policyName = \"{name}\" }})\n")
        };
        files.insert("policies.lua".to_owned(), policies.into_iter().map(line).collect());
        options.push(format!("lua-config-file={folder}/policies.lua"));
    }
    Ok(DialectSettings { files, ..DialectSettings::new(prefix, options) })
}

fn knot_resolver(demands: &ConfigDemands, places: &RunParameters) -> Result<DialectSettings, String> {
    let prefix = single_prefix_of_96(demands)?;
    refuse_bind_options(demands)?;
    refuse_trust(demands)?;
    refuse_local_settings(demands)?;
    let mut options = vec![format!("net.listen('127.0.0.1', {}, {{ kind = 'dns' }})", places.port)];
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
    Ok(DialectSettings::new(prefix, options))
}

fn coredns(demands: &ConfigDemands, _places: &RunParameters) -> Result<DialectSettings, String> {
    let prefix = single_prefix(demands)?;
    refuse_bind_options(demands)?;
    refuse_local_settings(demands)?;
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
    Ok(DialectSettings::new(prefix, options))
}

fn dnsproxy(demands: &ConfigDemands, _places: &RunParameters) -> Result<DialectSettings, String> {
    refuse_bind_options(demands)?;
    refuse_local_settings(demands)?;
    refuse_exclusion(demands)?;
    let mut options = vec!["--listen=127.0.0.1".to_owned()];
    let further = demands.prefixes.iter().skip(1);
    options.extend(further.map(|(prefix, length)| format!("--dns64-prefix={prefix}/{length}")));
    if demands.stale {
        options.push("--cache-optimistic".to_owned());
    }
    Ok(DialectSettings::new(demands.prefixes[0], options))
}

fn single_prefix(demands: &ConfigDemands) -> Result<Prefix, String> {
    match demands.prefixes.as_slice() {
        [prefix] => Ok(*prefix),
        _ => Err(no_option("several prefixes")),
    }
}

fn single_prefix_of_96(demands: &ConfigDemands) -> Result<Prefix, String> {
    let prefix = single_prefix(demands)?;
    if prefix.1 == 96 { Ok(prefix) } else { Err(no_option("prefixes of other lengths than 96")) }
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
    if is_demanded { Err(no_option(what)) } else { Ok(()) }
}

/// Reason why a case does not apply: its server cannot be configured so.
fn no_option(what: &str) -> String {
    format!("the server has no option for {what}")
}

/// Refuses settings of which some servers have one, but which nothing here writes for this server.
fn refuse_local_settings(demands: &ConfigDemands) -> Result<(), String> {
    let settings = [
        (demands.allow.is_some(), "server.allow"),
        (!demands.records.is_empty(), "local.records"),
        (demands.empty_zones, "local.empty-zones"),
        (!demands.block.is_empty(), "filter.block"),
        (!demands.policies.is_empty(), "filter.rpz"),
    ];
    match settings.into_iter().find(|(is_demanded, _)| *is_demanded) {
        Some((_, key)) => Err(no_translation(key)),
        None => Ok(()),
    }
}

/// End of the name of a zone's file; the rest is the name of the zone.
const ZONE_FILE: &str = ".zone";

/// Policy zone made from a list of names, and its file.
const BLOCK_ZONE: &str = "block.invalid";
const BLOCK_FILE: &str = "block.rpz";

/// Head of a zone without records.
const ZONE_HEAD: &str =
    "$TTL 60\n@ 60 IN SOA localhost. nobody.invalid. 1 3600 1200 604800 60\n@ 60 IN NS localhost.\n";

/// Authoritative zones that have the records of a case: each is the zone above its records. The keys are the names of
/// the files.
fn own_zones(demands: &ConfigDemands) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for record in &demands.records {
        let owner = record.split_whitespace().next().unwrap_or_default().trim_end_matches('.');
        let zone = owner.split_once('.').map_or("", |(_, zone)| zone).to_ascii_lowercase();
        let head = || format!("$ORIGIN {zone}.\n{ZONE_HEAD}");
        let text: &mut String = files.entry(format!("{zone}{ZONE_FILE}")).or_insert_with(head);
        let _ = writeln!(text, "{record}");
    }
    files
}

/// Names and files of the policy zones of a case; the one for blocked names is added to the files.
fn policy_zones<'d>(
    demands: &'d ConfigDemands,
    files: &mut BTreeMap<String, String>,
) -> Vec<(&'d str, &'d str)> {
    let zones = demands.policies.iter().map(|zone| (zone.name.as_str(), zone.file.as_str()));
    let mut zones: Vec<(&str, &str)> = zones.collect();
    if !demands.block.is_empty() {
        files.insert(BLOCK_FILE.to_owned(), block_policy(demands));
        zones.push((BLOCK_ZONE, BLOCK_FILE));
    }
    zones
}

/// Policy zone under which the blocked names and all names below them do not exist.
fn block_policy(demands: &ConfigDemands) -> String {
    let names: BTreeSet<&String> = demands.block.iter().collect();
    let rules = names.into_iter().map(|name| format!("{name} IN CNAME .\n*.{name} IN CNAME .\n"));
    format!("$ORIGIN {BLOCK_ZONE}.\n{ZONE_HEAD}{}", rules.collect::<String>())
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
    use std::net::SocketAddr;
    use std::path::Path;

    fn wishes(config: &str) -> ConfigDemands {
        let line = format!(
            r#"{{"id": "w", "category": "c", "rfc": "RFC 6147 5", "source": "", "level": "MUST", "config": {{"dns64": {config}}},
                "query": {{"name": "a.", "type": "AAAA"}}, "expect": {{}}}}"#
        );
        ConfigDemands::of(&Case::read(&line).unwrap()).unwrap()
    }

    /// Settings of a server for a case.
    fn settings(name: &str, demands: &ConfigDemands) -> Result<DialectSettings, String> {
        let places = RunParameters {
            directory: Path::new("/d"),
            upstream: SocketAddr::from(([127, 0, 0, 1], 5302)),
            port: 5353,
            metrics_port: 0,
            user: "u",
        };
        find(name).unwrap()(demands, &places)
    }

    #[test]
    fn every_template_but_sixfold_has_a_dialect() {
        let without: Vec<&str> = device::NAMES.into_iter().filter(|name| find(name).is_none()).collect();
        assert_eq!(without, ["sixfold"]);
    }

    #[test]
    fn a_missing_option_of_a_server_is_the_reason() {
        let refused = |name: &str, config| settings(name, &wishes(config)).unwrap_err();
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
        let options = settings("bind", &wishes(config)).unwrap().options;
        let rest = "exclude { none; }; recursive-only no; break-dnssec no;";
        assert_eq!(
            options,
            [
                "listen-on port 5353 { 127.0.0.1; };".to_owned(),
                format!("dns64 2001:db8:1::/96 {{ mapped {{ 10.1.0.0/16; }}; {rest} }};"),
                format!("dns64 64:ff9b::/96 {{ mapped {{ !10.1.0.0/16; !10.0.0.0/8; any; }}; {rest} }};"),
                "empty-zones-enable yes;".to_owned(),
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
            let options = settings(name, &demands).unwrap().options.join("\n");
            assert!(options.contains(word), "{name}: {options}");
        }
    }

    /// Demands of a case with a policy zone, a blocked name, own records and one client network.
    fn local_demands() -> ConfigDemands {
        let line = r#"{"id": "w", "category": "c", "rfc": "RFC 6147 5", "source": "", "level": "MUST",
            "config": {"filter": {"rpz": ["{dir}/p.rpz"], "block": ["ads.example"]}, "server": {"allow": ["::1/128"]},
                       "local": {"records": ["nas.HOME. 60 IN A 192.0.2.1", "a.b.home. 60 IN A 192.0.2.2"]}},
            "files": {"p.rpz": "$ORIGIN policy.test.\n"},
            "query": {"name": "a.", "type": "AAAA"}, "expect": {}}"#;
        ConfigDemands::of(&Case::read(&line.replace('\n', " ")).unwrap()).unwrap()
    }

    #[test]
    fn local_settings_are_written_as_each_server_reads_them() {
        for (name, words) in [
            (
                "unbound",
                &[
                    "access-control: ::1/128 allow",
                    "access-control: 8000::/1 refuse",
                    "local-data: 'nas.HOME. 60 IN A 192.0.2.1'",
                    "local-zone: \"ads.example.\" always_nxdomain",
                    "rpz:\n  name: \"policy.test.\"\n  zonefile: \"p.rpz\"",
                ][..],
            ),
            (
                "bind",
                &[
                    "allow-query { ::1/128; };",
                    "response-policy { zone \"policy.test\"; zone \"block.invalid\"; };",
                    "zone \"home\" { type primary; file \"home.zone\"; };",
                    "zone \"b.home\" { type primary; file \"b.home.zone\"; };",
                    "ads.example IN CNAME .\n*.ads.example IN CNAME .\n",
                ],
            ),
            (
                "powerdns",
                &[
                    "allow-from=::1/128",
                    "auth-zones=b.home=/d/b.home.zone,home=/d/home.zone",
                    "lua-config-file=/d/policies.lua",
                    "rpzFile(\"/d/p.rpz\", { policyName = \"policy.test\" })",
                ],
            ),
        ] {
            let DialectSettings { options, statements, files, .. } =
                settings(name, &local_demands()).unwrap();
            let files: Vec<String> = files.into_values().collect();
            let text = format!("{}\n{statements}\n{}", options.join("\n"), files.join("\n"));
            for word in words {
                assert!(text.contains(word), "{name}: no {word} in\n{text}");
            }
        }
        for name in ["knot-resolver", "coredns", "dnsproxy"] {
            let reason = settings(name, &local_demands()).unwrap_err();
            assert_eq!(reason, "our template has no translation for server.allow", "{name}");
        }
    }
}
