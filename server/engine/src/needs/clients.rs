//! Clients that seem to synthesize by themselves, or to have IPv4, as far as their queries show it. Both signs may be wrong: programs ask
//! for A records without a way to use them, and a resolver behind one address asks for many hosts.
//!
//! 1. The client has asked for `ipv4only.arpa`: it learns the prefix (RFC 7050), with which it can synthesize (RFC 8305 section 7, RFC
//!    6877).
//! 2. The client asks for the A records of a name beside the AAAA records: it has an IPv4 address, of a CLAT or a real one.

use crate::base::name_hash::HashKey;
use crate::base::time::{Instant, Span};
use crate::limits::{NEEDS_CLIENTS, NEEDS_PAIRS};
use core::net::Ipv6Addr;
use core::sync::atomic::{AtomicU32, Ordering};

/// Time between two queries of a program for the addresses of a name: they leave together, and a lost one is repeated after 5 s
/// (resolv.conf(5), `timeout`).
const TOGETHER: Span = Span::from_secs(6);

/// Addresses of clients that have asked for `ipv4only.arpa`. One worker owns that name, and all ask for its clients: so the workers share
/// the table, which is written for such queries alone. A later client may take the place of an earlier one.
pub(super) struct PrefixSeekers(Box<[AtomicU32]>);

impl PrefixSeekers {
    pub(super) fn new() -> PrefixSeekers {
        PrefixSeekers((0..NEEDS_CLIENTS).map(|_| AtomicU32::new(0)).collect())
    }

    /// Notes a client by the keyed hash of its address.
    pub(super) fn insert(&self, hash: u64) {
        let (place, tag) = self.place(hash);
        place.store(tag, Ordering::Relaxed);
    }

    pub(super) fn contains(&self, hash: u64) -> bool {
        let (place, tag) = self.place(hash);
        place.load(Ordering::Relaxed) == tag
    }

    /// The place of a hash, and its tag, which is never 0.
    fn place(&self, hash: u64) -> (&AtomicU32, u32) {
        (&self.0[hash as usize % self.0.len()], (hash >> 32) as u32 | 1)
    }
}

/// One of the two queries for the addresses of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    /// A query for A records.
    A,
    /// A query for AAAA records, whose answer was synthesized.
    Synthesized,
}

/// Queries whose other half may follow.
pub(super) struct Pairs(Box<[Waiting]>);

#[derive(Clone, Copy)]
struct Waiting {
    /// Part of the hash. 0: nobody waits.
    tag: u32,
    /// Time of the query in seconds, modulo 2^31, and the half.
    time: u32,
}

impl Pairs {
    pub(super) fn new() -> Pairs {
        Pairs(vec![Waiting { tag: 0, time: 0 }; NEEDS_PAIRS].into())
    }

    /// Notes a query. True if it is the other half of an earlier one, which is forgotten then.
    pub(super) fn note(&mut self, half: Half, hash: u64, now: Instant) -> bool {
        let place = hash as usize % self.0.len();
        let waiting = &mut self.0[place];
        let (tag, seconds) = ((hash >> 32) as u32 | 1, (now.0 / 1_000_000_000) as u32);
        let elapsed = seconds.wrapping_sub(waiting.time >> 1) & (u32::MAX >> 1);
        let is_other_half = waiting.tag == tag
            && waiting.time & 1 != half as u32
            && u64::from(elapsed) * 1_000_000_000 < TOGETHER.0;
        *waiting = Waiting { tag: if is_other_half { 0 } else { tag }, time: seconds << 1 | half as u32 };
        is_other_half
    }

    pub(super) fn clear(&mut self) {
        self.0.fill(Waiting { tag: 0, time: 0 });
    }
}

/// Octets of both tables: that of all workers, and that of one.
pub(super) const OCTETS: (usize, usize) =
    (NEEDS_CLIENTS * size_of::<AtomicU32>(), NEEDS_PAIRS * size_of::<Waiting>());

/// Keyed hash of a client and a name.
pub(super) fn pair_hash(key: HashKey, client: Ipv6Addr, name_hash: u64) -> u64 {
    key.hash_number(u128::from(client) ^ u128::from(name_hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant(0) + Span::from_secs(seconds)
    }

    #[test]
    fn two_different_halves_within_seconds_are_a_pair_once() {
        let mut pairs = Pairs::new();
        let hash = 0x1234_5678_0000_0001;
        for (half, seconds, is_pair) in [
            (Half::A, 1, false),
            (Half::A, 2, false),
            (Half::Synthesized, 3, true),
            (Half::A, 3, false),
            (Half::Synthesized, 20, false),
            (Half::A, 25, true),
            (Half::A, 25, false),
        ] {
            assert_eq!(pairs.note(half, hash, at(seconds)), is_pair, "{half:?} at {seconds} s");
        }
        // Another client or name in the same place.
        assert!(!pairs.note(Half::Synthesized, hash ^ 1 << 40, at(25)));
        pairs.clear();
        assert!(!pairs.note(Half::A, hash ^ 1 << 40, at(25)));
    }

    #[test]
    fn the_time_of_a_half_may_pass_the_end_of_its_bits() {
        let mut pairs = Pairs::new();
        let end = 1 << 31;
        assert!(!pairs.note(Half::A, 7 << 32, at(end - 1)));
        assert!(pairs.note(Half::Synthesized, 7 << 32, at(end + 1)));
    }

    #[test]
    fn a_client_that_sought_the_prefix_is_known_until_another_one_takes_its_place() {
        let seekers = PrefixSeekers::new();
        assert!(!seekers.contains(5 << 32 | 9));
        seekers.insert(5 << 32 | 9);
        assert!(seekers.contains(5 << 32 | 9) && !seekers.contains(7 << 32 | 9));
        seekers.insert(7 << 32 | 9);
        assert!(!seekers.contains(5 << 32 | 9) && seekers.contains(7 << 32 | 9));
    }
}
