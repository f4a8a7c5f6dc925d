//! Decisions of an explanation in words: a code for programs that does not change, a sentence for people, and the requirement (a
//! section of an RFC, or a configuration key).

use crate::base::network::Network;
use crate::counters::Counter;
use crate::dns64::decision::Cause;
use crate::dns64::embed::Embedding;
use crate::dns64::gateways::Unused;
use crate::explain::immediate::{limit_code, limit_requirement, write_cached, write_limited};
use crate::explain::{NoReply, RealFate};
use crate::reasons::{CacheHit, Limit, LocalReply, LocalZone, NoDns64, PassReason, PolicyAction};
use crate::trace::{Diversion, RuleSource};
use core::fmt;
use core::net::Ipv4Addr;
use wire::{EdeCode, Name, Rcode, Type};

/// One decision on the way to an answer. Names are in wire form; rules are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The query is answered immediately, with an RCODE and perhaps an extended DNS error.
    Refused(Rcode, Option<EdeCode>),
    /// A limit drops the query, refuses it or sends it to TCP.
    Limited(Limit),
    /// The cache has the answer or the reply.
    Cached(CacheHit),
    /// The name does not exist, as the proofs of this zone say: NSEC or NSEC3 records of replies to other questions.
    DeniesName(Box<[u8]>, Type),
    /// The query is for a zone transfer.
    Transfer,
    /// The query is for AAAA records, and DNS64 applies.
    Dns64,
    /// The query is for AAAA records, and DNS64 does not apply for this reason.
    NoDns64(NoDns64),
    /// The query is for AAAA records, and its client gets no synthesis: the network that excludes it, or none if no network of
    /// `dns64.clients` has it.
    NotAClient(Option<Network>),
    /// The query is for another type or class, and its answer is passed on.
    OtherType,
    /// The name is in the local zone of a special-use name.
    SpecialUse(LocalZone, Box<[u8]>),
    /// The name is an alias of the reverse name of an IPv4 address.
    Alias(Box<[u8]>, Ipv4Addr),
    /// Local data or `filter.block` decides.
    LocalData(LocalReply),
    /// A response policy zone decides: its action, and the source of the rule, if it is known.
    Policy(PolicyAction, Option<Box<RuleSource>>),
    /// The reply, or the failure of the lookup, is the answer for this reason.
    PassedOn(PassReason),
    /// The A records decide, for this cause. The number is that of the rule that ignores or verifies the AAAA records, if that is the
    /// cause; the last part is the reason why the AAAA lookup has no reply, if it has none.
    QueriesA(Cause, Option<usize>, Option<NoReply>),
    /// The reply ends in an alias of this name, which is queried next.
    FollowsAlias(Box<[u8]>),
    /// The reply ends at an alias, since the configuration decides about its target.
    CutsReply(Diversion),
    /// Private addresses in the reply are taken away.
    TakesPrivateAddresses,
    /// The reply ends in an alias that is not followed.
    UnfinishedAlias,
    /// This number of addresses is synthesized from the A lookup.
    Synthesizes(usize),
    /// No address is synthesized, because the rule with this number (from 1) has no prefixes.
    RuleWithoutPrefixes(usize),
    /// No gateway of the prefixes lives, and then there are no addresses.
    NoGateway,
    /// No prefix was discovered, and then there are no addresses.
    NoPrefix,
    /// The rule with this number (from 1) suppresses the A records.
    SuppressesA(Option<usize>),
    /// The AAAA lookup failed, and its answer may be bogus: the lookup is queried without validation.
    ChecksBogus,
    /// There is an answer without validation: the AAAA lookup is queried once more as before.
    RechecksBogus,
    /// No address is synthesized: the AAAA records are the answer although their addresses are dead.
    DeadAaaa,
    /// No address is synthesized: the AAAA lookup is queried again, because its answer has the SOA record.
    RepeatsAaaa,
}

/// Value of the only label of a counter: many words for programs are, by their documentation, values of labels.
fn label(counter: Counter) -> &'static str {
    counter.describe().1.first().map_or("other", |&(_, value)| value)
}

impl Decision {
    /// The source of the rule of a response policy zone that decided.
    pub fn rule_source(&self) -> Option<&RuleSource> {
        match self {
            Decision::Policy(_, source) => source.as_deref(),
            _ => None,
        }
    }

