//! One world: the engine, the clock, everything that is under way, and the results so far. This file holds the data and the few
//! methods that every part needs. `event_loop.rs` makes things happen, `judge.rs` and `rate_check.rs` check them.

use crate::client::Clients;
use crate::config::Config;
use crate::cookie::{CookieStatus, cookie_status};
use crate::discovery::Sources;
use crate::forger::Forger;
use crate::gateways::Gateways;
use crate::ground_truth::{GroundTruth, SECOND};
use crate::mappings::MappingLines;
use crate::network_faults::{NetworkFaults, SERVERS};
use crate::outbox::{SimOutbox, instant};
use crate::pending::Pending;
use crate::rates::Buckets;
use crate::rng::Rng;
use crate::timeline::Timeline;
use crate::trials::Trials;
use crate::upstream::Arrival;
use engine::{Capacity, Counter, Engine, Link, Span};
use netem::{Direction, Impairments};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

/// An event of the future.
pub(crate) enum Event {
    /// The next client query.
    Query,
    /// The retransmission of a query.
    Retransmission(u64),
    /// A message or a failure arrives over a link.
    Arrival { via: Link, arrival: Arrival, is_forged: bool },
}

/// A broken invariant.
#[derive(Debug, Clone)]
pub struct Violation {
    /// Number of the invariant (`docs/simulation.md`).
    pub invariant: &'static str,
    /// Description of the violation.
    pub what: String,
}

/// Counts of events in a world.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    /// Client queries.
    pub queries: u64,
    /// Answers that were compared with the oracle.
    pub judged: u64,
    /// Forged replies.
    pub forged: u64,
    /// Upstream queries.
    pub asked: u64,
    /// Reloads.
    pub reloads: u64,
    /// Answers with synthesized addresses.
    pub synthesized: u64,
    /// SERVFAIL answers.
    pub failed: u64,
    /// Queries that were answered without an upstream query.
    pub hits: u64,
    /// Changes of the states of gateways.
    pub gateway_changes: u64,
    /// Ends of trials of real addresses.
    pub trials: u64,
    /// Answers in place of real addresses that are dead.
    pub healed: u64,
    /// Changes of what the sources of prefixes tell.
    pub discoveries: u64,
    /// Answers with addresses of explicit mappings.
    pub mapped: u64,
}

impl Tally {
    /// Adds the counts of another world.
    pub fn add(&mut self, other: &Tally) {
        self.queries += other.queries;
        self.judged += other.judged;
        self.forged += other.forged;
        self.asked += other.asked;
        self.reloads += other.reloads;
        self.synthesized += other.synthesized;
        self.failed += other.failed;
        self.hits += other.hits;
        self.gateway_changes += other.gateway_changes;
        self.trials += other.trials;
        self.healed += other.healed;
        self.discoveries += other.discoveries;
        self.mapped += other.mapped;
    }
}

/// Token of messages that are no valid queries.
pub(crate) const NO_TOKEN: u64 = u64::MAX;

/// The engine's treatment of a client's message before it looks at the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The engine accepts the message.
    Taken,
    /// The query is over the limit, and an empty answer with TC offers TCP.
    Slipped,
    /// The query is over the limit, and the answer is REFUSED.
    Refused,
    /// The message is dropped.
    Dropped,
    /// A response policy drops the message.
    Filtered,
}

/// A world. See the module.
pub struct World {
    pub(crate) engine: Engine,
    pub(crate) outbox: SimOutbox,
    pub(crate) now: u64,
    /// Sum of all jumps of the clock, nanoseconds.
    pub(crate) jumped: u64,
    pub(crate) deadline: Option<u64>,
    /// Times and numbers of the events of the future.
    pub(crate) event_times: BinaryHeap<Reverse<(u64, u64)>>,
    /// These events by number.
    pub(crate) events: HashMap<u64, Event>,
    /// Number of the last event.
    pub(crate) last_event: u64,
    pub(crate) rng: Rng,
    pub(crate) ground_truth: GroundTruth,
    pub(crate) network_faults: NetworkFaults,
    /// Lines from the upstreams.
    pub(crate) lines: [Direction; SERVERS],
    pub(crate) clients: Clients,
    pub(crate) gateways: Gateways,
    pub(crate) sources: Sources,
    pub(crate) trials: Trials,
    /// Random numbers for mappings: a world without them plays as if there were none.
    pub(crate) mapping_rng: Rng,
    pub(crate) forger: Forger,
    /// All configurations so far; the last one is in force.
    pub(crate) configs: Vec<Config>,
    pub(crate) timeline: Timeline,
    /// Unanswered queries by token.
    pub(crate) pending: BTreeMap<u64, Pending>,
    /// Answered queries whose retransmission may still be answered.
    pub(crate) answered: HashMap<u64, Pending>,
    /// Time of the last reload, without the jumps of the clock.
    pub(crate) reloaded: u64,
    /// Unix time when the clock stood at 0.
    pub(crate) unix_start: u32,
    /// Cookies in answers, each with the number of its client, oldest first.
    pub(crate) received_cookies: Vec<(u32, Vec<u8>)>,
    pub(crate) buckets: Buckets,
    /// The query that is answered now was over the limit of its network.
    pub(crate) over_limit: Option<(u64, Admission)>,
    /// The query that has given way to the one that is handed to the engine now.
    pub(crate) evicted: Option<u64>,
    pub(crate) unanswered: u64,
    /// Token of the last query.
    pub(crate) last_token: u64,
    pub(crate) queries_left: u64,
    pub(crate) tally: Tally,
    pub(crate) violations: Vec<Violation>,
    pub(crate) is_traced: bool,
}

