//! The loop that makes a world happen: it moves the clock from event to event, lets clients, upstreams, the forger and the
//! operator act, and has every step checked. Everything that leaves the engine passes [`World::finish_step`].

use crate::client::ClientQuery;
use crate::config::server_address;
use crate::cookie::draw_cookie;
use crate::ground_truth::{Bits, MILLI, SECOND, Said};
use crate::judge;
use crate::lookup::life;
use crate::mappings::MappingLines;
use crate::message::QUESTION_OFFSET;
use crate::network_faults::{Mood, SERVERS};
use crate::outbox::{SentQuery, instant};
use crate::pending::Pending;
use crate::rate_check::submit;
use crate::spoofing::rejected_replies;
use crate::timeline::{Heard, Key};
use crate::upstream::{Arrival, Delivery, Path, deliver, has_no_opt, question_key};
use crate::world::{Admission, Event, NO_TOKEN, Tally, Violation, World};
use engine::{Link, Machine, Unreachable};
use std::cmp::Reverse;
use std::rc::Rc;

impl World {
    /// Plays the world to its end. Returns the counts.
    ///
    /// # Errors
    ///
    /// The first [`Violation`] of an invariant.
    pub fn run(mut self) -> Result<Tally, Violation> {
        while self.violations.is_empty() {
            let event = self.event_times.peek().map(|Reverse((at, _))| *at);
            let next = [event, self.deadline, self.gateways.next()];
            let Some(next) = next.into_iter().flatten().min() else { break };
            if self.queries_left == 0 && self.pending.is_empty() && self.now + judge::DEADLINE < next {
                break;
            }
            self.now = self.now.max(next);
            self.outbox.now = self.now;
            if self.gateways.step(self.now, self.now - self.jumped) {
                self.tell_gateways();
            }
            if self.now >= self.network_faults.until {
                self.network_faults.change(self.now, &mut self.rng);
                self.apply_network_faults();
                self.draw_missing_routes();
                self.trace(|world| format!("network faults {:?}", world.network_faults));
            }
            match self.event_times.peek().filter(|Reverse((at, _))| *at <= self.now) {
                None => self.finish_step(),
                Some(&Reverse((_, number))) => {
                    self.event_times.pop();
                    if let Some(event) = self.events.remove(&number) {
                        self.handle(event);
                    }
                }
            }
            if self.queries_left == 0 && self.network_faults.until != u64::MAX {
                self.network_faults.calm();
                self.gateways.stop();
                self.apply_network_faults();
                self.outbox.no_route.clear();
            }
            // A dead server is probed twice a second without end; at this point it has replied.
            if self.queries_left == 0
                && self.event_times.is_empty()
                && self.pending.is_empty()
                && self.engine.is_idle()
                && self.engine.outbound_queries() == 0
            {
                break;
            }
        }
        if self.violations.is_empty() {
            judge::check_end(&mut self);
        }
        match self.violations.into_iter().next() {
            None => Ok(self.tally),
            Some(violation) => Err(violation),
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Query => self.send_next_query(),
            Event::Retransmission(token) => self.retransmit(token),
            Event::Arrival { via, arrival, is_forged } => self.receive(via, arrival, is_forged),
        }
    }

    /// A client sends a query. Now and then something else happens as well.
    fn send_next_query(&mut self) {
        if self.queries_left == 0 {
            return;
        }
        self.queries_left -= 1;
        self.disturb();
        if self.rng.permille(3) {
            self.send_invalid_message();
        }
        let mut query = self.clients.draw_query(&self.ground_truth, &mut self.rng);
        if self.clients.draws_cookie(&mut self.rng) {
            query.add_cookie(draw_cookie(query.client, &self.received_cookies, &mut self.rng));
        }
        self.send_query(query);
        if self.queries_left > 0 {
            let at = self.now + self.clients.pause(&mut self.rng);
            self.schedule(at, Event::Query);
        }
    }

    fn send_query(&mut self, query: ClientQuery) {
        self.last_token += 1;
        let token = self.last_token;
        self.trace_query(token, &query);
        let pending = self.pending_query(query);
        let (client, tcp) = (pending.client, pending.tcp);
        let (bytes, cookie) = (pending.bytes.clone(), pending.cookie.clone());
        self.pending.insert(token, pending);
        self.unanswered += 1;
        self.tally.queries += 1;
        let queries_before = self.outbox.queries.len();
        let admission = submit(self, client, token, tcp, &bytes, cookie.as_deref());
        match admission {
            Admission::Taken => {}
            Admission::Dropped | Admission::Filtered => {
                self.pending.remove(&token);
            }
            Admission::Slipped | Admission::Refused => self.over_limit = Some((token, admission)),
        }
        if self.outbox.queries.len() == queries_before && !self.outbox.answers.is_empty() {
            self.tally.hits += 1;
        }
        self.finish_step();
        if !tcp && self.rng.permille(20) {
            let at = self.now + self.rng.exponential(30 * MILLI);
            self.schedule(at, Event::Retransmission(token));
        }
    }

