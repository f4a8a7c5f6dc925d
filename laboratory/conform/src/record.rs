//! Resource records as text: records of the scripted upstream, and patterns for the records of an answer. Comparison
//! is by value (RFC 4343: names without regard to case), never by octets on the wire.

use crate::record_tokens::{RecordTokens, split};
use domain::base::iana::{Class, Rtype};
use domain::base::name::FlattenInto;
use domain::base::rdata::{ComposeRecordData, ParseRecordData};
use domain::base::{Name, ParsedName, Ttl};
use domain::dep::octseq::Parser;
use domain::rdata::ZoneRecordData;
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Name that owns its octets.
pub type OwnedName = Name<Vec<u8>>;
/// Record data that own their octets.
pub type Data = ZoneRecordData<Vec<u8>, OwnedName>;
/// Record that owns its octets.
pub type Record = domain::base::Record<OwnedName, Data>;

/// Text that is no record, name or type, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadText(String);

impl fmt::Display for BadText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for BadText {}

/// Pattern for a record of an answer: `OWNER TTL CLASS TYPE RDATA`. A TTL `N` stands for N and N-1 (a second may have
/// passed), `A-B` for a range, `*` for any; a token `*` of the RDATA stands for any token.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    text: String,
    owner: OwnedName,
    ttl: RangeInclusive<u32>,
    class: Class,
    rtype: Rtype,
    tokens: Vec<String>,
}

impl Pattern {
    /// True if `record` matches the pattern.
    pub fn matches(&self, record: &Record) -> bool {
        self.key() == key(record) && self.ttl.contains(&record.ttl().as_secs()) && self.fits(record.data())
    }

    /// True if the pattern is for records of this owner and type.
    pub fn is_for(&self, owner: &OwnedName, rtype: Rtype) -> bool {
        self.owner == *owner && self.rtype == rtype
    }

    /// Owner, class and type: the key of an RRset (RFC 2181 section 5).
    pub fn key(&self) -> RrsetKey {
        RrsetKey { owner: self.owner.clone(), class: self.class, rtype: self.rtype }
    }

    /// Compares record data by value. A wildcard token takes the value of the found token in its place.
    fn fits(&self, found: &Data) -> bool {
        let mut tokens = self.tokens.clone();
        if tokens.iter().any(|token| token == "*") {
            let Ok(found) = split(&found.to_string()) else { return false };
            if found.len() != tokens.len() {
                return false;
            }
            for (token, found) in tokens.iter_mut().zip(found).filter(|(token, _)| *token == "*") {
                *token = found;
            }
        }
        data(self.rtype, tokens).is_ok_and(|expected| expected == *found)
    }
}

impl FromStr for Pattern {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Pattern, BadText> {
        let Line { owner, ttl, class, rtype, tokens } = Line::from_str(text)?;
        let bad = || BadText(format!("{text}: {ttl} is not a TTL, a range or *"));
        let ttl = if ttl == "*" {
            0..=u32::MAX
        } else if let Some((low, high)) = ttl.split_once('-') {
            low.parse().map_err(|_| bad())?..=high.parse().map_err(|_| bad())?
        } else {
            let ttl: u32 = ttl.parse().map_err(|_| bad())?;
            ttl.saturating_sub(1)..=ttl
        };
        if !tokens.iter().any(|token| token == "*") {
            data(rtype, tokens.clone()).map_err(|error| BadText(format!("{text}: {error}")))?;
        }
        Ok(Pattern { text: text.to_owned(), owner, ttl, class, rtype, tokens })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Pattern, D::Error> {
        parsed(deserializer)
    }
}

/// Key of an RRset: owner, class and type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RrsetKey {
    owner: OwnedName,
    class: Class,
    rtype: Rtype,
}

/// Owner, class and type of `record`.
pub fn key(record: &Record) -> RrsetKey {
    RrsetKey { owner: record.owner().clone(), class: record.class(), rtype: record.rtype() }
}

