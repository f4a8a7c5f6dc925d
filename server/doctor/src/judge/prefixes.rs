//! The prefixes that routers, resolvers and the server on this host tell: the same, or a contradiction.

use super::resolvers::is_for_ipv4;
use super::{announced, listed, told, unique};
use crate::facts::{Announced, Facts, Path, Router};
use crate::finding::{Code, Finding};
use pref64::Pref64;

/// Findings about prefixes.
#[derive(Default)]
pub struct Judged {
    /// The findings.
    pub findings: Vec<Finding>,
    /// Prefixes that the findings name: that nothing passes through them is no further finding.
    pub blamed: Vec<Pref64>,
}

/// Judges the prefixes.
pub fn judge(facts: &Facts) -> Judged {
    let mut judged = Judged::default();
    let told = told(facts);
    for router in facts.routers.seen().into_iter().flatten() {
        judged.findings.extend(malformed(router));
        judged.findings.extend(lifetimes(router));
    }
    let withdrawn = withdrawn(facts, &told);
    if !withdrawn.is_empty() {
        judged.findings.push(of_withdrawn(&withdrawn));
        judged.blamed.extend(&withdrawn);
    }
    let kept: Vec<Pref64> = told.iter().copied().filter(|prefix| !withdrawn.contains(prefix)).collect();
    judged.compare_with_routers(facts, &kept);
    judged.compare_with_server(facts, &told);
    judged
}

impl Judged {
    fn compare_with_routers(&mut self, facts: &Facts, told: &[Pref64]) {
        let announced = announced(facts);
        if announced.is_empty() || told.is_empty() {
            return;
        }
        let only_told: Vec<Pref64> = without(told, &announced);
        let only_announced: Vec<Pref64> = without(&announced, told);
        let finding = if only_told.len() == told.len() && only_announced.len() == announced.len() {
            differ(facts, &announced, told)
        } else if resolvers_differ(facts) {
            // The resolvers are the contradiction.
            self.blamed.extend(only_told);
            return;
        } else if !only_told.is_empty() {
            not_announced(&only_told, &announced)
        } else {
            // A prefix that works is that of another gateway: a resolver that spreads its clients over several tells each one of them.
            let unused: Vec<Pref64> =
                only_announced.iter().copied().filter(|prefix| !passes(facts, prefix)).collect();
            if unused.is_empty() {
                return;
            }
            without_dns64(&unused, told)
        };
        self.findings.push(finding);
        self.blamed.extend(only_told.into_iter().chain(only_announced));
    }

    fn compare_with_server(&mut self, facts: &Facts, told: &[Pref64]) {
        let Some(own) = facts.server.seen() else { return };
        let own = unique(own.iter().map(|one| one.prefix));
        let strange = without(told, &own);
        if own.is_empty() || strange.is_empty() || strange.len() < told.len() {
            return;
        }
        self.findings.push(Finding {
            code: Code::ServerPrefix,
            what: format!(
                "the resolvers use {}, but the server on this host {}",
                listed(&strange),
                listed(&own)
            ),
            cause: "this host, or the network, asks another server than the one that runs here".to_owned(),
            remedy:
                "look at the addresses in /etc/resolv.conf and in `server.listen`, and at what else listens \
                     on port 53"
                    .to_owned(),
        });
        self.blamed.extend(strange.into_iter().chain(own));
    }
}

fn malformed(router: &Router) -> Option<Finding> {
    (router.malformed > 0).then(|| Finding {
        code: Code::PrefixMalformed,
        what: format!("the router {} announces a NAT64 prefix that hosts ignore", router.address),
        cause:
            "its PREF64 option has a length, a length code or a prefix that RFC 8781 section 4 does not allow"
                .to_owned(),
        remedy: "announce a prefix of 32, 40, 48, 56, 64 or 96 bits, with no bit set beyond".to_owned(),
    })
}

/// Unit of lifetimes in PREF64 options, in seconds (RFC 8781 section 4): a rounded lifetime may be shorter by one.
const LIFETIME_UNIT_SECS: u32 = 8;

