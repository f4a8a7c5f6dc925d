//! Settings about validation: those of the section `dnssec`, and the functions of Lua that stood for them before version 5.0.

use super::Setting;
use crate::draft::Draft;
use crate::ledger::{Outcome, Reading, Spot, differs_if, require};
use crate::sources::Sources;
use crate::trust::Anchors;
use crate::validation::{except, file, record};
use crate::value::{self, range};

/// Difference of `process` and `log-fail`.
const FOR_ALL: &str = "Sixfold validates for all clients, and gives none of them bogus data";

/// Settings about validation that decide together.
#[derive(Debug, Default)]
pub(super) struct Switches {
    /// The mode validates; none if the file does not say.
    is_on: Option<bool>,
    /// The keys of the root count only if a setting names them.
    forgets_root: bool,
}

impl Switches {
    /// Reads a setting whose outcome depends on others, and is recorded when all are known: trust anchors, and what matters only if the
    /// recursor validates.
    pub(super) fn read_later(&mut self, setting: &Setting, draft: &mut Draft) -> bool {
        match setting.name.as_str() {
            "trustanchors" => {
                self.forgets_root = true;
                for text in setting.value.split(';').filter(|text| !text.trim().is_empty()) {
                    add(record(text), setting, draft);
                }
            }
            "signature-inception-skew" if setting.value != "0" => {
                draft.model.validation.leave(&setting.spot, value::NO_TOLERANCE);
            }
            "trustanchorfile" if !setting.value.is_empty() => {
                add(file(&setting.value), setting, draft);
            }
            _ => return false,
        }
        true
    }

    /// Reads another setting about validation.
    pub(super) fn read(
        &mut self,
        setting: &Setting,
        sources: &mut Sources<'_>,
        draft: &mut Draft,
    ) -> Reading<bool> {
        let value = setting.value.as_str();
        match setting.name.as_str() {
            "dnssec" => {
                self.is_on = Some(match value {
                    "off" | "process-no-validate" => false,
                    "process" | "log-fail" | "validate" => true,
                    _ => return Err("this is no mode of validation".into()),
                });
                differs_if(matches!(value, "process" | "log-fail"), FOR_ALL)?;
            }
            "negative-trustanchors" => {
                value::list(value).try_for_each(|name| except(&mut draft.model.validation, name))?;
            }
            "nsec3-max-iterations" => {
                let key = &mut draft.model.validation.nsec3_iterations;
                value::set_number(key, value, range::NSEC3_ITERATIONS)?;
            }
            "aggressive-nsec-cache-size" => draft.model.validation.without_aggressive_nsec = value == "0",
            "signature-inception-skew" | "trustanchorfile" => {}
            "lua-config-file" => self.read_script(setting, sources, draft)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads the functions about trust anchors of a script. All others are left over.
    fn read_script(&mut self, setting: &Setting, sources: &mut Sources<'_>, draft: &mut Draft) -> Reading {
        let files = sources
            .file(setting.spot.place.file, &setting.value)
            .map_err(|why| format!("Sixfold runs no Lua, and cannot read it: {why}"))?;
        let text: String = files.into_iter().map(|(_, text)| text).collect();
        let mut lost = Vec::new();
        for line in text.lines().map(|line| line.split("--").next().unwrap_or_default().trim()) {
            let (function, arguments) = line.split_once('(').unwrap_or((line, ""));
            let words: Vec<&str> = arguments.split(['"', '\'']).skip(1).step_by(2).collect();
            match (function.trim(), &words[..]) {
                ("", _) | ("clearNTA", _) => {}
                ("clearTA", [] | [".", ..]) => self.forgets_root = true,
                ("addTA" | "addDS", [name, records @ ..]) if !records.is_empty() => {
                    for data in records {
                        add(record(&format!("{name} DS {data}")), setting, draft);
                    }
                }
                ("addNTA", [name, ..]) => except(&mut draft.model.validation, name)?,
                ("readTrustAnchorsFromFile", [path, ..]) => add(file(path), setting, draft),
                (other, _) => lost.push(other.to_owned()),
            }
        }
        let lost = lost.join(", ");
        let why =
            format!("without {lost}: Sixfold runs no Lua, and has `filter.rpz` for response policy zones");
        require(lost.is_empty(), &why)
    }

    /// Decides if the recursor validates: unless the file says otherwise it does, with the keys of the root.
    pub(super) fn finish(&self, draft: &mut Draft) {
        if self.is_on.is_none() {
            let spot = Spot::line(1, "dnssec, which is `process` if the file does not say");
            draft.record(&spot, Outcome::differs(FOR_ALL));
        }
        let validation = &mut draft.model.validation;
        validation.is_on = self.is_on.unwrap_or(true);
        if !self.forgets_root {
            validation.add_root(false);
        }
    }
}

fn add(anchors: Result<Anchors, &'static str>, setting: &Setting, draft: &mut Draft) {
    match anchors {
        Ok(anchors) => draft.model.validation.add(anchors, &setting.spot, false),
        Err(why) => draft.record(&setting.spot, why),
    }
}
