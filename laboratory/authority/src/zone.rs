//! A zone that computes its answers: its name, its options, and the meaning of a name in it.

use crate::faults::mix;
use crate::limits;
use std::fmt;

/// A zone that computes its answers. Cheap to clone, so that every thread has its own copy.
///
/// ```
/// let zone = sixfold_authority::Zone::new("dns64perf.test").unwrap().ttl(60).aaaa_share(0.5);
/// assert_eq!(zone.name(), b"\x09dns64perf\x04test\x00");
/// ```
#[derive(Clone, Debug)]
pub struct Zone {
    /// Wire form, lower case.
    name: Box<[u8]>,
    pub(crate) ttl_secs: u32,
    pub(crate) addresses: u16,
    pub(crate) cname_depth: u8,
    /// Names whose hash (32 bits) is below this have AAAA records; 2^32 means all names.
    aaaa_below: u64,
    seed: u64,
}

/// Meaning of a name in the zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameKind {
    /// The zone's own name.
    Apex,
    /// A name with an address, and its position: the number of CNAME records before it in the chain.
    Address([u8; 4], u8),
    /// Another name in the zone: it does not exist.
    NonExistent,
    /// A name that is not in the zone.
    OutOfZone,
}

impl Zone {
    /// A zone with the given name (the final dot is optional): TTL 3,600 s, one A record per name, no AAAA records.
    ///
    /// # Errors
    ///
    /// [`ZoneError`]: a label is empty or too long, has other characters than letters, digits, hyphens and underscores, or the name is
    /// too long for the labels of the addresses before it.
    pub fn new(name: &str) -> Result<Zone, ZoneError> {
        let name = wire_name(name)?;
        Ok(Zone { name, ttl_secs: 3600, addresses: 1, cname_depth: 0, aaaa_below: 0, seed: 0 })
    }

    /// The TTL of all records in seconds, and the negative TTL. At most [`limits::TTL_SECS`].
    pub fn ttl(mut self, seconds: u32) -> Zone {
        self.ttl_secs = seconds.min(limits::TTL_SECS);
        self
    }

    /// Number of address records of a name, 1 to [`limits::ADDRESSES`]: the address in the name and its successors.
    pub fn addresses(mut self, count: u16) -> Zone {
        self.addresses = count.clamp(1, limits::ADDRESSES);
        self
    }

    /// Number of CNAME records before the address records of a name, up to [`limits::CNAME_DEPTH`]. With 2, `X.zone`
    /// is an alias of `1.X.zone`, which is an alias of `2.X.zone`, which has the records. One answer has the whole
    /// chain.
    pub fn cname_depth(mut self, depth: u8) -> Zone {
        self.cname_depth = depth.min(limits::CNAME_DEPTH);
        self
    }

    /// Share of the names that have AAAA records, 0 to 1. The choice depends only on the address and the seed.
    pub fn aaaa_share(mut self, share: f64) -> Zone {
        // The conversion saturates, so values outside 0 to 1 count as 0 or 1, and NaN as 0.
        self.aaaa_below = ((share * 4_294_967_296.0) as u64).min(1 << 32);
        self
    }

    /// Seed of [`Zone::aaaa_share`]: another seed selects other names.
    pub fn seed(mut self, seed: u64) -> Zone {
        self.seed = seed;
        self
    }

