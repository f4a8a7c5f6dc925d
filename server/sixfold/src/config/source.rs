//! The text of a configuration file as an error report shows it: line by line, without secrets and control characters.
//!
//! Secrets are found in the text, not in the TOML: the file may not be TOML at all, as a quotation mark is missing.

/// Hexadecimal digits in a row that are a secret wherever they stand. A cookie secret has 32; one that is wrong may have fewer.
const SECRET_DIGITS: usize = 16;

/// Lines of a text.
pub struct SourceLines<'t> {
    text: &'t str,
    /// First octet of each line.
    starts: Vec<usize>,
    /// True for a line that continues the value of a secret.
    continues: Vec<bool>,
}

impl<'t> SourceLines<'t> {
    /// The lines of a text.
    pub fn of(text: &'t str) -> SourceLines<'t> {
        let mut starts = vec![0];
        starts.extend(text.bytes().zip(1..).filter(|&(octet, _)| octet == b'\n').map(|(_, after)| after));
        let mut lines = SourceLines { text, starts, continues: Vec::new() };
        let mut open = false;
        for line in 0..lines.starts.len() {
            let source = lines.line(line);
            let continues = open && !begins_entry(source);
            open = match after_secret(source) {
                Some(value) => is_open(&source[value..]),
                None => continues && !ends_value(source),
            };
            lines.continues.push(continues);
        }
        lines
    }

    /// Line and column, both counted from 1, of an octet of the text. Columns count characters.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        let offset = offset.min(self.text.len());
        let line = self.starts.partition_point(|&start| start <= offset);
        let before = &self.text.as_bytes()[self.starts[line - 1]..offset];
        (line, 1 + String::from_utf8_lossy(before).chars().count())
    }

    /// A line, counted from 1, with one printable character for each character, so that carets below it stay in place.
    /// Secrets are asterisks, and control characters do not reach the terminal.
    pub fn shown(&self, line: usize) -> String {
        let source = self.line(line - 1).trim_end_matches('\r');
        let value = if self.continues[line - 1] { Some(0) } else { after_secret(source) };
        let masked: String = source
            .char_indices()
            .map(|(at, character)| {
                match character.is_alphanumeric() && value.is_some_and(|value| at >= value) {
                    true => '*',
                    false => character,
                }
            })
            .collect();
        printable(&without_digits(&masked))
    }

    fn line(&self, line: usize) -> &'t str {
        let end = self.starts.get(line + 1).map_or(self.text.len(), |next| next - 1);
        &self.text[self.starts[line]..end]
    }
}

/// Place in a line after a key that names a secret, like `cookie-secret`; none if there is no such key. A misspelled one
/// (`cookie_secrets`) counts, and so does a comment.
fn after_secret(line: &str) -> Option<usize> {
    let found = line.to_ascii_lowercase().find("secret")? + "secret".len();
    let rest =
        line[found..].trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    Some(line.len() - rest.len())
}

/// True if the rest of a line after the key of a secret begins a value that goes on in the next line.
fn is_open(value: &str) -> bool {
    let value = value.trim_start_matches(['"', '\'', ' ', '\t', '=', ':']).trim();
    value.is_empty() || value.starts_with('[') && !value.contains(']')
}

/// True if a line ends a value that began in an earlier line: a list or a text of several lines.
fn ends_value(line: &str) -> bool {
    line.contains(']') || line.contains("\"\"\"") || line.contains("'''")
}

/// True if a line begins another entry: `KEY =`, or `[TABLE]`.
fn begins_entry(line: &str) -> bool {
    let line = line.trim_start();
    let key = line.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "-_.\"'".contains(c));
    let is_key = key.len() < line.len() && key.trim_start().starts_with('=');
    is_key || line.starts_with('[') && line[1..].starts_with(|c: char| c == '[' || c.is_ascii_alphabetic())
}

/// The line with each long run of hexadecimal digits as asterisks.
fn without_digits(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(|c: char| c.is_ascii_hexdigit()) {
        let (before, run) = rest.split_at(at);
        let length = run.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(run.len());
        shown.push_str(before);
        match length >= SECRET_DIGITS {
            true => shown.extend(std::iter::repeat_n('*', length)),
            false => shown.push_str(&run[..length]),
        }
        rest = &run[length..];
    }
    shown + rest
}

/// `line` with one printable character for each character.
fn printable(line: &str) -> String {
    line.chars()
        .map(|character| match character {
            '\t' => ' ',
            other if other.is_control() => char::REPLACEMENT_CHARACTER,
            other => other,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let lines = SourceLines::of(text);
        (1..=lines.starts.len()).map(|line| lines.shown(line)).collect()
    }

    #[test]
    fn positions_count_lines_and_characters() {
        let lines = SourceLines::of("a\n\u{fc}b\n");
        assert_eq!(
            [0, 1, 2, 4, 6, 99].map(|at| lines.position(at)),
            [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 1)]
        );
        assert_eq!(SourceLines::of("").position(0), (1, 1));
    }

    #[test]
    fn the_value_of_a_secret_is_never_shown_even_in_what_is_not_toml() {
        let secret = "s3cr3t0zz";
        for text in [
            "cookie-secret = \"s3cr3t0zz\"",
            "cookie-secret = \"s3cr3t0zz",
            "cookie-secret = s3cr3t0zz\"",
            "cookie-secret \"s3cr3t0zz\"",
            "# cookie-secret: s3cr3t0zz",
            "edns.\"cookie-secret\" = ['x', 's3cr3t0zz']",
            "edns = { cookies = true, Cookie_Secrets = 's3cr3t0zz' }",
            "cookie-secret = [\n  \"x\",\n  \"s3cr3t0zz\"\n]",
            "cookie-secret = [ # two\n  \"s3cr3t0zz,\n  s3cr3t0zz\"",
            "cookie-secret = \"\"\"\ns3cr3t0zz\n\"\"\"",
            "cookie-secret =\n\"s3cr3t0zz\"",
        ] {
            let shown = shown(text).join("\n");
            assert!(!shown.contains(secret) && shown.contains("***"), "{shown}");
            assert_eq!(shown.chars().count(), text.chars().count());
        }
    }

    #[test]
    fn the_lines_after_a_secret_are_shown() {
        let text = "cookie-secret = [\n\"abc\n[limits]\nzone = \"a\"\ncookie-secret = [\"abc\"]\n\"plain\"";
        let expected = [
            "cookie-secret = [",
            "\"***",
            "[limits]",
            "zone = \"a\"",
            "cookie-secret = [\"***\"]",
            "\"plain\"",
        ];
        assert_eq!(shown(text), expected);
    }

    #[test]
    fn long_runs_of_hexadecimal_digits_are_hidden_wherever_they_stand() {
        let text = "cookie = \"e5e973e5a6b2a43f48e7dc849e37bfcf\" # 2001:db8::53";
        let expected = format!("cookie = \"{}\" # 2001:db8::53", "*".repeat(32));
        assert_eq!(shown(text), [expected]);
    }
}
