//! Skips as the test runner and `./test` see them: the tests run this program again, with a test that skips.

use std::process::{Command, Output};

/// Set in the process whose test skips: `skip` or `missing`.
const CHILD: &str = "SIXFOLD_TEST_SKIP_CHILD";

/// The test that skips; in an ordinary run it does nothing.
#[test]
fn the_test_that_skips() {
    match std::env::var(CHILD).as_deref() {
        Ok("skip") => kit::skip("no root"),
        Ok("missing") => kit::missing("dig", "apt-get install bind9-dnsutils"),
        _ => {}
    }
}

/// Runs the test that skips, with the capture of output that the test runner has by default.
fn run(kind: &str, variables: &[(&str, &str)]) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_test_that_skips"])
        .env_remove(kit::FILE)
        .env_remove(kit::PACKAGES)
        .env_remove("CI")
        .env(CHILD, kind)
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

#[test]
fn a_skip_passes_the_capture_of_the_test_runner() {
    let output = run("skip", &[]);
    assert!(output.status.success());
    assert!(text(&output.stderr).contains("\nskipped: the_test_that_skips: no root\n"), "{output:?}");
}

#[test]
fn skips_are_appended_to_the_file_that_the_variable_names() {
    let file = std::env::temp_dir().join(format!("sixfold-skips-{}", std::process::id()));
    let path = file.display().to_string();
    for kind in ["skip", "missing"] {
        let output = run(kind, &[(kit::FILE, &path)]);
        assert!(output.status.success() && !text(&output.stderr).contains("skipped:"), "{output:?}");
    }
    let told = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(
        told,
        "skipped: the_test_that_skips: no root\n\
         skipped: the_test_that_skips: dig is missing (apt-get install bind9-dnsutils)\n"
    );
}

#[test]
fn a_missing_program_is_a_failure_where_packages_are_installed() {
    for variable in [(kit::PACKAGES, "installed"), ("CI", "true")] {
        let output = run("missing", &[variable]);
        assert!(!output.status.success(), "{variable:?}");
        let told = text(&output.stdout) + &text(&output.stderr);
        assert!(told.contains("dig is missing") && told.contains("apt-get install bind9-dnsutils"), "{told}");
        assert!(run("skip", &[variable]).status.success(), "no root is no failure");
    }
}
