//! Zones that are known: their keys, that they need no signatures, or why their chain is broken.
//!
//! Entries live as long as the proofs that made them. A failure lives for a second at first, and twice as long each time that it follows
//! another one (RFC 9520 section 3.2, RFC 4035 section 4.7). The octets of all entries are reserved at start; the clock algorithm (one bit for
//! an entry that was used since it came to the head of the ring) takes those that go.
//!
//! An entry that is used in the last tenth of its life is due for a refresh, once: whoever looks for names of the zone later does not wait
//! for its keys.

use crate::base::name_hash::HashKey;
use crate::base::ring::Ring;
use crate::base::time::{Instant, Span};
use crate::limits::{ZONE_OCTETS, ZONE_SECS, ZONES};
use crate::trace::ZoneState;
use core::cell::{Cell, RefCell};
use dnssec::{Bogus, Insecure, Known, LowerName, ZoneKeys, Zones};

/// Buckets of the index, a power of two.
const BUCKETS: usize = ZONES.next_power_of_two();

/// Octets of the names and keys.
const RING_OCTETS: usize = ZONE_OCTETS - ZONES * size_of::<Entry>() - BUCKETS * size_of::<u32>();

/// Most entries that stay, as they were used, while room is made for one: some 30 microseconds of work.
const SECOND_CHANCES: usize = 256;

/// Lifetime of the first failure, in seconds.
const FAILURE_SECS: u64 = 1;
/// Longest lifetime of a failure, in seconds.
pub(crate) const LONGEST_FAILURE_SECS: u64 = 60;
/// Time after the end of a failure in which the next one counts as following it.
const FAILURE_MEMORY: Span = Span::from_secs(60);

/// Shortest life of an entry that is refreshed, in seconds: below it, a refresh comes hardly sooner than the next search.
const SHORTEST_REFRESHED_SECS: u64 = 10;
/// Share of its life, as a divisor, in which an entry is due for a refresh.
const REFRESHED_SHARE: u64 = 10;
/// Zones that are due for a refresh at a time. Those of one message are fewer.
const DUE: usize = 8;

/// End of a list of entries.
const END: u32 = u32::MAX;

/// Knowledge of a zone, or of a name that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Knowledge {
    /// The name is no apex.
    NoCut,
    /// Secure zone with these keys.
    Secure(Box<[u8]>),
    /// The zone needs no signatures.
    Insecure(Insecure),
    /// The chain to the zone is broken.
    Bogus(Bogus),
    /// It is open if a zone begins here.
    Unproven(Bogus),
}

impl Knowledge {
    fn is_failure(&self) -> bool {
        matches!(self, Knowledge::Bogus(_) | Knowledge::Unproven(_))
    }

    /// The knowledge without the keys, as an event tells it.
    pub fn state(&self) -> ZoneState {
        match *self {
            Knowledge::NoCut => ZoneState::NoCut,
            Knowledge::Secure(_) => ZoneState::Secure,
            Knowledge::Insecure(reason) => ZoneState::Insecure(reason),
            Knowledge::Bogus(reason) => ZoneState::Bogus(reason),
            Knowledge::Unproven(reason) => ZoneState::Unproven(reason),
        }
    }

    fn keys(&self) -> &[u8] {
        match self {
            Knowledge::Secure(keys) => keys,
            _ => &[],
        }
    }
}

struct Entry {
    expires: Instant,
    /// Time from which on a use makes the entry due for a refresh; [`NEVER`] if it did, or will not.
    refresh_at: Cell<Instant>,
    /// One half of the hash of the name.
    hash: u32,
    /// Name and keys in the ring.
    place: u32,
    /// Next entry in the same bucket.
    next: u32,
    state: ZoneState,
    /// Failures in a row.
    failures: u8,
    is_used: Cell<bool>,
}

/// No time at all.
const NEVER: Instant = Instant(u64::MAX);

/// Table of the zones that are known.
pub(crate) struct ZoneTable {
    key: HashKey,
    ring: Ring,
    entries: Vec<Entry>,
    /// First entry of each bucket.
    buckets: Box<[u32]>,
    /// Zones that are due for a refresh.
    due: RefCell<Vec<DueZone>>,
}

/// Zone whose entry is used and soon expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DueZone {
    pub name: LowerName,
    /// It has keys, so they are asked for at the same time.
    pub has_keys: bool,
}

impl ZoneTable {
    /// An empty table. `key` hashes names as the rest of the engine does.
    pub fn new(key: HashKey) -> ZoneTable {
        ZoneTable {
            key,
            ring: Ring::new(RING_OCTETS),
            entries: Vec::with_capacity(ZONES),
            buckets: vec![END; BUCKETS].into(),
            due: RefCell::new(Vec::with_capacity(DUE)),
        }
    }

