//! The state of the engine: settings, clients, upstreams, message cache, counters.
//!
//! A client's query becomes a *pending query* (`client`); a question that is asked upstream is a *outbound query* (`upstream`), which equal
//! questions share. An AAAA query of a client with DNS64 waits for the AAAA outbound query first; if that does not decide, for the A
//! outbound query.
//!
//! ```text
//! query    -> admit -> pending query -> outbound query -> send -> upstream
//! upstream -> receive -> outbound query completed -> each pending query: answered, or on to the An outbound query
//! time     -> timer of an outbound query -> next attempt, or the outbound query has failed
//! ```
//!
//! The parts do not know each other; `resolve` connects them.

use crate::answer::answer_memo::AnswerMemo;
use crate::base::buffers::FramePool;
use crate::base::name_hash::HashKey;
use crate::base::random::Random;
use crate::base::time::{Clock, Instant, Span};
use crate::cache::store::MessageCache;
use crate::client::refused::RefusedClients;
use crate::client::{ClientLimits, Clients};
use crate::counters::{COUNTED_PREFIXES, Counters};
use crate::dns64::config::Dns64;
use crate::dns64::gateways::{Gateways, Spread};
use crate::dns64::verdicts::{Untried, Verdicts};
use crate::interface::{Link, Transport};
use crate::message::question::ForwardKey;
use crate::needs::{Needs, NeedsReport, SharedNeeds};
use crate::packet_cache::source::PacketCacheSource;
use crate::settings::{Capacity, Networks, Settings};
use crate::upstream::Upstream;
use crate::upstream::cookies::ClientCookieSecret;
use crate::upstream::forward_zones::Unanswered;
use crate::upstream::own_question::OwnReply;
use crate::validator::Validator;
use crate::validator::config::ValidationConfig;
use core::net::SocketAddr;
use pref64::Pref64;
use std::sync::Arc;
use wire::Type;

/// The DNS64 engine. See the crate's documentation for what it does not do.
pub struct Engine {
    pub(crate) resolver: Resolver,
    pub(crate) counters: Counters,
}

/// The parts of the engine. The counters stand beside them, as every step gets them in its [`Context`](crate::context::Context).
pub(crate) struct Resolver {
    pub(crate) settings: Settings,
    pub(crate) clients: Clients,
    pub(crate) upstream: Upstream,
    pub(crate) cache: MessageCache,
    /// Frames for messages made here.
    pub(crate) frames: FramePool,
    /// Answers that the next clients of the same reply may get, too.
    pub(crate) answer_memo: AnswerMemo,
    /// Key of the hash over names.
    pub(crate) key: HashKey,
    /// The entries of packet caches.
    pub(crate) packet_cache: PacketCacheSource,
    /// Counts of what still needs DNS64, if it is counted.
    pub(crate) needs: Option<Box<Needs>>,
    /// Addresses of real AAAA records that are to be tried.
    pub(crate) untried: Untried,
    /// Validation of replies. None: nothing is validated.
    pub(crate) validator: Option<Box<Validator>>,
}

impl Engine {
    /// An engine with everything reserved that `capacity` allows. `seed` is 32 octets of entropy.
    pub fn new(settings: Settings, capacity: Capacity, seed: [u8; 32]) -> Engine {
        let mut random = Random::new(seed);
        let cookie_secret = ClientCookieSecret::draw(&mut random, Instant(0));
        let key = HashKey([random.bits(), random.bits() | 1]);
        let clients = Clients::new(capacity.pending, key, client_limits(&settings));
        // Two lookups for every client query, and a probe for every server.
        let outbound_queries = 2 * capacity.pending + 2 * crate::limits::UPSTREAMS;
        let parameters = settings.upstream_parameters();
        let upstream =
            Upstream::new(&settings.upstream, parameters, outbound_queries, key, cookie_secret, random);
        let resolver = Resolver {
            clients,
            upstream,
            cache: MessageCache::new(capacity.cache, settings.cache.clone(), key),
            frames: FramePool::new(crate::limits::MESSAGE),
            answer_memo: AnswerMemo::new(),
            key,
            packet_cache: PacketCacheSource::new(&settings),
            needs: counted_needs(None, settings.needs.as_ref()),
            untried: Untried::default(),
            validator: settings
                .validation
                .clone()
                .map(|config| Box::new(Validator::new(config, key, (capacity.pending, outbound_queries)))),
            settings,
        };
        Engine { resolver, counters: Counters::default() }
    }