    fn trace_query(&self, token: u64, query: &ClientQuery) {
        self.trace(|world| {
            let ClientQuery { client, rtype, bits, edns, tcp, .. } = query;
            let name = &world.ground_truth.name(query.name);
            let text = String::from_utf8_lossy(&name.wire[1..]).replace(|c: char| c.is_control(), ".");
            format!(
                "#{token} client {client} asks {text} {:?} type {rtype} {bits:?} EDNS {edns:?} TCP {tcp}",
                name.kind
            )
        });
    }

    fn pending_query(&self, query: ClientQuery) -> Pending {
        let ClientQuery { client, bytes, id, flags, question, name, rtype, bits, edns, cookie, tcp } = query;
        Pending {
            at: self.now,
            awake: self.now - self.jumped,
            client,
            id,
            flags,
            question: bytes[QUESTION_OFFSET..QUESTION_OFFSET + question].to_vec(),
            bytes,
            is_proven: self.has_valid_cookie(client, cookie.as_deref()),
            cookie,
            name,
            rtype,
            bits,
            edns,
            tcp,
            generation: self.configs.len() - 1,
            verdicts: self.trials.told.len() - 1,
            refused: self.refused_for_room(),
            sent: 1,
            answered: 0,
        }
    }

    fn retransmit(&mut self, token: u64) {
        let Some(pending) = self.pending.get_mut(&token) else { return };
        pending.sent += 1;
        let (client, tcp) = (pending.client, pending.tcp);
        let (bytes, cookie) = (pending.bytes.clone(), pending.cookie.clone());
        self.unanswered += 1;
        self.tally.queries += 1;
        let admission = submit(self, client, token, tcp, &bytes, cookie.as_deref());
        self.over_limit = Some((token, admission)).filter(|_| admission != Admission::Taken);
        self.finish_step();
    }

    /// Sends a message that is no valid query. The engine drops or refuses it, and counts it.
    fn send_invalid_message(&mut self) {
        let mut bytes: Vec<u8> = match self.rng.below(3) {
            0 => (0..self.rng.below(40)).map(|_| self.rng.next_u64() as u8).collect(),
            1 => self.clients.draw_query(&self.ground_truth, &mut self.rng).bytes,
            _ => vec![0; self.rng.below(12) as usize],
        };
        if bytes.len() > 12 {
            match self.rng.below(4) {
                0 => bytes[2] |= 0x80,
                1 => bytes[2] |= 0x78 & self.rng.next_u64() as u8 | 0x10,
                2 => bytes[4..6].copy_from_slice(&[0, 2]),
                _ => bytes.truncate(13),
            }
        }
        self.unanswered += 1;
        self.tally.queries += 1;
        let answers_before = self.outbox.answers.len();
        let admission = submit(self, 0, NO_TOKEN, false, &bytes, None);
        self.over_limit = Some((NO_TOKEN, admission)).filter(|_| admission != Admission::Taken);
        let is_answered = self.outbox.answers.len() > answers_before;
        if is_answered && (bytes.len() < 12 || bytes[2] & 0x80 != 0) {
            self.report_violation("I1", format!("an answer to a message that is no query: {bytes:02x?}"));
        }
        self.finish_step();
    }

    /// Draws reloads, cache flushes and jumps of the clock.
    fn disturb(&mut self) {
        let share = self.network_faults.reload;
        if self.rng.below(1_000_000) < share {
            self.reload();
        }
        if self.config().gateways.is_some() && self.gateways.draws_drain() {
            let config = self.config().clone();
            if self.gateways.drain(&config, self.now) {
                self.tell_gateways();
            }
        }
        if self.config().verified.is_some() && self.trials.draws_end() {
            self.end_trials();
        }
        if self.config().discovery.is_some() && self.sources.draws_change() {
            self.discover();
        }
        if self.rng.below(1_000_000) < share / 4 {
            let mut next = Some(0);
            while let Some(step) = next {
                next = self.engine.flush_all(step).1;
            }
            self.timeline.flushed = self.now;
            self.trace(|_| "flush".to_owned());
        }
        if self.rng.below(1_000_000) < share / 4 {
            let jump = *self.rng.choose(&[SECOND, 5 * SECOND, 3_600 * SECOND, 86_400 * SECOND]);
            self.trace(|_| format!("the clock jumps by {} s", jump / SECOND));
            self.timeline.jumps.push((self.now, self.now + jump));
            self.now += jump;
            self.jumped += jump;
            self.outbox.now = self.now;
            self.timeline.record_trouble(None, self.now);
        }
    }

