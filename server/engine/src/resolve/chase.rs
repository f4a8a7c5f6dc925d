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
        waiter: Index,
        message: &Message<'_>,
        end: Name<'_>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        let before = replies(&self.clients.chases, self.clients.waiters[waiter].chase);
        let comes_back = before.iter().any(|reply| {
            // The two callers of `CnameChase::advance` store parsed replies (below) and aliases (`special_use::alias`). One that
            // does not parse leads nowhere.
            Message::parse(reply).map_or(true, |earlier| earlier.question_name().eq_ignore_case(&end))
        });
        let octets = before.iter().map(Vec::len).sum::<usize>() + message.bytes().len();
        if comes_back || before.len() == HOPS || octets > CHAIN_OCTETS {
            return self.respond_endless(waiter, NO_END, now, out);
        }
        let chase = match self.clients.waiters[waiter].chase {
            NONE => self.clients.start_chase(waiter),
            chase => Some(chase),
        };
        let Some(chase) = chase else {
            return self.respond_endless(waiter, NO_ROOM, now, out);
        };
        let mut name = [0u8; 255];
        let len = end.write(&mut name);
        let chase = &mut self.clients.chases[chase];
        chase.advance(&name[..len], message.bytes().to_vec());
        out.trace(Subject::Waiter(waiter), || TraceEvent::ChasesCname { reply: message, name: &chase.name });
        // The bogus check and the early A question were about another name.
        self.clients.waiters[waiter].bogus_recheck = false;
        let a_flight = core::mem::replace(&mut self.clients.waiters[waiter].a_flight, NONE);
        if a_flight != NONE {
            self.upstream.release_flight(a_flight);
        }
        self.counters.count(Counter::CnameHops);
        self.look_up(waiter, now, out);
    }

    /// Answers a waiter whose aliases have no end that is followed with SERVFAIL, and frees it: an answer with aliases alone would say that
    /// there are no data. `reason`: text of the extended error.
    #[cold]
    pub(crate) fn respond_endless(
        &mut self,
        waiter: Index,
        reason: &str,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        out.trace(Subject::Waiter(waiter), || TraceEvent::ChaseEnds);
        if self.clients.waiters[waiter].stage != Stage::Direct {
            self.counters.count(Counter::NotSynthesizedFailure);
        }
        self.respond_with(waiter, now, out, |frame, requestor| {
            write_failure(frame, requestor, ede::OTHER, reason)
        });
    }
}
