//! Verified denials that are used for names other than the one that was asked for (RFC 8198): NSEC and NSEC3 records with their signatures,
//! and the SOA records of their zones, in the order of their owners.
//!
//! A record lives no longer than its TTL, its signature, and the negative TTL of its zone, which is the smaller of the SOA record's TTL and
//! its MINIMUM (RFC 9077 section 3). Without the SOA record nothing is known of that, and an answer would lack it, so such records are not
//! kept. The octets of all entries are reserved at start; the clock algorithm takes those that go: a zone that makes a record for each
//! answer fills the table with records that nobody uses, and they go before those that are used.

use crate::base::ring::Ring;
use crate::base::time::{Instant, Span};
use crate::limits::{RANGE_OCTETS, RANGES};
use core::cell::Cell;
use dnssec::aggressive::{Kept, KeptRecords};
use dnssec::name::{ORDER_KEY, labels, order_key};
use dnssec::validation::State;
use dnssec::{Groups, LowerName, Nsec, Nsec3, Rrset};
use wire::{MAX_NAME, RdataPart, Section, Type};

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
    expires: Instant,
    /// Octets in the ring: the length of the key in two, and the key; the owner; then the RDATA of the record and those of its signatures, each
    /// behind its length.
    place: u32,
    /// True if an answer was made with it since it came to the head of the ring.
    is_used: Cell<bool>,
}

impl Range {
    fn kept<'r>(&self, ring: &'r Ring, now: Instant) -> Option<Kept<'r>> {
        let ttl = self.ttl(now)?;
        let octets = split_key(ring.get(self.place)).1;
        let (owner, rest) = octets.split_at_checked(wire::name_len(octets)?)?;
        let (rdata, signatures) = split_rdata(rest)?;
        Some(Kept { owner: LowerName::from_wire(owner)?, rdata, signatures, ttl })
    }

    /// Rest of the lifetime in whole seconds, if there is any.
    fn ttl(&self, now: Instant) -> Option<u32> {
        let left = (self.expires > now).then(|| (self.expires - now).0 / Span::from_secs(1).0)?;
        u32::try_from(left).ok().filter(|&secs| secs > 0)
    }
}

