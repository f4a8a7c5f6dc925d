//! Where servers disagree: the quirks in which one differs from Sixfold, each under a number of
//! `docs/disagreements.md`. A quirk is exact: it says what the answer becomes ([`super::predict`]), not that it may
//! be anything. Two depend on more than the question and are judged with the answer in hand ([`super::verdict`]).

/// The servers of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Server {
    /// The one that others are compared with.
    Sixfold,
    /// NLnet Labs' resolver.
    Unbound,
    /// ISC's server.
    Bind,
    /// PowerDNS Recursor.
    PowerDns,
    /// CZ.NIC's resolver.
    KnotResolver,
}

/// A way in which a server differs from Sixfold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quirk {
    /// QuestionKind for A after NXDOMAIN for AAAA.
    AsksAfterNxDomain,
    /// An AAAA question that fails is SERVFAIL, whatever A would say.
    FailureIsFinal,
    /// After a failed A question, the empty AAAA reply is the answer.
    EmptyWhenAFails,
    /// After a failed A question, SERVFAIL and nothing else.
    ServFailWhenAFails,
    /// After a failed A question, SERVFAIL with the records of the empty AAAA reply.
    ServFailWithRecordsWhenAFails,
    /// NXDOMAIN for A counts as a failed A question that is answered with the empty AAAA reply.
    EmptyWhenAIsNxDomain,
    /// Failures of an upstream other than SERVFAIL become SERVFAIL.
    FailuresAreServFail,
    /// The TTL of synthesized records is that of the A records.
    TtlOfA,
    /// The negative TTL is the TTL of the SOA; its MINIMUM does not count.
    TtlOfSoaRecord,
    /// After excluded AAAA records, their TTL bounds that of the synthesized ones.
    TtlOfExcluded,
    /// Nothing is synthesized for DO when the A records are signed.
    NothingForDoAndSigned,
    /// CD alone is enough not to synthesize.
    NothingForCd,
    /// DO and CD together do not prevent synthesis.
    SynthesizesForDoAndCd,
    /// AD of the upstream is not believed.
    NeverAd,
    /// No AAAA record is excluded.
    ExcludesNothing,
    /// AAAA records under the prefix itself are as good as others.
    KeepsOwnPrefix,
    /// Addresses that are not global, or nobody's, are embedded.
    EmbedsAll,
    /// The SOA of the empty AAAA reply goes with the synthesized records.
    KeepsSoa,
    /// `ipv4only.arpa` is an ordinary name.
    AsksForIpv4Only,
    /// The TTL of `ipv4only.arpa` counts down.
    Ipv4OnlyCountsDown,
    /// Aliases that an upstream leaves unfinished are followed for all types.
    FollowsForAllTypes,
    /// No TTL is above a week; those of Sixfold end at a day.
    WeekAtMost,
    /// No TTL is below five seconds.
    FiveSecondsAtLeast,
    /// DNAMEs and signatures stand anywhere in the answer section.
    ChainOrder,
    /// The answer for CNAME has no DNAME, though it has its signature.
    NoDnameForCname,
    /// While an upstream is silent, so is it: for longer than anybody waits.
    WaitsForSilence,
    /// An upstream that is silent about some names is dead for others: SERVFAIL with the aliases seen before.
    SilenceIsContagious,
    /// The records of replies that led to a failure go with the failure.
    FailureKeepsRecords,
    /// A failure has no records, not even those of replies that led to it.
    FailuresAreBare,
    /// A negative TTL is three hours at most.
    ThreeHoursForSoa,
    /// The signatures over the A records go with the synthesized ones.
    KeepsSignatureOfA,
    /// The answer for ANY has signatures, though DO was not set.
    SignaturesForAny,
    /// The answer for ANY has the signature of a DNAME above the name, though DO was not set.
    SignatureOfDnameForAny,
    /// After a failed AAAA question, aliases but the first are without signatures.
    FirstSignatureAfterFailure,
    /// Questions for ANY are answered with SERVFAIL.
    NoAny,
    /// Aliases are followed for ANY, unless they are signed.
    FollowsForAny,
    /// Of an alias, a question for DS gets the first record and nothing else.
    FirstAliasForDs,
    /// Names under the prefix are known only with `ip6.arpa` in small letters.
    PtrInSmallLetters,
    /// ReverseData names near those of addresses get an empty answer without SOA.
    NearIsEmpty,
    /// ReverseData names near those of addresses are taken for such.
    NearIsMisread,
    /// The PTR record has the name under the prefix as its owner.
    PtrAtOwnName,
    /// The alias of a reverse name has no TTL.
    PtrAliasTtl0,
    /// The alias of a reverse name has a TTL of a minute.
    PtrAliasTtl60,
    /// ReverseData names under the prefix are ordinary unless they are those of an address.
    NearIsOrdinary,
}

