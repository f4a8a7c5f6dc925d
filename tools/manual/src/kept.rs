//! Text by hand within generated lists: it follows the generated text of an entry, and is kept when that is written anew. An entry about a
//! key has generated text on both sides of it.

use std::collections::BTreeMap;

const ENTRY: &str = ".\\\" entry: ";
const MORE: &str = ".\\\" more";
const VALUE: &str = ".\\\" value";

/// The text by hand of a block, by the name of the entry.
pub struct Kept(BTreeMap<String, String>);

impl Kept {
    /// The text by hand in the old text of a block.
    pub fn of(old: &str) -> Kept {
        let mut kept = BTreeMap::new();
        for entry in old.split(ENTRY).skip(1) {
            let name = entry.lines().next().unwrap_or_default().to_owned();
            if let Some((_, more)) = entry.split_once(&format!("{MORE}\n")) {
                let more = more.split(VALUE).next().unwrap_or_default();
                kept.insert(name, more.trim_end().to_owned());
            }
        }
        Kept(kept)
    }

    /// An entry: its comment, its generated text, and the text by hand, which is taken out.
    pub fn entry(&mut self, name: &str, generated: &str) -> String {
        // After an indented list, the text goes on with the indentation of the entry.
        let indentation = if generated.ends_with(".RE\n") { ".IP\n" } else { "" };
        let more = self.0.remove(name);
        let more = more.map(|more| format!("{indentation}{MORE}\n{more}\n")).unwrap_or_default();
        format!("{ENTRY}{name}\n{generated}{more}")
    }

    /// The same, with generated text behind the text by hand.
    pub fn entry_around(&mut self, name: &str, before: &str, behind: &str) -> String {
        let mark = if self.0.contains_key(name) && !behind.is_empty() {
            format!("{VALUE}\n")
        } else {
            String::new()
        };
        format!("{}{mark}{behind}", self.entry(name, before))
    }

    /// An entry whose text was not taken out.
    pub fn left(&self) -> Option<&str> {
        self.0.keys().next().map(String::as_str)
    }
}
