//! CNAME chase: a reply ends in an alias that the upstream did not follow, so its target is asked for (RFC 6147 section 5.1.5).

use crate::base::slab::{Index, NONE};
use crate::base::time::Instant;
use crate::client::chased::replies;
use crate::counters::Counter;
use crate::engine::Engine;
use crate::interface::Outbox;
use crate::limits::{CHAIN_OCTETS, HOPS};
use crate::trace::{Subject, TraceEvent};
use wire::{Message, Name};

impl Engine {
    /// Asks for the target of the last CNAME in a reply, or answers SERVFAIL if the chain is too long or if the client's network has too
    /// many chases. Returns false if the chain is a loop.
    //= RFC 6147 section 5.1.5: requirement 10
    pub(crate) fn chase_cname(
        &mut self,
        waiter: Index,
        message: &Message<'_>,
        end: Name<'_>,
        now: Instant,
        out: &mut impl Outbox,
    ) -> bool {
        let before = replies(&self.clients.chases, self.clients.waiters[waiter].chase);
        let comes_back = before.iter().any(|reply| {
            // The two callers of `CnameChase::advance` store parsed replies (below) and aliases (`special_use::alias`).
            let earlier = Message::parse(reply).expect("it was parsed before it was stored");
            earlier.question_name().eq_ignore_case(&end)
        });
        if comes_back {
            out.trace(Subject::Waiter(waiter), || TraceEvent::ChaseEnds);
            return false;
        }
        let octets = before.iter().map(Vec::len).sum::<usize>() + message.bytes().len();
        let fits = before.len() < HOPS && octets <= CHAIN_OCTETS;
        let chase = match self.clients.waiters[waiter].chase {
            _ if !fits => None,
            NONE => self.clients.start_chase(waiter),
            chase => Some(chase),
        };
        let Some(chase) = chase else {
            out.trace(Subject::Waiter(waiter), || TraceEvent::ChaseEnds);
            self.respond_too_long(waiter, now, out);
            return true;
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
        true
    }
}
