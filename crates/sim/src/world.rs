//! One world: the engine, the clock, everything that is under way, and the judgement of every answer.

use crate::client::{Clients, Question};
use crate::config::{Config, server_address};
use crate::forger::Forger;
use crate::judge::DEADLINE;
use crate::leg::life;
use crate::message::QUESTION_OFFSET;
use crate::outbox::{SentQuery, SimOutbox, instant};
use crate::pending::Pending;
use crate::rate_check::{Met, NOBODY};
use crate::rates::Buckets;
use crate::rng::Rng;
use crate::siege::rejected_replies;
use crate::timeline::{Heard, Key, Timeline};
use crate::truth::{Bits, MILLI, SECOND, Said, Truth, zone_of};
use crate::upstream::{Arrival, deliver, question_key, without_opt};
use crate::weather::{SERVERS, Weather};
use engine::{Capacity, Engine, Link, Machine, Span, Transport};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::rc::Rc;

/// What is under way.
enum Event {
    /// The next client question.
    Ask,
    /// A question that was sent before, once more.
    Repeat(u64),
    /// Something arrives over a link.
    Arrives { via: Link, arrival: Arrival, is_forged: bool },
}

/// What is wrong.
#[derive(Debug, Clone)]
pub struct Violation {
    /// Which of the invariants (`docs/simulation.md`).
    pub invariant: &'static str,
    /// What happened.
    pub what: String,
}

/// What happened in a world, in numbers.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    /// Client questions.
    pub queries: u64,
    /// Answers that were compared with the oracle.
    pub judged: u64,
    /// Forged replies.
    pub forged: u64,
    /// Questions upstream.
    pub asked: u64,
    /// Reloads.
    pub reloads: u64,
    /// Answers with synthesized addresses.
    pub synthesized: u64,
    /// Answers SERVFAIL.
    pub failed: u64,
    /// Questions answered without asking upstream.
    pub hits: u64,
}

impl Tally {
    /// Both together.
    pub fn add(&mut self, other: &Tally) {
        self.queries += other.queries;
        self.judged += other.judged;
        self.forged += other.forged;
        self.asked += other.asked;
        self.reloads += other.reloads;
        self.synthesized += other.synthesized;
        self.failed += other.failed;
        self.hits += other.hits;
    }
}

/// See the module.
pub struct World {
    pub(crate) engine: Engine,
    pub(crate) outbox: SimOutbox,
    pub(crate) now: u64,
    pub(crate) jumped: u64,
    pub(crate) deadline: Option<u64>,
    pub(crate) events: BinaryHeap<Reverse<(u64, u64)>>,
    bodies: HashMap<u64, Event>,
    pub(crate) event: u64,
    pub(crate) rng: Rng,
    pub(crate) truth: Truth,
    pub(crate) weather: Weather,
    pub(crate) clients: Clients,
    pub(crate) forger: Forger,
    pub(crate) configs: Vec<Config>,
    pub(crate) timeline: Timeline,
    pub(crate) pending: BTreeMap<u64, Pending>,
    /// Over, but a repetition may still come.
    pub(crate) over: HashMap<u64, Pending>,
    /// When the settings changed last, without the jumps of the clock.
    pub(crate) reloaded: u64,
    /// Unix time when the clock stood at 0.
    pub(crate) unix_start: u32,
    /// Cookies that clients got, with their numbers, oldest first.
    pub(crate) received_cookies: Vec<(u32, Vec<u8>)>,
    pub(crate) buckets: Buckets,
    /// The question that is answered now was too many for its network.
    pub(crate) curbed: Option<(u64, Met)>,
    pub(crate) unanswered: u64,
    pub(crate) token: u64,
    pub(crate) queries_left: u64,
    pub(crate) tally: Tally,
    pub(crate) violations: Vec<Violation>,
    pub(crate) is_traced: bool,
}

