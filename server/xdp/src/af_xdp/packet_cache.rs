//! The packet cache in the kernel: memory that the workers and the XDP program share (`bpf/answer.h`). A worker publishes an answer that
//! is asked for often, withdraws it, and reads how often the program has given it. All of that are plain writes and reads: no system
//! call is needed, so neither privileges nor the sandbox matter.
//!
//! The program runs for less than a microsecond, but perhaps just now, on another processor. So a slot that was withdrawn, and the list of
//! clients, are written again only after [`XDP_GRACE`], when no run can be left that reads them. Each slot has a sequence number beside,
//! because a virtual processor may be stopped for longer: the program reads it before all else of the slot, and compares it at its end.
//! It is odd while the slot is written. BPF has no read barrier; a processor that reads out of order does so within less than the grace.

use crate::af_xdp::limits::{XDP_ALLOWED, XDP_GRACE};
use crate::af_xdp::program::{Array, SharedArrays};
use crate::af_xdp::ring::Mapping;
use engine::Instant;
use engine::limits::{PACKET_CACHE_ENTRIES, PACKET_CACHE_RECORDS};
use engine::packet_cache::{PACKET_CACHE_KEY, PacketCacheEntry, PacketCacheKind, PacketCacheQuery};
use engine::settings::Network;
use std::collections::VecDeque;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

// The layout of `bpf/answer.h`, in words of 64 bits.

/// Sets of the index, and places in each.
const SETS: usize = 1024;
const WAYS: usize = 8;
/// Words of an answer: ten facts of 16 bits and four others, the places of the TTLs, the question, the records. Each begins with a cache
/// line of eight words.
const FACTS: usize = 6;
const TTL_WORDS: usize = PACKET_CACHE_RECORDS / 4;
const QUESTION: usize = FACTS + TTL_WORDS;
const LONGEST_RECORDS: usize = 408;
const ANSWER_WORDS: usize = (QUESTION + PACKET_CACHE_KEY + LONGEST_RECORDS / 8).next_multiple_of(8);
/// Words of the control record: generation and number of networks, seed, networks.
const CONTROL_WORDS: usize = 2 + 4 * XDP_ALLOWED;
/// Words of the hits of an answer on one processor.
const HIT_WORDS: usize = 4;

/// The word of an answer with sequence number and generation.
const NUMBERS: usize = 2;

/// Octets of a DNS header.
const HEADER: usize = 12;

/// Words that the program shares.
struct Words {
    mapping: Mapping,
    count: usize,
}

impl Words {
    fn of(array: &Array, words: usize) -> io::Result<Words> {
        let mapping = Mapping::array(array.descriptor.as_fd(), array.octets())?;
        Ok(Words { mapping, count: words * array.entries as usize })
    }

    fn at(&self, word: usize) -> &AtomicU64 {
        assert!(word < self.count);
        let word = self.mapping.at(8 * word, 8).cast::<AtomicU64>();
        // SAFETY: the word lies in the mapping (checked by `at`) and is aligned, as a mapping begins with a page. This process only uses
        // it as an atomic, and lives no longer than `self`; the kernel's program reads and writes words as well.
        unsafe { &*word }
    }
}

/// The packet cache, which all workers share. They touch it when a question becomes popular, and to count; never for each packet.
pub(super) struct PacketCache {
    control: Words,
    index: Words,
    answers: Words,
    hits: Words,
    processors: usize,
    seed: u64,
    /// Counts the ends of all answers. The program gives those of one generation.
    generation: AtomicU32,
    state: Mutex<State>,
}

struct State {
    /// Slots without an answer, each with the time from which it may be written.
    free: VecDeque<(Instant, usize)>,
    sequence: u32,
    /// While no answer holds: the time from which answers may be published again, and the worker that says so.
    resume: Option<(Instant, usize)>,
}

