//! The reasons that convert writes, against the configuration of Sixfold as sixfold.toml(5) has it: a key that a reason names exists, and
//! what a reason denies does not. The tests of `server` hold the manual to the parser.
//!
//! All string literals of the crate are read. Those that are put together from several have their keys in one of them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Denials whose words belong to a key, each with the reason why the key is about something else.
const OTHER_MEANINGS: &[(&str, &str)] = &[
    ("zones", "`upstream.zone` names who is asked, and no key has the data of a zone"),
    ("such names", "those of a cluster, which come from its own interface"),
    ("such name", "of the statement, which is no domain name or has a wildcard"),
    ("such file", "with the number of the process"),
    ("new names", "names that were never asked before; the keys are about names that are known"),
    ("logs queries", "`limits` has keys for queries, and `log.dnstap` sends them to another program"),
    ("queries", "as above"),
    ("web interface", "for people; `server.interfaces` are those of the network"),
    ("certificate", "of its own to a forwarder; `tls.certificate` is for clients"),
    ("resolve names itself when the forwarders fail", "`upstream.forwarders` are all there is"),
    ("delegations below the zone", "of `upstream.zone`"),
    ("delegations below a zone", "of `upstream.zone`"),
    (
        "options for single forwarders",
        "but for addresses, ports and names for TLS, which these statements are not about",
    ),
    ("mapping of clients", "to other addresses; `dns64.clients` are as they come"),
    ("for a cookie", "that has none; `edns.cookies` answers those that have one"),
    ("other server", "`server` is the table of this one"),
    ("errors to zones", "RFC 9567 is about agents that a zone names"),
];

/// Denials in other words than those of the key that would make them untrue.
const PARAPHRASES: [(&str, &str); 4] = [
    ("no encrypted", "tls.listen-dot"),
    ("about itself", "server.identity"),
    ("the system picks the address", "upstream.source"),
    ("uses all ports", "upstream.avoid-ports"),
];

/// Words for a denial, behind the name of Sixfold in the same sentence.
const DENYING: [&str; 5] = ["no", "not", "none", "nobody", "never"];

/// Words in a denial that say nothing about its subject.
const FILLERS: &[&str] = &["such", "other", "all", "at", "the", "of", "or", "a", "an", "for", "its", "his"];

