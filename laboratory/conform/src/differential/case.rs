//! Question of a differential run, and its kind.

use crate::message::Flag;
use crate::query::Query;
use domain::base::iana::Rcode;
use std::fmt;

/// Upstream that serves a zone: an ordinary one, and one for each way to fail. They are separate because servers
/// remember the failures of an upstream, and names that do not fail would suffer for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UpstreamKind {
    /// Answers every query.
    Ordinary,
    /// Answers some queries with SERVFAIL.
    ServFail,
    /// Answers some queries with REFUSED.
    Refused,
    /// Answers some queries with NOTIMP.
    NotImp,
    /// Answers some queries with FORMERR.
    FormErr,
    /// Does not answer some queries.
    Silent,
}

impl UpstreamKind {
    /// All kinds; the ordinary one is the first.
    pub const ALL: [UpstreamKind; 6] = [
        UpstreamKind::Ordinary,
        UpstreamKind::ServFail,
        UpstreamKind::Refused,
        UpstreamKind::NotImp,
        UpstreamKind::FormErr,
        UpstreamKind::Silent,
    ];

    /// Zone whose queries are forwarded to this upstream.
    pub fn zone(self) -> &'static str {
        match self {
            UpstreamKind::Ordinary => ".",
            UpstreamKind::ServFail => "servfail.example.",
            UpstreamKind::Refused => "refused.example.",
            UpstreamKind::NotImp => "notimp.example.",
            UpstreamKind::FormErr => "formerr.example.",
            UpstreamKind::Silent => "silent.example.",
        }
    }

    /// RCODE of the failures; `None` for the ordinary and for the silent upstream.
    pub fn rcode(self) -> Option<Rcode> {
        match self {
            UpstreamKind::ServFail => Some(Rcode::SERVFAIL),
            UpstreamKind::Refused => Some(Rcode::REFUSED),
            UpstreamKind::NotImp => Some(Rcode::NOTIMP),
            UpstreamKind::FormErr => Some(Rcode::FORMERR),
            UpstreamKind::Ordinary | UpstreamKind::Silent => None,
        }
    }
}

/// Way from the name in the question to the name that has the addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Indirection {
    /// The name itself.
    Itself,
    /// CNAME records, all in one reply.
    Aliases,
    /// CNAME records; the upstream stops at each.
    Unfinished,
    /// A DNAME above the name.
    Dname,
    /// A wildcard.
    Wildcard,
}

/// Data at the final name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum FinalData {
    /// AAAA records, perhaps A records too.
    Real,
    /// A records only.
    Ipv4Only,
    /// AAAA records that are excluded, and A records.
    Excluded,
    /// Excluded AAAA records and no A record.
    ExcludedAlone,
    /// Some AAAA records are excluded, some are not.
    Mixed,
    /// An AAAA record under the prefix itself.
    OwnPrefix,
    /// Neither AAAA nor A records.
    Nothing,
    /// NXDOMAIN.
    NxDomain,
    /// NXDOMAIN for AAAA, addresses for A.
    NxDomainForAaaa,
    /// The AAAA query fails in the way of its [`UpstreamKind`].
    AaaaFails,
    /// The AAAA reply is empty, the A query fails in the way of its [`UpstreamKind`].
    AFails,
    /// The AAAA reply is empty, NXDOMAIN for A.
    NxDomainForA,
    /// A records, none of which may be embedded in the well-known prefix.
    NonGlobal,
    /// A records, some of which may not be embedded in the well-known prefix.
    PartlyGlobal,
    /// A records in networks that no host of the Internet has: loopback, link-local, multicast, reserved.
    Unreachable,
}

/// Kind of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum QuestionKind {
    /// AAAA records of a name.
    Aaaa(Indirection, FinalData),
    /// Another type of such a name.
    Other(Indirection, FinalData),
    /// Reverse name of an IPv4 address under the prefix.
    ReverseInside(ReverseData),
    /// Another reverse name under `ip6.arpa`.
    ReverseOutside(ReverseData),
    /// Name above or below the reverse name of an address under the prefix.
    ReverseNear,
    /// `ipv4only.arpa` and names below it.
    Ipv4OnlyArpa(Ipv4OnlyQuestion),
}

/// Data at a reverse name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReverseData {
    /// A PTR record.
    Pointer,
    /// A CNAME to a PTR record (RFC 2317).
    Delegated,
    /// Nothing.
    Missing,
}

/// Question about `ipv4only.arpa`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Ipv4OnlyQuestion {
    A,
    Aaaa,
    OtherType,
    Below,
}

impl fmt::Display for QuestionKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QuestionKind::Aaaa(indirection, data) => write!(formatter, "AAAA {indirection:?} {data:?}"),
            QuestionKind::Other(indirection, data) => write!(formatter, "other {indirection:?} {data:?}"),
            QuestionKind::ReverseInside(has) => write!(formatter, "PTR inside {has:?}"),
            QuestionKind::ReverseOutside(has) => write!(formatter, "PTR outside {has:?}"),
            QuestionKind::ReverseNear => write!(formatter, "PTR near"),
            QuestionKind::Ipv4OnlyArpa(special) => write!(formatter, "ipv4only.arpa {special:?}"),
        }
    }
}

/// One question.
#[derive(Clone, Debug)]
pub struct Case {
    /// Number of the question in the run.
    pub number: usize,
    /// Kind of the question.
    pub kind: QuestionKind,
    /// Upstream that has the names.
    pub upstream_kind: UpstreamKind,
    /// Query as it is sent.
    pub query: Query,
}

impl Case {
    /// DO bit of the query.
    pub fn dnssec_ok(&self) -> bool {
        self.query.edns.as_ref().is_some_and(|edns| edns.dnssec_ok)
    }

    /// True if the flag of the query is set.
    pub fn has(&self, flag: Flag) -> bool {
        self.query.flags.contains(&flag)
    }

    /// Largest answer over UDP that the client accepts.
    pub fn udp_size(&self) -> usize {
        self.query.edns.as_ref().map_or(512, |edns| usize::from(edns.udp.max(512)))
    }
}
