//! Example configurations, those of the recipes, and the one of the Debian package and of the container image: the program takes each.

use crate::daemon::{Folder, in_source};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// Runs `sixfold check` on a copy of the file. The resolvers of the system are replaced, because the machine may have none, and the
/// folder of a recipe's files by its place in the source.
fn check(file: &Path) -> Output {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let directory = Folder::for_everybody();
    let copy = directory.file("sixfold.toml");
    // A default is a comment in the example with every key.
    let text = text.replace("#forwarders = \"system\"", "forwarders = \"system\"");
    let text = text.replace("forwarders = \"system\"", "forwarders = [\"2001:db8::53\"]");
    // The mappings of a recipe stand beside its configuration.
    let place = file.parent().unwrap().to_str().unwrap();
    std::fs::write(&copy, text.replace("/etc/nat64", place)).unwrap();
    // Some have a cookie secret.
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o600)).unwrap();
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
fn every_configuration_of_a_recipe_is_accepted_without_a_warning() {
    let folders = std::fs::read_dir(in_source("docs/recipes")).unwrap().map(|entry| entry.unwrap().path());
    let mut checked = 0;
    for folder in folders.filter(|folder| folder.is_dir()) {
        for file in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = file.file_name().unwrap().to_str().unwrap();
            // Those of Pi-hole are for Pi-hole.
            if !name.ends_with(".toml") || name.starts_with("pihole-") {
                continue;
            }
            let output = check(&file);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && errors.is_empty(), "{}: {errors}", file.display());
            checked += 1;
        }
    }
    assert!(checked > 10, "only {checked} configurations were found");
}

#[test]
fn the_file_of_the_package_has_no_warning() {
    let output = check(&in_source("packaging/debian/sixfold.toml"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{errors}");
}
