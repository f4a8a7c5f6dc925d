//! The form of a query to an upstream: its transport, and the options that it carries.
//!
//! The first query of a question has all that the configuration allows. What an upstream refuses, later queries leave out; a question
//! whose replies look forged moves to TCP.

use crate::interface::Transport;

/// Form of a query: its transport and its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryForm {
    /// UDP or TCP, or TLS in place of both to a server with TLS.
    pub transport: Transport,
    /// The query has an OPT record.
    pub edns: bool,
    /// The query has a cookie.
    pub cookie: CookieUse,
    /// The query has the question's client subnet.
    pub subnet: bool,
}

/// Use of cookies for one question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieUse {
    /// Queries have a cookie.
    Sent,
    /// They have one, which was renewed after BADCOOKIE.
    Renewed,
    /// They have none, because an upstream did not understand it.
    Omitted,
}

impl QueryForm {
    /// A query over UDP without an OPT record.
    pub(super) const PLAIN: QueryForm =
        QueryForm { transport: Transport::Udp, edns: false, cookie: CookieUse::Omitted, subnet: false };

    /// Form of the first query of a question.
    #[inline]
    pub(super) fn first(transport: Transport) -> QueryForm {
        QueryForm { transport, edns: true, cookie: CookieUse::Sent, subnet: true }
    }

    /// True if the query has a cookie.
    #[inline]
    pub fn has_cookie(self) -> bool {
        self.cookie != CookieUse::Omitted
    }

    /// True if the query goes over TCP or TLS.
    #[inline]
    pub fn is_over_stream(self) -> bool {
        self.transport.is_stream()
    }
}
