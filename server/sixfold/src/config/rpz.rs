//! Response policy zones as master files (RFC 1035 section 5, draft-vixie-dnsop-dns-rpz-00): from text to the tables of
//! the engine. `engine::rpz` decides what a record means; this file gives each record its line and column, and reads on
//! behind one that cannot be used (`rpz_skipped.rs`).

use super::keys::Filter;
use super::model::{BadRecords, PolicyFile};
use super::record::{engine_record, syntax_reason};
use super::report::{Fault, Item, Problems, quoted};
use super::rpz_skipped::{BadRecord, Skipped};
use super::zone_entries::{Entries, EntryText};
use super::{Name, limits};
use domain::base::iana;
use domain::base::name::ToName;
use domain::zonefile::inplace::{Entry, ScannedRecord, Zonefile};
use engine::rpz::{NETWORKS, PolicyZone, ResponsePolicy, TRIGGERS, Trigger, ZoneSource};
use engine::rpz::{RpzRecordError, RpzZoneBuilder};
use std::path::Path;
use textfile::master;

/// Help for a text that is no record.
const RECORD_FORM: &str = "write OWNER TTL IN TYPE DATA, like `ads.example IN CNAME .`";

/// Reads all zones, in order. An error is reported at the place that names the file; records that are left out become warnings.
pub fn read(filter: &mut Filter, problems: &Problems, warnings: &mut Vec<String>) {
    let mut zones = Vec::new();
    let mut octets = limits::RPZ_OCTETS;
    let mut room = Room { triggers: TRIGGERS, networks: NETWORKS };
    let files = problems.items("filter.rpz", &filter.rpz);
    for Item { value: path, place } in &files {
        match super::regular_file::read(path, octets) {
            Ok(text) => {
                octets = octets.saturating_sub(text.len() as u64);
                match zone(path, &text, filter.rpz_bad_records) {
                    Ok(mut read) => {
                        if filter.rpz_bad_records == BadRecords::Skip {
                            read.keep_within(&mut room);
                        }
                        warnings.extend(read.skipped.warnings(path));
                        filter.zones.push(read.policy_file(path));
                        zones.push((read.zone, read.source));
                    }
                    Err(faults) => faults.into_iter().for_each(|fault| problems.add(place, fault)),
                }
            }
            Err(error) => {
                let what = format!("{}: {error}", path.display());
                let help = format!(
                    "name a master file that can be read; the files of all zones together may have {} octets",
                    limits::RPZ_OCTETS
                );
                problems.add(place, Fault::new(what, help));
            }
        }
    }
    let policy = ResponsePolicy::build_with_sources(zones).unwrap_or_else(|error| {
        if let Some(last) = files.last() {
            problems.add(&last.place, Fault::new(error.to_string(), "name fewer or smaller zones"));
        }
        ResponsePolicy::default()
    });
    filter.policy = policy.into();
}

/// Triggers that the tables of all zones have room for.
struct Room {
    triggers: usize,
    networks: usize,
}

impl Room {
    /// Takes the place of a trigger. Returns false if there is none.
    fn take(&mut self, trigger: &Trigger) -> bool {
        let is_network = matches!(trigger, Trigger::Address(_) | Trigger::Client(_));
        let fits = self.triggers > 0 && (!is_network || self.networks > 0);
        self.triggers -= usize::from(fits);
        self.networks -= usize::from(fits && is_network);
        fits
    }
}

/// A zone that was read.
#[derive(Debug)]
pub struct ReadZone {
    /// The zone.
    pub zone: PolicyZone,
    /// The lines of its rules.
    pub source: ZoneSource,
    /// Records that were taken, with those of the zone itself.
    pub records: usize,
    /// Records that were left out.
    pub skipped: Skipped,
}