/// A published answer, which its worker withdraws.
#[derive(Debug)]
pub(super) struct Published {
    pub(super) query: PacketCacheQuery,
    pub(super) kind: PacketCacheKind,
    /// End of the answer.
    pub(super) until: Instant,
    /// Octets of a query and of its answer, both without OPT record, and both with one.
    pub(super) octets: [[u64; 2]; 2],
    /// Counts in a row that found no hits.
    pub(super) idle: u8,
    slot: usize,
    /// Word of the index.
    place: usize,
    counted: Hits,
}

/// Answers that the program has given: to IPv4 clients without and with OPT record, to IPv6 clients likewise.
type Hits = [u64; HIT_WORDS];

impl PacketCache {
    /// The arrays that the program shares. `processors`: those that the machine may have.
    ///
    /// # Errors
    ///
    /// As [`Array::new`]: EPERM without CAP_BPF, ENOMEM if the limit of locked memory is too low.
    pub(super) fn arrays(processors: u32) -> io::Result<SharedArrays> {
        Ok(SharedArrays {
            control: Array::new(CONTROL_WORDS, 1)?,
            index: Array::new(WAYS, SETS as u32)?,
            answers: Array::new(ANSWER_WORDS, PACKET_CACHE_ENTRIES as u32)?,
            hits: Array::new(HIT_WORDS, processors.saturating_mul(PACKET_CACHE_ENTRIES as u32))?,
        })
    }

    /// Maps the arrays. No answer can be published before [`PacketCache::resume`].
    ///
    /// # Errors
    ///
    /// The error of mmap(2) for one of the arrays.
    pub(super) fn new(arrays: &SharedArrays, seed: u64) -> io::Result<PacketCache> {
        let SharedArrays { control, index, answers, hits } = arrays;
        let words = [
            Words::of(control, CONTROL_WORDS)?,
            Words::of(index, WAYS)?,
            Words::of(answers, ANSWER_WORDS)?,
            Words::of(hits, HIT_WORDS)?,
        ];
        Ok(PacketCache::of_words(words, hits.entries as usize / PACKET_CACHE_ENTRIES, seed))
    }

