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

use crate::base::buffers::FramePool;
use crate::base::name_hash::HashKey;
use crate::base::random::Random;
use crate::base::time::{Clock, Instant, Span};
use crate::cache::store::MessageCache;
use crate::client::Clients;
use crate::counters::Counters;
use crate::settings::{Capacity, Settings};
use crate::upstream::Upstream;
use crate::upstream::cookies::ClientCookieSecret;

/// The DNS64 engine. See the crate's documentation for what it does not do.
pub struct Engine {
    pub(crate) settings: Settings,
    pub(crate) clients: Clients,
    pub(crate) upstream: Upstream,
    pub(crate) cache: MessageCache,
    /// Frames for messages of our own.
    pub(crate) frames: FramePool,
    pub(crate) counters: Counters,
    /// Key of the hash over names.
    pub(crate) key: HashKey,
}

impl Engine {
    /// An engine with everything reserved that `capacity` allows. `seed` is 32 octets of entropy.
    pub fn new(settings: Settings, capacity: Capacity, seed: [u8; 32]) -> Engine {
        let mut random = Random::new(seed);
        let cookie_secret = ClientCookieSecret::draw(&mut random, Instant(0));
        let key = HashKey([random.bits(), random.bits() | 1]);
        let mut clients = Clients::new(capacity.pending, key);
        clients.rate_limiter.configure(settings.queries_per_client, settings.responses_per_client);
        // Two legs for every client query, and a probe for every server.
        let flights = 2 * capacity.pending + 2 * crate::limits::UPSTREAMS;
        let parameters = settings.upstream_parameters();
        Engine {
            clients,
            upstream: Upstream::new(&settings.upstream, parameters, flights, key, cookie_secret, random),
            cache: MessageCache::new(capacity.cache, settings.cache.clone(), key),
            frames: FramePool::new(crate::limits::MESSAGE),
            counters: Counters::default(),
            key,
            settings,
        }
    }

    /// Applies other settings. Questions in flight go on; their answers follow the new settings.
    pub fn configure(&mut self, settings: Settings) {
        self.upstream.configure(&settings.upstream, settings.upstream_parameters());
        self.cache.configure(settings.cache.clone());
        self.clients.rate_limiter.configure(settings.queries_per_client, settings.responses_per_client);
        self.settings = settings;
    }

    /// This engine is one of so many that share what a client network may do (`queries_per_client`).
    pub fn share_limits(&mut self, workers: usize) {
        self.clients.rate_limiter.share(u32::try_from(workers).unwrap_or(u32::MAX));
    }

    /// Tells what time it is in the world, as time since 1970, for the timestamps of cookies: at start, and whenever that clock
    /// may have been set.
    pub fn set_unix_time(&mut self, now: Instant, unix: Span) {
        self.clients.clock = Clock::set(now, unix);
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
        self.upstream.servers.list.iter().filter(|server| server.configured)
    }

    /// Client questions that wait for an upstream.
    pub fn pending(&self) -> usize {
        self.clients.waiters.len()
    }

    /// Questions in flight to upstreams.
    pub fn flights(&self) -> usize {
        self.upstream.flights.slab.len()
    }

    /// Client questions that follow an alias beyond what one reply told.
    pub fn followed(&self) -> usize {
        self.clients.chases.len()
    }

    /// Octets that the cache uses, and entries that are found in it.
    pub fn cached(&self) -> (usize, usize) {
        (self.cache.entries.octets(), self.cache.entries.len())
    }

    /// Open links to upstreams.
    pub fn open_links(&self) -> usize {
        self.upstream.open_links()
    }
}