impl World {
    /// A world that unfolds from a seed, with so many client questions.
    pub fn new(seed: u64, queries: u64, is_traced: bool) -> World {
        let mut rng = Rng::new(seed);
        let mut config = Config::draw(&mut rng);
        let count = *rng.choose(&[5, 30, 200, 1000]);
        let truth = Truth::new(count, &mut rng);
        config.prepare(&truth);
        let mut entropy = [0; 32];
        for octets in entropy.chunks_mut(8) {
            octets.copy_from_slice(&rng.next_u64().to_le_bytes());
        }
        let capacity = Capacity { pending: config.pending, cache: config.cache };
        let mut world = World {
            engine: Engine::new(config.to_engine(&truth), capacity, entropy),
            outbox: SimOutbox::default(),
            now: SECOND,
            jumped: 0,
            deadline: None,
            events: BinaryHeap::new(),
            bodies: HashMap::new(),
            event: 0,
            truth,
            weather: Weather::draw(&mut rng),
            clients: Clients::draw(&mut rng),
            forger: Forger::default(),
            configs: vec![config],
            timeline: Timeline::default(),
            pending: BTreeMap::new(),
            over: HashMap::new(),
            reloaded: 0,
            // The second one is soon 0 again.
            unix_start: *rng.choose(&[1_700_000_000, 0u32.wrapping_sub(60)]),
            received_cookies: vec![],
            buckets: Buckets::default(),
            curbed: None,
            unanswered: 0,
            token: 0,
            queries_left: queries,
            tally: Tally::default(),
            violations: vec![],
            is_traced,
            rng,
        };
        world.engine.set_unix_time(instant(0), Span::from_secs(u64::from(world.unix_start)));
        world.trace(|world| format!("{:?}\n{:?}\n{:?}", world.configs[0], world.weather, world.clients));
        world.schedule(world.now, Event::Ask);
        world
    }

    /// Lets everything happen. What happened, or the first thing that is wrong.
    pub fn run(mut self) -> Result<Tally, Violation> {
        while self.violations.is_empty() {
            let event = self.events.peek().map(|Reverse((at, _))| *at);
            let Some(next) = [event, self.deadline].into_iter().flatten().min() else { break };
            if self.queries_left == 0 && self.pending.is_empty() && self.now + DEADLINE < next {
                break;
            }
            self.now = self.now.max(next);
            self.outbox.now = self.now;
            if self.now >= self.weather.until {
                self.weather.change(self.now, &mut self.rng);
                self.set_routes();
                self.trace(|world| format!("weather {:?}", world.weather));
            }
            match self.events.peek().filter(|Reverse((at, _))| *at <= self.now) {
                None => self.look(),
                Some(&Reverse((_, number))) => {
                    self.events.pop();
                    if let Some(event) = self.bodies.remove(&number) {
                        self.happen(event);
                    }
                }
            }
            if self.queries_left == 0 && self.weather.until != u64::MAX {
                self.weather.calm();
                self.outbox.no_route.clear();
            }
            // A dead server is asked twice a second for ever; by then it has answered.
            if self.queries_left == 0
                && self.events.is_empty()
                && self.pending.is_empty()
                && self.engine.idle()
                && self.engine.flights() == 0
            {
                break;
            }
        }
        if self.violations.is_empty() {
            self.judge_the_end();
        }
        match self.violations.into_iter().next() {
            None => Ok(self.tally),
            Some(violation) => Err(violation),
        }
    }

    pub(crate) fn trace(&self, line: impl FnOnce(&World) -> String) {
        if self.is_traced {
            eprintln!("{:>12.6} {}", self.now as f64 / SECOND as f64, line(self));
        }
    }

    pub(crate) fn violate(&mut self, invariant: &'static str, what: String) {
        self.trace(|_| format!("VIOLATION {invariant}: {what}"));
        self.violations.push(Violation { invariant, what });
    }

