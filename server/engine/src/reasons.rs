//! Reasons of what happens to a query: the values that the parts of the engine decide, store and tell of (`trace.rs`).
//!
//! Each reason has a counter, which is told of the decision. A counter is never compared, matched or stored: metrics may be split or
//! merged, and the server does the same.

use crate::counters::Counter;

/// Reason why DNS64 does not apply to an AAAA query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoDns64 {
    /// DNS64 is not for this client.
    Client,
    /// DO and CD are both set: the client validates by itself.
    Dnssec,
    /// RD is clear, and `recursive-only` is set.
    NotRecursive,
}

impl NoDns64 {
    /// Counter of these queries.
    #[inline]
    pub fn counter(self) -> Counter {
        match self {
            NoDns64::Client => Counter::NotSynthesizedClient,
            NoDns64::Dnssec => Counter::NotSynthesizedDnssec,
            NoDns64::NotRecursive => Counter::NotSynthesizedNotRecursive,
        }
    }
}

/// Reason why a client with DNS64 gets the reply, or the failure, of the last question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassReason {
    /// There is a real AAAA record.
    RealAaaa,
    /// The name does not exist.
    NxDomain,
    /// The data are bogus, as an upstream or the validation here found.
    Bogus,
    /// The validation here could not prove that the failure of the AAAA lookup is no attack.
    Unproven,
    /// The AAAA lookup failed, and by configuration the failure is the answer.
    Failure,
    /// There is no A record.
    NoA,
    /// The A lookup failed.
    AFailed,
}

impl PassReason {
    /// Counter of these answers.
    #[inline]
    pub fn counter(self) -> Counter {
        match self {
            PassReason::RealAaaa => Counter::NotSynthesizedReal,
            PassReason::NxDomain => Counter::NotSynthesizedNxDomain,
            PassReason::Bogus => Counter::NotSynthesizedBogus,
            PassReason::Unproven => Counter::NotSynthesizedUnproven,
            PassReason::Failure => Counter::NotSynthesizedFailure,
            PassReason::NoA => Counter::NotSynthesizedNoA,
            PassReason::AFailed => Counter::NotSynthesizedAFailed,
        }
    }
}

/// Reason of a complete answer for clients with DNS64. The cache stores it with the answer, as an octet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum AnswerReason {
    /// There is a real AAAA record.
    RealAaaa = 0,
    /// The name does not exist.
    NxDomain = 1,
    /// Synthesized because there is no AAAA record.
    NoData = 2,
    /// Synthesized because all AAAA records are excluded.
    Excluded = 3,
    /// As [`AnswerReason::NoData`], and the synthesis leaves addresses out.
    NoDataInPart = 4,
    /// As [`AnswerReason::Excluded`], and the synthesis leaves addresses out.
    ExcludedInPart = 5,
}

impl AnswerReason {
    /// The reason that is stored as this octet.
    #[inline]
    pub fn from_octet(octet: u8) -> Option<AnswerReason> {
        Some(match octet {
            0 => AnswerReason::RealAaaa,
            1 => AnswerReason::NxDomain,
            2 => AnswerReason::NoData,
            3 => AnswerReason::Excluded,
            4 => AnswerReason::NoDataInPart,
            5 => AnswerReason::ExcludedInPart,
            _ => return None,
        })
    }

    /// The reason of a reply that is passed on; none for the failures, which are no complete answers.
    #[inline]
    pub fn passed(reason: PassReason) -> Option<AnswerReason> {
        match reason {
            PassReason::RealAaaa => Some(AnswerReason::RealAaaa),
            PassReason::NxDomain => Some(AnswerReason::NxDomain),
            PassReason::Bogus
            | PassReason::Unproven
            | PassReason::Failure
            | PassReason::NoA
            | PassReason::AFailed => None,
        }
    }

    /// True for a synthesis.
    #[inline]
    pub fn is_synthesis(self) -> bool {
        !matches!(self, AnswerReason::RealAaaa | AnswerReason::NxDomain)
    }

