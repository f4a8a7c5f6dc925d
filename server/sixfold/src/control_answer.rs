//! The answer of the control socket, and its form on the wire: a line `STATUS OCTETS`, then the text. The status is the exit status
//! of `sixfold ctl`, and OCTETS is the length of the text, by which the client notices an answer that was cut off. An answer
//! without a known length, as that of a command that goes on, has a line `STATUS` alone.

pub use crate::config::Format;
use crate::escape;
use serde_json::{Value, json};

/// Begin of the error about a command that the server does not know: an older server, for a newer client.
pub const UNKNOWN_COMMAND: &str = "unknown command: ";

/// Answer to a command.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    is_yes: bool,
    text: String,
}

impl Answer {
    /// Text for people. Control characters are escaped.
    pub fn text(text: String) -> Answer {
        Answer { is_yes: true, text: escape::text(&text) }
    }

    /// An object for scripts, on one line.
    pub fn json(value: &Value) -> Answer {
        Answer::json_lines(std::slice::from_ref(value))
    }

    /// An answer in the form that is asked for.
    pub fn of(format: Format, json: impl FnOnce() -> Value, text: impl FnOnce() -> String) -> Answer {
        match format {
            Format::Json => Answer::json(&json()),
            Format::Text => Answer::text(text()),
        }
    }

    /// Objects for scripts, one a line.
    pub fn json_lines(values: &[Value]) -> Answer {
        let lines: String = values.iter().map(|value| format!("{value}\n")).collect();
        Answer { is_yes: true, text: escape::json(&lines) }
    }

    /// An error: the command failed.
    pub fn error(text: &str, format: Format) -> Answer {
        match format {
            Format::Text => Answer::text(text.to_owned()).no(),
            Format::Json => Answer::json(&error_object(text.trim_end(), code(text))).no(),
        }
    }

    /// The answer with exit status 1: the command failed, or the answer is no.
    pub fn no(self) -> Answer {
        Answer { is_yes: false, ..self }
    }

    /// The answer as it goes over the socket.
    pub fn to_wire(&self) -> String {
        format!("{} {}\n{}", u8::from(!self.is_yes), self.text.len(), self.text)
    }
}

/// The object for an error: its text for people, and its code for scripts.
pub fn error_object(text: &str, code: &str) -> Value {
    json!({ "error": text, "code": code })
}

/// The code of an error of the server.
fn code(text: &str) -> &'static str {
    if text.starts_with(UNKNOWN_COMMAND) { "unknown_command" } else { "failed" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_its_status_and_its_length() {
        assert_eq!(Answer::text("serving\n".into()).to_wire(), "0 8\nserving\n");
        assert_eq!(Answer::text("a\u{1b}\n".into()).no().to_wire(), "1 6\na\\027\n");
        let object = json!({ "a": "\u{9b}" });
        assert_eq!(Answer::json(&object).to_wire(), "0 15\n{\"a\":\"\\u009b\"}\n");
    }

    #[test]
    fn an_error_is_text_or_an_object_with_a_code() {
        let unknown = format!("{UNKNOWN_COMMAND}\"x\"\n");
        assert_eq!(Answer::error(&unknown, Format::Text), Answer::text(unknown.clone()).no());
        for (text, code) in [(unknown.as_str(), "unknown_command"), ("it failed\n", "failed")] {
            let answer = Answer::error(text, Format::Json);
            let object: Value = serde_json::from_str(&answer.text).unwrap();
            assert!(!answer.is_yes);
            assert_eq!(object, json!({ "error": text.trim_end(), "code": code }));
        }
    }
}
