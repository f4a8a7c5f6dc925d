//! Verified denials that are used for names other than the one that was asked for (RFC 8198): NSEC and NSEC3 records with their signatures,
//! and the SOA records of their zones, in the order of their owners.
//!
//! A record lives no longer than its TTL, its signature, and the negative TTL of its zone, which is the smaller of the SOA record's TTL and
//! its MINIMUM (RFC 9077 section 3). Without the SOA record nothing is known of that, and an answer would lack it, so such records are not
//! kept. The octets of all entries are bounded; the clock algorithm takes those that go: a zone that makes a record for each answer fills
//! the table with records that nobody uses, and they go before those that are used.

use crate::base::time::{Instant, Span};
use crate::limits::RANGE_OCTETS;
use core::cell::Cell;
use core::ops::Bound;
use dnssec::aggressive::{Kept, KeptRecords};
use dnssec::name::{ORDER_KEY, labels, order_key};
use dnssec::validation::State;
use dnssec::{Groups, LowerName, Nsec, Nsec3, Rrset};
use std::collections::BTreeMap;
use wire::{MAX_NAME, RdataPart, Section, Type};

/// Octets that an entry takes beside its key and its records: itself, and its share of the tree, whose nodes are half full at worst.
const OVERHEAD: usize = 2 * (size_of::<Box<[u8]>>() + size_of::<Range>());

/// Octets of the longest record that is kept, with its owner and its signatures: twice that of an RSA key of 4,096 bits.
const LONGEST: usize = 1024;

/// Share of all hashes, as a divisor, that the widest NSEC3 record of a reply spans at least, if it is kept. A zone with more names is
/// denied by so many records that hardly a name hits one that is known.
const NSEC3_SHARE: u32 = 2000;

/// Most entries that the clock's hand passes to make room for one. This bounds the work to some 10 microseconds.
const SECOND_CHANCES: usize = 64;

/// Longest key: the group, the zone, an end of it, the kind, and the owner.
const KEY: usize = 4 + ORDER_KEY + 2;

/// Kinds of entries, in the order of the keys of a zone.
const SOA: u8 = 0;
const NSEC: u8 = 1;
const NSEC3: u8 = 2;

/// Record of a zone.
struct Range {
    /// Owner; then the RDATA of the record and those of its signatures, each behind its length.
    octets: Box<[u8]>,
    expires: Instant,
    /// True if an answer was made with it since the clock's hand passed.
    is_used: Cell<bool>,
}

impl Range {
    fn kept(&self, now: Instant) -> Option<Kept<'_>> {
        let ttl = self.ttl(now)?;
        let (owner, rest) = self.octets.split_at_checked(wire::name_len(&self.octets)?)?;
        let (rdata, signatures) = split_rdata(rest)?;
        Some(Kept { owner: LowerName::from_wire(owner)?, rdata, signatures, ttl })
    }

    /// Rest of the lifetime in whole seconds, if there is any.
    fn ttl(&self, now: Instant) -> Option<u32> {
        let left = (self.expires > now).then(|| (self.expires - now).0 / Span::from_secs(1).0)?;
        u32::try_from(left).ok().filter(|&secs| secs > 0)
    }
}

/// First RDATA of a list, and the rest.
fn split_rdata(octets: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = octets.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

/// RDATA of the signatures of a record.
pub(crate) fn signatures<'k>(kept: &Kept<'k>) -> impl Iterator<Item = &'k [u8]> {
    let mut left = kept.signatures;
    core::iter::from_fn(move || {
        let (rdata, rest) = split_rdata(left)?;
        left = rest;
        Some(rdata)
    })
}

/// Key of an entry.
struct Key {
    octets: [u8; KEY],
    length: usize,
    /// Octets up to the kind.
    zone_length: usize,
}

