//! The records of a zone in memory, built for hundreds of millions of names: all names and records in one arena of
//! large segments, and a flat hash table of 32-bit offsets into it.
//!
//! ```text
//!     node   length of the name + 1: 1, name below the zone (wire form, lower case), set
//!     set    offset of the next set: 4, type: 2, TTL: 4, octets of the records: 2, records: (length: 2, RDATA)...
//!     more   0xff, then a further set of an earlier name
//! ```
//!
//! Offsets count units of four octets, at which nodes and further sets begin, so 16 GiB can be addressed. A name of
//! 16 octets with an A record takes 1 + 16 + 12 + 6 = 35, rounded up to 36 octets, and 5.3 to 10.7 octets of the
//! table (4 per slot; between three eighths and three quarters of the slots are in use).

use wire::Type;

/// Octets of an offset unit.
const UNIT: usize = 4;

/// Units of a segment: 16 MiB. A segment's memory is touched only as it fills.
const SEGMENT: u32 = 1 << 22;

/// Octets of a set before its data.
const SET_HEADER: usize = 12;

/// First octet of a further set, in place of a name's length. So names below the zone may have 253 octets.
const CONTINUATION: u8 = 0xff;

/// Octets of the longest name below the zone in wire form.
pub(crate) const MAX_NAME: usize = CONTINUATION as usize - 2;

/// Octets of the largest RRset: the most that a message can carry.
const MAX_RRSET: usize = 65_535;

/// Offset of a name in the arena. 0 means none: the first unit stays unused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node(u32);

/// The records of one name and type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RrSet<'a> {
    pub rtype: Type,
    pub ttl_secs: u32,
    octets: &'a [u8],
}

/// Reason why a record cannot be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreError {
    /// 16 GiB of names and records.
    Full,
    /// More records than a message can carry in one RRset.
    SetTooLarge,
    /// A name in the root zone that is too long by one or two octets.
    NameTooLong,
}

/// Location of a set: the offset of its node or further set, and the octets from there to the set.
#[derive(Clone, Copy)]
struct SetLocation {
    unit: u32,
    after: usize,
}

/// Names and records of a zone.
#[derive(Debug)]
pub(crate) struct Store {
    segments: Vec<Box<[u8]>>,
    /// Octets in use in the last segment.
    used: usize,
    /// Hash table of node offsets; 0 means a free slot.
    table: Vec<u32>,
    names: u64,
    records: u64,
}

impl Store {
    pub fn new() -> Store {
        Store { segments: vec![segment()], used: UNIT, table: vec![0; 1 << 10], names: 0, records: 0 }
    }

    /// Number of names, including empty non-terminals.
    pub fn names(&self) -> u64 {
        self.names
    }

