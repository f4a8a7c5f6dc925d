//! The part of a worker that keeps the packet cache in the kernel (the feature `xdp`): it finds the questions that are asked often, asks
//! the machine for their answers, publishes them, and tells the machine how often the program has given them.
//!
//! A worker publishes only answers to questions for its own names, and withdraws them at their end, so prefetch and stale data stay
//! with the machine: after the end the program hands the next query to the worker. When the machine's settings change or a part of its
//! cache is flushed, all answers end at once ([`PacketCache::end_all`]).

use crate::counters::{Counter, Counters};
use crate::limits::PACKET_CACHE_IDLE_SECS;
use crate::worker::packet_cache_candidates::PacketCacheCandidates;
use engine::message::plain_query::{EDE, OPT, PlainQuery};
use engine::{
    ClientTransport, Instant, Machine, PacketCacheEntry, PacketCacheEntryKind, PacketCacheHits, Span,
};
use std::collections::HashMap;
use std::sync::Arc;
use xdp::{Hits, PacketCache, Published};

/// Time between two counts of the hits.
const COUNTING: Span = Span::from_secs(1);

/// The answers that one worker has published.
pub(crate) struct KernelCacheFiller {
    cache: Arc<PacketCache>,
    worker: usize,
    hot: PacketCacheCandidates,
    answers: HashMap<u64, Answer>,
    /// The epoch of the cache in which the answers were published.
    epoch: u64,
    /// The machine's version for which they hold.
    version: u64,
    next_count: Instant,
    room: PacketCacheEntry,
}

struct Answer {
    query: PlainQuery,
    published: Published,
    kind: PacketCacheEntryKind,
    /// Counts in a row that found no hits.
    idle: u8,
}

impl KernelCacheFiller {
    pub(crate) fn new(cache: Arc<PacketCache>, worker: usize) -> KernelCacheFiller {
        let epoch = cache.epoch();
        KernelCacheFiller {
            cache,
            worker,
            hot: PacketCacheCandidates::new(),
            answers: HashMap::new(),
            epoch,
            version: 0,
            next_count: Instant(0),
            room: PacketCacheEntry::empty(),
        }
    }

    /// Begins with this machine.
    pub(crate) fn begin(&mut self, machine: &impl Machine) {
        self.version = machine.packet_cache_epoch();
    }

    /// Looks at a query that the machine has just handled. If its question is asked often, its answer is published.
    pub(crate) fn on_query(
        &mut self,
        now: Instant,
        message: &[u8],
        machine: &mut impl Machine,
        counters: &Counters,
    ) {
        let Some(query) = PlainQuery::of(message).filter(PlainQuery::has_no_options) else { return };
        let hash = self.cache.hash(&query);
        if self.hot.count(hash) {
            self.publish(now, hash, query, machine, counters);
        }
    }

    #[cold]
    fn publish(
        &mut self,
        now: Instant,
        hash: u64,
        query: PlainQuery,
        machine: &mut impl Machine,
        counters: &Counters,
    ) {
        if let Some(answer) = self.answers.get(&hash) {
            // An answer that holds is not for this client, or another question has the same hash.
            if !answer.published.has_ended(now) {
                return;
            }
            self.withdraw(hash, now, machine, counters);
        }
        if machine.packet_cache_epoch() != self.version
            || !machine.packet_cache_entry(now, query.message(), &mut self.room)
        {
            return;
        }
        if let Some(published) = self.cache.publish(now, self.epoch, &query, &self.room) {
            let kind = self.room.kind;
            self.answers.insert(hash, Answer { query, published, kind, idle: 0 });
        }
    }

    /// Withdraws an answer and counts its last hits.
    fn withdraw(&mut self, hash: u64, now: Instant, machine: &mut impl Machine, counters: &Counters) {
        if let Some(mut answer) = self.answers.remove(&hash) {
            answer.count(&self.cache, now, machine, counters);
            self.cache.withdraw(&answer.published, self.epoch, now);
        }
    }

    /// Ends all answers if the machine's settings have changed. Call it after each task for the machine.
    pub(crate) fn check_version(&mut self, now: Instant, machine: &mut impl Machine, counters: &Counters) {
        let version = machine.packet_cache_epoch();
        if version != self.version {
            self.version = version;
            self.cache.end_all(now, Some(self.worker));
            self.follow_epoch(now, machine, counters);
        }
    }

    /// Ends all answers for good, before the worker stops.
    pub(crate) fn stop(&mut self, now: Instant, machine: &mut impl Machine, counters: &Counters) {
        self.cache.end_all(now, None);
        self.follow_epoch(now, machine, counters);
    }

    /// Gives the slots back if another worker has ended all answers.
    fn follow_epoch(&mut self, now: Instant, machine: &mut impl Machine, counters: &Counters) {
        let epoch = self.cache.epoch();
        if epoch == self.epoch {
            return;
        }
        for (_, mut answer) in self.answers.drain() {
            answer.count(&self.cache, now, machine, counters);
            self.cache.withdraw(&answer.published, self.epoch, now);
        }
        self.epoch = epoch;
    }

    /// The regular work: new answers after a pause, and once a second the hits, and the answers that have ended or are not asked for.
    pub(crate) fn maintain(&mut self, now: Instant, machine: &mut impl Machine, counters: &Counters) {
        self.check_version(now, machine, counters);
        self.follow_epoch(now, machine, counters);
        if self.cache.may_resume(now, self.worker) {
            self.cache.resume(machine.packet_cache_clients());
        }
        if now < self.next_count {
            return;
        }
        self.next_count = now + COUNTING;
        self.hot.clear();
        let mut ended = Vec::new();
        for (&hash, answer) in &mut self.answers {
            let is_hit = answer.count(&self.cache, now, machine, counters);
            answer.idle = if is_hit { 0 } else { answer.idle + 1 };
            if answer.published.has_ended(now) || answer.idle >= PACKET_CACHE_IDLE_SECS {
                ended.push(hash);
            }
        }
        for hash in ended {
            self.withdraw(hash, now, machine, counters);
        }
    }
}

impl Answer {
    /// Tells machine and counters of the hits since the last count. Returns true if there were any.
    fn count(
        &mut self,
        cache: &PacketCache,
        now: Instant,
        machine: &mut impl Machine,
        counters: &Counters,
    ) -> bool {
        let [plain4, opt4, plain6, opt6]: Hits = cache.new_hits(&mut self.published);
        let hits = PacketCacheHits { ipv4: plain4 + opt4, ipv6: plain6 + opt6, with_opt: opt4 + opt6 };
        let all = hits.ipv4 + hits.ipv6;
        if all == 0 {
            return false;
        }
        let of_opt = hits.with_opt * OPT as u64;
        let of_ede = if self.kind.extended_error().is_some() { hits.with_opt * EDE as u64 } else { 0 };
        let [query, answer] = self.published.octets;
        counters.add(Counter::ClientPacketsIn, all);
        counters.add(Counter::ClientOctetsIn, all * query + of_opt);
        counters.add(Counter::ClientPacketsOut, all);
        counters.add(Counter::ClientOctetsOut, all * answer + of_opt + of_ede);
        machine.count_packet_cache_hits(now, ClientTransport::Udp, self.query.message(), self.kind, hits);
        true
    }
}