/// Key of a record in the ring, and what is behind it.
fn split_key(record: &[u8]) -> (&[u8], &[u8]) {
    split_rdata(record).unwrap_or_default()
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
pub(crate) struct Ranges {
    ring: Ring,
    entries: Vec<Range>,
    /// Places of entries that are not used.
    free: Vec<u16>,
    /// Places of the others in the order of their keys: two octets move for each entry behind a new one, and not sixteen.
    order: Vec<u16>,
}

impl Default for Ranges {
    fn default() -> Ranges {
        Ranges {
            ring: Ring::new(RANGE_OCTETS - RANGES * (size_of::<Range>() + 2 * size_of::<u16>())),
            entries: Vec::with_capacity(RANGES),
            free: Vec::with_capacity(RANGES),
            order: Vec::with_capacity(RANGES),
        }
    }
}

impl Ranges {
    /// Forgets all records.
    pub fn clear(&mut self) {
        self.ring.clear();
        self.entries.clear();
        self.free.clear();
        self.order.clear();
    }

    /// Forgets the records of all zones that have names at or below a name: those above it, and those at or below it.
    pub fn forget(&mut self, name: &[u8]) {
        let mut order = [0; ORDER_KEY];
        let length = order_key(name, &mut order);
        let order = &order[..length];
        let Ranges { ring, entries, free, order: places } = self;
        places.retain(|&place| {
            let zone = zone_of(split_key(ring.get(entries[usize::from(place)].place)).0);
            let stays = !zone.starts_with(order) && !order.starts_with(zone);
            if !stays {
                free.push(place);
            }
            stays
        });
    }

    /// True if there are no records.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
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

    /// Key of the entry at a place.
    fn key(&self, place: u16) -> &[u8] {
        split_key(self.ring.get(self.entries[usize::from(place)].place)).0
    }

    /// Index of a key in the order; or the one that it would have.
    fn find(&self, key: &[u8]) -> Result<usize, usize> {
        self.order.binary_search_by(|&place| self.key(place).cmp(key))
    }

    /// Entry at an index of the order.
    fn at(&mut self, index: usize) -> &mut Range {
        &mut self.entries[usize::from(self.order[index])]
    }

    fn get(&self, key: &Key) -> Option<&Range> {
        self.find(key.as_slice()).ok().map(|at| &self.entries[usize::from(self.order[at])])
    }

    /// Last entry of the kind of a key for which the condition holds; it holds for all up to some entry.
    fn last_of_kind(&self, key: &Key, is_before: impl Fn(&[u8]) -> bool) -> Option<&Range> {
        let end = self.order.partition_point(|&place| is_before(self.key(place)));
        let last = *self.order[..end].last()?;
        self.key(last).starts_with(key.of_kind()).then(|| &self.entries[usize::from(last)])
    }

    fn put(&mut self, key: &Key, set: &Rrset<'_>, secs: u32, now: Instant) {
        let Some(octets) = octets_of(set).filter(|_| secs > 0) else { return };
        let expires = now + Span::from_secs(u64::from(secs));
        let key = key.as_slice();
        let length = (key.len() as u16).to_be_bytes();
        self.make_room(length.len() + key.len() + octets.len(), now);
        let Some(place) = self.ring.push(&[&length, key, &octets]) else { return };
        let range = Range { expires, place, is_used: Cell::new(false) };
        match self.find(key) {
            Ok(at) => *self.at(at) = range,
            Err(at) => {
                let place = self.free.pop().unwrap_or(self.entries.len() as u16);
                match self.entries.get_mut(usize::from(place)) {
                    Some(free) => *free = range,
                    None => self.entries.push(range),
                }
                self.order.insert(at, place);
            }
        }
    }

    /// Takes entries away until there is room for one more with a record of this length: the oldest that have expired or were not used; after
    /// some steps the next ones.
    fn make_room(&mut self, length: usize, now: Instant) {
        let mut chances = SECOND_CHANCES;
        while self.order.len() == RANGES || !self.ring.has_room(length) {
            let Some(place) = self.ring.oldest() else { return };
            let found = self.find(split_key(self.ring.get(place)).0);
            let Some(at) = found.ok().filter(|&at| self.at(at).place == place) else {
                self.ring.drop_oldest();
                continue;
            };
            let range = self.at(at);
            let stays = range.is_used.replace(false) && range.expires > now && chances > 0;
            chances -= usize::from(stays);
            let renewed = if stays { self.ring.renew_oldest() } else { None };
            match renewed {
                Some(place) => self.at(at).place = place,
                None => {
                    let place = self.order.remove(at);
                    self.free.push(place);
                    if !stays {
                        self.ring.drop_oldest();
                    }
                }
            }
        }
    }
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
fn octets_of(set: &Rrset<'_>) -> Option<Vec<u8>> {
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
    Some(octets)
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
        let range = self.ranges.get(&Key::of(self.group, &self.zone, SOA, &self.zone))?;
        range.kept(&self.ranges.ring, self.now)
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
        self.ranges.last_of_kind(key, |other| other <= key.as_slice())
    }
}

impl<'r> KeptRecords<'r> for ZoneRanges<'r> {
    fn nsec(&self, name: &LowerName) -> Option<Kept<'r>> {
        let range = self.up_to(&Key::of(self.group, &self.zone, NSEC, name))?;
        range.kept(&self.ranges.ring, self.now)
    }

    fn nsec3(&self, name: &LowerName) -> Option<Kept<'r>> {
        let key = Key::of(self.group, &self.zone, NSEC3, name);
        let last = || {
            let mut end = Key::of(self.group, &self.zone, NSEC3 + 1, &self.zone);
            end.length = end.zone_length + 2;
            self.ranges.last_of_kind(&key, |other| other < end.as_slice())
        };
        self.up_to(&key).or_else(last)?.kept(&self.ranges.ring, self.now)
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
            assert_eq!(ranges.order.len() == 2, is_kept, "{}", next.escape_ascii());
        }
    }

    // RFC 4592 section 4.7 and erratum 5119: the NSEC record of a wildcard under the name that was asked for denies nothing. It would deny
    // the names between that name and its next one, which may exist.
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
    fn the_memory_is_that_of_the_start_and_records_in_use_stay() {
        let mut ranges = Ranges::default();
        let reserved = |ranges: &Ranges| {
            let Ranges { entries, free, order, .. } = ranges;
            [entries.as_ptr().addr(), free.as_ptr().addr(), order.as_ptr().addr(), entries.capacity()]
        };
        let at_start = reserved(&ranges);
        let own: [Line<'_>; 2] =
            [(ZONE, Type::SOA, 3600, &soa(3600)), (ZONE, Type::NSEC, 3600, &nsec(b"\x01c\x04zone\0"))];
        learn(&mut ranges, &own, after(0));
        // Short records, of which there are too many, and long ones, which take the octets.
        let next = [&b"\x3f"[..], &[b'z'; 63], ZONE].concat();
        for number in 0..40_000u32 {
            let owner = [&b"\x09z"[..], format!("{number:08x}").as_bytes(), ZONE].concat();
            let next = if number < 20_000 { ZONE } else { &next };
            learn(&mut ranges, &[(&owner, Type::NSEC, 3600, &nsec(next))], after(1));
            let zone = ranges.of_zone(0, name(ZONE), after(1));
            assert!(zone.soa().is_some() && zone.nsec(&name(b"\x01b\x04zone\0")).is_some(), "{number}");
            zone.note_use(Type::SOA, &name(ZONE));
            zone.note_use(Type::NSEC, &name(ZONE));
        }
        assert_eq!(reserved(&ranges), at_start);
        assert!(ranges.order.len() > 3_000, "{}", ranges.order.len());
        assert!(ranges.order.is_sorted_by(|&a, &b| ranges.key(a) < ranges.key(b)));
        let mut places: Vec<u16> = ranges.order.iter().chain(&ranges.free).copied().collect();
        places.sort_unstable();
        assert!(places.iter().copied().eq(0..ranges.entries.len() as u16), "each place is used once");
    }

    #[test]
    fn a_record_that_comes_again_replaces_the_former_one() {
        let mut ranges = Ranges::default();
        for number in 0..50_000u32 {
            let lines: [Line<'_>; 2] =
                [(ZONE, Type::SOA, 60, &soa(60)), (ZONE, Type::NSEC, 60, &nsec(b"\x01c\x04zone\0"))];
            learn(&mut ranges, &lines, after(u64::from(number)));
            assert_eq!(ranges.order.len(), 2);
        }
        let kept = ranges.of_zone(0, name(ZONE), after(50_000)).nsec(&name(b"\x01b\x04zone\0"));
        assert_eq!(kept.map(|kept| (kept.owner, kept.ttl)), Some((name(ZONE), 59)));
    }
}
