//! Example configurations, and the one of the Debian package and of the container image: the program takes each of them.

use crate::daemon::{Folder, in_source};
use std::path::Path;
use std::process::{Command, Output};

/// Runs `sixfold check` on a copy of the file. The resolvers of the system are replaced, because the machine may have none.
fn check(file: &Path) -> Output {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let directory = Folder::for_everybody();
    let copy = directory.file("sixfold.toml");
    // A default is a comment in the example with every key.
    let text = text.replace("#forwarders = \"system\"", "forwarders = \"system\"");
    std::fs::write(&copy, text.replace("forwarders = \"system\"", "forwarders = [\"2001:db8::53\"]"))
        .unwrap();
    Command::new(env!("CARGO_BIN_EXE_sixfold")).args(["check", "--config"]).arg(&copy).output().unwrap()
}

#[test]
fn every_example_is_accepted_without_a_warning() {
    let folder = in_source("docs/examples/server");
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let kinds = [
        "campus-router.toml",
        "campus.toml",
        "conference.toml",
        "every-key.toml",
        "home.toml",
        "isp.toml",
        "kubernetes.toml",
        "mobile.toml",
        "router.toml",
    ];
    assert_eq!(names, kinds);
    for name in names {
        let output = check(&folder.join(&name));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{name}: {errors}");
    }
}

#[test]
fn every_example_with_a_network_has_a_plan_without_contradictions() {
    for name in ["campus-router.toml", "conference.toml", "router.toml"] {
        let directory = Folder::for_everybody();
        let file = in_source("docs/examples/server").join(name);
        let mut plan = Command::new(env!("CARGO_BIN_EXE_sixfold"));
        let output =
            plan.arg("plan").arg(&file).arg("--out").arg(directory.file("network")).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{name}: {errors}");
        assert!(directory.file("network/etc/radvd.conf").is_file(), "{name}");
    }
}

#[test]
fn the_file_of_the_package_has_no_warning() {
    let output = check(&in_source("packaging/debian/sixfold.toml"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{errors}");
}
