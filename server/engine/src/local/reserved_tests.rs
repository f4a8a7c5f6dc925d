//! Unit tests of reserved names.

use super::*;

/// The zone of a name, as text: its kind and its labels from the apex on.
fn zone(text: &str, empty_zones: bool) -> Option<(ReservedKind, String)> {
    let name = kit::name(text);
    let zone = zone_of(&name, empty_zones)?;
    let apex = wire::Name::from_wire(&name[zone.apex..]).unwrap().to_string();
    Some((zone.kind, apex))
}

#[test]
fn localhost_invalid_and_onion_are_zones_in_any_letter_case() {
    for (text, kind, apex) in [
        ("localhost.", ReservedKind::Localhost, "localhost."),
        ("a.b.LocalHost.", ReservedKind::Localhost, "LocalHost."),
        ("invalid.", ReservedKind::Invalid, "invalid."),
        ("www.INVALID.", ReservedKind::Invalid, "INVALID."),
        ("onion.", ReservedKind::Onion, "onion."),
        ("a.onion.", ReservedKind::Onion, "onion."),
    ] {
        for empty_zones in [false, true] {
            assert_eq!(zone(text, empty_zones), Some((kind, apex.into())), "{text}");
        }
    }
    for text in [".", "t.", "xlocalhost.", "localhost.example.", "test.", "a.local.", "x.internal.", "arpa."]
    {
        assert_eq!(zone(text, true), None, "{text}");
    }
    // The octets of `onion` with its length, within a longer label.
    assert_eq!(zone_of(b"\x07a\x05onion\x00", true), None);
}

/// RFC 8375 section 4 (home.arpa), and IANA's registry of locally served zones.
#[test]
fn home_arpa_is_always_empty_and_other_locally_served_zones_on_demand() {
    for (text, always, apex) in [
        ("home.arpa.", true, "home.arpa."),
        ("nas.Home.arpa.", true, "Home.arpa."),
        ("default.service.arpa.", false, "service.arpa."),
        ("a.empty.as112.arpa.", false, "empty.as112.arpa."),
    ] {
        let expected = Some((ReservedKind::Empty, apex.to_owned()));
        assert_eq!(zone(text, true), expected, "{text}");
        assert_eq!(zone(text, false), expected.filter(|_| always), "{text}");
    }
    for text in ["xhome.arpa.", "as112.arpa.", "arpa."] {
        assert_eq!(zone(text, true), None, "{text}");
    }
    let apex = zone_of(&kit::name("home.arpa."), false).unwrap();
    let below = zone_of(&kit::name("nas.home.arpa."), false).unwrap();
    assert_eq!(
        (apex.data(Type::SOA, || false), apex.data(Type::AAAA, || false)),
        (Some(ZoneData::Soa), Some(ZoneData::NoData))
    );
    assert_eq!(
        (below.data(Type::A, || false), below.data(Type::A, || true)),
        (Some(ZoneData::NxDomain), Some(ZoneData::NoData))
    );
    // A validator must be able to prove that the zone is not signed.
    assert_eq!(apex.data(Type::DS, || false), None);
}

//= RFC 9462 section 4: requirement 61
//= RFC 9462 section 6.4: requirement 62
#[test]
fn resolver_arpa_is_local_and_all_names_below_it_exist_without_records() {
    for (text, qtype, expected) in [
        ("_dns.resolver.arpa.", Type::SVCB, ZoneData::NoData),
        ("_DNS.Resolver.ARPA.", Type::SVCB, ZoneData::NoData),
        ("_dns.resolver.arpa.", Type::AAAA, ZoneData::NoData),
        ("resolver.arpa.", Type::SOA, ZoneData::Soa),
        ("resolver.arpa.", Type::NS, ZoneData::Ns),
        ("resolver.arpa.", Type::A, ZoneData::NoData),
        ("resolver.arpa.", Type::DS, ZoneData::NoData),
        ("_dot.resolver.arpa.", Type::SVCB, ZoneData::NoData),
        ("x._dns.resolver.arpa.", Type::SOA, ZoneData::NoData),
    ] {
        for empty_zones in [false, true] {
            let zone = zone_of(&kit::name(text), empty_zones).unwrap();
            assert_eq!(zone.data(qtype, || false), Some(expected), "{text} {qtype:?}");
            assert_eq!(zone.kind.zone(), LocalZone::ResolverArpa, "{text}");
        }
    }
    assert_eq!(zone("xresolver.arpa.", true), None);
}

