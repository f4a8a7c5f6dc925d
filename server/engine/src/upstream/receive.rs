//! Replies of upstream servers: verification, matching with the queries in flight, and failures of links.
//!
//! A reply is believed only if everything fits (RFC 5452 section 9.1): the socket, the address (the socket is connected), QR,
//! the OPCODE, the ID, one question, octet for octet in the letter case of the query if that was mixed. Anything else is counted, and
//! the wait goes on. A forgery attempt moves its question to TCP. Replies without a question ask for another form of the query, or end
//! an attempt over a connection (`bare_replies.rs`).

use crate::base::slab::Index;
use crate::base::time::Instant;
use crate::context::Context;
use crate::counters::Counter;
use crate::interface::{Link, Outbox, Transport};
use crate::limits::{REPLY_RECORDS, SHORTEST_RECORD};
use crate::message::lame::is_lame;
use crate::message::question::QueryFlags;
use crate::message::reply::{is_bogus, warrants_failover};
use crate::trace::{Subject, TraceEvent, Unreachable};
use crate::upstream::Upstream;
use crate::upstream::circuit_breaker::Cause;
use crate::upstream::in_flight::OutboundQueryState;
use crate::upstream::reconnect::LostLink;
use crate::upstream::suspicion::Mismatch;
use wire::header::{self, Flags};
use wire::{Message, Opcode, Rcode, Section};

/// Effect of a message from an upstream on the question in flight that it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// None yet: it was dropped, or the wait goes on, or another query was sent.
    Nothing,
    /// The question is answered by this reply.
    Completed(Index),
    /// The question is over without an answer: the reply is only about the exchange with the upstream (BADCOOKIE).
    Failed(Index),
    /// The question is over: the reply is well-formed, but no answer (lame, or truncated over TCP).
    Unusable(Index),
    /// The question is over: the reply has more records than are worked on.
    TooManyRecords(Index),
}

/// Result of comparing a message with the queries in flight.
enum Match {
    /// The reply to an attempt of a question.
    Reply { outbound: Index, attempt: usize },
    /// It is one but for the letter case.
    OtherCase { outbound: Index, attempt: usize },
    /// No reply to any query: the reason, and the question that a forger may be trying to answer.
    Suspect(Unmatched, Option<Index>),
}

/// Reason why a message is no reply to any query.
#[derive(Clone, Copy)]
enum Unmatched {
    /// Its question is not in flight.
    Question,
    /// Its question was not asked over this socket.
    Socket,
    /// Its question was moved to TCP.
    MovedToTcp,
    /// It has the ID of a query whose question another attempt has answered.
    Late,
    /// It has another ID.
    Id,
}

impl Unmatched {
    fn counter(self) -> Counter {
        match self {
            Unmatched::Question => Counter::SuspectUnknown,
            Unmatched::Socket => Counter::SuspectSocket,
            Unmatched::MovedToTcp => Counter::SuspectAbandoned,
            Unmatched::Late => Counter::DroppedLate,
            Unmatched::Id => Counter::SuspectId,
        }
    }
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

    /// Matches a message to the queries in flight, and handles it if it fits.
    pub fn receive(
        &mut self,
        via: Link,
        message: &Message<'_>,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Received {
        match self.matching(via, message) {
            Match::Reply { outbound, attempt } => self.accept(outbound, attempt, message, cx),
            Match::OtherCase { outbound, attempt } => {
                cx.counters.count(Counter::SuspectCase);
                match self.weigh((outbound, attempt), Mismatch::LetterCase, message, cx) {
                    true => self.accept(outbound, attempt, message, cx),
                    false => Received::Nothing,
                }
            }
            Match::Suspect(reason, outbound) => {
                cx.counters.count(reason.counter());
                if let Some(outbound) = outbound
                    && !self.suspect(outbound, self.links.server(via), cx)
                {
                    // Somebody goes on guessing IDs.
                    self.outbound_queries[outbound].form.transport = Transport::Tcp;
                }
                Received::Nothing
            }
        }
    }

