//! All bugs in one build: the body of a function with bugs becomes a choice between the sound body and one body for each bug. The
//! environment says which one runs.

use crate::list::{Change, Mutant, find, read_file, write_file};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Environment variable with the number of the bug that a program has. None or 0: it is sound.
pub(crate) const BUG: &str = "SIXFOLD_BUG";

/// Changes of the functions of a file: by the place of a body, by the number of the bug.
type Bodies<'a> = BTreeMap<(usize, usize), BTreeMap<usize, Vec<(usize, &'a Change)>>>;

/// Plants bugs in the workspace at `root` behind switches. The first bug has the number 1. Returns the bugs that cannot have a switch,
/// because a change is outside the body of a function, in a `const fn`, or in one that returns an `impl Trait`. Nothing of them is planted.
pub(crate) fn plant_all<'a>(root: &Path, mutants: &[&'a Mutant]) -> Result<Vec<&'a Mutant>, String> {
    let mut texts: BTreeMap<PathBuf, String> = BTreeMap::new();
    let mut files: BTreeMap<PathBuf, Bodies> = BTreeMap::new();
    let mut alone = vec![];
    for (&mutant, number) in mutants.iter().zip(1..) {
        let mut found = vec![];
        for change in &mutant.changes {
            let (path, start) = find(root, change).map_err(|error| format!("{}: {error}", mutant.name))?;
            if !texts.contains_key(&path) {
                texts.insert(path.clone(), read_file(&path)?);
            }
            found.push((body_around(&texts[&path], start), path, start, change));
        }
        if found.iter().any(|(body, ..)| body.is_none()) {
            alone.push(mutant);
            continue;
        }
        for (body, path, start, change) in found {
            let bodies = files.entry(path).or_default();
            let place = body.map(|body| (body.start, body.end)).unwrap_or_default();
            bodies.entry(place).or_default().entry(number).or_default().push((start, change));
        }
    }
    for (path, bodies) in &files {
        write_file(path, &with_switches(&texts[path], bodies))?;
    }
    let crates: BTreeSet<PathBuf> = files.keys().filter_map(|path| library(path)).collect();
    for path in crates {
        write_file(&path, &format!("{}{}", read_file(&path)?, selector()))?;
    }
    Ok(alone)
}

/// The root file of the library that a source file is of.
fn library(path: &Path) -> Option<PathBuf> {
    let is_root = |folder: &&Path| folder.join("Cargo.toml").exists();
    path.ancestors().skip(1).find(is_root).map(|folder| folder.join("src/lib.rs"))
}

/// A module that says which bug a program has. It stands in crates without the standard library, too.
fn selector() -> String {
    format!(
        "\npub(crate) mod planted {{\n    extern crate std;\n    pub(crate) fn number() -> usize {{\n        \
         static NUMBER: std::sync::LazyLock<usize> = std::sync::LazyLock::new(|| {{\n            \
         std::env::var({BUG:?}).ok().and_then(|text| text.parse().ok()).unwrap_or(0)\n        }});\n        \
         *NUMBER\n    }}\n}}\n"
    )
}

/// A file whose bodies with bugs are choices.
fn with_switches(text: &str, bodies: &Bodies) -> String {
    let mut switched = text.to_owned();
    // From the end on, so that the places before stay.
    for (&(start, end), bugs) in bodies.iter().rev() {
        let mut arms = String::new();
        for (number, changes) in bugs {
            let mut body = text[start..end].to_owned();
            let mut changes = changes.clone();
            changes.sort_by_key(|&(place, _)| std::cmp::Reverse(place));
            for (place, change) in changes {
                body.replace_range(place - start..place - start + change.old.len(), &change.new);
            }
            arms += &format!("{number} => {body}\n");
        }
        let sound = &text[start..end];
        let choice = format!("{{ match crate::planted::number() {{\n{arms}_ => {sound}\n}} }}");
        switched.replace_range(start..end, &choice);
    }
    switched
}

/// A function whose body has not begun.
struct Head {
    depth: usize,
    can_choose: bool,
}

