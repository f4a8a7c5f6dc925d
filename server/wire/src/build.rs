//! Message builder that writes into a caller's buffer, with name compression (RFC 1035 section 4.1.4).
//!
//! Sections are written in order. A record that does not fit is removed as a whole, so that truncation happens
//! between records, and with [`Builder::mark`] between RRsets (RFC 2181 section 9).
//!
//! Compression tries the cheap cases first: a name equal to the question's, then the owner or target written last.
//! All other names go through a small table of labels and the suffixes that follow them. A name costs time linear in
//! its octets, whatever the table holds. Names in RDATA are compressed only in the types of RFC 1035 (RFC 3597
//! section 4).

use crate::edns::{EdeCode, add_option, write_opt};
use crate::header::{self, Flags, HEADER};
use crate::limits::{MAX_MESSAGE, MAX_NAME, POINTER_REACH};
use crate::message::Section;
use crate::name::{Name, name_len};
use crate::rdata::{RdataLayout, layout};
use crate::record::Record;
use crate::suffixes::SuffixTable;
use crate::types::{Class, Type};

/// No room is left within the limit; nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Message under construction.
pub struct Builder<'b> {
    buf: &'b mut [u8],
    /// Position of the next octet.
    at: usize,
    /// Largest size of the message.
    limit: usize,
    reserved: usize,
    /// Length of the question's name, which begins after the header.
    qname: usize,
    counts: [u16; 3],
    /// Start of the OPT record.
    opt: Option<usize>,
    owner: Hint,
    target: Hint,
    suffixes: SuffixTable,
}

/// Position of a name in its source message and in the new message; `written` is 0 for none. It is only a hint: the
/// source may have been another message, so the names are compared.
#[derive(Clone, Copy)]
struct Hint {
    source: usize,
    written: usize,
}

impl Hint {
    const NONE: Hint = Hint { source: 0, written: 0 };
}

/// Point to return to with [`Builder::rollback`].
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    at: usize,
    counts: [u16; 3],
}

