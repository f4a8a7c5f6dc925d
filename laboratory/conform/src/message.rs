//! Messages as the runner reads them: the server's answer to a client ([`Answer`]), and the server's query to the
//! upstream ([`UpstreamQuery`]).

use crate::record::{OwnedName, Record};
use domain::base::iana::{Class, Opcode, OptRcode, Rtype};
use domain::base::message::RecordSection;
use domain::base::name::FlattenInto;
use domain::base::opt::{ClientSubnet, ExtendedError};
use domain::base::wire::ParseError;
use domain::base::{Message, ParsedName};
use domain::rdata::ZoneRecordData;
use serde::Deserialize;

/// Flags of the header (RFC 1035 section 4.1.1, RFC 4035 section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs)]
pub enum Flag {
    Qr,
    Aa,
    Tc,
    Rd,
    Ra,
    Ad,
    Cd,
}

impl Flag {
    /// All flags, in the order of the header.
    pub const ALL: [Flag; 7] = [Flag::Qr, Flag::Aa, Flag::Tc, Flag::Rd, Flag::Ra, Flag::Ad, Flag::Cd];

    /// Bit of the flag in the second 16-bit word of the header.
    pub fn bit(self) -> u16 {
        match self {
            Flag::Qr => 0x8000,
            Flag::Aa => 0x0400,
            Flag::Tc => 0x0200,
            Flag::Rd => 0x0100,
            Flag::Ra => 0x0080,
            Flag::Ad => 0x0020,
            Flag::Cd => 0x0010,
        }
    }

    /// Name of the flag in a case.
    pub fn name(self) -> &'static str {
        match self {
            Flag::Qr => "QR",
            Flag::Aa => "AA",
            Flag::Tc => "TC",
            Flag::Rd => "RD",
            Flag::Ra => "RA",
            Flag::Ad => "AD",
            Flag::Cd => "CD",
        }
    }
}

/// Transport of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// One message per datagram.
    #[default]
    Udp,
    /// Messages with their length in front (RFC 1035 section 4.2.2).
    Tcp,
}

impl Transport {
    /// Name of the transport in a case.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Udp => "udp",
            Transport::Tcp => "tcp",
        }
    }
}

/// Answer of the server, parsed completely.
#[derive(Clone, Debug)]
pub struct Answer {
    /// ID of the header.
    pub id: u16,
    /// Flags that are set, in the order of the header.
    pub flags: Vec<Flag>,
    /// Response code, with the extended bits of the OPT record.
    pub rcode: OptRcode,
    /// Octets of the question section.
    pub question: Vec<u8>,
    /// Answer section.
    pub answer: Vec<Record>,
    /// Authority section.
    pub authority: Vec<Record>,
    /// Additional section without OPT.
    pub additional: Vec<Record>,
    /// Number of OPT records; more than one is an error (RFC 6891 section 6.1.1).
    pub opt_records: usize,
    /// DO bit of the OPT record, if there is one.
    pub dnssec_ok: Option<bool>,
    /// Extended error codes (RFC 8914), in order.
    pub extended_errors: Vec<u16>,
}

impl Answer {
    /// Parses an answer.
    ///
    /// # Errors
    ///
    /// The first part that is malformed: the message is shorter than a header, a question or a record cannot be read, or octets follow
    /// the last record.
    pub fn read(octets: &[u8]) -> Result<Answer, String> {
        let message = Message::from_octets(octets).map_err(|_| format!("{} octets only", octets.len()))?;
        let bad = |part: &'static str| move |error: ParseError| format!("{part}: {error}");
        let mut question = message.question();
        for entry in question.by_ref() {
            entry.map_err(bad("question"))?;
        }
        let question_ends = question.pos();
        let mut section = question.answer().map_err(bad("answer"))?;
        let (answer, _) = records(&mut section).map_err(bad("answer"))?;
        let mut section = next(section).map_err(bad("authority"))?;
        let (authority, _) = records(&mut section).map_err(bad("authority"))?;
        let mut section = next(section).map_err(bad("additional"))?;
        let (additional, opt_records) = records(&mut section).map_err(bad("additional"))?;
        if section.pos() != octets.len() {
            return Err(format!("{} octets follow the last record", octets.len() - section.pos()));
        }
        let word = u16::from_be_bytes([octets[2], octets[3]]);
        Ok(Answer {
            id: message.header().id(),
            flags: Flag::ALL.into_iter().filter(|flag| word & flag.bit() != 0).collect(),
            rcode: message.opt_rcode(),
            question: octets[12..question_ends].to_vec(),
            answer,
            authority,
            additional,
            opt_records,
            dnssec_ok: message.opt().map(|opt| opt.dnssec_ok()),
            extended_errors: extended_errors(&message),
        })
    }
}

