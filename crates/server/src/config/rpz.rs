//! Response policy zones as master files (RFC 1035 section 5, draft-vixie-dnsop-dns-rpz-00): from text to the tables of the
//! engine. What a record says is `engine::zone`'s to know; here it gets its line and column.

use super::limits;
use super::record::plain_record;
use super::report::{Fault, Item, Problems, quoted};
use super::zone_entries::{Chunk, Chunks};
use domain::base::iana;
use domain::zonefile::inplace::{Entry, ScannedRecord, Zonefile};
use engine::own::Record;
use engine::policy::{Policy, Zone};
use engine::zone::{Reading, Unfit};
use std::path::{Path, PathBuf};

/// Reads all zones, in order. What is wrong is noted at the place where the file is named.
pub fn read(files: Vec<Item<PathBuf>>, problems: &Problems) -> (Vec<PathBuf>, Policy) {
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
                    "name a master file that can be read; those of all zones may have {} octets together",
                    limits::RPZ_OCTETS
                );
                problems.add(&place, Fault::new(what, help));
            }
        }
        paths.push(path);
    }
    let policy = Policy::build(zones).unwrap_or_else(|error| {
        if let Some(place) = last {
            problems.add(&place, Fault::new(error.to_string(), "name fewer or smaller zones"));
        }
        Policy::default()
    });
    (paths, policy)
}

/// Reads one zone. Names without a dot at their end are below the last `$ORIGIN`, and below the root where there was none:
/// zones are handed out without the name that somebody else has given to them. `path` stands for the file in faults.
pub fn zone(path: &Path, text: &[u8]) -> Result<Zone, Vec<Fault>> {
    let mut reader = Zonefile::new();
    reader.set_origin(domain::base::Name::root_bytes());
    reader.set_default_class(iana::Class::IN);
    let (mut reading, mut faults): (Option<Reading>, Vec<Fault>) = (None, Vec::new());
    for Chunk { line, text, is_open } in (Chunks { line: 1, rest: text }) {
        if is_open {
            let (column, word) = word(text, true);
            let place = format!("{}:{line}:{column}", path.display());
            let what =
                format!("{place}: {} begins a record with a parenthesis that is not closed", quoted(&word));
            faults.push(Fault::new(what, "close the parenthesis, or delete it"));
            return Err(faults);
        }
        reader.extend_from_slice(text);
        if !text.ends_with(b"\n") {
            reader.extend_from_slice(b"\n");
        }
        loop {
            let fault = match reader.next_entry() {
                Ok(None) => break,
                Ok(Some(Entry::Record(record))) => match checked(&record, text) {
                    Ok(record) => {
                        let added = match &mut reading {
                            Some(reading) => reading.add(record),
                            None => Reading::begin(record).map(|begun| reading = Some(begun)),
                        };
                        let Err(unfit) = added else { continue };
                        let (what, help) = unfit.advice();
                        let (column, word) = offending(text, unfit);
                        let place = format!("{}:{line}:{column}", path.display());
                        Fault::new(format!("{place}: {}: {what}", quoted(&word)), help)
                    }
                    Err(why) => {
                        let (column, word) = word(text, true);
                        let place = format!("{}:{line}:{column}", path.display());
                        let what = format!("{place}: {} is not a record: {why}", quoted(&word));
                        Fault::new(what, "correct the record, or delete it")
                    }
                },
                Ok(Some(Entry::Include { .. })) => {
                    let what = format!("{}:{line}:1: `$INCLUDE` is not supported", path.display());
                    Fault::new(what, "put the records themselves into the file")
                }
                Err(error) => {
                    // What comes after it cannot be read reliably.
                    let what = format!("{}:{}", path.display(), located(&error.to_string(), line, text));
                    let help = "write OWNER TTL IN TYPE DATA, like `ads.example IN CNAME .`";
                    faults.push(Fault::new(what, help));
                    return Err(faults);
                }
            };
            faults.push(fault);
            // Without its beginning nothing in the file has a meaning.
            if faults.len() == limits::RPZ_FAULTS || reading.is_none() {
                return Err(faults);
            }
        }
    }
    match reading {
        Some(reading) if faults.is_empty() => Ok(reading.finish()),
        Some(_) => Err(faults),
        None => {
            let (what, help) = Unfit::NoSoa.advice();
            Err(vec![Fault::new(format!("{}:1:1: {what}", path.display()), help)])
        }
    }
}

/// A record, or why it is none. The reader takes an empty label for the end of a name.
fn checked(record: &ScannedRecord, text: &[u8]) -> Result<Record, &'static str> {
    let owner = text.split(|octet| octet.is_ascii_whitespace()).next().unwrap_or_default();
    if owner.windows(2).any(|pair| pair == b"..") {
        return Err("a label is empty");
    }
    plain_record(record)
}

/// What the reader says, which begins with line and column, and of which text. It may have gone on to the next line.
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

/// The column and the word that make a record unfit.
fn offending(text: &[u8], unfit: Unfit) -> (usize, String) {
    match unfit {
        Unfit::UnknownAction | Unfit::MissingDot => word(text, false),
        _ => word(text, true),
    }
}

/// The first word of a record, or the last one of its line.
fn word(text: &[u8], first: bool) -> (usize, String) {
    let line = text.split(|&octet| matches!(octet, b'\n' | b';')).next().unwrap_or_default();
    let mut words = line.split(|octet| octet.is_ascii_whitespace()).filter(|word| !word.is_empty());
    let word = if first { words.next() } else { words.next_back() }.unwrap_or_default();
    // Words are parts of the line.
    let column = word.as_ptr() as usize - line.as_ptr() as usize + 1;
    (if word.is_empty() { 1 } else { column }, String::from_utf8_lossy(word).into_owned())
}

#[cfg(test)]
#[path = "rpz_tests.rs"]
mod tests;
