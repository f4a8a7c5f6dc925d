//! Packet cache of a stream thread: answers to questions that are asked often, which the thread gives itself. For these no query crosses
//! to a worker and no answer back, so neither thread wakes the other, which is a large part of the cost of a cached answer.
//!
//! The cache holds copies of answers that every client gets ([`engine::PacketCacheEntry`]), which the worker that owns the name makes
//! ([`PacketCacheTask`]). The worker says until when an answer holds: what comes after that, as a prefetch or stale data, is the worker's
//! own. An answer is given only while the worker's version is the one under which it was made, so a reload, a flush or an observer ends
//! all of them at once. What depends on the client never comes here. Once a second the workers count the answers that were given.

use crate::QuerySink;
use crate::limits;
use datapath::{CountedHits, PacketCacheCandidates, PacketCacheReplies, PacketCacheReply, PacketCacheTask};
use engine::answer::COMMON_RESPONSE;
use engine::message::plain_query::PlainQuery;
use engine::settings::Networks;
use engine::{Client, ClientTransport, Instant, PacketCacheEntry, PacketCacheHits};
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;

/// The transports of streams, by which answers are counted.
const TRANSPORTS: [ClientTransport; 4] =
    [ClientTransport::Tcp, ClientTransport::Tls, ClientTransport::Https, ClientTransport::Quic];

/// The packet cache of one stream thread.
pub(crate) struct PacketCache {
    /// The secret of the hash by which answers are looked up.
    seed: u64,
    hot: PacketCacheCandidates,
    answers: HashMap<u64, Answer>,
    /// By the numbers of the workers.
    workers: Vec<Worker>,
    replies: Arc<PacketCacheReplies>,
    /// The response that was written last.
    frame: Box<[u8; COMMON_RESPONSE]>,
}

/// Knowledge of the cache about a worker, and the answers that it wants from it.
struct Worker {
    /// The version of the worker for which `clients` holds.
    version: u64,
    clients: Networks,
    /// Queries whose answers are to be asked for.
    wanted: Vec<PlainQuery>,
    /// True while the worker has a task to which it will reply.
    is_asked: bool,
}

struct Answer {
    query: PlainQuery,
    worker: usize,
    version: u64,
    answer: Box<PacketCacheEntry>,
    hits: [PacketCacheHits; TRANSPORTS.len()],
    /// Seconds without hits.
    idle: u8,
}

impl PacketCache {
    pub(crate) fn new() -> PacketCache {
        PacketCache {
            seed: RandomState::new().hash_one(0),
            hot: PacketCacheCandidates::new(),
            answers: HashMap::new(),
            workers: Vec::new(),
            replies: Arc::default(),
            frame: Box::new([0; COMMON_RESPONSE]),
        }
    }

    /// The response to a query, if the cache has its answer. If it has not, and the question is asked often, its worker is asked for it.
    pub(crate) fn answer(
        &mut self,
        queries: &impl QuerySink,
        client: &Client,
        message: &[u8],
    ) -> Option<&[u8]> {
        let query = PlainQuery::of(message)?;
        let hash = query.hash(self.seed);
        let now = datapath::now();
        if let Some(answer) = self.answers.get_mut(&hash).filter(|answer| answer.is_of(&query)) {
            let version = queries.packet_cache_epoch(answer.worker);
            if answer.holds(version, now) && self.workers[answer.worker].serves(version, client) {
                answer.count(client, query.options().is_some());
                let length = answer.answer.write_response(now, client, message, &query, &mut self.frame);
                return Some(&self.frame[..length]);
            }
        }
        if self.hot.count(hash) {
            self.want(queries, query);
        }
        self.take_replies(queries);
        None
    }

    /// Asks the owner of a name for an answer.
    #[cold]
    fn want(&mut self, queries: &impl QuerySink, query: PlainQuery) {
        let home_worker = queries.home_worker(query.message());
        if self.workers.len() <= home_worker {
            self.workers.resize_with(home_worker + 1, Worker::new);
        }
        let worker = &mut self.workers[home_worker];
        if worker.wanted.len() < limits::PACKET_CACHE_WANTED && !worker.wanted.contains(&query) {
            worker.wanted.push(query);
        }
        self.ask(queries, home_worker);
    }

    /// Asks a worker for the answers that are wanted of it, unless it has not replied yet.
    fn ask(&mut self, queries: &impl QuerySink, home_worker: usize) {
        let worker = &mut self.workers[home_worker];
        if worker.is_asked || worker.wanted.is_empty() {
            return;
        }
        let task = PacketCacheTask {
            worker: home_worker,
            hits: Vec::new(),
            wanted: std::mem::take(&mut worker.wanted),
            known_version: worker.version,
            replies: self.replies.clone(),
        };
        // A worker without room for tasks is asked for the next question.
        worker.is_asked = queries.submit(task);
    }

