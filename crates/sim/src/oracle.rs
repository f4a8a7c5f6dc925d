//! A naive DNS64, written from RFC 6147 and RFC 8767: given what upstreams said to each question and when, and what went
//! wrong, it tells whether an answer is one of those that are allowed. It knows nothing of flights, links or entries: any
//! reply that was heard while the client waited, or that was young enough when it asked, may be a leg of its answer.

use crate::client_view::Seen;
use crate::config::Config;
use crate::leg::Leg;
use crate::pending::Pending;
use crate::rpz_oracle::{Mode, Ruled};
use crate::timeline::{Heard, Key, Timeline};
use crate::truth::{A, AAAA, Bits, NameId, SECOND, Said};

use core::cell::Cell;
use std::net::IpAddr;

/// RFC 6147 section 5.1.7: the TTL bound when the AAAA answer has no SOA.
pub(crate) const WITHOUT_SOA: u32 = 600;
/// The longest that a failure is remembered (RFC 9520 allows five minutes; the engine promises 32 s).
pub(crate) const FAILURE: u64 = 33 * SECOND;
/// Aliases that are followed for one client, one question each.
const HOPS: usize = 8;

/// One client question and its answer.
pub struct Case<'a> {
    /// What was heard.
    pub timeline: &'a Timeline,
    /// The configurations since the question came, the last of them in force.
    pub configs: &'a [Config],
    /// The question.
    pub asked: &'a Pending,
    /// The answer.
    pub seen: &'a Seen,
    /// When it came.
    pub now: u64,
    /// Octets that it may take, at least.
    pub limit: usize,
    /// Client without DNS64 where IPv4 has none.
    pub is_v4: bool,
    /// The name asked is `ipv4only.arpa`.
    pub is_ipv4only: bool,
    /// The client's address.
    pub client: IpAddr,
    /// What a response policy has decided so far.
    pub mode: Cell<Mode<'a>>,
}

impl<'a> Case<'a> {
    /// Whether the answer is allowed.
    pub fn is_allowed(&self) -> bool {
        let asked = self.asked;
        let direct = |config: &Config| {
            asked.rtype != AAAA
                // RFC 7050 section 3: the prefixes are told by addresses that are never synthesized from others.
                || self.is_ipv4only
                || self.is_v4 && config.v6_only
                || asked.bits.dnssec_ok && asked.bits.cd && !config.break_dnssec
                || config.recursive_only && !asked.bits.rd
        };
        // What arrived again was perhaps taken in under another configuration.
        let first = if asked.sent > 1 { self.configs } else { &self.configs[..1] };
        let passes = |config: &'a Config| self.passes(asked.name, asked.rtype, config);
        if first.iter().any(direct) && self.configs.iter().any(passes) {
            return true;
        }
        !first.iter().all(direct)
            && self.configs.iter().any(|judge| {
                self.configs.iter().any(|config| self.after_aaaa(asked.name, &mut vec![], judge, config))
            })
    }

    fn key(&self, name: NameId, rtype: u16) -> Key {
        Key { name, rtype, bits: self.asked.bits }
    }

    /// The answer is the leg for this very question.
    fn passes(&self, name: NameId, rtype: u16, config: &'a Config) -> bool {
        self.passes_behind(name, rtype, &mut vec![], config)
    }

    fn passes_behind(&self, name: NameId, rtype: u16, before: &mut Vec<Leg<'a>>, config: &'a Config) -> bool {
        match self.before_leg(name, rtype, before, config) {
            Ruled::Not => {}
            Ruled::Over(is_allowed) => return is_allowed,
            Ruled::Goes(mode) => {
                return self.within(mode, || self.passes_behind(name, rtype, before, config));
            }
        }
        self.legs(self.key(name, rtype)).into_iter().any(|leg| {
            match self.after_leg(name, &leg, before, config) {
                Ruled::Not => {}
                Ruled::Over(is_allowed) => return is_allowed,
                Ruled::Goes(mode) => {
                    return self.within(mode, || self.passes_behind(name, rtype, before, config));
                }
            }
            let Some(said) = leg.said else { return self.is_failed() };
            // An upstream follows aliases itself; those that are configured are followed here.
            let is_followed = leg.is_own && said.is_unfinished() && self.follows(name, before, said);
            before.push(leg);
            let is_allowed = match is_followed {
                true => self.passes_behind(said.end(name), rtype, before, config),
                false => self.is_passed(before, false, true, config),
            };
            before.pop();
            is_allowed
        })
    }

