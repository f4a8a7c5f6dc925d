//! Gateways in the configuration: errors, warnings, and what the engine and the monitor get.

use super::super::tests::read_with;
use super::super::{Config, Overrides};
use engine::dns64::gateways::{AllDown, Spread};
use gateways::Probe;
use pref64::Pref64;
use std::time::Duration;

const TWO: &str = "[dns64]\nprefixes = [\"2001:db8:a::/96\", \"2001:db8:b::/96\"]\nspread = \"client\"\n";

fn accepted(text: &str) -> (Config, Vec<String>) {
    read_with(text, &Overrides::default()).unwrap_or_else(|report| panic!("{report}"))
}

fn refused(text: &str) -> String {
    let Err(report) = read_with(text, &Overrides::default()) else { panic!("accepted: {text}") };
    assert_eq!(report.problems.len(), 1, "{report}");
    report.to_string()
}

fn gateway(prefix: &str, rest: &str) -> String {
    format!("[[dns64.gateway]]\nprefix = \"{prefix}\"\n{rest}\n")
}

fn prefix(text: &str) -> Pref64 {
    text.parse().unwrap()
}

#[test]
fn gateways_are_read_with_their_probes_and_weights() {
    let text = [
        TWO,
        "[dns64.health]\ninterval = \"1s\"\ntimeout = \"500ms\"\nfall = 2\nrise = 4\nall-down = \"empty\"\n\
         answer-ttl = \"1500ms\"\n",
        &gateway("2001:db8:b::/96", "probe = [\"tcp 192.0.2.10:443\", \"icmp 192.0.2.11\"]\nweight = 3"),
        &gateway("2001:db8:c::/96", "weight = 0"),
        "[[dns64.rule]]\nnames = [\"x.example\"]\nprefixes = [\"2001:db8:c::/96\"]\n",
    ]
    .concat();
    let (config, warnings) = accepted(&text);
    assert_eq!(warnings, [""; 0]);
    let probes = [Probe::Tcp([192, 0, 2, 10], 443), Probe::Icmp([192, 0, 2, 11])];
    let [probed] = &config.dns64.probed_gateways()[..] else { panic!("one has probes") };
    assert_eq!((probed.prefix, &probed.probes[..]), (prefix("2001:db8:b::/96"), &probes[..]));
    let settings = config.dns64.health_settings();
    assert_eq!((settings.interval, settings.fall, settings.rise), (Duration::from_secs(1).into(), 2, 4));
    let gateways = config.settings().dns64.gateways.expect("the engine knows them");
    let table = gateways.table();
    assert_eq!((table.spread, table.all_down, table.answer_ttl_secs), (Spread::Client, AllDown::Empty, 2));
    let all: Vec<_> = table.prefixes().map(|of| (of.prefix.to_string(), of.weight, of.is_probed)).collect();
    let expected = [("2001:db8:a::/96", 1, false), ("2001:db8:b::/96", 3, true)];
    assert_eq!(all[..2], expected.map(|(prefix, weight, probed)| (prefix.to_owned(), weight, probed)));
    assert_eq!(table.number_of(&prefix("2001:db8:c::/96")), Some(2));
    let read_back = accepted(&config.to_toml()).0;
    assert_eq!(read_back, config);
}

#[test]
fn without_any_of_the_keys_the_engine_knows_no_gateways() {
    assert!(accepted("").0.settings().dns64.gateways.is_none());
    assert!(accepted("[dns64]\nspread = \"ordered\"\n").0.settings().dns64.gateways.is_some());
    assert!(accepted(&gateway("64:ff9b::/96", "")).0.settings().dns64.gateways.is_some());
}

#[test]
fn the_prefix_of_a_gateway_has_the_suffix_of_the_others() {
    let text = format!(
        "[dns64]\nprefixes = [\"2001:db8::/64\"]\nsuffix = \"::1\"\n{}",
        gateway("2001:db8::/64", "probe = [\"icmp 192.0.2.1\"]")
    );
    assert_eq!(accepted(&text).0.dns64.probed_gateways()[0].prefix.suffix().to_string(), "::1");
}

