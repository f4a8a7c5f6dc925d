//! State of RFC 5011 as text: one line for each zone, anchor and key, which an operator can read.
//!
//! Each line has a checksum, and the last line the number of lines, so an incomplete text is recognized. What can be read of a damaged one
//! still says which keys were revoked.

use crate::anchor::Data;
use crate::checksum::crc32;
use crate::key::{Key, Pending, State, Steady};
use crate::limits::LAST_ID;
use crate::name::{from_text, to_text};
use data_encoding::{BASE64, HEXUPPER};
use std::fmt::{self, Write};
use std::str::FromStr;

const MAGIC: &str = "sixfold-trust-anchors";
const VERSION: &str = "1";
const HEADING: &str =
    "# Trust anchors that Sixfold follows by RFC 5011. The server writes this file; changes are refused.\n";

/// State of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedZone {
    /// Zone: a wire name in lower case.
    pub zone: Box<[u8]>,
    /// Configured anchors with which the keys were learned.
    pub configured: Vec<Data>,
    /// Keys.
    pub keys: Vec<Key>,
    /// Inception and expiration, in seconds since 1970, of the newest set that was validated.
    pub newest: Option<(u64, u64)>,
    /// Steady clock at the last observation.
    pub clock: Option<Steady>,
    /// Number of the next new key.
    pub next_id: u32,
}

impl SavedZone {
    /// A zone of which nothing is known.
    pub fn new(zone: &[u8]) -> SavedZone {
        SavedZone {
            zone: zone.into(),
            configured: Vec::new(),
            keys: Vec::new(),
            newest: None,
            clock: None,
            next_id: 1,
        }
    }
}

/// State of all zones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// Counts up with each file that is written.
    pub serial: u64,
    /// Zones.
    pub zones: Vec<SavedZone>,
}

/// Key that was revoked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RevokedKey {
    /// Zone: a wire name in lower case.
    pub zone: Box<[u8]>,
    /// RDATA of its DNSKEY record, without the REVOKE bit.
    pub rdata: Box<[u8]>,
}

/// Reason why a text is no state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedError {
    /// Line, from 1; `None` if it is the whole text.
    pub line: Option<usize>,
    /// Fault.
    pub what: &'static str,
}

impl fmt::Display for SavedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.what),
            None => f.write_str(self.what),
        }
    }
}

impl std::error::Error for SavedError {}

impl Saved {
    /// Text of the state.
    pub fn text<'z>(serial: u64, zones: impl Iterator<Item = &'z SavedZone>) -> String {
        let mut out = Lines { text: HEADING.to_owned(), count: 0 };
        out.line(format_args!("{MAGIC} {VERSION} serial={serial}"));
        zones.for_each(|zone| out.zone(zone));
        let count = out.count;
        out.line(format_args!("end lines={count}"));
        out.text
    }

    /// Reads a text.
    ///
    /// # Errors
    ///
    /// The first line that is damaged or not understood, or that the end is missing.
    pub fn parse(text: &[u8]) -> Result<Saved, SavedError> {
        let mut reader = Reader { saved: None, count: 0, is_complete: false };
        for (number, line) in (1..).zip(text.split(|octet| *octet == b'\n')) {
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            reader.read(line).map_err(|what| SavedError { line: Some(number), what })?;
        }
        match reader.saved {
            _ if !reader.is_complete => Err(SavedError { line: None, what: "the last line is missing" }),
            None => Err(SavedError { line: None, what: "the first line is missing" }),
            Some(saved) => Ok(saved),
        }
    }

    /// Revoked keys in the undamaged lines of a text.
    pub fn revoked(text: &[u8]) -> Vec<RevokedKey> {
        let lines = text.split(|octet| *octet == b'\n').filter_map(|line| {
            let line = checked(line).ok()?.strip_prefix("key ")?;
            let (zone, words) = zone_and_words(line).ok()?;
            key(words)
                .ok()
                .filter(|key| key.state.is_revoked())
                .map(|key| RevokedKey { zone, rdata: key.rdata })
        });
        lines.collect()
    }
}

/// Lines with their checksums.
struct Lines {
    text: String,
    count: usize,
}

impl Lines {
    fn line(&mut self, line: fmt::Arguments<'_>) {
        let start = self.text.len();
        // Writing into a text cannot fail.
        let _ = self.text.write_fmt(line);
        let sum = crc32(&self.text.as_bytes()[start..]);
        let _ = writeln!(self.text, " check={sum:08x}");
        self.count += 1;
    }

