//! Example configurations, those of the recipes, and the one of the Debian package and of the container image: the program takes each.

use crate::daemon::{Folder, in_source};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
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

/// The files of all recipes whose names end so.
fn of_recipes(ending: &str) -> Vec<PathBuf> {
    let entries = |folder: PathBuf| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let folders = entries(in_source("docs/recipes")).filter(|folder| folder.is_dir());
    let files = folders.flat_map(entries);
    files.filter(|file| file.to_str().is_some_and(|name| name.ends_with(ending))).collect()
}

#[test]
fn systemd_reads_the_units_of_the_recipes() {
    let units = of_recipes(".service");
    assert!(!units.is_empty());
    for unit in units {
        let verify = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&unit).output();
        let Ok(output) = verify else {
            return kit::missing("systemd-analyze", "apt-get install systemd");
        };
        let warnings = String::from_utf8_lossy(&output.stderr);
        let name = unit.file_name().unwrap().to_str().unwrap();
        assert!(output.status.success() && !warnings.contains(name), "{name}: {warnings}");
    }
}

// The program itself is no part of Debian.
#[test]
fn the_files_for_pi_hole_are_toml_and_meet_those_of_the_server_on_one_machine() {
    let read = |name: &str| -> toml::Table {
        let path = in_source("docs/recipes/filter").join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        text.parse().unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    // The filter in front asks the server behind, and the other way round. Pi-hole writes a port behind `#`.
    let front = read("pihole-front.toml");
    assert_eq!(front["dns"]["upstreams"][0].as_str(), Some("::1#5300"));
    assert_eq!(read("front.toml")["server"]["listen"][0].as_str(), Some("[::1]:5300"));
    let behind = read("pihole-behind.toml");
    assert_eq!(behind["dns"]["port"].as_integer(), Some(5300));
    assert_eq!(read("behind.toml")["upstream"]["forwarders"][0].as_str(), Some("[::1]:5300"));
    // The port of the clients is free for the one in front.
    assert_eq!(front["dns"]["port"].as_integer(), Some(53));
    for pi_hole in [front, behind] {
        assert!(pi_hole["dns"]["blocking"]["mode"].is_str());
    }
}

#[test]
fn every_configuration_of_a_recipe_is_accepted_without_a_warning() {
    let mut checked = 0;
    for file in of_recipes(".toml") {
        // Those of Pi-hole are for Pi-hole.
        if file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("pihole-")) {
            continue;
        }
        let output = check(&file);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{}: {errors}", file.display());
        checked += 1;
    }
    assert!(checked > 10, "only {checked} configurations were found");
}

#[test]
fn the_file_of_the_package_has_no_warning() {
    let output = check(&in_source("packaging/debian/sixfold.toml"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{errors}");
}
