//! The example with every key, `docs/examples/server/every-key.toml`. Its text comes from sixfold.toml(5), so it cannot describe a key in
//! another way, or have another default.

use book::Entry;
use std::fmt::Write;

/// Begin of the file.
const HEAD: &str = "\
# Every key of sixfold.toml(5), with its default. `cargo run -p sixfold-manual` writes this file from the manual page.
#
# A line that begins with # and a word is a key: delete the # to change its value. Lines that begin with # and a space
# describe the next key; the manual page says more about most of them.
#
#     sixfold check --config FILE    prints the effective configuration, or every error
";

/// Characters of a line.
const WIDTH: usize = 120;

/// Characters of a description. The first sentence is there in any case.
const DESCRIPTION: usize = 360;

/// A key without a default and without an example is not to be used as it stands.
const PLACEHOLDER: &str = "\"...\"";

/// The file, by the text of the manual page.
///
/// # Errors
///
/// A key of the page has no description. The text names it.
pub fn write(manual: &str) -> Result<String, String> {
    let mut file = HEAD.to_owned();
    for entry in book::entries(manual) {
        if entry.key.is_empty() {
            write_table(&mut file, &entry);
        } else {
            write_key(&mut file, &entry)?;
        }
    }
    Ok(file)
}

/// The heading of a table. One that may be repeated is not in force, as its keys are examples.
fn write_table(file: &mut String, table: &Entry) {
    file.push('\n');
    comment(file, &description(table));
    let sign = if table.heading.starts_with("[[") { "#" } else { "" };
    let _ = writeln!(file, "{sign}{}", table.heading);
}

fn write_key(file: &mut String, entry: &Entry) -> Result<(), String> {
    let text = description(entry);
    if text.is_empty() {
        return Err(format!("{} {} has no description", entry.heading, entry.key));
    }
    file.push('\n');
    comment(file, &text);
    let (default, example) = (value_behind(entry, "Default: "), value_behind(entry, "Example: "));
    let value = match (default, example) {
        (Some(default), Some(example)) => {
            let _ = writeln!(file, "# Example: {} = {example}", entry.key);
            default
        }
        (default, example) => default.or(example).unwrap_or_else(|| PLACEHOLDER.to_owned()),
    };
    let _ = writeln!(file, "#{} = {value}", entry.key);
    Ok(())
}

/// The first sentences of an entry, without default and example.
fn description(entry: &Entry) -> String {
    let sentences = entry.paragraphs.first().into_iter().flatten();
    let mut text = String::new();
    for sentence in sentences.filter(|sentence| !is_about_the_value(sentence)) {
        if !text.is_empty() && text.len() + sentence.len() > DESCRIPTION {
            break;
        }
        text += if text.is_empty() { "" } else { " " };
        text += sentence;
    }
    let all = || entry.paragraphs.iter().flatten();
    for absent in all().filter(|sentence| sentence.starts_with("Absent:")) {
        text += &format!(" {absent}");
    }
    if all().any(|sentence| sentence == "Restart.") {
        text += " Takes effect at a start only.";
    }
    text
}

fn is_about_the_value(sentence: &str) -> bool {
    ["Default:", "Example:", "Absent:", "Restart."].iter().any(|start| sentence.starts_with(start))
}

/// The value of TOML that a sentence has behind this word.
fn value_behind(entry: &Entry, word: &str) -> Option<String> {
    let text = entry.paragraphs.iter().flatten().find_map(|sentence| sentence.strip_prefix(word))?;
    let length = match text.chars().next()? {
        '"' => 2 + text[1..].find('"')?,
        '[' => {
            let mut is_quoted = false;
            let closes = |octet: u8| {
                is_quoted ^= octet == b'"';
                octet == b']' && !is_quoted
            };
            1 + text.bytes().position(closes)?
        }
        _ => text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len()),
    };
    Some(text[..length].to_owned()).filter(|value| value != "absent")
}

/// A comment of whole words.
fn comment(file: &mut String, text: &str) {
    let mut width = WIDTH;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        if width + 1 + word.chars().count() > WIDTH {
            if !file.ends_with('\n') {
                file.push('\n');
            }
            file.push('#');
            width = 1;
        }
        let _ = write!(file, " {word}");
        width += 1 + word.chars().count();
    }
    if !file.ends_with('\n') {
        file.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANUAL: &str = ".SH TABLES\n.SS [a]\n.TP\n.BR list \" = \" x\nA list, \\(dqx\\(dq or not.\n.IP\nFurther text.\nExample:\n\
        .BR \"[\\(dqb]\\(dq, 2]\" .\nDefault:\n.BR [] ,\nnone.\n.IR Restart .\n.TP\n.BR secret \" = \" x\nA secret.\n\
        Default: absent; random.\n.SS [[a.b]]\nTables.\n.TP\n.BR n \" = \" x\nA number.\nAbsent: none.\nExample:\n.BR 7 .\n";

    #[test]
    fn a_key_has_its_default_or_an_example_below_its_description() {
        let expected = "\n[a]\n\n# A list, \"x\" or not. Takes effect at a start only.\n# Example: list = [\"b]\", 2]\n#list = []\n\n\
            # A secret.\n#secret = \"...\"\n\n# Tables.\n#[[a.b]]\n\n# A number. Absent: none.\n#n = 7\n";
        assert_eq!(write(MANUAL).unwrap().strip_prefix(HEAD), Some(expected));
    }

    #[test]
    fn a_long_description_is_cut_at_a_sentence_and_broken_at_words() {
        let words = "word ".repeat(100);
        let manual = format!(".SS [a]\n.TP\n.BR k \" = \" x\n{words}end.\nToo much.\nDefault:\n.BR 1 .\n");
        let file = write(&manual).unwrap();
        assert!(!file.contains("Too much") && file.ends_with("\n#k = 1\n"), "{file}");
        assert!(file.lines().all(|line| line.chars().count() <= WIDTH), "{file}");
        assert!(write(".SS [a]\n.TP\n.BR k \" = \" x\nDefault:\n.BR 1 .\n").unwrap_err().contains("[a] k"));
    }
}
