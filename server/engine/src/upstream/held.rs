//! Questions whose reply is being validated: they stay in the table, so that equal questions join them, but no reply and no timer reaches
//! them. A reply that turns out to be bogus is asked of another server.

use crate::base::slab::Index;
use crate::base::time::{Instant, Span};
use crate::context::Context;
use crate::interface::{Link, Outbox};
use crate::upstream::Upstream;
use crate::upstream::in_flight::OutboundQueryState;
use crate::upstream::links::Release;

/// Deadline of a question that is held: its validation ends long before, as the questions that it leads to have deadlines of their own.
const HELD: Span = Span::from_secs(3600);

impl Upstream {
    /// Holds a question whose reply has come, until its validation ends ([`Upstream::complete`]) or it is asked again.
    pub fn hold(&mut self, index: Index, now: Instant, out: &mut impl Outbox) {
        let Upstream { wheel, outbound_queries, .. } = self;
        wheel.cancel(&mut outbound_queries.slab, index);
        for place in 0..usize::from(self.outbound_queries[index].attempts_len) {
            // The attempts stay, as they say which servers were asked.
            let attempt = &mut self.outbound_queries[index].attempts[place];
            attempt.failed = true;
            let link = core::mem::replace(&mut attempt.link, Link::NOWHERE);
            if self.links.release(link) == Release::Close {
                self.close(link, out);
            }
        }
        let outbound = &mut self.outbound_queries[index];
        outbound.state = OutboundQueryState::Held;
        (outbound.stagger, outbound.repeat_at) = (None, None);
        outbound.deadline = now + HELD;
        if let Some(timer) = outbound.client_response_timer {
            self.set_client_response_timer_again(index, timer);
        }
    }

    /// Asks a question that is held again, of a server that was not asked yet. False: there is none, or the question has made all its
    /// attempts.
    pub fn ask_another(&mut self, index: Index, cx: &mut Context<'_, impl Outbox>) -> bool {
        let outbound = &self.outbound_queries[index];
        if !outbound.is_wanted()
            || outbound.tries >= self.parameters.tries
            || !self.has_untried(outbound)
            || self.servers.is_dead(outbound.forward_key())
        {
            return false;
        }
        self.outbound_queries[index].state = OutboundQueryState::Asked;
        self.send(index, cx);
        true
    }
}
