//! One question of a differential run, and what kind it is of.

use crate::message::Flag;
use crate::query::Query;
use domain::base::iana::Rcode;
use std::fmt;

/// The upstreams: the ordinary one, and one for each way to fail. Servers remember what an upstream cannot do, and
/// would let names pay for it that do not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Province {
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

impl Province {
    /// All of them; the ordinary one is the first.
    pub const ALL: [Province; 6] = [
        Province::Ordinary,
        Province::ServFail,
        Province::Refused,
        Province::NotImp,
        Province::FormErr,
        Province::Silent,
    ];

    /// The zone that goes to this upstream.
    pub fn zone(self) -> &'static str {
        match self {
            Province::Ordinary => ".",
            Province::ServFail => "servfail.example.",
            Province::Refused => "refused.example.",
            Province::NotImp => "notimp.example.",
            Province::FormErr => "formerr.example.",
            Province::Silent => "silent.example.",
        }
    }

    /// What is answered instead; none in the ordinary province, and for silence.
    pub fn rcode(self) -> Option<Rcode> {
        match self {
            Province::ServFail => Some(Rcode::SERVFAIL),
            Province::Refused => Some(Rcode::REFUSED),
            Province::NotImp => Some(Rcode::NOTIMP),
            Province::FormErr => Some(Rcode::FORMERR),
            Province::Ordinary | Province::Silent => None,
        }
    }
}

/// How the name asked leads to the name that has the addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lead {
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
pub enum End {
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
    /// The AAAA question fails as the province does.
    AaaaFails,
    /// The A question fails as the province does, the AAAA answer is empty.
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
pub enum Asks {
    /// The AAAA records of a name.
    Aaaa(Lead, End),
    /// Another type of such a name.
    Other(Lead, End),
    /// The reverse name of an IPv4 address under the prefix.
    ReverseInside(Reverse),
    /// Another reverse name under `ip6.arpa`.
    ReverseOutside(Reverse),
    /// A name that is above the reverse name of an address under the prefix, or below it.
    ReverseNear,
    /// `ipv4only.arpa`, and names below it.
    Ipv4OnlyArpa(Special),
}

/// What a reverse name has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reverse {
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
pub enum Special {
    A,
    Aaaa,
    OtherType,
    Below,
}

impl fmt::Display for Asks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Asks::Aaaa(lead, end) => write!(formatter, "AAAA {lead:?} {end:?}"),
            Asks::Other(lead, end) => write!(formatter, "other {lead:?} {end:?}"),
            Asks::ReverseInside(has) => write!(formatter, "PTR inside {has:?}"),
            Asks::ReverseOutside(has) => write!(formatter, "PTR outside {has:?}"),
            Asks::ReverseNear => write!(formatter, "PTR near"),
            Asks::Ipv4OnlyArpa(special) => write!(formatter, "ipv4only.arpa {special:?}"),
        }
    }
}

/// One question.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its number in the run.
    pub number: usize,
    /// What it is about.
    pub asks: Asks,
    /// Which upstream knows its names.
    pub province: Province,
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
