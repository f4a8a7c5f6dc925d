//! Responses to waiters: an upstream reply forwarded, an empty response, the aliases alone.

use crate::answer::builder::empty;
use crate::answer::forward::{Passed, pass};
use crate::answer::synthesis::aliases;
use crate::base::slab::Index;
use crate::base::time::Instant;
use crate::client::chased::replies;
use crate::client::respond::{Exit, respond};
use crate::dns64::config::Dnssec;
use crate::dns64::decision::{Cause, Stage};
use crate::engine::Engine;
use crate::event::Note;
use crate::interface::Outbox;
use crate::message::cname_chain::Chain;
use crate::message::reply::Outcome;
use wire::header::{self, Flags};
use wire::{Message, Rcode, ede};

impl Engine {
    /// The way out for an answer.
    pub(crate) fn exit(&mut self, now: Instant) -> Exit<'_> {
        Exit { counters: &mut self.counters, rates: Some(&mut self.rates), now }
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
        respond(waiters, exit, own_size, index, out, |frame, asker| empty(frame, asker, rcode, reason));
        self.forget(index);
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
    pub(crate) fn pass_direct(
        &mut self,
        waiter: Index,
        outcome: &Outcome<'_, '_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
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

    /// Nothing but the aliases that led to a name which exists: what could be said of it did not come.
    pub(crate) fn respond_aliases(&mut self, waiter: Index, now: Instant, out: &mut impl Outbox) {
        let Engine { settings, waiters, counters, rates, chains, .. } = self;
        let before = replies(chains, waiters[waiter].chain);
        let exit = Exit { counters, rates: Some(rates), now };
        respond(waiters, exit, settings.udp_size, waiter, out, |frame, asker| aliases(frame, asker, before));
        self.forget(waiter);
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
        respond(waiters, exit, settings.udp_size, waiter, out, |frame, asker| pass(frame, asker, &passed));
        self.forget(waiter);
    }

    /// Whether the upstream validated and says so. A failure is nothing to validate.
    //= RFC 6147 section 5.5: requirement 28
    pub(crate) fn is_secure(&self, message: &Message<'_>) -> bool {
        self.settings.dns64.dnssec == Dnssec::Trust
            && message.flags().contains(Flags::AD)
            && message.rcode() == Rcode::NOERROR
    }

    /// Whether every reply that led to the name asked now was secure: AD speaks for all records of an answer (RFC 4035
    /// section 3.2.3).
    pub(crate) fn came_secure(&self, waiter: Index) -> bool {
        let before = replies(&self.chains, self.waiters[waiter].chain);
        before.iter().all(|reply| header::flags(reply).contains(Flags::AD))
    }
}
