//! The keys that a reload has changed, for the log: found by comparing what `sixfold check` prints of both configurations, so no key
//! can be forgotten. Files that the configuration names count with their contents.

use crate::config::Config;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// Keys that a line names; more are counted.
const KEYS: usize = 24;

/// The changed keys, each with the number of its entries before and after if it is a list that grew or shrank.
pub fn between(old: &Config, new: &Config) -> Vec<String> {
    let (before, after) = (keys(old), keys(new));
    let all = before.keys().chain(after.keys().filter(|key| !before.contains_key(*key)));
    let mut changes: Vec<String> =
        all.filter_map(|key| change(key, before.get(key), after.get(key))).collect();
    // The text does not show secrets.
    if old.edns.cookie_secrets != new.edns.cookie_secrets {
        changes.push("edns.cookie-secret".to_owned());
    }
    let mut contents = |key: &str, has_changed: bool| {
        if has_changed && !changes.iter().any(|change| change.split(' ').next() == Some(key)) {
            changes.push(format!("the contents of {key}"));
        }
    };
    contents("local.hosts-file", old.local.hosts != new.local.hosts);
    contents("dns64.mappings-file", old.dns64.mappings != new.dns64.mappings);
    contents("dnssec.trust-anchors", old.dnssec.anchors != new.dnssec.anchors);
    contents("filter.rpz", old.filter.policy != new.filter.policy);
    contents("tls.certificate", old.tls.server != new.tls.server);
    changes
}

/// The changes as the end of a sentence.
pub fn listed(changes: &[String]) -> String {
    match changes.len() {
        0 => "nothing has changed".to_owned(),
        1..=KEYS => format!("changed: {}", changes.join(", ")),
        more => format!("changed: {} and {} more keys", changes[..KEYS].join(", "), more - KEYS),
    }
}

/// The values of all keys, by table and key. The tables of a list, like those of `upstream.zone`, are one value.
fn keys(config: &Config) -> BTreeMap<String, Value> {
    let mut keys = BTreeMap::new();
    // `the_effective_configuration_reads_back_as_itself` shows that the text is TOML.
    for (name, value) in config.to_toml().parse::<Table>().unwrap_or_default() {
        collect(name, value, &mut keys);
    }
    keys
}

fn collect(name: String, value: Value, keys: &mut BTreeMap<String, Value>) {
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                collect(format!("{name}.{key}"), value, keys);
            }
        }
        value => _ = keys.insert(name, value),
    }
}

/// The change of one key; none if there is none.
fn change(key: &str, before: Option<&Value>, after: Option<&Value>) -> Option<String> {
    if before == after {
        return None;
    }
    let entries = |value: Option<&Value>| match value {
        Some(Value::Array(list)) => Some(list.len()),
        Some(_) => None,
        // The lists of tables are printed if they are not empty.
        None => Some(0),
    };
    Some(match (entries(before), entries(after)) {
        (Some(before), Some(after)) if before != after => format!("{key} ({before} -> {after} entries)"),
        _ => key.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Overrides, parse};

    fn config(text: &str) -> Config {
        let text = format!("upstream.forwarders = [\"192.0.2.53\"]\n{text}");
        match parse("x.toml", &text, &Overrides::default(), "/etc/resolv.conf".as_ref()) {
            Ok((config, _)) => config,
            Err(_) => panic!("a configuration without faults: {text}"),
        }
    }

    #[test]
    fn changed_keys_are_named_with_the_numbers_of_entries() {
        let changes = |old: &str, new: &str| between(&config(old), &config(new)).join(", ");
        assert_eq!(changes("", ""), "");
        assert_eq!(changes("", "# another comment\nlog.level = \"info\""), "");
        assert_eq!(changes("log.level = \"warn\"", "cache.stale = \"2d\""), "cache.stale, log.level");
        assert_eq!(
            changes(
                "",
                "filter.block = [\"a.example\", \"b.example\"]\ndns64.on-failure.servfail = \"pass\""
            ),
            "dns64.on-failure.servfail, filter.block (0 -> 2 entries)"
        );
        let zone = "[[upstream.zone]]\nzone = \"corp.example\"\nforwarders = [\"192.0.2.1\"]\n";
        assert_eq!(changes("", zone), "upstream.zone (0 -> 1 entries)");
        assert_eq!(changes(zone, ""), "upstream.zone (1 -> 0 entries)");
        assert_eq!(changes(zone, &zone.replace("2.1", "2.2")), "upstream.zone");
        let secret = |digit: &str| format!("edns.cookie-secret = \"{}\"", digit.repeat(32));
        assert_eq!(changes(&secret("1"), &secret("2")), "edns.cookie-secret");
    }

    #[test]
    fn the_contents_of_files_count() {
        let folder = kit::Folder::new();
        let path = folder.file("hosts");
        let text = format!("local.hosts-file = \"{}\"", path.display());
        std::fs::write(&path, "192.0.2.7 a.example\n").unwrap();
        let before = config(&text);
        std::fs::write(&path, "192.0.2.8 a.example\n").unwrap();
        assert_eq!(between(&before, &config(&text)), ["the contents of local.hosts-file"]);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(between(&before, &config("")), ["local.hosts-file"]);
        let text = format!("dns64.mappings-file = \"{}\"", path.display());
        std::fs::write(&path, "192.0.2.7 2001:db8::7\n").unwrap();
        let before = config(&text);
        std::fs::write(&path, "192.0.2.7 2001:db8::8\n").unwrap();
        assert_eq!(between(&before, &config(&text)), ["the contents of dns64.mappings-file"]);
    }

    #[test]
    fn many_changes_are_counted() {
        let changes: Vec<String> = (0..30).map(|number| format!("key{number}")).collect();
        assert!(listed(&changes).ends_with("key23 and 6 more keys"));
        assert_eq!(listed(&changes[..2]), "changed: key0, key1");
        assert_eq!(listed(&[]), "nothing has changed");
    }
}
