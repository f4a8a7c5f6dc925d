//! One attempt of a question: choose server, link, message ID and letter case, write the query, set its deadline.

use crate::base::slab::Index;
use crate::base::time::{Instant, Span};
use crate::context::Context;
use crate::counters::Counter;
use crate::interface::{Link, Outbox, Transport};
use crate::limits::ATTEMPTS;
use crate::message::cookie::{self, LONGEST};
use crate::message::question::{QueryFlags, Question};
use crate::trace::{Subject, TraceEvent};
use crate::upstream::Upstream;
use crate::upstream::dns0x20::{LOWER_CASE, mix_case};
use crate::upstream::in_flight::{Attempt, OutboundQuery, Wait};
use crate::upstream::links::Release;
use crate::upstream::query_form::{CookieUse, QueryForm};
use crate::upstream::reconnect::LostLink;
use crate::upstream::server::{QueryKind, Server};
use crate::upstream::verdict::Reason;
use wire::Type;
use wire::header::{self, Flags};

impl Upstream {
    /// Puts a question in flight and sends its first query. None: there is no room for a question.
    pub fn launch(&mut self, question: &Question<'_>, cx: &mut Context<'_, impl Outbox>) -> Option<Index> {
        let index = self.prepare(question)?;
        cx.out.trace(Subject::OutboundQuery(index), || TraceEvent::Launched);
        self.send(index, cx);
        Some(index)
    }

    /// Sends the next query of a question, to the server whose turn it is.
    pub fn send(&mut self, index: Index, cx: &mut Context<'_, impl Outbox>) {
        match self.next_server(index) {
            Some(server) => self.send_to(index, server, cx),
            // A group without servers: the question runs out of time at once.
            None => {
                cx.out.trace(Subject::OutboundQuery(index), || TraceEvent::SendFailed);
                self.outbound_queries[index].tries = u8::MAX;
                self.set_deadline(index, cx.now);
            }
        }
    }

    /// The server whose turn it is. None: the group has no server.
    pub(super) fn next_server(&mut self, index: Index) -> Option<u16> {
        let outbound = &self.outbound_queries[index];
        let tried =
            |number| outbound.attempts().iter().filter(|attempt| attempt.server == number).count() as u32;
        self.servers.choose(outbound.forward_key(), self.parameters.select, &mut self.random, tried)
    }

    /// Sends the query of the current attempt once more, to its server, in another form. This does not count as a further try.
    pub(super) fn send_again(
        &mut self,
        index: Index,
        server: u16,
        form: QueryForm,
        reason: Reason,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        let outbound = &mut self.outbound_queries[index];
        cx.counters.count(reason.counter());
        if outbound.form.subnet && !form.subnet {
            outbound.scope = 0;
            if reason != Reason::SubnetRefused {
                cx.counters.count(Counter::SubnetRefused);
            }
        }
        outbound.form = form;
        outbound.tries = outbound.tries.saturating_sub(1);
        let doubt = &mut outbound.doubt;
        if doubt.compares && doubt.server == server && !form.is_over_stream() {
            // What was agreed on asks for another form, whose replies are compared anew.
            doubt.agreeing = 0;
            return self.send_to_compare(index, server, cx);
        }
        self.send_to(index, server, cx);
    }

    /// Moves a question to TCP: a reply looks forged. Replies over UDP to what was sent until now are not believed any more; `suspicion.rs`
    /// has the way back.
    pub(super) fn move_to_tcp(&mut self, index: Index, server: u16, cx: &mut Context<'_, impl Outbox>) {
        let form = QueryForm { transport: Transport::Tcp, ..self.outbound_queries[index].form };
        self.send_again(index, server, form, Reason::Suspicion, cx);
    }

    /// Sends a query whose reply is compared (`suspicion.rs`). It has a socket of its own: the next query of anyone opens another one.
    pub(super) fn send_to_compare(&mut self, index: Index, server: u16, cx: &mut Context<'_, impl Outbox>) {
        let outbound = &mut self.outbound_queries[index];
        outbound.doubt.begin_comparison(outbound.attempts_len);
        self.retire_socket(server, cx.out);
        self.send_to(index, server, cx);
        self.retire_socket(server, cx.out);
    }

