//! The way back from suspicion.
//!
//! A reply over UDP that fits but for the letter case or the cookie may be forged, so its question moves to TCP, where nobody guesses. If
//! nothing comes over TCP, and no other server can be asked, the question goes over UDP again, with other queries. Each has a socket and
//! an ID of its own; replies to those from before, whose port a forger may know, are not believed any more. A reply that fits in
//! everything is believed, as always. If [`AGREEING`] replies to different queries fit but for what raised the suspicion, and all of them
//! say the same, the last one is believed, too: a forger would have to guess port and ID of each, 32 bits and 32 bits and 32 bits. A wrong
//! ID has another query sent; once there were [`QUERIES`] of them, the next wrong ID ends UDP for the question.
//! Cookies protect from a forger who knows port and ID. So agreement is nothing where the upstream has returned our cookie within an hour,
//! and such a question waits for the reply that has it.
//!
//! What an upstream does always is learned: one that has no cookies (`cookies.rs`), or changes the letters of questions. Letters are
//! learned only from questions whose answers were confirmed: over TCP, or by agreement.

use crate::base::slab::Index;
use crate::base::time::{Instant, Span};
use crate::context::Context;
use crate::counters::Counter;
use crate::interface::{Outbox, Transport};
use crate::limits::ATTEMPTS;
use crate::upstream::Upstream;
use crate::upstream::verdict::Mismatch;
use siphasher::sip::SipHasher24;
use wire::{Flags, MAX_NAME, Message, Name, Record, Section, Type};

/// Replies that have to agree.
const AGREEING: u8 = 3;

/// Queries of a comparison, at most. An upstream without TCP, cookies and EDNS that changes letters needs seven: three replies each agree
/// on the query with cookie, without cookie and without EDNS, the first of the last two being those of the retries.
const QUERIES: u8 = 8;

/// Questions in a row that show that an upstream changes letters.
const HABIT: u8 = 4;

/// Time for which an upstream that changes letters gets none mixed.
const MEMORY: Span = Span::from_secs(600);

/// The doubt about a question's replies over UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Doubt {
    /// A reply of `server` looked forged.
    pub(super) is_raised: bool,
    /// The letter case of one did not fit, and nothing was learned from that yet.
    by_case: bool,
    /// The cookie of one did not fit, and nothing was learned from that yet.
    by_cookie: bool,
    /// Its replies are compared.
    pub(super) compares: bool,
    /// Queries that were sent to compare their replies, to any server.
    queries: u8,
    /// Replies in a row that say the same.
    pub(super) agreeing: u8,
    /// Place of the first query of the comparison among the attempts: earlier ones over UDP are abandoned.
    pub(super) first: u8,
    /// Place of the latest one, whose reply is compared.
    newest: u8,
    /// The server.
    pub(super) server: u16,
    /// What the latest reply said.
    digest: u64,
}

impl Doubt {
    /// A state that no new question may begin with.
    #[cfg(debug_assertions)]
    pub(super) const POISON: Doubt = Doubt {
        is_raised: true,
        by_case: true,
        by_cookie: true,
        compares: true,
        queries: 1,
        agreeing: AGREEING,
        first: 1,
        newest: 1,
        server: u16::MAX,
        digest: 1,
    };

    /// Raises the doubt about a server. What is known of another one's replies says nothing of this one's.
    pub(super) fn raise(&mut self, server: u16) {
        if !self.is_raised || self.server != server {
            let Doubt { queries, first, .. } = *self;
            *self = Doubt { is_raised: true, server, queries, first, ..Doubt::default() };
        }
    }

    /// Records that the query at this place among the attempts is sent to compare its reply.
    pub(super) fn begin_comparison(&mut self, place: u8) {
        self.newest = place;
        if self.first == 0 {
            self.first = place;
        }
    }

    /// True if so many replies agree that they count.
    fn is_settled(&self) -> bool {
        self.agreeing >= AGREEING
    }

