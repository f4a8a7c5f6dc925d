//! Explicit address mappings of a configuration (RFC 7757) as the oracle reads them: one line after the other, bit by bit, without the engine's
//! table.

use crate::ground_truth::{GroundTruth, Kind};
use crate::rng::Rng;
use pref64::mapping::{Mapping, Mappings};
use std::sync::Arc;

/// Lines that are drawn at most for names, and for reverse names.
const LINES: u64 = 6;

/// IPv4 networks of the truth's addresses: all of some kind, the private ones, those that a rule leaves out, those that are never embedded.
const NETWORKS: [(u8, usize); 8] =
    [(44, 8), (44, 16), (44, 22), (45, 24), (45, 8), (46, 28), (10, 8), (127, 16)];

/// A pair of prefixes, with their lengths in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    v4: ([u8; 4], usize),
    v6: ([u8; 16], usize),
}

/// The mappings of a configuration.
#[derive(Clone, Debug, Default)]
pub struct MappingLines(Vec<Line>);

impl MappingLines {
    /// Draws mappings, or none.
    pub fn draw(ground_truth: &GroundTruth, rng: &mut Rng) -> MappingLines {
        let mut all = MappingLines::default();
        if !rng.permille(400) {
            return all;
        }
        for number in 0..rng.below(LINES) {
            let (first, length) = *rng.choose(&NETWORKS);
            let v4 = [first, rng.below(4) as u8, rng.next_u64() as u8, rng.next_u64() as u8];
            let mut v6 = [0; 16];
            v6[..8].copy_from_slice(&[0x20, 1, 0xd, 0xb8, 0, 0x46, 0, number as u8]);
            // One network contains the others.
            let length6 = if rng.permille(200) { 48 } else { *rng.choose(&[64, 72, 96 + length]) };
            all.add(v4, length, v6, length6.min(96 + length));
        }
        // Single addresses: reverse names of the truth, some under prefixes, lead to others of its names.
        let arpa = || ground_truth.arpa_ids().map(|name| ground_truth.name(name).kind);
        let reverse: Vec<[u8; 16]> = arpa().filter_map(reverse_address).collect();
        let targets: Vec<[u8; 4]> = arpa().filter_map(in_addr_address).collect();
        for _ in 0..rng.below(LINES) {
            all.add(*rng.choose(&targets), 32, *rng.choose(&reverse), 128);
        }
        all
    }

    /// Adds a line, unless one of its prefixes is mapped already.
    fn add(&mut self, mut v4: [u8; 4], length4: usize, mut v6: [u8; 16], length6: usize) {
        (length4..32).for_each(|bit| set(&mut v4, bit, false));
        (length6..128).for_each(|bit| set(&mut v6, bit, false));
        let line = Line { v4: (v4, length4), v6: (v6, length6) };
        if !self.0.iter().any(|other| other.v4 == line.v4 || other.v6 == line.v6) {
            self.0.push(line);
        }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The IPv6 address of an IPv4 address: the bits behind the longest prefix that has it follow the IPv6 prefix (RFC 7757 section 3.3.1).
    pub fn to_v6(&self, address: [u8; 4]) -> Option<[u8; 16]> {
        let containing = self.0.iter().filter(|line| begins_with(&address, &line.v4.0, line.v4.1));
        let line = containing.max_by_key(|line| line.v4.1)?;
        let mut mapped = line.v6.0;
        for bit in line.v4.1..32 {
            set(&mut mapped, line.v6.1 + bit - line.v4.1, get(&address, bit));
        }
        Some(mapped)
    }

    /// The IPv4 address of an IPv6 address; the bits behind those that it needs are ignored (RFC 7757 section 3.3.2).
    pub fn to_v4(&self, address: [u8; 16]) -> Option<[u8; 4]> {
        let containing = self.0.iter().filter(|line| begins_with(&address, &line.v6.0, line.v6.1));
        let line = containing.max_by_key(|line| line.v6.1)?;
        let mut mapped = line.v4.0;
        for bit in line.v4.1..32 {
            set(&mut mapped, bit, get(&address, line.v6.1 + bit - line.v4.1));
        }
        Some(mapped)
    }

    /// The engine's table; none without mappings.
    pub fn to_engine(&self) -> Option<Arc<Mappings>> {
        let line = |line: &Line| {
            let Line { v4: (v4, length4), v6: (v6, length6) } = *line;
            Mapping::new((v4.into(), length4 as u8), (v6.into(), length6 as u8)).ok()
        };
        let lines: Vec<Mapping> = self.0.iter().filter_map(line).collect();
        Mappings::new(lines).ok().filter(|mappings| !mappings.is_empty()).map(Arc::new)
    }
}

fn reverse_address(kind: Kind) -> Option<[u8; 16]> {
    if let Kind::Reverse(address) = kind { Some(address) } else { None }
}

fn in_addr_address(kind: Kind) -> Option<[u8; 4]> {
    if let Kind::InAddr(address) = kind { Some(address) } else { None }
}

/// A bit of an address, the highest one first.
fn get(address: &[u8], bit: usize) -> bool {
    address[bit / 8] >> (7 - bit % 8) & 1 == 1
}

/// Writes a bit of an address.
fn set(address: &mut [u8], bit: usize, is_set: bool) {
    let mask = 1 << (7 - bit % 8);
    address[bit / 8] = if is_set { address[bit / 8] | mask } else { address[bit / 8] & !mask };
}

/// True if an address has the first `length` bits of a prefix.
fn begins_with(address: &[u8], prefix: &[u8], length: usize) -> bool {
    (0..length).all(|bit| get(address, bit) == get(prefix, bit))
}
