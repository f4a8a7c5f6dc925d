//! Zones that BIND and Unbound answer locally unless the file says otherwise, by these very names: those of RFC 6303 section 4 and RFC 7793,
//! and a few of the same kind. Sixfold has them with `local.empty-zones`.

/// Zones beside the reverse ones.
const OTHERS: [&str; 4] = ["home.arpa", "empty.as112.arpa", "resolver.arpa", "service.arpa"];

/// Zones of IPv6 addresses but for the two of single addresses.
const IP6: [&str; 6] = ["d.f", "8.e.f", "9.e.f", "a.e.f", "b.e.f", "8.b.d.0.1.0.0.2"];

/// True for the name of such a zone, in lower case and without a final dot. A name below one is none: BIND and Unbound answer it with
/// the zone, whatever the file says about the name itself.
pub(crate) fn is_one(name: &str) -> bool {
    if let Some(octets) = name.strip_suffix(".in-addr.arpa") {
        let numbers: Option<Vec<u8>> = octets.rsplit('.').map(|octet| octet.parse().ok()).collect();
        return matches!(
            numbers.as_deref(),
            Some(
                [0 | 10 | 127]
                    | [172, 16..=31]
                    | [192, 168]
                    | [100, 64..=127]
                    | [169, 254]
                    | [192, 0, 2]
                    | [198, 51, 100]
                    | [203, 0, 113]
                    | [255, 255, 255, 255]
            )
        );
    }
    if let Some(nibbles) = name.strip_suffix(".ip6.arpa") {
        let is_first = nibbles.strip_prefix(['0', '1']).is_some_and(|rest| rest == ".0".repeat(31));
        return is_first || IP6.contains(&nibbles);
    }
    OTHERS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `named` 9.18 logs them at its start: "automatic empty zone".
    #[test]
    fn the_zones_are_those_of_bind() {
        let octets = |count: u32, end: &str| (0..count).map(|n| format!("{n}{end}")).collect::<Vec<_>>();
        let many = [
            octets(256, ".in-addr.arpa"),
            octets(256, ".172.in-addr.arpa"),
            octets(256, ".192.in-addr.arpa"),
            octets(256, ".100.in-addr.arpa"),
            octets(256, ".169.in-addr.arpa"),
        ];
        // 10, 0 and 127; 16 and 64 of the ranges; 192.168 and 169.254.
        assert_eq!(many.iter().flatten().filter(|name| is_one(name)).count(), 3 + 16 + 64 + 2);
        for name in [
            "2.0.192.in-addr.arpa",
            "100.51.198.in-addr.arpa",
            "113.0.203.in-addr.arpa",
            "255.255.255.255.in-addr.arpa",
            "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa",
            "d.f.ip6.arpa",
            "8.b.d.0.1.0.0.2.ip6.arpa",
            "home.arpa",
        ] {
            assert!(is_one(name), "{name}");
        }
        for name in [
            ".",
            "arpa",
            "in-addr.arpa",
            "1.10.in-addr.arpa",
            "255.in-addr.arpa",
            "1.168.192.in-addr.arpa",
            "15.172.in-addr.arpa",
            "f.ip6.arpa",
            "2.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa",
            "lan.home.arpa",
        ] {
            assert!(!is_one(name), "{name}");
        }
    }
}
