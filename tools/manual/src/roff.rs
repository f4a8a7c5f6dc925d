//! Text of `--help` as text of a manual page (man(7)).

/// Plain text with the characters that are special to roff escaped.
pub fn escape(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-").replace('"', "\\(dq").replace('\'', "\\(aq");
    // A line that begins with a dot would be a request.
    if escaped.starts_with('.') { format!("\\&{escaped}") } else { escaped }
}

/// A help text as sentences, and its default, which stands in square brackets at its end, as a sentence of its own.
pub fn help(text: &str) -> String {
    let (text, default) = match text.split_once(" [default: ") {
        Some((text, default)) => (text, Some(default.trim_end_matches(']'))),
        None => (text, None),
    };
    let default = default.map(|default| format!("Default: {}.\n", words(default))).unwrap_or_default();
    format!("{}\n{default}", sentence(text))
}

/// A default value, as a sentence of its own.
pub fn default(value: &str) -> String {
    let value = escape(value);
    let value = if value.contains(' ') { format!("\"{value}\"") } else { value };
    format!("Default:\n.BR {value} .\n")
}

/// A text with a full stop at its end.
pub fn sentence(text: &str) -> String {
    let text = words(text.trim_end());
    if text.ends_with(['.', '?']) { text } else { format!("{text}.") }
}

/// A text in which words between backquotes are bold.
pub fn words(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(number, part)| match number % 2 {
        0 => escape(part),
        _ => format!("\\fB{}\\fR", escape(part)),
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_help_text_becomes_sentences_with_its_default_and_bold_words() {
        assert_eq!(
            help("Worker threads, 1 to 256 [default: one per core]"),
            "Worker threads, 1 to 256.\nDefault: one per core.\n"
        );
        assert_eq!(
            help("Network, or `local` for \"near\" ones [default: `[::1]:53` and x-y]"),
            "Network, or \\fBlocal\\fR for \\(dqnear\\(dq ones.\nDefault: \\fB[::1]:53\\fR and x\\-y.\n"
        );
        assert_eq!(escape(".a\\b'c"), "\\&.a\\eb\\(aqc");
    }
}
