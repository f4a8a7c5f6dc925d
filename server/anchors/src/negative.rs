//! Negative trust anchors (RFC 7646): zones whose signatures are not looked at, because their operators broke them.

use crate::limits::{NEGATIVE, NEGATIVE_SECONDS};
use crate::name::{NameError, from_text, to_text};
use std::fmt;
use std::time::Duration;

/// Reason why there is no such negative anchor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NegativeError {
    /// The zone is no name.
    Name(String, NameError),
    /// Something follows the zone that is not "until TIME".
    Words(String),
    /// The end is no time.
    Time(String),
    /// The end lies behind us.
    Past(String),
    /// It would live for less than a second or for more than a week.
    Span(Duration),
    /// There are too many.
    TooMany,
}

impl fmt::Display for NegativeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const FORM: &str = "write \"broken.example\" or \"broken.example until 2027-01-31T00:00:00Z\"";
        match self {
            NegativeError::Name(text, error) => write!(f, "{text:?} is no zone: {error}"),
            NegativeError::Words(text) => write!(f, "{text:?} is no negative anchor; {FORM}"),
            NegativeError::Time(text) => write!(f, "{text:?} is no time with an offset from UTC; {FORM}"),
            NegativeError::Past(text) => {
                write!(
                    f,
                    "{text} is over, so the negative anchor would do nothing; take it out, or give it a later end"
                )
            }
            NegativeError::Span(span) => write!(
                f,
                "a negative anchor that is added while the server runs lives for a second to seven days, and not for \
                 {span:?}; what has to hold for longer belongs into dnssec.negative-trust-anchors"
            ),
            NegativeError::TooMany => {
                write!(
                    f,
                    "there are {NEGATIVE} negative anchors already; remove some, or add their common ancestor"
                )
            }
        }
    }
}

impl std::error::Error for NegativeError {}

/// Negative trust anchor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Negative {
    /// Zone: a wire name in lower case.
    pub zone: Box<[u8]>,
    /// Last second in which it holds, since 1970; `None` without an end.
    pub until: Option<u64>,
    /// True if the configuration has it.
    pub is_configured: bool,
}

impl Negative {
    /// Reads an entry of the configuration: a zone, which may be followed by "until" and a time (RFC 3339).
    ///
    /// # Errors
    ///
    /// `Name`, `Words`, `Time`. An end that lies behind us is not one: a configuration does not become wrong by itself.
    pub fn parse(text: &str) -> Result<Negative, NegativeError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (zone, until) = match words[..] {
            [zone] => (zone, None),
            [zone, "until", time] => (zone, Some(seconds(time)?)),
            _ => return Err(NegativeError::Words(text.to_owned())),
        };
        Ok(Negative { zone: zone_of(zone)?, until, is_configured: true })
    }

    fn holds(&self, now: u64) -> bool {
        self.until.is_none_or(|until| now <= until)
    }

    /// The anchor as the validator takes it. Its times are seconds modulo 2^32 that RFC 1982 compares, so an end that is 68 years away or
    /// more is none.
    fn borrowed(&self, now: u64) -> dnssec::NegativeAnchor<'_> {
        let is_near = |until: &u64| until.saturating_sub(now) < 1 << 31;
        dnssec::NegativeAnchor {
            zone: &self.zone,
            until: self.until.filter(is_near).map(|until| until as u32),
        }
    }
}

fn zone_of(text: &str) -> Result<Box<[u8]>, NegativeError> {
    from_text(text.as_bytes(), b"\0").map_err(|error| NegativeError::Name(text.to_owned(), error))
}

fn seconds(text: &str) -> Result<u64, NegativeError> {
    let time: jiff::Timestamp = text.parse().map_err(|_| NegativeError::Time(text.to_owned()))?;
    u64::try_from(time.as_second()).map_err(|_| NegativeError::Past(text.to_owned()))
}