    fn schedule(&mut self, at: u64, event: Event) {
        self.event += 1;
        self.events.push(Reverse((at, self.event)));
        self.bodies.insert(self.event, event);
    }

    pub(crate) fn config(&self) -> &Config {
        &self.configs[self.configs.len() - 1]
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Ask => self.ask(),
            Event::Repeat(token) => {
                if let Some(pending) = self.pending.get_mut(&token) {
                    pending.sent += 1;
                    let (client, tcp) = (pending.client, pending.tcp);
                    let (bytes, cookie) = (pending.bytes.clone(), pending.cookie.clone());
                    self.unanswered += 1;
                    self.tally.queries += 1;
                    let met = self.submit(client, token, tcp, &bytes, cookie.as_deref());
                    self.curbed = Some((token, met)).filter(|_| met != Met::Taken);
                    self.look();
                }
            }
            Event::Arrives { via, arrival, is_forged } => self.arrive(via, arrival, is_forged),
        }
    }

    /// A client asks; now and then something else happens as well.
    fn ask(&mut self) {
        if self.queries_left == 0 {
            return;
        }
        self.queries_left -= 1;
        self.disturb();
        if self.rng.permille(3) {
            self.ask_nonsense();
        }
        let mut question = self.clients.ask(&self.truth, &mut self.rng);
        if self.clients.brings_cookie(&mut self.rng) {
            question.bring(crate::cookie::draw_cookie(
                question.client,
                &self.received_cookies,
                &mut self.rng,
            ));
        }
        self.send(question);
        if self.queries_left > 0 {
            let at = self.now + self.clients.pause(&mut self.rng);
            self.schedule(at, Event::Ask);
        }
    }

    fn send(&mut self, question: Question) {
        self.token += 1;
        let token = self.token;
        let Question { client, bytes, id, flags, question: length, name, rtype, bits, edns, cookie, tcp } =
            question;
        self.trace(|world| {
            let wire = &world.truth.name(name);
            let text = String::from_utf8_lossy(&wire.wire[1..]).replace(|c: char| c.is_control(), ".");
            format!(
                "#{token} client {client} asks {text} {:?} type {rtype} {bits:?} EDNS {edns:?} TCP {tcp}",
                wire.kind
            )
        });
        let pending = Pending {
            at: self.now,
            awake: self.now - self.jumped,
            client,
            id,
            flags,
            question: bytes[QUESTION_OFFSET..QUESTION_OFFSET + length].to_vec(),
            bytes,
            is_proven: self.is_good(client, cookie.as_deref()),
            cookie,
            name,
            rtype,
            bits,
            edns,
            tcp,
            generation: self.configs.len() - 1,
            refused: self.refused(),
            sent: 1,
            answered: 0,
        };
        let (bytes, cookie) = (pending.bytes.clone(), pending.cookie.clone());
        self.pending.insert(token, pending);
        self.unanswered += 1;
        self.tally.queries += 1;
        let asked = self.outbox.queries.len();
        let met = self.submit(client, token, tcp, &bytes, cookie.as_deref());
        match met {
            Met::Taken => {}
            Met::Dropped | Met::Filtered => {
                self.pending.remove(&token);
            }
            Met::Slipped | Met::Refused => self.curbed = Some((token, met)),
        }
        if self.outbox.queries.len() == asked && !self.outbox.answers.is_empty() {
            self.tally.hits += 1;
        }
        self.look();
        if !tcp && self.rng.permille(20) {
            let at = self.now + self.rng.exponential(30 * MILLI);
            self.schedule(at, Event::Repeat(token));
        }
    }

    /// Messages that are no questions of ours: dropped or refused, and counted.
    fn ask_nonsense(&mut self) {
        let mut bytes: Vec<u8> = match self.rng.below(3) {
            0 => (0..self.rng.below(40)).map(|_| self.rng.next_u64() as u8).collect(),
            1 => self.clients.ask(&self.truth, &mut self.rng).bytes,
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
        let answered = self.outbox.answers.len();
        // Nobody's question.
        let met = self.submit(0, NOBODY, false, &bytes, None);
        self.curbed = Some((NOBODY, met)).filter(|_| met != Met::Taken);
        let is_answered = self.outbox.answers.len() > answered;
        if is_answered && (bytes.len() < 12 || bytes[2] & 0x80 != 0) {
            self.violate("I1", format!("an answer to what is no question: {bytes:02x?}"));
        }
        self.look();
    }

    /// Reloads, flushes, jumps of the clock.
    fn disturb(&mut self) {
        let share = self.weather.reload;
        if self.rng.below(1_000_000) < share {
            let before = self.config().clone();
            let mut config = before.draw_reload(&mut self.rng);
            if self.rng.permille(100) {
                // A reload without a change.
                config = before;
            }
            self.trace(|_| format!("reload {config:?}"));
            config.prepare(&self.truth);
            self.engine.configure(config.to_engine(&self.truth));
            self.configs.push(config);
            self.reloaded = self.now - self.jumped;
            self.tally.reloads += 1;
            self.look();
        }
        if self.rng.below(1_000_000) < share / 4 {
            self.engine.flush_all();
            self.timeline.flushed = self.now;
            self.trace(|_| "flush".to_owned());
        }
        if self.rng.below(1_000_000) < share / 4 {
            let jump = *self.rng.choose(&[SECOND, 5 * SECOND, 3_600 * SECOND, 86_400 * SECOND]);
            self.trace(|_| format!("the clock jumps by {} s", jump / SECOND));
            self.now += jump;
            self.jumped += jump;
            self.outbox.now = self.now;
            self.timeline.record_trouble(None, self.now);
        }
    }

    fn set_routes(&mut self) {
        self.outbox.no_route.clear();
        for place in 0..SERVERS {
            if self.weather.moods[place] == crate::weather::Mood::Unreachable && self.rng.permille(300) {
                self.outbox.no_route.push(server_address(place as u64));
            }
        }
    }

    fn arrive(&mut self, via: Link, arrival: Arrival, is_forged: bool) {
        // What arrives at a closed socket goes nowhere.
        let Some(opened) = self.outbox.links.get(&via) else { return };
        let is_tcp = opened.transport == Transport::Tcp;
        match arrival {
            Arrival::Failure => {
                self.trace(|_| format!("{via:?} fails"));
                if is_tcp {
                    self.outbox.links.remove(&via);
                }
                self.timeline.record_trouble(None, self.now);
                self.engine.unreachable(instant(self.now), via, &mut self.outbox);
            }
            Arrival::Message { bytes, said, without_opt } => {
                if is_forged && opened.matches_query(&bytes) {
                    // Luck of one in millions is not what is tested.
                    return;
                }
                self.trace(|_| format!("{via:?} forged {is_forged} says {said:?}"));
                let before = rejected_replies(&self.engine);
                self.engine.reply(instant(self.now), via, &bytes, &mut self.outbox);
                if let Some((key, said)) = said {
                    // What came without an OPT record may have been for who wanted signatures, and is no news for others.
                    let is_believed = rejected_replies(&self.engine) == before && !without_opt;
                    self.hear(key, said.clone(), is_believed, true);
                    if without_opt {
                        // It is the answer then, but is not kept.
                        let bits = Bits { dnssec_ok: true, ..key.bits };
                        self.hear(Key { bits, ..key }, said, is_believed, false);
                    }
                } else {
                    self.timeline.noise = self.now;
                }
            }
        }
        self.look();
    }

    /// A reply that fits came. `is_believed`: the engine did not count it as one that it does not believe.
    fn hear(&mut self, key: Key, said: Rc<Said>, is_believed: bool, may_be_kept: bool) {
        let config = self.config();
        let is_kept = config.cache > 0 && key.bits.rd && may_be_kept;
        let (least, most) = config.ttl_range;
        let is_raw = self.configs.len() > 1 && self.reloaded + 15 * SECOND > self.now - self.jumped;
        let heard = Heard {
            at: self.now,
            life: if is_kept { life(&said, key.rtype, config) } else { None },
            is_raw,
            is_news: is_believed && may_be_kept && !is_raw && !said.is_failure() && !said.cut,
            range: (is_kept && !said.is_failure()).then_some((least, most.max(least))),
            said,
        };
        self.timeline.record_reply(key, heard);
    }

    /// What a datapath does after each batch: deadlines, and everything that leaves.
    fn look(&mut self) {
        self.outbox.now = self.now;
        self.deadline = self.engine.expire(instant(self.now), &mut self.outbox).map(|at| at.0);
        if self.deadline.is_some_and(|deadline| deadline <= self.now) {
            self.violate("I1", "a deadline that never passes".to_owned());
        }
        if core::mem::take(&mut self.outbox.open_failed) {
            self.timeline.record_trouble(None, self.now);
        }
        for fault in core::mem::take(&mut self.outbox.faults) {
            self.violate("I10", fault);
        }
        // Questions first: what went wrong with them decides which answers are allowed.
        for asked in core::mem::take(&mut self.outbox.queries) {
            self.carry(&asked);
        }
        for answered in core::mem::take(&mut self.outbox.answers) {
            self.judge(&answered);
        }
        self.curbed = None;
        self.judge_the_figures();
    }

    /// A question leaves for an upstream.
    fn carry(&mut self, asked: &SentQuery) {
        self.tally.asked += 1;
        let key = question_key(&self.truth, &asked.bytes);
        if let Some(key) = key {
            // Flights that differ in DO look the same without an OPT record.
            if !without_opt(&asked.bytes) {
                self.judge_the_flight(key, asked);
            }
            let group = usize::from(zone_of(key.name) == 3);
            // Questions go on over a reload, perhaps at a server that is named no longer.
            if self.configs.len() == 1 && !self.configs[0].servers[group].contains(&asked.upstream) {
                self.violate("I2", format!("{key:?} is asked at {}", asked.upstream));
            }
        }
        let place =
            (0..SERVERS as u64).position(|number| server_address(number) == asked.upstream).unwrap_or(0);
        let delivery = deliver(&self.truth, &self.weather, place, asked, self.now, &mut self.rng);
        self.trace(|_| {
            format!(
                "asks {} {:?} {:?} {key:?}: {} {}",
                asked.upstream,
                asked.link,
                if asked.over_udp { "UDP" } else { "TCP" },
                delivery.mood,
                delivery.is_trouble
            )
        });
        if delivery.is_trouble {
            if let Some(key) = key.filter(|_| without_opt(&asked.bytes)) {
                let bits = Bits { dnssec_ok: true, ..key.bits };
                self.timeline.record_trouble(Some(Key { bits, ..key }), self.now);
            }
            match key {
                Some(key) => self.timeline.record_trouble(Some(key), self.now),
                None => self.timeline.any_trouble = Some(self.now),
            }
        }
        let within = delivery.arrivals.first().map_or(100 * MILLI, |arrival| arrival.0);
        if asked.over_udp && key.is_some() && self.rng.permille(self.weather.forger) {
            let forgeries =
                self.forger.watch(asked.link, &asked.bytes, asked.over_udp, within, &mut self.rng);
            for forgery in forgeries {
                self.tally.forged += 1;
                let arrival = Arrival::Message { bytes: forgery.bytes, said: None, without_opt: false };
                self.schedule(
                    self.now + forgery.after,
                    Event::Arrives { via: forgery.via, arrival, is_forged: true },
                );
            }
        }
        for (after, arrival) in delivery.arrivals {
            self.schedule(self.now + after, Event::Arrives { via: asked.link, arrival, is_forged: false });
        }
    }
}
