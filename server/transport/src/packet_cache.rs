//! Packet cache of a stream thread (the rules are in [`engine::packet_cache`]): for answers that it has, no query crosses to a worker and no
//! answer back, so neither thread wakes the other, which is a large part of the cost of a cached answer.

use crate::QuerySink;
use crate::limits::{
    PACKET_CACHE_ENTRIES, PACKET_CACHE_IDLE_SECS, PACKET_CACHE_POPULAR, PACKET_CACHE_WANTED,
};
use engine::packet_cache::{
    PACKET_CACHE_RESPONSE, PACKET_CACHE_SETS, PacketCacheEntry, PacketCacheHits, PacketCacheQuery,
    PacketCacheReply, PacketCacheTask, Popularity,
};
use engine::{Client, Instant, Machine};
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The packet cache of one stream thread.
pub(crate) struct PacketCache {
    /// The secret of the hash by which entries are looked up.
    seed: u64,
    popularity: Popularity<PACKET_CACHE_SETS>,
    answers: HashMap<u64, Box<Answer>>,
    /// By the numbers of the workers.
    workers: Vec<Worker>,
    replies: (Sender<Reply>, Receiver<Reply>),
    /// The response that was written last.
    frame: Box<[u8; PACKET_CACHE_RESPONSE]>,
}

/// A worker's number, and its reply.
type Reply = (usize, PacketCacheReply);

/// A task for the machine of a worker.
#[derive(Debug)]
pub struct PacketCacheRequest {
    /// The worker's number.
    pub worker: usize,
    task: PacketCacheTask,
    replies: Sender<Reply>,
}

/// Work that the cache wants from a worker.
#[derive(Default)]
struct Worker {
    /// Queries whose answers are to be asked for.
    wanted: Vec<PacketCacheQuery>,
    /// True while the worker has a task to which it will reply.
    is_asked: bool,
}

struct Answer {
    entry: PacketCacheEntry,
    worker: usize,
    /// Hits that the worker has not counted, at most one for each transport.
    hits: Vec<PacketCacheHits>,
    /// Seconds without hits.
    idle: u8,
}

impl PacketCacheRequest {
    /// Has the machine work, and replies if something is wanted.
    pub fn run(self, machine: &mut impl Machine, now: Instant) {
        let is_answered = !self.task.wanted.is_empty();
        let reply = machine.serve_packet_cache(now, self.task);
        if is_answered {
            // The thread may have ended.
            let _ = self.replies.send((self.worker, reply));
        }
    }
}

impl PacketCache {
    pub(crate) fn new() -> PacketCache {
        PacketCache {
            seed: RandomState::new().hash_one(0),
            popularity: Popularity::new(PACKET_CACHE_POPULAR),
            answers: HashMap::new(),
            workers: Vec::new(),
            replies: channel(),
            frame: Box::new([0; PACKET_CACHE_RESPONSE]),
        }
    }

    /// The response to a query, if the cache has its answer. If it has not, and the question is popular, its worker is asked for it.
    pub(crate) fn answer(
        &mut self,
        queries: &impl QuerySink,
        client: &Client,
        message: &[u8],
    ) -> Option<&[u8]> {
        let query = PacketCacheQuery::of(message)?;
        let hash = query.hash(self.seed);
        let now = datapath::now();
        if let Some(answer) = self.answers.get_mut(&hash).filter(|one| one.entry.answers(&query, client, now))
        {
            answer.count(client, query.options().is_some());
            let length = answer.entry.write_response(now, client, message, &query, &mut self.frame);
            return Some(&self.frame[..length]);
        }
        if self.popularity.count(hash) {
            self.want(queries, query);
        }
        self.take_replies(queries);
        None
    }

    /// Asks the home worker of a name for an entry.
    #[cold]
    fn want(&mut self, queries: &impl QuerySink, query: PacketCacheQuery) {
        let home_worker = queries.home_worker(query.message());
        if self.workers.len() <= home_worker {
            self.workers.resize_with(home_worker + 1, Worker::default);
        }
        let worker = &mut self.workers[home_worker];
        if worker.wanted.len() < PACKET_CACHE_WANTED && !worker.wanted.contains(&query) {
            worker.wanted.push(query);
        }
        self.ask(queries, home_worker);
    }

