//! Possible results of one lookup (the AAAA or the A lookup) of an answer: every reply that arrived while the client waited, every
//! reply that was young enough when the query arrived, expired replies if something went wrong, and no reply at all.

use crate::case::{Case, RpzState};
use crate::config::Config;
use crate::ground_truth::{NameId, SECOND, Said};
use crate::timeline::{Heard, Key};

/// TTL of expired data in an answer, seconds (RFC 8767 section 4).
const STALE_TTL: u32 = 30;
/// Longest time for which a failure is cached (RFC 9520 allows five minutes; the engine promises 32 s).
pub(crate) const FAILURE_LIFE: u64 = 33 * SECOND;

/// Age of a lookup when the client gets it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Age {
    /// Least and greatest age, seconds.
    Seconds(u32, u32),
    /// The data have expired.
    Stale,
}

/// One possible result of a lookup.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LookupReport<'a> {
    /// The reply; none: no reply in time.
    pub(crate) reply: Option<&'a Said>,
    pub(crate) age: Age,
    /// Range into which TTLs are brought when the reply is cached, seconds.
    pub(crate) ttl_range: Option<(u32, u32)>,
    /// Seconds for which a negative reply may be cached.
    pub(crate) negative_secs: Option<u32>,
    /// The reply arrived while the client waited, and may be passed on as it came.
    pub(crate) is_new: bool,
    /// Only this many CNAME records of the reply count, and no other records.
    pub(crate) alias_limit: Option<usize>,
    /// The limit is there because the configuration decides about the next name, so the records before it count as they are.
    pub(crate) is_diverted: bool,
    /// The configuration answers.
    pub(crate) is_local: bool,
    /// The reply was perhaps not cached, and its TTLs are those of the upstream.
    pub(crate) may_be_uncached: bool,
}

/// A TTL as it counts: 0 if the highest bit is set (RFC 2181 section 8).
fn effective_ttl(ttl: u32) -> u32 {
    if ttl > i32::MAX as u32 { 0 } else { ttl }
}

/// Time for which a reply may be cached, nanoseconds (RFC 2308 section 5 for negative replies).
pub fn life(said: &Said, rtype: u16, config: &Config) -> Option<u64> {
    if said.cut || said.is_failure() {
        return None;
    }
    let (least, most) = config.ttl_range;
    let clamp = |ttl: u32| effective_ttl(ttl).clamp(least, most.max(least));
    let mut ttl = said.edges.iter().map(|edge| clamp(edge.2)).min().unwrap_or(u32::MAX);
    if said.is_answer(rtype) {
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

/// All possible results of a lookup.
pub(crate) fn possible_lookups<'a>(case: &Case<'a>, key: Key) -> Vec<LookupReport<'a>> {
    let (local, needs_upstream) = local_replies(case, key);
    let mut lookups: Vec<LookupReport<'a>> = local.into_iter().map(LookupReport::local).collect();
    if !needs_upstream {
        return lookups;
    }
    let since = case.query.at;
    let was_troubled = case.timeline.was_troubled(since);
    let heard = case.timeline.get(key).map_or(&[][..], |track| &track.heard);
    // A newer reply replaces the older ones, and everything that was made of them.
    let newest = heard.iter().rposition(|heard| heard.is_news && heard.at < since).unwrap_or(0);
    for heard in &heard[newest..] {
        add_lookups_of_reply(case, key.rtype, heard, was_troubled, &mut lookups);
    }
    if case.timeline.may_have_failed(key, since) {
        lookups.push(LookupReport::fresh(None, false));
    }
    lookups
}

/// The local replies to a question in all configurations, and whether one of these sends the question to an upstream.
fn local_replies<'a>(case: &Case<'a>, key: Key) -> (Vec<&'a Said>, bool) {
    let (mut needs_upstream, mut local) = (false, vec![]);
    for config in case.configs {
        let reply = if case.is_answered_locally(key.name, key.rtype, config) {
            config.own.lookup(key.name, key.rtype)
        } else {
            None
        };
        needs_upstream |= reply.is_none();
        local.extend(reply);
    }
    if needs_upstream && let RpzState::Data(rule) = case.rpz.get() {
        needs_upstream = false;
        local.push(rule.reply_to(key.rtype));
    }
    (local, needs_upstream)
}

