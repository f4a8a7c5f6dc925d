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
use crate::trace::{Unreachable, Untrusted};
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
            if self.outbound_queries[index].is_current(failed.link, id) {
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
        let waits_for_stream = !lost.was_open && self.has_all_connections(lost.server);
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

    /// True if, after the failure of one server, there is another one that is alive and was not asked yet.
    pub(super) fn can_ask_another(&self, index: Index, server: u16) -> bool {
        let outbound = &self.outbound_queries[index];
        outbound.tries < self.parameters.tries
            && self.servers.group(outbound.forward_key()).iter().any(|&other| {
                other != server
                    && !self.servers.list[usize::from(other)].is_dead()
                    && !self.servers.list[usize::from(other)].breaker.is_failing()
                    && outbound.attempts().iter().all(|attempt| attempt.server != other)
            })
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
    use crate::upstream::in_flight::OutboundQueryState;
    use std::net::SocketAddr;

    /// A datapath that opens every link and sends nothing.
    struct Silent([u8; 512]);

    impl Outbox for Silent {
        fn answer_frame(&mut self, _: &Client, _: usize) -> Option<&mut [u8]> {
            None
        }

        fn send_answer(&mut self, _: &Client, _: usize) -> bool {
            false
        }

        fn query_frame(&mut self, _: Link) -> Option<&mut [u8]> {
            Some(&mut self.0)
        }

        fn send_query(&mut self, _: Link, _: usize) -> bool {
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
            validates: false,
        };
        let mut random = Random::new([1; 32]);
        let secret = ClientCookieSecret::draw(&mut random, Instant(0));
        Upstream::new(&config, parameters, outbound_queries, HashKey([3, 5]), secret, random)
    }

    fn open(upstream: &mut Upstream, counters: &mut Counters) -> Link {
        let cx = &mut Context { now: Instant(0), out: &mut Silent([0; 512]), counters };
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
            let cx = &mut Context { now: Instant(1), out: &mut Silent([0; 512]), counters: &mut counters };
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
