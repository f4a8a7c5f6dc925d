//! The state machine itself: what it keeps, and how a question goes through it.
//!
//! A client's question becomes a *waiter*; what is asked upstream is a *flight*, where equal questions meet. An AAAA
//! question of a client with DNS64 waits for the AAAA flight first; if that does not decide, for the A flight.
//!
//! ```text
//! query -> [admit] -> waiter -> flight -> [ask] -> upstream
//! upstream -> [reply] -> flight settles -> each waiter: answer, or on to the A flight
//! time -> [expire] -> next try, or the flight settles as failed
//! ```

use crate::base::name_hash::HashKey;
use crate::base::random::Random;
use crate::base::slab::Slab;
use crate::base::time::{Clock, Instant, Span};
use crate::base::timer_wheel::TimerWheel;
use crate::cache::Cache;
use crate::client::chased::CnameChases;
use crate::client::quota::ClientQuotas;
use crate::client::rate_limit::RateLimiter;
use crate::client::waiter::Waiter;
use crate::counters::Counters;
use crate::settings::{Capacity, Settings};
use crate::upstream::cookies::ClientCookieSecret;
use crate::upstream::groups::ServerGroups;
use crate::upstream::in_flight::Flights;
use crate::upstream::links::Links;
use crate::upstream::parked_replies::ParkedReplies;
use crate::upstream::retry_budget::RetryBudget;

/// How long a client waits for fresh data when there are expired ones (RFC 8767 section 5: 1.8 s, as many clients give
/// up after 2 s).
pub(crate) const CLIENT_RESPONSE_TIMER: Span = Span::from_millis(1_800);

/// The DNS64 engine. See the crate's documentation for what it does not do.
pub struct Engine {
    pub(crate) settings: Settings,
    pub(crate) flights: Flights,
    pub(crate) wheel: TimerWheel,
    pub(crate) waiters: Slab<Waiter>,
    pub(crate) quotas: ClientQuotas,
    pub(crate) servers: ServerGroups,
    pub(crate) budget: RetryBudget,
    pub(crate) links: Links,
    pub(crate) parked: ParkedReplies,
    pub(crate) chases: CnameChases,
    /// Frames for replies of our own: as many as are needed at a time.
    pub(crate) frames: Vec<Box<[u8]>>,
    pub(crate) random: Random,
    pub(crate) key: HashKey,
    pub(crate) counters: Counters,
    pub(crate) rate_limiter: RateLimiter,
    pub(crate) cache: Cache,
    pub(crate) clock: Clock,
    pub(crate) cookie_key: ClientCookieSecret,
    /// Counts the settings: what was approved under others has to be looked at again.
    pub(crate) generation: u32,
    /// The configuration has changed: links to servers that it no longer names are to be closed.
    pub(crate) stale_links: bool,
}

impl Engine {
    /// An engine with everything reserved that `capacity` allows. `seed` is 32 octets of entropy.
    pub fn new(settings: Settings, capacity: Capacity, seed: [u8; 32]) -> Engine {
        let mut random = Random::new(seed);
        let cookie_key = ClientCookieSecret::draw(&mut random, Instant(0));
        let key = HashKey([random.bits(), random.bits() | 1]);
        let mut cache = Cache::new(capacity.cache);
        cache.keep_stale(settings.cache.stale);
        let mut rate_limiter = RateLimiter::new(key);
        rate_limiter.configure(settings.queries_per_client, settings.responses_per_client);
        Engine {
            servers: ServerGroups::new(&settings.upstream),
            budget: RetryBudget::default(),
            settings,
            // Two legs for every client question, and a probe for every server.
            flights: Flights::new(2 * capacity.pending + 2 * crate::limits::UPSTREAMS),
            wheel: TimerWheel::new(),
            waiters: Slab::new(capacity.pending),
            quotas: ClientQuotas::new(capacity.pending, key),
            links: Links::new(),
            parked: ParkedReplies::new(),
            chases: CnameChases::new(key),
            frames: Vec::new(),
            random,
            key,
            counters: Counters::default(),
            rate_limiter,
            cache,
            clock: Clock::default(),
            cookie_key,
            generation: 1,
            stale_links: false,
        }
    }

    /// Takes over other settings. Questions in flight go on; their answers follow the new settings.
    pub fn configure(&mut self, settings: Settings) {
        let Engine { servers, links, .. } = self;
        servers.configure(&settings.upstream, |number| !links.leads_to(number));
        self.cache.keep_stale(settings.cache.stale);
        self.rate_limiter.configure(settings.queries_per_client, settings.responses_per_client);
        self.settings = settings;
        // 0 approves nothing.
        self.generation = self.generation.wrapping_add(1).max(1);
        self.stale_links = true;
    }

    /// This engine is one of so many that share what a client network may do (`queries_per_client`).
    pub fn share_limits(&mut self, workers: usize) {
        self.rate_limiter.share(u32::try_from(workers).unwrap_or(u32::MAX));
    }

    /// Tells what time it is in the world, as time since 1970, for the timestamps of cookies: at start, and whenever that clock
    /// may have been set.
    pub fn set_unix_time(&mut self, now: Instant, unix: Span) {
        self.clock = Clock::set(now, unix);
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What was counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The upstream servers that the configuration names.
    pub fn servers(&self) -> impl Iterator<Item = &crate::upstream::server::Server> {
        self.servers.list.iter().filter(|server| server.configured)
    }

    /// Client questions that wait for an upstream.
    pub fn pending(&self) -> usize {
        self.waiters.len()
    }

    /// Questions in flight to upstreams.
    pub fn flights(&self) -> usize {
        self.flights.slab.len()
    }

    /// Client questions that follow an alias beyond what one reply told.
    pub fn followed(&self) -> usize {
        self.chases.len()
    }

    /// Octets that the cache uses, and entries that are found in it.
    pub fn cached(&self) -> (usize, usize) {
        (self.cache.octets(), self.cache.len())
    }

    /// Open links to upstreams.
    pub fn open_links(&self) -> usize {
        self.links.open()
    }
}
