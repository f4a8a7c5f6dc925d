//! Trust anchors of validation (`[dnssec]`): the root's, which are built in, or a file of DS and DNSKEY records, and the negative ones
//! (RFC 7646).

use super::limits;
use super::report::{Fault, Place, Problems};
use anchors::name::to_text;
use anchors::{AnchorFile, Negative, NegativeError, TrustAnchor, anchor};
use dnssec::Algorithms;
use jiff::Timestamp;
use std::path::{Path, PathBuf};

/// Source of trust anchors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnchorsOfZones {
    /// The keys of the root that are built in.
    Root,
    /// A file.
    File(PathBuf),
}

impl AnchorsOfZones {
    /// The file, if there is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            AnchorsOfZones::Root => None,
            AnchorsOfZones::File(path) => Some(path),
        }
    }
}

/// Parses the source of trust anchors.
///
/// # Errors
///
/// The text is empty.
pub fn source(text: &str) -> Result<AnchorsOfZones, Fault> {
    match text {
        "" => Err(Fault::new(
            "`dnssec.trust-anchors` is empty",
            "write \"root\", or the path of a file with DS or DNSKEY records",
        )),
        "root" => Ok(AnchorsOfZones::Root),
        path => Ok(AnchorsOfZones::File(path.into())),
    }
}

/// Parses the path of the state file.
///
/// # Errors
///
/// The path names no file in a folder of its own: the server may write in that folder.
pub fn state_file(text: &str) -> Result<PathBuf, Fault> {
    let path = PathBuf::from(text);
    let is_file = path.file_name().is_some() && !text.ends_with('/');
    let is_in_folder =
        path.parent().is_some_and(|folder| folder.parent().is_some() || folder == Path::new(""));
    if is_file && is_in_folder {
        return Ok(path);
    }
    Err(Fault::new(
        format!("{text:?} is no file in a folder that the server may write in"),
        "write a path like \"/var/lib/sixfold/root.key\", or \"\" to keep nothing",
    ))
}

/// Writes the source of trust anchors.
pub fn shown_source(source: &AnchorsOfZones) -> String {
    match source {
        AnchorsOfZones::Root => "root".to_owned(),
        AnchorsOfZones::File(path) => path.to_string_lossy().into_owned(),
    }
}

/// Parses a negative trust anchor: a name, or a name, `until` and a time (RFC 3339).
///
/// # Errors
///
/// The name or the time is none.
pub fn negative(text: &str) -> Result<Negative, Fault> {
    Negative::parse(text).map_err(|error| {
        let help = match error {
            NegativeError::Name(..) => "write the name of a zone, like \"broken.example\"",
            _ => "write a time in UTC, like \"broken.example until 2027-01-31T00:00:00Z\"",
        };
        Fault::new(error.to_string(), help)
    })
}

/// Writes a negative trust anchor.
pub fn shown_negative(anchor: &Negative) -> String {
    let zone = to_text(&anchor.zone);
    let end = anchor.until.and_then(|until| Timestamp::from_second(until.try_into().ok()?).ok());
    match end {
        None => zone,
        Some(end) => format!("{zone} until {end}"),
    }
}

/// Reads the trust anchors of a source. Faults are reported, and leave none; records that cannot be used are told.
pub fn read(
    source: &AnchorsOfZones,
    algorithms: Algorithms,
    place: &Place,
    problems: &Problems,
    told: &mut Vec<String>,
) -> Vec<TrustAnchor> {
    let AnchorsOfZones::File(path) = source else { return anchor::root() };
    let text = match super::regular_file::read(path, limits::ANCHOR_OCTETS) {
        Ok(text) => text,
        Err(error) => {
            let help = "name a file with DS or DNSKEY records that the server may read, or use \"root\"";
            problems.add(place, Fault::new(format!("cannot read {}: {error}", path.display()), help));
            return Vec::new();
        }
    };
    match AnchorFile::parse(&text, algorithms) {
        Ok(file) => {
            let warning = |skipped: anchors::file::Skipped| {
                format!(
                    "{}, line {}: not used as a trust anchor: {}",
                    path.display(),
                    skipped.line,
                    skipped.why
                )
            };
            told.extend(file.skipped.into_iter().map(warning));
            file.anchors
        }
        Err(error) => {
            let line = error.line.map_or_else(String::new, |line| format!(", line {line}"));
            problems
                .add(place, Fault::new(format!("{}{line}: {}", path.display(), error.what), error.remedy));
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_anchor_may_have_an_end() {
        for text in ["broken.example.", "broken.example. until 2027-01-31T00:00:00Z"] {
            let Ok(parsed) = negative(text) else { panic!("{text}") };
            assert_eq!(shown_negative(&parsed), text);
        }
        assert!(negative("broken.example until tomorrow").is_err());
        assert!(negative("a..b").is_err());
    }

    #[test]
    fn root_is_a_word_and_all_else_a_file() {
        for text in ["root", "/etc/sixfold/anchors", "./root"] {
            let Ok(parsed) = source(text) else { panic!("{text}") };
            assert_eq!(shown_source(&parsed), text);
        }
        assert_eq!(source("root").ok().and_then(|source| source.file().map(Path::to_path_buf)), None);
        assert!(source("").is_err());
    }

    #[test]
    fn the_state_file_is_in_a_folder_that_is_not_that_of_the_system() {
        for text in ["/var/lib/sixfold/root.key", "root.key", "./root.key", "state/root.key"] {
            assert!(state_file(text).is_ok(), "{text}");
        }
        for text in ["/root.key", "/", "/var/lib/", ".."] {
            assert!(state_file(text).is_err(), "{text}");
        }
    }
}