impl Key {
    /// Key of a record by its zone, in a group of upstreams, by its kind, and by its owner at or below the zone.
    fn of(group: u32, zone: &LowerName, kind: u8, owner: &LowerName) -> Key {
        let mut key = Key { octets: [0; KEY], length: 4, zone_length: 0 };
        key.octets[..4].copy_from_slice(&group.to_be_bytes());
        let mut order = [0; ORDER_KEY];
        let apex = order_key(zone.as_wire(), &mut order);
        key.push(&order[..apex]);
        key.zone_length = key.length;
        // No label is empty, so no owner of a zone begins like this.
        key.push(&[0, kind]);
        let length = order_key(owner.as_wire(), &mut order);
        key.push(order.get(apex..length).unwrap_or_default());
        key
    }

    fn push(&mut self, octets: &[u8]) {
        if let Some(room) = self.octets.get_mut(self.length..self.length + octets.len()) {
            room.copy_from_slice(octets);
            self.length += octets.len();
        }
    }

    fn as_slice(&self) -> &[u8] {
        &self.octets[..self.length]
    }

    /// First octets of the keys of all entries of the kind.
    fn of_kind(&self) -> &[u8] {
        &self.octets[..self.zone_length + 2]
    }
}

/// Records of all zones.
#[derive(Default)]
pub(crate) struct Ranges {
    entries: BTreeMap<Box<[u8]>, Range>,
    octets: usize,
    /// Key of the entry that the clock's hand has looked at last.
    hand: Box<[u8]>,
}

impl Ranges {
    /// Forgets all records.
    pub fn clear(&mut self) {
        *self = Ranges::default();
    }

    /// Forgets the records of all zones that have names at or below a name: those above it, and those at or below it.
    pub fn forget(&mut self, name: &[u8]) {
        let mut order = [0; ORDER_KEY];
        let length = order_key(name, &mut order);
        let order = &order[..length];
        let octets = &mut self.octets;
        self.entries.retain(|key, range| {
            let zone = zone_of(key);
            let is_kept = !zone.starts_with(order) && !order.starts_with(zone);
            if !is_kept {
                *octets -= price(key, range);
            }
            is_kept
        });
    }

    /// True if there are no records.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keeps the denials of a reply that was found secure, whose question went to a group of upstreams, for some seconds at most.
    pub fn learn(
        &mut self,
        group: u32,
        groups: &Groups<'_>,
        states: &[State],
        longest_secs: u32,
        now: Instant,
    ) {
        let verified = |set: Rrset<'_>| match states.get(set.place()) {
            Some(&State::Secure(proven, apex))
                if set.section() == Section::Authority && !proven.is_expanded =>
            {
                let owner = LowerName::of(&set.owner());
                Some((owner, owner.suffix(usize::from(apex))?, proven.ttl))
            }
            _ => None,
        };
        for set in groups.iter().filter(|set| set.rtype() == Type::SOA) {
            let Some((owner, zone, ttl)) = verified(set) else { continue };
            let minimum = set.only_record().and_then(|record| record.soa_minimum()).unwrap_or(0);
            self.put(&Key::of(group, &zone, SOA, &owner), &set, ttl.min(minimum).min(longest_secs), now);
        }
        let is_nsec3_kept = groups.iter().any(|set| is_wide(&set));
        for set in groups.iter() {
            let Some((owner, zone, ttl)) = verified(set) else { continue };
            let Some(kind) = kind_of(&set, is_nsec3_kept) else { continue };
            if let Some(soa) = self.get(&Key::of(group, &zone, SOA, &zone)).and_then(|soa| soa.ttl(now)) {
                self.put(&Key::of(group, &zone, kind, &owner), &set, ttl.min(soa), now);
            }
        }
    }

    /// Zone of a group of upstreams.
    pub fn of_zone(&self, group: u32, zone: LowerName, now: Instant) -> ZoneRanges<'_> {
        ZoneRanges { ranges: self, group, zone, now }
    }

    fn get(&self, key: &Key) -> Option<&Range> {
        self.entries.get(key.as_slice())
    }

    fn put(&mut self, key: &Key, set: &Rrset<'_>, secs: u32, now: Instant) {
        let Some(octets) = octets_of(set).filter(|_| secs > 0) else { return };
        let expires = now + Span::from_secs(u64::from(secs));
        let key: Box<[u8]> = key.as_slice().into();
        if let Some(former) = self.entries.remove(&key) {
            self.octets -= price(&key, &former);
        }
        let range = Range { octets, expires, is_used: Cell::new(false) };
        let price = price(&key, &range);
        while self.octets + price > RANGE_OCTETS && !self.entries.is_empty() {
            self.evict(now);
        }
        self.octets += price;
        self.entries.insert(key, range);
    }

    /// Removes the first entry behind the hand that has expired, or was not used since the hand passed it; after some steps the next one.
    fn evict(&mut self, now: Instant) {
        for _ in 0..SECOND_CHANCES {
            let behind = (Bound::Excluded(&*self.hand), Bound::Unbounded);
            let next =
                self.entries.range::<[u8], _>(behind).next().or_else(|| self.entries.first_key_value());
            let Some((key, range)) = next else { return };
            self.hand = key.clone();
            if range.expires <= now || !range.is_used.replace(false) {
                break;
            }
        }
        if let Some(range) = self.entries.remove(&self.hand) {
            self.octets -= price(&self.hand, &range);
        }
    }
}