    /// Code of the decision for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Decision::Refused(..) => "refused",
            Decision::Limited(limit) => limit_code(*limit),
            Decision::Cached(CacheHit::Synthesized) => "cached_synthesis",
            Decision::Cached(CacheHit::Negative) => "cached_negative",
            Decision::Cached(CacheHit::Failure) => "cached_failure",
            Decision::Cached(CacheHit::Stale) => "cached_stale",
            Decision::Cached(CacheHit::Positive) => "cached",
            Decision::DeniesName(..) => "denied_by_proof",
            Decision::Transfer => "transfer",
            Decision::Dns64 => "dns64",
            Decision::NoDns64(reason) => label(reason.counter()),
            Decision::NotAClient(_) => label(NoDns64::Client.counter()),
            Decision::PassedOn(reason) => label(reason.counter()),
            Decision::OtherType => "other_type",
            Decision::SpecialUse(LocalZone::Reverse, _) => "reverse_zone",
            Decision::SpecialUse(LocalZone::Empty, _) => "empty_zone",
            Decision::SpecialUse(zone, _) => label(zone.counter()),
            Decision::Alias(..) => "reverse_alias",
            Decision::LocalData(source) => label(source.counter()),
            Decision::Policy(action, _) => label(action.counter()),
            Decision::QueriesA(cause, ..) => match cause {
                Cause::NoData => "nodata",
                Cause::Excluded => "excluded",
                Cause::Ignored => "ignored",
                Cause::Dead => "dead",
                Cause::Error => "aaaa_error",
                Cause::Timeout => "aaaa_timeout",
            },
            Decision::FollowsAlias(_) => "follows_alias",
            Decision::CutsReply(_) => "cuts_reply",
            Decision::TakesPrivateAddresses => label(Counter::FilteredPrivate),
            Decision::UnfinishedAlias => "unfinished_alias",
            Decision::Synthesizes(0) | Decision::RuleWithoutPrefixes(_) => "policy",
            Decision::NoGateway => label(Counter::NotSynthesizedNoGateway),
            Decision::NoPrefix => label(Counter::NotSynthesizedNoPrefix),
            Decision::Synthesizes(_) => "synthesized",
            Decision::SuppressesA(_) => "suppressed_a",
            Decision::DeadAaaa => "dead_aaaa",
            Decision::RepeatsAaaa => "aaaa_again",
            Decision::ChecksBogus => "doubts",
            Decision::RechecksBogus => "asks_again",
        }
    }

    /// Requirement behind the decision.
    pub fn requirement(&self) -> &'static str {
        match self {
            // The client gets the extended DNS error of RFC 8914 section 4.19.
            Decision::Refused(Rcode::REFUSED, _) => "server.allow",
            Decision::Refused(Rcode::NOTIMP, _) => "RFC 1035 section 4.1.1",
            Decision::Refused(..) => "RFC 1035 section 4.1",
            Decision::Limited(limit) => limit_requirement(*limit),
            Decision::DeniesName(..) => "RFC 8198 section 5.1",
            Decision::Cached(CacheHit::Failure) => "RFC 9520",
            Decision::Cached(CacheHit::Stale) => "RFC 8767",
            Decision::Cached(CacheHit::Negative) => "RFC 2308 section 5",
            Decision::Cached(CacheHit::Positive | CacheHit::Synthesized) => "RFC 1034 section 5.3.3",
            Decision::Transfer => "RFC 5936",
            Decision::Dns64 => "RFC 6147 section 5.1",
            Decision::NotAClient(_) => "dns64.clients",
            Decision::NoDns64(NoDns64::NotRecursive) => "dns64.recursive-only",
            Decision::NoDns64(NoDns64::Client | NoDns64::Dnssec) => "RFC 6147 section 5.5 (3)",
            Decision::OtherType => "RFC 6147 section 5.3.3",
            Decision::SpecialUse(LocalZone::Ipv4Only, _) => "RFC 8880 section 7.1",
            Decision::SpecialUse(LocalZone::Localhost, _) => "RFC 6761 section 6.3",
            Decision::SpecialUse(LocalZone::Invalid, _) => "RFC 6761 section 6.4",
            Decision::SpecialUse(LocalZone::Onion, _) => "RFC 7686 section 2",
            Decision::SpecialUse(LocalZone::ResolverArpa, _) => "RFC 9462 section 6.4",
            Decision::SpecialUse(LocalZone::Empty, _) => {
                "RFC 8375 section 4, RFC 6303 section 4, local.empty-zones"
            }
            Decision::SpecialUse(LocalZone::Server, _) => "RFC 4892",
            Decision::SpecialUse(LocalZone::Reverse, _) | Decision::Alias(..) => "RFC 6147 section 5.3.1",
            Decision::LocalData(LocalReply::Records) => "local.records, local.hosts-file",
            Decision::LocalData(LocalReply::Block) => "filter.block",
            Decision::Policy(..) => "filter.rpz",
            Decision::PassedOn(reason) => match reason {
                PassReason::RealAaaa => "RFC 6147 section 5.1.1",
                PassReason::NxDomain => "RFC 6147 section 5.1.2",
                PassReason::Bogus => "RFC 6147 section 5.5 (2)",
                PassReason::Unproven => "RFC 4035 section 5.5",
                PassReason::Failure => "dns64.on-failure",
                PassReason::NoA | PassReason::AFailed => "RFC 6147 section 5.1.6",
            },
            Decision::QueriesA(cause, ..) => match cause {
                Cause::NoData => "RFC 6147 section 5.1.6",
                Cause::Excluded => "RFC 6147 section 5.1.4",
                Cause::Ignored | Cause::Dead => "dns64.rule real-aaaa",
                Cause::Error => "RFC 6147 section 5.1.2",
                Cause::Timeout => "RFC 6147 section 5.1.3",
            },
            Decision::CutsReply(Diversion::LocalData) => "local.records, local.hosts-file, filter.block",
            Decision::CutsReply(Diversion::SpecialUse) => "RFC 6761",
            Decision::CutsReply(Diversion::ForwardZone) => "upstream.zone",
            Decision::TakesPrivateAddresses => "filter.private-addresses",
            Decision::FollowsAlias(_) | Decision::UnfinishedAlias => "RFC 6147 section 5.1.5",
            Decision::Synthesizes(_) => "RFC 6147 section 5.1.7",
            Decision::RuleWithoutPrefixes(_) => "dns64.rule prefixes",
            Decision::NoGateway => "dns64.health all-down",
            Decision::NoPrefix => "dns64.prefixes",
            Decision::SuppressesA(_) => "dns64.rule a",
            Decision::DeadAaaa => "dns64.rule real-aaaa",
            Decision::RepeatsAaaa => "RFC 2308 section 5",
            Decision::ChecksBogus | Decision::RechecksBogus => "RFC 6147 section 5.5 (2)",
        }
    }
}