impl World {
    /// The world of a seed, with this many client queries.
    pub fn new(seed: u64, queries: u64, is_traced: bool) -> World {
        let mut rng = Rng::new(seed);
        let mut config = Config::draw(&mut rng);
        let count = *rng.choose(&[5, 30, 200, 1000]);
        let ground_truth = GroundTruth::new(count, &mut rng);
        let mut gateways = Gateways::new(seed);
        gateways.draw(&mut config);
        let mut mapping_rng = Rng::new(seed ^ 0x3c6e_f372_fe94_f82b);
        config.mappings = MappingLines::draw(&ground_truth, &mut mapping_rng);
        let mut sources = Sources::new(seed);
        sources.draw(&mut config);
        let mut trials = Trials::new(seed);
        trials.draw(&mut config);
        gateways.configure(&config, SECOND, SECOND);
        config.prepare(&ground_truth);
        let mut settings = config.to_engine(&ground_truth);
        settings.dns64.gateways = gateways.to_engine();
        let entropy = rng.entropy();
        let capacity = Capacity { pending: config.pending, cache: config.cache };
        let mut world = World {
            engine: Engine::new(settings, capacity, entropy),
            outbox: SimOutbox::default(),
            now: SECOND,
            jumped: 0,
            deadline: None,
            event_times: BinaryHeap::new(),
            events: HashMap::new(),
            last_event: 0,
            ground_truth,
            network_faults: NetworkFaults::draw(&mut rng),
            lines: core::array::from_fn(|_| Direction::new(Impairments::default(), rng.next_u64())),
            clients: Clients::draw(&mut rng),
            gateways,
            mapping_rng,
            sources,
            trials,
            forger: Forger::default(),
            configs: vec![config],
            timeline: Timeline::default(),
            pending: BTreeMap::new(),
            answered: HashMap::new(),
            reloaded: 0,
            // The second value soon wraps around to 0.
            unix_start: *rng.choose(&[1_700_000_000, 0u32.wrapping_sub(60)]),
            received_cookies: vec![],
            buckets: Buckets::default(),
            over_limit: None,
            evicted: None,
            unanswered: 0,
            last_token: 0,
            queries_left: queries,
            tally: Tally::default(),
            violations: vec![],
            is_traced,
            rng,
        };
        world.engine.set_unix_time(instant(0), Span::from_secs(u64::from(world.unix_start)));
        world.apply_network_faults();
        world.trace(|world| {
            format!("{:?}\n{:?}\n{:?}", world.configs[0], world.network_faults, world.clients)
        });
        world.schedule(world.now, Event::Query);
        world
    }

    /// Makes the lines as the network faults has them.
    pub(crate) fn apply_network_faults(&mut self) {
        self.lines.iter_mut().for_each(|line| line.change(self.network_faults.line));
    }

    /// Prints a line of the trace.
    pub(crate) fn trace(&self, line: impl FnOnce(&World) -> String) {
        if self.is_traced {
            eprintln!("{:>12.6} {}", self.now as f64 / SECOND as f64, line(self));
        }
    }

    /// Records a broken invariant, which ends the world.
    pub(crate) fn report_violation(&mut self, invariant: &'static str, what: String) {
        self.trace(|_| format!("VIOLATION {invariant}: {what}"));
        self.violations.push(Violation { invariant, what });
    }

    /// Adds an event of the future.
    pub(crate) fn schedule(&mut self, at: u64, event: Event) {
        self.last_event += 1;
        self.event_times.push(Reverse((at, self.last_event)));
        self.events.insert(self.last_event, event);
    }

    /// The configuration in force.
    pub(crate) fn config(&self) -> &Config {
        &self.configs[self.configs.len() - 1]
    }

    /// Unix time, modulo 2^32.
    pub(crate) fn unix_secs(&self, at: u64) -> u32 {
        self.unix_start.wrapping_add((at / SECOND) as u32)
    }

    /// True if a client has proved its source address with its cookie.
    pub(crate) fn has_valid_cookie(&self, client: u32, cookie: Option<&[u8]>) -> bool {
        let address = self.clients.address(client);
        let status = |data| cookie_status(data, address, &self.config().secrets, self.unix_secs(self.now));
        cookie.is_some_and(|data| matches!(status(data), CookieStatus::Valid | CookieStatus::Current))
    }

    /// Number of queries that the engine has refused for lack of room.
    pub(crate) fn refused_for_room(&self) -> u64 {
        let counters = self.engine.counters();
        counters.get(Counter::RefusedPending) + counters.get(Counter::RefusedPendingPerClient)
    }
}
