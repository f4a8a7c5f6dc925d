//! Records in the presentation format (RFC 1035 section 5.1).

use super::report::{Fault, quoted};
use super::zone_entries::Nesting;
use domain::base::iana;
use domain::base::name::{ParsedName, ToLabelIter};
use domain::base::rdata::{ComposeRecordData, ParseRecordData};
use domain::dep::octseq::Parser;
use domain::rdata::ZoneRecordData;
use domain::zonefile::inplace::{Entry, ScannedRecord, Zonefile};
use engine::own::Record;
use wire::Type;

/// A record as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalRecord {
    /// The text.
    pub text: String,
    /// What it says.
    pub record: Record,
}

/// A record in the presentation format (RFC 1035 section 5.1); names are absolute, and a TTL that is absent is an hour.
pub fn parse(text: &str) -> Result<LocalRecord, Fault> {
    let refuse = |why: &str| {
        let what = format!("{} is not a record: {why}", quoted(text));
        Fault::new(what, "write name, TTL, IN, type and data, like \"nas.home. 60 IN A 192.168.1.5\"")
    };
    if Nesting::at_end_of(text.as_bytes()).is_open() {
        return Err(refuse("a parenthesis is not closed"));
    }
    let mut reader = Zonefile::from(format!("{text}\n").as_bytes());
    reader.set_origin(domain::base::Name::root_bytes());
    reader.set_default_class(iana::Class::IN);
    let entry = reader.next_entry().map_err(|error| {
        // It begins with line and column of what it was given.
        let error = error.to_string();
        refuse(error.splitn(3, ':').nth(2).unwrap_or(&error).trim())
    })?;
    let Some(Entry::Record(record)) = entry else { return Err(refuse("there is none")) };
    if !matches!(reader.next_entry(), Ok(None)) {
        return Err(refuse("there is more behind it"));
    }
    let rtype = Type(record.rtype().to_int());
    if matches!(rtype, Type::SOA | Type::NS | Type::DNAME) {
        return Err(refuse("records are answered one name at a time, and this type speaks of a zone"));
    }
    // RFC 6895 section 3.1.
    if matches!(rtype, Type::OPT | Type(0 | 128..=255)) {
        return Err(refuse("this type is for questions and messages, no name has records of it"));
    }
    let record = plain_record(&record).map_err(refuse)?;
    // As it is: a blank at its end may belong to the data.
    Ok(LocalRecord { text: text.to_owned(), record })
}

/// A record that was read, or why it cannot stand in a message.
pub fn plain_record(record: &ScannedRecord) -> Result<Record, &'static str> {
    let ttl = record.ttl().as_secs();
    if ttl > i32::MAX as u32 {
        return Err("its TTL is more than 2147483647 (RFC 2181 section 8)");
    }
    let mut rdata = Vec::new();
    record.data().compose_rdata(&mut rdata).map_err(|_| "its data are too long")?;
    let rtype = Type(record.rtype().to_int());
    let made = Record { owner: owner(record), rtype, ttl, rdata: rdata.into() };
    let is_right = match record.data() {
        // What was read as these is nothing else; zones have millions of them.
        ZoneRecordData::Cname(_) | ZoneRecordData::A(_) | ZoneRecordData::Aaaa(_) => true,
        // The generic form may say anything (RFC 3597 section 5).
        ZoneRecordData::Unknown(_) => is_plain(record.rtype(), &made.rdata) && made.is_sound(),
        _ => made.is_sound(),
    };
    if is_right { Ok(made) } else { Err("its data are not what the type asks for") }
}

/// Whether data are what a type asks for, as far as it is known, with names that are not compressed.
fn is_plain(rtype: iana::Rtype, rdata: &[u8]) -> bool {
    let mut parser = Parser::from_ref(rdata);
    let parsed = ZoneRecordData::<&[u8], ParsedName<&[u8]>>::parse_rdata(rtype, &mut parser);
    let mut plain = Vec::new();
    matches!(parsed, Ok(Some(parsed)) if parsed.compose_rdata(&mut plain).is_ok())
        && parser.remaining() == 0
        && plain == rdata
}

fn owner(record: &ScannedRecord) -> Box<[u8]> {
    let mut name = Vec::new();
    for label in record.owner().iter_labels() {
        name.push(label.len() as u8);
        name.extend_from_slice(label.as_slice());
    }
    wire::fold(&mut name);
    name.into()
}