/// Octets that an entry takes.
fn price(key: &[u8], range: &Range) -> usize {
    OVERHEAD + key.len() + range.octets.len()
}

/// Zone in a key, in the order of names.
fn zone_of(key: &[u8]) -> &[u8] {
    let zone = key.get(4..).unwrap_or_default();
    // An octet 0 ends each label, and another one the zone; that of the root has no label.
    let end = match zone.first() {
        Some(0) | None => 0,
        Some(_) => zone.windows(2).position(|pair| pair == [0, 0]).map_or(zone.len(), |at| at + 1),
    };
    &zone[..end]
}

/// Record and signatures of an RRset, as an entry has them. `None`: it has several records, or is too long.
fn octets_of(set: &Rrset<'_>) -> Option<Box<[u8]>> {
    let record = set.only_record()?;
    let mut octets = Vec::with_capacity(256);
    octets.extend_from_slice(LowerName::of(&set.owner()).as_wire());
    let start = octets.len();
    octets.extend_from_slice(&[0, 0]);
    for part in record.rdata_parts() {
        match part {
            RdataPart::Octets(part) => octets.extend_from_slice(part),
            RdataPart::Name(name) => {
                let mut expanded = [0; MAX_NAME];
                let length = name.write(&mut expanded);
                octets.extend_from_slice(expanded.get(..length)?);
            }
        }
    }
    let length = u16::try_from(octets.len() - start - 2).ok()?;
    octets[start..start + 2].copy_from_slice(&length.to_be_bytes());
    for signature in set.signatures() {
        octets.extend_from_slice(&u16::try_from(signature.rdata.len()).ok()?.to_be_bytes());
        octets.extend_from_slice(signature.rdata);
        if octets.len() > LONGEST {
            return None;
        }
    }
    Some(octets.into())
}

/// True if an RRset is an NSEC3 record whose span is wide.
fn is_wide(set: &Rrset<'_>) -> bool {
    let Some(record) = set.only_record().filter(|_| set.rtype() == Type::NSEC3) else { return false };
    Nsec3::parse(record.rdata()).is_ok_and(|nsec3| {
        dnssec::nsec3::span_width(&LowerName::of(&set.owner()), &nsec3)
            .is_some_and(|width| width >= u32::MAX / NSEC3_SHARE)
    })
}