    /// Finds the attempt that a message answers.
    #[inline(always)]
    fn matching(&self, via: Link, message: &Message<'_>) -> Match {
        let hash = self.key.hash(message.qname());
        let mut suspicion = Match::Suspect(Unmatched::Question, None);
        for index in self.outbound_queries.candidates(hash, message.qtype(), message.qclass()) {
            let outbound = &self.outbound_queries[index];
            if outbound.qtype != message.qtype() || outbound.class != message.qclass() {
                continue;
            }
            let exact = outbound.name() == message.qname();
            if !exact && !wire::eq_ignore_case(outbound.name(), message.qname()) {
                continue;
            }
            let mut suspect = |reason, outbound: Option<Index>| {
                // If the message may belong to several questions, return one that can still be moved to TCP.
                let is_better = match suspicion {
                    Match::Suspect(_, None) => true,
                    Match::Suspect(_, Some(_)) => outbound.is_some(),
                    _ => false,
                };
                if is_better {
                    suspicion = Match::Suspect(reason, outbound);
                }
            };
            let mut over_link =
                outbound.attempts().iter().enumerate().filter(|(_, a)| a.link == via).peekable();
            if over_link.peek().is_none() {
                suspect(Unmatched::Socket, None);
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
                suspect(Unmatched::MovedToTcp, None);
                continue;
            }
            match over_link.find(|(_, attempt)| attempt.id == message.id()) {
                // A reply to an earlier question that another reply has answered already.
                None if self.links.was_issued(via, message.id()) => suspect(Unmatched::Late, None),
                None => suspect(Unmatched::Id, over_udp.then_some(index)),
                // Where the letters were not mixed, an upstream may return the name in any letter case.
                Some((attempt, query)) if query.with_case && !exact => {
                    suspicion = Match::OtherCase { outbound: index, attempt };
                }
                Some((attempt, _)) => return Match::Reply { outbound: index, attempt },
            }
        }
        suspicion
    }

    /// Handles a reply that fits.
    ///
    /// The order matters. Cookie and subnet come first: a reply without them may be forged, and must change nothing. Then the reply
    /// shows that its server is alive. After that come replies that are no answer but ask for another form of the query (TC,
    /// BADCOOKIE, no EDNS), and last the failures that another server may not have.
    fn accept(
        &mut self,
        index: Index,
        place: usize,
        message: &Message<'_>,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Received {
        let attempt = self.outbound_queries[index].attempts[place];
        cx.out.trace(Subject::OutboundQuery(index), || TraceEvent::Replied(message));
        if attempt.form.has_cookie() && !self.verify_cookie(index, place, message, cx) {
            return Received::Nothing;
        }
        if attempt.form.subnet && !self.verify_subnet(index, place, message, cx) {
            return Received::Nothing;
        }
        if attempt.is_hedge {
            self.hedge_helped(cx.counters);
        }
        if self.links.transport(attempt.link).is_stream() {
            self.learn_from_reply(attempt.link, cx.now - attempt.sent, cx);
        }
        if self.outbound_queries[index].doubt.is_raised {
            self.learn_from_doubt(index, place, message, cx);
        }
        let server = &mut self.servers.list[attempt.server as usize];
        if server.letter_case.is_suspect()
            && attempt.with_case
            && self.outbound_queries[index].shows_letters(attempt.server)
        {
            server.letter_case.clear();
        }
        if server.on_reply(cx.now - attempt.sent) {
            self.servers.start_slow_start(attempt.server, cx.now);
        }
        if self.outbound_queries[index].query_flags.has(QueryFlags::PROBE) {
            self.on_probe_reply(attempt.server, message, cx.now);
            return Received::Completed(index);
        }
        let over_udp = self.links.transport(attempt.link) == Transport::Udp;
        if over_udp && message.flags().contains(Flags::TC) {
            self.move_to_tcp(index, attempt.server, Counter::TcpTruncation, cx);
            return Received::Nothing;
        }
        if self.on_badcookie(index, place, message, cx)
            || attempt.form.subnet && self.on_subnet_refused(index, place, message, cx)
            || self.on_no_edns(index, place, message, cx)
        {
            return Received::Nothing;
        }
        if has_too_many_records(message) {
            return self.too_many_records(index, attempt.server, cx);
        }
        if let Some(rejected) = self.fail_over(index, place, message, cx) {
            return rejected;
        }
        self.outbound_queries[index].lacks_dnssec_records = !attempt.form.edns;
        // BADCOOKIE concerns only the exchange with the upstream. A reply that is truncated even over TCP would look like the
        // whole answer (RFC 2181 section 9), but it does not get this far.
        if message.rcode() == Rcode::BADCOOKIE { Received::Failed(index) } else { Received::Completed(index) }
    }