    /// The cache in this memory: control record, index, answers, hits.
    fn of_words([control, index, answers, hits]: [Words; 4], processors: usize, seed: u64) -> PacketCache {
        let cache = PacketCache {
            control,
            index,
            answers,
            hits,
            processors,
            seed,
            generation: AtomicU32::new(1),
            state: Mutex::new(State {
                free: (0..PACKET_CACHE_ENTRIES).map(|slot| (Instant(0), slot)).collect(),
                sequence: 0,
                resume: Some((Instant(0), 0)),
            }),
        };
        cache.control.at(1).store(seed, Ordering::Relaxed);
        cache
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is right between any two of its changes.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The hash under which a query is looked up.
    pub(super) fn hash(&self, query: &PacketCacheQuery) -> u64 {
        query.hash(self.seed)
    }

    /// The generation of now.
    pub(super) fn generation(&self) -> u32 {
        self.generation.load(Ordering::Acquire)
    }

    /// Publishes an entry. None: no answer of this generation may be published now, there is no room, or the answer is too long.
    pub(super) fn publish(
        &self,
        now: Instant,
        generation: u32,
        entry: &PacketCacheEntry,
    ) -> Option<Published> {
        let words = answer_words(entry)?;
        let query = entry.query.clone();
        let hash = self.hash(&query);
        let mut state = self.state();
        if state.resume.is_some() || self.generation() != generation {
            return None;
        }
        let set = hash as usize % SETS * WAYS;
        let place = (set..set + WAYS).find(|&place| self.index.at(place).load(Ordering::Relaxed) == 0)?;
        let &(from, slot) = state.free.front().filter(|(from, _)| *from <= now)?;
        debug_assert!(from <= now);
        state.free.pop_front();
        state.sequence = state.sequence.wrapping_add(2);
        let start = slot * ANSWER_WORDS;
        write_slot(&words, state.sequence, generation, |word, value| {
            // Each store is seen after those before it.
            self.answers.at(start + word).store(value, Ordering::Release);
        });
        // The program reads the slot's number before the slot, so it finds it whole.
        self.index.at(place).store(hash & !0xffff | (slot as u64 + 1), Ordering::Release);
        let counted = self.read_hits(slot);
        let octets = [false, true].map(|has_opt| {
            [query.octets(has_opt), entry.response_octets(has_opt)].map(|octets| octets as u64)
        });
        let (kind, until) = (entry.kind, entry.until);
        Some(Published { query, kind, until, octets, idle: 0, slot, place, counted })
    }

    /// Withdraws an answer. Read its hits before ([`PacketCache::new_hits`]): they are lost then. `generation`: that in which it was
    /// published.
    pub(super) fn withdraw(&self, published: &Published, generation: u32, now: Instant) {
        let mut state = self.state();
        // After the end of all answers the place may be another one's.
        if self.generation() == generation {
            self.index.at(published.place).store(0, Ordering::Relaxed);
        }
        state.free.push_back((now + XDP_GRACE, published.slot));
    }

    /// Hits of an answer since the last call.
    pub(super) fn new_hits(&self, published: &mut Published) -> Hits {
        let all = self.read_hits(published.slot);
        let counted = std::mem::replace(&mut published.counted, all);
        std::array::from_fn(|kind| all[kind].wrapping_sub(counted[kind]))
    }

    fn read_hits(&self, slot: usize) -> Hits {
        let of = |kind| {
            let word = |processor| HIT_WORDS * (processor * PACKET_CACHE_ENTRIES + slot) + kind;
            let number = |processor| self.hits.at(word(processor)).load(Ordering::Relaxed);
            (0..self.processors).map(number).fold(0, u64::wrapping_add)
        };
        std::array::from_fn(of)
    }

    /// Ends all answers at once. `worker` may let new ones be published after a pause; none: nobody may.
    pub(super) fn end_all(&self, now: Instant, worker: Option<usize>) {
        let mut state = self.state();
        self.control.at(0).store(0, Ordering::Release);
        (0..SETS * WAYS).for_each(|place| self.index.at(place).store(0, Ordering::Relaxed));
        self.generation.fetch_add(1, Ordering::Release);
        let until = worker.map_or(Instant(u64::MAX), |_| now + XDP_GRACE);
        state.resume = match state.resume {
            // The process stops.
            Some((Instant(u64::MAX), nobody)) => Some((Instant(u64::MAX), nobody)),
            _ => Some((until, worker.unwrap_or_default())),
        };
    }

    /// True if this worker is to call [`PacketCache::resume`].
    pub(super) fn may_resume(&self, now: Instant, worker: usize) -> bool {
        self.state().resume.is_some_and(|(from, by)| from <= now && by == worker)
    }

    /// Lets answers be published, for these clients. If there are too many networks, nothing is published until the next change.
    pub(super) fn resume(&self, clients: &[Network]) {
        let mut state = self.state();
        let ranges = ranges(clients);
        if state.resume.is_none() {
            return;
        }
        if ranges.len() > XDP_ALLOWED {
            state.resume = Some((Instant(u64::MAX - 1), usize::MAX));
            return;
        }
        for (number, &(first, last)) in ranges.iter().enumerate() {
            for (word, value) in halves(first).into_iter().chain(halves(last)).enumerate() {
                self.control.at(2 + 4 * number + word).store(value, Ordering::Relaxed);
            }
        }
        state.resume = None;
        self.control.at(0).store(pair(self.generation(), ranges.len() as u32), Ordering::Release);
    }
}

/// Writes a slot word by word. Between the first store and the last its sequence number is odd, so the program gives nothing of it.
fn write_slot(
    words: &[u64; ANSWER_WORDS],
    sequence: u32,
    generation: u32,
    mut store: impl FnMut(usize, u64),
) {
    store(NUMBERS, pair(sequence.wrapping_sub(1), generation));
    for (word, &value) in words.iter().enumerate().filter(|&(word, _)| word != NUMBERS) {
        store(word, value);
    }
    store(NUMBERS, pair(sequence, generation));
}

/// The words of an answer; that with sequence number and generation is zero. None: it is too long.
fn answer_words(answer: &PacketCacheEntry) -> Option<[u64; ANSWER_WORDS]> {
    let message = answer.message();
    let start = answer.query.message().len();
    let records = message.get(start..).filter(|records| records.len() <= LONGEST_RECORDS)?;
    let mut octets = [0; 8 * ANSWER_WORDS];
    octets[..8].copy_from_slice(&answer.until.0.to_ne_bytes());
    octets[8..16].copy_from_slice(&answer.stored.0.to_ne_bytes());
    octets[24..26].copy_from_slice(&message[2..4]);
    octets[26..32].copy_from_slice(&message[6..HEADER]);
    octets[32..34].copy_from_slice(&answer.udp_size.to_be_bytes());
    octets[34..36].copy_from_slice(&(records.len() as u16).to_ne_bytes());
    let (mut ttls, mut without_ttls) = (0, records.to_vec());
    let places = octets[8 * FACTS..8 * (FACTS + TTL_WORDS)].as_chunks_mut::<2>().0;
    for at in answer.ttls() {
        let at = at.checked_sub(start)?;
        without_ttls.get_mut(at..at + 4)?.fill(0);
        *places.get_mut(ttls)? = (at as u16).to_ne_bytes();
        ttls += 1;
    }
    octets[36..38].copy_from_slice(&(ttls as u16).to_ne_bytes());
    octets[38..40].copy_from_slice(&sum(&without_ttls).to_be_bytes());
    if let Some(code) = answer.kind.extended_error() {
        octets[40..42].copy_from_slice(&code.to_be_bytes());
        octets[42..44].copy_from_slice(&1u16.to_ne_bytes());
    }
    for (word, value) in octets[8 * QUESTION..].as_chunks_mut::<8>().0.iter_mut().zip(answer.query.key()) {
        *word = value.to_ne_bytes();
    }
    let place = 8 * (QUESTION + PACKET_CACHE_KEY);
    octets[place..place + records.len()].copy_from_slice(records);
    let words = octets.as_chunks::<8>().0;
    Some(std::array::from_fn(|word| u64::from_ne_bytes(words[word])))
}

/// The ones' complement sum of 16 bits (RFC 1071).
fn sum(octets: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low));
    let sum: u32 = octets.chunks(2).map(word).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// The ranges of addresses in networks of clients, in ascending order and without overlap. A network of IPv6 clients leaves the
