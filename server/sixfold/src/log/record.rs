//! A record: one event of the log, and its forms as text and as JSON.
//!
//! Each event of the server has a word, `event`, and perhaps fields for programs. Its text for people says the same in a sentence, so
//! the text form shows no fields. Events of libraries have none of that: their fields belong to the text.

use super::limits::MESSAGE_OCTETS;
use crate::config::Format;
use crate::escape;
use serde_json::Value;
use std::fmt::Write as _;
use tracing::Level;
use tracing::field::{Field, Visit};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

/// Word for the events of libraries.
const LIBRARY: &str = "library";

/// One event of the log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// Time in the form of RFC 3339, in UTC with microseconds.
    pub time: String,
    /// Level of the event.
    pub level: Level,
    /// Word for the kind of event, which does not change.
    pub event: String,
    /// Text of the event. It may have several lines.
    pub message: String,
    /// Named values beside the text.
    pub fields: Vec<(&'static str, String)>,
}

impl Record {
    /// A record of the log about itself, or of an event that has a message only.
    pub fn new(level: Level, event: &str, message: String) -> Record {
        Record { time: now(), level, event: event.to_owned(), message, fields: Vec::new() }
    }

    /// The record of an event.
    pub fn of(event: &tracing::Event<'_>) -> Record {
        let mut record = Record::new(*event.metadata().level(), LIBRARY, String::new());
        event.record(&mut record);
        cut(&mut record.message, MESSAGE_OCTETS);
        record
    }

    /// Octets that the record takes in the queue.
    pub fn octets(&self) -> usize {
        let fields = self.fields.iter().map(|(name, value)| name.len() + value.len());
        self.event.len() + self.message.len() + fields.sum::<usize>()
    }

    /// Priority of syslog (RFC 5424 section 6.2.1) and of the journal.
    pub fn severity(&self) -> u8 {
        match self.level {
            Level::ERROR => 3,
            Level::WARN => 4,
            Level::INFO => 6,
            Level::DEBUG | Level::TRACE => 7,
        }
    }

    /// Message and fields in one format, without time and level if it is text. Control characters other than line feeds are
    /// escaped.
    pub fn body(&self, format: Format) -> String {
        match format {
            Format::Json => self.json(),
            Format::Text => {
                let mut text = self.message.clone();
                for (name, value) in self.fields.iter().filter(|_| self.event == LIBRARY) {
                    let _ = write!(text, " {name}={value}");
                }
                escape::text(&text)
            }
        }
    }

    /// The line or the lines for a target that adds no level. `has_time`: the target adds the time.
    pub fn line(&self, format: Format, has_time: bool) -> String {
        let level = self.level.as_str();
        match format {
            Format::Json => self.json(),
            Format::Text if has_time => format!("{level:>5} {}", self.body(format)),
            Format::Text => format!("{} {level:>5} {}", self.time, self.body(format)),
        }
    }

    /// The line for a target that is to have the message alone, like `sixfold: ready`.
    pub fn plain(&self, format: Format) -> String {
        match format {
            Format::Json => self.json(),
            Format::Text => self.message.clone(),
        }
    }

    /// One object with `timestamp`, `level` and `fields`, on one line. People read it too, so the time stands first.
    fn json(&self) -> String {
        let quoted = |text: &str| escape::json(&Value::from(text).to_string());
        let mut fields = format!("\"message\":{},\"event\":{}", quoted(&self.message), quoted(&self.event));
        for (name, value) in &self.fields {
            let _ = write!(fields, ",{}:{}", quoted(name), quoted(value));
        }
        format!("{{\"timestamp\":\"{}\",\"level\":\"{}\",\"fields\":{{{fields}}}}}", self.time, self.level)
    }
}

impl Visit for Record {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        match field.name() {
            "message" => _ = write!(self.message, "{value:?}"),
            "event" => self.event = format!("{value:?}"),
            name => self.fields.push((name, format!("{value:?}"))),
        }
    }
}

/// The present time in the form of RFC 3339.
fn now() -> String {
    let mut time = String::new();
    // Writing to a string cannot fail.
    let _ = SystemTime.format_time(&mut Writer::new(&mut time));
    time
}

/// Cuts a text to a number of octets, and says how many are left out.
pub fn cut(text: &mut String, octets: usize) {
    /// Room for the mark: `... [18446744073709551615 octets left out]`.
    const MARK: usize = 44;
    if text.len() <= octets {
        return;
    }
    let end = text.floor_char_boundary(octets.saturating_sub(MARK));
    let left_out = text.len() - end;
    text.truncate(end);
    let _ = write!(text, "... [{left_out} octets left out]");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            time: "2026-01-02T03:04:05.000006Z".into(),
            level: Level::WARN,
            event: LIBRARY.into(),
            message: "first\nsecond \u{1b}[31m \u{e9}".into(),
            fields: vec![("error", "no \"room\"".into())],
        }
    }

    #[test]
    fn a_line_has_time_level_message_and_fields_and_no_control_characters() {
        assert_eq!(
            record().line(Format::Text, false),
            "2026-01-02T03:04:05.000006Z  WARN first\nsecond \\027[31m \u{e9} error=no \"room\""
        );
        let ours = Record { event: "reloaded".into(), ..record() };
        assert_eq!(ours.line(Format::Text, true), " WARN first\nsecond \\027[31m \u{e9}");
        let json = ours.line(Format::Json, true);
        assert!(!json.chars().any(char::is_control), "{json}");
        let value: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["timestamp"], "2026-01-02T03:04:05.000006Z");
        assert_eq!((&value["level"], &value["fields"]["error"]), (&"WARN".into(), &"no \"room\"".into()));
        assert_eq!(value["fields"]["message"], record().message);
        assert_eq!(value["fields"]["event"], "reloaded");
    }

    #[test]
    fn a_long_text_is_cut_between_characters_and_says_so() {
        let mut text = "\u{e9}".repeat(100);
        cut(&mut text, 200);
        assert_eq!(text.len(), 200, "it fits");
        cut(&mut text, 101);
        assert!(text.len() <= 101 && text.ends_with("... [144 octets left out]"), "{text}");
    }
}
