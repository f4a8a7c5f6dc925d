//! A naive DNS64, written from RFC 6147 and RFC 8767: given the replies of upstreams to each question with their times, and
//! the troubles, it decides whether an answer is allowed. It knows no outbound queries, links or cache entries: any reply that
//! arrived while the client waited, or that was young enough when the query arrived, may be a lookup of the answer.
//!
//! The way of a judgement: [`Case::is_allowed`] → AAAA lookup → A lookup → comparison of the answer with these lookups (`comparison.rs`).

use crate::case::{Case, RpzState};
use crate::comparison::{Aaaa, embedded_addresses, is_forwarded, is_servfail, is_synthesized, is_verified};
use crate::config::Config;
use crate::ground_truth::{A, AAAA, Bits, NameId, SECOND, Said, ZONES, zone_of};
use crate::lookup::{FAILURE_LIFE, LookupReport, possible_lookups};
use crate::rpz_oracle::{Lookup, RpzEffect, after_lookup, before_lookup};
use crate::timeline::{Heard, Key};

/// Largest number of aliases that are chased for one query, with one question each.
pub(crate) const MAX_CHASED: usize = 8;

/// The zone with upstream servers of its own.
const OWN_SERVERS: usize = ZONES.len() - 1;

/// The two configurations that may be involved in one answer, if there was a reload.
#[derive(Clone, Copy)]
struct ConfigPair<'a> {
    /// The configuration that decided whether to synthesize.
    decided_by: &'a Config,
    /// The configuration that wrote the answer.
    written_by: &'a Config,
}

impl<'a> Case<'a> {
    /// True if the answer is allowed.
    pub fn is_allowed(&self) -> bool {
        let query = self.query;
        let has_no_synthesis = |config: &Config| {
            query.rtype != AAAA
                // RFC 7050 section 3: the AAAA records of this name reveal the prefixes, and are never synthesized from others.
                || self.is_ipv4only
                || self.is_v4 && config.v6_only
                || query.bits.dnssec_ok && query.bits.cd && !config.break_dnssec
                || config.recursive_only && !query.bits.rd
        };
        // A retransmitted query was perhaps accepted under another configuration.
        let first = if query.sent > 1 { self.configs } else { &self.configs[..1] };
        let allows = |config: &'a Config| self.allows_direct(query.name, query.rtype, &mut vec![], config);
        if first.iter().any(has_no_synthesis) && self.configs.iter().any(allows) {
            return true;
        }
        !first.iter().all(has_no_synthesis)
            && self.configs.iter().any(|decided_by| {
                self.configs.iter().any(|written_by| {
                    self.allows_dns64(query.name, &mut vec![], ConfigPair { decided_by, written_by })
                })
            })
    }

    /// True if the answer is the result of one lookup, without synthesis. `before`: the lookups that led to the name.
    fn allows_direct(
        &self,
        name: NameId,
        rtype: u16,
        before: &mut Vec<LookupReport<'a>>,
        config: &'a Config,
    ) -> bool {
        match before_lookup(self, name, rtype, before, config) {
            RpzEffect::None => {}
            RpzEffect::Decided(is_allowed) => return is_allowed,
            RpzEffect::Continue(state) => {
                return self.with_rpz(state, || self.allows_direct(name, rtype, before, config));
            }
        }
        self.lookups(name, rtype).into_iter().any(|lookup| {
            match after_lookup(self, name, &lookup, before, config, Lookup::Direct(rtype)) {
                RpzEffect::None => {}
                RpzEffect::Decided(is_allowed) => return is_allowed,
                RpzEffect::Continue(state) => {
                    return self.with_rpz(state, || self.allows_direct(name, rtype, before, config));
                }
            }
            let Some(said) = lookup.reply else { return is_servfail(self) };
            // A query without RD is answered with what the upstream has.
            let is_unfinished = said.is_unfinished() && (lookup.is_local || self.query.bits.rd);
            let chase = Chase::of(before, &lookup, is_unfinished);
            before.push(lookup);
            let is_allowed = match chase {
                Chase::Goes(target) => self.allows_direct(target, rtype, before, config),
                Chase::Fails => is_servfail(self),
                Chase::None => is_forwarded(self, before, false, true, config),
            };
            before.pop();
            is_allowed
        })
    }