fn crate_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text_of(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The configuration of Sixfold.
struct Manual {
    /// Tables, like `dns64.rule`.
    tables: BTreeSet<String>,
    /// Keys with their tables, like `upstream.zone.forwarders`.
    keys: BTreeSet<String>,
    /// Words of the keys and tables, and the words that are values.
    words: BTreeSet<String>,
}

impl Manual {
    fn read() -> Manual {
        let text = text_of(&crate_root().join("../../docs/man/sixfold.toml.5"));
        let mut manual = Manual { tables: BTreeSet::new(), keys: BTreeSet::new(), words: BTreeSet::new() };
        let mut table = None;
        for line in text.lines() {
            if let Some(heading) = line.strip_prefix(".SS ") {
                // A heading with more words is about what is not there yet.
                let name = heading.trim_start_matches('[').trim_end_matches(']');
                table = heading.ends_with(']').then(|| name.to_owned());
                manual.tables.extend(table.clone());
            }
            let Some(table) = &table else { continue };
            let key = line.strip_prefix(".BR ").filter(|line| line.contains("\" = "));
            if let Some(key) = key.and_then(|line| line.split(' ').next()) {
                manual.keys.insert(format!("{table}.{}", key.replace("\\-", "-")));
            }
        }
        let of_keys = manual.keys.iter().flat_map(|key| key.split(['.', '-']));
        manual.words = of_keys.map(stem).collect();
        assert!(manual.keys.contains("dns64.on-failure.servfail") && manual.keys.len() > 80);
        manual
    }

    /// Keys and tables in a text that do not exist: `table.key`, [table] and [[table]].
    fn unknown_keys(&self, text: &str) -> Vec<String> {
        let is_name = |text: &str| {
            let is_plain = |octet: u8| octet.is_ascii_lowercase() || octet.is_ascii_digit() || octet == b'-';
            text.starts_with(|c: char| c.is_ascii_lowercase())
                && text.split('.').all(|part| !part.is_empty() && part.bytes().all(is_plain))
        };
        let quoted = text.split('`').skip(1).step_by(2).filter(|token| token.contains('.') && is_name(token));
        let keys = quoted.filter(|token| !self.keys.contains(*token) && !self.tables.contains(*token));
        let bracketed = text.split('[').skip(1).filter_map(|rest| rest.split_once(']')).map(|(name, _)| name);
        let tables = bracketed.filter(|name| is_name(name) && !self.tables.contains(*name));
        keys.chain(tables).map(str::to_owned).collect()
    }

    /// Clauses of a text that deny what a key has: a word of the key stands behind "Sixfold ... no", up to the next punctuation.
    fn untrue_denials(&self, text: &str) -> Vec<String> {
        let mut untrue = Vec::new();
        for clause in denials(text) {
            let mut words = clause.split_whitespace().filter(|word| !FILLERS.contains(word)).map(stem);
            let is_excused = OTHER_MEANINGS.iter().any(|(denial, _)| *denial == clause);
            if words.any(|word| self.words.contains(&word)) && !is_excused {
                untrue.push(clause);
            }
        }
        let said =
            PARAPHRASES.iter().filter(|(denial, key)| text.contains(denial) && self.keys.contains(*key));
        untrue.extend(said.map(|(denial, _)| (*denial).to_owned()));
        untrue
    }
}

/// The word without the end of a plural or of a verb.
fn stem(word: &str) -> String {
    let word = word.to_ascii_lowercase();
    for end in ["s", "ed", "ing"] {
        if let Some(stem) = word.strip_suffix(end).filter(|stem| stem.len() > 3) {
            return stem.to_owned();
        }
    }
    word
}

/// Denial of a text about Sixfold: the words from the denying one to the end of the clause.
fn denials(text: &str) -> Vec<String> {
    let (mut found, mut is_about_sixfold) = (Vec::new(), false);
    for clause in text.split([':', ';', ',', '(', '.', '"', '`']) {
        let words: Vec<&str> = clause.split_whitespace().collect();
        let named = words.iter().position(|word| *word == "Sixfold");
        // `Sixfold asks all servers, and follows no delegations`.
        let goes_on = is_about_sixfold && words.first() == Some(&"and");
        is_about_sixfold = named.is_some() || goes_on;
        let Some(subject) = named.or(goes_on.then_some(0)) else { continue };
        let denying = words[subject..].iter().position(|word| DENYING.contains(word));
        found.extend(denying.map(|at| words[subject + at + 1..].join(" ")));
    }
    found
}

/// String literals of the crate without its tests, in the order of each file.
fn literals() -> Vec<(PathBuf, String)> {
    let (mut folders, mut found) = (vec![crate_root().join("src")], Vec::new());
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let source = text_of(&path);
            let code = source.split("#[cfg(test)]\nmod tests").next().unwrap();
            found.extend(literals_of(code).into_iter().map(|literal| (path.clone(), literal)));
        }
    }
    found
}

/// String literals of Rust code. Raw strings, characters and comments are not among them.
fn literals_of(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(['"', '/', '\'', 'r']) {
        let from = &rest[at..];
        let length = if from.starts_with("//") {
            from.find('\n').unwrap_or(from.len())
        } else if let Some(raw) = from.strip_prefix("r#\"") {
            raw.find("\"#").unwrap() + 5
        } else if let Some(raw) = from.strip_prefix("r\"") {
            raw.find('"').unwrap() + 3
        } else if from.starts_with("'\"'") {
            3
        } else if let Some(inner) = from.strip_prefix('"') {
            let (literal, length) = literal(inner);
            found.push(literal);
            length + 1
        } else {
            1
        };
        rest = &from[length..];
    }
    found
}