impl<'b> Builder<'b> {
    /// Begins a message with its header and a copy of one question: a name in wire form, type and class. The message
    /// takes at most `limit` octets of `buf`. Returns `None` if the question does not fit, or if `question` is not a
    /// question.
    #[inline]
    pub fn new(
        buf: &'b mut [u8],
        limit: usize,
        id: u16,
        flags: Flags,
        question: &[u8],
    ) -> Option<Builder<'b>> {
        let qname = name_len(question).filter(|qname| qname + 4 == question.len())?;
        let limit = limit.min(buf.len()).min(MAX_MESSAGE);
        let at = HEADER + question.len();
        if at > limit {
            return None;
        }
        buf[..HEADER].fill(0);
        header::set_id(buf, id);
        header::set_flags(buf, flags);
        header::set_qdcount(buf, 1);
        buf[HEADER..at].copy_from_slice(question);
        Some(Builder {
            buf,
            at,
            limit,
            reserved: 0,
            qname,
            counts: [0; 3],
            opt: None,
            owner: Hint::NONE,
            target: Hint::NONE,
            suffixes: SuffixTable::new(),
        })
    }

    /// Reserves room for an OPT record at the end; [`Builder::opt`] uses it.
    #[inline]
    pub fn reserve(&mut self, octets: usize) {
        self.reserved = octets;
    }

    /// Copies a record of a well-formed message. Names that may be compressed are expanded and compressed anew;
    /// everything else is copied unchanged.
    ///
    /// # Errors
    ///
    /// `Full`: the message has no room for the record, or RDATA with its names expanded has more than 65,535 octets.
    #[inline]
    pub fn copy(&mut self, section: Section, record: &Record<'_>) -> Result<(), Full> {
        self.copy_with(section, record, None)
    }

    /// Copies a record with another TTL.
    ///
    /// # Errors
    ///
    /// As [`Builder::copy`].
    #[inline]
    pub fn copy_ttl(&mut self, section: Section, record: &Record<'_>, ttl: u32) -> Result<(), Full> {
        self.copy_with(section, record, Some(ttl))
    }

    /// Writes an AAAA record in class IN.
    ///
    /// # Errors
    ///
    /// `Full`: the message has no room for the record.
    #[inline]
    pub fn aaaa(
        &mut self,
        section: Section,
        owner: Name<'_>,
        ttl: u32,
        address: [u8; 16],
    ) -> Result<(), Full> {
        self.record(section, owner, Type::AAAA, Class::IN, ttl, &address)
    }

    /// Writes a record with this RDATA; names in it must be uncompressed.
    ///
    /// # Errors
    ///
    /// `Full`: the message has no room for the record, or `rdata` has more than 65,535 octets.
    #[inline]
    pub fn record(
        &mut self,
        section: Section,
        owner: Name<'_>,
        rtype: Type,
        class: Class,
        ttl: u32,
        rdata: &[u8],
    ) -> Result<(), Full> {
        let length = u16::try_from(rdata.len()).map_err(|_| Full)?;
        self.write_whole(section, |builder| {
            builder.owner(owner)?;
            let [t0, t1] = rtype.0.to_be_bytes();
            let [c0, c1] = class.0.to_be_bytes();
            let [ttl0, ttl1, ttl2, ttl3] = ttl.to_be_bytes();
            let [l0, l1] = length.to_be_bytes();
            builder.put(&[t0, t1, c0, c1, ttl0, ttl1, ttl2, ttl3, l0, l1])?;
            builder.put(rdata)
        })
    }

    /// Writes the OPT record, last of all, into the room that was reserved for it: 11 octets, or 17 with an extended
    /// error.
    ///
    /// # Errors
    ///
    /// `Full`: the message has no room for the record, because none was reserved.
    #[inline]
    pub fn opt(
        &mut self,
        udp_size: u16,
        extended_rcode: u8,
        version: u8,
        dnssec_ok: bool,
        ede: Option<EdeCode>,
    ) -> Result<(), Full> {
        self.reserved = 0;
        self.write_whole(Section::Additional, |builder| {
            let room = builder.buf.get_mut(builder.at..builder.limit).ok_or(Full)?;
            let octets = write_opt(room, udp_size, extended_rcode, version, dnssec_ok, ede).ok_or(Full)?;
            builder.opt = Some(builder.at);
            builder.at += octets;
            Ok(())
        })
    }

    /// Adds an option to the OPT record, which must be the last record.
    ///
    /// # Errors
    ///
    /// `Full`: the message has no OPT record, or no room for the option.
    #[inline]
    pub fn option(&mut self, code: u16, data: &[u8]) -> Result<(), Full> {
        let start = self.opt.ok_or(Full)?;
        let octets = self.at - start;
        let room = self.buf.get_mut(start..self.limit).ok_or(Full)?;
        self.at = start + add_option(room, octets, code, data).ok_or(Full)?;
        Ok(())
    }

    /// Octets written so far.
    #[inline]
    #[allow(clippy::len_without_is_empty, reason = "a message with its question is never empty")]
    pub fn len(&self) -> usize {
        self.at
    }

    /// Replaces the flags.
    #[inline]
    pub fn set_flags(&mut self, flags: Flags) {
        header::set_flags(self.buf, flags);
    }

    /// Returns the current point, for [`Builder::rollback`].
    #[inline]
    pub fn mark(&self) -> Mark {
        Mark { at: self.at, counts: self.counts }
    }

    /// Removes everything written since `mark`, which must come from this builder.
    pub fn rollback(&mut self, mark: Mark) {
        self.at = mark.at;
        self.counts = mark.counts;
        self.opt = self.opt.filter(|&start| start < mark.at);
        self.suffixes.remove_from(mark.at);
        for hint in [&mut self.owner, &mut self.target] {
            if hint.written >= mark.at {
                *hint = Hint::NONE;
            }
        }
    }

    /// Writes the counts and returns the length of the message.
    #[inline]
    pub fn finish(&mut self) -> usize {
        let [answer, authority, additional] = self.counts;
        header::set_ancount(self.buf, answer);
        header::set_nscount(self.buf, authority);
        header::set_arcount(self.buf, additional);
        self.at
    }

    /// Writes one record with `write`, completely or not at all.
    #[inline]
    fn write_whole(
        &mut self,
        section: Section,
        write: impl FnOnce(&mut Self) -> Result<(), Full>,
    ) -> Result<(), Full> {
        let mark = self.mark();
        let later = section as usize + 1;
        debug_assert!(self.counts[later..].iter().all(|&count| count == 0), "sections are written in order");
        self.counts[section as usize] = self.counts[section as usize].checked_add(1).ok_or(Full)?;
        let written = write(self);
        if written.is_err() {
            self.rollback(mark);
        }
        written
    }

    #[inline]
    fn copy_with(&mut self, section: Section, record: &Record<'_>, ttl: Option<u32>) -> Result<(), Full> {
        self.write_whole(section, |builder| {
            builder.owner(record.owner)?;
            builder.put(record.type_class_ttl())?;
            if let Some(ttl) = ttl {
                builder.patch(builder.at - 4, &ttl.to_be_bytes());
            }
            let length_at = builder.at;
            builder.put(&[0; 2])?;
            let rdata = record.rdata();
            match layout(record.rtype) {
                Some(layout) if !rdata.is_empty() => builder.names(record, layout)?,
                _ => builder.put(rdata)?,
            }
            // Expanded names may make RDATA longer than RDLENGTH can express.
            let length = u16::try_from(builder.at - length_at - 2).map_err(|_| Full)?;
            builder.patch(length_at, &length.to_be_bytes());
            Ok(())
        })
    }

    /// Writes RDATA that contains names.
    fn names(&mut self, record: &Record<'_>, layout: RdataLayout) -> Result<(), Full> {
        let rdata = record.rdata();
        let mut at = layout.first_name(rdata).ok_or(Full)?;
        self.put(&rdata[..at])?;
        for _ in 0..layout.names {
            let name = record.name_at(at);
            if layout.compress {
                let written = self.name(name)?;
                self.target = Hint { source: name.offset(), written };
            } else {
                self.expanded(name)?;
            }
            at += name.len_in_place();
        }
        self.put(rdata.get(at..).ok_or(Full)?)
    }

    /// Writes an owner name.
    #[inline]
    fn owner(&mut self, name: Name<'_>) -> Result<(), Full> {
        if self.is_question(name) {
            return self.pointer(HEADER);
        }
        let source = name.offset();
        for hint in [self.owner, self.target] {
            if hint.written != 0 && hint.source == source && self.written(hint.written).eq_ignore_case(&name)
            {
                self.pointer(hint.written)?;
                self.owner = hint;
                return Ok(());
            }
        }
        let written = self.name(name)?;
        self.owner = Hint { source, written };
        Ok(())
    }

    /// True if the name equals the question's in one piece. One compared octet rules out most other names. The table
    /// finds a name that shares labels with others in its source.
    #[inline]
    fn is_question(&self, name: Name<'_>) -> bool {
        name.stands_as(&self.buf[HEADER..HEADER + self.qname])
    }

    /// Writes a name with compression and returns its position; 0 if no pointer can reach it.
    fn name(&mut self, name: Name<'_>) -> Result<usize, Full> {
        if self.is_question(name) {
            self.pointer(HEADER)?;
            return Ok(HEADER);
        }
        let expanded = name.expand();
        let wire = expanded.wire();
        if wire == [0] {
            self.put(wire)?;
            return Ok(0);
        }
        self.suffixes.add_question(Name::new(&self.buf[..self.at], HEADER), HEADER);
        let found = self.suffixes.find(&self.buf[..self.at], &expanded);
        let start = self.at;
        self.put(&wire[..found.distance])?;
        if found.at == 0 {
            self.put(&[0])?;
        } else {
            self.pointer(found.at)?;
        }
        self.suffixes.add(&expanded, found, start);
        let whole = if found.distance == 0 { found.at } else { start };
        Ok(if whole < POINTER_REACH { whole } else { 0 })
    }

    /// Writes a name without compression.
    fn expanded(&mut self, name: Name<'_>) -> Result<(), Full> {
        let mut wire = [0; MAX_NAME];
        let length = name.write(&mut wire);
        self.put(&wire[..length])
    }

    fn written(&self, at: usize) -> Name<'_> {
        Name::new(&self.buf[..self.at], at)
    }

    #[inline]
    fn pointer(&mut self, to: usize) -> Result<(), Full> {
        self.put(&(0xc000 | to as u16).to_be_bytes())
    }

    #[inline]
    fn put(&mut self, octets: &[u8]) -> Result<(), Full> {
        let end = self.at + octets.len();
        if end + self.reserved > self.limit {
            return Err(Full);
        }
        self.buf.get_mut(self.at..end).ok_or(Full)?.copy_from_slice(octets);
        self.at = end;
        Ok(())
    }

    /// Overwrites octets that were written before.
    #[inline]
    fn patch(&mut self, at: usize, octets: &[u8]) {
        self.buf[at..at + octets.len()].copy_from_slice(octets);
    }
}