//= RFC 6303 section 4: requirement 60
#[test]
fn the_zones_of_rfc_6303_and_rfc_7793_begin_and_end_where_their_networks_do() {
    let zeros = "0.".repeat(31);
    let one_zone = |text: &str| zone(text, true).map(|(kind, apex)| (kind == ReservedKind::Empty, apex));
    for text in [
        "10.in-addr.arpa.",
        "16.172.in-addr.arpa.",
        "31.172.in-addr.arpa.",
        "168.192.in-addr.arpa.",
        "0.in-addr.arpa.",
        "127.in-addr.arpa.",
        "254.169.in-addr.arpa.",
        "2.0.192.in-addr.arpa.",
        "100.51.198.in-addr.arpa.",
        "113.0.203.in-addr.arpa.",
        "255.255.255.255.in-addr.arpa.",
        "64.100.in-addr.arpa.",
        "127.100.in-addr.arpa.",
        &format!("0.{zeros}ip6.arpa."),
        "d.f.ip6.arpa.",
        "8.e.f.ip6.arpa.",
        "b.e.f.ip6.arpa.",
        "8.b.d.0.1.0.0.2.ip6.arpa.",
    ] {
        assert_eq!(one_zone(text), Some((true, text.to_owned())), "{text}");
        assert_eq!(one_zone(&format!("1.{text}")), Some((true, text.to_owned())), "1.{text}");
        assert_eq!(one_zone(&format!("x.1.{text}")), Some((true, text.to_owned())), "x.1.{text}");
        assert_eq!(zone(text, false), None, "{text}");
        let (_, parent) = text.split_once('.').unwrap();
        assert_eq!(one_zone(parent), None, "{parent}");
    }
    for text in [
        "9.in-addr.arpa.",
        "11.in-addr.arpa.",
        "010.in-addr.arpa.",
        "15.172.in-addr.arpa.",
        "32.172.in-addr.arpa.",
        "167.192.in-addr.arpa.",
        "1.0.192.in-addr.arpa.",
        "254.255.255.255.in-addr.arpa.",
        "63.100.in-addr.arpa.",
        "128.100.in-addr.arpa.",
        "x.in-addr.arpa.",
        "10.in-addr.arpa.example.",
        "c.f.ip6.arpa.",
        "7.e.f.ip6.arpa.",
        "c.e.f.ip6.arpa.",
        "9.b.d.0.1.0.0.2.ip6.arpa.",
        &format!("2.{zeros}ip6.arpa."),
        &format!("{zeros}ip6.arpa."),
    ] {
        assert_eq!(zone(text, true), None, "{text}");
    }
}

#[test]
fn the_reverse_names_of_the_loopback_addresses_are_known_without_the_zones_of_rfc_6303() {
    let v6 = format!("1.{}ip6.arpa.", "0.".repeat(31));
    let loopback = |apex: &str| Some((ReservedKind::LoopbackReverse, apex.to_owned()));
    assert_eq!(zone("1.0.0.127.in-addr.arpa.", false), loopback("1.0.0.127.in-addr.arpa."));
    assert_eq!(zone("1.0.0.127.in-addr.arpa.", true), loopback("127.in-addr.arpa."));
    assert_eq!(zone(&v6, false), loopback(&v6));
    assert_eq!(zone(&v6, true), loopback(&v6));
    for text in ["2.0.0.127.in-addr.arpa.", "0.0.127.in-addr.arpa.", "x.1.0.0.127.in-addr.arpa."] {
        assert_eq!(zone(text, false), None, "{text}");
    }
}
