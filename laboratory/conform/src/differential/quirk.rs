//! Quirks: the ways in which a server differs from Sixfold, each under a number of `docs/disagreements.md`. A quirk
//! is exact: it defines one answer ([`super::predict`]) and does not merely permit others. Two quirks depend on more
//! than the question; [`super::verdict`] judges them with the answer in hand.

/// Servers of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Server {
    /// Reference that the others are compared with.
    Sixfold,
    /// Resolver of NLnet Labs.
    Unbound,
    /// Server of ISC.
    Bind,
    /// PowerDNS Recursor.
    PowerDns,
    /// Resolver of CZ.NIC.
    KnotResolver,
}

/// Difference between a server and Sixfold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quirk {
    /// Asks for A after NXDOMAIN for AAAA.
    AsksAfterNxDomain,
    /// Answers a failed AAAA query with SERVFAIL, without a query for A.
    FailureIsFinal,
    /// After a failed A query, returns the empty AAAA reply.
    EmptyWhenAFails,
    /// After a failed A query, returns SERVFAIL without records.
    ServFailWhenAFails,
    /// After a failed A query, returns SERVFAIL with the records of the empty AAAA reply.
    ServFailWithRecordsWhenAFails,
    /// After NXDOMAIN for A, returns the empty AAAA reply.
    EmptyWhenAIsNxDomain,
    /// Returns SERVFAIL for other failures of an upstream.
    FailuresAreServFail,
    /// Gives synthesized records the TTL of the A records.
    TtlOfA,
    /// Takes the TTL of the SOA as the negative TTL, without its MINIMUM.
    TtlOfSoaRecord,
    /// Limits the TTL of synthesized records by the TTL of excluded AAAA records.
    TtlOfExcluded,
    /// Does not synthesize for DO if the A records are signed.
    NothingForDoAndSigned,
    /// Does not synthesize for CD, even without DO.
    NothingForCd,
    /// Synthesizes for DO and CD together.
    SynthesizesForDoAndCd,
    /// Does not trust AD of the upstream.
    NeverAd,
    /// Excludes no AAAA records.
    ExcludesNothing,
    /// Does not exclude AAAA records under the prefix itself.
    KeepsOwnPrefix,
    /// Embeds addresses that are not global or belong to no host.
    EmbedsAll,
    /// Adds the SOA of the empty AAAA reply to the synthesized records.
    KeepsSoa,
    /// Treats `ipv4only.arpa` as an ordinary name.
    AsksForIpv4Only,
    /// Lets the TTL of `ipv4only.arpa` count down.
    Ipv4OnlyCountsDown,
    /// Limits TTLs to a week; Sixfold limits them to a day.
    WeekAtMost,
    /// Raises TTLs to at least five seconds.
    FiveSecondsAtLeast,
    /// Puts DNAMEs and signatures anywhere in the answer section.
    ChainOrder,
    /// Leaves the DNAME out of the answer for CNAME, but not its signature.
    NoDnameForCname,
    /// Does not answer while an upstream is silent: longer than any client waits.
    WaitsForSilence,
    /// Treats an upstream that is silent for some names as dead for others: SERVFAIL with the CNAMEs seen before.
    SilenceIsContagious,
    /// Adds the records of replies that led to a failure to the failure.
    FailureKeepsRecords,
    /// Returns failures without records, even without those of replies that led to it.
    FailuresAreBare,
    /// Limits negative TTLs to three hours.
    ThreeHoursForSoa,
    /// Adds the signatures over the A records to the synthesized records.
    KeepsSignatureOfA,
    /// Adds signatures to the answer for ANY, even without DO.
    SignaturesForAny,
    /// Adds the signature of a DNAME above the name to the answer for ANY, even without DO.
    SignatureOfDnameForAny,
    /// After a failed AAAA query, leaves out the signatures over all CNAMEs but the first.
    FirstSignatureAfterFailure,
    /// Answers questions for ANY with SERVFAIL.
    NoAny,
    /// Follows CNAMEs for ANY, unless they are signed.
    FollowsForAny,
    /// Answers a question for DS with the first record of a CNAME chain only.
    FirstAliasForDs,
    /// Recognizes names under the prefix only with `ip6.arpa` in lower case.
    PtrInSmallLetters,
    /// Answers names near reverse names of addresses with an empty answer without SOA.
    NearIsEmpty,
    /// Takes names near reverse names of addresses for reverse names.
    NearIsMisread,
    /// Gives the PTR record the name under the prefix as its owner.
    PtrAtOwnName,
    /// Gives the CNAME of a reverse name the TTL 0.
    PtrAliasTtl0,
    /// Gives the CNAME of a reverse name a TTL of a minute.
    PtrAliasTtl60,
    /// Treats reverse names under the prefix as ordinary unless they are those of an address.
    NearIsOrdinary,
}

impl Quirk {
    /// Number of the disagreement in `docs/disagreements.md`.
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
            WeekAtMost | FiveSecondsAtLeast | ThreeHoursForSoa => 14,
            FailuresAreServFail | FailuresAreBare => 15,
            ChainOrder | NoDnameForCname => 16,
            SignaturesForAny | SignatureOfDnameForAny | NoAny | FollowsForAny => 17,
            FirstAliasForDs => 18,
        }
    }
}

impl Server {
    /// All servers but Sixfold.
    pub const OTHERS: [Server; 4] = [Server::Unbound, Server::Bind, Server::PowerDns, Server::KnotResolver];

    /// Name of the server as people know it.
    pub fn name(self) -> &'static str {
        match self {
            Server::Sixfold => "Sixfold",
            Server::Unbound => "Unbound",
            Server::Bind => "BIND",
            Server::PowerDns => "PowerDNS",
            Server::KnotResolver => "Knot Resolver",
        }
    }

    /// Quirks of the server.
    pub fn quirks(self) -> &'static [Quirk] {
        match self {
            Server::Sixfold => &[],
            Server::Unbound => UNBOUND,
            Server::Bind => BIND,
            Server::PowerDns => POWERDNS,
            Server::KnotResolver => KNOT_RESOLVER,
        }
    }
}

/// Quirks of Unbound.
const UNBOUND: &[Quirk] = {
    use Quirk::*;
    &[
        AsksAfterNxDomain,
        WaitsForSilence,
        EmptyWhenAFails,
        TtlOfA,
        NothingForCd,
        NeverAd,
        ExcludesNothing,
        EmbedsAll,
        AsksForIpv4Only,
        FailuresAreServFail,
        FailuresAreBare,
        PtrAtOwnName,
        PtrInSmallLetters,
        NearIsOrdinary,
        SignaturesForAny,
        SignatureOfDnameForAny,
    ]
};

/// Quirks of BIND.
const BIND: &[Quirk] = {
    use Quirk::*;
    &[
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
        WeekAtMost,
        ThreeHoursForSoa,
        FailuresAreServFail,
        FailuresAreBare,
        SignaturesForAny,
    ]
};

/// Quirks of PowerDNS Recursor.
const POWERDNS: &[Quirk] = {
    use Quirk::*;
    &[
        ServFailWithRecordsWhenAFails,
        TtlOfA,
        KeepsSignatureOfA,
        SynthesizesForDoAndCd,
        NeverAd,
        ExcludesNothing,
        EmbedsAll,
        AsksForIpv4Only,
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
    ]
};

/// Quirks of Knot Resolver.
const KNOT_RESOLVER: &[Quirk] = {
    use Quirk::*;
    &[
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
        FiveSecondsAtLeast,
        FailuresAreServFail,
        PtrAliasTtl60,
        NearIsEmpty,
        NoAny,
    ]
};