    /// Forgets all zones.
    pub fn clear(&mut self) {
        self.ring.clear();
        self.entries.clear();
        self.due.get_mut().clear();
        self.buckets.fill(END);
    }

    /// Enters what was proven, for some seconds: at least one, as the question that led to it goes on with it, and at most
    /// [`ZONE_SECS`].
    pub fn enter(&mut self, name: &[u8], knowledge: Knowledge, secs: u32, now: Instant) {
        debug_assert!(!knowledge.is_failure());
        let secs = u64::from(secs.clamp(1, ZONE_SECS));
        let life = Span::from_secs(secs);
        let refresh_at = now + Span(life.0 - life.0 / REFRESHED_SHARE);
        let is_refreshed = secs >= SHORTEST_REFRESHED_SECS;
        self.put(name, knowledge, (now + life, if is_refreshed { refresh_at } else { NEVER }), 0);
    }

    /// Takes a zone that is due for a refresh.
    pub fn take_due(&mut self) -> Option<DueZone> {
        self.due.get_mut().pop()
    }

    /// Enters a failure. It stays the longer the more failures went before.
    pub fn enter_failure(&mut self, name: &[u8], knowledge: Knowledge, now: Instant) {
        debug_assert!(knowledge.is_failure());
        let former = self.find(self.key.hash(name), name).map(|at| &self.entries[at]);
        let failures = match former {
            // Only failures count any.
            Some(entry) if entry.expires + FAILURE_MEMORY > now => entry.failures,
            _ => 0,
        };
        let secs = (FAILURE_SECS << failures.min(6)).min(LONGEST_FAILURE_SECS);
        self.put(name, knowledge, (now + Span::from_secs(secs), NEVER), failures.saturating_add(1));
    }

    fn put(
        &mut self,
        name: &[u8],
        knowledge: Knowledge,
        (expires, refresh_at): (Instant, Instant),
        failures: u8,
    ) {
        let hash = self.key.hash(name);
        let (state, keys) = (knowledge.state(), knowledge.keys());
        let is_same = |entry: &Entry| self.ring.get(entry.place).strip_prefix(name) == Some(keys);
        let found = self.find(hash, name);
        let place = match found.map(|at| &self.entries[at]).filter(|entry| is_same(entry)) {
            Some(entry) => entry.place,
            None => {
                self.make_room(name.len() + keys.len());
                let Some(place) = self.ring.push(&[name, keys]) else { return };
                place
            }
        };
        let entry = Entry {
            expires,
            refresh_at: Cell::new(refresh_at),
            hash: half(hash),
            place,
            next: END,
            state,
            failures,
            is_used: Cell::new(true),
        };
        if let Some(at) = self.find(hash, name) {
            self.entries[at] = Entry { next: self.entries[at].next, ..entry };
            return;
        }
        let bucket = bucket(hash);
        self.entries.push(Entry { next: self.buckets[bucket], ..entry });
        self.buckets[bucket] = self.entries.len() as u32 - 1;
    }

    /// Name and keys of an entry.
    fn record(&self, entry: &Entry) -> (&[u8], &[u8]) {
        split(self.ring.get(entry.place))
    }

    fn find(&self, hash: u64, name: &[u8]) -> Option<usize> {
        let mut at = self.buckets[bucket(hash)];
        while at != END {
            let entry = &self.entries[at as usize];
            if entry.hash == half(hash) && self.record(entry).0 == name {
                return Some(at as usize);
            }
            at = entry.next;
        }
        None
    }

    /// Notes that an entry is due for a refresh. If there is no room, a later use does.
    #[cold]
    fn note_due(&self, entry: &Entry) {
        let mut due = self.due.borrow_mut();
        if due.len() < DUE
            && let Some(name) = LowerName::from_wire(self.record(entry).0)
        {
            entry.refresh_at.set(NEVER);
            due.push(DueZone { name, has_keys: entry.state == ZoneState::Secure });
        }
    }

    /// Takes entries away until there is room for one more with a record of this length: the oldest that were not used; after some steps the
    /// next ones.
    fn make_room(&mut self, length: usize) {
        let mut chances = SECOND_CHANCES;
        while self.entries.len() == ZONES || !self.ring.has_room(length) {
            let Some(place) = self.ring.oldest() else { return };
            let name = split(self.ring.get(place)).0;
            let found = self.find(self.key.hash(name), name);
            let Some(at) = found.filter(|&at| self.entries[at].place == place) else {
                self.ring.drop_oldest();
                continue;
            };
            let stays = self.entries[at].is_used.replace(false) && chances > 0;
            chances -= usize::from(stays);
            if stays && let Some(place) = self.ring.renew_oldest() {
                self.entries[at].place = place;
                continue;
            }
            self.remove(at);
            if !stays {
                self.ring.drop_oldest();
            }
        }
    }

