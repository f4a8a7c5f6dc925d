//! Keys of the configuration as tagged paragraphs: the values, the first sentences, the bounds, then text by hand, the default, and `Restart`
//! if a reload does not take the key.

use crate::kept::Kept;
use crate::roff::{self, escape};
use sixfold::config::{DescribedKey, described};
use std::fmt::Write;

/// The keys of a table, in the order of the program.
///
/// # Errors
///
/// There is no such table.
pub fn of(table: &str, kept: &mut Kept) -> Result<String, String> {
    let keys: Vec<DescribedKey> = described().into_iter().filter(|key| key.table == table).collect();
    if keys.is_empty() {
        return Err(format!("there is no table {table}"));
    }
    Ok(keys.iter().map(|key| kept.entry_around(key.name, &description(key), &value(key))).collect())
}

/// Values, first sentences and bounds.
fn description(key: &DescribedKey) -> String {
    let values: Vec<String> = key.shape.split(" | ").map(alternative).collect();
    let mut text = format!(".TP\n.BR {} \" = \" {}\n", escape(key.name), values.join(" \" | \" "));
    for line in key.text.lines() {
        let _ = writeln!(text, "{}", roff::words(line.trim()));
    }
    if let Some([low, high]) = &key.bounds {
        let _ = writeln!(text, "{}", roff::words(&format!("From `{low}` to `{high}`.")));
    }
    text
}

/// One of several values: a word of the file, or a name of what stands there.
fn alternative(shape: &str) -> String {
    let text = if shape.contains('"') { escape(shape) } else { format!("\\fI{}\\fR", escape(shape)) };
    if text.contains(' ') { format!("\"{text}\"") } else { text }
}

fn value(key: &DescribedKey) -> String {
    let default = key.default.as_deref().map(roff::default).unwrap_or_default();
    format!("{default}{}", if key.is_restart { ".IR Restart .\n" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_generated_text_on_both_sides_of_the_text_by_hand() {
        let key = DescribedKey {
            table: "a",
            name: "my-key",
            text: " One of `\"x\"` or\n a number.\n",
            shape: "\"x\" | \"y N\" | number".into(),
            bounds: Some(["1".into(), "9".into()]),
            default: Some("\"x\"".into()),
            is_restart: true,
        };
        let before = ".TP\n.BR my\\-key \" = \" \\(dqx\\(dq \" | \" \"\\(dqy N\\(dq\" \" | \" \\fInumber\\fR\n\
            One of \\fB\\(dqx\\(dq\\fR or\na number.\nFrom \\fB1\\fR to \\fB9\\fR\\&.\n";
        let behind = "Default:\n.BR \\(dqx\\(dq .\n.IR Restart .\n";
        assert_eq!((description(&key), value(&key)), (before.to_owned(), behind.to_owned()));
        let old = ".\\\" entry: my-key\nold\n.\\\" more\nBy hand.\n.\\\" value\nold\n";
        let written = Kept::of(old).entry_around("my-key", before, behind);
        assert_eq!(
            written,
            format!(".\\\" entry: my-key\n{before}.\\\" more\nBy hand.\n.\\\" value\n{behind}")
        );
        let bare = Kept::of("").entry_around("my-key", before, behind);
        assert_eq!(bare, format!(".\\\" entry: my-key\n{before}{behind}"));
    }

    #[test]
    fn an_unknown_table_is_told() {
        assert_eq!(of("no", &mut Kept::of("")).unwrap_err(), "there is no table no");
    }
}
