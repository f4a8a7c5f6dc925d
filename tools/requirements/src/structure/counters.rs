//! Counters that are decisions: a counter is told of a decision, and never compared, matched or stored. Otherwise a metric that is
//! split or merged changes what the server does.
//!
//! The check knows a counter by the name of its type. It refuses a counter in a pattern, beside `==` or `!=`, before `as`, and as part
//! of a struct or an enum; the way from a number to a counter; and an import that hides the name. Files with the metrics themselves
//! (`METRICS`) and tests do not count.

use super::{crates, lexer};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// Ends of the paths of files that define, read or publish counters.
const METRICS: [&str; 2] = ["/counters.rs", "/metrics.rs"];

/// The remedy of each fault.
const REMEDY: &str = "give the decision an enum of its own, with `fn counter(self) -> Counter`";

/// Finds the counters in the server's crates that are decisions: a message for each. `storing`: files that may store counters, each
/// with its reason; a message also for each of these that stores none.
///
/// # Errors
///
/// The error of a folder or file that cannot be read.
pub fn faults(workspace: &Path, storing: &[(&str, &str)]) -> io::Result<Vec<String>> {
    let (mut found, mut used) = (Vec::new(), BTreeSet::new());
    for (folder, files) in crates(workspace, "server")? {
        for (file, text) in &files {
            let path = format!("{folder}/src/{file}");
            if path.ends_with("tests.rs") || METRICS.iter().any(|end| path.ends_with(end)) {
                continue;
            }
            let may_store = storing.iter().find(|(allowed, _)| *allowed == path);
            for fault in faults_in(text) {
                match may_store {
                    Some((allowed, _)) if fault == STORED => _ = used.insert(*allowed),
                    _ => found.push(format!("{path}: {fault}; {REMEDY}")),
                }
            }
        }
    }
    let unused = storing.iter().filter(|(path, _)| !used.contains(path));
    found.extend(unused.map(|(path, _)| format!("{path} stores no counter now; delete its entry")));
    Ok(found)
}

const STORED: &str = "a struct or an enum has a counter";

/// The faults of one file.
fn faults_in(text: &str) -> Vec<&'static str> {
    let words = lexer::words(text);
    let mut found = Vec::new();
    let (mut open, mut begin) = (Vec::new(), 0);
    for (at, &word) in words.iter().enumerate() {
        match word {
            "{" | "(" => {
                let head = &words[begin..at];
                let is_type = |keyword| head.contains(&keyword) && !head.contains(&"fn");
                open.push(open.last() == Some(&true) || is_type("struct") || is_type("enum"));
            }
            "}" | ")" => _ = open.pop(),
            "Counter" => found.extend(fault_at(&words, at, open.last() == Some(&true))),
            "as" if at > 0 && words[at - 1] == "counter" => found.push("a counter is cast"),
            "match" if words[at + 1..].starts_with(&["counter", "{"]) => found.push("a counter is matched"),
            _ => {}
        }
        if ["{", "}", ";"].contains(&word) {
            begin = at + 1;
        }
    }
    found
}

/// The fault of the word `Counter` at a place. `is_part`: it stands in the body of a struct or an enum.
fn fault_at(words: &[&str], at: usize, is_part: bool) -> Option<&'static str> {
    let mut start = at;
    while start >= 2 && words[start - 1] == "::" {
        start -= 2;
    }
    let before = &words[..start];
    let after = &words[at + 1..];
    match after {
        ["::", "{" | "*", ..] => Some("an import hides that a name is a counter"),
        ["::", "ALL", ".", "get", ..] | ["::", "ALL", "[", ..] => Some("a number becomes a counter"),
        ["::", _, "as", ..] => Some("a counter is cast"),
        ["::", _, ..] if before.ends_with(&["=", "="]) || before.ends_with(&["!", "="]) => {
            Some("a counter is compared")
        }
        ["::", _, rest @ ..] => is_pattern(rest).then_some("a counter is matched"),
        _ => is_part.then_some(STORED),
    }
}

/// True if the words behind a value end a pattern: closing parentheses and further parts, then `=>`, `=`, `|` or `if`.
fn is_pattern(rest: &[&str]) -> bool {
    let length = rest.iter().take_while(|word| [")", ",", "_", "."].contains(word)).count();
    let (skipped, rest) = rest.split_at(length);
    skipped.last().is_none_or(|last| *last == ")") && matches!(rest.first(), Some(&("=" | "|" | "if")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_is_a_decision_is_found_in_each_form() {
        for (text, fault) in [
            ("match c { Counter::A => f(), _ => g() }", "a counter is matched"),
            ("match c { Some(Counter::A) => f(), Some(_) => g() }", "a counter is matched"),
            ("match c { (Pass(Counter::A), _) if f() => g() }", "a counter is matched"),
            ("match c { SpecialUse(Counter::A, _) => g() }", "a counter is matched"),
            ("match c { Policy(Counter::A, ..) => g() }", "a counter is matched"),
            ("match counter { other => g(other) }", "a counter is matched"),
            ("if let Some(crate::counters::Counter::A) = c {}", "a counter is matched"),
            ("let x = c == Counter::A;", "a counter is compared"),
            ("let x = c != transport::Counter::A;", "a counter is compared"),
            ("let x = Counter::A as u8;", "a counter is cast"),
            ("let x = counter as u8;", "a counter is cast"),
            ("let x = Counter::ALL.get(usize::from(x));", "a number becomes a counter"),
            ("use Counter::{A, B};", "an import hides that a name is a counter"),
            ("enum Rejection { Refused(Counter), Slip }", STORED),
            ("pub struct Kind { pub(crate) reason: Option<Counter> }", STORED),
            ("struct Kind(Counter);", STORED),
        ] {
            assert_eq!(faults_in(text), [fault], "{text}");
        }
        let alternatives = "match c { Counter::A | Counter::B => f(), _ => g() }";
        assert_eq!(faults_in(alternatives), ["a counter is matched"; 2]);
    }

    #[test]
    fn a_counter_that_is_told_of_a_decision_is_no_fault() {
        for text in [
            "fn counter(self) -> Counter { match self { X::A | X::B => Counter::A, X::C => Counter::B } }",
            "fn f() { match x { A => counters.count(Counter::A), _ => counters.count(Counter::B), } }",
            "fn f() { match x { A => Counter::A, _ => Counter::B } }",
            "fn f(reason: Counter, counters: &mut Counters) { counters.count(reason) }",
            "fn f() { g(Counter::A, |x| x); }",
            "fn f() { counters.count(if x == y { Counter::A } else { Counter::B }); }",
            "const LIST: [(Counter, &str); 1] = [(Counter::A, \"a\")];",
            "fn f() { for counter in Counter::ALL.iter().filter(g) {} }",
            "struct S { counters: Counters } impl S { fn f(&self, counter: Counter) -> u64 { 0 } }",
            "#[cfg(test)] mod tests { fn f() { assert!(c == Counter::A) } }",
            "// match counter { Counter::A => f() }",
        ] {
            assert!(faults_in(text).is_empty(), "{text}: {:?}", faults_in(text));
        }
    }
}