fn lifetimes(router: &Router) -> Vec<Finding> {
    let Some(lifetime) = router.lifetime_secs.map(u32::from) else { return Vec::new() };
    let is_short =
        |one: &Announced| one.lifetime_secs > 0 && one.lifetime_secs + LIFETIME_UNIT_SECS < lifetime;
    // An advertisement may have an option twice.
    let all = router.prefixes.iter().enumerate();
    let new = all.filter(|(place, one)| !router.prefixes[..*place].contains(one)).map(|(_, one)| one);
    new.filter(|one| is_short(one))
        .map(|one| Finding {
            code: Code::PrefixLifetime,
            what: format!(
                "the router {} announces {} for {} s, itself for {lifetime} s",
                router.address, one.prefix, one.lifetime_secs
            ),
            cause: "hosts forget the prefix between two advertisements, while the router still serves them"
                .to_owned(),
            remedy:
                "give the prefix at least the lifetime of the router (radvd: AdvValidLifetime of nat64prefix)"
                    .to_owned(),
        })
        .collect()
}

/// Prefixes that resolvers use and routers withdraw.
fn withdrawn(facts: &Facts, told: &[Pref64]) -> Vec<Pref64> {
    let routers = facts.routers.seen().into_iter().flatten();
    let ended = routers.flat_map(|router| &router.prefixes).filter(|one| one.lifetime_secs == 0);
    let ended = unique(ended.map(|one| one.prefix)).into_iter().filter(|prefix| told.contains(prefix));
    let announced = announced(facts);
    ended.filter(|prefix| !announced.contains(prefix)).collect()
}

fn of_withdrawn(prefixes: &[Pref64]) -> Finding {
    Finding {
        code: Code::PrefixWithdrawn,
        what: format!("the routers withdraw {}, and the resolvers still use it", listed(prefixes)),
        cause: "the lifetime of the PREF64 option is 0: hosts with CLAT lose IPv4, others go on".to_owned(),
        remedy: "announce the prefix again, or take it out of the resolvers, too".to_owned(),
    }
}

fn differ(facts: &Facts, announced: &[Pref64], told: &[Pref64]) -> Finding {
    let paths: Vec<&Path> = facts.paths.seen().into_iter().flatten().collect();
    let is_dead = |prefix: &Pref64| {
        let mut own = paths.iter().filter(|path| path.prefix == *prefix);
        own.clone().next().is_some() && own.all(|path| !super::gateway::passes(path))
    };
    let dead = unique(announced.iter().chain(told).copied().filter(is_dead));
    let evidence = match dead.is_empty() {
        true => String::new(),
        false => format!("; nothing passes through {}", listed(&dead)),
    };
    Finding {
        code: Code::PrefixesDiffer,
        what: format!("the routers announce {}, but the resolvers use {}", listed(announced), listed(told)),
        cause: format!("PREF64 options and DNS64 are set up apart, and one of them is wrong{evidence}"),
        remedy: "give both the prefix of the gateway".to_owned(),
    }
}

fn not_announced(only_told: &[Pref64], announced: &[Pref64]) -> Finding {
    Finding {
        code: Code::PrefixNotAnnounced,
        what: format!(
            "the resolvers use {}, which the routers do not announce beside {}",
            listed(only_told),
            listed(announced)
        ),
        cause: "hosts that learn the prefix from routers know only a part of the gateways".to_owned(),
        remedy: "announce all prefixes of the resolvers, or take the others out of them".to_owned(),
    }
}

fn without_dns64(only_announced: &[Pref64], told: &[Pref64]) -> Finding {
    Finding {
        code: Code::PrefixWithoutDns64,
        what: format!(
            "the routers announce {}, which the resolvers do not use beside {}",
            listed(only_announced),
            listed(told)
        ),
        cause: "an old prefix was left in the advertisements, or a new one is missing in the resolvers"
            .to_owned(),
        remedy: "take it out of the advertisements, with a lifetime of 0 first, or add it to the resolvers"
            .to_owned(),
    }
}

/// True if not all resolvers tell the same.
fn resolvers_differ(facts: &Facts) -> bool {
    let answering = facts.resolvers.iter().filter(|one| one.answers() && !is_for_ipv4(one, &facts.host));
    let mut sets = answering.map(|one| &one.prefixes);
    let Some(first) = sets.next() else { return false };
    sets.any(|set| set.len() != first.len() || set.iter().any(|prefix| !first.contains(prefix)))
}

/// True if something is known to pass through the prefix.
fn passes(facts: &Facts, prefix: &Pref64) -> bool {
    let mut paths = facts.paths.seen().into_iter().flatten();
    paths.any(|path| path.prefix == *prefix && super::gateway::passes(path))
}

fn without(all: &[Pref64], others: &[Pref64]) -> Vec<Pref64> {
    all.iter().copied().filter(|prefix| !others.contains(prefix)).collect()
}