    /// True if DNS64 allows the answer (RFC 6147 sections 5.1.1 to 5.1.7), beginning with the AAAA lookup.
    fn allows_dns64(
        &self,
        name: NameId,
        before: &mut Vec<LookupReport<'a>>,
        configs: ConfigPair<'a>,
    ) -> bool {
        match before_lookup(self, name, AAAA, before, configs.written_by) {
            RpzEffect::None => {}
            RpzEffect::Decided(is_allowed) => return is_allowed,
            RpzEffect::Continue(state) => {
                return self.with_rpz(state, || self.allows_dns64(name, before, configs));
            }
        }
        self.lookups(name, AAAA).into_iter().any(|lookup| {
            let leads_to_a = self.leads_to_a(&lookup, before, configs);
            match after_lookup(self, name, &lookup, before, configs.written_by, Lookup::Aaaa(leads_to_a)) {
                RpzEffect::None => self.allows_after_aaaa(name, before, lookup, configs),
                RpzEffect::Decided(is_allowed) => is_allowed,
                RpzEffect::Continue(state) => {
                    self.with_rpz(state, || self.allows_dns64(name, before, configs))
                }
            }
        })
    }

    /// True if A is asked after this result of the AAAA lookup.
    fn leads_to_a(
        &self,
        lookup: &LookupReport<'_>,
        before: &[LookupReport<'_>],
        configs: ConfigPair<'_>,
    ) -> bool {
        let decided_by = configs.decided_by;
        let Some(said) = lookup.reply else { return decided_by.synthesize[4] };
        if lookup.is_diverted || !synthesizes_after(said, decided_by) {
            return false;
        }
        if said.rcode != 0 {
            return true;
        }
        let is_real = |address: &[u8; 16]| !decided_by.excludes(address);
        match said.v6.iter().any(is_real) {
            true => {
                let is_dead = |address: &[u8; 16]| !is_real(address) || self.is_dead(address);
                let are_dead = self.verifies(decided_by) && !lookup.is_local && said.v6.iter().all(is_dead);
                decided_by.ignores_real(self.query.name) || are_dead
            }
            false => Chase::of(before, lookup, said.is_unfinished() && said.v6.is_empty()) == Chase::None,
        }
    }

    /// True if the answer is allowed after this result of the AAAA lookup (RFC 6147 sections 5.1.1 to 5.1.5).
    fn allows_after_aaaa(
        &self,
        name: NameId,
        before: &mut Vec<LookupReport<'a>>,
        lookup: LookupReport<'a>,
        configs: ConfigPair<'a>,
    ) -> bool {
        let decided_by = configs.decided_by;
        let [.., on_timeout] = decided_by.synthesize;
        let Some(said) = lookup.reply else {
            let aaaa = Aaaa { lookup: &lookup, is_nodata: false, is_dead: false, decided_by };
            return if on_timeout {
                self.allows_after_a_lookup(name, before, aaaa, configs)
            } else {
                is_servfail(self)
            };
        };
        if lookup.is_diverted {
            let chase = Chase::of(before, &lookup, true);
            return self.allows_chase(chase, before, lookup, |target, before| {
                self.allows_dns64(target, before, configs)
            });
        }
        if !synthesizes_after(said, decided_by) {
            return self.is_forwarded_behind(before, lookup, configs);
        }
        if said.rcode == 2
            && said.ede.is_none_or(|code| code == 13)
            && decided_by.trust
            && !self.query.bits.cd
        {
            if self.was_found_bogus(name)
                && (is_servfail(self) || self.is_forwarded_behind(before, lookup, configs))
            {
                return true;
            }
            if self.is_surely_bogus(name) {
                return false;
            }
        }
        let mut is_nodata = false;
        if said.rcode == 0 {
            let is_real = |address: &[u8; 16]| !decided_by.excludes(address);
            if said.v6.iter().any(is_real) {
                // What is known here counts as it is.
                if !lookup.is_local && self.verifies(decided_by) {
                    return self.allows_verified(name, before, lookup, configs);
                }
                if !decided_by.ignores_real(self.query.name) {
                    return self.is_forwarded_behind(before, lookup, configs);
                }
            } else {
                let chase = Chase::of(before, &lookup, said.is_unfinished() && said.v6.is_empty());
                if chase != Chase::None {
                    return self.allows_chase(chase, before, lookup, |target, before| {
                        self.allows_dns64(target, before, configs)
                    });
                }
                is_nodata = said.v6.is_empty();
            }
        }
        self.allows_after_a_lookup(
            name,
            before,
            Aaaa { lookup: &lookup, is_nodata, is_dead: false, decided_by },
            configs,
        )
    }

    /// True if the answer is allowed after an AAAA lookup with real addresses, under a rule that verifies them: the living ones, or if all are
    /// dead what the A lookup leads to, or the dead ones if that is nothing.
    fn allows_verified(
        &self,
        name: NameId,
        before: &mut Vec<LookupReport<'a>>,
        lookup: LookupReport<'a>,
        configs: ConfigPair<'a>,
    ) -> bool {
        let ConfigPair { decided_by, written_by } = configs;
        let real = lookup
            .reply
            .into_iter()
            .flat_map(|said| &said.v6)
            .filter(|address| !decided_by.excludes(address));
        let are_dead = real.clone().all(|address| self.is_dead(address));
        if are_dead {
            let aaaa = Aaaa { lookup: &lookup, is_nodata: false, is_dead: true, decided_by };
            if self.allows_after_a_lookup(name, before, aaaa, configs) {
                return true;
            }
            // A reload between the two lookups may bring a prefix back, and the states of its former gateways are not kept.
            let may_refuse = |config: &Config| {
                self.configs.len() > 1
                    && config.gateways.as_ref().is_some_and(|gateways| gateways.is_empty_if_all_down)
            };
            let has_none = |said: &Said| {
                let is_empty =
                    |config| may_refuse(config) || embedded_addresses(self, said, config).is_empty();
                said.rcode != 0 || self.configs.iter().any(is_empty)
            };
            let mut others = self.lookups(name, A).into_iter();
            if !others.any(|lookup| lookup.reply.is_none_or(has_none)) {
                return false;
            }
            // What is not in the cache is asked for again, and a failure then is the answer.
            let again = self.lookups(name, AAAA);
            let mut failed =
                again.into_iter().filter(|lookup| lookup.reply.is_none_or(|said| said.rcode != 0));
            let is_failure = failed.any(|lookup| match lookup.reply {
                None => is_servfail(self),
                Some(_) => self.is_forwarded_behind(before, lookup, configs),
            });
            if is_failure {
                return true;
            }
        }
        before.push(lookup);
        let is_verified = is_verified(self, before, are_dead, written_by);
        before.pop();
        is_verified
    }

    /// True if the answer has the dead addresses of the name that the A lookup has led to, from its own AAAA lookup. Those that came with the
    /// alias are allowed as well, by [`Case::allows_verified`]. The last of `before` is the A lookup of the name, which says nothing.
    fn allows_dead_addresses(
        &self,
        name: NameId,
        before: &mut Vec<LookupReport<'a>>,
        configs: ConfigPair<'a>,
    ) -> bool {
        let Some(of_a) = before.pop() else { return false };
        let has_addresses = |lookup: &LookupReport<'_>| {
            lookup.reply.is_some_and(|said| said.rcode == 0 && !said.v6.is_empty())
        };
        let is_allowed = self.lookups(name, AAAA).into_iter().filter(has_addresses).any(|lookup| {
            before.push(lookup);
            let is_verified = is_verified(self, before, true, configs.written_by);
            before.pop();
            is_verified
        });
        before.push(of_a);
        is_allowed
    }

