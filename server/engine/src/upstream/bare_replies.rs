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
use crate::interface::{Link, Outbox};
use crate::trace::{Subject, TraceEvent};
use crate::upstream::Upstream;
use crate::upstream::in_flight::OutboundQueryState;
use crate::upstream::judge::judge_bare;
use crate::upstream::receive::Received;
use crate::upstream::verdict::{Mismatch, Reason, Verdict};
use wire::header::{self, Flags};
use wire::{OPT_LEN, Type};

impl Upstream {
    /// Handles a message that cannot be parsed, from a link that may carry replies. Only a reply without a question and without answers
    /// has an effect. Any other one is neither believed nor taken for a failure (TuDoor); the wait goes on.
    #[cold]
    #[inline(never)]
    pub fn receive_bare(&mut self, via: Link, bytes: &[u8], cx: &mut Context<'_, impl Outbox>) -> Received {
        let has_opt = bare_opt(bytes);
        let query = has_opt.and_then(|_| self.query_with_id(via, header::id(bytes)));
        let (Some(has_opt), Some((index, place))) = (has_opt, query) else {
            cx.counters.count(Mismatch::Malformed.counter());
            return Received::Nothing;
        };
        let flags = header::flags(bytes);
        let verdict = judge_bare(&self.exchange(index, place, cx.now), place, flags, has_opt);
        if let Verdict::Drop(mismatch) = verdict {
            cx.counters.count(mismatch.counter());
            return Received::Nothing;
        }
        cx.out.trace(Subject::OutboundQuery(index), || {
            TraceEvent::RepliedBare(flags.rcode(), flags.contains(Flags::TC))
        });
        let attempt = self.outbound_queries[index].attempts[place];
        if attempt.form.is_over_stream() {
            if self.servers.list[usize::from(attempt.server)].on_reply(cx.now - attempt.sent) {
                self.servers.start_slow_start(attempt.server, cx.now);
            }
            return self.act(index, place, verdict, cx);
        }
        if let Verdict::Retry(_, Reason::Truncated) = verdict {
            // It needs no more than an ID to be forged, so there is a way back.
            self.outbound_queries[index].doubt.raise(attempt.server);
        }
        let received = self.act(index, place, verdict, cx);
        // Over UDP it is no failure of its server.
        self.outbound_queries[index].attempts[place].failed = attempt.failed;
        received
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
