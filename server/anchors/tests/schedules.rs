//! Twenty years of a zone that rolls its keys, seen by a server that is restarted, crashes while it saves, loses its clock and its network,
//! and gets old sets replayed. A model judges it that knows the true time and no rule of the code.
//!
//! The model says of each key at each moment: it must be trusted, it must not be, or both is right. Both is right between the true 30 days
//! and the end of what restarts of the machine have cost: time that no clock has measured.

use crate::support::{CrashDisk, DAY, HOUR, START, Sha, ZONE, anchor, dnskey, ds, key, with_flags};
use dnssec::Algorithms;
use kit::Random;
use sixfold_anchors::{
    Data, Loaded, Moment, Observed, Outcome, Signed, StateFile, Steady, TrustAnchor, TrustPoints,
};
use std::collections::BTreeMap;
use std::path::Path;

const YEARS: u64 = 20;
const END: u64 = YEARS * 365 * DAY;
const HOLD_DOWN: u64 = 30 * DAY;
/// Days for which an operator publishes a new key before he needs it. 30 would do for a server that always runs; this one loses its network
/// for up to 20 days at once, and measures no time while its machine is off.
const PUBLISHED_DAYS: u64 = 240;

/// A key in a set of the zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Member {
    number: u32,
    is_revoked: bool,
    signs: bool,
}

fn member(number: u32, signs: bool) -> Member {
    Member { number, is_revoked: false, signs }
}

fn revoked(number: u32) -> Member {
    Member { number, is_revoked: true, signs: true }
}

/// A set as it was published: times are true seconds since the start.
#[derive(Clone, Debug)]
struct Published {
    members: Vec<Member>,
    inception: u64,
    expiration: u64,
}

/// The operator of the zone.
struct Zone {
    /// From when on the set has these members.
    changes: Vec<(u64, Vec<Member>)>,
    resigned_every: u64,
    valid_for: u64,
    ttl: u64,
}

impl Zone {
    fn new(random: &mut Random) -> Zone {
        let resigned_every = (1 + random.below(12)) * DAY;
        let valid_for = resigned_every * 2 + random.below(20) * DAY;
        let ttl = random.pick(&[DAY / 2, DAY, 2 * DAY, 4 * DAY, 10 * DAY, 20 * DAY, 40 * DAY]);
        let mut zone = Zone { changes: vec![(0, vec![member(1, true)])], resigned_every, valid_for, ttl };
        let (mut active, mut number, mut now) = (1, 1, 0);
        while now < END {
            now += (100 + random.below(500)) * DAY;
            number += 1;
            active = zone.change(active, number, &mut now, random);
        }
        zone
    }

    /// Brings a new key in, and returns the key that is active then.
    fn change(&mut self, active: u32, new: u32, now: &mut u64, random: &mut Random) -> u32 {
        let mut change = |now: u64, members: &[Member]| self.changes.push((now, members.to_vec()));
        let mut days = |least: u64, more: u64| (least + random.below(more)) * DAY;
        let (own, kind) = (member(active, true), new % 5);
        change(*now, &[own, member(new, kind == 1)]);
        if kind == 0 {
            // It is withdrawn, before or after servers have accepted it.
            *now += days(5, 60);
            change(*now, &[own]);
            return active;
        }
        *now += days(PUBLISHED_DAYS, 150);
        if kind == 2 {
            // The new one was stolen: it is revoked, and the old one stays.
            change(*now, &[own, revoked(new)]);
            *now += days(60, 60);
            change(*now, &[own]);
            return active;
        }
        change(*now, &[own, member(new, true)]);
        *now += days(10, 60);
        change(*now, &[revoked(active), member(new, true)]);
        *now += days(60, 60);
        change(*now, &[member(new, true)]);
        new
    }

    fn published(&self, now: u64) -> Published {
        let place = self.changes.partition_point(|(from, _)| *from <= now) - 1;
        let (changed, members) = &self.changes[place];
        let signed = (now - now % self.resigned_every).max(*changed);
        Published { members: members.clone(), inception: signed, expiration: signed + self.valid_for }
    }
}

/// What the model knows of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Truth {
    /// Seen since this second in every set that was new, without the seconds that no clock has measured.
    Waiting {
        since: u64,
        lost: u64,
    },
    Trusted,
    Revoked,
}

/// The model.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Model {
    keys: BTreeMap<u32, Truth>,
    /// Keys that vouch for one that is waiting.
    vouching: BTreeMap<u32, Vec<u32>>,
    /// Inception and expiration of the newest set.
    newest: Option<(u64, u64)>,
    /// True time of the last input.
    last: u64,
    /// Boot in which it came.
    boot: u128,
    ttl: u64,
}