    /// Asks another server if a reply is unusable, or an error that another server may not return. Returns the result if the
    /// reply is not to be used; else the reply counts for the health of its server.
    #[inline]
    fn fail_over(
        &mut self,
        index: Index,
        place: usize,
        message: &Message<'_>,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Option<Received> {
        let attempt = self.outbound_queries[index].attempts[place];
        let over_udp = self.links.transport(attempt.link) == Transport::Udp;
        let is_unusable = self.is_unusable(index, message, over_udp);
        if !is_unusable && !warrants_failover(message) {
            self.record_result(index, attempt.server, cx.now);
            return None;
        }
        self.outbound_queries[index].attempts[place].failed = true;
        if !is_bogus(message) {
            let error = if is_unusable { Cause::Unusable } else { Cause::Replied(message.rcode()) };
            self.servers.list[usize::from(attempt.server)].breaker.on_error(error, cx.now);
        }
        if !is_bogus(message)
            && let Some(waits) = self.ask_another(index, attempt.server, cx)
        {
            return Some(waits);
        }
        if is_unusable {
            let is_cut = message.flags().contains(Flags::TC);
            cx.counters.count(if is_cut { Counter::TruncatedOverTcp } else { Counter::Lame });
            return Some(Received::Unusable(index));
        }
        None
    }

