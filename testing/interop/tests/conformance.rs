//! Conformance cases against the servers that Debian has. The tests check that `sixfold-bench conform` starts them,
//! that its table adds up, and that it finds the known differences between them. Each test plays a dozen cases; the
//! server's documentation or source gives every outcome. No root is needed.

use serde_json::Value;
use sixfold_interop::{Scratch, bench, missing_program};
use std::collections::BTreeMap;

/// Cases whose outcome differs between servers, and some that pass everywhere or apply to Sixfold only.
const CASES: [&str; 14] = [
    // All servers do this.
    "type-mx",
    "real-aaaa",
    "cname-1",
    // NXDOMAIN is final: no query for A follows (RFC 6147 section 5.1.2).
    "nxdomain",
    // A query for A follows any other error (RFC 6147 section 5.1.2).
    "aaaa-servfail",
    // The negative TTL limits that of a synthesized record (section 5.1.7).
    "ttl-soa-lower",
    // CD and DO together: no synthesis (section 5.5).
    "sec-cd1-do1",
    // A CNAME for reverse names (section 5.3.1, option 2).
    "ptr-wkp-cname",
    // Private addresses under the well-known prefix (RFC 6052 section 3.1).
    "wkp-nonglobal-01",
    // Lengths other than 96 (RFC 6052 section 2.2).
    "rfc6052-t1-48",
    // Several prefixes.
    "multi-prefix",
    // Some of the AAAA records count as absent (RFC 6147 section 5.1.4).
    "excl-partial-good-a",
    // Keys that only Sixfold has.
    "zone-exclude",
    "on-failure-servfail-pass",
];

/// Plays [`CASES`] against a server; returns the outcomes by case, or `None` if the machine does not have the server.
fn play(device: &str, program: &str) -> Option<BTreeMap<String, String>> {
    if let Some(why) = missing_program(program) {
        why.skip();
        return None;
    }
    let scratch = Scratch::new();
    let file = scratch.path().join("results.json");
    let mut arguments = vec!["conform", "--device", device, "--json", file.to_str().unwrap()];
    arguments.extend(CASES.iter().flat_map(|case| ["--case", case]));
    let ran = bench(&arguments);
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let results: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{}\n{}", ran.stdout, ran.stderr));
    assert_eq!(ran.success, results["holds"] == true, "{}", ran.stdout);
    adds_up(&results);
    let cases = results["cases"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    Some(cases.iter().map(|case| (text(&case["id"]), text(&case["outcome"]))).collect())
}

/// Sums of the sections, of the levels and of the cases must be equal.
fn adds_up(results: &Value) {
    for outcome in ["passed", "failed", "not_applicable"] {
        let sum = |levels: &Value| -> u64 {
            levels.as_object().unwrap().values().map(|tally| tally[outcome].as_u64().unwrap()).sum()
        };
        let all = results["all"][outcome].as_u64().unwrap();
        let sections: u64 = results["sections"].as_array().unwrap().iter().map(|it| sum(&it["levels"])).sum();
        let word = outcome.replace('_', "-");
        let cases = results["cases"].as_array().unwrap();
        // A case that passed with remarks has passed.
        let is_so = |case: &&Value| case["outcome"].as_str().is_some_and(|told| told.starts_with(&word));
        let cases = cases.iter().filter(is_so).count() as u64;
        assert_eq!((sum(&results["levels"]), sections, cases), (all, all, all), "{outcome}");
    }
    assert_eq!(results["cases"].as_array().unwrap().len(), CASES.len());
}

/// Outcomes that all servers share: the ordinary ones, and the addresses that the well-known prefix must not
/// represent.
fn check(outcomes: &BTreeMap<String, String>, passed: &[&str], failed: &[&str], not_applicable: &[&str]) {
    let wanted = [
        ("passed", [&["type-mx", "real-aaaa", "cname-1"], passed].concat()),
        ("failed", [&["wkp-nonglobal-01"], failed].concat()),
        ("not-applicable", [&["zone-exclude", "on-failure-servfail-pass"], not_applicable].concat()),
    ];
    for (outcome, cases) in wanted {
        for case in cases {
            assert!(outcomes[case].starts_with(outcome), "{case} has not {outcome}: {outcomes:#?}");
        }
    }
}

#[test]
fn unbound_asks_for_a_after_nxdomain_which_is_a_remark_and_takes_the_ttl_of_the_a_record_alone() {
    let Some(outcomes) = play("unbound", "unbound") else { return };
    // It asks its upstream more than Sixfold does, which is a remark and no failure.
    let remarks = ["nxdomain", "ptr-wkp-cname"];
    let passed = [&["aaaa-servfail", "sec-cd1-do1", "rfc6052-t1-48"], &remarks[..]].concat();
    check(&outcomes, &passed, &["ttl-soa-lower"], &["multi-prefix", "excl-partial-good-a"]);
    for case in remarks {
        assert_eq!(outcomes[case], "passed-with-remarks", "{outcomes:#?}");
    }
}

#[test]
fn bind_gives_up_after_a_failure_and_has_words_for_most_configurations() {
    let Some(outcomes) = play("bind", "named") else { return };
    let passed = [
        "nxdomain",
        "ttl-soa-lower",
        "sec-cd1-do1",
        "ptr-wkp-cname",
        "rfc6052-t1-48",
        "multi-prefix",
        "excl-partial-good-a",
    ];
    check(&outcomes, &passed, &["aaaa-servfail"], &[]);
}

#[test]
fn powerdns_synthesizes_for_validators_and_takes_the_ttl_of_the_a_record_alone() {
    let Some(outcomes) = play("powerdns", "pdns_recursor") else { return };
    let passed = ["nxdomain", "aaaa-servfail", "ptr-wkp-cname"];
    let not_applicable = ["rfc6052-t1-48", "multi-prefix", "excl-partial-good-a"];
    check(&outcomes, &passed, &["ttl-soa-lower", "sec-cd1-do1"], &not_applicable);
}

#[test]
fn knot_resolver_gives_up_after_a_failure_and_knows_96_bits_alone() {
    let Some(outcomes) = play("knot-resolver", "kresd") else { return };
    let passed = ["nxdomain", "sec-cd1-do1", "ptr-wkp-cname"];
    check(&outcomes, &passed, &["aaaa-servfail"], &["rfc6052-t1-48", "multi-prefix"]);
}