    /// Asks a worker for the entries that are wanted of it, unless it has not replied yet.
    fn ask(&mut self, queries: &impl QuerySink, number: usize) {
        let worker = &mut self.workers[number];
        if worker.is_asked || worker.wanted.is_empty() {
            return;
        }
        let task = PacketCacheTask { wanted: std::mem::take(&mut worker.wanted), hits: Vec::new() };
        // A worker without room for tasks is asked for the next question.
        worker.is_asked = submit(queries, number, task, &self.replies.0);
    }

    /// Takes the entries that workers have made.
    fn take_replies(&mut self, queries: &impl QuerySink) {
        while let Ok((number, reply)) = self.replies.1.try_recv() {
            self.workers[number].is_asked = false;
            for entry in reply.entries {
                let hash = entry.query.hash(self.seed);
                // The hits of an earlier answer must be counted first.
                let has_room = self.answers.len() < PACKET_CACHE_ENTRIES;
                if has_room && self.answers.get(&hash).is_none_or(|answer| answer.hits.is_empty()) {
                    let answer = Answer { entry, worker: number, hits: Vec::new(), idle: 0 };
                    self.answers.insert(hash, Box::new(answer));
                }
            }
            self.ask(queries, number);
        }
    }

    /// The regular work, once a second: the workers count the answers that were given, and answers that have ended or are not asked for
    /// leave.
    pub(crate) fn maintain(&mut self, queries: &impl QuerySink) {
        self.popularity.clear();
        self.take_replies(queries);
        self.report(queries);
        let now = datapath::now();
        self.answers.retain(|_, answer| {
            answer.idle = answer.idle.saturating_add(1);
            let is_kept = answer.idle <= PACKET_CACHE_IDLE_SECS && answer.entry.holds(now);
            is_kept || !answer.hits.is_empty()
        });
    }

    /// Has the workers count the answers that were given since the last report. What a worker without room does not take is counted the next time.
    pub(crate) fn report(&mut self, queries: &impl QuerySink) {
        for number in 0..self.workers.len() {
            let of_worker = || self.answers.values().filter(|answer| answer.worker == number);
            let hits: Vec<_> = of_worker().flat_map(|answer| answer.hits.iter().cloned()).collect();
            let task = PacketCacheTask { hits, wanted: Vec::new() };
            if !task.hits.is_empty() && submit(queries, number, task, &self.replies.0) {
                let of_worker = self.answers.values_mut().filter(|answer| answer.worker == number);
                of_worker.for_each(|answer| answer.hits.clear());
            }
        }
    }
}

/// Gives a worker a task. Returns false if it has no room.
fn submit(queries: &impl QuerySink, worker: usize, task: PacketCacheTask, replies: &Sender<Reply>) -> bool {
    queries.submit(PacketCacheRequest { worker, task, replies: replies.clone() })
}