    /// RFC 6147 sections 5.1.1 to 5.1.5.
    fn after_aaaa(
        &self,
        name: NameId,
        before: &mut Vec<Leg<'a>>,
        judge: &'a Config,
        config: &'a Config,
    ) -> bool {
        match self.before_leg(name, AAAA, before, config) {
            Ruled::Not => {}
            Ruled::Over(is_allowed) => return is_allowed,
            Ruled::Goes(mode) => return self.within(mode, || self.after_aaaa(name, before, judge, config)),
        }
        let bits = self.asked.bits;
        let [on_servfail, on_refused, on_formerr, on_notimp, on_silence] = judge.synthesize;
        for leg in self.legs(self.key(name, AAAA)) {
            let is_ruled = match self.after_leg(name, &leg, before, config) {
                Ruled::Not => None,
                Ruled::Over(is_allowed) => Some(is_allowed),
                Ruled::Goes(mode) => Some(self.within(mode, || self.after_aaaa(name, before, judge, config))),
            };
            match is_ruled {
                Some(true) => return true,
                Some(false) => continue,
                None => {}
            }
            let mut cause_is_nodata = false;
            let Some(said) = leg.said else {
                if on_silence && self.decide_by_a(name, before, &leg, false, judge, config)
                    || !on_silence && self.is_failed()
                {
                    return true;
                }
                continue;
            };
            let mut pass = || {
                before.push(leg);
                let is_passed = self.is_passed(before, true, true, config);
                before.pop();
                is_passed
            };
            let goes_on = match said.rcode {
                3 => {
                    if pass() {
                        return true;
                    }
                    continue;
                }
                2 if said.ede == Some(6) => {
                    if pass() {
                        return true;
                    }
                    continue;
                }
                2 => on_servfail,
                5 => on_refused,
                1 => on_formerr,
                4 => on_notimp,
                _ => true,
            };
            if !goes_on {
                if pass() {
                    return true;
                }
                continue;
            }
            if said.rcode == 2 && said.ede.is_none_or(|code| code == 13) && judge.trust && !bits.cd {
                // Section 5.5 (2): a failure that may mean a bogus answer is found out about by asking without validation.
                let unchecked = Key { name, rtype: AAAA, bits: Bits { cd: true, ..bits } };
                let is_data = |said: &Said| matches!(said.rcode, 0 | 3);
                // That a name is bogus is remembered as long as a failure. What has expired says nothing of now.
                let heard = self.timeline.get(unchecked).map_or(&[][..], |track| &track.heard);
                let is_bogus = |heard: &Heard| {
                    let over = heard.at.saturating_add(heard.life.unwrap_or(0)) + FAILURE + 8 * SECOND;
                    is_data(&heard.said) && over >= self.asked.at
                };
                if heard.iter().any(is_bogus) && (self.is_failed() || pass()) {
                    return true;
                }
                let is_answered = |leg: &Leg<'_>| leg.said.is_some_and(is_data) && !leg.is_stale();
                if self.legs(unchecked).iter().all(is_answered) {
                    continue;
                }
            }
            if said.rcode == 0 {
                let is_real = |address: &[u8; 16]| !judge.excludes(address);
                if said.v6.iter().any(is_real) {
                    if !judge.ignores_real(self.asked.name) {
                        if pass() {
                            return true;
                        }
                        continue;
                    }
                } else if said.is_unfinished() && said.v6.is_empty() {
                    if self.follows(name, before, said) {
                        before.push(leg);
                        let is_allowed = self.after_aaaa(said.end(name), before, judge, config);
                        before.pop();
                        if is_allowed {
                            return true;
                        }
                        continue;
                    }
                    cause_is_nodata = true;
                } else {
                    cause_is_nodata = said.v6.is_empty();
                }
            }
            if self.decide_by_a(name, before, &leg, cause_is_nodata, judge, config) {
                return true;
            }
        }
        false
    }