impl ReadZone {
    /// Leaves out the last triggers, if there is no room for them.
    fn keep_within(&mut self, room: &mut Room) {
        let before = self.zone.entries.len();
        let fits: Vec<bool> = self.zone.entries.iter().map(|entry| room.take(&entry.trigger)).collect();
        let mut kept = fits.iter();
        self.zone.entries.retain(|_| *kept.next().expect("one for each entry"));
        let mut kept = fits.iter();
        self.source.lines.retain(|_| *kept.next().expect("one for each entry"));
        self.skipped.add_beyond_limits(before - self.zone.entries.len());
    }

    /// The zone for whoever asks what was loaded.
    fn policy_file(&self, path: &Path) -> PolicyFile {
        let soa = &self.zone.soa;
        // The five numbers at the end of an SOA record begin with the serial number (RFC 1035 section 3.3.13).
        let serial = soa.rdata.last_chunk::<20>().and_then(|numbers| numbers.first_chunk::<4>());
        PolicyFile {
            file: path.to_owned(),
            zone: Name::from_wire(&soa.owner),
            serial: serial.map_or(0, |serial| u32::from_be_bytes(*serial)),
            records: self.records,
            skipped: self.skipped.count(),
            modified: std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok(),
        }
    }
}

/// Reads one zone. A name without a dot at its end is below the last `$ORIGIN`. Without one it is below the zone, if the SOA record
/// names it with a dot at the end, or else below the root: providers hand out zones without the zone name that each operator
/// chooses. `path` stands for the file in faults.
///
/// # Errors
///
/// Faults with file, line and column, and the remedy: a record cannot be read or is no rule, if `bad_records` does not allow to skip
/// it, or the zone has no SOA record or is too large.
pub fn zone(path: &Path, text: &[u8], bad_records: BadRecords) -> Result<ReadZone, Vec<Fault>> {
    let mut reader = ZoneReader::new(path, bad_records);
    let mut entries = Entries::of(text);
    let mut open = 0;
    while let Some(entry) = entries.next() {
        let read = if entry.is_open {
            open += 1;
            if open < limits::RPZ_OPEN {
                entries = entry.behind_first_line();
            }
            reader.take_open(&entry)
        } else {
            reader.read_entry(&entry)
        };
        if read.is_err() {
            return Err(reader.faults);
        }
    }
    let ZoneReader { zone, taken, faults, skipped, .. } = reader;
    match zone {
        Some(zone) if faults.is_empty() => {
            let (zone, source) = zone.finish_with_source(&path.display().to_string());
            Ok(ReadZone { zone, source, records: taken, skipped })
        }
        Some(_) => Err(faults),
        None => {
            let (what, help) = RpzRecordError::NoSoa.advice();
            let none = || Fault::new(format!("{}:1:1: {what}", path.display()), help);
            Err(vec![skipped.first().map_or_else(none, |first| first.fault(path))])
        }
    }
}

/// The faults make further reading useless.
struct GiveUp;

/// Reader of one zone.
struct ZoneReader<'p> {
    path: &'p Path,
    bad_records: BadRecords,
    records: Zonefile,
    /// Lines that `records` has been given.
    lines: usize,
    /// True once the file has named an origin.
    has_origin: bool,
    /// Text of the last `$TTL`.
    ttl_directive: Vec<u8>,
    /// The last record, whose owner and TTL the next one may inherit.
    last: Option<ScannedRecord>,
    /// The zone so far; none before its SOA record.
    zone: Option<RpzZoneBuilder>,
    /// Records that were taken.
    taken: usize,
    faults: Vec<Fault>,
    skipped: Skipped,
}

fn new_reader() -> Zonefile {
    let mut reader = Zonefile::new();
    reader.set_default_class(iana::Class::IN);
    reader
}

