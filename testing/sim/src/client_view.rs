//! Answers as a client reads them. The reader is that of the crate `domain`, so it has no mistake of the engine's.

use crate::ground_truth::{GroundTruth, NameId};
use crate::message::COOKIE_OPTION;
use domain::base::iana::{Class, Rtype};
use domain::base::opt::{Opt, OptRecord, UnknownOptData};
use domain::base::rdata::ParseRecordData;
use domain::base::{HeaderSection, Message, ParsedName, ParsedRecord, ToName};
use domain::dep::octseq::Parser;
use domain::rdata::{A, Aaaa, Cname, Ptr, Rrsig, Soa};

/// A record of a message.
type Parsed<'a> = ParsedRecord<'a, [u8]>;

/// Number of an owner or target that is no name of the world.
pub const UNKNOWN_NAME: NameId = NameId::MAX;

/// A parsed answer.
#[derive(Debug, Default, Clone)]
pub struct Seen {
    /// Flags and RCODE.
    pub flags: u16,
    /// CNAME records of the answer section: owner, target, TTL.
    pub edges: Vec<(NameId, NameId, u32)>,
    /// A records of the answer section: owner, TTL, address.
    pub v4: Vec<(NameId, u32, [u8; 4])>,
    /// AAAA records of the answer section: owner, TTL, address.
    pub v6: Vec<(NameId, u32, [u8; 16])>,
    /// PTR records of the answer section: owner, TTL, target.
    pub pointers: Vec<(NameId, u32, NameId)>,
    /// Types that signatures of the answer section cover.
    pub signed: Vec<u16>,
    /// TTL and MINIMUM of the SOA of the authority section.
    pub soa: Option<(u32, u32)>,
    /// The OPT record: UDP size, DO.
    pub opt: Option<(u16, bool)>,
    /// Extended DNS error in the OPT record.
    pub ede: Option<u16>,
    /// Data of the cookie option.
    pub cookie: Option<Vec<u8>>,
    /// Number of other records in the answer section.
    pub others: usize,
}

impl Seen {
    /// RCODE.
    pub fn rcode(&self) -> u16 {
        self.flags & 15
    }

    /// AD.
    pub fn ad(&self) -> bool {
        self.flags & 0x20 != 0
    }

    /// TC.
    pub fn is_truncated(&self) -> bool {
        self.flags & 0x0200 != 0
    }

    /// Adds a record of a section (0: answer, 1: authority, 2: additional).
    fn add(
        &mut self,
        ground_truth: &GroundTruth,
        section: usize,
        record: &Parsed<'_>,
    ) -> Result<(), &'static str> {
        if record.rtype() == Rtype::OPT {
            return self.add_opt(section, record);
        }
        if record.class() != Class::IN {
            return Err("a record of another class");
        }
        // RFC 2181 section 8.
        let ttl = record.ttl().as_secs();
        let ttl = if ttl > i32::MAX as u32 { 0 } else { ttl };
        let number = |name: &ParsedName<&[u8]>| number_of(ground_truth, name);
        let owner = number(&record.owner());
        match (section, record.rtype()) {
            (0, Rtype::CNAME) => self.edges.push((owner, number(data::<Cname<_>>(record)?.cname()), ttl)),
            (0, Rtype::A) => self.v4.push((owner, ttl, data::<A>(record)?.addr().octets())),
            (0, Rtype::AAAA) => self.v6.push((owner, ttl, data::<Aaaa>(record)?.addr().octets())),
            (0, Rtype::PTR) => self.pointers.push((owner, ttl, number(data::<Ptr<_>>(record)?.ptrdname()))),
            (0, Rtype::RRSIG) => self.signed.push(data::<Rrsig<_, _>>(record)?.type_covered().to_int()),
            (0, _) => self.others += 1,
            (1, Rtype::SOA) => self.soa = Some((ttl, data::<Soa<_>>(record)?.minimum().as_secs())),
            _ => {}
        }
        Ok(())
    }

    /// Reads the OPT record and its options.
    fn add_opt(&mut self, section: usize, record: &Parsed<'_>) -> Result<(), &'static str> {
        if section != 2 || self.opt.is_some() {
            return Err("an OPT record too many");
        }
        let record = record.to_record::<Opt<_>>().ok().flatten().ok_or("malformed options")?;
        let record = OptRecord::from_record(record);
        self.opt = Some((record.udp_payload_size(), record.dnssec_ok()));
        for option in record.opt().iter::<UnknownOptData<_>>() {
            let option = option.map_err(|_| "a malformed option")?;
            match (option.code().to_int(), *option.data()) {
                (15, [high, low, ..]) => self.ede = Some(u16::from_be_bytes([*high, *low])),
                (COOKIE_OPTION, _) if self.cookie.is_some() => return Err("two cookies"),
                (COOKIE_OPTION, value) => self.cookie = Some(value.to_vec()),
                _ => return Err("an option that was not asked for"),
            }
        }
        Ok(())
    }
}

