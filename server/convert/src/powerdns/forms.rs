//! The old form of recursor.conf: `name=value` and `name+=value`, comments after `#`, lines continued by a backslash.

use super::Setting;
use crate::SyntaxError;
use crate::draft::Draft;
use crate::ledger::{Place, Spot};
use crate::sources::Sources;

/// Parses a file, and those of its `include-dir`.
///
/// # Errors
///
/// A line has no equals sign.
pub(super) fn parse(
    text: &str,
    file: usize,
    sources: &mut Sources<'_>,
    draft: &mut Draft,
) -> Result<Vec<Setting>, SyntaxError> {
    let mut settings = Vec::new();
    let mut lines = text.lines().zip(1..);
    while let Some((line, first)) = lines.next() {
        let (mut whole, mut last) = (without_comment(line).to_owned(), first);
        while whole.ends_with('\\') {
            whole.pop();
            let Some((next, number)) = lines.next() else { break };
            whole += without_comment(next).trim_start();
            last = number;
        }
        let whole = whole.trim();
        if whole.is_empty() {
            continue;
        }
        let Some((name, value)) = whole.split_once('=') else {
            let what = format!("`{whole}` has no equals sign");
            return Err(SyntaxError { file, line: first, what });
        };
        let is_added = name.ends_with('+');
        let spot = Spot { place: Place { file, first, last }, text: whole.to_owned() };
        let name = name.trim_end_matches('+').trim().to_owned();
        let setting = Setting { spot, name, value: value.trim().to_owned(), is_added };
        // The files of the folder come after all lines of this one.
        if setting.name == "include-dir" && !setting.value.is_empty() {
            let files = sources.folder(file, &setting.value, ".conf");
            for (file, text) in draft.take_files(&setting.spot, files, "*.conf in it") {
                // A folder of an included file is not read: PowerDNS reads one level, too.
                settings.extend(parse(&text, file, sources, draft)?);
            }
            continue;
        }
        settings.push(setting);
    }
    Ok(settings)
}

/// The line up to a comment, which begins at `#` at the start of the line or after a blank.
fn without_comment(line: &str) -> &str {
    let mut before = ' ';
    for (index, c) in line.char_indices() {
        if c == '#' && before.is_whitespace() {
            return line[..index].trim_end();
        }
        before = c;
    }
    line.trim_end()
}
