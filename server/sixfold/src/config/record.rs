//! Records in the presentation format (RFC 1035 section 5.1), from text to the records of the engine.

use super::report::{Fault, quoted};
use super::zone_entries::has_open_parenthesis;
use domain::base::iana;
use domain::base::name::{ParsedName, ToLabelIter};
use domain::base::rdata::{ComposeRecordData, ParseRecordData};
use domain::dep::octseq::Parser;
use domain::rdata::ZoneRecordData;
use domain::zonefile::inplace::{Entry, ScannedRecord, Zonefile};
use engine::local::LocalRecord;
use textfile::master;
use wire::Type;

/// The parser's error about data of a type that has no text form in it.
const WITHOUT_TEXT_FORM: &str = "unknown record type with concrete data";

/// A record with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredRecord {
    /// The text, as written.
    pub text: String,
    /// The record.
    pub record: LocalRecord,
}

/// Parses a record. Names are absolute; a missing TTL means one hour.
///
/// # Errors
///
/// The text is not exactly one record in the form of zone files, its data do not fit its type, its name begins with `*`, or its type is
/// for zones (SOA, NS, DNAME) or for questions and messages only.
pub fn parse(text: &str) -> Result<ConfiguredRecord, Fault> {
    let refuse = |why: &str| {
        let what = format!("{} is not a record: {why}", quoted(text));
        Fault::new(what, "write name, TTL, IN, type and data, like \"nas.home. 60 IN A 192.168.1.5\"")
    };
    if has_open_parenthesis(text.as_bytes()) {
        return Err(refuse("a parenthesis is not closed"));
    }
    if text.trim_start().starts_with("*.") {
        let what = format!("{}: `*` is not a wildcard in local records, but a name of its own", quoted(text));
        let help = "write a record for each name, or the wildcard into a response policy zone (`filter.rpz`)";
        return Err(Fault::new(what, help));
    }
    let mut reader = Zonefile::from(&*master::in_seconds(format!("{text}\n").as_bytes()));
    reader.set_origin(domain::base::Name::root_bytes());
    reader.set_default_class(iana::Class::IN);
    let entry = reader.next_entry().map_err(|error| {
        // The error begins with line and column, which are of no use for one line.
        let error = error.to_string();
        refuse(&syntax_reason(error.splitn(3, ':').nth(2).unwrap_or(&error).trim(), text.as_bytes()))
    })?;
    let Some(Entry::Record(record)) = entry else { return Err(refuse("there is none")) };
    if !matches!(reader.next_entry(), Ok(None)) {
        return Err(refuse("it has more than one record; write each as a text of its own"));
    }
    let rtype = Type(record.rtype().to_int());
    if matches!(rtype, Type::SOA | Type::NS | Type::DNAME) {
        return Err(refuse("this type describes a zone, and local records describe single names"));
    }
    // RFC 6895 section 3.1.
    if matches!(rtype, Type::OPT | Type(0 | 128..=255)) {
        return Err(refuse("no name has records of this type, which is for questions and messages only"));
    }
    let record = engine_record(&record).map_err(refuse)?;
    // The text stays unchanged: a blank at its end may belong to the data.
    Ok(ConfiguredRecord { text: text.to_owned(), record })
}

/// The reason why the parser does not understand a record, from its error without line and column. For a type whose data it knows
/// in the generic form only, that form.
pub fn syntax_reason(error: &str, text: &[u8]) -> String {
    let rtype = master::record_type(text).map(String::from_utf8_lossy).unwrap_or_default();
    match rtype.parse::<iana::Rtype>() {
        Ok(number) if error == WITHOUT_TEXT_FORM => master::generic_form(&rtype, number.to_int()),
        _ => error.to_owned(),
    }
}

/// Converts a parsed record into one of the engine.
///
/// # Errors
///
/// The reason why the record cannot be in a message: its TTL exceeds 2^31 - 1 seconds, its data are too long, or they do not fit its
/// type.
pub fn engine_record(record: &ScannedRecord) -> Result<LocalRecord, &'static str> {
    let ttl = record.ttl().as_secs();
    if ttl > i32::MAX as u32 {
        return Err("its TTL is more than 2147483647 (RFC 2181 section 8)");
    }
    let mut rdata = Vec::new();
    record.data().compose_rdata(&mut rdata).map_err(|_| "its data are too long")?;
    let rtype = Type(record.rtype().to_int());
    let converted = LocalRecord { owner: owner(record), rtype, ttl, rdata: rdata.into() };
    let is_valid = match record.data() {
        // Data parsed as these types are valid; zones have millions of such records, so a check would cost time.
        ZoneRecordData::Cname(_) | ZoneRecordData::A(_) | ZoneRecordData::Aaaa(_) => true,
        // The generic form may contain anything (RFC 3597 section 5).
        ZoneRecordData::Unknown(_) => fits_type(record.rtype(), &converted.rdata) && converted.is_sound(),
        _ => converted.is_sound(),
    };
    if is_valid { Ok(converted) } else { Err("its data do not fit its type") }
}

/// True if the data fit the type, as far as the type is known, and their names are not compressed.
fn fits_type(rtype: iana::Rtype, rdata: &[u8]) -> bool {
    let mut parser = Parser::from_ref(rdata);
    let parsed = ZoneRecordData::<&[u8], ParsedName<&[u8]>>::parse_rdata(rtype, &mut parser);
    let mut composed = Vec::new();
    matches!(parsed, Ok(Some(parsed)) if parsed.compose_rdata(&mut composed).is_ok())
        && parser.remaining() == 0
        && composed == rdata
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