    /// Takes the answers that workers have made.
    fn take_replies(&mut self, queries: &impl QuerySink) {
        for reply in self.replies.take() {
            let PacketCacheReply { worker: home_worker, version, clients, answers } = reply;
            let worker = &mut self.workers[home_worker];
            worker.is_asked = false;
            worker.version = version;
            if let Some(clients) = clients {
                worker.clients = clients;
            }
            for (query, answer) in answers {
                let hash = query.hash(self.seed);
                // The hits of an earlier answer must be counted first.
                let has_room = self.answers.len() < limits::PACKET_CACHE_ANSWERS;
                if has_room && !self.answers.get(&hash).is_some_and(Answer::has_hits) {
                    let hits = Default::default();
                    self.answers
                        .insert(hash, Answer { query, worker: home_worker, version, answer, hits, idle: 0 });
                }
            }
            self.ask(queries, home_worker);
        }
    }

    /// The regular work, once a second: the workers count the answers that were given, and answers that have ended or are not asked for
    /// leave.
    pub(crate) fn maintain(&mut self, queries: &impl QuerySink) {
        self.hot.clear();
        self.take_replies(queries);
        self.answers.values_mut().for_each(|answer| answer.idle = answer.idle.saturating_add(1));
        self.report(queries);
        let now = datapath::now();
        self.answers.retain(|_, answer| {
            let is_kept = answer.idle < limits::PACKET_CACHE_IDLE_SECS
                && answer.holds(queries.packet_cache_epoch(answer.worker), now);
            is_kept || answer.has_hits()
        });
    }

    /// Has the workers count the answers that were given since the last report. What a worker without room does not take is counted the next time.
    pub(crate) fn report(&mut self, queries: &impl QuerySink) {
        for (number, worker) in self.workers.iter().enumerate() {
            let mut hits = Vec::new();
            for answer in self.answers.values().filter(|answer| answer.worker == number) {
                hits.extend(answer.counted());
            }
            let task = PacketCacheTask {
                worker: number,
                wanted: Vec::new(),
                known_version: worker.version,
                replies: self.replies.clone(),
                hits,
            };
            let is_told = task.hits.is_empty() || queries.submit(task);
            let is_reported = |answer: &&mut Answer| is_told && answer.worker == number && answer.has_hits();
            for answer in self.answers.values_mut().filter(is_reported) {
                answer.idle = 0;
                answer.hits = Default::default();
            }
        }
    }
}

impl Worker {
    fn new() -> Worker {
        Worker {
            version: datapath::NO_PACKET_CACHE,
            clients: Networks::default(),
            wanted: Vec::new(),
            is_asked: false,
        }
    }

    /// True if the client may be served under this version.
    fn serves(&self, version: u64, client: &Client) -> bool {
        self.version == version && self.clients.contains(client.address)
    }
}

impl Answer {
    fn is_of(&self, query: &PlainQuery) -> bool {
        self.query.message() == query.message()
    }

    /// True if the answer may be given under this version of its worker.
    fn holds(&self, version: u64, now: Instant) -> bool {
        self.version == version && self.answer.stored <= now && now < self.answer.until
    }

    fn count(&mut self, client: &Client, has_opt: bool) {
        let Some(transport) = TRANSPORTS.iter().position(|transport| *transport == client.transport) else {
            return;
        };
        let hits = &mut self.hits[transport];
        *(if client.is_ipv4() { &mut hits.ipv4 } else { &mut hits.ipv6 }) += 1;
        hits.with_opt += u64::from(has_opt);
    }

    fn has_hits(&self) -> bool {
        self.hits.iter().any(|hits| hits.ipv4 + hits.ipv6 > 0)
    }

    /// The hits over each transport that has some.
    fn counted(&self) -> impl Iterator<Item = CountedHits> + '_ {
        let of_transport = |(transport, hits): (ClientTransport, PacketCacheHits)| CountedHits {
            query: self.query.clone(),
            transport,
            kind: self.answer.kind,
            hits,
        };
        let all = TRANSPORTS.into_iter().zip(self.hits).filter(|(_, hits)| hits.ipv4 + hits.ipv6 > 0);
        all.map(of_transport)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::settings::Network;
    use engine::{Link, Machine, Outbox, PacketCacheEntryKind, Unreachable};
    use std::net::Ipv6Addr;
    use std::sync::Mutex;

    /// A machine that has an answer to each query, and counts the hits.
    #[derive(Default)]
    struct FakeMachine {
        version: u64,
        clients: Vec<Network>,
        hits: Vec<(ClientTransport, PacketCacheHits)>,
    }