/// All negative anchors, at most one of the configuration and one of the running server a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NegativeAnchors {
    list: Vec<Negative>,
}

impl NegativeAnchors {
    /// Replaces those of the configuration; those that were added while the server runs stay. Of two for one zone the later end counts.
    ///
    /// # Errors
    ///
    /// `TooMany`; then nothing changes.
    pub fn configure(&mut self, configured: Vec<Negative>) -> Result<(), NegativeError> {
        let mut list: Vec<Negative> = Vec::new();
        for new in configured {
            match list.iter_mut().find(|old| old.zone == new.zone) {
                // None is without an end, so later than any.
                Some(old) => old.until = old.until.zip(new.until).map(|(a, b)| a.max(b)),
                None => list.push(Negative { is_configured: true, ..new }),
            }
        }
        list.extend(self.list.iter().filter(|old| !old.is_configured).cloned());
        if list.len() > NEGATIVE {
            return Err(NegativeError::TooMany);
        }
        self.list = list;
        Ok(())
    }

    /// Adds one for a time, or moves the end of one that was added before.
    ///
    /// # Errors
    ///
    /// `Name`, `Span`, `TooMany`.
    pub fn add_for(&mut self, zone: &str, life: Duration, now: u64) -> Result<&Negative, NegativeError> {
        let zone = zone_of(zone)?;
        if !(1..=NEGATIVE_SECONDS).contains(&life.as_secs()) || life > Duration::from_secs(NEGATIVE_SECONDS) {
            return Err(NegativeError::Span(life));
        }
        self.expire(now);
        let added = Negative { zone, until: Some(now.saturating_add(life.as_secs())), is_configured: false };
        let place = self.list.iter().position(|old| !old.is_configured && old.zone == added.zone);
        let place = match place {
            Some(place) => place,
            None if self.list.len() >= NEGATIVE => return Err(NegativeError::TooMany),
            None => {
                self.list.push(added.clone());
                self.list.len() - 1
            }
        };
        self.list[place] = added;
        Ok(&self.list[place])
    }

    /// Removes that of a zone, whether it was configured or added. One of the configuration comes back with the next reload.
    ///
    /// # Errors
    ///
    /// `Name`.
    pub fn remove(&mut self, zone: &str) -> Result<Vec<Negative>, NegativeError> {
        let zone = zone_of(zone)?;
        Ok(self.list.extract_if(.., |old| old.zone == zone).collect())
    }

    /// Removes those that have ended, and returns them.
    pub fn expire(&mut self, now: u64) -> Vec<Negative> {
        self.list.extract_if(.., |old| !old.holds(now)).collect()
    }

    /// Second in which the next one ends, since 1970: then [`NegativeAnchors::expire`] has something to do.
    pub fn next_end(&self) -> Option<u64> {
        self.list.iter().filter_map(|one| one.until).min().map(|until| until.saturating_add(1))
    }

    /// The closest one at or above a name that holds. A positive anchor below it counts more (RFC 7646 section 1.1), as
    /// [`dnssec::Anchors::closest`] decides.
    pub fn closest(&self, name: &[u8], now: u64) -> Option<&Negative> {
        let above = self.list.iter().filter(|one| one.holds(now) && wire::is_at_or_below(name, &one.zone));
        above.max_by_key(|one| (one.zone.len(), one.until.unwrap_or(u64::MAX)))
    }

    /// All that hold, as the validator takes them.
    pub fn borrowed(&self, now: u64) -> Vec<dnssec::NegativeAnchor<'_>> {
        self.list.iter().filter(|one| one.holds(now)).map(|one| one.borrowed(now)).collect()
    }

    /// All.
    pub fn iter(&self) -> impl Iterator<Item = &Negative> {
        self.list.iter()
    }
}