impl<'p> ZoneReader<'p> {
    fn new(path: &'p Path, bad_records: BadRecords) -> ZoneReader<'p> {
        let mut records = new_reader();
        records.set_origin(domain::base::Name::root_bytes());
        ZoneReader {
            path,
            bad_records,
            records,
            lines: 0,
            has_origin: false,
            ttl_directive: Vec::new(),
            last: None,
            zone: None,
            taken: 0,
            faults: Vec::new(),
            skipped: Skipped::default(),
        }
    }

    /// Takes an entry whose parenthesis is never closed.
    fn take_open(&mut self, entry: &EntryText<'_>) -> Result<(), GiveUp> {
        let (column, word) = first_word(entry.text);
        let reason = "begins a record with a parenthesis that is not closed";
        self.start_anew(master::owner(entry.text).map(<[u8]>::to_vec), false);
        let what = format!("{} {reason}", quoted(&word));
        let help = "close the parenthesis, or delete it";
        self.add_bad(BadRecord { line: entry.line, column, reason: reason.into(), what, help })
    }

    /// Reads the records of one entry.
    fn read_entry(&mut self, entry: &EntryText<'_>) -> Result<(), GiveUp> {
        let &EntryText { line, text, .. } = entry;
        let is_directive =
            |word: &[u8]| text.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word));
        let argument = words(first_line(text)).nth(1).unwrap_or_default();
        if is_directive(b"$ORIGIN") && has_empty_label(argument) {
            self.start_anew(self.last_owner(), true);
            return self.add_bad(Unfit::Owner.placed(line, text));
        }
        let lines_before = self.lines;
        self.lines += text.iter().filter(|&&octet| octet == b'\n').count();
        self.records.extend_from_slice(&master::in_seconds(text));
        if !text.ends_with(b"\n") {
            self.records.extend_from_slice(b"\n");
        }
        loop {
            match self.records.next_entry() {
                Ok(None) => {
                    self.has_origin |= is_directive(b"$ORIGIN");
                    if is_directive(b"$TTL") {
                        self.ttl_directive = master::in_seconds(text).into_owned();
                    }
                    return Ok(());
                }
                Ok(Some(Entry::Record(record))) => {
                    let unfit = self.take(&record, line, text);
                    self.last = Some(record);
                    if let Err(unfit) = unfit {
                        let bad = unfit.placed(line, text);
                        if matches!(unfit, Unfit::Owner) {
                            self.start_anew(None, false);
                            return self.add_bad(bad);
                        }
                        self.add_bad(bad)?;
                    }
                }
                Ok(Some(Entry::Include { .. })) => {
                    let what = "`$INCLUDE` is not supported".to_owned();
                    let help = "put the records themselves into the file";
                    self.add_bad(BadRecord { line, column: 1, reason: what.clone(), what, help })?;
                }
                Err(error) => {
                    let bad = located(&error.to_string(), lines_before, line, text);
                    let owner = master::owner(text).map(<[u8]>::to_vec).or_else(|| self.last_owner());
                    self.start_anew(owner, is_directive(b"$ORIGIN"));
                    return self.add_bad(bad);
                }
            }
        }
    }

    /// Takes a record into the zone. The first one must be the SOA record.
    fn take(&mut self, record: &ScannedRecord, line: usize, text: &[u8]) -> Result<(), Unfit> {
        let owner = text.split(|octet| octet.is_ascii_whitespace()).next().unwrap_or_default();
        if has_empty_label(owner) {
            return Err(Unfit::Owner);
        }
        let converted = engine_record(record).map_err(Unfit::Data)?;
        match &mut self.zone {
            Some(zone) => {
                zone.at_line(u32::try_from(line).unwrap_or(0));
                zone.add(converted).map_err(Unfit::Policy)?;
            }
            None => {
                self.zone = Some(RpzZoneBuilder::begin(converted).map_err(Unfit::Policy)?);
                if !self.has_origin && owner.len() > 1 && owner.ends_with(b".") {
                    self.records.set_origin(record.owner().to_name());
                }
            }
        }
        self.taken += 1;
        Ok(())
    }

    /// Replaces the parser, which is in the middle of an entry after an error. The new one has the origin and the TTLs, and
    /// `owner` for records that inherit it. After an error in `$ORIGIN` there is no origin: relative names would be taken for
    /// others.
    fn start_anew(&mut self, owner: Option<Vec<u8>>, is_origin: bool) {
        let origin = self.records.origin().ok().filter(|_| !is_origin);
        let fresh = |text: &[u8]| {
            let mut reader = new_reader();
            origin.iter().for_each(|origin| reader.set_origin(origin.clone()));
            reader.extend_from_slice(&self.ttl_directive);
            reader.extend_from_slice(text);
            reader
        };
        let ttl = self.last.as_ref().map_or(limits::DEFAULT_TTL, |last| last.ttl().as_secs());
        let record = owner.map(|owner| [&owner[..], format!(" {ttl} IN TXT \"\"\n").as_bytes()].concat());
        let mut records = fresh(record.as_deref().unwrap_or_default());
        self.last = match records.next_entry() {
            Ok(Some(Entry::Record(record))) => Some(record),
            _ => None,
        };
        // The owner may be what is wrong.
        self.records = if self.last.is_some() { records } else { fresh(b"") };
        self.lines = 0;
        self.lines += self.ttl_directive.iter().filter(|&&octet| octet == b'\n').count();
        self.lines += usize::from(self.last.is_some());
    }

    /// The absolute owner of the last record.
    fn last_owner(&self) -> Option<Vec<u8>> {
        Some(self.last.as_ref()?.owner().fmt_with_dot().to_string().into_bytes())
    }

    /// Adds a record that cannot be used. As a fault it makes the rest useless if there are many, or if it stands in the place of
    /// the SOA record, without which a zone has no meaning.
    fn add_bad(&mut self, bad: BadRecord) -> Result<(), GiveUp> {
        if self.bad_records == BadRecords::Skip {
            self.skipped.add(bad);
            return Ok(());
        }
        self.faults.push(bad.fault(self.path));
        let is_useless = self.faults.len() == limits::RPZ_FAULTS || self.zone.is_none();
        if is_useless { Err(GiveUp) } else { Ok(()) }
    }
}

