//! The tables `[local]` and `[filter]`: what is answered before anything is asked upstream.

use super::document::path;
use super::report::{Fault, Item, Place, Problems, quoted};
use super::table::Table;
use super::zone_entries::Nesting;
use super::{Name, limits};
use domain::base::iana;
use domain::base::name::{ParsedName, ToLabelIter};
use domain::base::rdata::{ComposeRecordData, ParseRecordData};
use domain::dep::octseq::Parser;
use domain::rdata::ZoneRecordData;
use domain::zonefile::inplace::{Entry, ScannedRecord, Zonefile};
use engine::own::Record;
use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use wire::Type;

/// TTL of what a hosts file says, in seconds: it may change any time, and a reload reads it again.
const HOSTS_TTL: u32 = 60;

/// A record as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalRecord {
    /// The text.
    pub text: String,
    /// What it says.
    pub record: Record,
}

/// What the tables say.
#[derive(Debug, Default)]
pub struct LocalDraft {
    pub records: Vec<Item<LocalRecord>>,
    pub hosts_file: Option<Item<PathBuf>>,
}

/// Reads `[local]`.
pub fn local(mut table: Table<'_>) -> LocalDraft {
    let records = table.list("records", "a record", record).unwrap_or_default();
    let hosts_file = path(&mut table, "hosts-file");
    table.finish();
    LocalDraft { records, hosts_file }
}

/// Reads `[filter]`: the blocked names, and the paths of response policy zones.
pub fn filter(mut table: Table<'_>) -> (Vec<Item<Name>>, Vec<Item<PathBuf>>) {
    let block = table.list("block", "a domain name", Name::parse).unwrap_or_default();
    let rpz = table.list("rpz", "a path", |text| match text {
        "" => Err(Fault::new("this path is empty", "write the path of a response policy zone")),
        _ => Ok(PathBuf::from(text)),
    });
    table.finish();
    (block, rpz.unwrap_or_default())
}

/// A record in the presentation format (RFC 1035 section 5.1); names are absolute, and a TTL that is absent is an hour.
fn record(text: &str) -> Result<LocalRecord, Fault> {
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

/// What cannot stand together, and what is too much for an answer.
pub fn check(records: &[Item<LocalRecord>], problems: &Problems) {
    let mut names: BTreeMap<&[u8], (bool, bool, usize)> = BTreeMap::new();
    let mut known = HashSet::new();
    for item in records {
        let Record { owner, rtype, rdata, .. } = &item.value.record;
        let (aliases, others, octets) = names.entry(owner).or_default();
        *octets += 12 + rdata.len();
        // Another record beside an alias, or an alias beside another record.
        let is_odd = *aliases || *others && *rtype == Type::CNAME;
        let fault = if !known.insert((owner, rtype, rdata)) {
            Some(("the record is there twice", "delete one of the two"))
        } else if is_odd {
            Some((
                "a name with a CNAME record can have no other record (RFC 1034 section 3.6.2)",
                "delete one of the two",
            ))
        } else if *octets > limits::LOCAL_OCTETS {
            Some(("the records of one name are too long for an answer", "give it fewer records"))
        } else {
            None
        };
        if let Some((what, help)) = fault {
            problems.add(&item.place, Fault::new(format!("{}: {what}", quoted(&item.value.text)), help));
        }
        *aliases |= *rtype == Type::CNAME;
        *others |= *rtype != Type::CNAME;
    }
}

/// Reads a hosts file.
pub fn hosts(file: &Path, place: &Place, problems: &Problems, warnings: &mut Vec<String>) -> Vec<Record> {
    match super::regular_file::read(file, limits::FILE_OCTETS) {
        Ok(text) => hosts_text(file, &text, warnings),
        Err(error) => {
            let what = format!("{}: {error}", file.display());
            problems
                .add(place, Fault::new(what, "name a hosts file that can be read, or delete `hosts-file`"));
            Vec::new()
        }
    }
}

/// Reads the text of a hosts file (hosts(5)): an address record for each name, and the reverse name of each address for its
/// first. Lines that say nothing are told as warnings, in which `file` stands for it.
pub fn hosts_text(file: &Path, text: &[u8], warnings: &mut Vec<String>) -> Vec<Record> {
    let (mut records, mut known, mut named) = (Vec::new(), HashSet::new(), HashSet::new());
    let mut left_out = 0;
    let mut skip = |number: usize, word: &str, why: &str| {
        left_out += 1;
        if left_out <= limits::HOSTS_WARNINGS {
            warnings.push(format!("{}:{number}: left out: {} {why}", file.display(), quoted(word)));
        }
    };
    for (number, line) in (1..).zip(String::from_utf8_lossy(text).lines()) {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let Some(address) = words.next() else { continue };
        let Ok(address) = address.parse::<IpAddr>() else {
            skip(number, address, "is no address");
            continue;
        };
        let mut add = |owner: &[u8], rtype, rdata: &[u8]| {
            let record = Record { owner: owner.into(), rtype, ttl: HOSTS_TTL, rdata: rdata.into() };
            if known.insert((record.owner.clone(), record.rdata.clone())) {
                records.push(record);
            }
        };
        let mut reverse = named.insert(address).then(|| reverse_name(address));
        for word in words {
            match Name::parse(word) {
                Ok(name) => {
                    match address {
                        IpAddr::V4(address) => add(name.wire(), Type::A, &address.octets()),
                        IpAddr::V6(address) => add(name.wire(), Type::AAAA, &address.octets()),
                    }
                    if let Some(reverse) = reverse.take() {
                        add(&reverse, Type::PTR, name.wire());
                    }
                }
                Err(_) => skip(number, word, "is no name"),
            }
        }
    }
    if left_out > limits::HOSTS_WARNINGS {
        warnings.push(format!("{}: left out: {left_out} words in all", file.display()));
    }
    records
}

fn reverse_name(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => {
            let mut name = [0; pref64::reverse::IN_ADDR_NAME_MAX];
            let length = pref64::reverse::write_in_addr(address.octets(), &mut name);
            name[..length].to_vec()
        }
        IpAddr::V6(address) => {
            let mut name = [0; pref64::reverse::IP6_NAME];
            pref64::reverse::write_ip6(address.octets(), &mut name);
            name.to_vec()
        }
    }
}
