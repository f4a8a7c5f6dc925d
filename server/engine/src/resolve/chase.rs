//! CNAME chase: a reply ends in an alias that the upstream did not follow, so its target is asked for (RFC 6147 section 5.1.5).

use crate::answer::builder::write_failure;
use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::client::chased::replies;
use crate::counters::Counter;
use crate::dns64::decision::Stage;
use crate::engine::Engine;
use crate::interface::Outbox;
use crate::limits::{CHAIN_OCTETS, HOPS};
use crate::trace::{Subject, TraceEvent};
use wire::{Message, Name, ede};

/// Text of the extended error for aliases that are a loop, or more than are followed.
pub(crate) const NO_END: &str = "too many aliases, or a loop of them";

/// Text of the extended error for an alias of a client whose network follows too many already.
const NO_ROOM: &str = "too many queries that follow aliases";

impl Engine {
    /// Asks for the target of the last CNAME in a reply, or answers SERVFAIL if the chain is too long or a loop, or if the client's network
    /// has too many chases.
    //= RFC 6147 section 5.1.5: requirement 10
    pub(crate) fn chase_cname(
        &mut self,
        pending: Index,
        message: &Message<'_>,
        end: Name<'_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        let before = replies(&self.clients.chases, self.clients.pending_queries[pending].chase);
        let comes_back = before.iter().any(|reply| {
            // The two callers of `CnameChase::advance` store parsed replies (below) and aliases (`special_use::alias`). One that
            // does not parse leads nowhere.
            Message::parse(reply).map_or(true, |earlier| earlier.question_name().eq_ignore_case(&end))
        });
        let octets = before.iter().map(Vec::len).sum::<usize>() + message.bytes().len();
        if comes_back || before.len() == HOPS || octets > CHAIN_OCTETS {
            return self.respond_endless(pending, NO_END, now, out);
        }
        let chase = match self.clients.pending_queries[pending].chase {
            NONE => self.clients.start_chase(pending),
            chase => Some(chase),
        };
        let Some(chase) = chase else {
            return self.respond_endless(pending, NO_ROOM, now, out);
        };
        let mut name = [0u8; 255];
        let len = end.write(&mut name);
        let chase = &mut self.clients.chases[chase];
        chase.advance(&name[..len], message.bytes().to_vec());
        out.trace(Subject::PendingQuery(pending), || TraceEvent::ChasesCname {
            reply: message,
            name: &chase.name,
        });
        // The bogus check and the early A question were about another name.
        self.clients.pending_queries[pending].bogus_recheck = false;
        let a_outbound_query =
            core::mem::replace(&mut self.clients.pending_queries[pending].a_outbound_query, NONE);
        if a_outbound_query != NONE {
            self.upstream.release_outbound_query(a_outbound_query);
        }
        self.counters.count(Counter::CnameHops);
        self.look_up(pending, now, out);
    }

    /// Answers a pending query whose aliases have no end that is followed with SERVFAIL, and frees it: an answer with aliases alone would say that
    /// there are no data. `reason`: text of the extended error.
    #[cold]
    pub(crate) fn respond_endless(
        &mut self,
        pending: Index,
        reason: &str,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        out.trace(Subject::PendingQuery(pending), || TraceEvent::ChaseEnds);
        if self.clients.pending_queries[pending].stage != Stage::Direct {
            self.counters.count(Counter::NotSynthesizedFailure);
        }
        self.respond_with(pending, now, out, |frame, params| {
            write_failure(frame, params, ede::OTHER, reason)
        });
    }
}
