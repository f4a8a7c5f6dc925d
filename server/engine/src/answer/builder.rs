//! Response builder: writes records, truncates by whole RRsets, and appends the OPT record. Sections and flags follow RFC 6147
//! section 5.4. Responses without records have writers of their own.

use crate::answer::params::{DnssecFilter, ResponseParams};
use crate::limits::EXTRA_TEXT;
use crate::message::cname_chain::{Chain, leads_on};
use crate::message::reply::is_of_transaction;
use wire::header::{self, Flags};
use wire::{Builder, Class, EdeCode, Full, Mark, Message, Rcode, Record, Section, Type};

/// Result of writing a response.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// Octets of the response.
    pub len: usize,
    /// RCODE of the response.
    pub rcode: Rcode,
    /// True if records are missing for lack of room, so that TC is set.
    pub truncated: bool,
    /// EDE code in the response; `None` also if the response has no OPT record.
    pub ede: Option<EdeCode>,
    /// Octets of the text of that extended error.
    pub ede_text: usize,
}

impl Written {
    /// Octets of the OPT record, which is the last record. `params`: those of the response.
    #[inline]
    pub(crate) fn opt_octets(&self, params: &ResponseParams<'_>) -> usize {
        params.opt_octets(self.ede) + self.ede_text
    }
}

/// Writes a response without records.
pub fn write_empty(
    frame: &mut [u8],
    params: &ResponseParams<'_>,
    rcode: Rcode,
    ede: Option<EdeCode>,
) -> Written {
    let rcode = params.without_extended_rcode(rcode);
    frame[..12].fill(0);
    header::set_id(frame, params.id);
    header::set_flags(frame, params.flags(rcode, false));
    let mut len = 12 + params.question.len();
    frame[12..len].copy_from_slice(params.question);
    header::set_qdcount(frame, u16::from(!params.question.is_empty()));
    len += append_opt(&mut frame[len..], params, rcode, ede);
    header::set_arcount(frame, u16::from(params.edns.is_some()));
    Written { len, rcode, truncated: false, ede: params.edns.and(ede), ede_text: 0 }
}

/// Writes SERVFAIL with an extended error, whose text has at most [`EXTRA_TEXT`] octets.
#[cold]
pub fn write_failure(frame: &mut [u8], params: &ResponseParams<'_>, ede: EdeCode, text: &str) -> Written {
    let written = write_empty(frame, params, Rcode::SERVFAIL, None);
    if params.edns.is_none() {
        return written;
    }
    let text = &text.as_bytes()[..text.len().min(EXTRA_TEXT)];
    let start = 12 + params.question.len();
    let octets = wire::add_ede(&mut frame[start..], written.len - start, ede, text)
        .expect("a frame has room for a question and an OPT record");
    Written { len: start + octets, ede: Some(ede), ede_text: text.len(), ..written }
}

/// Adds an extended error with a text to a complete response that has none, if it has an OPT record and the requestor takes that much.
/// The OPT record is the last one.
#[cold]
pub(crate) fn append_text(
    frame: &mut [u8],
    params: &ResponseParams<'_>,
    written: Written,
    (code, text): (EdeCode, &str),
) -> Written {
    let octets = written.opt_octets(params);
    let room = params.limit.min(frame.len());
    let Some(start) = written.len.checked_sub(octets).filter(|_| params.edns.is_some()) else {
        return written;
    };
    match wire::add_ede(&mut frame[start..room], octets, code, text.as_bytes()) {
        Some(octets) => Written { len: start + octets, ede: Some(code), ede_text: text.len(), ..written },
        None => written,
    }
}

/// Writes an empty response with TC, so that the client asks again over TCP. It has no records, so apart from the OPT record it is
/// no longer than the query.
pub fn write_truncated(frame: &mut [u8], params: &ResponseParams<'_>) -> Written {
    write_unfit(frame, params, Rcode::NOERROR, None)
}

/// Writes the response that stands for one that does not fit: empty, with TC. A client should not use the records of such a response
/// but ask over TCP (RFC 2181 section 9), so that none are written.
pub(crate) fn write_unfit(
    frame: &mut [u8],
    params: &ResponseParams<'_>,
    rcode: Rcode,
    ede: Option<EdeCode>,
) -> Written {
    let written = write_empty(frame, params, rcode, ede);
    header::set_flags(frame, header::flags(frame).with(Flags::TC));
    Written { truncated: true, ..written }
}

