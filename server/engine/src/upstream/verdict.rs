//! Verdicts on messages from upstreams, and their reasons. Each reason has its counter.

use crate::counters::Counter;
use crate::upstream::circuit_breaker::Cause;
use crate::upstream::query_form::QueryForm;
use wire::Rcode;

/// Meaning of a message for the question that it answers, or pretends to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is believed, and answers the question.
    Accept,
    /// It is not believed, and the wait goes on.
    Drop(Mismatch),
    /// It is believed if enough replies to other queries agree with it (`suspicion.rs`).
    Weigh(Mismatch),
    /// It denies EDNS of a server that has shown it: it may be forged.
    Suspect,
    /// It asks for the query in this form. If that is the question's form already, the query is on its way.
    Retry(QueryForm, Reason),
    /// It is a failure that another server may not have.
    FailOver(Failure),
    /// It has more records than are worked on. Another server would send the same data.
    TooManyRecords,
    /// It answers a probe: its server is alive. The cause: it is a failure all the same.
    Probed(Option<Cause>),
}

/// Part of a message that fits no query, for which it is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mismatch {
    /// Its question is not in flight.
    Question,
    /// Its question was not asked over this socket.
    Socket,
    /// Its question was moved to TCP.
    MovedToTcp,
    /// It has the ID of a query whose question another attempt has answered.
    Late,
    /// It has another ID.
    Id,
    /// It is no well-formed reply.
    Malformed,
    /// It has another letter case.
    LetterCase,
    /// It has another cookie, or none where one is expected.
    Cookie,
    /// It has another client subnet.
    Subnet,
}

impl Mismatch {
    /// The counter of such messages.
    pub fn counter(self) -> Counter {
        match self {
            Mismatch::Question => Counter::SuspectUnknown,
            Mismatch::Socket => Counter::SuspectSocket,
            Mismatch::MovedToTcp => Counter::SuspectAbandoned,
            Mismatch::Late => Counter::DroppedLate,
            Mismatch::Id => Counter::SuspectId,
            Mismatch::Malformed => Counter::DroppedMalformedReply,
            Mismatch::LetterCase => Counter::SuspectCase,
            Mismatch::Cookie => Counter::SuspectCookie,
            Mismatch::Subnet => Counter::SuspectSubnet,
        }
    }
}

/// Reason for which a query is sent once more, in another form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The reply over UDP is truncated.
    Truncated,
    /// A message over UDP looks forged.
    Suspicion,
    /// The reply over UDP has another client subnet.
    WrongSubnet,
    /// The reply over a stream has another cookie: nobody forges that, so the server is wrong about cookies.
    WrongCookie,
    /// The server wants a new cookie, and has sent it (BADCOOKIE).
    CookieRenewed,
    /// The server does not accept the cookie that it has sent.
    BadCookie,
    /// The server does not understand the cookie (FORMERR).
    CookieRefused,
    /// The server refuses the client subnet.
    SubnetRefused,
    /// The server does not understand EDNS.
    EdnsRefused,
}

impl Reason {
    /// The counter of queries that are sent again for this reason.
    pub fn counter(self) -> Counter {
        match self {
            Reason::Truncated => Counter::TcpTruncation,
            Reason::Suspicion | Reason::WrongSubnet => Counter::TcpSuspicion,
            Reason::WrongCookie | Reason::CookieRefused => Counter::UpstreamCookieRefused,
            Reason::CookieRenewed => Counter::UpstreamCookieRenewed,
            Reason::BadCookie => Counter::TcpCookie,
            Reason::SubnetRefused => Counter::SubnetRefused,
            Reason::EdnsRefused => Counter::EdnsRefused,
        }
    }

    /// Part of the reply that does not fit; none if the reply is believed.
    pub fn mismatch(self) -> Option<Mismatch> {
        match self {
            Reason::WrongSubnet => Some(Mismatch::Subnet),
            Reason::WrongCookie => Some(Mismatch::Cookie),
            _ => None,
        }
    }

    /// True if the reply counts as a failure of its attempt.
    pub fn is_failure(self) -> bool {
        !matches!(self, Reason::Truncated | Reason::Suspicion | Reason::WrongSubnet)
    }
}

/// Failure of a server with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// A reply with this RCODE, which is an error.
    Error(Rcode),
    /// A lame reply.
    Lame,
    /// A reply that is truncated over a stream. It would look like the whole answer (RFC 2181 section 9).
    Truncated,
    /// A reply without a question.
    Bare(Cause),
}

impl Failure {
    /// Its cause, for the circuit breaker.
    pub fn cause(self) -> Cause {
        match self {
            Failure::Error(rcode) => Cause::Replied(rcode),
            Failure::Lame | Failure::Truncated => Cause::Unusable,
            Failure::Bare(cause) => cause,
        }
    }
}
