//! One question of a differential run, and what kind it is of.

use crate::message::Flag;
use crate::query::Query;
use domain::base::iana::Rcode;
use std::fmt;

/// The upstreams: the ordinary one, and one for each way to fail. Servers remember what an upstream cannot do, and
/// would let names pay for it that do not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UpstreamKind {
    /// Everything is answered.
    Ordinary,
    /// Some questions are answered with SERVFAIL.
    ServFail,
    /// Some questions are answered with REFUSED.
    Refused,
    /// Some questions are answered with NOTIMP.
    NotImp,
    /// Some questions are answered with FORMERR.
    FormErr,
    /// Some questions are not answered.
    Silent,
}

impl UpstreamKind {
    /// All of them; the ordinary one is the first.
    pub const ALL: [UpstreamKind; 6] = [
        UpstreamKind::Ordinary,
        UpstreamKind::ServFail,
        UpstreamKind::Refused,
        UpstreamKind::NotImp,
        UpstreamKind::FormErr,
        UpstreamKind::Silent,
    ];

    /// The zone that goes to this upstream.
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

    /// What is answered instead; none in the ordinary upstream_kind, and for silence.
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

/// How the name asked leads to the name that has the addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Indirection {
    /// It is that name.
    Itself,
    /// Aliases, all in one reply.
    Aliases,
    /// Aliases, and the upstream stops at each.
    Unfinished,
    /// A DNAME above it.
    Dname,
    /// A wildcard.
    Wildcard,
}

/// What is at the end.
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
    /// Neither kind of address.
    Nothing,
    /// No such name.
    NxDomain,
    /// The AAAA question is answered with NXDOMAIN, the A question with addresses.
    NxDomainForAaaa,
    /// The AAAA question fails as the upstream_kind does.
    AaaaFails,
    /// The A question fails as the upstream_kind does, the AAAA answer is empty.
    AFails,
    /// The A question is answered with NXDOMAIN, the AAAA answer is empty.
    NxDomainForA,
    /// A records, none of which may be embedded in the well-known prefix.
    NonGlobal,
    /// A records, some of which may not be embedded in the well-known prefix.
    PartlyGlobal,
    /// A records in networks that no host of the Internet has: loopback, link-local, multicast, reserved.
    Unreachable,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum QuestionKind {
    /// The AAAA records of a name.
    Aaaa(Indirection, FinalData),
    /// Another type of such a name.
    Other(Indirection, FinalData),
    /// The reverse name of an IPv4 address under the prefix.
    ReverseInside(ReverseData),
    /// Another reverse name under `ip6.arpa`.
    ReverseOutside(ReverseData),
    /// A name that is above the reverse name of an address under the prefix, or below it.
    ReverseNear,
    /// `ipv4only.arpa`, and names below it.
    Ipv4OnlyArpa(Ipv4OnlyQuestion),
}

/// What a reverse name has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReverseData {
    /// A PTR record.
    Pointer,
    /// A CNAME to a PTR record (RFC 2317).
    Delegated,
    /// Nothing.
    Missing,
}

/// What is asked of `ipv4only.arpa`.
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
    /// Its number in the run.
    pub number: usize,
    /// What it is about.
    pub kind: QuestionKind,
    /// Which upstream knows its names.
    pub upstream_kind: UpstreamKind,
    /// The question as it is sent.
    pub query: Query,
}

impl Case {
    /// The question's DO bit.
    pub fn dnssec_ok(&self) -> bool {
        self.query.edns.as_ref().is_some_and(|edns| edns.dnssec_ok)
    }

    /// A flag of the question.
    pub fn has(&self, flag: Flag) -> bool {
        self.query.flags.contains(&flag)
    }

    /// The largest answer that the client takes over UDP.
    pub fn udp_size(&self) -> usize {
        self.query.edns.as_ref().map_or(512, |edns| usize::from(edns.udp.max(512)))
    }
}