/// Writes the OPT record of a response, if the query had one. Returns its octets.
//= RFC 6891 section 7: requirement 52
pub(crate) fn append_opt(
    room: &mut [u8],
    params: &ResponseParams<'_>,
    rcode: Rcode,
    ede: Option<EdeCode>,
) -> usize {
    let Some(edns) = params.edns else { return 0 };
    // A response without records has at most 12 (header) + 259 (question) + 11 (OPT) + 6 (extended error) + 24 (client subnet) +
    // 28 (cookie) = 340 octets; `answer_limit` is 512 at least. `forward` compares the sum with the limit before it calls this.
    let octets = wire::write_opt(room, params.own_size, (rcode.0 >> 4) as u8, 0, edns.dnssec_ok, ede)
        .expect("a frame has room for a question and an OPT record");
    let octets = params.subnet.map_or(octets, |subnet| subnet.append(params.scope, room, octets));
    params.cookie.map_or(octets, |cookie| cookie.append(room, octets))
}

/// Response under construction. If an RRset of the answer or authority section does not fit, the response has TC and no records. From
/// the first RRset of the additional section that does not fit, all are left out, each as a whole (RFC 2181 section 9).
pub struct ResponseBuilder<'b, 'm> {
    builder: Builder<'b>,
    dnssec_filter: DnssecFilter,
    flags: Flags,
    /// End of the question.
    start: Mark,
    /// Start of the current RRset.
    mark: Mark,
    /// Section, owner, type and type covered (of signatures) of the current RRset.
    rrset: Option<(Section, wire::Name<'m>, Type, Option<Type>)>,
    /// True after the first RRset that did not fit.
    full: bool,
    truncated: bool,
    /// True if an earlier reply of a chase could not be read.
    failed: bool,
}

impl<'b, 'm> ResponseBuilder<'b, 'm> {
    /// Begins a response with the question, and reserves room for an OPT record if the client gets one.
    pub fn start(
        frame: &'b mut [u8],
        params: &ResponseParams<'_>,
        flags: Flags,
        ede: Option<EdeCode>,
    ) -> ResponseBuilder<'b, 'm> {
        let limit = params.limit.min(frame.len());
        // 340 octets of at least 512, as in `append_opt`.
        let mut builder = Builder::new(frame, limit, params.id, flags, params.question)
            .expect("a frame has room for a question and an OPT record");
        builder.reserve(params.opt_octets(ede));
        let mark = builder.mark();
        ResponseBuilder {
            builder,
            dnssec_filter: params.dnssec_filter(),
            flags,
            start: mark,
            mark,
            rrset: None,
            full: false,
            truncated: false,
            failed: false,
        }
    }

    /// Copies the aliases from the earlier replies of a CNAME chase, whose last name the final reply is about.
    pub fn lead(&mut self, before: &'m [Vec<u8>]) {
        for bytes in before {
            // Replies of a chase: see `Clients::follow_alias`.
            let Ok(message) = Message::parse(bytes) else { return self.fail() };
            let chain = Chain::follow(&message);
            for record in message.records(Section::Answer) {
                if leads_on(&record) && chain.keeps(&record) {
                    self.copy(Section::Answer, &record);
                }
            }
        }
    }

    /// Makes the response SERVFAIL without records.
    #[cold]
    fn fail(&mut self) {
        self.builder.rollback(self.start);
        (self.full, self.failed) = (true, true);
    }

    /// Copies the authority and additional sections of the final reply unchanged, without the OPT record and transaction
    /// signatures, which are hop by hop.
    //= RFC 6147 section 5.3.2: requirement 24
    //= RFC 6147 section 5.4: requirement 26
    pub(crate) fn copy_rest(&mut self, message: &Message<'m>) {
        for section in [Section::Authority, Section::Additional] {
            for record in message.records(section) {
                if self.full {
                    return;
                }
                if record.rtype != Type::OPT && !is_of_transaction(&record) {
                    self.copy(section, &record);
                }
            }
        }
    }

    /// True if a record did not fit, so that no other one is written.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Copies a record, unless the DNSSEC filter drops it. A new RRset begins with each other section, owner, type or type covered.
    pub(crate) fn copy(&mut self, section: Section, record: &Record<'m>) {
        if self.full || !self.dnssec_filter.passes(record) {
            return;
        }
        let covered = record.covered();
        let is_same_rrset = self.rrset.as_ref().is_some_and(|&(at, ref owner, rtype, signed)| {
            (at, rtype, signed) == (section, record.rtype, covered) && owner.eq_ignore_case(&record.owner)
        });
        if !is_same_rrset {
            self.begin_rrset();
            self.rrset = Some((section, record.owner, record.rtype, covered));
        }
        let outcome = self.builder.copy(section, record);
        self.record_outcome(section, outcome);
    }

