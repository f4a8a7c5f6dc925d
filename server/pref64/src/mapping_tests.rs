//! Tests of explicit address mappings: the examples of RFC 7757, errors, and a comparison with a linear scan.

use super::*;
use alloc::string::{String, ToString};

fn v4(text: &str) -> [u8; 4] {
    text.parse::<Ipv4Addr>().unwrap().octets()
}

fn v6(text: &str) -> [u8; 16] {
    text.parse::<Ipv6Addr>().unwrap().octets()
}

fn mappings(lines: &[&str]) -> Mappings {
    Mappings::new(lines.iter().map(|line| line.parse().unwrap()).collect()).unwrap()
}

/// The example table of RFC 7757 (figure 1).
const EXAMPLES: [&str; 6] = [
    "192.0.2.1 2001:db8:aaaa::",
    "192.0.2.2/32 2001:db8:bbbb::b/128",
    "192.0.2.16/28 2001:db8:cccc::/124",
    "192.0.2.128/26 2001:db8:dddd::/64",
    "192.0.2.192/29 2001:db8:eeee:8::/62",
    "192.0.2.224/31 64:ff9b::/127",
];

#[test]
fn the_examples_of_rfc_7757_translate_in_both_directions() {
    let table = mappings(&EXAMPLES);
    for (four, six) in [
        ("192.0.2.1", "2001:db8:aaaa::"),
        ("192.0.2.2", "2001:db8:bbbb::b"),
        ("192.0.2.16", "2001:db8:cccc::"),
        ("192.0.2.24", "2001:db8:cccc::8"),
        ("192.0.2.31", "2001:db8:cccc::f"),
        ("192.0.2.128", "2001:db8:dddd::"),
        ("192.0.2.152", "2001:db8:dddd:0:6000::"),
        ("192.0.2.183", "2001:db8:dddd:0:dc00::"),
        ("192.0.2.191", "2001:db8:dddd:0:fc00::"),
        ("192.0.2.193", "2001:db8:eeee:8:8000::"),
        ("192.0.2.199", "2001:db8:eeee:b:8000::"),
        ("192.0.2.224", "64:ff9b::"),
        ("192.0.2.225", "64:ff9b::1"),
    ] {
        assert_eq!(table.to_v6(v4(four)), Some(v6(six)), "{four}");
        assert_eq!(table.to_v4(v6(six)), Some(v4(four)), "{six}");
    }
    for four in ["192.0.2.0", "192.0.2.3", "192.0.2.32", "192.0.2.127", "192.0.2.200", "192.0.2.226"] {
        assert_eq!(table.to_v6(v4(four)), None, "{four}");
    }
    for six in ["2001:db8:aaaa::1", "2001:db8:cccc::10", "2001:db8:eeee:c::", "64:ff9b::2"] {
        assert_eq!(table.to_v4(v6(six)), None, "{six}");
    }
    // Section 3.3.2: bits behind those of the IPv4 address are ignored.
    assert_eq!(table.to_v4(v6("2001:db8:dddd:0:63ff::9")), Some(v4("192.0.2.152")));
}

#[test]
fn the_longest_prefix_decides_in_each_direction() {
    let table = mappings(&[
        "10.0.0.0/8 2001:db8:a::/64",
        "10.1.0.0/16 2001:db8:b::/96",
        "10.1.2.3 2001:db8:a::7",
        "0.0.0.0/0 ::/0",
    ]);
    assert_eq!(table.to_v6(v4("10.1.2.3")), Some(v6("2001:db8:a::7")));
    assert_eq!(table.to_v6(v4("10.1.2.4")), Some(v6("2001:db8:b::204:0")));
    assert_eq!(table.to_v6(v4("10.2.0.1")), Some(v6("2001:db8:a:0:200:100::")));
    assert_eq!(table.to_v6(v4("255.255.255.255")), Some(v6("ffff:ffff::")));
    assert_eq!(table.to_v4(v6("2001:db8:a::7")), Some(v4("10.1.2.3")));
    assert_eq!(table.to_v4(v6("2001:db8:a::8")), Some(v4("10.0.0.0")));
    assert_eq!(table.to_v4([255; 16]), Some([255; 4]));
    assert_eq!(table.to_v4([0; 16]), Some([0; 4]));
}

