//! Trust anchors (RFC 4033 section 2, RFC 7646): the closest one above a name decides (RFC 6840 section 5.10, RFC 7646 section 1.1).

use crate::name::labels;
use crate::signature::Timestamp;

/// Form of a trust anchor, with the RDATA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnchorData<'a> {
    /// DS record.
    Ds(&'a [u8]),
    /// DNSKEY record.
    Dnskey(&'a [u8]),
}

/// Trust anchor: a key of a zone that is trusted without a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor<'a> {
    /// Zone, uncompressed. An anchor says nothing about keys of other zones.
    pub zone: &'a [u8],
    /// Key.
    pub data: AnchorData<'a>,
}

/// Negative trust anchor: a zone whose signatures are not looked at (RFC 7646).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegativeAnchor<'a> {
    /// Zone, uncompressed.
    pub zone: &'a [u8],
    /// Last second in which it holds; `None` without an end.
    pub until: Option<u32>,
}

/// Keys of the root: that of 2017 with the tag 20326, and that of 2024 with the tag 38696, as IANA publishes them in
/// <https://data.iana.org/root-anchors/root-anchors.xml>.
pub const ROOT: [Anchor<'static>; 2] = [
    Anchor {
        zone: b"\0",
        data: AnchorData::Ds(
            b"\x4f\x66\x08\x02\
              \xe0\x6d\x44\xb8\x0b\x8f\x1d\x39\xa9\x5c\x0b\x0d\x7c\x65\xd0\x84\
              \x58\xe8\x80\x40\x9b\xbc\x68\x34\x57\x10\x42\x37\xc7\xf8\xec\x8d",
        ),
    },
    Anchor {
        zone: b"\0",
        data: AnchorData::Ds(
            b"\x97\x28\x08\x02\
              \x68\x3d\x2d\x0a\xcb\x8c\x9b\x71\x2a\x19\x48\xb2\x7f\x74\x12\x19\
              \x29\x8d\x0a\x45\x0d\x61\x2c\x48\x3a\xf4\x44\xa4\xc0\xfb\x2b\x16",
        ),
    },
];

/// All trust anchors.
#[derive(Clone, Copy, Debug)]
pub struct Anchors<'a> {
    /// Positive ones.
    pub positive: &'a [Anchor<'a>],
    /// Negative ones.
    pub negative: &'a [NegativeAnchor<'a>],
}

/// Closest anchor at or above a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClosestAnchor {
    /// There is none.
    None,
    /// A negative one. At a zone with both, it wins (RFC 7646 section 3).
    Negative,
    /// A positive one, of a zone with this number of labels.
    Positive(usize),
}

impl Anchors<'_> {
    /// Closest anchor at or above a name.
    pub fn closest(&self, name: &[u8], now: Timestamp) -> ClosestAnchor {
        let is_above = |zone: &[u8]| wire::is_at_or_below(name, zone);
        let positive =
            self.positive.iter().filter(|anchor| is_above(anchor.zone)).map(|anchor| labels(anchor.zone));
        let holds =
            |anchor: &&NegativeAnchor<'_>| anchor.until.is_none_or(|until| now.until(until).is_some());
        let negative = self.negative.iter().filter(holds).filter(|anchor| is_above(anchor.zone));
        match (positive.max(), negative.map(|anchor| labels(anchor.zone)).max()) {
            (Some(positive), Some(negative)) if positive > negative => ClosestAnchor::Positive(positive),
            (_, Some(_)) => ClosestAnchor::Negative,
            (Some(positive), None) => ClosestAnchor::Positive(positive),
            (None, None) => ClosestAnchor::None,
        }
    }

    /// Anchors of a zone.
    pub fn of_zone<'z>(&'z self, zone: &'z [u8]) -> impl Iterator<Item = AnchorData<'z>> + Clone + 'z {
        self.positive
            .iter()
            .filter(move |anchor| wire::eq_ignore_case(anchor.zone, zone))
            .map(|anchor| anchor.data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000);
    const ISLAND: &[u8] = b"\x06island\x07example\0";

    fn negative(zone: &'static [u8], until: Option<u32>) -> NegativeAnchor<'static> {
        NegativeAnchor { zone, until }
    }

    #[test]
    fn the_closest_anchor_decides_whatever_its_kind() {
        let island = Anchor { zone: ISLAND, data: AnchorData::Ds(b"") };
        let positive = [ROOT[0], ROOT[1], island];
        let negative = [negative(b"\x07EXAMPLE\0", None), negative(b"\x01x\x06island\x07example\0", None)];
        let anchors = Anchors { positive: &positive, negative: &negative };
        for (name, expected) in [
            (&b"\0"[..], ClosestAnchor::Positive(0)),
            (b"\x03net\0", ClosestAnchor::Positive(0)),
            (b"\x07example\0", ClosestAnchor::Negative),
            (b"\x01a\x07example\0", ClosestAnchor::Negative),
            (b"\x06ISLAND\x07example\0", ClosestAnchor::Positive(2)),
            (b"\x01a\x06island\x07example\0", ClosestAnchor::Positive(2)),
            (b"\x01a\x01x\x06island\x07example\0", ClosestAnchor::Negative),
        ] {
            assert_eq!(anchors.closest(name, NOW), expected, "{}", name.escape_ascii());
        }
        assert_eq!(anchors.of_zone(b"\0").count(), 2);
        assert_eq!(anchors.of_zone(b"\x06Island\x07example\0").count(), 1);
        assert_eq!(anchors.of_zone(b"\x07example\0").count(), 0);
    }

    #[test]
    fn without_an_anchor_above_it_a_name_has_none() {
        let island = [Anchor { zone: ISLAND, data: AnchorData::Ds(b"") }];
        let anchors = Anchors { positive: &island, negative: &[] };
        assert_eq!(anchors.closest(b"\x07example\0", NOW), ClosestAnchor::None);
        assert_eq!(anchors.closest(ISLAND, NOW), ClosestAnchor::Positive(2));
    }

    // RFC 7646 section 4: negative anchors expire.
    #[test]
    fn a_negative_anchor_holds_to_its_last_second_and_no_longer() {
        for (until, expected) in [
            (Some(999), ClosestAnchor::Positive(0)),
            (Some(1000), ClosestAnchor::Negative),
            (Some(1001), ClosestAnchor::Negative),
            (None, ClosestAnchor::Negative),
        ] {
            let negative = [negative(b"\0", until)];
            let anchors = Anchors { positive: &ROOT, negative: &negative };
            assert_eq!(anchors.closest(b"\x01a\0", NOW), expected, "{until:?}");
        }
    }
}
