//! A flight is over: every client that waited for it gets its answer, or goes on to the A leg (RFC 6147 section 5.1).

use crate::answer::builder::{self as answer, Passed, Source, is_excluded};
use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::client::waiter::{Cause, Recalled, Stage};
use crate::counters::Counter;
use crate::dns64::embed::{self, Tally};
use crate::dns64::rules::Rule;
use crate::engine::{Engine, Exit};
use crate::event::Note;
use crate::interface::Outbox;
use crate::limits::{CHAIN_OCTETS, HOPS};
use crate::message::cname_chain::Chain;
use crate::resolve::from_cache::synthesize_for_all;
use crate::resolve::to_cache::negative_ttl;
use crate::settings::{Dnssec, OnFailure};
use crate::upstream::in_flight::FlightState;
use crate::upstream::parked_replies::LOST;
use crate::upstream::receive::{Outcome, is_bogus};
use wire::header::{self, Flags};
use wire::{Message, Name, Rcode, Section, Type, ede};

/// The TTL bound when the AAAA answer has no SOA.
//= RFC 6147 section 5.1.7: requirement 13
pub(crate) const TTL_WITHOUT_SOA: u32 = 600;

/// What the AAAA leg says.
#[derive(Clone, Copy)]
enum AaaaDecision {
    /// It is the answer, for this reason.
    Pass(Counter),
    /// The upstream stopped at an alias: ask for the rest.
    Follow,
    /// The A leg decides.
    Synthesize(Cause),
    /// The A leg decides, unless this failure means that the answer is bogus.
    Doubt,
}

