use super::*;
use std::net::Ipv6Addr;

#[test]
fn networks_become_ranges_without_overlap_and_those_of_ipv6_leave_ipv4_out() {
    let v4 = |text: &str, length| Network::v4(text.parse().unwrap(), length);
    let v6 = |text: &str, length| Network::new(text.parse().unwrap(), length);
    let address = |text: &str| u128::from(text.parse::<Ipv6Addr>().unwrap());
    let list = [v4("10.1.0.0", 16), v6("fd00::", 8), v4("10.0.0.0", 8), v6("fd12::", 16), v4("11.0.0.0", 8)];
    let expected =
        [("::ffff:10.0.0.0", "::ffff:11.255.255.255"), ("fd00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")];
    assert_eq!(ranges(&list), expected.map(|(first, last)| (address(first), address(last))));
    let everybody = ranges(&[v6("::", 0)]);
    assert_eq!(everybody.len(), 2);
    assert!(everybody[0].1 < address("::ffff:0.0.0.0") && everybody[1].0 > address("::ffff:255.255.255.255"));
    assert_eq!(ranges(&[v6("::", 0), v4("0.0.0.0", 0)]), [(0, u128::MAX)]);
    assert_eq!(ranges(&[]), []);
}

#[test]
fn sums_are_those_of_rfc_1071() {
    // The example of RFC 1071 section 3.
    assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
    assert_eq!(sum(&[0xff, 0xff, 0x00, 0x01]), 1);
    assert_eq!(sum(&[0x12]), 0x1200);
}
