//! Asked upstream: launching a question, choosing server, link, ID and letter case, and what happens when a try is
//! not answered in time.

use crate::base::slab::Index;
use crate::base::time::{Instant, Span};
use crate::counters::Counter;
use crate::engine::Engine;
use crate::interface::{Link, Outbox, Transport};
use crate::limits::ATTEMPTS;
use crate::message::cookie::{self, LONGEST};
use crate::message::question::{QueryFlags, Question};
use crate::upstream::in_flight::{Attempt, prepare};
use crate::upstream::links::Release;
use crate::upstream::server::{QueryKind, Server};
use wire::Type;
use wire::header::{self, Flags};

impl Engine {
    /// A new flight for a question, asked at once. None: all room is taken.
    pub(crate) fn launch(
        &mut self,
        question: &Question<'_>,
        now: Instant,
        out: &mut impl Outbox,
    ) -> Option<Index> {
        let index = prepare(&mut self.flights, &mut self.random, &self.settings, &self.servers, question)?;
        self.ask(index, now, out);
        Some(index)
    }

    /// The next try of a flight.
    pub(crate) fn ask(&mut self, index: Index, now: Instant, out: &mut impl Outbox) {
        let flight = &self.flights.slab[index];
        let tried =
            |number| flight.attempts().iter().filter(|attempt| attempt.server == number).count() as u32;
        let chosen = self.servers.choose(flight.name(), &self.settings, &mut self.random, tried);
        match chosen {
            Some(server) => self.ask_server(index, server, now, out),
            // A group without servers: the question runs out of time at once.
            None => {
                self.flights.slab[index].tries = u8::MAX;
                self.set_deadline(index, now);
            }
        }
    }

    /// Asks one server.
    pub(crate) fn ask_server(&mut self, index: Index, server: u16, now: Instant, out: &mut impl Outbox) {
        let transport = if self.flights.slab[index].over_tcp { Transport::Tcp } else { Transport::Udp };
        let sent = self
            .link_to(server, transport, now, out)
            .is_some_and(|link| self.ask_over(index, link, server, now, out));
        if !sent {
            self.counters.count(Counter::DroppedQuestion);
            self.note_unsent(index, server, now);
        }
        let flight = &mut self.flights.slab[index];
        flight.unsent = !sent;
        flight.next_is_hedge = false;
        flight.extended_wait = false;
        if flight.tries == 0 {
            self.budget.earn();
        }
        flight.tries = flight.tries.saturating_add(1);
        let flight = &self.flights.slab[index];
        // There is nothing to wait for but the replies to earlier tries.
        let is_hopeless = || flight.attempts().iter().all(|attempt| attempt.link == Link::NOWHERE);
        let ceiling = self.settings.upstream.timeout;
        let last = flight.tries >= self.settings.upstream.tries || flight.query_flags.has(QueryFlags::PROBE);
        // No server lives: more than one question is no use, and would be a storm at the moment of their return.
        let is_given_up = self.servers.list[server as usize].is_dead() && self.servers.is_dead(flight.name());
        let at_once = !sent && if last { is_hopeless() } else { self.has_untried(index) };
        let wait = match transport {
            _ if at_once => Span::ZERO,
            _ if flight.query_flags.has(QueryFlags::PROBE) => {
                self.servers.list[server as usize].breaker.probe_wait(ceiling)
            }
            _ if is_given_up => self.servers.list[server as usize].last_wait(ceiling),
            // One and a half times the ceiling since the first try.
            Transport::Udp if last && flight.hedge_deferred => {
                let since_first = flight.attempts().first().map_or(Span::ZERO, |first| now - first.sent);
                Span((ceiling.0 / 2 * 3).saturating_sub(since_first.0).clamp(ceiling.0 / 2, ceiling.0))
            }
            // The last try gets the whole ceiling; over TCP the kernel repeats what is lost.
            Transport::Udp if !last => {
                self.servers.list[server as usize].wait(u32::from(flight.tries - 1), ceiling)
            }
            _ => ceiling,
        };
        self.set_deadline(index, now + wait);
    }

    /// A question could not be sent: it counts as a try of this server, so that another one is asked next.
    fn note_unsent(&mut self, index: Index, server: u16, now: Instant) {
        let flight = &mut self.flights.slab[index];
        if let Some(place) = flight.attempts.get_mut(flight.attempts_len as usize) {
            *place = Attempt { server, sent: now, failed: true, ..Attempt::NONE };
            flight.attempts_len += 1;
        }
    }

    /// Whether a server of the question's group was not asked yet.
    fn has_untried(&self, index: Index) -> bool {
        let flight = &self.flights.slab[index];
        let tried = |number: u16| flight.attempts().iter().any(|attempt| attempt.server == number);
        self.servers.group(flight.name()).iter().any(|&number| !tried(number))
    }