impl fmt::Display for NoReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoReply::NotAsked => {
                write!(f, "no reply: no upstream could be asked, for lack of a socket or a route")
            }
            NoReply::Unreachable(reason) => write!(f, "no reply: no upstream could be reached ({reason})"),
            NoReply::Unusable => write!(f, "no usable reply"),
            NoReply::TimedOut => write!(f, "no reply in time"),
        }
    }
}

/// A name in wire form, displayed as text.
struct DisplayName<'a>(&'a [u8]);

impl fmt::Display for DisplayName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Name::from_wire(self.0) {
            Some(name) => write!(f, "{name}"),
            None => write!(f, "?"),
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Decision::Refused(Rcode::REFUSED, _) => {
                write!(f, "the query is refused: this client is not allowed")
            }
            Decision::Refused(rcode, _) => write!(f, "the query is answered with {rcode} immediately"),
            Decision::Limited(limit) => write_limited(f, *limit),
            Decision::Cached(hit) => write_cached(f, *hit),
            Decision::DeniesName(zone, proof) => write!(
                f,
                "the name does not exist: {proof} records of the zone {}, of replies to other questions, prove it",
                DisplayName(zone)
            ),
            Decision::Transfer => write!(f, "the query is refused: a forwarder has no zones to transfer"),
            Decision::Dns64 => write!(f, "the query is for AAAA records in class IN: DNS64 applies"),
            Decision::NoDns64(reason) => write_no_dns64(f, *reason),
            Decision::NotAClient(Some(network)) => write!(
                f,
                "DNS64 does not apply to this client: {} is excluded from the clients with synthesis",
                network
            ),
            Decision::NotAClient(None) => {
                write!(f, "DNS64 does not apply to this client: it is outside the networks with synthesis")
            }
            Decision::OtherType => {
                write!(f, "the query is not for AAAA records in class IN: the answer is passed on")
            }
            Decision::SpecialUse(_, name) => {
                write!(f, "{} is answered locally, without an upstream query", DisplayName(name))
            }
            Decision::Alias(name, address) => {
                write!(
                    f,
                    "{} is under a prefix: it is an alias of the reverse name of {address}",
                    DisplayName(name)
                )
            }
            Decision::LocalData(LocalReply::Records) => {
                write!(f, "the name has local records: no upstream is queried")
            }
            Decision::LocalData(LocalReply::Block) => write!(f, "the name or a parent domain is blocked"),
            Decision::Policy(action, source) => {
                write!(f, "a response policy zone decides ({})", label(action.counter()))?;
                let Some(source) = source else { return Ok(()) };
                let RuleSource { zone, file, line, kind, trigger } = &**source;
                write!(f, ": zone {}", DisplayName(zone))?;
                match (&**file, line) {
                    ("", _) => {}
                    (file, Some(line)) => write!(f, ", {file}:{line}")?,
                    (file, None) => write!(f, ", {file}")?,
                }
                write!(f, ", {kind} {trigger}")
            }
            Decision::PassedOn(reason) => write_passed_on(f, *reason),
            Decision::QueriesA(cause, rule, no_reply) => write_queries_a(f, *cause, *rule, *no_reply),
            Decision::FollowsAlias(name) => {
                write!(f, "the reply ends in an alias: {} is queried next", DisplayName(name))
            }
            Decision::CutsReply(reason) => {
                let what = match reason {
                    Diversion::LocalData => "has local data or is blocked",
                    Diversion::SpecialUse => "is a special-use name",
                    Diversion::ForwardZone => "belongs to other forwarders",
                };
                write!(
                    f,
                    "an alias in the reply leads to a name that {what}: the rest of the reply does not count"
                )
            }
            Decision::TakesPrivateAddresses => {
                write!(f, "the reply leads into a private network: such addresses are taken away")
            }
            Decision::UnfinishedAlias => {
                write!(f, "the aliases have no end that is followed: the chain is too long or a loop")
            }
            Decision::RuleWithoutPrefixes(_) | Decision::Synthesizes(_) => write_synthesis(f, self),
            Decision::NoGateway => {
                write!(
                    f,
                    "no gateway of the prefixes is up, and `all-down` is \"empty\": nothing is synthesized"
                )
            }
            Decision::NoPrefix => {
                write!(f, "no prefix has been discovered: nothing is synthesized")
            }
            Decision::SuppressesA(rule) => {
                let rule = rule.map_or_else(|| "a rule".to_owned(), |rule| format!("rule {rule}"));
                write!(f, "{rule} suppresses the A records: the answer has no addresses")
            }
            Decision::ChecksBogus => {
                write!(
                    f,
                    "the AAAA lookup failed, perhaps because of bogus data: it is queried again without validation"
                )
            }
            Decision::RechecksBogus => {
                write!(
                    f,
                    "there is an answer without validation: the AAAA lookup is queried once more, and is bogus if it fails again"
                )
            }
            Decision::DeadAaaa => {
                write!(f, "no address can be synthesized: the AAAA records are the answer, dead as they seem")
            }
            Decision::RepeatsAaaa => {
                write!(f, "the AAAA lookup is queried again: its SOA record sets the negative TTL")
            }
        }
    }
}

