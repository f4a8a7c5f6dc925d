//! Values that several dialects write alike: numbers, addresses with ports, names, prefixes, local records.

use crate::ledger::{Outcome, Reading, differs_if};
use crate::model::Endpoint;
use pref64::Pref64;
use std::net::{IpAddr, Ipv6Addr};
use std::ops::RangeInclusive;

/// Reason why a forwarder over TLS without a name is not carried over.
pub(crate) const NO_TLS_NAME: &str = "Sixfold verifies whom it asks over TLS: write the name in the certificate behind the address, \
                                      like \"192.0.2.53#dns.example\"";

/// Reason why a zone that the source serves is not carried over. Its names have an `[[upstream.zone]]` without forwarders, because they
/// must not go to those of all others.
pub(crate) const SERVES_NO_ZONES: &str =
    "Sixfold serves no zones: name a server that has this one in its [[upstream.zone]]";

/// Reason why an encrypted listener is not carried over.
pub(crate) const NO_CERTIFICATE: &str =
    "an encrypted listener needs `tls.certificate` and `tls.key`, and plain DNS must not take its port";

/// Port of DNS over TLS (RFC 7858).
pub(crate) const TLS_PORT: u16 = 853;

/// Port of HTTPS.
pub(crate) const HTTPS_PORT: u16 = 443;

/// Reason why an option about the time of signatures is not carried over.
pub(crate) const NO_TOLERANCE: &str =
    "Sixfold has no tolerance for clocks: keep that of the machine right, as with NTP";

/// Ranges of Sixfold's keys, as sixfold.toml(5) has them.
pub(crate) mod range {
    use std::ops::RangeInclusive;

    /// `server.workers`.
    pub(crate) const WORKERS: RangeInclusive<u64> = 1..=256;
    /// `upstream.timeout`, in milliseconds.
    pub(crate) const TIMEOUT_MS: RangeInclusive<u64> = 10..=30_000;
    /// `upstream.tries`.
    pub(crate) const TRIES: RangeInclusive<u64> = 1..=8;
    /// `cache.size`.
    pub(crate) const CACHE: RangeInclusive<u64> = 1 << 20..=1 << 40;
    /// TTLs of `[cache]`, in seconds.
    pub(crate) const TTL: RangeInclusive<u64> = 0..=365 * 86_400;
    /// `edns.udp-size`.
    pub(crate) const UDP_SIZE: RangeInclusive<u64> = 512..=4096;
    /// Rates of `[limits]`.
    pub(crate) const RATE: RangeInclusive<u64> = 0..=1_000_000;
    /// `limits.pending`, and the connections.
    pub(crate) const COUNT: RangeInclusive<u64> = 1..=1 << 20;
    /// `dnssec.nsec3-iterations`.
    pub(crate) const NSEC3_ITERATIONS: RangeInclusive<u64> = 0..=500;
    /// `limits.tcp-idle`, in milliseconds.
    pub(crate) const TCP_IDLE_MS: RangeInclusive<u64> = 100..=3_600_000;
}

/// Sets a key to a number. A number outside the range of the key is replaced by the nearest one in it.
pub(crate) fn set_number(key: &mut Option<u64>, text: &str, range: RangeInclusive<u64>) -> Reading {
    set(key, number(text)?, range)
}

/// Sets a key to a number that is known already.
pub(crate) fn set(key: &mut Option<u64>, number: u64, range: RangeInclusive<u64>) -> Reading {
    let nearest = number.clamp(*range.start(), *range.end());
    *key = Some(nearest);
    differs_if(nearest != number, &format!("Sixfold takes {} to {} here", range.start(), range.end()))
}

/// Sets `edns.udp-size` to the smallest of several numbers.
pub(crate) fn set_udp_size(key: &mut Option<u64>, text: &str) -> Reading {
    let size = number(text)?;
    set(key, key.map_or(size, |known| known.min(size)), range::UDP_SIZE)
}

/// A number without a unit.
pub(crate) fn number(text: &str) -> Result<u64, &'static str> {
    text.parse().map_err(|_| "this is not a number")
}

/// A port.
pub(crate) fn port(text: &str) -> Result<u16, &'static str> {
    text.parse().ok().filter(|port| *port > 0).ok_or("this is not a port")
}

/// Adds a remark: a value that is carried over has this difference.
pub(crate) fn but(reading: Reading, difference: &str) -> Reading {
    Err(match reading {
        Ok(()) => Outcome::differs(difference),
        Err(Outcome::Differs(other)) => Outcome::Differs(format!("{other}; {difference}")),
        Err(other) => other,
    })
}