/// IPv4-mapped addresses out, as in [`Networks`](engine::settings::Networks).
fn ranges(networks: &[Network]) -> Vec<(u128, u128)> {
    let mapped = Network::v4(Ipv4Addr::UNSPECIFIED, 0);
    let (from, to) = (mapped.address & mapped.mask, mapped.address | !mapped.mask);
    let mut ranges = Vec::new();
    for network in networks {
        let (first, last) = (network.address & network.mask, network.address | !network.mask);
        if first < from && last > to {
            ranges.extend([(first, from - 1), (to + 1, last)]);
        } else {
            ranges.push((first, last));
        }
    }
    ranges.sort_unstable();
    ranges.dedup_by(|next, merged| {
        let touches = next.0 <= merged.1.saturating_add(1);
        if touches {
            merged.1 = merged.1.max(next.1);
        }
        touches
    });
    ranges
}

/// The two words of an address, the upper one first.
fn halves(address: u128) -> [u64; 2] {
    [(address >> 64) as u64, address as u64]
}

/// Two numbers in a word, in the order of their addresses.
fn pair(first: u32, second: u32) -> u64 {
    let octets = [first.to_ne_bytes(), second.to_ne_bytes()];
    u64::from_ne_bytes(std::array::from_fn(|at| octets[at / 4][at % 4]))
}

#[cfg(test)]
#[path = "packet_cache_tests.rs"]
mod tests;
