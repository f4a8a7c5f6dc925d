//! Completion of a question in flight: store the reply, then serve the waiters.

use crate::base::slab::{Index, NONE};
use crate::base::time::{Instant, Span};
use crate::cache::entry::{self, EntryKind, FAILURE};
use crate::cache::store::key_of;
use crate::cache::ttl::{Age, materialize, stale_reason};
use crate::client::waiter::CacheHit;
use crate::counters::Counter;
use crate::dns64::decision::Stage;
use crate::dns64::decision::decide;
use crate::engine::Engine;
use crate::interface::Outbox;
use crate::message::cname_chain::Chain;
use crate::message::question::QueryFlags;
use crate::message::reply::is_bogus;
use crate::message::reply::{Outcome, is_no_answer};
use crate::upstream::in_flight::FlightState;
use wire::header;
use wire::header::Flags;
use wire::{Message, Rcode, ede};

impl Engine {
    /// Ends a flight.
    pub(crate) fn serve_waiters(
        &mut self,
        index: Index,
        outcome: &Outcome<'_, '_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        self.wheel.cancel(&mut self.flights.slab, index);
        self.flights.leave(index);
        self.release_links(index, out);
        let mut waiter = core::mem::replace(&mut self.flights.slab[index].waiters, NONE);
        let scope = self.flights.slab[index].scope;
        // No reply and no question finds it any more, so nothing below comes back to this flight.
        self.flights.slab[index].state = FlightState::Completed;
        // The same for all of them, and only AAAA flights have clients that need it.
        let mut verdict = None;
        while waiter != NONE {
            let next = self.waiters[waiter].next;
            self.waiters[waiter].scope = self.waiters[waiter].scope.max(scope);
            if self.apply_rpz_to_reply(waiter, outcome, now, out) {
                waiter = next;
                continue;
            }
            match self.waiters[waiter].stage {
                Stage::Direct => self.pass_direct(waiter, outcome, now, out),
                Stage::Aaaa => {
                    let verdict = *verdict.get_or_insert_with(|| decide(outcome, &self.settings.dns64));
                    self.on_aaaa(waiter, verdict, outcome, now, out);
                }
                Stage::A => self.on_a(waiter, outcome, now, out),
                Stage::NegativeAaaa => self.on_negative_aaaa(waiter, outcome, now, out),
                Stage::AaaaWithCd => self.on_aaaa_with_cd(waiter, outcome, now, out),
            }
            waiter = next;
        }
        if self.flights.slab[index].references == 0 {
            return self.free_flight(index);
        }
        if let Outcome::Reply(message, _) = outcome {
            self.flights.slab[index].parked = self.parked.keep(message.bytes());
        }
    }

    /// A flight is over: what it brought is kept, and its clients get it, or something older that is better.
    pub(crate) fn complete_flight(
        &mut self,
        index: Index,
        reply: Option<&Message<'_>>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        let flight = &self.flights.slab[index];
        // After a reload its name may belong to other upstreams, for whom the former ones do not speak.
        let is_private = flight.is_private && flight.query_flags.has(QueryFlags::DO);
        if is_private
            || !self.is_cacheable(&flight.question())
            || flight.group != self.servers.group_number(flight.name())
        {
            return self.serve_reply(index, reply, now, out);
        }
        let Some(message) = reply.filter(|message| !is_no_answer(message)) else {
            return self.complete_failed(index, reply, now, out);
        };
        if self.settings.cache.is_out_of_range(message) {
            return self.complete_clamped(index, message, now, out);
        }
        let chain = Chain::follow(message);
        self.store_reply(index, message, &chain, now);
        self.serve_waiters(index, &Outcome::Reply(message, &chain), now, out);
    }

    /// The same for a flight that nobody answered, or whose answer is a failure.
    fn complete_failed(
        &mut self,
        index: Index,
        reply: Option<&Message<'_>>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        // An answer that was found bogus is an answer: older data would paper over it.
        if !reply.is_some_and(is_bogus) {
            let recheck = if reply.is_some() { FAILURE_RECHECK } else { SILENCE_RECHECK };
            if self.complete_with_stale(index, recheck, now, out) {
                return;
            }
        }
        self.store_failure(index, reply, now);
        self.serve_reply(index, reply, now, out);
    }