    /// Sends a query of a question to one server.
    pub(super) fn send_to(&mut self, index: Index, server: u16, cx: &mut Context<'_, impl Outbox>) {
        let form = &mut self.outbound_queries[index].form;
        let transport = self.servers.list[usize::from(server)].transport(form.transport);
        form.transport = transport;
        if self.transmit(index, server, transport, cx) {
            self.begin_wait(index, server, transport, true, cx.now);
        } else {
            self.on_unsent(index, server, transport, cx);
        }
    }

    /// Handles a query that could not be sent. If its connection was refused at once, the question may wait for another one.
    #[cold]
    #[inline(never)]
    fn on_unsent(
        &mut self,
        index: Index,
        server: u16,
        transport: Transport,
        cx: &mut Context<'_, impl Outbox>,
    ) {
        let waits_for_stream = transport.is_stream() && self.has_all_connections(server);
        if !waits_for_stream {
            cx.counters.count(Counter::DroppedQuestion);
        }
        cx.out.trace(Subject::OutboundQuery(index), || TraceEvent::SendFailed);
        self.record_send_failure(index, server, cx.now);
        self.begin_wait(index, server, transport, false, cx.now);
        if transport.is_stream() {
            let refused = LostLink { server, transport, was_open: false, was_active: false };
            let _ = self.reconnect(index, &refused, cx);
        }
    }

    /// Begins the wait for the reply to an attempt. `sent`: its query could be sent.
    #[inline(always)]
    fn begin_wait(&mut self, index: Index, server: u16, transport: Transport, sent: bool, now: Instant) {
        let outbound = &mut self.outbound_queries[index];
        outbound.wait = if sent { Wait::Reply } else { Wait::Unsent };
        outbound.next_is_hedge = false;
        if outbound.tries == 0 {
            self.budget.earn();
        }
        outbound.tries = outbound.tries.saturating_add(1);
        let wait = self.wait_for_reply(index, server, transport, now);
        self.set_deadline(index, now + wait);
    }

    /// Timeout of the current attempt, whose query was just sent or could not be sent.
    #[inline(always)]
    fn wait_for_reply(&self, index: Index, server: u16, transport: Transport, now: Instant) -> Span {
        let outbound = &self.outbound_queries[index];
        let may_restart = transport.is_stream() && !self.was_down_before(server, now);
        let state = &self.servers.list[server as usize];
        // No query was sent, so there is no reply to wait for.
        let is_hopeless = || outbound.attempts().iter().all(|attempt| attempt.link == Link::NOWHERE);
        let ceiling = self.parameters.timeout;
        let is_probe = outbound.query_flags.has(QueryFlags::PROBE);
        let last = outbound.tries >= self.parameters.tries || is_probe;
        // No server is alive: a second query is no use, and would add to a storm when the servers recover.
        let all_dead = || state.is_dead() && self.servers.is_dead(outbound.forward_key());
        let at_once =
            outbound.wait == Wait::Unsent && if last { is_hopeless() } else { self.has_untried(outbound) };
        match transport {
            _ if at_once => Span::ZERO,
            _ if is_probe => state.breaker.probe_wait(ceiling),
            // After a restart, the first reply may take as long as any: over TLS, it comes behind a handshake.
            _ if all_dead() && outbound.lost_at.is_none() && !may_restart => state.last_wait(ceiling),
            // One and a half times the ceiling since the first attempt.
            Transport::Udp if last && outbound.hedge_deferred => {
                let since_first = outbound.attempts().first().map_or(Span::ZERO, |first| now - first.sent);
                Span((ceiling.0 / 2 * 3).saturating_sub(since_first.0).clamp(ceiling.0 / 2, ceiling.0))
            }
            // The last attempt gets the whole ceiling; over TCP the kernel retransmits what is lost.
            Transport::Udp if !last => state.wait(u32::from(outbound.tries - 1), ceiling),
            _ => ceiling,
        }
    }

