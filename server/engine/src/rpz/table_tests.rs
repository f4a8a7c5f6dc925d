//! Tests of precedence, compared with a search through all rules.

use super::*;
use crate::base::random::Random;
use core::net::Ipv4Addr;

/// A zone whose rules have different TTLs, which identify them.
fn zone(entries: Vec<(Trigger, u32)>) -> PolicyZone {
    let soa = LocalRecord { owner: [0].into(), rtype: Type::SOA, ttl: 60, rdata: [].into() };
    let entries =
        entries.into_iter().map(|(trigger, ttl)| PolicyRule { trigger, action: Action::NxDomain, ttl });
    PolicyZone { soa, entries: entries.collect() }
}

fn below(name: &[u8]) -> Trigger {
    Trigger::Below(name.into())
}

fn name(name: &[u8]) -> Trigger {
    Trigger::Name(name.into())
}

fn ttl_of(policy: &ResponsePolicy, hit: Option<RuleMatch>) -> Option<u32> {
    policy.rule_of(hit?.rule).map(|(rule, _)| rule.ttl)
}

#[test]
fn the_first_zone_decides_and_there_the_closest_name() {
    let policy = ResponsePolicy::build(vec![
        zone(vec![(below(b"\x07example\0"), 1), (name(b"\x01b\x07example\0"), 2)]),
        zone(vec![
            (name(b"\x01a\x07example\0"), 3),
            (name(b"\x07example\0"), 4),
            (below(b"\x01c\x04test\0"), 5),
            (below(b"\0"), 6),
        ]),
    ])
    .unwrap();
    for (asked, ttl) in [
        (&b"\x01a\x07example\0"[..], 1),
        (b"\x01B\x07Example\0", 2),
        (b"\x01x\x01b\x07example\0", 1),
        (b"\x07example\0", 4),
        (b"\x01c\x04test\0", 6),
        (b"\x01x\x01y\x01c\x04test\0", 5),
    ] {
        assert_eq!(ttl_of(&policy, policy.of_name(asked)), Some(ttl), "{asked:?}");
    }
    // Nothing is above the root.
    assert_eq!(policy.of_name(b"\0"), None);
    assert_eq!(ResponsePolicy::default().of_name(b"\x01a\0"), None);
}

#[test]
fn a_client_goes_before_a_name_in_the_same_zone_only() {
    let network = |text: &str, length| Trigger::Client(Network::new(text.parse().unwrap(), length));
    let policy = ResponsePolicy::build(vec![
        zone(vec![(name(b"\x01a\0"), 1)]),
        zone(vec![(name(b"\x01b\0"), 2), (network("2001:db8::", 32), 3), (network("::", 0), 4)]),
    ])
    .unwrap();
    let of = |client: &str, name: &[u8]| ttl_of(&policy, policy.of_question(client.parse().ok(), name));
    assert_eq!(of("2001:db8::1", b"\x01a\0"), Some(1));
    assert_eq!(of("2001:db8::1", b"\x01b\0"), Some(3));
    assert_eq!(of("fd00::1", b"\x01c\0"), Some(4));
    // `::/0` does not match IPv4 clients.
    assert_eq!(of("::ffff:192.0.2.1", b"\x01c\0"), None);
}

#[test]
fn of_networks_the_first_zone_decides_then_the_longest_then_the_lowest() {
    let mut random = Random::new([7; 32]);
    for _ in 0..200 {
        let mut rules: Vec<(u16, Network)> = Vec::new();
        let zones = 1 + random.bits() % 3;
        for _ in 0..random.bits() % 40 {
            let zone = (random.bits() % zones) as u16;
            // Few bits, so that networks are nested.
            let address = Ipv4Addr::from((random.bits() & 0x0f) as u32 | 0xc000_0200);
            rules.push((zone, Network::v4(address, 26 + (random.bits() % 7) as u8)));
        }
        rules.sort_by_key(|&(zone, _)| zone);
        rules.dedup();
        let entries = |zone| {
            let of = |(number, &(at, network)): (usize, &(u16, Network))| {
                (at == zone).then_some((Trigger::Address(network), number as u32))
            };
            rules.iter().enumerate().filter_map(of).collect()
        };
        let policy = ResponsePolicy::build((0..zones as u16).map(|at| zone(entries(at))).collect()).unwrap();
        for last in 0..64u32 {
            let address = Ipv4Addr::from(0xc000_0200 | last);
            let covers =
                |(_, (_, network)): &(usize, &(u16, Network))| network.contains(address.to_ipv6_mapped());
            let best = rules.iter().enumerate().filter(covers).min_by_key(|(_, (zone, network))| {
                (*zone, core::cmp::Reverse(network.mask.count_ones()), network.address)
            });
            let place = policy.ipv4.find(u32::from(address));
            let hit = policy.address_rules.get(place as usize).and_then(|&rule| policy.rule_match(rule));
            let same = best.map(|(_, &(zone, network))| (zone, network));
            let found = ttl_of(&policy, hit).map(|number| rules[number as usize]);
            assert_eq!(found, same, "{address} of {rules:?}");
        }
    }
}

#[test]
fn equal_rules_are_stored_once() {
    let names = |number: u32| (name(&[&[4u8][..], &number.to_be_bytes(), &[0]].concat()), 60);
    let policy = ResponsePolicy::build(vec![zone((0..1000).map(names).collect())]).unwrap();
    assert_eq!((policy.rules.len(), policy.nodes.len()), (1, 1000));
}

#[test]
fn more_zones_than_there_may_be_are_refused() {
    assert_eq!(ResponsePolicy::build(vec![zone(vec![]); ZONES + 1]), Err(TooMany::Zones));
    assert!(ResponsePolicy::build(vec![zone(vec![]); ZONES]).is_ok());
}
