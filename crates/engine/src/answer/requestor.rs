//! The requestor of a response (RFC 6891 section 6.2): what the response must say, and how long it may be.

use crate::interface::{Client, ClientTransport};
use crate::limits::MESSAGE;
use crate::message::client_subnet::Subnet;
use crate::message::cookie::Cookie;
use crate::message::question::QueryFlags;
use wire::header::Flags;
use wire::{EdeCode, Rcode, Record, Type};

/// What a client said in its OPT record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestorEdns {
    /// Its UDP size, as sent.
    pub size: u16,
    /// DO.
    pub dnssec_ok: bool,
}

/// What an answer needs to know of the question.
pub struct Requestor<'a> {
    /// Message ID.
    pub id: u16,
    /// Header flags of the question.
    pub flags: Flags,
    /// The question section, octet for octet; empty when the question could not be read.
    pub question: &'a [u8],
    /// What the OPT record said, if there was one.
    pub edns: Option<RequestorEdns>,
    /// The client subnet that the answer names (RFC 7871 section 7.2.2); none without an OPT record.
    pub subnet: Option<&'a Subnet>,
    /// Its scope.
    pub scope: u8,
    /// The cookie that the answer carries (RFC 7873 section 5.2); none without an OPT record.
    pub cookie: Option<&'a Cookie>,
    /// Octets that the answer may take.
    pub limit: usize,
    /// The UDP size that we announce.
    pub own_size: u16,
}

impl Requestor<'_> {
    /// QR and RA set, RD and CD as in the question, AA clear: we are no authority.
    //= RFC 6147 section 5.4: requirement 26
    pub fn flags(&self, rcode: Rcode, secure: bool) -> Flags {
        let kept = Flags(self.flags.0 & (Flags::RD.0 | Flags::CD.0));
        let flags = kept.with(Flags::QR).with(Flags::RA).with_opcode(self.flags.opcode()).with_rcode(rcode);
        if secure { flags.with(Flags::AD) } else { flags }
    }

    /// Whether the client wants to know about AD (RFC 6840 section 5.8).
    pub fn wants_ad(&self) -> bool {
        self.flags.contains(Flags::AD) || self.edns.is_some_and(|edns| edns.dnssec_ok)
    }

    /// Whether the client has brought a cookie of ours: it is where it seems to be.
    #[inline]
    pub fn has_valid_cookie(&self) -> bool {
        self.cookie.is_some_and(Cookie::is_valid)
    }

    /// Which records of DNSSEC the client takes.
    #[inline]
    pub(crate) fn dnssec_filter(&self) -> DnssecFilter {
        let asked = self.question.last_chunk().map_or([0; 2], |&[high, low, _, _]| [high, low]);
        let asked = Type(u16::from_be_bytes(asked));
        DnssecFilter { all: asked == Type::ANY || self.edns.is_some_and(|edns| edns.dnssec_ok), asked }
    }

    pub(crate) fn opt_octets(&self, ede: Option<EdeCode>) -> usize {
        let subnet = self.subnet.map_or(0, Subnet::octets);
        let cookie = self.cookie.map_or(0, |_| Cookie::OCTETS);
        match (self.edns, ede) {
            (None, _) => 0,
            (Some(_), None) => wire::OPT_LEN + subnet + cookie,
            (Some(_), Some(_)) => wire::OPT_LEN + wire::EDE_LEN + subnet + cookie,
        }
    }

    /// Extended RCODEs need an OPT record; without one the nearest plain RCODE must do.
    pub(crate) fn without_extended_rcode(&self, rcode: Rcode) -> Rcode {
        if rcode.0 > 15 && self.edns.is_none() { Rcode::SERVFAIL } else { rcode }
    }
}

/// Which records of DNSSEC a client takes: all with DO, else only those that it asks for (RFC 4035 section 3.2.1).
/// Upstreams leave them out themselves, but not all do.
#[derive(Clone, Copy)]
pub(crate) struct DnssecFilter {
    pub(crate) all: bool,
    asked: Type,
}

impl DnssecFilter {
    #[inline]
    pub(crate) fn passes(self, record: &Record<'_>) -> bool {
        self.all
            || record.rtype == self.asked
            || !matches!(record.rtype, Type::RRSIG | Type::NSEC | Type::NSEC3)
    }
}

/// Octets that an answer may take: RFC 1035 section 4.2.1 without EDNS, RFC 6891 section 6.2.3 with it (sizes below
/// 512 are read as 512), and never more than our own bound.
#[inline]
pub fn answer_limit(transport: ClientTransport, edns: Option<RequestorEdns>, own_size: u16) -> usize {
    match (transport, edns) {
        (ClientTransport::Tcp, _) => MESSAGE,
        (ClientTransport::Udp, None) => 512,
        (ClientTransport::Udp, Some(edns)) => usize::from(edns.size.max(512).min(own_size.max(512))),
    }
}

/// Who takes everything that the bits of a question let through, in a message of any size.
pub(crate) fn unlimited_requestor(query_flags: QueryFlags, question: &[u8]) -> Requestor<'_> {
    let edns = query_flags.has(QueryFlags::DO).then_some(RequestorEdns { size: 0, dnssec_ok: true });
    Requestor {
        id: 0,
        flags: Flags(0),
        question,
        edns,
        limit: MESSAGE,
        own_size: 0,
        subnet: None,
        scope: 0,
        cookie: None,
    }
}

impl<'a> Requestor<'a> {
    /// The answer to who asks for nothing but a cookie has that, and this RCODE (RFC 7873 section 5.4).
    pub(crate) fn ask_cookie(
        &mut self,
        edns: RequestorEdns,
        cookie: &'a Cookie,
        from: &Client,
        own_size: u16,
    ) -> Rcode {
        self.cookie = Some(cookie);
        self.edns = Some(edns);
        self.limit = answer_limit(from.transport, self.edns, own_size);
        if cookie.is_invalid() { Rcode::BADCOOKIE } else { Rcode::NOERROR }
    }
}
