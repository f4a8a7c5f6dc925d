//! Names of the forward zones: finds the longest zone that a name is in.
//!
//! A lookup among many zones hashes the name once (`name_table.rs`), so it does not depend on their number. Few zones, the usual
//! case, are compared one by one, which takes fewer instructions than the hash.

use crate::base::name_table::NameTable;

/// Most zones that are compared one by one. A comparison that fails takes about 25 instructions, and a lookup in the table about
/// 120 for a zone of two labels.
const COMPARED: usize = 4;

/// Names of zones in wire form, numbered from 0 in the order given to [`ZoneNames::new`].
#[derive(Debug, Default)]
pub(crate) struct ZoneNames {
    /// Names and numbers of few zones, the longest name first: the first match is the longest.
    few: Vec<(Box<[u8]>, usize)>,
    /// Names of more than [`COMPARED`] zones.
    many: NameTable,
}

impl ZoneNames {
    /// The zones with these names, all different, in lower case.
    pub fn new(names: Vec<Box<[u8]>>) -> ZoneNames {
        if names.len() > COMPARED {
            return ZoneNames { few: Vec::new(), many: NameTable::new(names) };
        }
        let mut few: Vec<_> = names.into_iter().zip(0..).collect();
        few.sort_by_key(|(name, _)| core::cmp::Reverse(name.len()));
        ZoneNames { few, many: NameTable::default() }
    }

    /// Number of the longest zone that a name (wire form, any letter case) is in.
    #[inline(never)]
    pub fn longest(&self, name: &[u8]) -> Option<usize> {
        if let Some((_, number)) = self.few.iter().find(|(zone, _)| wire::is_at_or_below(name, zone)) {
            return Some(*number);
        }
        let mut longest = None;
        self.many.find(name, |number, _| longest = Some(number));
        longest
    }

    /// Name of the zone with this number, in wire form.
    pub fn name(&self, number: usize) -> Option<&[u8]> {
        match self.few.iter().find(|(_, other)| *other == number) {
            Some((name, _)) => Some(name),
            None => self.many.name(number),
        }
    }

    /// Number of the zone with exactly this name.
    pub fn number(&self, name: &[u8]) -> Option<usize> {
        if let Some((_, number)) = self.few.iter().find(|(zone, _)| wire::eq_ignore_case(name, zone)) {
            return Some(*number);
        }
        let mut found = None;
        self.many.find(name, |number, before| found = (before == 0).then_some(number));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&[u8]; 6] = [
        b"\x07example\0",
        b"\x04corp\x07example\0",
        b"\x01a\x04corp\x07example\0",
        b"\x04test\0",
        b"\x01b\0",
        b"\0",
    ];

    #[test]
    fn the_longest_zone_is_found_among_few_and_among_many() {
        for count in 1..=NAMES.len() {
            let zones = ZoneNames::new(NAMES[..count].iter().map(|&name| name.into()).collect());
            assert_eq!(zones.few.is_empty(), count > COMPARED);
            for name in [
                &b"\x03www\x04CORP\x07example\0"[..],
                b"\x01x\x01a\x04corp\x07eXample\0",
                b"\x07example\0",
                b"\x01x\x04test\0",
                b"\x05other\0",
                b"\0",
            ] {
                let is_in = |&number: &usize| wire::is_at_or_below(name, NAMES[number]);
                let expected = (0..count).filter(is_in).max_by_key(|&number| NAMES[number].len());
                assert_eq!(zones.longest(name), expected, "{count} zones, {name:?}");
                let exact = (0..count).find(|&number| wire::eq_ignore_case(name, NAMES[number]));
                assert_eq!(zones.number(name), exact, "{count} zones, {name:?}");
            }
            for (number, name) in NAMES.iter().enumerate() {
                assert_eq!(zones.name(number), (number < count).then_some(*name));
            }
        }
        assert_eq!(ZoneNames::default().longest(b"\x01a\0"), None);
    }
}
