//! Response policy zones as master files (RFC 1035 section 5, draft-vixie-dnsop-dns-rpz-00): from text to the tables of
//! the engine. `engine::rpz` decides what a record means; this file gives each record its line and column.

use super::limits;
use super::record::engine_record;
use super::report::{Fault, Item, Problems, quoted};
use super::zone_entries::{Entries, EntryText};
use domain::base::iana;
use domain::zonefile::inplace::{Entry, ScannedRecord, Zonefile};
use engine::local::LocalRecord;
use engine::rpz::{PolicyZone, ResponsePolicy};
use engine::rpz::{RpzRecordError, RpzZoneBuilder};
use std::path::{Path, PathBuf};

/// Reads all zones, in order. An error is reported at the place that names the file.
pub fn read(files: Vec<Item<PathBuf>>, problems: &Problems) -> (Vec<PathBuf>, ResponsePolicy) {
    let (mut paths, mut zones) = (Vec::new(), Vec::new());
    let mut room = limits::RPZ_OCTETS;
    let last = files.last().map(|item| item.place.clone());
    for Item { value: path, place } in files {
        match super::regular_file::read(&path, room) {
            Ok(text) => {
                room -= text.len() as u64;
                match zone(&path, &text) {
                    Ok(zone) => zones.push(zone),
                    Err(faults) => faults.into_iter().for_each(|fault| problems.add(&place, fault)),
                }
            }
            Err(error) => {
                let what = format!("{}: {error}", path.display());
                let help = format!(
                    "name a master file that can be read; the files of all zones together may have {} octets",
                    limits::RPZ_OCTETS
                );
                problems.add(&place, Fault::new(what, help));
            }
        }
        paths.push(path);
    }
    let policy = ResponsePolicy::build(zones).unwrap_or_else(|error| {
        if let Some(place) = last {
            problems.add(&place, Fault::new(error.to_string(), "name fewer or smaller zones"));
        }
        ResponsePolicy::default()
    });
    (paths, policy)
}

/// Reads one zone. A name without a dot at its end is below the last `$ORIGIN`, or below the root without one: providers
/// hand out zones without the zone name that each operator chooses. `path` stands for the file in faults.
pub fn zone(path: &Path, text: &[u8]) -> Result<PolicyZone, Vec<Fault>> {
    let mut reader = ZoneReader::new(path);
    for entry in Entries::of(text) {
        if reader.read_entry(&entry).is_err() {
            return Err(reader.faults);
        }
    }
    match reader.zone {
        Some(zone) if reader.faults.is_empty() => Ok(zone.finish()),
        Some(_) => Err(reader.faults),
        None => {
            let (what, help) = RpzRecordError::NoSoa.advice();
            Err(vec![Fault::new(format!("{}:1:1: {what}", path.display()), help)])
        }
    }
}

/// The faults make further reading useless.
struct GiveUp;

/// Reader of one zone.
struct ZoneReader<'p> {
    path: &'p Path,
    records: Zonefile,
    /// The zone so far; none before its SOA record.
    zone: Option<RpzZoneBuilder>,
    faults: Vec<Fault>,
}