/// Adds the lookups that one upstream reply may have become: the reply itself, its cached copy, its expired copy.
fn add_lookups_of_reply<'a>(
    case: &Case<'a>,
    rtype: u16,
    heard: &'a Heard,
    was_troubled: bool,
    lookups: &mut Vec<LookupReport<'a>>,
) {
    let (since, now) = (case.query.at, case.now);
    let config = &case.configs[case.configs.len() - 1];
    let seconds = |span: u64| (span / SECOND).min(u64::from(u32::MAX)) as u32;
    let life = heard.life.unwrap_or(0);
    let mut lookup = LookupReport {
        reply: Some(&heard.said),
        age: Age::Seconds(seconds(since.saturating_sub(heard.at)), seconds(now.saturating_sub(heard.at))),
        ttl_range: heard.range,
        negative_secs: heard.life.filter(|_| !heard.said.is_answer(rtype)).map(seconds),
        is_new: heard.at >= since,
        alias_limit: None,
        is_diverted: false,
        is_local: false,
        may_be_uncached: heard.is_raw,
    };
    if heard.at >= since {
        lookups.push(lookup);
    }
    let may_be_cached = config.cache > 0
        && case.query.bits.rd
        && (heard.at >= case.timeline.flushed || since <= case.timeline.flushed);
    if !may_be_cached {
        return;
    }
    if heard.said.is_failure() {
        if heard.at < since && since <= heard.at + FAILURE_LIFE {
            lookups.push(lookup);
        }
        return;
    }
    if heard.life.is_none() {
        return;
    }
    if heard.at < since && since < heard.at + life {
        lookups.push(lookup);
    }
    let stale = case.configs.iter().map(|config| config.stale).max().unwrap_or(0);
    if was_troubled
        && stale > 0
        && now >= heard.at + life
        && since < heard.at.saturating_add(life).saturating_add(stale)
    {
        lookup.age = Age::Stale;
        lookups.push(lookup);
    }
}

impl<'a> LookupReport<'a> {
    /// An answer of the configuration.
    fn local(said: &'a Said) -> LookupReport<'a> {
        LookupReport::fresh(Some(said), true)
    }

    /// A lookup of age 0 that was never cached.
    fn fresh(reply: Option<&'a Said>, is_local: bool) -> LookupReport<'a> {
        LookupReport {
            reply,
            age: Age::Seconds(0, 0),
            ttl_range: None,
            negative_secs: None,
            is_new: true,
            alias_limit: None,
            is_diverted: false,
            is_local,
            may_be_uncached: false,
        }
    }

    /// The CNAME records of the lookup: owner, target, TTL.
    pub(crate) fn edges(&self) -> &'a [(NameId, NameId, u32)] {
        let edges = self.reply.map_or(&[][..], |said| &said.edges);
        &edges[..self.alias_limit.unwrap_or(edges.len())]
    }

    /// Least and greatest value that a TTL of the reply may have by now.
    pub(crate) fn ttl(&self, said: u32) -> (u32, u32) {
        let ttl = effective_ttl(said);
        let clamped = self.ttl_range.map_or(ttl, |(least, most)| ttl.clamp(least, most));
        let (low, high) =
            if self.may_be_uncached { (clamped.min(ttl), clamped.max(ttl)) } else { (clamped, clamped) };
        match self.age {
            Age::Seconds(least, most) => (low.saturating_sub(most), high.saturating_sub(least)),
            Age::Stale => (STALE_TTL, STALE_TTL),
        }
    }

    /// Least and greatest value that the TTL of the SOA record may have by now. It ends together with a cached negative answer
    /// (RFC 2308 section 5).
    pub(crate) fn soa_ttl(&self, said: u32) -> (u32, u32) {
        let (low, high) = self.ttl(said);
        match (self.age, self.negative_secs) {
            (Age::Seconds(youngest, oldest), Some(most)) => {
                let end = |age: u32| most.saturating_sub(age);
                (low.min(end(oldest)), if self.is_new { high } else { high.min(end(youngest)) })
            }
            _ => (low, high),
        }
    }

    /// Greatest age, seconds; 0 for expired data.
    pub(crate) fn age_secs(&self) -> u32 {
        match self.age {
            Age::Seconds(_, most) => most,
            Age::Stale => 0,
        }
    }

    /// True if the data have expired.
    pub(crate) fn is_stale(&self) -> bool {
        matches!(self.age, Age::Stale)
    }

    /// True if the whole reply is authenticated (AD).
    pub(crate) fn is_secure(&self) -> bool {
        (self.alias_limit.is_none() || self.is_diverted) && self.reply.is_some_and(|said| said.ad)
    }
}
