//! Message that was walked once and found well-formed, so that reading it cannot fail.
//!
//! The walk checks everything that a reader relies on: counts, lengths, names with their pointers, and the RDATA of
//! the types that this project or name compression reads. It makes no other judgement: unknown types, classes and
//! values pass.

use crate::edns::Opt;
use crate::header::{self, Flags, HEADER};
use crate::limits;
use crate::name::Name;
use crate::record::{Record, Records};
use crate::types::{Class, Opcode, Rcode, Type};

/// Sections with records, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// Answer section.
    Answer,
    /// Authority section: SOA or NS records, and proofs.
    Authority,
    /// Additional section, including the OPT record.
    Additional,
}

/// Reason why octets are not a usable message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Malformed {
    /// Fewer octets than a header.
    Short,
    /// Not exactly one question. RFC 9619 allows no more for a query; some errors and stream signals have none.
    QuestionCount,
    /// The question ends after its name.
    Question,
    /// A name is truncated, is longer than 255 octets, has a label type other than length and pointer, has a pointer
    /// that does not lead backwards into the records (RFC 1035 section 4.1.4), has too many pointers, or begins in the question and does
    /// not end with its name.
    Name,
    /// A record is truncated: the counts or an RDLENGTH announce more than there is.
    Record,
    /// RDATA does not have the length or layout that its type requires.
    Rdata,
    /// A second OPT record, or one outside the additional section, with an owner other than the root, or with options
    /// that do not fill its RDATA (RFC 6891 section 6.1).
    Opt,
}

/// Well-formed message.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) offsets: SectionOffsets,
}

/// Result of the walk over a message, without the octets. It stays valid while only letters of names change their case
/// ([`lower_question`](crate::letter_case::lower_question)). Positions have 32 bits, as a message is copied more often than read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionOffsets {
    /// Starts of the sections. The first is also the end of the question.
    pub(crate) starts: [u32; 3],
    pub(crate) end: u32,
    /// Start and end of the OPT record; both 0 without one.
    pub(crate) opt: (u32, u32),
    /// Furthest end of a name that a pointer leads to; `u32::MAX` if unknown.
    pub(crate) furthest: u32,
    /// Upper bits of the response code, from the OPT record.
    pub(crate) extended_rcode: u8,
    /// True if a name after the question, other than the root, is written out without a pointer.
    pub(crate) has_whole_names: bool,
    /// True if there is a CNAME record.
    pub(crate) has_cname: bool,
}

impl SectionOffsets {
    /// The places of a message that ends with its question.
    #[inline]
    pub(crate) fn without_records(question_end: usize) -> SectionOffsets {
        SectionOffsets {
            starts: [question_end as u32; 3],
            end: question_end as u32,
            opt: (0, 0),
            furthest: 0,
            extended_rcode: 0,
            has_whole_names: false,
            has_cname: false,
        }
    }

    /// End of the question, which is the start of the records.
    #[inline]
    pub(crate) fn question_end(&self) -> usize {
        self.starts[0] as usize
    }
}

impl<'a> Message<'a> {
    /// Constant part of the upper bound of the walk's steps.
    pub const WALK_CONSTANT: u64 = limits::WALK_CONSTANT;

    /// Places of the parts of the message, without its octets.
    #[inline]
    pub fn offsets(&self) -> SectionOffsets {
        self.offsets
    }

    /// All octets, including those after the last record.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    fn question_end(&self) -> usize {
        self.offsets.question_end()
    }

    /// Message ID.
    #[inline]
    pub fn id(&self) -> u16 {
        header::id(self.bytes)
    }

    /// Flags of the header.
    #[inline]
    pub fn flags(&self) -> Flags {
        header::flags(self.bytes)
    }

    /// Opcode.
    #[inline]
    pub fn opcode(&self) -> Opcode {
        self.flags().opcode()
    }

    /// Response code, with the upper bits of the OPT record if there is one.
    #[inline]
    pub fn rcode(&self) -> Rcode {
        Rcode(u16::from(self.offsets.extended_rcode) << 4 | self.flags().rcode().0)
    }

    /// True if the QR bit is set.
    #[inline]
    pub fn is_response(&self) -> bool {
        self.flags().contains(Flags::QR)
    }

    /// Question's name in wire form. It is never compressed: no name precedes it.
    #[inline]
    pub fn qname(&self) -> &'a [u8] {
        &self.bytes[HEADER..self.question_end() - 4]
    }

    /// Question's name as a name of the message.
    #[inline]
    pub fn question_name(&self) -> Name<'a> {
        Name::new(self.bytes, HEADER)
    }

    /// Name at an offset that [`Name::offset`] returned for a name of this message.
    #[inline]
    pub fn name_at(&self, offset: usize) -> Name<'a> {
        Name::new(self.bytes, offset)
    }

    /// Type in the question.
    #[inline]
    pub fn qtype(&self) -> Type {
        let [high, low, _, _] = self.type_and_class();
        Type(u16::from_be_bytes([high, low]))
    }

    /// Class in the question.
    #[inline]
    pub fn qclass(&self) -> Class {
        let [_, _, high, low] = self.type_and_class();
        Class(u16::from_be_bytes([high, low]))
    }

    /// Octets of the question after its name.
    #[inline]
    fn type_and_class(&self) -> [u8; 4] {
        self.bytes.get(..self.question_end()).and_then(<[u8]>::last_chunk).copied().unwrap_or_default()
    }

    /// Octets of the question: name, type, class.
    #[inline]
    pub fn question(&self) -> &'a [u8] {
        &self.bytes[HEADER..self.question_end()]
    }

    /// True if one of the records is a CNAME record. Most answers have none, so that there is no alias to look for.
    #[inline]
    pub fn has_cname(&self) -> bool {
        self.offsets.has_cname
    }

    /// Number of records in a section.
    #[inline]
    pub fn count(&self, section: Section) -> usize {
        usize::from(match section {
            Section::Answer => header::ancount(self.bytes),
            Section::Authority => header::nscount(self.bytes),
            Section::Additional => header::arcount(self.bytes),
        })
    }

    /// All records of a section in order; the OPT record is among the additional records.
    #[inline]
    pub fn records(&self, section: Section) -> Records<'a> {
        Records::new(self.bytes, self.section_start(section), self.count(section))
    }

    /// Record at a position that [`Record::start`] returned for a record of this message.
    #[inline]
    pub fn record_at(&self, start: usize) -> Option<Record<'a>> {
        Records::new(self.bytes, start, 1).next()
    }

    /// Start of a section, which is the end of the one before it.
    #[inline]
    pub fn section_start(&self, section: Section) -> usize {
        self.offsets.starts[section as usize] as usize
    }

    /// True if a name is compressed with anything but the question's name: with another name, or with other octets in
    /// the records.
    #[inline]
    pub fn points_behind_question(&self) -> bool {
        self.offsets.furthest as usize > self.question_end() - 4
    }

    /// End of the last record.
    #[inline]
    pub fn end(&self) -> usize {
        self.offsets.end as usize
    }

    /// OPT record, if there is one.
    #[inline]
    pub fn opt(&self) -> Option<Opt<'a>> {
        Opt::new(self.bytes.get(self.offsets.opt.0 as usize..self.offsets.opt.1 as usize)?)
    }

    /// Start of the OPT record, if there is one. It can be cut off there if it ends at [`Message::end`].
    #[inline]
    pub fn opt_start(&self) -> Option<usize> {
        (self.offsets.opt.0 != 0).then_some(self.offsets.opt.0 as usize)
    }
}