impl<'p> ZoneReader<'p> {
    fn new(path: &'p Path) -> ZoneReader<'p> {
        let mut records = Zonefile::new();
        records.set_origin(domain::base::Name::root_bytes());
        records.set_default_class(iana::Class::IN);
        ZoneReader { path, records, zone: None, faults: Vec::new() }
    }

    /// Reads the records of one entry.
    fn read_entry(&mut self, entry: &EntryText<'_>) -> Result<(), GiveUp> {
        let &EntryText { line, text, is_open } = entry;
        if is_open {
            let (column, word) = first_word(text);
            let what = format!("{} begins a record with a parenthesis that is not closed", quoted(&word));
            self.faults.push(self.fault(line, column, &what, "close the parenthesis, or delete it"));
            return Err(GiveUp);
        }
        self.records.extend_from_slice(text);
        if !text.ends_with(b"\n") {
            self.records.extend_from_slice(b"\n");
        }
        loop {
            let record = match self.records.next_entry() {
                Ok(None) => return Ok(()),
                Ok(Some(Entry::Record(record))) => checked_record(&record, text),
                Ok(Some(Entry::Include { .. })) => {
                    let help = "put the records themselves into the file";
                    let fault = self.fault(line, 1, "`$INCLUDE` is not supported", help);
                    self.add_fault(fault)?;
                    continue;
                }
                Err(error) => {
                    // The entries after it cannot be parsed reliably.
                    let error = located(&error.to_string(), line, text);
                    let help = "write OWNER TTL IN TYPE DATA, like `ads.example IN CNAME .`";
                    self.faults.push(Fault::new(format!("{}:{error}", self.path.display()), help));
                    return Err(GiveUp);
                }
            };
            let fault = match record {
                Ok(record) => match self.add_record(record) {
                    Ok(()) => continue,
                    Err(unfit) => {
                        let (what, help) = unfit.advice();
                        let (column, word) = offending_word(text, unfit);
                        self.fault(line, column, &format!("{}: {what}", quoted(&word)), help)
                    }
                },
                Err(why) => {
                    let (column, word) = first_word(text);
                    let what = format!("{} is not a record: {why}", quoted(&word));
                    self.fault(line, column, &what, "correct the record, or delete it")
                }
            };
            self.add_fault(fault)?;
        }
    }

    /// Adds a record to the zone. The first one must be the SOA record.
    fn add_record(&mut self, record: LocalRecord) -> Result<(), RpzRecordError> {
        match &mut self.zone {
            Some(zone) => zone.add(record),
            None => RpzZoneBuilder::begin(record).map(|begun| self.zone = Some(begun)),
        }
    }

    /// Adds a fault. Without its first record the rest of a zone has no meaning.
    fn add_fault(&mut self, fault: Fault) -> Result<(), GiveUp> {
        self.faults.push(fault);
        let is_useless = self.faults.len() == limits::RPZ_FAULTS || self.zone.is_none();
        if is_useless { Err(GiveUp) } else { Ok(()) }
    }

    fn fault(&self, line: usize, column: usize, what: &str, help: &str) -> Fault {
        Fault::new(format!("{}:{line}:{column}: {what}", self.path.display()), help)
    }
}

/// Converts a record, and checks its owner: the parser takes an empty label for the end of the name. The error is the
/// reason why it is not a record.
fn checked_record(record: &ScannedRecord, text: &[u8]) -> Result<LocalRecord, &'static str> {
    let owner = text.split(|octet| octet.is_ascii_whitespace()).next().unwrap_or_default();
    if owner.windows(2).any(|pair| pair == b"..") {
        return Err("a label is empty");
    }
    engine_record(record)
}

/// The parser's error, which begins with line and column, and the text that it is about. The parser may have gone on to
/// the next line.
fn located(error: &str, line: usize, text: &[u8]) -> String {
    let shown = String::from_utf8_lossy(text);
    let lines = shown.lines().count();
    let shown = quoted(shown.lines().next().unwrap_or_default().trim());
    let mut parts = error.splitn(3, ':');
    let mut number = || parts.next().and_then(|part| part.parse::<usize>().ok()).unwrap_or(usize::MAX);
    let (found, column) = (number(), number());
    let why = parts.next().unwrap_or(error).trim();
    if found < line + lines {
        format!("{found}:{column}: {why} in {shown}")
    } else {
        format!("{line}:1: {why} in {shown}")
    }
}

/// Column and text of the word that the engine rejects.
fn offending_word(text: &[u8], unfit: RpzRecordError) -> (usize, String) {
    match unfit {
        RpzRecordError::UnknownAction | RpzRecordError::MissingDot => {
            let line = first_line(text);
            with_column(line, words(line).next_back())
        }
        _ => first_word(text),
    }
}

/// Column and text of the first word of a record.
fn first_word(text: &[u8]) -> (usize, String) {
    let line = first_line(text);
    with_column(line, words(line).next())
}

/// The first line of a record, without a comment.
fn first_line(text: &[u8]) -> &[u8] {
    text.split(|&octet| matches!(octet, b'\n' | b';')).next().unwrap_or_default()
}

fn words(line: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    line.split(|octet| octet.is_ascii_whitespace()).filter(|word| !word.is_empty())
}

/// A word, which is a part of `line`, with its column from 1.
fn with_column(line: &[u8], word: Option<&[u8]>) -> (usize, String) {
    let Some(word) = word else { return (1, String::new()) };
    let column = word.as_ptr() as usize - line.as_ptr() as usize + 1;
    (column, String::from_utf8_lossy(word).into_owned())
}

#[cfg(test)]
#[path = "rpz_tests.rs"]
mod tests;
