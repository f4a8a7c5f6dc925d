//! Replies of upstream servers: they are matched with the queries in flight and judged, then the verdict is acted on.
//!
//! A reply is believed only if everything fits (RFC 5452 section 9.1): the socket, the address (the socket is connected), QR,
//! the OPCODE, the ID, one question, octet for octet in the letter case of the query if that was mixed. Anything else is counted, and
//! the wait goes on. A forgery attempt moves its question to TCP. Replies without a question ask for another form of the query, or end
//! an attempt over a connection (`bare_replies.rs`).
//!
//! ```text
//! matching -> judge::verify -> note_reply -> judge::judge -> act: complete, send again, ask another server, or wait on
//! ```

use crate::base::slab::Index;
use crate::base::time::Instant;
use crate::context::Context;
use crate::counters::Counter;
use crate::interface::{Link, Outbox, Transport};
use crate::trace::{Subject, TraceEvent};
use crate::upstream::Upstream;
use crate::upstream::in_flight::{Attempt, OutboundQueryState};
use crate::upstream::judge::{self, Exchange, Reply};
use crate::upstream::server::Server;
use crate::upstream::verdict::{Failure, Mismatch, Reason, Verdict};
use wire::header::{self, Flags};
use wire::{EdeCode, Message, Opcode, Rcode, ede};

/// Effect of a message from an upstream on the question in flight that it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// None yet: it was dropped, or the wait goes on, or another query was sent.
    Nothing,
    /// The question is answered by this reply.
    Completed(Index),
    /// The question is over without an answer: the reply is only about the exchange with the upstream (BADCOOKIE, a probe).
    Failed(Index),
    /// The question is over: the reply is well-formed, but no answer (lame, truncated over TCP, or with more records than are worked
    /// on). The extended DNS error says so to clients (RFC 8914).
    Unusable(Index, EdeCode),
}

/// Result of comparing a message with the queries in flight.
enum Match {
    /// The reply to an attempt of a question. `fits_case`: its letters are those of the query, where they were mixed.
    Reply { outbound: Index, attempt: usize, fits_case: bool },
    /// No reply to any query: the reason, and the question that a forger may be trying to answer.
    Suspect(Mismatch, Option<Index>),
}

impl Upstream {
    /// True if a message that came over a link may be a reply. A message that cannot be one is counted.
    #[inline(always)]
    pub fn may_be_reply(&mut self, via: Link, bytes: &[u8], cx: &mut Context<'_, impl Outbox>) -> bool {
        if !self.links.is_open(via) {
            cx.counters.count(Counter::DroppedStaleLink);
            return false;
        }
        self.links.note_activity(via, cx.now);
        if bytes.len() >= wire::HEADER && !is_response(header::flags(bytes)) {
            cx.counters.count(Counter::SuspectNotResponse);
            return false;
        }
        true
    }

    /// Matches a message to the queries in flight, judges it, and acts on the verdict.
    pub fn receive(
        &mut self,
        via: Link,
        message: &Message<'_>,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Received {
        let (index, place, fits_case) = match self.matching(via, message) {
            Match::Reply { outbound, attempt, fits_case } => (outbound, attempt, fits_case),
            Match::Suspect(mismatch, outbound) => {
                cx.counters.count(mismatch.counter());
                if let Some(outbound) = outbound
                    && !self.suspect(outbound, self.links.server(via), cx)
                {
                    // Somebody goes on guessing IDs.
                    self.outbound_queries[outbound].form.transport = Transport::Tcp;
                }
                return Received::Nothing;
            }
        };
        if fits_case {
            cx.out.trace(Subject::OutboundQuery(index), || TraceEvent::Replied(message));
        }
        let reply = Reply::new(message);
        let mut forgiven = None;
        loop {
            match judge::verify(&self.exchange(index, place, cx.now), &reply, fits_case, forgiven) {
                Verdict::Accept => break,
                Verdict::Weigh(mismatch) => {
                    cx.counters.count(mismatch.counter());
                    if !self.weigh((index, place), mismatch, message, cx) {
                        return Received::Nothing;
                    }
                    if mismatch == Mismatch::LetterCase {
                        cx.out.trace(Subject::OutboundQuery(index), || TraceEvent::Replied(message));
                    }
                    forgiven = Some(mismatch);
                }
                verdict => return self.act(index, place, verdict, cx),
            }
        }
        self.note_reply(index, place, &reply, cx);
        let verdict = judge::judge(&self.exchange(index, place, cx.now), &reply);
        if matches!(verdict, Verdict::Accept | Verdict::FailOver(_) | Verdict::TooManyRecords) {
            self.note_support(index, place, &reply, cx.now);
        }
        self.act(index, place, verdict, cx)
    }