    /// Adds an AAAA record to the current RRset.
    pub(crate) fn aaaa(&mut self, owner: wire::Name<'_>, ttl: u32, address: [u8; 16]) {
        if !self.full {
            let outcome = self.builder.aaaa(Section::Answer, owner, ttl, address);
            self.record_outcome(Section::Answer, outcome);
        }
    }

    /// Adds a local record in class IN to the current RRset. Names in its RDATA must be uncompressed.
    pub fn record(&mut self, section: Section, owner: wire::Name<'_>, rtype: Type, ttl: u32, rdata: &[u8]) {
        if !self.full {
            let outcome = self.builder.record(section, owner, rtype, Class::IN, ttl, rdata);
            self.record_outcome(section, outcome);
        }
    }

    /// Adds a TXT record in class CH, which is not cached (RFC 4892 section 2.2).
    pub(crate) fn chaos_text(&mut self, owner: wire::Name<'_>, rdata: &[u8]) {
        let outcome = self.builder.record(Section::Answer, owner, Type::TXT, Class::CH, 0, rdata);
        self.record_outcome(Section::Answer, outcome);
    }

    /// Begins a new RRset.
    #[inline]
    pub fn begin_rrset(&mut self) {
        self.mark = self.builder.mark();
        self.rrset = None;
    }

    /// Removes the current RRset if its last record did not fit; if it is necessary, all of the records.
    fn record_outcome(&mut self, section: Section, outcome: Result<(), Full>) {
        if outcome.is_err() {
            self.full = true;
            self.truncated = section != Section::Additional;
            self.builder.rollback(if self.truncated { self.start } else { self.mark });
        }
    }

    /// Ends the response: sets TC if needed, and appends the OPT record.
    pub fn finish(&mut self, params: &ResponseParams<'_>, rcode: Rcode, ede: Option<EdeCode>) -> Written {
        let rcode = if self.failed { Rcode::SERVFAIL } else { rcode };
        if self.failed {
            self.builder.set_flags(self.flags.without(Flags::AD).with_rcode(rcode));
        }
        //= RFC 6147 section 5.4: requirement 26
        if self.truncated {
            self.builder.set_flags(self.flags.without(Flags::AD).with(Flags::TC));
        }
        if let Some(edns) = params.edns {
            let written = self.builder.opt(params.own_size, (rcode.0 >> 4) as u8, 0, edns.dnssec_ok, ede);
            debug_assert!(written.is_ok(), "room was reserved");
            if let Some(subnet) = params.subnet {
                subnet.append_to(&mut self.builder, params.scope);
            }
            if let Some(cookie) = params.cookie {
                let written = self.builder.option(wire::COOKIE, cookie.data());
                debug_assert!(written.is_ok(), "room was reserved");
            }
        }
        let ede = params.edns.and(ede);
        Written { len: self.builder.finish(), rcode, truncated: self.truncated, ede, ede_text: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::params::unlimited_params;
    use crate::message::question::QueryFlags;

    #[test]
    fn an_earlier_reply_that_cannot_be_read_makes_the_answer_servfail() {
        let params = unlimited_params(QueryFlags::default(), b"\x01a\0\0\x01\0\x01");
        let mut frame = vec![0; 512];
        let flags = params.flags(Rcode::NOERROR, true);
        let mut response = ResponseBuilder::start(&mut frame, &params, flags, None);
        // Its question ends after the name.
        let before = [b"\0\0\x80\0\0\x01\0\0\0\0\0\0\x01a\0".to_vec()];
        response.lead(&before);
        let owner = wire::Name::from_wire(b"\x01a\0").unwrap();
        response.record(Section::Answer, owner, Type::A, 1, &[192, 0, 2, 1]);
        let written = response.finish(&params, Rcode::NOERROR, None);
        let answer = Message::parse(&frame[..written.len]).unwrap();
        assert_eq!(
            (written.rcode, answer.rcode(), answer.count(Section::Answer)),
            (Rcode::SERVFAIL, Rcode::SERVFAIL, 0)
        );
        assert!(!answer.flags().contains(Flags::AD) && !written.truncated);
    }
}