impl Quirk {
    /// The number of the disagreement in `docs/disagreements.md`.
    pub fn number(self) -> u8 {
        use Quirk::*;
        match self {
            AsksAfterNxDomain => 1,
            FailureIsFinal | FailureKeepsRecords | WaitsForSilence | SilenceIsContagious => 2,
            EmptyWhenAFails | ServFailWhenAFails | ServFailWithRecordsWhenAFails | EmptyWhenAIsNxDomain => 3,
            TtlOfA | TtlOfSoaRecord | TtlOfExcluded => 4,
            NothingForDoAndSigned | KeepsSignatureOfA | FirstSignatureAfterFailure => 5,
            NothingForCd | SynthesizesForDoAndCd => 6,
            PtrAtOwnName | PtrAliasTtl0 | PtrAliasTtl60 | NearIsOrdinary | PtrInSmallLetters
            | NearIsEmpty | NearIsMisread => 7,
            ExcludesNothing | KeepsOwnPrefix => 8,
            EmbedsAll => 9,
            KeepsSoa => 10,
            AsksForIpv4Only | Ipv4OnlyCountsDown => 11,
            NeverAd => 12,
            FollowsForAllTypes => 13,
            WeekAtMost | FiveSecondsAtLeast | ThreeHoursForSoa => 14,
            FailuresAreServFail | FailuresAreBare => 15,
            ChainOrder | NoDnameForCname => 16,
            SignaturesForAny | SignatureOfDnameForAny | NoAny | FollowsForAny => 17,
            FirstAliasForDs => 18,
        }
    }
}

impl Server {
    /// All but Sixfold.
    pub const OTHERS: [Server; 4] = [Server::Unbound, Server::Bind, Server::PowerDns, Server::KnotResolver];

    /// As people call it.
    pub fn name(self) -> &'static str {
        match self {
            Server::Sixfold => "Sixfold",
            Server::Unbound => "Unbound",
            Server::Bind => "BIND",
            Server::PowerDns => "PowerDNS",
            Server::KnotResolver => "Knot Resolver",
        }
    }

    /// In which it differs from Sixfold.
    pub fn quirks(self) -> &'static [Quirk] {
        use Quirk::*;
        match self {
            Server::Sixfold => &[],
            Server::Unbound => &[
                AsksAfterNxDomain,
                WaitsForSilence,
                EmptyWhenAFails,
                TtlOfA,
                NothingForCd,
                NeverAd,
                ExcludesNothing,
                EmbedsAll,
                AsksForIpv4Only,
                FollowsForAllTypes,
                FailuresAreServFail,
                FailuresAreBare,
                PtrAtOwnName,
                PtrInSmallLetters,
                NearIsOrdinary,
                SignaturesForAny,
                SignatureOfDnameForAny,
            ],
            Server::Bind => &[
                FailureIsFinal,
                ServFailWhenAFails,
                TtlOfSoaRecord,
                TtlOfExcluded,
                NothingForDoAndSigned,
                SynthesizesForDoAndCd,
                NeverAd,
                Ipv4OnlyCountsDown,
                KeepsOwnPrefix,
                EmbedsAll,
                FollowsForAllTypes,
                WeekAtMost,
                ThreeHoursForSoa,
                FailuresAreServFail,
                FailuresAreBare,
                SignaturesForAny,
            ],
            Server::PowerDns => &[
                ServFailWithRecordsWhenAFails,
                TtlOfA,
                KeepsSignatureOfA,
                SynthesizesForDoAndCd,
                NeverAd,
                ExcludesNothing,
                EmbedsAll,
                AsksForIpv4Only,
                FollowsForAllTypes,
                FailuresAreServFail,
                ChainOrder,
                NoDnameForCname,
                PtrAliasTtl0,
                NearIsMisread,
                SignaturesForAny,
                SignatureOfDnameForAny,
                FirstSignatureAfterFailure,
                FollowsForAny,
                FirstAliasForDs,
            ],
            Server::KnotResolver => &[
                FailureIsFinal,
                SilenceIsContagious,
                FailureKeepsRecords,
                ServFailWithRecordsWhenAFails,
                EmptyWhenAIsNxDomain,
                TtlOfSoaRecord,
                NothingForCd,
                NeverAd,
                ExcludesNothing,
                EmbedsAll,
                KeepsSoa,
                AsksForIpv4Only,
                FollowsForAllTypes,
                FiveSecondsAtLeast,
                FailuresAreServFail,
                PtrAliasTtl60,
                NearIsEmpty,
                NoAny,
            ],
        }
    }
}
