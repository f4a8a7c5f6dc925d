//! Small differential run; docs/disagreements.md describes the large one.

use sixfold_interop::differential::compare;

/// Number of names: enough for every kind of name, few enough for seconds.
const NAMES: usize = 400;

#[test]
fn every_difference_from_other_servers_is_explained() {
    let outcome = compare(NAMES, 20_260, false).expect("loopback has room for the upstreams");
    for (server, why) in &outcome.left_out {
        why.skip_part(server.name());
    }
    assert!(outcome.is_explained(), "{outcome}");
    assert_eq!(outcome.counts[0].1.equal, NAMES, "{outcome}");
}