    fn zone(&mut self, zone: &SavedZone) {
        let name = to_text(&zone.zone);
        let newest =
            Shown(zone.newest.map(|(inception, expiration)| format!(" newest={inception}:{expiration}")));
        let clock = Shown(zone.clock.map(|clock| format!(" clock={:032x}:{}", clock.boot, clock.seconds)));
        self.line(format_args!("zone {name} next={}{newest}{clock}", zone.next_id));
        for data in &zone.configured {
            self.line(format_args!("anchor {name} {data}"));
        }
        for key in &zone.keys {
            let pending = Shown(key.pending.as_ref().map(shown_pending));
            let data = Data::Dnskey(key.rdata.clone());
            let Key { id, state, since, held, .. } = key;
            let (tag, state) = (key.key_tag(), state.word());
            self.line(format_args!(
                "key {name} id={id} tag={tag} state={state} since={} held={held}{pending} {data}",
                time(*since)
            ));
        }
    }
}

fn shown_pending(pending: &Pending) -> String {
    let by: Vec<String> = pending.by.iter().map(u32::to_string).collect();
    let Pending { need, expiration, has_gap, .. } = pending;
    format!(" need={need} expiration={expiration} gap={has_gap} by={}", by.join(","))
}

/// A part of a line that may be missing.
struct Shown(Option<String>);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_deref().unwrap_or_default())
    }
}

/// A second since 1970 in RFC 3339's form; as a number, if that form has none for it.
fn time(second: u64) -> String {
    let time = i64::try_from(second).ok().and_then(|second| jiff::Timestamp::from_second(second).ok());
    time.map_or_else(|| second.to_string(), |time| time.to_string())
}

/// The state as far as it was read.
struct Reader {
    saved: Option<Saved>,
    count: usize,
    is_complete: bool,
}

impl Reader {
    fn read(&mut self, line: &[u8]) -> Result<(), &'static str> {
        let line = checked(line)?;
        let (kind, rest) = line.split_once(' ').ok_or("the line has one word only")?;
        if self.is_complete {
            return Err("lines follow the end");
        }
        match (kind, &mut self.saved) {
            (MAGIC, None) => self.saved = Some(first(rest)?),
            ("zone", Some(saved)) => {
                let zone = zone(rest)?;
                if saved.zones.iter().any(|other| other.zone == zone.zone) {
                    return Err("the zone is there twice");
                }
                saved.zones.push(zone);
            }
            ("anchor", Some(saved)) => {
                let (zone, words) = zone_and_words(rest)?;
                last(saved, &zone)?.configured.push(data(words)?);
            }
            ("key", Some(saved)) => {
                let (zone, words) = zone_and_words(rest)?;
                let zone = last(saved, &zone)?;
                let key = key(words)?;
                if key.id >= zone.next_id || zone.keys.iter().any(|other| other.id == key.id) {
                    return Err("the number of the key is one of another key");
                }
                // One state would have it trusted, another one revoked.
                if zone.keys.iter().any(|other| other.is_pair_of(&key.rdata)) {
                    return Err("the key is there twice");
                }
                zone.keys.push(key);
            }
            ("end", Some(_)) => {
                if number::<usize>(Some(rest), "lines=")? != self.count {
                    return Err("lines are missing before the end");
                }
                self.is_complete = true;
            }
            (_, None) => return Err("this is no state of trust anchors"),
            _ => return Err("the line is not known"),
        }
        self.count += 1;
        Ok(())
    }
}

/// Line without its checksum, which is right.
fn checked(line: &[u8]) -> Result<&str, &'static str> {
    const DAMAGED: &str = "the line is damaged or was changed";
    let text = str::from_utf8(line).map_err(|_| DAMAGED)?;
    let (line, sum) = text.rsplit_once(" check=").ok_or(DAMAGED)?;
    let is_right = sum.len() == 8 && u32::from_str_radix(sum, 16) == Ok(crc32(line.as_bytes()));
    if is_right { Ok(line) } else { Err(DAMAGED) }
}

fn first(rest: &str) -> Result<Saved, &'static str> {
    let mut words = rest.split(' ');
    if words.next() != Some(VERSION) {
        return Err("the file is of another version");
    }
    Ok(Saved { serial: number(words.next(), "serial=")?, zones: Vec::new() })
}

/// The zone whose lines are read.
fn last<'s>(saved: &'s mut Saved, zone: &[u8]) -> Result<&'s mut SavedZone, &'static str> {
    saved.zones.last_mut().filter(|last| *last.zone == *zone).ok_or("the line is not behind its zone")
}

