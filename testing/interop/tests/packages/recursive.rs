//! The command of the package sixfold-recursive, beside Unbound's own checks.

use crate::{run, skips, source, text};
use std::process::Command;

#[test]
fn sixfold_recursive_changes_no_file_of_the_operator_and_says_why_it_cannot_be_switched_on() {
    if skips(&["unbound-checkconf", "unshare"]) {
        return;
    }
    let ran = run(100, Command::new(source().join("packaging/tests/recursive")).arg(source()));
    assert!(ran.status.success() && text(&ran).ends_with("done\n"), "{}", text(&ran));
}
