//! Course of a keyed world: clients ask, the adversary meddles in phases, verifications come back late and in any order, and every answer is
//! judged.

use crate::config::plain_settings;
use crate::ground_truth::{MILLI, SECOND};
use crate::keyed_worlds::Tally;
use crate::keyed_worlds::adversary::{Adversary, Question, Trick, Way};
use crate::keyed_worlds::events::{Event, Events, Out};
use crate::keyed_worlds::names::{Name, below, text};
use crate::keyed_worlds::oracle::{Case, Judged, MEMORY_SECS, Meddling, PREFIX, Query};
use crate::keyed_worlds::signer::DIGESTS;
use crate::keyed_worlds::tree::{A, AAAA, DNSKEY, DS, Kind, Node, TXT, Tree};
use crate::rng::Rng;
use engine::settings::{AnchorRecord, Dnssec, Lookup, Network, TrustAnchor, UncheckedZone, ValidationConfig};
use engine::{
    Capacity, Client, ClientTransport, Counter, Engine, Instant, Machine, Settings, Span, VerificationId,
};
use pref64::Pref64;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// Start of virtual time, nanoseconds.
const START: u64 = SECOND;

/// Questions about zones and verifications that one query may cause.
const QUESTIONS: u64 = 12;
const VERIFICATIONS: u64 = 32;
/// Checks of servers in the time of one query.
const CHECKS: u64 = 8;

/// Phase of a world.
#[derive(Clone, Copy, Debug)]
struct Phase {
    /// Last second.
    until: u64,
    /// Share of replies that the adversary meddles with, of a thousand.
    share: u64,
    /// Trick that it prefers.
    favourite: Trick,
}

/// A world under way.
pub(super) struct Play {
    tree: Tree,
    engine: Engine,
    out: Out,
    events: Events,
    adversary: Adversary,
    rng: Rng,
    now: u64,
    queries: Vec<Query>,
    answered: Vec<bool>,
    meddling: Vec<Meddling>,
    phase: Phase,
    /// The adversary does nothing in any phase.
    is_honest: bool,
    /// Queries come one after the other.
    is_sequential: bool,
    /// Verifications may take seconds.
    stalls: bool,
    /// Second of the last verification that took long.
    last_stall: Option<u64>,
    /// Outcomes of verifications that came back, and are told once more long after.
    former: Vec<VerificationId>,
    tries: u64,
    /// Questions about zones, verifications and queries so far.
    spent: [u64; 3],
    /// Questions about the keys of zones with anchors, since the last query.
    anchored_keys: u64,
    /// Questions before the last query that refreshed keys.
    refreshes: u64,
    tally: Tally,
    is_traced: bool,
}

impl Play {
    /// Draws the world of a seed.
    pub(super) fn new(seed: u64, is_traced: bool) -> Play {
        let mut rng = Rng::new(seed);
        let mut tree = Tree::draw(&mut rng);
        let is_sequential = rng.permille(500);
        let tries = 1 + rng.below(3);
        let settings = settings(&tree, tries, &mut rng);
        let capacity = Capacity { pending: 256, cache: *rng.choose(&[0, 1 << 20, 1 << 20]) };
        let mut engine = Engine::new(settings, capacity, rng.entropy());
        engine.set_unix_time(Instant(START), Span::from_secs(u64::from(tree.base)));
        let out = Out::new(core::mem::take(&mut tree.verifier));
        let meddling = vec![Meddling::default(); tree.zones.len()];
        let is_honest = rng.permille(250);
        let stalls = rng.permille(150);
        Play {
            tree,
            engine,
            out,
            events: Events::default(),
            adversary: Adversary::default(),
            rng,
            now: START,
            queries: vec![],
            answered: vec![],
            meddling,
            phase: Phase { until: 0, share: 0, favourite: Trick::Drop },
            is_honest,
            is_sequential,
            stalls,
            last_stall: None,
            former: vec![],
            tries,
            spent: [0; 3],
            anchored_keys: 0,
            refreshes: 0,
            tally: Tally::default(),
            is_traced,
        }
    }