/// Parses an answer whose question section has `question` octets.
///
/// # Errors
///
/// The first malformed part: the message ends before it, a name or data are malformed, or a record is one that the world does not have.
pub fn parse_answer(ground_truth: &GroundTruth, bytes: &[u8], question: usize) -> Result<Seen, &'static str> {
    let counts = Message::from_slice(bytes).map_err(|_| "no header")?.header_counts();
    let mut seen = Seen { flags: u16::from_be_bytes([bytes[2], bytes[3]]), ..Seen::default() };
    let mut parser = Parser::from_ref(bytes);
    parser.advance(size_of::<HeaderSection>() + question).map_err(|_| "no question")?;
    for (section, count) in [counts.ancount(), counts.nscount(), counts.arcount()].into_iter().enumerate() {
        for _ in 0..count {
            let record = ParsedRecord::parse(&mut parser).map_err(|_| "a malformed record")?;
            seen.add(ground_truth, section, &record)?;
        }
    }
    if parser.remaining() > 0 { Err("octets behind the end") } else { Ok(seen) }
}

/// The data of a record of this type.
fn data<'a, T: ParseRecordData<'a, [u8]>>(record: &Parsed<'a>) -> Result<T, &'static str> {
    let record = record.to_record::<T>().ok().flatten().ok_or("malformed data")?;
    Ok(record.into_data())
}

/// The number of a name, in whatever case.
fn number_of(ground_truth: &GroundTruth, name: &ParsedName<&[u8]>) -> NameId {
    let mut wire = Vec::with_capacity(255);
    let Ok(()) = name.compose_canonical(&mut wire);
    ground_truth.find(&wire).unwrap_or(UNKNOWN_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground_truth::FIRST_ARPA_ID;
    use crate::rng::Rng;
    use kit::message::{QUESTION, option, query, record, reply};

    /// Octets of the question for `ipv4only.arpa`, which every world knows.
    const ASKED: usize = 19;

    /// The answer with these records, then those of the additional section, as the client reads it.
    fn read(answer: &[Vec<u8>], additional: &[Vec<u8>]) -> Result<Seen, &'static str> {
        let mut bytes = reply(&query(7, "IPv4Only.Arpa", 28), 0x0180, answer);
        bytes[11] = additional.len() as u8;
        bytes.extend(additional.concat());
        parse_answer(&GroundTruth::new(5, &mut Rng::new(1)), &bytes, ASKED)
    }

    fn opt(options: &[u8]) -> Vec<u8> {
        // UDP size 1,232, and the bit DO in the second half of the TTL.
        let mut opt = record(&[0], 41, 0x8000, options);
        opt[3..5].copy_from_slice(&1_232u16.to_be_bytes());
        opt
    }

    #[test]
    fn an_answer_is_read_through_pointers_and_in_whatever_case() {
        let other = kit::name("no.such.name");
        let answer = [
            record(QUESTION, 5, 60, QUESTION),
            record(&other, 1, 61, &[192, 0, 2, 1]),
            // RFC 2181 section 8: a TTL with the highest bit set is 0.
            record(QUESTION, 28, 0x8000_0000, &[7; 16]),
            record(QUESTION, 12, 62, &other),
            record(QUESTION, 99, 60, &[1, 2]),
        ];
        let options = [option(10, &[8; 8]), option(15, &[0, 3])].concat();
        let seen = read(&answer, &[opt(&options)]).unwrap();
        let id = FIRST_ARPA_ID;
        assert_eq!((seen.flags, &seen.edges[..]), (0x8180, &[(id, id, 60)][..]));
        assert_eq!(seen.v4, [(UNKNOWN_NAME, 61, [192, 0, 2, 1])]);
        assert_eq!(
            (&seen.v6[..], &seen.pointers[..]),
            (&[(id, 0, [7; 16])][..], &[(id, 62, UNKNOWN_NAME)][..])
        );
        assert_eq!((seen.opt, seen.ede, seen.others), (Some((1_232, true)), Some(3), 1));
        assert_eq!(seen.cookie, Some(vec![8; 8]));
    }

    #[test]
    fn a_malformed_answer_is_refused() {
        let end = 12 + ASKED as u8;
        let mut chaos = record(QUESTION, 1, 60, &[0; 4]);
        chaos[5] = 3;
        for (record, error) in [
            // A pointer at itself, and one forward.
            (record(&[0xc0, end], 1, 60, &[0; 4]), "a malformed record"),
            (record(&[0xc0, end + 2], 1, 60, &[0; 4]), "a malformed record"),
            (record(QUESTION, 1, 60, &[0; 4])[..13].to_vec(), "a malformed record"),
            (record(QUESTION, 1, 60, &[0; 3]), "malformed data"),
            (record(QUESTION, 28, 60, &[0; 17]), "malformed data"),
            (record(QUESTION, 5, 60, &[0xc0, 12, 0]), "malformed data"),
            ([record(QUESTION, 1, 60, &[0; 4]), vec![0]].concat(), "octets behind the end"),
            (chaos, "a record of another class"),
            (opt(&[]), "an OPT record too many"),
        ] {
            assert_eq!(read(std::slice::from_ref(&record), &[]).err(), Some(error), "{record:02x?}");
        }
        assert_eq!(read(&[], &[opt(&[]), opt(&[])]).err(), Some("an OPT record too many"));
        assert_eq!(read(&[], &[opt(&option(10, &[8; 8]).repeat(2))]).err(), Some("two cookies"));
        assert_eq!(read(&[], &[opt(&option(12, &[]))]).err(), Some("an option that was not asked for"));
        assert_eq!(read(&[], &[opt(&[0, 10, 0, 9, 1])]).err(), Some("malformed options"));
    }
}
