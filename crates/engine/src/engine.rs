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

use crate::answer::builder::{self as answer, Asker, Written};
use crate::base::name_hash::HashKey;
use crate::base::random::Random;
use crate::base::slab::{Index, NONE, Slab};
use crate::base::time::{Clock, Instant, Span};
use crate::base::timer_wheel::Wheel;
use crate::cache::Cache;
use crate::client::chased::Chains;
use crate::client::quota::Ledger;
use crate::client::rate_limit::{RateDecision, Rates};
use crate::client::waiter::{Recalled, Waiter};
use crate::counters::{Counter, Counters};
use crate::interface::{Carrier, Client, Link, Machine, Outbox};
use crate::settings::{Capacity, Settings};
use crate::upstream::cookies::ClientCookieSecret;
use crate::upstream::groups::Servers;
use crate::upstream::in_flight::{FlightState, Flights};
use crate::upstream::links::{Links, Release};
use crate::upstream::parked_replies::Held;
use crate::upstream::retry_budget::Budget;
use wire::Rcode;

/// How long a client waits for fresh data when there are expired ones (RFC 8767 section 5: 1.8 s, as many clients give
/// up after 2 s).
const PATIENCE: Span = Span::from_millis(1_800);

/// The DNS64 engine. See the crate's documentation for what it does not do.
pub struct Engine {
    pub(crate) settings: Settings,
    pub(crate) flights: Flights,
    pub(crate) wheel: Wheel,
    pub(crate) waiters: Slab<Waiter>,
    pub(crate) ledger: Ledger,
    pub(crate) servers: Servers,
    pub(crate) budget: Budget,
    pub(crate) links: Links,
    pub(crate) held: Held,
    pub(crate) chains: Chains,
    /// Frames for replies of our own: as many as are needed at a time.
    pub(crate) frames: Vec<Box<[u8]>>,
    pub(crate) random: Random,
    pub(crate) key: HashKey,
    pub(crate) counters: Counters,
    pub(crate) rates: Rates,
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
        let mut rates = Rates::new(key);
        rates.configure(settings.queries_per_client, settings.responses_per_client);
        Engine {
            servers: Servers::new(&settings.upstream),
            budget: Budget::default(),
            settings,
            // Two legs for every client question, and a probe for every server.
            flights: Flights::new(2 * capacity.pending + 2 * crate::limits::UPSTREAMS),
            wheel: Wheel::new(),
            waiters: Slab::new(capacity.pending),
            ledger: Ledger::new(capacity.pending, key),
            links: Links::new(),
            held: Held::new(),
            chains: Chains::new(key),
            frames: Vec::new(),
            random,
            key,
            counters: Counters::default(),
            rates,
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
        self.rates.configure(settings.queries_per_client, settings.responses_per_client);
        self.settings = settings;
        // 0 approves nothing.
        self.generation = self.generation.wrapping_add(1).max(1);
        self.stale_links = true;
    }

    /// This engine is one of so many that share what a client network may do (`queries_per_client`).
    pub fn share_limits(&mut self, workers: usize) {
        self.rates.share(u32::try_from(workers).unwrap_or(u32::MAX));
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
    pub fn servers(&self) -> impl Iterator<Item = &crate::upstream::groups::Server> {
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
        self.chains.len()
    }

    /// Octets that the cache uses, and entries that are found in it.
    pub fn cached(&self) -> (usize, usize) {
        (self.cache.octets(), self.cache.len())
    }

    /// Open links to upstreams.
    pub fn open_links(&self) -> usize {
        self.links.open()
    }

    /// The way out for an answer.
    pub(crate) fn exit(&mut self, now: Instant) -> Exit<'_> {
        Exit { counters: &mut self.counters, rates: Some(&mut self.rates), now }
    }