    /// Asks another server after a failure of this one, or waits for one that was asked already. None: there is no other.
    #[inline]
    pub(super) fn ask_another(
        &mut self,
        index: Index,
        server: u16,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Option<Received> {
        if !self.outbound_queries[index].is_wanted() {
            return None;
        }
        if self.can_ask_another(index, server) {
            cx.counters.count(Counter::Failover);
            self.send(index, cx);
            return Some(Received::Nothing);
        }
        self.waits_for_another(index, server).then_some(Received::Nothing)
    }

    /// Ends a question whose reply has too many records. No other server is asked: it would send the same data.
    #[cold]
    #[inline(never)]
    fn too_many_records(&mut self, index: Index, server: u16, cx: &mut Context<'_, impl Outbox>) -> Received {
        self.record_result(index, server, cx.now);
        cx.counters.count(Counter::TooManyRecords);
        Received::TooManyRecords(index)
    }

    /// Records the success of a server that has an answer, and a failure of each server that failed with this question.
    #[inline]
    fn record_result(&mut self, index: Index, server: u16, now: Instant) {
        self.servers.list[usize::from(server)].breaker.on_success();
        let outbound = &self.outbound_queries[index];
        if outbound.attempts().len() > 1 {
            for place in 0..outbound.attempts().len() {
                let other = self.outbound_queries[index].attempts[place];
                // A query that could not be sent is no failure of this kind.
                if other.failed && other.server != server && other.link != Link::NOWHERE {
                    self.servers.list[usize::from(other.server)].on_failure(now);
                }
            }
        }
    }

    /// True if, after the failure of one server, there is another one that is alive and was not asked yet.
    pub(super) fn can_ask_another(&self, index: Index, server: u16) -> bool {
        let outbound = &self.outbound_queries[index];
        outbound.tries < self.parameters.tries
            && self.servers.group(outbound.forward_key()).iter().any(|&other| {
                other != server
                    && !self.servers.list[other as usize].is_dead()
                    && !self.servers.list[other as usize].breaker.is_failing()
                    && outbound.attempts().iter().all(|attempt| attempt.server != other)
            })
    }

    /// True if another server that is alive was asked and may still answer. Then the failure of one server, even if it comes
    /// twice, does not end the question.
    fn waits_for_another(&self, index: Index, server: u16) -> bool {
        let outbound = &self.outbound_queries[index];
        outbound.attempts().iter().any(|attempt| {
            attempt.server != server
                && !attempt.failed
                && !self.servers.list[attempt.server as usize].is_dead()
                && self.links.is_open(attempt.link)
                && self.links.transport(attempt.link).is_stream() == outbound.form.is_over_stream()
        })
    }

    /// True if a reply is no answer although its RCODE is 0. Any reply to a probe shows that the server is alive.
    #[inline]
    fn is_unusable(&self, index: Index, message: &Message<'_>, over_udp: bool) -> bool {
        let outbound = &self.outbound_queries[index];
        let is_cut = !over_udp && message.flags().contains(Flags::TC);
        // A query without RD may be answered with a referral.
        (is_cut || outbound.query_flags.has(QueryFlags::RD) && is_lame(message))
            && !outbound.query_flags.has(QueryFlags::PROBE)
    }
}

/// True if a reply has more records than are worked on; the OPT record is not counted.
#[inline]
fn has_too_many_records(message: &Message<'_>) -> bool {
    // A shorter message has no room for them.
    if message.bytes().len() <= REPLY_RECORDS * SHORTEST_RECORD {
        return false;
    }
    let sections = [Section::Answer, Section::Authority, Section::Additional];
    let records: usize = sections.into_iter().map(|section| message.count(section)).sum();
    records - usize::from(message.opt_start().is_some()) > REPLY_RECORDS
}

/// True for a response with OPCODE QUERY: nothing else is asked.
#[inline]
fn is_response(flags: Flags) -> bool {
    flags.contains(Flags::QR) && flags.opcode() == Opcode::QUERY
}

/// A link that failed, and how far the questions on it were looked through ([`Upstream::next_stranded`]).
pub(crate) struct FailedLink {
    link: Link,
    /// Its server and transport.
    pub lost: LostLink,
    /// Queries over it, if it is a TCP or TLS link. Its slot may soon be that of another link.
    asked: Vec<(u16, Index)>,
    next: u32,
    end: u32,
}

impl Upstream {
    /// Handles the failure of a link: nothing more goes over it. The caller goes on with the questions whose current attempt went
    /// over it ([`Upstream::next_stranded`]), and ends with [`Upstream::finish_failed_link`]. None: the link is not open.
    pub fn fail_link(
        &mut self,
        via: Link,
        reason: Unreachable,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Option<FailedLink> {
        if !self.links.is_open(via) {
            return None;
        }
        let server = self.links.server(via);
        let transport = self.links.transport(via);
        let waited = self.links.outstanding(via) > 0;
        let was_active = transport.is_stream() && self.links.was_active(via);
        if was_active {
            self.learn_from_ending(via, cx);
        }
        if waited && transport.is_stream() {
            cx.counters.count(if was_active { Counter::StreamsClosed } else { Counter::StreamsRefused });
        }
        // An upstream may close an idle TCP connection whenever it likes (RFC 7766 section 6.2.3).
        if waited {
            cx.counters.count(Counter::Unreachable);
            // A server that only answers over UDP is not dead.
            let is_only_way = transport != Transport::Tcp || self.parameters.transport == Transport::Tcp;
            // A connection that ends after it has worked is no refusal: the next one may be accepted.
            if is_only_way && !was_active {
                self.servers.list[server as usize].on_refused(reason, cx.now);
            }
        }
        let asked = self.links.take_asked(via);
        let end = match transport {
            Transport::Udp => {
                // Replies that are under way may still come.
                let _ = self.set_aside(via);
                crate::limits::LINK_QUESTIONS as u32
            }
            Transport::Tcp | Transport::Tls => {
                self.forget_link(via);
                if waited { asked.len() as u32 } else { 0 }
            }
        };
        let lost = LostLink { server, transport, was_open: true, was_active };
        Some(FailedLink { link: via, lost, asked, next: 0, end })
    }

    /// The next question whose current attempt went over a failed link; none when there is no more.
    pub fn next_stranded(&self, failed: &mut FailedLink) -> Option<Index> {
        while failed.next < failed.end {
            let place = failed.next;
            failed.next += 1;
            let (id, index) = match failed.lost.transport {
                // An early retry may have closed the link with its last question.
                Transport::Udp if !self.links.is_open(failed.link) => return None,
                Transport::Udp => self.links.issued_at(failed.link, place as usize)?,
                Transport::Tcp | Transport::Tls => *failed.asked.get(place as usize)?,
            };
            if self.is_current(index, failed.link, id) {
                return Some(index);
            }
        }
        None
    }

    /// Closes a failed UDP link if no question waits on it any more.
    pub fn finish_failed_link(&mut self, failed: &FailedLink, out: &mut impl Outbox) {
        let link = failed.link;
        if failed.lost.transport == Transport::Udp
            && self.links.is_open(link)
            && self.links.outstanding(link) == 0
        {
            self.close(link, out);
        }
    }

    /// True if the current attempt of a question went over a link, with this ID.
    pub(super) fn is_current(&self, index: Index, via: Link, id: u16) -> bool {
        let outbound = &self.outbound_queries[index];
        outbound.state == OutboundQueryState::Asked
            && outbound.attempts().last().is_some_and(|attempt| attempt.link == via && attempt.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::name_hash::HashKey;
    use crate::base::random::Random;
    use crate::base::time::Span;
    use crate::counters::Counters;
    use crate::interface::Client;
    use crate::upstream::config::{Parameters, Select, UpstreamConfig};
    use crate::upstream::cookies::ClientCookieSecret;
    use crate::upstream::in_flight::Attempt;
    use std::net::SocketAddr;

    /// A datapath that opens every link and sends nothing.
    struct Silent;

    impl Outbox for Silent {
        fn answer(&mut self, _: &Client, _: usize, _: impl FnOnce(&mut [u8]) -> usize) -> bool {
            true
        }

        fn ask(&mut self, _: Link, _: impl FnOnce(&mut [u8]) -> usize) -> bool {
            true
        }

        fn open(&mut self, _: Link, _: SocketAddr, _: Transport, _: u16) -> bool {
            true
        }

        fn close(&mut self, _: Link) {}
    }

    fn upstream(outbound_queries: usize) -> Upstream {
        let config = UpstreamConfig {
            forwarders: vec!["192.0.2.53:53".parse().unwrap()],
            zones: vec![],
            select: Select::Ordered,
            timeout: Span::from_secs(1),
            tries: 3,
            transport: Transport::Tcp,
            mix_case: true,
            tls: vec![],
        };
        let parameters = Parameters {
            tries: config.tries,
            timeout: config.timeout,
            transport: config.transport,
            mix_case: true,
            select: config.select,
            sends_cookies: false,
            udp_size: 1232,
        };
        let mut random = Random::new([1; 32]);
        let secret = ClientCookieSecret::draw(&mut random, Instant(0));
        Upstream::new(&config, parameters, outbound_queries, HashKey([3, 5]), secret, random)
    }

    fn open(upstream: &mut Upstream, counters: &mut Counters) -> Link {
        let cx = &mut Context { now: Instant(0), out: &mut Silent, counters };
        upstream.open_link(0, Transport::Tcp, cx).unwrap()
    }

    /// Has a new question in flight over a link.
    fn ask(upstream: &mut Upstream, link: Link) -> Index {
        let index = upstream.outbound_queries.slab.take().unwrap();
        let id = upstream.links.issue(link, index, Instant(0), &mut upstream.random);
        let outbound = &mut upstream.outbound_queries[index];
        outbound.state = OutboundQueryState::Asked;
        outbound.attempts[0] = Attempt { link, id, ..Attempt::NONE };
        outbound.attempts_len = 1;
        index
    }

    #[test]
    fn a_connection_that_fails_costs_by_its_own_questions_not_by_all() {
        let mut upstream = upstream(10_000);
        let mut counters = Counters::default();
        let [busy, failing] = [0, 1].map(|_| open(&mut upstream, &mut counters));
        let of_busy: Vec<_> = (0..9_000).map(|_| ask(&mut upstream, busy)).collect();
        let of_failing: Vec<_> = (0..10).map(|_| ask(&mut upstream, failing)).collect();
        for (link, questions) in [(failing, of_failing), (busy, of_busy)] {
            let cx = &mut Context { now: Instant(1), out: &mut Silent, counters: &mut counters };
            let mut failed = upstream.fail_link(link, Unreachable::Closed, cx).unwrap();
            let steps = failed.end;
            // The slot is that of another link at once.
            let next = open(&mut upstream, &mut counters);
            ask(&mut upstream, next);
            let stranded: Vec<_> = std::iter::from_fn(|| upstream.next_stranded(&mut failed)).collect();
            assert_eq!((stranded.len(), steps as usize), (questions.len(), questions.len()));
            assert_eq!(stranded, questions);
        }
    }
}
