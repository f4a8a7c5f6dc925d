//! Comparison of an answer with the lookups that it may be made of: addresses, CNAME records, TTLs, SOA record, AD, truncation.
//! Which lookups these are is decided by [`crate::oracle`].

use crate::case::Case;
use crate::config::Config;
use crate::ground_truth::{AAAA, NameId, Said};
use crate::lookup::{LookupReport, possible_lookups};

/// The TTL bound of a synthesis when the AAAA reply has no SOA record, seconds (RFC 6147 section 5.1.7).
const TTL_WITHOUT_SOA: u32 = 600;

/// Longest TTL of an answer that a dead real address has changed, seconds.
const DEAD_TTL: u32 = 60;

/// Longest TTL of a real address that was not tried, seconds.
const UNTRIED_TTL: u32 = 30;

/// The AAAA lookup after which AAAA records are synthesized.
#[derive(Clone, Copy)]
pub(crate) struct Aaaa<'a> {
    pub(crate) lookup: &'a LookupReport<'a>,
    /// The reply has no AAAA record, rather than a failure or excluded ones.
    pub(crate) is_nodata: bool,
    /// It has real AAAA records, and the addresses in them are dead.
    pub(crate) is_dead: bool,
    /// The configuration that decided on the synthesis.
    pub(crate) decided_by: &'a Config,
}

impl Aaaa<'_> {
    /// True if the reply is authenticated (AD) by a trusted upstream.
    pub(crate) fn is_secure(&self) -> bool {
        self.lookup.reply.is_some_and(|said| said.ad && said.rcode == 0) && self.decided_by.trust
    }
}

/// True if the answer is synthesized from the last of the lookups, the A lookup, behind the CNAME records of the lookups before it.
/// `name`: owner of the A query; `config`: the configuration that wrote the answer.
pub(crate) fn is_synthesized<'a>(
    case: &Case<'a>,
    name: NameId,
    lookups: &[LookupReport<'a>],
    aaaa: Aaaa<'_>,
    config: &Config,
) -> bool {
    let answer = case.answer;
    let Some((last, before)) = lookups.split_last() else { return false };
    let Some(said) = last.reply else { return false };
    let wanted: Vec<[u8; 16]> =
        embedded_addresses(case, said, config).into_iter().map(|(_, synthesized)| synthesized).collect();
    if wanted.is_empty() && aaaa.is_nodata && is_empty_answer(case, name, before, config) {
        return true;
    }
    if wanted.is_empty() && case.has_no_gateway(&said.v4, config) && is_without_gateway(case, lookups) {
        return true;
    }
    let may_be_cached = config.cache > 0 && case.query.bits.rd && before.is_empty();
    let (mut low, mut high) = negative_ttl(case, aaaa.lookup, may_be_cached, aaaa.decided_by);
    let (a_low, a_high) = last.ttl(said.ttl);
    // The TTL of a cached synthesis counts whole seconds since it was made, and so do the TTLs of its lookups: one may be lost.
    let slack = u32::from(may_be_cached);
    (low, high) = (low.min(a_low), high.min(a_high.saturating_add(slack)));
    if let Some(longest) = case.longest_ttl(&said.v4, config) {
        (low, high) = (if may_be_cached { 0 } else { low.min(longest) }, high.min(longest));
    }
    if aaaa.is_dead {
        (low, high) = (low.min(DEAD_TTL), high.min(DEAD_TTL));
    }
    if answer.rcode() != 0 || !has_aliases(case, lookups) || !answer.v4.is_empty() {
        return false;
    }
    let end = said.end(name);
    let is_secure = aaaa.is_secure()
        && said.ad
        && config.trust
        && before.iter().all(LookupReport::is_secure)
        && case.query.bits.dnssec_ok
        && !case.query.bits.cd;
    if answer.is_truncated() {
        // RFC 2181 section 9: an RRset is complete or absent.
        let is_whole = answer.v6.is_empty() || answer.v6.len() == wanted.len();
        return is_whole
            && answer.v6.iter().all(|record| wanted.contains(&record.2))
            && may_be_truncated(case, lookups, wanted.len());
    }
    answer.v6.iter().map(|record| &record.2).eq(&wanted)
        && answer.v6.iter().all(|&(owner, ttl, _)| owner == end && (low..=high).contains(&ttl))
        && answer.signed.is_empty()
        && answer.ad() == is_secure
}

/// The addresses of an A reply that are embedded, each with the one that is synthesized from it, in order.
pub(crate) fn embedded_addresses(case: &Case<'_>, said: &Said, config: &Config) -> Vec<([u8; 4], [u8; 16])> {
    let mut wanted = vec![];
    let mut done: Vec<[u8; 4]> = vec![];
    for &address in &said.v4 {
        if done.contains(&address) {
            continue;
        }
        done.push(address);
        // RFC 7757: a mapping goes before prefixes, and no address is barred from it.
        if let Some(mapped) = config.mappings.to_v6(address) {
            if wanted.len() < config.max_records {
                wanted.push((address, mapped));
            }
            continue;
        }
        for prefix in case.prefixes_for(address, config) {
            // 127.0.0.0/8 is in never-embed; 10.0.0.0/8 is not global (RFC 6052 section 3.1).
            let is_barred = address[0] == 127 || address[0] == 10 && prefix.is_well_known();
            if !is_barred && wanted.len() < config.max_records {
                wanted.push((address, prefix.embed(address)));
            }
        }
    }
    wanted
}