impl Model {
    fn is(&self, number: u32, truth: Truth) -> bool {
        self.keys.get(&number) == Some(&truth)
    }

    /// A set of which the signatures count, or not, by the clock of the server. Returns true if it is a validated one that is not old.
    fn observe(&mut self, now: u64, wall: u64, set: &Published) -> bool {
        let counts = (START + set.inception..=START + set.expiration).contains(&wall);
        for member in set.members.iter().filter(|member| counts && member.is_revoked && member.signs) {
            if let Some(truth) = self.keys.get_mut(&member.number) {
                *truth = Truth::Revoked;
            }
        }
        let unvouched: Vec<u32> = self
            .vouching
            .iter()
            .filter(|(number, by)| {
                let is_waiting = matches!(self.keys.get(number), Some(Truth::Waiting { .. }));
                is_waiting && by.iter().all(|number| self.is(*number, Truth::Revoked))
            })
            .map(|(number, _)| *number)
            .collect();
        self.keys.retain(|number, _| !unvouched.contains(number));
        let by: Vec<u32> = set
            .members
            .iter()
            .filter(|member| {
                counts && !member.is_revoked && member.signs && self.is(member.number, Truth::Trusted)
            })
            .map(|member| member.number)
            .collect();
        let is_old = self
            .newest
            .is_some_and(|(inception, expiration)| set.inception < inception && wall <= START + expiration);
        if by.is_empty() || is_old {
            return false;
        }
        self.newest = Some((set.inception, set.expiration));
        self.keys.retain(|number, truth| {
            let is_there = set.members.iter().any(|member| member.number == *number && !member.is_revoked);
            is_there || !matches!(truth, Truth::Waiting { .. })
        });
        for member in set.members.iter().filter(|member| !member.is_revoked) {
            if let std::collections::btree_map::Entry::Vacant(place) = self.keys.entry(member.number) {
                place.insert(Truth::Waiting { since: now, lost: 0 });
                self.vouching.insert(member.number, by.clone());
            }
        }
        true
    }

    /// Compares the keys that the server trusts, after a set that counted or after anything else.
    fn judge(&mut self, now: u64, trusted: &[u32], is_after_set: bool) -> Result<(), String> {
        let need = HOLD_DOWN.max(self.ttl);
        for number in trusted {
            match self.keys.get(number) {
                Some(Truth::Trusted) => {}
                Some(Truth::Waiting { since, .. }) if now - since >= need => {
                    self.keys.insert(*number, Truth::Trusted);
                }
                other => return Err(format!("{number} is trusted, and is {other:?}")),
            }
        }
        for (number, truth) in &self.keys {
            let must = match truth {
                Truth::Trusted => true,
                Truth::Waiting { since, lost } => is_after_set && now - since - lost >= need,
                Truth::Revoked => false,
            };
            if must && !trusted.contains(number) {
                return Err(format!("{number} is not trusted, and is {truth:?}"));
            }
        }
        Ok(())
    }

    /// A set, or none, came. If the machine was started anew, nothing has measured the time since the last one.
    fn input(&mut self, now: u64, boot: u128) {
        let unmeasured = if self.boot == boot { 0 } else { now - self.last };
        for truth in self.keys.values_mut() {
            if let Truth::Waiting { lost, .. } = truth {
                *lost += unmeasured;
            }
        }
        (self.last, self.boot) = (now, boot);
    }

    /// True if a trusted key signed a set.
    fn can_verify(&self, set: &Published) -> bool {
        let signs = |member: &&Member| !member.is_revoked && member.signs;
        set.members.iter().filter(signs).any(|member| self.is(member.number, Truth::Trusted))
    }
}

/// What happened in a schedule.
#[derive(Debug, Default)]
struct Counts {
    observations: u64,
    accepted: u64,
    revoked: u64,
    restarts: u64,
    reboots: u64,
    crashes: u64,
    jumps: u64,
    replays: u64,
}

/// A schedule.
struct Schedule {
    random: Random,
    zone: Zone,
    configured: TrustAnchor,
    points: TrustPoints,
    file: StateFile<CrashDisk>,
    model: Model,
    /// Models of the states that were written, by their serial numbers.
    models: BTreeMap<u64, Model>,
    serial: u64,
    now: u64,
    /// Seconds by which the wall clock is wrong.
    wrong: i64,
    /// Number of the boot, and when it was.
    boot: (u128, u64),
    /// Until when the network is away.
    outage: u64,
    history: Vec<Published>,
    counts: Counts,
}

