//! Replies without a question: some servers send back a header alone when they cannot read a query, or do not like its form.
//!
//! Such a reply names no question, so it counts for the query that its link and its ID fit. It has no letter case, cookie or subnet that
//! would have to be right:
//!
//! - Over UDP it is never an answer, ends no question and changes nothing that is known about its server. FORMERR, NOTIMP and TC ask for
//!   another form of the query: without EDNS, or over TCP. A forger who guesses port and ID gains a query without EDNS to a server that
//!   has not shown EDNS or cookies, and whose reply must fit in everything, or a query over TCP. All other codes are ignored.
//! - Over TCP and TLS nobody but the upstream has sent it: it is a failure of the attempt, whatever its code. NOERROR and BADVERS without a
//!   question are no answer either.
//!
//! A server that sends an OPT record knows EDNS (RFC 6891 section 7), so its FORMERR does not ask for a query without it.

use crate::base::slab::Index;
use crate::context::Context;
use crate::counters::Counter;
use crate::interface::{Link, Outbox, Transport};
use crate::message::question::QueryFlags;
use crate::trace::{Subject, TraceEvent};
use crate::upstream::Upstream;
use crate::upstream::circuit_breaker::Cause;
use crate::upstream::in_flight::{Attempt, OutboundQueryState};
use crate::upstream::receive::Received;
use wire::header::{self, Flags};
use wire::{OPT_LEN, Rcode, Type};

impl Upstream {
    /// Handles a message that cannot be parsed, from a link that may carry replies. Only a reply without a question and without answers
    /// has an effect. Any other one is neither believed nor taken for a failure (TuDoor); the wait goes on.
    #[cold]
    #[inline(never)]
    pub fn receive_bare(&mut self, via: Link, bytes: &[u8], cx: &mut Context<'_, impl Outbox>) -> Received {
        let has_opt = bare_opt(bytes);
        let query = has_opt.and_then(|_| self.query_with_id(via, header::id(bytes)));
        let (Some(has_opt), Some((index, place))) = (has_opt, query) else {
            cx.counters.count(Counter::DroppedMalformedReply);
            return Received::Nothing;
        };
        let outbound = &self.outbound_queries[index];
        let attempt = outbound.attempts[place];
        let over_udp = self.links.transport(via) == Transport::Udp;
        if over_udp && (outbound.form.is_over_stream() || place < usize::from(outbound.doubt.first)) {
            // As for a reply with a question: over UDP it is too late, or comes from a third party.
            cx.counters.count(Counter::SuspectAbandoned);
            return Received::Nothing;
        }
        let (flags, rcode) = (header::flags(bytes), header::flags(bytes).rcode());
        let is_cut = flags.contains(Flags::TC);
        let is_probe = outbound.query_flags.has(QueryFlags::PROBE);
        // The query without EDNS may be on its way already; then this reply asks for nothing new.
        let went_without = |other: &Attempt| {
            other.server == attempt.server && !other.form.edns && other.link != Link::NOWHERE
        };
        let asks_without_edns = matches!(rcode, Rcode::FORMERR | Rcode::NOTIMP)
            && attempt.form.edns
            && !has_opt
            && (outbound.is_wanted() || is_probe)
            && !(over_udp && outbound.attempts().iter().any(went_without));
        if over_udp && (is_probe || !is_cut && !asks_without_edns) {
            cx.counters.count(Counter::DroppedMalformedReply);
            return Received::Nothing;
        }
        cx.out.trace(Subject::OutboundQuery(index), || TraceEvent::RepliedBare(rcode, is_cut));
        if over_udp && is_cut {
            // It needs no more than an ID to be forged, so there is a way back.
            self.outbound_queries[index].doubt.raise(attempt.server);
            self.move_to_tcp(index, attempt.server, Counter::TcpTruncation, cx);
            return Received::Nothing;
        }
        if !over_udp && self.servers.list[usize::from(attempt.server)].on_reply(cx.now - attempt.sent) {
            self.servers.start_slow_start(attempt.server, cx.now);
        }
        if asks_without_edns {
            self.retry_without_edns(index, place, cx);
            // Over UDP it is no failure of its server.
            self.outbound_queries[index].attempts[place].failed = attempt.failed || !over_udp;
            return Received::Nothing;
        }
        self.outbound_queries[index].attempts[place].failed = true;
        let is_error = !is_cut && !matches!(rcode, Rcode::NOERROR | Rcode::NXDOMAIN);
        let error = if is_error { Cause::Replied(rcode) } else { Cause::Unusable };
        self.servers.list[usize::from(attempt.server)].breaker.on_error(error, cx.now);
        if is_probe {
            let jitter = self.random.bits();
            self.servers.list[usize::from(attempt.server)].breaker.on_probe_reply(cx.now, true, jitter);
            return Received::Failed(index);
        }
        self.ask_another(index, attempt.server, cx).unwrap_or(Received::Failed(index))
    }

    /// Finds the question and the attempt whose query went over a link with this ID.
    fn query_with_id(&self, via: Link, id: u16) -> Option<(Index, usize)> {
        let issued = (0..).map_while(|place| self.links.issued_at(via, place));
        let mut asked = issued.filter(|&(issued, index)| {
            issued == id
                && index < self.outbound_queries.slab.touched()
                && self.outbound_queries[index].has_asked(via, id)
        });
        let (_, index) = asked.next()?;
        let outbound = &self.outbound_queries[index];
        let place = outbound.attempts().iter().position(|attempt| attempt.link == via && attempt.id == id)?;
        (outbound.state == OutboundQueryState::Asked).then_some((index, place))
    }
}

/// Reads the form of a reply that has neither a question nor records, but perhaps an OPT record: true if it has one. None: the message
/// has anything else, or octets that belong to nothing.
fn bare_opt(bytes: &[u8]) -> Option<bool> {
    let (head, rest) = bytes.split_at_checked(wire::HEADER)?;
    if [header::qdcount(head), header::ancount(head), header::nscount(head)] != [0; 3] {
        return None;
    }
    match (header::arcount(head), rest) {
        (0, []) => Some(false),
        // RFC 6891 section 6.1.2: the root, the type, six octets, and the length of the data.
        (1, &[0, high, low, ..])
            if rest.len() >= OPT_LEN && u16::from_be_bytes([high, low]) == Type::OPT.0 =>
        {
            let data_len = usize::from(u16::from_be_bytes([rest[OPT_LEN - 2], rest[OPT_LEN - 1]]));
            (rest.len() == OPT_LEN + data_len).then_some(true)
        }
        _ => None,
    }
}