/// True if a name has an empty label, which the parser takes for the end of the name.
fn has_empty_label(name: &[u8]) -> bool {
    name.windows(2).any(|pair| pair == b"..")
}

/// The reason why a record that the parser has read cannot be used.
enum Unfit {
    /// The parser has misread the owner.
    Owner,
    /// The data cannot be in a message.
    Data(&'static str),
    /// It cannot be part of a policy.
    Policy(RpzRecordError),
}

impl Unfit {
    /// The record with its place.
    fn placed(&self, line: usize, text: &[u8]) -> BadRecord {
        let bad = |(column, word): (usize, String), reason: &str, what: String, help| BadRecord {
            line,
            column,
            reason: reason.to_owned(),
            what: format!("{}{what}", quoted(&word)),
            help,
        };
        match self {
            Unfit::Policy(unfit) => {
                let (what, help) = unfit.advice();
                bad(offending_word(text, *unfit), what, format!(": {what}"), help)
            }
            Unfit::Owner | Unfit::Data(_) => {
                let why = if let Unfit::Data(why) = self { why } else { "a label is empty" };
                let help = "correct the record, or delete it";
                bad(first_word(text), why, format!(" is not a record: {why}"), help)
            }
        }
    }
}

/// A record that the parser does not understand. Its error begins with line and column; `lines_before` are those that it had read
/// before the record. It may have gone on to the next line.
fn located(error: &str, lines_before: usize, line: usize, text: &[u8]) -> BadRecord {
    let shown = String::from_utf8_lossy(text);
    let lines = shown.lines().count();
    let shown = quoted(shown.lines().next().unwrap_or_default().trim());
    let mut parts = error.splitn(3, ':');
    let mut number = || parts.next().and_then(|part| part.parse::<usize>().ok()).unwrap_or(usize::MAX);
    let (found, column) = (number(), number());
    let reason = syntax_reason(parts.next().unwrap_or(error).trim(), text);
    let (line, column) = match found.checked_sub(lines_before + 1) {
        Some(further) if further < lines => (line + further, column),
        _ => (line, 1),
    };
    BadRecord { line, column, what: format!("{reason} in {shown}"), reason, help: RECORD_FORM }
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
