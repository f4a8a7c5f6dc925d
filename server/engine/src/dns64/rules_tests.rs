//! Tests of the prefix rules: matching, nesting, advertised prefixes, limits, and a comparison with a linear scan.

use super::*;
use crate::base::network::contains;
use core::net::Ipv4Addr;

fn name(text: &str) -> Box<[u8]> {
    kit::name(text).into()
}

fn network(text: &str) -> Network {
    let (address, length) = text.split_once('/').unwrap();
    let length = length.parse().unwrap();
    match address.parse::<Ipv4Addr>() {
        Ok(address) => Network::v4(address, length),
        Err(_) => Network::new(address.parse().unwrap(), length),
    }
}

fn networks(text: &str) -> Vec<Network> {
    text.split_whitespace().map(network).collect()
}

fn client(text: &str) -> Ipv6Addr {
    text.parse().or_else(|_| text.parse::<Ipv4Addr>().map(|address| address.to_ipv6_mapped())).unwrap()
}

fn rule(clients: &str, names: &str, ipv4: &str) -> Rule {
    Rule {
        clients: networks(clients),
        names: names.split_whitespace().map(name).collect(),
        ipv4: networks(ipv4),
        prefixes: Vec::new(),
        awaits_discovery: false,
        real_aaaa: RealAaaa::Prefer,
        suppresses_a: false,
    }
}

/// Number of the rule that decides.
fn decided(rules: &Rules, from: &str, asked: &str, address: &str) -> Option<usize> {
    let address: Ipv4Addr = address.parse().unwrap();
    let rule = rules.of(client(from), &name(asked)).decide(address.octets())?;
    rules.list().iter().position(|other| core::ptr::eq(other, rule))
}

//= RFC 6147 section 5: requirement 1
#[test]
fn the_first_rule_that_matches_client_name_and_address_decides() {
    let rules = Rules::build(vec![
        rule("2001:db8:a::/48", "legacy.example", "10.0.0.0/8"),
        rule("", "legacy.example", ""),
        rule("2001:db8:a::/48", "", "192.0.2.0/24"),
        rule("2001:db8::/32", "", ""),
        rule("", "", "192.0.2.0/25"),
    ])
    .unwrap();
    let decided = |from, asked, address| decided(&rules, from, asked, address);
    assert_eq!(decided("2001:db8:a::1", "www.legacy.example", "10.1.2.3"), Some(0));
    assert_eq!(decided("2001:db8:a::1", "www.LEGACY.example", "11.1.2.3"), Some(1));
    assert_eq!(decided("2001:db8:b::1", "legacy.example", "10.1.2.3"), Some(1));
    assert_eq!(decided("2001:db8:a::1", "notlegacy.example", "192.0.2.1"), Some(2));
    assert_eq!(decided("2001:db8:a::1", "example", "192.0.3.1"), Some(3));
    assert_eq!(decided("2001:db9::1", "example", "192.0.2.127"), Some(4));
    assert_eq!(decided("2001:db9::1", "example", "192.0.2.128"), None);
    assert_eq!(decided("198.51.100.1", ".", "192.0.2.1"), Some(4));
}

#[test]
fn a_network_of_ipv6_clients_contains_no_ipv4_clients() {
    let rules = Rules::build(vec![rule("::/0", "", ""), rule("0.0.0.0/0", "", "")]).unwrap();
    assert_eq!(decided(&rules, "2001:db8::1", "a", "192.0.2.1"), Some(0));
    assert_eq!(decided(&rules, "::1", "a", "192.0.2.1"), Some(0));
    assert_eq!(decided(&rules, "192.0.2.9", "a", "192.0.2.1"), Some(1));
    // This holds for every list of networks with prefix lengths up to 95, although those from 80 to 95 end with an IPv4-mapped
    // address.
    for (length, of_ipv4) in [(79, None), (80, None), (95, None), (96, Some(0))] {
        let network = Network::new("::ffff:0:0".parse().unwrap(), length);
        let rules = Rules::build(vec![Rule { clients: vec![network], ..Rule::default() }]).unwrap();
        assert_eq!(decided(&rules, "192.0.2.9", "a", "192.0.2.1"), of_ipv4, "{length}");
        assert_eq!(contains(&[network], client("192.0.2.9")), of_ipv4.is_some());
    }
}

