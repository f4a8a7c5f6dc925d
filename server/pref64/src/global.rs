//! Global IPv4 addresses in the sense of RFC 6052 section 3.1.
//!
//! "The Well-Known Prefix MUST NOT be used to represent non-global IPv4 addresses, such as those defined in RFC
//! 1918 or listed in section 3 of RFC 5735." RFC 5735 was replaced by RFC 6890, whose tables IANA keeps as the
//! IPv4 Special-Purpose Address Registry; its column "Globally Reachable" decides here, with these additions:
//!
//! - 224.0.0.0/4 (multicast) has a registry of its own and is on the list of RFC 5735.
//! - 192.88.99.0/24 (6to4 relay anycast, withdrawn by RFC 7526): RFC 5735 lists it, IANA gives no answer.
//! - 192.0.0.170 and 192.0.0.171 count as global: they are the addresses of ipv4only.arpa, and RFC 7050 has a DNS64
//!   embed them, under the well-known prefix too, so that clients can find it.

/// True if the well-known prefix may represent `v4`.
//= RFC 6052 section 3.1: requirement 36
#[inline]
pub const fn is_global(v4: [u8; 4]) -> bool {
    match v4 {
        // "This network", RFC 791; private, RFC 1918; loopback, RFC 1122.
        [0 | 10 | 127, ..] => false,
        // Shared address space (CGN), RFC 6598: 100.64.0.0/10.
        [100, 64..=127, ..] => false,
        // Link-local, RFC 3927.
        [169, 254, ..] => false,
        // Private, RFC 1918: 172.16.0.0/12.
        [172, 16..=31, ..] => false,
        // Anycast of PCP (RFC 7723) and TURN (RFC 8155), both globally reachable; ipv4only.arpa (RFC 7050).
        [192, 0, 0, 9 | 10 | 170 | 171] => true,
        // The rest of the IETF protocol assignments, RFC 6890; TEST-NET-1, RFC 5737.
        [192, 0, 0 | 2, _] => false,
        // 6to4 relay anycast, RFC 3068.
        [192, 88, 99, _] => false,
        // Private, RFC 1918.
        [192, 168, ..] => false,
        // Benchmarking, RFC 2544: 198.18.0.0/15.
        [198, 18 | 19, ..] => false,
        // TEST-NET-2 and TEST-NET-3, RFC 5737.
        [198, 51, 100, _] | [203, 0, 113, _] => false,
        // Multicast, RFC 5771; reserved, RFC 1112, with the limited broadcast, RFC 919.
        [224..=255, ..] => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::is_global;

    /// First and last address of every range that is not global.
    const RANGES: [([u8; 4], [u8; 4]); 18] = [
        ([0, 0, 0, 0], [0, 255, 255, 255]),
        ([10, 0, 0, 0], [10, 255, 255, 255]),
        ([100, 64, 0, 0], [100, 127, 255, 255]),
        ([127, 0, 0, 0], [127, 255, 255, 255]),
        ([169, 254, 0, 0], [169, 254, 255, 255]),
        ([172, 16, 0, 0], [172, 31, 255, 255]),
        ([192, 0, 0, 0], [192, 0, 0, 8]),
        ([192, 0, 0, 11], [192, 0, 0, 169]),
        ([192, 0, 0, 172], [192, 0, 0, 255]),
        ([192, 0, 2, 0], [192, 0, 2, 255]),
        ([192, 88, 99, 0], [192, 88, 99, 255]),
        ([192, 168, 0, 0], [192, 168, 255, 255]),
        ([198, 18, 0, 0], [198, 19, 255, 255]),
        ([198, 51, 100, 0], [198, 51, 100, 255]),
        ([203, 0, 113, 0], [203, 0, 113, 255]),
        ([224, 0, 0, 0], [239, 255, 255, 255]),
        ([240, 0, 0, 0], [255, 255, 255, 254]),
        ([255, 255, 255, 255], [255, 255, 255, 255]),
    ];

    fn listed(address: u32) -> bool {
        RANGES
            .iter()
            .any(|(first, last)| (u32::from_be_bytes(*first)..=u32::from_be_bytes(*last)).contains(&address))
    }

    //= RFC 6052 section 3.1: requirement 36
    #[test]
    fn both_edges_of_every_range_are_inside_and_their_neighbours_are_judged_by_the_list() {
        for (first, last) in RANGES {
            assert!(!is_global(first), "{first:?}");
            assert!(!is_global(last), "{last:?}");
            let before = u32::from_be_bytes(first).wrapping_sub(1);
            let after = u32::from_be_bytes(last).wrapping_add(1);
            assert_eq!(is_global(before.to_be_bytes()), !listed(before), "before {first:?}");
            assert_eq!(is_global(after.to_be_bytes()), !listed(after), "after {last:?}");
        }
    }

    #[test]
    fn every_block_of_256_agrees_with_the_list_at_both_ends() {
        for block in 0..1u32 << 24 {
            for address in [block << 8, block << 8 | 255] {
                assert_eq!(is_global(address.to_be_bytes()), !listed(address), "{address:08x}");
            }
        }
    }

    #[test]
    fn the_addresses_of_ipv4only_arpa_are_exempt_and_their_neighbours_are_not() {
        assert!(is_global([192, 0, 0, 170]) && is_global([192, 0, 0, 171]));
        assert!(!is_global([192, 0, 0, 169]) && !is_global([192, 0, 0, 172]));
    }

    #[test]
    fn addresses_beside_the_special_ranges_are_global() {
        for v4 in [
            [1, 0, 0, 0],
            [8, 8, 8, 8],
            [100, 63, 255, 255],
            [100, 128, 0, 0],
            [172, 15, 255, 255],
            [172, 32, 0, 0],
            [192, 0, 1, 0],
            [192, 0, 3, 0],
            [192, 31, 196, 1],
            [192, 52, 193, 1],
            [192, 175, 48, 1],
            [198, 17, 255, 255],
            [198, 20, 0, 0],
            [223, 255, 255, 254],
        ] {
            assert!(is_global(v4), "{v4:?}");
        }
    }
}
