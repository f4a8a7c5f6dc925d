//! Plays every case of `conformance/cases.jsonl` against our server; `suite/mod.rs` says how.

mod suite;

use suite::Suite;

#[test]
fn every_shared_case_holds_or_is_listed_for_later() {
    let test = "every_shared_case_holds_or_is_listed_for_later";
    Suite { cases: "conformance/cases.jsonl", later: "conformance/later.txt", test }.play();
}