/// A number with an optional factor of 1024: `4m`, `1G`, `512k`.
pub(crate) fn octets(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" => 10,
        "m" | "mb" => 20,
        "g" | "gb" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Sets `cache.size`. Sixfold's minimum is 1 MiB; no octets turn the cache off.
pub(crate) fn set_cache(key: &mut Option<u64>, octets: u64) -> Reading {
    set(key, octets, if octets == 0 { 0..=0 } else { range::CACHE })
}

/// Seconds of numbers with units, as in `1d12h`.
pub(crate) fn seconds(text: &str, units: &[(char, u64)]) -> Option<u64> {
    let (mut total, mut digits) = (0_u64, String::new());
    for c in text.chars() {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        let (_, unit) = units.iter().find(|(name, _)| *name == c)?;
        total = total.checked_add(std::mem::take(&mut digits).parse::<u64>().ok()?.checked_mul(*unit)?)?;
    }
    (digits.is_empty() && !text.is_empty()).then_some(total)
}

/// The path of a file that the source names in a folder of its own, if it names one.
pub(crate) fn path_in(directory: Option<&str>, file: &str) -> Result<String, &'static str> {
    match directory {
        _ if file.starts_with('/') => Ok(file.to_owned()),
        Some(directory) => Ok(format!("{}/{file}", directory.trim_end_matches('/'))),
        None => Err("the path of its file is relative, and there is no `directory`"),
    }
}

/// True or false in any of the usual spellings.
pub(crate) fn yes_no(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "true" | "on" | "1" => Some(true),
        "no" | "false" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// Address of one host; link-local addresses with their interface.
pub(crate) fn endpoint(address: &str, port: u16) -> Option<Endpoint> {
    let (host, scope) = match address.split_once('%') {
        Some((host, scope)) => (host, Some(scope.to_owned())),
        None => (address, None),
    };
    let address: IpAddr = host.parse().ok()?;
    let is_link_local = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    let scope_is_plain = |scope: &String| {
        (1..=15).contains(&scope.len())
            && scope.bytes().all(|octet| octet.is_ascii_alphanumeric() || b"._-".contains(&octet))
    };
    let scope_fits = match &scope {
        Some(scope) => is_link_local && scope_is_plain(scope),
        None => !is_link_local,
    };
    (scope_fits && port != 0 && !address.is_multicast()).then_some(Endpoint {
        address,
        scope,
        port,
        tls_name: None,
    })
}

/// `192.0.2.1`, `192.0.2.1:53`, `2001:db8::1`, `[2001:db8::1]:53`.
pub(crate) fn endpoint_with_port(text: &str, default_port: u16) -> Option<Endpoint> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        return match rest.strip_prefix(':') {
            Some(port) => endpoint(host, port.parse().ok()?),
            None if rest.is_empty() => endpoint(host, default_port),
            None => None,
        };
    }
    if text.matches(':').count() == 1 {
        let (host, port) = text.split_once(':')?;
        return endpoint(host, port.parse().ok()?);
    }
    endpoint(text, default_port)
}

/// Splits a list at commas and blanks.
pub(crate) fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ' ', '\t']).filter(|part| !part.is_empty())
}

/// A domain name that Sixfold takes: printable ASCII, labels of 1 to 63 octets, without a wildcard.
pub(crate) fn name(text: &str) -> Option<String> {
    if text == "." {
        return Some(text.to_owned());
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    let is_plain = |octet: u8| octet.is_ascii_graphic() && !b"\\\"/".contains(&octet);
    let fits = name.split('.').all(|label| (1..=63).contains(&label.len()) && label.bytes().all(is_plain));
    (fits && name.len() <= 253 && !name.starts_with("*.")).then(|| name.to_ascii_lowercase())
}

/// As [`name`], with the reason why there is none.
pub(crate) fn taken_name(text: &str) -> Result<String, &'static str> {
    name(text).ok_or("Sixfold takes no such name")
}

/// A DNS64 prefix; bits beyond the length are cleared, as the other servers do.
///
/// # Errors
///
/// The reason why Sixfold does not take it: the text is no IPv6 prefix, its length is none of RFC 6052, or bits 64 to 71 are not zero.
pub(crate) fn prefix(text: &str) -> Result<Pref64, String> {
    let (address, length) = text.split_once('/').unwrap_or((text, "96"));
    let (Ok(address), Ok(length)) = (address.parse::<Ipv6Addr>(), length.parse::<u8>()) else {
        return Err("this is not an IPv6 prefix".to_owned());
    };
    let host_bits = u128::MAX.checked_shr(u32::from(length)).unwrap_or(0);
    let kept = u128::from(address) & !host_bits;
    Pref64::new(Ipv6Addr::from(kept), length).map_err(|error| error.to_string())
}

