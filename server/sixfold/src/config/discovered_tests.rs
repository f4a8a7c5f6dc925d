//! Sources of prefixes in the configuration: errors, and the lists with what was found.

use super::super::tests::read_with;
use super::super::{Config, Overrides};
use super::*;

const BOTH: &str = "[dns64]\nprefixes = [\"2001:db8:a::/96\", \"discover:upstream\", \"2001:db8:b::/96\", \
                    \"discover:eth0\"]\n";

fn accepted(text: &str) -> Config {
    let read = read_with(text, &Overrides::default()).unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(read.1, [""; 0]);
    read.0
}

fn refused(text: &str) -> String {
    let Err(report) = read_with(text, &Overrides::default()) else { panic!("accepted: {text}") };
    assert_eq!(report.problems.len(), 1, "{report}");
    report.to_string()
}

fn found(upstream: &[&str], eth0: &[&str]) -> Found {
    let parsed = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    vec![(Source::Upstream, parsed(upstream)), (Source::Interface("eth0".into()), parsed(eth0))]
}

fn shown(list: &[PrefixEntry]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

#[test]
fn sources_stand_among_prefixes_and_are_printed_as_they_were_read() {
    let config = accepted(BOTH);
    let sources: Vec<String> = config.dns64.sources().map(ToString::to_string).collect();
    assert_eq!(sources, ["discover:upstream", "discover:eth0"]);
    let settings = config.settings().dns64;
    assert_eq!((settings.prefixes.len(), settings.discovery.is_some()), (2, true));
    assert_eq!(accepted(&config.to_toml()), config);
    let alone = accepted("[dns64]\nprefixes = [\"discover:upstream\"]\n").settings().dns64;
    assert!(alone.prefixes.is_empty() && alone.discovery.is_some());
    assert!(accepted("").settings().dns64.discovery.is_none());
}

#[test]
fn what_was_found_stands_where_its_source_stands() {
    let dns64 = accepted(BOTH).dns64;
    assert_eq!(dns64.expanded(&found(&[], &[])), dns64);
    let expanded = dns64.expanded(&found(&["2001:db8:1::/96", "2001:db8:2::/64"], &[]));
    let expected =
        ["2001:db8:a::/96", "2001:db8:1::/96", "2001:db8:2::/64", "2001:db8:b::/96", "discover:eth0"];
    assert_eq!(shown(&expanded.prefixes), expected);
    let excluded: Vec<String> = expanded.exclude_aaaa.iter().map(ToString::to_string).collect();
    assert!(excluded.contains(&"2001:db8:2::/64".to_owned()), "{excluded:?}");
    // Both sources, and the configuration, have some of them: each counts once.
    let expanded = dns64
        .expanded(&found(&["2001:db8:1::/96", "2001:db8:b::/96"], &["2001:db8:1::/96", "2001:db8:3::/96"]));
    let expected = ["2001:db8:a::/96", "2001:db8:1::/96", "2001:db8:b::/96", "2001:db8:3::/96"];
    assert_eq!(shown(&expanded.prefixes), expected);
}

#[test]
fn a_prefix_that_was_found_has_the_suffix_if_it_has_room() {
    let text = "[dns64]\nprefixes = [\"discover:upstream\"]\nsuffix = \"::1\"\n";
    let (config, _) = read_with(text, &Overrides::default()).unwrap_or_else(|report| panic!("{report}"));
    let expanded = config.dns64.expanded(&found(&["2001:db8::/64", "64:ff9b::/96"], &[]));
    let suffixes: Vec<String> =
        prefixes(&expanded.prefixes).map(|prefix| prefix.suffix().to_string()).collect();
    assert_eq!(suffixes, ["::1", "::"]);
}

#[test]
fn there_are_never_more_prefixes_than_an_answer_is_made_of() {
    let all: Vec<String> = (0..63).map(|number| format!("\"2001:db8:{number:x}::/96\"")).collect();
    let dns64 = accepted(&format!("[dns64]\nprefixes = [{}, \"discover:upstream\"]\n", all.join(", "))).dns64;
    let expanded = dns64.expanded(&found(&["2001:db8:100::/96", "2001:db8:101::/96"], &[]));
    assert_eq!(prefixes(&expanded.prefixes).count(), limits::PREFIXES);
}

#[test]
fn rules_and_gateways_may_be_about_all_prefixes_that_are_found() {
    let text = [
        BOTH,
        "spread = \"client\"\n",
        "[[dns64.gateway]]\nprefix = \"discovered\"\nprobe = [\"icmp 192.0.2.1\"]\n",
        "[[dns64.gateway]]\nprefix = \"2001:db8:a::/96\"\n",
        "[[dns64.rule]]\nnames = [\"a.example\"]\nprefixes = [\"discovered\"]\n",
        "[[dns64.rule]]\nnames = [\"b.example\"]\n",
        "[[dns64.rule]]\nnames = [\"c.example\"]\nprefixes = []\n",
    ]
    .concat();
    let config = accepted(&text);
    assert_eq!(accepted(&config.to_toml()), config);
    let rules = config.settings().dns64.rules;
    let waiting: Vec<bool> = rules.list().iter().map(|rule| rule.awaits_discovery).collect();
    assert_eq!(waiting, [true, false, false]);
    assert!(config.dns64.probed_gateways().is_empty() && config.dns64.has_gateways());
    let expanded = config.dns64.expanded(&found(&["2001:db8:1::/96"], &["2001:db8:2::/96"]));
    assert_eq!(shown(&expanded.rules[0].prefixes), ["2001:db8:1::/96", "2001:db8:2::/96"]);
    let general = ["2001:db8:a::/96", "2001:db8:1::/96", "2001:db8:2::/96", "2001:db8:b::/96"];
    assert_eq!(shown(&expanded.rules[1].prefixes), general, "the general ones");
    assert!(expanded.rules[2].prefixes.is_empty());
    let probed: Vec<String> =
        expanded.probed_gateways().iter().map(|gateway| gateway.prefix.to_string()).collect();
    assert_eq!(probed, ["2001:db8:1::/96", "2001:db8:2::/96"]);
    let table = expanded.gateway_table();
    let all: Vec<_> = table.prefixes().map(|of| (of.prefix.to_string(), of.is_probed)).collect();
    let expected = [("2001:db8:a::/96", false), ("2001:db8:1::/96", true), ("2001:db8:b::/96", false)];
    assert_eq!(all[..3], expected.map(|(prefix, probed)| (prefix.to_owned(), probed)));
}

#[test]
fn entries_that_fit_nothing_are_errors() {
    let general = |list: &str| format!("[dns64]\nprefixes = [{list}]\n");
    let gateway = "[[dns64.gateway]]\nprefix = \"discovered\"\n";
    let rule = |entry: &str| format!("[[dns64.rule]]\nnames = [\"a.example\"]\nprefixes = [\"{entry}\"]\n");
    for (text, words) in [
        (
            general("\"discover:upstream\", \"discover:upstream\""),
            "the prefix discover:upstream is listed twice",
        ),
        (general("\"discover:eth0\", \"discover:eth0\""), "the prefix discover:eth0 is listed twice"),
        (general("\"discover:\""), "`discover:` is no source of prefixes"),
        (general("\"discover:a/b\""), "`discover:a/b` is no source of prefixes"),
        (general("\"discover:sixteen-letters0\""), "is no source of prefixes"),
        (general("\"discovered\""), "stands for prefixes of a source"),
        (
            general(&(0..9).map(|number| format!("\"discover:eth{number}\"")).collect::<Vec<_>>().join(",")),
            "more than 8 sources",
        ),
        (gateway.to_owned(), "\"discovered\" stands for nothing"),
        (rule("discovered"), "\"discovered\" stands for nothing"),
        (
            general("\"discover:upstream\"") + &rule("discover:upstream"),
            "`discover:upstream` cannot stand here",
        ),
        ([BOTH, gateway, gateway].concat(), "the prefix discovered has two gateways"),
        (
            general("\"discover:upstream\"") + "spread = \"client\"\n" + gateway + "weight = 0\n",
            "the gateways of all prefixes of `dns64.prefixes` have the weight 0",
        ),
    ] {
        let report = refused(&text);
        assert!(report.contains(words), "{words}: {report}");
    }
}
