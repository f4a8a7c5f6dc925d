//! A message that was walked once and found well formed; from then on reading it cannot fail.
//!
//! The walk checks what every reader would stumble over: counts, lengths, names with their pointers, and the RDATA of
//! the types that this project or a compressor looks into. It does not judge: unknown types, classes and values pass.

use crate::edns::Opt;
use crate::header::{self, Flags, HEADER};
use crate::limits;
use crate::name::Name;
use crate::record::Records;
use crate::types::{Class, Opcode, Rcode, Type};
use crate::walk;

/// The sections that hold records, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// What was asked for.
    Answer,
    /// Who is responsible: SOA or NS records, and proofs.
    Authority,
    /// What may help; and the OPT record.
    Additional,
}

/// Why octets are not a message to work with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Malformed {
    /// Fewer octets than a header.
    Short,
    /// Not exactly one question. RFC 9619 allows no more for a query; none is seen in errors and stream signals.
    QuestionCount,
    /// The question is cut after its name.
    Question,
    /// A name is cut, longer than 255 octets, has a label type other than length and pointer, or a pointer that
    /// does not lead backwards into the records (RFC 1035 section 4.1.4); also too many pointers in one name.
    Name,
    /// A record is cut: the counts or an RDLENGTH promise more than there is.
    Record,
    /// RDATA has not the length or shape that its type asks for.
    Rdata,
    /// A second OPT record, one outside the additional section, with an owner other than the root, or with options
    /// that do not fill its RDATA (RFC 6891 section 6.1).
    Opt,
}

/// A well-formed message.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    pub(crate) bytes: &'a [u8],
    /// Where the sections begin. The first is also the end of the question.
    pub(crate) starts: [usize; 3],
    pub(crate) end: usize,
    /// Where the OPT record begins and ends; both 0 without one.
    pub(crate) opt: (usize, usize),
    /// Where the names end that pointers lead to, the furthest of them; `usize::MAX` when that is not known.
    pub(crate) furthest: usize,
}

impl<'a> Message<'a> {
    /// Walks the whole message once: the header, exactly one question, all records, the names in owners and in RDATA
    /// that may be compressed, the RDATA of A, AAAA and of types with such names, at most one OPT record with its
    /// options. Octets after the last record are tolerated.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Message<'a>, Malformed> {
        walk::parse(bytes, &mut ())
    }

    /// The same walk, and how many steps it took: one per label, pointer, record and option, and one per octet of
    /// the question name. For tests that hold the bound: at most 4 steps per octet and [`WALK_CONSTANT`] on top.
    ///
    /// [`WALK_CONSTANT`]: Message::WALK_CONSTANT
    pub fn parse_counted(bytes: &'a [u8]) -> (Result<Message<'a>, Malformed>, u64) {
        let mut steps = 0u64;
        let result = walk::parse(bytes, &mut steps);
        (result, steps)
    }

    /// The part of the bound on the walk's steps that does not grow with the message.
    pub const WALK_CONSTANT: u64 = limits::WALK_CONSTANT;

    /// All octets, with what follows the last record.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The message ID.
    #[inline]
    pub fn id(&self) -> u16 {
        header::id(self.bytes)
    }

    /// The flags of the header.
    #[inline]
    pub fn flags(&self) -> Flags {
        header::flags(self.bytes)
    }

    /// The operation.
    #[inline]
    pub fn opcode(&self) -> Opcode {
        self.flags().opcode()
    }

    /// The response code with the upper bits of the OPT record, if there is one.
    #[inline]
    pub fn rcode(&self) -> Rcode {
        let extended = self.opt().map_or(0, |opt| opt.extended_rcode());
        Rcode(u16::from(extended) << 4 | self.flags().rcode().0)
    }

    /// Whether the QR bit is set.
    #[inline]
    pub fn is_response(&self) -> bool {
        self.flags().contains(Flags::QR)
    }

    /// The question's name in wire form. It is never compressed: there is no name before it to point at.
    #[inline]
    pub fn qname(&self) -> &'a [u8] {
        &self.bytes[HEADER..self.starts[0] - 4]
    }

    /// The question's name as a name of the message.
    #[inline]
    pub fn question_name(&self) -> Name<'a> {
        Name::new(self.bytes, HEADER)
    }

    /// The name that stands at an offset which [`Name::offset`] gave for a name of this message.
    #[inline]
    pub fn name_at(&self, offset: usize) -> Name<'a> {
        Name::new(self.bytes, offset)
    }

    /// The type asked for.
    #[inline]
    pub fn qtype(&self) -> Type {
        let at = self.starts[0] - 4;
        Type(u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]]))
    }

    /// The class asked for.
    #[inline]
    pub fn qclass(&self) -> Class {
        let at = self.starts[0] - 2;
        Class(u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]]))
    }

    /// The question as sent: name, type, class.
    #[inline]
    pub fn question(&self) -> &'a [u8] {
        &self.bytes[HEADER..self.starts[0]]
    }

    /// How many records a section holds.
    #[inline]
    pub fn count(&self, section: Section) -> usize {
        usize::from(match section {
            Section::Answer => header::ancount(self.bytes),
            Section::Authority => header::nscount(self.bytes),
            Section::Additional => header::arcount(self.bytes),
        })
    }

    /// The records of a section in order, none left out: OPT is among the additional ones.
    #[inline]
    pub fn records(&self, section: Section) -> Records<'a> {
        Records::new(self.bytes, self.section_start(section), self.count(section))
    }

    /// Where a section begins: the end of what stands before it.
    #[inline]
    pub fn section_start(&self, section: Section) -> usize {
        self.starts[section as usize]
    }

    /// Whether some name is compressed with something else than the question's name: with another name, or with whatever
    /// stands in the records.
    #[inline]
    pub fn points_behind_question(&self) -> bool {
        self.furthest > self.starts[0] - 4
    }

    /// Where the last record ends.
    #[inline]
    pub fn end(&self) -> usize {
        self.end
    }

    /// The OPT record, if there is one.
    #[inline]
    pub fn opt(&self) -> Option<Opt<'a>> {
        Opt::new(self.bytes.get(self.opt.0..self.opt.1)?)
    }

    /// Where the OPT record begins, if there is one. It may be cut off there when it ends at [`Message::end`].
    #[inline]
    pub fn opt_start(&self) -> Option<usize> {
        (self.opt.0 != 0).then_some(self.opt.0)
    }
}
