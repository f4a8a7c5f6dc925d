//! Loads a master file: `domain` parses the entries, `$GENERATE` is expanded first, and each fault has its line.

use super::entries::{Entries, EntriesError, Piece, after_record, nth_record};
use super::error::{Cause, Faults, LoadError};
use super::generate::Generate;
use super::name::without_first_label;
use super::records::Records;
use super::store::{MAX_NAME, Node, RrSet, Store, StoreError};
use crate::limits;
use domain::base::iana::{Class, Rtype};
use domain::base::name::{ToLabelIter, ToName};
use domain::base::rdata::ComposeRecordData;
use domain::zonefile::inplace::{Entry, ScannedRecord, Zonefile};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use textfile::master;
use wire::Type;

impl Records {
    /// Loads a master file.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, or as [`Records::parse`].
    pub fn load(file: &Path) -> Result<Records, LoadError> {
        let read = File::open(file).map_err(Cause::Read).map_err(|cause| {
            let mut faults = Faults::default();
            faults.push(None, cause);
            faults
        });
        read.and_then(Records::read).map_err(|faults| LoadError { file: file.to_owned(), faults })
    }

    /// Loads a master file from any source; errors name it `text`.
    ///
    /// # Errors
    ///
    /// [`LoadError`] lists the faults with their lines: the text cannot be read, an entry is malformed, or a record does not fit into
    /// the zone.
    pub fn parse(text: impl Read) -> Result<Records, LoadError> {
        Records::read(text).map_err(|faults| LoadError { file: "text".into(), faults })
    }

    /// Reads to the end in spite of faults, so that all of them are reported.
    fn read(source: impl Read) -> Result<Records, Faults> {
        let mut entries = Entries::new(source);
        let mut loader = Loader::new();
        while !loader.faults.is_final() {
            match entries.next() {
                Ok(Some(piece)) => loader.take(&piece),
                Ok(None) => break,
                Err(EntriesError::Read(error)) => {
                    loader.faults.push(None, Cause::Read(error));
                    break;
                }
                Err(EntriesError::Unterminated(line)) => {
                    loader.faults.push(line, Cause::Unterminated);
                    break;
                }
            }
        }
        loader.finish()
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
    /// Text of the last `$TTL` without a fault, and the TTL of the last record.
    ttl_directive: Vec<u8>,
    last_ttl_secs: Option<u32>,
    faults: Faults,
}

/// The generic form for the data of a record, from its text. None: its type is not known.
fn generic_form(record: &[u8]) -> Option<String> {
    let rtype = std::str::from_utf8(master::record_type(record)?).ok()?;
    Some(master::generic_form(rtype, rtype.parse::<Rtype>().ok()?.to_int()))
}

fn new_reader() -> Zonefile {
    let mut reader = Zonefile::new();
    reader.set_default_class(Class::IN);
    reader
}

impl Loader {
    fn new() -> Loader {
        Loader {
            reader: new_reader(),
            store: Store::new(),
            apex: None,
            rdata: Vec::new(),
            has_cuts: false,
            has_wildcards: false,
            ttl_directive: Vec::new(),
            last_ttl_secs: None,
            faults: Faults::default(),
        }
    }

    /// Adds a piece of the file, without its entries that have faults.
    fn take(&mut self, piece: &Piece<'_>) {
        let begins =
            |word: &[u8]| piece.text.get(..word.len()).is_some_and(|text| text.eq_ignore_ascii_case(word));
        if begins(b"$GENERATE") {
            return self.take_generate(piece);
        }
        let (mut text, mut line) = (piece.text, piece.line);
        while let Err((count, cause)) = self.take_text(text) {
            let at = if piece.is_directive { line } else { nth_record(text, line, count).1 };
            self.faults.push(at, cause);
            self.start_anew();
            if piece.is_directive || self.faults.is_final() {
                return;
            }
            (text, line) = after_record(text, line, count);
        }
        if begins(b"$TTL") {
            self.ttl_directive = master::in_seconds(piece.text).into_owned();
        }
    }

    fn take_generate(&mut self, piece: &Piece<'_>) {
        let generate = match Generate::read(piece.text) {
            Ok(generate) => generate,
            Err(error) => return self.faults.push(piece.line, Cause::Generate(error)),
        };
        let done = generate.expand(limits::ENTRY, |lines| {
            let done = self.take_text(lines.as_bytes());
            lines.clear();
            done
        });
        if let Err((_, cause)) = done {
            let cause = if let Cause::Syntax(text) = cause { Cause::GenerateSyntax(text) } else { cause };
            self.faults.push(piece.line, cause);
            self.start_anew();
        }
    }

    /// Replaces the reader, which is in the middle of an entry after a fault. The new one has the origin and the TTLs; it has
    /// no last owner, so [`after_record`] skips the entries that need one.
    fn start_anew(&mut self) {
        let origin = self.reader.origin().ok();
        self.reader = new_reader();
        if let Some(origin) = origin {
            self.reader.set_origin(origin);
        }
        let last_ttl =
            self.last_ttl_secs.map(|ttl_secs| format!(". {ttl_secs} IN TXT \"\"\n")).unwrap_or_default();
        self.reader.extend_from_slice(&self.ttl_directive);
        self.reader.extend_from_slice(last_ttl.as_bytes());
        // The record that carries the last TTL is read and forgotten.
        while let Ok(Some(_)) = self.reader.next_entry() {}
    }

    /// Adds whole entries. An error comes with the number of records before it.
    fn take_text(&mut self, piece: &[u8]) -> Result<(), (u64, Cause)> {
        self.reader.extend_from_slice(&master::in_seconds(piece));
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
                    let is_relative = text.contains("missing origin");
                    let has_no_text_form = text.contains("unknown record type with concrete data");
                    return Err((
                        count,
                        match generic_form(nth_record(piece, 0, count).0) {
                            _ if is_relative => Cause::Origin,
                            Some(form) if has_no_text_form => Cause::WithoutTextForm(form),
                            _ => Cause::Syntax(text),
                        },
                    ));
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
        self.last_ttl_secs = Some(ttl_secs);
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
                // After a fault the SOA record may be the one that could not be read.
                return if self.faults.is_empty() { Err(Cause::FirstIsNotSoa) } else { Ok(()) };
            }
            self.apex = Some(name.to_vec());
            // Without a `$ORIGIN` the zone is the origin, which RFC 1035 section 5.1 leaves to whoever loads the file.
            if self.reader.origin().is_err() {
                self.reader.set_origin(record.owner().to_name());
            }
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

    fn finish(self) -> Result<Records, Faults> {
        let Loader { store, apex, has_cuts, has_wildcards, mut faults, .. } = self;
        match apex {
            Some(apex) if faults.is_empty() => Ok(Records { apex, store, has_cuts, has_wildcards }),
            None if faults.is_empty() => {
                faults.push(None, Cause::NoSoa);
                Err(faults)
            }
            _ => Err(faults),
        }
    }
}