    /// True if the answer is allowed behind a lookup that ends in an alias. `allows`: for the name that it leads to.
    fn allows_chase(
        &self,
        chase: Chase,
        before: &mut Vec<LookupReport<'a>>,
        lookup: LookupReport<'a>,
        allows: impl FnOnce(NameId, &mut Vec<LookupReport<'a>>) -> bool,
    ) -> bool {
        let Chase::Goes(target) = chase else { return is_servfail(self) };
        before.push(lookup);
        let is_allowed = allows(target, before);
        before.pop();
        is_allowed
    }

    /// The possible results of a lookup. Each ends at the first alias that leads to local data, to a special-use name or to other
    /// upstreams in one of the configurations.
    fn lookups(&self, name: NameId, rtype: u16) -> Vec<LookupReport<'a>> {
        let mut lookups = vec![];
        for lookup in possible_lookups(self, self.key(name, rtype)) {
            let mut limits: Vec<Option<usize>> = vec![];
            for config in self.configs {
                let limit = self.diversion(name, rtype, &lookup, config);
                if !limits.contains(&limit) {
                    limits.push(limit);
                }
            }
            let cut = |limit: Option<usize>| LookupReport {
                alias_limit: limit,
                is_diverted: limit.is_some(),
                ..lookup
            };
            lookups.extend(limits.into_iter().map(cut));
        }
        lookups
    }

