//! Tests that would disturb others in their process: each runs in a process of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

/// Set in the child.
const CHILD: &str = "SIXFOLD_TEST_CHILD";

/// Runs a test in a child, which is this test program with this test alone, and fails if it fails. The child ends with the test, and does
/// not wait for its threads.
pub fn in_child(test: &str, run: impl FnOnce()) {
    if std::env::var_os(CHILD).is_some() {
        let outcome = catch_unwind(AssertUnwindSafe(run));
        std::process::exit(i32::from(outcome.is_err()));
    }
    let program = std::env::current_exe().expect("the path of this program");
    let child = Command::new(program).args(["--exact", test, "--nocapture"]).env(CHILD, test).output();
    let output = child.expect("a child");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{test} in a child: {}\n{said}", output.status);
    // A wrong name would run no test.
    let ran = String::from_utf8_lossy(&output.stdout).contains("running 1 test");
    assert!(ran, "no test has the name {test}");
}