    /// Plays the world.
    ///
    /// # Errors
    ///
    /// The first broken invariant, and how it is broken.
    pub(super) fn run(mut self, queries: usize) -> Result<Tally, String> {
        for zone in &self.tree.zones {
            self.trace(|| {
                format!("zone {}: {:?}, {:?}, {:?}", text(&zone.apex), zone.kind, zone.trust, zone.denial)
            });
        }
        self.trace(|| {
            format!("TTL {}, validity {}, tries {}", self.tree.ttl, self.tree.validity, self.tries)
        });
        while self.queries.len() < queries && self.secs() < super::tree::LONGEST_SECS - 600 {
            self.choose_phase();
            let burst = if self.is_sequential { 1 } else { 1 + self.rng.below(6) };
            let before = self.spent;
            self.anchored_keys = 0;
            self.refreshes = self.engine.counters().get(Counter::ChainRefresh);
            for _ in 0..burst {
                let query = self.draw_query();
                let at = self.now + if burst > 1 { self.rng.below(60 * MILLI) } else { 0 };
                self.events.add(at, Event::Query(self.queries.len()));
                self.queries.push(query);
                self.answered.push(false);
            }
            if self.is_sequential {
                self.advance(20 * SECOND, true)?;
                self.check_budget(before)?;
            }
            let gap = match self.rng.below(100) {
                0..70 => self.rng.below(200 * MILLI),
                70..94 => self.rng.below(5 * SECOND),
                _ => self.rng.below(90 * SECOND),
            };
            self.advance(gap, false)?;
        }
        self.finish()
    }

    fn secs(&self) -> u64 {
        (self.now - START) / SECOND
    }

    /// Goes on to the next phase: attack and calm take turns, and a calm is longer than the effects of an attack.
    fn choose_phase(&mut self) {
        let secs = self.secs();
        if secs < self.phase.until && self.phase.until > 0 {
            return;
        }
        let rng = &mut self.rng;
        let attacks = !self.is_honest && self.phase.share == 0;
        self.phase = Phase {
            until: secs + if attacks { 5 + rng.below(100) } else { MEMORY_SECS + rng.below(200) },
            share: if attacks { *rng.choose(&[100, 300, 700, 1000]) } else { 0 },
            favourite: Trick::draw(rng),
        };
        if !attacks && !self.is_honest {
            // Little is asked until the effects have passed.
            let skipped = rng.below(MEMORY_SECS + 20);
            self.now += skipped * SECOND * u64::from(self.is_sequential);
        }
    }

    fn draw_query(&mut self) -> Query {
        let rng = &mut self.rng;
        let zone = match rng.permille(120) {
            true => self.tree.forgers,
            false => rng.below(self.tree.zones.len() as u64) as usize,
        };
        let zone = &self.tree.zones[zone];
        let nodes: Vec<_> = zone.nodes.iter().collect();
        let name: Name = match rng.below(10) {
            0 => below(rng.choose::<&str>(&["no", "x.no", "y.h0", "z9"]), &zone.apex),
            1 => below(
                rng.choose::<&str>(&["x.wild", "y.x.wild", "x.cwild", "own.wild", "ent", "wild"]),
                &zone.apex,
            ),
            2 => zone.apex.clone(),
            _ => match nodes.get(rng.below(nodes.len() as u64) as usize) {
                Some((name, Node::Redirection(_))) => {
                    below(rng.choose::<&str>(&["h0", "no", "c0", "deep.ent"]), name)
                }
                Some((name, _)) if name.starts_with(b"\x01*") => below("q", &name[2..]),
                Some((name, _)) => name.to_vec(),
                None => zone.apex.clone(),
            },
        };
        let rtype = *rng.choose(&[AAAA, AAAA, AAAA, AAAA, A, A, TXT]);
        let [dnssec_ok, wants_ad, checking_disabled] = [500, 200, 80].map(|share| rng.permille(share));
        Query { name, rtype, checking_disabled, dnssec_ok, wants_ad }
    }