/// A record in presentation format that Sixfold takes as local data.
///
/// # Errors
///
/// The reason why it does not: the text is no record on one line, begins with a wildcard, is not of class IN, or has a type that
/// describes a zone.
pub(crate) fn record(text: &str) -> Result<String, &'static str> {
    let mut words = text.split_whitespace();
    let owner = words.next().ok_or("there is no record")?;
    if owner.starts_with('*') {
        return Err("local records have no wildcards; a response policy zone (`filter.rpz`) has");
    }
    if name(owner).is_none() || text.contains(['\n', '\r', '(']) {
        return Err("this is not a record on one line");
    }
    let is_type = |word: &&str| word.bytes().next().is_some_and(|octet| octet.is_ascii_alphabetic());
    let rtype = words.filter(is_type).find(|word| !word.eq_ignore_ascii_case("IN"));
    match rtype.map(str::to_ascii_uppercase).as_deref() {
        None => Err("this is not a record"),
        Some("SOA" | "NS" | "DNAME") => Err("this type describes a zone, and Sixfold serves single names"),
        Some("CH" | "HS") => Err("Sixfold serves class IN only"),
        Some(_) => Ok(text.trim().to_owned()),
    }
}

/// A text about the server that Sixfold takes: a character string (RFC 1035 section 3.3) of characters that can be shown.
///
/// # Errors
///
/// The text has more than 255 octets, or a control character.
pub(crate) fn server_text(text: &str) -> Result<String, &'static str> {
    match text.len() <= 255 && !text.contains(char::is_control) {
        true => Ok(text.to_owned()),
        false => Err("such a text has at most 255 octets, without control characters"),
    }
}

/// The reverse name of an address.
pub(crate) fn reverse_name(address: IpAddr) -> String {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, c, d] = v4.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa.")
        }
        IpAddr::V6(v6) => {
            let nibbles = (0..32).map(|index| u128::from(v6) >> (4 * index) & 0xf);
            nibbles.map(|nibble| format!("{nibble:x}.")).collect::<String>() + "ip6.arpa."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_with_and_without_a_port() {
        let read = |text| endpoint_with_port(text, 53).map(|endpoint| endpoint.to_string());
        assert_eq!(read("192.0.2.1").as_deref(), Some("192.0.2.1:53"));
        assert_eq!(read("192.0.2.1:5300").as_deref(), Some("192.0.2.1:5300"));
        assert_eq!(read("2001:db8::1").as_deref(), Some("[2001:db8::1]:53"));
        assert_eq!(read("[2001:db8::1]:5300").as_deref(), Some("[2001:db8::1]:5300"));
        assert_eq!(read("fe80::1%eth0").as_deref(), Some("[fe80::1%eth0]:53"));
        for text in ["dns.example", "fe80::1", "192.0.2.1:0", "[2001:db8::1", "ff02::1", "2001:db8::1%eth0"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn a_number_outside_the_range_is_replaced_by_the_nearest_one() {
        let mut key = None;
        assert_eq!(
            set_number(&mut key, "9", range::TRIES),
            Err(Outcome::differs("Sixfold takes 1 to 8 here"))
        );
        assert_eq!(key, Some(8));
        assert_eq!(set_number(&mut key, "2", range::TRIES), Ok(()));
        assert!(matches!(set_number(&mut key, "two", range::TRIES), Err(Outcome::LeftOver(_))));
        assert_eq!(key, Some(2));
    }

    #[test]
    fn a_prefix_that_rfc_6052_forbids_is_refused() {
        assert_eq!(prefix("64:ff9b::1/96").unwrap().to_string(), "64:ff9b::/96");
        assert_eq!(prefix("2001:db8:64::/48").unwrap().to_string(), "2001:db8:64::/48");
        for text in ["64:ff9b::/95", "2001:db8:1:2:dead:beef::/96", "8.8.8.8/24", "::/0", "::/200"] {
            assert!(prefix(text).is_err(), "{text}");
        }
    }

    #[test]
    fn reverse_names_are_those_of_rfc_1035_and_rfc_3596() {
        assert_eq!(reverse_name("192.0.2.1".parse().unwrap()), "1.2.0.192.in-addr.arpa.");
        let name = reverse_name("2001:db8::1".parse().unwrap());
        assert_eq!(name, "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.");
    }

    #[test]
    fn records_of_zones_and_wildcards_are_no_local_data() {
        assert_eq!(record("nas.home. 60 IN A 192.0.2.1").unwrap(), "nas.home. 60 IN A 192.0.2.1");
        for text in ["home. SOA a. b. 1 2 3 4 5", "home. IN NS ns.home.", "*.home. A 192.0.2.1", "home.", ""]
        {
            assert!(record(text).is_err(), "{text}");
        }
    }
}
