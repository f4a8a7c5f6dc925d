//! Plays every case of `conformance/shared/cases.jsonl` against Sixfold (see `suite/mod.rs`).

use crate::suite;

use suite::Suite;

#[test]
fn every_shared_case_holds_or_is_a_known_failure() {
    let test = "shared_cases::every_shared_case_holds_or_is_a_known_failure";
    Suite {
        cases: "conformance/shared/cases.jsonl",
        known_failures: "conformance/shared/known-failures.txt",
        test,
    }
    .play();
}
