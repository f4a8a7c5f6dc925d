//! Frame of every answer: header, question and OPT record around the zone's records, with TC if they do not fit. The
//! zone decides which records it writes.

use crate::counters::Kind;
use crate::limits;
use wire::header::{self, HEADER};
use wire::{Flags, Message, OPT_LEN, Opcode, Opt, Rcode, Type};

/// Octets of a UDP answer to a client without EDNS (RFC 1035 section 4.2.1), and the smallest meaningful EDNS size
/// (RFC 6891 section 6.2.3).
const CLASSIC_SIZE: usize = 512;

/// Result of answering a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Octets of the message.
    pub length: usize,
    /// Result by kind.
    pub kind: Kind,
    /// The query type; `None` if the query could not be parsed.
    pub qtype: Option<Type>,
}

/// The part of an answer that a zone wrote after the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body {
    /// Result by kind.
    pub kind: Kind,
    /// Response code.
    pub rcode: Rcode,
    /// True if the data is authoritative: sets AA.
    pub authoritative: bool,
    /// Offset of the end of the records.
    pub end: usize,
    /// Number of records in the answer, authority and additional sections.
    pub counts: [u16; 3],
}

impl Body {
    /// A body without records.
    pub fn empty(kind: Kind, rcode: Rcode, end: usize) -> Body {
        Body { kind, rcode, authoritative: false, end, counts: [0; 3] }
    }
}

/// True if a message must not be answered: it is shorter than a header, or a response, because two servers could
/// otherwise answer each other for ever.
#[inline]
pub(crate) fn is_unanswerable(query: &[u8]) -> bool {
    query.len() < HEADER || header::flags(query).contains(Flags::QR)
}