    /// Applies other settings. Questions in flight go on; their answers follow the new settings. Returns the former settings: local
    /// data and response policy zones may have millions of allocations, which the caller should not free on a worker.
    pub fn configure(&mut self, settings: Settings) -> Settings {
        self.resolver.upstream.configure(&settings.upstream, settings.upstream_parameters());
        self.resolver.cache.configure(settings.cache.clone());
        self.resolver.clients.configure(client_limits(&settings));
        self.resolver.packet_cache = PacketCacheSource::new(&settings);
        self.resolver.needs = counted_needs(self.resolver.needs.take(), settings.needs.as_ref());
        self.configure_validation(settings.validation.as_ref());
        let (old, new) = (&self.resolver.settings.dns64.gateways, &settings.dns64.gateways);
        renumber(&mut self.counters.prefixes, old.as_ref(), new.as_ref());
        core::mem::replace(&mut self.resolver.settings, settings)
    }

    /// Applies other settings of validation. Cached replies were validated under the former ones, or not at all, so all of them go.
    fn configure_validation(&mut self, config: Option<&Arc<ValidationConfig>>) {
        let Resolver { validator, settings, key, cache, upstream, clients, .. } = &mut self.resolver;
        if settings.validation.as_ref() == config {
            return;
        }
        match validator {
            Some(validator) => validator.configure(config.cloned()),
            None => {
                let queries = (clients.pending_queries.capacity(), upstream.outbound_queries.slab.capacity());
                *validator = config.map(|config| Box::new(Validator::new(Arc::clone(config), *key, queries)));
            }
        }
        upstream.forget_signatures();
        cache.entries.clear_buckets(0..cache.entries.buckets());
        upstream.outbound_queries.flush_epoch = upstream.outbound_queries.flush_epoch.wrapping_add(1);
    }

    /// Asks no more questions over the links that are open now: other links leave from other addresses or ports. Questions in flight
    /// go on.
    pub fn retire_links(&mut self) {
        self.resolver.upstream.retire_links();
    }

    /// Changes only the networks of clients that are served.
    pub fn set_allow(&mut self, allow: Networks) {
        self.resolver.settings.allow = allow;
        self.end_packet_cache_entries();
    }

    /// Uses these gateways from now on, with their states; none: nobody knows of gateways. Gateways of a table for other general prefixes
    /// than those of the settings are for settings that are no longer in force, or not yet: nothing changes.
    pub fn set_gateways(&mut self, gateways: Option<Gateways>) {
        let dns64 = &mut self.resolver.settings.dns64;
        if gateways.as_ref().is_some_and(|new| !new.table().has_general(&dns64.prefixes)) {
            return;
        }
        // With other states each client finds its prefix anew, and the cached addresses are moved under it.
        let are_found_anew = match (&dns64.gateways, &gateways) {
            (Some(old), Some(new)) => {
                Arc::ptr_eq(old.table(), new.table()) && new.table().spread == Spread::Client
            }
            _ => false,
        };
        renumber(&mut self.counters.prefixes, dns64.gateways.as_ref(), gateways.as_ref());
        dns64.gateways = gateways;
        if !are_found_anew {
            self.resolver.cache.check_again();
            self.end_packet_cache_entries();
        }
    }