    /// Records a query that could not be sent as a failed attempt of this server, so that another one is asked next.
    fn record_send_failure(&mut self, index: Index, server: u16, now: Instant) {
        let outbound = &mut self.outbound_queries[index];
        if let Some(place) = outbound.attempts.get_mut(outbound.attempts_len as usize) {
            *place = Attempt { server, sent: now, failed: true, ..Attempt::NONE };
            outbound.attempts_len += 1;
        }
    }

    /// True if the group has a server that was not asked this question yet.
    pub(super) fn has_untried(&self, outbound: &OutboundQuery) -> bool {
        let tried = |number: u16| outbound.attempts().iter().any(|attempt| attempt.server == number);
        self.servers.group(outbound.forward_key()).iter().any(|&number| !tried(number))
    }

    /// Sends a query of a question to a server: every query leaves here. Returns false if it could not be sent.
    #[inline]
    pub(super) fn transmit(
        &mut self,
        index: Index,
        server: u16,
        transport: Transport,
        cx: &mut Context<'_, impl Outbox>,
    ) -> bool {
        let link = self.link_to(server, transport, cx);
        link.is_some_and(|link| self.send_over(index, link, server, cx))
    }

    /// Writes a query of a question into a frame of the link. Returns false if the datapath did not take it.
    fn send_over(
        &mut self,
        index: Index,
        link: Link,
        server: u16,
        cx: &mut Context<'_, impl Outbox>,
    ) -> bool {
        if self.outbound_queries[index].attempts_len as usize == ATTEMPTS {
            return false;
        }
        let edns = !self.omits_edns(index, server, cx.now);
        if self.links.has_many_gone(link) {
            let Upstream { links, outbound_queries, .. } = self;
            links.forget_gone(link, |id, index| outbound_queries[index].has_asked(link, id));
        }
        let id = self.links.issue(link, index, cx.now, &mut self.random);
        let outbound = &mut self.outbound_queries[index];
        let subnet = outbound.subnet.is_some() && outbound.form.subnet && edns;
        let room = &mut [0; LONGEST];
        self.servers.list[server as usize].breaker.on_query(cx.now);
        let cookies = &self.servers.list[server as usize].cookies;
        let cookie = match self.parameters.sends_cookies && edns {
            true => cookies.write(self.links.cookie(link), outbound.form.cookie, cx.now, room),
            false => None,
        };
        let transport = self.links.transport(link);
        let with_case = self.parameters.mix_case
            && transport == Transport::Udp
            && !self.servers.list[server as usize].letter_case.is_lower(cx.now);
        let (own_size, validates) = (self.parameters.udp_size, self.parameters.validates);
        let opt = edns.then_some(QueryOpt { own_size, subnet, cookie, validates });
        cx.out.trace(Subject::OutboundQuery(index), || TraceEvent::Sends);
        let taken = match cx.out.query_frame(link) {
            Some(frame) => {
                let length = write_query(outbound, id, with_case, opt, frame);
                if validates {
                    let flags = header::flags(frame).without(Flags::AD);
                    let checks = self.with_checking.contains(&(index, outbound.hash));
                    header::set_flags(
                        frame,
                        if checks { flags.without(Flags::CD) } else { flags.with(Flags::CD) },
                    );
                }
                cx.out.send_query(link, length)
            }
            None => false,
        };
        if !taken {
            if self.links.release(link) == Release::Close {
                self.close(link, cx.out);
            }
            return false;
        }
        outbound.attempts[outbound.attempts_len as usize] = Attempt {
            link,
            id,
            server,
            sent: cx.now,
            failed: false,
            form: QueryForm {
                transport,
                edns,
                cookie: if cookie.is_some() { CookieUse::Sent } else { CookieUse::Omitted },
                subnet,
            },
            with_case,
            is_hedge: outbound.next_is_hedge,
        };
        outbound.attempts_len += 1;
        self.servers.list[server as usize].asked[query_kind(outbound) as usize] += 1;
        true
    }