    /// Writes the question into a frame of the link.
    fn ask_over(
        &mut self,
        index: Index,
        link: Link,
        server: u16,
        now: Instant,
        out: &mut impl Outbox,
    ) -> bool {
        if self.flights.slab[index].attempts_len as usize == ATTEMPTS {
            return false;
        }
        let with_opt = !self.omits_edns(index, server, now);
        let id = self.links.issue(link, index, &mut self.random);
        let flight = &mut self.flights.slab[index];
        let own_size = self.settings.udp_size;
        let with_subnet = flight.subnet.is_some() && !flight.without_subnet && with_opt;
        let room = &mut [0; LONGEST];
        self.servers.list[server as usize].breaker.on_query(now);
        let cookie_state = &self.servers.list[server as usize].cookie_state;
        let cookie = match self.settings.cookies.enabled && with_opt {
            true => cookie_state.write(self.links.cookie(link), flight.without_cookie, now, room),
            false => None,
        };
        let taken = out.ask(link, |frame| {
            let name_len = flight.name_len as usize;
            let question_end = 12 + name_len + 4;
            let mut flags = Flags(0);
            for (wish, flag) in
                [(QueryFlags::RD, Flags::RD), (QueryFlags::CD, Flags::CD), (QueryFlags::AD, Flags::AD)]
            {
                if flight.query_flags.has(wish) {
                    flags = flags.with(flag);
                }
            }
            frame[..12].copy_from_slice(&[0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1]);
            header::set_id(frame, id);
            header::set_flags(frame, flags);
            frame[12..12 + name_len].copy_from_slice(flight.name());
            frame[12 + name_len..14 + name_len].copy_from_slice(&flight.qtype.0.to_be_bytes());
            frame[14 + name_len..question_end].copy_from_slice(&flight.class.0.to_be_bytes());
            if !with_opt {
                header::set_arcount(frame, 0);
                return question_end;
            }
            let dnssec_ok = flight.query_flags.has(QueryFlags::DO);
            let opt = wire::write_opt(&mut frame[question_end..], own_size, 0, 0, dnssec_ok, None);
            let octets = opt.expect("512 octets hold a question and an OPT record");
            let opt = &mut frame[question_end..];
            let octets = match &flight.subnet {
                // RFC 7871 section 6: the scope is 0 in questions.
                Some(subnet) if with_subnet => subnet.append(0, opt, octets),
                _ => octets,
            };
            question_end + cookie.map_or(octets, |cookie| cookie::append(cookie, opt, octets))
        });
        if !taken {
            if self.links.release(link) == Release::Close {
                self.close(link, out);
            }
            return false;
        }
        flight.attempts[flight.attempts_len as usize] = Attempt {
            link,
            id,
            server,
            sent: now,
            failed: false,
            with_subnet,
            with_cookie: cookie.is_some(),
            with_opt,
            is_hedge: flight.next_is_hedge,
        };
        flight.attempts_len += 1;
        let kind = match (flight.query_flags.has(QueryFlags::PROBE), flight.qtype) {
            (true, _) => QueryKind::Probe,
            (false, Type::AAAA) => QueryKind::Aaaa,
            (false, Type::A) => QueryKind::A,
            _ => QueryKind::Other,
        };
        self.servers.list[server as usize].asked[kind as usize] += 1;
        true
    }

    /// The link that the next question to a server takes; a new one on a new random port when the old one has
    /// carried or lived enough.
    fn link_to(
        &mut self,
        server: u16,
        transport: Transport,
        now: Instant,
        out: &mut impl Outbox,
    ) -> Option<Link> {
        let current = self.servers.list[server as usize].current[transport as usize];
        if let Some(link) = current.and_then(|slot| self.links.link(slot)) {
            if self.links.has_room(link, now) {
                return Some(link);
            }
            self.servers.list[server as usize].current[transport as usize] = None;
            if self.links.retire(link) == Release::Close {
                self.close(link, out);
            }
        }
        let link = self.links.take(server, transport, now, &mut self.random)?;
        // The whole range of unprivileged ports (RFC 5452 section 9.2), not a share of it per worker.
        let port = 1024 + self.random.below(65_536 - 1024) as u16;
        if !out.open(link, self.servers.list[server as usize].address, transport, port) {
            self.links.free(link);
            // No route, no descriptor, forbidden: as good as refused.
            self.servers.list[server as usize].breaker.on_refused(now);
            return None;
        }
        self.set_client_cookie(link, server, now, out);
        self.counters.count(Counter::LinksOpened);
        let server = &mut self.servers.list[server as usize];
        server.current[transport as usize] = Some(link.slot);
        // A question from before a reload may go once more to a server that is named no longer.
        self.stale_links |= !server.configured;
        Some(link)
    }

    /// The client cookie for a link that was just opened.
    pub(crate) fn set_client_cookie(&mut self, link: Link, server: u16, now: Instant, out: &mut impl Outbox) {
        if self.settings.cookies.enabled {
            let address = self.servers.list[usize::from(server)].address.ip();
            let cookie = self.cookie_key.cookie(address, out.local(link), now, &mut self.random);
            self.links.set_cookie(link, cookie);
        }
    }

    /// Whether the next question of a flight to a server goes without an OPT record.
    pub(crate) fn omits_edns(&self, index: Index, server: u16, now: Instant) -> bool {
        let flight = &self.flights.slab[index];
        let Server { edns, cookie_state, .. } = &self.servers.list[usize::from(server)];
        // Without the record there is no cookie either: who has shown cookies is not asked without over UDP.
        if cookie_state.is_expected() && !flight.over_tcp {
            return false;
        }
        // One server's trouble with EDNS is no reason to be without another one's.
        if edns.is_left_out(now) || flight.without_edns && !edns.is_known(now) {
            return true;
        }
        // A probe asks for a sign of life, which servers of all kinds give to the plainest question.
        let is_last = flight.tries > 0 && flight.tries + 1 >= self.settings.upstream.tries;
        let was_silent = |attempt: &Attempt| {
            attempt.server == server && attempt.with_opt && !attempt.failed && now - attempt.sent > Span::ZERO
        };
        !edns.is_known(now)
            && (flight.query_flags.has(crate::message::question::QueryFlags::PROBE)
                || is_last && !flight.over_tcp && flight.attempts().iter().any(was_silent))
    }
}