    /// Trials of real addresses end.
    fn end_trials(&mut self) {
        let untried = self.engine.take_untried();
        self.trials.end(untried, instant(self.now));
        self.trace(|world| format!("verdicts {:?}", world.trials.told.last()));
        self.engine.set_verdicts(self.trials.to_engine());
        self.tally.trials += 1;
        self.finish_step();
    }

    /// The sources of prefixes tell of others than before.
    fn discover(&mut self) {
        let Some(mut config) = self.sources.change(&self.configs[self.configs.len() - 1]) else { return };
        self.trace(|_| format!("discovered {:?}: {:?}", config.discovery, config.prefixes));
        config.prepare(&self.ground_truth);
        self.engine.set_dns64(config.to_engine(&self.ground_truth).dns64);
        self.configs.push(config);
        self.tally.discoveries += 1;
        self.finish_step();
    }

    /// The engine learns the states of the gateways.
    fn tell_gateways(&mut self) {
        self.trace(|world| {
            format!("gateways {:?}", world.gateways.to_engine().map(|told| told.states().clone()))
        });
        self.engine.set_gateways(self.gateways.to_engine());
        self.tally.gateway_changes = self.gateways.changes;
        self.finish_step();
    }

    fn reload(&mut self) {
        let before = self.config().clone();
        let mut config = before.draw_reload(&mut self.rng);
        if self.rng.permille(100) {
            // A reload without a change.
            config = before;
        }
        if config.gateways.is_none() && config.discovery.is_none() {
            self.gateways.draw(&mut config);
        }
        self.sources.draw(&mut config);
        self.trials.draw(&mut config);
        if config.mappings.is_empty() {
            config.mappings = MappingLines::draw(&self.ground_truth, &mut self.mapping_rng);
        }
        self.trace(|_| format!("reload {config:?}"));
        config.prepare(&self.ground_truth);
        self.gateways.configure(&config, self.now, self.now - self.jumped);
        let mut settings = config.to_engine(&self.ground_truth);
        settings.dns64.gateways = self.gateways.to_engine();
        settings.dns64.verdicts = config.verified.is_some().then(|| self.trials.to_engine());
        self.engine.configure(settings);
        self.configs.push(config);
        self.reloaded = self.now - self.jumped;
        self.tally.reloads += 1;
        self.finish_step();
    }

    /// Draws the servers to which the host has no route.
    fn draw_missing_routes(&mut self) {
        self.outbox.no_route.clear();
        for place in 0..SERVERS {
            if self.network_faults.moods[place] == Mood::Unreachable && self.rng.permille(300) {
                self.outbox.no_route.push(server_address(place as u64));
            }
        }
    }

    /// A message or a failure arrives at the engine's end of a link.
    fn receive(&mut self, via: Link, arrival: Arrival, is_forged: bool) {
        // A message to a closed socket is lost.
        let Some(link) = self.outbox.links.get(&via) else { return };
        let is_tcp = link.transport.is_stream();
        match arrival {
            Arrival::Failure => {
                self.trace(|_| format!("{via:?} fails"));
                if is_tcp {
                    self.outbox.links.remove(&via);
                }
                self.timeline.record_trouble(None, self.now);
                self.engine.on_link_failure(
                    instant(self.now),
                    via,
                    Unreachable::PortRefused,
                    &mut self.outbox,
                );
            }
            Arrival::Message { mut bytes, said, to_query_without_opt } => {
                if is_forged && link.matches_query(&bytes) {
                    // A hit by luck, one in millions, is not tested here.
                    return;
                }
                self.trace(|_| format!("{via:?} forged {is_forged} says {said:?}"));
                let before = rejected_replies(&self.engine);
                self.engine.reply(instant(self.now), via, &mut bytes, &mut self.outbox);
                let is_rejected = rejected_replies(&self.engine) != before;
                match said {
                    Some((key, said)) => self.record_reply(key, said, is_rejected, to_query_without_opt),
                    None => self.timeline.noise = self.now,
                }
            }
        }
        self.finish_step();
    }

    /// Records a reply that fits its query. `is_rejected`: the engine counted it as a suspect one.
    fn record_reply(&mut self, key: Key, said: Rc<Said>, is_rejected: bool, to_query_without_opt: bool) {
        // A query without OPT record may have been sent for a client with DO. Then its reply does not replace older ones.
        let is_news = !is_rejected && !to_query_without_opt;
        self.record_reply_for(key, said.clone(), is_news, true);
        if to_query_without_opt {
            // For the client with DO it is the reply, too, but it is not cached.
            let bits = Bits { dnssec_ok: true, ..key.bits };
            self.record_reply_for(Key { bits, ..key }, said, is_news, false);
        }
    }