/// The body, with its braces, of the innermost function around an octet of a source file. None: there is none, or it cannot choose.
fn body_around(text: &str, place: usize) -> Option<Range<usize>> {
    let octets = text.as_bytes();
    // For each open brace: where it is, and for the body of a function whether it can choose.
    let mut open: Vec<(usize, Option<bool>)> = vec![];
    let mut depth = 0;
    let mut head: Option<Head> = None;
    let mut word_before = "";
    let mut found: Option<(Range<usize>, bool)> = None;
    let mut at = 0;
    while at < octets.len() {
        let next = after_token(text, at);
        let token = &text[at..next];
        match token {
            "(" | "[" => depth += 1,
            ")" | "]" => depth -= 1,
            "fn" => {
                // A type such as `fn(u32)` has no name, and no body.
                let is_named = text[next..]
                    .trim_start()
                    .starts_with(|first: char| first.is_alphabetic() || first == '_');
                if is_named {
                    head = Some(Head { depth, can_choose: word_before != "const" });
                }
            }
            // The arms of a choice would be different types.
            "impl" => {
                if let Some(head) = head.as_mut().filter(|head| head.depth == depth) {
                    head.can_choose = false;
                }
            }
            ";" if head.as_ref().is_some_and(|head| head.depth == depth) => head = None,
            "{" => {
                let is_body = head.as_ref().is_some_and(|head| head.depth == depth);
                let body = head.take_if(|_| is_body).map(|head| head.can_choose);
                open.push((at, body));
            }
            "}" => {
                let (start, body) = open.pop()?;
                if let Some(can_choose) = body
                    && (start..next).contains(&place)
                    && found.is_none()
                {
                    found = Some((start..next, can_choose));
                }
            }
            _ => {}
        }
        if !token.trim().is_empty() && !token.starts_with("//") {
            word_before = token;
        }
        at = next;
    }
    found.filter(|(_, can_choose)| *can_choose).map(|(body, _)| body)
}

/// The end of the token that begins at an octet: a comment, a literal, a word, or one character.
fn after_token(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    let first = rest.chars().next().unwrap_or(' ');
    let end_of = |start: usize, mark: &str| {
        rest[start..].find(mark).map_or(rest.len(), |end| start + end + mark.len())
    };
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    let length = if rest.starts_with("//") {
        end_of(0, "\n")
    } else if rest.starts_with("/*") {
        end_of(0, "*/")
    } else if first == '"' {
        after_string(rest)
    } else if first == '\'' {
        let mut characters = rest.char_indices().skip(1);
        let second = characters.next().map(|(_, second)| second);
        let third = characters.next();
        match third {
            Some((place, _)) if second == Some('\\') => end_of(place + 1, "'"),
            Some((place, '\'')) => place + 1,
            // A lifetime or a label.
            _ => 1,
        }
    } else if is_part(first) {
        let word = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
        let hashes = rest[word..].chars().take_while(|&character| character == '#').count();
        if matches!(&rest[..word], "r" | "br") && rest[word + hashes..].starts_with('"') {
            end_of(word + hashes + 1, &format!("\"{}", "#".repeat(hashes)))
        } else {
            word
        }
    } else {
        first.len_utf8()
    };
    at + length
}

/// The length of a string literal at the beginning of a text.
fn after_string(text: &str) -> usize {
    let mut is_escaped = false;
    for (place, character) in text.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return place + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r##"
const LIMIT: u32 = 3; // { a brace in a comment
const fn fixed() -> u32 { 11 }
fn iterate() -> impl Iterator<Item = u8> { [12].into_iter() }
fn takes(any: impl Fn()) { any() }
trait Shape { fn area(&self, scale: [u8; 2]) -> u32; }
fn first(call: fn(u32) -> char) -> char
where
    char: Copy,
{
    let text = "}\"{";
    let raw = r#"}"{"#;
    let (brace, quote) = ('{', '\'');
    let inner = |one: &'static str| { 13 };
    fn nested() -> u32 { 14 }
    15
}
"##;

    /// The body of the function around a text.
    fn body(text: &str) -> Option<&'static str> {
        body_around(SOURCE, SOURCE.find(text).unwrap()).map(|body| &SOURCE[body])
    }

    #[test]
    fn the_body_around_a_text_is_that_of_its_innermost_function() {
        assert_eq!(body("14"), Some("{ 14 }"));
        assert_eq!(body("any()"), Some("{ any() }"));
        for text in ["13", "15", "let raw"] {
            let found = body(text).unwrap();
            assert!(found.starts_with("{\n    let text") && found.ends_with("15\n}"), "{text}: {found}");
        }
    }

    #[test]
    fn outside_a_body_and_where_a_body_cannot_choose_there_is_none() {
        for text in ["= 3", "11", "12", "area", "char: Copy"] {
            assert_eq!(body(text), None, "{text}");
        }
    }

    #[test]
    fn each_bug_has_an_arm_with_all_of_its_changes() {
        let text = "fn sum() -> u8 { 1 + 2 }\n";
        let change =
            |old: &str, new: &str| Change { place: String::new(), old: old.to_owned(), new: new.to_owned() };
        let (one, two) = (change("1", "10"), change("2", "20"));
        let place = |change: &Change| text.find(&change.old).unwrap();
        let bugs = BTreeMap::from([
            (4, vec![(place(&one), &one), (place(&two), &two)]),
            (7, vec![(place(&two), &two)]),
        ]);
        let bodies = BTreeMap::from([((15, 24), bugs)]);
        let switched = with_switches(text, &bodies);
        let expected = "fn sum() -> u8 { match crate::planted::number() {\n4 => { 10 + 20 }\n7 => { 1 + 20 }\n_ => { 1 + 2 }\n} }\n";
        assert_eq!(switched, expected);
    }
}