#[test]
fn a_gateway_that_fits_nothing_is_an_error() {
    let a = gateway("2001:db8:a::/96", "probe = [\"icmp 192.0.2.1\"]");
    for (text, words) in [
        ("[[dns64.gateway]]\nweight = 2\n".to_owned(), "has no `prefix`"),
        (gateway("2001:db8:c::/96", ""), "the prefix 2001:db8:c::/96 of this gateway is used nowhere"),
        ([TWO, &a, &a].concat(), "the prefix 2001:db8:a::/96 has two gateways"),
        (gateway("2001:db8::/97", ""), "2001:db8::/97"),
        (
            [TWO, &gateway("2001:db8:a::/96", "weight = 0"), &gateway("2001:db8:b::/96", "weight = 0")]
                .concat(),
            "the gateways of all prefixes of `dns64.prefixes` have the weight 0",
        ),
        (
            [
                TWO,
                &gateway("2001:db8:c::/96", "weight = 0"),
                &gateway("2001:db8:d::/96", "weight = 0"),
                "[[dns64.rule]]\nprefixes = [\"2001:db8:c::/96\", \"2001:db8:d::/96\"]\n[[dns64.rule]]\nnames = [\"x.example\"]\n",
            ]
            .concat(),
            "the gateways of all prefixes of the rule have the weight 0",
        ),
        (
            [
                &gateway("64:ff9b::/96", "weight = 0")[..],
                "[[dns64.rule]]\nnames = [\"x.example\"]\n",
            ]
            .concat(),
            "the gateways of all prefixes of `dns64.prefixes` have the weight 0",
        ),
        (gateway("64:ff9b::/96", "weight = 1001"), "`dns64.gateway.weight` is out of range: 1001"),
        (gateway("64:ff9b::/96", "probe = [\"ping 192.0.2.1\"]"), "`ping 192.0.2.1` is not a probe"),
        (
            gateway("64:ff9b::/96", "probe = [\"icmp 192.0.2.1\", \"icmp 192.0.2.1\"]"),
            "the probe icmp 192.0.2.1 is listed twice",
        ),
        (
            "[dns64.health]\ninterval = \"200ms\"\ntimeout = \"250ms\"\n".to_owned(),
            "`dns64.health.timeout` is longer than `interval`",
        ),
        ("[dns64]\nprefixes = [\"64:ff9b::/96\", \"64:FF9B::/96\"]\n".to_owned(), "is listed twice"),
        (
            (0..65).map(|number| gateway(&format!("2001:db8:{number:x}::/96"), "")).collect::<String>()
                + "[[dns64.rule]]\nnames = [\"a.example\"]\nprefixes = ["
                + &(0..65)
                    .map(|number| format!("\"2001:db8:{number:x}::/96\","))
                    .take(64)
                    .collect::<String>()
                + "]\n[[dns64.rule]]\nnames = [\"b.example\"]\nprefixes = [\"2001:db8:40::/96\"]\n",
            "more than 64 gateways",
        ),
    ] {
        let found = refused(&text);
        assert!(found.contains(words), "{words}: {found}");
    }
}

#[test]
fn a_shorter_interval_shortens_the_default_timeout() {
    let config = accepted("[dns64.health]\ninterval = \"100ms\"\n").0;
    assert_eq!(config.dns64.health.timeout, Duration::from_millis(100));
}

#[test]
fn a_weight_that_has_no_effect_is_a_warning() {
    let all = TWO.replace("client", "all");
    let warnings = accepted(&(all.clone() + &gateway("2001:db8:a::/96", "weight = 2"))).1;
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].starts_with("the `weight` of the gateway of 2001:db8:a::/96 has no effect"));
    let (config, warnings) = accepted(&(all.clone() + &gateway("2001:db8:a::/96", "")));
    assert_eq!(warnings, [""; 0]);
    assert_eq!(accepted(&config.to_toml()).1, [""; 0], "it is printed with the weight 1");
}
