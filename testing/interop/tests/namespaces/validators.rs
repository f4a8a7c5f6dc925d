//! Signed zones with a fault each, judged by Sixfold and by the validators of Debian 13: docs/validators.md has the large run.

use sixfold_interop::Debian13;
use sixfold_interop::validators::compare;

/// Plays zones, and prints the tables.
fn play(zones: usize) {
    let Some(debian) = Debian13::get() else { return };
    let outcome = compare(debian, zones);
    println!("{outcome}");
    assert!(outcome.is_explained(), "{outcome}");
}

#[test]
fn every_difference_from_other_validators_has_a_reason() {
    play(100);
}

#[test]
#[ignore = "long: 2,000 zones to five validators, started anew for each 64"]
fn every_difference_about_two_thousand_zones_has_a_reason() {
    play(2000);
}
