//! Validation in named.conf: trust anchors, which may stand outside of views and in them, and the options about it.

use super::syntax::Statement;
use crate::draft::Draft;
use crate::ledger::{Outcome, Reading, require};
use crate::validation;
use crate::value;

/// Options about validation that decide together.
#[derive(Debug, Default)]
pub(super) struct Switches {
    /// The value of `dnssec-validation`.
    mode: Option<Mode>,
    /// `dnssec-enable no`, which BIND had before 9.15, turns everything off.
    is_disabled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// With the keys of the root.
    Auto,
    /// With the trust anchors of the file alone.
    Yes,
    No,
}

impl Switches {
    /// Reads an option about validation.
    pub(super) fn read(&mut self, statement: &Statement, draft: &mut Draft) -> Reading<bool> {
        let word = statement.word(1);
        match statement.keyword() {
            "dnssec-validation" => {
                let mode = match value::yes_no(word) {
                    Some(true) => Mode::Yes,
                    Some(false) => Mode::No,
                    None if word == "auto" => Mode::Auto,
                    None => return Err("this is none of auto, yes and no".into()),
                };
                self.mode = Some(mode);
            }
            "dnssec-enable" => self.is_disabled = value::yes_no(word) == Some(false),
            "validate-except" => {
                for element in statement.block().unwrap_or_default() {
                    validation::except(&mut draft.model.validation, element.keyword())?;
                }
            }
            "synth-from-dnssec" => {
                draft.model.validation.without_aggressive_nsec = value::yes_no(word) == Some(false);
            }
            "dnssec-accept-expired" => {
                require(value::yes_no(word) == Some(false), "Sixfold takes no expired signature")?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Decides if BIND validates, and with which keys.
    pub(super) fn finish(self, draft: &mut Draft) {
        let validation = &mut draft.model.validation;
        validation.is_on = !self.is_disabled
            && match self.mode {
                None | Some(Mode::Auto) => {
                    validation.add_root(true);
                    true
                }
                Some(Mode::Yes) => validation.has_anchors(),
                Some(Mode::No) => false,
            };
    }
}

/// Reads `trust-anchors`, `managed-keys` or `trusted-keys`.
pub(super) fn read_anchors(statement: &Statement, draft: &mut Draft) {
    let keyword = statement.keyword();
    draft.record(&statement.spot.header(&format!("{keyword} {{")), Outcome::Carried);
    for element in statement.block().unwrap_or_default() {
        match record(element).as_deref().map(validation::record) {
            Some(Ok(anchors)) => {
                let is_followed = element.word(1).starts_with("initial");
                draft.model.validation.add(anchors, &element.spot, is_followed);
            }
            Some(Err(why)) => draft.record(&element.spot, why),
            None => draft.record(&element.spot, "this is no trust anchor"),
        }
    }
}

/// A trust anchor as a record: `NAME initial-ds 12345 13 2 "..."`, or without the kind in `trusted-keys`.
fn record(element: &Statement) -> Option<String> {
    let words: Vec<&str> = element.words().collect();
    let (rtype, data) = match words.split_first()? {
        (&("initial-key" | "static-key"), data) => ("DNSKEY", data),
        (&("initial-ds" | "static-ds"), data) => ("DS", data),
        (number, _) if number.parse::<u16>().is_ok() => ("DNSKEY", &words[..]),
        _ => return None,
    };
    Some(format!("{} {rtype} {}", element.keyword(), data.join(" ")))
}