    /// The zone's name in wire form, lower case.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// True if the names of this address have AAAA records.
    #[inline]
    pub fn has_aaaa(&self, address: [u8; 4]) -> bool {
        let number = self.seed.wrapping_add(u64::from(u32::from_be_bytes(address)));
        mix(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 32 < self.aaaa_below
    }

    /// Meaning of a name in wire form in this zone.
    #[inline]
    pub(crate) fn classify(&self, name: &[u8]) -> NameKind {
        let Some((below, end)) = name.len().checked_sub(self.name.len()).map(|at| name.split_at(at)) else {
            return NameKind::OutOfZone;
        };
        // One label below the zone, or none: then the end of the name begins at a label boundary.
        let address = match below {
            [] if wire::eq_ignore_case(end, &self.name) => return NameKind::Apex,
            [length, label @ ..] if usize::from(*length) == label.len() => {
                parse_address(label).map(|address| (address, 0))
            }
            [length, rest @ ..] if self.cname_depth > 0 => self.classify_in_chain(usize::from(*length), rest),
            _ => None,
        };
        match address {
            Some((address, position)) if wire::eq_ignore_case(end, &self.name) => {
                NameKind::Address(address, position)
            }
            _ if wire::is_at_or_below(name, &self.name) => NameKind::NonExistent,
            _ => NameKind::OutOfZone,
        }
    }

    /// The address and its position in the CNAME chain, if `rest` is a number of `digits` digits followed by one
    /// label with an address.
    fn classify_in_chain(&self, digits: usize, rest: &[u8]) -> Option<([u8; 4], u8)> {
        let (number, rest) = rest.split_at_checked(digits)?;
        let (&length, label) = rest.split_first()?;
        let position = match number {
            [one @ b'1'..=b'9'] => one - b'0',
            [ten @ b'1'..=b'9', one @ b'0'..=b'9'] => (ten - b'0') * 10 + one - b'0',
            _ => return None,
        };
        let address = parse_address(label).filter(|_| usize::from(length) == label.len())?;
        (position <= self.cname_depth).then_some((address, position))
    }
}

/// Parses `AAA-BBB-CCC-DDD`: four numbers from 0 to 255 of one to three digits each.
#[inline]
fn parse_address(label: &[u8]) -> Option<[u8; 4]> {
    let mut address = [0; 4];
    let (mut index, mut value, mut digits) = (0, 0u16, 0);
    for &octet in label {
        if octet.is_ascii_digit() && digits < 3 {
            value = value * 10 + u16::from(octet - b'0');
            digits += 1;
        } else if octet == b'-' && digits > 0 && index < 3 {
            address[index] = u8::try_from(value).ok()?;
            (index, value, digits) = (index + 1, 0, 0);
        } else {
            return None;
        }
    }
    if index != 3 || digits == 0 {
        return None;
    }
    address[3] = u8::try_from(value).ok()?;
    Some(address)
}

/// Converts a zone's name to wire form, lower case.
fn wire_name(text: &str) -> Result<Box<[u8]>, ZoneError> {
    let mut name = Vec::with_capacity(text.len() + 2);
    let text = text.strip_suffix('.').unwrap_or(text);
    for label in text.split('.') {
        if let Some(strange) =
            label.chars().find(|c| !matches!(c, 'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_'))
        {
            return Err(ZoneError::Character(strange));
        }
        match label.len() {
            0 => return Err(ZoneError::EmptyLabel),
            1..=63 => name.push(label.len() as u8),
            _ => return Err(ZoneError::LabelTooLong),
        }
        name.extend(label.bytes().map(|octet| octet.to_ascii_lowercase()));
    }
    name.push(0);
    if name.len() > limits::ZONE_NAME {
        return Err(ZoneError::TooLong);
    }
    Ok(name.into())
}

/// Reason why a zone name is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneError {
    /// Two dots in a row, a dot at the start, or no name at all.
    EmptyLabel,
    /// A label has more than 63 octets (RFC 1035 section 2.3.4).
    LabelTooLong,
    /// No room is left for an address in front of the name: see [`limits::ZONE_NAME`].
    TooLong,
    /// A character that a host name cannot have.
    Character(char),
}

impl fmt::Display for ZoneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ZoneError::EmptyLabel => {
                write!(f, "the zone name has an empty label; write it like dns64perf.test")
            }
            ZoneError::LabelTooLong => {
                write!(f, "a label of the zone name is too long; use at most 63 characters")
            }
            ZoneError::TooLong => write!(f, "the zone name is too long; use at most 234 characters"),
            ZoneError::Character(c) => {
                write!(f, "the zone name contains {c:?}; use letters, digits, hyphens and underscores")
            }
        }
    }
}