    fn remove(&mut self, at: usize) {
        self.relink(at, self.entries[at].next);
        let last = self.entries.len() - 1;
        if at != last {
            self.relink(last, at as u32);
        }
        self.entries.swap_remove(at);
    }

    /// Has whatever leads to an entry lead to another place.
    fn relink(&mut self, at: usize, to: u32) {
        let bucket = self.entries[at].hash as usize % BUCKETS;
        if self.buckets[bucket] == at as u32 {
            self.buckets[bucket] = to;
            return;
        }
        let mut before = self.buckets[bucket] as usize;
        while self.entries[before].next != at as u32 {
            before = self.entries[before].next as usize;
        }
        self.entries[before].next = to;
    }
}

/// Name and keys of a record in the ring.
fn split(record: &[u8]) -> (&[u8], &[u8]) {
    record.split_at_checked(wire::name_len(record).unwrap_or(0)).unwrap_or_default()
}

/// Half of a hash that an entry keeps, which tells its bucket, too.
fn half(hash: u64) -> u32 {
    hash as u32
}

fn bucket(hash: u64) -> usize {
    half(hash) as usize % BUCKETS
}

/// Table at a point in time. `overlay`: a zone whose keys are on trial, and these keys.
pub(crate) struct KnownZones<'z> {
    pub(crate) table: &'z ZoneTable,
    pub(crate) overlay: Option<(&'z [u8], &'z [u8])>,
    pub(crate) now: Instant,
}

