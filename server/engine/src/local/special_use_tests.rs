//! Unit tests of special-use names.

use super::*;
use crate::base::network::ClientNetworks;
use crate::dns64::config::{Arpa, FailurePolicy, NonGlobal};
use crate::local::reverse_labels::NIBBLES;

/// Settings with these prefixes.
fn dns64(prefixes: &[&str]) -> Dns64 {
    Dns64 {
        prefixes: prefixes.iter().map(|text| text.parse().unwrap()).collect(),
        clients: ClientNetworks::default(),
        exclude_aaaa: Vec::new(),
        non_global: NonGlobal::default(),
        mappings: None,
        never_embed: Vec::new(),
        lookup: Default::default(),
        on_failure: FailurePolicy::default(),
        dnssec: Default::default(),
        break_dnssec: false,
        recursive_only: false,
        max_records: 64,
        arpa: Arpa::default(),
        rules: Default::default(),
        discovery: None,
        gateways: None,
        verdicts: None,
    }
}

/// The last labels of the reverse name of an address: those of its first `nibbles` nibbles.
fn reverse(address: [u8; 16], nibbles: usize) -> Vec<u8> {
    let mut name = [0; pref64::reverse::IP6_NAME];
    pref64::reverse::write_ip6(address, &mut name);
    name[2 * (NIBBLES - nibbles)..].to_vec()
}

/// Classifies a name as a PTR question: `ordinary`, `local`, or the IPv4 address of the alias.
fn treatment(dns64: &Dns64, name: &[u8]) -> String {
    let client = Ipv6Addr::LOCALHOST;
    let settings = SpecialUseSettings { dns64, local_data: &LocalData::default(), forward_zones: &[] };
    match classify(settings, client, name, Type::PTR, Class::IN) {
        SpecialUse::Ordinary => "ordinary".into(),
        SpecialUse::Local(_) => "local".into(),
        SpecialUse::Alias(address) => core::net::Ipv4Addr::from(address).to_string(),
    }
}

/// A prefix of each length of RFC 6052 section 2.2.
const PREFIXES: [&str; 6] = [
    "3fff:1::/32",
    "3fff:1:2200::/40",
    "3fff:3:122::/48",
    "3fff:4:122:300::/56",
    "3fff:5:122:344::/64",
    "3fff:6:122:344::/96",
];

//= RFC 6052 section 2.2: requirement 34
#[test]
fn an_address_with_a_bit_of_64_to_71_has_an_ordinary_reverse_name_under_every_prefix() {
    for text in PREFIXES {
        let dns64 = dns64(&[text]);
        let address = dns64.prefixes[0].embed([203, 0, 113, 254]);
        assert_eq!(treatment(&dns64, &reverse(address, NIBBLES)), "203.0.113.254", "{text}");
        for bit in 0..8 {
            let mut other = address;
            other[8] ^= 1 << bit;
            for nibbles in 18..=NIBBLES {
                let name = reverse(other, nibbles);
                assert_eq!(
                    treatment(&dns64, &name),
                    "ordinary",
                    "{text} bit {} of {nibbles} nibbles",
                    71 - bit
                );
            }
        }
    }
}

//= RFC 6052 section 2.2: requirement 35
#[test]
fn the_bits_after_an_embedded_address_do_not_change_its_reverse_name() {
    for text in PREFIXES {
        let dns64 = dns64(&[text]);
        let prefix = dns64.prefixes[0];
        // The address ends after the prefix, the octet `u` and 32 bits; with 96 bits there is no suffix.
        let first = usize::from(prefix.length()) / 8 + 5;
        for octet in first..16 {
            let mut address = prefix.embed([203, 0, 113, 254]);
            address[octet] = 0xa5;
            assert_eq!(
                treatment(&dns64, &reverse(address, NIBBLES)),
                "203.0.113.254",
                "{text} octet {octet}"
            );
        }
    }
}

#[test]
fn names_with_fewer_nibbles_than_an_address_exist_under_a_prefix() {
    for text in PREFIXES {
        let dns64 = dns64(&[text]);
        let prefix = dns64.prefixes[0];
        let address = prefix.embed([203, 0, 113, 254]);
        for nibbles in 1..NIBBLES {
            let expected = if 4 * nibbles < usize::from(prefix.length()) { "ordinary" } else { "local" };
            assert_eq!(treatment(&dns64, &reverse(address, nibbles)), expected, "{text}, {nibbles} nibbles");
        }
    }
}

#[test]
fn a_forward_zone_takes_precedence_only_at_or_below_a_reserved_name() {
    let dns64 = dns64(&["2001:db8:64::/96"]);
    let local_data = LocalData::default().with_empty_zones(true);
    let treatment = |zone: &[u8], name: &[u8]| {
        let forward_zones = &[ForwardZone { name: zone.into(), forwarders: Vec::new() }];
        let settings = SpecialUseSettings { dns64: &dns64, local_data: &local_data, forward_zones };
        match classify(settings, Ipv6Addr::LOCALHOST, name, Type::A, Class::IN) {
            SpecialUse::Ordinary => "ordinary",
            SpecialUse::Local(_) => "local",
            SpecialUse::Alias(_) => "alias",
        }
    };
    for (zone, name, expected) in [
        (&b"\x05onion\0"[..], &b"\x01a\x05onion\0"[..], "ordinary"),
        (b"\x01a\x05onion\0", b"\x01a\x05onion\0", "ordinary"),
        (b"\x01a\x05onion\0", b"\x01b\x05onion\0", "local"),
        (b"\x09localhost\0", b"\x09LOCALHOST\0", "ordinary"),
        (b"\0", b"\x01a\x05onion\0", "local"),
        (b"\x07in-addr\x04arpa\0", b"\x0210\x07in-addr\x04arpa\0", "local"),
        (b"\x0210\x07in-addr\x04arpa\0", b"\x011\x0210\x07in-addr\x04arpa\0", "ordinary"),
    ] {
        assert_eq!(treatment(zone, name), expected, "{zone:?} {name:?}");
    }
}

#[test]
fn only_names_in_class_in_that_end_in_a_special_label_are_special() {
    let dns64 = dns64(&["2001:db8:64::/96"]);
    let local_data = LocalData::default();
    let settings = SpecialUseSettings { dns64: &dns64, local_data: &local_data, forward_zones: &[] };
    let is_special = |name: &[u8], class| {
        !matches!(classify(settings, Ipv6Addr::LOCALHOST, name, Type::A, class), SpecialUse::Ordinary)
    };
    assert!(is_special(b"\x05onion\0", Class::IN) && !is_special(b"\x05onion\0", Class::CH));
    // The root, short names, and labels that end in the octets of a special label.
    for name in [&b"\0"[..], b"\x01t\0", b"\x02on\0", b"\x06xonion\0", b"\x07a\x05onion\0", b"\x04test\0"] {
        assert!(!is_special(name, Class::IN), "{name:?}");
    }
}