    /// True if replies of this server are believed in spite of their letters or cookies.
    pub(super) fn is_settled_for(&self, server: u16) -> bool {
        self.is_settled() && self.server == server
    }
}

/// What is known about the letters of questions that a server returns.
#[derive(Clone, Debug, Default)]
pub(crate) struct LetterCase {
    /// Questions in a row whose letters it changed.
    changed: u8,
    /// Until then, it gets questions in lower case.
    lower_until: Instant,
}

impl LetterCase {
    /// Records a question whose letters were changed, and whose answer is confirmed.
    fn note_changed(&mut self, now: Instant) {
        self.changed = (self.changed + 1).min(HABIT);
        if self.changed == HABIT {
            self.lower_until = now + MEMORY;
            // One question is enough to show that it still does.
            self.changed = HABIT - 1;
        }
    }

    /// True if the server gets questions in lower case.
    #[inline]
    pub(crate) fn is_lower(&self, now: Instant) -> bool {
        now < self.lower_until
    }

    /// True if letters of its replies did not fit lately.
    #[inline]
    pub(super) fn is_suspect(&self) -> bool {
        self.changed > 0
    }

    /// Records that it has returned mixed letters.
    pub(super) fn clear(&mut self) {
        self.changed = 0;
    }
}

impl Upstream {
    /// Handles a message over UDP that may be forged: the question moves to TCP or, if nothing came over TCP, is asked again. Returns false
    /// if enough was sent.
    #[cold]
    #[inline(never)]
    pub(super) fn suspect(&mut self, index: Index, server: u16, cx: &mut Context<'_, impl Outbox>) -> bool {
        let doubt = &mut self.outbound_queries[index].doubt;
        doubt.raise(server);
        if doubt.compares {
            return self.compare(index, cx);
        }
        self.move_to_tcp(index, server, cx);
        true
    }

    /// Handles the reply over UDP to an attempt of a question, `(outbound, place)`, that fits but for the letter case or the cookie. Returns true
    /// if enough of them agree.
    #[cold]
    #[inline(never)]
    pub(super) fn weigh(
        &mut self,
        (index, place): (Index, usize),
        mismatch: Mismatch,
        message: &Message<'_>,
        cx: &mut Context<'_, impl Outbox>,
    ) -> bool {
        let attempt = self.outbound_queries[index].attempts[place];
        if mismatch == Mismatch::Cookie {
            self.outbound_queries[index].cookie_missing = true;
            if self.servers.list[usize::from(attempt.server)].cookies.was_returned_lately(cx.now) {
                self.suspect(index, attempt.server, cx);
                return false;
            }
        }
        let digest = self.digest(message);
        let outbound = &mut self.outbound_queries[index];
        let doubt = &mut outbound.doubt;
        doubt.raise(attempt.server);
        doubt.by_case |= mismatch == Mismatch::LetterCase;
        doubt.by_cookie |= mismatch == Mismatch::Cookie;
        let compares = doubt.compares;
        if doubt.is_settled() {
            return doubt.digest == digest;
        }
        // Only the latest query counts, once.
        if compares && (place != usize::from(doubt.newest) || attempt.failed) {
            return false;
        }
        let agrees = compares && doubt.agreeing > 0 && doubt.digest == digest;
        doubt.agreeing = if agrees { doubt.agreeing + 1 } else { u8::from(compares) };
        doubt.digest = digest;
        if doubt.is_settled() {
            return true;
        }
        outbound.attempts[place].failed |= compares;
        self.suspect(index, attempt.server, cx);
        false
    }

