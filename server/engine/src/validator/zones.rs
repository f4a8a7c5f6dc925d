//! Zones that are known: their keys, that they need no signatures, or why their chain is broken.
//!
//! Entries live as long as the proofs that made them. A failure lives for a second at first, and twice as long each time that it follows
//! another one (RFC 9520 section 3.2, RFC 4035 section 4.7). The octets of all entries are bounded; the clock algorithm (one bit for an
//! entry that was used since the hand passed it) takes those that go.

use crate::base::name_hash::HashKey;
use crate::base::time::{Instant, Span};
use crate::limits::{ZONE_OCTETS, ZONE_SECS};
use crate::trace::ZoneState;
use core::cell::Cell;
use dnssec::{Bogus, Insecure, Known, ZoneKeys, Zones};

/// Octets that an entry takes beside its name and keys, and its share of the index.
const OVERHEAD: usize = size_of::<Entry>() + 2 * size_of::<u32>();

/// Lifetime of the first failure, in seconds.
const FAILURE_SECS: u64 = 1;
/// Longest lifetime of a failure, in seconds.
pub(crate) const LONGEST_FAILURE_SECS: u64 = 60;
/// Time after the end of a failure in which the next one counts as following it.
const FAILURE_MEMORY: Span = Span::from_secs(60);

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

    fn octets(&self) -> usize {
        match self {
            Knowledge::Secure(keys) => keys.len(),
            _ => 0,
        }
    }
}

struct Entry {
    hash: u64,
    name: Box<[u8]>,
    knowledge: Knowledge,
    expires: Instant,
    /// Failures in a row.
    failures: u8,
    is_used: Cell<bool>,
    /// Next entry in the same bucket.
    next: u32,
}

/// Table of the zones that are known.
pub(crate) struct ZoneTable {
    key: HashKey,
    entries: Vec<Entry>,
    /// First entry of each bucket. As many as a power of two.
    buckets: Vec<u32>,
    octets: usize,
    hand: usize,
}

impl ZoneTable {
    /// An empty table. `key` hashes names as the rest of the engine does.
    pub fn new(key: HashKey) -> ZoneTable {
        let buckets = vec![END; (ZONE_OCTETS / 256).next_power_of_two()];
        ZoneTable { key, entries: Vec::new(), buckets, octets: 0, hand: 0 }
    }

    /// Forgets all zones.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.buckets.fill(END);
        (self.octets, self.hand) = (0, 0);
    }

    /// Enters what was proven, for some seconds: at least one, as the question that led to it goes on with it, and at most
    /// [`ZONE_SECS`].
    pub fn enter(&mut self, name: &[u8], knowledge: Knowledge, secs: u32, now: Instant) {
        debug_assert!(!knowledge.is_failure());
        let secs = u64::from(secs.clamp(1, ZONE_SECS));
        self.put(name, knowledge, now + Span::from_secs(secs), 0);
    }

    /// Enters a failure. It stays the longer the more failures went before.
    pub fn enter_failure(&mut self, name: &[u8], knowledge: Knowledge, now: Instant) {
        debug_assert!(knowledge.is_failure());
        let former = self.find(self.key.hash(name), name).map(|at| &self.entries[at]);
        let failures = match former {
            Some(entry) if entry.knowledge.is_failure() && entry.expires + FAILURE_MEMORY > now => {
                entry.failures
            }
            _ => 0,
        };
        let secs = (FAILURE_SECS << failures.min(6)).min(LONGEST_FAILURE_SECS);
        self.put(name, knowledge, now + Span::from_secs(secs), failures.saturating_add(1));
    }

    fn put(&mut self, name: &[u8], knowledge: Knowledge, expires: Instant, failures: u8) {
        let hash = self.key.hash(name);
        if let Some(at) = self.find(hash, name) {
            let entry = &mut self.entries[at];
            self.octets += knowledge.octets();
            self.octets -= entry.knowledge.octets();
            (entry.knowledge, entry.expires, entry.failures) = (knowledge, expires, failures);
            return;
        }
        let octets = OVERHEAD + name.len() + knowledge.octets();
        while self.octets + octets > ZONE_OCTETS && !self.entries.is_empty() {
            self.evict();
        }
        let bucket = self.bucket(hash);
        let entry = Entry {
            hash,
            name: name.into(),
            knowledge,
            expires,
            failures,
            is_used: Cell::new(true),
            next: self.buckets[bucket],
        };
        self.buckets[bucket] = self.entries.len() as u32;
        self.entries.push(entry);
        self.octets += octets;
    }

    fn bucket(&self, hash: u64) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    fn find(&self, hash: u64, name: &[u8]) -> Option<usize> {
        let mut at = self.buckets[self.bucket(hash)];
        while at != END {
            let entry = &self.entries[at as usize];
            if entry.hash == hash && *entry.name == *name {
                return Some(at as usize);
            }
            at = entry.next;
        }
        None
    }

    /// Removes the first entry before the hand that was not used since the hand passed it.
    fn evict(&mut self) {
        loop {
            self.hand = if self.hand + 1 < self.entries.len() { self.hand + 1 } else { 0 };
            if !self.entries[self.hand].is_used.replace(false) {
                return self.remove(self.hand);
            }
        }
    }

    fn remove(&mut self, at: usize) {
        self.relink(at, self.entries[at].next);
        let last = self.entries.len() - 1;
        if at != last {
            self.relink(last, at as u32);
        }
        let entry = self.entries.swap_remove(at);
        self.octets -= OVERHEAD + entry.name.len() + entry.knowledge.octets();
    }

    /// Has whatever leads to an entry lead to another place.
    fn relink(&mut self, at: usize, to: u32) {
        let bucket = self.bucket(self.entries[at].hash);
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
        match &entry.knowledge {
            Knowledge::NoCut => Known::NoCut,
            Knowledge::Secure(keys) => Known::Secure(ZoneKeys::from_octets(keys)),
            Knowledge::Insecure(reason) => Known::Insecure(*reason),
            Knowledge::Bogus(reason) => Known::Bogus(*reason),
            Knowledge::Unproven(reason) => Known::Unproven(*reason),
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
    fn the_octets_are_bounded_and_zones_in_use_stay() {
        let mut table = ZoneTable::new(KEY);
        let root = Knowledge::Secure(vec![7; 500].into());
        table.enter(b"\0", root, 3600, after(0));
        for number in 0..100_000u32 {
            let name = [&[8][..], format!("{number:08x}").as_bytes(), &[0]].concat();
            table.enter(&name, Knowledge::Insecure(Insecure::Delegation), 3600, after(0));
            assert!(table.octets <= ZONE_OCTETS);
            assert!(known(&table, &name, after(0)) && known(&table, b"\0", after(0)), "{number}");
        }
        let counted: usize =
            table.entries.iter().map(|entry| OVERHEAD + entry.name.len() + entry.knowledge.octets()).sum();
        assert_eq!(counted, table.octets);
        assert!(table.entries.len() > 20_000, "{}", table.entries.len());
        table.clear();
        assert!(!known(&table, b"\0", after(0)));
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
