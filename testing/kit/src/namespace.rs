//! Tests in a namespace of their own: the test program starts itself once more, for one test, within `unshare`. The kernel removes such a
//! namespace with the processes in it, however they end. Networks of several namespaces are made of [`Named`] ones.

mod named;

pub use named::{Named, is_orphan, within};

use std::process::Command;

/// Set for the program in the namespace.
const INSIDE: &str = "SIXFOLD_TEST_NAMESPACE";

/// True in the program that [`run_inside`] started.
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Arguments of `unshare` for a network namespace that `script` (of sh) sets up. The script ends with `exec "$@"`.
pub fn network(script: &str) -> [&str; 8] {
    ["--net", "--fork", "--kill-child", "--", "sh", "-c", script, "sh"]
}

/// True outside of the namespace, where it has played the test of this name (with the path of its modules) once more, in a network
/// namespace that `script` sets up, as for [`network`], or has skipped it.
///
/// # Panics
///
/// As [`run_inside`].
#[track_caller]
pub fn is_played_in(script: &str, test: &str) -> bool {
    let is_outside = !is_inside();
    if is_outside {
        run_inside(test, &network(script));
    }
    is_outside
}

/// True if `unshare` with these arguments, a command at their end, makes a namespace and runs it there. Otherwise the test counts as skipped.
#[track_caller]
pub fn can_run(unshare: &[&str]) -> bool {
    match Command::new("unshare").args(unshare).output() {
        Ok(output) if output.status.success() => return true,
        Ok(output) => crate::skip(String::from_utf8_lossy(&output.stderr).trim()),
        Err(error) => crate::missing(&format!("unshare ({error})"), "apt-get install util-linux"),
    }
    false
}

/// Runs the test of this name (with the path of its modules) once more, by `unshare` with these arguments. Returns its output. None: this
/// machine makes no such namespace, and the test counts as skipped.
///
/// # Panics
///
/// If the test fails there, or if no test has this name.
#[track_caller]
pub fn run_inside(test: &str, unshare: &[&str]) -> Option<String> {
    if !can_run(&[unshare, &["true"]].concat()) {
        return None;
    }
    let program = std::env::current_exe().expect("the path of the test program");
    let mut command = Command::new("unshare");
    command.args(unshare).arg(program).args(["--exact", test, "--nocapture"]).env(INSIDE, "1");
    let output = command.output().expect("unshare");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &errors;
    assert!(output.status.success() && said.contains("1 passed"), "{test} in the namespace:\n{said}");
    // The skips of the test itself, if they did not go to a file.
    for why in errors.lines().filter_map(|line| line.strip_prefix(&format!("skipped: {test}: "))) {
        crate::skip(why);
    }
    Some(said)
}
