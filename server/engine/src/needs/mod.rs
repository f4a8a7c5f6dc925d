//! What still needs DNS64: the names and the client networks that get synthesized answers, counted in tables of fixed size.
//!
//! Each worker has tables of its own, and [`NeedsReport::of_all`] joins what they hold. Names are attacker-controlled: they are found by
//! keyed hashes, and `space_saving.rs` has the bound that a flood of names cannot break. Nothing is written to a disk.
//!
//! Memory: 8,192 places for names in all workers together, 2.9 MiB, and 0.25 MiB for clients; for each worker 0.1 MiB more, for networks
//! and for queries that wait for their other half.

mod clients;
mod networks;

pub use networks::EXACT_NETWORKS;

use crate::base::name_hash::HashKey;
use crate::base::space_saving::SpaceSaving;
use crate::base::time::Instant;
use crate::interface::{Client, ClientNetwork};
use crate::limits::{NEEDS_NAMES, NEEDS_NETWORKS};
use clients::{Half, Pairs, PrefixSeekers, pair_hash};
use core::cmp::Reverse;
use core::fmt;
use networks::NetworkSet;
use std::collections::HashMap;
use std::sync::Arc;

/// The part of the counts that all workers of a process share.
pub struct SharedNeeds {
    key: HashKey,
    workers: usize,
    seekers: PrefixSeekers,
}

impl SharedNeeds {
    /// The part for so many workers. `key`: random numbers, with which networks and clients are hashed.
    pub fn new(key: [u64; 2], workers: usize) -> SharedNeeds {
        SharedNeeds {
            key: HashKey([key[0], key[1] | 1]),
            workers: workers.max(1),
            seekers: PrefixSeekers::new(),
        }
    }
}

impl fmt::Debug for SharedNeeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedNeeds").field("workers", &self.workers).finish_non_exhaustive()
    }
}

/// Octets that the counts take in a process with so many workers.
pub fn octets(workers: usize) -> usize {
    let worker = SpaceSaving::<CountedName>::octets(names_of_worker(workers))
        + SpaceSaving::<CountedNetwork>::octets(NEEDS_NETWORKS)
        + clients::OCTETS.1;
    workers * worker + clients::OCTETS.0
}

/// Names of one worker: each name has its worker, so all together have the whole room.
fn names_of_worker(workers: usize) -> usize {
    NEEDS_NAMES.div_ceil(workers.max(1))
}

/// The counts of one worker.
pub(crate) struct Needs {
    shared: Arc<SharedNeeds>,
    names: SpaceSaving<CountedName>,
    networks: SpaceSaving<CountedNetwork>,
    pairs: Pairs,
    counts: Counts,
}

/// Synthesized answers, and what they tell of all names and networks.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    answers: u64,
    first: Option<Instant>,
}

struct CountedName {
    octets: [u8; 255],
    length: u8,
    networks: NetworkSet,
}

impl CountedName {
    /// A name in wire form, in any letter case.
    fn new(name: &[u8]) -> CountedName {
        let mut octets = [0; 255];
        let length = name.len().min(octets.len());
        octets[..length].copy_from_slice(&name[..length]);
        octets.make_ascii_lowercase();
        CountedName { octets, length: length as u8, networks: NetworkSet::default() }
    }

    fn name(&self) -> &[u8] {
        &self.octets[..usize::from(self.length)]
    }
}

struct CountedNetwork {
    network: ClientNetwork,
    with_a: u64,
    sought_prefix: u64,
}

impl Needs {
    pub(crate) fn new(shared: Arc<SharedNeeds>) -> Needs {
        Needs {
            names: SpaceSaving::new(names_of_worker(shared.workers)),
            networks: SpaceSaving::new(NEEDS_NETWORKS),
            pairs: Pairs::new(),
            counts: Counts::default(),
            shared,
        }
    }

    /// Counts a synthesized answer. `name`: that of the question, in wire form; `hash`: its keyed hash.
    pub(crate) fn count(&mut self, client: &Client, name: &[u8], hash: u64, now: Instant) {
        self.count_answers(1, now);
        let (key, network) = (self.shared.key, client.network());
        let network_hash = key.hash_number(network.bits());
        self.names.count(hash, 1, || CountedName::new(name)).networks.insert(network_hash);
        let new = || CountedNetwork { network, with_a: 0, sought_prefix: 0 };
        let counted = self.networks.count(network_hash, 1, new);
        if self.shared.seekers.contains(key.hash_number(client.address.into())) {
            counted.sought_prefix += 1;
        } else if self.pairs.note(Half::Synthesized, pair_hash(key, client.address, hash), now) {
            counted.with_a += 1;
        }
    }