/// Writes the answer to `query` into `out`. Returns `None` if the message must not be answered or `out` cannot hold
/// an answer.
///
/// `size` is the transport's largest message. [`limits::STREAM`] is the only limit of TCP; a smaller value means UDP,
/// where the client's EDNS size (512 octets without EDNS) is a limit too.
///
/// `body` gets the query and the message from its beginning to the end of the room for records; [`start`] is the
/// offset of the first record. It returns `None` if the records do not fit.
#[inline]
pub(crate) fn respond(
    query: &[u8],
    size: usize,
    out: &mut [u8],
    body: impl FnOnce(&Message<'_>, &mut [u8]) -> Option<Body>,
) -> Option<Answer> {
    if is_unanswerable(query) {
        return None;
    }
    let Ok(asked) = Message::parse(query) else {
        return refuse_unread(query, out);
    };
    let opt = asked.opt();
    let size = if size < limits::STREAM { size.min(client_size(opt.as_ref())) } else { size };
    let tail = if opt.is_some() { OPT_LEN } else { 0 };
    let room = size.min(out.len()).checked_sub(tail)?;
    let start = start(&asked);
    // The question alone is too large only if the caller gives less than 512 octets.
    let message = out.get_mut(..room).filter(|_| start <= room)?;
    message[..start].copy_from_slice(&query[..start]);

    let truncated = || Body { authoritative: true, ..Body::empty(Kind::Truncated, Rcode::NOERROR, start) };
    let body = refused_by_frame(&asked).or_else(|| body(&asked, message)).unwrap_or_else(truncated);
    let mut flags = reply_flags(query).with_rcode(body.rcode);
    if body.authoritative {
        flags = flags.with(Flags::AA);
    }
    if matches!(body.kind, Kind::Truncated | Kind::FaultTruncated) {
        flags = flags.with(Flags::TC);
    }
    header::set_flags(message, flags);
    let [answers, authorities, additionals] = body.counts;
    set_counts(message, 1, answers, authorities, additionals + u16::from(opt.is_some()));
    let mut length = body.end;
    if let Some(opt) = opt {
        // RFC 6891 section 6.1.1: the answer has an OPT record if and only if the query has one. Its size is what
        // this server accepts, independent of the client (section 6.2.3). The DO bit is copied (RFC 3225 section 3).
        let announced = limits::UDP_SIZE as u16;
        let extended = (body.rcode.0 >> 4) as u8;
        length += wire::write_opt(&mut out[length..], announced, extended, 0, opt.dnssec_ok(), None)?;
    }
    Some(Answer { length, kind: body.kind, qtype: Some(asked.qtype()) })
}

/// The answer of a server without EDNS to a query with an OPT record: FORMERR, without an OPT record (RFC 6891 section 7). `None` for
/// all other messages.
pub(crate) fn refuse_opt(query: &[u8], out: &mut [u8]) -> Option<Answer> {
    if is_unanswerable(query) {
        return None;
    }
    let asked = Message::parse(query).ok().filter(|asked| asked.opt().is_some())?;
    let length = start(&asked);
    let reply = out.get_mut(..length)?;
    reply.copy_from_slice(&query[..length]);
    header::set_flags(reply, reply_flags(query).with_rcode(Rcode::FORMERR));
    set_counts(reply, 1, 0, 0, 0);
    Some(Answer { length, kind: Kind::FaultFormerr, qtype: Some(asked.qtype()) })
}

/// Offset of the first record of the answer to a query: after the question.
#[inline]
pub(crate) fn start(asked: &Message<'_>) -> usize {
    HEADER + asked.question().len()
}

/// Errors that do not depend on the zone.
#[inline]
fn refused_by_frame(asked: &Message<'_>) -> Option<Body> {
    if asked.opcode() != Opcode::QUERY {
        return Some(Body::empty(Kind::NotImplemented, Rcode::NOTIMP, start(asked)));
    }
    // RFC 6891 section 6.1.3.
    if asked.opt().is_some_and(|opt| opt.version() != 0) {
        return Some(Body::empty(Kind::BadVersion, Rcode::BADVERS, start(asked)));
    }
    None
}

/// The largest UDP message that the client accepts.
#[inline]
fn client_size(opt: Option<&Opt<'_>>) -> usize {
    opt.map_or(CLASSIC_SIZE, |opt| usize::from(opt.udp_size()).max(CLASSIC_SIZE))
}

/// Answers a query that could not be parsed with the header alone: there may be no question to copy.
#[cold]
fn refuse_unread(query: &[u8], out: &mut [u8]) -> Option<Answer> {
    let reply = out.get_mut(..HEADER)?;
    reply.copy_from_slice(&query[..HEADER]);
    let flags = reply_flags(query);
    // Messages of other opcodes may have another layout (RFC 2136): they are unknown here, not malformed.
    let (kind, rcode) = match flags.opcode() {
        Opcode::QUERY => (Kind::FormatError, Rcode::FORMERR),
        _ => (Kind::NotImplemented, Rcode::NOTIMP),
    };
    header::set_flags(reply, flags.with_rcode(rcode));
    set_counts(reply, 0, 0, 0, 0);
    Some(Answer { length: HEADER, kind, qtype: None })
}

/// The flags of every answer to this query: QR is set; opcode, RD (RFC 1035 section 4.1.1) and CD (RFC 4035 section
/// 3.1.6) are copied.
#[inline]
fn reply_flags(query: &[u8]) -> Flags {
    let asked = header::flags(query);
    let mut flags = Flags::QR.with_opcode(asked.opcode());
    for copied in [Flags::RD, Flags::CD] {
        if asked.contains(copied) {
            flags = flags.with(copied);
        }
    }
    flags
}

#[inline]
fn set_counts(message: &mut [u8], questions: u16, answers: u16, authorities: u16, additionals: u16) {
    header::set_qdcount(message, questions);
    header::set_ancount(message, answers);
    header::set_nscount(message, authorities);
    header::set_arcount(message, additionals);
}

/// A compression pointer, for offsets below 2^14.
#[inline]
pub(crate) fn pointer(offset: u16) -> [u8; 2] {
    (0xc000 | offset).to_be_bytes()
}