#[test]
fn the_prefixes_of_the_rules_for_a_client_are_advertised_to_it() {
    let rule = |clients, names, prefixes: &str| Rule {
        prefixes: prefixes.split_whitespace().map(|prefix| prefix.parse().unwrap()).collect(),
        ..rule(clients, names, "")
    };
    let rules = Rules::build(vec![
        rule("", "a", "2001:db8:1::/96"),
        rule("", "b", ""),
        rule("", "c", "2001:db8:1::/96"),
        rule("2001:db8:c::/48", "d", "2001:db8:2::/96 2001:db8:1::/96"),
        rule("2001:db8:c:1::/64 192.0.2.0/24", "", ""),
        rule("", "e", "2001:db8:3::/96"),
        rule("2001:db8:c::/48", "", "2001:db8:4::/96"),
        rule("", "f", "2001:db8:5::/96"),
    ])
    .unwrap();
    let advertised = |from| {
        let place = |rule: &Rule| rules.list().iter().position(|other| core::ptr::eq(other, rule)).unwrap();
        rules.advertised(client(from)).map(place).collect::<Vec<_>>()
    };
    assert_eq!(advertised("2001:db8:d::1"), [0, 5, 7]);
    assert_eq!(advertised("2001:db8:c::1"), [0, 3, 5, 6]);
    assert_eq!(advertised("2001:db8:c:1::1"), [0, 3, 4]);
    assert_eq!(advertised("192.0.2.1"), [0, 4]);
    assert_eq!(advertised("192.0.3.1"), [0, 5, 7]);
    assert_eq!(Rules::default().advertised(client("::1")).count(), 0);
}

#[test]
fn aaaa_records_are_ignored_if_the_first_rule_without_addresses_says_so() {
    let ignoring = |clients, names| Rule { real_aaaa: RealAaaa::Ignore, ..rule(clients, names, "") };
    let rules = Rules::build(vec![
        rule("", "a.example", "192.0.2.0/24"),
        rule("", "b.a.example", ""),
        ignoring("2001:db8::/32", "a.example"),
    ])
    .unwrap();
    let ignores = |from, asked: &str| rules.of(client(from), &name(asked)).ignores_real().is_some();
    assert!(ignores("2001:db8::1", "a.example") && ignores("2001:db8::1", "x.a.example"));
    assert!(!ignores("2001:db8::1", "b.a.example") && !ignores("2001:db9::1", "a.example"));
    assert!(!ignores("2001:db8::1", "example"));
    assert!(!rules.may_verify());
}

#[test]
fn real_records_are_verified_if_the_first_rule_without_addresses_says_so() {
    let with = |real_aaaa, names| Rule { real_aaaa, ..rule("", names, "") };
    let rules = Rules::build(vec![
        rule("", "a.example", "192.0.2.0/24"),
        with(RealAaaa::Prefer, "mail.a.example"),
        with(RealAaaa::Verify, "a.example"),
        with(RealAaaa::Ignore, "example"),
    ])
    .unwrap();
    let of = |asked: &str| {
        let found = rules.of(client("2001:db8::1"), &name(asked));
        (found.verifies_real().is_some(), found.ignores_real().is_some())
    };
    assert!(rules.may_verify());
    assert_eq!(
        ["a.example", "mail.a.example", "b.example", "test"].map(of),
        [(true, false), (false, false), (false, true), (false, false)]
    );
}

#[test]
fn a_records_are_suppressed_if_the_first_rule_without_addresses_says_so() {
    let suppressing = |clients, names| Rule { suppresses_a: true, ..rule(clients, names, "") };
    let rules = Rules::build(vec![
        rule("", "a.example", "192.0.2.0/24"),
        rule("", "b.a.example", ""),
        suppressing("2001:db8::/32", "a.example"),
    ])
    .unwrap();
    let suppresses = |from, asked: &str| rules.of(client(from), &name(asked)).suppresses_a().is_some();
    assert!(rules.may_suppress_a());
    assert!(suppresses("2001:db8::1", "a.example") && suppresses("2001:db8::1", "x.A.example"));
    assert!(!suppresses("2001:db8::1", "b.a.example") && !suppresses("2001:db9::1", "a.example"));
    assert!(!Rules::build(vec![rule("", "a.example", "")]).unwrap().may_suppress_a());
}

#[test]
fn a_prefix_is_found_by_an_address_under_it() {
    let with = |prefixes: &str| Rule {
        prefixes: prefixes.split_whitespace().map(|prefix| prefix.parse().unwrap()).collect(),
        ..Rule::default()
    };
    let rules = Rules::build(vec![with("2001:db8:1::/96 2001:db8:2::/48"), with("2001:db8:3::/96")]).unwrap();
    let of = |address: &str| {
        rules.prefix_of(address.parse::<Ipv6Addr>().unwrap().octets()).map(ToString::to_string)
    };
    assert_eq!(of("2001:db8:2:7::1").as_deref(), Some("2001:db8:2::/48"));
    assert_eq!(of("2001:db8:3::c000:201").as_deref(), Some("2001:db8:3::/96"));
    assert_eq!(of("2001:db8:3::1:c000:201"), None);
    assert_eq!(of("2001:db8:4::1"), None);
}

