//! A worker's part of the packet cache in the kernel (the rules are in [`engine::packet_cache`]): it finds the popular questions among the
//! queries that come as frames, asks the machine for their answers, publishes them, and notes how often the program has given them.
//!
//! A worker publishes only answers to questions for its own names, and withdraws them at their end: after that the program hands the next
//! query to the worker. When the epoch of one machine ends, all answers of all workers end at once ([`PacketCache::end_all`]).

use crate::af_xdp::packet_cache::{PacketCache, Published};
use engine::limits::{PACKET_CACHE_IDLE_SECS, PACKET_CACHE_POPULAR};
use engine::packet_cache::{
    PACKET_CACHE_SETS, PacketCacheEntry, PacketCacheEpoch, PacketCacheHits, PacketCacheQuery,
    PacketCacheTask, Popularity,
};
use engine::{ClientTransport, Instant, Machine, Span};
use std::collections::HashMap;
use std::sync::Arc;

/// Time between two counts of the hits.
const COUNTING: Span = Span::from_secs(1);

/// The answers that one worker has published.
pub struct PacketCacheWriter {
    cache: Arc<PacketCache>,
    worker: usize,
    popularity: Popularity<PACKET_CACHE_SETS>,
    answers: HashMap<u64, Published>,
    /// The generation of the cache in which the answers were published.
    generation: u32,
    /// The machine's epoch in which they hold.
    epoch: Arc<PacketCacheEpoch>,
    report: Report,
    next_count: Instant,
}

/// Answers that the program has given.
#[derive(Default)]
struct Report {
    /// For the machine.
    hits: Vec<PacketCacheHits>,
    traffic: Traffic,
}

/// Datagrams that the program has answered, and their octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Queries, and as many answers.
    pub queries: u64,
    /// Octets of the queries.
    pub octets_in: u64,
    /// Octets of the answers.
    pub octets_out: u64,
}

impl PacketCacheWriter {
    /// The part of a worker with this number.
    pub(super) fn new(cache: Arc<PacketCache>, worker: usize) -> PacketCacheWriter {
        let generation = cache.generation();
        PacketCacheWriter {
            cache,
            worker,
            popularity: Popularity::new(PACKET_CACHE_POPULAR),
            answers: HashMap::new(),
            generation,
            epoch: Arc::default(),
            report: Report::default(),
            next_count: Instant(0),
        }
    }

    /// Looks at a query that the machine has just handled. If its question is popular, its answer is published.
    pub fn on_query(&mut self, now: Instant, message: &[u8], machine: &mut impl Machine) {
        let Some(query) = PacketCacheQuery::of(message).filter(PacketCacheQuery::has_no_options) else {
            return;
        };
        let hash = self.cache.hash(&query);
        if self.popularity.count(hash) {
            self.publish(now, hash, query, machine);
        }
    }

    #[cold]
    fn publish(&mut self, now: Instant, hash: u64, query: PacketCacheQuery, machine: &mut impl Machine) {
        match self.answers.get(&hash) {
            // An answer that holds is not for this client, or another question has the same hash.
            Some(answer) if now < answer.until => return,
            Some(_) => self.withdraw(hash, now),
            None => {}
        }
        for entry in self.ask(now, vec![query], machine) {
            if let Some(published) = self.cache.publish(now, self.generation, &entry) {
                self.answers.insert(hash, published);
            }
        }
    }

    /// Tells the machine of the hits, and asks it for entries. If its epoch has ended, all answers end.
    fn ask(
        &mut self,
        now: Instant,
        wanted: Vec<PacketCacheQuery>,
        machine: &mut impl Machine,
    ) -> Vec<PacketCacheEntry> {
        let hits = std::mem::take(&mut self.report.hits);
        let reply = machine.serve_packet_cache(now, PacketCacheTask { hits, wanted });
        if self.epoch.has_ended() {
            self.cache.end_all(now, Some(self.worker));
            self.follow_generation(now);
        }
        self.epoch = reply.epoch;
        reply.entries
    }

    /// Withdraws an answer and counts its last hits.
    fn withdraw(&mut self, hash: u64, now: Instant) {
        if let Some(mut answer) = self.answers.remove(&hash) {
            self.report.count(&self.cache, &mut answer);
            self.cache.withdraw(&answer, self.generation, now);
        }
    }

    /// Ends all answers if the machine's epoch has ended. Call it after each task for the machine.
    pub fn check_epoch(&mut self, now: Instant, machine: &mut impl Machine) {
        if self.epoch.has_ended() {
            self.ask(now, Vec::new(), machine);
        }
    }

    /// Ends all answers for good, before the worker stops. Returns what the program has answered since the last maintenance.
    pub fn stop(&mut self, now: Instant, machine: &mut impl Machine) -> Traffic {
        self.cache.end_all(now, None);
        self.follow_generation(now);
        self.ask(now, Vec::new(), machine);
        std::mem::take(&mut self.report.traffic)
    }

    /// Gives the slots back if another worker has ended all answers.
    fn follow_generation(&mut self, now: Instant) {
        let generation = self.cache.generation();
        if generation == self.generation {
            return;
        }
        for (_, mut answer) in self.answers.drain() {
            self.report.count(&self.cache, &mut answer);
            self.cache.withdraw(&answer, self.generation, now);
        }
        self.generation = generation;
    }

    /// The regular work: new answers after a pause, and once a second the hits, and the answers that have ended or are not asked for.
    /// Returns what the program has answered since the last maintenance.
    pub fn maintain(&mut self, now: Instant, machine: &mut impl Machine) -> Traffic {
        if now >= self.next_count {
            self.next_count = now + COUNTING;
            self.popularity.clear();
            self.withdraw_ended(now);
        }
        self.ask(now, Vec::new(), machine);
        self.follow_generation(now);
        if self.cache.may_resume(now, self.worker) {
            self.cache.resume(&self.epoch.clients().0);
        }
        std::mem::take(&mut self.report.traffic)
    }

    /// Counts the hits of all answers, and withdraws those that have ended or are not asked for.
    fn withdraw_ended(&mut self, now: Instant) {
        let mut ended = Vec::new();
        for (&hash, answer) in &mut self.answers {
            let is_hit = self.report.count(&self.cache, answer);
            answer.idle = if is_hit { 0 } else { answer.idle + 1 };
            if answer.until <= now || answer.idle >= PACKET_CACHE_IDLE_SECS {
                ended.push(hash);
            }
        }
        ended.into_iter().for_each(|hash| self.withdraw(hash, now));
    }
}

impl Report {
    /// Adds the hits of an answer since the last count. Returns true if there were any.
    fn count(&mut self, cache: &PacketCache, answer: &mut Published) -> bool {
        let [plain4, opt4, plain6, opt6] = cache.new_hits(answer);
        let (ipv4, ipv6, with_opt) = (plain4 + opt4, plain6 + opt6, opt4 + opt6);
        let [[query, response], [query_with_opt, response_with_opt]] = answer.octets;
        let plain = plain4 + plain6;
        self.traffic.queries += plain + with_opt;
        self.traffic.octets_in += plain * query + with_opt * query_with_opt;
        self.traffic.octets_out += plain * response + with_opt * response_with_opt;
        let is_hit = plain + with_opt > 0;
        if is_hit {
            let (query, kind, transport) = (answer.query.clone(), answer.kind, ClientTransport::Udp);
            self.hits.push(PacketCacheHits { query, kind, transport, ipv4, ipv6, with_opt });
        }
        is_hit
    }
}