    /// Writes and sends the answer to a waiter.
    pub(crate) fn respond(
        waiters: &Slab<Waiter>,
        exit: Exit<'_>,
        own_size: u16,
        index: Index,
        out: &mut impl Outbox,
        write: impl FnOnce(&mut [u8], &Asker<'_>) -> Written,
    ) {
        let waiter = &waiters[index];
        // What accumulates does not go off: over TCP a client waits as long as its connection stands.
        if waiter.client.carrier == Carrier::Udp && exit.now > waiter.useful_until {
            return exit.counters.count(Counter::DroppedOverdue);
        }
        let asker = waiter.asker(own_size);
        exit.counters.duration(exit.now - waiter.arrived);
        send(exit, &waiter.client, &asker, out, write);
    }

    /// An answer without records to a waiter, who then waits no more.
    pub(crate) fn respond_empty(
        &mut self,
        index: Index,
        rcode: Rcode,
        reason: Option<u16>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        let own_size = self.settings.udp_size;
        let Engine { waiters, counters, rates, .. } = self;
        let exit = Exit { counters, rates: Some(rates), now };
        Engine::respond(waiters, exit, own_size, index, out, |frame, asker| {
            answer::empty(frame, asker, rcode, reason)
        });
        self.forget(index);
    }

    /// A waiter has got its answer (or never will): its room is free again.
    pub(crate) fn forget(&mut self, index: Index) {
        let Waiter { holder, older, newer, second, chain, recalled, missed, .. } = self.waiters[index];
        match recalled {
            Recalled::Nothing => {}
            Recalled::Stale => self.counters.count(Counter::CacheHitsStale),
            _ if missed => {}
            Recalled::Positive => self.counters.count(Counter::CacheHitsPositive),
            Recalled::Negative => self.counters.count(Counter::CacheHitsNegative),
            Recalled::Synthesized => self.counters.count(Counter::CacheHitsSynthesized),
            Recalled::Failure => self.counters.count(Counter::CacheHitsFailure),
        }
        if second != NONE {
            self.let_go(second);
        }
        if chain != NONE {
            self.chains.give(chain);
        }
        if newer == NONE {
            self.ledger.set_newest(holder, older);
        } else {
            self.waiters[newer].older = older;
        }
        if older != NONE {
            self.waiters[older].newer = newer;
        }
        self.ledger.remove(holder);
        self.waiters.give(index);
    }

    /// A waiter joins the clients of a flight.
    #[inline]
    pub(crate) fn join(&mut self, flight: Index, index: Index) {
        let first = self.flights.slab[flight].waiters;
        let waiter = &mut self.waiters[index];
        if !core::mem::replace(&mut waiter.missed, true) && !self.cache.is_off() {
            self.counters.count(Counter::CacheMisses);
        }
        waiter.flight = flight;
        waiter.previous = NONE;
        waiter.next = first;
        if first != NONE {
            self.waiters[first].previous = index;
        }
        self.flights.slab[flight].waiters = index;
        if self.waiters[index].has_stale {
            self.set_patience(flight, self.waiters[index].arrived + PATIENCE);
        }
    }

    /// A waiter leaves its flight before that has settled.
    pub(crate) fn part(&mut self, index: Index) {
        let Waiter { flight, previous, next, .. } = self.waiters[index];
        if previous == NONE {
            self.flights.slab[flight].waiters = next;
        } else {
            self.waiters[previous].next = next;
        }
        if next != NONE {
            self.waiters[next].previous = previous;
        }
    }

    /// A waiter no longer needs a flight that it held. An asked question stays in flight until its reply, which
    /// would otherwise look like a forgery.
    pub(crate) fn let_go(&mut self, flight: Index) {
        let state = {
            let flight = &mut self.flights.slab[flight];
            flight.holders -= 1;
            if flight.holders > 0 { FlightState::Asked } else { flight.state }
        };
        if state == FlightState::Completed {
            self.drop_flight(flight);
        }
    }

    /// Frees a flight that has left the table.
    pub(crate) fn drop_flight(&mut self, flight: Index) {
        let held = core::mem::replace(&mut self.flights.slab[flight].held, NONE);
        if held != NONE {
            self.held.forget(held);
        }
        self.flights.slab[flight].state = FlightState::Free;
        self.flights.slab.give(flight);
    }

    /// All tries of a flight are over: its links may close.
    pub(crate) fn release_links(&mut self, flight: Index, out: &mut impl Outbox) {
        for place in 0..self.flights.slab[flight].attempts_len as usize {
            let link = self.flights.slab[flight].attempts[place].link;
            if self.links.release(link) == Release::Close {
                self.close(link, out);
            }
        }
        self.flights.slab[flight].attempts_len = 0;
    }

    /// Retires the links to servers that the configuration no longer names.
    fn close_stale_links(&mut self, out: &mut impl Outbox) {
        for number in 0..self.servers.list.len() {
            let server = &mut self.servers.list[number];
            if server.configured {
                continue;
            }
            for slot in core::mem::take(&mut server.current).into_iter().flatten() {
                let link = self.links.link(slot).expect("a current link is open");
                if self.links.retire(link) == Release::Close {
                    self.close(link, out);
                }
            }
        }
    }

    /// Closes a link.
    pub(crate) fn close(&mut self, link: Link, out: &mut impl Outbox) {
        self.forget_link(link);
        out.close(link);
    }

    /// A link is gone: no new question takes it, its slot is free.
    pub(crate) fn forget_link(&mut self, link: Link) {
        let server = self.links.server(link);
        for current in &mut self.servers.list[server as usize].current {
            if *current == Some(link.slot) {
                *current = None;
            }
        }
        self.links.free(link);
    }
}

/// What every answer passes on its way out.
pub(crate) struct Exit<'e> {
    pub(crate) counters: &'e mut Counters,
    /// The limits that it is under, if any.
    pub(crate) rates: Option<&'e mut Rates>,
    pub(crate) now: Instant,
}