    /// Uses these settings of DNS64 from now on, which differ from those in force by the prefixes that were discovered. Returns those that
    /// are not used: the former ones, or the given ones, if they were made for another configuration than the one in force. The caller
    /// should not free them on a worker.
    pub fn set_dns64(&mut self, mut dns64: Dns64) -> Dns64 {
        let configuration = |dns64: &Dns64| dns64.discovery.map(|discovery| discovery.configuration);
        let current = &mut self.resolver.settings.dns64;
        if configuration(current) != configuration(&dns64) {
            return dns64;
        }
        // If only the TTL is another one, cached answers stay as good as they were.
        let has_same_gateways = match (&current.gateways, &dns64.gateways) {
            (None, None) => true,
            (Some(old), Some(new)) => Arc::ptr_eq(old.table(), new.table()) && old.states() == new.states(),
            _ => false,
        };
        let has_same_prefixes = has_same_gateways
            && current.prefixes == dns64.prefixes
            && Arc::ptr_eq(&current.rules, &dns64.rules);
        renumber(&mut self.counters.prefixes, current.gateways.as_ref(), dns64.gateways.as_ref());
        // They come by themselves ([`Engine::set_verdicts`]).
        dns64.verdicts.clone_from(&current.verdicts);
        let former = core::mem::replace(current, dns64);
        if !has_same_prefixes {
            self.resolver.cache.check_again();
            self.end_packet_cache_entries();
        }
        former
    }

    /// Asks the upstreams a question of the server itself, in class IN, with the next work that is due. It takes the place of an earlier
    /// one of its type. `name` is in wire form.
    pub fn ask_own(&mut self, name: &[u8], qtype: Type) {
        self.resolver.upstream.ask_own(name, qtype);
    }

    /// Returns the end of the question of [`Engine::ask_own`] of this type, once; none before it is there.
    pub fn take_own_reply(&mut self, qtype: Type) -> Option<OwnReply> {
        self.resolver.upstream.take_own_reply(qtype)
    }

    /// Validates by other anchors from now on, if anything is validated. What is known of zones ends; cached answers stay, and the caller
    /// flushes those that were judged by anchors that are gone ([`Engine::flush_below`]).
    pub fn set_validation(&mut self, config: &Arc<ValidationConfig>) {
        let Resolver { validator: Some(validator), settings, .. } = &mut self.resolver else { return };
        if settings.validation.is_some() {
            validator.configure(Some(Arc::clone(config)));
            settings.validation = Some(Arc::clone(config));
        }
    }

    /// Waits for client queries about this name below `arpa` (wire form, lower case), which nobody else knows: one shows that a question of
    /// the server came back to it.
    pub fn expect_mark(&mut self, name: &[u8]) {
        self.resolver.upstream.expect_mark(name);
    }

    /// True if a client query was about the name that was expected last.
    pub fn has_met_mark(&self) -> bool {
        self.resolver.upstream.has_met_mark()
    }

    /// Uses these verdicts about real addresses from now on. No entry of a cache depends on them: answers under a rule are made anew.
    pub fn set_verdicts(&mut self, verdicts: Arc<Verdicts>) {
        self.resolver.settings.dns64.verdicts = Some(verdicts);
    }

    /// Returns the addresses that are to be tried, of queries since the last call.
    pub fn take_untried(&mut self) -> Untried {
        core::mem::take(&mut self.resolver.untried)
    }

    /// Answers with each prefix whose answers are counted.
    pub fn prefix_answers(&self) -> Vec<(Pref64, u64)> {
        let gateways = self.resolver.settings.dns64.gateways.iter();
        let prefixes = gateways.flat_map(|gateways| gateways.table().prefixes());
        prefixes.map(|of| of.prefix).zip(self.counters.prefixes).collect()
    }

    /// Counts of what still needs DNS64, with the `most` names that were counted most. None: it is not counted. `resets`: the counts begin
    /// anew.
    pub fn needs(&mut self, most: usize, resets: bool) -> Option<NeedsReport> {
        let needs = self.resolver.needs.as_deref_mut()?;
        let report = needs.report(most);
        if resets {
            needs.reset();
        }
        Some(report)
    }

    /// Ends the entries of packet caches.
    pub(crate) fn end_packet_cache_entries(&mut self) {
        self.resolver.packet_cache.end_entries(&self.resolver.settings);
    }

    /// Sets the number of workers that share the rate limit of a client network (`queries_per_client`).
    pub fn share_limits(&mut self, workers: usize) {
        self.resolver.clients.rate_limiter.share(u32::try_from(workers).unwrap_or(u32::MAX));
    }

    /// Sets the time of day, as time since 1970, for the timestamps of cookies: at start, and whenever that clock may have been
    /// set.
    pub fn set_unix_time(&mut self, now: Instant, unix: Span) {
        self.resolver.clients.clock = Clock::set(now, unix);
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.resolver.settings
    }