/// The number of addresses that are synthesized, or the reason why there are none.
fn write_synthesis(f: &mut fmt::Formatter<'_>, decision: &Decision) -> fmt::Result {
    match decision {
        Decision::RuleWithoutPrefixes(rule) => {
            write!(
                f,
                "rule {rule} applies to this client and name, and has no prefixes: nothing is synthesized"
            )
        }
        Decision::Synthesizes(1) => write!(f, "1 address is synthesized"),
        Decision::Synthesizes(count) if *count > 0 => write!(f, "{count} addresses are synthesized"),
        _ => write!(f, "none of the A records may be embedded"),
    }
}

impl Embedding {
    /// Code of the decision for programs: the label value of `omitted_addresses_total`, `embedded`, or `mapped`.
    pub fn code(self) -> &'static str {
        match self {
            Embedding::Embedded => "embedded",
            Embedding::Mapped(_) => "mapped",
            Embedding::NonGlobal => label(Counter::OmittedNonGlobal),
            Embedding::NeverEmbed => label(Counter::OmittedNeverEmbed),
            Embedding::NoPrefix => label(Counter::OmittedRule),
            Embedding::Undiscovered => label(Counter::NotSynthesizedNoPrefix),
            Embedding::BeyondMax => label(Counter::OmittedMaxRecords),
            Embedding::Unused(Unused::Down) => "gateway_down",
            Embedding::Unused(Unused::Draining) => "draining",
            Embedding::Unused(Unused::Other) => "other_prefix",
        }
    }

    /// Requirement behind the decision.
    pub fn requirement(self) -> &'static str {
        match self {
            Embedding::Embedded => "RFC 6052 section 2.2",
            Embedding::Mapped(_) => "RFC 7757 section 3.3.1",
            Embedding::NonGlobal => "RFC 6052 section 3.1",
            Embedding::NeverEmbed => "RFC 6147 section 5.1.7",
            Embedding::NoPrefix => "dns64.rule prefixes",
            Embedding::Undiscovered => "dns64.prefixes",
            Embedding::BeyondMax => "dns64.max-records",
            Embedding::Unused(Unused::Down) => "dns64.gateway",
            Embedding::Unused(Unused::Draining) => "sixfold ctl prefix drain",
            Embedding::Unused(Unused::Other) => "dns64.spread",
        }
    }
}