    /// Finds the attempt that a message answers.
    #[inline(always)]
    fn matching(&self, via: Link, message: &Message<'_>) -> Match {
        let hash = self.key.hash(message.qname());
        let mut suspicion = Match::Suspect(Mismatch::Question, None);
        for index in self.outbound_queries.candidates(hash, message.qtype(), message.qclass()) {
            let outbound = &self.outbound_queries[index];
            if outbound.qtype != message.qtype() || outbound.class != message.qclass() {
                continue;
            }
            let exact = outbound.name() == message.qname();
            if !exact && !wire::eq_ignore_case(outbound.name(), message.qname()) {
                continue;
            }
            let mut suspect = |mismatch, outbound: Option<Index>| {
                // If the message may belong to several questions, return one that can still be moved to TCP.
                let is_better = match suspicion {
                    Match::Suspect(_, None) => true,
                    Match::Suspect(_, Some(_)) => outbound.is_some(),
                    Match::Reply { .. } => false,
                };
                if is_better {
                    suspicion = Match::Suspect(mismatch, outbound);
                }
            };
            let mut over_link =
                outbound.attempts().iter().enumerate().filter(|(_, a)| a.link == via).peekable();
            if over_link.peek().is_none() {
                // A question that is held has its reply: this is another one, as after its end.
                if outbound.state != OutboundQueryState::Held {
                    suspect(Mismatch::Socket, None);
                }
                continue;
            }
            let over_udp = self.links.transport(via) == Transport::Udp;
            // Queries from before a comparison. Since then their link takes no others to this server.
            let is_abandoned = || {
                outbound.attempts().iter().rposition(|a| a.link == via) < Some(outbound.doubt.first.into())
            };
            if over_udp && (outbound.form.is_over_stream() || outbound.doubt.first > 0 && is_abandoned()) {
                // The question was moved to TCP, or other queries took the place of this one: a reply over UDP is too late, or comes
                // from a third party.
                suspect(Mismatch::MovedToTcp, None);
                continue;
            }
            match over_link.find(|(_, attempt)| attempt.id == message.id()) {
                // A reply to an earlier question that another reply has answered already.
                None if self.links.was_issued(via, message.id()) => suspect(Mismatch::Late, None),
                None => suspect(Mismatch::Id, over_udp.then_some(index)),
                // Where the letters were not mixed, an upstream may return the name in any letter case.
                Some((attempt, query)) if query.with_case && !exact => {
                    suspicion = Match::Reply { outbound: index, attempt, fits_case: false };
                }
                Some((attempt, _)) => {
                    return Match::Reply { outbound: index, attempt, fits_case: true };
                }
            }
        }
        suspicion
    }