impl std::error::Error for ZoneError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone() -> Zone {
        Zone::new("dns64perf.test").unwrap()
    }

    fn place(first: &[u8]) -> NameKind {
        let mut name = vec![first.len() as u8];
        name.extend_from_slice(first);
        name.extend_from_slice(b"\x09DNS64perf\x04test\x00");
        zone().classify(&name)
    }

    #[test]
    fn a_label_of_four_decimal_numbers_is_an_address() {
        assert_eq!(place(b"198-51-100-7"), NameKind::Address([198, 51, 100, 7], 0));
        assert_eq!(place(b"198-051-100-007"), NameKind::Address([198, 51, 100, 7], 0));
        assert_eq!(place(b"0-00-000-0"), NameKind::Address([0; 4], 0));
        assert_eq!(place(b"255-255-255-255"), NameKind::Address([255; 4], 0));
        for value in 0..=255u8 {
            let label = format!("{value:03}-{value}-{value:02}-{value}");
            assert_eq!(place(label.as_bytes()), NameKind::Address([value; 4], 0));
        }
    }

    #[test]
    fn numbers_before_an_address_are_places_in_its_chain_up_to_the_depth() {
        let zone = zone().cname_depth(12);
        for (below, expected) in [
            (&b"\x071-2-3-4"[..], NameKind::Address([1, 2, 3, 4], 0)),
            (b"\x011\x071-2-3-4", NameKind::Address([1, 2, 3, 4], 1)),
            (b"\x0212\x071-2-3-4", NameKind::Address([1, 2, 3, 4], 12)),
            (b"\x0213\x071-2-3-4", NameKind::NonExistent),
            (b"\x010\x071-2-3-4", NameKind::NonExistent),
            (b"\x0201\x071-2-3-4", NameKind::NonExistent),
            (b"\x03100\x071-2-3-4", NameKind::NonExistent),
            (b"\x01x\x071-2-3-4", NameKind::NonExistent),
            (b"\x011\x05x-2-3", NameKind::NonExistent),
            (b"\x011\x011\x071-2-3-4", NameKind::NonExistent),
            (b"\x011", NameKind::NonExistent),
        ] {
            let name = [below, zone.name()].concat();
            assert_eq!(zone.classify(&name), expected, "{below:?}");
        }
        assert_eq!(zone.cname_depth(200).cname_depth, limits::CNAME_DEPTH);
    }

    #[test]
    fn other_labels_are_no_addresses() {
        for label in [
            "-",
            "1",
            "1-2-3",
            "1-2-3-",
            "-1-2-3",
            "1--2-3",
            "1-2-3-4-",
            "1-2-3-4-5",
            "256-0-0-1",
            "1-2-3-256",
            "999-1-1-1",
            "0001-2-3-4",
            "1-2-3-0004",
            "1.2.3.4",
            "a-2-3-4",
            "1-2-3-4a",
            "+1-2-3-4",
            "ns",
            "1-2-3-4 ",
        ] {
            assert_eq!(place(label.as_bytes()), NameKind::NonExistent, "{label}");
        }
    }

    #[test]
    fn the_end_of_a_name_counts_only_where_a_label_begins() {
        let zone = zone();
        assert_eq!(zone.classify(b"\x09dns64perf\x04test\x00"), NameKind::Apex);
        assert_eq!(zone.classify(b"\x01a\x071-2-3-4\x09dns64perf\x04test\x00"), NameKind::NonExistent);
        assert_eq!(zone.classify(b"\x04test\x00"), NameKind::OutOfZone);
        assert_eq!(zone.classify(b"\x00"), NameKind::OutOfZone);
        assert_eq!(zone.classify(b"\x071-2-3-4\x09dns64perg\x04test\x00"), NameKind::OutOfZone);
        // The octets of the zone, but inside a label.
        assert_eq!(zone.classify(b"\x10a\x09dns64perf\x04test\x00"), NameKind::OutOfZone);
    }

    #[test]
    fn the_share_of_names_with_aaaa_is_stable_and_near_what_was_asked() {
        for (share, low, high) in
            [(0.0, 0, 0), (0.25, 15_800, 16_970), (0.5, 32_100, 33_430), (1.0, 65_536, 65_536)]
        {
            let zone = zone().aaaa_share(share).seed(7);
            let having = (0..65_536u32).filter(|address| zone.has_aaaa(address.to_be_bytes())).count();
            // Five standard deviations of a binomial distribution to each side.
            assert!((low..=high).contains(&having), "{share}: {having}");
        }
        let (one, other) = (zone().aaaa_share(0.5).seed(1), zone().aaaa_share(0.5).seed(2));
        let addresses = (0..65_536u32).map(u32::to_be_bytes);
        let differing =
            addresses.filter(|address| one.has_aaaa(*address) != other.has_aaaa(*address)).count();
        assert!((32_100..=33_430).contains(&differing), "{differing}");
    }

    #[test]
    fn a_share_outside_0_to_1_counts_as_the_nearer_end() {
        assert!(zone().aaaa_share(7.0).has_aaaa([1, 2, 3, 4]));
        assert!(!zone().aaaa_share(-7.0).has_aaaa([1, 2, 3, 4]));
        assert!(!zone().aaaa_share(f64::NAN).has_aaaa([1, 2, 3, 4]));
    }

    #[test]
    fn zone_names_are_checked() {
        assert_eq!(Zone::new("Demo.TEST.").unwrap().name(), b"\x04demo\x04test\x00");
        assert_eq!(Zone::new("").unwrap_err(), ZoneError::EmptyLabel);
        assert_eq!(Zone::new(".").unwrap_err(), ZoneError::EmptyLabel);
        assert_eq!(Zone::new("a..b").unwrap_err(), ZoneError::EmptyLabel);
        assert_eq!(Zone::new(&"a".repeat(64)).unwrap_err(), ZoneError::LabelTooLong);
        assert_eq!(Zone::new("sp ace.test").unwrap_err(), ZoneError::Character(' '));
        // 63 + 63 + 63 + 42 characters and three dots are 234.
        let [long, short] = ["a".repeat(63), "b".repeat(42)];
        assert!(Zone::new(&format!("{long}.{long}.{long}.{short}")).is_ok());
        assert_eq!(Zone::new(&format!("{long}.{long}.{long}.{short}b")).unwrap_err(), ZoneError::TooLong);
    }
}