    /// Lets time pass. `until_answered`: only until all queries have their answers.
    fn advance(&mut self, time: u64, until_answered: bool) -> Result<(), String> {
        let end = self.now + time;
        loop {
            while let Some(event) = self.events.take(self.now) {
                self.handle(event);
                self.deliver()?;
            }
            let deadline = self.engine.expire(Instant(self.now), &mut self.out).map(|deadline| deadline.0);
            self.deliver()?;
            if until_answered && self.is_idle() {
                return Ok(());
            }
            let next = self.events.next_at().into_iter().chain(deadline).min();
            match next {
                // A deadline that stays due would stop time.
                Some(next) if next <= end => self.now = next.max(self.now + 1),
                _ => {
                    self.now = end;
                    return Ok(());
                }
            }
        }
    }

    /// True if all queries have their answers, and the engine does nothing more.
    fn is_idle(&self) -> bool {
        self.engine.outbound_queries() == 0
            && self.engine.validations() == 0
            && self.answered.last() == Some(&true)
    }

    fn handle(&mut self, event: Event) {
        let now = Instant(self.now);
        match event {
            Event::Query(number) => {
                self.spent[2] += 1;
                let address = Ipv6Addr::new(0x2001, 0xdb8, 0xc, number as u16 % 7, 0, 0, 0, 1);
                let client = Client {
                    transport: ClientTransport::Tcp,
                    stream: number as u64,
                    ..Client::udp(SocketAddr::from((address, 4000)))
                };
                let octets = write_query(&self.queries[number], number);
                self.trace(|| {
                    format!("query {number}: {:?} {}", self.queries[number], text(&self.queries[number].name))
                });
                self.engine.query(now, &client, &octets, &mut self.out);
            }
            Event::Reply(link, mut octets) => {
                if self.out.links.contains(&(link.slot, link.generation)) {
                    self.engine.reply(now, link, &mut octets, &mut self.out);
                }
            }
            Event::Verified(id, is_valid) => {
                self.trace(|| format!("verified {id:?}: {is_valid}"));
                self.engine.verified(now, id, is_valid, &mut self.out);
                if self.former.len() < 100 {
                    self.former.push(id);
                }
            }
        }
        if self.rng.permille(5) {
            self.repeat_an_outcome();
        }
    }

    /// Tells the outcome of a verification that is over once more: it must not be taken for that of another one.
    fn repeat_an_outcome(&mut self) {
        if self.former.is_empty() {
            return;
        }
        let place = self.rng.below(self.former.len() as u64) as usize;
        let id = self.former.swap_remove(place);
        if !self.events.has_verification(id) {
            self.engine.verified(Instant(self.now), id, true, &mut self.out);
        }
    }

    /// Carries what the engine has sent.
    fn deliver(&mut self) -> Result<(), String> {
        loop {
            let queries = core::mem::take(&mut self.out.queries);
            let verifications = core::mem::take(&mut self.out.verifications);
            let answers = core::mem::take(&mut self.out.answers);
            if queries.is_empty() && verifications.is_empty() && answers.is_empty() {
                break;
            }
            for (link, octets) in queries {
                let (at, reply) = self.ask_upstream(&octets);
                if let Some(reply) = reply {
                    self.events.add(at, Event::Reply(link, reply));
                }
            }
            for (id, is_valid) in verifications {
                self.spent[1] += 1;
                let at = self.now + self.verification_time();
                self.events.add(at, Event::Verified(id, is_valid));
            }
            for (number, octets) in answers {
                self.judge(number as usize, &octets)?;
            }
        }
        match self.out.dropped.pop() {
            Some(number) => Err(format!("I1: query {number} was dropped")),
            None => Ok(()),
        }
    }

    fn verification_time(&mut self) -> u64 {
        if self.stalls && self.rng.permille(8) {
            let time = self.rng.below(9 * SECOND);
            self.last_stall = Some(self.secs() + time / SECOND);
            return time;
        }
        match self.rng.permille(50) {
            true => self.rng.below(150 * MILLI),
            false => self.rng.below(MILLI),
        }
    }

