//! Plays every case of `conformance/shared/cases.jsonl` against our server; `suite/mod.rs` says how.

mod suite;

use suite::Suite;

#[test]
fn every_shared_case_holds_or_is_listed_for_later() {
    let test = "every_shared_case_holds_or_is_listed_for_later";
    Suite { cases: "conformance/shared/cases.jsonl", later: "conformance/shared/known-failures.txt", test }
        .play();
}