impl Schedule {
    fn new(seed: u64) -> Schedule {
        let mut random = Random::new(seed);
        let zone = Zone::new(&mut random);
        let configured = anchor(if random.one_in(2) { dnskey(&key(1)) } else { ds(&key(1), 2) });
        let start = Moment { wall: START, steady: Steady { boot: 1, seconds: 0 } };
        let points = TrustPoints::start(std::slice::from_ref(&configured), Loaded::None, start, &Sha).points;
        let model = Model {
            keys: BTreeMap::from([(1, Truth::Trusted)]),
            vouching: BTreeMap::new(),
            newest: None,
            last: 0,
            boot: 1,
            ttl: zone.ttl,
        };
        Schedule {
            random,
            zone,
            configured,
            points,
            file: StateFile::new(Path::new("/root.key"), CrashDisk::default()),
            model,
            models: BTreeMap::new(),
            serial: 0,
            now: 0,
            wrong: 0,
            boot: (1, 0),
            outage: 0,
            history: Vec::new(),
            counts: Counts::default(),
        }
    }

    fn run(mut self) -> Result<Counts, String> {
        self.save()?;
        while self.now < END {
            let mut next = self.observe()?;
            if self.random.one_in(60) {
                let reboots = self.random.one_in(4);
                self.restart(reboots)?;
                next = 0;
            }
            self.disturb();
            self.now += next + self.random.below(600);
        }
        Ok(self.counts)
    }

    fn moment(&self) -> Moment {
        let wall = (START + self.now).saturating_add_signed(self.wrong);
        Moment { wall, steady: Steady { boot: self.boot.0, seconds: self.now - self.boot.1 } }
    }

    /// Clock and network break, and are mended.
    fn disturb(&mut self) {
        if self.random.one_in(100) {
            let span = self.random.pick(&[HOUR, DAY, 10 * DAY, 40 * DAY, 400 * DAY]);
            let jump = self.random.below(span) as i64;
            self.wrong = if self.random.one_in(2) { jump } else { -jump };
            self.counts.jumps += 1;
        } else if self.wrong != 0 && self.random.one_in(5) {
            self.wrong = 0;
        }
        if self.random.one_in(1000) {
            self.outage = self.now + self.random.below(20) * DAY;
        }
    }

    /// Asks for the keys once, and returns the seconds until the next question.
    fn observe(&mut self) -> Result<u64, String> {
        let moment = self.moment();
        let outcome = if self.now < self.outage || self.random.one_in(12) {
            self.model.input(self.now, self.boot.0);
            let outcome = self.point().failed(moment);
            self.judge(false)?;
            outcome
        } else {
            let (set, is_genuine) = self.set();
            let outcome = self.show(&set, moment);
            self.model.input(self.now, self.boot.0);
            let is_validated = self.model.observe(self.now, moment.wall, &set);
            if outcome.is_validated != is_validated {
                return Err(format!(
                    "validated: {}, and must be {is_validated}: {set:?}",
                    outcome.is_validated
                ));
            }
            self.judge(is_validated)?;
            // A server that has followed the zone can verify what the zone publishes.
            if is_genuine && !self.model.can_verify(&set) {
                return Err(format!(
                    "day {}: no trusted key signs {set:?}: {:?}",
                    self.now / DAY,
                    self.model
                ));
            }
            self.counts.observations += 1;
            outcome
        };
        if outcome.save {
            self.save()?;
        }
        Ok(outcome.next.as_secs())
    }

    /// The set of the zone, or an old one whose signatures are still valid; and if it is the one of the zone.
    fn set(&mut self) -> (Published, bool) {
        let genuine = self.zone.published(self.now);
        if self.history.last().is_none_or(|last| last.inception != genuine.inception) {
            self.history.push(genuine.clone());
        }
        let now = self.now;
        self.history.retain(|old| old.expiration >= now);
        if self.random.one_in(20) {
            self.counts.replays += 1;
            return (self.history[self.random.place(self.history.len())].clone(), false);
        }
        (genuine, true)
    }

    fn show(&mut self, set: &Published, moment: Moment) -> Outcome {
        let (from, to) = (START + set.inception, START + set.expiration);
        let signed =
            Signed { inception: from as u32, expiration: to as u32, original_ttl: self.zone.ttl as u32 };
        let rdata: Vec<(Vec<u8>, Option<Signed>)> = set
            .members
            .iter()
            .map(|member| {
                let flags = if member.is_revoked { 385 } else { 257 };
                let signs = member.signs && (from..=to).contains(&moment.wall);
                (with_flags(member.number, flags), signs.then_some(signed))
            })
            .collect();
        let observed: Vec<Observed<'_>> =
            rdata.iter().map(|(rdata, signed)| Observed { rdata, signed: *signed }).collect();
        let outcome = self.point().observe(moment, &observed, Algorithms::CURRENT, &Sha);
        let count = |kind| outcome.events.iter().filter(|event| event.kind == kind).count() as u64;
        self.counts.accepted += count(sixfold_anchors::EventKind::Accepted);
        self.counts.revoked += count(sixfold_anchors::EventKind::Revoked);
        outcome
    }