impl Engine {
    /// Ends a flight.
    pub(crate) fn settle(
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
            if self.police(waiter, outcome, now, out) {
                waiter = next;
                continue;
            }
            match self.waiters[waiter].stage {
                Stage::Direct => self.pass_direct(waiter, outcome, now, out),
                Stage::Aaaa => {
                    let verdict = *verdict.get_or_insert_with(|| self.judge(outcome));
                    self.after_aaaa(waiter, verdict, outcome, now, out);
                }
                Stage::A => self.after_a(waiter, outcome, now, out),
                Stage::Basis => self.after_basis(waiter, outcome, now, out),
                Stage::Unchecked => self.after_unchecked(waiter, outcome, now, out),
            }
            waiter = next;
        }
        if self.flights.slab[index].holders == 0 {
            return self.drop_flight(index);
        }
        if let Outcome::Reply(message, _) = outcome {
            self.flights.slab[index].held = self.held.keep(message.bytes());
        }
    }

    /// What one client waited for is there, though no flight brought it.
    pub(crate) fn go_on(
        &mut self,
        waiter: Index,
        outcome: &Outcome<'_, '_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        match self.waiters[waiter].stage {
            Stage::Direct => self.pass_direct(waiter, outcome, now, out),
            Stage::Aaaa => {
                let verdict = self.judge(outcome);
                self.after_aaaa(waiter, verdict, outcome, now, out);
            }
            Stage::A => self.after_a(waiter, outcome, now, out),
            Stage::Basis => self.after_basis(waiter, outcome, now, out),
            Stage::Unchecked => self.after_unchecked(waiter, outcome, now, out),
        }
    }

    /// RFC 6147 sections 5.1.1 to 5.1.4: what an outcome of the AAAA leg means.
    fn judge(&self, outcome: &Outcome<'_, '_>) -> AaaaDecision {
        let policy = &self.settings.dns64.on_failure;
        let Outcome::Reply(message, chain) = outcome else {
            //= RFC 6147 section 5.1.3: requirement 5; no answer in time is RCODE 2.
            return failure(policy.timeout, Cause::Timeout);
        };
        match message.rcode() {
            Rcode::NOERROR => {}
            //= RFC 6147 section 5.1.2: requirement 4; RCODE 3 is handled as usual.
            Rcode::NXDOMAIN => return AaaaDecision::Pass(Counter::NotSynthesizedNxDomain),
            //= RFC 6147 section 5.5: requirement 29
            Rcode::SERVFAIL if is_bogus(message) => return AaaaDecision::Pass(Counter::NotSynthesizedBogus),
            //= RFC 6147 section 5.1.2: requirement 4; any other RCODE is RCODE 0 with an empty answer.
            Rcode::SERVFAIL if self.may_doubt(message) => return AaaaDecision::Doubt,
            Rcode::SERVFAIL => return failure(policy.servfail, Cause::Error),
            Rcode::REFUSED => return failure(policy.refused, Cause::Error),
            Rcode::FORMERR => return failure(policy.formerr, Cause::Error),
            Rcode::NOTIMP => return failure(policy.notimp, Cause::Error),
            _ => return AaaaDecision::Synthesize(Cause::Error),
        }
        let mut excluded = false;
        for record in message.records(Section::Answer) {
            if chain.ends_in(&record, Type::AAAA) {
                //= RFC 6147 section 5.1.1: requirement 3; one real address is enough.
                //= RFC 6147 section 5.1.4: requirement 7; an excluded one counts as absent.
                if !is_excluded(&record, Some(&self.settings.dns64)) {
                    return AaaaDecision::Pass(Counter::NotSynthesizedReal);
                }
                excluded = true;
            }
        }
        if excluded {
            AaaaDecision::Synthesize(Cause::Excluded)
        } else if chain.is_unfinished(message) {
            AaaaDecision::Follow
        } else {
            AaaaDecision::Synthesize(Cause::NoData)
        }
    }

    pub(crate) fn leg_note<'n>(&'n self, waiter: Index, outcome: &Outcome<'n, 'n>) -> Note<'n> {
        let (name, qtype) = self.sought(waiter);
        let reply = match *outcome {
            Outcome::Reply(message, _) => Some(message),
            Outcome::Failed => None,
        };
        Note::Leg { name, qtype, reply }
    }

    /// The answer to the very question of the client.
    fn pass_direct(&mut self, waiter: Index, outcome: &Outcome<'_, '_>, now: Instant, out: &mut impl Outbox) {
        out.note(|| self.leg_note(waiter, outcome));
        match outcome {
            Outcome::Reply(message, chain) => {
                self.approve(waiter, None);
                self.pass_on(waiter, message, chain, false, now, out);
            }
            Outcome::Failed => {
                self.respond_empty(waiter, Rcode::SERVFAIL, Some(ede::NETWORK_ERROR), now, out);
            }
        }
    }

    fn after_aaaa(
        &mut self,
        waiter: Index,
        verdict: AaaaDecision,
        outcome: &Outcome<'_, '_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        out.note(|| self.leg_note(waiter, outcome));
        let cause = match (verdict, outcome) {
            (AaaaDecision::Pass(Counter::NotSynthesizedReal), _) if self.ignores_real(waiter).is_some() => {
                Cause::Ignored
            }
            (AaaaDecision::Pass(reason), Outcome::Reply(message, chain)) => {
                self.counters.count(reason);
                out.note(|| Note::Passed(reason));
                self.approve64(waiter, message, reason);
                return self.pass_on(waiter, message, chain, true, now, out);
            }
            (AaaaDecision::Pass(reason), Outcome::Failed) => {
                self.counters.count(reason);
                out.note(|| Note::Passed(reason));
                return self.pass_direct(waiter, outcome, now, out);
            }
            (AaaaDecision::Follow, Outcome::Reply(message, chain)) => {
                if self.follow(waiter, message, chain.end(), Type::AAAA, now, out) {
                    return;
                }
                Cause::NoData
            }
            (AaaaDecision::Follow, Outcome::Failed) => Cause::Timeout,
            (AaaaDecision::Synthesize(cause), _) => cause,
            (AaaaDecision::Doubt, _) => match self.doubt(waiter, now, out) {
                Some(cause) => cause,
                None => return,
            },
        };
        self.decide_by_a(waiter, cause, outcome, now, out);
    }

    /// The A leg decides what becomes of a client's question, for this reason.
    pub(crate) fn decide_by_a(
        &mut self,
        waiter: Index,
        cause: Cause,
        outcome: &Outcome<'_, '_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        let (negative_ttl, secure) = match outcome {
            Outcome::Reply(message, chain) => {
                let is_cacheable = self.is_cacheable(&self.waiters[waiter].as_question());
                let least = if is_cacheable { self.settings.cache.min_ttl_secs } else { 0 };
                (negative_ttl(message, chain).map(|ttl| ttl.max(least)), self.is_secure(message))
            }
            Outcome::Failed => (None, false),
        };
        out.note(|| Note::AsksA {
            cause,
            rule: if cause == Cause::Ignored { self.ignores_real(waiter) } else { None },
        });
        let state = &mut self.waiters[waiter];
        state.stage = Stage::A;
        state.cause = cause;
        state.negative_ttl = negative_ttl;
        state.secure = secure;
        let second = core::mem::replace(&mut state.second, NONE);
        if second != NONE {
            return self.after_both(waiter, second, now, out);
        }
        self.ask_a(waiter, now, out);
    }

    /// The client waits for the A leg from now on.
    fn ask_a(&mut self, waiter: Index, now: Instant, out: &mut impl Outbox) {
        if self.answer_own(waiter, now, out) || self.answer_recalled(waiter, now, out) {
            return;
        }
        match self.flight_for(waiter, Type::A, now, out) {
            Some(flight) => self.join(flight, waiter),
            None => self.respond_empty(waiter, Rcode::SERVFAIL, None, now, out),
        }
    }

    /// The A leg was asked before the AAAA leg was decided: it is over, or the client waits for it now.
    fn after_both(&mut self, waiter: Index, second: Index, now: Instant, out: &mut impl Outbox) {
        if self.flights.slab[second].state == FlightState::Asked {
            self.flights.slab[second].holders -= 1;
            // There may be expired data, and reason enough to give them.
            if !self.answer_recalled(waiter, now, out) {
                self.join(second, waiter);
            }
            return;
        }
        let scope = self.flights.slab[second].scope;
        self.waiters[waiter].scope = self.waiters[waiter].scope.max(scope);
        match self.flights.slab[second].held {
            NONE => self.after_second(waiter, &Outcome::Failed, now, out),
            LOST => self.ask_a(waiter, now, out),
            held => {
                let bytes = self.held.lend(held);
                let message = Message::parse(&bytes).expect("it was parsed before it was kept");
                let chain = Chain::follow(&message);
                self.after_second(waiter, &Outcome::Reply(&message, &chain), now, out);
                self.held.put_back(held, bytes);
            }
        }
        self.let_go(second);
    }

    fn after_second(
        &mut self,
        waiter: Index,
        outcome: &Outcome<'_, '_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        if !self.police(waiter, outcome, now, out) {
            self.after_a(waiter, outcome, now, out);
        }
    }

    /// The A leg decides; an empty or failed one is the basis of the answer.
    //= RFC 6147 section 5.1.6: requirement 11
    fn after_a(&mut self, waiter: Index, outcome: &Outcome<'_, '_>, now: Instant, out: &mut impl Outbox) {
        out.note(|| self.leg_note(waiter, outcome));
        let Outcome::Reply(message, chain) = outcome else {
            self.counters.count(Counter::NotSynthesizedAFailed);
            out.note(|| Note::Passed(Counter::NotSynthesizedAFailed));
            return self.respond_empty(waiter, Rcode::SERVFAIL, Some(ede::NETWORK_ERROR), now, out);
        };
        if message.rcode() != Rcode::NOERROR {
            self.counters.count(Counter::NotSynthesizedAFailed);
            out.note(|| Note::Passed(Counter::NotSynthesizedAFailed));
            return self.pass_on(waiter, message, chain, true, now, out);
        }
        let mut answers = message.records(Section::Answer);
        let Some(first) = answers.find(|record| chain.ends_in(record, Type::A)) else {
            if chain.is_unfinished(message) && self.follow(waiter, message, chain.end(), Type::A, now, out) {
                return;
            }
            self.counters.count(Counter::NotSynthesizedNoA);
            out.note(|| Note::Passed(Counter::NotSynthesizedNoA));
            return self.pass_on(waiter, message, chain, true, now, out);
        };
        let mut kept = if self.keeps_synthesis(waiter) { Some(self.frame()) } else { None };
        let dns64 = &self.settings.dns64;
        let state = &self.waiters[waiter];
        let rules = dns64.rules.of(state.client.address, state.name());
        let negative_ttl = state.negative_ttl;
        out.note(|| Note::Addresses { reply: message, chain, rules: &rules, negative_ttl });
        let left_out = embed::all_left_out(&first, message, chain, dns64, &rules);
        if let Some(tally) = left_out
            && self.needs_basis(waiter, message)
        {
            self.frames.extend(kept);
            self.account(waiter, &tally);
            out.note(|| Note::Basis);
            return self.ask_basis(waiter, now, out);
        }
        let secure = self.waiters[waiter].secure && self.is_secure(message) && self.came_secure(waiter);
        out.note(|| Note::Synthesizes { secure });
        let negative_ttl = negative_ttl.unwrap_or(TTL_WITHOUT_SOA);
        let before = replies(&self.chains, self.waiters[waiter].chain);
        let source = Source { message, chain, dns64, rules, negative_ttl, secure, before };
        let written =
            kept.as_mut().and_then(|frame| synthesize_for_all(frame, &self.waiters[waiter], &source));
        let mut tally = Tally::default();
        let (waiters, own_size) = (&self.waiters, self.settings.udp_size);
        let exit = Exit { counters: &mut self.counters, rates: Some(&mut self.rates), now };
        Engine::respond(waiters, exit, own_size, waiter, out, |frame, asker| {
            let (written, counted) = answer::synthesize(frame, asker, &source);
            tally = counted;
            written
        });
        if let (Some(frame), Some(length)) = (&kept, written) {
            self.remember_synthesis(waiter, &frame[..length], now);
        }
        self.frames.extend(kept);
        self.account(waiter, &tally);
        self.forget(waiter);
    }

    /// The rule that has a client's question synthesized although there are AAAA records.
    fn ignores_real(&self, waiter: Index) -> Option<&Rule> {
        let waiter = &self.waiters[waiter];
        self.settings.dns64.rules.of(waiter.client.address, waiter.name()).ignores_real()
    }

    /// Whether an answer without any address lacks the SOA that lets the client keep it (RFC 2308 section 5), and the
    /// AAAA answer had one.
    fn needs_basis(&self, waiter: Index, message: &Message<'_>) -> bool {
        let waiter = &self.waiters[waiter];
        waiter.cause == Cause::NoData
            && waiter.negative_ttl.is_some()
            && !message.records(Section::Authority).any(|record| record.rtype == Type::SOA)
    }

    /// Asks for the AAAA answer again, which was not kept: this is rare, and keeping it would cost every question.
    fn ask_basis(&mut self, waiter: Index, now: Instant, out: &mut impl Outbox) {
        self.waiters[waiter].stage = Stage::Basis;
        if self.answer_own(waiter, now, out) || self.answer_recalled(waiter, now, out) {
            return;
        }
        match self.flight_for(waiter, Type::AAAA, now, out) {
            Some(flight) => self.join(flight, waiter),
            None => self.respond_aliases(waiter, now, out),
        }
    }

    fn after_basis(&mut self, waiter: Index, outcome: &Outcome<'_, '_>, now: Instant, out: &mut impl Outbox) {
        out.note(|| self.leg_note(waiter, outcome));
        match outcome {
            Outcome::Reply(message, chain) if message.rcode() == Rcode::NOERROR => {
                self.pass_on(waiter, message, chain, true, now, out);
            }
            // The A leg has shown that the name exists.
            _ => self.respond_aliases(waiter, now, out),
        }
    }

    /// Nothing but the aliases that led to a name which exists: what could be said of it did not come.
    fn respond_aliases(&mut self, waiter: Index, now: Instant, out: &mut impl Outbox) {
        let Engine { settings, waiters, counters, rates, chains, .. } = self;
        let before = replies(chains, waiters[waiter].chain);
        let exit = Exit { counters, rates: Some(rates), now };
        Engine::respond(waiters, exit, settings.udp_size, waiter, out, |frame, asker| {
            answer::aliases(frame, asker, before)
        });
        self.forget(waiter);
    }

    fn account(&mut self, waiter: Index, tally: &Tally) {
        let counters = &mut self.counters;
        for (counter, amount) in [
            (Counter::LeftOutNonGlobal, tally.non_global),
            (Counter::LeftOutNeverEmbed, tally.never_embed),
            (Counter::LeftOutRule, tally.by_rule),
            (Counter::LeftOutMaxRecords, tally.beyond_max),
        ] {
            if amount > 0 {
                counters.add(counter, amount);
            }
        }
        let state = &mut self.waiters[waiter];
        if state.recalled == Recalled::Positive && tally.records > 0 {
            state.recalled = Recalled::Synthesized;
        }
        counters.count(match state.cause {
            _ if tally.records == 0 => Counter::NotSynthesizedPolicy,
            Cause::NoData => Counter::SynthesizedNoData,
            Cause::Excluded => Counter::SynthesizedExcluded,
            Cause::Ignored => Counter::SynthesizedIgnored,
            Cause::Error => Counter::SynthesizedError,
            Cause::Timeout => Counter::SynthesizedTimeout,
        });
    }

    /// Passes a reply on to a client, who then waits no more. `filter`: excluded AAAA records are left out.
    pub(crate) fn pass_on(
        &mut self,
        waiter: Index,
        message: &Message<'_>,
        chain: &Chain<'_>,
        filter: bool,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        // An A answer in the place of the AAAA answer says that there is no AAAA: both must be secure, and it must be true.
        let state = &self.waiters[waiter];
        let proved = state.stage != Stage::A || state.secure && state.cause == Cause::NoData;
        let trusted = self.settings.dns64.dnssec == Dnssec::Trust && proved && self.came_secure(waiter);
        let Engine { settings, waiters, counters, rates, chains, .. } = self;
        let passed = Passed {
            message,
            chain,
            trusted,
            exclude: filter.then_some(&settings.dns64),
            before: replies(chains, waiters[waiter].chain),
        };
        let exit = Exit { counters, rates: Some(rates), now };
        Engine::respond(waiters, exit, settings.udp_size, waiter, out, |frame, asker| {
            answer::pass(frame, asker, &passed)
        });
        self.forget(waiter);
    }

    /// Asks for the end of a chain that the upstream left unfinished. False: the chain is too long, or too many are
    /// followed at a time.
    //= RFC 6147 section 5.1.5: requirement 10
    pub(crate) fn follow(
        &mut self,
        waiter: Index,
        message: &Message<'_>,
        end: Name<'_>,
        qtype: Type,
        now: Instant,
        out: &mut impl Outbox,
    ) -> bool {
        let before = replies(&self.chains, self.waiters[waiter].chain);
        let comes_back = before.iter().any(|reply| {
            let earlier = Message::parse(reply).expect("it was parsed before it was kept");
            earlier.question_name().eq_ignore_case(&end)
        });
        let octets = before.iter().map(Vec::len).sum::<usize>() + message.bytes().len();
        if comes_back || before.len() == HOPS || octets > CHAIN_OCTETS {
            out.note(|| Note::Unfinished);
            return false;
        }
        let followed = match self.waiters[waiter].chain {
            NONE => match self.take_chain(waiter) {
                Some(followed) => followed,
                None => return false,
            },
            followed => followed,
        };
        let chain = &mut self.chains[followed];
        let mut name = [0u8; 255];
        let len = end.write(&mut name);
        chain.name.clear();
        chain.name.extend_from_slice(&name[..len]);
        chain.replies.push(message.bytes().to_vec());
        out.note(|| Note::Follows { reply: message, name: &chain.name });
        // What was found out and asked ahead was for another name.
        self.waiters[waiter].doubtful = false;
        let second = core::mem::replace(&mut self.waiters[waiter].second, NONE);
        if second != NONE {
            self.let_go(second);
        }
        self.counters.count(Counter::Hops);
        if self.answer_own(waiter, now, out) || self.answer_recalled(waiter, now, out) {
            return true;
        }
        match self.flight_for(waiter, qtype, now, out) {
            Some(flight) => self.join(flight, waiter),
            None => self.respond_empty(waiter, Rcode::SERVFAIL, None, now, out),
        }
        true
    }

    /// Whether the upstream validated and says so. A failure is nothing to validate.
    //= RFC 6147 section 5.5: requirement 28
    fn is_secure(&self, message: &Message<'_>) -> bool {
        self.settings.dns64.dnssec == Dnssec::Trust
            && message.flags().contains(Flags::AD)
            && message.rcode() == Rcode::NOERROR
    }

    /// Whether every reply that led to the name asked now was secure: AD speaks for all records of an answer (RFC 4035
    /// section 3.2.3).
    fn came_secure(&self, waiter: Index) -> bool {
        let before = replies(&self.chains, self.waiters[waiter].chain);
        before.iter().all(|reply| header::flags(reply).contains(Flags::AD))
    }
}

fn failure(policy: OnFailure, cause: Cause) -> AaaaDecision {
    match policy {
        OnFailure::Synthesize => AaaaDecision::Synthesize(cause),
        OnFailure::Pass => AaaaDecision::Pass(Counter::NotSynthesizedFailure),
    }
}

fn replies(chains: &crate::client::chased::Chains, chain: Index) -> &[Vec<u8>] {
    if chain == NONE { &[] } else { &chains[chain].replies }
}
