//! Trust anchors of validation (`[dnssec]`): the root's, which are built in, or a file of DS and DNSKEY records in the form of zone files, and
//! the negative ones (RFC 7646).

use super::Name;
use super::limits;
use super::record::engine_record;
use super::report::{Fault, Place, Problems, quoted};
use dnssec::{Algorithms, Ds};
use domain::base::iana::Class;
use domain::zonefile::inplace::{Entry, Zonefile};
use engine::settings::{AnchorRecord, TrustAnchor, root_anchors};
use jiff::Timestamp;
use std::path::{Path, PathBuf};
use textfile::master;
use wire::Type;

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

/// Writes the source of trust anchors.
pub fn shown_source(source: &AnchorsOfZones) -> String {
    match source {
        AnchorsOfZones::Root => "root".to_owned(),
        AnchorsOfZones::File(path) => path.to_string_lossy().into_owned(),
    }
}

/// Negative trust anchor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NegativeAnchor {
    /// Zone.
    pub zone: Name,
    /// Last second in which it holds; none without an end.
    pub until: Option<Timestamp>,
}

/// Parses a negative trust anchor: a name, or a name, `until` and a time (RFC 3339).
///
/// # Errors
///
/// The name or the time is none.
pub fn negative(text: &str) -> Result<NegativeAnchor, Fault> {
    let (name, until) = match text.split_once(" until ") {
        None => (text, None),
        Some((name, time)) => {
            let until = time.trim().parse::<Timestamp>().map_err(|_| {
                let help = "write a time in UTC, like \"broken.example until 2027-01-31T00:00:00Z\"";
                Fault::new(format!("{} is not a time", quoted(time)), help)
            })?;
            (name.trim(), Some(until))
        }
    };
    Ok(NegativeAnchor { zone: Name::covering(name)?, until })
}

/// Writes a negative trust anchor.
pub fn shown_negative(anchor: &NegativeAnchor) -> String {
    match anchor.until {
        None => anchor.zone.to_string(),
        Some(until) => format!("{} until {until}", anchor.zone),
    }
}

/// Reads the trust anchors of a source. Faults are reported, and leave none.
pub fn read(
    source: &AnchorsOfZones,
    algorithms: Algorithms,
    place: &Place,
    problems: &Problems,
) -> Vec<TrustAnchor> {
    let AnchorsOfZones::File(path) = source else { return root_anchors() };
    let read = super::regular_file::read(path, limits::ANCHOR_OCTETS).map_err(|error| error.to_string());
    match read.and_then(|text| parse(&text, algorithms)) {
        Ok(anchors) => anchors,
        Err(why) => {
            let what = format!("{}: {why}", path.display());
            let help = "write a DS or DNSKEY record of each zone, like \". DS 20326 8 2 e06d44b8...\", or use \"root\"";
            problems.add(place, Fault::new(what, help));
            Vec::new()
        }
    }
}

/// Parses the text of a file.
///
/// # Errors
///
/// What is wrong with it.
fn parse(text: &[u8], algorithms: Algorithms) -> Result<Vec<TrustAnchor>, String> {
    let mut reader = Zonefile::from(&*master::in_seconds(&[b"$TTL 3600\n", text, b"\n"].concat()));
    reader.set_origin(domain::base::Name::root_bytes());
    reader.set_default_class(Class::IN);
    let mut anchors = Vec::new();
    for entry in reader {
        let Entry::Record(record) = entry.map_err(|error| error.to_string())? else {
            return Err("$INCLUDE is not allowed".to_owned());
        };
        let record = engine_record(&record).map_err(str::to_owned)?;
        let zone = record.owner.clone();
        let record = match record.rtype {
            Type::DS => AnchorRecord::Ds(record.rdata),
            Type::DNSKEY => AnchorRecord::Dnskey(record.rdata),
            other => return Err(format!("a record of type {other} is no trust anchor")),
        };
        anchors.push(TrustAnchor { zone, record });
    }
    match anchors.iter().any(|anchor| is_usable(anchor, algorithms)) {
        true => Ok(anchors),
        false if anchors.is_empty() => Err("there is no trust anchor in it".to_owned()),
        false => Err("no trust anchor in it has algorithms that are supported".to_owned()),
    }
}

/// True if an anchor can vouch for a key.
fn is_usable(anchor: &TrustAnchor, algorithms: Algorithms) -> bool {
    match &anchor.record {
        AnchorRecord::Ds(rdata) => Ds::parse(rdata)
            .is_ok_and(|ds| algorithms.contains(ds.algorithm) && ds.digest_type.length().is_some()),
        AnchorRecord::Dnskey(rdata) => {
            dnssec::Dnskey::parse(rdata).is_ok_and(|key| key.check(algorithms).is_ok())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = ". IN DS 20326 8 2 e06d44b80b8f1d39a95c0b0d7c65d08458e880409bbc683457104237c7f8ec8d";

    fn parsed(text: &str) -> Result<Vec<TrustAnchor>, String> {
        parse(text.as_bytes(), Algorithms::CURRENT)
    }

    #[test]
    fn a_file_has_ds_or_dnskey_records_of_any_zones() {
        let key = "island.example. DNSKEY 257 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=";
        let anchors = parsed(&format!("; a comment\n{ROOT}\n{key}\n")).expect("two anchors");
        assert_eq!(anchors[0], root_anchors()[0]);
        assert_eq!(*anchors[1].zone, *b"\x06island\x07example\0");
        assert!(matches!(&anchors[1].record, AnchorRecord::Dnskey(rdata) if rdata.len() == 36));
    }

    #[test]
    fn a_file_without_an_anchor_that_can_be_used_is_refused() {
        assert_eq!(parsed("").unwrap_err(), "there is no trust anchor in it");
        assert!(parsed("a.example. A 192.0.2.1").unwrap_err().contains("no trust anchor"));
        assert!(parsed(". DS 1 16 2 00").is_err());
        assert!(parsed(&ROOT.replace(" 8 2 ", " 16 2 ")).unwrap_err().contains("algorithms"));
    }

    #[test]
    fn a_negative_anchor_may_have_an_end() {
        for text in ["broken.example", "broken.example until 2027-01-31T00:00:00Z"] {
            assert_eq!(shown_negative(&negative(text).ok().expect(text)), text);
        }
        assert!(negative("broken.example until tomorrow").is_err());
        assert!(negative("a..b").is_err());
    }
}