    /// Reply of the upstream to a query, as the adversary lets it pass, and the time of its arrival.
    fn ask_upstream(&mut self, octets: &[u8]) -> (u64, Option<Vec<u8>>) {
        let secs = self.secs();
        let end = kit::message::question_end(octets).unwrap_or(octets.len());
        let name = octets[kit::message::HEADER..end - 4].to_ascii_lowercase();
        let rtype = u16::from_be_bytes([octets[end - 4], octets[end - 3]]);
        self.tally.asked += 1;
        let is_anchored = || self.tree.zones.iter().any(|zone| zone.has_anchor && zone.apex == name);
        match rtype {
            DNSKEY if is_anchored() => self.anchored_keys += 1,
            DS | DNSKEY => self.spent[0] += 1,
            _ => {}
        }
        let question = Question { tree: &self.tree, name: &name, rtype, secs };
        let honest = self.tree.reply(&name, rtype, secs);
        let latency = self.rng.below(40 * MILLI);
        let mut way = Way { reply: honest.clone(), is_dropped: false, held_ms: 0, is_flipped: false };
        let mut trick = None;
        if self.phase.share > 0 && self.rng.permille(self.phase.share) {
            let drawn =
                if self.rng.permille(600) { self.phase.favourite } else { Trick::draw(&mut self.rng) };
            trick = Some(drawn);
            way = self.adversary.play(drawn, question, way.reply, &mut self.rng);
        }
        self.adversary.remember(question, &honest, &mut self.rng);
        let is_changed = way.reply != honest || way.is_dropped || way.held_ms > 0 || way.is_flipped;
        self.trace(|| format!("upstream: {} {rtype}, {trick:?}, changed: {is_changed}", text(&name)));
        if is_changed && trick != Some(Trick::Shuffle) {
            self.tally.forged += 1;
            for rtype in [rtype, A] {
                let zone = self.tree.zone_of(&name, rtype);
                self.meddling[zone].last = Some(secs + way.held_ms / 1000);
            }
        }
        let mut reply = way.reply.octets(octets);
        if way.is_flipped {
            let place = 12 + self.rng.below(reply.len() as u64 - 12) as usize;
            reply[place] ^= 1 << self.rng.below(8);
        }
        (self.now + latency + way.held_ms * MILLI, (!way.is_dropped).then_some(reply))
    }

    fn judge(&mut self, number: usize, octets: &[u8]) -> Result<(), String> {
        if core::mem::replace(&mut self.answered[number], true) {
            return Err(format!("I1: two answers to query {number}"));
        }
        let secs = self.secs();
        let case = Case {
            tree: &self.tree,
            query: &self.queries[number],
            secs,
            meddling: &self.meddling,
            is_slow: self.last_stall.is_some_and(|last| secs <= last + MEMORY_SECS),
        };
        let judged = case.judge(octets);
        self.trace(|| format!("answer {number}: {judged:?} {octets:02x?}"));
        self.tally.answers += 1;
        match judged.map_err(|error| format!("{error} (query {number}, second {secs})"))? {
            Judged::Failure => self.tally.failed += 1,
            Judged::Secure => self.tally.secure += 1,
            Judged::Other => {}
        }
        Ok(())
    }

    /// V-d: one query costs no more than its budget.
    fn check_budget(&self, before: [u64; 3]) -> Result<(), String> {
        let [questions, verifications, queries] = [0, 1, 2].map(|place| self.spent[place] - before[place]);
        // Some about the keys of an anchor are checks of servers that may strip signatures, which nobody pays for.
        let refreshes = self.engine.counters().get(Counter::ChainRefresh) - self.refreshes;
        let questions = (questions + self.anchored_keys.saturating_sub(CHECKS)).saturating_sub(refreshes);
        // A question without a reply is repeated, and one about an address may have two askers.
        let repeats = if self.is_honest { 1 } else { self.tries };
        if questions > QUESTIONS * queries * repeats || verifications > VERIFICATIONS * queries {
            return Err(format!(
                "V-d: {questions} questions about zones and {verifications} verifications for {queries} queries"
            ));
        }
        Ok(())
    }