impl Answer {
    fn count(&mut self, client: &Client, has_opt: bool) {
        self.idle = 0;
        let transport = client.transport;
        let place = self.hits.iter().position(|hits| hits.transport == transport).unwrap_or_else(|| {
            let (query, kind) = (self.entry.query.clone(), self.entry.kind);
            self.hits.push(PacketCacheHits { query, kind, transport, ipv4: 0, ipv6: 0, with_opt: 0 });
            self.hits.len() - 1
        });
        let hits = &mut self.hits[place];
        *(if client.is_ipv4() { &mut hits.ipv4 } else { &mut hits.ipv6 }) += 1;
        hits.with_opt += u64::from(has_opt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::packet_cache::PacketCacheEpoch;
    use engine::settings::{Network, Networks};
    use engine::{ClientTransport, Link, Outbox, Unreachable};
    use std::net::Ipv6Addr;
    use std::sync::{Arc, Mutex};

    /// A machine that has an answer to each query, and counts the hits.
    #[derive(Default)]
    struct FakeMachine {
        epoch: Arc<PacketCacheEpoch>,
        hits: Vec<(ClientTransport, [u64; 3])>,
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
        fn serve_packet_cache(&mut self, now: Instant, task: PacketCacheTask) -> PacketCacheReply {
            let hits = task.hits.iter().map(|hits| (hits.transport, [hits.ipv4, hits.ipv6, hits.with_opt]));
            self.hits.extend(hits);
            let entry = |query| {
                let mut entry = PacketCacheEntry::echo(query, Instant(now.0 + 60_000_000_000));
                entry.epoch = Arc::clone(&self.epoch);
                entry
            };
            let entries = task.wanted.into_iter().map(entry).collect();
            PacketCacheReply { epoch: Arc::clone(&self.epoch), entries }
        }
    }

    impl FakeMachine {
        /// Ends all entries, and serves the clients of these networks.
        fn serve(&mut self, clients: &[Network]) {
            self.epoch.end();
            self.epoch = Arc::new(PacketCacheEpoch::new(Networks(clients.to_vec())));
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
        requests: Vec<PacketCacheRequest>,
        refuses: bool,
    }

    impl QuerySink for Workers {
        fn post(&self, _: &Client, _: &[u8]) -> bool {
            unreachable!("the cache posts no queries")
        }
        fn home_worker(&self, message: &[u8]) -> usize {
            message.len() % 2
        }
        fn submit(&self, request: PacketCacheRequest) -> bool {
            let mut state = self.0.lock().unwrap();
            if !state.refuses {
                state.requests.push(request);
            }
            !state.refuses
        }
    }

    impl Workers {
        fn new() -> Workers {
            let workers = Workers::default();
            for machine in &mut workers.0.lock().unwrap().machines {
                machine.serve(&[network("2001:db8::")]);
            }
            workers
        }

        /// Carries out the tasks that wait. Returns their number.
        fn work(&self) -> usize {
            let mut state = self.0.lock().unwrap();
            let requests = std::mem::take(&mut state.requests);
            let count = requests.len();
            for request in requests {
                let worker = request.worker;
                request.run(&mut state.machines[worker], datapath::now());
            }
            count
        }

        fn change(&self, change: impl FnOnce(&mut State)) {
            change(&mut self.0.lock().unwrap());
        }
    }

    fn network(address: &str) -> Network {
        Network::new(address.parse().unwrap(), 32)
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
    fn a_popular_question_is_answered_with_id_and_letter_case_of_the_query() {
        let workers = Workers::new();
        let mut cache = warmed(&workers, "www");
        let odd = query("wWW");
        let response = cache.answer(&workers, &client("2001:db8::9"), &odd).unwrap();
        assert_eq!(response, odd, "the machine of this test answers with the query");
        assert!(cache.answer(&workers, &client("2001:db8::9"), &query("other")).is_none());
    }

    #[test]
    fn after_the_end_of_the_epoch_or_for_a_client_who_is_not_served_there_is_no_answer() {
        let workers = Workers::new();
        let mut cache = warmed(&workers, "www");
        assert!(cache.answer(&workers, &client("2001:db9::9"), &query("www")).is_none());
        workers.change(|state| state.machines[1 - OWNER].serve(&[]));
        assert!(
            cache.answer(&workers, &client("2001:db8::9"), &query("www")).is_some(),
            "another worker's epoch"
        );
        workers.change(|state| state.machines[OWNER].serve(&[network("2001:db9::")]));
        assert!(cache.answer(&workers, &client("2001:db8::9"), &query("www")).is_none());
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
        let ipv4 = Network::v4("192.0.2.0".parse().unwrap(), 24);
        workers.change(|state| state.machines[OWNER].serve(&[network("2001:db8::"), ipv4]));
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
        let expected = [(ClientTransport::Tls, [0, 1, 0]), (ClientTransport::Tcp, [1, 0, 0])];
        workers.change(|state| assert_eq!(state.machines[OWNER].hits, expected));
    }

    #[test]
    fn answers_that_nobody_asks_for_leave_and_the_number_of_answers_is_bounded() {
        let workers = Workers::new();
        let mut cache = warmed(&workers, "www");
        for _ in 0..=PACKET_CACHE_IDLE_SECS {
            assert_eq!(cache.answers.len(), 1);
            cache.maintain(&workers);
            workers.work();
        }
        assert_eq!(cache.answers.len(), 0);
        for number in 0..PACKET_CACHE_ENTRIES {
            let label = format!("n{number}");
            (0..4).for_each(|_| {
                assert!(cache.answer(&workers, &client("2001:db8::9"), &query(&label)).is_none())
            });
            workers.work();
            cache.take_replies(&workers);
            // Counters of questions collide now and then, and are cleared once a second.
            cache.popularity.clear();
        }
        assert_eq!(cache.answers.len(), PACKET_CACHE_ENTRIES);
        (0..10)
            .for_each(|_| assert!(cache.answer(&workers, &client("2001:db8::9"), &query("more")).is_none()));
        workers.work();
        cache.take_replies(&workers);
        assert_eq!(cache.answers.len(), PACKET_CACHE_ENTRIES);
    }

    #[test]
    fn many_questions_that_become_popular_together_wait_for_one_task_after_the_other() {
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
        assert_eq!(cache.answers.len(), 1 + PACKET_CACHE_WANTED);
    }
}