impl RealFate {
    /// Code of the decision for programs.
    pub fn code(self) -> &'static str {
        match self {
            RealFate::Kept => "kept",
            RealFate::Excluded(_) | RealFate::OurPrefix(_) => "excluded",
            RealFate::Ignored(_) => "ignored",
            RealFate::Lives(_) => "lives",
            RealFate::Untried(_) => "untried",
            RealFate::Dead(_) => "dead",
        }
    }

    /// Requirement behind the decision.
    pub fn requirement(self) -> &'static str {
        match self {
            RealFate::Kept => "RFC 6147 section 5.1.1",
            RealFate::Excluded(_) | RealFate::OurPrefix(_) => "RFC 6147 section 5.1.4",
            RealFate::Ignored(_) | RealFate::Lives(_) | RealFate::Untried(_) | RealFate::Dead(_) => {
                "dns64.rule real-aaaa"
            }
        }
    }
}

/// Writes the reason why DNS64 does not apply to a query for AAAA records.
fn write_no_dns64(f: &mut fmt::Formatter<'_>, reason: NoDns64) -> fmt::Result {
    match reason {
        NoDns64::NotRecursive => {
            write!(f, "RD is clear: DNS64 does not apply to such queries")
        }
        NoDns64::Dnssec => {
            write!(f, "DO and CD are set: the client validates itself, so nothing is synthesized")
        }
        NoDns64::Client => write!(f, "DNS64 does not apply ({})", label(reason.counter())),
    }
}

/// Writes the reason why the result of the last lookup is the answer.
fn write_passed_on(f: &mut fmt::Formatter<'_>, reason: PassReason) -> fmt::Result {
    match reason {
        PassReason::RealAaaa => {
            write!(f, "there is a real AAAA record: nothing is synthesized")
        }
        PassReason::NxDomain => {
            write!(f, "the name does not exist: NXDOMAIN is the answer")
        }
        PassReason::Bogus => {
            write!(f, "the data are bogus: SERVFAIL is the answer")
        }
        PassReason::Unproven => {
            write!(f, "validation has no proof that the AAAA lookup may fail: SERVFAIL is the answer")
        }
        PassReason::Failure => {
            write!(f, "the AAAA lookup failed, and such failures are passed on")
        }
        PassReason::NoA => {
            write!(f, "there are no A records: the reply of the A lookup is the answer")
        }
        PassReason::AFailed => {
            write!(f, "the A lookup failed: its result is the answer")
        }
    }
}

/// Writes the reason why the A lookup decides.
fn write_queries_a(
    f: &mut fmt::Formatter<'_>,
    cause: Cause,
    rule: Option<usize>,
    no_reply: Option<NoReply>,
) -> fmt::Result {
    match (cause, rule) {
        (Cause::NoData, _) => write!(f, "there are no AAAA records: the A records decide"),
        (Cause::Excluded, _) => {
            write!(f, "all AAAA records are excluded and count as absent: the A records decide")
        }
        (Cause::Ignored, Some(rule)) => {
            write!(f, "rule {rule} ignores the AAAA records: the A records decide")
        }
        (Cause::Dead, _) => {
            write!(f, "no address of an AAAA record has answered when it was tried: the A records decide")
        }
        (Cause::Ignored, None) => write!(f, "a rule ignores the AAAA records: the A records decide"),
        (Cause::Error, _) => {
            write!(f, "the AAAA lookup failed, which counts as an empty answer: the A records decide")
        }
        (Cause::Timeout, _) => {
            let no_reply = no_reply.unwrap_or(NoReply::TimedOut);
            write!(f, "the AAAA lookup has {no_reply}, which counts as an empty answer: the A records decide")
        }
    }
}
