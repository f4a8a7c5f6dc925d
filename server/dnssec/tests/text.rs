//! Messages from records in master file format, which `domain` reads. Names are not compressed, unless a test asks for it.

use domain::base::iana::Class;
use domain::base::rdata::ComposeRecordData;
use domain::base::{Name, ToName};
use domain::zonefile::inplace::{Entry, Zonefile};

/// Record in wire form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub owner: Vec<u8>,
    pub rtype: u16,
    pub class: u16,
    pub ttl: u32,
    pub rdata: Vec<u8>,
}

impl Line {
    /// The octets of the record.
    pub fn octets(&self) -> Vec<u8> {
        let mut octets = self.owner.clone();
        octets.extend(self.rtype.to_be_bytes());
        octets.extend(self.class.to_be_bytes());
        octets.extend(self.ttl.to_be_bytes());
        octets.extend(u16::try_from(self.rdata.len()).expect("RDATA of 65,535 octets").to_be_bytes());
        octets.extend(&self.rdata);
        octets
    }
}

/// Records of a text in master file format, in order. Without a TTL they have 3600.
pub fn lines(text: &str) -> Vec<Line> {
    let mut file = Zonefile::new();
    file.extend_from_slice(b"$TTL 3600\n");
    file.extend_from_slice(text.as_bytes());
    file.extend_from_slice(b"\n");
    file.set_origin(Name::root());
    file.set_default_class(Class::IN);
    let mut found = Vec::new();
    for entry in file {
        let Entry::Record(record) = entry.unwrap_or_else(|error| panic!("{error}\n{text}")) else { continue };
        let mut rdata = Vec::new();
        record.data().compose_rdata(&mut rdata).expect("RDATA");
        found.push(Line {
            owner: record.owner().to_vec().as_slice().to_vec(),
            rtype: record.rtype().to_int(),
            class: record.class().to_int(),
            ttl: record.ttl().as_secs(),
            rdata,
        });
    }
    found
}

/// The only record of a text.
pub fn line(text: &str) -> Line {
    let [line] = <[Line; 1]>::try_from(lines(text)).expect("one record");
    line
}

/// Message with the octets of records in its sections.
pub fn message_of(question: (&str, u16), rcode: u8, sections: [&[Vec<u8>]; 2]) -> Vec<u8> {
    let mut octets = vec![0, 1, 0x81, 0x80 | rcode, 0, 1];
    for section in sections {
        octets.extend((section.len() as u16).to_be_bytes());
    }
    octets.extend([0, 0]);
    octets.extend(kit::message::name(question.0));
    octets.extend(question.1.to_be_bytes());
    octets.extend([0, 1]);
    for section in sections {
        octets.extend(section.concat());
    }
    octets
}

/// Reply to a question, with the records of texts in its answer and authority sections.
pub fn reply(question: (&str, u16), rcode: u8, answer: &str, authority: &str) -> Vec<u8> {
    let octets = |text| lines(text).iter().map(Line::octets).collect::<Vec<_>>();
    message_of(question, rcode, [&octets(answer), &octets(authority)])
}