    /// The counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The upstream servers that the configuration names.
    pub fn servers(&self) -> impl Iterator<Item = &crate::upstream::server::Server> {
        self.resolver.upstream.servers.list.iter().filter(|server| server.configured)
    }

    /// True if the forwarders for names without a zone of their own all strip signatures, but for those that are dead: validation fails.
    pub fn has_only_stripping_forwarders(&self) -> bool {
        let question = ForwardKey { name: &[0], qtype: Type::NS, is_own: true };
        self.resolver.upstream.servers.has_only_stripping(question)
    }

    /// Returns the refused clients since the last call.
    pub fn take_refused_clients(&mut self) -> RefusedClients {
        core::mem::take(&mut self.resolver.clients.refused)
    }

    /// Returns the client queries since the last call that servers did not answer, by the addresses of the servers of a zone.
    pub fn take_unanswered(&mut self) -> Vec<(Vec<SocketAddr>, Unanswered)> {
        self.resolver.upstream.servers.take_unanswered()
    }

    /// Time of day at `now`, as time since 1970.
    pub fn unix_time(&self, now: Instant) -> Span {
        self.resolver.clients.clock.unix(now)
    }

    /// Open links, with the upstream and the transport of each.
    pub(crate) fn links(&self) -> impl Iterator<Item = (Link, SocketAddr, Transport)> {
        self.resolver.upstream.addresses_of_links()
    }

    /// Number of client queries that wait for an upstream.
    pub fn pending(&self) -> usize {
        self.resolver.clients.pending_queries.len()
    }

    /// Number of questions in flight to upstreams. Checks of servers that strip signatures, which wait for their time among them, do not count.
    pub fn outbound_queries(&self) -> usize {
        let Resolver { upstream, validator, .. } = &self.resolver;
        let checks = validator.as_ref().map_or(0, |validator| validator.checks.len());
        upstream.outbound_queries.slab.len().saturating_sub(checks)
    }

    /// Number of validations, of searches of zones and of verifications that are under way.
    pub fn validations(&self) -> usize {
        self.resolver.validator.as_ref().map_or(0, |validator| validator.under_way())
    }

    /// Number of signatures that are being verified, or wait for it.
    pub fn signatures(&self) -> usize {
        self.resolver.validator.as_ref().map_or(0, |validator| validator.jobs.len())
    }

    /// Number of client queries that chase a CNAME over several replies.
    pub fn chases(&self) -> usize {
        self.resolver.clients.chases.len()
    }

    /// Octets that the cache uses, and number of its entries.
    pub fn cached(&self) -> (usize, usize) {
        (self.resolver.cache.entries.octets(), self.resolver.cache.entries.len())
    }

    /// Number of open links to upstreams.
    pub fn open_links(&self) -> usize {
        self.resolver.upstream.open_links()
    }
}

/// Gives the counts of prefixes the numbers that the prefixes have in another table.
fn renumber(counts: &mut [u64; COUNTED_PREFIXES], old: Option<&Gateways>, new: Option<&Gateways>) {
    let (Some(old), Some(new)) = (old, new) else {
        *counts = [0; COUNTED_PREFIXES];
        return;
    };
    if !Arc::ptr_eq(old.table(), new.table()) {
        let former = *counts;
        counts.fill(0);
        for (count, of) in counts.iter_mut().zip(new.table().prefixes()) {
            let number = old.table().number_of(&of.prefix);
            *count = number.and_then(|number| former.get(number)).copied().unwrap_or(0);
        }
    }
}

/// The counts of what needs DNS64 under other settings: those that there are go on.
fn counted_needs(counts: Option<Box<Needs>>, shared: Option<&Arc<SharedNeeds>>) -> Option<Box<Needs>> {
    let shared = shared?;
    counts.or_else(|| Some(Box::new(Needs::new(Arc::clone(shared)))))
}

/// Limits of each client network.
fn client_limits(settings: &Settings) -> ClientLimits {
    ClientLimits {
        pending: settings.pending_per_client,
        queries_per_second: settings.queries_per_client,
        responses_per_second: settings.responses_per_client,
        client_prefix: settings.client_prefix,
    }
}