    /// Number of records.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The node of a name, given without the zone's name and in lower case.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<Node> {
        let mask = self.table.len() - 1;
        let mut slot = hash(name) as usize & mask;
        loop {
            let unit = self.table[slot];
            if unit == 0 {
                return None;
            }
            if self.name(unit) == name {
                return Some(Node(unit));
            }
            slot = (slot + 1) & mask;
        }
    }

    /// The node of a name; creates it if there is none.
    ///
    /// # Errors
    ///
    /// `StoreError::NameTooLong`: the name has more than 255 octets. `StoreError::Full`: names and records take 16 GiB.
    pub fn insert(&mut self, name: &[u8]) -> Result<Node, StoreError> {
        if let Some(node) = self.find(name) {
            return Ok(node);
        }
        if name.len() > MAX_NAME {
            return Err(StoreError::NameTooLong);
        }
        if (self.names as usize + 1) * 4 > self.table.len() * 3 {
            self.grow();
        }
        let (unit, place) = self.allocate(1 + name.len() + SET_HEADER)?;
        place[0] = name.len() as u8 + 1;
        place[1..=name.len()].copy_from_slice(name);
        self.enter(unit, hash(name));
        self.names += 1;
        Ok(Node(unit))
    }

    /// The RRsets of a name.
    #[inline]
    pub fn sets(&self, node: Node) -> impl Iterator<Item = RrSet<'_>> {
        self.places(node).map(|at| self.set(at)).filter(|set| set.rtype.0 != 0)
    }

    /// The RRset of a name and type.
    #[inline]
    pub fn get(&self, node: Node, rtype: Type) -> Option<RrSet<'_>> {
        self.sets(node).find(|set| set.rtype == rtype)
    }

    /// Adds a record to a name. A duplicate record is dropped (RFC 2181 section 5), and an RRset has the lowest TTL
    /// of its records (section 5.2).
    ///
    /// # Errors
    ///
    /// `StoreError::SetTooLarge`: the RRset would not fit into a message. `StoreError::Full`: names and records take 16 GiB.
    pub fn add(&mut self, node: Node, rtype: Type, ttl_secs: u32, rdata: &[u8]) -> Result<(), StoreError> {
        let (mut found, mut last) = (None, None);
        for at in self.places(node) {
            let set = self.set(at);
            if set.rtype == rtype {
                if set.rdata().any(|other| other == rdata) {
                    return Ok(());
                }
                found = Some((at, set.octets.len(), set.ttl_secs.min(ttl_secs)));
            }
            last = Some(at);
        }
        // Every node has room for one set from the beginning.
        let Some(last) = last else { return Ok(()) };
        let (octets, lowest) = found.map_or((0, ttl_secs), |(_, octets, lowest)| (octets, lowest));
        let extra = 2 + rdata.len();
        if octets + extra > MAX_RRSET {
            return Err(StoreError::SetTooLarge);
        }
        // The set, or the empty set of a name without records, grows in place if it is at the end of the arena.
        let empty = (self.set(last).rtype.0 == 0).then_some(last);
        let spot = found.map(|(at, ..)| at).or(empty).filter(|at| self.is_last(*at));
        match spot.filter(|_| self.used + extra <= SEGMENT as usize * UNIT) {
            Some(at) => {
                let segment = self.segments.len() - 1;
                write_record(&mut self.segments[segment][self.used..], rdata);
                self.used += extra;
                self.write_set(at, rtype, lowest, octets + extra);
            }
            None => self.append_set(last, found.map(|(at, ..)| at), rtype, lowest, rdata)?,
        }
        self.records += 1;
        Ok(())
    }

    /// Writes a set at the end of the arena: a new one, or one that cannot grow in place.
    fn append_set(
        &mut self,
        last: SetLocation,
        old: Option<SetLocation>,
        rtype: Type,
        ttl_secs: u32,
        rdata: &[u8],
    ) -> Result<(), StoreError> {
        let mut octets = old.map_or_else(Vec::new, |at| self.set(at).octets.to_vec());
        let start = octets.len();
        octets.resize(start + 2 + rdata.len(), 0);
        write_record(&mut octets[start..], rdata);
        let (unit, place) = self.allocate(1 + SET_HEADER + octets.len())?;
        place[0] = CONTINUATION;
        place[1 + SET_HEADER..1 + SET_HEADER + octets.len()].copy_from_slice(&octets);
        self.write_set(SetLocation { unit, after: 1 }, rtype, ttl_secs, octets.len());
        if let Some(old) = old {
            // The old copy stays, without a type.
            self.at_mut(old)[4..6].fill(0);
        }
        self.at_mut(last)[..4].copy_from_slice(&unit.to_le_bytes());
        Ok(())
    }

    fn write_set(&mut self, at: SetLocation, rtype: Type, ttl_secs: u32, octets: usize) {
        let place = self.at_mut(at);
        place[4..6].copy_from_slice(&rtype.0.to_le_bytes());
        place[6..10].copy_from_slice(&ttl_secs.to_le_bytes());
        place[10..12].copy_from_slice(&(octets as u16).to_le_bytes());
    }

    /// True if a set is at the end of the arena.
    fn is_last(&self, at: SetLocation) -> bool {
        let (segment, start) = split(at.unit);
        segment + 1 == self.segments.len()
            && start + at.after + SET_HEADER + self.set(at).octets.len() == self.used
    }

    /// Locations of the sets of a name.
    #[inline]
    fn places(&self, node: Node) -> impl Iterator<Item = SetLocation> + '_ {
        let first = SetLocation { unit: node.0, after: 1 + self.name(node.0).len() };
        std::iter::successors(Some(first), |at| {
            let place = self.at(*at);
            let next = u32::from_le_bytes([place[0], place[1], place[2], place[3]]);
            (next != 0).then_some(SetLocation { unit: next, after: 1 })
        })
    }

    #[inline]
    fn set(&self, at: SetLocation) -> RrSet<'_> {
        let place = self.at(at);
        let octets = usize::from(u16::from_le_bytes([place[10], place[11]]));
        RrSet {
            rtype: Type(u16::from_le_bytes([place[4], place[5]])),
            ttl_secs: u32::from_le_bytes([place[6], place[7], place[8], place[9]]),
            octets: &place[SET_HEADER..SET_HEADER + octets],
        }
    }

    #[inline]
    fn name(&self, unit: u32) -> &[u8] {
        let (segment, start) = split(unit);
        let place = &self.segments[segment][start..];
        &place[1..usize::from(place[0])]
    }

    #[inline]
    fn at(&self, at: SetLocation) -> &[u8] {
        let (segment, start) = split(at.unit);
        &self.segments[segment][start + at.after..]
    }

    fn at_mut(&mut self, at: SetLocation) -> &mut [u8] {
        let (segment, start) = split(at.unit);
        &mut self.segments[segment][start + at.after..]
    }

    /// Reserves octets at the next unit, in a new segment if the last one has no room.
    fn allocate(&mut self, octets: usize) -> Result<(u32, &mut [u8]), StoreError> {
        let mut start = self.used.next_multiple_of(UNIT);
        if start + octets > SEGMENT as usize * UNIT {
            self.segments.push(segment());
            start = 0;
        }
        let last = self.segments.len() - 1;
        let unit = last as u64 * u64::from(SEGMENT) + (start / UNIT) as u64;
        let unit = u32::try_from(unit).map_err(|_| StoreError::Full)?;
        self.used = start + octets;
        Ok((unit, &mut self.segments[last][start..start + octets]))
    }

    /// Enters a node into the hash table. It must not be in the table yet.
    fn enter(&mut self, unit: u32, hash: u64) {
        let mask = self.table.len() - 1;
        let mut slot = hash as usize & mask;
        while self.table[slot] != 0 {
            slot = (slot + 1) & mask;
        }
        self.table[slot] = unit;
    }

    /// Doubles the table, and enters all nodes in the order of the arena, so that only the table is accessed at
    /// random.
    fn grow(&mut self) {
        let slots = 2 * self.table.len();
        // Free the old table first: both tables together would be the peak of memory use.
        self.table = Vec::new();
        self.table = vec![0; slots];
        for segment in 0..self.segments.len() {
            let is_last = segment + 1 == self.segments.len();
            let end = if is_last { self.used } else { SEGMENT as usize * UNIT };
            let mut start = if segment == 0 { UNIT } else { 0 };
            // The unused rest of a segment is zero.
            while start < end && self.segments[segment][start] != 0 {
                let unit = segment as u32 * SEGMENT + (start / UNIT) as u32;
                let length = self.segments[segment][start];
                let after = if length == CONTINUATION {
                    1
                } else {
                    let hash = hash(self.name(unit));
                    self.enter(unit, hash);
                    usize::from(length)
                };
                let octets = self.set(SetLocation { unit, after }).octets.len();
                start = (start + after + SET_HEADER + octets).next_multiple_of(UNIT);
            }
        }
    }
}