/// Query that reached the upstream.
#[derive(Clone, Debug)]
pub struct UpstreamQuery {
    /// ID of the header.
    pub id: u16,
    /// Opcode.
    pub opcode: Opcode,
    /// Flags that are set.
    pub flags: Vec<Flag>,
    /// Name, with its letter case.
    pub name: OwnedName,
    /// Type.
    pub rtype: Rtype,
    /// Class.
    pub class: Class,
    /// OPT record, if there is one.
    pub edns: Option<UpstreamQueryEdns>,
}

/// Contents of the OPT record of a query.
#[derive(Clone, Copy, Debug)]
pub struct UpstreamQueryEdns {
    /// Requestor's UDP payload size.
    pub udp_size: u16,
    /// DO bit.
    pub dnssec_ok: bool,
    /// Client subnet (RFC 7871).
    pub subnet: Option<ClientSubnet>,
}

impl UpstreamQuery {
    /// Parses a query. Returns `None` for a response, for a message without exactly one question, and for octets that
    /// are no message: the upstream does not answer these.
    pub fn read(octets: &[u8]) -> Option<UpstreamQuery> {
        let message = Message::from_octets(octets).ok()?;
        if message.header().qr() || message.header_counts().qdcount() != 1 {
            return None;
        }
        let question = message.sole_question().ok()?;
        let word = u16::from_be_bytes([octets[2], octets[3]]);
        let edns = message.opt().map(|opt| UpstreamQueryEdns {
            udp_size: opt.udp_payload_size(),
            dnssec_ok: opt.dnssec_ok(),
            subnet: opt.opt().client_subnet(),
        });
        let name: ParsedName<&[u8]> = *question.qname();
        Some(UpstreamQuery {
            id: message.header().id(),
            opcode: message.header().opcode(),
            flags: Flag::ALL.into_iter().filter(|flag| word & flag.bit() != 0).collect(),
            name: name.flatten_into(),
            rtype: question.qtype(),
            class: question.qclass(),
            edns,
        })
    }

    /// True if the flag is set.
    pub fn has(&self, flag: Flag) -> bool {
        self.flags.contains(&flag)
    }

    /// True if there is an OPT record with DO set.
    pub fn dnssec_ok(&self) -> bool {
        self.edns.is_some_and(|edns| edns.dnssec_ok)
    }
}

/// Records of a section, and the number of OPT records among them.
fn records<'a>(section: &mut RecordSection<'a, &'a [u8]>) -> Result<(Vec<Record>, usize), ParseError> {
    let mut records = Vec::new();
    let mut opt_records = 0;
    for record in section.by_ref() {
        let record = record?;
        if record.rtype() == Rtype::OPT {
            opt_records += 1;
            continue;
        }
        // Record data of unknown types are kept as octets. Only OPT can never be zone data.
        records.extend(record.into_record::<ZoneRecordData<_, _>>()?.map(FlattenInto::flatten_into));
    }
    Ok((records, opt_records))
}

fn next<'a>(section: RecordSection<'a, &'a [u8]>) -> Result<RecordSection<'a, &'a [u8]>, ParseError> {
    Ok(section.next_section()?.expect("only the additional section is the last"))
}

fn extended_errors(message: &Message<&[u8]>) -> Vec<u16> {
    let Some(opt) = message.opt() else { return Vec::new() };
    opt.opt().iter::<ExtendedError<&[u8]>>().flatten().map(|error| error.code().to_int()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A response with RD, RA and AD, one question (`a. A`), and no record but an OPT with EDE 29 and EDE 6.
    const RESPONSE: [u8; 42] = [
        0x12, 0x34, 0x81, 0xa0, 0, 1, 0, 0, 0, 0, 0, 1, // header
        1, b'a', 0, 0, 1, 0, 1, // question
        0, 0, 41, 4, 0xd0, 1, 0, 0, 0, 0, 12, // OPT, extended RCODE 16
        0, 15, 0, 2, 0, 29, 0, 15, 0, 2, 0, 6,
    ];

    #[test]
    fn an_answer_is_read_with_its_question_as_it_came() {
        let answer = Answer::read(&RESPONSE).unwrap();
        assert_eq!(answer.id, 0x1234);
        assert_eq!(answer.flags, [Flag::Qr, Flag::Rd, Flag::Ra, Flag::Ad]);
        assert_eq!(answer.rcode, OptRcode::BADVERS);
        assert_eq!(answer.question, [1, b'a', 0, 0, 1, 0, 1]);
        assert_eq!((answer.opt_records, answer.extended_errors), (1, vec![29, 6]));
        assert_eq!(answer.dnssec_ok, Some(false));
        assert!(answer.answer.is_empty() && answer.authority.is_empty() && answer.additional.is_empty());
    }

    #[test]
    fn octets_after_the_last_record_and_missing_octets_are_faults() {
        let mut long = RESPONSE.to_vec();
        long.push(0);
        assert!(Answer::read(&long).unwrap_err().contains("1 octets follow"));
        for length in 0..RESPONSE.len() {
            assert!(Answer::read(&RESPONSE[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn a_response_is_no_question() {
        assert!(UpstreamQuery::read(&RESPONSE).is_none());
    }
}