/// Reads `OWNER TTL CLASS TYPE RDATA`.
///
/// # Errors
///
/// A word is missing, the TTL is no number, or the data are not those of the type.
pub fn record(text: &str) -> Result<Record, BadText> {
    let Line { owner, ttl, class, rtype, tokens } = Line::from_str(text)?;
    let ttl = ttl.parse().map_err(|_| BadText(format!("{text}: {ttl} is not a TTL")))?;
    let data = data(rtype, tokens).map_err(|error| BadText(format!("{text}: {error}")))?;
    Ok(Record::new(owner, class, Ttl::from_secs(ttl), data))
}

/// Writes a record as one line, with the TTL in seconds.
pub fn line(record: &Record) -> String {
    let (owner, ttl) = (record.owner().fmt_with_dot(), record.ttl().as_secs());
    format!("{owner} {ttl} {} {} {}", record.class(), record.rtype(), record.data())
}

/// Deserializes a field that is written as text and has a `FromStr`.
///
/// # Errors
///
/// The value is no text, or its `FromStr` refuses it.
pub fn parsed<'de, D: Deserializer<'de>, T: FromStr<Err: fmt::Display>>(
    deserializer: D,
) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|error| serde::de::Error::custom(format!("{text}: {error}")))
}

/// Deserializes a list of texts that have a `FromStr`.
///
/// # Errors
///
/// The value is no list of texts, or a `FromStr` refuses one.
pub fn all_parsed<'de, D: Deserializer<'de>, T: FromStr<Err: fmt::Display>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let parse =
        |text: &String| text.parse().map_err(|error| serde::de::Error::custom(format!("{text}: {error}")));
    texts.iter().map(parse).collect()
}

/// Deserializes a list of records.
///
/// # Errors
///
/// The value is no list of texts, or one is no record, as [`record`] says.
pub fn records<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Record>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| record(text)).collect::<Result<_, _>>().map_err(serde::de::Error::custom)
}

/// Parts of a line. The use decides which TTLs and RDATA are valid.
struct Line {
    owner: OwnedName,
    ttl: String,
    class: Class,
    rtype: Rtype,
    tokens: Vec<String>,
}

impl FromStr for Line {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Line, BadText> {
        let bad = |what: &str| BadText(format!("{text}: {what}"));
        let mut tokens = split(text).map_err(&bad)?.into_iter();
        let mut next = |what: &str| tokens.next().ok_or_else(|| bad(what));
        Ok(Line {
            owner: next("no owner")?.parse().map_err(|_| bad("the owner is not a name"))?,
            ttl: next("no TTL")?,
            class: next("no class")?.parse().map_err(|_| bad("unknown class"))?,
            rtype: next("no type")?.parse().map_err(|_| bad("unknown type"))?,
            tokens: tokens.collect(),
        })
    }
}

/// Converts tokens to record data. The data go through the wire form once, so that data in the general notation (RFC
/// 3597 section 5) equal data in the notation of their type.
fn data(rtype: Rtype, tokens: Vec<String>) -> Result<Data, String> {
    let mut scanner = RecordTokens::new(tokens);
    let scanned = Data::scan(rtype, &mut scanner).map_err(|error| error.to_string())?;
    if !scanner.is_exhausted() {
        return Err("tokens are left over".to_owned());
    }
    let mut octets = Vec::new();
    scanned.compose_rdata(&mut octets).map_err(|error| error.to_string())?;
    own(rtype, &octets)
}

