//! Asked upstream: launching a question, choosing server, link, ID and letter case, and what happens when a try is
//! not answered in time.

use crate::base::name_hash::mix_case;
use crate::base::random::Random;
use crate::base::slab::{Index, NONE};
use crate::base::time::{Instant, Span};
use crate::client::waiter::Stage;
use crate::counters::Counter;
use crate::engine::Engine;
use crate::interface::{Link, Outbox};
use crate::limits::{ATTEMPTS, TRIES};
use crate::message::cookie::{self, LONGEST};
use crate::settings::{Lookup, OnFailure, Settings, Transport};
use crate::upstream::groups::{QueryKind, Servers};
use crate::upstream::in_flight::{Attempt, FlightState, Flights, Question, Wishes};
use crate::upstream::links::Release;
use wire::header::{self, Flags};
use wire::{Class, Type};

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
        flight.repeats = false;
        flight.waits_on = false;
        if flight.tries == 0 {
            self.budget.earn();
        }
        flight.tries = flight.tries.saturating_add(1);
        let flight = &self.flights.slab[index];
        // There is nothing to wait for but the replies to earlier tries.
        let is_hopeless = || flight.attempts().iter().all(|attempt| attempt.link == Link::NOWHERE);
        let ceiling = self.settings.upstream.timeout;
        let last = flight.tries >= self.settings.upstream.tries || flight.wishes.has(Wishes::PROBE);
        // No server lives: more than one question is no use, and would be a storm at the moment of their return.
        let is_given_up = self.servers.list[server as usize].dead && self.servers.is_dead(flight.name());
        let at_once = !sent && if last { is_hopeless() } else { self.has_untried(index) };
        let wait = match transport {
            _ if at_once => Span::ZERO,
            _ if flight.wishes.has(Wishes::PROBE) => self.servers.list[server as usize].probe_wait(ceiling),
            _ if is_given_up => self.servers.list[server as usize].last_wait(ceiling),
            // One and a half times the ceiling since the first try.
            Transport::Udp if last && flight.held_back => {
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

    pub(crate) fn set_deadline(&mut self, index: Index, deadline: Instant) {
        let flight = &mut self.flights.slab[index];
        flight.deadline = deadline;
        let due = [flight.stagger, flight.patience].into_iter().flatten().fold(deadline, Instant::min);
        self.wheel.set(&mut self.flights.slab, index, due);
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
        let with_subnet = flight.subnet.is_some() && !flight.plain && with_opt;
        let room = &mut [0; LONGEST];
        self.servers.list[server as usize].is_asked(now);
        let vouch = &self.servers.list[server as usize].vouch;
        let cookie = match self.settings.cookies.enabled && with_opt {
            true => vouch.write(self.links.cookie(link), flight.bare, now, room),
            false => None,
        };
        let taken = out.ask(link, |frame| {
            let name_len = flight.name_len as usize;
            let question_end = 12 + name_len + 4;
            let mut flags = Flags(0);
            for (wish, flag) in [(Wishes::RD, Flags::RD), (Wishes::CD, Flags::CD), (Wishes::AD, Flags::AD)] {
                if flight.wishes.has(wish) {
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
            let dnssec_ok = flight.wishes.has(Wishes::DO);
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
            is_repetition: flight.repeats,
        };
        flight.attempts_len += 1;
        let kind = match (flight.wishes.has(Wishes::PROBE), flight.qtype) {
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
            self.servers.list[server as usize].refused(now);
            return None;
        }
        self.bake(link, server, now, out);
        self.counters.count(Counter::LinksOpened);
        let server = &mut self.servers.list[server as usize];
        server.current[transport as usize] = Some(link.slot);
        // A question from before a reload may go once more to a server that is named no longer.
        self.stale_links |= !server.configured;
        Some(link)
    }

    /// A deadline of a flight has come: the A leg is due, or the current try is given up.
    pub(crate) fn on_deadline(&mut self, index: Index, now: Instant, out: &mut impl Outbox) {
        if self.flights.slab[index].stagger.is_some_and(|stagger| stagger <= now) {
            self.flights.slab[index].stagger = None;
            self.ask_seconds(index, now, out);
        }
        if self.flights.slab[index].patience.is_some_and(|patience| patience <= now) {
            self.flights.slab[index].patience = None;
            self.lose_patience(index, now, out);
        }
        let flight = &self.flights.slab[index];
        if flight.deadline > now {
            let deadline = flight.deadline;
            return self.set_deadline(index, deadline);
        }
        let last = flight.attempts().last().copied();
        // It was counted when it began to wait on.
        if !flight.waits_on {
            self.counters.count(Counter::Timeouts);
        }
        if let Some(attempt) = last
            && !flight.unsent
            && !flight.waits_on
        {
            let server = &mut self.servers.list[attempt.server as usize];
            if flight.wishes.has(Wishes::PROBE) {
                server.probe_unanswered(now);
            } else {
                server.silent(now);
            }
            // The kernel gives a connection up only after minutes: the next question opens another one.
            if self.links.is_hung(attempt.link, attempt.sent) {
                let current = &mut server.current[Transport::Tcp as usize];
                if *current == Some(attempt.link.slot) {
                    *current = None;
                }
                // It closes with its last question, of which this is one.
                let _ = self.links.retire(attempt.link);
            }
        }
        if self.holds_back(index, now, out) {
            return;
        }
        self.try_again(index, now, out);
        if let Some(attempt) = last {
            self.muster(index, attempt.server, now);
        }
    }

    /// A server was silent: those of its group that nobody asks have to show that they live.
    fn muster(&mut self, index: Index, silent: u16, now: Instant) {
        let flight = &self.flights.slab[index];
        if flight.state == FlightState::Asked && !flight.wishes.has(Wishes::PROBE) {
            self.servers.muster(flight.name(), silent, now);
        }
    }

    /// The current try of a flight has failed: another one, or the flight settles.
    pub(crate) fn try_again(&mut self, index: Index, now: Instant, out: &mut impl Outbox) {
        let flight = &self.flights.slab[index];
        if flight.wishes.has(Wishes::PROBE) {
            return self.probe_again(index, now, out);
        }
        if !self.is_wanted(index) || flight.tries >= self.settings.upstream.tries {
            return self.finish(index, None, now, out);
        }
        if self.servers.is_dead(flight.name()) {
            return self.give_up(index, now, out);
        }
        self.ask_second_leg(index, now, out);
        self.ask(index, now, out);
    }

    /// Nobody is left to be asked. What was asked may still be answered until its time is over: whoever forges ICMP errors
    /// must not end a question, nor must servers that have become slow and so look dead.
    fn give_up(&mut self, index: Index, now: Instant, out: &mut impl Outbox) {
        let flight = &mut self.flights.slab[index];
        let ceiling = self.settings.upstream.timeout;
        let Some(&attempt) = flight.attempts().last() else { return self.finish(index, None, now, out) };
        let wait = self.servers.list[usize::from(attempt.server)].last_wait(ceiling);
        if flight.deadline > now {
            let deadline = flight.deadline.min(now + wait);
            self.set_deadline(index, deadline);
        } else if attempt.sent + wait > now && !flight.unsent && !flight.waits_on {
            flight.waits_on = true;
            self.set_deadline(index, attempt.sent + wait);
        } else {
            self.finish(index, None, now, out);
        }
    }

    /// The A leg is asked now if it would be asked anyway once the AAAA leg has failed: both waits in one.
    pub(crate) fn ask_second_leg(&mut self, index: Index, now: Instant, out: &mut impl Outbox) {
        let flight = &mut self.flights.slab[index];
        if flight.qtype == Type::AAAA && self.settings.dns64.on_failure.timeout == OnFailure::Synthesize {
            flight.stagger = None;
            self.ask_seconds(index, now, out);
        }
    }

    /// A question of a probe was not answered: it is repeated until the ceiling is over, so that late replies count.
    fn probe_again(&mut self, index: Index, now: Instant, out: &mut impl Outbox) {
        let flight = &self.flights.slab[index];
        let Some(&first) = flight.attempts().first() else { return self.finish(index, None, now, out) };
        let is_over = now - first.sent >= self.settings.upstream.timeout;
        let server = &self.servers.list[usize::from(first.server)];
        if !is_over && !flight.unsent && flight.attempts().len() < TRIES && server.configured {
            return self.ask_server(index, first.server, now, out);
        }
        self.probe_ended(first.server, now);
        self.finish(index, None, now, out);
    }

    fn probe_ended(&mut self, server: u16, now: Instant) {
        let (urgent, jitter) = (self.servers.is_urgent(server), self.random.bits());
        self.servers.list[usize::from(server)].probed_in_vain(now, urgent, jitter);
    }

    /// Asks a server that counts as dead whether it lives.
    pub(crate) fn probe(&mut self, server: u16, now: Instant, out: &mut impl Outbox) {
        let root = [0u8];
        let question = Question {
            name: &root,
            hash: self.key.hash(&root),
            qtype: Type::NS,
            class: Class::IN,
            wishes: Wishes::RD.with(Wishes::PROBE, true),
            subnet: None,
        };
        let Engine { flights, random, settings, servers, .. } = self;
        match prepare(flights, random, settings, servers, &question) {
            Some(index) => self.ask_server(index, server, now, out),
            None => self.probe_ended(server, now),
        }
    }

    /// Whether the A leg of new clients of a AAAA flight is asked at once.
    pub(crate) fn asks_both(&self, flight: Index) -> bool {
        let flight = &self.flights.slab[flight];
        match self.settings.dns64.lookup {
            Lookup::Parallel => true,
            Lookup::Stagger(_) => flight.stagger.is_none(),
            Lookup::Sequential => {
                flight.tries > 1 && self.settings.dns64.on_failure.timeout == OnFailure::Synthesize
            }
        }
    }

    /// Sets when the A leg of a AAAA flight is asked.
    pub(crate) fn set_stagger(&mut self, index: Index, at: Instant) {
        self.flights.slab[index].stagger = Some(at);
        let deadline = self.flights.slab[index].deadline;
        self.set_deadline(index, deadline);
    }

    /// Sets when clients of a flight get expired data.
    pub(crate) fn set_patience(&mut self, index: Index, at: Instant) {
        let flight = &mut self.flights.slab[index];
        if flight.patience.is_none_or(|patience| at < patience) {
            flight.patience = Some(at);
            let deadline = flight.deadline;
            self.set_deadline(index, deadline);
        }
    }

    /// A server has died: what it was asked last is asked of others now. Where no other server lives, clients for whom there
    /// are expired data wait no more, and no probe makes a long pause.
    #[cold]
    pub(crate) fn hasten(&mut self, now: Instant) {
        for index in 0..self.flights.slab.touched() {
            let flight = &self.flights.slab[index];
            if flight.state != FlightState::Asked || flight.wishes.has(Wishes::PROBE) {
                continue;
            }
            if self.servers.is_dead(flight.name()) {
                if flight.patience.is_some() {
                    self.set_patience(index, now);
                }
            } else if flight
                .attempts()
                .last()
                .is_some_and(|attempt| self.servers.list[usize::from(attempt.server)].dead)
                && flight.tries < self.settings.upstream.tries
            {
                self.set_deadline(index, now);
            }
        }
        let jitter = self.random.bits();
        self.servers.hasten_probes(now, jitter);
    }

    /// Asks the A leg for every client of a AAAA flight that may need it.
    pub(crate) fn ask_seconds(&mut self, flight: Index, now: Instant, out: &mut impl Outbox) {
        let mut index = self.flights.slab[flight].waiters;
        while index != NONE {
            let next = self.waiters[index].next;
            if self.waiters[index].stage == Stage::Aaaa && self.waiters[index].second == NONE {
                self.ask_second(index, now, out);
            }
            index = next;
        }
    }

    /// Asks the A leg of a client before its AAAA leg is decided.
    //= RFC 6147 section 5.1.8: requirements 15, 15b
    pub(crate) fn ask_second(&mut self, index: Index, now: Instant, out: &mut impl Outbox) {
        if self.has_fresh(index, Type::A, now) {
            return;
        }
        if let Some(flight) = self.flight_for(index, Type::A, now, out) {
            self.flights.slab[flight].holders += 1;
            self.waiters[index].second = flight;
        }
    }

    /// The flight that asks for a type of the name that a client wants now: one under way, or a new one.
    pub(crate) fn flight_for(
        &mut self,
        index: Index,
        qtype: Type,
        now: Instant,
        out: &mut impl Outbox,
    ) -> Option<Index> {
        let Engine { waiters, chains, flights, random, settings, servers, key, counters, .. } = self;
        let waiter = &waiters[index];
        let (name, hash) = match waiter.chain {
            NONE => (waiter.name(), waiter.hash),
            chain => (&chains[chain].name[..], key.hash(&chains[chain].name)),
        };
        let wishes = waiter.wishes_for(qtype);
        let mut question =
            Question { name, hash, qtype, class: Class::IN, wishes, subnet: waiter.subnet.as_ref() };
        let scope = waiter.scope.max(Engine::disperse(flights, counters, &mut question));
        let found = flights.find(&question);
        let flight = match found {
            Some(flight) => flight,
            None => prepare(flights, random, settings, servers, &question)?,
        };
        waiters[index].scope = scope;
        match found {
            Some(_) => counters.count(Counter::Joined),
            None => self.ask(flight, now, out),
        }
        Some(flight)
    }
}

/// A flight for a question, in the table and not asked yet. None: all room is taken.
fn prepare(
    flights: &mut Flights,
    random: &mut Random,
    settings: &Settings,
    servers: &Servers,
    question: &Question<'_>,
) -> Option<Index> {
    let index = flights.slab.take()?;
    let flushes = flights.flushes;
    let flight = &mut flights.slab[index];
    flight.state = FlightState::Asked;
    flight.unsent = false;
    flight.over_tcp = settings.upstream.transport == Transport::Tcp;
    flight.tries = 0;
    flight.attempts_len = 0;
    flight.wishes = question.wishes;
    flight.subnet = question.subnet.copied();
    flight.scope = 0;
    flight.plain = false;
    flight.bare = false;
    flight.no_opt = false;
    flight.repeats = false;
    flight.held_back = false;
    flight.waits_on = false;
    flight.is_private = false;
    flight.baked = false;
    flight.doubted = false;
    flight.qtype = question.qtype;
    flight.class = question.class;
    flight.hash = question.hash;
    flight.stagger = None;
    flight.patience = None;
    flight.group = servers.group_number(question.name);
    flight.flushes = flushes;
    flight.waiters = NONE;
    flight.holders = 0;
    flight.held = NONE;
    flight.name_len = question.name.len() as u8;
    mix_case(question.name, random.bits(), &mut flight.name);
    flights.enter(index);
    Some(index)
}
