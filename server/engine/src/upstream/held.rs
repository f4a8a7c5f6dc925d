//! Questions whose reply is being validated: they stay in the table, so that equal questions join them, but no reply and no timer reaches
//! them. A reply that turns out to be bogus is asked of another server, and at last once with CD clear: an upstream that validates may have
//! cached it because of our CD, and fetches it again then (RFC 6840 appendix B).

use crate::base::slab::Index;
use crate::base::time::{Instant, Span};
use crate::context::Context;
use crate::interface::{Link, Outbox};
use crate::limits::ATTEMPTS;
use crate::message::question::Question;
use crate::upstream::Upstream;
use crate::upstream::in_flight::{OutboundQueryState, Wait};
use crate::upstream::links::Release;
use crate::upstream::signatures::SignatureState;

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

    /// Asks a question that is held once more, with CD clear. False: it was asked so already, or nobody can be asked.
    pub fn ask_with_checking(&mut self, index: Index, cx: &mut Context<'_, impl Outbox>) -> bool {
        let outbound = &self.outbound_queries[index];
        let key = (index, outbound.hash);
        if !outbound.is_wanted()
            || usize::from(outbound.attempts_len) == ATTEMPTS
            || self.servers.is_dead(outbound.forward_key())
            || self.with_checking.contains(&key)
        {
            return false;
        }
        // Questions whose clients gave way to others end unnoticed.
        let Upstream { outbound_queries, with_checking, .. } = self;
        with_checking.retain(|&(index, hash)| {
            let outbound = &outbound_queries[index];
            outbound.hash == hash && outbound.state != OutboundQueryState::Free
        });
        with_checking.push(key);
        self.outbound_queries[index].state = OutboundQueryState::Asked;
        self.send(index, cx);
        true
    }

    /// Notes that the validation of a question's replies is over.
    pub fn end_checking(&mut self, index: Index) {
        self.with_checking.retain(|&(other, _)| other != index);
    }

    /// Forgets what is known of signatures, as they are looked at under other settings.
    pub fn forget_signatures(&mut self) {
        self.with_checking.clear();
        for server in &mut self.servers.list {
            server.signatures = SignatureState::default();
        }
    }

    /// Server that has sent the reply with this message ID to a question, if its query asked for signatures: one from before a reload may not
    /// have.
    pub fn signatory(&self, index: Index, id: u16) -> Option<u16> {
        if self.outbound_queries.predates_flush(index) {
            return None;
        }
        let attempts = self.outbound_queries[index].attempts();
        attempts.iter().rfind(|attempt| attempt.id == id && attempt.form.edns).map(|attempt| attempt.server)
    }

    /// Puts a question in the table that is sent to nobody before its time has come: then it fails without an attempt. None: there is no
    /// room for it.
    pub fn ask_later(&mut self, question: &Question<'_>, at: Instant) -> Option<Index> {
        let index = self.prepare(question)?;
        self.outbound_queries[index].wait = Wait::Reconnect;
        self.set_deadline(index, at);
        Some(index)
    }

    /// Sends the query of a question to one server, and to no other.
    pub fn ask_server(&mut self, index: Index, server: u16, cx: &mut Context<'_, impl Outbox>) {
        self.send_to(index, server, cx);
    }
}
