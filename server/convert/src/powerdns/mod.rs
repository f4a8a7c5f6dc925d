//! PowerDNS Recursor: recursor.conf, in the old form (`name=value`) and as YAML (since 5.0).
//!
//! YAML settings are brought to the names and values of the old form ([`yaml`]), so that one reader serves both
//! ([`settings`]).

mod forms;
mod settings;
mod validation;
mod vocabulary;
mod yaml;

use crate::SyntaxError;
use crate::draft::Draft;
use crate::ledger::Spot;
use crate::sources::Sources;
use settings::Settings;

/// Setting under its name in the old form.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    spot: Spot,
    name: String,
    /// Value; lists are separated by commas.
    value: String,
    /// True for `name+=value`, which adds to the value before it.
    is_added: bool,
}

/// Reads the text.
///
/// # Errors
///
/// The first place whose syntax is not that of recursor.conf or recursor.yml. A setting without a counterpart is no error, but an entry
/// of the ledger.
pub(crate) fn read(text: &str, sources: &mut Sources<'_>, draft: &mut Draft) -> Result<(), SyntaxError> {
    let settings = match is_yaml(text) {
        true => yaml::parse(text, 0, sources, draft)?,
        false => forms::parse(text, 0, sources, draft)?,
    };
    let mut all = Settings::default();
    for setting in &settings {
        all.read(setting, sources, draft);
    }
    all.finish(sources, draft);
    Ok(())
}

/// True unless the first line that is neither blank nor a comment has an equals sign before any colon.
fn is_yaml(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let first = lines.next().unwrap_or_default();
    first.find(['=', ':']).is_some_and(|index| first[index..].starts_with(':')) || first.starts_with("---")
}
