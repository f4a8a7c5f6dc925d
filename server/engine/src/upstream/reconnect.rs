//! Lost links: the questions on a TCP or TLS connection that ends go over another one (RFC 7766 section 6.2.4), and those on a UDP
//! link whose port is refused are asked again.
//!
//! An upstream may close a connection with questions on it: it restarts, or it has its own limits. That is no failure of the
//! questions. They are asked again at once, without the loss of an attempt. If the upstream accepts no connection because it has not
//! started again yet, they wait, for [`RECONNECT_PATIENCE`] at most; so does a question that has lost [`RECONNECTS_AT_ONCE`] connections.
//!
//! Over UDP this holds for the only upstream of a name. The circuit breaker opens with the second refusal; from then on its probes
//! alone ask the upstream, and the questions go out when it has replied. What was asked before may still be answered, as anyone can
//! forge a refusal.

use crate::base::slab::Index;
use crate::base::time::Instant;
use crate::context::Context;
use crate::counters::Counter;
use crate::interface::{Link, Outbox, Transport};
use crate::limits::{ATTEMPTS, RECONNECT_PATIENCE, RECONNECT_PAUSE, RECONNECTS_AT_ONCE, STREAM_PAUSE};
use crate::message::question::{ForwardKey, QueryFlags};
use crate::trace::Untrusted;
use crate::upstream::Upstream;
use crate::upstream::in_flight::{Attempt, Wait};
use crate::upstream::retry::NextAttempt;

/// A link that failed, or could not be opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LostLink {
    /// Number of its server.
    pub server: u16,
    /// Its transport.
    pub transport: Transport,
    /// It could be opened. A connection may be refused after that.
    pub was_open: bool,
    /// It is a connection that has brought replies.
    pub was_active: bool,
}

/// Next step of a question whose connection is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reconnect {
    /// The caller makes the next attempt now.
    Now,
    /// The question waits for its timer, then it is asked again.
    Later,
}

impl Upstream {
    /// Decides when a question whose current attempt went over a failed link is asked again. The try that was lost does not count,
    /// unless another server can be asked.
    pub fn reconnect(
        &mut self,
        index: Index,
        lost: &LostLink,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Reconnect {
        let outbound = &self.outbound_queries[index];
        let is_udp = lost.transport == Transport::Udp;
        let is_kept = match is_udp {
            // If several servers refuse at once, the network is at fault, and their questions fail soon.
            true => {
                self.servers.group(outbound.forward_key()).len() == 1 && outbound.attempts().len() < ATTEMPTS
            }
            false => self.is_only_transport(lost),
        } && !outbound.query_flags.has(QueryFlags::PROBE)
            && !self.has_another(index, lost);
        let lost_at = outbound.lost_at.unwrap_or(cx.now);
        if !is_kept || cx.now - lost_at >= RECONNECT_PATIENCE || self.was_down_before(lost.server, cx.now) {
            return Reconnect::Now;
        }
        let waits_for_stream = !lost.was_open && self.has_all_streams(lost.server);
        let pause = if waits_for_stream { STREAM_PAUSE } else { RECONNECT_PAUSE };
        let Upstream { outbound_queries, links, .. } = self;
        let outbound = &mut outbound_queries[index];
        let is_first = outbound.lost_at.is_none() && lost.was_open;
        outbound.lost_at = Some(lost_at);
        // The timer must not blame the server for a pause.
        outbound.wait = Wait::Reconnect;
        if !waits_for_stream && !is_udp {
            cx.counters.count(Counter::StreamRetries);
        }
        // The connection is closed, so no reply to this attempt can come any more.
        if !is_udp
            && outbound
                .attempts()
                .last()
                .is_some_and(|last| last.server == lost.server && !links.is_open(last.link))
        {
            outbound.attempts_len -= 1;
        }
        outbound.tries = outbound.tries.saturating_sub(1);
        outbound.lost_connections = outbound.lost_connections.saturating_add(u8::from(lost.was_active));
        // An upstream that answers something and closes, again and again, must not have a question asked again at the rate of its choice.
        if is_first || lost.was_active && outbound.lost_connections <= RECONNECTS_AT_ONCE {
            return Reconnect::Now;
        }
        self.set_deadline(index, cx.now + pause);
        Reconnect::Later
    }

    /// The next step of a question whose upstream refused its queries over UDP, and is dead: it waits for a reply to a probe, or has
    /// waited too long. None: it can be asked again.
    pub(super) fn await_restart(&mut self, index: Index, now: Instant) -> Option<NextAttempt> {
        let outbound = &self.outbound_queries[index];
        let &Attempt { link, server, .. } = outbound.attempts().last()?;
        let lost_at = outbound.lost_at?;
        let is_udp = link != Link::NOWHERE && self.links.transport(link) == Transport::Udp;
        if !is_udp || !self.servers.is_dead(outbound.forward_key()) {
            return None;
        }
        if now - lost_at >= RECONNECT_PATIENCE || self.was_down_before(server, now) {
            return Some(NextAttempt::Failed);
        }
        self.set_deadline(index, now + RECONNECT_PAUSE);
        Some(NextAttempt::Wait)
    }

    /// Records that the latest connection to a server could not be authenticated.
    #[cold]
    pub fn distrust(&mut self, server: u16, reason: Untrusted) {
        self.servers.list[usize::from(server)].untrusted = Some(reason);
    }

    /// Reason why a server for this question could not be authenticated; none if all of them could be, or are not asked over TLS.
    #[cold]
    pub fn untrusted(&self, question: ForwardKey<'_>) -> Option<Untrusted> {
        let Upstream { servers, .. } = self;
        servers.group(question).iter().find_map(|&server| servers.list[usize::from(server)].untrusted)
    }

    /// True if the question of a failed link can go to another server, which is alive and was not asked yet.
    pub fn has_another(&self, index: Index, lost: &LostLink) -> bool {
        self.can_ask_another(index, lost.server)
    }

    /// True if the server of a failed link is not asked over UDP as well.
    fn is_only_transport(&self, lost: &LostLink) -> bool {
        lost.transport == Transport::Tls || self.parameters.transport == Transport::Tcp
    }

    /// True if a server has been dead for longer than the questions wait for a restart.
    pub(super) fn was_down_before(&self, server: u16, now: Instant) -> bool {
        let server = &self.servers.list[usize::from(server)];
        server.is_dead() && now - server.breaker.opened() >= RECONNECT_PATIENCE
    }
}
