//! Loads a master file: `domain` parses the entries, `$GENERATE` is expanded first, and each error names its line.

use super::entries::{Entries, EntriesError, Piece, line_of_record};
use super::generate::{Generate, GenerateError};
use super::name::without_first_label;
use super::records::Records;
use super::store::{MAX_NAME, Node, RrSet, Store, StoreError};
use crate::limits;
use domain::base::iana::Class;
use domain::base::name::ToLabelIter;
use domain::base::rdata::ComposeRecordData;
use domain::zonefile::inplace::{Entry, ScannedRecord, Zonefile};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use wire::Type;

/// Reason why a master file cannot be served. Its text names the file, the line and the remedy.
#[derive(Debug)]
pub struct LoadError {
    file: PathBuf,
    line: Option<u64>,
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    Read(io::Error),
    Unterminated,
    Syntax(String),
    Generate(GenerateError),
    GenerateSyntax(String),
    Include,
    Class,
    Ttl(u32),
    NoSoa,
    FirstIsNotSoa,
    SecondSoa,
    Outside(String),
    Alias(String),
    Dname,
    Store(StoreError),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        f.write_str(": ")?;
        match &self.cause {
            Cause::Read(error) => write!(f, "cannot be read: {error}"),
            Cause::Unterminated => write!(
                f,
                "the entry that begins here does not end within {} octets; close its parenthesis or quote",
                limits::ENTRY
            ),
            Cause::Syntax(text) => write!(
                f,
                "{text}; write the entry as in RFC 1035 section 5.1: [NAME] [TTL] [CLASS] TYPE DATA, times in seconds"
            ),
            Cause::Generate(error) => error.fmt(f),
            Cause::GenerateSyntax(text) => {
                write!(f, "{text} in a line that this $GENERATE expands to; correct its name, type or data")
            }
            Cause::Include => {
                f.write_str("$INCLUDE is not supported; replace it with the text of the included file")
            }
            Cause::Class => f.write_str("only class IN can be served; leave this record out"),
            Cause::Ttl(seconds) => write!(
                f,
                "a TTL of {seconds} s is above the maximum (RFC 2181 section 8); write at most {}",
                limits::TTL_SECS
            ),
            Cause::NoSoa => f.write_str("has no records; begin with the SOA record of the zone"),
            Cause::FirstIsNotSoa => {
                f.write_str("the first record must be the SOA record of the zone; put it there")
            }
            Cause::SecondSoa => f.write_str("a zone has one SOA record; leave this one out"),
            Cause::Outside(name) => {
                write!(f, "{name} is not in the zone; leave the record out or correct $ORIGIN")
            }
            Cause::Alias(name) => write!(
                f,
                "{name} has a CNAME record and another one (RFC 2181 section 10.1); leave one of them out"
            ),
            Cause::Dname => f.write_str("DNAME is not supported; write CNAME records for the names below"),
            Cause::Store(StoreError::Full) => {
                f.write_str("the zone is larger than 16 GiB of names and records; split it")
            }
            Cause::Store(StoreError::SetTooLarge) => {
                f.write_str("more records of this name and type than a message can carry; leave some out")
            }
            Cause::Store(StoreError::NameTooLong) => f.write_str("the name is too long; shorten it"),
        }
    }
}

impl std::error::Error for LoadError {}

impl Records {
    /// Loads a master file.
    pub fn load(file: &Path) -> Result<Records, LoadError> {
        let failed = |line, cause| LoadError { file: file.to_owned(), line, cause };
        let source = File::open(file).map_err(|error| failed(None, Cause::Read(error)))?;
        Records::read(source).map_err(|(line, cause)| failed(line, cause))
    }

    /// Loads a master file from any source; errors name it `text`.
    pub fn parse(text: impl Read) -> Result<Records, LoadError> {
        Records::read(text).map_err(|(line, cause)| LoadError { file: "text".into(), line, cause })
    }

    fn read(source: impl Read) -> Result<Records, (Option<u64>, Cause)> {
        let mut entries = Entries::new(source);
        let mut loader = Loader::new();
        loop {
            let piece = match entries.next() {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(EntriesError::Read(error)) => return Err((None, Cause::Read(error))),
                Err(EntriesError::Unterminated(line)) => return Err((Some(line), Cause::Unterminated)),
            };
            loader.take(&piece).map_err(|(line, cause)| (Some(line), cause))?;
        }
        loader.finish().map_err(|cause| (None, cause))
    }
}

/// A zone while it is loaded.
struct Loader {
    reader: Zonefile,
    store: Store,
    /// The zone's name in lower case, once its SOA record was read.
    apex: Option<Vec<u8>>,
    /// RDATA of the current record.
    rdata: Vec<u8>,
    has_cuts: bool,
    has_wildcards: bool,
}

impl Loader {
    fn new() -> Loader {
        let mut reader = Zonefile::new();
        reader.set_default_class(Class::IN);
        let (apex, rdata) = (None, Vec::new());
        Loader { reader, store: Store::new(), apex, rdata, has_cuts: false, has_wildcards: false }
    }