/// True if the answer is the one for a name whose addresses may not be embedded: that of the AAAA lookup, for its SOA record.
fn is_empty_answer<'a>(case: &Case<'a>, name: NameId, before: &[LookupReport<'a>], config: &Config) -> bool {
    let mut lookups = before.to_vec();
    possible_lookups(case, case.key(name, AAAA)).into_iter().any(|lookup| match lookup.reply {
        Some(said) if said.rcode == 0 => {
            lookups.push(lookup);
            let is_forwarded = is_forwarded(case, &lookups, true, true, config);
            lookups.pop();
            is_forwarded
        }
        // The CNAME records that led to the name are known even if the SOA record is not.
        _ => has_only_aliases(case, before),
    })
}

/// True if the answer is the empty one where no gateway lives: the aliases, and an SOA record of five seconds.
fn is_without_gateway(case: &Case<'_>, lookups: &[LookupReport<'_>]) -> bool {
    let answer = case.answer;
    let is_empty = answer.rcode() == 0 && answer.v4.is_empty() && answer.v6.is_empty() && !answer.ad();
    let has_soa = answer.soa == Some((5, 5)) || answer.is_truncated() && may_be_truncated(case, lookups, 0);
    is_empty && has_soa && has_aliases(case, lookups)
}

/// Least and greatest TTL bound that the AAAA lookup sets. `may_be_cached`: the synthesis may have been made some time ago.
fn negative_ttl(
    case: &Case<'_>,
    aaaa: &LookupReport<'_>,
    may_be_cached: bool,
    config: &Config,
) -> (u32, u32) {
    let least = if config.cache > 0 && case.query.bits.rd { config.ttl_range.0 } else { 0 };
    let age = if may_be_cached { aaaa.age_secs() } else { 0 };
    let Some((ttl, minimum)) = aaaa.reply.and_then(|said| said.soa) else {
        return (TTL_WITHOUT_SOA.saturating_sub(age), TTL_WITHOUT_SOA);
    };
    let (low, high) = aaaa.soa_ttl(ttl);
    let low = low.min(minimum.saturating_sub(age));
    let low = if may_be_cached { low } else { low.max(least) };
    (low, high.min(minimum).max(least).saturating_add(u32::from(may_be_cached)))
}

