//! Faults of a master file as text.

use super::generate::GenerateError;
use super::store::StoreError;
use crate::limits;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Reasons why a master file cannot be served, up to [`limits::ZONE_ERRORS`]. Each has a line of text with the file, the line
/// and the remedy.
#[derive(Debug)]
pub struct LoadError {
    pub(super) file: PathBuf,
    pub(super) faults: Faults,
}

/// Faults of a file, in the order of their lines.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<(Option<u64>, Cause)>);

impl Faults {
    pub(super) fn push(&mut self, line: impl Into<Option<u64>>, cause: Cause) {
        self.0.push((line.into(), cause));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if no more faults are reported, or if one hides those that follow.
    pub(super) fn is_final(&self) -> bool {
        self.0.len() >= limits::ZONE_ERRORS
            || self.0.last().is_some_and(|(_, cause)| matches!(cause, Cause::Origin))
    }
}

/// One fault.
#[derive(Debug)]
pub(super) enum Cause {
    Read(io::Error),
    Unterminated,
    Syntax(String),
    Origin,
    WithoutTextForm(String),
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
        for (place, (line, cause)) in self.faults.0.iter().enumerate() {
            let (end, line) = (if place > 0 { "\n" } else { "" }, line.map(|line| format!(":{line}")));
            write!(f, "{end}{}{}: {cause}", self.file.display(), line.unwrap_or_default())?;
        }
        if self.faults.0.len() >= limits::ZONE_ERRORS {
            write!(
                f,
                "\n{}: these are the first {} faults; there may be more",
                self.file.display(),
                limits::ZONE_ERRORS
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Read(error) => write!(f, "cannot be read: {error}"),
            Cause::Unterminated => write!(
                f,
                "the entry that begins here does not end within {} octets; close its parenthesis or quote",
                limits::ENTRY
            ),
            Cause::Syntax(text) => write!(
                f,
                "{text}; write the entry as in RFC 1035 section 5.1: [NAME] [TTL] [CLASS] TYPE DATA, times in seconds or like 1h30m"
            ),
            Cause::Origin => f.write_str(
                "the name is relative, and there is no origin; add \"$ORIGIN zone.\", with the name of the zone, as first line, or use \
                 absolute names (with a dot at the end)",
            ),
            Cause::WithoutTextForm(generic_form) => f.write_str(generic_form),
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