/// The literal whose text begins here, and its length with the closing quotation mark.
fn literal(text: &str) -> (String, usize) {
    let (mut literal, mut characters) = (String::new(), text.char_indices().peekable());
    while let Some((index, c)) = characters.next() {
        match c {
            '"' => return (literal, index + 1),
            '\\' => match characters.next().unwrap().1 {
                '\n' => while characters.next_if(|(_, c)| c.is_whitespace()).is_some() {},
                'n' => literal.push('\n'),
                c => literal.push(c),
            },
            c => literal.push(c),
        }
    }
    panic!("a literal has no end: {text}");
}

#[test]
fn every_key_in_a_reason_exists() {
    let manual = Manual::read();
    let literals = literals();
    let named = literals.iter().filter(|(_, text)| text.contains("`server.allow`")).count();
    assert!(literals.len() > 1000 && named > 5, "{} {named}", literals.len());
    for (path, text) in &literals {
        let unknown = manual.unknown_keys(text);
        assert!(unknown.is_empty(), "{}: {unknown:?} in {text:?}", path.display());
    }
}

#[test]
fn no_reason_denies_what_there_is_a_key_for() {
    let manual = Manual::read();
    for (path, text) in literals() {
        let untrue = manual.untrue_denials(&text);
        assert!(untrue.is_empty(), "{}: {untrue:?} in {text:?}", path.display());
        assert!(!text.contains(" yet: ") && !text.ends_with(" yet"), "{text:?} promises something");
    }
    // The statements that a table denies have names of their own.
    let of_table =
        literals().into_iter().filter(|(path, _)| path.ends_with("vocabulary.rs")).map(|(_, text)| text);
    let of_table: Vec<String> = of_table.collect();
    let mut denied = 0;
    for row in of_table.windows(2).filter(|row| {
        denials(&row[1]).iter().any(|denial| denial == "such plugin" || denial == "such option")
    }) {
        for name in row[0].split_whitespace() {
            let is_key = manual.keys.iter().any(|key| key.ends_with(&format!(".{name}")));
            assert!(!is_key && !manual.tables.contains(name), "{:?} denies {name}", row[1]);
            denied += 1;
        }
    }
    assert!(denied > 3, "{denied}");
    // An excuse that no reason needs.
    let said: BTreeSet<String> = literals().iter().flat_map(|(_, text)| denials(text)).collect();
    for (denial, _) in OTHER_MEANINGS {
        assert!(said.contains(*denial), "{denial:?} is not said");
    }
}

#[test]
fn planted_faults_are_found() {
    let manual = Manual::read();
    for (text, fault) in [
        ("see `server.identify`", "server.identify"),
        ("see `serve.identity`", "serve.identity"),
        ("name it in its [[upstream.zones]]", "upstream.zones"),
        ("see [limit]", "limit"),
        ("`dns64.never-embeds` has it", "dns64.never-embeds"),
    ] {
        assert_eq!(manual.unknown_keys(text), [fault], "{text}");
    }
    assert!(
        manual.unknown_keys("see `server.identity`, `forward first`, [limits] and [[dns64.rule]]").is_empty()
    );
    for text in [
        "Sixfold has no identity: write it elsewhere",
        "left out, because Sixfold does not avoid ports",
        "there is no Lua, and Sixfold sends no cookies",
        "Sixfold never uses prefetch",
        "no encrypted listener",
        "Sixfold takes no hosts file",
        "Sixfold reads the file, and takes no records",
    ] {
        assert!(!manual.untrue_denials(text).is_empty(), "{text}");
    }
    assert!(manual.untrue_denials("Sixfold runs no Lua: see `filter.rpz`").is_empty());
}