    /// The number of aliases of an upstream's reply up to the first that leads where a configuration decides.
    fn diversion(
        &self,
        name: NameId,
        rtype: u16,
        lookup: &LookupReport<'_>,
        config: &Config,
    ) -> Option<usize> {
        let said = lookup.reply.filter(|_| !lookup.is_local)?;
        let mut seen = vec![name];
        for (place, edge) in said.edges.iter().enumerate() {
            let target = edge.1;
            // Back at a name of the chain: a loop.
            if seen.contains(&target) {
                return None;
            }
            seen.push(target);
            let is_elsewhere = (zone_of(target) == OWN_SERVERS) != (zone_of(name) == OWN_SERVERS);
            if is_elsewhere || self.is_answered_locally(target, rtype, config) {
                return Some(place + 1);
            }
        }
        None
    }

    /// True if the answer is this AAAA lookup without its excluded addresses.
    fn is_forwarded_behind(
        &self,
        before: &mut Vec<LookupReport<'a>>,
        lookup: LookupReport<'a>,
        configs: ConfigPair<'a>,
    ) -> bool {
        before.push(lookup);
        let is_forwarded = is_forwarded(self, before, true, true, configs.written_by);
        before.pop();
        is_forwarded
    }

    /// The AAAA question without validation. RFC 6147 section 5.5 (2): a failure that may mean a bogus answer is checked by this
    /// question.
    fn unchecked(&self, name: NameId) -> Key {
        Key { name, rtype: AAAA, bits: Bits { cd: true, ..self.query.bits } }
    }

    /// True if the engine may know that a name is bogus: it was answered without validation, to a query with RD or to one without
    /// it. The engine caches this knowledge as long as a failure. An expired reply says nothing about the present.
    fn was_found_bogus(&self, name: NameId) -> bool {
        let unchecked = self.unchecked(name);
        let is_recent = |heard: &Heard| {
            let at = self.timeline.after_jumps(heard.at);
            let end = at.saturating_add(heard.life.unwrap_or(0)) + FAILURE_LIFE + 8 * SECOND;
            is_data(&heard.said) && end >= self.query.at
        };
        [true, false].into_iter().any(|rd| {
            let key = Key { bits: Bits { rd, ..unchecked.bits }, ..unchecked };
            self.timeline.get(key).is_some_and(|track| track.heard.iter().any(is_recent))
        })
    }

    /// True if every possible reply without validation shows that a name is bogus.
    fn is_surely_bogus(&self, name: NameId) -> bool {
        let is_answered = |lookup: &LookupReport<'_>| lookup.reply.is_some_and(is_data) && !lookup.is_stale();
        possible_lookups(self, self.unchecked(name)).iter().all(is_answered)
    }

