//! Reverse names in both directions, and names that are no reverse names.

use core::net::Ipv6Addr;
use sixfold_pref64::WELL_KNOWN;
use sixfold_pref64::reverse::{self, IN_ADDR_NAME_MAX, IP6_NAME};

fn ip6_name(address: [u8; 16]) -> Vec<u8> {
    let mut name = [0; IP6_NAME];
    reverse::write_ip6(address, &mut name);
    name.to_vec()
}

fn in_addr_name(address: [u8; 4]) -> Vec<u8> {
    let mut name = [0xff; IN_ADDR_NAME_MAX];
    let length = reverse::write_in_addr(address, &mut name);
    name[..length].to_vec()
}

#[test]
fn the_example_of_rfc_3596_holds_both_ways() {
    let text = "b.a.9.8.7.6.5.0.4.0.0.0.3.0.0.0.2.0.0.0.1.0.0.0.0.0.0.0.1.2.3.4.ip6.arpa";
    let address: Ipv6Addr = "4321:0:1:2:3:4:567:89ab".parse().unwrap();
    assert_eq!(ip6_name(address.octets()), kit::name(text));
    assert_eq!(reverse::parse_ip6(&kit::name(text)), Some(address.octets()));
    assert_eq!(reverse::parse_ip6(&kit::name(&text.to_uppercase())), Some(address.octets()));
}

#[test]
fn a_name_under_the_well_known_prefix_leads_to_its_ipv4_name() {
    let name = kit::name("8.0.7.0.6.0.5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.b.9.f.f.4.6.0.0.iP6.ArPa");
    let v4 = WELL_KNOWN.extract(reverse::parse_ip6(&name).unwrap()).unwrap();
    assert_eq!(in_addr_name(v4), kit::name("8.7.6.5.in-addr.arpa"));
}

#[test]
fn every_octet_in_every_place_survives_the_round_trip() {
    for place in 0..16 {
        for octet in 0..=255 {
            let mut v6 = [0x5a; 16];
            v6[place] = octet;
            assert_eq!(reverse::parse_ip6(&ip6_name(v6)), Some(v6));
            let mut v4 = [100, 9, 0, 255];
            v4[place % 4] = octet;
            let text = format!("{}.{}.{}.{}.in-addr.arpa", v4[3], v4[2], v4[1], v4[0]);
            assert_eq!(in_addr_name(v4), kit::name(&text));
            assert_eq!(reverse::parse_in_addr(&kit::name(&text.to_uppercase())), Some(v4));
        }
    }
}

#[test]
fn names_that_are_not_exactly_an_ip6_address_are_refused() {
    let nibbles = "0.".repeat(32);
    for text in [
        "ip6.arpa".to_string(),
        format!("{}ip6.arpa", "0.".repeat(31)),
        format!("{}ip6.arpa", "0.".repeat(33)),
        format!("{nibbles}ip6.int"),
        format!("{nibbles}ip6.arpa.example"),
        format!("{nibbles}in-addr.arpa"),
        format!("g.{}ip6.arpa", "0.".repeat(31)),
        format!("00.{}ip6.arpa", "0.".repeat(31)),
        // As long as a reverse name, with other label lengths.
        format!("000.{}ip6.arpa", "0.".repeat(30)),
        format!("{}000.ip6.arpa", "0.".repeat(30)),
    ] {
        assert_eq!(reverse::parse_ip6(&kit::name(&text)), None, "{text}");
    }
    let name = kit::name(&format!("{nibbles}ip6.arpa"));
    for length in 0..name.len() {
        assert_eq!(reverse::parse_ip6(&name[..length]), None);
    }
}

#[test]
fn a_shorter_ip6_name_is_a_network() {
    let network = |text: &str| reverse::parse_ip6_partial(&kit::name(text));
    assert_eq!(network("ip6.arpa"), Some((0, 0)));
    assert_eq!(network("2.ip6.arpa"), Some((2 << 124, 4)));
    assert_eq!(network("B.9.f.f.4.6.0.0.IP6.arpa"), Some((0x0064_ff9b << 96, 32)));
    assert_eq!(network(&format!("{}ip6.arpa", "f.".repeat(32))), Some((u128::MAX, 128)));
    assert_eq!(network("zz.9.f.f.ip6.arpa"), None);
    assert_eq!(network(&format!("{}ip6.arpa", "0.".repeat(33))), None);
    assert_eq!(network("xip6.arpa"), None);
}

#[test]
fn names_that_are_not_exactly_an_ipv4_address_are_refused() {
    for text in [
        "in-addr.arpa",
        "2.0.192.in-addr.arpa",
        "1.33.2.0.192.in-addr.arpa",
        "033.2.0.192.in-addr.arpa",
        "00.2.0.192.in-addr.arpa",
        "256.2.0.192.in-addr.arpa",
        "1000.2.0.192.in-addr.arpa",
        "3a.2.0.192.in-addr.arpa",
        "33.2.0.192.in-addr.example",
        "33.2.0.192.in-addr.arpa.example",
        "33.2.0.192.ip6.arpa",
    ] {
        assert_eq!(reverse::parse_in_addr(&kit::name(text)), None, "{text}");
    }
    let name = kit::name("33.2.0.192.in-addr.arpa");
    for length in 0..name.len() {
        assert_eq!(reverse::parse_in_addr(&name[..length]), None);
    }
    // A label whose length reaches into the zone.
    assert_eq!(reverse::parse_in_addr(b"\x09192\x07in-addr\x04arpa\x00"), None);
}