    fn record_reply_for(&mut self, key: Key, said: Rc<Said>, is_accepted: bool, may_be_cached: bool) {
        let config = self.config();
        let is_cached = config.cache > 0 && key.bits.rd && may_be_cached;
        let (least, most) = config.ttl_range;
        let is_raw = self.configs.len() > 1 && self.reloaded + 15 * SECOND > self.now - self.jumped;
        let heard = Heard {
            at: self.now,
            life: if is_cached { life(&said, key.rtype, config) } else { None },
            is_raw,
            is_news: is_accepted && may_be_cached && !is_raw && !said.is_failure() && !said.cut,
            range: (is_cached && !said.is_failure()).then_some((least, most.max(least))),
            said,
        };
        self.timeline.record_reply(key, heard);
    }

    /// Ends a step as a datapath ends a batch: runs the engine's timers, then carries and checks everything that leaves.
    fn finish_step(&mut self) {
        self.outbox.now = self.now;
        self.deadline = self.engine.expire(instant(self.now), &mut self.outbox).map(|at| at.0);
        if self.deadline.is_some_and(|deadline| deadline <= self.now) {
            self.report_violation("I1", "a deadline that never passes".to_owned());
        }
        // A question may also find all links taken, or all connections to an upstream that limits them.
        let none_is_left = self.outbox.has_all_links() || self.outbox.has_all_streams();
        if core::mem::take(&mut self.outbox.open_failed) || none_is_left {
            self.timeline.record_trouble(None, self.now);
        }
        for fault in core::mem::take(&mut self.outbox.faults) {
            self.report_violation("I10", fault);
        }
        // Upstream queries come first: their troubles decide which answers are allowed.
        for query in core::mem::take(&mut self.outbox.queries) {
            self.carry(&query);
        }
        for answer in core::mem::take(&mut self.outbox.answers) {
            judge::judge_answer(self, &answer);
        }
        (self.over_limit, self.evicted) = (None, None);
        judge::check_bounds(self);
    }

    /// Carries a query to its upstream, and schedules the replies.
    fn carry(&mut self, query: &SentQuery) {
        self.tally.asked += 1;
        let key = question_key(&self.ground_truth, &query.bytes);
        if let Some(key) = key {
            judge::check_upstream_query(self, key, query);
        }
        let place =
            (0..SERVERS as u64).position(|number| server_address(number) == query.upstream).unwrap_or(0);
        let ids = key.and_then(|key| self.timeline.get(key)).map_or(&[][..], |track| &track.ids);
        let (network_faults, line) = (&self.network_faults, &mut self.lines[place]);
        let mut path = Path { network_faults, line, server: place, ids };
        let delivery = deliver(&self.ground_truth, &mut path, query, self.now, &mut self.rng);
        self.trace(|_| {
            format!(
                "asks {} {:?} {:?} {key:?}: {} {}",
                query.upstream,
                query.link,
                if query.over_udp { "UDP" } else { "TCP" },
                delivery.mood,
                delivery.is_trouble
            )
        });
        if delivery.changes_letters {
            self.outbox.changes_letters.insert(query.upstream);
        }
        if delivery.is_trouble {
            self.record_trouble(key, query);
        }
        self.schedule_forgeries(key, query, &delivery);
        for (after, arrival) in delivery.arrivals {
            self.schedule(self.now + after, Event::Arrival { via: query.link, arrival, is_forged: false });
        }
    }

    fn record_trouble(&mut self, key: Option<Key>, query: &SentQuery) {
        if let Some(key) = key.filter(|_| has_no_opt(&query.bytes)) {
            let bits = Bits { dnssec_ok: true, ..key.bits };
            self.timeline.record_trouble(Some(Key { bits, ..key }), self.now);
        }
        match key {
            Some(key) => self.timeline.record_trouble(Some(key), self.now),
            None => self.timeline.any_trouble = Some(self.now),
        }
    }

    fn schedule_forgeries(&mut self, key: Option<Key>, query: &SentQuery, delivery: &Delivery) {
        let within = delivery.arrivals.first().map_or(100 * MILLI, |arrival| arrival.0);
        if !(query.over_udp && key.is_some() && self.rng.permille(self.network_faults.forger)) {
            return;
        }
        let forgeries = self.forger.forge_replies(query, within, &mut self.rng);
        for forgery in forgeries {
            self.tally.forged += 1;
            let arrival = Arrival::Message { bytes: forgery.bytes, said: None, to_query_without_opt: false };
            let at = self.now + forgery.after;
            self.schedule(at, Event::Arrival { via: forgery.via, arrival, is_forged: true });
        }
    }
}