    /// True for a synthesis that leaves addresses out.
    #[inline]
    pub fn leaves_out(self) -> bool {
        matches!(self, AnswerReason::NoDataInPart | AnswerReason::ExcludedInPart)
    }

    /// Counter of these answers.
    #[inline]
    pub fn counter(self) -> Counter {
        match self {
            AnswerReason::RealAaaa => Counter::NotSynthesizedReal,
            AnswerReason::NxDomain => Counter::NotSynthesizedNxDomain,
            AnswerReason::NoData | AnswerReason::NoDataInPart => Counter::SynthesizedNoData,
            AnswerReason::Excluded | AnswerReason::ExcludedInPart => Counter::SynthesizedExcluded,
        }
    }
}

/// Kind of the cached data that a query is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheHit {
    /// A positive answer.
    Positive,
    /// A negative answer.
    Negative,
    /// Addresses for synthesis, or a synthesized answer.
    Synthesized,
    /// A failure.
    Failure,
    /// Expired data.
    Stale,
}

impl CacheHit {
    /// Counter of these queries.
    #[inline]
    pub fn counter(self) -> Counter {
        match self {
            CacheHit::Positive => Counter::CacheHitsPositive,
            CacheHit::Negative => Counter::CacheHitsNegative,
            CacheHit::Synthesized => Counter::CacheHitsSynthesized,
            CacheHit::Failure => Counter::CacheHitsFailure,
            CacheHit::Stale => Counter::CacheHitsStale,
        }
    }
}

/// Limit that applies to a query, with the reaction to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The message is shorter than a header, and dropped.
    DroppedShort,
    /// The message is a response, and dropped.
    DroppedResponse,
    /// The client's network exceeds its query rate. The query is refused, since its source address is proven.
    RefusedQueryRate,
    /// The client's network exceeds its query rate. The client is sent to TCP.
    SlippedQueryRate,
    /// The client's network exceeds its query rate. The query is dropped.
    DroppedQueryRate,
    /// The query is pending already: it is a retransmission, and dropped.
    DroppedRepeated,
    /// No slot for pending queries is free, and the client's network has most of them. The query is refused.
    RefusedPending,
    /// The client's network has too many pending queries. The query is refused, since its source address is proven.
    RefusedPendingPerClient,
    /// The client's network has too many pending queries. The client is sent to TCP, where it has room of its own.
    SlippedPendingPerClient,
    /// The client's network has too many pending queries. The query is dropped.
    DroppedPendingPerClient,
    /// The client's network exceeds its response rate. The client is sent to TCP.
    SlippedResponseRate,
    /// The client's network exceeds its response rate. The response is dropped.
    DroppedResponseRate,
    /// The client waits no longer. The answer is dropped.
    DroppedTooLate,
}

/// What a client hears of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// REFUSED.
    Refuse,
    /// An empty answer with TC, which sends the client to TCP.
    Slip,
    /// Nothing.
    Drop,
}

impl Limit {
    /// The reaction to a query beyond the limit.
    #[inline]
    pub fn reaction(self) -> Reaction {
        match self {
            Limit::RefusedQueryRate | Limit::RefusedPending | Limit::RefusedPendingPerClient => {
                Reaction::Refuse
            }
            Limit::SlippedQueryRate | Limit::SlippedPendingPerClient | Limit::SlippedResponseRate => {
                Reaction::Slip
            }
            Limit::DroppedShort
            | Limit::DroppedResponse
            | Limit::DroppedQueryRate
            | Limit::DroppedRepeated
            | Limit::DroppedPendingPerClient
            | Limit::DroppedResponseRate
            | Limit::DroppedTooLate => Reaction::Drop,
        }
    }