    /// True if the answer is allowed after this AAAA lookup and any result of the A lookup (RFC 6147 sections 5.1.6 and 5.1.7).
    fn allows_after_a_lookup(
        &self,
        name: NameId,
        before: &mut Vec<LookupReport<'a>>,
        aaaa: Aaaa<'_>,
        configs: ConfigPair<'a>,
    ) -> bool {
        match before_lookup(self, name, A, before, configs.written_by) {
            RpzEffect::None => {}
            RpzEffect::Decided(is_allowed) => return is_allowed,
            RpzEffect::Continue(state) => {
                return self.with_rpz(state, || match state {
                    // The rule's data are all data of the name, the AAAA records among them.
                    RpzState::Data(_) => self.allows_dns64(name, before, configs),
                    _ => self.allows_after_a_lookup(name, before, aaaa, configs),
                });
            }
        }
        self.lookups(name, A).into_iter().any(|lookup| {
            match after_lookup(self, name, &lookup, before, configs.written_by, Lookup::A) {
                RpzEffect::None => {}
                RpzEffect::Decided(is_allowed) => return is_allowed,
                RpzEffect::Continue(state) => {
                    return self.with_rpz(state, || match state {
                        // The rule's data are all data of the name, the AAAA records among them.
                        RpzState::Data(_) => self.allows_dns64(name, before, configs),
                        _ => self.allows_after_a_lookup(name, before, aaaa, configs),
                    });
                }
            }
            let Some(said) = lookup.reply else { return !aaaa.is_dead && is_servfail(self) };
            let has_addresses = said.rcode == 0 && !said.v4.is_empty();
            let chase = Chase::of(before, &lookup, !has_addresses && said.is_unfinished());
            before.push(lookup);
            let is_allowed = match chase {
                Chase::Goes(target) => self.allows_after_a_lookup(target, before, aaaa, configs),
                Chase::Fails | Chase::None if aaaa.is_dead && !has_addresses => {
                    self.allows_dead_addresses(name, before, configs)
                }
                Chase::Fails => is_servfail(self),
                Chase::None if has_addresses => is_synthesized(self, name, before, aaaa, configs.written_by),
                Chase::None => {
                    let is_secure = aaaa.is_secure() && aaaa.is_nodata;
                    is_forwarded(self, before, false, is_secure, configs.written_by)
                }
            };
            before.pop();
            is_allowed
        })
    }
}

/// True if an AAAA reply of this RCODE leads to the A lookup. NXDOMAIN and a bogus answer never do.
fn synthesizes_after(said: &Said, config: &Config) -> bool {
    let [on_servfail, on_refused, on_formerr, on_notimp, _] = config.synthesize;
    match said.rcode {
        3 => false,
        2 if said.ede == Some(6) => false,
        2 => on_servfail,
        5 => on_refused,
        1 => on_formerr,
        4 => on_notimp,
        _ => true,
    }
}

/// True if a reply has data or denies them.
fn is_data(said: &Said) -> bool {
    matches!(said.rcode, 0 | 3)
}

/// What follows a lookup that may end in an alias.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chase {
    /// The lookup does not end in an alias.
    None,
    /// This name is queried next.
    Goes(NameId),
    /// There are too many aliases, or they are a loop.
    Fails,
}

impl Chase {
    /// The chase behind a lookup. `is_unfinished`: the whole reply ends in an alias that is followed.
    fn of(before: &[LookupReport<'_>], lookup: &LookupReport<'_>, is_unfinished: bool) -> Chase {
        let edges = lookup.edges();
        if !lookup.is_diverted && lookup.reply.is_some_and(|said| said.is_loop) {
            return Chase::Fails;
        }
        let target = match edges.last() {
            Some(edge) if lookup.is_diverted || is_unfinished => edge.1,
            _ => return Chase::None,
        };
        let comes_back =
            |lookup: &LookupReport<'_>| lookup.edges().first().is_some_and(|edge| edge.0 == target);
        match before.iter().any(comes_back) {
            true => Chase::Fails,
            false if before.len() < MAX_CHASED => Chase::Goes(target),
            false => Chase::Fails,
        }
    }
}