    /// Counts synthesized answers of a packet cache, whose clients are not known.
    pub(crate) fn count_unseen(&mut self, name: &[u8], hash: u64, answers: u64, now: Instant) {
        self.count_answers(answers, now);
        self.names.count(hash, answers, || CountedName::new(name));
    }

    fn count_answers(&mut self, answers: u64, now: Instant) {
        self.counts.answers += answers;
        self.counts.first.get_or_insert(now);
    }

    /// Notes a query for A records. `hash`: keyed hash of its name.
    pub(crate) fn note_a(&mut self, client: &Client, hash: u64, now: Instant) {
        let key = self.shared.key;
        if self.pairs.note(Half::A, pair_hash(key, client.address, hash), now)
            && let Some(counted) = self.networks.get_mut(key.hash_number(client.network().bits()))
        {
            counted.with_a += 1;
        }
    }

    /// Notes a query for the addresses of `ipv4only.arpa`.
    pub(crate) fn note_prefix_seeker(&self, client: &Client) {
        self.shared.seekers.insert(self.shared.key.hash_number(client.address.into()));
    }

    /// The counts, with the `most` names that were counted most.
    pub(crate) fn report(&self, most: usize) -> NeedsReport {
        let mut names: Vec<(u64, &CountedName)> = self.names.iter().collect();
        if most < names.len() {
            names.select_nth_unstable_by_key(most, |(count, _)| Reverse(*count));
            names.truncate(most);
        }
        let names = names.into_iter().map(|(answers, counted)| {
            let needed = NeedingName { answers, networks: counted.networks.clone() };
            (counted.name().into(), needed)
        });
        let networks = self.networks.iter().map(|(answers, counted)| {
            let CountedNetwork { network, with_a, sought_prefix } = *counted;
            (network, NeedingNetwork { answers, with_a, sought_prefix })
        });
        NeedsReport {
            names: names.collect(),
            networks: networks.collect(),
            answers: self.counts.answers,
            first: self.counts.first,
            missed_of_name: self.names.missed(),
            missed_of_network: self.networks.missed(),
        }
    }

    /// Forgets all counts. Clients that have asked for `ipv4only.arpa` stay known.
    pub(crate) fn reset(&mut self) {
        self.names.clear();
        self.networks.clear();
        self.pairs.clear();
        self.counts = Counts::default();
    }
}

/// A name that gets synthesized answers.
#[derive(Clone, Debug, Default)]
pub struct NeedingName {
    /// Answers, at least.
    pub answers: u64,
    networks: NetworkSet,
}

impl NeedingName {
    /// Number of client networks that asked for it: exact up to [`EXACT_NETWORKS`], an estimate beyond.
    pub fn networks(&self) -> u64 {
        self.networks.len()
    }
}

/// A client network that gets synthesized answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NeedingNetwork {
    /// Answers, at least.
    pub answers: u64,
    /// Those of them whose client has asked for the A records of the name, too.
    pub with_a: u64,
    /// Those of the others whose client had asked for `ipv4only.arpa`.
    pub sought_prefix: u64,
}

impl NeedingNetwork {
    /// Answers to clients that showed no sign of another way to IPv4.
    pub fn needed(&self) -> u64 {
        self.answers.saturating_sub(self.with_a + self.sought_prefix)
    }
}

/// What still needs DNS64.
#[derive(Clone, Debug, Default)]
pub struct NeedsReport {
    /// Names in wire form and lower case.
    pub names: HashMap<Box<[u8]>, NeedingName>,
    /// Client networks.
    pub networks: HashMap<ClientNetwork, NeedingNetwork>,
    /// All synthesized answers.
    pub answers: u64,
    /// Time of the first of them.
    pub first: Option<Instant>,
    /// Most answers that a name may have had beyond those that were counted for it.
    pub missed_of_name: u64,
    /// Most answers that a network may have had beyond those that were counted for it.
    pub missed_of_network: u64,
}

impl NeedsReport {
    /// The counts of several workers together.
    pub fn of_all(reports: impl IntoIterator<Item = NeedsReport>) -> NeedsReport {
        reports.into_iter().fold(NeedsReport::default(), |mut all, report| {
            for (name, counted) in report.names {
                let NeedingName { answers, networks } = all.names.entry(name).or_default();
                *answers += counted.answers;
                networks.include(&counted.networks);
            }
            for (network, counted) in report.networks {
                let sum = all.networks.entry(network).or_default();
                sum.answers += counted.answers;
                sum.with_a += counted.with_a;
                sum.sought_prefix += counted.sought_prefix;
            }
            all.answers += report.answers;
            all.first = [all.first, report.first].into_iter().flatten().min();
            all.missed_of_name += report.missed_of_name;
            all.missed_of_network += report.missed_of_network;
            all
        })
    }
}

#[cfg(test)]
mod tests;
