//! The parts of a manual page: the words of a request, plain text, and the keys of the configuration with their descriptions.

/// A table of the configuration, or a key of it, as sixfold.toml(5) describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Heading of the table, like `[dns64.on-failure]` or `[[dns64.rule]]`.
    pub heading: String,
    /// The key; empty for the table itself.
    pub key: String,
    /// The description: the sentences of each paragraph, as plain text.
    pub paragraphs: Vec<Vec<String>>,
}

/// Keys of the configuration by the manual page, as `table.key`, in the order of the page.
pub fn keys(manual: &str) -> Vec<String> {
    let mut table = String::new();
    let mut keys = Vec::new();
    for line in manual.lines() {
        if let Some(heading) = line.strip_prefix(".SS ") {
            table = table_name(heading);
        } else if let Some(key) = key(line)
            && !table.is_empty()
        {
            keys.push(format!("{table}.{key}"));
        }
    }
    keys
}

/// Tables and keys of the configuration with their descriptions, in the order of the page. Tables of keys that do not exist yet are left
/// out.
pub fn entries(manual: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let (mut heading, mut sentence, mut is_described) = (None, String::new(), false);
    for line in manual.lines() {
        let (name, rest) = line
            .strip_prefix('.')
            .map_or(("", line), |request| request.split_once(' ').unwrap_or((request, "")));
        match name {
            "SH" => (heading, is_described) = (None, false),
            "SS" => {
                // A heading that goes on behind the bracket is about keys that do not exist yet.
                heading = Some(rest.replace("\\-", "-"))
                    .filter(|text| text.starts_with('[') && text.ends_with(']'));
                is_described = heading.is_some();
                sentence.clear();
                entries.extend(
                    heading.iter().map(|heading| Entry { heading: heading.clone(), ..Entry::default() }),
                );
            }
            // A comment.
            "\\\"" => {}
            "TP" | "PP" => is_described = false,
            "IP" | "RS" | "RE" => {
                if let Some(entry) = entries.last_mut().filter(|_| is_described) {
                    entry.paragraphs.push(Vec::new());
                }
            }
            _ => match (key(line), &heading) {
                (Some(key), Some(heading)) => {
                    entries.push(Entry { heading: heading.clone(), key, ..Entry::default() });
                    is_described = true;
                    sentence.clear();
                }
                _ if is_described => {
                    let (text, may_end) = line_of_text(name, rest, line);
                    sentence += if sentence.is_empty() { "" } else { " " };
                    sentence += &text;
                    if may_end && text.ends_with('.') {
                        add(entries.last_mut(), std::mem::take(&mut sentence));
                    }
                }
                _ => {}
            },
        }
    }
    entries
}

/// Adds a sentence to the last paragraph of an entry.
fn add(entry: Option<&mut Entry>, sentence: String) {
    let Some(entry) = entry else { return };
    match entry.paragraphs.last_mut() {
        Some(paragraph) => paragraph.push(sentence),
        None => entry.paragraphs.push(vec![sentence]),
    }
}

/// A line as plain text; true if a full stop at its end ends a sentence: a single word in bold may end with one of its own.
fn line_of_text(request: &str, rest: &str, line: &str) -> (String, bool) {
    match request {
        "" => (without_fonts(line), true),
        "B" | "I" => (without_fonts(&arguments(rest).join(" ")), false),
        _ => (without_fonts(&arguments(rest).concat()), true),
    }
}

/// Plain text without changes of the font.
fn without_fonts(text: &str) -> String {
    let mut parts = text.split("\\f");
    let first = parts.next().unwrap_or_default().to_owned();
    plain(&parts.fold(first, |text, part| text + part.get(1..).unwrap_or_default()))
}

/// Table of a heading like `[dns64.on\-failure] and its values`; empty if it names none.
pub(crate) fn table_name(heading: &str) -> String {
    let heading = heading.replace("\\-", "-").replace('"', "");
    let name = heading.trim_start_matches('[').split(']').next().unwrap_or_default();
    if heading.starts_with('[') { name.to_owned() } else { String::new() }
}

/// Key of a line like `.BR listen " = " \fIaddresses\fR`.
pub(crate) fn key(line: &str) -> Option<String> {
    let words = arguments(line.strip_prefix(".BR ")?);
    let is_key = words.get(1)?.starts_with(" = ");
    is_key.then(|| words[0].replace("\\-", "-"))
}

/// Words of a request: separated by spaces, or in double quotes.
pub(crate) fn arguments(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    words
}

/// Text without the escapes of troff, other than fonts.
pub(crate) fn plain(text: &str) -> String {
    let mut text = text.to_owned();
    let escapes = [
        ("\\(dq", "\""),
        ("\\(lq", "\""),
        ("\\(rq", "\""),
        ("\\(aq", "'"),
        ("\\(co", "©"),
        ("\\-", "-"),
        ("\\&", ""),
        ("\\|", ""),
        ("\\ ", "\u{a0}"),
    ];
    for (escape, letter) in escapes {
        text = text.replace(escape, letter);
    }
    text.replace("\\e", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = ".TH X.TOML 5 \"\" \"X\"\n.SH KEYS\n.SS [[dns64.rule]]\nA rule.\n.TP\n\
        .BR real\\-aaaa \" = \" \\(dqa\\(dq \" | \" \\(dqb\\(dq\nNames without\n.B *.\nin \\fIfront\\fR.\n.\\\" more\nExample:\n\
        .BR \"[\\(dqa b\\(dq]\" .\n.IP\nMore.\nDefault:\n.BR \\(dqa\\(dq .\n.PP\nNot of a key.\n\
        .SS [dns64], not supported yet\n.TP\n.BR x \" = \" y\nNothing.\n.SH END\nNothing.\n";

    #[test]
    fn tables_and_keys_have_their_sentences() {
        let heading = "[[dns64.rule]]".to_owned();
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let table =
            Entry { heading: heading.clone(), paragraphs: vec![texts(&["A rule."])], ..Entry::default() };
        let first = texts(&["Names without *. in front.", "Example: [\"a b\"]."]);
        let second = texts(&["More.", "Default: \"a\"."]);
        let key = Entry { heading, key: "real-aaaa".into(), paragraphs: vec![first, second] };
        assert_eq!(entries(PAGE), [table, key]);
        assert_eq!(keys(PAGE), ["dns64.rule.real-aaaa", "dns64.x"]);
    }
}
