//! Upstreams without EDNS (RFC 6891 sections 6.2.2 and 7): those that reply FORMERR or NOTIMP to a question with an OPT record,
//! and those that do not reply. They are asked once more without one.
//!
//! What is learned, and from what:
//!
//! - That a server knows EDNS: from an OPT record in a reply that fits in everything. For an hour after that, a reply without
//!   one that says otherwise is no reason to leave it out: the question goes over TCP, where nobody guesses, and only what
//!   comes there counts.
//! - That it does not: for the question at hand. Four questions in a row that a server answers only without an OPT record, and
//!   that never answered one with it meanwhile, have the record left out for ten minutes. So one forged FORMERR turns nothing
//!   off, and a server from which nothing comes with EDNS has none to lose.
//! - Silence counts only as the last resort: the last try of a question whose server has not shown EDNS goes without. Who has
//!   `upstream.tries = 1` has no such try.
//!
//! An answer to a question without an OPT record has no signatures. It is given to clients that asked for them (DO), but not
//! kept for others.

use crate::base::slab::{Index, NONE};
use crate::base::time::{Instant, Span};
use crate::counters::Counter;
use crate::engine::Engine;
use crate::interface::Outbox;
use crate::message::cookie;
use crate::settings::Transport;
use crate::upstream::groups::Server;
use crate::upstream::in_flight::Attempt;
use wire::{Message, Opt, Rcode};

/// What a server showed counts for so long.
const KNOWN: Span = Span::from_secs(3_600);
/// So many questions in a row that a server answers only without an OPT record, and it is left out for so long.
const CHOKES: u8 = 4;
const LEFT_OUT: Span = Span::from_secs(600);

/// What is known of a server's EDNS.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EdnsSupport {
    /// Until then it is known to have it.
    known_until: Instant,
    /// Questions in a row that it answered only without an OPT record, and until when it gets none.
    chokes: u8,
    left_out_until: Instant,
}

impl EdnsSupport {
    /// Whether it has shown EDNS, not long ago.
    #[inline]
    pub(crate) fn is_known(&self, now: Instant) -> bool {
        now < self.known_until
    }

    /// Whether questions go without an OPT record.
    #[inline]
    pub(crate) fn is_left_out(&self, now: Instant) -> bool {
        now < self.left_out_until
    }

    /// A reply had an OPT record.
    #[inline]
    fn shows(&mut self, now: Instant) {
        self.known_until = now + KNOWN;
        self.chokes = 0;
    }

    /// Over TCP it has said that it does not know EDNS.
    fn forget(&mut self) {
        self.known_until = Instant(0);
    }

    /// It has answered a question without an OPT record that it did not answer with one.
    fn choke(&mut self, now: Instant) {
        if self.is_known(now) {
            return;
        }
        self.chokes += 1;
        if self.chokes >= CHOKES {
            self.chokes = 0;
            self.left_out_until = now + LEFT_OUT;
        }
    }
}

impl Engine {
    /// Whether the next question of a flight to a server goes without an OPT record.
    pub(crate) fn omits_edns(&self, index: Index, server: u16, now: Instant) -> bool {
        let flight = &self.flights.slab[index];
        let Server { edns, vouch, .. } = &self.servers.list[usize::from(server)];
        // Without the record there is no cookie either: who has shown cookies is not asked without over UDP.
        if vouch.is_expected() && !flight.over_tcp {
            return false;
        }
        // One server's trouble with EDNS is no reason to be without another one's.
        if edns.is_left_out(now) || flight.no_opt && !edns.is_known(now) {
            return true;
        }
        // A probe asks for a sign of life, which servers of all kinds give to the plainest question.
        let is_last = flight.tries > 0 && flight.tries + 1 >= self.settings.upstream.tries;
        let was_silent = |attempt: &Attempt| {
            attempt.server == server && attempt.with_opt && !attempt.failed && now - attempt.sent > Span::ZERO
        };
        !edns.is_known(now)
            && (flight.wishes.has(crate::upstream::in_flight::Wishes::PROBE)
                || is_last && !flight.over_tcp && flight.attempts().iter().any(was_silent))
    }

    /// What a reply that counts means for EDNS. True: the question is asked again because of that.
    #[inline]
    pub(crate) fn asks_without_edns(
        &mut self,
        index: Index,
        place: usize,
        message: &Message<'_>,
        now: Instant,
        out: &mut impl Outbox,
    ) -> bool {
        let flight = &mut self.flights.slab[index];
        let attempt = flight.attempts[place];
        let Server { edns, vouch, .. } = &mut self.servers.list[usize::from(attempt.server)];
        let is_failure = matches!(message.rcode(), Rcode::FORMERR | Rcode::NOTIMP);
        if !attempt.with_opt {
            let needed = |other: &Attempt| {
                other.server == attempt.server && other.with_opt && other.sent < attempt.sent
            };
            if !is_failure && flight.attempts().iter().any(needed) {
                edns.choke(now);
            }
            return false;
        }
        // Some send the question back as it came: a client cookie alone is our own.
        let is_own = |opt: &Opt<'_>| cookie::first(opt).is_none_or(|data| data.len() > cookie::CLIENT);
        if message.opt().as_ref().is_some_and(is_own) {
            edns.shows(now);
            return false;
        }
        if !is_failure || flight.waiters == NONE && flight.holders == 0 {
            return false;
        }
        if edns.is_known(now) || vouch.is_expected() {
            if self.links.transport(attempt.link) == Transport::Udp {
                flight.attempts[place].failed = true;
                self.move_to_tcp(index, attempt.server, Counter::TcpSuspicion, now, out);
                return true;
            }
            edns.forget();
        }
        flight.attempts[place].failed = true;
        // Of several tries, the first that is not understood is enough; the question without the record is on its way.
        if !core::mem::replace(&mut flight.no_opt, true) {
            // The same try in another form.
            flight.tries = flight.tries.saturating_sub(1);
            self.counters.count(Counter::EdnsRefused);
            self.ask_server(index, attempt.server, now, out);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_questions_in_a_row_have_edns_left_out_and_one_reply_with_it_begins_anew() {
        let mut edns = EdnsSupport::default();
        let now = Instant(1_000_000_000);
        for _ in 1..CHOKES {
            edns.choke(now);
        }
        edns.shows(now);
        for _ in 0..3 * CHOKES {
            edns.choke(now);
        }
        assert!(!edns.is_left_out(now), "it has shown EDNS");
        let later = now + KNOWN;
        for _ in 1..CHOKES {
            edns.choke(later);
        }
        assert!(!edns.is_left_out(later));
        edns.choke(later);
        assert!(edns.is_left_out(later) && !edns.is_left_out(later + LEFT_OUT));
    }
}