/// True if the answer is the reply of the last lookup, behind the CNAME records of the lookups before it. `is_filtered`: excluded
/// addresses are left out. `is_proved`: an AD of the reply is also true of the answer.
pub(crate) fn is_forwarded(
    case: &Case<'_>,
    lookups: &[LookupReport<'_>],
    is_filtered: bool,
    is_proved: bool,
    config: &Config,
) -> bool {
    is_forwarded_if(
        case,
        lookups,
        |address| !(is_filtered && config.excludes(address)),
        None,
        is_proved,
        config,
    )
}

/// True if the answer has the real addresses of the last lookup, an AAAA lookup under a rule that verifies them: without the dead ones, or
/// all if there is nothing better.
pub(crate) fn is_verified(
    case: &Case<'_>,
    lookups: &[LookupReport<'_>],
    has_dead: bool,
    config: &Config,
) -> bool {
    let Some(said) = lookups.last().and_then(|last| last.reply) else { return false };
    let real: Vec<_> = said.v6.iter().filter(|address| !config.excludes(address)).collect();
    let is_untried = |address: &&[u8; 16]| !case.fates.contains_key(*address);
    // A verdict may be so old that the address counts as untried.
    let ttl = match () {
        () if has_dead => (DEAD_TTL, DEAD_TTL),
        () if real.iter().any(|address| is_untried(address)) => (UNTRIED_TTL, UNTRIED_TTL),
        () if real.iter().any(|address| case.is_dead(address)) => (UNTRIED_TTL, DEAD_TTL),
        () => (UNTRIED_TTL, u32::MAX),
    };
    let keeps = |address: &[u8; 16]| !config.excludes(address) && (has_dead || !case.is_dead(address));
    is_forwarded_if(case, lookups, keeps, Some(ttl), true, config)
        || has_dead && is_forwarded_if(case, lookups, |_| true, Some(ttl), true, config)
}

/// True if the answer is the reply of the last lookup with the IPv6 addresses that are kept. `longest_ttl`: least and greatest bound of their TTL,
/// seconds.
fn is_forwarded_if(
    case: &Case<'_>,
    lookups: &[LookupReport<'_>],
    keeps: impl Fn(&[u8; 16]) -> bool,
    longest_ttl: Option<(u32, u32)>,
    is_proved: bool,
    config: &Config,
) -> bool {
    let answer = case.answer;
    let Some((last, before)) = lookups.split_last() else { return false };
    let Some(said) = last.reply else { return false };
    if u16::from(said.rcode) != answer.rcode() || !has_aliases(case, lookups) {
        return false;
    }
    let v6: Vec<_> = said.v6.iter().filter(|address| keeps(address)).collect();
    if answer.is_truncated() {
        // RFC 2181 section 9: an RRset is complete or absent.
        let is_whole = |seen: usize, said: usize| seen == 0 || seen == said;
        return answer.v6.iter().all(|record| v6.contains(&&record.2))
            && answer.v4.iter().all(|record| said.v4.contains(&record.2))
            && is_whole(answer.v6.len(), v6.len())
            && is_whole(answer.v4.len(), said.v4.len())
            && may_be_truncated(case, lookups, said.v4.len() + v6.len());
    }
    let (low, high) = last.ttl(said.ttl);
    let (low, high) = longest_ttl.map_or((low, high), |longest| (low.min(longest.0), high.min(longest.1)));
    let end =
        if said.is_loop { case.query.name } else { said.edges.last().map_or(NameId::MAX, |edge| edge.1) };
    let fits =
        |owner: NameId, ttl: u32| (owner == end || said.edges.is_empty()) && (low..=high).contains(&ttl);
    let has_lost_some = v6.len() < said.v6.len();
    let ad = said.ad
        && config.trust
        && (case.query.bits.ad || case.query.bits.dnssec_ok)
        && is_proved
        && !has_lost_some
        && before.iter().all(LookupReport::is_secure);
    let has_pointer = answer.pointers.iter().map(|record| record.2).eq(said.pointer)
        && answer.pointers.iter().all(|&(owner, ttl, _)| fits(owner, ttl));
    has_pointer
        && answer.v4.iter().map(|record| &record.2).eq(&said.v4)
        && answer.v6.iter().map(|record| &record.2).eq(v6)
        && answer.v4.iter().all(|&(owner, ttl, _)| fits(owner, ttl))
        && answer.v6.iter().all(|&(owner, ttl, _)| fits(owner, ttl))
        && has_soa(case, last, said)
        && answer.signed.is_empty() != (said.signed && !has_lost_some)
        && answer.ad() == ad
}

fn has_soa(case: &Case<'_>, lookup: &LookupReport<'_>, said: &Said) -> bool {
    match (case.answer.soa, said.soa) {
        (None, None) => true,
        (Some((ttl, minimum)), Some((said_ttl, said_minimum))) => {
            let (low, high) = lookup.soa_ttl(said_ttl);
            (low..=high).contains(&ttl) && minimum == said_minimum
        }
        _ => false,
    }
}

/// True if the CNAME records of the answer are those of the lookups, with possible TTLs.
pub(crate) fn has_aliases(case: &Case<'_>, lookups: &[LookupReport<'_>]) -> bool {
    let mut wanted = vec![];
    for lookup in lookups {
        for &(owner, target, ttl) in lookup.edges() {
            let (low, high) = lookup.ttl(ttl);
            wanted.push((owner, target, low, high.saturating_add(1)));
        }
    }
    let fits = |&(owner, target, ttl): &(NameId, NameId, u32)| {
        wanted
            .iter()
            .any(|&(from, to, low, high)| (from, to) == (owner, target) && (low..=high).contains(&ttl))
    };
    let edges = &case.answer.edges;
    edges.iter().all(fits)
        && (edges.len() == wanted.len() || case.answer.is_truncated() && edges.len() < wanted.len())
}

/// True if this many address records may be too long for the client.
pub(crate) fn may_be_truncated(case: &Case<'_>, lookups: &[LookupReport<'_>], addresses: usize) -> bool {
    // Names have at most 30 octets here; this estimate assumes no compression.
    const NAME: usize = 32;
    let edges: usize = lookups.iter().filter_map(|lookup| lookup.reply).map(|said| said.edges.len()).sum();
    let most = 12
        + case.query.question.len()
        + addresses * (NAME + 26)
        + edges * (2 * NAME + 10)
        // Question, OPT record with its options, signature.
        + 17
        + 160
        + 160;
    !case.query.tcp && most > case.limit
}

/// True if the answer has the CNAME records of these lookups and no other records.
fn has_only_aliases(case: &Case<'_>, lookups: &[LookupReport<'_>]) -> bool {
    let answer = case.answer;
    let has_room = !answer.is_truncated() || may_be_truncated(case, lookups, 0);
    answer.rcode() == 0
        && answer.v4.is_empty()
        && answer.v6.is_empty()
        && !answer.ad()
        && answer.soa.is_none()
        && has_aliases(case, lookups)
        && has_room
}

/// True if the answer is SERVFAIL without addresses and CNAME records.
pub(crate) fn is_servfail(case: &Case<'_>) -> bool {
    let answer = case.answer;
    answer.rcode() == 2
        && answer.v4.is_empty()
        && answer.v6.is_empty()
        && answer.edges.is_empty()
        && !answer.ad()
}
