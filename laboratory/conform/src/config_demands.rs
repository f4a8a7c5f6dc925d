//! Demands of a case on a server's configuration, in terms that other servers have too: prefixes, excluded AAAA
//! networks, mapped IPv4 networks, records of its own, clients that may ask, blocked names and policy zones.
//!
//! A case is not played to other servers if it sets a key for which there is no such term to another value than its
//! default. The reason names the key; some servers may have an option for it. Nor is a case played whose expectation
//! rests on Sixfold's interface alone, with a configuration that demands nothing else than prefixes.
//!
//! Timeout and number of tries (`[upstream] timeout`, `tries`) are not demanded of others: they bound the time of a
//! case and do not change the answer.

use crate::case::{Case, Plan};
use crate::citation::Citation;
use crate::json::Object;
use crate::message::Flag;
use crate::script::Rule;
use serde_json::Value;
use servers::{Demands, Ipv4Mapping, PolicyZone, no_translation};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Well-known prefix: the prefix of a server without a configured one (RFC 6147 section 5.2).
pub const WELL_KNOWN: (Ipv6Addr, u8) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// Keys that are not translated, each with the JSON value that changes nothing. For `non-global` it is the value under
/// which every address is embedded, as other servers do; if the key is absent, the expectation of the case decides.
const UNTRANSLATED: [(&str, &str); 20] = [
    ("dns64.non-global", r#""embed""#),
    ("dns64.lookup", r#""sequential""#),
    ("dns64.ptr", r#""cname""#),
    ("dns64.ptr-server", r#""localhost.""#),
    ("dns64.ptr-contact", r#""nobody.invalid.""#),
    ("dns64.max-records", r#"64"#),
    ("dns64.on-failure.servfail", r#""synthesize""#),
    ("dns64.on-failure.refused", r#""synthesize""#),
    ("dns64.on-failure.formerr", r#""synthesize""#),
    ("dns64.on-failure.notimp", r#""synthesize""#),
    ("dns64.on-failure.timeout", r#""synthesize""#),
    ("upstream.forwarders", r#"["{upstream}"]"#),
    ("upstream.transport", r#""udp""#),
    ("upstream.select", r#""ordered""#),
    ("cache.size", r#""128MiB""#),
    ("cache.min-ttl", r#""0s""#),
    ("cache.max-ttl", r#""1d""#),
    ("cache.max-negative-ttl", r#""1h""#),
    ("edns.client-subnet", r#""off""#),
    ("edns.udp-size", r#"1232"#),
];

/// Keys that change the duration of a lookup or the work in the background, but not the first answer.
const IGNORED: [&str; 4] = ["upstream.timeout", "upstream.tries", "cache.prefetch", "server.workers"];

/// Reads the demands of a case.
///
/// # Errors
///
/// The reason why the case applies to Sixfold only: it is about Sixfold's file, a reload, or a key that is no feature of other
/// servers.
pub fn of(case: &Case) -> Result<Demands, String> {
    if matches!(case.plan, Plan::Check(_)) {
        return Err("it is about Sixfold's configuration file".to_owned());
    }
    if case.steps().iter().any(|step| step.reload.is_some()) {
        return Err("it reloads Sixfold's configuration".to_owned());
    }
    let mut demands = read(&case.config, &case.files)?;
    demands.trust &= shows_trust(case);
    // Such a case is information about features that others have too; without one it says nothing about them.
    if Citation::of(case) == Citation::Interface && need_only_prefixes(&demands) {
        return Err("it rests on Sixfold's own interface".to_owned());
    }
    Ok(demands)
}

/// True if nothing but prefixes is demanded.
pub fn need_only_prefixes(demands: &Demands) -> bool {
    let prefixes = demands.prefixes.clone();
    *demands == Demands { prefixes, trust: false, ..none() }
}

/// The demands of an empty configuration.
fn none() -> Demands {
    Demands {
        prefixes: vec![WELL_KNOWN],
        special_names: true,
        ipv4only: true,
        trust: true,
        ..Demands::default()
    }
}

fn read(config: &Object, files: &BTreeMap<String, String>) -> Result<Demands, String> {
    let mut demands = none();
    let mut keys = Vec::new();
    flatten("", config, &mut keys);
    for (key, value) in keys {
        take(&mut demands, &key, value, files)?;
    }
    Ok(demands)
}

fn take(
    demands: &mut Demands,
    key: &str,
    value: &Value,
    files: &BTreeMap<String, String>,
) -> Result<(), String> {
    let wrong = || no_translation(&format!("{key} = {value}"));
    match key {
        "dns64.prefixes" => {
            demands.prefixes = prefixes(value).filter(|list| !list.is_empty()).ok_or_else(wrong)?;
        }
        "dns64.exclude-aaaa" => demands.exclude = Some(texts(value).ok_or_else(wrong)?),
        "dns64.clients" => demands.clients = Some(texts(value).ok_or_else(wrong)?),
        "dns64.suffix" => demands.suffix = Some(address(value).ok_or_else(wrong)?),
        "dns64.recursive-only" => demands.recursive_only = value.as_bool().ok_or_else(wrong)?,
        "dns64.break-dnssec" => demands.break_dnssec = value.as_bool().ok_or_else(wrong)?,
        "dns64.ipv4only-arpa" => demands.ipv4only = value.as_bool().ok_or_else(wrong)?,
        "dns64.dnssec" => {
            demands.trust = match value.as_str() {
                Some("trust") => true,
                Some("off") => false,
                _ => return Err(wrong()),
            }
        }
        "dns64.rule" => {
            let rules = value.as_array().ok_or_else(wrong)?;
            for rule in rules {
                let rule = mapped(rule).ok_or_else(|| no_translation("rules by name or client"))?;
                demands.mapped.push(rule);
            }
        }
        // IPv4 networks without a prefix, before all rules.
        "dns64.never-embed" => {
            let ipv4 = texts(value).ok_or_else(wrong)?;
            if !ipv4.is_empty() {
                demands.mapped.insert(0, Ipv4Mapping { ipv4, prefixes: Vec::new() });
            }
        }
        "server.allow" => demands.allow = Some(texts(value).ok_or_else(wrong)?),
        "local.records" => demands.records = texts(value).ok_or_else(wrong)?,
        "local.empty-zones" => demands.empty_zones = value.as_bool().ok_or_else(wrong)?,
        "filter.block" => demands.block = texts(value).ok_or_else(wrong)?,
        "filter.rpz" => {
            let zones = texts(value).ok_or_else(wrong)?;
            let zones = zones.iter().map(|path| policy_zone(path, files).ok_or_else(wrong));
            demands.policies = zones.collect::<Result<_, _>>()?;
        }
        "cache.stale" => demands.stale = value.as_str() != Some("0s"),
        key if IGNORED.contains(&key) => {}
        key => {
            let usual = UNTRANSLATED.iter().find(|(name, _)| *name == key);
            let is_usual = |usual: &str| serde_json::from_str::<Value>(usual).is_ok_and(|it| it == *value);
            if !usual.is_some_and(|(_, usual)| is_usual(usual)) {
                return Err(no_translation(key));
            }
        }
    }
    Ok(())
}

/// Finds a policy zone among the files of a case.
fn policy_zone(path: &str, files: &BTreeMap<String, String>) -> Option<PolicyZone> {
    let file = path.strip_prefix("{dir}/")?;
    let origin = files.get(file)?.lines().find_map(|line| line.strip_prefix("$ORIGIN "))?;
    Some(PolicyZone { name: origin.trim().trim_end_matches('.').to_owned(), file: file.to_owned() })
}

/// True if the case can show that a server trusts the AD bit of the upstream: the case expects AD, or an extended
/// error of the upstream says that the data are bogus.
fn shows_trust(case: &Case) -> bool {
    let mut steps = case.steps().iter();
    steps.any(|step| {
        let expects_ad = step.expect.iter().any(|expect| {
            expect.flags.as_ref().is_some_and(|flags| flags.contains(&Flag::Ad))
                && !expect.flags_free.contains(&Flag::Ad)
        });
        expects_ad || step.upstream.iter().flatten().any(Rule::says_bogus)
    })
}

/// Collects the keys of a nested object, with dots between the names of tables. A list of tables is one value.
fn flatten<'a>(path: &str, table: &'a Object, keys: &mut Vec<(String, &'a Value)>) {
    for (name, value) in table {
        let key = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match value {
            Value::Object(table) => flatten(&key, table, keys),
            value => keys.push((key, value)),
        }
    }
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
}

fn address(value: &Value) -> Option<Ipv6Addr> {
    value.as_str()?.parse().ok()
}

fn prefixes(value: &Value) -> Option<Vec<(Ipv6Addr, u8)>> {
    texts(value)?.iter().map(|text| prefix(text)).collect()
}

/// Reads `ADDRESS/LENGTH`.
pub fn prefix(text: &str) -> Option<(Ipv6Addr, u8)> {
    let (address, length) = text.split_once('/')?;
    Some((address.parse().ok()?, length.parse().ok().filter(|length| *length <= 128)?))
}

/// Reads a rule that selects by IPv4 address only.
fn mapped(rule: &Value) -> Option<Ipv4Mapping> {
    let rule = rule.as_object()?;
    if rule.keys().any(|key| key != "ipv4" && key != "prefixes") {
        return None;
    }
    Some(Ipv4Mapping { ipv4: texts(rule.get("ipv4")?)?, prefixes: prefixes(rule.get("prefixes")?)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(config: &str, rfc: &str) -> Case {
        Case::read(&format!(
            r#"{{"id": "w", "category": "c", "rfc": "{rfc}", "source": "", "level": "MUST", "config": {config},
                "query": {{"name": "a.", "type": "AAAA"}}, "expect": {{}}}}"#
        ))
        .unwrap()
    }

    fn demands(config: &str) -> Result<Demands, String> {
        of(&case(config, "RFC 6147 5"))
    }

    #[test]
    fn without_a_word_it_is_the_well_known_prefix() {
        let plain = demands("{}").unwrap();
        assert_eq!(plain.prefixes, [WELL_KNOWN]);
        assert!(need_only_prefixes(&plain));
    }

    #[test]
    fn keys_that_other_servers_have_too_are_translated() {
        let config = r#"{"dns64": {"prefixes": ["2001:db8::/32"], "exclude-aaaa": ["::/0"], "suffix": "::7",
            "rule": [{"ipv4": ["10.0.0.0/8"], "prefixes": []}]}, "upstream": {"timeout": "300ms", "tries": 1}}"#;
        let demands = demands(config).unwrap();
        assert_eq!(demands.prefixes, [("2001:db8::".parse().unwrap(), 32)]);
        assert_eq!(demands.exclude, Some(vec!["::/0".to_owned()]));
        assert_eq!(
            demands.mapped,
            [Ipv4Mapping { ipv4: vec!["10.0.0.0/8".to_owned()], prefixes: Vec::new() }]
        );
        assert!(!need_only_prefixes(&demands));
    }

    #[test]
    fn a_key_of_ours_alone_is_the_reason_unless_it_has_the_value_of_everybody() {
        assert_eq!(
            demands(r#"{"dns64": {"lookup": "parallel"}}"#).unwrap_err(),
            "our template has no translation for dns64.lookup"
        );
        let usual = demands(r#"{"dns64": {"lookup": "sequential", "non-global": "embed"}}"#).unwrap();
        assert!(need_only_prefixes(&usual));
        assert!(demands(r#"{"dns64": {"new-key": 1}}"#).unwrap_err().ends_with(" for dns64.new-key"));
        assert!(demands(r#"{"dns64": {"rule": [{"names": ["a"], "prefixes": []}]}}"#).is_err());
    }

    #[test]
    fn every_value_that_changes_nothing_can_be_read() {
        for (key, usual) in UNTRANSLATED {
            assert!(serde_json::from_str::<Value>(usual).is_ok(), "{key}: {usual}");
        }
    }

    #[test]
    fn a_case_about_our_interface_is_for_others_only_if_it_configures_what_they_have_too() {
        let error = of(&case("{}", "contract dns64 clients")).unwrap_err();
        assert!(error.contains("interface"), "{error}");
        let block = r#"{"filter": {"block": ["ads.example"]}}"#;
        let demands = of(&case(block, "contract [filter] block")).unwrap();
        assert_eq!(demands.block, ["ads.example"]);
    }

    #[test]
    fn records_clients_and_policy_zones_are_translated() {
        let line = r#"{"id": "w", "category": "c", "rfc": "contract [filter] rpz", "source": "", "level": "MUST",
            "config": {"filter": {"rpz": ["{dir}/p.rpz"]}, "server": {"allow": ["::1/128"]},
                       "local": {"records": ["a.home. 60 IN A 192.0.2.1"], "empty-zones": true},
                       "dns64": {"never-embed": ["192.0.2.0/24"], "rule": [{"ipv4": ["10.0.0.0/8"], "prefixes": []}]}},
            "files": {"p.rpz": "$ORIGIN policy.test.\n@ IN NS localhost.\n"},
            "query": {"name": "a.", "type": "AAAA"}, "expect": {}}"#.replace('\n', " ");
        let demands = of(&Case::read(&line).unwrap()).unwrap();
        let zone = PolicyZone { name: "policy.test".to_owned(), file: "p.rpz".to_owned() };
        assert_eq!(demands.policies, [zone]);
        assert_eq!(demands.allow.as_deref(), Some(&["::1/128".to_owned()][..]));
        assert!(demands.empty_zones && demands.records.len() == 1);
        let networks: Vec<&str> = demands.mapped.iter().map(|it| it.ipv4[0].as_str()).collect();
        assert_eq!(networks, ["192.0.2.0/24", "10.0.0.0/8"]);
    }

    #[test]
    fn trust_is_needed_where_the_answer_shows_it() {
        let line = |flags: &str, ede: &str| {
            format!(
                r#"{{"id": "w", "category": "c", "rfc": "RFC 6147 5.5", "source": "", "level": "MUST",
                    "config": {{}}, "query": {{"name": "a.", "type": "AAAA"}},
                    "upstream": [{{"name": "a.", "type": "AAAA", "ede": {ede}}}], "expect": {{"flags": {flags}}}}}"#
            )
        };
        let trust = |flags, ede| of(&Case::read(&line(flags, ede)).unwrap()).unwrap().trust;
        assert!(trust(r#"["QR", "AD"]"#, "[]"));
        assert!(trust(r#"["QR"]"#, "[6]"));
        assert!(!trust(r#"["QR"]"#, "[22]"));
    }
}