    /// Lets everything end, and checks that nothing is left.
    fn finish(mut self) -> Result<Tally, String> {
        self.advance(60 * SECOND, false)?;
        if let Some(number) = self.answered.iter().position(|answered| !answered) {
            return Err(format!("I1: query {number} has no answer"));
        }
        let left = [self.engine.pending(), self.engine.outbound_queries(), self.engine.validations()];
        if left != [0; 3] {
            return Err(format!("V-e: {left:?} queries, questions and validations are left"));
        }
        let counters = self.engine.counters();
        let sum = |wanted: &str| -> u64 {
            let of_family = Counter::ALL.iter().filter(|counter| counter.describe().0 == wanted);
            of_family.map(|&counter| counters.get(counter)).sum()
        };
        let (queries, answers) = (sum("queries_total"), sum("responses_total"));
        if queries != answers || queries != self.queries.len() as u64 {
            return Err(format!("I11: {queries} queries and {answers} answers are counted"));
        }
        self.tally.verifications = self.spent[1];
        Ok(self.tally)
    }

    fn trace(&self, line: impl FnOnce() -> String) {
        if self.is_traced {
            eprintln!("{:>10.3} {}", (self.now - START) as f64 / SECOND as f64, line());
        }
    }
}

fn write_query(query: &Query, number: usize) -> Vec<u8> {
    let mut octets = (number as u16).to_be_bytes().to_vec();
    octets.extend([1, u8::from(query.checking_disabled) << 4 | u8::from(query.wants_ad) << 5]);
    octets.extend([0, 1, 0, 0, 0, 0, 0, 1]);
    octets.extend(&query.name);
    octets.extend(query.rtype.to_be_bytes());
    octets.extend([0, 1, 0, 0, 41, 0x10, 0, 0, 0, u8::from(query.dnssec_ok) << 7, 0, 0, 0]);
    octets
}

fn settings(tree: &Tree, tries: u64, rng: &mut Rng) -> Settings {
    let octets: [u8; 16] = core::array::from_fn(|place| PREFIX.get(place).copied().unwrap_or(0));
    let prefix = Pref64::new(octets.into(), 96).expect("96 bits");
    let plain = plain_settings(SocketAddr::from(([192, 0, 2, 1], 53)), prefix);
    let mut forwarders = plain.upstream.forwarders.clone();
    if rng.permille(500) {
        forwarders.push(SocketAddr::from(([192, 0, 2, 2], 53)));
    }
    let anchors = tree.zones.iter().enumerate().filter(|(_, zone)| zone.has_anchor);
    let anchor = |(number, _): (usize, &crate::keyed_worlds::tree::Zone)| {
        let zone = &tree.zones[number];
        let key = tree.keys(number, 0).entry;
        let record = match zone.kind {
            Kind::Island => AnchorRecord::Dnskey(key.rdata().into()),
            _ => AnchorRecord::Ds(key.ds(&zone.apex).into()),
        };
        TrustAnchor { zone: zone.apex.clone().into(), record }
    };
    let negative = tree.zones.iter().filter(|zone| zone.has_negative_anchor);
    let validation = ValidationConfig {
        digests: DIGESTS,
        anchors: anchors.map(anchor).collect(),
        unchecked: negative
            .map(|zone| UncheckedZone { zone: zone.apex.clone().into(), until: None })
            .collect(),
        algorithms: dnssec::Algorithms::CURRENT,
        nsec3_iterations: 50,
        permissive: false,
        aggressive_nsec: true,
    };
    let mut settings = Settings { udp_size: 4096, validation: Some(Arc::new(validation)), ..plain };
    settings.upstream.forwarders = forwarders;
    settings.upstream.tries = tries as u8;
    settings.upstream.timeout = Span(300 * MILLI);
    settings.cache.stale = Span(0);
    settings.cache.prefetch = false;
    settings.dns64.dnssec = Dnssec::Validate;
    settings.dns64.exclude_aaaa = vec![Network::new(octets.into(), 96)];
    settings.dns64.lookup =
        *rng.choose(&[Lookup::Sequential, Lookup::Parallel, Lookup::Stagger(Span(20 * MILLI))]);
    settings
}