    /// True if the next query of a question to a server goes without an OPT record (`edns_support.rs`).
    #[inline(always)]
    fn omits_edns(&self, index: Index, server: u16, now: Instant) -> bool {
        let outbound = &self.outbound_queries[index];
        let Server { edns, cookies, .. } = &self.servers.list[usize::from(server)];
        // Leaving out OPT leaves out the cookie, so never do that over UDP for a server known to support cookies.
        if cookies.is_expected() && !outbound.form.is_over_stream() {
            return false;
        }
        // One server's trouble with EDNS does not take EDNS from another one.
        if edns.is_suspended(now) || !outbound.form.edns && !edns.is_known(now) {
            return true;
        }
        // A probe needs any reply, and servers of all kinds reply to the plainest query.
        let is_last = outbound.tries > 0 && outbound.tries + 1 >= self.parameters.tries;
        let was_silent = |attempt: &Attempt| {
            attempt.server == server
                && attempt.form.edns
                && !attempt.failed
                && now - attempt.sent > Span::ZERO
        };
        !edns.is_known(now)
            && (outbound.query_flags.has(QueryFlags::PROBE)
                || is_last && !outbound.form.is_over_stream() && outbound.attempts().iter().any(was_silent))
    }
}

/// OPT record of a query to an upstream.
struct QueryOpt<'q> {
    /// Octets that the sender accepts over UDP.
    own_size: u16,
    /// True if the client subnet of the question is sent.
    subnet: bool,
    /// DNS cookie, if one is sent.
    cookie: Option<&'q [u8]>,
    /// True if DO is set, whatever clients sent.
    validates: bool,
}

/// Writes a query, with the OPT record `opt` if there is one. Returns its octets.
#[inline(always)]
fn write_query(
    outbound: &OutboundQuery,
    id: u16,
    with_case: bool,
    opt: Option<QueryOpt<'_>>,
    frame: &mut [u8],
) -> usize {
    let question_end = write_question(outbound, id, with_case, frame);
    let Some(QueryOpt { own_size, subnet, cookie, validates }) = opt else {
        header::set_arcount(frame, 0);
        return question_end;
    };
    let dnssec_ok = outbound.query_flags.has(QueryFlags::DO);
    let opt = wire::write_opt(&mut frame[question_end..], own_size, 0, 0, dnssec_ok || validates, None);
    // At most 12 (header) + 259 (question) + 11 (OPT) + 24 (client subnet) + 44 (cookie) = 350 octets; `Outbox::ask` offers 512.
    let octets = opt.expect("512 octets hold a question and an OPT record");
    let opt = &mut frame[question_end..];
    let octets = match &outbound.subnet {
        // RFC 7871 section 6: the scope is 0 in queries.
        Some(own) if subnet => own.append(0, opt, octets),
        _ => octets,
    };
    question_end + cookie.map_or(octets, |cookie| cookie::append(cookie, opt, octets))
}

/// The kind under which a query is counted.
fn query_kind(outbound: &OutboundQuery) -> QueryKind {
    match (outbound.query_flags.has(QueryFlags::PROBE), outbound.qtype) {
        (true, _) => QueryKind::Probe,
        (false, Type::AAAA) => QueryKind::Aaaa,
        (false, Type::A) => QueryKind::A,
        _ => QueryKind::Other,
    }
}

/// Writes header and question of a query; the header counts an OPT record. `with_case`: the name has the outbound query's letter case, else it
/// is in lower case. Returns where the question ends.
fn write_question(outbound: &OutboundQuery, id: u16, with_case: bool, frame: &mut [u8]) -> usize {
    let name_len = outbound.name_len as usize;
    let question_end = 12 + name_len + 4;
    let mut flags = Flags(0);
    for (bit, flag) in [(QueryFlags::RD, Flags::RD), (QueryFlags::CD, Flags::CD), (QueryFlags::AD, Flags::AD)]
    {
        if outbound.query_flags.has(bit) {
            flags = flags.with(flag);
        }
    }
    frame[..12].copy_from_slice(&[0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1]);
    header::set_id(frame, id);
    header::set_flags(frame, flags);
    let name = &mut frame[12..12 + name_len];
    match with_case {
        true => name.copy_from_slice(outbound.name()),
        false => mix_case(outbound.name(), LOWER_CASE, name),
    }
    frame[12 + name_len..14 + name_len].copy_from_slice(&outbound.qtype.0.to_be_bytes());
    frame[14 + name_len..question_end].copy_from_slice(&outbound.class.0.to_be_bytes());
    question_end
}