/// Sends an answer and counts it, unless the client's network has had too many of its kind.
pub(crate) fn send(
    exit: Exit<'_>,
    client: &Client,
    asker: &Asker<'_>,
    out: &mut impl Outbox,
    write: impl FnOnce(&mut [u8], &Asker<'_>) -> Written,
) {
    let Exit { counters, rates, now } = exit;
    let mut written = None;
    let mut verdict = RateDecision::Within;
    let taken = out.answer(client, asker.limit, |frame| {
        let mut done = write(frame, asker);
        // Over TCP, and with a cookie of ours, the client is where it says that it is: nobody is flooded with what he did not
        // ask for.
        if let Some(rates) = rates
            && client.carrier == Carrier::Udp
            && !asker.has_valid_cookie()
        {
            verdict = rates.response(now, client.address, asker.question, done.rcode);
        }
        match verdict {
            RateDecision::Within => {}
            RateDecision::Slip => done = answer::referral_to_tcp(frame, asker),
            RateDecision::Beyond => done.len = 0,
        }
        written = Some(done);
        done.len
    });
    match verdict {
        RateDecision::Within => {}
        RateDecision::Slip => counters.count(Counter::SlippedResponseRate),
        RateDecision::Beyond => return counters.count(Counter::DroppedResponseRate),
    }
    match written {
        Some(written) if taken => {
            counters.count(match written.rcode {
                Rcode::NOERROR => Counter::ResponsesNoError,
                Rcode::FORMERR => Counter::ResponsesFormErr,
                Rcode::SERVFAIL => Counter::ResponsesServFail,
                Rcode::NXDOMAIN => Counter::ResponsesNxDomain,
                Rcode::NOTIMP => Counter::ResponsesNotImp,
                Rcode::REFUSED => Counter::ResponsesRefused,
                _ => Counter::ResponsesOther,
            });
            if written.truncated {
                counters.count(Counter::Truncated);
            }
            if let Some(code) = written.reason {
                counters.count(Counter::of_extended_error(code));
            }
        }
        _ => counters.count(Counter::DroppedAnswer),
    }
}

impl Machine for Engine {
    fn query(&mut self, now: Instant, from: &Client, message: &[u8], out: &mut impl Outbox) {
        self.on_query(now, from, message, out);
    }

    fn reply(&mut self, now: Instant, via: Link, message: &[u8], out: &mut impl Outbox) {
        self.on_reply(now, via, message, out);
    }

    fn unreachable(&mut self, now: Instant, via: Link, out: &mut impl Outbox) {
        self.on_unreachable(now, via, out);
    }

    fn idle(&self) -> bool {
        self.waiters.len() == 0
    }

    fn expire(&mut self, now: Instant, out: &mut impl Outbox) -> Option<Instant> {
        while let Some(flight) = self.wheel.pop(&mut self.flights.slab, now) {
            self.on_deadline(flight, now, out);
        }
        if core::mem::take(&mut self.stale_links) {
            self.close_stale_links(out);
        }
        let mut next = None;
        let mut has_died = false;
        for number in 0..self.servers.list.len() {
            has_died |= self.servers.list[number].take_has_died();
            if self.servers.list[number].probe_due(now) {
                self.probe(number as u16, now, out);
            }
            if let Some(probe) = self.servers.list[number].next_probe() {
                next = Some(next.map_or(probe, |next: Instant| next.min(probe)));
            }
        }
        if has_died {
            self.hasten(now);
        }
        // Probes have set deadlines of their own.
        let next = next.into_iter().chain(self.wheel.next()).min();
        // A tick never comes due in the same look again.
        next.map(|next| next.max(now + Span(1)))
    }
}
