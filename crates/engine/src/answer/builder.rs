//! Answers to clients: passed on, synthesized, or without content. Sections and flags as RFC 6147 section 5.4 says.

use crate::answer::requestor::{DnssecFilter, Requestor};
use crate::message::cname_chain::{Chain, leads_on};
use crate::message::reply::is_of_transaction;
use wire::header::{self, Flags};
use wire::{Builder, Class, EdeCode, Full, Mark, Message, Rcode, Record, Section, Type};

/// What was written.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// Octets.
    pub len: usize,
    /// RCODE.
    pub rcode: Rcode,
    /// Records are missing for lack of room, and TC says so.
    pub truncated: bool,
    /// The extended error that the client was told.
    pub ede: Option<EdeCode>,
}

/// An answer without records.
pub fn write_empty(
    frame: &mut [u8],
    requestor: &Requestor<'_>,
    rcode: Rcode,
    ede: Option<EdeCode>,
) -> Written {
    let rcode = requestor.without_extended_rcode(rcode);
    frame[..12].fill(0);
    header::set_id(frame, requestor.id);
    header::set_flags(frame, requestor.flags(rcode, false));
    let mut len = 12 + requestor.question.len();
    frame[12..len].copy_from_slice(requestor.question);
    header::set_qdcount(frame, u16::from(!requestor.question.is_empty()));
    len += append_opt(&mut frame[len..], requestor, rcode, ede);
    header::set_arcount(frame, u16::from(requestor.edns.is_some()));
    Written { len, rcode, truncated: false, ede: requestor.edns.and(ede) }
}

/// An empty answer with TC: the client is to ask again over TCP. It has no records, so it is no longer than the question,
/// but for the OPT record.
pub fn write_truncated(frame: &mut [u8], requestor: &Requestor<'_>) -> Written {
    let written = write_empty(frame, requestor, Rcode::NOERROR, None);
    header::set_flags(frame, header::flags(frame).with(Flags::TC));
    Written { truncated: true, ..written }
}

/// Writes our OPT record, if the question had one. Returns its octets.
//= RFC 6891 section 7: requirement 52
pub(crate) fn append_opt(
    room: &mut [u8],
    requestor: &Requestor<'_>,
    rcode: Rcode,
    ede: Option<EdeCode>,
) -> usize {
    let Some(edns) = requestor.edns else { return 0 };
    let octets = wire::write_opt(room, requestor.own_size, (rcode.0 >> 4) as u8, 0, edns.dnssec_ok, ede)
        .expect("a frame has room for a question and an OPT record");
    let octets = requestor.subnet.map_or(octets, |subnet| subnet.append(requestor.scope, room, octets));
    requestor.cookie.map_or(octets, |cookie| cookie.append(room, octets))
}

/// An answer while it is written: what does not fit is cut by whole RRsets (RFC 2181 section 9), TC says so for all
/// but the additional section.
pub struct ResponseBuilder<'b, 'm> {
    builder: Builder<'b>,
    dnssec_filter: DnssecFilter,
    flags: Flags,
    mark: Mark,
    /// Owner, type and signature's type of the RRset that is being written.
    rrset: Option<(Section, wire::Name<'m>, Type, Option<Type>)>,
    full: bool,
    truncated: bool,
}

impl<'b, 'm> ResponseBuilder<'b, 'm> {
    /// An answer with nothing but the question, and room kept for an OPT record if the client gets one.
    pub fn start(
        frame: &'b mut [u8],
        requestor: &Requestor<'_>,
        flags: Flags,
        ede: Option<EdeCode>,
    ) -> ResponseBuilder<'b, 'm> {
        let limit = requestor.limit.min(frame.len());
        let mut builder = Builder::new(frame, limit, requestor.id, flags, requestor.question)
            .expect("a frame has room for a question and an OPT record");
        builder.reserve(requestor.opt_octets(ede));
        let mark = builder.mark();
        ResponseBuilder {
            builder,
            dnssec_filter: requestor.dnssec_filter(),
            flags,
            mark,
            rrset: None,
            full: false,
            truncated: false,
        }
    }

