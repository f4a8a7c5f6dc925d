//! Tables of RFC 6052, round trips over the IPv4 space, and every refusal.

use core::net::{Ipv4Addr, Ipv6Addr};
use sixfold_pref64::{Pref64, PrefixError, WELL_KNOWN};

const LENGTHS: [u8; 6] = [32, 40, 48, 56, 64, 96];

/// RFC 6052 section 2.4, tables 1 and 2, with 192.0.2.33.
const TABLE: [(&str, &str); 7] = [
    ("2001:db8::/32", "2001:db8:c000:221::"),
    ("2001:db8:100::/40", "2001:db8:1c0:2:21::"),
    ("2001:db8:122::/48", "2001:db8:122:c000:2:2100::"),
    ("2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"),
    ("2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::"),
    ("2001:db8:122:344::/96", "2001:db8:122:344::192.0.2.33"),
    ("64:ff9b::/96", "64:ff9b::192.0.2.33"),
];

fn prefix(text: &str) -> Pref64 {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn address(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

/// RFC 6052 section 2.2, figure 1: the octets in which each length keeps the IPv4 address.
fn positions(length: u8) -> [usize; 4] {
    match length {
        32 => [4, 5, 6, 7],
        40 => [5, 6, 7, 9],
        48 => [6, 7, 9, 10],
        56 => [7, 9, 10, 11],
        64 => [9, 10, 11, 12],
        _ => [12, 13, 14, 15],
    }
}

/// A prefix of each length with every bit set that may be set.
fn full_prefixes() -> [Pref64; 6] {
    LENGTHS.map(|length| {
        let bits = (u128::MAX << (128 - length)) & !(0xff << 56);
        Pref64::new(Ipv6Addr::from_bits(bits), length).unwrap()
    })
}

fn check(pref64: &Pref64, v4: [u8; 4]) {
    let mut expected = (pref64.address().to_bits() | pref64.suffix().to_bits()).to_be_bytes();
    for (position, octet) in positions(pref64.length()).into_iter().zip(v4) {
        expected[position] = octet;
    }
    let v6 = pref64.embed(v4);
    assert_eq!(v6, expected, "{pref64} {v4:?}");
    assert_eq!(v6[8], 0, "{pref64} {v4:?}");
    assert_eq!(pref64.extract(v6), Some(v4), "{pref64} {v4:?}");
}

//= RFC 6147 section 5.2: requirements 16, 19
#[test]
fn the_tables_of_section_2_4_hold_both_ways() {
    let v4 = Ipv4Addr::new(192, 0, 2, 33).octets();
    for (text, expected) in TABLE {
        let pref64 = prefix(text);
        assert_eq!(Ipv6Addr::from(pref64.embed(v4)), address(expected), "{text}");
        assert_eq!(pref64.extract(address(expected).octets()), Some(v4), "{text}");
        assert_eq!(pref64.to_string(), text);
    }
}

//= RFC 6147 section 5.2: requirements 16, 17
//= RFC 6052 section 2.2: requirements 34, 35
#[test]
fn every_half_of_the_ipv4_space_survives_the_round_trip_in_every_length() {
    let suffixes = full_prefixes().map(|pref64| {
        let room = if pref64.length() == 96 { 0 } else { u128::MAX >> (pref64.length() + 40) };
        pref64.with_suffix(Ipv6Addr::from_bits(room)).unwrap()
    });
    for pref64 in full_prefixes().iter().chain(&suffixes).chain(&TABLE.map(|(text, _)| prefix(text))) {
        for half in 0..=u16::MAX {
            let [a, b] = half.to_be_bytes();
            check(pref64, [a, b, 0, 0]);
            check(pref64, [0, 0, a, b]);
            check(pref64, [a, 0xff, 0xff, b]);
            check(pref64, [!b, a, b, !a]);
        }
    }
}

#[test]
fn random_prefixes_and_addresses_survive_the_round_trip() {
    let mut random = kit::Random::new(6052);
    for _ in 0..200_000 {
        let length = LENGTHS[(random.bits() % 6) as usize];
        let noise = u128::from(random.bits()) << 64 | u128::from(random.bits());
        let bits = noise & (u128::MAX << (128 - length)) & !(0xff << 56);
        let pref64 = Pref64::new(Ipv6Addr::from_bits(bits), length).unwrap();
        check(&pref64, (random.bits() as u32).to_be_bytes());
        assert_eq!(pref64.to_string().parse(), Ok(pref64));
    }
}

#[test]
fn an_address_that_differs_in_any_bit_of_the_prefix_is_not_under_it() {
    for pref64 in full_prefixes() {
        let v6 = u128::from_be_bytes(pref64.embed([192, 0, 2, 33]));
        for bit in 0..128u8 {
            let other = (v6 ^ 1 << (127 - bit)).to_be_bytes();
            let under = bit >= pref64.length();
            assert_eq!(pref64.contains(other), under, "{pref64} bit {bit}");
            assert_eq!(pref64.extract(other).is_some(), under, "{pref64} bit {bit}");
        }
    }
}

//= RFC 6052 section 2.2: requirement 35
#[test]
fn the_suffix_and_the_octet_u_are_ignored_on_receipt() {
    for pref64 in full_prefixes() {
        let v4 = [192, 0, 2, 33];
        let mut v6 = pref64.embed(v4);
        for (position, octet) in v6.iter_mut().enumerate() {
            let behind_prefix = position >= usize::from(pref64.length()) / 8;
            if behind_prefix && !positions(pref64.length()).contains(&position) {
                *octet = 0xff;
            }
        }
        assert_eq!(pref64.extract(v6), Some(v4), "{pref64}");
    }
}

//= RFC 6147 section 5.2: requirement 17
//= RFC 6052 section 2.2: requirement 33
#[test]
fn only_six_lengths_are_accepted() {
    for length in 0..=255 {
        let result = Pref64::new(Ipv6Addr::UNSPECIFIED, length);
        if LENGTHS.contains(&length) {
            assert_eq!(result.unwrap().length(), length);
        } else {
            assert_eq!(result, Err(PrefixError::Length(length)));
        }
    }
}

//= RFC 6052 section 2.2: requirement 34
#[test]
fn every_single_bit_is_accepted_in_the_prefix_only() {
    for length in LENGTHS {
        for bit in 0..128 {
            let result = Pref64::new(Ipv6Addr::from_bits(1 << (127 - bit)), length);
            match bit {
                bit if bit >= length => assert_eq!(result, Err(PrefixError::HostBits), "/{length} bit {bit}"),
                64..=71 => assert_eq!(result, Err(PrefixError::Bits64To71), "/{length} bit {bit}"),
                _ => assert_eq!(result.unwrap().address().to_bits(), 1 << (127 - bit), "/{length} bit {bit}"),
            }
        }
    }
}

#[test]
fn every_single_bit_is_accepted_in_the_suffix_only_behind_the_ipv4_address() {
    for pref64 in full_prefixes() {
        for bit in 0..128u8 {
            let suffix = Ipv6Addr::from_bits(1 << (127 - bit));
            let result = pref64.with_suffix(suffix);
            let first_bit = pref64.length() + 40;
            if pref64.length() == 96 {
                assert_eq!(result, Err(PrefixError::SuffixWithoutRoom));
            } else if (64..72).contains(&bit) {
                assert_eq!(result, Err(PrefixError::SuffixBits64To71));
            } else if bit < first_bit {
                assert_eq!(result, Err(PrefixError::SuffixOverlap { first_bit }), "{pref64} bit {bit}");
            } else {
                let with = result.unwrap();
                assert_eq!(with.suffix(), suffix);
                assert_eq!((with.address(), with.length()), (pref64.address(), pref64.length()));
                check(&with, [255, 0, 255, 1]);
                // A second suffix replaces the first, and "::" removes it.
                assert_eq!(with.with_suffix(Ipv6Addr::UNSPECIFIED), Ok(pref64));
            }
        }
    }
}

#[test]
fn a_suffix_stands_behind_the_ipv4_address() {
    let v4 = [192, 0, 2, 33];
    let long = prefix("2001:db8:122:344::/64").with_suffix(address("::ab:cdef")).unwrap();
    assert_eq!(Ipv6Addr::from(long.embed(v4)), address("2001:db8:122:344:c0:2:21ab:cdef"));
    let short = prefix("2001:db8:122::/48").with_suffix(address("::7")).unwrap();
    assert_eq!(Ipv6Addr::from(short.embed(v4)), address("2001:db8:122:c000:2:2100:0:7"));
    assert_eq!(
        format!("{long} {long:?}"),
        "2001:db8:122:344::/64 Pref64(2001:db8:122:344::/64 suffix ::ab:cdef)"
    );
}

//= RFC 8215 section 5: requirement 54
#[test]
fn only_one_prefix_is_well_known() {
    assert!(WELL_KNOWN.is_well_known());
    assert_eq!(prefix("64:ff9b::/96"), WELL_KNOWN);
    for text in ["64:ff9b:1::/48", "64:ff9b::/64", "64:ff9b:0:0:0:1::/96"] {
        assert!(!prefix(text).is_well_known(), "{text}");
    }
}

#[test]
fn text_that_is_no_prefix_is_refused_with_its_cause_and_the_remedy() {
    for (text, error) in [
        ("64:ff9b::", PrefixError::LengthMissing),
        ("foobar", PrefixError::LengthMissing),
        ("", PrefixError::LengthMissing),
        ("64:ff9b::/", PrefixError::LengthText),
        ("64:ff9b::/+96", PrefixError::LengthText),
        ("64:ff9b::/096", PrefixError::LengthText),
        ("64:ff9b::/96 ", PrefixError::LengthText),
        ("64:ff9b::/256", PrefixError::LengthText),
        ("64:ff9b::/96/96", PrefixError::LengthText),
        ("8.8.8.8/24", PrefixError::Address),
        ("/96", PrefixError::Address),
        ("::/0", PrefixError::Length(0)),
        ("64:ff9b::/52", PrefixError::Length(52)),
        ("64:ff9b::1/128", PrefixError::Length(128)),
        ("64:ff9b::1/96", PrefixError::HostBits),
        ("fe80::21b:77ff:0:0/96", PrefixError::Bits64To71),
        ("0:0:0:0:0100:f::/96", PrefixError::Bits64To71),
    ] {
        assert_eq!(text.parse::<Pref64>(), Err(error), "{text}");
        assert!(!error.to_string().is_empty());
    }
    assert!(PrefixError::Length(52).to_string().contains("/32, /40, /48, /56, /64 or /96"));
}