    impl Machine for FakeMachine {
        fn query(&mut self, _: Instant, _: &Client, _: &[u8], _: &mut impl Outbox) {}
        fn reply(&mut self, _: Instant, _: Link, _: &mut [u8], _: &mut impl Outbox) {}
        fn on_link_failure(&mut self, _: Instant, _: Link, _: Unreachable, _: &mut impl Outbox) {}
        fn expire(&mut self, _: Instant, _: &mut impl Outbox) -> Option<Instant> {
            None
        }
        fn is_idle(&self) -> bool {
            true
        }
        fn packet_cache_entry(&self, now: Instant, query: &[u8], answer: &mut PacketCacheEntry) -> bool {
            *answer = PacketCacheEntry::of_message(query);
            answer.stored = now;
            answer.until = Instant(now.0 + 60_000_000_000);
            true
        }
        fn packet_cache_epoch(&self) -> u64 {
            self.version
        }
        fn packet_cache_clients(&self) -> &[Network] {
            &self.clients
        }
        fn count_packet_cache_hits(
            &mut self,
            _: Instant,
            transport: ClientTransport,
            _: &[u8],
            _: PacketCacheEntryKind,
            hits: PacketCacheHits,
        ) {
            self.hits.push((transport, hits));
        }
    }

    /// The worker of all names in these tests: those of three and of five octets.
    const OWNER: usize = 1;

    /// Two workers that carry their tasks out when a test says so.
    #[derive(Default)]
    struct Workers(Mutex<State>);

    #[derive(Default)]
    struct State {
        machines: [FakeMachine; 2],
        tasks: Vec<PacketCacheTask>,
        refuses: bool,
    }

    impl QuerySink for Workers {
        fn post(&self, _: &Client, _: &[u8]) -> bool {
            unreachable!("the cache posts no queries")
        }
        fn home_worker(&self, message: &[u8]) -> usize {
            message.len() % 2
        }
        fn packet_cache_epoch(&self, worker: usize) -> u64 {
            self.0.lock().unwrap().machines[worker].version
        }
        fn submit(&self, task: PacketCacheTask) -> bool {
            let mut state = self.0.lock().unwrap();
            if !state.refuses {
                state.tasks.push(task);
            }
            !state.refuses
        }
    }

    impl Workers {
        fn new() -> Workers {
            let workers = Workers::default();
            for machine in &mut workers.0.lock().unwrap().machines {
                machine.clients = vec![Network::new("2001:db8::".parse().unwrap(), 32)];
            }
            workers
        }

        /// Carries out the tasks that wait. Returns their number.
        fn work(&self) -> usize {
            let mut state = self.0.lock().unwrap();
            let tasks = std::mem::take(&mut state.tasks);
            let count = tasks.len();
            for task in tasks {
                let worker = task.worker;
                task.run(&mut state.machines[worker], datapath::now());
            }
            count
        }

        fn change(&self, change: impl FnOnce(&mut State)) {
            change(&mut self.0.lock().unwrap());
        }
    }

    fn client(address: &str) -> Client {
        let address: Ipv6Addr = address.parse().unwrap();
        Client {
            address,
            transport: ClientTransport::Tls,
            ..Client::udp("[2001:db8::1]:4000".parse().unwrap())
        }
    }

    fn query(label: &str) -> Vec<u8> {
        kit::query(0x0709, label, 28)
    }

    /// A cache that has the answer for this label.
    fn warmed(workers: &Workers, label: &str) -> PacketCache {
        let mut cache = PacketCache::new();
        warm(&mut cache, workers, label);
        cache
    }

    fn warm(cache: &mut PacketCache, workers: &Workers, label: &str) {
        let asked =
            (0..10).take_while(|_| cache.answer(workers, &client("2001:db8::9"), &query(label)).is_none());
        assert_eq!(asked.count(), 10, "nothing is cached before a worker has replied");
        assert_eq!(workers.work(), 1, "one task is enough");
        assert!(
            cache.answer(workers, &client("2001:db8::9"), &query(label)).is_none(),
            "this one takes the reply"
        );
        assert!(cache.answer(workers, &client("2001:db8::9"), &query(label)).is_some());
    }

    #[test]
    fn a_question_that_is_asked_often_is_answered_with_id_and_letter_case_of_the_query() {
        let workers = Workers::new();
        let mut cache = warmed(&workers, "www");
        let odd = query("wWW");
        let response = cache.answer(&workers, &client("2001:db8::9"), &odd).unwrap();
        assert_eq!(response, odd, "the machine of this test answers with the query");
        assert!(cache.answer(&workers, &client("2001:db8::9"), &query("other")).is_none());
    }