#[test]
fn the_first_and_the_last_address_may_be_mapped() {
    let table = mappings(&["255.255.255.255 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "0.0.0.0 ::"]);
    assert_eq!(table.to_v6([255; 4]), Some([255; 16]));
    assert_eq!(table.to_v6([0; 4]), Some([0; 16]));
    assert_eq!(table.to_v6([255, 255, 255, 254]), None);
    assert_eq!(table.to_v4([255; 16]), Some([255; 4]));
    assert_eq!(table.to_v4(v6("::1")), None);
    assert_eq!(Mappings::default().to_v6([255; 4]), None);
    assert_eq!(Mappings::default().to_v4([255; 16]), None);
}

#[test]
fn a_wrong_line_says_what_to_write() {
    for (line, error) in [
        ("192.0.2.1", MappingError::Words),
        ("192.0.2.1 2001:db8::1 x", MappingError::Words),
        ("2001:db8::1 192.0.2.1", MappingError::Order),
        ("192.0.2 2001:db8::1", MappingError::Address4),
        ("2001:db8::1 2001:db8::1", MappingError::Address4),
        ("192.0.2.1 example", MappingError::Address6),
        ("192.0.2.1 192.0.2.1", MappingError::Address6),
        ("192.0.2.1/33 2001:db8::1", MappingError::Length4),
        ("192.0.2.1/ 2001:db8::1", MappingError::Length4),
        ("192.0.2.1/032 2001:db8::1", MappingError::Length4),
        ("192.0.2.1 2001:db8::/129", MappingError::Length6),
        ("192.0.2.1 2001:db8::/+64", MappingError::Length6),
        ("192.0.2.17/28 2001:db8::/124", MappingError::HostBits4(Ipv4Addr::new(192, 0, 2, 16))),
        ("192.0.2.16/28 2001:db8::1/124", MappingError::HostBits6(Ipv6Addr::from_octets(v6("2001:db8::")))),
        ("192.0.2.16/28 2001:db8::/125", MappingError::NoRoom { longest: 124 }),
        ("0.0.0.0/0 2001:db8::/97", MappingError::NoRoom { longest: 96 }),
    ] {
        assert_eq!(line.parse::<Mapping>(), Err(error), "{line}");
        let text = error.to_string();
        assert!(text.contains("; write ") && !text.contains('\n'), "{text}");
    }
    for line in EXAMPLES {
        let mapping: Mapping = line.parse().unwrap();
        assert_eq!(mapping.to_string().parse(), Ok(mapping), "{line}");
    }
}

#[test]
fn a_prefix_that_two_mappings_have_is_refused() {
    let duplicate =
        |lines: &[&str]| Mappings::new(lines.iter().map(|line| line.parse().unwrap()).collect()).unwrap_err();
    assert_eq!(
        duplicate(&["192.0.2.1 2001:db8::1", "192.0.2.2 2001:db8::2", "192.0.2.1/32 2001:db8::3"]),
        Duplicate { first: 0, second: 2, is_ipv4: true }
    );
    assert_eq!(
        duplicate(&["192.0.2.1 2001:db8::1", "192.0.2.2 2001:db8::1"]),
        Duplicate { first: 0, second: 1, is_ipv4: false }
    );
    assert_eq!(
        duplicate(&["192.0.2.1 2001:db8::1", "192.0.2.1 2001:db8::1"]),
        Duplicate { first: 0, second: 1, is_ipv4: true }
    );
    // The pair with the lowest second number.
    assert_eq!(
        duplicate(&["192.0.2.1 2001:db8::1", "10.0.0.1 2001:db8::1", "192.0.2.1 2001:db8::3"]),
        Duplicate { first: 0, second: 1, is_ipv4: false }
    );
}

#[test]
fn a_network_reaches_mapped_addresses_above_and_below_it() {
    let table = mappings(&EXAMPLES);
    let reaches = |address: &str, bits| table.reaches_below(v6(address), bits);
    assert!(reaches("::", 0) && reaches("2001:db8::", 32) && reaches("2001:db8:cccc::", 124));
    assert!(reaches("2001:db8:cccc::4", 128) && reaches("64:ff9b::1", 128) && reaches("2001:db8:dddd::", 72));
    assert!(!reaches("2001:db8:f000::", 36) && !reaches("2001:db8:cccc::10", 124) && !reaches("::", 16));
    assert!(!Mappings::default().reaches_below([0; 16], 0));
}

#[test]
fn tables_of_all_sizes_agree_with_a_linear_scan() {
    let mut numbers = kit::Random::new(1);
    let mut found = 0;
    for size in [0, 1, 2, 7, 15, 16, 17, 100, 255, 256, 257, 700] {
        let mut list: Vec<Mapping> = Vec::new();
        for _ in 0..size {
            // Few networks, so that many are nested.
            let length4 = 20 + numbers.below(13) as u8;
            let length6 = 100 + numbers.below(u64::from(29.min(97 + length4 - 100))) as u8;
            let v4 = (0x0a00_0000 | numbers.below(1 << 14) as u32) & !host4(length4);
            let v6 = (0x2001_0db8 << 96 | u128::from(numbers.below(1 << 26))) & !host6(length6);
            let made = Mapping::new((v4.into(), length4), (v6.into(), length6)).unwrap();
            let is_new = |other: &Mapping| {
                (other.v4, other.length4) != (v4, length4) && (other.v6, other.length6) != (v6, length6)
            };
            if list.iter().all(is_new) {
                list.push(made);
            }
        }
        let table = Mappings::new(list.clone()).unwrap();
        for _ in 0..2_000 {
            let four = 0x0a00_0000 | numbers.below(1 << 14) as u32;
            let of_four = list.iter().filter(|one| four & !host4(one.length4) == one.v4);
            let expected = of_four.max_by_key(|one| one.length4).map(|one| one.embed(four).to_be_bytes());
            assert_eq!(table.to_v6(four.to_be_bytes()), expected, "{four:08x} {size}");
            let six = 0x2001_0db8 << 96 | u128::from(numbers.below(1 << 26));
            let of_six = list.iter().filter(|one| six & !host6(one.length6) == one.v6);
            let expected = of_six.max_by_key(|one| one.length6).map(|one| one.extract(six).to_be_bytes());
            assert_eq!(table.to_v4(six.to_be_bytes()), expected, "{six:032x} {size}");
            found += usize::from(expected.is_some());
        }
    }
    assert!(found > 1_000, "{found}");
}

#[test]
fn a_hundred_thousand_lines_are_read_and_found() {
    let lines: String = (0..100_000u32)
        .map(|number| {
            let (four, six) =
                (Ipv4Addr::from_bits(0x0a00_0000 + 3 * number), number.wrapping_mul(0x9e37_79b1));
            alloc::format!("{four} 2001:db8:{:x}:{:x}::1\n", six >> 16, six & 0xffff)
        })
        .collect();
    let table = Mappings::new(lines.lines().map(|line| line.parse().unwrap()).collect()).unwrap();
    assert_eq!(table.len(), 100_000);
    for number in (0..100_000u32).step_by(97) {
        let four = (0x0a00_0000 + 3 * number).to_be_bytes();
        let six = table.to_v6(four).unwrap();
        assert_eq!(table.to_v4(six), Some(four));
        assert_eq!(table.to_v6((0x0a00_0001 + 3 * number).to_be_bytes()), None);
    }
}
