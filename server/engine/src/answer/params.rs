//! Parameters of a response (RFC 6891 section 6.2: the requestor's): the properties of the query that determine header, OPT record and size limit of
//! the response.

use crate::interface::{Client, ClientTransport};
use crate::limits::MESSAGE;
use crate::message::client_subnet::Subnet;
use crate::message::cookie::Cookie;
use crate::message::question::QueryFlags;
use crate::message::stream_options::StreamOptions;
use wire::header::Flags;
use wire::{EdeCode, Opt, Rcode, Record, Type};

/// Content of the OPT record of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseParamsEdns {
    /// UDP payload size, as sent.
    pub size: u16,
    /// DO bit.
    pub dnssec_ok: bool,
    /// Options for the response that are appended to it last.
    pub stream_options: StreamOptions,
}

impl ResponseParamsEdns {
    /// Content of the OPT record of a query that came over a transport; `tells_identity`: the server has an identity to tell.
    #[inline]
    pub(crate) fn of_query(
        opt: &Opt<'_>,
        transport: ClientTransport,
        tells_identity: bool,
    ) -> ResponseParamsEdns {
        let stream_options = if transport.is_datagram() && !tells_identity {
            StreamOptions::NONE
        } else {
            stream_options(opt, transport, tells_identity)
        };
        ResponseParamsEdns { size: opt.udp_size(), dnssec_ok: opt.dnssec_ok(), stream_options }
    }

    /// Content of the OPT record of a query without DO and with these options alone, but for its size.
    pub(crate) fn of_stream_options(asked: StreamOptions, transport: ClientTransport) -> ResponseParamsEdns {
        ResponseParamsEdns { size: 0, dnssec_ok: false, stream_options: of_transport(asked, transport) }
    }
}

/// The options that a query asked for and gets.
#[cold]
fn stream_options(opt: &Opt<'_>, transport: ClientTransport, tells_identity: bool) -> StreamOptions {
    let asked = StreamOptions::of_query(opt);
    let identity = if tells_identity { asked.and(StreamOptions::NSID) } else { StreamOptions::NONE };
    of_transport(asked, transport).or(identity)
}

/// Those of the stream options that a query asked for that its transport has. The idle timeout is that of a connection of DNS: HTTPS
/// leaves connections to HTTP, and over QUIC the keepalive option is an error (RFC 9250 section 5.5.2). Without encryption padding hides
/// nothing. Over QUIC every response with an OPT record is padded.
//= RFC 7828 section 3.3.1: requirement 65
//= RFC 7830 section 6: requirement 68
//= RFC 9250 section 5.4: requirement 90
//= RFC 9250 section 5.5.2: requirement 95
fn of_transport(asked: StreamOptions, transport: ClientTransport) -> StreamOptions {
    match transport {
        ClientTransport::Udp => StreamOptions::NONE,
        ClientTransport::Tcp => asked.and(StreamOptions::KEEPALIVE),
        ClientTransport::Tls => asked,
        ClientTransport::Https => asked.and(StreamOptions::PADDING),
        ClientTransport::Quic => StreamOptions::PADDING,
    }
}

/// Properties of a query that determine the response.
pub struct ResponseParams<'a> {
    /// Message ID.
    pub id: u16,
    /// Header flags of the query.
    pub flags: Flags,
    /// Question section, octet for octet; empty if it is malformed.
    pub question: &'a [u8],
    /// Content of the OPT record, if there is one.
    pub edns: Option<ResponseParamsEdns>,
    /// Client subnet for the response (RFC 7871 section 7.2.2); `None` without an OPT record.
    pub subnet: Option<&'a Subnet>,
    /// Scope prefix length of the client subnet.
    pub scope: u8,
    /// Cookie for the response (RFC 7873 section 5.2); `None` without an OPT record.
    pub cookie: Option<&'a Cookie>,
    /// Largest size of the response in octets.
    pub limit: usize,
    /// UDP payload size that the server advertises.
    pub own_size: u16,
}

