//! The frame of every answer: header, question and OPT record around the records that a zone puts in, cut off by TC where
//! they do not fit. What the records are is the zone's affair.

use crate::counters::Kind;
use crate::limits;
use wire::header::{self, HEADER};
use wire::{Flags, Message, OPT_LEN, Opcode, Opt, Rcode, Type};

/// Octets of a UDP answer to a client that did not say more (RFC 1035 section 4.2.1), and the least that an EDNS size
/// means (RFC 6891 section 6.2.3).
const CLASSIC_SIZE: usize = 512;

/// What was written for a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Octets of the message.
    pub length: usize,
    /// What it says.
    pub kind: Kind,
    /// The type that was asked for; `None` when the query could not be read.
    pub qtype: Option<Type>,
}

/// What a zone wrote behind the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Body {
    pub kind: Kind,
    pub rcode: Rcode,
    /// Whether the answer is from authoritative data: AA.
    pub authoritative: bool,
    /// Where the records end.
    pub end: usize,
    /// Records in the answer, authority and additional sections.
    pub counts: [u16; 3],
}

impl Body {
    /// No records.
    pub fn empty(kind: Kind, rcode: Rcode, end: usize) -> Body {
        Body { kind, rcode, authoritative: false, end, counts: [0; 3] }
    }
}

/// Whether a message must not be answered: what is shorter than a header, and responses, as a response to a response could
/// go back and forth for ever.
#[inline]
pub(crate) fn is_unanswerable(query: &[u8]) -> bool {
    query.len() < HEADER || header::flags(query).contains(Flags::QR)
}

/// Writes the answer to `query` into `out`; `None` when there must be none or `out` cannot hold one.
///
/// `size` is what the transport carries at most. With [`limits::STREAM`] that is all; with less, the answer goes over UDP,
/// and the client's EDNS size (512 octets without) is a limit too.
///
/// `body` gets the query and the message from its beginning to the end of the room for records; where they are to begin is
/// [`start`]. It returns `None` when they do not fit.
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
    // The question alone is too large only for a caller that gives less than 512 octets.
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
        // RFC 6891 section 6.1.1: an OPT record if and only if the query has one. Its size is what we take, whatever the client
        // does (section 6.2.3). The DO bit is copied (RFC 3225 section 3).
        let announced = limits::UDP_SIZE as u16;
        let extended = (body.rcode.0 >> 4) as u8;
        length += wire::write_opt(&mut out[length..], announced, extended, 0, opt.dnssec_ok(), None)?;
    }
    Some(Answer { length, kind: body.kind, qtype: Some(asked.qtype()) })
}

/// Where the records of the answer to a query begin: behind the question.
#[inline]
pub(crate) fn start(asked: &Message<'_>) -> usize {
    HEADER + asked.question().len()
}

/// What no zone is asked about.
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

/// The largest UDP message that the client takes.
#[inline]
fn client_size(opt: Option<&Opt<'_>>) -> usize {
    opt.map_or(CLASSIC_SIZE, |opt| usize::from(opt.udp_size()).max(CLASSIC_SIZE))
}

/// The header alone for what could not be read: there may be no question to echo.
#[cold]
fn refuse_unread(query: &[u8], out: &mut [u8]) -> Option<Answer> {
    let reply = out.get_mut(..HEADER)?;
    reply.copy_from_slice(&query[..HEADER]);
    let flags = reply_flags(query);
    // Messages of other opcodes may be laid out in other ways (RFC 2136): not wrong, only unknown here.
    let (kind, rcode) = match flags.opcode() {
        Opcode::QUERY => (Kind::FormatError, Rcode::FORMERR),
        _ => (Kind::NotImplemented, Rcode::NOTIMP),
    };
    header::set_flags(reply, flags.with_rcode(rcode));
    set_counts(reply, 0, 0, 0, 0);
    Some(Answer { length: HEADER, kind, qtype: None })
}

/// The flags that every answer to this query has: QR; opcode, RD (RFC 1035 section 4.1.1) and CD (RFC 4035 section
/// 3.1.6) copied.
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