    #[test]
    fn another_version_or_a_client_who_is_not_served_gets_no_answer() {
        let workers = Workers::new();
        let mut cache = warmed(&workers, "www");
        assert!(cache.answer(&workers, &client("2001:db9::9"), &query("www")).is_none());
        workers.change(|state| state.machines[1 - OWNER].version = 3);
        assert!(
            cache.answer(&workers, &client("2001:db8::9"), &query("www")).is_some(),
            "another worker's version"
        );
        workers.change(|state| state.machines[OWNER].version = datapath::NO_PACKET_CACHE);
        assert!(cache.answer(&workers, &client("2001:db8::9"), &query("www")).is_none());
        workers.change(|state| {
            state.machines[OWNER].version = 4;
            state.machines[OWNER].clients = vec![Network::new("2001:db9::".parse().unwrap(), 32)];
        });
        cache.maintain(&workers);
        workers.work();
        (0..10)
            .for_each(|_| assert!(cache.answer(&workers, &client("2001:db8::9"), &query("www")).is_none()));
        workers.work();
        assert!(
            cache.answer(&workers, &client("2001:db9::9"), &query("www")).is_none(),
            "this one takes the reply"
        );
        assert!(cache.answer(&workers, &client("2001:db9::9"), &query("www")).is_some());
        assert!(cache.answer(&workers, &client("2001:db8::9"), &query("www")).is_none());
    }

    #[test]
    fn hits_are_counted_once_also_when_a_worker_has_no_room_at_first() {
        let workers = Workers::new();
        let mut cache = warmed(&workers, "www");
        let over_tcp = Client { transport: ClientTransport::Tcp, ..client("::ffff:192.0.2.1") };
        workers.change(|state| {
            state.machines[OWNER].clients.push(Network::v4("192.0.2.0".parse().unwrap(), 24))
        });
        workers.change(|state| state.machines[OWNER].version = 1);
        cache.maintain(&workers);
        workers.work();
        warm(&mut cache, &workers, "www");
        assert!(cache.answer(&workers, &over_tcp, &query("www")).is_some());
        workers.change(|state| {
            state.machines[OWNER].hits.clear();
            state.refuses = true;
        });
        cache.maintain(&workers);
        workers.change(|state| state.refuses = false);
        for _ in 0..3 {
            cache.maintain(&workers);
            workers.work();
        }
        let hits = |ipv4, ipv6| PacketCacheHits { ipv4, ipv6, with_opt: 0 };
        let expected = [(ClientTransport::Tcp, hits(1, 0)), (ClientTransport::Tls, hits(0, 1))];
        workers.change(|state| assert_eq!(state.machines[OWNER].hits, expected));
    }

    #[test]
    fn answers_that_nobody_asks_for_leave_and_the_number_of_answers_is_bounded() {
        let workers = Workers::new();
        let mut cache = warmed(&workers, "www");
        for _ in 0..=limits::PACKET_CACHE_IDLE_SECS {
            assert_eq!(cache.answers.len(), 1);
            cache.maintain(&workers);
            workers.work();
        }
        assert_eq!(cache.answers.len(), 0);
        for number in 0..limits::PACKET_CACHE_ANSWERS {
            let label = format!("n{number}");
            (0..4).for_each(|_| {
                assert!(cache.answer(&workers, &client("2001:db8::9"), &query(&label)).is_none())
            });
            workers.work();
            cache.take_replies(&workers);
            // Counters of questions collide now and then, and are cleared once a second.
            cache.hot.clear();
        }
        assert_eq!(cache.answers.len(), limits::PACKET_CACHE_ANSWERS);
        (0..10)
            .for_each(|_| assert!(cache.answer(&workers, &client("2001:db8::9"), &query("more")).is_none()));
        workers.work();
        cache.take_replies(&workers);
        assert_eq!(cache.answers.len(), limits::PACKET_CACHE_ANSWERS);
    }

    #[test]
    fn many_questions_that_become_hot_together_wait_for_one_task_after_the_other() {
        let workers = Workers::new();
        let mut cache = PacketCache::new();
        for number in 10..99 {
            (0..4).for_each(|_| {
                cache.answer(&workers, &client("2001:db8::9"), &query(&format!("n{number}")));
            });
        }
        assert_eq!(workers.work(), 1, "the first one alone");
        cache.take_replies(&workers);
        assert_eq!(workers.work(), 1, "those that were noted meanwhile");
        cache.take_replies(&workers);
        assert_eq!(workers.work(), 0);
        assert_eq!(cache.answers.len(), 1 + limits::PACKET_CACHE_WANTED);
    }
}