impl fmt::Display for Negative {
    /// The form of the configuration.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&to_text(&self.zone))?;
        let time = self.until.and_then(|until| jiff::Timestamp::from_second(until as i64).ok());
        time.map_or(Ok(()), |time| write!(f, " until {time}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-29T00:00:00Z, as `date -d` says.
    const NOW: u64 = 1_795_910_400;

    fn zones(anchors: &NegativeAnchors) -> Vec<String> {
        anchors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_entry_of_the_configuration_is_a_zone_with_or_without_an_end() {
        // 2027-01-31T00:00:00Z is 1801353600, as `date -d` says.
        for (text, until, written) in [
            ("broken.example", None, "broken.example."),
            ("Broken.Example.", None, "broken.example."),
            (" . ", None, "."),
            (
                "broken.example until 2027-01-31T00:00:00Z",
                Some(1_801_353_600),
                "broken.example. until 2027-01-31T00:00:00Z",
            ),
            (
                "broken.example  until 2027-01-31T01:00:00+01:00",
                Some(1_801_353_600),
                "broken.example. until 2027-01-31T00:00:00Z",
            ),
            ("a.b until 2001-01-01T00:00:00Z", Some(978_307_200), "a.b. until 2001-01-01T00:00:00Z"),
        ] {
            let negative = Negative::parse(text).unwrap();
            assert_eq!((negative.until, negative.to_string().as_str()), (until, written), "{text}");
        }
    }

    #[test]
    fn an_error_says_what_is_wrong_and_what_to_write() {
        for (text, expected) in [
            (
                "",
                "\"\" is no negative anchor; write \"broken.example\" or \"broken.example until 2027-01-31T00:00:00Z\"",
            ),
            ("a until", "\"a until\" is no negative anchor; "),
            ("a for 1h", "\"a for 1h\" is no negative anchor; "),
            ("a until 2027-01-31T00:00:00Z x", "is no negative anchor; "),
            ("a until tomorrow", "\"tomorrow\" is no time with an offset from UTC; write "),
            ("a until 2027-01-31", "\"2027-01-31\" is no time with an offset from UTC; "),
            ("a until 2027-01-31T00:00:00", "is no time with an offset from UTC; "),
            ("a until 2027-02-31T00:00:00Z", "is no time with an offset from UTC; "),
            ("a until 1960-01-31T00:00:00Z", "1960-01-31T00:00:00Z is over, "),
            ("a..b", "\"a..b\" is no zone: the name has an empty label; write "),
            ("b\u{fc}cher.example", "is no zone: the name has characters that are not ASCII; write "),
        ] {
            let error = Negative::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }

    #[test]
    fn the_closest_one_that_holds_is_found() {
        let mut anchors = NegativeAnchors::default();
        let configured = ["example", "b.example until 2027-01-31T00:00:00Z"];
        anchors.configure(configured.map(|text| Negative::parse(text).unwrap()).to_vec()).unwrap();
        let end = 1_801_353_600;
        for (name, now, expected) in [
            (&b"\x01a\x01b\x07example\0"[..], NOW, Some("b.example. until 2027-01-31T00:00:00Z")),
            (b"\x01B\x07EXAMPLE\0", end, Some("b.example. until 2027-01-31T00:00:00Z")),
            (b"\x01b\x07example\0", end + 1, Some("example.")),
            (b"\x02bb\x07example\0", NOW, Some("example.")),
            (b"\x03net\0", NOW, None),
        ] {
            let found = anchors.closest(name, now).map(ToString::to_string);
            assert_eq!(found.as_deref(), expected, "{} {now}", name.escape_ascii());
        }
        assert_eq!((anchors.borrowed(end).len(), anchors.borrowed(end + 1).len()), (2, 1));
        assert_eq!(anchors.next_end(), Some(end + 1));
        assert_eq!(anchors.expire(end).len(), 0);
        assert_eq!(anchors.expire(end + 1).len(), 1);
        assert_eq!((zones(&anchors), anchors.next_end()), (vec!["example.".to_owned()], None));
    }

    // RFC 7646 section 4: it expires, after a week at most.
    #[test]
    fn one_that_is_added_ends_by_itself() {
        let mut anchors = NegativeAnchors::default();
        let added = anchors.add_for("Broken.Example", Duration::from_secs(3600), NOW).unwrap();
        assert_eq!(added.to_string(), "broken.example. until 2026-11-29T01:00:00Z");
        assert!(anchors.closest(b"\x06broken\x07example\0", NOW + 3600).is_some());
        assert!(anchors.closest(b"\x06broken\x07example\0", NOW + 3601).is_none());
        // Again: the end moves, earlier too.
        anchors.add_for("broken.example.", Duration::from_secs(60), NOW).unwrap();
        assert_eq!(zones(&anchors), ["broken.example. until 2026-11-29T00:01:00Z"]);
        for life in [Duration::ZERO, Duration::from_millis(999), Duration::from_secs(7 * 86_400 + 1)] {
            let error = anchors.add_for("a", life, NOW).unwrap_err();
            assert_eq!(error, NegativeError::Span(life));
            assert!(error.to_string().contains("dnssec.negative-trust-anchors"), "{error}");
        }
        assert!(anchors.add_for("a", Duration::from_secs(7 * 86_400), NOW).is_ok());
        assert!(matches!(anchors.add_for("a..", Duration::from_secs(1), NOW), Err(NegativeError::Name(..))));
    }

    #[test]
    fn a_reload_replaces_those_of_the_configuration_only() {
        let mut anchors = NegativeAnchors::default();
        let list =
            |texts: &[&str]| texts.iter().map(|text| Negative::parse(text).unwrap()).collect::<Vec<_>>();
        anchors.configure(list(&["a", "b"])).unwrap();
        anchors.add_for("a", Duration::from_secs(60), NOW).unwrap();
        anchors
            .configure(list(&["c", "d until 2027-01-31T00:00:00Z", "d", "c until 2027-01-31T00:00:00Z"]))
            .unwrap();
        assert_eq!(zones(&anchors), ["c.", "d.", "a. until 2026-11-29T00:01:00Z"]);
        let removed = anchors.remove("A.").unwrap();
        assert_eq!((removed.len(), anchors.remove("nothing").unwrap().len()), (1, 0));
        assert_eq!(zones(&anchors), ["c.", "d."]);
    }

    #[test]
    fn their_number_is_bounded() {
        let many = |count: usize| {
            (0..count).map(|number| Negative::parse(&format!("z{number}")).unwrap()).collect::<Vec<_>>()
        };
        let mut anchors = NegativeAnchors::default();
        assert_eq!(anchors.configure(many(NEGATIVE + 1)), Err(NegativeError::TooMany));
        anchors.configure(many(NEGATIVE)).unwrap();
        let error = anchors.add_for("one.more", Duration::from_secs(1), NOW).unwrap_err();
        assert_eq!(error, NegativeError::TooMany);
        anchors.configure(many(NEGATIVE - 1)).unwrap();
        anchors.add_for("one.more", Duration::from_secs(1), NOW).unwrap();
        // One that has ended makes room.
        anchors.add_for("one.later", Duration::from_secs(1), NOW + 2).unwrap();
    }

    // RFC 1982 has no order for times that are 2^31 seconds apart.
    #[test]
    fn an_end_in_the_next_century_is_no_end_that_the_validator_sees() {
        let mut anchors = NegativeAnchors::default();
        let far = Negative::parse("far.example until 2126-01-01T00:00:00Z").unwrap();
        anchors.configure(vec![far]).unwrap();
        let borrowed = anchors.borrowed(NOW);
        let all = dnssec::Anchors { positive: &dnssec::anchors::ROOT, negative: &borrowed };
        let closest = all.closest(b"\x03far\x07example\0", dnssec::Timestamp(NOW as u32));
        assert_eq!(closest, dnssec::anchors::ClosestAnchor::Negative);
    }
}
