//! What one leg of an answer may have brought: every reply that was heard while the client waited, every one that was young
//! enough when it asked, expired ones when something went wrong, and silence.

use crate::config::Config;
use crate::oracle::{Case, FAILURE};
use crate::rpz_oracle::Mode;
use crate::timeline::{Heard, Key};
use crate::truth::{NameId, SECOND, Said};

/// TTL of data that have expired (RFC 8767 section 4).
const STALE_TTL: u32 = 30;

/// How old a leg is when the client gets it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Age {
    /// Between so many seconds.
    Seconds(u32, u32),
    /// It has expired.
    Stale,
}

/// What one leg may have brought.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leg<'a> {
    /// The reply; none: no answer in time.
    pub(crate) said: Option<&'a Said>,
    pub(crate) age: Age,
    pub(crate) range: Option<(u32, u32)>,
    /// Of a reply that says that there is nothing: for how many seconds it may be kept.
    pub(crate) most: Option<u32>,
    /// It came while the client waited, and may be passed on as it came.
    pub(crate) is_new: bool,
    /// Of what it says, so many aliases and nothing else.
    pub(crate) way: Option<usize>,
    /// The configuration says it.
    pub(crate) is_own: bool,
    /// Perhaps it was not kept, and its TTLs are as they came.
    pub(crate) is_raw: bool,
}

/// RFC 2181 section 8: TTLs with the highest bit set are 0.
fn plain(ttl: u32) -> u32 {
    if ttl > i32::MAX as u32 { 0 } else { ttl }
}

/// For how long a reply may be kept, nanoseconds (RFC 2308 section 5 for those that say that there is nothing).
pub fn life(said: &Said, rtype: u16, config: &Config) -> Option<u64> {
    if said.cut || said.is_failure() {
        return None;
    }
    let (least, most) = config.ttl_range;
    let clamp = |ttl: u32| plain(ttl).clamp(least, most.max(least));
    let mut ttl = said.edges.iter().map(|edge| clamp(edge.2)).min().unwrap_or(u32::MAX);
    let is_answered = said.is_answer(rtype);
    if is_answered {
        ttl = ttl.min(clamp(said.ttl));
    } else {
        match said.soa {
            Some((soa, minimum)) => ttl = ttl.min(clamp(soa)).min(minimum).min(config.max_negative),
            None if !said.edges.is_empty() && said.rcode == 0 => {}
            None => return None,
        }
    }
    let ttl = ttl.clamp(least, most.max(least));
    (ttl > 0).then_some(u64::from(ttl) * SECOND)
}

impl<'a> Case<'a> {
    /// Whether a configuration answers a question by itself.
    pub(crate) fn knows(&self, name: NameId, rtype: u16, config: &Config) -> bool {
        let is_told = !(self.is_ipv4only && self.is_v4 && config.v6_only);
        is_told && config.own.lookup(name, rtype).is_some()
    }

