//! The syntax of unbound.conf: clauses (`server:`) with attributes (`key: value`), comments after `#`. Included files take the
//! place of their `include`.

use crate::draft::Draft;
use crate::ledger::{Place, Spot};
use crate::sources::Sources;

/// Names of clauses.
const CLAUSES: [&str; 14] = [
    "server",
    "remote-control",
    "forward-zone",
    "stub-zone",
    "auth-zone",
    "view",
    "python",
    "dynlib",
    "dnscrypt",
    "cachedb",
    "ipset",
    "rpz",
    "dnstap",
    "ipsecmod",
];

/// Clause: its name, and its attributes.
#[derive(Debug)]
pub(super) struct Clause {
    pub(super) name: &'static str,
    pub(super) spot: Spot,
    pub(super) attributes: Vec<Attribute>,
}

impl Clause {
    /// The value of an attribute, the last one if there are several.
    pub(super) fn value(&self, key: &str) -> Option<&str> {
        self.attributes.iter().rev().find(|one| one.key == key).map(Attribute::value)
    }
}

/// Attribute: a key with its values.
#[derive(Clone, Debug)]
pub(super) struct Attribute {
    pub(super) spot: Spot,
    pub(super) key: String,
    pub(super) values: Vec<String>,
}

impl Attribute {
    /// The first value; empty if there is none.
    pub(super) fn value(&self) -> &str {
        self.values.first().map_or("", String::as_str)
    }
}

/// Parses a file, and the files that it includes. Attributes before any clause are an error of the source, and recorded as left
/// over.
pub(super) fn parse(
    text: &str,
    file: usize,
    depth: usize,
    clauses: &mut Vec<Clause>,
    sources: &mut Sources<'_>,
    draft: &mut Draft,
) {
    for (index, line) in text.lines().enumerate() {
        let place = Place { file, first: index + 1, last: index + 1 };
        for (key, values) in split(&words(line)) {
            let shown: Vec<&str> = values.iter().map(String::as_str).collect();
            let spot = Spot { place, text: format!("{key}: {}", shown.join(" ")).trim_end().to_owned() };
            if let Some(name) = CLAUSES.into_iter().find(|name| *name == key) {
                clauses.push(Clause { name, spot, attributes: Vec::new() });
                continue;
            }
            if key == "include" || key == "include-toplevel" {
                include(&spot, shown.first().copied().unwrap_or_default(), depth, clauses, sources, draft);
                continue;
            }
            match clauses.last_mut() {
                Some(clause) if !key.is_empty() => clause.attributes.push(Attribute { spot, key, values }),
                _ => draft.record(&spot, "this stands in no clause"),
            }
        }
    }
}

fn include(
    spot: &Spot,
    pattern: &str,
    depth: usize,
    clauses: &mut Vec<Clause>,
    sources: &mut Sources<'_>,
    draft: &mut Draft,
) {
    let files = sources.include(spot.place.file, pattern, depth);
    for (file, text) in draft.take_files(spot, files, "it") {
        parse(&text, file, depth + 1, clauses, sources, draft);
    }
}

/// Word of a line; a quoted one is never a key.
#[derive(Debug, PartialEq, Eq)]
struct Word {
    text: String,
    is_quoted: bool,
}

/// Splits a line into words, up to a comment.
fn words(line: &str) -> Vec<Word> {
    let (mut words, mut rest) = (Vec::new(), line.trim_start());
    while let Some(c) = rest.chars().next() {
        let end = match c {
            '#' => break,
            '"' | '\'' => {
                let length = rest[1..].find(c).unwrap_or(rest.len() - 1);
                words.push(Word { text: rest[1..=length].to_owned(), is_quoted: true });
                (length + 2).min(rest.len())
            }
            _ => {
                // Within a word `#` is no comment: `192.0.2.1@853#dns.example`.
                let mut end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                // A value may follow the colon without a blank: `forward-addr:192.0.2.1`, `name:"."`.
                let is_clause = |word: &Word| key(word).is_some_and(|key| CLAUSES.contains(&key));
                let is_first = words.iter().all(is_clause);
                let colon = rest[..end].find(':').filter(|colon| is_first && is_key_text(&rest[..*colon]));
                if let Some(colon) = colon {
                    end = colon + 1;
                }
                words.push(Word { text: rest[..end].to_owned(), is_quoted: false });
                end
            }
        };
        rest = rest[end..].trim_start();
    }
    words
}

/// True for the characters of a key. Addresses as `fe80::1` have a colon after such characters, too, but do not stand first.
fn is_key_text(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|octet| octet.is_ascii_alphanumeric() || octet == b'-')
}

/// The key in a word that ends with a colon.
fn key(word: &Word) -> Option<&str> {
    word.text.strip_suffix(':').filter(|text| !word.is_quoted && is_key_text(text))
}

/// Keys of a line with their values. Words before the first key have an empty key.
fn split(words: &[Word]) -> Vec<(String, Vec<String>)> {
    let mut pairs: Vec<(String, Vec<String>)> = Vec::new();
    for word in words {
        match (key(word), pairs.last_mut()) {
            (Some(key), _) => pairs.push((key.to_owned(), Vec::new())),
            (None, Some((_, values))) => values.push(word.text.clone()),
            (None, None) => pairs.push((String::new(), vec![word.text.clone()])),
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(line: &str) -> Vec<(String, Vec<String>)> {
        split(&words(line))
    }

    fn pair(key: &str, values: &[&str]) -> (String, Vec<String>) {
        (key.to_owned(), values.iter().map(|&value| value.to_owned()).collect())
    }

    #[test]
    fn lines_are_split_into_keys_and_values() {
        assert_eq!(
            pairs("  access-control: 10.0.0.0/8 allow # ours"),
            [pair("access-control", &["10.0.0.0/8", "allow"])]
        );
        assert_eq!(pairs("server: verbosity: 1"), [pair("server", &[]), pair("verbosity", &["1"])]);
        assert_eq!(pairs("interface: ::"), [pair("interface", &["::"])]);
        assert_eq!(pairs("interface: fe80::1%eth0"), [pair("interface", &["fe80::1%eth0"])]);
        assert_eq!(pairs("name:\".\""), [pair("name", &["."])]);
        assert_eq!(
            pairs("forward-addr:192.0.2.1@53#dns.example"),
            [pair("forward-addr", &["192.0.2.1@53#dns.example"])]
        );
        assert_eq!(
            pairs("local-data: \"a.b. IN A 192.0.2.1\""),
            [pair("local-data", &["a.b. IN A 192.0.2.1"])]
        );
        assert_eq!(pairs("chroot: \"\""), [pair("chroot", &[""])]);
        assert_eq!(pairs("chroot: \"open"), [pair("chroot", &["open"])]);
        assert_eq!(pairs("# all comment"), []);
    }
}