    /// Counter of the limit and its reaction.
    #[inline]
    pub fn counter(self) -> Counter {
        match self {
            Limit::DroppedShort => Counter::DroppedShort,
            Limit::DroppedResponse => Counter::DroppedResponse,
            Limit::RefusedQueryRate => Counter::RefusedQueryRate,
            Limit::SlippedQueryRate => Counter::SlippedQueryRate,
            Limit::DroppedQueryRate => Counter::DroppedQueryRate,
            Limit::DroppedRepeated => Counter::DroppedRepeated,
            Limit::RefusedPending => Counter::RefusedPending,
            Limit::RefusedPendingPerClient => Counter::RefusedPendingPerClient,
            Limit::SlippedPendingPerClient => Counter::SlippedPendingPerClient,
            Limit::DroppedPendingPerClient => Counter::DroppedPendingPerClient,
            Limit::SlippedResponseRate => Counter::SlippedResponseRate,
            Limit::DroppedResponseRate => Counter::DroppedResponseRate,
            Limit::DroppedTooLate => Counter::DroppedTooLate,
        }
    }
}

/// Local zone of a special-use name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalZone {
    /// `ipv4only.arpa`, and the reverse names of its addresses.
    Ipv4Only,
    /// The reverse zone of a prefix.
    Reverse,
    /// `localhost`, names below it, and the reverse names of its addresses.
    Localhost,
    /// `invalid` and names below it.
    Invalid,
    /// `onion` and names below it.
    Onion,
    /// `resolver.arpa` and names below it.
    ResolverArpa,
    /// A zone of RFC 6303, or one of the same kind.
    Empty,
    /// Names of class CH, which are about the server itself.
    Server,
}

impl LocalZone {
    /// Counter of the answers from the zone.
    #[inline]
    pub fn counter(self) -> Counter {
        match self {
            LocalZone::Ipv4Only => Counter::LocalIpv4Only,
            LocalZone::Reverse => Counter::LocalReverse,
            LocalZone::Localhost => Counter::LocalLocalhost,
            LocalZone::Invalid => Counter::LocalInvalid,
            LocalZone::Onion => Counter::LocalOnion,
            LocalZone::ResolverArpa => Counter::LocalResolverArpa,
            LocalZone::Empty => Counter::LocalEmptyZone,
            LocalZone::Server => Counter::LocalServerNames,
        }
    }
}

/// Source of a reply from local data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalReply {
    /// Records of the configuration, or of a hosts file.
    Records,
    /// `filter.block`.
    Block,
}

impl LocalReply {
    /// Counter of these replies.
    #[inline]
    pub fn counter(self) -> Counter {
        match self {
            LocalReply::Records => Counter::LocalRecords,
            LocalReply::Block => Counter::FilteredBlock,
        }
    }
}

/// Action of a response policy zone on a query, without the rule's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyAction {
    /// The answer is NXDOMAIN.
    NxDomain,
    /// The answer is NODATA.
    NoData,
    /// The name has the data of the rule.
    LocalData,
    /// The client is sent to TCP.
    TcpOnly,
    /// There is no answer.
    Drop,
    /// The answer is not changed.
    Passthru,
}

impl PolicyAction {
    /// Counter of these queries.
    #[inline]
    pub fn counter(self) -> Counter {
        match self {
            PolicyAction::NxDomain => Counter::FilteredNxDomain,
            PolicyAction::NoData => Counter::FilteredNoData,
            PolicyAction::LocalData => Counter::FilteredLocal,
            PolicyAction::TcpOnly => Counter::FilteredTcpOnly,
            PolicyAction::Drop => Counter::FilteredDrop,
            PolicyAction::Passthru => Counter::FilteredPassthru,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stored_reason_reads_as_it_was_written_and_no_other_octet_is_one() {
        let read = |octet: u8| AnswerReason::from_octet(octet).map(|reason| reason as u8);
        assert!((0..6).all(|octet| read(octet) == Some(octet)));
        assert!((6..=u8::MAX).all(|octet| read(octet).is_none()));
    }
}