/// Parses record data that have no compression pointers.
fn own(rtype: Rtype, octets: &[u8]) -> Result<Data, String> {
    let mut parser = Parser::from_ref(octets);
    let parsed = ZoneRecordData::<&[u8], ParsedName<&[u8]>>::parse_rdata(rtype, &mut parser);
    let parsed = parsed.map_err(|error| error.to_string())?.ok_or("no type that a zone can hold")?;
    Ok(parsed.flatten_into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, text: &str) -> bool {
        pattern.parse::<Pattern>().unwrap().matches(&record(text).unwrap())
    }

    #[test]
    fn names_are_compared_without_regard_to_case() {
        assert!(fits("A.example. 300 IN CNAME B.Example.", "a.EXAMPLE. 300 IN CNAME b.example."));
    }

    #[test]
    fn a_ttl_may_be_one_second_lower_but_not_higher() {
        assert!(fits("a. 300 IN A 192.0.2.1", "a. 300 IN A 192.0.2.1"));
        assert!(fits("a. 300 IN A 192.0.2.1", "a. 299 IN A 192.0.2.1"));
        assert!(!fits("a. 300 IN A 192.0.2.1", "a. 298 IN A 192.0.2.1"));
        assert!(!fits("a. 300 IN A 192.0.2.1", "a. 301 IN A 192.0.2.1"));
        assert!(fits("a. 0 IN A 192.0.2.1", "a. 0 IN A 192.0.2.1"));
    }

    #[test]
    fn a_ttl_may_be_a_range_or_anything() {
        assert!(fits("a. 10-20 IN A 192.0.2.1", "a. 10 IN A 192.0.2.1"));
        assert!(!fits("a. 10-20 IN A 192.0.2.1", "a. 21 IN A 192.0.2.1"));
        assert!(fits("a. * IN A 192.0.2.1", "a. 86400 IN A 192.0.2.1"));
    }

    #[test]
    fn a_star_stands_for_one_word_of_the_rdata() {
        let soa = "example. 60 IN SOA ns.example. host.example. 7 7200 3600 1209600 60";
        assert!(fits("example. 60 IN SOA * * * 7200 3600 1209600 60", soa));
        assert!(!fits("example. 60 IN SOA * * * 7201 3600 1209600 60", soa));
        assert!(!fits("example. 60 IN SOA *", soa));
    }

    #[test]
    fn addresses_are_compared_by_value() {
        assert!(fits("a. 300 IN AAAA 2001:db8:0:0::1", "a. 300 IN AAAA 2001:db8::1"));
        assert!(!fits("a. 300 IN AAAA 2001:db8::2", "a. 300 IN AAAA 2001:db8::1"));
    }

    #[test]
    fn quoted_words_and_service_parameters_are_read() {
        assert!(fits("a. 300 IN NAPTR 1 1 \"u\" \"x\" \"\" .", "a. 300 IN NAPTR 1 1 u x \"\" ."));
        let https = "a. 300 IN HTTPS 1 . alpn=\"h2\" ipv4hint=192.0.2.1";
        assert!(fits(https, https));
        assert!(!fits("a. 300 IN HTTPS 1 . alpn=\"h2\"", https));
    }

    #[test]
    fn general_notation_equals_the_notation_of_the_type() {
        assert!(fits("a. 300 IN A \\# 4 c0000201", "a. 300 IN A 192.0.2.1"));
        assert!(fits("a. 300 IN TYPE65280 \\# 2 abcd", "a. 300 IN TYPE65280 \\# 2 ABCD"));
    }

    #[test]
    fn text_that_is_no_record_is_refused_with_the_reason() {
        for text in [
            "",
            "a.",
            "a. x IN A 192.0.2.1",
            "a. 1 IN A 192.0.2.256",
            "a. 1 IN A 192.0.2.1 2",
            "a. 1 IN TXT \"x",
        ] {
            assert!(record(text).is_err(), "{text}");
        }
        assert!("a. 1-x IN A 192.0.2.1".parse::<Pattern>().is_err());
    }

    #[test]
    fn a_record_is_shown_as_it_is_written() {
        let text = "a.example. 300 IN MX 10 mail.example.";
        assert_eq!(line(&record(text).unwrap()), text);
    }
}