impl<'a> RrSet<'a> {
    /// The RDATA of its records.
    #[inline]
    pub fn rdata(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut rest = self.octets;
        std::iter::from_fn(move || {
            let (length, after) = rest.split_first_chunk::<2>()?;
            let (rdata, after) = after.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
            rest = after;
            Some(rdata)
        })
    }
}

fn write_record(place: &mut [u8], rdata: &[u8]) {
    place[..2].copy_from_slice(&(rdata.len() as u16).to_le_bytes());
    place[2..2 + rdata.len()].copy_from_slice(rdata);
}

fn segment() -> Box<[u8]> {
    vec![0; SEGMENT as usize * UNIT].into_boxed_slice()
}

/// The segment of an offset, and the octet within it.
#[inline]
fn split(unit: u32) -> (usize, usize) {
    ((unit / SEGMENT) as usize, (unit % SEGMENT) as usize * UNIT)
}

/// Multiplies eight octets at a time and mixes the upper half of the product into the lower. The author of the zone
/// chooses the names, so the hash needs no secret.
#[inline]
fn hash(name: &[u8]) -> u64 {
    let step = |hash: u64, word: u64| {
        let product = u128::from(hash ^ word) * 0x9e37_79b9_7f4a_7c15;
        product as u64 ^ (product >> 64) as u64
    };
    let (words, rest) = name.as_chunks::<8>();
    let mut hash = words.iter().fold(name.len() as u64 + 1, |hash, word| {
        step(hash.wrapping_add(0xa076_1d64_78bd_642f), u64::from_le_bytes(*word))
    });
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    hash = step(hash, u64::from_le_bytes(last));
    step(hash, 0xe703_7ed1_a0b4_28db)
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