    /// The aliases that led to the name of the last reply.
    pub fn lead(&mut self, before: &'m [Vec<u8>]) {
        for bytes in before {
            let message = Message::parse(bytes).expect("it was parsed before it was kept");
            let chain = Chain::follow(&message);
            for record in message.records(Section::Answer) {
                if leads_on(&record) && chain.keeps(&record) {
                    self.copy(Section::Answer, &record);
                }
            }
        }
    }

    /// Authority and additional of the final reply, unchanged; OPT is hop by hop, and so are transaction signatures.
    //= RFC 6147 section 5.3.2: requirement 24
    //= RFC 6147 section 5.4: requirement 26
    pub(crate) fn copy_rest(&mut self, message: &Message<'m>) {
        for section in [Section::Authority, Section::Additional] {
            for record in message.records(section) {
                if record.rtype != Type::OPT && !is_of_transaction(&record) {
                    self.copy(section, &record);
                }
            }
        }
    }

    pub(crate) fn copy(&mut self, section: Section, record: &Record<'m>) {
        if !self.dnssec_filter.passes(record) {
            return;
        }
        let covered = record.covered();
        let same = self.rrset.as_ref().is_some_and(|&(at, ref owner, rtype, signed)| {
            (at, rtype, signed) == (section, record.rtype, covered) && owner.eq_ignore_case(&record.owner)
        });
        if !same {
            self.begin_rrset();
            self.rrset = Some((section, record.owner, record.rtype, covered));
        }
        if !self.full {
            let outcome = self.builder.copy(section, record);
            self.record_outcome(section, outcome);
        }
    }

    pub(crate) fn aaaa(&mut self, owner: wire::Name<'_>, ttl: u32, address: [u8; 16]) {
        if !self.full {
            let outcome = self.builder.aaaa(Section::Answer, owner, ttl, address);
            self.record_outcome(Section::Answer, outcome);
        }
    }

    /// Adds a record of ours in class IN to the RRset begun last; its RDATA is not compressed.
    pub fn record(&mut self, section: Section, owner: wire::Name<'_>, rtype: Type, ttl: u32, rdata: &[u8]) {
        if !self.full {
            let outcome = self.builder.record(section, owner, rtype, Class::IN, ttl, rdata);
            self.record_outcome(section, outcome);
        }
    }

    /// What follows is another RRset than what was written so far.
    #[inline]
    pub fn begin_rrset(&mut self) {
        self.mark = self.builder.mark();
        self.rrset = None;
    }

    fn record_outcome(&mut self, section: Section, outcome: Result<(), Full>) {
        if outcome.is_err() {
            self.builder.rollback(self.mark);
            self.full = true;
            self.truncated = section != Section::Additional;
        }
    }

    /// Ends the answer.
    pub fn finish(&mut self, requestor: &Requestor<'_>, rcode: Rcode, ede: Option<EdeCode>) -> Written {
        //= RFC 6147 section 5.4: requirement 26
        if self.truncated {
            self.builder.set_flags(self.flags.with(Flags::TC));
        }
        if let Some(edns) = requestor.edns {
            let written = self.builder.opt(requestor.own_size, (rcode.0 >> 4) as u8, 0, edns.dnssec_ok, ede);
            debug_assert!(written.is_ok(), "room was reserved");
            if let Some(subnet) = requestor.subnet {
                subnet.append_to(&mut self.builder, requestor.scope);
            }
            if let Some(cookie) = requestor.cookie {
                let written = self.builder.option(wire::COOKIE, cookie.data());
                debug_assert!(written.is_ok(), "room was reserved");
            }
        }
        let ede = requestor.edns.and(ede);
        Written { len: self.builder.finish(), rcode, truncated: self.truncated, ede }
    }
}