    /// An attempt as `judge.rs` sees it.
    #[inline(always)]
    pub(super) fn exchange(&self, index: Index, place: usize, now: Instant) -> Exchange<'_> {
        let outbound = &self.outbound_queries[index];
        let attempt = &outbound.attempts[place];
        let server = &self.servers.list[usize::from(attempt.server)];
        Exchange { outbound, attempt, server, client_cookie: self.links.cookie(attempt.link), now }
    }

    /// Notes all that a reply shows of its server as soon as it is believed, whatever it says.
    #[inline(always)]
    fn note_reply(
        &mut self,
        index: Index,
        place: usize,
        reply: &Reply<'_>,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        let attempt = self.outbound_queries[index].attempts[place];
        if attempt.form.has_cookie() {
            let client_cookie = self.links.cookie(attempt.link);
            let cookies = &mut self.servers.list[usize::from(attempt.server)].cookies;
            match reply.cookies() {
                Some((client, server)) if client == client_cookie => cookies.learn(client, server, cx.now),
                None if attempt.form.is_over_stream() && self.outbound_queries[index].cookie_missing => {
                    cookies.stop_expecting(cx.now);
                    cx.counters.count(Counter::UpstreamCookieLost);
                }
                _ => {}
            }
        }
        if attempt.form.subnet {
            self.note_scope(index, reply.message);
        }
        if attempt.is_hedge {
            self.hedge_helped(cx.counters);
        }
        let round_trip = cx.now - attempt.sent;
        if attempt.form.is_over_stream() {
            self.learn_from_reply(attempt.link, round_trip, cx);
        }
        if self.outbound_queries[index].doubt.is_raised {
            self.learn_from_doubt(index, place, reply.message, cx);
        }
        let server = &mut self.servers.list[usize::from(attempt.server)];
        if server.letter_case.is_suspect()
            && attempt.with_case
            && self.outbound_queries[index].shows_letters(attempt.server)
        {
            server.letter_case.clear();
        }
        if server.on_reply(round_trip) {
            self.servers.start_slow_start(attempt.server, cx.now);
        }
    }

    /// Notes the scope of a reply to a query with a client subnet.
    #[cold]
    fn note_scope(&mut self, index: Index, message: &Message<'_>) {
        let outbound = &mut self.outbound_queries[index];
        outbound.scope = outbound.subnet.and_then(|subnet| subnet.scope_of_reply(message)).unwrap_or(0);
    }

    /// Notes what a reply that asks for no other form of its query shows of its server's support of cookies and EDNS.
    #[inline(always)]
    fn note_support(&mut self, index: Index, place: usize, reply: &Reply<'_>, now: Instant) {
        let outbound = &self.outbound_queries[index];
        let attempt = &outbound.attempts[place];
        let Server { cookies, edns, .. } = &mut self.servers.list[usize::from(attempt.server)];
        let rcode = reply.message.rcode();
        let of_server = |other: &&Attempt| other.server == attempt.server;
        if attempt.form.has_cookie() {
            if rcode != Rcode::FORMERR {
                cookies.clear_formerrs();
            }
        } else if !outbound.form.has_cookie() && rcode != Rcode::FORMERR {
            let failed = |other: &Attempt| other.form.has_cookie() && !other.form.subnet && other.failed;
            if outbound.attempts().iter().filter(of_server).any(failed) {
                cookies.note_formerr(now);
            }
        }
        if reply.shows_edns && attempt.form.edns {
            edns.on_edns(now);
        } else if !attempt.form.edns && !matches!(rcode, Rcode::FORMERR | Rcode::NOTIMP) {
            let with_edns = |other: &&Attempt| other.form.edns && other.sent < attempt.sent;
            if let Some(refused) = outbound.attempts().iter().filter(of_server).rfind(with_edns) {
                // Nobody forges replies over streams.
                let is_certain =
                    refused.failed && refused.form.is_over_stream() && attempt.form.is_over_stream();
                edns.note_formerr(is_certain, now);
            }
        }
    }

    /// Does what a verdict on a reply to an attempt says.
    #[inline(always)]
    pub(super) fn act(
        &mut self,
        index: Index,
        place: usize,
        verdict: Verdict,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Received {
        match verdict {
            Verdict::Accept => {
                let outbound = &mut self.outbound_queries[index];
                let Attempt { server, form, .. } = outbound.attempts[place];
                outbound.lacks_dnssec_records = !form.edns;
                self.note_answer(index, server, cx.now);
                Received::Completed(index)
            }
            verdict => self.act_on_failure(index, place, verdict, cx),
        }
    }

    /// Does what a verdict says that is not [`Verdict::Accept`].
    #[cold]
    #[inline(never)]
    fn act_on_failure(
        &mut self,
        index: Index,
        place: usize,
        verdict: Verdict,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Received {
        let outbound = &mut self.outbound_queries[index];
        let attempt = &mut outbound.attempts[place];
        let Attempt { server, .. } = *attempt;
        match verdict {
            Verdict::Accept | Verdict::Weigh(_) => debug_assert!(false, "{verdict:?} is no failure"),
            Verdict::Drop(mismatch) => cx.counters.count(mismatch.counter()),
            Verdict::Suspect => {
                attempt.failed = true;
                self.suspect(index, server, cx);
            }
            Verdict::Retry(form, reason) => {
                attempt.failed |= reason.is_failure();
                self.note_refusal(reason, server, cx);
                let outbound = &self.outbound_queries[index];
                // Of several attempts, the first that is not understood is enough; the query in the other form is on its way.
                if outbound.form != form {
                    self.send_again(index, server, form, reason, cx);
                }
            }
            Verdict::FailOver(failure) => {
                attempt.failed = true;
                return self.fail_over(index, place, failure, cx);
            }
            Verdict::TooManyRecords => {
                self.note_answer(index, server, cx.now);
                cx.counters.count(Counter::TooManyRecords);
                // Of the codes that rule out bogus data (RFC 8914), this one is about the data. A failure that may be bogus would be
                // asked for once more.
                return Received::Unusable(index, ede::INVALID_DATA);
            }
            Verdict::Probed(failure) => {
                self.on_probe_reply(server, failure, cx.now);
                return Received::Failed(index);
            }
        }
        Received::Nothing
    }

    /// Notes a server's misunderstanding of its queries.
    fn note_refusal(&mut self, reason: Reason, server: u16, cx: &mut Context<'_, impl Outbox>) {
        if let Some(mismatch) = reason.mismatch() {
            cx.counters.count(mismatch.counter());
        }
        let Server { cookies, edns, .. } = &mut self.servers.list[usize::from(server)];
        match reason {
            Reason::WrongCookie => {
                cookies.stop_expecting(cx.now);
                cookies.suspend(cx.now);
            }
            // Over UDP, only a server that has shown no EDNS is believed to have none.
            Reason::EdnsRefused => edns.clear_known(),
            _ => {}
        }
    }

    /// Asks another server after a failure of this one. If there is none, the question is over.
    fn fail_over(
        &mut self,
        index: Index,
        place: usize,
        failure: Failure,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Received {
        let Attempt { server, form, .. } = self.outbound_queries[index].attempts[place];
        self.servers.list[usize::from(server)].breaker.on_error(failure.cause(), cx.now);
        if self.asks_another(index, server, cx) {
            return Received::Nothing;
        }
        match failure {
            Failure::Error(rcode) => {
                self.outbound_queries[index].lacks_dnssec_records = !form.edns;
                // BADCOOKIE concerns only the exchange with the upstream.
                match rcode {
                    Rcode::BADCOOKIE => Received::Failed(index),
                    _ => Received::Completed(index),
                }
            }
            Failure::Lame => {
                cx.counters.count(Counter::Lame);
                Received::Unusable(index, ede::NO_REACHABLE_AUTHORITY)
            }
            Failure::Truncated => {
                cx.counters.count(Counter::TruncatedOverTcp);
                Received::Unusable(index, ede::NO_REACHABLE_AUTHORITY)
            }
            Failure::Bare(_) => Received::Failed(index),
        }
    }

    /// Asks another server after a failure of this one, or waits for one that was asked already. Returns false if there is no other.
    fn asks_another(&mut self, index: Index, server: u16, cx: &mut Context<'_, impl Outbox>) -> bool {
        if !self.outbound_queries[index].is_wanted() {
            return false;
        }
        if self.can_ask_another(index, server) {
            cx.counters.count(Counter::Failover);
            self.send(index, cx);
            return true;
        }
        self.waits_for_another(index, server)
    }

    /// True if another server that is alive was asked and may still answer. Then the failure of one server, even if it comes
    /// twice, does not end the question.
    fn waits_for_another(&self, index: Index, server: u16) -> bool {
        let outbound = &self.outbound_queries[index];
        outbound.attempts().iter().any(|attempt| {
            attempt.server != server
                && !attempt.failed
                && !self.servers.list[usize::from(attempt.server)].is_dead()
                && self.links.is_open(attempt.link)
                && attempt.form.is_over_stream() == outbound.form.is_over_stream()
        })
    }

    /// Notes that a server has an answer, and a failure of each server that failed with this question.
    #[inline]
    fn note_answer(&mut self, index: Index, server: u16, now: Instant) {
        self.servers.list[usize::from(server)].breaker.on_success();
        let outbound = &self.outbound_queries[index];
        if outbound.attempts().len() > 1 {
            for other in outbound.attempts() {
                // A query that could not be sent is no failure of this kind.
                if other.failed && other.server != server && other.link != Link::NOWHERE {
                    self.servers.list[usize::from(other.server)].on_failure(now);
                }
            }
        }
    }
}

/// True for a response with OPCODE QUERY: nothing else is asked.
#[inline]
fn is_response(flags: Flags) -> bool {
    flags.contains(Flags::QR) && flags.opcode() == Opcode::QUERY
}