fn zone_and_words(rest: &str) -> Result<(Box<[u8]>, std::str::Split<'_, char>), &'static str> {
    let mut words = rest.split(' ');
    let zone =
        from_text(words.next().unwrap_or_default().as_bytes(), b"\0").map_err(|_| "the zone is no name")?;
    Ok((zone, words))
}

fn zone(rest: &str) -> Result<SavedZone, &'static str> {
    let (zone, words) = zone_and_words(rest)?;
    let mut zone = SavedZone::new(&zone);
    let mut next = None;
    for word in words {
        let (name, value) = word.split_once('=').ok_or("a field has no value")?;
        match name {
            "next" => next = Some(parsed(value)?),
            "newest" => {
                let (inception, expiration) = value.split_once(':').ok_or("a field has half of its value")?;
                zone.newest = Some((parsed(inception)?, parsed(expiration)?));
            }
            "clock" => {
                let (boot, seconds) = value.split_once(':').ok_or("a field has half of its value")?;
                let boot = u128::from_str_radix(boot, 16).map_err(|_| "a field is no number")?;
                zone.clock = Some(Steady { boot, seconds: parsed(seconds)? });
            }
            _ => return Err("a field is not known"),
        }
    }
    zone.next_id = next.ok_or("a field is missing")?;
    if zone.next_id > LAST_ID {
        return Err("a number of a key is larger than any zone reaches");
    }
    Ok(zone)
}

fn key(mut words: std::str::Split<'_, char>) -> Result<Key, &'static str> {
    let id = number(words.next(), "id=")?;
    // The key says it itself; the field is for readers.
    let _: u16 = number(words.next(), "tag=")?;
    let state = words.next().and_then(|word| word.strip_prefix("state=")).ok_or("a field is missing")?;
    let state = State::ALL.into_iter().find(|known| known.word() == state).ok_or("the state is not known")?;
    let since =
        seconds(words.next().and_then(|word| word.strip_prefix("since=")).ok_or("a field is missing")?)?;
    let held = number(words.next(), "held=")?;
    let pending = if state == State::AddPend { Some(pending(&mut words)?) } else { None };
    let Data::Dnskey(rdata) = data(words)? else { return Err("a key is no DNSKEY record") };
    Ok(Key { id, rdata: crate::anchor::with_revoke(&rdata, false), state, since, held, pending })
}

fn pending(words: &mut std::str::Split<'_, char>) -> Result<Pending, &'static str> {
    let need = number(words.next(), "need=")?;
    let expiration = number(words.next(), "expiration=")?;
    let has_gap = number(words.next(), "gap=")?;
    let by = words.next().and_then(|word| word.strip_prefix("by=")).ok_or("a field is missing")?;
    let by = by.split(',').map(parsed).collect::<Result<_, _>>()?;
    Ok(Pending { need, expiration, has_gap, by })
}

/// DS or DNSKEY record behind the owner, as [`Data`] writes it.
fn data(mut words: std::str::Split<'_, char>) -> Result<Data, &'static str> {
    let rtype = words.next().ok_or("the record is missing")?;
    let mut field = || words.next().ok_or("the record has too few fields");
    let (first, second, third, octets) = (field()?, field()?, field()?, field()?);
    let first: u16 = parsed(first)?;
    let head = [&first.to_be_bytes()[..], &[parsed(second)?, parsed(third)?]].concat();
    if words.next().is_some() {
        return Err("the record has too many fields");
    }
    let rest = match rtype {
        "DS" => HEXUPPER.decode(octets.as_bytes()),
        "DNSKEY" => BASE64.decode(octets.as_bytes()),
        _ => return Err("the type of the record is not known"),
    };
    let rdata = [head, rest.map_err(|_| "the key or the digest is no text of octets")?].concat().into();
    Ok(if rtype == "DS" { Data::Ds(rdata) } else { Data::Dnskey(rdata) })
}

fn number<T: FromStr>(word: Option<&str>, name: &str) -> Result<T, &'static str> {
    parsed(word.and_then(|word| word.strip_prefix(name)).ok_or("a field is missing")?)
}

fn parsed<T: FromStr>(text: &str) -> Result<T, &'static str> {
    text.parse().map_err(|_| "a field is no number")
}

fn seconds(text: &str) -> Result<u64, &'static str> {
    match text.parse::<jiff::Timestamp>() {
        Ok(time) => u64::try_from(time.as_second()).map_err(|_| "a time lies before 1970"),
        Err(_) => parsed(text),
    }
}