    fn serve_reply(
        &mut self,
        index: Index,
        reply: Option<&Message<'_>>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        match reply {
            None => self.serve_waiters(index, &Outcome::Failed, now, out),
            Some(message) => {
                let chain = Chain::follow(message);
                self.serve_waiters(index, &Outcome::Reply(message, &chain), now, out);
            }
        }
    }

    /// The same with a reply whose TTLs are beyond what the configuration allows.
    fn complete_clamped(&mut self, index: Index, message: &Message<'_>, now: Instant, out: &mut impl Outbox) {
        let mut frame = self.frame();
        let bytes = &mut frame[..message.bytes().len()];
        bytes.copy_from_slice(message.bytes());
        self.settings.cache.clamp(message, bytes);
        if let Ok(clamped) = Message::parse(&frame[..message.bytes().len()]) {
            let chain = Chain::follow(&clamped);
            self.store_reply(index, &clamped, &chain, now);
            self.serve_waiters(index, &Outcome::Reply(&clamped, &chain), now, out);
        } else {
            // A name ran through a TTL. The wait goes on, as after any malformed reply.
            self.counters.count(Counter::DroppedMalformedReply);
        }
        self.frames.push(frame);
    }

    /// Ends a failed flight with data that have expired (RFC 8767). False: there are none.
    fn complete_with_stale(
        &mut self,
        index: Index,
        recheck: Span,
        now: Instant,
        out: &mut impl Outbox,
    ) -> bool {
        let Engine { cache, flights, servers, key, settings, waiters, .. } = self;
        let question = flights.slab[index].question();
        let leg = key_of(*key, servers, &question, question.qtype, EntryKind::Reply);
        let Some(place) = cache.find(&leg) else { return false };
        let entry = cache.entry(place);
        if entry.is(FAILURE) || entry.expires() + settings.cache.stale <= now {
            return false;
        }
        let is_fresh = entry.expires() > now;
        // That a refresh failed puts nothing off: it was one try, for nobody, and a client's question makes all of them.
        if !is_fresh {
            entry::set_failure_recheck(cache.entry_mut(place), now + recheck);
        }
        let mut waiter = flights.slab[index].waiters;
        while waiter != NONE && !is_fresh {
            waiters[waiter].cache_hit = CacheHit::Stale;
            waiter = waiters[waiter].next;
        }
        let mut frame = self.frame();
        let entry = self.cache.entry(place);
        let length = if is_fresh {
            // A refresh failed, and what it was to replace is still good.
            materialize(&entry, &mut frame, Age::of(&entry, now), entry.ede())
        } else {
            materialize(&entry, &mut frame, Age::Stale, Some(stale_reason(&entry)))
        };
        let parsed = Message::parse(&frame[..length]);
        if let Ok(message) = &parsed {
            self.serve_reply(index, Some(message), now, out);
        }
        let settled = parsed.is_ok();
        self.frames.push(frame);
        settled
    }

    /// Ends a flight that got nothing better: its clients are told that no authority can be reached (RFC 8914 section
    /// 4.23).
    #[cold]
    pub(crate) fn complete_unusable(
        &mut self,
        index: Index,
        message: &Message<'_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        let mut frame = self.frame();
        let end = wire::HEADER + message.question().len();
        frame[..end].copy_from_slice(&message.bytes()[..end]);
        let flags = message.flags().without(Flags::TC).without(Flags::AD).with_rcode(Rcode::SERVFAIL);
        header::set_flags(&mut frame, flags);
        header::set_ancount(&mut frame, 0);
        header::set_nscount(&mut frame, 0);
        header::set_arcount(&mut frame, 1);
        let room = &mut frame[end..];
        let octets = wire::write_opt(room, 512, 0, 0, false, Some(ede::NO_REACHABLE_AUTHORITY));
        if let Ok(failure) = Message::parse(&frame[..end + octets.unwrap_or(0)]) {
            self.complete_flight(index, Some(&failure), now, out);
        } else {
            debug_assert!(false, "a failure of our own does not parse");
            self.complete_flight(index, None, now, out);
        }
        self.frames.push(frame);
    }
}

/// After a failure of an upstream, expired data are given without another try for so long (RFC 8767 section 5).
const FAILURE_RECHECK: Span = Span::from_secs(30);

/// The same after silence: the server is found dead by then, or is asked again.
const SILENCE_RECHECK: Span = Span::from_secs(1);