impl Zones for KnownZones<'_> {
    fn get(&self, apex: &[u8]) -> Known<'_> {
        if let Some((name, keys)) = self.overlay
            && name == apex
        {
            return Known::Secure(ZoneKeys::from_octets(keys));
        }
        let Some(at) = self.table.find(self.table.key.hash(apex), apex) else { return Known::Unknown };
        let entry = &self.table.entries[at];
        if entry.expires <= self.now {
            return Known::Unknown;
        }
        entry.is_used.set(true);
        if entry.refresh_at.get() <= self.now {
            self.table.note_due(entry);
        }
        match entry.state {
            ZoneState::NoCut => Known::NoCut,
            ZoneState::Secure => Known::Secure(ZoneKeys::from_octets(self.table.record(entry).1)),
            ZoneState::Insecure(reason) => Known::Insecure(reason),
            ZoneState::Bogus(reason) => Known::Bogus(reason),
            ZoneState::Unproven(reason) => Known::Unproven(reason),
            ZoneState::GivenUp => Known::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: HashKey = HashKey([0x1234_5678_9abc_def0, 0x0fed_cba9_8765_4321]);

    fn after(secs: u64) -> Instant {
        Instant(0) + Span::from_secs(secs)
    }

    fn known(table: &ZoneTable, name: &[u8], now: Instant) -> bool {
        KnownZones { table, overlay: None, now }.get(name) != Known::Unknown
    }

    #[test]
    fn an_entry_ends_with_its_proof_and_after_a_day_at_the_latest() {
        let mut table = ZoneTable::new(KEY);
        for (secs, last) in [(0, 0), (1, 0), (60, 59), (u32::MAX, 86_399)] {
            table.enter(b"\x01a\0", Knowledge::NoCut, secs, after(0));
            assert!(known(&table, b"\x01a\0", after(last)), "{secs}");
            assert!(!known(&table, b"\x01a\0", after(last + 1)), "{secs}");
        }
    }

    #[test]
    fn an_entry_that_is_used_in_the_last_tenth_of_its_life_is_due_once() {
        let mut table = ZoneTable::new(KEY);
        let due = |has_keys| Some(DueZone { name: LowerName::from_wire(b"\x01a\0").unwrap(), has_keys });
        let keys = Knowledge::Secure(vec![7; 50].into());
        for (knowledge, has_keys) in [(keys, true), (Knowledge::Insecure(Insecure::Delegation), false)] {
            table.enter(b"\x01a\0", knowledge, 100, after(0));
            assert!(known(&table, b"\x01a\0", after(89)));
            assert_eq!(table.take_due(), None);
            assert!(known(&table, b"\x01a\0", after(90)) && known(&table, b"\x01a\0", after(99)));
            assert_eq!((table.take_due(), table.take_due()), (due(has_keys), None));
        }
        table.enter(b"\x01a\0", Knowledge::NoCut, 9, after(0));
        table.enter_failure(b"\x01b\0", Knowledge::Bogus(Bogus::Signature), after(0));
        assert!(known(&table, b"\x01a\0", after(8)) && known(&table, b"\x01b\0", after(0)));
        assert_eq!(table.take_due(), None);
    }

    // RFC 9520 section 3.2: at least 1 s, backing off, and no longer than 5 minutes.
    #[test]
    fn failures_in_a_row_stay_for_one_second_doubling_to_sixty() {
        let mut table = ZoneTable::new(KEY);
        let (mut now, mut lifetimes) = (Instant(0), vec![]);
        for _ in 0..9 {
            table.enter_failure(b"\x01a\0", Knowledge::Unproven(Bogus::Unreachable), now);
            let alive =
                (0..).take_while(|&secs| known(&table, b"\x01a\0", now + Span::from_secs(secs))).count();
            lifetimes.push(alive);
            now += Span::from_secs(alive as u64);
        }
        assert_eq!(lifetimes, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        // A minute without a failure, or a success, ends the row.
        table.enter_failure(b"\x01a\0", Knowledge::Bogus(Bogus::Signature), now + Span::from_secs(61));
        assert!(!known(&table, b"\x01a\0", now + Span::from_secs(62)));
        table.enter(b"\x01a\0", Knowledge::NoCut, 1, now);
        table.enter_failure(b"\x01a\0", Knowledge::Bogus(Bogus::Signature), now);
        assert!(!known(&table, b"\x01a\0", now + Span::from_secs(1)));
    }

    #[test]
    fn the_memory_is_that_of_the_start_and_zones_in_use_stay() {
        let mut table = ZoneTable::new(KEY);
        let at_start = (table.entries.as_ptr(), table.entries.capacity());
        let keys = vec![7; 500];
        table.enter(b"\0", Knowledge::Secure(keys.as_slice().into()), 3600, after(0));
        let mut most = 0;
        for number in 0..150_000u32 {
            let name = [&[8][..], format!("{number:08x}").as_bytes(), &[0]].concat();
            // Insecure zones first, of which there are too many, then signed ones, which take the octets.
            let knowledge = match number < 75_000 {
                true => Knowledge::Insecure(Insecure::Delegation),
                false => Knowledge::Secure(number.to_be_bytes().repeat(50).into()),
            };
            table.enter(&name, knowledge, 3600, after(0));
            assert!(known(&table, &name, after(0)) && known(&table, b"\0", after(0)), "{number}");
            most = most.max(table.entries.len());
        }
        assert_eq!((table.entries.as_ptr(), table.entries.capacity()), at_start);
        assert_eq!((most, size_of::<Entry>()), (ZONES, 32));
        let zones = KnownZones { table: &table, overlay: None, now: after(0) };
        assert_eq!(zones.get(b"\0"), Known::Secure(ZoneKeys::from_octets(&keys)));
        let last = 149_999u32.to_be_bytes().repeat(50);
        assert_eq!(zones.get(b"\x08000249ef\0"), Known::Secure(ZoneKeys::from_octets(&last)));
        let found = (0..table.entries.len()).all(|at| {
            let name = table.record(&table.entries[at]).0;
            table.find(KEY.hash(name), name) == Some(at)
        });
        assert!(found && table.entries.len() > 4_000, "{}", table.entries.len());
        table.clear();
        assert!(!known(&table, b"\0", after(0)));
    }

    #[test]
    fn a_zone_that_is_entered_again_has_its_new_state_and_keys() {
        let mut table = ZoneTable::new(KEY);
        let state =
            |table: &ZoneTable| match (KnownZones { table, overlay: None, now: after(0) }).get(b"\x01a\0") {
                Known::Secure(keys) => format!("{:?}", keys.octets()),
                other => format!("{other:?}"),
            };
        for round in 0..100_000u32 {
            let keys = [round as u8; 3];
            table.enter(b"\x01a\0", Knowledge::Secure(keys.into()), 60, after(0));
            assert_eq!(state(&table), format!("{keys:?}"));
            if round % 1000 == 0 {
                table.enter(b"\x01a\0", Knowledge::NoCut, 60, after(0));
                assert_eq!(state(&table), "NoCut");
            }
        }
        assert_eq!(table.entries.len(), 1);
    }

    #[test]
    fn keys_on_trial_count_for_their_zone_alone() {
        let mut table = ZoneTable::new(KEY);
        table.enter(b"\x01a\0", Knowledge::NoCut, 60, after(0));
        let zones = KnownZones { table: &table, overlay: Some((b"\x01b\0", b"")), now: after(0) };
        assert_eq!(zones.get(b"\x01b\0"), Known::Secure(ZoneKeys::from_octets(b"")));
        assert_eq!(zones.get(b"\x01a\0"), Known::NoCut);
        assert_eq!(zones.get(b"\x01c\0"), Known::Unknown);
    }
}
