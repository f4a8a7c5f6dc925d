//! Words of a Rust file: names, `::` and single characters of punctuation, without comments, literals and tests.
//!
//! This is no parser. It knows just enough of the syntax that a path in a comment or a string is not taken for a path of the
//! program.

/// Attribute of items that only tests need.
const TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];

/// Splits a file into words and drops every item under `#[cfg(test)]`.
pub fn words(text: &str) -> Vec<&str> {
    let all = split(text);
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < all.len() {
        if all[at..].starts_with(&TEST) {
            at += item_length(&all[at..]);
        } else {
            kept.push(all[at]);
            at += 1;
        }
    }
    kept
}

/// True for a name or a keyword.
pub fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

fn split(text: &str) -> Vec<&str> {
    let (mut words, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let ignored = ignored_length(rest);
        let length = match rest.find(|c: char| !c.is_alphanumeric() && c != '_') {
            _ if ignored > 0 => ignored,
            Some(0) if rest.starts_with("::") => 2,
            Some(0) => first.len_utf8(),
            end => end.unwrap_or(rest.len()),
        };
        if ignored == 0 {
            words.push(&rest[..length]);
        }
        rest = &rest[length..];
    }
    words
}

/// Length of the comment, literal or space at the start of `rest`; 0 if there is none.
fn ignored_length(rest: &str) -> usize {
    let until =
        |end: &str, from: usize| rest[from..].find(end).map_or(rest.len(), |at| from + at + end.len());
    let raw = rest.strip_prefix('r').map(|raw| raw.len() - raw.trim_start_matches('#').len());
    if let Some(hashes) = raw.filter(|hashes| rest[1 + hashes..].starts_with('"')) {
        return until(&format!("\"{}", "#".repeat(hashes)), hashes + 2);
    }
    let is_character = rest.starts_with("'\\") || rest.chars().nth(2) == Some('\'');
    match rest.as_bytes() {
        [b'/', b'/', ..] => until("\n", 2),
        [b'/', b'*', ..] => until("*/", 2),
        [b'"', ..] => quoted_length(rest),
        [b'\'', ..] if is_character => quoted_length(rest),
        [b'\'', ..] => 1, // a lifetime
        _ => rest.len() - rest.trim_start().len(),
    }
}

/// Length of the string or character at the start of `rest`.
fn quoted_length(rest: &str) -> usize {
    let (mut characters, quote) = (rest.char_indices().skip(1), &rest[..1]);
    while let Some((at, character)) = characters.next() {
        if character == '\\' {
            characters.next();
        } else if rest[at..].starts_with(quote) {
            return at + 1;
        }
    }
    rest.len()
}

/// Number of words of the first item: up to the `;` or the `}` that ends it.
fn item_length(words: &[&str]) -> usize {
    let mut depth = 0_usize;
    for (at, word) in words.iter().enumerate() {
        match *word {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && [";", "}"].contains(word) {
            return at + 1;
        }
    }
    words.len()
}