    /// Sends a query of the comparison, if the question is in doubt, not too many were sent, and its server would still be asked over UDP.
    /// Returns false if not: the question goes its usual way.
    pub(super) fn compare(&mut self, index: Index, cx: &mut Context<'_, impl Outbox>) -> bool {
        let outbound = &self.outbound_queries[index];
        let Doubt { is_raised, queries, server, .. } = outbound.doubt;
        let is_asked_over_udp = || {
            // After a reload it may have gone, or have another transport.
            let state = &self.servers.list[usize::from(server)];
            self.parameters.transport == Transport::Udp
                && state.configured
                && state.transport(Transport::Udp) == Transport::Udp
                && self.servers.group(outbound.forward_key()).contains(&server)
        };
        let has_room = queries < QUERIES && outbound.attempts().len() < ATTEMPTS;
        if !is_raised || !has_room || !outbound.is_wanted() || !is_asked_over_udp() {
            return false;
        }
        let outbound = &mut self.outbound_queries[index];
        outbound.doubt.queries += 1;
        outbound.doubt.compares = true;
        outbound.form.transport = Transport::Udp;
        outbound.tries = outbound.tries.saturating_sub(1);
        self.send_to_compare(index, server, cx);
        true
    }

    /// Learns from a reply that counts, to a question that was in doubt.
    #[cold]
    #[inline(never)]
    pub(super) fn learn_from_doubt(
        &mut self,
        index: Index,
        place: usize,
        message: &Message<'_>,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        let attempt = self.outbound_queries[index].attempts[place];
        let doubt = self.outbound_queries[index].doubt;
        if attempt.server != doubt.server || !(doubt.by_case || doubt.by_cookie) {
            return;
        }
        let is_confirmed = doubt.is_settled()
            || self.links.transport(attempt.link).is_stream() && doubt.digest == self.digest(message);
        let server = &mut self.servers.list[usize::from(doubt.server)];
        if is_confirmed && doubt.by_case {
            server.letter_case.note_changed(cx.now);
        }
        if doubt.is_settled() && doubt.by_cookie {
            server.cookies.stop_expecting(cx.now);
            server.cookies.suspend(cx.now);
            cx.counters.count(Counter::UpstreamCookieLost);
        }
        // A question shows it once.
        let doubt = &mut self.outbound_queries[index].doubt;
        (doubt.by_case, doubt.by_cookie) = (false, false);
    }

    /// Digest of a reply: RCODE, TC, AD, and the records of the answer section and the SOA record of a denial in any order, without TTLs
    /// and without the letter case of names.
    fn digest(&self, message: &Message<'_>) -> u64 {
        let hasher = SipHasher24::new_with_key(self.cookie_secret.key());
        let hash_name = |name: &Name<'_>| {
            let mut wire = [0; MAX_NAME];
            let length = name.write(&mut wire);
            wire::fold(&mut wire[..length]);
            hasher.hash(&wire[..length])
        };
        let hash_record = |record: Record<'_>| {
            let data = match record.target() {
                Some(target) => hash_name(&target),
                None => hasher.hash(record.rdata()),
            };
            let kind = u64::from(record.class.0) << 16 | u64::from(record.rtype.0);
            hasher.hash([hash_name(&record.owner), data, kind].map(u64::to_le_bytes).as_flattened())
        };
        let flags = message.flags();
        let bits = u64::from(flags.contains(Flags::TC)) << 17 | u64::from(flags.contains(Flags::AD)) << 16;
        let denial = message.records(Section::Authority).filter(|record| record.rtype == Type::SOA);
        let records = message.records(Section::Answer).chain(denial).map(hash_record);
        records.fold(u64::from(message.rcode().0) | bits, u64::wrapping_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_asked_in_lower_case_after_several_questions_in_a_row_and_for_a_while() {
        let mut letters = LetterCase::default();
        let mut now = Instant(0);
        for _ in 1..HABIT {
            letters.note_changed(now);
            assert!(!letters.is_lower(now));
        }
        letters.clear();
        for _ in 1..HABIT {
            letters.note_changed(now);
        }
        assert!(letters.is_suspect() && !letters.is_lower(now));
        letters.note_changed(now);
        now += MEMORY;
        assert!(letters.is_lower(Instant(now.0 - 1)) && !letters.is_lower(now));
        letters.note_changed(now);
        assert!(letters.is_lower(now), "it still does");
    }
}