/// Kind of an RRset, if it may deny other names than its own: not one that was made for one name (RFC 9824), and not one whose span has
/// unsigned delegations (RFC 8198 section 5.4).
fn kind_of(set: &Rrset<'_>, is_nsec3_kept: bool) -> Option<u8> {
    let record = set.only_record()?;
    match set.rtype() {
        Type::NSEC => {
            let nsec = Nsec::parse(record.rdata()).ok()?;
            let owner = LowerName::of(&set.owner());
            let is_of_one_name = nsec.next.strip_prefix(b"\x01\0").is_some_and(|name| {
                labels(name) == labels(owner.as_wire()) && wire::eq_ignore_case(name, owner.as_wire())
            });
            (!is_of_one_name).then_some(NSEC)
        }
        Type::NSEC3 => {
            let nsec3 = Nsec3::parse(record.rdata()).ok()?;
            (is_nsec3_kept && !nsec3.is_opt_out()).then_some(NSEC3)
        }
        _ => None,
    }
}

/// Records of one zone.
pub(crate) struct ZoneRanges<'r> {
    ranges: &'r Ranges,
    group: u32,
    zone: LowerName,
    now: Instant,
}

impl<'r> ZoneRanges<'r> {
    /// SOA record.
    pub fn soa(&self) -> Option<Kept<'r>> {
        self.ranges.get(&Key::of(self.group, &self.zone, SOA, &self.zone))?.kept(self.now)
    }

    /// Notes that an answer was made with a record.
    pub fn note_use(&self, rtype: Type, owner: &LowerName) {
        let kind = match rtype {
            Type::NSEC => NSEC,
            Type::NSEC3 => NSEC3,
            _ => SOA,
        };
        if let Some(range) = self.ranges.get(&Key::of(self.group, &self.zone, kind, owner)) {
            range.is_used.set(true);
        }
    }

    /// Last entry of a kind whose owner is not behind a name.
    fn up_to(&self, key: &Key) -> Option<&'r Range> {
        let bounds = (Bound::Included(key.of_kind()), Bound::Included(key.as_slice()));
        self.ranges.entries.range::<[u8], _>(bounds).next_back().map(|(_, range)| range)
    }
}

