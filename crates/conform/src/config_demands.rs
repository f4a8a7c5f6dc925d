//! Demands of a case on a server's configuration, in terms that other servers have too: prefixes, excluded AAAA
//! networks, mapped IPv4 networks.
//!
//! A case does not apply to other servers if it sets a key that only Sixfold has to another value than its default;
//! the key is the reason. Nor does it apply if its expectation rests on Sixfold's interface alone.
//!
//! Timeout and number of tries (`[upstream] timeout`, `tries`) are not demanded of others: they bound the time of a
//! case and do not change the answer.

use crate::case::{Case, Plan};
use crate::citation::Citation;
use crate::json::Object;
use crate::message::Flag;
use crate::script::Rule;
use serde_json::Value;
use std::net::Ipv6Addr;

/// Well-known prefix: the prefix of a server without a configured one (RFC 6147 section 5.2).
pub const WELL_KNOWN: (Ipv6Addr, u8) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// Keys that only Sixfold has, each with the JSON value that changes nothing. For `non-global` and `never-embed` it
/// is the value under which every address is embedded, as other servers do; if the key is absent, the expectation of
/// the case decides.
const UNTRANSLATED: [(&str, &str); 25] = [
    ("dns64.non-global", r#""embed""#),
    ("dns64.never-embed", r#"[]"#),
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
    ("local.records", r#"[]"#),
    ("local.empty-zones", r#"false"#),
    ("filter.block", r#"[]"#),
    ("filter.rpz", r#"[]"#),
    ("cache.size", r#""128MiB""#),
    ("cache.min-ttl", r#""0s""#),
    ("cache.max-ttl", r#""1d""#),
    ("cache.max-negative-ttl", r#""1h""#),
    ("edns.client-subnet", r#""off""#),
    ("edns.udp-size", r#"1232"#),
];

/// Keys that change the duration of a lookup or the work in the background, but not the first answer.
const IGNORED: [&str; 4] = ["upstream.timeout", "upstream.tries", "cache.prefetch", "server.workers"];

/// Demands of a case on a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigDemands {
    /// Prefixes with their lengths, in order; never empty.
    pub prefixes: Vec<(Ipv6Addr, u8)>,
    /// Networks whose AAAA records count as absent. `None`: the default of the server.
    pub exclude: Option<Vec<String>>,
    /// IPv4 networks with their own prefixes, or with none; the first match decides.
    pub mapped: Vec<Ipv4Mapping>,
    /// Clients that get synthesis. `None`: all.
    pub clients: Option<Vec<String>>,
    /// Suffix of a synthesized address, behind the IPv4 address.
    pub suffix: Option<Ipv6Addr>,
    /// No synthesis for queries without RD.
    pub recursive_only: bool,
    /// Synthesis even with DO and CD.
    pub break_dnssec: bool,
    /// Expired records may be served (RFC 8767).
    pub stale: bool,
    /// The server answers `ipv4only.arpa` itself, without the upstream.
    pub ipv4only: bool,
    /// The server must trust the AD bit of the upstream, and the case shows it.
    pub trust: bool,
}

/// IPv4 networks and the prefixes that they are mapped to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ipv4Mapping {
    /// IPv4 networks.
    pub ipv4: Vec<String>,
    /// Prefixes; none: addresses of these networks are left out.
    pub prefixes: Vec<(Ipv6Addr, u8)>,
}

impl ConfigDemands {
    /// Reads the demands of a case. The error is the reason why the case applies to Sixfold only.
    pub fn of(case: &Case) -> Result<ConfigDemands, String> {
        if matches!(case.plan, Plan::Check(_)) {
            return Err("it is about Sixfold's configuration file".to_owned());
        }
        if Citation::of(case) == Citation::Interface {
            return Err("it rests on Sixfold's own interface".to_owned());
        }
        if case.steps().iter().any(|step| step.reload.is_some()) {
            return Err("it reloads Sixfold's configuration".to_owned());
        }
        let mut demands = ConfigDemands::read(&case.config)?;
        demands.trust &= shows_trust(case);
        Ok(demands)
    }

    /// True if the case demands only prefixes.
    pub fn need_only_prefixes(&self) -> bool {
        let ConfigDemands { exclude, mapped, clients, suffix, recursive_only, break_dnssec, stale, .. } =
            self;
        let nothing = exclude.is_none() && mapped.is_empty() && clients.is_none() && suffix.is_none();
        nothing && !recursive_only && !break_dnssec && !stale && !self.trust && self.ipv4only
    }

    fn read(config: &Object) -> Result<ConfigDemands, String> {
        let mut demands = ConfigDemands {
            prefixes: vec![WELL_KNOWN],
            exclude: None,
            mapped: Vec::new(),
            clients: None,
            suffix: None,
            recursive_only: false,
            break_dnssec: false,
            stale: false,
            ipv4only: true,
            trust: true,
        };
        let mut keys = Vec::new();
        flatten("", config, &mut keys);
        for (key, value) in keys {
            demands.take(&key, value)?;
        }
        Ok(demands)
    }

    fn take(&mut self, key: &str, value: &Value) -> Result<(), String> {
        let wrong = || format!("no option for {key} = {value}");
        match key {
            "dns64.prefixes" => {
                self.prefixes = prefixes(value).filter(|list| !list.is_empty()).ok_or_else(wrong)?;
            }
            "dns64.exclude-aaaa" => self.exclude = Some(texts(value).ok_or_else(wrong)?),
            "dns64.clients" => self.clients = Some(texts(value).ok_or_else(wrong)?),
            "dns64.suffix" => self.suffix = Some(address(value).ok_or_else(wrong)?),
            "dns64.recursive-only" => self.recursive_only = value.as_bool().ok_or_else(wrong)?,
            "dns64.break-dnssec" => self.break_dnssec = value.as_bool().ok_or_else(wrong)?,
            "dns64.ipv4only-arpa" => self.ipv4only = value.as_bool().ok_or_else(wrong)?,
            "dns64.dnssec" => {
                self.trust = match value.as_str() {
                    Some("trust") => true,
                    Some("off") => false,
                    _ => return Err(wrong()),
                }
            }
            "dns64.rule" => {
                let rules = value.as_array().ok_or_else(wrong)?;
                self.mapped = rules
                    .iter()
                    .map(|rule| {
                        mapped(rule).ok_or_else(|| "no option for rules by name or client".to_owned())
                    })
                    .collect::<Result<_, _>>()?;
            }
            "cache.stale" => self.stale = value.as_str() != Some("0s"),
            key if IGNORED.contains(&key) => {}
            key => {
                let usual = UNTRANSLATED.iter().find(|(name, _)| *name == key);
                let is_usual =
                    |usual: &str| serde_json::from_str::<Value>(usual).is_ok_and(|it| it == *value);
                if !usual.is_some_and(|(_, usual)| is_usual(usual)) {
                    return Err(format!("no option for {key}"));
                }
            }
        }
        Ok(())
    }
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

    fn demands(config: &str) -> Result<ConfigDemands, String> {
        ConfigDemands::of(&case(config, "RFC 6147 5"))
    }

    #[test]
    fn without_a_word_it_is_the_well_known_prefix() {
        let plain = demands("{}").unwrap();
        assert_eq!(plain.prefixes, [WELL_KNOWN]);
        assert!(plain.need_only_prefixes());
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
        assert!(!demands.need_only_prefixes());
    }

    #[test]
    fn a_key_of_ours_alone_is_the_reason_unless_it_has_the_value_of_everybody() {
        assert_eq!(
            demands(r#"{"dns64": {"lookup": "parallel"}}"#).unwrap_err(),
            "no option for dns64.lookup"
        );
        assert!(
            demands(r#"{"dns64": {"lookup": "sequential", "non-global": "embed"}}"#)
                .unwrap()
                .need_only_prefixes()
        );
        assert_eq!(demands(r#"{"dns64": {"new-key": 1}}"#).unwrap_err(), "no option for dns64.new-key");
        assert!(demands(r#"{"dns64": {"rule": [{"names": ["a"], "prefixes": []}]}}"#).is_err());
    }

    #[test]
    fn every_value_that_changes_nothing_can_be_read() {
        for (key, usual) in UNTRANSLATED {
            assert!(serde_json::from_str::<Value>(usual).is_ok(), "{key}: {usual}");
        }
    }

    #[test]
    fn a_case_about_our_interface_does_not_apply_to_others() {
        let error = ConfigDemands::of(&case("{}", "contract dns64 clients")).unwrap_err();
        assert!(error.contains("interface"), "{error}");
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
        let trust = |flags, ede| ConfigDemands::of(&Case::read(&line(flags, ede)).unwrap()).unwrap().trust;
        assert!(trust(r#"["QR", "AD"]"#, "[]"));
        assert!(trust(r#"["QR"]"#, "[6]"));
        assert!(!trust(r#"["QR"]"#, "[22]"));
    }
}