#[test]
fn names_nested_too_deep_and_rules_that_overlap_too_much_are_rejected() {
    let deep =
        |depth: usize| (1..=depth).map(|labels| rule("", &"a.".repeat(labels), "")).collect::<Vec<_>>();
    assert!(Rules::build(deep(NESTED)).is_ok());
    assert_eq!(Rules::build(deep(NESTED + 1)).unwrap_err(), RulesTooLarge::Nested);
    // Each client network contains the next, and each rule has other addresses: the table has n^2 / 2 entries.
    let nested = (0..100).map(|number| {
        let ipv4: String = (0..255).map(|net| format!("10.{net}.{number}.0/24 ")).collect();
        rule(&format!("2001:db8::/{}", 28 + number), "", &ipv4)
    });
    assert!(Rules::build(nested.collect()).is_ok());
    let twice = (0..200).map(|number| {
        let ipv4: String = (0..255)
            .map(|net| format!("10.{net}.{}.0/25 10.{net}.{}.0/25 ", number, (number + 7) % 256))
            .collect();
        rule(&format!("2001:db8::/{}", 28 + number % 100), &format!("n{}", number / 100), &ipv4)
    });
    assert_eq!(Rules::build(twice.collect()).unwrap_err(), RulesTooLarge::Large);
}

/// Rule that decides, found by a linear scan.
fn scanned<'r>(list: &'r [Rule], from: Ipv6Addr, asked: &[u8], address: [u8; 4]) -> Option<&'r Rule> {
    let address = Ipv4Addr::from(address).to_ipv6_mapped();
    list.iter().find(|rule| {
        (rule.clients.is_empty() || contains(&rule.clients, from))
            && (rule.names.is_empty() || rule.names.iter().any(|name| wire::is_at_or_below(asked, name)))
            && (rule.ipv4.is_empty() || rule.ipv4.iter().any(|network| network.contains(address)))
    })
}

/// Prefixes of the rules before the first general rule, and the prefixes of that rule.
fn prefixes_of<'r>(rules: impl Iterator<Item = &'r Rule>) -> (Vec<Pref64>, Option<&'r [Pref64]>) {
    let mut prefixes = Vec::new();
    for rule in rules {
        if rule.is_general() {
            return (prefixes, Some(&rule.prefixes));
        }
        let new = |prefix: &&Pref64| prefixes.len() < PREFIXES && !prefixes.contains(prefix);
        let new: Vec<Pref64> = rule.prefixes.iter().filter(new).copied().collect();
        prefixes.extend(new);
    }
    (prefixes, None)
}

#[test]
fn the_tables_agree_with_a_linear_scan_of_the_rules() {
    let mut random = crate::base::random::Random::new([7; 32]);
    let mut below = |bound: u32| random.below(u64::from(bound)) as u32;
    let mut compared = 0;
    for _ in 0..60 {
        let mut list = Vec::new();
        for _ in 0..below(40) {
            let mut made = Rule::default();
            for _ in 0..below(3) {
                let address = Ipv6Addr::from(0x2001_0db8_u128 << 96 | u128::from(below(16)) << 92);
                made.clients.push(Network::new(address, 30 + below(8) as u8));
            }
            if below(5) == 0 {
                made.clients.push(Network::v4(Ipv4Addr::new(198, 51, 100, 0), 20 + below(10) as u8));
            }
            if below(9) == 0 {
                made.clients.push(Network::new(Ipv6Addr::UNSPECIFIED, 0));
            }
            for _ in 0..below(3) {
                let labels: String = (0..below(4)).map(|_| ["a.", "b.", "c."][below(3) as usize]).collect();
                made.names.push(name(&labels));
            }
            for _ in 0..below(3) {
                let address = Ipv4Addr::from(0x0a00_0000 | below(64) << 18);
                made.ipv4.push(Network::v4(address, 8 + below(8) as u8));
            }
            if below(2) == 0 {
                made.prefixes.push(format!("2001:db8:{:x}::/96", below(24)).parse().unwrap());
            }
            list.push(made);
        }
        let rules = Rules::build(list.clone()).unwrap();
        for _ in 0..300 {
            let from = match below(3) {
                0 => Ipv4Addr::from(0xc633_6400 + below(1024)).to_ipv6_mapped(),
                _ => Ipv6Addr::from(0x2001_0db8_u128 << 96 | u128::from(below(256)) << 88),
            };
            let labels: String = (0..below(5)).map(|_| ["A.", "b.", "c."][below(3) as usize]).collect();
            let asked = name(&labels);
            let address = (0x0a00_0000 | below(1 << 24)).to_be_bytes();
            let of_client =
                list.iter().filter(|rule| rule.clients.is_empty() || contains(&rule.clients, from));
            assert_eq!(prefixes_of(rules.advertised(from)), prefixes_of(of_client), "{from} {list:#?}");
            let applicable = rules.of(from, &asked);
            assert_eq!(
                applicable.decide(address).map(core::ptr::from_ref),
                scanned(rules.list(), from, &asked, address).map(core::ptr::from_ref),
                "{from} {labels} {address:?} {list:#?}"
            );
            compared += usize::from(applicable.decide(address).is_some());
        }
    }
    assert!(compared > 5000, "{compared} questions had a rule");
}