impl<'r> KeptRecords<'r> for ZoneRanges<'r> {
    fn nsec(&self, name: &LowerName) -> Option<Kept<'r>> {
        self.up_to(&Key::of(self.group, &self.zone, NSEC, name))?.kept(self.now)
    }

    fn nsec3(&self, name: &LowerName) -> Option<Kept<'r>> {
        let key = Key::of(self.group, &self.zone, NSEC3, name);
        let last = || {
            let mut end = Key::of(self.group, &self.zone, NSEC3 + 1, &self.zone);
            end.length = end.zone_length + 2;
            let bounds = (Bound::Included(key.of_kind()), Bound::Excluded(end.as_slice()));
            self.ranges.entries.range::<[u8], _>(bounds).next_back().map(|(_, range)| range)
        };
        self.up_to(&key).or_else(last)?.kept(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnssec::Proven;
    use wire::{Builder, Class, Flags, Message, Name};

    fn after(secs: u64) -> Instant {
        Instant(0) + Span::from_secs(secs)
    }

    fn name(octets: &[u8]) -> LowerName {
        LowerName::from_wire(octets).unwrap()
    }

    /// Record of the authority section: owner, type, TTL, RDATA.
    type Line<'l> = (&'l [u8], Type, u32, &'l [u8]);

    /// RDATA of an SOA record at the apex of `zone` with this MINIMUM.
    fn soa(minimum: u32) -> Vec<u8> {
        [&[0; 18][..], &minimum.to_be_bytes()].concat()
    }

    /// RDATA of an NSEC record that leads to this name.
    fn nsec(next: &[u8]) -> Vec<u8> {
        [next, &[0, 1, 0x40]].concat()
    }

    /// Keeps records whose signatures were verified with the keys of a zone of one label, and which may live as long as their TTLs.
    fn learn(ranges: &mut Ranges, lines: &[Line<'_>], now: Instant) {
        learn_expanded(ranges, lines, |_| false, now);
    }

    /// Keeps records as [`learn`] does, of which some were expanded from a wildcard.
    fn learn_expanded(
        ranges: &mut Ranges,
        lines: &[Line<'_>],
        is_expanded: impl Fn(&Rrset<'_>) -> bool,
        now: Instant,
    ) {
        let mut frame = [0; 2048];
        let question = b"\x01q\x04zone\0\0\x01\0\x01";
        let mut builder = Builder::new(&mut frame, 2048, 0, Flags::QR, question).unwrap();
        for (owner, rtype, ttl, rdata) in lines {
            let owner = Name::from_wire(owner).unwrap();
            builder.record(Section::Authority, owner, *rtype, Class::IN, *ttl, rdata).unwrap();
        }
        let length = builder.finish();
        let message = Message::parse(&frame[..length]).unwrap();
        let groups = Groups::of(&message).unwrap();
        let secure = |set: Rrset<'_>| {
            let (is_expanded, ttl) = (is_expanded(&set), set.ttl());
            State::Secure(Proven { labels: 1, is_expanded, ttl, expiration: 0 }, 1)
        };
        let states: Vec<State> = groups.iter().map(secure).collect();
        ranges.learn(0, &groups, &states, 3600, now);
    }

    const ZONE: &[u8] = b"\x04zone\0";

    // RFC 9077 section 3.
    #[test]
    fn a_record_lives_no_longer_than_the_least_of_its_ttl_and_those_of_its_zone() {
        for (ttl, soa_ttl, minimum, expected) in [
            (30, 600, 900, Some(30)),
            (3600, 600, 900, Some(600)),
            (3600, 900, 60, Some(60)),
            (86_400, 86_400, 86_400, Some(3600)),
            (3600, 900, 0, None),
            (0, 900, 900, None),
        ] {
            let mut ranges = Ranges::default();
            let lines: [Line<'_>; 2] = [
                (ZONE, Type::SOA, soa_ttl, &soa(minimum)),
                (b"\x01a\x04zone\0", Type::NSEC, ttl, &nsec(b"\x01c\x04zone\0")),
            ];
            learn(&mut ranges, &lines, after(0));
            let kept = |now| ranges.of_zone(0, name(ZONE), now).nsec(&name(b"\x01b\x04zone\0"));
            assert_eq!(kept(after(0)).map(|kept| kept.ttl), expected, "{ttl} {soa_ttl} {minimum}");
            let life = u64::from(expected.unwrap_or(1));
            assert!(kept(after(life)).is_none());
        }
        // Without its SOA record, a record is not kept.
        let mut ranges = Ranges::default();
        learn(&mut ranges, &[(b"\x01a\x04zone\0", Type::NSEC, 60, &nsec(ZONE))], after(0));
        assert!(ranges.is_empty());
    }

    #[test]
    fn records_of_other_zones_and_of_other_groups_are_not_found() {
        let mut ranges = Ranges::default();
        let lines: [Line<'_>; 2] =
            [(ZONE, Type::SOA, 60, &soa(60)), (ZONE, Type::NSEC, 60, &nsec(b"\x01c\x04zone\0"))];
        learn(&mut ranges, &lines, after(0));
        let found = |group, zone: &[u8], asked: &[u8]| {
            let zone = ranges.of_zone(group, name(zone), after(0));
            (zone.soa().is_some(), zone.nsec(&name(asked)).is_some(), zone.nsec3(&name(asked)).is_some())
        };
        assert_eq!(found(0, ZONE, b"\x01b\x04zone\0"), (true, true, false));
        assert_eq!(found(1, ZONE, b"\x01b\x04zone\0"), (false, false, false));
        assert_eq!(found(0, b"\0", b"\x01b\x04zone\0"), (false, false, false));
        assert_eq!(found(0, b"\x01b\x04zone\0", b"\x01b\x04zone\0"), (false, false, false));
    }

    #[test]
    fn a_name_takes_with_it_the_records_of_the_zones_above_and_below_it() {
        let with = |forgotten: &[u8]| {
            let mut ranges = Ranges::default();
            learn(
                &mut ranges,
                &[(ZONE, Type::SOA, 60, &soa(60)), (ZONE, Type::NSEC, 60, &nsec(ZONE))],
                after(0),
            );
            ranges.forget(forgotten);
            assert_eq!(
                ranges.octets,
                ranges.entries.iter().map(|(key, range)| price(key, range)).sum::<usize>()
            );
            ranges.is_empty()
        };
        for forgotten in [&b"\0"[..], ZONE, b"\x04ZONE\0", b"\x01a\x04zone\0"] {
            assert!(with(forgotten), "{}", forgotten.escape_ascii());
        }
        assert!(!with(b"\x05zones\0") && !with(b"\x03zon\0") && !with(b"\x04zone\x01a\0"));
    }

    // RFC 9824 section 3.1: such a record is made for one name.
    #[test]
    fn a_record_that_denies_no_other_name_is_not_kept() {
        for (next, is_kept) in [
            (&b"\x01\0\x01a\x04zone\0"[..], false),
            (b"\x01\0\x01A\x04Zone\0", false),
            (b"\x01\0\x01b\x04zone\0", true),
            (b"\x01\x01\x01a\x04zone\0", true),
        ] {
            let mut ranges = Ranges::default();
            let lines: [Line<'_>; 2] =
                [(ZONE, Type::SOA, 60, &soa(60)), (b"\x01a\x04zone\0", Type::NSEC, 60, &nsec(next))];
            learn(&mut ranges, &lines, after(0));
            assert_eq!(ranges.entries.len() == 2, is_kept, "{}", next.escape_ascii());
        }
    }

    // RFC 4592 section 4.7: the NSEC record of a wildcard under the name that was asked for denies nothing. It would deny the names between
    // that name and its next one, which may exist.
    #[test]
    fn a_record_that_was_expanded_from_a_wildcard_is_not_kept() {
        for rtype in [Type::SOA, Type::NSEC] {
            let mut ranges = Ranges::default();
            let lines: [Line<'_>; 2] = [
                (ZONE, Type::SOA, 60, &soa(60)),
                (b"\x01a\x04zone\0", Type::NSEC, 60, &nsec(b"\x01c\x04zone\0")),
            ];
            learn_expanded(&mut ranges, &lines, |set| set.rtype() == rtype, after(0));
            let zone = ranges.of_zone(0, name(ZONE), after(0));
            assert!(zone.nsec(&name(b"\x01b\x04zone\0")).is_none(), "{rtype:?}");
            assert_eq!(zone.soa().is_some(), rtype == Type::NSEC);
        }
    }

    #[test]
    fn the_octets_are_bounded_and_records_in_use_stay() {
        let mut ranges = Ranges::default();
        let own: [Line<'_>; 2] =
            [(ZONE, Type::SOA, 3600, &soa(3600)), (ZONE, Type::NSEC, 3600, &nsec(b"\x01c\x04zone\0"))];
        learn(&mut ranges, &own, after(0));
        for number in 0..20_000u32 {
            let owner = [&b"\x09z"[..], format!("{number:08x}").as_bytes(), ZONE].concat();
            learn(&mut ranges, &[(&owner, Type::NSEC, 3600, &nsec(ZONE))], after(1));
            assert!(ranges.octets <= RANGE_OCTETS);
            let zone = ranges.of_zone(0, name(ZONE), after(1));
            assert!(zone.soa().is_some() && zone.nsec(&name(b"\x01b\x04zone\0")).is_some(), "{number}");
            zone.note_use(Type::SOA, &name(ZONE));
            zone.note_use(Type::NSEC, &name(ZONE));
        }
        let counted: usize = ranges.entries.iter().map(|(key, range)| price(key, range)).sum();
        assert_eq!(ranges.octets, counted);
        assert!(ranges.entries.len() > 3_000, "{}", ranges.entries.len());
    }
}