    /// Whether an unfinished alias is asked further: not round and round, and not for ever.
    fn follows(&self, name: NameId, before: &[Leg<'a>], said: &Said) -> bool {
        let end = said.end(name);
        let comes_back =
            |leg: &Leg<'_>| leg.said.is_some_and(|said| said.edges.first().is_some_and(|edge| edge.0 == end));
        before.len() < HOPS && !before.iter().any(comes_back)
    }

    /// RFC 6147 sections 5.1.6 and 5.1.7.
    fn decide_by_a(
        &self,
        name: NameId,
        before: &mut Vec<Leg<'a>>,
        aaaa: &Leg<'a>,
        is_nodata: bool,
        judge: &'a Config,
        config: &'a Config,
    ) -> bool {
        match self.before_leg(name, A, before, config) {
            Ruled::Not => {}
            Ruled::Over(is_allowed) => return is_allowed,
            Ruled::Goes(mode) => {
                return self.within(mode, || self.decide_by_a(name, before, aaaa, is_nodata, judge, config));
            }
        }
        let aaaa_secure = aaaa.said.is_some_and(|said| said.ad && said.rcode == 0) && judge.trust;
        for leg in self.legs(self.key(name, A)) {
            let is_ruled = match self.after_leg(name, &leg, before, config) {
                Ruled::Not => None,
                Ruled::Over(is_allowed) => Some(is_allowed),
                Ruled::Goes(mode) => {
                    Some(self.within(mode, || self.decide_by_a(name, before, aaaa, is_nodata, judge, config)))
                }
            };
            match is_ruled {
                Some(true) => return true,
                Some(false) => continue,
                None => {}
            }
            let Some(said) = leg.said else {
                if self.is_failed() {
                    return true;
                }
                continue;
            };
            before.push(leg);
            let is_allowed = if said.rcode != 0 || said.v4.is_empty() {
                if said.is_unfinished() && self.follows(name, &before[..before.len() - 1], said) {
                    self.decide_by_a(said.end(name), before, aaaa, is_nodata, judge, config)
                } else {
                    self.is_passed(before, false, aaaa_secure && is_nodata, config)
                }
            } else {
                self.is_synthesized(name, before, aaaa, is_nodata, aaaa_secure, judge, config)
            };
            before.pop();
            if is_allowed {
                return true;
            }
        }
        false
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "both legs, and the configurations that they were judged by"
    )]
    fn is_synthesized(
        &self,
        name: NameId,
        legs: &[Leg<'a>],
        aaaa: &Leg<'a>,
        is_nodata: bool,
        aaaa_secure: bool,
        judge: &Config,
        config: &Config,
    ) -> bool {
        let Some((last, before)) = legs.split_last() else { return false };
        let Some(said) = last.said else { return false };
        let mut wanted = vec![];
        let mut done: Vec<[u8; 4]> = vec![];
        for &address in &said.v4 {
            if done.contains(&address) {
                continue;
            }
            done.push(address);
            for prefix in config.prefixes_for(self.asked.name, address) {
                // 127 is in never-embed; 10 is not global (RFC 6052 section 3.1).
                let is_barred = address[0] == 127 || address[0] == 10 && prefix.is_well_known();
                if !is_barred && wanted.len() < config.max_records {
                    wanted.push(prefix.embed(address));
                }
            }
        }
        if wanted.is_empty() {
            // Nothing may be embedded: the AAAA answer is the basis, for its SOA.
            let mut led = before.to_vec();
            let passes_basis = is_nodata
                && self.legs(self.key(name, AAAA)).into_iter().any(|leg| match leg.said {
                    Some(said) if said.rcode == 0 => {
                        led.push(leg);
                        let is_passed = self.is_passed(&led, true, true, config);
                        led.pop();
                        is_passed
                    }
                    // The aliases that led to the name are known whatever becomes of the SOA.
                    _ => self.is_led(before),
                });
            if passes_basis {
                return true;
            }
        }
        let is_kept = config.cache > 0 && self.asked.bits.rd && before.is_empty();
        let (mut low, mut high) = self.negative_ttl(aaaa, is_kept, judge);
        let (a_low, a_high) = last.ttl(said.ttl);
        // A copy of a synthesis counts whole seconds since it was made, of legs that count theirs: one may be lost.
        let slack = u32::from(is_kept);
        (low, high) = (low.min(a_low), high.min(a_high.saturating_add(slack)));
        if self.seen.rcode() != 0 || !self.has_edges(legs) || !self.seen.v4.is_empty() {
            return false;
        }
        let end = said.end(name);
        let secure = aaaa_secure
            && said.ad
            && config.trust
            && before.iter().all(Leg::is_secure)
            && self.asked.bits.dnssec_ok
            && !self.asked.bits.cd;
        if self.seen.is_cut() {
            // RFC 2181 section 9: RRsets are whole or missing.
            let is_whole = self.seen.v6.is_empty() || self.seen.v6.len() == wanted.len();
            return is_whole
                && self.seen.v6.iter().all(|record| wanted.contains(&record.2))
                && self.may_be_cut(legs, wanted.len());
        }
        self.seen.v6.iter().map(|record| &record.2).eq(&wanted)
            && self.seen.v6.iter().all(|&(owner, ttl, _)| owner == end && (low..=high).contains(&ttl))
            && self.seen.signed.is_empty()
            && self.seen.ad() == secure
    }

    /// The TTL bound of the AAAA leg: least and most. `is_kept`: the synthesis may have been made some time ago.
    fn negative_ttl(&self, aaaa: &Leg<'_>, is_kept: bool, config: &Config) -> (u32, u32) {
        let least = if config.cache > 0 && self.asked.bits.rd { config.ttl_range.0 } else { 0 };
        let past = if is_kept { aaaa.past_secs() } else { 0 };
        let Some((ttl, minimum)) = aaaa.said.and_then(|said| said.soa) else {
            return (WITHOUT_SOA.saturating_sub(past), WITHOUT_SOA);
        };
        let (low, high) = aaaa.soa_ttl(ttl);
        let low = low.min(minimum.saturating_sub(past));
        let low = if is_kept { low } else { low.max(least) };
        (low, high.min(minimum).max(least).saturating_add(u32::from(is_kept)))
    }

    /// Whether the answer is what the last leg says, behind the aliases of those before. `filter`: without excluded addresses.
    /// `is_proved`: its AD would be true of the answer.
    fn is_passed(&self, legs: &[Leg<'a>], filter: bool, is_proved: bool, config: &Config) -> bool {
        let seen = self.seen;
        let Some((last, before)) = legs.split_last() else { return false };
        let Some(said) = last.said else { return false };
        if u16::from(said.rcode) != seen.rcode() || !self.has_edges(legs) {
            return false;
        }
        let keeps = |address: &&[u8; 16]| !(filter && config.excludes(address));
        let v6: Vec<_> = said.v6.iter().filter(keeps).collect();
        if seen.is_cut() {
            // RFC 2181 section 9: RRsets are whole or missing.
            let is_whole = |seen: usize, said: usize| seen == 0 || seen == said;
            return seen.v6.iter().all(|record| v6.contains(&&record.2))
                && seen.v4.iter().all(|record| said.v4.contains(&record.2))
                && is_whole(seen.v6.len(), v6.len())
                && is_whole(seen.v4.len(), said.v4.len())
                && self.may_be_cut(legs, said.v4.len() + v6.len());
        }
        let (low, high) = last.ttl(said.ttl);
        let end =
            if said.is_loop { self.asked.name } else { said.edges.last().map_or(NameId::MAX, |edge| edge.1) };
        let fits =
            |owner: NameId, ttl: u32| (owner == end || said.edges.is_empty()) && (low..=high).contains(&ttl);
        let is_filtered = v6.len() < said.v6.len();
        let wants_ad = self.asked.bits.ad || self.asked.bits.dnssec_ok;
        let ad = said.ad
            && config.trust
            && wants_ad
            && is_proved
            && !is_filtered
            && before.iter().all(Leg::is_secure);
        let is_pointed = seen.pointers.iter().map(|record| record.2).eq(said.pointer)
            && seen.pointers.iter().all(|&(owner, ttl, _)| fits(owner, ttl));
        is_pointed
            && seen.v4.iter().map(|record| &record.2).eq(&said.v4)
            && seen.v6.iter().map(|record| &record.2).eq(v6)
            && seen.v4.iter().all(|&(owner, ttl, _)| fits(owner, ttl))
            && seen.v6.iter().all(|&(owner, ttl, _)| fits(owner, ttl))
            && self.has_soa(last, said)
            && seen.signed.is_empty() != (said.signed && !is_filtered)
            && seen.ad() == ad
    }

    fn has_soa(&self, leg: &Leg<'_>, said: &Said) -> bool {
        match (self.seen.soa, said.soa) {
            (None, None) => true,
            (Some((ttl, minimum)), Some((said_ttl, said_minimum))) => {
                let (low, high) = leg.soa_ttl(said_ttl);
                (low..=high).contains(&ttl) && minimum == said_minimum
            }
            _ => false,
        }
    }

    /// Whether the aliases of the answer are those of the legs, with TTLs that fit.
    pub(crate) fn has_edges(&self, legs: &[Leg<'_>]) -> bool {
        let mut wanted = vec![];
        for leg in legs {
            for &(owner, target, ttl) in leg.edges() {
                let (low, high) = leg.ttl(ttl);
                wanted.push((owner, target, low, high.saturating_add(1)));
            }
        }
        let fits = |&(owner, target, ttl): &(NameId, NameId, u32)| {
            wanted
                .iter()
                .any(|&(from, to, low, high)| (from, to) == (owner, target) && (low..=high).contains(&ttl))
        };
        let seen = &self.seen.edges;
        seen.iter().all(fits)
            && (seen.len() == wanted.len() || self.seen.is_cut() && seen.len() < wanted.len())
    }

    /// Whether so many records may be too much for the client.
    pub(crate) fn may_be_cut(&self, legs: &[Leg<'_>], addresses: usize) -> bool {
        // Names have at most 30 octets here; nothing is compressed in this estimate.
        const NAME: usize = 32;
        let edges: usize = legs.iter().filter_map(|leg| leg.said).map(|said| said.edges.len()).sum();
        let most = 12
            + self.asked.question.len()
            + addresses * (NAME + 26)
            + edges * (2 * NAME + 10)
            // Question, OPT record with its options, signature.
            + 17
            + 160
            + 160;
        !self.asked.tcp && most > self.limit
    }

    /// Nothing but the aliases of these legs.
    fn is_led(&self, before: &[Leg<'_>]) -> bool {
        let seen = self.seen;
        let has_room = !seen.is_cut() || self.may_be_cut(before, 0);
        seen.rcode() == 0
            && seen.v4.is_empty()
            && seen.v6.is_empty()
            && !seen.ad()
            && seen.soa.is_none()
            && self.has_edges(before)
            && has_room
    }

    /// SERVFAIL without anything.
    fn is_failed(&self) -> bool {
        self.is_empty(2)
    }

    fn is_empty(&self, rcode: u16) -> bool {
        let seen = self.seen;
        seen.rcode() == rcode
            && seen.v4.is_empty()
            && seen.v6.is_empty()
            && seen.edges.is_empty()
            && !seen.ad()
    }
}

impl Seen {
    /// RCODE.
    pub fn rcode(&self) -> u16 {
        self.flags & 15
    }

    /// AD.
    pub fn ad(&self) -> bool {
        self.flags & 0x20 != 0
    }

    /// TC.
    pub fn is_cut(&self) -> bool {
        self.flags & 0x0200 != 0
    }
}