    /// Adds a piece of the file. An error comes with its line.
    fn take(&mut self, piece: &Piece<'_>) -> Result<(), (u64, Cause)> {
        let is_generate = piece.text.get(..9).is_some_and(|word| word.eq_ignore_ascii_case(b"$GENERATE"));
        if !is_generate {
            return self.take_text(piece.text).map_err(|(count, cause)| {
                let line = if piece.is_directive {
                    piece.line
                } else {
                    line_of_record(piece.text, piece.line, count)
                };
                (line, cause)
            });
        }
        let generate = Generate::read(piece.text).map_err(|error| (piece.line, Cause::Generate(error)))?;
        let done = generate.expand(limits::ENTRY, |lines| {
            let done = self.take_text(lines.as_bytes());
            lines.clear();
            done
        });
        done.map_err(|(_, cause)| match cause {
            Cause::Syntax(text) => (piece.line, Cause::GenerateSyntax(text)),
            cause => (piece.line, cause),
        })
    }

    /// Adds whole entries. An error comes with the number of records before it.
    fn take_text(&mut self, text: &[u8]) -> Result<(), (u64, Cause)> {
        self.reader.extend_from_slice(text);
        let mut count = 0;
        loop {
            match self.reader.next_entry() {
                Ok(Some(Entry::Record(record))) => self.add(&record).map_err(|cause| (count, cause))?,
                Ok(Some(Entry::Include { .. })) => return Err((count, Cause::Include)),
                Ok(None) => return Ok(()),
                Err(error) => {
                    // The error text begins with line and column in `text`, not in the file: remove them.
                    let text = error.to_string();
                    let text = text.splitn(3, ':').nth(2).unwrap_or(&text).trim().to_owned();
                    return Err((count, Cause::Syntax(text)));
                }
            }
            count += 1;
        }
    }

    fn add(&mut self, record: &ScannedRecord) -> Result<(), Cause> {
        if record.class() != Class::IN {
            return Err(Cause::Class);
        }
        let ttl_secs = record.ttl().as_secs();
        if ttl_secs > limits::TTL_SECS {
            return Err(Cause::Ttl(ttl_secs));
        }
        let rtype = Type(record.rtype().to_int());
        let (mut octets, mut length) = ([0; 255], 0);
        for label in record.owner().iter_labels() {
            let end = length + 1 + label.len();
            octets[length] = label.len() as u8;
            octets[length + 1..end].copy_from_slice(label.as_slice());
            length = end;
        }
        let name = &mut octets[..length];
        wire::fold(name);
        self.rdata.clear();
        // Appending to a vector cannot fail.
        let _ = record.data().compose_rdata(&mut self.rdata);

        let Some(apex) = &self.apex else {
            if rtype != Type::SOA {
                return Err(Cause::FirstIsNotSoa);
            }
            self.apex = Some(name.to_vec());
            let apex = self.store.insert(&[]).map_err(Cause::Store)?;
            return self.store.add(apex, rtype, ttl_secs, &self.rdata).map_err(Cause::Store);
        };
        if !wire::is_at_or_below(name, apex) {
            return Err(Cause::Outside(record.owner().to_string()));
        }
        let below = &name[..name.len() - apex.len()];
        match rtype {
            Type::SOA => return Err(Cause::SecondSoa),
            Type::DNAME => return Err(Cause::Dname),
            Type::NS if !below.is_empty() => self.has_cuts = true,
            _ => {}
        }
        self.has_wildcards |= below.starts_with(b"\x01*");
        let node = self.node(below).map_err(Cause::Store)?;
        // RFC 2181 section 10.1. DNSSEC records may stand beside a CNAME record (RFC 4035 section 2.5).
        let beside = |set: Type| set != rtype && !matches!(set, Type::RRSIG | Type::NSEC);
        let conflicts = match rtype {
            Type::CNAME => self.store.sets(node).any(|set| beside(set.rtype) || !self.is_only(&set)),
            Type::RRSIG | Type::NSEC => false,
            _ => self.store.get(node, Type::CNAME).is_some(),
        };
        if conflicts {
            return Err(Cause::Alias(record.owner().to_string()));
        }
        self.store.add(node, rtype, ttl_secs, &self.rdata).map_err(Cause::Store)
    }

    /// True if a set has only records equal to the current one.
    fn is_only(&self, set: &RrSet<'_>) -> bool {
        set.rtype != Type::CNAME || set.rdata().all(|rdata| rdata == self.rdata)
    }

    /// The node of a name below the zone. Names between the two come into existence (RFC 4592 section 2.2.2).
    fn node(&mut self, below: &[u8]) -> Result<Node, StoreError> {
        if below.len() > MAX_NAME {
            return Err(StoreError::NameTooLong);
        }
        if let Some(node) = self.store.find(below) {
            return Ok(node);
        }
        let mut parent = without_first_label(below);
        while !parent.is_empty() && self.store.find(parent).is_none() {
            self.store.insert(parent)?;
            parent = without_first_label(parent);
        }
        self.store.insert(below)
    }

    fn finish(self) -> Result<Records, Cause> {
        let Loader { store, apex, has_cuts, has_wildcards, .. } = self;
        let apex = apex.ok_or(Cause::NoSoa)?;
        Ok(Records { apex, store, has_cuts, has_wildcards })
    }
}