    fn point(&mut self) -> &mut sixfold_anchors::TrustPoint {
        self.points.get(ZONE).expect("the zone")
    }

    fn judge(&mut self, is_after_set: bool) -> Result<(), String> {
        let trusted: Vec<u32> =
            self.points.anchors().iter().filter_map(|anchor| number(&anchor.data)).collect();
        self.model
            .judge(self.now, &trusted, is_after_set)
            .map_err(|error| format!("day {}: {error}", self.now / DAY))
    }

    /// Saves, and crashes now and then.
    fn save(&mut self) -> Result<(), String> {
        if self.random.one_in(30) && self.serial > 0 {
            self.file.files().crash = Some((self.random.below(3), self.random.bits()));
        }
        self.models.insert(self.serial + 1, self.model.clone());
        if self.points.save(&mut self.file).is_ok() {
            self.serial += 1;
            self.models.retain(|serial, _| *serial >= self.serial);
            self.file.files().crash = None;
            return Ok(());
        }
        self.counts.crashes += 1;
        let reboots = self.random.one_in(2);
        self.restart(reboots)
    }

    /// Ends the server, and with it the machine or not, and starts it again after a while.
    fn restart(&mut self, reboots: bool) -> Result<(), String> {
        let crashed = self.file.files().is_crashed;
        self.file.files().restart();
        let off = if self.random.one_in(10) { 10 * DAY } else { HOUR };
        self.now += self.random.below(off);
        if reboots {
            self.boot = (self.boot.0 + 1, self.now);
            self.counts.reboots += 1;
        }
        self.counts.restarts += 1;
        self.file = StateFile::new(Path::new("/root.key"), self.file.files().clone());
        let loaded = self.file.load()?;
        let Loaded::State(saved) = &loaded else { return Err(format!("{loaded:?}")) };
        let model = self.models.get(&saved.serial).ok_or("a state that was never saved")?.clone();
        // Without a crash, the file has all that matters.
        if !crashed && (&model.keys, &model.newest) != (&self.model.keys, &self.model.newest) {
            return Err(format!("saved {model:?}, and known {:?}", self.model));
        }
        (self.serial, self.model) = (saved.serial, model);
        let start = TrustPoints::start(std::slice::from_ref(&self.configured), loaded, self.moment(), &Sha);
        if !start.warnings.is_empty() {
            return Err(start.warnings.join("\n"));
        }
        self.points = start.points;
        self.judge(false)
    }
}

/// Number of a trusted key; `None` for a revoked one. A DS record is that of key 1.
fn number(data: &Data) -> Option<u32> {
    match data {
        Data::Ds(_) => Some(1),
        Data::Dnskey(rdata) => {
            let number = u32::from_be_bytes(rdata[4..8].try_into().expect("four octets"));
            (rdata[..2] == 257u16.to_be_bytes()).then_some(number)
        }
    }
}

/// Plays schedules, and returns what happened in all.
fn play(seeds: std::ops::Range<u64>) -> Counts {
    let mut all = Counts::default();
    for seed in seeds {
        let counts = Schedule::new(seed).run().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        all.observations += counts.observations;
        all.accepted += counts.accepted;
        all.revoked += counts.revoked;
        all.restarts += counts.restarts;
        all.reboots += counts.reboots;
        all.crashes += counts.crashes;
        all.jumps += counts.jumps;
        all.replays += counts.replays;
    }
    println!("{all:?}");
    all
}

/// Each thing that a schedule can have has happened, so often for each schedule.
fn check(counts: &Counts, schedules: u64) {
    let Counts { observations, accepted, revoked, restarts, reboots, crashes, jumps, replays, .. } = *counts;
    assert!(observations >= 500 * schedules, "{counts:?}");
    for count in [accepted, revoked, restarts, reboots, crashes, jumps, replays] {
        assert!(count >= 3 * schedules, "{counts:?}");
    }
}

// RFC 5011 section 2: no key is lost, none is accepted early or after its revocation.
#[test]
fn keys_are_followed_for_twenty_years_in_twenty_schedules() {
    check(&play(0..20), 20);
}

#[test]
#[ignore = "long: 1,000 schedules of 20 years, two minutes of CPU time"]
fn keys_are_followed_for_twenty_years_in_a_thousand_schedules() {
    check(&play(0..1000), 1000);
}
