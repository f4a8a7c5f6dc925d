//! Plays every case of `conformance/own/cases.jsonl` against Sixfold (see `suite/mod.rs`), and checks the file
//! itself.

use crate::suite;

use serde_json::Value;
use sixfold_conform::case::Case;
use std::collections::{BTreeMap, BTreeSet};
use suite::{Suite, read};

const OWN: &str = "conformance/own/cases.jsonl";
const SHARED: &str = "conformance/shared/cases.jsonl";

/// Categories of the cases (`conformance/README.md`).
const CATEGORIES: [&str; 22] = [
    "addresses",
    "cache",
    "chains",
    "clients",
    "configuration",
    "dnssec",
    "errors",
    "exclusion",
    "filter",
    "hostile",
    "ipv4-policy",
    "ipv4only",
    "local-data",
    "lookup",
    "message",
    "other-types",
    "reload",
    "reverse",
    "rules",
    "synthesis",
    "ttl",
    "upstream",
];

#[test]
fn every_own_case_holds_or_is_a_known_failure() {
    let test = "own_cases::every_own_case_holds_or_is_a_known_failure";
    Suite { cases: OWN, known_failures: "conformance/own/known-failures.txt", test }.play();
}

/// [`Case`] refuses unknown fields, and two cases of one file with the same ID.
#[test]
fn no_id_is_used_twice_in_both_files() {
    let own = Case::read_all(&read(OWN)).unwrap();
    let shared = Case::read_all(&read(SHARED)).unwrap();
    let ids: BTreeSet<&str> = own.iter().chain(&shared).map(|case| case.id.as_str()).collect();
    assert_eq!(ids.len(), own.len() + shared.len());
    assert!(own.len() >= 100, "{} cases", own.len());
}

/// A case needs its reason and a citation, so that one can argue about it.
#[test]
fn every_case_says_what_it_rests_on_and_why() {
    for line in read(OWN).lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let text = |field: &str| case[field].as_str().unwrap_or_default().to_owned();
        let id = text("id");
        assert_eq!(text("source"), "own", "{id}");
        assert!(text("notes").len() >= 20, "{id}: why?");
        let rests_on = text("rfc");
        let cited = |part: &str| {
            let part = part.trim();
            part.starts_with("contract ")
                || part == "robustness"
                || part.strip_prefix("RFC ").is_some_and(|rest| {
                    let (number, sections) = rest.split_once(' ').unwrap_or((rest, ""));
                    number.parse::<u16>().is_ok()
                        && sections.starts_with(|first: char| first.is_ascii_digit())
                })
        };
        assert!(rests_on.split(';').all(cited), "{id}: {rests_on}");
        let bare = id.bytes().all(|octet| matches!(octet, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        assert!(bare && !id.is_empty(), "{id}");
    }
}

/// Together the files cover every category; the categories named below need many cases in `own`.
#[test]
fn every_category_has_cases() {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let (own, shared) = (read(OWN), read(SHARED));
    for case in Case::read_all(&own).unwrap().into_iter().chain(Case::read_all(&shared).unwrap()) {
        assert!(CATEGORIES.contains(&case.category.as_str()), "{}: {}", case.id, case.category);
        *counts.entry(case.category).or_default() += 1;
    }
    for category in CATEGORIES {
        assert!(counts.get(category).is_some_and(|count| *count > 0), "{category}: {counts:?}");
    }
    let own = Case::read_all(&own).unwrap();
    for category in
        ["chains", "dnssec", "errors", "exclusion", "hostile", "ipv4only", "message", "reverse", "ttl"]
    {
        let count = own.iter().filter(|case| case.category == category).count();
        assert!(count >= 8, "{category}: {count}");
    }
}