    /// Everything that a leg may have brought.
    pub(crate) fn legs(&self, key: Key) -> Vec<Leg<'a>> {
        let since = self.asked.at;
        let mut legs = vec![];
        let (mut is_asked, mut own) = (false, vec![]);
        for config in self.configs {
            let said = if self.knows(key.name, key.rtype, config) {
                config.own.lookup(key.name, key.rtype)
            } else {
                None
            };
            is_asked |= said.is_none();
            own.extend(said);
        }
        if is_asked && let Mode::Data(rule) = self.mode.get() {
            is_asked = false;
            own.push(rule.say(key.rtype));
        }
        legs.extend(own.into_iter().map(Leg::own));
        if !is_asked {
            return legs;
        }
        let troubled = self.timeline.was_troubled(since);
        let heard = self.timeline.get(key).map_or(&[][..], |track| &track.heard);
        // What is newer takes the place of what is older, and of what was made of it.
        let news = heard.iter().rposition(|heard| heard.is_news && heard.at < since).unwrap_or(0);
        for heard in &heard[news..] {
            self.leg_of(key.rtype, heard, troubled, &mut legs);
        }
        if self.timeline.may_have_failed(key, since) {
            let age = Age::Seconds(0, 0);
            legs.push(Leg {
                said: None,
                age,
                range: None,
                most: None,
                is_new: true,
                is_own: false,
                way: None,
                is_raw: false,
            });
        }
        legs
    }

    fn leg_of(&self, rtype: u16, heard: &'a Heard, troubled: bool, legs: &mut Vec<Leg<'a>>) {
        let (since, now) = (self.asked.at, self.now);
        let config = &self.configs[self.configs.len() - 1];
        let seconds = |span: u64| (span / SECOND).min(u64::from(u32::MAX)) as u32;
        let past = now.saturating_sub(heard.at);
        let life = heard.life.unwrap_or(0);
        let mut leg = Leg {
            said: Some(&heard.said),
            age: Age::Seconds(seconds(since.saturating_sub(heard.at)), seconds(past)),
            range: heard.range,
            most: heard.life.filter(|_| !heard.said.is_answer(rtype)).map(seconds),
            is_new: heard.at >= since,
            is_own: false,
            way: None,
            is_raw: heard.is_raw,
        };
        if heard.at >= since {
            legs.push(leg);
        }
        let can_be_kept = config.cache > 0
            && self.asked.bits.rd
            && (heard.at >= self.timeline.flushed || since <= self.timeline.flushed);
        if !can_be_kept {
            return;
        }
        if heard.said.is_failure() {
            if heard.at < since && since <= heard.at + FAILURE {
                legs.push(leg);
            }
            return;
        }
        if heard.life.is_none() {
            return;
        }
        if heard.at < since && since < heard.at + life {
            legs.push(leg);
        }
        let stale = self.configs.iter().map(|config| config.stale).max().unwrap_or(0);
        if troubled
            && stale > 0
            && now >= heard.at + life
            && since < heard.at.saturating_add(life).saturating_add(stale)
        {
            leg.age = Age::Stale;
            legs.push(leg);
        }
    }
}

impl<'a> Leg<'a> {
    /// What the configuration says.
    fn own(said: &'a Said) -> Leg<'a> {
        let age = Age::Seconds(0, 0);
        Leg {
            said: Some(said),
            age,
            range: None,
            most: None,
            is_new: true,
            way: None,
            is_own: true,
            is_raw: false,
        }
    }

    /// The aliases that it tells.
    pub(crate) fn edges(&self) -> &'a [(NameId, NameId, u32)] {
        let edges = self.said.map_or(&[][..], |said| &said.edges);
        &edges[..self.way.unwrap_or(edges.len())]
    }

    /// Least and most that a TTL of the reply is by now.
    pub(crate) fn ttl(&self, said: u32) -> (u32, u32) {
        let plain = plain(said);
        let clamped = self.range.map_or(plain, |(least, most)| plain.clamp(least, most));
        let (low, high) =
            if self.is_raw { (clamped.min(plain), clamped.max(plain)) } else { (clamped, clamped) };
        match self.age {
            Age::Seconds(least, most) => (low.saturating_sub(most), high.saturating_sub(least)),
            Age::Stale => (STALE_TTL, STALE_TTL),
        }
    }

    /// The same of its SOA, whose TTL ends with a negative answer that was kept (RFC 2308 section 5).
    pub(crate) fn soa_ttl(&self, said: u32) -> (u32, u32) {
        let (low, high) = self.ttl(said);
        match (self.age, self.most) {
            (Age::Seconds(youngest, oldest), Some(most)) => {
                let end = |age: u32| most.saturating_sub(age);
                (low.min(end(oldest)), if self.is_new { high } else { high.min(end(youngest)) })
            }
            _ => (low, high),
        }
    }

    /// Seconds since it was heard.
    pub(crate) fn past_secs(&self) -> u32 {
        match self.age {
            Age::Seconds(_, most) => most,
            Age::Stale => 0,
        }
    }

    /// Whether it has expired.
    pub(crate) fn is_stale(&self) -> bool {
        matches!(self.age, Age::Stale)
    }

    pub(crate) fn is_secure(&self) -> bool {
        self.way.is_none() && self.said.is_some_and(|said| said.ad)
    }
}
