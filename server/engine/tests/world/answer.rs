//! Answers to clients, parsed by another DNS library (`domain`) and shown as text.

use super::reply::{ParsedRecord, Reply};
use domain::base::{Message, RecordSection};
use domain::rdata::ZoneRecordData;
use engine::{Client, Instant};
use wire::{Flags, Rcode, Section};

/// An answer that a client received.
#[derive(Clone, Debug)]
pub struct Answer {
    pub at: Instant,
    pub to: Client,
    pub bytes: Vec<u8>,
}

impl Answer {
    pub fn message(&self) -> wire::Message<'_> {
        wire::Message::parse(&self.bytes).unwrap_or_else(|error| panic!("{error:?}: {:02x?}", self.bytes))
    }

    pub fn rcode(&self) -> Rcode {
        self.message().rcode()
    }

    pub fn flags(&self) -> Flags {
        self.message().flags()
    }

    pub fn id(&self) -> u16 {
        wire::header::id(&self.bytes)
    }

    /// The first extended DNS error (EDE).
    pub fn ede(&self) -> Option<u16> {
        self.message().opt().and_then(|opt| opt.ede().next()).map(|(code, _)| code)
    }

    /// The records of a section as text, without OPT; names in lower case.
    pub fn records(&self, section: Section) -> Vec<String> {
        section_texts(&self.bytes, section)
    }

    /// The IPv6 addresses in the answer section as text.
    pub fn addresses(&self) -> Vec<String> {
        let records = self.records(Section::Answer);
        let addresses = records.iter().filter(|line| line.contains(" AAAA "));
        addresses.map(|line| line.rsplit(' ').next().expect("a word").to_owned()).collect()
    }
}

/// Records as text, after they were written to a message and parsed again. Tests compare this form with the records of an answer.
pub fn canonical(records: &[ParsedRecord]) -> Vec<String> {
    let reply = Reply { sections: [records.to_vec(), vec![], vec![]], edns: false, ..Reply::default() };
    let question = super::client_query::query("canonical.test", wire::Type::A).bytes();
    section_texts(&reply.to(&question), Section::Answer)
}

fn section_texts(bytes: &[u8], section: Section) -> Vec<String> {
    let message = Message::from_octets(bytes).expect("a header");
    let (_, answer, authority, additional) = message.sections().expect("well-formed sections");
    let records: RecordSection<'_, _> = match section {
        Section::Answer => answer,
        Section::Authority => authority,
        Section::Additional => additional,
    };
    records
        .map(|record| record.expect("a well-formed record"))
        .filter(|record| record.rtype() != domain::base::iana::Rtype::OPT)
        .map(|record| {
            let record = record.to_record::<ZoneRecordData<_, _>>().expect("RDATA").expect("a known type");
            let owner = record.owner().to_string().to_lowercase();
            let dot = if owner.ends_with('.') { "" } else { "." };
            let data = match record.data() {
                ZoneRecordData::Cname(_) | ZoneRecordData::Ns(_) | ZoneRecordData::Dname(_) => {
                    record.data().to_string().to_lowercase()
                }
                data => data.to_string(),
            };
            format!("{owner}{dot} {} {} {} {data}", record.ttl().as_secs(), record.class(), record.rtype())
        })
        .collect()
}