impl ResponseParams<'_> {
    /// Header flags of the response: QR and RA set, RD and CD as in the query, AA clear, because this server is not authoritative.
    //= RFC 6147 section 5.4: requirement 26
    pub fn flags(&self, rcode: Rcode, secure: bool) -> Flags {
        let copied = Flags(self.flags.0 & (Flags::RD.0 | Flags::CD.0));
        let flags = copied.with(Flags::QR).with(Flags::RA).with_opcode(self.flags.opcode()).with_rcode(rcode);
        if secure { flags.with(Flags::AD) } else { flags }
    }

    /// True if the client understands the AD bit in a response (RFC 6840 section 5.8).
    pub fn wants_ad(&self) -> bool {
        self.flags.contains(Flags::AD) || self.edns.is_some_and(|edns| edns.dnssec_ok)
    }

    /// True if the query had a valid server cookie, so that its source address is not forged.
    #[inline]
    pub fn has_valid_cookie(&self) -> bool {
        self.cookie.is_some_and(Cookie::is_valid)
    }

    /// Filter for the DNSSEC records in the response.
    #[inline]
    pub(crate) fn dnssec_filter(&self) -> DnssecFilter {
        let qtype = self.question.last_chunk().map_or([0; 2], |&[high, low, _, _]| [high, low]);
        let qtype = Type(u16::from_be_bytes(qtype));
        DnssecFilter { all: qtype == Type::ANY || self.edns.is_some_and(|edns| edns.dnssec_ok), qtype }
    }

    /// Octets of the OPT record of the response, with or without an EDE code.
    pub(crate) fn opt_octets(&self, ede: Option<EdeCode>) -> usize {
        let subnet = self.subnet.map_or(0, Subnet::octets);
        let cookie = self.cookie.map_or(0, |_| Cookie::OCTETS);
        match (self.edns, ede) {
            (None, _) => 0,
            (Some(_), None) => wire::OPT_LEN + subnet + cookie,
            (Some(_), Some(_)) => wire::OPT_LEN + wire::EDE_LEN + subnet + cookie,
        }
    }

    /// RCODE in a form that this requestor can receive. An extended RCODE (above 15) needs an OPT record; without one it becomes
    /// SERVFAIL.
    pub(crate) fn without_extended_rcode(&self, rcode: Rcode) -> Rcode {
        if rcode.0 > 15 && self.edns.is_none() { Rcode::SERVFAIL } else { rcode }
    }
}

/// Filter for DNSSEC records: with DO all pass, otherwise only those of the query type (RFC 4035 section 3.2.1). Most upstreams
/// leave out the others themselves, but not all.
#[derive(Clone, Copy)]
pub(crate) struct DnssecFilter {
    /// True if all records pass.
    pub(crate) all: bool,
    qtype: Type,
}

impl DnssecFilter {
    /// True if a record may be in the response.
    #[inline]
    pub(crate) fn passes(self, record: &Record<'_>) -> bool {
        self.all
            || record.rtype == self.qtype
            || !matches!(record.rtype, Type::RRSIG | Type::NSEC | Type::NSEC3)
    }
}

/// Largest size of a response in octets: RFC 1035 section 4.2.1 without EDNS, RFC 6891 section 6.2.3 with it (sizes below 512 mean
/// 512), and never more than the server's own UDP size.
//= RFC 8484 section 6: requirement 86
#[inline]
pub fn answer_limit(transport: ClientTransport, edns: Option<ResponseParamsEdns>, own_size: u16) -> usize {
    match (transport, edns) {
        (ClientTransport::Udp, None) => 512,
        (ClientTransport::Udp, Some(edns)) => usize::from(edns.size.max(512).min(own_size.max(512))),
        _ => MESSAGE,
    }
}

/// Requestor without a size limit, used to render a response for the cache. `query_flags` decides about DNSSEC records.
pub(crate) fn unlimited_params(query_flags: QueryFlags, question: &[u8]) -> ResponseParams<'_> {
    let edns = query_flags.has(QueryFlags::DO).then_some(ResponseParamsEdns {
        size: 0,
        dnssec_ok: true,
        stream_options: StreamOptions::NONE,
    });
    ResponseParams {
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

impl<'a> ResponseParams<'a> {
    /// Prepares the response to a query for a cookie alone, and returns its RCODE (RFC 7873 section 5.4).
    pub(crate) fn ask_cookie(
        &mut self,
        edns: ResponseParamsEdns,
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
